/*
 * linger.h -- connections that were answered before their request had come whole.
 *
 * To close such a connection resets it, and the client, which is still sending, may never read its answer. So a copy of
 * the descriptor stays open for a moment after the library has closed its own, and what comes in is dropped.
 *
 * Threads: adding from any; everything else by the acceptor's.
 */
#ifndef HEARTH_FRONT_LINGER_H
#define HEARTH_FRONT_LINGER_H

#include "hearth/base/status.h"

struct hearth_lingers;

HEARTH_MUST_CHECK
enum hearth_status hearth_lingers_new(struct hearth_lingers **ret_lingers, struct hearth_err *err);
void hearth_lingers_free(struct hearth_lingers *lingers); /* NULL-safe; closes all */
/* Readable when there is something to drop. */
int hearth_lingers_fd(const struct hearth_lingers *lingers);
/* The descriptor stays its owner's, who reads no more from it. Does nothing when too many linger already. */
void hearth_lingers_add(struct hearth_lingers *lingers, int fd);
/* Drop what has come; close those that have ended, brought too much or had their time. */
void hearth_lingers_work(struct hearth_lingers *lingers, int64_t now_mono_ns);

#endif
