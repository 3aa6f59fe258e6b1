/*
 * spans.h -- spans of traces: what is kept of them, how they are stored, and which segments of a request belong together.
 *
 * One shape for SkyWalking's segments and for spans of OpenTelemetry. Spans that were recorded together are stored
 * together: a SkyWalking segment (one thread's part of a request), or the spans of one trace in one export. Ids of
 * traces and segments are texts, or bytes (of OpenTelemetry: 16 for a trace); a text of 32 hexadecimal digits
 * means its 16 bytes. The id of a span is a number: SkyWalking's within the segment, or OpenTelemetry's eight bytes.
 *
 * Units:     nanoseconds since the epoch.
 * Ownership: decoded spans in the arena, texts borrow from the bytes.
 * Threads:   pure.
 */
#ifndef HEARTH_MODEL_SPANS_H
#define HEARTH_MODEL_SPANS_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

/* Numbers are stored. */
enum hearth_span_kind {
    HEARTH_SPAN_LOCAL = 0, /* OpenTelemetry: internal */
    HEARTH_SPAN_ENTRY = 1, /* server */
    HEARTH_SPAN_EXIT = 2,  /* client */
    HEARTH_SPAN_PRODUCER = 3,
    HEARTH_SPAN_CONSUMER = 4,
};
#define HEARTH_N_SPAN_KINDS 5

enum hearth_span_status {
    HEARTH_SPAN_UNSET = 0,
    HEARTH_SPAN_OK = 1,
    HEARTH_SPAN_ERROR = 2,
};
#define HEARTH_N_SPAN_STATUSES 3

/* Where the work was called from. */
struct hearth_span_ref {
    bool across_threads; /* of one process; else across processes */
    struct hearth_str trace_id, segment_id;
    int64_t span_id;
    struct hearth_str service, instance, endpoint, address;
};

struct hearth_span_tag {
    struct hearth_str key, value;
};

struct hearth_span_log {
    int64_t at_ns;
    struct hearth_span_tag *tags;
    size_t n_tags;
};

struct hearth_span {
    int64_t span_id, parent_id;
    bool has_parent;
    bool skip_analysis;
    enum hearth_span_kind kind;
    enum hearth_span_status status;
    int64_t start_ns, end_ns;
    struct hearth_str name, peer;
    int32_t layer, component; /* SkyWalking's numbers; 0: unknown */
    struct hearth_span_ref *refs;
    size_t n_refs;
    struct hearth_span_tag *tags;
    size_t n_tags;
    struct hearth_span_log *logs;
    size_t n_logs;
};

/* Append the packed form, times relative to origin_ns (the decoder needs the same). */
void hearth_spans_encode(const struct hearth_span *spans, size_t n, int64_t origin_ns,
                         struct hearth_buf *out);
/* CORRUPT for other bytes, NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_spans_decode(struct hearth_str bytes, int64_t origin_ns,
                                       struct hearth_arena *arena, struct hearth_span **ret,
                                       size_t *ret_n, struct hearth_err *err);

/* What an id is found by: the same for a text of 32 hexadecimal digits and for the 16 bytes that they mean. */
int64_t hearth_trace_key(struct hearth_str id, bool is_raw);

/* ---- requests ---- */

struct hearth_request_segment {
    struct hearth_str trace_id, segment_id, instance;
    int32_t service_id;
    const struct hearth_span *spans; /* by id */
    size_t n_spans;
    bool is_profiled;
};

/* Segments that one request went through in one instance, from thread to thread: a parent stands before its children. */
struct hearth_request {
    const struct hearth_request_segment **segments;
    size_t n_segments;
};

/*
 * Segments whose first span was called across threads from a segment of the same trace and instance join that one's
 * request, and so on; who was called across processes, or by nobody known, begins one. Requests without a profiled
 * segment are left out. In the order of `segments`.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_requests_make(const struct hearth_request_segment *segments, size_t n,
                                        struct hearth_arena *arena, struct hearth_request **ret,
                                        size_t *ret_n, struct hearth_err *err);

#endif
