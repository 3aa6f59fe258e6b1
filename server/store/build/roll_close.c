/*
 * roll_close.c -- closes buckets of 10 minutes and builds the closed buckets
 * (docs/decisions/0011-roll-ups.md).
 *
 * A round raises the watermark of every service, passes the barrier, and then builds service by
 * service, the oldest first: at most an hour of a service in a transaction.
 *
 * Barrier. Ingest reads the watermark while it holds the ingest lock, shared. When a new watermark
 * is committed, the holders of the lock may have read the old one; later holders read the new one.
 * So the builder waits for the present holders, and for nothing else; after that, no profile below
 * the watermark can still appear in `profile`. Only this holder of the lease knows which
 * transactions it has waited for: another one begins with a barrier.
 *
 * Where Citus distributes the data tables, a transaction that has released the lock of the
 * coordinator may still be prepared on a node, until that node or its connection is back. So the
 * builder then waits for the transactions that are prepared on a node or hold the node's own lock.
 * Their names are unique, and a node that is removed takes them along, so they all end.
 */
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "build/builder.h"
#include "build/roll.h"
#include "build/roll_states.h"
#include "nodes/layout.h"
#include "pg/pg.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Pauses between two reads of the holders: the first, and the longest. */
#define POLL_FIRST_NS (2 * HEARTH_NS_PER_MS)
#define POLL_LAST_NS  (50 * HEARTH_NS_PER_MS)
#define STEP_NS       HEARTH_NS_PER_SEC
/* A longer wait for the barrier is logged. */
#define LONG_WAIT_NS (30 * HEARTH_NS_PER_SEC)
#define MAX_HOLDERS  1000
/* Services with more series are built 10 minutes at a time. */
#define SMALL_SERVICE 1000

/* A transaction that holds the ingest lock, or is prepared on a node. */
struct holder {
    /* Virtual id (backend and transaction); on a node: host, port, and virtual id or global id. */
    char name[128];
    int32_t pid; /* 0 on a node */
};

/*
 * The barrier. States: safe_ns is INT64_MIN (a barrier must begin), waiting (it has begun), or
 * neither (safe_ns is valid).
 */
struct hearth_close {
    int64_t token; /* the lease for which the other fields are valid */
    /*
     * No profile below safe_ns can still appear in `profile`, for services whose watermark is not
     * above it; INT64_MIN: unknown.
     */
    int64_t safe_ns;
    bool waiting;      /* for the holders: the barrier has begun and is not passed */
    bool on_nodes;     /* the holders are those of the nodes; those of the coordinator have ended */
    int64_t wanted_ns; /* value of safe_ns when the barrier is passed */
    struct holder holders[MAX_HOLDERS];
    size_t n_holders;
    int64_t since_mono_ns; /* begin of the barrier */
    bool has_warned;       /* a long wait has been logged */
    /* The services whose watermarks were last found to be raised_ns or higher; 0: none. */
    int64_t raised_ns, n_services;
    int32_t last_service;
};

/* A service with buckets to build. */
struct due {
    int32_t service_id;
    int64_t built_to_ns, watermark_ns, compacted_to_ns;
    bool has_hour;
    int64_t hour_ns; /* the first hour with profiles that is not built */
};

struct hearth_close *hearth_close_new(void)
{
    return hearth_mem_zalloc(sizeof(struct hearth_close));
}

void hearth_close_free(struct hearth_close *close)
{
    hearth_mem_free(close);
}

/* ---- watermarks ---- */

static enum hearth_status run_roll_statement(struct hearth_builder *builder, const char *sql,
                                             struct hearth_err *err)
{
    return hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, err);
}

/* Runs a statement that returns one int8. */
static enum hearth_status read_roll_number(struct hearth_builder *builder, const char *sql,
                                           int64_t *ret_value, struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret_value = hearth_pg_i64(result, 0, 0);
    PQclear(result);

    return HEARTH_OK;
}

/*
 * Makes missing rows of roll_state for services $1, raises the watermarks to target_ns, and
 * commits.
 */
static enum hearth_status raise_in_transaction(struct hearth_builder *builder,
                                               const struct hearth_pg_params *services,
                                               int64_t target_ns, struct hearth_err *err)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.roll_state (service_id, watermark, built_to,"
                   " compacted_to, generation) SELECT service_id, %" PRId64 ", %" PRId64
                   ", %" PRId64 ", 1 FROM unnest($1::int4[]) s (service_id)"
                   " ON CONFLICT (service_id) DO NOTHING",
                   target_ns, HEARTH_NEVER_NS, HEARTH_NEVER_NS);
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, services, NULL, NULL, NULL, err));

    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET watermark = %" PRId64
                   ", generation = generation + 1 WHERE watermark < %" PRId64,
                   target_ns, target_ns);
    HEARTH_TRY(run_roll_statement(builder, sql, err));

    return hearth_builder_commit(builder, err);
}

