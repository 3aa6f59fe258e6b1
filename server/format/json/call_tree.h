/*
 * call_tree.h -- calls as a tree of nodes, for formats that write one (private to this layer).
 *
 * A stack takes one node per frame that it does not share with its siblings, however deep it is.
 * Stacks are written out once, at the end, within a limit.
 */
#ifndef HEARTH_FORMAT_CALL_TREE_H
#define HEARTH_FORMAT_CALL_TREE_H

#include "hearth/codec/json_reader.h"
#include "hearth/format/pprof.h"
#include "hearth/format/profile_builder.h"

#define HEARTH_CALL_TREE_TYPES 2u

struct call_node {
    uint32_t parent;   /* index below the node's own; HEARTH_NO_INDEX: none */
    uint32_t location; /* of the builder; HEARTH_NO_INDEX: a root that is no frame */
    int64_t values[HEARTH_CALL_TREE_TYPES];
};

/* A place in the table of children. */
struct call_slot {
    uint32_t node;
    uint32_t round; /* number of the reset before it was filled; otherwise it is empty */
};

struct call_tree {
    const struct hearth_pprof_limits *limits; /* of which max_entries limits the nodes */
    struct hearth_arena *arena;
    struct call_node *nodes;
    size_t n_nodes, cap_nodes;
    struct call_slot *slots;    /* (parent, location) to node, with open addressing */
    size_t n_slots, room_slots; /* n_slots: a power of two or 0, at most room_slots */
    uint32_t round;             /* from 1 */
    uint64_t n_written;         /* frames of all stacks that were written, also before resets */
};

/* The tree keeps the limits and the arena, where all of its memory is. */
void hearth_call_tree_init(struct call_tree *tree, const struct hearth_pprof_limits *limits,
                           struct hearth_arena *arena);
/* Removes all nodes, keeps memory. Takes no time: a file may have a tree for every few bytes. */
void hearth_call_tree_reset(struct call_tree *tree);

/* Adds a node. HEARTH_NO_INDEX if the limit is reached or memory is refused. */
uint32_t hearth_call_tree_add(struct call_tree *tree, uint32_t parent, uint32_t location);
/* The same, unless _child has added this child before; its node then. */
uint32_t hearth_call_tree_child(struct call_tree *tree, uint32_t parent, uint32_t location);
/* Why a node was not added: RESOURCE_EXHAUSTED or NO_MEMORY; the same as a fault of a reader. */
enum hearth_status hearth_call_tree_refused(const struct call_tree *tree, struct hearth_err *err);
void hearth_call_tree_fail(const struct call_tree *tree, struct hearth_json_reader *r);
/* Adds to a value of a node. OUT_OF_RANGE beyond 63 bits. */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_tree_count(struct call_tree *tree, uint32_t node, uint32_t type,
                                          int64_t value, struct hearth_err *err);

/* How the stacks of a tree are added to a profile. */
struct call_tree_stacks {
    uint32_t max_depth; /* deeper stacks lose their leaf end; 0: no limit */
    uint32_t nowhere;   /* location of the only frame of a stack without frames */
    const struct hearth_sample_label *labels;
    uint32_t n_labels;
};

/*
 * Adds a sample for each node with values. notes: stacks that were cut are counted.
 * RESOURCE_EXHAUSTED if all stacks since the init have more than max_frames in sum.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_tree_write(struct call_tree *tree,
                                          const struct call_tree_stacks *stacks,
                                          struct hearth_profile_builder *builder,
                                          struct hearth_pprof_notes *notes, struct hearth_err *err);

#endif
