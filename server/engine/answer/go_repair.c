/*
 * go_repair.c -- finds and joins stacks that Go's runtime cut (contract: go_repair.h).
 *
 * New versions of Go's runtime count inlined frames, old ones do not, and pprof writes inlined
 * frames into one location. So a stack may be cut if it has at most as many locations as the
 * runtime records, and about as many frames or more; SLACK allows for frames of the runtime itself,
 * which it drops at the leaf. A stack is known to be cut if its root-most frames are found deeper
 * in another one.
 */
#include "answer/go_repair.h"

#include "hearth/base/arena.h"
#include "hearth/model/go_stacks.h"

#include "select/stack_filter.h"

#include <assert.h>

#define SLACK 4u

/* ---- cuts ---- */

/* Finds the number of frames on each node's path. False: memory was refused. */
static bool measure_depths(struct hearth_tree_merge *merge, struct hearth_tree_part *part)
{
    uint32_t size = hearth_name_tree_size(part->tree);
    if (size <= part->n_depths) {
        return true;
    }

    if (!hearth_arena_grow(merge->arena, &part->depth, &part->cap_depths, size,
                           sizeof part->depth[0])) {
        return false;
    }

    part->depth[0] = 0;
    for (uint32_t i = part->n_depths == 0 ? 1 : part->n_depths; i < size; i++) {
        part->depth[i] = part->depth[hearth_name_tree_node(part->tree, i).parent] + 1;
    }

    part->n_depths = size;
    return true;
}

static uint32_t count_stack_locations(const struct hearth_dict *dict, uint32_t stack)
{
    return dict->stack_first[stack + 1] - dict->stack_first[stack];
}

/* Whether the file of the root-most frame is a Go file. */
static bool is_go_stack(const struct hearth_dict *dict, uint32_t stack)
{
    const struct hearth_location *root =
        &dict->locations[dict->stack_locs[dict->stack_first[stack + 1] - 1]];
    if (root->n_lines == 0) {
        return false;
    }

    uint32_t function = dict->lines[root->first_line + root->n_lines - 1].function;
    return function != HEARTH_NO_INDEX &&
           hearth_str_ends(dict->strings[dict->functions[function].filename], HEARTH_STR(".go"));
}

/* Heap profiles of Go 1.23 and later have more frames, which deeper stacks prove. */
static uint32_t find_max_frames(const struct hearth_tree_merge *merge,
                                const struct hearth_dict *dict, const struct hearth_dict_sums *sums)
{
    uint32_t max = merge->go_max_frames, deepest = 0;
    if (max == HEARTH_GO_MAX_CPU_FRAMES) {
        return max;
    }

    for (uint32_t s = 0; s < sums->bound; s++) {
        uint32_t n = sums->acc[s] == 0 ? 0 : count_stack_locations(dict, s);
        deepest = n > deepest ? n : deepest;
    }

    return deepest > max ? HEARTH_GO_MAX_LATE_HEAP_FRAMES : max;
}

enum hearth_status hearth_go_find_cuts(struct hearth_tree_merge *merge,
                                       struct hearth_tree_part *part,
                                       const struct hearth_dict *dict,
                                       const struct hearth_dict_sums *sums, struct hearth_err *err)
{
    if (!measure_depths(merge, part)) {
        return HEARTH_FAIL_ARENA(err, merge->arena);
    }

    uint32_t max = find_max_frames(merge, dict, sums);
    for (uint32_t s = 0; s < sums->bound; s++) {
        uint32_t node = dict->stack_node[s];
        if (sums->acc[s] <= 0 || part->depth[node] + SLACK < max ||
            count_stack_locations(dict, s) > max || !is_go_stack(dict, s)) {
            continue;
        }
        if (!hearth_arena_grow(merge->arena, &merge->cuts, &merge->cap_cuts, merge->n_cuts + 1,
                               sizeof merge->cuts[0])) {
            return HEARTH_FAIL_ARENA(err, merge->arena);
        }
        merge->cuts[merge->n_cuts++] = (struct hearth_tree_cut){
            .part = (uint32_t)(part - merge->parts), .node = node, .value = sums->acc[s]};
    }

    return HEARTH_OK;
}

