/*
 * query_internal.h -- what the files of the query engine share (private to the engine).
 *
 *   query.c        ranges, selectors; types, names, values, series
 *   merge.c        rows of a selection summed per dictionary, and what can be read off the sums
 *   call_site.c    which nodes of a name tree a call site selects
 *   merge_tree.c   sums to a function tree: flame graphs, tree bytes
 *   merge_pprof.c  sums to a pprof message
 *   timeseries.c   totals into buckets
 */
#ifndef HEARTH_ENGINE_QUERY_INTERNAL_H
#define HEARTH_ENGINE_QUERY_INTERNAL_H

#include "hearth/engine/query.h"

struct hearth_query_engine {
    struct hearth_limits limits;
    struct hearth_store *store;
};

/* Days since the epoch: with service and writer the name of a row's dictionary. */
static inline int32_t hearth_query_day(int64_t ts_ns)
{
    return (int32_t)(ts_ns / HEARTH_NS_PER_DAY - (ts_ns % HEARTH_NS_PER_DAY < 0));
}

/* A validated range in nanoseconds, both ends included. */
struct hearth_range {
    int64_t from_ns, to_ns;
    bool empty; /* it lies wholly before what may be looked at */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_range(const struct hearth_query *query,
                                      struct hearth_range *ret,
                                      struct hearth_err *err);

/*
 * The API series of a profile type and selector in a range. In the query's arena.
 * INVALID_ARGUMENT for a profile type or selector that cannot be parsed.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_hits(const struct hearth_query *query,
                                     struct hearth_str profile_type,
                                     struct hearth_str selector,
                                     const struct hearth_label_index *index,
                                     int64_t from_ns,
                                     int64_t to_ns,
                                     struct hearth_series_hit **ret_hits,
                                     size_t *ret_n,
                                     struct hearth_err *err);

/* Sums of one dictionary: acc[stack id], for ids below bound. */
struct hearth_dict_sums {
    int32_t service_id, day, writer_id;
    uint32_t bound; /* highest stack id seen, plus one */
    size_t cap;
    int64_t *acc;
};

struct hearth_sums {
    struct hearth_dict_sums *dicts;
    size_t n_dicts, cap_dicts;
    struct hearth_idmap by_key;
    size_t last; /* dictionary of the row before */
    size_t n_bytes, limit_bytes;
    struct hearth_budget *budget; /* of the query */
};

void hearth_sums_release(struct hearth_sums *sums);

/* Everything that `spec` selects, summed. `sums` is zeroed by this call; release it in any case. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_sum(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    struct hearth_sums *sums,
                                    struct hearth_err *err);

/*
 * inside[node] for the first n_nodes nodes of a name tree: the path from the root begins with
 * call_site. NULL in *ret when n_call_site is 0 (everything is inside). In arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_site_nodes(const struct hearth_name_tree *tree,
                                          uint32_t n_nodes,
                                          const struct hearth_str *call_site,
                                          size_t n_call_site,
                                          struct hearth_arena *arena,
                                          bool **ret_inside,
                                          struct hearth_err *err);

/*
 * The sums of any number of dictionaries on their way to one tree: dense arrays, one per name tree
 * that the dictionaries share, turned into nodes once at the end.
 */
struct hearth_tree_part {
    struct hearth_name_tree *tree; /* a reference */
    int64_t *self;                 /* [n_nodes], in the arena */
    uint32_t n_nodes;
};

struct hearth_tree_merge {
    struct hearth_arena *arena; /* of the arrays; its limit holds for them */
    struct hearth_tree_part *parts;
    size_t n_parts, cap_parts;
};

void hearth_tree_merge_init(struct hearth_tree_merge *merge, struct hearth_arena *arena);
void hearth_tree_merge_release(struct hearth_tree_merge *merge);
/* Add sums of a dictionary. It may be released afterwards. NO_MEMORY, OUT_OF_RANGE. */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_merge_add(struct hearth_tree_merge *merge,
                                         const struct hearth_dict *dict,
                                         const struct hearth_dict_sums *sums,
                                         struct hearth_err *err);
/*
 * Everything that was added, within the call site of spec, to a function tree. Once. Where the tree
 * was empty and one name tree holds all of it, it comes truncated to max_nodes (stacktree.h: is_cut;
 * max_nodes < 1: whole), so that only what is shown becomes a node.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_merge_finish(struct hearth_tree_merge *merge,
                                            const struct hearth_merge_spec *spec,
                                            int64_t max_nodes,
                                            struct hearth_stacktree *tree,
                                            struct hearth_err *err);

#endif
