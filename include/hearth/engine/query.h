/*
 * query.h -- the questions: which types, labels and series exist; merged stacks; totals over time.
 *
 * Ranges are milliseconds, inclusive at both ends, validated the same way for every question: both
 * ends must be set, start <= end, the range within max_query_range; a start before
 * max_query_lookback is moved, an end before it answers empty. Selectors are texts
 * (query/selector.h); several are ANDed.
 *
 * Ownership: answers live in the request's arena.
 * Threads:   safe; one request is one thread.
 * Errors:    INVALID_ARGUMENT for what the caller can mend; NO_MEMORY, DEADLINE_EXCEEDED,
 *            CANCELLED, UNAVAILABLE.
 * Source:    querier.v1 semantics as in docs/api.md.
 */
#ifndef HEARTH_ENGINE_QUERY_H
#define HEARTH_ENGINE_QUERY_H

#include "hearth/engine/limits.h"
#include "hearth/model/profile_type.h"
#include "hearth/model/stacktree.h"
#include "hearth/store/read.h"

struct hearth_query_engine;

HEARTH_MUST_CHECK
enum hearth_status hearth_query_engine_new(const struct hearth_limits *limits, /* copied */
                                           struct hearth_store *store,         /* kept */
                                           struct hearth_query_engine **ret_engine,
                                           struct hearth_err *err);
void hearth_query_engine_free(struct hearth_query_engine *engine);

struct hearth_query {
    struct hearth_query_engine *engine;
    struct hearth_str tenant;
    int64_t start_ms, end_ms;
    struct hearth_arena *arena;
    struct hearth_cancel *cancel;
    /* What the answer lacks or was changed, a line each, for the client to see; may be NULL. */
    struct hearth_buf *notes;
};

/* Sorted by id. start = end = 0 means the last hour. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_profile_types(const struct hearth_query *query,
                                              struct hearth_str **ret_ids,
                                              size_t *ret_n,
                                              struct hearth_err *err);
/* legacy_only leaves out names that are not [a-zA-Z_][a-zA-Z0-9_]*. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_names(const struct hearth_query *query,
                                            const struct hearth_str *selectors,
                                            size_t n_selectors,
                                            bool legacy_only,
                                            struct hearth_str **ret_names,
                                            size_t *ret_n,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_values(const struct hearth_query *query,
                                             struct hearth_str name,
                                             const struct hearth_str *selectors,
                                             size_t n_selectors,
                                             struct hearth_str **ret_values,
                                             size_t *ret_n,
                                             struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_query_series(const struct hearth_query *query,
                                       const struct hearth_str *selectors,
                                       size_t n_selectors,
                                       const struct hearth_str *names,
                                       size_t n_names,
                                       bool legacy_only,
                                       struct hearth_labels **ret_sets,
                                       size_t *ret_n,
                                       struct hearth_err *err);

/* What to merge. */
struct hearth_merge_spec {
    struct hearth_str profile_type;     /* id of five or six parts */
    struct hearth_str selector;         /* must not be empty; "{}" is everything */
    const struct hearth_str *call_site; /* root-first function names that a stack must begin with */
    size_t n_call_site;
    bool has_max_nodes;
    int64_t max_nodes; /* unset or 0: the default (flame graph) or no limit (pprof) */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_flamegraph(const struct hearth_query *query,
                                           const struct hearth_merge_spec *spec,
                                           struct hearth_flamegraph *ret,
                                           struct hearth_err *err);
/* The tree byte format. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_tree(const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec,
                                     struct hearth_buf *out,
                                     struct hearth_err *err);
/* A pprof message, plain; nothing is appended when there is no data. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_pprof(const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec,
                                      struct hearth_buf *out,
                                      struct hearth_err *err);

struct hearth_point {
    int64_t ts_ms;
    double value;
};

struct hearth_timeseries {
    struct hearth_labels labels;
    struct hearth_point *points;
    size_t n_points;
    double sum;
};

struct hearth_timeseries_spec {
    struct hearth_str profile_type, selector;
    const struct hearth_str *group_by;
    size_t n_group_by;
    double step_seconds;
    bool average;                       /* mean of the profiles of a bucket instead of their sum */
    int64_t limit;                      /* 0: all */
    const struct hearth_str *call_site; /* not empty: the total of the stacks that begin with it */
    size_t n_call_site;
};

/* By sum descending, then labels. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_timeseries(const struct hearth_query *query,
                                           const struct hearth_timeseries_spec *spec,
                                           struct hearth_timeseries **ret_series,
                                           size_t *ret_n,
                                           struct hearth_err *err);

/* ---- how a question would be answered ---- */

/* One part of a plan: rows or blocks of one tier, of services that stand alike. */
struct hearth_explained_leg {
    enum hearth_source source;
    bool whole_service;     /* sums over all series of a service instead of one series each */
    int64_t from_ns, to_ns; /* to_ns is excluded */
    int64_t n_services;
    int64_t n_series;        /* API series that it answers for */
    int64_t n_rows, n_bytes; /* profiles, blocks or segments to read; bytes as stored */
    double ms;               /* estimated */
};

struct hearth_explanation {
    int64_t from_ns, to_ns;            /* of the question, both included, after limits of ranges */
    int64_t n_services, n_series;      /* selected */
    struct hearth_explained_leg *legs; /* in the order of the plan: late and edges first */
    size_t n_legs;
    int64_t n_rows, n_bytes;  /* of all legs */
    double ms;                /* of all legs and the fixed cost of a query */
    struct hearth_str *notes; /* what the answer would lack, or how the range is changed */
    size_t n_notes;
};

/*
 * The plan that hearth_query_flamegraph and its siblings, or hearth_query_timeseries, would run now,
 * with what it would read, counted in the database. The same errors as those. In the query's arena;
 * query->notes is not written.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_explain_merge(const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec,
                                              struct hearth_explanation *ret,
                                              struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_query_explain_timeseries(const struct hearth_query *query,
                                                   const struct hearth_timeseries_spec *spec,
                                                   struct hearth_explanation *ret,
                                                   struct hearth_err *err);

#endif
