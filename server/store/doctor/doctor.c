/*
 * doctor.c -- checks a database for an operator: settings, rights, clock, connections, leaves,
 * vacuum, background work, replica; each check says what to do.
 */
#include "doctor/doctor.h"

#include "hearth/base/clock.h"
#include "hearth/base/embedded.h"

#include "pg/pg_rows.h"
#include "pg/pool.h"
#include "pg/store_state.h"
#include "session/node_state.h"
#include "session/partitions.h"
#include "session/replica.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* Run a query that returns one row or more. */
static enum hearth_status run_check_query(struct hearth_doctor *doctor, const char *sql,
                                          PGresult **ret_result, struct hearth_err *err)
{
    enum hearth_status status = hearth_pg_exec(doctor->pg, sql, NULL, NULL, ret_result, NULL, err);
    if (status == HEARTH_OK && PQntuples(*ret_result) == 0) {
        PQclear(*ret_result);
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "a query of the doctor returned no row");
    }

    return status;
}

/* Return whether a boolean column of the first row is true; NULL is false. */
static bool is_true(const PGresult *result, int column)
{
    struct hearth_str value = hearth_pg_str(result, 0, column);

    return value.n == 1 && value.p[0] != 0;
}

static const char *format_seconds(struct hearth_doctor *doctor, int64_t ns)
{
    return hearth_arena_printf(doctor->arena, "%.1f s", (double)ns / (double)HEARTH_NS_PER_SEC);
}

/* ---- the server ---- */

static void check_version(struct hearth_doctor *doctor, const PGresult *result)
{
    int version = PQserverVersion(doctor->pg->conn);
    hearth_doctor_report(doctor, "version",
                         version < 130000   ? HEARTH_VERDICT_WRONG
                         : version < 140000 ? HEARTH_VERDICT_ADVICE
                                            : HEARTH_VERDICT_OK,
                         hearth_doctor_copy(doctor, result, 0, 0),
                         "upgrade to a version that still gets fixes");

    const char *encoding = hearth_doctor_copy(doctor, result, 0, 1);
    hearth_doctor_report(
        doctor, "encoding",
        strcmp(encoding, "UTF8") == 0 ? HEARTH_VERDICT_OK : HEARTH_VERDICT_WRONG, encoding,
        "texts must be UTF-8: create a new database: CREATE DATABASE .. ENCODING 'UTF8' "
        "TEMPLATE template0");

    bool standby = is_true(result, 2);
    hearth_doctor_report(
        doctor, "role", standby ? HEARTH_VERDICT_WRONG : HEARTH_VERDICT_OK,
        standby ? "a standby: it cannot be written" : "primary",
        "point --database-url at the primary (or list all hosts: hearthd finds it)");
}

/* from_ns, to_ns: this machine's time before and after the statement. */
static void check_clock(struct hearth_doctor *doctor, const PGresult *result, int64_t from_ns,
                        int64_t to_ns)
{
    int64_t off_ns = hearth_pg_i64(result, 0, 3) - (from_ns + (to_ns - from_ns) / 2);

    off_ns = off_ns < 0 ? -off_ns : off_ns;
    off_ns = off_ns < to_ns - from_ns ? 0 : off_ns; /* the statement took longer */
    hearth_doctor_report(
        doctor, "clock",
        off_ns > 60 * HEARTH_NS_PER_SEC  ? HEARTH_VERDICT_WRONG
        : off_ns > 2 * HEARTH_NS_PER_SEC ? HEARTH_VERDICT_ADVICE
                                         : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena, "differs from this server's clock by %s",
                            format_seconds(doctor, off_ns)),
        "let both machines keep time (NTP): buckets close and leases expire by the clock");
}

static void check_pooler(struct hearth_doctor *doctor, const PGresult *result)
{
    /* A pooler announces a process id of its own. */
    bool direct = hearth_pg_i32(result, 0, 4) == PQbackendPID(doctor->pg->conn);

    hearth_doctor_report(
        doctor, "pooler", direct ? HEARTH_VERDICT_OK : HEARTH_VERDICT_ADVICE,
        direct ? "no pooler" : "connected through a pooler (PgBouncer)",
        hearth_arena_printf(doctor->arena,
                            "fine with pool_mode transaction or session, never statement, "
                            "and default_pool_size of at least %" PRId64 " for each hearthd; a "
                            "direct connection saves a hop (docs/how-to/pgbouncer.md)",
                            hearth_doctor_connections_of_one(doctor, false)));
}