/* Finds out whether one of services $1 has an older watermark, or none. */
static enum hearth_status find_behind(struct hearth_builder *builder,
                                      const struct hearth_pg_params *services, int64_t target_ns,
                                      bool *ret_any, struct hearth_err *err)
{
    char sql[256];
    PGresult *result = NULL;
    (void)snprintf(
        sql, sizeof sql,
        "SELECT 1 FROM unnest($1::int4[]) s (service_id) LEFT JOIN hearth_data.roll_state"
        " USING (service_id) WHERE watermark IS NULL OR watermark < %" PRId64 " LIMIT 1",
        target_ns);
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, services, NULL, &result, NULL, err));
    *ret_any = PQntuples(result) > 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Raises the watermarks if one of services $1 has an older one, or none. */
static enum hearth_status raise_of_services(struct hearth_builder *builder,
                                            const struct hearth_pg_params *services,
                                            int64_t target_ns, struct hearth_err *err)
{
    bool any = false;
    HEARTH_TRY(find_behind(builder, services, target_ns, &any, err));
    if (!any) {
        return HEARTH_OK;
    }

    /* Raise all watermarks. */
    builder->close->safe_ns = INT64_MIN; /* even if the reply to the commit is lost */
    HEARTH_TRY(hearth_builder_begin(builder, err));
    enum hearth_status status = raise_in_transaction(builder, services, target_ns, err);
    hearth_builder_rollback(builder); /* no effect after a commit */
    HEARTH_TRY(status);

    /* A node may have prepared this commit only. The barrier must begin after it has ended. */
    if (hearth_layout_is_distributed(builder->store)) {
        HEARTH_TRY(find_behind(builder, services, target_ns, &any, err));
        if (any) {
            return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                               "a node has not finished the commit of the new watermarks yet");
        }
    }

    return HEARTH_OK;
}

/* The same for all services. */
static enum hearth_status raise_of_all_services(struct hearth_builder *builder, int64_t target_ns,
                                                struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const struct hearth_pg_query query = {.sql = "SELECT service_id FROM hearth_data.service",
                                          .type = &hearth_i32_rows,
                                          .arena = &arena};
    int32_t *services = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(&builder->pg, &query, &services, &n, NULL, err));

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32_array(&params, services, n);

    return raise_of_services(builder, &params, target_ns, err);
}

/*
 * Raises the watermarks if one of them is older than a closed bucket. Then nothing is safe until
 * the barrier is passed. A service that appears meanwhile is left to the next round.
 */
static enum hearth_status raise_watermarks(struct hearth_builder *builder, struct hearth_err *err)
{
    struct hearth_close *close = builder->close;
    int64_t target_ns = hearth_floor_ns(
        hearth_clock_wall_ns() - builder->store->options.rollup_grace_ns, HEARTH_BUCKET_NS);
    assert(!close->waiting);

    /* Nothing to do in most rounds: ids of services ascend, so a new one changes the last. */
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg,
                              "SELECT count(*), coalesce(max(service_id), 0) FROM"
                              " hearth_data.service",
                              NULL, NULL, &result, NULL, err));
    int64_t n_services = hearth_pg_i64(result, 0, 0);
    int32_t last_service = hearth_pg_i32(result, 0, 1);
    PQclear(result);
    if (close->raised_ns == target_ns && close->n_services == n_services &&
        close->last_service == last_service) {
        return HEARTH_OK;
    }

    HEARTH_TRY(raise_of_all_services(builder, target_ns, err));
    close->raised_ns = target_ns;
    close->n_services = n_services;
    close->last_service = last_service;

    return HEARTH_OK;
}

/* ---- the barrier ---- */

#define SQL_HOLDS_INGEST_LOCK                                                       \
    "locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database" \
    " WHERE datname = current_database()) AND classid = (" HEARTH_LOCK_INGEST       \
    " >> 32)::oid AND objid = (" HEARTH_LOCK_INGEST " & 4294967295)::oid AND objsubid = 1"

