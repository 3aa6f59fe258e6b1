/*
 * agents_expire.c -- deletes instances and processes that were not reported for `retain-agents`,
 * and services that have nothing else.
 *
 * An instance or process that a task or its results name stays as long as these, so that their
 * names are known. Processes are deleted first, then instances without processes, then services
 * without instances. Every server may run this at any time.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"

#include "catalog/services.h"
#include "pg/pg_rows.h"
#include "tasks/tasks_expire.h"

#include <assert.h>

/* Larger slices would make long transactions. */
#define SLICE_ROWS 5000

/*
 * Delete a slice of the processes, or of the instances, that were last seen before $1, at most $2.
 * Locked rows are skipped: they are being reported. Rows are locked in the order of their keys.
 */
static const char SQL_PROCESSES[] =
    "WITH old AS (SELECT p.service_id, p.process_id"
    "  FROM hearth_data.process p JOIN hearth_data.instance i USING (instance_id)"
    "  WHERE p.last_seen < $1"
    "  AND NOT EXISTS (SELECT FROM hearth_data.task k WHERE k.service_id = p.service_id"
    "   AND (k.process_id = p.process_id OR k.instance = i.name))"
    "  AND NOT EXISTS (SELECT FROM hearth_data.task_schedule h WHERE h.service_id = p.service_id"
    "   AND h.process_id = p.process_id)"
    "  ORDER BY p.service_id, p.process_id LIMIT $2 FOR UPDATE OF p SKIP LOCKED)"
    " DELETE FROM hearth_data.process p USING old"
    " WHERE p.service_id = old.service_id AND p.process_id = old.process_id RETURNING p.service_id";
static const char SQL_INSTANCES[] =
    "WITH old AS (SELECT i.instance_id FROM hearth_data.instance i WHERE i.last_seen < $1"
    "  AND NOT EXISTS (SELECT FROM hearth_data.process p WHERE p.instance_id = i.instance_id)"
    "  AND NOT EXISTS (SELECT FROM hearth_data.task k WHERE k.service_id = i.service_id"
    "   AND (k.instance = i.name OR i.name = ANY (k.instances)))"
    "  ORDER BY i.instance_id LIMIT $2 FOR UPDATE SKIP LOCKED)"
    " DELETE FROM hearth_data.instance i USING old"
    " WHERE i.instance_id = old.instance_id RETURNING i.service_id";

/* One round of deletions. */
struct agents_expiry {
    struct hearth_pg *pg;
    struct hearth_arena arena;
    int64_t before_ms; /* entities that were last seen before are deleted */
};

/* *ret_services: the services of the deleted rows, one for each row. */
static enum hearth_status delete_agents_slice(struct agents_expiry *expiry, const char *sql,
                                              int32_t **ret_services, size_t *ret_n,
                                              struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &expiry->arena);
    hearth_pg_param_i64(&params, expiry->before_ms);
    hearth_pg_param_i64(&params, SLICE_ROWS);

    const struct hearth_pg_query query = {
        .sql = sql, .params = &params, .type = &hearth_i32_rows, .arena = &expiry->arena};
    return hearth_pg_select(expiry->pg, &query, ret_services, ret_n, NULL, err);
}

#define UNUSED_SERVICES                                                                     \
    " FROM hearth_data.service e WHERE e.service_id = ANY ($1) AND NOT EXISTS (SELECT FROM" \
    " hearth_data.series s WHERE s.service_id = e.service_id) AND NOT " HEARTH_SERVICE_IS_NEEDED

/*
 * Deletes the services as catalog_prune.c deletes series: under the lock of the catalogue's clock,
 * with a new epoch. On failure, the caller rolls back.
 */
static enum hearth_status delete_services_in_transaction(struct agents_expiry *expiry,
                                                         const int32_t *service_ids, size_t n,
                                                         struct hearth_err *err)
{
    struct hearth_pg *pg = expiry->pg;
    struct hearth_pg_params services;
    hearth_pg_params_init(&services, &expiry->arena);
    hearth_pg_param_i32_array(&services, service_ids, n);

    HEARTH_TRY(hearth_pg_script(pg,
                                "BEGIN ISOLATION LEVEL READ COMMITTED;"
                                "SET LOCAL idle_in_transaction_session_timeout = 10000;"
                                "SET LOCAL lock_timeout = 15000;"
                                "UPDATE hearth_data.catalog_clock SET version = version + 1,"
                                " epoch = epoch + 1",
                                NULL, err));
    HEARTH_TRY(hearth_pg_exec(pg, HEARTH_SQL_LOCK_SERVICES, &services, NULL, NULL, NULL, err));

