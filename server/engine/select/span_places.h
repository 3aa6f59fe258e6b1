/*
 * span_places.h -- the places that the span index names for ids (private to the engine).
 *
 * Ownership: in the query's arena.
 * Threads:   one request is one thread.
 */
#ifndef HEARTH_ENGINE_SPAN_PLACES_H
#define HEARTH_ENGINE_SPAN_PLACES_H

#include "hearth/base/clock.h"
#include "hearth/store/store_span_index.h"

#include "select/planned.h"

/* Places whose profile may have samples with the ids; a reader of the profile verifies that. */
struct hearth_span_places {
    struct hearth_read_instant *instants; /* by (service_id, series_id, ts_ns), distinct */
    size_t n;
    bool is_cut; /* there are more; these are the latest */
};

/* The places of profiles among associations, which may have any order. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_places_of(const struct hearth_association *found, size_t n,
                                         struct hearth_arena *arena, struct hearth_span_places *ret,
                                         struct hearth_err *err);

/* The places of the ids of a filter that has ids. from_ns, to_ns as in hearth_store_find_spans. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_places_find(const struct hearth_query *query,
                                           const struct hearth_profile_filter *filter,
                                           int64_t from_ns, int64_t to_ns,
                                           struct hearth_span_places *ret, struct hearth_err *err);

/* The time from which the index is searched: as far back as queries may look. */
static inline int64_t hearth_lookup_from_ns(const struct hearth_limits *limits)
{
    return limits->max_query_lookback_ns > 0
               ? hearth_clock_wall_ns() - limits->max_query_lookback_ns
               : INT64_MIN;
}

/* hearth_store_span_index_since, remembered after the first call. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_index_since(const struct hearth_query *query, int64_t *ret_ns,
                                           struct hearth_err *err);

/* A limit as a number of things: 0 means no limit, returned as INT32_MAX. */
static inline size_t hearth_lookup_limit(int64_t limit)
{
    return limit <= 0 || limit > INT32_MAX ? INT32_MAX : (size_t)limit;
}

#endif