/* The transactions of a node: one text, because Citus passes one value from each node. */
#define SQL_OPEN_ON_NODE                                                           \
    "SELECT string_agg(t, ',') FROM (SELECT virtualtransaction || ' ' || pid FROM" \
    " pg_locks WHERE " SQL_HOLDS_INGEST_LOCK " UNION ALL SELECT gid FROM"          \
    " pg_prepared_xacts WHERE database = current_database() AND gid LIKE 'citus\\_%') o (t)"

/* Reads the holders: name, pid, and why a node did not answer, or NULL. */
static enum hearth_status read_holders(struct hearth_builder *builder, PGresult **ret_result,
                                       struct hearth_err *err)
{
    static const char on_nodes[] =
        "WITH n AS MATERIALIZED (SELECT nodename || ':' || nodeport AS node, success, result FROM"
        " run_command_on_workers($q$" SQL_OPEN_ON_NODE "$q$) UNION ALL SELECT 'coordinator', true,"
        " (SELECT string_agg(gid, ',') FROM pg_prepared_xacts WHERE database ="
        " current_database() AND gid LIKE 'citus\\_%'))"
        " SELECT node || ' ' || t, 0, NULL FROM n CROSS JOIN unnest(string_to_array(result, ','))"
        " t WHERE success UNION ALL SELECT node, 0, coalesce(result, '') FROM n WHERE NOT success";
    static const char on_coordinator[] =
        "SELECT virtualtransaction, pid FROM pg_locks WHERE " SQL_HOLDS_INGEST_LOCK;

    bool is_on_nodes = builder->close->on_nodes;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, is_on_nodes ? on_nodes : on_coordinator, NULL, NULL,
                              ret_result, NULL, err));
    for (int row = 0; is_on_nodes && row < PQntuples(*ret_result); row++) {
        if (!hearth_pg_is_null(*ret_result, row, 2)) {
            struct hearth_str node = hearth_pg_str(*ret_result, row, 0),
                              why = hearth_pg_str(*ret_result, row, 2);
            enum hearth_status status =
                HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                            "node " HEARTH_STR_FMT " does not say which commits it has prepared:"
                            " " HEARTH_STR_FMT,
                            HEARTH_STR_ARG(node), HEARTH_STR_ARG(why));
            PQclear(*ret_result);
            return status;
        }
    }

    return HEARTH_OK;
}

/* Whether the row of read_holders is this holder. */
static bool is_same_holder(const struct holder *holder, const PGresult *result, int row)
{
    return holder->pid == hearth_pg_i32(result, row, 1) &&
           hearth_str_eq_c(hearth_pg_str(result, row, 0), holder->name);
}

/* Notes the present holders. */
static enum hearth_status note_holders(struct hearth_builder *builder, struct hearth_err *err)
{
    struct hearth_close *close = builder->close;
    PGresult *result = NULL;
    HEARTH_TRY(read_holders(builder, &result, err));
    int n = PQntuples(result);
    enum hearth_status status = HEARTH_OK;
    if (n > MAX_HOLDERS) {
        status = HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                             "%d transactions store profiles at once, more than the %d that"
                             " roll-ups can wait for: use fewer servers or committers",
                             n, MAX_HOLDERS);
    }

    for (int i = 0; status == HEARTH_OK && i < n; i++) {
        struct holder *holder = &close->holders[i];
        struct hearth_str name = hearth_pg_str(result, i, 0);
        if (name.n >= sizeof holder->name) {
            status = HEARTH_FAIL(err, HEARTH_INTERNAL, "the name of a transaction is too long");
        }
        (void)snprintf(holder->name, sizeof holder->name, HEARTH_STR_FMT, HEARTH_STR_ARG(name));
        holder->pid = hearth_pg_i32(result, i, 1);
    }

    PQclear(result);
    HEARTH_TRY(status);
    close->n_holders = (size_t)n;

    return HEARTH_OK;
}

/*
 * Begins a barrier: notes the watermark and the present holders of the ingest lock. The watermark
 * is the highest. On nodes it is the lowest, because there, the raise of another one may be
 * prepared by an earlier builder.
 */
static enum hearth_status begin_barrier(struct hearth_builder *builder, struct hearth_err *err)
{
    struct hearth_close *close = builder->close;
    assert(!close->waiting);

    HEARTH_TRY(read_roll_number(
        builder,
        hearth_layout_is_distributed(builder->store)
            ? "SELECT coalesce(min(watermark), 0)::int8 FROM hearth_data.roll_state"
            : "SELECT coalesce(max(watermark), 0) FROM hearth_data.roll_state",
        &close->wanted_ns, err));

