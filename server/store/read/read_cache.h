/*
 * read_cache.h -- dictionaries of queries, shared and kept within a limit (private to the store).
 *
 * Contract of hearth_store_read_dict and _release: hearth/store/store.h. Threads: safe.
 */
#ifndef HEARTH_STORE_READ_CACHE_H
#define HEARTH_STORE_READ_CACHE_H

#include "hearth/store/store.h"

struct hearth_read_cache;

HEARTH_MUST_CHECK enum hearth_status hearth_read_cache_new(struct hearth_store *store,
                                                           struct hearth_read_cache **ret_cache,
                                                           struct hearth_err *err);
void hearth_read_cache_free(struct hearth_read_cache *cache);

#endif
