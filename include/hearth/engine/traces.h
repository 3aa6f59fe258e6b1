/*
 * traces.h -- spans and thread snapshots of traced requests: taking them from agents, and analysing
 * slow requests.
 *
 * Taking returns at once; `done` reports later that everything was committed. Oversized input is
 * truncated, never refused: spans of a segment beyond max_segment_spans; texts beyond
 * max_span_text_bytes; tags and logs, then spans, of a segment that still exceeds
 * max_segment_bytes; frames of a snapshot beyond max_snapshot_frames, at the leaf's end. Segments
 * that exceed the rate limit, that began before the retained time, or that lie in the future are
 * dropped and counted, without an error, because their agents cannot avoid them.
 *
 * Ownership: inputs are borrowed during the call (segments are modified: spans are sorted, texts
 * truncated); answers live in the call's arena.
 * Threads:   safe.
 * Source:    Apache SkyWalking's public protocol; docs/reference/skywalking.md.
 */
#ifndef HEARTH_ENGINE_TRACES_H
#define HEARTH_ENGINE_TRACES_H

#include "hearth/engine/call.h"
#include "hearth/model/snapshot_trees.h"
#include "hearth/model/span_group.h"

enum hearth_segments_keep {
    HEARTH_KEEP_ALL,
    HEARTH_KEEP_PROFILED, /* only segments of services that have a trace task */
    HEARTH_KEEP_NONE,
};

/* Parse "all", "profiled" or "none"; false for any other text. */
HEARTH_MUST_CHECK bool hearth_segments_keep_parse(struct hearth_str text,
                                                  enum hearth_segments_keep *ret);

struct hearth_segment {
    struct hearth_str trace_id, segment_id, service, instance;
    struct hearth_span *spans;
    size_t n_spans;
    bool is_cut; /* the agent omitted spans */
    bool is_raw; /* OpenTelemetry's: ids are bytes, and spans are sorted by start */
};

/* Called on another thread, or before the call returns. Must not block. */
typedef void hearth_traces_done_fn(void *context, enum hearth_status status,
                                   const struct hearth_err *err);

/* Called when everything taken is committed. */
struct hearth_traces_waiter {
    hearth_traces_done_fn *done;
    void *context;
    bool waits; /* set by the call. true: done is called exactly once; false: it is not called */
};

/*
 * Take segments. waiter->waits true: `done` is called exactly once; false: it is not called.
 * INVALID_ARGUMENT, and nothing is taken: a segment lacks its ids, its service or its spans, or has
 * names that are too long. UNAVAILABLE: too many segments wait to be committed.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_take_segments(const struct hearth_call *call,
                                               enum hearth_segments_keep keep,
                                               struct hearth_segment *segments, size_t n,
                                               struct hearth_traces_waiter *waiter,
                                               struct hearth_err *err);
/*
 * Take a snapshot, likewise. If the task does not exist, the call succeeds and the snapshot is
 * dropped.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_traces_take_snapshot(const struct hearth_call *call, struct hearth_str task_id,
                            struct hearth_str segment_id, const struct hearth_snapshot *snapshot,
                            struct hearth_traces_waiter *waiter, struct hearth_err *err);

/* ---- what was found ---- */

/* A stored segment. */
struct hearth_kept_segment {
    struct hearth_span_group group;
    struct hearth_span *spans; /* sorted by id */
    size_t n_spans;
    bool is_profiled; /* the task has snapshots of it */
};

/* The segments of one request in one instance, from thread to thread. */
struct hearth_profiled_request {
    const struct hearth_kept_segment **segments; /* sorted, callers first */
    size_t n_segments;
    struct hearth_str *endpoints; /* distinct names of the segments' first spans */
    size_t n_endpoints;
    int64_t start_ms, duration_ms;
};

struct hearth_profiled_requests {
    struct hearth_profiled_request *requests; /* newest first */
    size_t n;
    struct hearth_str tip; /* what is missing and why; empty: nothing is missing */
};

/*
 * Answer the requests that a trace task has snapshots of. NOT_FOUND; INVALID_ARGUMENT: the task is
 * not a trace task.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_of_task(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_profiled_requests *ret,
                                         struct hearth_err *err);

struct hearth_segment_range {
    struct hearth_str segment_id;
    bool has_range; /* false: the whole segment */
    int64_t start_ms, end_ms;
};

/*
 * Build trees of the segments' thread snapshots. Segments without snapshots are analysed by CPU
 * profiles of Go programs, whose samples have no times: the ranges are then ignored.
 * INVALID_ARGUMENT: no range, or more than max_analyzed_segments.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_analyze(const struct hearth_call *call,
                                         const struct hearth_segment_range *ranges, size_t n,
                                         struct hearth_snapshot_trees *ret,
                                         struct hearth_str *ret_tip, struct hearth_err *err);

#endif