    /* Holders that are read after the watermark include all that may have read an older one. */
    close->on_nodes = false;
    HEARTH_TRY(note_holders(builder, err));
    close->waiting = true;
    close->has_warned = false;
    close->since_mono_ns = hearth_clock_mono_ns();

    return HEARTH_OK;
}

/* Removes the holders that have released the lock. */
static enum hearth_status drop_ended_holders(struct hearth_builder *builder, struct hearth_err *err)
{
    struct hearth_close *close = builder->close;
    assert(close->waiting && close->n_holders <= MAX_HOLDERS);

    PGresult *result = NULL;
    HEARTH_TRY(read_holders(builder, &result, err));

    size_t n_left = 0;
    for (size_t i = 0; i < close->n_holders; i++) {
        bool holds = false;
        for (int row = 0; row < PQntuples(result) && !holds; row++) {
            holds = is_same_holder(&close->holders[i], result, row);
        }

        if (holds) {
            close->holders[n_left++] = close->holders[i];
        }
    }

    close->n_holders = n_left;
    PQclear(result);

    return HEARTH_OK;
}

/* Warns once if the barrier takes long. */
static void warn_of_long_wait(struct hearth_close *close)
{
    assert(close->n_holders > 0);

    if (!close->has_warned && hearth_clock_mono_ns() - close->since_mono_ns > LONG_WAIT_NS) {
        close->has_warned = true;
        HEARTH_LOG(HEARTH_LOG_WARN, "builder",
                   "roll-ups wait for a transaction that stores profiles", "pid",
                   hearth_log_i64(close->holders[0].pid), "transaction", close->holders[0].name,
                   NULL);
    }
}

/* Goes on with the holders of the nodes when those of the coordinator have ended. */
static enum hearth_status visit_nodes(struct hearth_builder *builder, struct hearth_err *err)
{
    struct hearth_close *close = builder->close;
    if (close->n_holders > 0 || close->on_nodes || !hearth_layout_is_distributed(builder->store)) {
        return HEARTH_OK;
    }

    close->on_nodes = true;
    enum hearth_status status = note_holders(builder, err);
    close->on_nodes = status == HEARTH_OK; /* else the next step notes them again */

    return status;
}

/* Waits for the holders, STEP_NS at most; close->waiting is false if all have ended. */
static enum hearth_status pass_barrier(struct hearth_builder *builder, struct hearth_err *err)
{
    struct hearth_close *close = builder->close;
    int64_t until_ns = hearth_clock_mono_ns() + STEP_NS;
    int64_t poll_ns = POLL_FIRST_NS;
    assert(close->waiting);

    HEARTH_TRY(visit_nodes(builder, err));

    /* Poll, with growing pauses. */
    while (close->n_holders > 0 && hearth_clock_mono_ns() < until_ns) {
        struct timespec pause = {.tv_nsec = (long)poll_ns};
        (void)nanosleep(&pause, NULL);
        poll_ns = poll_ns * 2 > POLL_LAST_NS ? POLL_LAST_NS : poll_ns * 2;
        HEARTH_TRY(drop_ended_holders(builder, err));
        HEARTH_TRY(visit_nodes(builder, err));
    }

    /* End the barrier, or continue in the next step. */
    if (close->n_holders == 0) {
        close->waiting = false;
        close->safe_ns = close->wanted_ns;
    } else {
        warn_of_long_wait(close);
    }

    return HEARTH_OK;
}

/* ---- buckets to build ---- */

#define SQL_BUILT_DAY  HEARTH_SQL_DAY("r.built_to")
#define SQL_BUILT_HOUR HEARTH_SQL_HOUR("r.built_to")
#define SQL_MARK_DAY   HEARTH_SQL_DAY("r.watermark")
#define SQL_LAST_HOUR  HEARTH_SQL_HOUR("r.watermark - 1")

/* Raises built_to of idle services to their watermarks, as far as both are still the same. */
static enum hearth_status raise_idle(struct hearth_builder *builder,
                                     const struct hearth_roll_state *idle, size_t n,
                                     struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_roll_states_param(&params, arena, idle, n);

    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_pg_exec(
        &builder->pg,
        "UPDATE hearth_data.roll_state s SET built_to = r.watermark, generation = generation + 1"
        " FROM " HEARTH_SQL_STATES_R " WHERE s.service_id = r.service_id AND s.built_to ="
        " r.built_to AND s.watermark = r.watermark",
        &params, NULL, NULL, NULL, err));

    return hearth_builder_commit(builder, err);
}

