/* services.c -- find services by name, and create services without profiles (services.h). */
#include "catalog/services.h"

#include "hearth/base/limit.h"
#include "hearth/store/settings.h"
#include "hearth/store/store_agents.h"

#include "pg/pg.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* The same as in catalog_insert.c: one writer at a time over all servers, which may not hang. */
#define SQL_BEGIN                                            \
    "BEGIN ISOLATION LEVEL READ COMMITTED;"                  \
    "SET LOCAL idle_in_transaction_session_timeout = 10000;" \
    "SET LOCAL lock_timeout = 15000;"                        \
    "UPDATE hearth_data.catalog_clock SET version = version + 1"

enum hearth_status hearth_services_refuse(int64_t n_old, int64_t n_new, int64_t limit,
                                          struct hearth_err *err)
{
    (void)HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                      "the tenant has %lld services and %lld new ones would exceed the limit of "
                      "%lld" HEARTH_RAISE_LIMIT("max-services"),
                      (long long)n_old, (long long)n_new, (long long)limit);
    if (err != NULL) {
        err->limit = "max-services";
    }

    return HEARTH_RESOURCE_EXHAUSTED;
}

/* $1: tenant. Fails if it has too many services, n_made of which were created just now. */
static enum hearth_status check_number(struct hearth_pg *pg, const struct hearth_pg_params *tenant,
                                       int64_t n_made, int64_t limit,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    PGresult *rows = NULL;

    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT count(*) FROM hearth_data.service JOIN hearth_data.tenant t"
                              " USING (tenant_id) WHERE t.name = $1",
                              tenant, NULL, &rows, ret_fault, err));
    int64_t n = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return limit > 0 && n > limit ? hearth_services_refuse(n - n_made, n_made, limit, err)
                                  : HEARTH_OK;
}

/* $1: tenant; for services also $2: fingerprints, $3: names. */
static enum hearth_status create_in_transaction(struct hearth_pg *pg,
                                                const struct hearth_pg_params *tenant,
                                                const struct hearth_pg_params *services,
                                                int64_t limit, struct hearth_cancel *cancel,
                                                enum hearth_pg_fault *ret_fault,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, SQL_BEGIN, ret_fault, err));
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.tenant (name, version) SELECT $1, c.version FROM"
        " hearth_data.catalog_clock c WHERE NOT EXISTS (SELECT FROM hearth_data.tenant t WHERE"
        " t.name = $1)",
        tenant, cancel, NULL, ret_fault, err));

    /*
     * The existing services are found by one look-up of the unique index on (tenant_id,
     * fingerprint). NOT EXISTS would compare each with all while statistics are missing.
     */
    PGresult *made = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.service (tenant_id, fingerprint, name, version)"
        " SELECT DISTINCT t.tenant_id, u.fp, u.name, c.version FROM unnest($2::uuid[], $3::text[])"
        " u (fp, name), hearth_data.tenant t, hearth_data.catalog_clock c WHERE t.name = $1 AND"
        " u.fp <> ALL (ARRAY (SELECT s.fingerprint FROM hearth_data.tenant o JOIN"
        " hearth_data.service s USING (tenant_id) WHERE o.name = $1 AND s.fingerprint ="
        " ANY ($2::uuid[]))) RETURNING 1",
        services, cancel, &made, ret_fault, err));
    int64_t n_made = PQntuples(made);
    PQclear(made);
    if (n_made > 0) {
        HEARTH_TRY(check_number(pg, tenant, n_made, limit, ret_fault, err));
    }

    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

enum hearth_status hearth_services_make(struct hearth_store *store, struct hearth_pg *pg,
                                        struct hearth_str tenant, const struct hearth_str *services,
                                        size_t n, struct hearth_cancel *cancel,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    enum hearth_status status;
    struct hearth_hash128 *prints = hearth_arena_array(&arena, n, sizeof *prints);
    if (prints == NULL) {
        status = HEARTH_FAIL_ARENA(err, &arena);
    } else {
        for (size_t i = 0; i < n; i++) {
            prints[i] = hearth_service_fingerprint(services[i]);
        }
        struct hearth_pg_params of_tenant, of_services;
        hearth_pg_params_init(&of_tenant, &arena);
        hearth_pg_param_text(&of_tenant, tenant);
        hearth_pg_params_init(&of_services, &arena);
        hearth_pg_param_text(&of_services, tenant);
        hearth_pg_param_uuid_array(&of_services, prints, n);
        hearth_pg_param_text_array(&of_services, services, n);
        int64_t limit = hearth_store_setting(store, tenant, "max-services",
                                             (int64_t)hearth_store_live(store)->max_services);
        const struct hearth_pg_params *wall = hearth_pg_leave_wall(pg);
        status = create_in_transaction(pg, &of_tenant, &of_services, limit, cancel, ret_fault, err);
        hearth_pg_rollback(pg);
        pg->wall = wall;
    }

    if (*ret_fault == HEARTH_PG_FAULT_UNIQUE) {
        *ret_fault = HEARTH_PG_FAULT_RETRY; /* a row without the clock's lock: found next time */
    }

    hearth_arena_release(&arena);

    return status;
}

/* ---- by name ---- */

