/*
 * exported_spans.h -- spans by OpenTelemetry's protocol: which are kept, and how they become rows.
 *
 * The spans of one trace and resource in one export are a group (store/store_spans.h): in the order in which they began, in rows of
 * at most max_segment_spans and max_segment_bytes. A row's segment id is the 16 bytes of its trace and 8 of a hash of its span
 * ids: the same export again is the same row, and one that was cut into requests otherwise never hides spans. Names and
 * attributes beyond max_span_text_bytes are cut.
 *
 * Ownership: what is taken is borrowed during the call, and changed.
 * Threads:   safe.
 * Source:    OpenTelemetry protocol 1.10 (OTLP), trace signal; docs/reference/otlp.md.
 */
#ifndef HEARTH_ENGINE_EXPORTED_SPANS_H
#define HEARTH_ENGINE_EXPORTED_SPANS_H

#include "hearth/engine/traces.h"
#include "hearth/model/trace_ids.h"

struct hearth_exported_span {
    struct hearth_trace_id trace;
    struct hearth_span span; /* its id and its parent's are not 0; times that are none: INT64_MIN */
};

/* Who recorded them. */
struct hearth_export_resource {
    struct hearth_str service, instance;
    struct hearth_exported_span *spans;
    size_t n_spans;
};

/* Spans that are not kept, by reason. */
struct hearth_export_outcome {
    size_t n_untimely; /* they began before what is kept, or in the future */
    size_t n_too_many; /* max_otlp_span_rate */
    size_t n_sampled;  /* out: that is as it should be */
};

/*
 * *ret_waits: `done` will be called, once, when all that is kept was committed; else there is nothing to wait for.
 * UNAVAILABLE when too much waits to be committed: nothing is taken.
 *
 * ratio    the part of all traces that is kept, 0 to 1
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_take_export(const struct hearth_call *call, double ratio,
                                             struct hearth_export_resource *resources, size_t n,
                                             hearth_traces_done_fn *done, void *context,
                                             bool *ret_waits, struct hearth_export_outcome *ret,
                                             struct hearth_err *err);

/* The same for all spans of a trace, on every server; does not depend on what samplers before it looked at. Pure. */
bool hearth_trace_is_kept(struct hearth_trace_id trace, double ratio);

#endif
