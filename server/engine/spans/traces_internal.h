/*
 * traces_internal.h -- declarations shared by the intakes of spans (private to the engine): rates,
 * times, segments to rows, the queue.
 *
 *   traces.c           segments and snapshots of SkyWalking's agents
 *   exported_spans.c   spans of OpenTelemetry
 */
#ifndef HEARTH_ENGINE_TRACES_INTERNAL_H
#define HEARTH_ENGINE_TRACES_INTERNAL_H

#include "hearth/engine/traces.h"
#include "hearth/store/store_spans.h"

#include "select/query_internal.h"

/* An item that waits to be committed, with copies of everything it refers to. */
struct hearth_taken {
    struct hearth_trace_item item;
    struct hearth_arena arena;
    hearth_traces_done_fn *done;
    void *context;
};

/* Make an item; NULL: no memory. */
struct hearth_taken *hearth_taken_new(const struct hearth_call *call,
                                      const struct hearth_limits *limits,
                                      const struct hearth_traces_waiter *waiter);
void hearth_taken_free(struct hearth_taken *taken);
/* Submit an item. Takes it; after a failure it is freed, and waiter->waits is false. */
HEARTH_MUST_CHECK
enum hearth_status hearth_taken_submit(const struct hearth_call *call, struct hearth_taken *taken,
                                       struct hearth_traces_waiter *waiter, struct hearth_err *err);

/*
 * Whether the tenant may have all n items now. After an idle second, more than a second's worth is
 * allowed once, and then paid off.
 */
bool hearth_rate_all(struct hearth_query_engine *engine,
                     struct hearth_segment_rate slots[HEARTH_RATE_SLOTS], struct hearth_str tenant,
                     int64_t rate, size_t n);

/*
 * The range in which spans may begin, both ends included: within retention, and not in the future.
 */
void hearth_span_times(const struct hearth_call *call, const struct hearth_limits *limits,
                       int64_t *ret_oldest_ns, int64_t *ret_newest_ns);

/* Truncate a text to at most max bytes, without splitting a character; sets *is_cut if it does. */
void hearth_span_text_cut(struct hearth_str *text, size_t max, bool *is_cut);
/* Truncate all texts of a span. */
void hearth_span_cut(struct hearth_span *span, const struct hearth_limits *limits, bool *is_cut);

/* Make the stored form of a segment, in arena, truncated to the limits. The segment has spans. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_group_make(struct hearth_segment *segment,
                                          const struct hearth_limits *limits,
                                          struct hearth_arena *arena, struct hearth_span_group *ret,
                                          struct hearth_err *err);

#endif
