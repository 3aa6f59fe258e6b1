/* request_log.h -- one line and the metrics of every ended request. Threads: safe. */
#ifndef HEARTH_FRONT_REQUEST_LOG_H
#define HEARTH_FRONT_REQUEST_LOG_H

#include "rpc/rpc.h"

/* Access at debug; server faults at warn and slow requests at info, both rate limited. */
void hearth_request_log(struct hearth_rpc *rpc, int64_t now_mono_ns);

/* The text of an answer in pieces could not be finished, and its client saw the connection end. */
void hearth_request_log_cut(const struct hearth_rpc *rpc);

/* True at most `per_second` times a second; *ret_missed counts the refusals since the last true. */
struct hearth_log_rate {
    _Atomic int64_t window_s;
    _Atomic int n_in_window, n_missed;
};
bool hearth_log_rate_take(struct hearth_log_rate *rate, int per_second, int64_t now_mono_ns,
                          int *ret_missed);

#endif
