/*
 * exported_spans.h -- spans received by OpenTelemetry's protocol: which are kept, and how they
 * become rows.
 *
 * The spans of one trace and resource in one export are a group (store/store_spans.h). They are
 * sorted by start and stored in rows of at most max_segment_spans and max_segment_bytes. A row's
 * segment id is the 16 bytes of its trace id and 8 bytes of a hash of its span ids. So a repeated
 * export makes the same rows, and an export that was split into requests differently never hides
 * spans. Names and attributes longer than max_span_text_bytes are truncated.
 *
 * Ownership: inputs are borrowed during the call, and modified.
 * Threads:   safe.
 * Source:    OpenTelemetry protocol 1.10 (OTLP), trace signal; docs/reference/otlp.md.
 */
#ifndef HEARTH_ENGINE_EXPORTED_SPANS_H
#define HEARTH_ENGINE_EXPORTED_SPANS_H

#include "hearth/engine/traces.h"
#include "hearth/model/trace_ids.h"

struct hearth_exported_span {
    struct hearth_trace_id trace;
    struct hearth_span span; /* no id is 0; an invalid time is INT64_MIN */
};

/* A program that recorded spans, and its spans. */
struct hearth_export_resource {
    struct hearth_str service, instance;
    struct hearth_exported_span *spans;
    size_t n_spans;
};

/* Numbers of dropped spans, by reason. */
struct hearth_export_outcome {
    size_t n_untimely; /* began before the retained time, or in the future */
    size_t n_too_many; /* exceeded max_otlp_span_rate */
    size_t n_sampled;  /* dropped by sampling, as configured */
};

/*
 * Take the spans of an export.
 *
 * waiter->waits true: `done` is called exactly once, when all kept spans are committed. False: it
 * is not called. UNAVAILABLE: too many spans wait to be committed; no span is taken.
 *
 * ratio    fraction of all traces that is kept, 0 to 1
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_traces_take_export(const struct hearth_call *call, double ratio,
                                             struct hearth_export_resource *resources, size_t n,
                                             struct hearth_traces_waiter *waiter,
                                             struct hearth_export_outcome *ret,
                                             struct hearth_err *err);

/*
 * Whether sampling keeps a trace. The answer is the same for all spans of the trace and on every
 * server, and independent of earlier samplers. Pure.
 */
bool hearth_trace_is_kept(struct hearth_trace_id trace, double ratio);

#endif
