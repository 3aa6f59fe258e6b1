/*
 * replica.h -- reads on a streaming replica that has all that was acknowledged (private to the
 * store).
 *
 * Before a read, the primary says how far its WAL is on disk: everything acknowledged lies before
 * that. The read goes to the replica once it has replayed that far, for which it gets read_wait_ns;
 * otherwise to the primary. So the answer is that of the primary, whoever gives it.
 *
 * A replica that was late or lost is left alone for a while (replica.c): a query of several
 * statements waits once.
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_REPLICA_H
#define HEARTH_STORE_REPLICA_H

#include "hearth/store/store.h"

#include "pg/pg.h"

struct hearth_replica;

/* url: of a replica; at most n_connections at once. */
HEARTH_MUST_CHECK enum hearth_status hearth_replica_new(const struct hearth_store_options *options,
                                                        struct hearth_replica **ret_replica,
                                                        struct hearth_err *err);
void hearth_replica_free(struct hearth_replica *replica); /* NULL-safe */

struct hearth_replica_look {
    int64_t lag_bytes; /* of WAL, behind the primary */
    bool feedback;     /* hot_standby_feedback */
};

/* How it is now, whatever it was before. UNAVAILABLE with the reason. */
HEARTH_MUST_CHECK enum hearth_status hearth_replica_look(struct hearth_replica *replica,
                                                         struct hearth_pg *primary,
                                                         struct hearth_replica_look *ret,
                                                         struct hearth_err *err);

#endif
