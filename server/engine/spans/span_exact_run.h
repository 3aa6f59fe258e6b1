/*
 * span_exact_run.h -- state of counting the samples of ids (private to the engine).
 *
 *   span_exact.c         reads and counts
 *   span_exact_answer.c  turns sums into results
 */
#ifndef HEARTH_ENGINE_SPAN_EXACT_RUN_H
#define HEARTH_ENGINE_SPAN_EXACT_RUN_H

#include "spans/span_exact.h"

#define HEARTH_NO_TYPE UINT32_MAX

/* A series to be read. */
struct exact_series {
    int32_t series_id, service_id;
    uint32_t n_types;
    uint32_t *types; /* for each column, the number of its type, or HEARTH_NO_TYPE */
    struct hearth_series_hit hit;
    struct hearth_labels labels; /* with the service's name, without those of the type */
    struct hearth_str service;
};

/* A sum; the first members say over which samples. */
struct exact_sum {
    uint32_t of; /* number of the result or of the span */
    uint32_t type;
    int64_t total, n_profiles;
};

struct exact_seen_profile {
    uint32_t result_no, series;
    struct hearth_profile_id id;
    int64_t time_ns, duration_ns;
};

struct exact_seen_span {
    uint32_t result_no, series;
    bool is_mixed; /* it occurs in series of several services */
    uint64_t id;
    double share; /* shares of the result's totals, summed over its types */
};

struct exact_seen_trace {
    uint32_t result_no;
    struct hearth_trace_id id;
};

struct exact_run {
    const struct hearth_query *query;
    const struct hearth_exact_search *search;
    struct hearth_exact_id *ids; /* sorted by kind, id, result */
    struct hearth_str *types;    /* ids of profile types */
    size_t n_types, cap_types;
    struct exact_series *series; /* sorted by series_id */
    size_t n_series;
    uint64_t *last_sample; /* [n_results]: number of the last sample counted for it */
    uint64_t n_samples;
    struct hearth_idmap map;
    struct hearth_buf sums, span_sums, profiles, spans, traces; /* arrays of the structs above */
};

#define EXACT_ROWS(buf, type)   ((type *)(void *)(buf).p)
#define N_EXACT_ROWS(buf, type) ((buf).n / sizeof(type))

/* Sort everything that was counted, and fill in the results: [n_results], zeroed. */
HEARTH_MUST_CHECK
enum hearth_status hearth_exact_answer(struct exact_run *run, struct hearth_exact *ret,
                                       struct hearth_err *err);

#endif
