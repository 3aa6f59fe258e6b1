/*
 * span_exact_run.h -- samples of ids while they are counted (private to the engine).
 *
 *   span_exact.c         reading and counting
 *   span_exact_answer.c  sums to answers
 */
#ifndef HEARTH_ENGINE_SPAN_EXACT_RUN_H
#define HEARTH_ENGINE_SPAN_EXACT_RUN_H

#include "spans/span_exact.h"

#define HEARTH_NO_TYPE UINT32_MAX

/* A series that is read. */
struct exact_series {
    int32_t series_id, service_id;
    uint32_t n_types;
    uint32_t *types; /* by column: its number among types, or HEARTH_NO_TYPE */
    struct hearth_series_hit hit;
    struct hearth_labels labels; /* its own, and the service's name */
    struct hearth_str service;
};

/* Sums; what they are of is in their first members. */
struct exact_sum {
    uint32_t of; /* asker, or number of a span */
    uint32_t type;
    int64_t total, n_profiles;
};

struct exact_seen_profile {
    uint32_t asker, series;
    struct hearth_profile_id id;
    int64_t time_ns, duration_ns;
};

struct exact_seen_span {
    uint32_t asker, series;
    bool is_mixed; /* series of several services */
    uint64_t id;
    double share; /* of the asker's totals, added over its types */
};

struct exact_seen_trace {
    uint32_t asker;
    struct hearth_trace_id id;
};

struct exact_run {
    const struct hearth_query *query;
    const struct hearth_exact_question *question;
    struct hearth_exact_id *ids; /* by kind, id, asker */
    struct hearth_str *types;    /* ids of profile types */
    size_t n_types, cap_types;
    struct exact_series *series; /* by series_id */
    size_t n_series;
    uint64_t *last_sample; /* [n_askers]: the last that it has counted */
    uint64_t n_samples;
    struct hearth_idmap map;
    struct hearth_buf sums, span_sums, profiles, spans, traces; /* of the structs above */
};

#define EXACT_ROWS(buf, type)   ((type *)(void *)(buf).p)
#define N_EXACT_ROWS(buf, type) ((buf).n / sizeof(type))

/* Everything that was counted, as answers: [n_askers], zeroed. Sorts what was counted. */
HEARTH_MUST_CHECK
enum hearth_status hearth_exact_answer(struct exact_run *run, struct hearth_exact *ret,
                                       struct hearth_err *err);

#endif
