/*
 * series_cache.h -- ids and latest hours of known series, in memory, for ingest (private to the
 * store).
 *
 * Keys are 128-bit hashes, seeded per process, of tenant, service name, profile types and labels.
 * The cache has at most HEARTH_SERIES_CACHE_MAX series. A series that is not looked up while half
 * as many new ones are added is removed; its next look-up costs a catalogue write.
 *
 * Threads: safe. Each shard of the map has its own mutex.
 */
#ifndef HEARTH_STORE_SERIES_CACHE_H
#define HEARTH_STORE_SERIES_CACHE_H

#include "hearth/store/store.h"

#define HEARTH_SERIES_CACHE_MAX (1024 * 1024)

struct hearth_series_cache;

struct hearth_series_ids {
    struct hearth_series_ref ref;
    int32_t tenant_id;
};

enum hearth_series_known {
    HEARTH_SERIES_UNKNOWN,
    HEARTH_SERIES_NEW_HOUR, /* the ids are known, but no profile in this hour */
    HEARTH_SERIES_KNOWN,    /* the ids and a profile in this hour are known */
};

struct hearth_series_cache *hearth_series_cache_new(void);        /* NULL: no memory */
void hearth_series_cache_free(struct hearth_series_cache *cache); /* NULL-safe */

/* Compute the key of a series. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_series_cache_key(struct hearth_str tenant,
                                                             const struct hearth_series_key *series,
                                                             struct hearth_hash128 *ret_key,
                                                             struct hearth_err *err);

/* Look a series up. *ret_ids is set unless it is UNKNOWN. */
enum hearth_series_known hearth_series_cache_find(struct hearth_series_cache *cache,
                                                  struct hearth_hash128 key, int32_t hour,
                                                  struct hearth_series_ids *ret_ids);

/* Add a series and an hour. ids.ref.series_id > 0. Without memory, nothing is added. */
void hearth_series_cache_put(struct hearth_series_cache *cache, struct hearth_hash128 key,
                             int32_t hour, struct hearth_series_ids ids);

/* Remove all series. */
void hearth_series_cache_clear(struct hearth_series_cache *cache);

#endif
