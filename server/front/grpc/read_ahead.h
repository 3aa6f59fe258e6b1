/*
 * read_ahead.h -- messages of a client's stream that were read before their turn, so that neither the thread that reads
 * waits for the one that works, nor the other way round.
 *
 * Bounded in number and bytes, the message in work counted. All bytes are taken from a budget. When half of that is
 * used, the message is the last until it has had its turn; also when it is refused: it has been read, and is kept.
 *
 * Threads: one at a time; guarded by whoever has it.
 */
#ifndef HEARTH_FRONT_READ_AHEAD_H
#define HEARTH_FRONT_READ_AHEAD_H

#include "hearth/base/budget.h"

#include <grpc/byte_buffer.h>

#define HEARTH_AHEAD_MAX_MESSAGES 64u
#define HEARTH_AHEAD_MAX_BYTES    ((size_t)256 << 10)

/* A whole message. */
struct hearth_ahead_message {
    grpc_byte_buffer *body;
    size_t held; /* bytes of it taken from the budget: all or none */
};

/* All zero: empty. */
struct hearth_ahead {
    struct hearth_ahead_message ring[HEARTH_AHEAD_MAX_MESSAGES];
    size_t begin, n;
    size_t n_bytes; /* of those, and of the message in work */
    size_t work_bytes;
    bool is_short; /* the last one is the last for now: see above */
};

/* May another one be read? */
bool hearth_ahead_has_room(const struct hearth_ahead *ahead);
/* Takes the body over. There is room. */
void hearth_ahead_put(struct hearth_ahead *ahead, struct hearth_budget *budget,
                      grpc_byte_buffer *body);
/* The first one, which is in work from now on; the caller's, with what is held for it. There is one. */
struct hearth_ahead_message hearth_ahead_take(struct hearth_ahead *ahead);
/* What was taken is not in work any more. */
void hearth_ahead_done(struct hearth_ahead *ahead);
void hearth_ahead_clear(struct hearth_ahead *ahead, struct hearth_budget *budget);

#endif
