/*
 * statements.h -- one statement of a call, on a connection of the pool or in a transaction (private
 * to the store).
 *
 * Ownership: rows and their texts are copies in the arena.
 * Threads:   safe, each call with its own arena.
 * Errors:    of the statement, and of pg_rows.h.
 */
#ifndef HEARTH_STORE_STATEMENTS_H
#define HEARTH_STORE_STATEMENTS_H

#include "pg/pg_rows.h"
#include "session/session.h"

/* ---- one statement ---- */

/*
 * Return the rows of one statement as an array in scope->arena. The statement runs again after a
 * passing fault. ret_rows: the address of a pointer to the struct of the row type. It sees rows of
 * the scope's tenants only (wall.h).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_select(const struct hearth_scope *scope, const char *sql,
                                       const struct hearth_pg_params *params,
                                       const struct hearth_row_type *type, void *ret_rows,
                                       size_t *ret_n, struct hearth_err *err);

/*
 * Run the statement and return its first row. If it has no row, *ret_found is false and ret_row
 * stays unchanged. ret_row: a struct of the row type.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_select_one(const struct hearth_scope *scope, const char *sql,
                                           const struct hearth_pg_params *params,
                                           const struct hearth_row_type *type, void *ret_row,
                                           bool *ret_found, struct hearth_err *err);

/*
 * Run a statement and ignore its rows; *ret_n (may be NULL): their number. The arena of the scope
 * is not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_run(const struct hearth_scope *scope, const char *sql,
                                    const struct hearth_pg_params *params, size_t *ret_n,
                                    struct hearth_err *err);

/* ---- in a transaction (session.h) ---- */

/* hearth_store_select, _select_one and _run within a transaction; rows are in `arena`. */
HEARTH_MUST_CHECK
enum hearth_status hearth_transaction_select(struct hearth_transaction *transaction,
                                             struct hearth_arena *arena, const char *sql,
                                             const struct hearth_pg_params *params,
                                             const struct hearth_row_type *type, void *ret_rows,
                                             size_t *ret_n, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_transaction_select_one(struct hearth_transaction *transaction,
                                                 struct hearth_arena *arena, const char *sql,
                                                 const struct hearth_pg_params *params,
                                                 const struct hearth_row_type *type, void *ret_row,
                                                 bool *ret_found, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_transaction_run(struct hearth_transaction *transaction, const char *sql,
                                          const struct hearth_pg_params *params, size_t *ret_n,
                                          struct hearth_err *err);

#endif
