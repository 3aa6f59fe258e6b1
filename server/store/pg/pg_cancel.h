/*
 * pg_cancel.h -- cancelling a statement without waiting for a database that is silent (private to
 * the store).
 *
 * PQcancel waits until PostgreSQL closes the connection of the request, and has no limit:
 * keepalives and tcp_user_timeout do not help while the kernel of a stopped or hung server
 * acknowledges what it receives. So a thread sends the request, and is left behind if it does not
 * end soon.
 *
 * Limits:  HEARTH_PG_CANCEL_WAIT_NS for the caller; HEARTH_PG_MAX_CANCELS threads at a time, beyond
 *          which no request is sent: the statement ends by PostgreSQL's own limits.
 * Threads: safe.
 */
#ifndef HEARTH_STORE_PG_CANCEL_H
#define HEARTH_STORE_PG_CANCEL_H

#include "hearth/base/clock.h"

#include <libpq-fe.h>

#define HEARTH_PG_CANCEL_WAIT_NS HEARTH_NS_PER_SEC
#define HEARTH_PG_MAX_CANCELS    64

/*
 * Ask PostgreSQL to cancel the statements that run on the connections, at most
 * HEARTH_PG_MAX_CANCELS, which may be closed after this call. Requests may still be on their way
 * then, or may not have been sent.
 */
void hearth_pg_cancel_statements(PGconn *const *conns, size_t n);

#endif
