/*
 * merge_tree.c -- sums of stacks to a tree of function names.
 *
 * Each dictionary brings a name tree of its own, so a stack is one addition at its leaf; what
 * remains is to unify those trees by name, touching only nodes that carry something.
 */
#include "query_internal.h"

/* self of every node of the dictionary's name tree, then totals, children before parents. */
static enum hearth_status node_values(const struct hearth_dict *dict,
                                      const struct hearth_dict_sums *sums,
                                      const bool *inside,
                                      int64_t *self,
                                      int64_t *total,
                                      struct hearth_err *err)
{
    for (uint32_t s = 0; s < sums->bound; s++) {
        uint32_t node = dict->stack_node[s];
        if (sums->acc[s] != 0 && (inside == NULL || inside[node]) &&
            __builtin_add_overflow(self[node], sums->acc[s], &self[node])) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "a sum of the flame graph exceeds 64 bits");
        }
    }
    memcpy(total, self, dict->n_nodes * sizeof total[0]);
    for (uint32_t i = dict->n_nodes; i-- > 1;) {
        uint32_t parent = dict->node_parent[i];
        if (__builtin_add_overflow(total[parent], total[i], &total[parent])) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "a sum of the flame graph exceeds 64 bits");
        }
    }
    return HEARTH_OK;
}

enum hearth_status hearth_tree_add_dict(struct hearth_stacktree *tree,
                                        const struct hearth_dict *dict,
                                        const struct hearth_dict_sums *sums,
                                        const struct hearth_merge_spec *spec,
                                        struct hearth_arena *arena,
                                        uint32_t **ret_node_of,
                                        struct hearth_err *err)
{
    bool *inside;
    HEARTH_TRY(
        hearth_call_site_nodes(dict, spec->call_site, spec->n_call_site, arena, &inside, err));
    int64_t *self = hearth_arena_calloc(arena, dict->n_nodes, sizeof self[0]);
    int64_t *total = hearth_arena_array(arena, dict->n_nodes, sizeof total[0]);
    uint32_t *node_of = hearth_arena_array(arena, dict->n_nodes, sizeof node_of[0]);
    uint32_t *name_of = hearth_arena_calloc(arena, dict->n_strings, sizeof name_of[0]);
    if (self == NULL || total == NULL || node_of == NULL || name_of == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    HEARTH_TRY(node_values(dict, sums, inside, self, total, err));
    node_of[0] = hearth_stacktree_root(tree);
    if (node_of[0] == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    /* Samples without any location are the root's own. */
    if (__builtin_add_overflow(tree->nodes[0].self, self[0], &tree->nodes[0].self)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the flame graph exceeds 64 bits");
    }
    for (uint32_t i = 1; i < dict->n_nodes; i++) {
        node_of[i] = HEARTH_NO_NODE;
        if (total[i] == 0) {
            continue;
        }
        uint32_t name = dict->node_name[i];
        if (name_of[name] == 0) { /* 0 is the root's name: not asked yet, or the empty name */
            name_of[name] = hearth_stacktree_name(tree, dict->strings[name]);
        }
        uint32_t node =
            name_of[name] == HEARTH_IDMAP_NONE
                ? HEARTH_NO_NODE
                : hearth_stacktree_child(tree, node_of[dict->node_parent[i]], name_of[name]);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        node_of[i] = node;
        if (__builtin_add_overflow(tree->nodes[node].self, self[i], &tree->nodes[node].self)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "a sum of the flame graph exceeds 64 bits");
        }
    }
    if (ret_node_of != NULL) {
        *ret_node_of = node_of;
    }
    return HEARTH_OK;
}

/* The sealed tree of what spec selects. The tree was initialised by the caller, who releases it. */
static enum hearth_status make_tree(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    struct hearth_stacktree *tree,
                                    struct hearth_err *err)
{
    struct hearth_sums sums;
    enum hearth_status status = hearth_query_sum(query, spec, &sums, err);
    struct hearth_arena scratch;
    hearth_arena_init(&scratch, query->arena->limit_bytes);
    for (size_t i = 0; status == HEARTH_OK && i < sums.n_dicts; i++) {
        const struct hearth_dict_sums *part = &sums.dicts[i];
        const struct hearth_dict *dict;
        status = hearth_store_read_dict(query->engine->store, part->service_id, part->day,
                                        part->writer_id, part->bound, query->cancel, &dict, err);
        if (status == HEARTH_OK) {
            hearth_arena_reset(&scratch);
            status = hearth_tree_add_dict(tree, dict, part, spec, &scratch, NULL, err);
            hearth_store_read_dict_release(query->engine->store, dict);
        }
    }
    hearth_arena_release(&scratch);
    hearth_sums_release(&sums);
    return status == HEARTH_OK ? hearth_stacktree_seal(tree, err) : status;
}

/* The limit that a flame graph request means; INVALID_ARGUMENT beyond what is allowed. */
static enum hearth_status flamegraph_nodes(const struct hearth_query *query,
                                           const struct hearth_merge_spec *spec,
                                           int64_t *ret_max_nodes,
                                           struct hearth_err *err)
{
    const struct hearth_limits *limits = &query->engine->limits;
    int64_t max = limits->max_flamegraph_nodes;
    int64_t n = spec->has_max_nodes ? spec->max_nodes : 0;
    if (n == 0) {
        n = limits->default_flamegraph_nodes;
    }
    if (max > 0 && n < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "max flamegraph nodes limit must be set (max allowed %lld)",
                           (long long)max);
    }
    if (max > 0 && n > max) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "max flamegraph nodes limit %lld is greater than allowed %lld "
                           "(max-flamegraph-nodes)",
                           (long long)n, (long long)max);
    }
    *ret_max_nodes = n;
    return HEARTH_OK;
}

enum hearth_status hearth_query_flamegraph(const struct hearth_query *query,
                                           const struct hearth_merge_spec *spec,
                                           struct hearth_flamegraph *ret,
                                           struct hearth_err *err)
{
    int64_t max_nodes;
    HEARTH_TRY(flamegraph_nodes(query, spec, &max_nodes, err));
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, query->arena);
    enum hearth_status status = make_tree(query, spec, &tree, err);
    if (status == HEARTH_OK) {
        status = hearth_flamegraph_make(&tree, max_nodes, query->arena, ret, err);
    }
    hearth_stacktree_release(&tree);
    return status;
}

enum hearth_status hearth_query_tree(const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec,
                                     struct hearth_buf *out,
                                     struct hearth_err *err)
{
    int64_t max_nodes;
    HEARTH_TRY(flamegraph_nodes(query, spec, &max_nodes, err));
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, query->arena);
    enum hearth_status status = make_tree(query, spec, &tree, err);
    if (status == HEARTH_OK) {
        status = hearth_stacktree_write_bytes(&tree, max_nodes, out, err);
    }
    hearth_stacktree_release(&tree);
    return status;
}
