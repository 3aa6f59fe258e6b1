/*
 * query_internal.h -- declarations that all rooms of queries share (private to the engine).
 *
 *   select/query.c          ranges, selectors; types, names, values, series
 *   select/profile_match.c  a filter by profile, span or trace, prepared
 *   answer/merge.c          rows of a selection, summed per dictionary
 *   answer/merge_tree.c     sums to a function tree: flame graphs, tree bytes
 *   answer/merge_pprof.c    sums to a pprof message
 *   answer/timeseries.c     totals into buckets
 *
 * Threads: each object belongs to one query, which runs on one thread.
 */
#ifndef HEARTH_ENGINE_QUERY_INTERNAL_H
#define HEARTH_ENGINE_QUERY_INTERNAL_H

#include "hearth/base/varint.h"
#include "hearth/engine/query.h"
#include "hearth/store/read.h"

#include "common/call_index.h"
#include "common/call_internal.h"

#define HEARTH_SETTING_GAUGES "gauge-aggregation" /* enum hearth_gauge_aggregation */

/* A validated range in nanoseconds, both ends included. */
struct hearth_range {
    int64_t from_ns, to_ns;
    bool empty; /* the whole range is before max_query_lookback */
};

/*
 * The range of a query within the limits of its tenant, with a note if its start was moved. Errors:
 * INVALID_ARGUMENT.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_range(const struct hearth_query *query, struct hearth_range *ret,
                                      struct hearth_err *err);

/* The series of one profile type, chosen by a selector in a range. */
struct hearth_series_choice {
    struct hearth_str profile_type; /* id of five or six parts */
    struct hearth_str selector;
    int64_t from_ns, to_ns; /* both included */
};

/*
 * The hits of a choice, in the query's arena; the caller holds the lock of the index. Errors:
 * INVALID_ARGUMENT if the profile type or selector cannot be parsed; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_hits(const struct hearth_query *query,
                                     const struct hearth_series_choice *choice,
                                     const struct hearth_call_index *index,
                                     struct hearth_series_hits *ret_hits, struct hearth_err *err);

/*
 * The series that a query of labels looks at, and its range; none if the range is empty. Errors: as
 * of hearth_query_series.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_hits(const struct hearth_query *query,
                                           const struct hearth_label_request *request,
                                           struct hearth_range *ret_range,
                                           struct hearth_series_hits *ret_hits,
                                           struct hearth_err *err);

/* Sums of one dictionary: acc[stack id], for ids below bound. */
struct hearth_dict_sums {
    int32_t service_id, day, writer_id;
    uint32_t bound; /* highest stack id of a row, plus one */
    size_t arrival; /* its index before hearth_sums_sort */
    size_t cap;     /* of acc */
    int64_t *acc;
};

struct hearth_thread_filter;

struct hearth_sums {
    struct hearth_dict_sums *dicts;
    size_t n_dicts, cap_dicts;
    struct hearth_idmap by_key;
    size_t last;                              /* dictionary of the latest row */
    const struct hearth_profile_match *match; /* which rows and samples count; NULL: all */
    struct hearth_thread_filter *threads;     /* borrowed; NULL: samples of all threads count */
    size_t n_bytes, limit_bytes;
    struct hearth_budget *budget; /* the query's */
};

/* match is borrowed; NULL: all rows count. The caller may set `threads` before the first row. */
void hearth_sums_init(struct hearth_sums *sums, const struct hearth_query *query,
                      const struct hearth_profile_match *match);
void hearth_sums_release(struct hearth_sums *sums);

/*
 * Adds a row to the sums of its dictionary, sums->dicts[*ret_dict]; *ret_dict is SIZE_MAX if no
 * sample of the row passes sums->match. Errors: NO_MEMORY, OUT_OF_RANGE, CORRUPT.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_sums_add_row(struct hearth_sums *sums, const struct hearth_read_row *row,
                                       size_t *ret_dict, struct hearth_err *err);
/*
 * Sorts the dictionaries, because the order of rows must not show in an answer. Add no row
 * afterwards.
 */
void hearth_sums_sort(struct hearth_sums *sums);
/* Returns to the state before the first row. */
void hearth_sums_forget(struct hearth_sums *sums);

/*
 * Sums everything that `spec` selects; for a gauge with spec->mean, the mean per scrape. This call
 * initialises `sums`; release it in any case.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_sum(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, struct hearth_sums *sums,
                                    struct hearth_err *err);

/*
 * Called before sums that are all in the cache are added up, with a key of all that they depend on
 * (sum_cache.h). True: the caller knows what they come to, and gets none of them.
 */
