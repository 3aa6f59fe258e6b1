/*
 * span_exact.h -- samples that carry ids, of many askers at once (private to the engine).
 *
 * Threads: one request is one thread. Ownership: answers in the query's arena.
 */
#ifndef HEARTH_ENGINE_SPAN_EXACT_H
#define HEARTH_ENGINE_SPAN_EXACT_H

#include "hearth/engine/span_profiles.h"

#include "select/span_places.h"

/* An id that somebody looks for. A sample that several ids of one asker meet counts once for it. */
struct hearth_exact_id {
    struct hearth_trace_id id; /* of a span: lo */
    uint8_t of;                /* HEARTH_OF_SPAN, _LOCAL_ROOT or _TRACE */
    uint32_t asker;
};

/* What one asker gets. */
struct hearth_exact {
    struct hearth_found_type *types; /* by profile type */
    size_t n_types;
    struct hearth_found_profile *profiles; /* by time, then id: the first */
    size_t n_profiles;
    int64_t n_all_profiles;
    int64_t first_ns, last_ns;   /* times of all of these */
    struct hearth_str *services; /* of all of these, by name */
    size_t n_services;
    struct hearth_found_span *spans; /* the largest first */
    size_t n_spans;
    uint64_t *span_ids; /* ascending */
    size_t n_span_ids;
    struct hearth_trace_id *trace_ids; /* ascending */
    size_t n_trace_ids;
};

#define HEARTH_EXACT_MAX_SPANS 1000 /* in `spans`; the ids are all there */

struct hearth_exact_question {
    const struct hearth_span_places *places;
    const struct hearth_exact_id *ids; /* in any order */
    size_t n_ids;
    size_t n_askers;
    const struct hearth_str *profile_types; /* none: all */
    size_t n_profile_types;
    size_t max_profiles;
};

/* ret: [n_askers]. INVALID_ARGUMENT: a profile type that is none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_exact_find(const struct hearth_query *query,
                                     const struct hearth_exact_question *question,
                                     struct hearth_exact *ret, struct hearth_err *err);

#endif
