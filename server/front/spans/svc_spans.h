/* svc_spans.h -- helpers of hearth.v1.TraceProfileService. Threads: pure. */
#ifndef HEARTH_FRONT_SVC_SPANS_H
#define HEARTH_FRONT_SVC_SPANS_H

#include "hearth/engine/span_profiles.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "rpc/message_map.h"

struct hearth_rpc;

/* struct hearth_stored_span to hearth.v1.StoredSpan. */
extern const struct hearth_message_map hearth_stored_span_map;

/* A stored span as a message, in the request's arena; NULL when it is full. */
Hearth__V1__StoredSpan *hearth_rpc_stored_span(struct hearth_rpc *rpc,
                                               const struct hearth_stored_span *stored);
/* n ids as 16 hexadecimal digits each, in the request's arena; NULL when it is full. */
char **hearth_rpc_span_texts(struct hearth_rpc *rpc, const uint64_t *ids, size_t n);

#endif