/*
 * Raises built_to of services without profiles in the closed buckets: most services, most of the
 * time. If a day ends and the service has profiles in it, the service is not idle: its day has to
 * be summed first.
 */
static enum hearth_status skip_idle(struct hearth_builder *builder, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_roll_state *states = NULL, *idle = NULL;
    size_t n = 0, n_idle = 0;
    char condition[96];
    (void)snprintf(condition, sizeof condition, "built_to < watermark AND watermark <= %" PRId64,
                   builder->close->safe_ns);
    HEARTH_TRY(hearth_roll_states_read(&builder->pg, condition, &arena, &states, &n, NULL, err));

    /*
     * A service is idle if it has no hour from built_to on, or, if the day of built_to ends before
     * the watermark, from the begin of that day on.
     */
    static const char sql[] = "SELECT r.* FROM " HEARTH_SQL_STATES_R
                              " WHERE NOT EXISTS (SELECT FROM hearth_data.series_hour h"
                              " WHERE h.service_id = r.service_id AND h.hour <= " SQL_LAST_HOUR
                              " AND h.hour >= CASE WHEN " SQL_BUILT_DAY " < " SQL_MARK_DAY
                              " THEN (" SQL_BUILT_DAY " * 24)::int4 ELSE " SQL_BUILT_HOUR " END)";
    HEARTH_TRY(
        hearth_roll_states_choose(&builder->pg, sql, states, n, &arena, &idle, &n_idle, err));

    enum hearth_status status =
        n_idle > 0 ? raise_idle(builder, idle, n_idle, &arena, err) : HEARTH_OK;
    hearth_builder_rollback(builder); /* no effect after a commit */

    return status;
}

/*
 * Lists the services with closed buckets to build, the oldest first, each with its first hour that
 * has profiles and is not built. *ret_dues: the caller owns it (hearth_mem_free).
 */
static enum hearth_status list_services_to_close(struct hearth_builder *builder,
                                                 struct due **ret_dues, size_t *ret_n,
                                                 struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_roll_state *states = NULL;
    size_t n_states = 0;
    HEARTH_TRY(hearth_roll_states_read(&builder->pg, "built_to < watermark", &arena, &states,
                                       &n_states, NULL, err));

    PGresult *result = NULL;
    static const char sql[] =
        "SELECT service_id, built_to, watermark, compacted_to, hour FROM (SELECT r.*,"
        " (SELECT min(h.hour) FROM hearth_data.series_hour h WHERE h.service_id = r.service_id"
        " AND h.hour BETWEEN " SQL_BUILT_HOUR " AND " SQL_LAST_HOUR ") AS hour"
        " FROM " HEARTH_SQL_STATES_R ") due"
        " ORDER BY greatest(built_to, hour * 3600000000000), service_id";
    struct hearth_pg_params params;
    hearth_roll_states_param(&params, &arena, states, n_states);
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, &params, NULL, &result, NULL, err));
    int n = PQntuples(result);

    struct due *dues = hearth_mem_calloc((size_t)n + 1, sizeof *dues);
    for (int i = 0; dues != NULL && i < n; i++) {
        dues[i] = (struct due){
            .service_id = hearth_pg_i32(result, i, 0),
            .built_to_ns = hearth_pg_i64(result, i, 1),
            .watermark_ns = hearth_pg_i64(result, i, 2),
            .compacted_to_ns = hearth_pg_i64(result, i, 3),
            .has_hour = !hearth_pg_is_null(result, i, 4),
        };
        dues[i].hour_ns = dues[i].has_hour ? hearth_pg_i32(result, i, 4) * HEARTH_NS_PER_HOUR : 0;
    }

    PQclear(result);
    if (dues == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the list of services");
    }

    *ret_dues = dues;
    *ret_n = (size_t)n;

    return HEARTH_OK;
}

/* Publishes for how long the oldest closed bucket with profiles has not been built. */
static void publish_roll_lag(const struct hearth_builder *builder, const struct due *dues, size_t n)
{
    int64_t lag_ns = 0, now_ns = hearth_clock_wall_ns();
    for (size_t i = 0; i < n; i++) {
        if (dues[i].has_hour) { /* the list is sorted: this is the oldest */
            int64_t from_ns =
                dues[i].hour_ns > dues[i].built_to_ns ? dues[i].hour_ns : dues[i].built_to_ns;
            lag_ns = now_ns - from_ns - HEARTH_BUCKET_NS - builder->store->options.rollup_grace_ns;
            break;
        }
    }

    hearth_metric_set(HEARTH_M_ROLL_LAG, lag_ns > 0 ? lag_ns : 0);
}

