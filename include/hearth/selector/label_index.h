/*
 * label_index.h -- every series of one tenant in memory: which exist in a range, which a selector
 * takes, which labels they have.
 *
 * A *series* here is what is stored: a service, its own labels, and a shape: the ordered list of
 * profile types that its rows carry, one value column each. Clients see one API series per (series,
 * profile type): its labels are the own labels plus service_name, __service_name__, and what the
 * profile type says (__name__, __profile_type__, __type__, __unit__, __period_type__,
 * __period_unit__). A label whose part of the type is empty is absent, as any label without a
 * value.
 *
 * Activity is known by the hour: a series is in [from, to] when it has a profile in an hour that
 * meets the range.
 *
 * Shapes:  ids are those of the database (int32 > 0), looked up in paged arrays.
 * Threads: not thread-safe; the owner holds a read-write lock (adds and trim are writes; the rest
 *          are reads).
 * Cost:    a selector with one selective equality touches only the postings of that pair; regexes
 *          run over distinct values. Numbers: server/selector/README.md.
 */
#ifndef HEARTH_QUERY_LABEL_INDEX_H
#define HEARTH_QUERY_LABEL_INDEX_H

#include "hearth/model/labels.h"
#include "hearth/model/profile_type.h"
#include "hearth/selector/selector.h"

struct hearth_label_index;

struct hearth_label_index *hearth_label_index_new(void); /* NULL when memory was refused */
void hearth_label_index_free(struct hearth_label_index *index);
size_t hearth_label_index_bytes(const struct hearth_label_index *index);
size_t hearth_label_index_series(const struct hearth_label_index *index);
/*
 * From here on at most that many bytes; 0: no limit. An add that may go beyond leaves its row out and is OK. So is an add
 * that refers to a row that was left out.
 */
void hearth_label_index_set_limit(struct hearth_label_index *index, size_t max_bytes);
/* Something was left out: answers lack series. */
bool hearth_label_index_is_cut(const struct hearth_label_index *index);

/*
 * ---- filling; adding an id again is a no-op. Text is copied. NO_MEMORY, and CORRUPT for what no
 * database of ours holds: ids below 1, empty names or values, no types. ----
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_label_index_add_service(struct hearth_label_index *index, int32_t service_id,
                               struct hearth_str name);
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_pair(struct hearth_label_index *index,
                                                                 int32_t pair_id,
                                                                 struct hearth_str name,
                                                                 struct hearth_str value);
/*
 * Profile type ids in column order. The types of a profile begin with one name: a column
 * `process_cpu:cpu:...` beside a type of the name `wall` is listed as `wall:cpu:...`, and is
 * selected by either id.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_shape(struct hearth_label_index *index,
                                                                  int32_t shape_id,
                                                                  const struct hearth_str *type_ids,
                                                                  size_t n_types);
/*
 * The service, shape and pairs must have been added, each name once, at most 1,024 (else CORRUPT).
 * Pairs with the name of a derived label are left out.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_label_index_add_series(struct hearth_label_index *index, int32_t series_id,
                              int32_t service_id, int32_t shape_id, const int32_t *pair_ids,
                              size_t n_pairs);
/*
 * hour: hours since the epoch. NOT_FOUND when the series is not in the index, so that the owner can
 * add it (again, after a trim).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_hour(struct hearth_label_index *index,
                                                                 int32_t series_id, int32_t hour);
/* The same for many hours of one day (days since the epoch): bit h of 24 is hour h of the day. */
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_day(struct hearth_label_index *index,
                                                                int32_t series_id, int32_t day,
                                                                uint32_t hours);
/*
 * Forget activity before `hour` and series that have lost all theirs (retention). Services, shapes
 * and pairs stay known; a fresh index drops those that nothing uses any more.
 */
void hearth_label_index_trim(struct hearth_label_index *index, int32_t hour);

/* ---- asking ---- */

/*
 * The first hour (since the epoch) from from_hour on, and the last one up to to_hour, in which any
 * series has a profile. false: there is none.
 */
