/*
 * diff_items.h -- the nodes and functions of a diff that can be judged, and their values in each
 * part of both sides (private to the engine).
 *
 * Only items with enough cost are judged, so that there are few. A node with the values of its
 * parent is the parent's item.
 *
 * Threads: an object belongs to one query.
 */
#ifndef HEARTH_ENGINE_DIFF_ITEMS_H
#define HEARTH_ENGINE_DIFF_ITEMS_H

#include "answer/diff_parts.h"

#define HEARTH_DIFF_NO_ITEM UINT32_MAX

/* All nodes, or all functions by their selfs or totals. */
struct hearth_diff_family {
    uint32_t *item_of; /* [n_of]: of a shown node, or of a name of `shown` */
    size_t n_of;
    int64_t *values[2]; /* [n]: of the whole sides */
    size_t n;
    int64_t *parts[HEARTH_DIFF_N_DIVISIONS][2]; /* of each side: [n_parts * n] */
};

struct hearth_diff_map;

struct hearth_diff_items {
    const struct hearth_stacktree *const *trees; /* of both sides, whole and sealed; borrowed */
    const struct hearth_flame_diff *diff;        /* borrowed */
    struct hearth_arena *arena;
    struct hearth_stacktree shown; /* the nodes of the diff under the same numbers, and names */
    uint32_t other;                /* the name "other" in `shown`, or HEARTH_IDMAP_NONE */
    int64_t totals[2];
    struct hearth_diff_family nodes, functions;   /* totals of nodes, selfs of functions */
    struct hearth_diff_family function_totals;    /* a recursive function counts once */
    uint32_t *parent_item;                        /* [nodes.n], below the item's number; 0 of 0 */
    int64_t *weights[HEARTH_DIFF_N_DIVISIONS][2]; /* of each side: [n_parts] */
    struct hearth_diff_map *maps;                 /* the items of name trees */
    size_t n_maps, cap_maps;
};

/*
 * Chooses the items of a diff of two trees with data. Release the object in any case. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_diff_items_choose(struct hearth_diff_items *items,
                                            const struct hearth_stacktree *const trees[2],
                                            const struct hearth_flame_diff *diff,
                                            struct hearth_arena *arena, struct hearth_err *err);
void hearth_diff_items_release(struct hearth_diff_items *items);

/* Fills the values and weights of all parts, whose sums are released. Errors: those of a merge. */
HEARTH_MUST_CHECK
enum hearth_status hearth_diff_items_add_parts(struct hearth_diff_items *items,
                                               struct hearth_diff_parts *parts,
                                               struct hearth_err *err);

#endif
