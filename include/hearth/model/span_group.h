/*
 * span_group.h -- spans that were recorded together: a SkyWalking segment, or the spans of one
 * trace and resource in an OTLP export.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_SPAN_GROUP_H
#define HEARTH_MODEL_SPAN_GROUP_H

#include "hearth/model/spans.h"

struct hearth_span_group {
    struct hearth_str service;  /* at most HEARTH_AGENT_NAME_BYTES, not empty */
    struct hearth_str instance; /* at most HEARTH_AGENT_NAME_BYTES */
    struct hearth_str trace_id, segment_id;
    bool is_raw;                /* the ids are bytes, otherwise texts */
    int64_t start_ns, end_ns;   /* end >= start */
    struct hearth_str endpoint; /* name of the first span */
    enum hearth_span_kind kind; /* kind of the first span */
    bool has_error, is_cut;     /* is_cut: spans were left out */
    int32_t n_spans;
    struct hearth_str
        spans;          /* hearth_spans_encode with origin start_ns, as hearth_unpack reads it */
    int32_t service_id; /* answers only */
    /* Span ids to index (input only; empty for SkyWalking, whose ids are texts). */
    const uint64_t *span_ids;
    size_t n_span_ids;
};

#endif