bool hearth_label_index_first_hour(const struct hearth_label_index *index, int64_t from_hour,
                                   int64_t *ret_hour);
bool hearth_label_index_last_hour(const struct hearth_label_index *index, int64_t to_hour,
                                  int64_t *ret_hour);

/* One API series that a selector takes. */
struct hearth_series_hit {
    int32_t series_id, service_id, shape_id;
    uint16_t column;  /* index of the value column, = index in the shape */
    uint16_t n_types; /* of the shape */
};

/*
 * All hits in [from_ns, to_ns] (by whole hours), ordered by (service_id, series_id, column). In
 * arena. An empty selector takes everything.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_select(const struct hearth_label_index *index,
                                             const struct hearth_selector *selector,
                                             int64_t from_ns, int64_t to_ns,
                                             struct hearth_arena *arena,
                                             struct hearth_series_hit **ret_hits, size_t *ret_n,
                                             struct hearth_err *err);

/*
 * Which (service, shape, column) a selection covers completely: every series of that service and
 * shape that is active in [from_ns, to_ns] is among the hits. hits: as _select gave them for the
 * same range, under the same lock. Answers have series_id = -shape_id, ordered by (service_id,
 * series_id, column). In arena. Costs a look at each group of the index, and at a service's series
 * until one more is found than was selected.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_covered(const struct hearth_label_index *index,
                                              const struct hearth_series_hit *hits, size_t n_hits,
                                              int64_t from_ns, int64_t to_ns,
                                              struct hearth_arena *arena,
                                              struct hearth_series_hit **ret_covered, size_t *ret_n,
                                              struct hearth_err *err);

/*
 * Which hits differ in their shapes alone: (*ret_first)[i] is the first hit of the same service with the
 * labels of its own that hit i has, and of these the one with the same place among its series' hits.
 * hits: as _select gave them, under the same lock. In arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_same_labels(const struct hearth_label_index *index,
                                                  const struct hearth_series_hit *hits,
                                                  size_t n_hits, struct hearth_arena *arena,
                                                  uint32_t **ret_first, struct hearth_err *err);

/* All columns of a series; none (*ret_n 0) when it is not there. In arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_columns(const struct hearth_label_index *index,
                                              int32_t series_id, struct hearth_arena *arena,
                                              struct hearth_series_hit **ret_hits, size_t *ret_n,
                                              struct hearth_err *err);
/* The profile type id of a column; empty for a hit that is not there. Borrows from the index. */
struct hearth_str hearth_label_index_type(const struct hearth_label_index *index,
                                          const struct hearth_series_hit *hit);

/* All labels of a hit, sorted; texts borrow from the index. */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_labels(const struct hearth_label_index *index,
                                             const struct hearth_series_hit *hit,
                                             struct hearth_arena *arena,
                                             struct hearth_labels *ret_labels,
                                             struct hearth_err *err);

/* Sorted, distinct; texts copied to arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_names(const struct hearth_label_index *index,
                                            const struct hearth_selector *selector, int64_t from_ns,
                                            int64_t to_ns, struct hearth_arena *arena,
                                            struct hearth_str **ret_names, size_t *ret_n,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_values(const struct hearth_label_index *index,
                                             const struct hearth_selector *selector,
                                             struct hearth_str name, int64_t from_ns, int64_t to_ns,
                                             struct hearth_arena *arena,
                                             struct hearth_str **ret_values, size_t *ret_n,
                                             struct hearth_err *err);
/*
 * Distinct projections of the hits on `names` (all labels when n_names is 0), sorted; labels that a
 * series lacks are left out; when it lacks all of them its projection is empty and is kept once,
 * provided that some series of the tenant in the range has one of the names. Texts copied to arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_project(const struct hearth_label_index *index,
                                              const struct hearth_selector *selector,
                                              const struct hearth_str *names, size_t n_names,
                                              int64_t from_ns, int64_t to_ns,
                                              struct hearth_arena *arena,
                                              struct hearth_labels **ret_sets, size_t *ret_n,
                                              struct hearth_err *err);

#endif
