/* wall.c -- the role of row-level security, and the tenants of a call (contract: wall.h). */
#include "session/wall.h"

#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "nodes/layout.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>
#include <stdio.h>

/* Servers of one cluster create the role at the same time: the losers find it afterwards. */
#define RAISE_ATTEMPTS 3

/* ---- the role ---- */

struct role_state {
    char name[HEARTH_WALL_ROLE_BYTES]; /* of the role */
    char login[HEARTH_WALL_ROLE_BYTES];
    bool exists, is_member;
};

static void copy_name(const PGresult *result, int column, char out[HEARTH_WALL_ROLE_BYTES])
{
    struct hearth_str name = hearth_pg_str(result, 0, column);
    (void)snprintf(out, HEARTH_WALL_ROLE_BYTES, HEARTH_STR_FMT, HEARTH_STR_ARG(name));
}

/* Look the role up, by the name of the owner of the schema; a name has at most 63 bytes. */
static enum hearth_status look_up_role(struct hearth_pg *pg, struct role_state *ret,
                                       struct hearth_err *err)
{
    static const char sql[] =
        "SELECT n.name::text, current_user::text, (r.oid IS NOT NULL)::int4,"
        " coalesce(pg_has_role(r.oid, 'MEMBER'), false)::int4 FROM (SELECT (left(pg_get_userbyid("
        "nspowner), 56) || '_tenant')::name AS name FROM pg_namespace WHERE nspname ="
        " 'hearth_data') n LEFT JOIN pg_roles r ON r.rolname = n.name";
    PGresult *result = NULL;

    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    if (PQntuples(result) != 1) {
        PQclear(result);
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the schema hearth_data has no owner");
    }

    copy_name(result, 0, ret->name);
    copy_name(result, 1, ret->login);
    ret->exists = hearth_pg_i32(result, 0, 2) != 0;
    ret->is_member = hearth_pg_i32(result, 0, 3) != 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Create the role if it is missing, and become a member, if the login may. */
static enum hearth_status create_role(struct hearth_pg *pg, const struct role_state *role,
                                      struct hearth_err *err)
{
    char *name = PQescapeIdentifier(pg->conn, role->name, strlen(role->name));
    char *login = PQescapeIdentifier(pg->conn, role->login, strlen(role->login));
    enum hearth_status status = HEARTH_OK;

    if (name == NULL || login == NULL) {
        status = HEARTH_FAIL(err, HEARTH_INTERNAL, "the name of a database role cannot be quoted");
    } else {
        char sql[512];
        (void)snprintf(sql, sizeof sql, "BEGIN; %s%s%s GRANT %s TO %s; COMMIT",
                       role->exists ? "" : "CREATE ROLE ", role->exists ? "" : name,
                       role->exists ? "" : " NOLOGIN;", name, login);
        status = hearth_pg_script(pg, sql, NULL, err);
        hearth_pg_rollback(pg);
    }

    PQfreemem(name);
    PQfreemem(login);

    return status;
}

/* Grant the role what it lacks, one server at a time. */
static enum hearth_status grant_tables(struct hearth_pg *pg, const char *role,
                                       struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, hearth_str_c(role));

    enum hearth_status status = hearth_pg_script(
        pg, "BEGIN; SELECT pg_advisory_xact_lock(" HEARTH_LOCK_MIGRATE ")", NULL, err);
    if (status == HEARTH_OK) {
        status = hearth_pg_exec(pg, "SELECT hearth_data.grant_tenant_role($1)", &params, NULL, NULL,
                                NULL, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_pg_script(pg, "COMMIT", NULL, err);
    }

    hearth_pg_rollback(pg);

    return status;
}

static enum hearth_status try_to_raise(struct hearth_pg *pg, struct role_state *role,
                                       struct hearth_err *err)
{
    HEARTH_TRY(look_up_role(pg, role, err));
    if (!role->is_member) {
        HEARTH_TRY(create_role(pg, role, err));
    }

    return pg->read_only != NULL ? HEARTH_OK : grant_tables(pg, role->name, err);
}

enum hearth_status hearth_wall_raise(struct hearth_store *store, struct hearth_pg *pg,
                                     struct hearth_err *err)
{
    enum hearth_row_level_security wanted = store->options.row_level_security;
    if (wanted == HEARTH_ROW_LEVEL_SECURITY_OFF || atomic_load(&store->wall.is_up)) {
        return HEARTH_OK;
    }

