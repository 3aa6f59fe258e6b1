/* access_write.c -- one write at a time (contract: access/access_write.h). */
#include "access/access_write.h"

#include "hearth/model/credential.h"

#include <assert.h>

#define TOKEN(kind, member) HEARTH_COLUMN(kind, struct hearth_token, member)
static const struct hearth_column token_columns[] = {
    TOKEN(TEXT, id),          TOKEN(TEXT, name),           TOKEN(BYTES, hash),
    TOKEN(TEXT, created_by),  TOKEN(I64, created_ms),      TOKEN(I64, expires_ms),
    TOKEN(I64, last_used_ms), TOKEN(TEXT, last_used_from),
};
const struct hearth_row_type hearth_token_rows =
    HEARTH_ROW_TYPE(token_columns, struct hearth_token);

#define USER(kind, member) HEARTH_COLUMN(kind, struct hearth_user, member)
static const struct hearth_column user_columns[] = {
    USER(TEXT, name),        USER(TEXT, password),   USER(TEXT, created_by),
    USER(I64, created_ms),   USER(I64, password_ms), USER(I64, last_login_ms),
    USER(BOOL, is_disabled),
};
const struct hearth_row_type hearth_user_rows = HEARTH_ROW_TYPE(user_columns, struct hearth_user);

struct locked_write {
    hearth_access_write_fn *fn;
    void *context;
};

static enum hearth_status run_locked(void *context, struct hearth_transaction *transaction,
                                     struct hearth_err *err)
{
    struct locked_write *write = context;
    HEARTH_TRY(hearth_transaction_run(
        transaction, "SELECT 1 FROM hearth_data.access_clock FOR UPDATE", NULL, NULL, err));

    bool is_changed = false;
    HEARTH_TRY(write->fn(write->context, transaction, &is_changed, err));

    return is_changed
               ? hearth_transaction_run(transaction,
                                        "UPDATE hearth_data.access_clock SET version = version + 1",
                                        NULL, NULL, err)
               : HEARTH_OK;
}

enum hearth_status hearth_access_write(const struct hearth_scope *scope, hearth_access_write_fn *fn,
                                       void *context, struct hearth_err *err)
{
    assert(fn != NULL);

    struct locked_write write = {fn, context};
    const struct hearth_scope own = hearth_scope_of_owner(scope);

    return hearth_store_in_transaction(&own, run_locked, &write, err);
}

struct hearth_str hearth_access_mend(struct hearth_arena *arena, struct hearth_str text,
                                     size_t max_bytes)
{
    assert(max_bytes > 0);

    if (text.n <= max_bytes && hearth_str_utf8_valid(text)) {
        return text;
    }

    /* A character that the cut damaged becomes '?', too. */
    size_t n = text.n < max_bytes ? text.n : max_bytes;
    char *copy = hearth_arena_strndup(arena, text.p, n);
    if (copy == NULL) {
        return hearth_str_n("", 0);
    }

    hearth_str_utf8_mend(copy, n);

    return hearth_str_n(copy, n);
}
