/*
 * traces.h -- spans and thread snapshots of traced requests: taking them from agents, and what was found of slow ones.
 *
 * Taking returns at once; `done` says later that all of it was committed. What is too large is cut, never refused: spans of
 * a segment beyond max_segment_spans, texts beyond max_span_text_bytes, tags and logs (then spans) when it still has more
 * than max_segment_bytes; frames of a snapshot beyond max_snapshot_frames at the leaf's end. Segments that were too many in
 * a second, or that lie before what is kept or in the future, are left out and counted: their agents cannot help it.
 *
 * Ownership: what is taken is borrowed during the call (segments are changed: spans are put in order, texts cut); answers
 *            live in the call's arena.
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
    HEARTH_KEEP_PROFILED, /* of services with a trace task */
    HEARTH_KEEP_NONE,
};

/* "all", "profiled", "none". */
HEARTH_MUST_CHECK bool hearth_segments_keep_parse(struct hearth_str text,
                                                  enum hearth_segments_keep *ret);

struct hearth_segment {
    struct hearth_str trace_id, segment_id, service, instance;
    struct hearth_span *spans;
    size_t n_spans;
    bool is_cut; /* the agent left spans out */
    bool
        is_raw; /* the ids are bytes, the spans in the order in which they began: of OpenTelemetry */
};

/* From another thread, or before the call returns. Must not block. */
typedef void hearth_traces_done_fn(void *context, enum hearth_status status,
                                   const struct hearth_err *err);

/*
 * *ret_waits: `done` will be called, once; else there is nothing to wait for. INVALID_ARGUMENT, and nothing is taken, when
 * one lacks its ids, service or spans, or has names that are too long; UNAVAILABLE when too much waits to be committed.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_take_segments(const struct hearth_call *call,
                                               enum hearth_segments_keep keep,
                                               struct hearth_segment *segments, size_t n,
                                               hearth_traces_done_fn *done, void *context,
                                               bool *ret_waits, struct hearth_err *err);
/* The same of a snapshot. A task that does not exist: it is taken, and not kept. */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_take_snapshot(const struct hearth_call *call,
                                               struct hearth_str task_id,
                                               struct hearth_str segment_id,
                                               const struct hearth_snapshot *snapshot,
                                               hearth_traces_done_fn *done, void *context,
                                               bool *ret_waits, struct hearth_err *err);

/* ---- what was found ---- */

/* A segment as it was stored. */
struct hearth_kept_segment {
    struct hearth_span_group group;
    struct hearth_span *spans; /* by id */
    size_t n_spans;
    bool is_profiled; /* it has snapshots of the task */
};

/* What one request did in one instance, from thread to thread. */
struct hearth_profiled_request {
    const struct hearth_kept_segment **segments; /* callers first */
    size_t n_segments;
    struct hearth_str *endpoints; /* names of first spans, each once */
    size_t n_endpoints;
    int64_t start_ms, duration_ms;
};

struct hearth_profiled_requests {
    struct hearth_profiled_request *requests; /* the latest first */
    size_t n;
    struct hearth_str tip; /* what is missing, and why; empty: nothing */
};

/* Requests that a trace task has snapshots of. NOT_FOUND; INVALID_ARGUMENT: it is no trace task. */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_of_task(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_profiled_requests *ret,
                                         struct hearth_err *err);

struct hearth_segment_range {
    struct hearth_str segment_id;
    bool has_range; /* else: all of it */
    int64_t start_ms, end_ms;
};

/*
 * Trees of their thread snapshots; where there are none, of the CPU profiles of Go programs, whose samples have no
 * moments: ranges do not count then. INVALID_ARGUMENT: none, or more than max_analyzed_segments.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_analyze(const struct hearth_call *call,
                                         const struct hearth_segment_range *ranges, size_t n,
                                         struct hearth_snapshot_trees *ret,
                                         struct hearth_str *ret_tip, struct hearth_err *err);

#endif
