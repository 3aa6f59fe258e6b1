/*
 * background_state.c -- the state of the background work, for operators; requests to build roll-ups
 * again (contract: hearth/store/background.h).
 */
#include "hearth/store/background.h"

#include "build/builder.h"
#include "build/reach.h"
#include "build/roll.h"
#include "build/roll_states.h"
#include "nodes/layout.h"
#include "pg/pg.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/partitions.h"
#include "session/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- state ---- */

/* One reading of the state: over which connection, and where it is written. */
struct state_read {
    struct hearth_store *store;
    struct hearth_arena *arena;
    struct hearth_background_state *ret;
    struct hearth_pg *pg;
    enum hearth_pg_fault *ret_fault; /* of the statement that failed */
};

static enum hearth_status exec_state_sql(const struct state_read *read, const char *sql,
                                         PGresult **ret_result, struct hearth_err *err)
{
    return hearth_pg_exec(read->pg, sql, NULL, NULL, ret_result, read->ret_fault, err);
}

static enum hearth_status copy_text(struct hearth_arena *arena, struct hearth_str text,
                                    struct hearth_str *ret, struct hearth_err *err)
{
    *ret = hearth_arena_str(arena, text);
    return ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* Who holds the lease, if anybody does. */
static enum hearth_status read_lease(const struct state_read *read, struct hearth_err *err)
{
    struct hearth_background_state *ret = read->ret;
    PGresult *result = NULL;
    HEARTH_TRY(exec_state_sql(
        read,
        "SELECT holder, token, host FROM hearth_data.lease JOIN hearth_data.writer ON"
        " writer_id = holder WHERE name = '" HEARTH_LEASE_BUILDER
        "' AND expires_at > clock_timestamp()",
        &result, err));

    enum hearth_status status = HEARTH_OK;
    if (PQntuples(result) > 0) {
        ret->has_builder = true;
        ret->builder_writer = hearth_pg_i32(result, 0, 0);
        ret->lease_token = hearth_pg_i64(result, 0, 1);
        status = copy_text(read->arena, hearth_pg_str(result, 0, 2), &ret->builder_host, err);
    }
    PQclear(result);

    return status;
}

/* A service that is due: it has profiles in an hour that is not built. */
struct due_service {
    int32_t service_id;
    int64_t built_to_ns;
    int32_t hour; /* the first one with profiles, from that of built_to_ns on */
};

#define DUE(kind, member) HEARTH_COLUMN(kind, struct due_service, member)
static const struct hearth_column due_columns[] = {DUE(I32, service_id), DUE(I64, built_to_ns),
                                                   DUE(I32, hour)};
static const struct hearth_row_type due_rows = HEARTH_ROW_TYPE(due_columns, struct due_service);

/* Series of an hour. */
struct hour_series {
    int32_t service_id, series_id;
};

#define SERIES(kind, member) HEARTH_COLUMN(kind, struct hour_series, member)
static const struct hearth_column series_columns[] = {SERIES(I32, service_id),
                                                      SERIES(I32, series_id)};
static const struct hearth_row_type series_rows =
    HEARTH_ROW_TYPE(series_columns, struct hour_series);

/*
 * Lists the services that are due before due_ns. The hours are found by the primary key of
 * series_hour (service_id, hour).
 */
static enum hearth_status list_due(const struct state_read *read, int64_t due_ns,
                                   struct due_service **ret, size_t *ret_n, struct hearth_err *err)
{
    struct hearth_roll_state *states = NULL;
    size_t n_states = 0;
    HEARTH_TRY(hearth_roll_states_read(read->pg, "true", read->arena, &states, &n_states,
                                       read->ret_fault, err));

    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT service_id, built_to, hour FROM (SELECT b.service_id, b.built_to,"
        " (SELECT min(h.hour) FROM hearth_data.series_hour h WHERE h.service_id ="
        " b.service_id AND h.hour BETWEEN " HEARTH_SQL_HOUR(
            "b.built_to") " AND %" PRId32
                          ") AS hour FROM (SELECT service_id, coalesce(built_to, %" PRId64
                          ") AS built_to FROM hearth_data.service LEFT JOIN " HEARTH_SQL_STATES_R
                          " USING (service_id)) b WHERE built_to < %" PRId64
                          ") due WHERE hour IS NOT NULL",
        hearth_hour_of(due_ns - 1), HEARTH_NEVER_NS, due_ns);
    struct hearth_pg_params params;
    hearth_roll_states_param(&params, read->arena, states, n_states);
    const struct hearth_pg_query query = {
        .sql = sql, .params = &params, .type = &due_rows, .arena = read->arena};

