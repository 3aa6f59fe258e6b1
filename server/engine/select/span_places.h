/*
 * span_places.h -- where the index says that samples with ids are (private to the engine).
 *
 * Threads: one request is one thread. Ownership: in the query's arena.
 */
#ifndef HEARTH_ENGINE_SPAN_PLACES_H
#define HEARTH_ENGINE_SPAN_PLACES_H

#include "hearth/base/clock.h"
#include "hearth/store/store_span_index.h"

#include "select/planned.h"

/* Profiles that may have such samples: whoever reads them looks. */
struct hearth_span_places {
    struct hearth_read_instant *instants; /* by (service_id, series_id, ts_ns), distinct */
    size_t n;
    bool is_cut; /* there are more, and these are the latest */
};

/* Of associations, in any order, those of profiles. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_places_of(const struct hearth_association *found, size_t n,
                                         struct hearth_arena *arena, struct hearth_span_places *ret,
                                         struct hearth_err *err);

/* Of the ids of a filter, which has some. from_ns, to_ns as in hearth_store_find_spans. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_places_find(const struct hearth_query *query,
                                           const struct hearth_profile_filter *filter,
                                           int64_t from_ns, int64_t to_ns,
                                           struct hearth_span_places *ret, struct hearth_err *err);

/* From where on the index is asked: as far back as questions may look. */
static inline int64_t hearth_lookup_from_ns(const struct hearth_limits *limits)
{
    return limits->max_query_lookback_ns > 0
               ? hearth_clock_wall_ns() - limits->max_query_lookback_ns
               : INT64_MIN;
}

/* As hearth_store_span_index_since, asked once. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_index_since(const struct hearth_query *query, int64_t *ret_ns,
                                           struct hearth_err *err);

/* A limit as a number of things: 0 is none. */
static inline size_t hearth_lookup_limit(int64_t limit)
{
    return limit <= 0 || limit > INT32_MAX ? INT32_MAX : (size_t)limit;
}

#endif