static enum hearth_status check_server(struct hearth_doctor *doctor, struct hearth_err *err)
{
    int64_t from_ns = hearth_clock_wall_ns();
    PGresult *result = NULL;

    HEARTH_TRY(run_check_query(
        doctor,
        "SELECT current_setting('server_version'), current_setting('server_encoding'),"
        " pg_is_in_recovery(),"
        " (extract(epoch FROM clock_timestamp()) * 1000000)::int8 * 1000,"
        " pg_backend_pid()",
        &result, err));
    int64_t to_ns = hearth_clock_wall_ns();

    check_version(doctor, result);
    check_clock(doctor, result, from_ns, to_ns);
    check_pooler(doctor, result);
    PQclear(result);

    return HEARTH_OK;
}

static enum hearth_status check_connections(struct hearth_doctor *doctor, struct hearth_err *err)
{
    PGresult *result = NULL;

    /* Limits of the server, the role and the database, and how many hearthd were seen lately. */
    HEARTH_TRY(
        run_check_query(doctor,
                        "SELECT current_setting('max_connections')::int8"
                        " - current_setting('superuser_reserved_connections')::int8"
                        " - coalesce(current_setting('reserved_connections', true)::int8, 0),"
                        " (SELECT count(*) FROM hearth_data.writer"
                        "   WHERE seen_at > now() - interval '3 minutes'),"
                        " (SELECT rolconnlimit::int8 FROM pg_roles WHERE rolname = current_user),"
                        " (SELECT datconnlimit::int8 FROM pg_database"
                        "   WHERE datname = current_database())",
                        &result, err));
    int64_t room = hearth_pg_i64(result, 0, 0), servers = hearth_pg_i64(result, 0, 1);
    for (int column = 2; column < 4; column++) { /* -1: no limit */
        int64_t limit = hearth_pg_i64(result, 0, column);
        room = limit >= 0 && limit < room ? limit : room;
    }

    PQclear(result);

    doctor->n_servers = servers = servers < 1 ? 1 : servers;
    int64_t need = hearth_doctor_count_connections(doctor, false);
    hearth_doctor_report(
        doctor, "connections", need > room ? HEARTH_VERDICT_WRONG : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena,
                            "%" PRId64 " hearthd can need %" PRId64 " of %" PRId64 " connections",
                            servers, need, room),
        "raise max_connections (or the limit of the role or database), lower --readers, or "
        "connect through PgBouncer");

    return HEARTH_OK;
}

/* ---- rights and schema ---- */

/* Add a check of the role's rights. */
static void check_right(struct hearth_doctor *doctor, const char *name, bool may,
                        const char *advice)
{
    hearth_doctor_report(doctor, name, may ? HEARTH_VERDICT_OK : HEARTH_VERDICT_WRONG,
                         may ? "yes" : "no", advice);
}

/*
 * The query reads the catalogs only, so it also works before the first migration: a schema that
 * does not exist yet has a NULL name, and then the right to create schemas counts.
 */
static enum hearth_status check_rights(struct hearth_doctor *doctor, bool *ret_migrated,
                                       struct hearth_err *err)
{
    PGresult *result = NULL;

    HEARTH_TRY(run_check_query(
        doctor,
        "SELECT coalesce(has_schema_privilege(to_regnamespace('hearth_data'), 'CREATE'),"
        "  has_database_privilege(current_database(), 'CREATE')),"
        " has_table_privilege('pg_catalog.pg_locks', 'SELECT'),"
        " has_function_privilege('pg_advisory_xact_lock_shared(bigint)', 'EXECUTE'),"
        " (SELECT count(*) FROM pg_class"
        "   WHERE relnamespace = to_regnamespace('hearth_data')"
        "   AND NOT pg_has_role(relowner, 'USAGE')),"
        " to_regclass('hearth_data.migration') IS NOT NULL,"
        " coalesce(has_schema_privilege(to_regnamespace('hearth'), 'CREATE'),"
        "  has_database_privilege(current_database(), 'CREATE'))",
        &result, err));
    bool may_create = is_true(result, 0), may_lock = is_true(result, 1) && is_true(result, 2);
    int64_t n_foreign = hearth_pg_i64(result, 0, 3);
    *ret_migrated = is_true(result, 4);
    bool may_create_views = is_true(result, 5);
    PQclear(result);