    return hearth_pg_select(read->pg, &query, ret, ret_n, read->ret_fault, err);
}

/* Services, and an hour in which they have series. */
struct hour_services {
    int32_t hour;
    int32_t *v;
    size_t n;
};

/*
 * The same as find_first_of_hour where the nodes of Citus hold the profiles: they read the hour of
 * each service, because probes by LATERAL are not allowed on distributed tables.
 */
static enum hearth_status find_first_on_nodes(const struct state_read *read,
                                              const struct hour_services *services, int64_t *ret_ns,
                                              struct hearth_err *err)
{
    int64_t from_ns = services->hour * HEARTH_NS_PER_HOUR;
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*)::int8, min(first)::int8 FROM (SELECT min(ts) AS first FROM"
                   " hearth_data.profile WHERE service_id = ANY ($1) AND ts >= %" PRId64
                   " AND ts < %" PRId64 " GROUP BY service_id) s",
                   from_ns, from_ns + HEARTH_NS_PER_HOUR);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, read->arena);
    hearth_pg_param_i32_array(&params, services->v, services->n);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(read->pg, sql, &params, NULL, &result, read->ret_fault, err));
    bool have_all = (size_t)hearth_pg_i64(result, 0, 0) == services->n;
    *ret_ns = have_all ? hearth_pg_i64(result, 0, 1) : from_ns;
    PQclear(result);

    return HEARTH_OK;
}

/*
 * Finds the time of the first profile of services in an hour, by a probe of profile_series_ts for
 * each of their series; the begin of the hour if one of them has no rows there any more.
 */
static enum hearth_status find_first_of_hour(const struct state_read *read,
                                             const struct hour_services *services, int64_t *ret_ns,
                                             struct hearth_err *err)
{
    char sql[512];
    struct hearth_pg_params service_params;
    hearth_pg_params_init(&service_params, read->arena);
    hearth_pg_param_i32_array(&service_params, services->v, services->n);
    (void)snprintf(sql, sizeof sql,
                   "SELECT service_id, series_id FROM hearth_data.series_hour WHERE service_id ="
                   " ANY ($1) AND hour = %" PRId32,
                   services->hour);
    struct hearth_pg_query query = {
        .sql = sql, .params = &service_params, .type = &series_rows, .arena = read->arena};
    struct hour_series *series = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(read->pg, &query, &series, &n, read->ret_fault, err));

    int64_t from_ns = services->hour * HEARTH_NS_PER_HOUR;
    (void)snprintf(
        sql, sizeof sql,
        "SELECT coalesce(min(coalesce(first, %" PRId64 ")), %" PRId64 ") FROM (SELECT"
        " min(f.ts) AS first FROM unnest($1::int4[], $2::int4[]) u (service_id, series_id)"
        " LEFT JOIN LATERAL (SELECT p.ts FROM hearth_data.profile p WHERE p.series_id ="
        " u.series_id AND p.ts >= %" PRId64 " AND p.ts < %" PRId64
        " ORDER BY p.ts LIMIT 1) f ON true GROUP BY u.service_id) s",
        from_ns, from_ns, from_ns, from_ns + HEARTH_NS_PER_HOUR);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, read->arena);
    hearth_pg_param_rows(&params, &series_rows, series, n);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(read->pg, sql, &params, NULL, &result, read->ret_fault, err));
    *ret_ns = hearth_pg_i64(result, 0, 0);
    PQclear(result);

    return HEARTH_OK;
}

/*
 * Finds the time of the oldest bucket that is due; INT64_MAX: none. It is built_to, or the first
 * profile of the hour if built_to lies before it (the service was not built yet, or was idle): the
 * begin of the hour may be long ago, and its first profile a second. Only services with the first
 * of these hours matter.
 */
static enum hearth_status find_oldest_due(const struct state_read *read,
                                          const struct due_service *due, size_t n, int64_t *ret_ns,
                                          struct hearth_err *err)
{
    int32_t first_hour = INT32_MAX;
    *ret_ns = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        if (due[i].built_to_ns >= due[i].hour * HEARTH_NS_PER_HOUR) {
            *ret_ns = due[i].built_to_ns < *ret_ns ? due[i].built_to_ns : *ret_ns;
        } else {
            first_hour = due[i].hour < first_hour ? due[i].hour : first_hour;
        }
    }

    if (first_hour == INT32_MAX || first_hour * HEARTH_NS_PER_HOUR >= *ret_ns) {
        return HEARTH_OK;
    }

    /* The services that were built to a time before it. */
    struct hour_services services = {.hour = first_hour,
                                     .v = hearth_arena_array(read->arena, n, sizeof services.v[0])};
    if (services.v == NULL) {
        return HEARTH_FAIL_ARENA(err, read->arena);
    }

    for (size_t i = 0; i < n; i++) {
        if (due[i].hour == first_hour && due[i].built_to_ns < first_hour * HEARTH_NS_PER_HOUR) {
            services.v[services.n++] = due[i].service_id;
        }
    }

    int64_t first_ns;
    HEARTH_TRY(hearth_layout_is_distributed(read->store)
                   ? find_first_on_nodes(read, &services, &first_ns, err)
                   : find_first_of_hour(read, &services, &first_ns, err));
    *ret_ns = first_ns < *ret_ns ? first_ns : *ret_ns;

    return HEARTH_OK;
}

