/*
 * sum_cache.h -- sums of blocks that earlier queries added up (private to the engine).
 *
 * An entry holds the sums of the blocks of one service and one size that a plan named, or of its
 * closed profiles of one table, as one row for each dictionary. Its key is a hash of that part of
 * the plan and of the generation of the service, which every change of them raises. So an entry is
 * never wrong, only unused once the generation has risen; the least recently used entries make way
 * for new ones. What a query made of all its sums may be kept as bytes, under a key of theirs.
 *
 * Threads: safe. Ownership: an entry lives until its last user has released it.
 */
#ifndef HEARTH_ENGINE_SUM_CACHE_H
#define HEARTH_ENGINE_SUM_CACHE_H

#include "hearth/base/hash.h"
#include "hearth/store/store.h"

struct hearth_sum_cache;

struct hearth_cached_sums {
    const struct hearth_read_row *rows; /* column 0 of one dictionary each; no row is late */
    size_t n_rows;
    struct hearth_str bytes; /* of an entry of bytes, which has no rows; aligned to 8 bytes */
};

/* limit_bytes 0: nothing is kept. NULL: memory was refused. */
struct hearth_sum_cache *hearth_sum_cache_new(size_t limit_bytes);
void hearth_sum_cache_free(struct hearth_sum_cache *cache); /* NULL-safe; no entry is in use */
bool hearth_sum_cache_is_on(const struct hearth_sum_cache *cache);
/* The most bytes that one entry may have. */
size_t hearth_sum_cache_largest(const struct hearth_sum_cache *cache);

/* Finds the entry of a key; the caller releases it. Returns NULL if the cache lacks the key. */
const struct hearth_cached_sums *hearth_sum_cache_find(struct hearth_sum_cache *cache,
                                                       struct hearth_hash128 key);
void hearth_sum_cache_release(struct hearth_sum_cache *cache,
                              const struct hearth_cached_sums *sums);

/* The same for an entry of bytes; if it is absent, nothing is counted as missing. */
const struct hearth_cached_sums *hearth_sum_cache_find_bytes(struct hearth_sum_cache *cache,
                                                             struct hearth_hash128 key);

/* Keeps a copy of the rows, of which only ids and val are texts, if they fit. */
void hearth_sum_cache_add(struct hearth_sum_cache *cache, struct hearth_hash128 key,
                          const struct hearth_read_row *rows, size_t n_rows);

/* Keeps a copy of the bytes, if they fit. */
void hearth_sum_cache_add_bytes(struct hearth_sum_cache *cache, struct hearth_hash128 key,
                                struct hearth_str bytes);

#endif
