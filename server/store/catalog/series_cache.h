/*
 * series_cache.h -- what ingest knows by heart: the ids of a series and its latest hours (private
 * to the store).
 *
 * Keys are 128-bit hashes, seeded per process, of tenant, service name, profile types and labels.
 * At most HEARTH_SERIES_CACHE_MAX series; what was not asked for in the last half of that many new
 * ones is forgotten and costs a catalogue write when it returns.
 *
 * Threads: safe; a shard of the map has its own mutex.
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
    HEARTH_SERIES_NEW_HOUR, /* the ids are known, a profile in this hour is not */
    HEARTH_SERIES_KNOWN,
};

struct hearth_series_cache *hearth_series_cache_new(void); /* NULL when memory was refused */
void hearth_series_cache_free(struct hearth_series_cache *cache);

HEARTH_MUST_CHECK enum hearth_status hearth_series_cache_key(struct hearth_str tenant,
                                                             const struct hearth_series_key *series,
                                                             struct hearth_hash128 *ret_key,
                                                             struct hearth_err *err);
/* *ret_ids is set unless UNKNOWN. */
enum hearth_series_known hearth_series_cache_find(struct hearth_series_cache *cache,
                                                  struct hearth_hash128 key, int32_t hour,
                                                  struct hearth_series_ids *ret_ids);
/* Remember; a refusal of memory only means that it is not remembered. */
void hearth_series_cache_put(struct hearth_series_cache *cache, struct hearth_hash128 key,
                             int32_t hour, struct hearth_series_ids ids);
void hearth_series_cache_clear(struct hearth_series_cache *cache);

#endif