/* The age of the oldest bucket of all services that has profiles, is due and is not built. */
static enum hearth_status read_lag(const struct state_read *read, struct hearth_err *err)
{
    int64_t grace_ns = read->store->options.rollup_grace_ns;
    int64_t now_ns = hearth_clock_wall_ns();
    int64_t due_ns = hearth_floor_ns(now_ns - grace_ns, HEARTH_BUCKET_NS);
    struct due_service *due = NULL;
    size_t n = 0;
    HEARTH_TRY(list_due(read, due_ns, &due, &n, err));

    int64_t oldest_ns;
    HEARTH_TRY(find_oldest_due(read, due, n, &oldest_ns, err));
    if (oldest_ns != INT64_MAX) {
        int64_t from_ns = hearth_floor_ns(oldest_ns, HEARTH_BUCKET_NS);
        int64_t lag_ns = now_ns - from_ns - HEARTH_BUCKET_NS - grace_ns;
        read->ret->lag_ns = lag_ns > 0 ? lag_ns : 0;
    }

    return HEARTH_OK;
}

/*
 * Sets oldest_profile_ns to the time of the day's first profile or segment; leaves it if the day
 * has neither. The statement skips from series to series: a leaf's index is by (series_id, ts), so
 * each first profile is one probe, and min(ts) alone would read the whole index. Distributed tables
 * allow no such recursion: there the nodes read their indexes.
 */
static enum hearth_status read_oldest_of_day(const struct state_read *read, int32_t day,
                                             struct hearth_err *err)
{
    int64_t from_ns = day * HEARTH_NS_PER_DAY;
    char sql[1024], where[96];
    (void)snprintf(where, sizeof where, "BETWEEN %" PRId64 " AND %" PRId64, from_ns,
                   from_ns + HEARTH_NS_PER_DAY - 1);
    if (hearth_layout_is_distributed(read->store)) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT least((SELECT min(ts) FROM hearth_data.profile WHERE ts %s), (SELECT"
                       " min(t0) FROM hearth_data.segment WHERE t0 %s))",
                       where, where);
    } else {
        (void)snprintf(
            sql, sizeof sql,
            "WITH RECURSIVE s AS ((SELECT series_id, ts FROM hearth_data.profile WHERE ts %s"
            " ORDER BY series_id, ts LIMIT 1) UNION ALL SELECT n.series_id, n.ts FROM s,"
            " LATERAL (SELECT series_id, ts FROM hearth_data.profile p WHERE ts %s AND"
            " p.series_id > s.series_id ORDER BY series_id, ts LIMIT 1) n)"
            " SELECT least((SELECT min(ts) FROM s), (SELECT min(t0) FROM"
            " hearth_data.segment WHERE t0 %s))",
            where, where, where);
    }

    PGresult *result = NULL;
    HEARTH_TRY(exec_state_sql(read, sql, &result, err));
    if (!hearth_pg_is_null(result, 0, 0)) {
        read->ret->oldest_profile_ns = hearth_pg_i64(result, 0, 0);
    }
    PQclear(result);

    return HEARTH_OK;
}

/* The days of the leaves of profile and segment, ascending. */
static enum hearth_status read_days(const struct state_read *read, PGresult **ret_result,
                                    struct hearth_err *err)
{
    return exec_state_sql(
        read,
        "SELECT DISTINCT to_date(right(c.relname, 8), 'YYYYMMDD') - date '1970-01-01' FROM"
        " pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent IN"
        " ('hearth_data.profile'::regclass, 'hearth_data.segment'::regclass) ORDER BY 1",
        ret_result, err);
}

/* The time of the oldest profile: on the first day that has any. */
static enum hearth_status read_oldest(const struct state_read *read, struct hearth_err *err)
{
    assert(read->ret->oldest_profile_ns == INT64_MAX);

    PGresult *days = NULL;
    HEARTH_TRY(read_days(read, &days, err));