    check_right(doctor, "rights: create tables", may_create,
                "each day needs new partitions: GRANT CREATE, USAGE ON SCHEMA hearth_data TO the "
                "role");
    check_right(doctor, "rights: create views", may_create_views,
                "migrations keep views for people in schema hearth: CREATE SCHEMA hearth "
                "AUTHORIZATION the role");
    hearth_doctor_report(doctor, "rights: locks",
                         may_lock ? HEARTH_VERDICT_OK : HEARTH_VERDICT_WRONG,
                         may_lock ? "may read pg_locks and take advisory locks"
                                  : "may not read pg_locks or take advisory locks",
                         "roll-ups wait for batches by them: GRANT SELECT ON pg_locks, EXECUTE ON "
                         "pg_advisory_xact_lock and pg_advisory_xact_lock_shared");
    hearth_doctor_report(
        doctor, "rights: ownership", n_foreign == 0 ? HEARTH_VERDICT_OK : HEARTH_VERDICT_WRONG,
        hearth_arena_printf(doctor->arena,
                            "%" PRId64 " relations of hearth_data belong to another role",
                            n_foreign),
        "only the owner can attach and detach partitions: REASSIGN OWNED BY the other role "
        "TO this one");

    return HEARTH_OK;
}

static enum hearth_status check_schema(struct hearth_doctor *doctor, struct hearth_err *err)
{
    int64_t n_files = 0;

    while (hearth_embedded_migrations[n_files].name != NULL) {
        n_files++;
    }

    /* Compare with the history. */
    PGresult *result = NULL;
    HEARTH_TRY(run_check_query(
        doctor, "SELECT count(*), coalesce(max(name), '') FROM hearth_data.migration", &result,
        err));
    int64_t n = hearth_pg_i64(result, 0, 0);
    const char *found = hearth_arena_printf(doctor->arena, "%" PRId64 " of %" PRId64 ", last %s", n,
                                            n_files, hearth_doctor_copy(doctor, result, 0, 1));
    PQclear(result);

    hearth_doctor_report(doctor, "schema", n == n_files ? HEARTH_VERDICT_OK : HEARTH_VERDICT_WRONG,
                         found,
                         n > n_files ? "a newer hearthd migrated this database: run that version"
                                     : "migrations are missing: the log and /ready say why");

    return HEARTH_OK;
}

/* ---- tables ---- */

#define MAX_DAYS_AHEAD 30 /* of partition-days-ahead */

/*
 * Return in *ret_ready the number of days, from today on, whose leaves exist; *ret_missing: the
 * first leaf that does not.
 */
static enum hearth_status count_ready_days(struct hearth_doctor *doctor, int32_t *ret_ready,
                                           char ret_missing[64], struct hearth_err *err)
{
    static const char *const parents[] = {"profile", "dict_chunk", "series_hour"};
    int32_t today = hearth_day_of(hearth_clock_wall_ns()), n_days = 0;
    bool is_there = true;

    while (is_there && n_days <= MAX_DAYS_AHEAD) {
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(parents) && is_there; i++) {
            char sql[160];
            hearth_partition_name(parents[i], today + n_days, ret_missing);
            (void)snprintf(
                sql, sizeof sql,
                "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass('%s'))",
                ret_missing);

            PGresult *result = NULL;
            HEARTH_TRY(run_check_query(doctor, sql, &result, err));
            is_there = is_true(result, 0);
            PQclear(result);
        }
        n_days += is_there;
    }

    *ret_ready = n_days;

    return HEARTH_OK;
}

/* Whole days are counted: the rest of today is less than one. */
static enum hearth_status check_leaves(struct hearth_doctor *doctor, struct hearth_err *err)
{
    char missing[64];
    int32_t n_days = 0;

