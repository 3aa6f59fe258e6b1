/*
 * data_lock.h -- one hearthd for each data directory: a lock on DIR/lock (private to app).
 *
 * The kernel holds the lock for the process (fcntl(2), F_SETLK) and releases it when the process ends, however it
 * ends. The file itself stays and is empty. Children do not inherit the lock, so a PostgreSQL that outlives its
 * hearthd does not keep it.
 *
 * Threads:   not thread-safe; called by main at start and at the end.
 */
#ifndef HEARTH_APP_DATA_LOCK_H
#define HEARTH_APP_DATA_LOCK_H

#include "hearth/base/status.h"

/* HEARTH_FAILED_PRECONDITION names the process that has it. *ret_fd holds the lock until it is closed; no other
 * descriptor of that file may be closed meanwhile, since that releases the lock, too. */
HEARTH_MUST_CHECK
enum hearth_status hearth_data_lock_take(const char *dir, int *ret_fd, struct hearth_err *err);

#endif
