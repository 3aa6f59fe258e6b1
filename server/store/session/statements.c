/* statements.c -- statements with rows as structs (contract: statements.h). */
#include "session/statements.h"

#include <assert.h>

/* A statement of a scope, and what it returned. */
struct selection {
    struct hearth_pg_query query;
    struct hearth_pg_selected selected;
};

static struct selection make_selection(const struct hearth_scope *scope, struct hearth_arena *arena,
                                       const char *sql, const struct hearth_pg_params *params,
                                       const struct hearth_row_type *type)
{
    return (struct selection){
        .query = {
            .sql = sql, .params = params, .type = type, .cancel = scope->cancel, .arena = arena}};
}

static enum hearth_status select_rows(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct selection *selection = context;

    return hearth_pg_run(pg, &selection->query, &selection->selected, ret_fault, err);
}

static enum hearth_status select_pooled(const struct hearth_scope *scope,
                                        struct selection *selection, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    return hearth_store_with_pg(scope, select_rows, selection, err);
}

static enum hearth_status select_in_transaction(struct hearth_transaction *transaction,
                                                struct selection *selection, struct hearth_err *err)
{
    return select_rows(selection, transaction->pg, &transaction->fault, err);
}

static void give_rows(const struct selection *selection, void *ret_rows, size_t *ret_n)
{
    memcpy(ret_rows, &selection->selected.rows, sizeof selection->selected.rows);
    *ret_n = selection->selected.n;
}

static void give_first_row(const struct selection *selection, void *ret_row, bool *ret_found)
{
    *ret_found = selection->selected.n > 0;
    if (*ret_found) {
        memcpy(ret_row, selection->selected.rows, selection->query.type->row_bytes);
    }
}

enum hearth_status hearth_store_select(const struct hearth_scope *scope, const char *sql,
                                       const struct hearth_pg_params *params,
                                       const struct hearth_row_type *type, void *ret_rows,
                                       size_t *ret_n, struct hearth_err *err)
{
    assert(scope->arena != NULL && ret_rows != NULL && ret_n != NULL);
    struct selection selection = make_selection(scope, scope->arena, sql, params, type);

    HEARTH_TRY(select_pooled(scope, &selection, err));
    give_rows(&selection, ret_rows, ret_n);

    return HEARTH_OK;
}

enum hearth_status hearth_store_select_one(const struct hearth_scope *scope, const char *sql,
                                           const struct hearth_pg_params *params,
                                           const struct hearth_row_type *type, void *ret_row,
                                           bool *ret_found, struct hearth_err *err)
{
    assert(scope->arena != NULL && ret_row != NULL && ret_found != NULL);
    struct selection selection = make_selection(scope, scope->arena, sql, params, type);

    HEARTH_TRY(select_pooled(scope, &selection, err));
    give_first_row(&selection, ret_row, ret_found);

    return HEARTH_OK;
}

enum hearth_status hearth_store_run(const struct hearth_scope *scope, const char *sql,
                                    const struct hearth_pg_params *params, size_t *ret_n,
                                    struct hearth_err *err)
{
    struct selection selection = make_selection(scope, NULL, sql, params, NULL);

    HEARTH_TRY(select_pooled(scope, &selection, err));
    if (ret_n != NULL) {
        *ret_n = selection.selected.n;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_transaction_select(struct hearth_transaction *transaction,
                                             struct hearth_arena *arena, const char *sql,
                                             const struct hearth_pg_params *params,
                                             const struct hearth_row_type *type, void *ret_rows,
                                             size_t *ret_n, struct hearth_err *err)
{
    assert(arena != NULL && ret_rows != NULL && ret_n != NULL);
    struct selection selection = make_selection(transaction->scope, arena, sql, params, type);

    HEARTH_TRY(select_in_transaction(transaction, &selection, err));
    give_rows(&selection, ret_rows, ret_n);

    return HEARTH_OK;
}

enum hearth_status hearth_transaction_select_one(struct hearth_transaction *transaction,
                                                 struct hearth_arena *arena, const char *sql,
                                                 const struct hearth_pg_params *params,
                                                 const struct hearth_row_type *type, void *ret_row,
                                                 bool *ret_found, struct hearth_err *err)
{
    assert(arena != NULL && ret_row != NULL && ret_found != NULL);
    struct selection selection = make_selection(transaction->scope, arena, sql, params, type);

    HEARTH_TRY(select_in_transaction(transaction, &selection, err));
    give_first_row(&selection, ret_row, ret_found);

    return HEARTH_OK;
}

enum hearth_status hearth_transaction_run(struct hearth_transaction *transaction, const char *sql,
                                          const struct hearth_pg_params *params, size_t *ret_n,
                                          struct hearth_err *err)
{
    struct selection selection = make_selection(transaction->scope, NULL, sql, params, NULL);

    HEARTH_TRY(select_in_transaction(transaction, &selection, err));
    if (ret_n != NULL) {
        *ret_n = selection.selected.n;
    }

    return HEARTH_OK;
}
