/*
 * linger.h -- connections that are answered before their request is complete.
 *
 * Closing such a connection resets it, and the client, which is still sending, may never read its
 * answer. So a copy of the descriptor stays open for a moment after the library has closed its own,
 * and incoming bytes are dropped. Such a connection lingers.
 *
 * Threads: hearth_lingers_add from any; all other functions from the acceptor's thread.
 */
#ifndef HEARTH_FRONT_LINGER_H
#define HEARTH_FRONT_LINGER_H

#include "hearth/base/status.h"

struct hearth_lingers;

HEARTH_MUST_CHECK
enum hearth_status hearth_lingers_new(struct hearth_lingers **ret_lingers, struct hearth_err *err);
void hearth_lingers_free(struct hearth_lingers *lingers); /* NULL-safe; closes all */
/* An epoll descriptor, readable when a lingering connection has bytes to drop. Borrowed. */
int hearth_lingers_fd(const struct hearth_lingers *lingers);
/* Keeps a copy of fd. The owner of fd reads no more from it. Does nothing if too many linger. */
void hearth_lingers_add(struct hearth_lingers *lingers, int fd);
/* Drops incoming bytes; closes connections that have ended, sent too much or reached their time
 * limit. */
void hearth_lingers_work(struct hearth_lingers *lingers, int64_t now_mono_ns);

#endif
