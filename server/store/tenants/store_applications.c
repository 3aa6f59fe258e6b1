/* store_applications.c -- reads and changes applications and rules (store_applications.h). */
#include "hearth/store/store_applications.h"

#include "session/session.h"
#include "session/statements.h"
#include "tenants/known_applications.h"

#include <assert.h>

#define APPLICATION(kind, member) HEARTH_COLUMN(kind, struct hearth_application, member)
static const struct hearth_column application_columns[] = {
    APPLICATION(TEXT, name),        APPLICATION(TEXT, owner),      APPLICATION(TEXT, description),
    APPLICATION(I32, profiling),    APPLICATION(I32, approved),    APPLICATION(I64, first_seen_ms),
    APPLICATION(I64, last_seen_ms), APPLICATION(TEXT, updated_by), APPLICATION(I64, updated_ms),
};
static const struct hearth_row_type application_rows =
    HEARTH_ROW_TYPE(application_columns, struct hearth_application);

#define RULE(kind, member) HEARTH_COLUMN(kind, struct hearth_application_rule, member)
static const struct hearth_column rule_columns[] = {
    RULE(TEXT, name),       RULE(TEXT, selector),  RULE(I32, profiling),
    RULE(TEXT, updated_by), RULE(I64, updated_ms),
};
static const struct hearth_row_type application_rule_rows =
    HEARTH_ROW_TYPE(rule_columns, struct hearth_application_rule);

/*
 * Servers read the tables again when the clock has moved. It moves last, as when seen services are
 * written, so that no two transactions wait for each other.
 */
static enum hearth_status move_clock(struct hearth_transaction *transaction, struct hearth_err *err)
{
    return hearth_transaction_run(transaction,
                                  "UPDATE hearth_data.application_clock SET version = version + 1",
                                  NULL, NULL, err);
}

static enum hearth_status refresh_applications_on(void *context, struct hearth_pg *pg,
                                                  enum hearth_pg_fault *ret_fault,
                                                  struct hearth_err *err)
{
    (void)ret_fault;
    return hearth_known_applications_step(context, pg, err);
}

/* Run the change, and let this server see it at once. */
static enum hearth_status change_applications(const struct hearth_scope *scope,
                                              hearth_transaction_fn *change, void *context,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_in_transaction(scope, change, context, err));
    return hearth_store_as_owner(scope->store, scope->cancel, refresh_applications_on, scope->store,
                                 err);
}

/* ---- applications ---- */

enum hearth_status hearth_store_applications(const struct hearth_scope *scope,
                                             struct hearth_str name, int64_t limit,
                                             struct hearth_application **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    assert(scope->arena != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text(&params, name);
    hearth_pg_param_i64(&params, limit);

    return hearth_store_select(
        scope,
        "SELECT name, owner, description, profiling, approved, first_seen, last_seen, updated_by,"
        " updated_at FROM hearth_data.application WHERE tenant = $1 AND ($2 = '' OR name = $2)"
        " ORDER BY name COLLATE \"C\" LIMIT $3",
        &params, &application_rows, ret, ret_n, err);
}

struct application_set {
    const struct hearth_application_change *change;
    int64_t max;
};

static enum hearth_status set_application(void *context, struct hearth_transaction *transaction,
                                          struct hearth_err *err)
{
    const struct application_set *set = context;
    const struct hearth_application_change *change = set->change;
    const struct hearth_str none = {"", 0};
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, transaction->scope->tenant);
    hearth_pg_param_uuid(&params, hearth_hash128(change->name.p, change->name.n, 0));
    hearth_pg_param_text(&params, change->name);
    hearth_pg_param_text(&params, change->owner != NULL ? *change->owner : none);
    hearth_pg_param_text(&params, change->description != NULL ? *change->description : none);
    hearth_pg_param_i32(&params, change->profiling);
    hearth_pg_param_i32(&params, change->approved);
    hearth_pg_param_text(&params, change->updated_by);
    hearth_pg_param_i64(&params, change->now_ms);
    hearth_pg_param_i32(&params, change->owner != NULL);
    hearth_pg_param_i32(&params, change->description != NULL);
    hearth_pg_param_i64(&params, set->max);
    hearth_pg_param_i32(&params, change->approves_new);

    /*
     * By the primary key. A new one beyond the limit is not inserted. What it is approved by must
     * not depend on whether its first profile was noted before.
     */
    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.application AS a (tenant, name_key, name, owner, description,"
        " profiling, approved, first_seen, last_seen, updated_by, updated_at)"
        " SELECT $1, $2, $3, $4, $5, greatest($6::int4, 0), CASE WHEN $7::int4 >= 0 THEN $7 ELSE "
        "$13::int4 END, 0, 0, $8, $9"
        " WHERE $12::int8 = 0 OR EXISTS (SELECT FROM hearth_data.application WHERE tenant = $1 AND"
        " name_key = $2) OR (SELECT count(*) FROM hearth_data.application WHERE tenant = $1) < $12"
        " ON CONFLICT (tenant, name_key) DO UPDATE SET"
        " owner = CASE WHEN $10::int4 = 1 THEN excluded.owner ELSE a.owner END,"
        " description = CASE WHEN $11::int4 = 1 THEN excluded.description ELSE a.description END,"
        " profiling = CASE WHEN $6 >= 0 THEN excluded.profiling ELSE a.profiling END,"
        " approved = CASE WHEN $7 >= 0 THEN excluded.approved ELSE a.approved END,"
        " updated_by = excluded.updated_by, updated_at = excluded.updated_at RETURNING 1",
        &params, &n, err));

    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld applications, as many as max-services allows",
                           (long long)set->max);
    }

    return move_clock(transaction, err);
}

