/* call_tree.c -- nodes in the order in which they were added: parents precede their children. */
#include "json/call_tree.h"

#include "hearth/base/budget.h"

#include <assert.h>

#define MAX_FRAMES (UINT64_C(1) << 24) /* of all stacks: 64 MiB of indices */

void hearth_call_tree_init(struct call_tree *tree, struct hearth_arena *arena)
{
    *tree = (struct call_tree){.arena = arena, .seed = hearth_hash_process_seed()};
    hearth_idmap_init(&tree->children);
}

void hearth_call_tree_release(struct call_tree *tree)
{
    hearth_idmap_release(&tree->children);
    hearth_budget_give(tree->arena->budget, tree->held_bytes);
}

void hearth_call_tree_reset(struct call_tree *tree)
{
    tree->n_nodes = 0;
    tree->seed = hearth_hash_mix(tree->seed, 1); /* no key of before is found again */
}

uint32_t hearth_call_tree_add(struct call_tree *tree, uint32_t parent, uint32_t location)
{
    assert(parent == HEARTH_NO_INDEX || parent < tree->n_nodes);

    if (tree->n_nodes >= HEARTH_NO_INDEX ||
        !hearth_arena_grow(tree->arena, &tree->nodes, &tree->cap_nodes, tree->n_nodes + 1,
                           sizeof *tree->nodes)) {
        return HEARTH_NO_INDEX;
    }

    tree->nodes[tree->n_nodes] = (struct call_node){.parent = parent, .location = location};

    return (uint32_t)tree->n_nodes++;
}

uint32_t hearth_call_tree_child(struct call_tree *tree, uint32_t parent, uint32_t location)
{
    const uint32_t key[] = {parent, location};
    struct hearth_hash128 hash = hearth_hash128(key, sizeof key, tree->seed);
    uint32_t node = hearth_idmap_find(&tree->children, hash);
    bool inserted;

    if (node != HEARTH_IDMAP_NONE) {
        return node;
    }

    node = hearth_call_tree_add(tree, parent, location);
    if (node == HEARTH_NO_INDEX ||
        hearth_idmap_intern(&tree->children, hash, node, &inserted) == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&tree->children, tree->arena, &tree->held_bytes)) {
        return HEARTH_NO_INDEX;
    }

    return node;
}

enum hearth_status hearth_call_tree_count(struct call_tree *tree, uint32_t node, uint32_t type,
                                          int64_t value, struct hearth_err *err)
{
    assert(node < tree->n_nodes && type < HEARTH_CALL_TREE_TYPES);

    int64_t *sum = &tree->nodes[node].values[type];
    if (__builtin_add_overflow(*sum, value, sum)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the values of a stack exceed 63 bits in sum");
    }

    return HEARTH_OK;
}

/* ---- stacks ---- */

static bool has_values(const struct call_node *node)
{
    return node->values[0] != 0 || node->values[1] != 0;
}

/* What is known of the stack of a node. */
struct node_stack {
    uint32_t depth;  /* frames */
    uint32_t shown;  /* the node whose stack is written: the deepest within the limit */
    uint32_t caller; /* the next node above with a frame; HEARTH_NO_INDEX: none */
};

/* Fills stacks[n_nodes]; returns the number of frames of all stacks that will be written. */
static uint64_t measure_stacks(const struct call_tree *tree, uint32_t max_depth,
                               struct node_stack *stacks)
{
    uint64_t n_frames = 0;

    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        const struct call_node *node = &tree->nodes[i];
        uint32_t parent = node->parent, caller = parent;
        bool has_parent = parent != HEARTH_NO_INDEX;
        if (has_parent && tree->nodes[parent].location == HEARTH_NO_INDEX) {
            caller = stacks[parent].caller;
        }

        uint32_t depth =
            (has_parent ? stacks[parent].depth : 0) + (node->location != HEARTH_NO_INDEX);
        bool is_cut = has_parent && max_depth != 0 && depth > max_depth;

        stacks[i] = (struct node_stack){depth, is_cut ? stacks[parent].shown : i, caller};
        if (has_values(node)) {
            n_frames += is_cut ? max_depth : depth;
        }
    }

    return n_frames;
}

/* Writes the frames of a node, leaf first; returns their number. Roots may be nested: skip them. */
static uint32_t write_frames(const struct call_tree *tree, const struct node_stack *stacks,
                             uint32_t node, uint32_t *frames)
{
    uint32_t n = 0;

    while (node != HEARTH_NO_INDEX) {
        if (tree->nodes[node].location != HEARTH_NO_INDEX) {
            frames[n++] = tree->nodes[node].location;
        }
        node = stacks[node].caller;
    }

    return n;
}

static uint32_t find_deepest(const struct call_tree *tree, const struct node_stack *stacks)
{
    uint32_t deepest = 0;

    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        uint32_t depth = stacks[stacks[i].shown].depth;
        deepest = depth > deepest ? depth : deepest;
    }

    return deepest;
}

enum hearth_status hearth_call_tree_write(struct call_tree *tree,
                                          const struct call_tree_stacks *stacks,
                                          struct hearth_profile_builder *builder,
                                          struct hearth_pprof_notes *notes, struct hearth_err *err)
{
    struct hearth_arena *arena = tree->arena;
    struct node_stack *known = hearth_arena_array(arena, tree->n_nodes, sizeof *known);

    if (known == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* The size is known before anything is written. */
    tree->n_written += measure_stacks(tree, stacks->max_depth, known);
    if (tree->n_written > MAX_FRAMES) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the stacks have %llu frames in sum; at most %llu are supported",
                           (unsigned long long)tree->n_written, (unsigned long long)MAX_FRAMES);
    }

    uint32_t *frames =
        hearth_arena_array(arena, (size_t)find_deepest(tree, known) + 1, sizeof *frames);
    if (frames == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        if (!has_values(&tree->nodes[i])) {
            continue;
        }
        uint32_t n = write_frames(tree, known, known[i].shown, frames);
        if (n < known[i].depth) {
            notes->stacks_cut++;
            notes->frames_cut += known[i].depth - n;
        }
        if (n == 0) {
            frames[n++] = stacks->nowhere;
        }
        HEARTH_TRY(hearth_profile_builder_labelled_sample(
            builder, frames, n, stacks->labels, stacks->n_labels, tree->nodes[i].values, err));
    }

    return HEARTH_OK;
}
