/*
 * session.h -- what every statement of the store goes through (private to the store).
 *
 * Whether the store is open, and why it is not; a connection for a callback, which runs again after
 * a lost connection or a passing fault; transactions, if need be one at a time per tenant; the row
 * of this writer.
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_SESSION_H
#define HEARTH_STORE_SESSION_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/* ---- readiness ---- */

/* OK, or UNAVAILABLE with the reason: not migrated and loaded yet, or closing. */
HEARTH_MUST_CHECK enum hearth_status hearth_store_check_open(struct hearth_store *store,
                                                             struct hearth_err *err);
/* Why the store is not ready: what /ready says. True when the reason is a new one. */
bool hearth_store_set_reason(struct hearth_store *store, const char *reason);
/* A connection of the committers was lost or is back: what /ready and the log say. */
void hearth_store_note_away(struct hearth_store *store, const char *reason);
void hearth_store_note_back(struct hearth_store *store);

/* ---- connections ---- */

/* What a pooled connection is taken for. *ret_fault CONNECTION or RETRY: run it again. */
typedef enum hearth_status hearth_with_pg_fn(void *context, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err);

/* Run `fn` on a pooled connection; again after a lost connection or a passing fault, a few times.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_store_with_pg(struct hearth_store *store,
                                                          struct hearth_cancel *cancel,
                                                          hearth_with_pg_fn *fn, void *context,
                                                          struct hearth_err *err);

/*
 * The same for statements that only read what was committed before the call: on the replica when
 * there is one and it is up to date (replica.c). ABORTED when it gave up after rows were delivered.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_store_read_with_pg(struct hearth_store *store,
                                                               struct hearth_cancel *cancel,
                                                               hearth_with_pg_fn *fn, void *context,
                                                               struct hearth_err *err);

/* ---- transactions ---- */

/* A transaction that hearth_store_in_transaction has begun. */
struct hearth_transaction {
    const struct hearth_scope *scope;
    struct hearth_pg *pg;
    struct hearth_arena
        *arena;       /* for parameters and intermediate rows: emptied after each attempt */
    unsigned attempt; /* 1, or more if earlier attempts met a passing fault: then their
                                 * COMMIT may have been executed although it was not answered */
    enum hearth_pg_fault fault; /* of the latest statement that failed */
};

typedef enum hearth_status hearth_transaction_fn(void *context,
                                                 struct hearth_transaction *transaction,
                                                 struct hearth_err *err);

/*
 * Check that the store is open, BEGIN (READ COMMITTED), run `fn`, and COMMIT if it returns OK,
 * otherwise ROLLBACK. All of it runs again after a lost connection or a passing fault, a few times.
 * scope->arena may be NULL; its limit holds for the transaction's arena, too.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_store_in_transaction(const struct hearth_scope *scope,
                                                                 hearth_transaction_fn *fn,
                                                                 void *context,
                                                                 struct hearth_err *err);

/*
 * Wait for transactions of the scope's tenant that took this lock before, and hold it until the
 * end.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_transaction_lock_tenant(struct hearth_transaction *transaction, struct hearth_err *err);

/* ---- rows that statements rely on ---- */

/* A fresh row of hearth_data.writer. */
HEARTH_MUST_CHECK enum hearth_status hearth_writer_register(struct hearth_pg *pg,
                                                            struct hearth_cancel *cancel,
                                                            int32_t *ret_writer_id,
                                                            struct hearth_err *err);

/* BEGIN, and wait for those of the tenant that began before. The caller commits, or rolls back. */
HEARTH_MUST_CHECK enum hearth_status
hearth_tenant_begin(struct hearth_pg *pg, struct hearth_str tenant, struct hearth_cancel *cancel,
                    enum hearth_pg_fault *ret_fault, struct hearth_err *err);

#endif
