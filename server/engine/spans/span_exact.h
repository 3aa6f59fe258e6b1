/*
 * span_exact.h -- samples that carry ids, for many results at once (private to the engine).
 *
 * Threads: one request runs on one thread. Ownership: results live in the query's arena.
 */
#ifndef HEARTH_ENGINE_SPAN_EXACT_H
#define HEARTH_ENGINE_SPAN_EXACT_H

#include "hearth/engine/span_profiles.h"

#include "select/span_places.h"

/*
 * An id to search for, and the result it belongs to. A sample with several ids of one result counts
 * once for it.
 */
struct hearth_exact_id {
    struct hearth_trace_id id; /* the id; an id of a span is in lo */
    uint8_t of;                /* HEARTH_OF_SPAN, _LOCAL_ROOT or _TRACE */
    uint32_t result_no;
};

/* One result. */
struct hearth_exact {
    struct hearth_found_type *types; /* sorted by profile type */
    size_t n_types;
    struct hearth_found_profile *profiles; /* the first max_profiles, sorted by time, then id */
    size_t n_profiles;
    int64_t n_all_profiles;
    int64_t first_ns, last_ns;   /* times of the first and last of all profiles */
    struct hearth_str *services; /* services of all profiles, sorted by name */
    size_t n_services;
    struct hearth_found_span *spans; /* sorted by share of the totals, largest first */
    size_t n_spans;
    uint64_t *span_ids; /* ascending */
    size_t n_span_ids;
    struct hearth_trace_id *trace_ids; /* ascending */
    size_t n_trace_ids;
};

#define HEARTH_EXACT_MAX_SPANS 1000 /* limit of `spans`; the ids are complete */

struct hearth_exact_search {
    const struct hearth_span_places *places;
    const struct hearth_exact_id *ids; /* in any order */
    size_t n_ids;
    size_t n_results;
    const struct hearth_str *profile_types; /* empty list: all */
    size_t n_profile_types;
    size_t max_profiles;
};

/*
 * Find and count the samples; ret has n_results elements. INVALID_ARGUMENT: an invalid profile
 * type.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_exact_find(const struct hearth_query *query,
                                     const struct hearth_exact_search *search,
                                     struct hearth_exact *ret, struct hearth_err *err);

/* Whether a label names the profile type of its series; a profile has several types. */
bool hearth_label_names_type(struct hearth_str name);

#endif