    int32_t *without_spans = NULL;
    HEARTH_TRY(hearth_services_without_spans(pg, service_ids, n, &expiry->arena, &without_spans, &n,
                                             NULL, err));
    hearth_pg_params_init(&services, &expiry->arena);
    hearth_pg_param_i32_array(&services, without_spans, n);
    HEARTH_TRY(hearth_pg_exec(pg, "DELETE" UNUSED_SERVICES, &services, NULL, NULL, NULL, err));

    return hearth_pg_script(pg, "COMMIT", NULL, err);
}

/*
 * Deletes the state of those of the services that are gone: ids are not used again. In another
 * transaction than the services, because roll_state is locked before the clock.
 */
static enum hearth_status delete_states(struct agents_expiry *expiry,
                                        const struct hearth_pg_params *services,
                                        struct hearth_err *err)
{
    const struct hearth_pg_query query = {
        .sql = "SELECT u.service_id FROM unnest($1::int4[]) u (service_id) WHERE NOT EXISTS (SELECT"
               " FROM hearth_data.service s WHERE s.service_id = u.service_id)",
        .params = services,
        .type = &hearth_i32_rows,
        .arena = &expiry->arena};
    int32_t *gone = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(expiry->pg, &query, &gone, &n, NULL, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &expiry->arena);
    hearth_pg_param_i32_array(&params, gone, n);

    return hearth_pg_exec(expiry->pg,
                          "DELETE FROM hearth_data.roll_state r WHERE service_id = ANY ($1) AND NOT"
                          " EXISTS (SELECT 1 FROM hearth_data.tombstone t WHERE t.service_id ="
                          " r.service_id)",
                          &params, NULL, NULL, NULL, err);
}

/* Deletes those of the n services that have neither series nor instances. */
static enum hearth_status delete_unused_services(struct agents_expiry *expiry,
                                                 const int32_t *service_ids, size_t n,
                                                 struct hearth_err *err)
{
    assert(service_ids != NULL && n > 0);

    /* Find out whether there are any. */
    struct hearth_pg *pg = expiry->pg;
    int32_t *without_spans = NULL;
    HEARTH_TRY(hearth_services_without_spans(pg, service_ids, n, &expiry->arena, &without_spans, &n,
                                             NULL, err));
    struct hearth_pg_params services;
    hearth_pg_params_init(&services, &expiry->arena);
    hearth_pg_param_i32_array(&services, without_spans, n);

    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, "SELECT 1" UNUSED_SERVICES, &services, NULL, &rows, NULL, err));
    bool any = PQntuples(rows) > 0;
    PQclear(rows);

    if (!any) {
        return HEARTH_OK; /* usually: no new epoch, no lock */
    }

    /* Delete them. */
    enum hearth_status status = delete_services_in_transaction(expiry, without_spans, n, err);
    hearth_pg_rollback(pg);
    HEARTH_TRY(status);

    return delete_states(expiry, &services, err);
}

/* *ret_more: a full slice was deleted, there may be more rows. */
static enum hearth_status expire_agents_slice(struct agents_expiry *expiry, bool *ret_more,
                                              struct hearth_err *err)
{
    int32_t *service_ids = NULL;
    size_t n_processes = 0, n = 0;

    /* Delete processes, then instances. */
    HEARTH_TRY(delete_agents_slice(expiry, SQL_PROCESSES, &service_ids, &n_processes, err));
    HEARTH_TRY(delete_agents_slice(expiry, SQL_INSTANCES, &service_ids, &n, err));
    if (n > 0) {
        HEARTH_LOG(HEARTH_LOG_INFO, "store", "deleted instances that were not reported any more",
                   "instances", hearth_log_i64((int64_t)n), NULL);
    }

    *ret_more = n_processes == SLICE_ROWS || n == SLICE_ROWS;

    /* Delete notes of old polls. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &expiry->arena);
    hearth_pg_param_i64(&params, expiry->before_ms);
    HEARTH_TRY(hearth_pg_exec(expiry->pg, "DELETE FROM hearth_data.agent_poll WHERE at < $1",
                              &params, NULL, NULL, NULL, err));

    return n > 0 ? delete_unused_services(expiry, service_ids, n, err) : HEARTH_OK;
}

enum hearth_status hearth_agents_expire(struct hearth_pg *pg, int64_t retain_ns,
                                        struct hearth_err *err)
{
    if (retain_ns <= 0) {
        return HEARTH_OK;
    }

    struct agents_expiry expiry = {
        .pg = pg,
        .before_ms = (hearth_clock_wall_ns() - retain_ns) / HEARTH_NS_PER_MS,
    };
    enum hearth_status status = HEARTH_OK;
    bool more = true;
    while (more && status == HEARTH_OK) {
        hearth_arena_init(&expiry.arena, 0);
        status = expire_agents_slice(&expiry, &more, err);
        hearth_arena_release(&expiry.arena);
    }

    return status;
}
