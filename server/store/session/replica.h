/*
 * replica.h -- reads on a streaming replica that has all acknowledged data (private to the store).
 *
 * Before a read, the primary reports how far its WAL is on disk: all acknowledged data lies before
 * that position. If the replica replays this position within read_wait_ns, the read runs on the
 * replica, otherwise on the primary. So both nodes return the same rows.
 *
 * After a replica was late or lost, reads do not try it for a while (replica.c): so a query of
 * several statements waits only once.
 *
 * Reads use it through hearth_store_read_with_pg (session.h).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_REPLICA_H
#define HEARTH_STORE_REPLICA_H

#include "hearth/store/store.h"

#include "pg/pg.h"

struct hearth_replica;

/*
 * Uses read_url, read_wait_ns, max_readers (connections) and statement_timeout_ms of the options;
 * texts are copied. INVALID_ARGUMENT: libpq cannot parse the URL.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_replica_new(const struct hearth_store_options *options,
                                                        struct hearth_replica **ret_replica,
                                                        struct hearth_err *err);
void hearth_replica_free(struct hearth_replica *replica); /* NULL-safe */

struct hearth_replica_look {
    int64_t lag_bytes; /* bytes of the primary's WAL that the replica has not replayed */
    bool feedback;     /* hot_standby_feedback */
};

/*
 * Read the present state of the replica, also while reads do not try it. UNAVAILABLE: it cannot be
 * used; the message says why.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_replica_look(struct hearth_replica *replica,
                                                         struct hearth_pg *primary,
                                                         struct hearth_replica_look *ret,
                                                         struct hearth_err *err);

#endif
