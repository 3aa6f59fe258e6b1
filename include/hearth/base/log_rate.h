/* log_rate.h -- at most so many log lines of a kind in a second. Threads: safe. */
#ifndef HEARTH_BASE_LOG_RATE_H
#define HEARTH_BASE_LOG_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing logged yet. */
struct hearth_log_rate {
    _Atomic int64_t window_s; /* the second that is counted, by the monotonic clock */
    _Atomic int n_in_window;  /* lines asked for in it */
    _Atomic int n_missed;     /* lines refused since the last line that was allowed */
};

/*
 * True at most `per_second` times a second. *ret_missed: how often it returned false since the last
 * true.
 */
bool hearth_log_rate_take(struct hearth_log_rate *rate, int per_second, int64_t now_mono_ns,
                          int *ret_missed);

#endif