    enum hearth_status status = HEARTH_OK;
    const int64_t *oldest_ns = &read->ret->oldest_profile_ns;
    for (int i = 0; i < PQntuples(days) && status == HEARTH_OK && *oldest_ns == INT64_MAX; i++) {
        status = read_oldest_of_day(read, hearth_pg_i32(days, i, 0), err);
    }
    PQclear(days);

    return status;
}

static enum hearth_status read_counts(const struct state_read *read, struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(exec_state_sql(read,
                              "SELECT (SELECT count(*) FROM hearth_data.profile_late),"
                              " (SELECT count(*) FROM hearth_data.tombstone)",
                              &result, err));
    read->ret->n_late_rows = hearth_pg_i64(result, 0, 0);
    read->ret->n_tombstones = hearth_pg_i64(result, 0, 1);
    PQclear(result);

    return HEARTH_OK;
}

/* The size of each table, a partitioned one with its leaves. */
static enum hearth_status read_sizes(const struct state_read *read, struct hearth_err *err)
{
    struct hearth_background_state *ret = read->ret;
    PGresult *result = NULL;
    HEARTH_TRY(exec_state_sql(
        read,
        "SELECT coalesce(p.relname, c.relname)::text,"
        " sum(pg_total_relation_size(c.oid))::int8 FROM pg_class c JOIN pg_namespace n"
        " ON n.oid = c.relnamespace LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
        " LEFT JOIN pg_class p ON p.oid = i.inhparent WHERE n.nspname = 'hearth_data'"
        " AND c.relkind = 'r' GROUP BY 1 ORDER BY 1",
        &result, err));

    size_t n = (size_t)PQntuples(result);
    enum hearth_status status = HEARTH_OK;
    ret->n_tables = 0;
    ret->tables = hearth_arena_array(read->arena, n, sizeof *ret->tables);
    if (ret->tables == NULL) {
        status = HEARTH_FAIL_ARENA(err, read->arena);
    }

    /* The size is NULL if the table was dropped meanwhile. */
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        struct hearth_table_size *size = &ret->tables[ret->n_tables++];
        size->n_bytes = hearth_pg_is_null(result, (int)i, 1) ? 0 : hearth_pg_i64(result, (int)i, 1);
        status = copy_text(read->arena, hearth_pg_str(result, (int)i, 0), &size->table, err);
    }
    PQclear(result);

    return status;
}

/* A hearth_with_pg_fn. A second call, after a lost connection, begins again. */
static enum hearth_status read_state(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct state_read *read = context;
    read->pg = pg;
    read->ret_fault = ret_fault;
    *read->ret = (struct hearth_background_state){.oldest_profile_ns = INT64_MAX};

    HEARTH_TRY(read_lease(read, err));
    HEARTH_TRY(read_lag(read, err));
    HEARTH_TRY(read_counts(read, err));
    HEARTH_TRY(read_oldest(read, err));

    return read_sizes(read, err);
}

enum hearth_status hearth_store_background_state(struct hearth_store *store,
                                                 struct hearth_arena *arena,
                                                 struct hearth_background_state *ret,
                                                 struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL);

    HEARTH_TRY(hearth_store_check_open(store, err));
    struct state_read read = {.store = store, .arena = arena, .ret = ret};

    return hearth_store_as_owner(store, NULL, read_state, &read, err);
}

/* ---- building again ---- */

struct rebuild {
    struct hearth_store *store;
    struct hearth_str tenant;
    int32_t service_id; /* 0: all services of the tenant */
    int64_t day_ns;     /* a day's begin: blocks from here on are deleted and built again */
};

/*
 * The first day from day_ns on that has roll-ups; INT64_MAX: no day has. Deletion begins there:
 * before it nothing can be lost.
 */
static enum hearth_status find_rolled_day(const struct rebuild *rebuild, struct hearth_pg *pg,
                                          int64_t *ret_ns, struct hearth_err *err)
{
    int32_t day = 0;
    bool found = false;
    HEARTH_TRY(hearth_partitions_next_day(pg, "'roll_10m', 'roll_1h', 'roll_1d', 'hour_totals'",
                                          hearth_day_of(rebuild->day_ns), &day, &found, err));
    *ret_ns = found ? day * HEARTH_NS_PER_DAY : INT64_MAX;

    return HEARTH_OK;
}

/*
 * Roll-ups may be kept longer than profiles: blocks that cannot be built again must not be deleted.
 * Fails if one of the services has such blocks.
 */