bool hearth_go_needs_repair(const struct hearth_tree_merge *merge)
{
    assert(merge != NULL);

    if (merge->n_cuts > 0) {
        return true;
    }

    for (size_t i = 0; i < merge->n_parts; i++) {
        const struct hearth_name_tree *tree = merge->parts[i].tree;
        uint32_t n = hearth_name_tree_n_names(tree);
        for (uint32_t name = 1; name < n; name++) {
            if (hearth_go_name_is_generic(hearth_name_tree_name(tree, name))) {
                return true;
            }
        }
    }

    return false;
}

/* ---- repair ---- */

static enum hearth_status join_cut_stacks(struct hearth_tree_merge *merge,
                                          struct hearth_stacktree *tree, struct hearth_err *err)
{
    struct hearth_go_cut *cuts = hearth_arena_array(merge->arena, merge->n_cuts, sizeof cuts[0]);
    if (cuts == NULL) {
        return HEARTH_FAIL_ARENA(err, merge->arena);
    }

    for (size_t i = 0; i < merge->n_cuts; i++) {
        const struct hearth_tree_cut *cut = &merge->cuts[i];
        cuts[i] = (struct hearth_go_cut){merge->parts[cut->part].node_of[cut->node], cut->value};
        HEARTH_ASSERT(cuts[i].node != HEARTH_NO_NODE);
    }

    return hearth_go_stacks_join(tree, cuts, merge->n_cuts, merge->arena, &merge->n_joined,
                                 &merge->joined_value, err);
}

/*
 * Makes a name tree with the nodes of a function tree, under the same numbers. NULL: memory was
 * refused.
 */
static struct hearth_name_tree *make_name_tree(const struct hearth_stacktree *tree)
{
    struct hearth_name_tree *names = hearth_name_tree_new();
    bool refused = names == NULL;
    if (!refused) {
        hearth_name_tree_begin(names);
        for (uint32_t i = 1; i < tree->n_nodes && !refused; i++) {
            const struct hearth_tree_node *node = &tree->nodes[i];
            uint32_t name = hearth_name_tree_intern(names, tree->names[node->name]);
            refused = name == HEARTH_NO_INDEX ||
                      hearth_name_tree_child(names, node->parent, name) == HEARTH_NO_INDEX;
        }
        hearth_name_tree_end(names);
    }

    if (refused) {
        hearth_name_tree_unref(names);
        return NULL;
    }

    HEARTH_ASSERT(hearth_name_tree_size(names) == (tree->n_nodes == 0 ? 1 : tree->n_nodes));
    return names;
}

/* Sets stacks that do not pass to 0, and removes nodes without a value. */
static enum hearth_status remove_filtered_stacks(const struct hearth_stack_filter *stacks,
                                                 struct hearth_stacktree *tree,
                                                 struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_name_tree *names = make_name_tree(tree);
    if (names == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a filter of stacks");
    }

    bool *inside;
    enum hearth_status status =
        hearth_stack_filter_nodes(stacks, names, hearth_name_tree_size(names), arena, &inside, err);
    hearth_name_tree_unref(names);
    for (size_t i = 0; status == HEARTH_OK && i < tree->n_nodes; i++) {
        tree->nodes[i].self = inside[i] ? tree->nodes[i].self : 0;
    }

    return status == HEARTH_OK ? hearth_stacktree_prune(tree, err) : status;
}

enum hearth_status hearth_go_repair(struct hearth_tree_merge *merge,
                                    const struct hearth_stack_filter *stacks,
                                    struct hearth_stacktree *tree, struct hearth_err *err)
{
    assert(merge != NULL && tree != NULL);

    if (merge->n_cuts > 0) {
        HEARTH_TRY(join_cut_stacks(merge, tree, err));
    }

    return !hearth_stack_filter_has_names(stacks) || tree->n_nodes == 0
               ? HEARTH_OK
               : remove_filtered_stacks(stacks, tree, merge->arena, err);
}
