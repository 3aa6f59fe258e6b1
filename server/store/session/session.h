/*
 * session.h -- running statements: the state of the store, connections, retries, transactions
 * (private to the store).
 *
 * Whether the store is open, and why it is not; a connection for a callback, which runs again after
 * a lost connection or a passing fault; transactions, optionally one at a time per tenant; the row
 * of this writer.
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_SESSION_H
#define HEARTH_STORE_SESSION_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/* ---- readiness ---- */

/* UNAVAILABLE, with the reason: the store is not migrated and loaded yet, or is closing. */
HEARTH_MUST_CHECK enum hearth_status hearth_store_check_open(struct hearth_store *store,
                                                             struct hearth_err *err);
/*
 * The same, and UNAVAILABLE with the reason if nothing may be written. For writes that begin in
 * memory: statements that write fail by themselves (struct hearth_pg, read_only).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_store_check_writable(struct hearth_store *store,
                                                                 struct hearth_err *err);
/*
 * Set the reason why the store is not ready, which /ready returns. Returns whether it differs from
 * the previous reason.
 */
bool hearth_store_set_reason(struct hearth_store *store, const char *reason);
/* Record and log that the database cannot be reached, or can be reached again. */
void hearth_store_note_away(struct hearth_store *store, const char *reason);
void hearth_store_note_back(struct hearth_store *store);

/* ---- connections ---- */

/*
 * Work on a connection. If it fails with *ret_fault CONNECTION or RETRY, it is called again,
 * perhaps on another connection.
 */
typedef enum hearth_status hearth_with_pg_fn(void *context, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err);

/*
 * Run `fn` on a connection of the pool; after a lost connection or a passing fault again, up to
 * four times in all. OK means that the synchronous standbys, if there are any, have all that these
 * attempts committed. Its statements see only rows of the scope's tenants (wall.h); the arena of
 * the scope is not used.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_store_with_pg(const struct hearth_scope *scope,
                                                          hearth_with_pg_fn *fn, void *context,
                                                          struct hearth_err *err);

/* The same with statements that see the rows of all tenants. cancel: may be NULL. */
HEARTH_MUST_CHECK enum hearth_status hearth_store_as_owner(struct hearth_store *store,
                                                           struct hearth_cancel *cancel,
                                                           hearth_with_pg_fn *fn, void *context,
                                                           struct hearth_err *err);

/* A read for the tenants of a scope. */
struct hearth_store_reader {
    const struct hearth_scope *scope;
    const int32_t *services; /* whose stored profiles are read; may be NULL */
    size_t n_services;
    hearth_with_pg_fn *fn;
    void *context;
};

/*
 * hearth_store_with_pg for statements that only read: they run on the node of distributed tables
 * that owns all services of the reader (node_reads.h); or on the replica, if there is one and it
 * has all data that was committed before the call (replica.c). ABORTED: the replica gave up the
 * read after rows were delivered; the caller begins again.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_store_read_with_pg(const struct hearth_store_reader *reader, struct hearth_err *err);

/* ---- transactions ---- */

/* A transaction that hearth_store_in_transaction has begun. */
struct hearth_transaction {
    const struct hearth_scope *scope;
    struct hearth_pg *pg;
    struct hearth_arena *arena; /* for parameters and intermediate rows; empty at each attempt */
    /*
     * 1 at first. Above 1: earlier attempts met a passing fault; their COMMIT may have been
     * executed although its result was lost.
     */
    unsigned attempt;
    enum hearth_pg_fault fault; /* fault of the latest failed statement, or NONE */
};

/* The statements of a transaction. May be called several times. */
typedef enum hearth_status hearth_transaction_fn(void *context,
                                                 struct hearth_transaction *transaction,
                                                 struct hearth_err *err);

/*
 * Check that the store is open, BEGIN (READ COMMITTED), run `fn`, and COMMIT if it returns OK,
 * otherwise ROLLBACK. It sees rows of the scope's tenants only. All of it runs again after a lost
 * connection or a passing fault, a few times; OK only when the synchronous standbys, if there are
 * any, have what was committed. scope->arena may be NULL; its limit holds for the
 * transaction's arena, too.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_store_in_transaction(const struct hearth_scope *scope,
                                                                 hearth_transaction_fn *fn,
                                                                 void *context,
                                                                 struct hearth_err *err);

/*
 * Take the lock of the scope's tenant, and hold it until the end of the transaction. Other
 * transactions of the tenant that take it wait.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_transaction_lock_tenant(struct hearth_transaction *transaction, struct hearth_err *err);

/* ---- synchronous standbys ---- */

/*
 * Writes a message to the WAL. A commit without writes waits for no standby; with this one, it
 * waits for all that was committed before.
 */
#define HEARTH_SQL_SETTLE "SELECT pg_logical_emit_message(true, 'hearth', 'settled')"

/*
 * Wait until the synchronous standbys, if there are any, have everything that is committed. Outside
 * a transaction; without standbys it takes as long as one fsync.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_session_await_standbys(struct hearth_pg *pg,
                                                                   enum hearth_pg_fault *ret_fault,
                                                                   struct hearth_err *err);

/* ---- rows that statements rely on ---- */

/* Insert a row into hearth_data.writer; *ret_writer_id is its id, which no other server has. */
HEARTH_MUST_CHECK enum hearth_status hearth_writer_register(struct hearth_pg *pg,
                                                            struct hearth_cancel *cancel,
                                                            int32_t *ret_writer_id,
                                                            struct hearth_err *err);

/* Run `fn` on the primary, with a wall or without. Used by hearth_store_read_with_pg. */
HEARTH_MUST_CHECK enum hearth_status
hearth_store_run_on_primary(struct hearth_store *store, struct hearth_cancel *cancel,
                            const struct hearth_pg_params *wall, hearth_with_pg_fn *fn,
                            void *context, struct hearth_err *err);

/* BEGIN, and take the lock of the tenant as above. The caller commits or rolls back. */
HEARTH_MUST_CHECK enum hearth_status
hearth_tenant_begin(struct hearth_pg *pg, struct hearth_str tenant, struct hearth_cancel *cancel,
                    enum hearth_pg_fault *ret_fault, struct hearth_err *err);

#endif
