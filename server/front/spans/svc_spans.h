/*
 * svc_spans.h -- messages of hearth.v1.TraceProfileService.
 *
 * Threads: the thread that runs the request; maps are constants.
 */
#ifndef HEARTH_FRONT_SVC_SPANS_H
#define HEARTH_FRONT_SVC_SPANS_H

#include "rpc/message_map.h"

struct hearth_rpc;

/* struct hearth_stored_span to hearth.v1.StoredSpan. */
extern const struct hearth_message_map hearth_stored_span_map;

/* n ids as 16 hexadecimal digits each, in the request's arena; NULL when it is full. */
char **hearth_rpc_span_texts(struct hearth_rpc *rpc, const uint64_t *ids, size_t n);

#endif
