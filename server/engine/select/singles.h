/*
 * singles.h -- values of single profiles, and which profiles they are (private to the engine).
 *
 * Totals are compact but lack ids; rows have ids but cost a call each. So a query first reads the
 * totals of everything, then looks up the ids of the profiles that matter. A profile that sample
 * labels have split over several series has a row in each, with the same time and service.
 *
 * Threads: one request is one thread.
 */
#ifndef HEARTH_ENGINE_SINGLES_H
#define HEARTH_ENGINE_SINGLES_H

#include "select/grouping.h"
#include "select/planned.h"

/* The value of one row. */
struct hearth_single {
    int64_t ts_ns, value;
    int64_t profile_no; /* number within writer_id */
    int32_t writer_id;  /* 0: the profile is not identified */
    uint32_t hit, group;
    bool wanted; /* the profile is to be identified */
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
/* Errors: NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_singles_add(struct hearth_singles *singles,
                                      const struct hearth_single *single, struct hearth_err *err);
/* Sorts by group, time and profile, unidentified ones first. Add nothing afterwards. */
void hearth_singles_sort(struct hearth_singles *singles);

/* The number of rows from i on with the group, time and service of v[i], and their sum. */
size_t hearth_singles_moment(const struct hearth_singles *singles, size_t i, int64_t *ret_sum);
/*
 * The number of rows from i on that are of the profile of v[i] (1 if it is not identified), and
 * their sum.
 */
size_t hearth_singles_profile(const struct hearth_singles *singles, size_t i, int64_t *ret_sum);

/*
 * Looks up the profile ids of all wanted singles. Profiles that were deleted meanwhile, or that
 * exist only in totals, stay unidentified. The order does not change.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_singles_identify(struct hearth_singles *singles,
                                           const struct hearth_selection *selection,
                                           struct hearth_err *err);

/*
 * Call it between _identify and _settle: adds a note if unidentified singles are so because of
 * retention.
 */
void hearth_exemplars_note_gone(const struct hearth_singles *singles);

/* Restores the order after _identify; nothing is wanted afterwards. */
void hearth_singles_settle(struct hearth_singles *singles);

/*
 * Sorts, identifies and settles: the rows of each profile become neighbours, for
 * hearth_singles_profile. Rows of a split profile have the same time and service, so only rows that
 * share these within a group are looked up.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_singles_gather(struct hearth_singles *singles,
                                         const struct hearth_selection *selection,
                                         struct hearth_err *err);

/* An exemplar, and the rows that it stands for. */
struct hearth_exemplar_rows {
    struct hearth_exemplar *exemplar; /* the caller sets value, span and trace */
    const struct hearth_single *rows;
    size_t n;
};

/*
 * Sets time, profile, and the labels that all rows have in common, without the labels that
 * `grouping` groups by.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_exemplars_fill(const struct hearth_query *query,
                                         const struct hearth_grouping *grouping,
                                         const struct hearth_exemplar_rows *exemplars, size_t n,
                                         struct hearth_err *err);

/* The points of a time series that get exemplars. */
struct hearth_exemplar_target {
    const struct hearth_selection *selection;
    const struct hearth_buckets *buckets;
    const size_t *series_of_group; /* [grouping->n]: index of series; n_series: not in the answer */
    struct hearth_timeseries *series;
    size_t n_series;
};

/* Sets the largest profile of each point. */
HEARTH_MUST_CHECK
enum hearth_status hearth_exemplars_of_series(struct hearth_singles *singles,
                                              const struct hearth_exemplar_target *target,
                                              struct hearth_err *err);

/*
 * Sets the largest span of each point instead: the largest sum of the samples in one row that have
 * the same span (answer/span_exemplars.c).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_exemplars_of_series(const struct hearth_query *query,
                                                   struct hearth_grouping *grouping,
                                                   const struct hearth_exemplar_target *target,
                                                   struct hearth_err *err);

#endif
