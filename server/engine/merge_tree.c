/*
 * merge_tree.c -- sums of stacks to a tree of function names.
 *
 * The dictionaries of a service share a name tree, and a stack of theirs is a node of it, so a
 * dictionary costs one addition per stack. What remains is done once per tree: totals, and nodes
 * for what carries something. Where a service has several trees (see decision 0012), or an answer
 * several services, they are unified by name.
 */
#include "hearth/base/mem.h"

#include "query_internal.h"

static enum hearth_status fail_range(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the flame graph exceeds 64 bits");
}

void hearth_tree_merge_init(struct hearth_tree_merge *merge, struct hearth_arena *arena)
{
    *merge = (struct hearth_tree_merge){.arena = arena};
}

void hearth_tree_merge_release(struct hearth_tree_merge *merge)
{
    for (size_t i = 0; i < merge->n_parts; i++) {
        hearth_name_tree_unref(merge->parts[i].tree);
    }
    hearth_mem_free(merge->parts);
    hearth_tree_merge_init(merge, merge->arena);
}

/* The part of a tree, covering at least the nodes that there are now. NULL: memory was refused. */
static struct hearth_tree_part *part_of(struct hearth_tree_merge *merge,
                                        struct hearth_name_tree *tree)
{
    size_t i = merge->n_parts; /* most likely that of the dictionary before */
    while (i > 0 && merge->parts[i - 1].tree != tree) {
        i--;
    }
    if (i == 0) {
        if (!hearth_mem_grow(&merge->parts, &merge->cap_parts, merge->n_parts + 1,
                             sizeof merge->parts[0])) {
            return NULL;
        }
        merge->parts[merge->n_parts++] =
            (struct hearth_tree_part){.tree = hearth_name_tree_ref(tree)};
        i = merge->n_parts;
    }
    struct hearth_tree_part *part = &merge->parts[i - 1];
    uint32_t size = hearth_name_tree_size(tree);
    if (size > part->n_nodes) {
        /* It grows when later dictionaries of the query are loaded: not a copy for each of them. */
        uint32_t n = part->n_nodes == 0 ? size : size + size / 4;
        int64_t *self = hearth_arena_array(merge->arena, n, sizeof self[0]);
        if (self == NULL) {
            return NULL;
        }
        if (part->n_nodes > 0) {
            memcpy(self, part->self, part->n_nodes * sizeof self[0]);
        }
        memset(self + part->n_nodes, 0, (n - part->n_nodes) * sizeof self[0]);
        part->self = self;
        part->n_nodes = n;
    }
    return part;
}

enum hearth_status hearth_tree_merge_add(struct hearth_tree_merge *merge,
                                         const struct hearth_dict *dict,
                                         const struct hearth_dict_sums *sums,
                                         struct hearth_err *err)
{
    struct hearth_tree_part *part = part_of(merge, dict->tree);
    if (part == NULL) {
        return HEARTH_FAIL_ARENA(err, merge->arena);
    }
    bool overflow = false;
    for (uint32_t s = 0; s < sums->bound; s++) {
        int64_t *self = &part->self[dict->stack_node[s]];
        overflow |= __builtin_add_overflow(*self, sums->acc[s], self);
    }
    return overflow ? fail_range(err) : HEARTH_OK;
}

/*
 * What lies outside of the call site goes; the rest is summed, children before parents. The nodes
 * that carry something are counted. part->n_nodes may lie beyond the nodes that exist.
 */
static enum hearth_status sum_totals(struct hearth_tree_part *part,
                                     const bool *inside,
                                     int64_t *total,
                                     size_t *ret_n_live,
                                     struct hearth_err *err)
{
    bool overflow = false;
    size_t n_live = 0;
    for (uint32_t i = 0; inside != NULL && i < part->n_nodes; i++) {
        part->self[i] = inside[i] ? part->self[i] : 0;
    }
    memcpy(total, part->self, part->n_nodes * sizeof total[0]);
    for (uint32_t i = part->n_nodes; i-- > 1;) {
        if (total[i] != 0) {
            int64_t *above = &total[hearth_name_tree_node(part->tree, i).parent];
            overflow |= __builtin_add_overflow(*above, total[i], above);
            n_live++;
        }
    }
    *ret_n_live = n_live;
    return overflow ? fail_range(err) : HEARTH_OK;
}

