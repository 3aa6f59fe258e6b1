/*
 * pg_wait.h -- what connecting and statements share: texts of libpq, and waiting in steps (private
 * to the room).
 *
 * Threads: pure functions.
 */
#ifndef HEARTH_STORE_PG_WAIT_H
#define HEARTH_STORE_PG_WAIT_H

#include "pg/pg.h"

#include <stdint.h>

/* Write libpq's text as one line: runs of white space become one blank, the end is trimmed. */
void hearth_pg_flatten(const char *text, char out[320]);

/*
 * Return how many ms poll(2) may wait until a monotonic time: at most one step of 50 ms. Never
 * negative, which would mean for ever: a deadline may pass between the check and the wait.
 */
int hearth_pg_limit_poll(int64_t until_mono_ns, int64_t now_ns);

/*
 * Called at the end of each message. If PostgreSQL answered a commit that its synchronous standby
 * may lack, close the connection: UNAVAILABLE, with *ret_fault CONNECTION. ret_fault: may be NULL.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_check_standby(struct hearth_pg *pg,
                                                             enum hearth_pg_fault *ret_fault,
                                                             struct hearth_err *err);

#endif
