/*
 * singles.h -- values of single profiles, and which profiles they are (private to the engine).
 *
 * Totals come packed and without names; rows have the names but cost a visit each. So a question
 * first takes the totals of everything, then looks up the names of those that matter. A profile that sample
 * labels split over several series has a row in each, at one time and in one service.
 *
 * Threads: one request is one thread.
 */
#ifndef HEARTH_ENGINE_SINGLES_H
#define HEARTH_ENGINE_SINGLES_H

#include "select/grouping.h"
#include "select/planned.h"

/* What one row is worth. */
struct hearth_single {
    int64_t ts_ns, value;
    int64_t profile_no; /* of writer_id */
    int32_t writer_id;  /* 0: not known */
    uint32_t hit, group;
    bool wanted; /* to be looked up */
};

struct hearth_singles {
    const struct hearth_query *query;
    struct hearth_grouping *grouping;
    struct hearth_buf rows;
    struct hearth_single *v; /* [n], after sorting */
    size_t n;
};

void hearth_singles_init(struct hearth_singles *singles, const struct hearth_query *query,
                         struct hearth_grouping *grouping);
void hearth_singles_release(struct hearth_singles *singles);
void hearth_singles_forget(struct hearth_singles *singles);
/* NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_singles_add(struct hearth_singles *singles,
                                      const struct hearth_single *single, struct hearth_err *err);
/* By group, time and profile, those that are not known before others. Nothing may be added after. */
void hearth_singles_sort(struct hearth_singles *singles);

/* From i on: how many have the group, time and service of v[i], and their sum. */
size_t hearth_singles_moment(const struct hearth_singles *singles, size_t i, int64_t *ret_sum);
/* From i on: how many are rows of the profile of v[i] (1 if that is not known), and their sum. */
size_t hearth_singles_profile(const struct hearth_singles *singles, size_t i, int64_t *ret_sum);

/*
 * Look up which profiles those that are wanted are. What has gone in between, or is too old to be
 * anywhere but in totals, stays unknown. Nothing moves.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_singles_identify(struct hearth_singles *singles,
                                           const struct hearth_selection *selection,
                                           struct hearth_err *err);

/* Between the two: a note, if those that are still unknown are so because retention took them. */
void hearth_exemplars_note_gone(const struct hearth_singles *singles);

/* Put them in order again after that; nothing is wanted any more. */
void hearth_singles_settle(struct hearth_singles *singles);

/*
 * All of the above: puts the rows of each profile side by side, for hearth_singles_profile. The rows of a
 * profile that sample labels split have one time and service, so only rows that share these in a group
 * are looked up.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_singles_gather(struct hearth_singles *singles,
                                         const struct hearth_selection *selection,
                                         struct hearth_err *err);

/* An exemplar, and the rows that it is made of. */
struct hearth_exemplar_rows {
    struct hearth_exemplar *exemplar; /* value, span and trace are the caller's */
    const struct hearth_single *rows;
    size_t n;
};

/* Fill in time, profile, and the labels that all rows have, without those grouped by. */
HEARTH_MUST_CHECK
enum hearth_status hearth_exemplars_fill(const struct hearth_query *query,
                                         const struct hearth_grouping *grouping,
                                         const struct hearth_str *group_by, size_t n_group_by,
                                         const struct hearth_exemplar_rows *exemplars, size_t n,
                                         struct hearth_err *err);

/*
 * The largest profile of each point of the series. series_of_group: [grouping->n], n_series for
 * groups that are not in the answer.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_exemplars_of_series(struct hearth_singles *singles,
                                              const struct hearth_selection *selection,
                                              const struct hearth_buckets *buckets,
                                              const struct hearth_timeseries_spec *spec,
                                              const size_t *series_of_group,
                                              struct hearth_timeseries *series, size_t n_series,
                                              struct hearth_err *err);

/* The same of spans: of all of one row that are of one span, the largest sum (engine/answer/span_exemplars.c). */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_exemplars_of_series(
    const struct hearth_query *query, struct hearth_grouping *grouping,
    const struct hearth_selection *selection, const struct hearth_buckets *buckets,
    const struct hearth_timeseries_spec *spec, const size_t *series_of_group,
    struct hearth_timeseries *series, size_t n_series, struct hearth_err *err);

#endif