    HEARTH_TRY(count_ready_days(doctor, &n_days, missing, err));
    bool is_ready = n_days >= 2;
    hearth_doctor_report(
        doctor, "partitions", is_ready ? HEARTH_VERDICT_OK : HEARTH_VERDICT_ADVICE,
        is_ready ? hearth_arena_printf(doctor->arena, "those of today and %d more days exist",
                                       (int)n_days - 1)
                 : hearth_arena_printf(doctor->arena,
                                       "less than one whole day is ready: %s is"
                                       " missing",
                                       missing),
        "hearthd creates them partition-days-ahead days ahead, every 30 s; if they stay missing, "
        "the log says why");

    return HEARTH_OK;
}

/* Find tables that have much to vacuum and were not vacuumed for an hour. */
static enum hearth_status check_vacuum(struct hearth_doctor *doctor, struct hearth_err *err)
{
    PGresult *result = NULL;

    HEARTH_TRY(run_check_query(
        doctor,
        "SELECT count(*), coalesce(min(relname::text), '') FROM pg_stat_user_tables"
        " WHERE schemaname = 'hearth_data'"
        " AND (n_dead_tup > 100000 + n_live_tup / 2 OR n_ins_since_vacuum > 1000000)"
        " AND coalesce(greatest(last_vacuum, last_autovacuum), '-infinity')"
        "   < now() - interval '1 hour'",
        &result, err));
    int64_t n = hearth_pg_i64(result, 0, 0);
    const char *found =
        n == 0 ? "no table waits for it"
               : hearth_arena_printf(doctor->arena, "%" PRId64 " tables wait for it, such as %s", n,
                                     hearth_doctor_copy(doctor, result, 0, 1));
    PQclear(result);

    hearth_doctor_report(
        doctor, "vacuum", n == 0 ? HEARTH_VERDICT_OK : HEARTH_VERDICT_ADVICE, found,
        "raise autovacuum_max_workers or autovacuum_vacuum_cost_limit; meanwhile VACUUM it");

    return HEARTH_OK;
}

/*
 * Find transactions and slots that keep vacuum from removing rows. A plain role sees all prepared
 * transactions and slots, but only its own sessions.
 */
static enum hearth_status check_horizon(struct hearth_doctor *doctor, struct hearth_err *err)
{
    PGresult *result = NULL;

    HEARTH_TRY(
        run_check_query(doctor,
                        "SELECT coalesce((extract(epoch FROM now() - min(xact_start)))::int8, 0),"
                        " (SELECT coalesce((extract(epoch FROM now() - min(prepared)))::int8, 0)"
                        "   FROM pg_prepared_xacts),"
                        " (SELECT count(*) FROM pg_replication_slots WHERE NOT active)"
                        " FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                        " AND backend_type = 'client backend'",
                        &result, err));
    int64_t oldest_s = hearth_pg_i64(result, 0, 0), prepared_s = hearth_pg_i64(result, 0, 1);
    int64_t slots = hearth_pg_i64(result, 0, 2);
    PQclear(result);

    hearth_doctor_report(
        doctor, "oldest transaction", oldest_s > 3600 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        format_seconds(doctor, oldest_s * HEARTH_NS_PER_SEC),
        "vacuum keeps all rows that were deleted since: find it in pg_stat_activity and end "
        "it");
    hearth_doctor_report(
        doctor, "prepared transactions",
        prepared_s > 3600 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        prepared_s == 0 ? "no old one" : format_seconds(doctor, prepared_s * HEARTH_NS_PER_SEC),
        "vacuum keeps all rows that were deleted since: COMMIT or ROLLBACK PREPARED those "
        "in pg_prepared_xacts");
    hearth_doctor_report(
        doctor, "replication slots", slots > 0 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        slots == 0 ? "no idle one"
                   : hearth_arena_printf(doctor->arena, "%" PRId64 " without a reader", slots),
        "an idle slot keeps WAL until the disk is full: pg_drop_replication_slot, or set "
        "max_slot_wal_keep_size");

    return HEARTH_OK;
}

/* ---- background work ---- */

static void check_lease(struct hearth_doctor *doctor, const PGresult *result)
{
    bool held = is_true(result, 0);
    const char *host = hearth_doctor_copy(doctor, result, 0, 1);

    hearth_doctor_report(
        doctor, "builder", held ? HEARTH_VERDICT_OK : HEARTH_VERDICT_ADVICE,
        held ? hearth_arena_printf(doctor->arena, "a hearthd on %s holds the lease", host)
             : "no hearthd holds the lease",
        "profiles are not rolled up, compacted or dropped: run one hearthd with --builder "
        "(the default)");
}

