/*
 * store_policies.c -- hearth_data.policy and policy_version (contract: hearth/store/store_policies.h).
 *
 * Targets are stored as JSON and read as rows of items, which PostgreSQL takes apart. Whoever changes a policy
 * locks the row of its service first.
 */
#include "hearth/store/store_policies.h"

#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_tasks.h"

#include "catalog/services.h"
#include "pg/pg.h"
#include "pg/session.h"

struct question {
    struct hearth_store *store;
    struct hearth_str tenant, service, modified_by;
    const struct hearth_str *services;
    size_t n_services;
    struct hearth_policy *policy;
    int64_t expected_version, max_versions;
    int32_t service_id;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    unsigned n_attempts;
    struct hearth_policy *policies;
    size_t n;
    int64_t since_ms;
    bool by_process;
    struct hearth_trigger_count *counts;
};

/* ---- reading ---- */

/*
 * A row for each item: service, version, uuid, modified_at, modified_by, observe, deleted, then kind, monitor,
 * threshold, period, count, uri_paths, uri_regex, which are NULL where there is no target.
 */
#define ITEM_COLUMNS                                                                      \
    " v.version, v.uuid, v.modified_at, v.modified_by, v.observe::int4, v.deleted::int4," \
    " (t.v->>'kind')::int4, (i.v->>'monitor')::int4, (i.v->>'threshold')::int8,"          \
    " (i.v->>'period')::int4, (i.v->>'count')::int4,"                                     \
    " ARRAY(SELECT jsonb_array_elements_text(i.v->'uri_paths')), coalesce(i.v->>'uri_regex', '')"
#define ITEM_JOINS                                                                        \
    " LEFT JOIN LATERAL jsonb_array_elements(v.targets) WITH ORDINALITY t (v, n) ON true" \
    " LEFT JOIN LATERAL jsonb_array_elements(t.v->'items') WITH ORDINALITY i (v, n) ON true"

static bool begins_policy(const PGresult *rows, int row)
{
    return row == 0 || hearth_pg_i64(rows, row, 1) != hearth_pg_i64(rows, row - 1, 1) ||
           !hearth_str_eq(hearth_pg_str(rows, row, 0), hearth_pg_str(rows, row - 1, 0));
}

static enum hearth_status take_item(const PGresult *rows, int row, struct question *question,
                                    struct hearth_err *err)
{
    struct hearth_policy *policy = &question->policies[question->n - 1];
    int32_t kind = hearth_pg_i32(rows, row, 7), monitor = 0;
    if (policy->n_targets == 0 ||
        policy->targets[policy->n_targets - 1].kind != (enum hearth_policy_kind)kind) {
        HEARTH_ASSERT(policy->n_targets < HEARTH_POLICY_KIND_END);
        struct hearth_policy_target *target = &policy->targets[policy->n_targets++];
        *target = (struct hearth_policy_target){.kind = (enum hearth_policy_kind)kind};
        target->items =
            hearth_arena_array(question->arena, HEARTH_MONITOR_END, sizeof target->items[0]);
        if (target->items == NULL) {
            return HEARTH_FAIL_ARENA(err, question->arena);
        }
    }
    struct hearth_policy_target *target = &policy->targets[policy->n_targets - 1];
    if (hearth_pg_is_null(rows, row, 8)) {
        return HEARTH_OK; /* a target without items */
    }
    monitor = hearth_pg_i32(rows, row, 8);
    HEARTH_ASSERT(target->n_items < HEARTH_MONITOR_END);
    struct hearth_check_item *item = &target->items[target->n_items++];
    *item = (struct hearth_check_item){
        .monitor = (enum hearth_monitor)monitor,
        .threshold = hearth_pg_i64(rows, row, 9),
        .period_seconds = hearth_pg_i32(rows, row, 10),
        .count = hearth_pg_i32(rows, row, 11),
        .uri_regex = hearth_arena_str(question->arena, hearth_pg_str(rows, row, 13)),
    };
    return hearth_pg_str_array(rows, row, 12, question->arena, &item->uri_paths, &item->n_uri_paths,
                               err);
}

