/*
 * traces_internal.h -- what intakes of spans share (private to the engine): rates, times, segments to rows, the queue.
 *
 *   traces.c           segments and snapshots of SkyWalking's agents
 *   exported_spans.c   spans of OpenTelemetry
 */
#ifndef HEARTH_ENGINE_TRACES_INTERNAL_H
#define HEARTH_ENGINE_TRACES_INTERNAL_H

#include "hearth/engine/traces.h"
#include "hearth/store/store_spans.h"

#include "select/query_internal.h"

/* What waits to be committed, with a copy of all that it refers to. */
struct hearth_taken {
    struct hearth_trace_item item;
    struct hearth_arena arena;
    hearth_traces_done_fn *done;
    void *context;
};

/* NULL without memory. */
struct hearth_taken *hearth_taken_new(const struct hearth_call *call,
                                      const struct hearth_limits *limits,
                                      hearth_traces_done_fn *done, void *context);
void hearth_taken_free(struct hearth_taken *taken);
/* Takes it; freed when nobody will wait for it. */
HEARTH_MUST_CHECK
enum hearth_status hearth_taken_submit(const struct hearth_call *call, struct hearth_taken *taken,
                                       bool *ret_waits, struct hearth_err *err);

/* How many of n the tenant may have now, of `rate` a second; a rate of 0: all. The slots are of the engine. */
size_t hearth_rate_some(struct hearth_query_engine *engine,
                        struct hearth_segment_rate slots[HEARTH_RATE_SLOTS],
                        struct hearth_str tenant, int64_t rate, size_t n);
/* All n or none. More than a second's worth is let through when nothing came for a second, and then paid for. */
bool hearth_rate_all(struct hearth_query_engine *engine,
                     struct hearth_segment_rate slots[HEARTH_RATE_SLOTS], struct hearth_str tenant,
                     int64_t rate, size_t n);

/* When spans may begin, both ends included: within what is kept, and not in the future. */
void hearth_span_times(const struct hearth_call *call, const struct hearth_limits *limits,
                       int64_t *ret_oldest_ns, int64_t *ret_newest_ns);

/* At most max bytes of whole characters. */
void hearth_span_text_cut(struct hearth_str *text, size_t max, bool *is_cut);
/* All texts of a span. */
void hearth_span_cut(struct hearth_span *span, const struct hearth_limits *limits, bool *is_cut);

/* A segment, as it is stored, in arena; cut to its limits on the way. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_group_make(struct hearth_segment *segment,
                                          const struct hearth_limits *limits,
                                          struct hearth_arena *arena, struct hearth_span_group *ret,
                                          struct hearth_err *err);

#endif
