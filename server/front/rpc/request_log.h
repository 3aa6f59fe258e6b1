/* request_log.h -- one line and the metrics of every ended request. Threads: safe. */
#ifndef HEARTH_FRONT_REQUEST_LOG_H
#define HEARTH_FRONT_REQUEST_LOG_H

#include "rpc/rpc.h"

/* Access at debug; server faults at warn and slow requests at info, both rate limited. */
void hearth_request_log(struct hearth_rpc *rpc, int64_t now_mono_ns);

/* The text of an answer in pieces could not be finished, and its client saw the connection end. */
void hearth_request_log_cut(const struct hearth_rpc *rpc);

#endif