static enum hearth_status take_policies(const PGresult *rows, struct question *question,
                                        struct hearth_err *err)
{
    struct hearth_arena *arena = question->arena;
    size_t n = 0;
    for (int row = 0; row < PQntuples(rows); row++) {
        n += begins_policy(rows, row);
    }
    question->n = 0;
    question->policies = hearth_arena_array(arena, n, sizeof question->policies[0]);
    for (int row = 0; row < PQntuples(rows) && question->policies != NULL; row++) {
        if (begins_policy(rows, row)) {
            question->policies[question->n++] = (struct hearth_policy){
                .service = hearth_arena_str(arena, hearth_pg_str(rows, row, 0)),
                .version = hearth_pg_i64(rows, row, 1),
                .uuid = hearth_arena_str(arena, hearth_pg_str(rows, row, 2)),
                .modified_ms = hearth_pg_i64(rows, row, 3),
                .modified_by = hearth_arena_str(arena, hearth_pg_str(rows, row, 4)),
                .is_observing = hearth_pg_i32(rows, row, 5) != 0,
                .is_deletion = hearth_pg_i32(rows, row, 6) != 0,
                .targets = hearth_arena_array(arena, HEARTH_POLICY_KIND_END,
                                              sizeof(struct hearth_policy_target)),
            };
            if (question->policies[question->n - 1].targets == NULL) {
                break;
            }
        }
        if (!hearth_pg_is_null(rows, row, 7)) {
            HEARTH_TRY(take_item(rows, row, question, err));
        }
    }
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status ask(struct question *question, struct hearth_pg *pg, const char *sql,
                              const struct hearth_pg_params *params,
                              enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_policies(rows, question, err);
    PQclear(rows);
    return status;
}

static enum hearth_status read_policies(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_hash128 *prints =
        hearth_arena_array(question->arena, question->n_services, sizeof prints[0]);
    if (prints == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < question->n_services; i++) {
        prints[i] = hearth_service_fingerprint(question->services[i]);
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_i32(&params, question->n_services > 0);
    hearth_pg_param_uuid_array(&params, prints, question->n_services);
    return ask(question, pg,
               "SELECT s.name," ITEM_COLUMNS " FROM (SELECT p.*, false AS deleted FROM"
               " hearth_data.policy p) v JOIN hearth_data.service s USING (service_id) JOIN"
               " hearth_data.tenant n USING (tenant_id)" ITEM_JOINS
               " WHERE n.name = $1 AND ($2 = 0 OR s.fingerprint = ANY ($3))"
               " ORDER BY s.name COLLATE \"C\", t.n, i.n",
               &params, ret_fault, err);
}

enum hearth_status hearth_store_policies(const struct hearth_scope *scope,
                                         const struct hearth_str *services, size_t n_services,
                                         struct hearth_policy **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .services = services,
                                .n_services = n_services,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_policies, &question, err));
    *ret = question.policies;
    *ret_n = question.n;
    return HEARTH_OK;
}

static enum hearth_status read_versions(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_uuid(&params, hearth_service_fingerprint(question->service));
    return ask(question, pg,
               "SELECT s.name," ITEM_COLUMNS " FROM hearth_data.policy_version v JOIN"
               " hearth_data.service s USING (service_id) JOIN hearth_data.tenant n USING"
               " (tenant_id)" ITEM_JOINS
               " WHERE n.name = $1 AND s.fingerprint = $2 ORDER BY v.version DESC, t.n, i.n",
               &params, ret_fault, err);
}

enum hearth_status hearth_store_policy_versions(const struct hearth_scope *scope,
                                                struct hearth_str service,
                                                struct hearth_policy **ret, size_t *ret_n,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .service = service,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_versions, &question, err));
    *ret = question.policies;
    *ret_n = question.n;
    return HEARTH_OK;
}

/* ---- changing ---- */

/* What is stored, under the lock of the service. */
struct stored {
    int64_t version; /* of the policy; 0: none */
    int64_t newest;  /* that was ever */
    bool is_same;
};

