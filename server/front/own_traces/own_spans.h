/*
 * own_spans.h -- ended spans of hearthd's own requests, as OTLP.
 *
 * Threads: pure.
 * Source:  opentelemetry-proto 1.x, ExportTraceServiceRequest; names of attributes as in the
 *          semantic conventions for RPC, and hearth.*.
 */
#ifndef HEARTH_FRONT_OWN_SPANS_H
#define HEARTH_FRONT_OWN_SPANS_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/work_steps.h"
#include "hearth/model/trace_ids.h"

#define HEARTH_OWN_SPAN_TEXT 80u

struct hearth_own_span {
    struct hearth_trace_id trace;
    uint64_t span, parent;        /* parent 0: none */
    const char *name;             /* static: the method or route */
    const char *transport, *code; /* static */
    bool is_fault;                /* the server failed, not the caller */
    char tenant[HEARTH_OWN_SPAN_TEXT], request_id[HEARTH_OWN_SPAN_TEXT];
    int64_t began_mono_ns, ended_mono_ns;
    struct hearth_work_steps steps;
};

/*
 * Appends n spans as one ExportTraceServiceRequest.
 *
 * version         of hearthd
 * mono_to_wall_ns  what to add to a monotonic time for nanoseconds since the epoch
 *
 * Returns OK; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_own_spans_encode(const struct hearth_own_span *spans, size_t n,
                                           const char *version, int64_t mono_to_wall_ns,
                                           struct hearth_arena *arena, struct hearth_buf *out,
                                           struct hearth_err *err);

#endif
