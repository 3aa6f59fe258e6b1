/*
 * planned.h -- the selection of a query, and reading it by plan (private to the engine).
 *
 *   planned.c   select, plan, read; repeated if background work interferes
 *   mean.c      sums of gauges to means per scrape
 *   explain_selection.c   plans and the amount that they would read
 *
 * Threads: each object belongs to one query, which runs on one thread.
 */
#ifndef HEARTH_ENGINE_PLANNED_H
#define HEARTH_ENGINE_PLANNED_H

#include "hearth/engine/plan.h"

#include "select/profile_match.h"
#include "select/query_internal.h"

#include <float.h>

/*
 * How often a query is planned and read again because background work moved rows between plan and
 * read. That race lasts a millisecond every ten minutes; it lasts longer while the builder catches
 * up on many services and processors are short. The deadline of the query is a bound, too.
 */
#define HEARTH_PLAN_ATTEMPTS 200

/*
 * The selected series, and what the query wants of them (plan.h). Arrays live in the query's arena.
 */
struct hearth_selection {
    struct hearth_series_hit *hits, *covered;
    size_t n_hits, n_covered;
    int32_t *service_ids; /* ascending */
    size_t n_services;
    int64_t from_ns, to_ns; /* both included */
    bool totals, rows, gauge;
    int64_t longest_block_ns; /* as in plan.h; set afterwards */
    uint32_t *same_labels; /* gauges: [n_hits], equal for hits that differ in their shapes only */
    struct hearth_read_detail detail; /* columns and filters of single profiles; with `rows` */
    const struct hearth_profile_match *match; /* the reader must apply it; NULL: all rows count */
};

/*
 * Selects the series; the caller holds the lock of the index, and sets totals and rows afterwards.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_make(const struct hearth_query *query,
                                         const struct hearth_series_choice *choice,
                                         const struct hearth_call_index *index,
                                         struct hearth_selection *ret, struct hearth_err *err);

/*
 * The number of the process that a row of a gauge belongs to. A process has a series for each set
 * of types that are not 0 in its profiles, and its mean is over all of them, so they share a
 * number. HEARTH_IDMAP_NONE for rows that were not selected.
 */
uint32_t hearth_selection_scraped(const struct hearth_selection *selection,
                                  const struct hearth_read_row *row);

/* Restricts the selection by profile, span or trace; an empty filter changes nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_match(const struct hearth_query *query,
                                          const struct hearth_profile_filter *profiles,
                                          struct hearth_selection *selection,
                                          struct hearth_err *err);

/* Reads the state of the services and makes the plan, in arena; notes may be NULL. */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_plan(const struct hearth_query *query,
                                         const struct hearth_selection *selection,
                                         struct hearth_arena *arena, struct hearth_read_plan *ret,
                                         struct hearth_buf *notes, struct hearth_err *err);

/*
 * Receiver of rows or totals. Totals are read if the selection wants totals and not rows, otherwise
 * rows; if it wants both, rows unless `row` is NULL, otherwise totals of single profiles.
 */
struct hearth_reader {
    void (*reset)(void *context); /* discard all: a read begins, perhaps not for the first time */
    hearth_read_row_fn *row;
    hearth_read_total_fn *total;
    hearth_read_totals_fn *totals; /* of packed totals; NULL: `total` gets them one by one */
    void *context;
    bool sums; /* only the sum of each dictionary matters: rows of blocks may come added up */
    hearth_sums_known_fn *known; /* with `sums`; NULL: the reader gets all sums */
};

/* A row that outlives the call of its visitor. */
struct hearth_kept_row {
    struct hearth_kept_row *next;
    struct hearth_read_row row; /* its texts are copies; members is empty */
};

/* Puts a copy of the row, made in the arena, at the head of the list. */
HEARTH_MUST_CHECK
enum hearth_status hearth_kept_row_push(struct hearth_kept_row **list,
                                        const struct hearth_read_row *row,
                                        struct hearth_arena *arena, struct hearth_err *err);

/*
 * Plans and reads, again if background work interferes; notes are added to query->call.notes. With
 * query->plan, the plan is added there, and the reader gets nothing. Services of nodes that are
 * lost are left out if query->call.partial is set, and remembered there (lost_services.h).
 * Errors: UNAVAILABLE if all services are left out, or after HEARTH_PLAN_ATTEMPTS attempts; those
 * of the reader and the store.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_read(const struct hearth_query *query,
                                         struct hearth_selection *selection,
                                         const struct hearth_reader *reader,
                                         struct hearth_err *err);

/*
 * The plan that hearth_selection_read would execute now, and the amount that it would read. The
 * notes of the query so far, which must have a buffer for them, are part of the answer.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_explain(const struct hearth_query *query,
                                            const struct hearth_selection *selection,
                                            struct hearth_explanation *ret, struct hearth_err *err);

/* Says which step, and which side, the next read of a query belongs to. */
static inline void hearth_plan_begin(const struct hearth_query *query, enum hearth_plan_step step,
                                     bool of_base)
{
    if (query->plan != NULL) {
        query->plan->step = step;
        query->plan->of_base = of_base;
    }
}

/*
 * Adds the plan of a selection that is not empty to query->plan, and its notes to
 * query->call.notes. Errors: as of hearth_selection_read.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_selection_add_plan(const struct hearth_query *query,
                                             const struct hearth_selection *selection,
                                             struct hearth_err *err);

typedef enum hearth_status hearth_explain_fn(const struct hearth_query *query, const void *spec,
                                             struct hearth_explanation *ret,
                                             struct hearth_err *err);

/* Calls explain with the query and an own buffer for its notes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_explain_with_notes(const struct hearth_query *query,
                                             hearth_explain_fn *explain, const void *spec,
                                             struct hearth_explanation *ret,
                                             struct hearth_err *err);

/* Makes the selection of a merge; nothing is selected if the range is empty. */
HEARTH_MUST_CHECK
enum hearth_status hearth_merge_select(const struct hearth_query *query,
                                       const struct hearth_merge_spec *spec,
                                       struct hearth_selection *ret, struct hearth_err *err);

/*
 * The mean per scrape of a gauge, as sums: the sums of each series are divided by the number of its
 * profiles, added over the series, and rounded once for each stack trace, half away from zero. A
 * stack trace that is in several dictionaries is counted in one of them.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_mean_sum(const struct hearth_query *query,
                                   struct hearth_selection *selection, struct hearth_sums *sums,
                                   struct hearth_err *err);

/* The buckets of a time series, and the range of profiles in them. */
struct hearth_buckets {
    int64_t start_ms, step_ms, n;
    int64_t from_ns, to_ns; /* both included */
    bool empty;
};

/*
 * The step in milliseconds, cut to whole ones; seconds are at least 0.001, which the caller has
 * checked. The product may be a little less than it should be: 1.001 * 1000 is less than 1001.
 */
static inline int64_t hearth_step_ms(double seconds)
{
    const int64_t longest = INT64_MAX / HEARTH_NS_PER_MS; /* longer than any range */
    double ms = seconds * 1000 * (1 + 2 * DBL_EPSILON);
    return ms < (double)longest ? (int64_t)ms : longest;
}

/* The number of the bucket that a time is in, if it exists; times are cut to milliseconds. */
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