static enum hearth_status look(struct question *question, struct hearth_pg *pg, struct stored *ret,
                               enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_i32(&params, question->service_id);
    HEARTH_TRY(hearth_pg_exec(
        pg, "SELECT 1 FROM hearth_data.service WHERE service_id = $1 FOR NO KEY UPDATE", &params,
        question->cancel, NULL, ret_fault, err));
    hearth_pg_param_text(&params,
                         question->policy == NULL ? hearth_str_n("", 0) : question->policy->uuid);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT coalesce((SELECT version FROM hearth_data.policy WHERE service_id = $1), 0),"
        " coalesce((SELECT max(version) FROM hearth_data.policy_version WHERE service_id = $1), 0),"
        " (SELECT count(*) FROM hearth_data.policy WHERE service_id = $1 AND uuid = $2)",
        &params, question->cancel, &rows, ret_fault, err));
    *ret = (struct stored){hearth_pg_i64(rows, 0, 0), hearth_pg_i64(rows, 0, 1),
                           hearth_pg_i64(rows, 0, 2) > 0};
    PQclear(rows);
    return HEARTH_OK;
}

static enum hearth_status forget_old_versions(struct question *question, struct hearth_pg *pg,
                                              int64_t newest, enum hearth_pg_fault *ret_fault,
                                              struct hearth_err *err)
{
    if (question->max_versions <= 0) {
        return HEARTH_OK;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_i32(&params, question->service_id);
    hearth_pg_param_i64(&params, newest - question->max_versions);
    return hearth_pg_exec(
        pg, "DELETE FROM hearth_data.policy_version WHERE service_id = $1 AND version <= $2",
        &params, question->cancel, NULL, ret_fault, err);
}

static enum hearth_status insert(struct question *question, struct hearth_pg *pg,
                                 enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct hearth_policy *policy = question->policy;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_i32(&params, question->service_id);
    hearth_pg_param_text(&params, policy->json);
    hearth_pg_param_text(&params, policy->uuid);
    hearth_pg_param_i64(&params, policy->version);
    hearth_pg_param_i64(&params, policy->modified_ms);
    hearth_pg_param_text(&params, policy->modified_by);
    hearth_pg_param_i32(&params, policy->is_observing);
    return hearth_pg_exec(
        pg,
        "WITH p AS (INSERT INTO hearth_data.policy (service_id, targets, uuid, version,"
        " modified_at, modified_by, observe) VALUES ($1, $2::jsonb, $3, $4, $5, $6, $7 <> 0)"
        " ON CONFLICT (service_id) DO UPDATE SET targets = excluded.targets, uuid = excluded.uuid,"
        " version = excluded.version, modified_at = excluded.modified_at, modified_by ="
        " excluded.modified_by, observe = excluded.observe RETURNING *)"
        " INSERT INTO hearth_data.policy_version (service_id, targets, uuid, version, modified_at,"
        " modified_by, observe, deleted) SELECT service_id, targets, uuid, version, modified_at,"
        " modified_by, observe, false FROM p",
        &params, question->cancel, NULL, ret_fault, err);
}

static enum hearth_status put_in_transaction(struct question *question, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    struct stored stored;
    HEARTH_TRY(look(question, pg, &stored, ret_fault, err));
    /* An attempt whose COMMIT went unanswered may have done it. */
    bool is_done = stored.is_same && question->n_attempts > 1;
    if (question->expected_version >= 0 && question->expected_version != stored.version &&
        !is_done) {
        return HEARTH_FAIL(err, HEARTH_ABORTED,
                           "the policy of \"" HEARTH_STR_FMT
                           "\" has version %lld, not %lld: somebody changed it",
                           HEARTH_STR_ARG(question->service), (long long)stored.version,
                           (long long)question->expected_version);
    }
    if (stored.is_same) {
        question->policy->version = stored.version;
        return HEARTH_OK;
    }
    question->policy->version = stored.newest + 1;
    question->policy->modified_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    HEARTH_TRY(insert(question, pg, ret_fault, err));
    HEARTH_TRY(forget_old_versions(question, pg, question->policy->version, ret_fault, err));
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status put_policy(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    question->n_attempts++;
    enum hearth_status status = put_in_transaction(question, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_policy_put(const struct hearth_scope *scope,
                                           struct hearth_policy *policy, int64_t expected_version,
                                           int64_t max_versions, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .service = policy->service,
                                .policy = policy,
                                .expected_version = expected_version,
                                .max_versions = max_versions,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_service_id(scope, policy->service, true, &question.service_id, err);
    if (status == HEARTH_OK) {
        status = hearth_store_with_pg(scope->store, scope->cancel, put_policy, &question, err);
    }
    hearth_arena_release(&arena);
    return status;
}

static enum hearth_status delete_in_transaction(struct question *question, struct hearth_pg *pg,
                                                enum hearth_pg_fault *ret_fault,
                                                struct hearth_err *err)
{
    struct stored stored;
    HEARTH_TRY(look(question, pg, &stored, ret_fault, err));
    question->n = stored.version > 0 || (question->n > 0 && question->n_attempts > 1);
    if (stored.version == 0) {
        return HEARTH_OK;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_i32(&params, question->service_id);
    hearth_pg_param_i64(&params, stored.newest + 1);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);
    hearth_pg_param_text(&params, question->modified_by);
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "WITH p AS (DELETE FROM hearth_data.policy WHERE service_id = $1 RETURNING service_id)"
        " INSERT INTO hearth_data.policy_version (service_id, targets, uuid, version, modified_at,"
        " modified_by, observe, deleted) SELECT service_id, '[]', '', $2, $3, $4, false, true"
        " FROM p",
        &params, question->cancel, NULL, ret_fault, err));
    HEARTH_TRY(forget_old_versions(question, pg, stored.newest + 1, ret_fault, err));
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status delete_policy(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    question->n_attempts++;
    enum hearth_status status = delete_in_transaction(question, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_policy_delete(const struct hearth_scope *scope,
                                              struct hearth_str service,
                                              struct hearth_str modified_by, int64_t max_versions,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .service = service,
                                .modified_by = modified_by,
                                .max_versions = max_versions,
                                .cancel = scope->cancel,
                                .arena = &arena};
    struct hearth_err reason = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_store_service_id(scope, service, false, &question.service_id, &reason);
    if (status == HEARTH_OK) {
        status =
            hearth_store_with_pg(scope->store, scope->cancel, delete_policy, &question, &reason);
    }
    hearth_arena_release(&arena);
    if (status == HEARTH_NOT_FOUND || (status == HEARTH_OK && question.n == 0)) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "service \"" HEARTH_STR_FMT "\" has no policy",
                           HEARTH_STR_ARG(service));
    }
    if (status != HEARTH_OK && err != NULL) {
        *err = reason;
    }
    return status;
}

/* ---- what they started ---- */

static enum hearth_status read_counts(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_arena *arena = question->arena;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_text(&params, question->service);
    hearth_pg_param_i64(&params, question->since_ms);
    hearth_pg_param_i32(&params, question->by_process);
    hearth_pg_param_i32(&params, HEARTH_TASK_BY_POLICY);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT s.name, k.kind::int4, CASE WHEN $4 <> 0 THEN coalesce(k.instance, '') ELSE '' END,"
        " CASE WHEN $4 <> 0 THEN coalesce(k.process_id, '') ELSE '' END, count(*)::int4,"
        " max(k.start_at) FROM hearth_data.task k JOIN hearth_data.service s USING (service_id)"
        " JOIN hearth_data.tenant n USING (tenant_id) WHERE n.name = $1 AND ($2 = '' OR s.name ="
        " $2) AND k.origin = $5 AND k.start_at >= $3 GROUP BY 1, 2, 3, 4",
        &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->counts = hearth_arena_array(arena, question->n, sizeof question->counts[0]);
    for (size_t i = 0; i < question->n && question->counts != NULL; i++) {
        int row = (int)i;
        question->counts[i] = (struct hearth_trigger_count){
            .service = hearth_arena_str(arena, hearth_pg_str(rows, row, 0)),
            .kind = hearth_pg_i32(rows, row, 1),
            .instance = hearth_arena_str(arena, hearth_pg_str(rows, row, 2)),
            .process_id = hearth_arena_str(arena, hearth_pg_str(rows, row, 3)),
            .n = hearth_pg_i32(rows, row, 4),
            .last_ms = hearth_pg_i64(rows, row, 5),
        };
    }
    PQclear(rows);
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_store_trigger_counts(const struct hearth_scope *scope,
                                               struct hearth_str service, int64_t since_ms,
                                               bool by_process, struct hearth_trigger_count **ret,
                                               size_t *ret_n, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .service = service,
                                .since_ms = since_ms,
                                .by_process = by_process,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_counts, &question, err));
    *ret = question.counts;
    *ret_n = question.n;
    return HEARTH_OK;
}