/* node_of[] and the selfs of the tree's nodes; `first`: the tree has no nodes yet. */
static enum hearth_status place_nodes(const struct hearth_tree_part *part,
                                      const int64_t *total,
                                      bool first,
                                      struct hearth_stacktree *tree,
                                      struct hearth_arena *arena,
                                      struct hearth_err *err)
{
    uint32_t *node_of = hearth_arena_array(arena, part->n_nodes, sizeof node_of[0]);
    uint32_t *name_of =
        hearth_arena_calloc(arena, hearth_name_tree_n_names(part->tree), sizeof name_of[0]);
    if (node_of == NULL || name_of == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    bool overflow = false;
    node_of[0] = 0;
    for (uint32_t i = 1; i < part->n_nodes; i++) {
        if (total[i] == 0) {
            node_of[i] = HEARTH_NO_NODE;
            continue;
        }
        struct hearth_name_node from = hearth_name_tree_node(part->tree, i);
        uint32_t parent = node_of[from.parent], *name = &name_of[from.name];
        if (*name == 0) { /* 0 is the root's name: not asked yet, or the empty name */
            *name = hearth_stacktree_name(tree, hearth_name_tree_name(part->tree, from.name));
        }
        if (parent == HEARTH_NO_NODE) { /* sums of both signs cancelled above it */
            return fail_range(err);
        }
        uint32_t node = *name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE
                        : first                    ? hearth_stacktree_append(tree, parent, *name)
                                                   : hearth_stacktree_child(tree, parent, *name);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        node_of[i] = node;
        int64_t *self = &tree->nodes[node].self;
        overflow |= __builtin_add_overflow(*self, part->self[i], self);
    }
    return overflow ? fail_range(err) : HEARTH_OK;
}

static enum hearth_status finish_part(struct hearth_tree_part *part,
                                      const struct hearth_merge_spec *spec,
                                      struct hearth_stacktree *tree,
                                      struct hearth_arena *arena,
                                      struct hearth_err *err)
{
    bool *inside;
    uint32_t size = hearth_name_tree_size(part->tree);
    part->n_nodes = part->n_nodes < size ? part->n_nodes : size;
    HEARTH_TRY(hearth_call_site_nodes(part->tree, part->n_nodes, spec->call_site, spec->n_call_site,
                                      arena, &inside, err));
    int64_t *total = hearth_arena_array(arena, part->n_nodes, sizeof total[0]);
    if (total == NULL || hearth_stacktree_root(tree) == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    size_t n_live;
    HEARTH_TRY(sum_totals(part, inside, total, &n_live, err));
    bool first = tree->n_nodes == 1;
    if (first && !hearth_stacktree_reserve(tree, n_live)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    /* Samples without any location are the root's own. */
    int64_t *root = &tree->nodes[0].self;
    return __builtin_add_overflow(*root, part->self[0], root)
               ? fail_range(err)
               : place_nodes(part, total, first, tree, arena, err);
}

enum hearth_status hearth_tree_merge_finish(struct hearth_tree_merge *merge,
                                            const struct hearth_merge_spec *spec,
                                            struct hearth_stacktree *tree,
                                            struct hearth_err *err)
{
    for (size_t i = 0; i < merge->n_parts; i++) {
        HEARTH_TRY(finish_part(&merge->parts[i], spec, tree, merge->arena, err));
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
    struct hearth_tree_merge merge;
    hearth_arena_init(&scratch, query->arena->limit_bytes);
    hearth_tree_merge_init(&merge, &scratch);
    for (size_t i = 0; status == HEARTH_OK && i < sums.n_dicts; i++) {
        const struct hearth_dict_sums *part = &sums.dicts[i];
        const struct hearth_dict *dict;
        status = hearth_store_read_dict(query->engine->store, part->service_id, part->day,
                                        part->writer_id, part->bound, query->cancel, &dict, err);
        if (status == HEARTH_OK) {
            status = hearth_tree_merge_add(&merge, dict, part, err);
            hearth_store_read_dict_release(query->engine->store, dict);
        }
    }
    hearth_sums_release(&sums);
    if (status == HEARTH_OK) {
        status = hearth_tree_merge_finish(&merge, spec, tree, err);
    }
    hearth_tree_merge_release(&merge);
    hearth_arena_release(&scratch);
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