typedef bool hearth_sums_known_fn(void *context, struct hearth_hash128 key);
/* As hearth_query_sum; `known` is called at most once. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_sum_unless_known(const struct hearth_query *query,
                                                 const struct hearth_merge_spec *spec,
                                                 hearth_sums_known_fn *known, void *context,
                                                 struct hearth_sums *sums, struct hearth_err *err);

/* Receives the sums of a dictionary; both are borrowed. */
typedef enum hearth_status hearth_dict_sums_fn(void *context, const struct hearth_dict *dict,
                                               const struct hearth_dict_sums *sums,
                                               struct hearth_err *err);
/*
 * Calls `visit` with each dictionary, loaded, and its sums, of which those that do not pass the
 * filter's conditions on rows are set to 0. Errors: those of `visit`, the filter and the store.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_sums_visit(const struct hearth_query *query,
                                     const struct hearth_stack_filter *stacks,
                                     const struct hearth_sums *sums, hearth_dict_sums_fn *visit,
                                     void *context, struct hearth_err *err);

/*
 * Sums of dictionaries that become one tree: a dense array for each name tree that dictionaries
 * share, turned into nodes once, at the end.
 */
struct hearth_tree_part {
    struct hearth_name_tree *tree; /* a reference */
    int64_t *self;                 /* [n_nodes], in the arena */
    uint32_t n_nodes;
    uint32_t *depth; /* [n_depths]: depth of nodes, if go_max_frames is set */
    uint32_t n_depths;
    size_t cap_depths;
    /* [n_nodes]: their nodes in the finished tree; NULL if the part is the whole tree. */
    uint32_t *node_of;
};

/* A stack that Go's runtime may have cut, with its value. */
struct hearth_tree_cut {
    uint32_t part, node;
    int64_t value;
};

struct hearth_tree_merge {
    struct hearth_arena *arena; /* memory of the arrays, and its limit */
    struct hearth_tree_part *parts;
    size_t n_parts, cap_parts;
    uint32_t go_max_frames; /* model/go_stacks.h; 0: cut stacks are not searched */
    struct hearth_tree_cut *cuts;
    size_t n_cuts, cap_cuts;
    size_t n_joined;      /* number of stacks of the finished tree that were joined */
    int64_t joined_value; /* their value */
};

/* If cut stacks are to be joined, set go_max_frames before the first sums are added. */
void hearth_tree_merge_init(struct hearth_tree_merge *merge, struct hearth_arena *arena);
void hearth_tree_merge_release(struct hearth_tree_merge *merge);
/*
 * Adds the sums of a dictionary, which may be released afterwards. Errors: NO_MEMORY, OUT_OF_RANGE.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_merge_add(struct hearth_tree_merge *merge,
                                         const struct hearth_dict *dict,
                                         const struct hearth_dict_sums *sums,
                                         struct hearth_err *err);
/*
 * Makes a function tree of all added sums that pass spec->stacks. Call it once. If the given tree
 * is empty and one name tree holds everything, the result is truncated to max_nodes (stacktree.h:
 * is_cut; max_nodes < 1: not truncated), so that only visible nodes are made. If spec->go_stacks is
 * repaired, the given tree must be empty, and the result is not truncated if any stack was joined.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_merge_finish(struct hearth_tree_merge *merge,
                                            const struct hearth_merge_spec *spec, int64_t max_nodes,
                                            struct hearth_stacktree *tree, struct hearth_err *err);

/*
 * The sealed function tree of the samples that spec selects: whole if max_nodes < 1, otherwise
 * perhaps truncated as by hearth_tree_merge_finish. The caller initialises the tree and releases it
 * in any case.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_function_tree(const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec,
                                              int64_t max_nodes, struct hearth_stacktree *tree,
                                              struct hearth_err *err);
/* The same of sorted sums of what spec selects, which it releases. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sums_tree(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, struct hearth_sums *sums,
                                    int64_t max_nodes, struct hearth_stacktree *tree,
                                    struct hearth_err *err);
/*
 * The number of nodes that a flame graph may have. Errors: INVALID_ARGUMENT above
 * max_flamegraph_nodes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_max_nodes(const struct hearth_query *query,
                                          const struct hearth_merge_spec *spec,
                                          int64_t *ret_max_nodes, struct hearth_err *err);

/*
 * The sandwich of a function in a sealed tree, each side truncated to max_nodes (< 1: whole);
 * *ret_n_folded is the number of nodes of both sides that were summed into "other". Errors:
 * NOT_FOUND if no stack contains the function; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_sandwich_make(const struct hearth_stacktree *tree,
                                        struct hearth_str function, int64_t max_nodes,
                                        struct hearth_arena *arena, struct hearth_sandwich *ret,
                                        size_t *ret_n_folded, struct hearth_err *err);

#endif
