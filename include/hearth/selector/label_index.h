/*
 * label_index.h -- every series of one tenant in memory: which series exist in a time range, which
 * match a selector, and which labels they have.
 *
 * A *series* here is a stored one: a service, its own labels, and a shape. A shape is the ordered
 * list of profile types in its rows, one value column per type. Clients see one API series per
 * (series, profile type), with these labels: the own labels, service_name, __service_name__, and
 * those derived from the profile type (__name__, __profile_type__, __type__, __unit__,
 * __period_type__, __period_unit__). A derived label whose part of the type is empty is absent,
 * like any label without a value.
 *
 * Activity is stored per hour: a series is active in [from, to] if it has a profile in an hour that
 * overlaps the range.
 *
 * Ids:     ids are those of the database (int32 > 0), looked up in paged arrays.
 * Threads: not thread-safe; the owner holds a read-write lock (_set_limit, _add_* and _trim write,
 *          all other functions read).
 * Cost:    a selector with one selective equality reads only the postings of that pair; regular
 *          expressions run over distinct values. Measurements: server/selector/README.md.
 */
#ifndef HEARTH_SELECTOR_LABEL_INDEX_H
#define HEARTH_SELECTOR_LABEL_INDEX_H

#include "hearth/model/labels.h"
#include "hearth/model/profile_type.h"
#include "hearth/selector/selector.h"

struct hearth_label_index;

struct hearth_label_index *hearth_label_index_new(void); /* NULL if memory was refused */
void hearth_label_index_free(struct hearth_label_index *index);
/* Memory in use. */
size_t hearth_label_index_bytes(const struct hearth_label_index *index);
/* Number of stored series. */
size_t hearth_label_index_series(const struct hearth_label_index *index);
/*
 * Limit the memory of the index from now on; 0: no limit. An _add that might exceed the limit omits
 * its row and returns OK; so does an _add that refers to an omitted row.
 */
void hearth_label_index_set_limit(struct hearth_label_index *index, size_t max_bytes);
/* True if a row was omitted: results may lack series. */
bool hearth_label_index_is_cut(const struct hearth_label_index *index);

/*
 * ---- filling ----
 *
 * Adding an id again has no effect. Text is copied. NO_MEMORY; CORRUPT for rows that no Hearth
 * database holds: ids below 1, empty names or values, shapes without types.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_label_index_add_service(struct hearth_label_index *index, int32_t service_id,
                               struct hearth_str name);
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_pair(struct hearth_label_index *index,
                                                                 int32_t pair_id,
                                                                 struct hearth_str name,
                                                                 struct hearth_str value);
/*
 * type_ids are the profile type ids in column order. All types of a profile have one name, so a
 * column `process_cpu:cpu:...` in a shape with a type named `wall` is listed as `wall:cpu:...`, and
 * is selected by either id.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_shape(struct hearth_label_index *index,
                                                                  int32_t shape_id,
                                                                  const struct hearth_str *type_ids,
                                                                  size_t n_types);
/*
 * The service, the shape and the pairs must have been added; at most 1,024 pairs with distinct
 * names (otherwise CORRUPT). Pairs with the name of a derived label are ignored.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_label_index_add_series(struct hearth_label_index *index, int32_t series_id,
                              int32_t service_id, int32_t shape_id, const int32_t *pair_ids,
                              size_t n_pairs);
/*
 * Mark a series as active in an hour (hours since the epoch). NOT_FOUND if the series is not in the
 * index, so that the owner can add it (again, after a trim).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_hour(struct hearth_label_index *index,
                                                                 int32_t series_id, int32_t hour);
/*
 * The same for several hours of a day (days since the epoch): bit h, 0 to 23, is hour h of the day.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_label_index_add_day(struct hearth_label_index *index,
                                                                int32_t series_id, int32_t day,
                                                                uint32_t hours);
/*
 * Delete activity before `hour`, and series without any activity left (retention). Services, shapes
 * and pairs stay; the owner gets rid of unused ones by making a new index.
 */
void hearth_label_index_trim(struct hearth_label_index *index, int32_t hour);

/* ---- querying ---- */

/*
 * The first hour (since the epoch) at or after from_hour, or the last one at or before to_hour, in
 * which any series is active. False if there is none.
 */
bool hearth_label_index_first_hour(const struct hearth_label_index *index, int64_t from_hour,
                                   int64_t *ret_hour);
bool hearth_label_index_last_hour(const struct hearth_label_index *index, int64_t to_hour,
                                  int64_t *ret_hour);

/* True if the index has the series. */
bool hearth_label_index_has_series(const struct hearth_label_index *index, int32_t series_id);

/* Which series a query is about: they match the selector and are active in [from_ns, to_ns]. */
struct hearth_index_filter {
    const struct hearth_selector *selector; /* an empty one matches every series */
    int64_t from_ns, to_ns;                 /* by whole hours */
};

/* One API series that matches a filter. */
struct hearth_series_hit {
    int32_t series_id, service_id, shape_id;
    uint16_t column;  /* index of the value column, and of the type in the shape */
    uint16_t n_types; /* number of types of the shape */
};

/* Results, in the arena of their call. */
struct hearth_series_hits {
    struct hearth_series_hit *v; /* sorted by (service_id, series_id, column) */
    size_t n;
};

