/*
 * spans.h -- spans of traces: their members, their stored form, and which segments form a request.
 *
 * SkyWalking's segments and OpenTelemetry's spans have the same form. Spans recorded together are
 * stored together: a SkyWalking segment (one thread's part of a request), or the spans of one trace
 * in one export. Ids of traces and segments are texts, or bytes (OpenTelemetry: 16 for a trace); a
 * text of 32 hexadecimal digits means its 16 bytes. The id of a span is a number: SkyWalking's
 * number within the segment, or OpenTelemetry's eight bytes.
 *
 * Units:     nanoseconds since the epoch.
 * Ownership: decoded spans live in the arena; their texts borrow from the bytes.
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

/* The caller of the work. */
struct hearth_span_ref {
    bool across_threads; /* true: another thread of the same process; false: another process */
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
/* The reverse, with the same origin_ns. CORRUPT for damaged bytes; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_spans_decode(struct hearth_str bytes, int64_t origin_ns,
                                       struct hearth_arena *arena, struct hearth_span **ret,
                                       size_t *ret_n, struct hearth_err *err);

/*
 * The number under which an id is indexed. A text of 32 hexadecimal digits has the same key as the
 * 16 bytes that it means (is_raw: the id is bytes).
 */
int64_t hearth_trace_key(struct hearth_str id, bool is_raw);

/* ---- requests ---- */

struct hearth_request_segment {
    struct hearth_str trace_id, segment_id, instance;
    int32_t service_id;
    const struct hearth_span *spans; /* sorted by id */
    size_t n_spans;
    bool is_profiled;
};

/* The segments of one request in one instance, over all its threads; parents precede children. */
struct hearth_request {
    const struct hearth_request_segment **segments;
    size_t n_segments;
};

/*
 * Group segments into requests. A segment whose first span was called across threads from another
 * segment of the same trace and instance belongs to the request of that segment. A segment that was
 * called across processes, or by an unknown caller, begins a request. Requests without a profiled
 * segment are omitted. Requests are in the order of `segments`. Arrays in arena. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_requests_make(const struct hearth_request_segment *segments, size_t n,
                                        struct hearth_arena *arena, struct hearth_request **ret,
                                        size_t *ret_n, struct hearth_err *err);

#endif
