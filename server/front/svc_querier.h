/* svc_querier.h -- what the two files of querier.v1 share. Threads: pure. */
#ifndef HEARTH_FRONT_SVC_QUERIER_H
#define HEARTH_FRONT_SVC_QUERIER_H

#include "hearth/engine/query.h"
#include "hearth/pb/types/v1/types.pb-c.h"

struct hearth_rpc;

struct hearth_query hearth_rpc_query(struct hearth_rpc *rpc, int64_t start_ms, int64_t end_ms);
/* Views of C strings, in the request's arena; NULL when it is full. */
struct hearth_str *hearth_rpc_strs(struct hearth_rpc *rpc, char *const *texts, size_t n);
/* A NUL-terminated copy in the request's arena. */
char *hearth_rpc_text(struct hearth_rpc *rpc, struct hearth_str text);
/* Labels as messages, in the request's arena; false when it is full. */
HEARTH_MUST_CHECK bool hearth_rpc_labels(struct hearth_rpc *rpc,
                                         const struct hearth_labels *labels,
                                         Types__V1__LabelPair ***ret_pairs);
/* End with the standard complaint of a full arena. */
void hearth_rpc_end_full(struct hearth_rpc *rpc);

#endif
