/*
 * store_policies.c -- reads and writes hearth_data.policy and policy_version (contract:
 * hearth/store/store_policies.h).
 *
 * Targets are stored as JSON; statements return them as rows of items. A change of a policy first
 * locks the row of its service.
 */
#include "hearth/store/store_policies.h"

#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_tasks.h"

#include "catalog/services.h"
#include "session/statements.h"

#include <assert.h>

/* ---- reading ---- */

/*
 * The columns of a row, after the name of the service. Policy version `v` has a row for each item.
 * A target without items has one row, whose item is NULL; a policy without targets has one row,
 * whose target and item are NULL.
 */
#define ITEM_COLUMNS                                                                      \
    " v.version, v.uuid, v.modified_at, v.modified_by, v.observe::int4, v.deleted::int4," \
    " (t.v->>'kind')::int4, (i.v->>'monitor')::int4, (i.v->>'threshold')::int8,"          \
    " (i.v->>'period')::int4, (i.v->>'count')::int4,"                                     \
    " ARRAY(SELECT jsonb_array_elements_text(i.v->'uri_paths')), coalesce(i.v->>'uri_regex', '')"
#define ITEM_JOINS                                                                        \
    " LEFT JOIN LATERAL jsonb_array_elements(v.targets) WITH ORDINALITY t (v, n) ON true" \
    " LEFT JOIN LATERAL jsonb_array_elements(t.v->'items') WITH ORDINALITY i (v, n) ON true"

/* A row: the policy without targets, and one item of one target. */
struct item_row {
    struct hearth_policy policy;
    int32_t kind;                  /* of the target; 0: the policy has no targets */
    struct hearth_check_item item; /* monitor 0: the target has no items */
};

#define ITEM(kind, member) HEARTH_COLUMN(kind, struct item_row, member)
static const struct hearth_column item_columns[] = {
    ITEM(TEXT, policy.service),
    ITEM(I64, policy.version),
    ITEM(TEXT, policy.uuid),
    ITEM(I64, policy.modified_ms),
    ITEM(TEXT, policy.modified_by),
    ITEM(BOOL, policy.is_observing),
    ITEM(BOOL, policy.is_deletion),
    ITEM(I32, kind),
    ITEM(I32, item.monitor),
    ITEM(I64, item.threshold),
    ITEM(I32, item.period_seconds),
    ITEM(I32, item.count),
    HEARTH_COLUMN_LIST(TEXTS, struct item_row, item.uri_paths, item.n_uri_paths),
    ITEM(TEXT, item.uri_regex),
};
static const struct hearth_row_type item_rows = HEARTH_ROW_TYPE(item_columns, struct item_row);

/* Whether rows[i] is the first row of its policy version. */
static bool begins_policy(const struct item_row *rows, size_t i)
{
    return i == 0 || rows[i].policy.version != rows[i - 1].policy.version ||
           !hearth_str_eq(rows[i].policy.service, rows[i - 1].policy.service);
}

static enum hearth_status fail_damaged_policy(const struct hearth_policy *policy,
                                              struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT,
                       "version %lld of the policy of service \"" HEARTH_STR_FMT
                       "\" is damaged: delete the policy and store it again",
                       (long long)policy->version, HEARTH_STR_ARG(policy->service));
}

/* Adds the row's item, if any, to its target. Rows of a target follow each other. */
static enum hearth_status add_item(const struct item_row *row, struct hearth_policy *policy,
                                   struct hearth_arena *arena, struct hearth_err *err)
{
    enum hearth_policy_kind kind = (enum hearth_policy_kind)row->kind;