/*
 * Order hits by (service_id, series_id, column); for qsort and bsearch. Neither shape_id nor
 * n_types takes part.
 */
int hearth_series_hit_compare(const void *a, const void *b);
/* Sort v[0..n) in that order and drop repeated hits. Returns how many are left. */
size_t hearth_series_hits_sort(struct hearth_series_hit *v, size_t n);

struct hearth_index_texts {
    struct hearth_str *v; /* sorted, distinct */
    size_t n;
};
struct hearth_label_sets {
    struct hearth_labels *v; /* sorted, distinct */
    size_t n;
};

/* All hits. In arena. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_select(const struct hearth_label_index *index,
                                             const struct hearth_index_filter *filter,
                                             struct hearth_arena *arena,
                                             struct hearth_series_hits *ret_hits,
                                             struct hearth_err *err);

/*
 * Which (service, shape, column) the hits cover completely: every series of that service and shape
 * that is active in the filter's range is among the hits. `hits` is the result of _select for the
 * same range, under the same lock; filter->selector is not used. Results have series_id =
 * -shape_id. In arena. Visits each group of the index, and series of a service until it has found
 * more than the hits contain.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_covered(const struct hearth_label_index *index,
                                              const struct hearth_index_filter *filter,
                                              const struct hearth_series_hits *hits,
                                              struct hearth_arena *arena,
                                              struct hearth_series_hits *ret_covered,
                                              struct hearth_err *err);

/*
 * Find hits that differ only in their shapes: (*ret_first)[i] is the first hit with the service and
 * the own labels of hit i and with the same position among the hits of its series. `hits` is the
 * result of _select, under the same lock. In arena. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_same_labels(const struct hearth_label_index *index,
                                                  const struct hearth_series_hits *hits,
                                                  struct hearth_arena *arena, uint32_t **ret_first,
                                                  struct hearth_err *err);

/*
 * The first hour at or after that of filter->from_ns, and the last one at or before that of
 * filter->to_ns, in which any matching series is active. *ret_any false: there is none. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_hours(const struct hearth_label_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena, bool *ret_any,
                                            int64_t *ret_first, int64_t *ret_last,
                                            struct hearth_err *err);

/*
 * Whether a hit matches a selector, as _select decides it. False if the index lacks the hit.
 */
bool hearth_label_index_matches(const struct hearth_label_index *index,
                                const struct hearth_selector *selector,
                                const struct hearth_series_hit *hit);

/* All columns of a series; none if the index lacks the series. In arena. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_columns(const struct hearth_label_index *index,
                                              int32_t series_id, struct hearth_arena *arena,
                                              struct hearth_series_hits *ret_hits,
                                              struct hearth_err *err);
/* The profile type id of a column; empty if the index lacks the hit. Borrows from the index. */
struct hearth_str hearth_label_index_type(const struct hearth_label_index *index,
                                          const struct hearth_series_hit *hit);

/* All labels of a hit, sorted; the array in arena, texts borrow from the index. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_labels(const struct hearth_label_index *index,
                                             const struct hearth_series_hit *hit,
                                             struct hearth_arena *arena,
                                             struct hearth_labels *ret_labels,
                                             struct hearth_err *err);

/* Label names, or values of one label, of all matching series, copied to arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_names(const struct hearth_label_index *index,
                                            const struct hearth_index_filter *filter,
                                            struct hearth_arena *arena,
                                            struct hearth_index_texts *ret_names,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_values(const struct hearth_label_index *index,
                                             const struct hearth_index_filter *filter,
                                             struct hearth_str name, struct hearth_arena *arena,
                                             struct hearth_index_texts *ret_values,
                                             struct hearth_err *err);
/* The labels of a projection; n 0: all labels. */
struct hearth_projected_names {
    const struct hearth_str *v;
    size_t n;
};

/* Groups of hits with equal projections, in the order of their first hits. */
struct hearth_label_groups {
    struct hearth_labels *v; /* sorted by name, without labels that the series lack */
    size_t n;
    uint32_t *of_hit; /* [n of the hits]: the group of each */
};

/*
 * Groups the hits by their projections on `names`, of which there is at least one; repeated names
 * count once. `hits` is the result of _select or _columns, under the same lock. Texts are copied to
 * arena, which holds the arrays, too. Visits each hit once; an array of all values of the name, or
 * a hash table, finds its group. NOT_FOUND: the index lacks a hit; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_group(const struct hearth_label_index *index,
                                            const struct hearth_series_hits *hits,
                                            struct hearth_projected_names names,
                                            struct hearth_arena *arena,
                                            struct hearth_label_groups *ret_groups,
                                            struct hearth_err *err);

/*
 * Distinct projections of the hits on `names`. Labels that a series lacks are omitted. If it lacks
 * all of them its projection is empty; one empty projection is returned, provided that some series
 * of the tenant in the range has one of the names. Texts are copied to arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_label_index_project(const struct hearth_label_index *index,
                                              const struct hearth_index_filter *filter,
                                              struct hearth_projected_names names,
                                              struct hearth_arena *arena,
                                              struct hearth_label_sets *ret_sets,
                                              struct hearth_err *err);

#endif
