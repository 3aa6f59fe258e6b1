/* request_log.h -- the log line and the metrics of each request that has ended. Threads: safe. */
#ifndef HEARTH_FRONT_REQUEST_LOG_H
#define HEARTH_FRONT_REQUEST_LOG_H

#include "rpc/rpc.h"

/* Logs server faults at warn and slow requests at info, both rate limited; all others at debug. */
void hearth_request_log(struct hearth_rpc *rpc, int64_t now_mono_ns);

/*
 * Notes a refusal for `hearth admin errors`, of a part of an upload that is answered with OK. Whole
 * uploads that are refused are noted by hearth_request_log. code: static.
 */
void hearth_request_note_refusal(const struct hearth_rpc *rpc, const char *code,
                                 const char *message);

/* Logs that an answer in pieces could not be completed, so that its connection was closed. */
void hearth_request_log_cut(const struct hearth_rpc *rpc);

#endif