    /* Begin a target of another kind. */
    if (policy->n_targets == 0 || policy->targets[policy->n_targets - 1].kind != kind) {
        if (policy->n_targets == HEARTH_POLICY_KIND_END) {
            return fail_damaged_policy(policy, err);
        }

        struct hearth_policy_target *target = &policy->targets[policy->n_targets++];
        *target = (struct hearth_policy_target){.kind = kind};
        target->items = hearth_arena_array(arena, HEARTH_MONITOR_END, sizeof target->items[0]);
        if (target->items == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    /* Add the item. */
    struct hearth_policy_target *target = &policy->targets[policy->n_targets - 1];
    if (row->item.monitor != 0) {
        if (target->n_items == HEARTH_MONITOR_END) {
            return fail_damaged_policy(policy, err);
        }

        target->items[target->n_items++] = row->item;
    }

    return HEARTH_OK;
}

/* Reads policies by a statement whose columns are those of item_rows, sorted by policy version. */
static enum hearth_status select_policies(const struct hearth_scope *scope, const char *sql,
                                          const struct hearth_pg_params *params,
                                          struct hearth_policy **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    struct item_row *rows;
    size_t n_rows, n = 0;
    HEARTH_TRY(hearth_store_select(scope, sql, params, &item_rows, &rows, &n_rows, err));

    /* Count the policies. */
    for (size_t i = 0; i < n_rows; i++) {
        n += begins_policy(rows, i);
    }

    struct hearth_policy *policies = hearth_arena_array(scope->arena, n, sizeof policies[0]);
    if (policies == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    /* Gather their targets. */
    size_t next = 0;
    for (size_t i = 0; i < n_rows; i++) {
        if (begins_policy(rows, i)) {
            struct hearth_policy *policy = &policies[next++];
            *policy = rows[i].policy;
            policy->targets =
                hearth_arena_array(scope->arena, HEARTH_POLICY_KIND_END, sizeof policy->targets[0]);
            if (policy->targets == NULL) {
                return HEARTH_FAIL_ARENA(err, scope->arena);
            }
        }

        if (rows[i].kind != 0) {
            HEARTH_TRY(add_item(&rows[i], &policies[next - 1], scope->arena, err));
        }
    }

    assert(next == n);

    *ret = policies;
    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_store_policies(const struct hearth_scope *scope,
                                         const struct hearth_str *services, size_t n_services,
                                         struct hearth_policy **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    assert(services != NULL || n_services == 0);

    /* Services are found by their fingerprints. */
    struct hearth_hash128 *prints = hearth_arena_array(scope->arena, n_services, sizeof prints[0]);
    if (prints == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n_services; i++) {
        prints[i] = hearth_service_fingerprint(services[i]);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i32(&params, n_services > 0);
    hearth_pg_param_uuid_array(&params, prints, n_services);

    /* The policies of the tenant, of all services if $2 is 0. By the keys of tenant and service. */
    return select_policies(scope,
                           "SELECT s.name," ITEM_COLUMNS
                           " FROM (SELECT p.*, false AS deleted FROM hearth_data.policy p) v"
                           " JOIN hearth_data.service s USING (service_id)"
                           " JOIN hearth_data.tenant n USING (tenant_id)" ITEM_JOINS
                           " WHERE n.name = $1 AND ($2 = 0 OR s.fingerprint = ANY ($3))"
                           " ORDER BY s.name COLLATE \"C\", t.n, i.n",
                           &params, ret, ret_n, err);
}

enum hearth_status hearth_store_policy_versions(const struct hearth_scope *scope,
                                                struct hearth_str service,
                                                struct hearth_policy **ret, size_t *ret_n,
                                                struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_uuid(&params, hearth_service_fingerprint(service));

    return select_policies(
        scope,
        "SELECT s.name," ITEM_COLUMNS " FROM hearth_data.policy_version v"
        " JOIN hearth_data.service s USING (service_id)"
        " JOIN hearth_data.tenant n USING (tenant_id)" ITEM_JOINS
        " WHERE n.name = $1 AND s.fingerprint = $2 ORDER BY v.version DESC, t.n, i.n",
        &params, ret, ret_n, err);
}

/* ---- changing ---- */

/* A change: a policy to be stored, or NULL to delete the policy. */
struct policy_change {
    struct hearth_policy *policy;
    struct hearth_str service, modified_by;
    int32_t service_id;
    int64_t expected_version; /* below 0: any */
    int64_t max_versions;     /* 0: no limit */
    bool is_deleted;          /* result of a deletion: there was a policy */
};

/* The stored state, under the lock of the service. */
struct stored_policy {
    int64_t version; /* 0: no policy */
    int64_t newest;  /* the highest version ever stored */
    int64_t n_same;  /* 1: the stored policy has the uuid of the new one */
};

#define STORED(kind, member) HEARTH_COLUMN(kind, struct stored_policy, member)
static const struct hearth_column stored_columns[] = {
    STORED(I64, version),
    STORED(I64, newest),
    STORED(I64, n_same),
};
static const struct hearth_row_type stored_rows =
    HEARTH_ROW_TYPE(stored_columns, struct stored_policy);

/* Locks the service's row, then reads the state of its policy. */
static enum hearth_status lock_and_read_policy(const struct policy_change *change,
                                               struct hearth_transaction *transaction,
                                               struct stored_policy *ret, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, change->service_id);
    HEARTH_TRY(hearth_transaction_run(
        transaction, "SELECT 1 FROM hearth_data.service WHERE service_id = $1 FOR NO KEY UPDATE",
        &params, NULL, err));

    /* The other parameter is the uuid of the new policy. */
    bool found;
    hearth_pg_param_text(&params, change->policy == NULL ? HEARTH_STR("") : change->policy->uuid);

    return hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT coalesce((SELECT version FROM hearth_data.policy WHERE service_id = $1), 0),"
        " coalesce((SELECT max(version) FROM hearth_data.policy_version WHERE service_id = $1), 0),"
        " (SELECT count(*) FROM hearth_data.policy WHERE service_id = $1 AND uuid = $2)",
        &params, &stored_rows, ret, &found, err);
}

/* Deletes the versions before the newest max_versions. */
static enum hearth_status delete_old_versions(const struct policy_change *change,
                                              struct hearth_transaction *transaction,
                                              int64_t newest, struct hearth_err *err)
{
    if (change->max_versions <= 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, change->service_id);
    hearth_pg_param_i64(&params, newest - change->max_versions);

    return hearth_transaction_run(
        transaction,
        "DELETE FROM hearth_data.policy_version WHERE service_id = $1 AND version <= $2", &params,
        NULL, err);
}

/* Inserts or replaces the policy, and inserts its version with the same columns. */
static enum hearth_status insert_policy(const struct policy_change *change,
                                        struct hearth_transaction *transaction,
                                        struct hearth_err *err)
{
    const struct hearth_policy *policy = change->policy;
    assert(policy != NULL && policy->version > 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, change->service_id);
    hearth_pg_param_text(&params, policy->json);
    hearth_pg_param_text(&params, policy->uuid);
    hearth_pg_param_i64(&params, policy->version);
    hearth_pg_param_i64(&params, policy->modified_ms);
    hearth_pg_param_text(&params, policy->modified_by);
    hearth_pg_param_i32(&params, policy->is_observing);

    return hearth_transaction_run(
        transaction,
        "WITH p AS (INSERT INTO hearth_data.policy (service_id, targets, uuid, version,"
        "  modified_at, modified_by, observe) VALUES ($1, $2::jsonb, $3, $4, $5, $6, $7 <> 0)"
        "  ON CONFLICT (service_id) DO UPDATE SET targets = excluded.targets,"
        "  uuid = excluded.uuid, version = excluded.version, modified_at = excluded.modified_at,"
        "  modified_by = excluded.modified_by, observe = excluded.observe RETURNING *)"
        " INSERT INTO hearth_data.policy_version (service_id, targets, uuid, version, modified_at,"
        " modified_by, observe, deleted) SELECT service_id, targets, uuid, version, modified_at,"
        " modified_by, observe, false FROM p",
        &params, NULL, err);
}

/* Stores the policy of a change, unless the stored policy is another version or the same. */
static enum hearth_status put_policy(void *context, struct hearth_transaction *transaction,
                                     struct hearth_err *err)
{
    const struct policy_change *change = context;
    struct stored_policy stored = {0};
    HEARTH_TRY(lock_and_read_policy(change, transaction, &stored, err));

    /* An attempt whose COMMIT was not answered may have stored the policy. */
    bool is_same = stored.n_same > 0;
    bool is_done = is_same && transaction->attempt > 1;
    if (change->expected_version >= 0 && change->expected_version != stored.version && !is_done) {
        return HEARTH_FAIL(err, HEARTH_ABORTED,
                           "the policy of \"" HEARTH_STR_FMT
                           "\" has version %lld, not %lld: somebody changed it",
                           HEARTH_STR_ARG(change->service), (long long)stored.version,
                           (long long)change->expected_version);
    }

    if (is_same) {
        change->policy->version = stored.version;
        return HEARTH_OK;
    }

    /* Store it as a new version. */
    change->policy->version = stored.newest + 1;
    change->policy->modified_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    HEARTH_TRY(insert_policy(change, transaction, err));

    return delete_old_versions(change, transaction, change->policy->version, err);
}

enum hearth_status hearth_store_policy_put(const struct hearth_scope *scope,
                                           struct hearth_policy *policy, int64_t expected_version,
                                           int64_t max_versions, struct hearth_err *err)
{
    assert(policy != NULL);

    struct policy_change change = {.policy = policy,
                                   .service = policy->service,
                                   .expected_version = expected_version,
                                   .max_versions = max_versions};
    HEARTH_TRY(hearth_store_service_id(scope, policy->service, true, &change.service_id, err));

    return hearth_store_in_transaction(scope, put_policy, &change, err);
}

/* Deletes the policy, if any, and stores a version that says so. */
static enum hearth_status delete_policy(void *context, struct hearth_transaction *transaction,
                                        struct hearth_err *err)
{
    struct policy_change *change = context;
    struct stored_policy stored = {0};
    HEARTH_TRY(lock_and_read_policy(change, transaction, &stored, err));

    /* An attempt whose COMMIT was not answered may have deleted the policy. */
    change->is_deleted = stored.version > 0 || (change->is_deleted && transaction->attempt > 1);
    if (stored.version == 0) {
        return HEARTH_OK;
    }

    /* Delete it. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, change->service_id);
    hearth_pg_param_i64(&params, stored.newest + 1);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);
    hearth_pg_param_text(&params, change->modified_by);
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "WITH p AS (DELETE FROM hearth_data.policy WHERE service_id = $1 RETURNING service_id)"
        " INSERT INTO hearth_data.policy_version (service_id, targets, uuid, version, modified_at,"
        " modified_by, observe, deleted) SELECT service_id, '[]', '', $2, $3, $4, false, true"
        " FROM p",
        &params, NULL, err));

    return delete_old_versions(change, transaction, stored.newest + 1, err);
}

enum hearth_status hearth_store_policy_delete(const struct hearth_scope *scope,
                                              struct hearth_str service,
                                              struct hearth_str modified_by, int64_t max_versions,
                                              struct hearth_err *err)
{
    /* Without the service there is no policy. */
    struct policy_change change = {
        .service = service, .modified_by = modified_by, .max_versions = max_versions};
    struct hearth_err reason = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_store_service_id(scope, service, false, &change.service_id, &reason);
    if (status == HEARTH_OK) {
        status = hearth_store_in_transaction(scope, delete_policy, &change, &reason);
    }

    /* Fail, if there was no policy. */
    if (status == HEARTH_NOT_FOUND || (status == HEARTH_OK && !change.is_deleted)) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "service \"" HEARTH_STR_FMT "\" has no policy",
                           HEARTH_STR_ARG(service));
    }

    if (status != HEARTH_OK && err != NULL) {
        *err = reason;
    }

    return status;
}

/* ---- tasks that policies started ---- */

#define COUNT(kind, member) HEARTH_COLUMN(kind, struct hearth_trigger_count, member)
static const struct hearth_column count_columns[] = {
    COUNT(TEXT, service),    COUNT(I32, kind), COUNT(TEXT, instance),
    COUNT(TEXT, process_id), COUNT(I32, n),    COUNT(I64, last_ms),
};
static const struct hearth_row_type count_rows =
    HEARTH_ROW_TYPE(count_columns, struct hearth_trigger_count);

enum hearth_status hearth_store_trigger_counts(const struct hearth_scope *scope,
                                               const struct hearth_trigger_filter *filter,
                                               struct hearth_trigger_count **ret, size_t *ret_n,
                                               struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text(&params, filter->service);
    hearth_pg_param_i64(&params, filter->since_ms);
    hearth_pg_param_i32(&params, filter->by_process);
    hearth_pg_param_i32(&params, HEARTH_TASK_BY_POLICY);

    /* Tasks of origin $5 (policies), grouped as the filter says. By the index on start_at. */
    return hearth_store_select(
        scope,
        "SELECT * FROM (SELECT s.name, k.kind::int4,"
        " CASE WHEN $4 <> 0 THEN coalesce(k.instance, '') ELSE '' END,"
        " CASE WHEN $4 <> 0 THEN coalesce(k.process_id, '') ELSE '' END, count(*)::int4,"
        " max(k.start_at) FROM hearth_data.task k JOIN hearth_data.service s USING (service_id)"
        " JOIN hearth_data.tenant n USING (tenant_id) WHERE n.name = $1"
        " AND ($2 = '' OR s.name = $2) AND k.origin = $5 AND k.start_at >= $3"
        " GROUP BY 1, 2, 3, 4) c (service, kind, instance, process_id, n, last)"
        " ORDER BY c.service COLLATE \"C\", c.instance COLLATE \"C\"",
        &params, &count_rows, ret, ret_n, err);
}
