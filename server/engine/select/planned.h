/*
 * planned.h -- what a question selects, and reading it by plan (private to the engine).
 *
 *   planned.c   select, plan, read; again when background work came in between
 *   mean.c      sums of gauges to means per scrape
 *   explain.c   plans and what they would read
 */
#ifndef HEARTH_ENGINE_PLANNED_H
#define HEARTH_ENGINE_PLANNED_H

#include "hearth/engine/plan.h"

#include "select/profile_match.h"
#include "select/query_internal.h"

/*
 * A plan races with background work for a millisecond, every ten minutes; while the builder catches up on
 * many services and processors are short, for longer. The deadline of the question bounds it, too.
 */
#define HEARTH_PLAN_ATTEMPTS 200

/* What a question selects, and what it wants of it (plan.h). Arrays in the query's arena. */
struct hearth_selection {
    struct hearth_series_hit *hits, *covered;
    size_t n_hits, n_covered;
    int32_t *service_ids; /* ascending */
    size_t n_services;
    int64_t from_ns, to_ns; /* both included */
    bool totals, rows, gauge;
    uint32_t *same_labels; /* of a gauge: hits that differ in their shapes alone have one number */
    struct hearth_read_detail detail;         /* of single profiles: with `rows` */
    const struct hearth_profile_match *match; /* whoever takes the rows has to ask it; NULL: all */
};

/* Under the index's lock. totals and rows are left for the caller to set. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_make(const struct hearth_query *query,
                                         struct hearth_str profile_type, struct hearth_str selector,
                                         const struct hearth_label_index *index, int64_t from_ns,
                                         int64_t to_ns, struct hearth_selection *ret,
                                         struct hearth_err *err);

/*
 * Whose scrape a row of a gauge is. A process has a series for each set of types that are not 0 in its profiles,
 * and its mean is over all of them: they share a number. HEARTH_IDMAP_NONE for rows that were not selected.
 */
uint32_t hearth_selection_scraped(const struct hearth_selection *selection,
                                  const struct hearth_read_row *row);

/* Choose by profile, span or trace as well; an empty filter changes nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_match(const struct hearth_query *query,
                                          const struct hearth_profile_filter *profiles,
                                          struct hearth_selection *selection,
                                          struct hearth_err *err);

/* Ask what stands where, and plan. In arena; notes may be NULL. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_plan(const struct hearth_query *query,
                                         const struct hearth_selection *selection,
                                         struct hearth_arena *arena, struct hearth_read_plan *ret,
                                         struct hearth_buf *notes, struct hearth_err *err);

/*
 * Who takes what is read: totals when the selection wants them and not rows, else rows; with both,
 * rows unless `row` is NULL, then the totals of single profiles.
 */
struct hearth_reader {
    void (*reset)(void *context); /* forget everything: it comes again, or for the first time */
    hearth_read_row_fn *row;
    hearth_read_total_fn *total;
    void *context;
};

/* Plan and read, again when background work came in between; notes go to query->call.notes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_read(const struct hearth_query *query,
                                         struct hearth_selection *selection,
                                         const struct hearth_reader *reader,
                                         struct hearth_err *err);

/* Select for a merge; an empty range selects nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_merge_select(const struct hearth_query *query,
                                       const struct hearth_merge_spec *spec,
                                       struct hearth_selection *ret, struct hearth_err *err);

/*
 * The mean per scrape of a gauge, as sums: each series' sums are divided by the number of its profiles,
 * added over the series, and rounded once for each stack trace, half away from zero. A stack trace that
 * several dictionaries have stands in one of them.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_mean_sum(const struct hearth_query *query,
                                   struct hearth_selection *selection, struct hearth_sums *sums,
                                   struct hearth_err *err);

/* The buckets of a time series, and which profiles fall into them. */
struct hearth_buckets {
    int64_t start_ms, step_ms, n;
    int64_t from_ns, to_ns; /* both included */
    bool empty;
};

/* Of seconds that have been checked: at least 0.001. */
static inline int64_t hearth_step_ms(double seconds)
{
    const int64_t longest = INT64_MAX / HEARTH_NS_PER_MS; /* longer than any range */
    return seconds * 1000 < (double)longest ? (int64_t)(seconds * 1000) : longest;
}

/* Which of them a profile falls into, if it exists; times are cut to milliseconds. */
static inline int64_t hearth_bucket_number(const struct hearth_buckets *buckets, int64_t ts_ns)
{
    int64_t ts_ms = ts_ns / HEARTH_NS_PER_MS - (ts_ns % HEARTH_NS_PER_MS < 0);
    int64_t offset = ts_ms - buckets->start_ms;
    return offset <= 0 ? 0 : (offset + buckets->step_ms - 1) / buckets->step_ms;
}

/* The end of bucket b in nanoseconds, excluded. */
int64_t hearth_bucket_end_ns(const struct hearth_buckets *buckets, int64_t b);

HEARTH_MUST_CHECK
enum hearth_status hearth_timeseries_buckets(const struct hearth_query *query,
                                             const struct hearth_timeseries_spec *spec,
                                             struct hearth_buckets *ret, struct hearth_err *err);

#endif