    /* The role and the settings of a transaction do not reach the nodes. */
    if (hearth_layout_is_distributed(store)) {
        hearth_metric_set(HEARTH_M_ROW_LEVEL_SECURITY, 0);
        return wanted != HEARTH_ROW_LEVEL_SECURITY_REQUIRE
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                                 "row-level-security is required, but the data tables are "
                                 "distributed, where it does not work");
    }

    struct role_state role = {.name = ""};
    struct hearth_err reason = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_UNAVAILABLE;
    for (int i = 0; i < RAISE_ATTEMPTS && status != HEARTH_OK && hearth_pg_alive(pg); i++) {
        reason = (struct hearth_err)HEARTH_ERR_INIT;
        status = try_to_raise(pg, &role, &reason);
    }

    if (status == HEARTH_OK) {
        (void)snprintf(store->wall.role, sizeof store->wall.role, "%s", role.name);
        atomic_store(&store->wall.is_up, true);
        hearth_metric_set(HEARTH_M_ROW_LEVEL_SECURITY, 1);
        return HEARTH_OK;
    }

    if (status == HEARTH_UNAVAILABLE || role.name[0] == '\0') {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", reason.msg);
    }

    /* The login may not create the role. */
    if (wanted == HEARTH_ROW_LEVEL_SECURITY_REQUIRE) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "row-level-security is required, but role \"%s\" cannot be used; an "
                           "administrator has to run CREATE ROLE and GRANT (%.100s)",
                           role.name, reason.msg);
    }

    HEARTH_LOG(HEARTH_LOG_WARN, "store",
               "no row-level security: an administrator has to create the role and grant it",
               "role", role.name, "to", role.login, "reason", reason.msg, NULL);
    hearth_metric_set(HEARTH_M_ROW_LEVEL_SECURITY, 0);

    return HEARTH_OK;
}

void hearth_wall_explain(struct hearth_store *store, char out[256])
{
    out[0] = '\0';
    if (store->options.row_level_security == HEARTH_ROW_LEVEL_SECURITY_AUTO &&
        !atomic_load(&store->wall.is_up)) {
        (void)snprintf(out, 256, "tenants are not separated by row-level security: %s",
                       hearth_layout_is_distributed(store)
                           ? "the data tables are distributed; see docs/how-to/scale-out.md"
                           : "the database role may not create a role; see "
                             "docs/how-to/external-postgresql.md");
    }
}

/* ---- tenants of a call ---- */

/* A refused allocation marks the parameters as failed. */
static void add_tenant_names(struct hearth_wall *wall, const struct hearth_scope *scope)
{
    size_t n = scope->n_tenants;
    struct hearth_str *names = hearth_arena_array(&wall->arena, n, sizeof *names);

    for (size_t i = 0; names != NULL && i < n; i++) {
        names[i] = scope->tenants[i].tenant;
    }
    hearth_pg_param_text_array(&wall->params, n > 0 ? names : &scope->tenant,
                               n == 0          ? 1
                               : names == NULL ? 0
                                               : n);
}

bool hearth_wall_stands(const struct hearth_scope *scope)
{
    return !scope->is_owner && atomic_load(&scope->store->wall.is_up);
}

void hearth_wall_init(struct hearth_wall *wall, const struct hearth_scope *scope,
                      const int32_t *services, size_t n_services)
{
    assert(services != NULL || n_services == 0);

    *wall = (struct hearth_wall){.is_up = hearth_wall_stands(scope)};
    hearth_arena_init(&wall->arena, 0);
    if (!wall->is_up) {
        return;
    }

    hearth_pg_params_init(&wall->params, &wall->arena);
    add_tenant_names(wall, scope);
    hearth_pg_param_i32_array(&wall->params, services, n_services);
    hearth_pg_param_text(&wall->params, hearth_str_c(scope->store->wall.role));
}

void hearth_wall_release(struct hearth_wall *wall)
{
    hearth_arena_release(&wall->arena);
}

const struct hearth_pg_params *hearth_wall_params(const struct hearth_wall *wall)
{
    return wall->is_up ? &wall->params : NULL;
}
