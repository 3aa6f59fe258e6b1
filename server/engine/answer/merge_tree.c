/*
 * merge_tree.c -- sums of stacks to a tree of function names.
 *
 * The dictionaries of a service share a name tree, and each of their stacks is a node of it, so a
 * dictionary costs one addition per stack. The rest is done once per tree: totals, and nodes for
 * names with a value. If a service has several trees (see decision 0012), or an answer several
 * services, they are unified by name.
 */
#include "hearth/base/mem.h"
#include "hearth/model/go_stacks.h"

#include "answer/go_repair.h"
#include "answer/merge_nodes.h"
#include "select/kept_tree.h"
#include "select/row_mask.h"
#include "select/stack_filter.h"

#include <assert.h>

static enum hearth_status fail_merge_range(struct hearth_err *err)
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

/* The part of a tree, with room for at least its current nodes. NULL: memory was refused. */
static struct hearth_tree_part *find_tree_part(struct hearth_tree_merge *merge,
                                               struct hearth_name_tree *tree)
{
    size_t i = merge->n_parts; /* most likely the part of the previous dictionary */

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
    assert(part->tree == tree);
    uint32_t size = hearth_name_tree_size(tree);

    if (size > part->n_nodes) {
        /* The tree grows when later dictionaries of the query are loaded: leave room for them. */
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
    struct hearth_tree_part *part = find_tree_part(merge, dict->tree);
    if (part == NULL) {
        return HEARTH_FAIL_ARENA(err, merge->arena);
    }

    bool overflow = false;
    for (uint32_t s = 0; s < sums->bound; s++) {
        int64_t *self = &part->self[dict->stack_node[s]];
        overflow |= __builtin_add_overflow(*self, sums->acc[s], self);
    }

    if (overflow) {
        return fail_merge_range(err);
    }

    return merge->go_max_frames == 0 ? HEARTH_OK
                                     : hearth_go_find_cuts(merge, part, dict, sums, err);
}

enum hearth_status hearth_tree_merge_finish(struct hearth_tree_merge *merge,
                                            const struct hearth_merge_spec *spec, int64_t max_nodes,
                                            struct hearth_stacktree *tree, struct hearth_err *err)
{
    assert(merge != NULL && spec != NULL && tree != NULL);

    /* Stacks are filtered, and nodes truncated, as they are shown: repair a whole tree first. */
    struct hearth_merge_spec each = *spec;
    bool repair = spec->go_stacks == HEARTH_GO_REPAIRED && hearth_go_needs_repair(merge);

    assert(!repair || tree->n_nodes == 0);
    if (repair) {
        each.stacks = (struct hearth_stack_filter){0};
    }

    const struct hearth_part_form form = {.spec = &each,
                                          .alone =
                                              merge->n_parts == 1 && tree->n_nodes == 0 && !repair,
                                          .max_nodes = max_nodes};
    for (size_t i = 0; i < merge->n_parts; i++) {
        HEARTH_TRY(hearth_tree_part_place(&merge->parts[i], &form, tree, merge->arena, err));
    }