enum hearth_status hearth_store_application_set(const struct hearth_scope *scope,
                                                const struct hearth_application_change *change,
                                                int64_t max, struct hearth_err *err)
{
    assert(change != NULL);
    struct application_set set = {change, max};
    return change_applications(scope, set_application, &set, err);
}

/* A row that a change names. */
struct named_row {
    struct hearth_str name;
    const struct hearth_application_rule *rule;
    int64_t max_rules;
};

static enum hearth_status delete_application(void *context, struct hearth_transaction *transaction,
                                             struct hearth_err *err)
{
    const struct named_row *row = context;
    struct hearth_pg_params params;
    size_t n;

    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, transaction->scope->tenant);
    hearth_pg_param_uuid(&params, hearth_hash128(row->name.p, row->name.n, 0));
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "DELETE FROM hearth_data.application WHERE tenant = $1 AND name_key = $2 RETURNING 1",
        &params, &n, err));

    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no application \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(row->name));
    }

    return move_clock(transaction, err);
}

enum hearth_status hearth_store_application_delete(const struct hearth_scope *scope,
                                                   struct hearth_str name, struct hearth_err *err)
{
    struct named_row row = {.name = name};
    return change_applications(scope, delete_application, &row, err);
}

/* ---- rules ---- */

enum hearth_status hearth_store_application_rules(const struct hearth_scope *scope,
                                                  struct hearth_application_rule **ret,
                                                  size_t *ret_n, struct hearth_err *err)
{
    assert(scope->arena != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);

    return hearth_store_select(
        scope,
        "SELECT name, selector, profiling, updated_by, updated_at FROM"
        " hearth_data.application_rule WHERE tenant = $1 ORDER BY name COLLATE \"C\"",
        &params, &application_rule_rows, ret, ret_n, err);
}

static enum hearth_status
put_application_rule(void *context, struct hearth_transaction *transaction, struct hearth_err *err)
{
    const struct named_row *row = context;
    struct hearth_pg_params params;
    size_t n;

    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, transaction->scope->tenant);
    hearth_pg_param_text(&params, row->rule->name);
    hearth_pg_param_text(&params, row->rule->selector);
    hearth_pg_param_i32(&params, row->rule->profiling);
    hearth_pg_param_text(&params, row->rule->updated_by);
    hearth_pg_param_i64(&params, row->rule->updated_ms);
    hearth_pg_param_i64(&params, row->max_rules);
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.application_rule (tenant, name, selector, profiling, updated_by,"
        " updated_at) SELECT $1, $2, $3, $4, $5, $6 WHERE"
        " (SELECT count(*) FROM hearth_data.application_rule WHERE tenant = $1 AND name <> $2) < $7"
        " ON CONFLICT (tenant, name) DO UPDATE SET selector = excluded.selector,"
        " profiling = excluded.profiling, updated_by = excluded.updated_by,"
        " updated_at = excluded.updated_at RETURNING 1",
        &params, &n, err));

    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld rules of applications already, the most that "
                           "are allowed",
                           (long long)row->max_rules);
    }

    return move_clock(transaction, err);
}

enum hearth_status hearth_store_application_rule_put(const struct hearth_scope *scope,
                                                     const struct hearth_application_rule *rule,
                                                     int64_t max_rules, struct hearth_err *err)
{
    assert(rule != NULL);
    struct named_row row = {.rule = rule, .max_rules = max_rules};
    return change_applications(scope, put_application_rule, &row, err);
}

static enum hearth_status delete_application_rule(void *context,
                                                  struct hearth_transaction *transaction,
                                                  struct hearth_err *err)
{
    const struct named_row *row = context;
    struct hearth_pg_params params;
    size_t n;

    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, transaction->scope->tenant);
    hearth_pg_param_text(&params, row->name);
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "DELETE FROM hearth_data.application_rule WHERE tenant = $1 AND name = $2 RETURNING 1",
        &params, &n, err));

    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "there is no rule \"" HEARTH_STR_FMT "\" of applications",
                           HEARTH_STR_ARG(row->name));
    }

    return move_clock(transaction, err);
}

enum hearth_status hearth_store_application_rule_delete(const struct hearth_scope *scope,
                                                        struct hearth_str name,
                                                        struct hearth_err *err)
{
    struct named_row row = {.name = name};
    return change_applications(scope, delete_application_rule, &row, err);
}