/* ---- building ---- */

/*
 * Builds the blocks of an hour that was built in pieces, unless they are left out. The totals of
 * each series become one part, or share rows.
 */
static enum hearth_status end_hour(struct hearth_roll *roll, int64_t hour_ns,
                                   struct hearth_err *err)
{
    HEARTH_TRY(hearth_sparse_decide_long(roll, HEARTH_NS_PER_HOUR, hour_ns, err));
    HEARTH_TRY(hearth_roll_hour(roll, hour_ns, err));

    roll->part++; /* the totals of this hour may have a row of this part already */
    const struct hearth_roll_keys keys = {.from_ns = hour_ns, .to_ns = hour_ns};
    HEARTH_TRY(hearth_roll_merge_totals(roll, &keys, roll->groups_totals ? 0 : 1, err));
    roll->groups_totals = false;

    return HEARTH_OK;
}

/* Builds the blocks of a day, unless they are left out. */
static enum hearth_status end_day(struct hearth_roll *roll, int64_t day_ns, struct hearth_err *err)
{
    int64_t end_ns = day_ns + HEARTH_NS_PER_DAY;
    HEARTH_TRY(hearth_sparse_decide_long(roll, HEARTH_NS_PER_DAY, day_ns, err));
    if (hearth_absent_set_meets(&roll->absent, HEARTH_NS_PER_DAY, true, day_ns, end_ns)) {
        return HEARTH_OK; /* those of series, too */
    }

    bool only_service =
        hearth_absent_set_meets(&roll->absent, HEARTH_NS_PER_DAY, false, day_ns, end_ns);

    /* Its first hours may have expired while it was built. */
    bool from_profiles = day_ns < roll->hours_from_ns && day_ns >= roll->profiles_from_ns;

    return hearth_roll_day(roll, day_ns, only_service ? HEARTH_ROLL_UP_SERVICE : HEARTH_ROLL_UP_ALL,
                           from_profiles, err);
}

/*
 * Builds the hour and the day that had begun before built_to and end at next_ns or before, when
 * built_to is raised to next_ns. There are no profiles between the two times.
 */
static enum hearth_status end_begun_blocks(struct hearth_roll *roll, const struct due *due,
                                           int64_t next_ns, struct hearth_err *err)
{
    int64_t at_ns = due->built_to_ns;
    int64_t hour_ns = hearth_floor_ns(at_ns, HEARTH_NS_PER_HOUR);
    int64_t day_ns = hearth_floor_ns(at_ns, HEARTH_NS_PER_DAY);
    assert(at_ns <= next_ns);

    if (hour_ns != at_ns && hour_ns + HEARTH_NS_PER_HOUR <= next_ns) {
        HEARTH_TRY(end_hour(roll, hour_ns, err));
    }

    return day_ns != at_ns && day_ns + HEARTH_NS_PER_DAY <= next_ns ? end_day(roll, day_ns, err)
                                                                    : HEARTH_OK;
}

/*
 * Builds the blocks of [from_ns, to_ns), within an hour, and of the hour and day that end at to_ns.
 */
static enum hearth_status build_range(struct hearth_roll *roll, int64_t from_ns, int64_t to_ns,
                                      struct hearth_err *err)
{
    int64_t hour_ns = hearth_floor_ns(from_ns, HEARTH_NS_PER_HOUR);
    assert(from_ns < to_ns);

    HEARTH_TRY(hearth_roll_rows(roll, from_ns, to_ns, err));

    /* An hour built in pieces is summed at its end. */
    if (to_ns == hour_ns + HEARTH_NS_PER_HOUR && from_ns != hour_ns) {
        HEARTH_TRY(end_hour(roll, hour_ns, err));
    }

    /* A day is summed from its hours. */
    int64_t day_ns = hearth_floor_ns(from_ns, HEARTH_NS_PER_DAY);

    return to_ns == day_ns + HEARTH_NS_PER_DAY ? end_day(roll, day_ns, err) : HEARTH_OK;
}

/*
 * Locks the service's state and raises its generation, which is the part. *ret_part 0: built_to or
 * compacted_to has changed, for example by a request for a rebuild. Reads which blocks are absent.
 */
