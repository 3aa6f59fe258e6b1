/*
 * client_waits.h -- the calls that wait for their clients, each with the time when it is overdue.
 *
 * A wait is a member of what the transport keeps of its call. The list does not own it.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_FRONT_CLIENT_WAITS_H
#define HEARTH_FRONT_CLIENT_WAITS_H

#include <grpc/grpc.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: in no list. */
struct hearth_client_wait {
    struct hearth_client_wait *prev, *next;
    grpc_call *call; /* NULL: in no list */
    int64_t until_mono_ns;
};

/* Zeroed: empty. */
struct hearth_client_waits {
    struct hearth_client_wait *oldest, *newest;
};

/* Adds a wait that is in no list. */
void hearth_client_waits_add(struct hearth_client_waits *waits, struct hearth_client_wait *wait,
                             grpc_call *call, int64_t until_mono_ns);
/* Does nothing if the wait is in no list. */
void hearth_client_waits_remove(struct hearth_client_waits *waits, struct hearth_client_wait *wait);
/* Removes overdue waits, at most `max`, the oldest first. Returns their number; `out` has their
 * calls. */
size_t hearth_client_waits_take_overdue(struct hearth_client_waits *waits, int64_t now_mono_ns,
                                        grpc_call **out, size_t max);

/*
 * When a client must have taken an answer that is sent now: after head_timeout_ns, and the time of
 * its bytes at the rate. Returns INT64_MAX, no limit, if one of the two is 0.
 */
int64_t hearth_client_answer_limit(int64_t now_mono_ns, size_t n_bytes, int64_t head_timeout_ns,
                                   int64_t bytes_per_s);

#endif
