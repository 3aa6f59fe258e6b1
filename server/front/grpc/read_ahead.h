/*
 * read_ahead.h -- messages of a client's stream that were read before the handler needs them, so
 * that the reading and the working thread do not wait for each other.
 *
 * The number of messages and their bytes are limited; the message in work counts, too. All bytes
 * are taken from a budget. When more than half of the budget is used, or it refuses the bytes of a
 * message, no further message is read until that one is in work. A message that the budget refused
 * is kept all the same, because it has been read.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_FRONT_READ_AHEAD_H
#define HEARTH_FRONT_READ_AHEAD_H

#include "hearth/base/budget.h"

#include <grpc/byte_buffer.h>

#define HEARTH_AHEAD_MAX_MESSAGES 64u
#define HEARTH_AHEAD_MAX_BYTES    ((size_t)256 << 10)

/* A complete message. */
struct hearth_ahead_message {
    grpc_byte_buffer *body;
    size_t held; /* bytes taken from the budget: those of the body, or 0 if it refused */
};

/* Zeroed: empty. */
struct hearth_ahead {
    struct hearth_ahead_message ring[HEARTH_AHEAD_MAX_MESSAGES];
    size_t begin, n;   /* the messages that wait: ring[begin], and so on */
    size_t n_bytes;    /* bytes of the waiting messages and of the message in work */
    size_t work_bytes; /* bytes of the message in work; 0: none */
    bool is_short;     /* the budget is short: no further message until the last one is in work */
};

/* True if another message may be read. */
bool hearth_ahead_has_room(const struct hearth_ahead *ahead);
/* Takes the body. The ring may not be full. */
void hearth_ahead_put(struct hearth_ahead *ahead, struct hearth_budget *budget,
                      grpc_byte_buffer *body);
/* Gives the first message, which is in work from now on, with its held bytes. n may not be 0. */
struct hearth_ahead_message hearth_ahead_take(struct hearth_ahead *ahead);
/* The message in work, if any, is done. */
void hearth_ahead_done(struct hearth_ahead *ahead);
/* Frees all messages and gives their bytes back to the budget. */
void hearth_ahead_clear(struct hearth_ahead *ahead, struct hearth_budget *budget);

#endif
