/*
 * data_lock.h -- allows one hearthd per data directory: a lock on DIR/lock (private to app).
 *
 * The lock belongs to the process (fcntl(2), F_SETLK), and the kernel releases it when the process
 * ends, in any way. The file is empty and remains. Children do not inherit the lock, so a
 * PostgreSQL that outlives its hearthd does not hold it.
 *
 * Threads:   not thread-safe; called by main at the start and at the end.
 */
#ifndef HEARTH_APP_DATA_LOCK_H
#define HEARTH_APP_DATA_LOCK_H

#include "hearth/base/status.h"

/*
 * Take the lock. HEARTH_FAILED_PRECONDITION, with the process that has it. *ret_fd holds the lock
 * until it is closed; no other descriptor of that file may be closed meanwhile, because that would
 * release the lock, too.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_data_lock_take(const char *dir, int *ret_fd, struct hearth_err *err);

#endif