static void check_backlog(struct hearth_doctor *doctor, int64_t n_behind, int64_t n_late,
                          int64_t n_fresh)
{
    hearth_doctor_report(
        doctor, "roll-up lag", n_behind == 0 ? HEARTH_VERDICT_OK : HEARTH_VERDICT_ADVICE,
        n_behind == 0 ? "less than an hour"
                      : hearth_arena_printf(doctor->arena,
                                            "more than an hour for %" PRId64 " services", n_behind),
        "queries are exact but slow; see hearth_builder_errors_total and the log");

    /* Rows that wait for the builder. */
    hearth_doctor_report(
        doctor, "late profiles", n_late > 1000000 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena, "%" PRId64 " wait to be folded in", n_late),
        "every query reads them: let clients push in time, or raise --rollup-grace");
    hearth_doctor_report(
        doctor, "span index", n_fresh > 2000000 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena, "%" PRId64 " ids of spans wait for it", n_fresh),
        "every look-up of a bare id reads them; see hearth_builder_errors_total and the log");
}

/* The last hour of a service. */
struct service_hour {
    int32_t service_id, hour;
};

#define SERVICE_HOUR(kind, member) HEARTH_COLUMN(kind, struct service_hour, member)
static const struct hearth_column service_hour_columns[] = {SERVICE_HOUR(I32, service_id),
                                                            SERVICE_HOUR(I32, hour)};
static const struct hearth_row_type service_hour_rows =
    HEARTH_ROW_TYPE(service_hour_columns, struct service_hour);

/*
 * Count the services that lag: with a series in an hour that ended between one and 24 hours ago and
 * is not built. series_hour is read by its leaves of today and yesterday.
 */
static enum hearth_status count_services_behind(struct hearth_doctor *doctor, int64_t *ret,
                                                struct hearth_err *err)
{
    const struct hearth_pg_query query = {
        .sql = "SELECT service_id, max(hour) FROM hearth_data.series_hour WHERE hour BETWEEN"
               " extract(epoch FROM now())::int8 / 3600 - 24 AND"
               " extract(epoch FROM now())::int8 / 3600 - 2 GROUP BY service_id",
        .type = &service_hour_rows,
        .arena = doctor->arena};
    struct service_hour *hours = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(doctor->pg, &query, &hours, &n, NULL, err));

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, doctor->arena);
    hearth_pg_param_rows(&params, &service_hour_rows, hours, n);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(
        doctor->pg,
        "SELECT count(*) FROM unnest($1::int4[], $2::int4[]) h (service_id, hour) LEFT JOIN"
        " hearth_data.roll_state s USING (service_id) WHERE h.hour >= coalesce(s.built_to, 0) /"
        " 3600000000000",
        &params, NULL, &result, NULL, err));
    *ret = hearth_pg_i64(result, 0, 0);
    PQclear(result);

    return HEARTH_OK;
}

/* The lease, and work that waits for the builder; the latter only while all nodes answer. */
static enum hearth_status check_background(struct hearth_doctor *doctor, bool can_read_data,
                                           struct hearth_err *err)
{
    PGresult *result = NULL;

    HEARTH_TRY(run_check_query(
        doctor,
        "SELECT coalesce((SELECT expires_at > now() FROM hearth_data.lease"
        "   WHERE name = 'builder'), false),"
        " coalesce((SELECT w.host FROM hearth_data.lease l JOIN hearth_data.writer w"
        "   ON w.writer_id = l.holder WHERE l.name = 'builder'), ''),"
        " (SELECT coalesce(sum(n_associations), 0)::int8 FROM hearth_data.span_fresh)",
        &result, err));
    check_lease(doctor, result);
    int64_t n_fresh = hearth_pg_i64(result, 0, 2);
    PQclear(result);

    if (!can_read_data) {
        return HEARTH_OK;
    }

    int64_t n_behind, n_late;
    HEARTH_TRY(count_services_behind(doctor, &n_behind, err));
    HEARTH_TRY(
        run_check_query(doctor, "SELECT count(*) FROM hearth_data.profile_late", &result, err));
    n_late = hearth_pg_i64(result, 0, 0);
    PQclear(result);
    check_backlog(doctor, n_behind, n_late, n_fresh);