static enum hearth_status lock_due_state(struct hearth_builder *builder, const struct due *due,
                                         int64_t *ret_part, struct hearth_absent_set *ret_absent,
                                         struct hearth_err *err)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET generation = generation + 1 WHERE"
                   " service_id = %" PRId32 " AND built_to = %" PRId64
                   " AND compacted_to = %" PRId64 " RETURNING generation, absent",
                   due->service_id, due->built_to_ns, due->compacted_to_ns);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    enum hearth_status status = HEARTH_OK;
    if (PQntuples(result) > 0) {
        *ret_part = hearth_pg_i64(result, 0, 0);
        status = hearth_absent_set_take(result, 0, 1, ret_absent, err);
    }

    PQclear(result);

    return status;
}

/* The range that one transaction builds; built_to becomes to_ns. */
struct piece {
    int64_t from_ns, to_ns; /* equal: there are no profiles, only built_to is raised */
};

/* Chooses the rest of the first hour with profiles, or 10 minutes of a large service. */
static struct piece choose_piece(const struct due *due, size_t n_series)
{
    if (!due->has_hour) {
        return (struct piece){due->watermark_ns, due->watermark_ns};
    }

    int64_t from_ns = due->hour_ns > due->built_to_ns ? due->hour_ns : due->built_to_ns;
    int64_t to_ns =
        n_series > SMALL_SERVICE ? from_ns + HEARTH_BUCKET_NS : due->hour_ns + HEARTH_NS_PER_HOUR;

    return (struct piece){from_ns, to_ns < due->watermark_ns ? to_ns : due->watermark_ns};
}

/* Marks the buckets of the piece, which are complete now, for the recording rules. */
static enum hearth_status mark_built_buckets(struct hearth_roll *roll, const struct piece *piece,
                                             struct hearth_err *err)
{
    int64_t t0s_ns[HEARTH_NS_PER_HOUR / HEARTH_BUCKET_NS];
    size_t n = 0;
    assert(piece->to_ns - piece->from_ns <= HEARTH_NS_PER_HOUR);

    for (int64_t t0_ns = piece->from_ns; t0_ns < piece->to_ns && n < HEARTH_ARRAY_LEN(t0s_ns);
         t0_ns += HEARTH_BUCKET_NS) {
        t0s_ns[n++] = t0_ns;
    }

    return hearth_rules_mark(roll->builder, roll->service_id, t0s_ns, n, err);
}

enum hearth_status hearth_roll_store_state(const struct hearth_roll *roll, int64_t built_to_ns,
                                           struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    if (!hearth_absent_set_param(&params, &arena, &roll->absent)) {
        return HEARTH_FAIL_ARENA(err, &arena);
    }

    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET built_to = greatest(built_to, %" PRId64
                   "), generation = %" PRId64 ", absent = $1 WHERE service_id = %" PRId32,
                   built_to_ns, roll->part, roll->service_id);

    return hearth_pg_exec(&roll->builder->pg, sql, &params, NULL, NULL, NULL, err);
}

/* Builds one piece, raises built_to, and commits. */
static enum hearth_status build_in_transaction(struct hearth_roll *roll, const struct due *due,
                                               struct hearth_err *err)
{
    struct piece piece = choose_piece(due, roll->n_shapes);
    roll->from_ns = piece.from_ns;
    roll->to_ns = piece.to_ns;
    HEARTH_TRY(hearth_sparse_begin(roll, due->built_to_ns, err));

    /* Build the hour and day that ended before the piece, then the piece. */
    HEARTH_TRY(end_begun_blocks(roll, due, piece.from_ns, err));
    if (piece.from_ns < piece.to_ns) {
        HEARTH_TRY(hearth_sparse_decide(roll, piece.from_ns, piece.to_ns, err));
        HEARTH_TRY(build_range(roll, piece.from_ns, piece.to_ns, err));
        HEARTH_TRY(mark_built_buckets(roll, &piece, err));
    }

    HEARTH_TRY(hearth_roll_store_state(roll, piece.to_ns, err));

    return hearth_builder_commit(roll->builder, err);
}

/* Builds one piece of a service in a transaction. */
static enum hearth_status build_due_service(struct hearth_builder *builder, const struct due *due,
                                            struct hearth_err *err)
{
    /* The leaves are made outside of the transaction. */
    int32_t day = hearth_day_of(due->hour_ns);
    if (due->has_hour) {
        HEARTH_TRY(
            hearth_partitions_ensure(builder->store, &builder->pg, HEARTH_LEAVES_ROLL, day, err));
    }

