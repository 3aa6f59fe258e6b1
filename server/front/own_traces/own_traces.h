/*
 * own_traces.h -- sends traces of hearthd's own requests to a receiver of OTLP/HTTP.
 *
 * Ended spans wait in a queue of HEARTH_OWN_SPANS_QUEUED. A thread sends them each second, or when
 * the queue is half full. When the queue is full, spans are dropped. hearth_own_spans_total counts
 * by outcome: sent, dropped, failed.
 *
 * Threads: hearth_own_traces_record is safe; start and stop from one thread.
 * Source:  OTLP 1.x over HTTP with protobuf.
 */
#ifndef HEARTH_FRONT_OWN_TRACES_H
#define HEARTH_FRONT_OWN_TRACES_H

#include "hearth/base/status.h"

#include "own_traces/own_spans.h"

#define HEARTH_OWN_SPANS_QUEUED 1024u

struct hearth_own_traces;

/* INVALID_ARGUMENT unless `url` is http:// or https:// and `one_in` is at least 1. */
HEARTH_MUST_CHECK enum hearth_status hearth_own_traces_check(const char *url, int64_t one_in,
                                                             struct hearth_err *err);
/* url and version are kept. */
HEARTH_MUST_CHECK enum hearth_status hearth_own_traces_start(const char *url, const char *version,
                                                             struct hearth_own_traces **ret,
                                                             struct hearth_err *err);
/* Copies the span. Never waits for the receiver. */
void hearth_own_traces_record(struct hearth_own_traces *traces, const struct hearth_own_span *span);
/* Sends what is queued, once and for at most two seconds, and frees. NULL-safe. */
void hearth_own_traces_stop(struct hearth_own_traces *traces);

#endif
