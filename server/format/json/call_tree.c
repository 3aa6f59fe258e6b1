/* call_tree.c -- nodes in the order in which they were added: parents precede their children. */
#include "json/call_tree.h"

#include "hearth/base/hash.h"
#include "hearth/base/limit.h"

#include <assert.h>

#define FIRST_SLOTS 1024u

void hearth_call_tree_init(struct call_tree *tree, const struct hearth_pprof_limits *limits,
                           struct hearth_arena *arena)
{
    *tree = (struct call_tree){.limits = limits, .arena = arena, .round = 1};
}

void hearth_call_tree_reset(struct call_tree *tree)
{
    tree->n_nodes = 0;
    if (++tree->round == 0) { /* the old rounds would begin again */
        tree->round = 1;
        memset(tree->slots, 0, tree->n_slots * sizeof *tree->slots);
    }
}

/* ---- nodes ---- */

uint32_t hearth_call_tree_add(struct call_tree *tree, uint32_t parent, uint32_t location)
{
    uint32_t max = tree->limits->max_entries;

    assert(parent == HEARTH_NO_INDEX || parent < tree->n_nodes);
    if ((max > 0 && tree->n_nodes >= max) || tree->n_nodes >= HEARTH_NO_INDEX ||
        !hearth_arena_regrow(tree->arena, &tree->nodes, &tree->cap_nodes, tree->n_nodes + 1,
                             sizeof *tree->nodes)) {
        return HEARTH_NO_INDEX;
    }

    tree->nodes[tree->n_nodes] = (struct call_node){.parent = parent, .location = location};

    return (uint32_t)tree->n_nodes++;
}

/* The slot of a child, or the empty one for it. At most half of the slots are filled. */
static struct call_slot *find_slot_of_child(const struct call_tree *tree, uint32_t parent,
                                            uint32_t location)
{
    uint64_t hash = hearth_hash_mix((uint64_t)parent << 32 | location, hearth_hash_process_seed());

    for (size_t i = hash;; i++) {
        struct call_slot *slot = &tree->slots[i & (tree->n_slots - 1)];
        if (slot->round != tree->round) {
            return slot;
        }
        const struct call_node *node = &tree->nodes[slot->node];
        if (node->parent == parent && node->location == location) {
            return slot;
        }
    }
}

/* Doubles the slots, and fills those of all nodes again. */
static bool grow_slots(struct call_tree *tree)
{
    size_t n = tree->n_slots == 0 ? FIRST_SLOTS : tree->n_slots * 2;

    if (!hearth_arena_regrow(tree->arena, &tree->slots, &tree->room_slots, n,
                             sizeof *tree->slots)) {
        return false;
    }

    tree->n_slots = n;
    memset(tree->slots, 0, n * sizeof *tree->slots);
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        const struct call_node *node = &tree->nodes[i];
        *find_slot_of_child(tree, node->parent, node->location) =
            (struct call_slot){i, tree->round};
    }

    return true;
}

uint32_t hearth_call_tree_child(struct call_tree *tree, uint32_t parent, uint32_t location)
{
    if (tree->n_nodes * 2 >= tree->n_slots && !grow_slots(tree)) {
        return HEARTH_NO_INDEX;
    }

    struct call_slot *slot = find_slot_of_child(tree, parent, location);
    if (slot->round == tree->round) {
        return slot->node;
    }

    uint32_t node = hearth_call_tree_add(tree, parent, location);
    if (node != HEARTH_NO_INDEX) {
        *slot = (struct call_slot){node, tree->round};
    }

    return node;
}

enum hearth_status hearth_call_tree_refused(const struct call_tree *tree, struct hearth_err *err)
{
    uint32_t max = tree->limits->max_entries;

    if (max == 0 || tree->n_nodes < max) {
        return HEARTH_FAIL_ARENA(err, tree->arena);
    }

    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "the calls have more than %u nodes" HEARTH_RAISE_LIMIT("max-table-entries"),
                       max);
}

void hearth_call_tree_fail(const struct call_tree *tree, struct hearth_json_reader *r)
{
    if (!hearth_json_reader_failed(r)) {
        (void)hearth_call_tree_refused(tree, &r->fault);
    }
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
    uint32_t max = tree->limits->max_frames;
    tree->n_written += measure_stacks(tree, stacks->max_depth, known);
    if (max > 0 && tree->n_written > max) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the stacks have %llu frames in sum; the limit is %u" HEARTH_RAISE_LIMIT(
                               "max-stack-frames"),
                           (unsigned long long)tree->n_written, max);
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
