/*
 * snapshot_trees.h -- thread snapshots of requests: how they are stored, and how they become trees with durations.
 *
 * A snapshot is the stack of one thread at a moment, root first, with its number within its segment (from 0). A tree
 * has the snapshots of one root frame; a node is a frame below the same frames. Its count is the number of snapshots
 * through it. Its duration is the sum over runs of consecutive snapshots of a segment through it, each from the first
 * one's time to the last one's: real time between dumps, so that a snapshot alone has none, and time between two
 * snapshots belongs to what both contain.
 *
 * Units:     milliseconds.
 * Ownership: answers in the arena; texts of decoded snapshots borrow from the bytes, those of trees from the snapshots.
 * Threads:   pure.
 * Source:    how SkyWalking analyses segments, with one difference: snapshots of different segments are different ones,
 *            whatever their numbers are.
 */
#ifndef HEARTH_MODEL_SNAPSHOT_TREES_H
#define HEARTH_MODEL_SNAPSHOT_TREES_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/model/profile.h"

struct hearth_snapshot {
    uint32_t segment; /* whose it is, as the caller numbers them; not stored */
    int32_t sequence;
    int64_t at_ms;
    const struct hearth_str *frames; /* root first */
    uint32_t n_frames;
    bool is_cut; /* when it came: frames, or beginnings of their texts, were left out */
};

/* ---- as stored ---- */

/*
 * Append the packed form: a table of texts, what each snapshot does not share with the one before, and which were cut.
 */
void hearth_snapshots_encode(const struct hearth_snapshot *snapshots, size_t n,
                             struct hearth_buf *out);
/* CORRUPT for other bytes, NO_MEMORY. `segment` is given to all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_snapshots_decode(struct hearth_str bytes, uint32_t segment,
                                           struct hearth_arena *arena, struct hearth_snapshot **ret,
                                           size_t *ret_n, struct hearth_err *err);

/* ---- trees ---- */

/* A part of a segment: both ends included. */
struct hearth_snapshot_query {
    uint32_t segment;
    int64_t start_ms, end_ms;
};

struct hearth_snapshot_node {
    int32_t id, parent_id; /* from 1 within the tree; 0: the root's parent */
    struct hearth_str code;
    int64_t duration_ms, duration_child_excluded_ms;
    int64_t count;
};

struct hearth_snapshot_tree {
    struct hearth_snapshot_node *nodes; /* breadth first, the longest first */
    size_t n_nodes;
};

struct hearth_snapshot_trees {
    struct hearth_snapshot_tree *trees; /* the longest first */
    size_t n_trees;
    int64_t n_found; /* snapshots that the queries span; more than `limit`: not all were analysed */
    int64_t n_cut;   /* of those that were analysed */
};

/*
 * A query takes the snapshots of its segment from the first to the last number that it saw between its ends, at most
 * `limit` of them (0: all). What several queries take, or what was stored twice, counts once. Snapshots without
 * frames are in no tree.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_snapshot_trees_make(const struct hearth_snapshot *snapshots, size_t n,
                                              const struct hearth_snapshot_query *queries,
                                              size_t n_queries, int64_t limit,
                                              struct hearth_arena *arena,
                                              struct hearth_snapshot_trees *ret,
                                              struct hearth_err *err);

/*
 * The same picture of a CPU profile, which has no moments: one tree; a sample counts values[0] (without values: 1), and
 * lasts as many periods, of at least a millisecond (10 ms when the profile does not say). A node is a location, called
 * "function:line", its lines joined by ";". Several roots are children of one called "root". No samples: no tree.
 * is_wanted: which samples; NULL: all.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_snapshot_trees_of_profile(const struct hearth_profile *profile,
                                 bool (*is_wanted)(void *context, uint32_t sample), void *context,
                                 struct hearth_arena *arena, struct hearth_snapshot_trees *ret,
                                 struct hearth_err *err);

#endif
