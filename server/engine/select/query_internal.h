/*
 * query_internal.h -- what the files of the query engine share (private to the engine).
 *
 *   query.c        ranges, selectors; types, names, values, series
 *   profile_match.c  a filter by profile, span or trace, made ready
 *   merge.c        rows of a selection summed per dictionary, and what can be read off the sums
 *   merge_tree.c   sums to a function tree: flame graphs, tree bytes
 *   merge_pprof.c  sums to a pprof message
 *   timeseries.c   totals into buckets
 */
#ifndef HEARTH_ENGINE_QUERY_INTERNAL_H
#define HEARTH_ENGINE_QUERY_INTERNAL_H

#include "hearth/base/varint.h"
#include "hearth/engine/query.h"
#include "hearth/store/read.h"

#include "common/call_internal.h"

#define HEARTH_SETTING_GAUGES "gauge-aggregation" /* enum hearth_gauge_aggregation */

/* The stack ids of a column of ids, one after the other. Whoever merged the column has checked it. */
struct hearth_ids_walk {
    const uint8_t *at, *end;
    uint64_t stack;
};

static inline struct hearth_ids_walk hearth_ids_walk(struct hearth_str ids)
{
    struct hearth_ids_walk walk = {(const uint8_t *)ids.p, (const uint8_t *)ids.p + ids.n, 0};
    uint64_t bound;
    if (ids.n == 0 || !hearth_varint_read(&walk.at, walk.end, &bound)) {
        walk.at = walk.end;
    }
    return walk;
}

static inline bool hearth_ids_next(struct hearth_ids_walk *walk)
{
    uint64_t step;
    if (walk->at >= walk->end || !hearth_varint_read(&walk->at, walk->end, &step)) {
        return false;
    }
    walk->stack += step >> 1;
    return true;
}

/* A validated range in nanoseconds, both ends included. */
struct hearth_range {
    int64_t from_ns, to_ns;
    bool empty; /* it lies wholly before what may be looked at */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_range(const struct hearth_query *query, struct hearth_range *ret,
                                      struct hearth_err *err);

/*
 * The API series of a profile type and selector in a range. In the query's arena.
 * INVALID_ARGUMENT for a profile type or selector that cannot be parsed.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_hits(const struct hearth_query *query,
                                     struct hearth_str profile_type, struct hearth_str selector,
                                     const struct hearth_label_index *index, int64_t from_ns,
                                     int64_t to_ns, struct hearth_series_hit **ret_hits,
                                     size_t *ret_n, struct hearth_err *err);

/* Sums of one dictionary: acc[stack id], for ids below bound. */
struct hearth_dict_sums {
    int32_t service_id, day, writer_id;
    uint32_t bound; /* highest stack id seen, plus one */
    size_t arrival; /* its index before they were sorted */
    size_t cap;
    int64_t *acc;
};

struct hearth_sums {
    struct hearth_dict_sums *dicts;
    size_t n_dicts, cap_dicts;
    struct hearth_idmap by_key;
    size_t last;                              /* dictionary of the row before */
    const struct hearth_profile_match *match; /* which rows and samples count; NULL: all */
    size_t n_bytes, limit_bytes;
    struct hearth_budget *budget; /* of the query */
};

/* match: borrowed; NULL: all rows count. */
void hearth_sums_init(struct hearth_sums *sums, const struct hearth_query *query,
                      const struct hearth_profile_match *match);
void hearth_sums_release(struct hearth_sums *sums);

/* Add a row to the sums of its dictionary, sums->dicts[*ret_dict]. SIZE_MAX: sums->match lets nothing
 * of it through. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sums_add_row(struct hearth_sums *sums, const struct hearth_read_row *row,
                                       size_t *ret_dict, struct hearth_err *err);
/* Rows come in no particular order, which must not show in an answer. No row may be added after. */
void hearth_sums_sort(struct hearth_sums *sums);
/* As before the first row. */
void hearth_sums_forget(struct hearth_sums *sums);

/* Everything that `spec` selects, summed; of a gauge with spec->mean, the mean per scrape. `sums` is zeroed by this call; release it in any case. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_sum(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, struct hearth_sums *sums,
                                    struct hearth_err *err);

/*
 * The sums of any number of dictionaries on their way to one tree: dense arrays, one per name tree
 * that the dictionaries share, turned into nodes once at the end.
 */
struct hearth_tree_part {
    struct hearth_name_tree *tree; /* a reference */
    int64_t *self;                 /* [n_nodes], in the arena */
    uint32_t n_nodes;
    uint32_t *depth; /* [n_depths] of nodes, with go_max_frames */
    uint32_t n_depths;
    size_t cap_depths;
    uint32_t
        *node_of; /* [n_nodes]: those of the finished tree; NULL where the part was all of it */
};

/* A stack that Go's runtime may have cut. */
struct hearth_tree_cut {
    uint32_t part, node;
    int64_t value;
};

struct hearth_tree_merge {
    struct hearth_arena *arena; /* of the arrays; its limit holds for them */
    struct hearth_tree_part *parts;
    size_t n_parts, cap_parts;
    uint32_t go_max_frames; /* model/go_stacks.h; 0: cut stacks are not looked for */
    struct hearth_tree_cut *cuts;
    size_t n_cuts, cap_cuts;
    size_t n_joined; /* stacks that were cut, of the finished tree */
    int64_t joined_value;
};

/* Set go_max_frames before anything is added, if cut stacks are to be joined. */
void hearth_tree_merge_init(struct hearth_tree_merge *merge, struct hearth_arena *arena);
void hearth_tree_merge_release(struct hearth_tree_merge *merge);
/* Add sums of a dictionary. It may be released afterwards. NO_MEMORY, OUT_OF_RANGE. */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_merge_add(struct hearth_tree_merge *merge,
                                         const struct hearth_dict *dict,
                                         const struct hearth_dict_sums *sums,
                                         struct hearth_err *err);
/*
 * Everything that was added and passes spec->stacks, to a function tree. Once. Where the tree
 * was empty and one name tree holds all of it, it comes truncated to max_nodes (stacktree.h: is_cut;
 * max_nodes < 1: whole), so that only what is shown becomes a node. With spec->go_stacks repaired the tree has to
 * be empty, and is whole where there was something to repair.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_merge_finish(struct hearth_tree_merge *merge,
                                            const struct hearth_merge_spec *spec, int64_t max_nodes,
                                            struct hearth_stacktree *tree, struct hearth_err *err);

/*
 * The sealed function tree of what spec selects, whole with max_nodes < 1, else perhaps truncated as
 * by hearth_tree_merge_finish. The caller has initialised the tree, and releases it in any case.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_function_tree(const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec,
                                              int64_t max_nodes, struct hearth_stacktree *tree,
                                              struct hearth_err *err);
/* The number of nodes that a flame graph request means; INVALID_ARGUMENT beyond what is allowed. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_max_nodes(const struct hearth_query *query,
                                          const struct hearth_merge_spec *spec,
                                          int64_t *ret_max_nodes, struct hearth_err *err);

/*
 * The sandwich of a function in a sealed tree, each side cut to max_nodes (< 1: whole); *ret_n_folded nodes
 * of both went into "other". In arena. NOT_FOUND when nothing contains it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_sandwich_make(const struct hearth_stacktree *tree,
                                        struct hearth_str function, int64_t max_nodes,
                                        struct hearth_arena *arena, struct hearth_sandwich *ret,
                                        size_t *ret_n_folded, struct hearth_err *err);

#endif