    /* Build, unless the state has changed. */
    HEARTH_TRY(hearth_builder_begin(builder, err));
    struct hearth_roll roll = {0};
    struct hearth_absent_set absent = {0};
    int64_t part = 0;
    enum hearth_status status = lock_due_state(builder, due, &part, &absent, err);
    if (status == HEARTH_OK && part > 0) {
        status = hearth_roll_init(&roll, builder, due->service_id, part, 0, 0, err);
        roll.absent = absent;
        roll.compacted_to_ns = due->compacted_to_ns;
        if (status == HEARTH_OK) {
            status = build_in_transaction(&roll, due, err);
        }

        if (status == HEARTH_OK) {
            hearth_roll_count(&roll);
        } else if (due->has_hour) {
            hearth_partitions_forget(builder->store, day); /* a leaf may have been missing */
        }

        hearth_roll_release(&roll);
    }

    hearth_builder_rollback(builder);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "service %" PRId32, due->service_id);
    }

    return status;
}

/*
 * Builds a piece of each service, for STEP_NS. A service that cannot be built does not stop the
 * others.
 */
static enum hearth_status build_all(struct hearth_builder *builder, const struct due *dues,
                                    size_t n, bool *ret_more, struct hearth_err *err)
{
    int64_t until_ns = hearth_clock_mono_ns() + STEP_NS;
    enum hearth_status failed = HEARTH_OK;

    /* Skip services whose watermark is not safe. */
    for (size_t i = 0; i < n && hearth_clock_mono_ns() < until_ns; i++) {
        if (dues[i].watermark_ns > builder->close->safe_ns) {
            continue;
        }

        /* Build; the first failure is kept. */
        struct hearth_err failure = HEARTH_ERR_INIT;
        enum hearth_status status = build_due_service(builder, &dues[i], &failure);
        if (status == HEARTH_OK) {
            *ret_more = true;
        } else if (failed == HEARTH_OK) {
            failed = status;
            *err = failure;
        }

        /* Without the connection or the lease, the others would fail too. */
        if (!hearth_pg_usable(&builder->pg) || builder->token == 0) {
            break;
        }
    }

    return *ret_more ? HEARTH_OK : failed; /* reported when nothing else could be built */
}

/* Whether a service has no profiles to build. */
static bool has_idle_service(const struct due *dues, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        any = any || !dues[i].has_hour;
    }

    return any;
}

/* Builds the due services, unless the barrier is waiting, and publishes the lag. */
static enum hearth_status build_due(struct hearth_builder *builder, bool *ret_more,
                                    struct hearth_err *err)
{
    struct due *dues = NULL;
    size_t n = 0;
    enum hearth_status status = HEARTH_OK;
    HEARTH_TRY(list_services_to_close(builder, &dues, &n, err));

    /* Idle services are skipped in one statement. */
    if (!builder->close->waiting && has_idle_service(dues, n)) {
        hearth_mem_free(dues);
        HEARTH_TRY(skip_idle(builder, err));
        HEARTH_TRY(list_services_to_close(builder, &dues, &n, err));
    }

    /* Publish the lag, and build the others. */
    publish_roll_lag(builder, dues, n);
    if (!builder->close->waiting) {
        status = build_all(builder, dues, n, ret_more, err);
    }

    hearth_mem_free(dues);

    return status;
}

enum hearth_status hearth_step_close(struct hearth_builder *builder, bool *ret_more,
                                     struct hearth_err *err)
{
    struct hearth_close *close = builder->close;

    /* A new lease begins with a barrier. */
    if (close->token != builder->token) {
        *close = (struct hearth_close){.token = builder->token, .safe_ns = INT64_MIN};
    }

    /* Raise the watermarks; where that made them unsafe, begin the barrier. */
    if (!close->waiting) {
        HEARTH_TRY(raise_watermarks(builder, err));
        if (close->safe_ns == INT64_MIN) {
            HEARTH_TRY(begin_barrier(builder, err));
        }
    }

    /* Wait for the barrier. */
    bool had_to_wait = close->waiting;
    if (close->waiting) {
        HEARTH_TRY(pass_barrier(builder, err));
    }

    /* Build. While the barrier is waiting, this only publishes the lag. */
    HEARTH_TRY(build_due(builder, ret_more, err));
    *ret_more = *ret_more || (had_to_wait && !close->has_warned);

    return HEARTH_OK;
}
