/*
 * snapshot_trees.h -- thread snapshots of requests: their stored form, and trees with durations
 * made from them.
 *
 * A snapshot is the stack of one thread at one moment, root first, with its number within its
 * segment (from 0). A tree holds the snapshots with the same root frame; a node is a frame below
 * the same frames. The count of a node is the number of snapshots through it. Its duration is the
 * sum over all runs of consecutive snapshots of a segment through it, each from the time of the
 * first to that of the last snapshot: real time between dumps. So a single snapshot has no
 * duration, and the time between two snapshots counts for the frames that both contain.
 *
 * Units:     milliseconds.
 * Ownership: results live in the arena; texts of decoded snapshots borrow from the bytes, texts of
 *            trees from the snapshots.
 * Threads:   pure.
 * Source:    SkyWalking's analysis of segments, with one difference: snapshots of different
 *            segments are distinct, even with equal numbers.
 */
#ifndef HEARTH_MODEL_SNAPSHOT_TREES_H
#define HEARTH_MODEL_SNAPSHOT_TREES_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/model/profile.h"

struct hearth_snapshot {
    uint32_t segment; /* its segment, as numbered by the caller; not stored */
    int32_t sequence;
    int64_t at_ms;
    const struct hearth_str *frames; /* root first */
    uint32_t n_frames;
    bool is_cut; /* frames, or the beginnings of their texts, were dropped on arrival */
};

/* ---- as stored ---- */

/*
 * Append the packed form: a table of texts, for each snapshot the frames that differ from those of
 * the previous one, and which snapshots are cut.
 */
void hearth_snapshots_encode(const struct hearth_snapshot *snapshots, size_t n,
                             struct hearth_buf *out);
/* Decode the packed form; every snapshot gets `segment`. CORRUPT for damaged bytes; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_snapshots_decode(struct hearth_str bytes, uint32_t segment,
                                           struct hearth_arena *arena, struct hearth_snapshot **ret,
                                           size_t *ret_n, struct hearth_err *err);

/* ---- trees ---- */

/* A part of a segment; both ends are included. */
struct hearth_snapshot_query {
    uint32_t segment;
    int64_t start_ms, end_ms;
};

struct hearth_snapshot_node {
    int32_t id, parent_id; /* from 1 within the tree; parent_id of the root: 0 */
    struct hearth_str code;
    int64_t duration_ms, duration_child_excluded_ms;
    int64_t count;
};

struct hearth_snapshot_tree {
    struct hearth_snapshot_node *nodes; /* breadth first; siblings by duration, longest first */
    size_t n_nodes;
};

struct hearth_snapshot_trees {
    struct hearth_snapshot_tree *trees; /* longest first */
    size_t n_trees;
    int64_t n_found; /* numbers that the queries span, also beyond `limit` */
    int64_t n_cut;   /* analysed snapshots that are cut */
};

/* The snapshots that are analysed. */
struct hearth_snapshot_choice {
    const struct hearth_snapshot *snapshots;
    size_t n;
    const struct hearth_snapshot_query *queries;
    size_t n_queries;
    int64_t limit; /* numbers of snapshots per query; 0: no limit */
};

/*
 * Make trees of the snapshots that the queries select. A query selects the snapshots of its segment
 * from the lowest to the highest number that occur between its ends, but at most the first `limit`
 * of these numbers. A snapshot selected by several queries, or stored twice, counts once.
 * Snapshots without frames are ignored. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_snapshot_trees_make(const struct hearth_snapshot_choice *choice,
                                              struct hearth_arena *arena,
                                              struct hearth_snapshot_trees *ret,
                                              struct hearth_err *err);

/*
 * The same form for a CPU profile, which has no moments: one tree. A sample counts values[0]
 * (without values: 1) and lasts that many periods of at least 1 ms (10 ms if the profile has no
 * period). A node is a location, named "function:line", several lines joined by ";". Several roots
 * become children of a node named "root". Without samples there is no tree. is_wanted selects
 * samples; NULL: all. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_snapshot_trees_of_profile(const struct hearth_profile *profile,
                                 bool (*is_wanted)(void *context, uint32_t sample), void *context,
                                 struct hearth_arena *arena, struct hearth_snapshot_trees *ret,
                                 struct hearth_err *err);

#endif