struct service_query {
    struct hearth_store *store;
    struct hearth_str tenant;
    const struct hearth_str *services;
    size_t n;
    bool make; /* create missing services */
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    int32_t *ids; /* [n]; 0: the service does not exist */
    bool has_all; /* all services exist */
};

/* Set the ids of existing services. The unique index on (tenant_id, fingerprint) serves it. */
static enum hearth_status look_up_services(struct service_query *query, struct hearth_pg *pg,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_hash128 *prints = hearth_arena_array(query->arena, query->n, sizeof *prints);
    if (prints == NULL) {
        return HEARTH_FAIL_ARENA(err, query->arena);
    }

    for (size_t i = 0; i < query->n; i++) {
        prints[i] = hearth_service_fingerprint(query->services[i]);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, query->arena);
    hearth_pg_param_text(&params, query->tenant);
    hearth_pg_param_uuid_array(&params, prints, query->n);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT s.service_id, u.at::int4 FROM unnest($2::uuid[]) WITH"
                              " ORDINALITY u (fp, at), hearth_data.tenant t, hearth_data.service s"
                              " WHERE t.name = $1 AND s.tenant_id = t.tenant_id AND"
                              " s.fingerprint = u.fp",
                              &params, query->cancel, &rows, ret_fault, err));
    for (int row = 0; row < PQntuples(rows); row++) {
        query->ids[hearth_pg_i32(rows, row, 1) - 1] = hearth_pg_i32(rows, row, 0);
    }

    query->has_all = (size_t)PQntuples(rows) == query->n;
    PQclear(rows);

    return HEARTH_OK;
}

static enum hearth_status find_or_create_services(void *context, struct hearth_pg *pg,
                                                  enum hearth_pg_fault *ret_fault,
                                                  struct hearth_err *err)
{
    struct service_query *query = context;

    HEARTH_TRY(look_up_services(query, pg, ret_fault, err));
    if (query->has_all || !query->make) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_services_make(query->store, pg, query->tenant, query->services, query->n,
                                    query->cancel, ret_fault, err));

    return look_up_services(query, pg, ret_fault, err);
}

/* Check the names, and set all ids or fail. */
static enum hearth_status find_valid_services(const struct hearth_scope *scope,
                                              const struct hearth_str *services, size_t n,
                                              bool make, int32_t *ret_ids, struct hearth_err *err)
{
    assert(scope != NULL && (n == 0 || (services != NULL && ret_ids != NULL)));

    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    for (size_t i = 0; i < n; i++) {
        ret_ids[i] = 0;
        if (services[i].n == 0 || services[i].n > HEARTH_AGENT_NAME_BYTES ||
            !hearth_str_utf8_valid(services[i])) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "a service's name is 1 to %d bytes of UTF-8: \"" HEARTH_STR_FMT
                               "\" is not",
                               HEARTH_AGENT_NAME_BYTES, HEARTH_STR_ARG(services[i]));
        }
    }

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct service_query query = {.store = scope->store,
                                  .tenant = scope->tenant,
                                  .services = services,
                                  .n = n,
                                  .make = make,
                                  .cancel = scope->cancel,
                                  .arena = &arena,
                                  .ids = ret_ids};
    enum hearth_status status = hearth_store_with_pg(scope, find_or_create_services, &query, err);
    hearth_arena_release(&arena);
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        if (ret_ids[i] == 0) {
            status =
                HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no service \"" HEARTH_STR_FMT "\"",
                            HEARTH_STR_ARG(services[i]));
        }
    }

    return status;
}

enum hearth_status hearth_store_service_id(const struct hearth_scope *scope,
                                           struct hearth_str service, bool make,
                                           int32_t *ret_service_id, struct hearth_err *err)
{
    assert(scope != NULL && ret_service_id != NULL);

    int32_t id = 0;
    HEARTH_TRY(find_valid_services(scope, &service, 1, make, &id, err));
    *ret_service_id = id;
    return HEARTH_OK;
}

enum hearth_status hearth_store_service_ids(const struct hearth_scope *scope,
                                            const struct hearth_str *services, size_t n,
                                            int32_t *ret_ids, struct hearth_err *err)
{
    return find_valid_services(scope, services, n, true, ret_ids, err);
}

/* ---- removal ---- */

enum hearth_status hearth_services_without_spans(struct hearth_pg *pg, const int32_t *service_ids,
                                                 size_t n, struct hearth_arena *arena,
                                                 int32_t **ret, size_t *ret_n,
                                                 enum hearth_pg_fault *ret_fault,
                                                 struct hearth_err *err)
{
    assert(service_ids != NULL || n == 0);

    int32_t *without = hearth_arena_array(arena, n, sizeof *without);
    size_t n_without = 0;
    if (without == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        char sql[96];
        PGresult *result = NULL;
        (void)snprintf(sql, sizeof sql,
                       "SELECT 1 FROM hearth_data.span_group WHERE service_id = %" PRId32
                       " LIMIT 1",
                       service_ids[i]);
        HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, ret_fault, err));
        if (PQntuples(result) == 0) {
            without[n_without++] = service_ids[i];
        }
        PQclear(result);
    }

    *ret = without;
    *ret_n = n_without;

    return HEARTH_OK;
}