    return repair ? hearth_go_repair(merge, &spec->stacks, tree, err) : HEARTH_OK;
}

/* Resolves the tenant's setting of Go's stacks. */
static void resolve_go_stacks(const struct hearth_query *query, struct hearth_merge_spec *spec)
{
    struct hearth_limits limits;

    if (spec->go_stacks == HEARTH_GO_OF_TENANT) {
        hearth_call_limits(&query->call, &limits);
        spec->go_stacks = limits.repair_go_stacks ? HEARTH_GO_REPAIRED : HEARTH_GO_STORED;
    }
}

/* Finds how deep stacks are that Go may have cut; 0: they are shown as they are stored. */
static enum hearth_status find_max_go_frames(const struct hearth_merge_spec *spec,
                                             uint32_t *ret_max_frames, struct hearth_err *err)
{
    struct hearth_profile_type type;

    if (spec->go_stacks == HEARTH_GO_REPAIRED) {
        HEARTH_TRY(hearth_profile_type_parse(spec->profile_type, &type, err));
        *ret_max_frames = hearth_go_max_frames(&type);
    }

    return HEARTH_OK;
}

static void note_joined_stacks(const struct hearth_query *query,
                               const struct hearth_joined_stacks *joined)
{
    if (joined->n > 0) {
        hearth_call_note(&query->call,
                         "%zu stack traces that Go's runtime cut, %lld in all, are joined to their "
                         "missing frames, found in other stacks (repair-go-stacks, go_stacks)",
                         joined->n, (long long)joined->value);
    }
}

enum hearth_status hearth_sums_visit(const struct hearth_query *query,
                                     const struct hearth_stack_filter *stacks,
                                     const struct hearth_sums *sums, hearth_dict_sums_fn *visit,
                                     void *context, struct hearth_err *err)
{
    assert(query != NULL && stacks != NULL && sums != NULL && visit != NULL);

    struct hearth_store *store = query->call.engine->store;
    struct hearth_row_mask rows;
    enum hearth_status status = hearth_row_mask_init(&rows, stacks, query->call.arena, err);

    for (size_t i = 0; status == HEARTH_OK && i < sums->n_dicts; i++) {
        const struct hearth_dict_sums *part = &sums->dicts[i];
        const struct hearth_dict *dict;
        status = hearth_store_read_dict(
            HEARTH_CALL_SCOPE(&query->call),
            (struct hearth_dict_key){part->service_id, part->day, part->writer_id}, part->bound,
            &dict, err);
        if (status != HEARTH_OK) {
            break;
        }
        status = hearth_row_mask_clear(&rows, dict, part, err);
        if (status == HEARTH_OK) {
            status = visit(context, dict, part, err);
        }
        hearth_store_read_dict_release(store, dict);
    }

    hearth_row_mask_release(&rows);
    return status;
}

static enum hearth_status add_visited_sums(void *context, const struct hearth_dict *dict,
                                           const struct hearth_dict_sums *sums,
                                           struct hearth_err *err)
{
    return hearth_tree_merge_add(context, dict, sums, err);
}

/* Makes a sealed tree of sums, which it releases; spec->go_stacks is resolved. */
static enum hearth_status make_tree(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, struct hearth_sums *sums,
                                    int64_t max_nodes, struct hearth_stacktree *tree,
                                    struct hearth_joined_stacks *ret_joined, struct hearth_err *err)
{
    struct hearth_arena scratch;
    struct hearth_tree_merge merge;
    hearth_arena_init_like(&scratch, query->call.arena);
    hearth_tree_merge_init(&merge, &scratch);
    enum hearth_status status = find_max_go_frames(spec, &merge.go_max_frames, err);
    if (status == HEARTH_OK) {
        status = hearth_sums_visit(query, &spec->stacks, sums, add_visited_sums, &merge, err);
    }

    /* The sums are not needed for the nodes of the tree. */
    hearth_sums_release(sums);
    if (status == HEARTH_OK) {
        status = hearth_tree_merge_finish(&merge, spec, max_nodes, tree, err);
        *ret_joined = (struct hearth_joined_stacks){merge.n_joined, merge.joined_value};
    }

    hearth_tree_merge_release(&merge);
    hearth_arena_release(&scratch);
    return status == HEARTH_OK ? hearth_stacktree_seal(tree, err) : status;
}

enum hearth_status hearth_sums_tree(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, struct hearth_sums *sums,
                                    int64_t max_nodes, struct hearth_stacktree *tree,
                                    struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && sums != NULL && tree != NULL);

    struct hearth_joined_stacks joined = {0};
    struct hearth_merge_spec how = *spec;
    resolve_go_stacks(query, &how);
    enum hearth_status status = make_tree(query, &how, sums, max_nodes, tree, &joined, err);
    note_joined_stacks(query, &joined);
    return status;
}

/* Makes the tree of a query from its sums, and keeps it for the next query if it may be kept. */
static enum hearth_status
make_and_keep_tree(const struct hearth_query *query, const struct hearth_merge_spec *spec,
                   struct hearth_sums *sums, int64_t max_nodes, const struct hearth_kept_tree *kept,
                   struct hearth_stacktree *tree, struct hearth_joined_stacks *ret_joined,
                   struct hearth_err *err)
{
    HEARTH_TRY(make_tree(query, spec, sums, max_nodes, tree, ret_joined, err));
    if (!kept->has_key) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_stacktree_cut(tree, max_nodes, err));
    hearth_kept_tree_add(kept, tree, ret_joined);
    return HEARTH_OK;
}