    return HEARTH_OK;
}

/* ---- replica ---- */

static enum hearth_status check_replica(struct hearth_doctor *doctor, struct hearth_err *err)
{
    if (doctor->store->replica == NULL) {
        return HEARTH_OK;
    }

    /* The primary. */
    PGresult *result = NULL;
    HEARTH_TRY(run_check_query(doctor, "SELECT current_setting('wal_level')", &result, err));
    const char *level = hearth_doctor_copy(doctor, result, 0, 0);
    PQclear(result);
    hearth_doctor_report(doctor, "wal_level",
                         strcmp(level, "minimal") == 0 ? HEARTH_VERDICT_WRONG : HEARTH_VERDICT_OK,
                         level, "a replica needs wal_level = replica");

    /* The replica. */
    struct hearth_replica_look look = {0};
    struct hearth_err reason = HEARTH_ERR_INIT;
    if (hearth_replica_look(doctor->store->replica, doctor->pg, &look, &reason) != HEARTH_OK) {
        hearth_doctor_report(doctor, "replica", HEARTH_VERDICT_WRONG,
                             hearth_arena_printf(doctor->arena, "%s", reason.msg),
                             "queries run on the primary; check --read-database-url");
        return HEARTH_OK;
    }

    hearth_doctor_report(
        doctor, "replica",
        look.lag_bytes > 16 * HEARTH_MB ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena, "%" PRId64 " bytes of WAL not replayed", look.lag_bytes),
        "queries wait for it, then run on the primary; see pg_stat_replication");
    hearth_doctor_report(
        doctor, "replica: hot_standby_feedback",
        look.feedback ? HEARTH_VERDICT_OK : HEARTH_VERDICT_ADVICE, look.feedback ? "on" : "off",
        "vacuum on the primary cancels queries on the replica, which then run on the "
        "primary: hot_standby_feedback = on");

    return HEARTH_OK;
}

/* ---- all checks ---- */

static enum hearth_status run_checks(struct hearth_doctor *doctor, struct hearth_err *err)
{
    bool migrated = false;

    /* PostgreSQL itself. */
    HEARTH_TRY(check_server(doctor, err));
    HEARTH_TRY(hearth_doctor_check_settings(doctor, err));
    HEARTH_TRY(check_rights(doctor, &migrated, err));
    HEARTH_TRY(check_horizon(doctor, err));

    /* Hearth's tables. */
    if (!migrated) {
        hearth_doctor_report(doctor, "schema", HEARTH_VERDICT_WRONG, "there are no tables yet",
                             "the log and /ready say what hearthd waits for");
        return HEARTH_OK;
    }

    HEARTH_TRY(check_schema(doctor, err));
    HEARTH_TRY(check_connections(doctor, err));
    HEARTH_TRY(check_leaves(doctor, err));
    HEARTH_TRY(check_vacuum(doctor, err));

    struct hearth_node_layout layout;
    HEARTH_TRY(hearth_node_layout_read(doctor->pg, doctor->arena, &layout, err));
    bool is_whole = hearth_doctor_check_nodes(doctor, &layout);
    HEARTH_TRY(check_background(doctor, is_whole, err));

    return check_replica(doctor, err);
}

enum hearth_status hearth_store_doctor(struct hearth_store *store, struct hearth_arena *arena,
                                       struct hearth_check **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    assert(store != NULL && arena != NULL && ret != NULL && ret_n != NULL);

    struct hearth_doctor doctor = {.store = store, .arena = arena};
    doctor.checks = hearth_arena_calloc(arena, HEARTH_DOCTOR_MAX_CHECKS, sizeof doctor.checks[0]);
    if (doctor.checks == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* All checks run on one connection. */
    HEARTH_TRY(hearth_pool_take(store->pool, NULL, &doctor.pg, err));
    enum hearth_status status = run_checks(&doctor, err);
    hearth_pool_give(store->pool, doctor.pg);
    HEARTH_TRY(status);
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    *ret = doctor.checks;
    *ret_n = doctor.n_checks;

    return HEARTH_OK;
}