static enum hearth_status check_rebuildable(const struct rebuild *rebuild, const PGresult *services,
                                            struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                            struct hearth_err *err)
{
    int64_t from_ns, reach_ns;
    HEARTH_TRY(find_rolled_day(rebuild, pg, &from_ns, err));
    HEARTH_TRY(hearth_profiles_reach(rebuild->store, pg, rebuild->tenant, &reach_ns, err));

    for (int i = 0; i < PQntuples(services) && from_ns >= reach_ns && from_ns < INT64_MAX; i++) {
        HEARTH_TRY(hearth_profiles_check_reach(pg, hearth_pg_i32(services, i, 0), from_ns,
                                               &reach_ns, ret_fault, err));
    }

    if (from_ns < reach_ns) {
        char from[32], reach[32];
        hearth_clock_format(from_ns, from);
        hearth_clock_format(reach_ns, reach);
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "roll-ups from %s on cannot be built again: profiles reach back to %s",
                           from, reach);
    }

    return HEARTH_OK;
}

static enum hearth_status find_services(const struct rebuild *rebuild, struct hearth_pg *pg,
                                        PGresult **ret_result, enum hearth_pg_fault *ret_fault,
                                        struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, rebuild->tenant);
    hearth_pg_param_i32(&params, rebuild->service_id);

    enum hearth_status status =
        hearth_pg_exec(pg,
                       "SELECT service_id FROM hearth_data.service JOIN hearth_data.tenant t USING"
                       " (tenant_id) WHERE t.name = $1 AND ($2 = 0 OR service_id = $2)"
                       " ORDER BY service_id",
                       &params, NULL, ret_result, ret_fault, err);
    hearth_arena_release(&arena);

    return status;
}

/*
 * Deletes the service's blocks from day_ns on, in a transaction. The row of roll_state comes first,
 * as in the builder's transactions. It is updated even if built_to lies before day_ns: so the
 * script waits for a builder that is raising it past the day, and deletes its blocks as well.
 */
static enum hearth_status delete_blocks(const struct rebuild *rebuild, int32_t service_id,
                                        struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                        struct hearth_err *err)
{
    static const char *const TABLES[] = {"roll_10m", "roll_1h", "roll_1d", "hour_totals"};
    char sql[1024];

    assert(rebuild->day_ns % HEARTH_NS_PER_DAY == 0);

    /* One script, so that it costs one round trip. */
    int n = snprintf(sql, sizeof sql,
                     "BEGIN; UPDATE hearth_data.roll_state SET built_to = least(built_to, %" PRId64
                     "), generation = generation + 1 WHERE service_id = %" PRId32 "; ",
                     rebuild->day_ns, service_id);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(TABLES); i++) {
        n += snprintf(sql + n, sizeof sql - (size_t)n,
                      "DELETE FROM hearth_data.%s WHERE service_id = %" PRId32 " AND t0 >= %" PRId64
                      "; ",
                      TABLES[i], service_id, rebuild->day_ns);
    }
    n += snprintf(sql + n, sizeof sql - (size_t)n, "COMMIT");
    assert((size_t)n < sizeof sql);

    enum hearth_status status = hearth_pg_script(pg, sql, ret_fault, err);
    hearth_pg_rollback(pg);

    return status;
}

/* A hearth_with_pg_fn. A second call, after a lost connection, repeats all services: harmless. */
static enum hearth_status run_rebuild(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct rebuild *rebuild = context;
    PGresult *services = NULL;
    HEARTH_TRY(find_services(rebuild, pg, &services, ret_fault, err));

    /* All services are checked before the first one changes. */
    enum hearth_status status = HEARTH_OK;
    if (PQntuples(services) == 0) {
        status = HEARTH_FAIL(err, HEARTH_NOT_FOUND, "the tenant has no such service");
    } else {
        status = check_rebuildable(rebuild, services, pg, ret_fault, err);
    }

    for (int i = 0; i < PQntuples(services) && status == HEARTH_OK; i++) {
        status = delete_blocks(rebuild, hearth_pg_i32(services, i, 0), pg, ret_fault, err);
    }
    PQclear(services);

    return status;
}

enum hearth_status hearth_store_rebuild(struct hearth_store *store, struct hearth_str tenant,
                                        int32_t service_id, int64_t from_ns, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));
    struct rebuild rebuild = {store, tenant, service_id,
                              hearth_floor_ns(from_ns, HEARTH_NS_PER_DAY)};
    HEARTH_TRY(hearth_store_as_owner(store, NULL, run_rebuild, &rebuild, err));

    /* The builder builds them again now if it is this server's; another server's begins later. */
    if (store->builder != NULL) {
        hearth_builder_wake(store->builder);
    }

    return HEARTH_OK;
}