enum hearth_status hearth_query_function_tree(const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec,
                                              int64_t max_nodes, struct hearth_stacktree *tree,
                                              struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && tree != NULL);

    struct hearth_kept_tree kept;
    struct hearth_sums sums;
    struct hearth_joined_stacks joined = {0};
    struct hearth_merge_spec how = *spec;
    resolve_go_stacks(query, &how);
    hearth_kept_tree_init(&kept, query, &how, max_nodes);
    enum hearth_status status =
        hearth_query_sum_unless_known(query, &how, hearth_kept_tree_find, &kept, &sums, err);
    if (status == HEARTH_OK) {
        status = kept.found != NULL
                     ? hearth_kept_tree_read(&kept, tree, &joined, err)
                     : make_and_keep_tree(query, &how, &sums, max_nodes, &kept, tree, &joined, err);
        note_joined_stacks(query, &joined);
    }

    hearth_sums_release(&sums);
    hearth_kept_tree_release(&kept);
    return status;
}

enum hearth_status hearth_query_max_nodes(const struct hearth_query *query,
                                          const struct hearth_merge_spec *spec,
                                          int64_t *ret_max_nodes, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret_max_nodes != NULL);

    struct hearth_limits limits;

    hearth_call_limits(&query->call, &limits);
    int64_t max = limits.max_flamegraph_nodes;
    int64_t n = spec->has_max_nodes ? spec->max_nodes : 0;
    if (n == 0) {
        n = limits.default_flamegraph_nodes;
    }

    if (max > 0 && n < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "max flamegraph nodes limit must be set (max allowed %lld, option "
                           "max-flamegraph-nodes)",
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

/* n_all: number of nodes without the root, before truncation. */
static void note_folded_nodes(const struct hearth_query *query,
                              const struct hearth_merge_spec *spec, size_t n_all, int64_t max_nodes)
{
    bool is_set = spec->has_max_nodes && spec->max_nodes != 0;
    struct hearth_limits limits;

    hearth_call_limits(&query->call, &limits);
    hearth_call_note(
        &query->call,
        "of %zu nodes those beyond the largest %lld (%s) are folded into \"other\": ask "
        "for more with max_nodes, at most %lld (max-flamegraph-nodes)",
        n_all, (long long)max_nodes, is_set ? "max_nodes" : "default-flamegraph-nodes",
        (long long)limits.max_flamegraph_nodes);
}

enum hearth_status hearth_query_flamegraph(const struct hearth_query *query,
                                           const struct hearth_merge_spec *spec,
                                           struct hearth_flamegraph *ret, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    int64_t max_nodes;

    HEARTH_TRY(hearth_query_max_nodes(query, spec, &max_nodes, err));

    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, query->call.arena);
    enum hearth_status status = hearth_query_function_tree(query, spec, max_nodes, &tree, err);
    if (status == HEARTH_OK) {
        status = hearth_flamegraph_make(&tree, max_nodes, query->call.arena, ret, err);
    }

    if (status == HEARTH_OK && ret->n_folded > 0) {
        note_folded_nodes(query, spec, tree.n_nodes - 1 + tree.n_left_out, max_nodes);
    }

    hearth_stacktree_release(&tree);
    return status;
}

enum hearth_status hearth_query_tree(const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec, struct hearth_buf *out,
                                     struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && out != NULL);

    int64_t max_nodes;

    HEARTH_TRY(hearth_query_max_nodes(query, spec, &max_nodes, err));

    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, query->call.arena);
    enum hearth_status status = hearth_query_function_tree(query, spec, max_nodes, &tree, err);
    if (status == HEARTH_OK) {
        status = hearth_stacktree_write_bytes(&tree, max_nodes, out, err);
    }

    if (status == HEARTH_OK && spec->ret_total != NULL) {
        *spec->ret_total = tree.n_nodes == 0 ? 0 : tree.nodes[0].total;
    }

    size_t n_all = tree.n_nodes == 0 ? 0 : tree.n_nodes - 1 + tree.n_left_out;
    if (status == HEARTH_OK && max_nodes > 0 && n_all > (uint64_t)max_nodes) {
        note_folded_nodes(query, spec, n_all, max_nodes);
    }

    hearth_stacktree_release(&tree);
    return status;
}
