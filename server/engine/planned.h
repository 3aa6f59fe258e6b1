/*
 * planned.h -- what a question selects, and reading it by plan (private to the engine).
 *
 *   planned.c   select, plan, read; again when background work came in between
 *   explain.c   plans and what they would read
 */
#ifndef HEARTH_ENGINE_PLANNED_H
#define HEARTH_ENGINE_PLANNED_H

#include "hearth/engine/plan.h"

#include "query_internal.h"

/* A plan races with background work for a millisecond, every ten minutes: more is a fault. */
#define HEARTH_PLAN_ATTEMPTS 20

/* What a question selects, and what it wants of it (plan.h). Arrays in the query's arena. */
struct hearth_selection {
    struct hearth_series_hit *hits, *covered;
    size_t n_hits, n_covered;
    int32_t *service_ids; /* ascending */
    size_t n_services;
    int64_t from_ns, to_ns; /* both included */
    bool totals, rows, gauge;
};

/* Under the index's lock. totals and rows are left for the caller to set. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_make(const struct hearth_query *query,
                                         struct hearth_str profile_type,
                                         struct hearth_str selector,
                                         const struct hearth_label_index *index,
                                         int64_t from_ns,
                                         int64_t to_ns,
                                         struct hearth_selection *ret,
                                         struct hearth_err *err);

/* Ask what stands where, and plan. In arena; notes may be NULL. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_plan(const struct hearth_query *query,
                                         const struct hearth_selection *selection,
                                         struct hearth_arena *arena,
                                         struct hearth_read_plan *ret,
                                         struct hearth_buf *notes,
                                         struct hearth_err *err);

/* Who takes what is read: totals when the selection wants them and not rows, else rows. */
struct hearth_reader {
    void (*reset)(void *context); /* forget everything: it comes again, or for the first time */
    hearth_read_row_fn *row;
    hearth_read_total_fn *total;
    void *context;
};

/* Plan and read, again when background work came in between; notes go to query->notes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_read(const struct hearth_query *query,
                                         struct hearth_selection *selection,
                                         const struct hearth_reader *reader,
                                         struct hearth_err *err);

/* Select for a merge; an empty range selects nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_merge_select(const struct hearth_query *query,
                                       const struct hearth_merge_spec *spec,
                                       struct hearth_selection *ret,
                                       struct hearth_err *err);

/* The buckets of a time series, and which profiles fall into them. */
struct hearth_buckets {
    int64_t start_ms, step_ms, n;
    int64_t from_ns, to_ns; /* both included */
    bool empty;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_timeseries_buckets(const struct hearth_query *query,
                                             const struct hearth_timeseries_spec *spec,
                                             struct hearth_buckets *ret,
                                             struct hearth_err *err);

#endif
