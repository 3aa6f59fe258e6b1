/*
 * retention_step.c -- days past their retention are deleted, and series that have
 * ended are removed (hearth_step_retention).
 *
 * A day's leaf of a table is dropped when the longest retention of all tenants has passed. Rows of
 * tenants with a shorter retention are deleted from leaves that stay; readers have hidden them
 * before. Expired rows of `profile` are left to compaction or dropped with their leaf; those of the
 * span index only refer to deleted profiles and spans.
 *
 * Margins. Readers hide expired rows by their own clock and by the settings they know. So rows that
 * a reader may still see stay for five minutes more, and changed settings are applied only after a
 * minute, when every server knows them (housekeeping.c).
 *
 * Before anything is deleted, the retention is recorded (retention.c).
 */
#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "build/builder.h"
#include "build/retention.h"
#include "build/roll_fill.h"
#include "build/roll_states.h"
#include "pg/pg.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define MARGIN_NS     (300 * HEARTH_NS_PER_SEC)
#define SETTLE_NS     (60 * HEARTH_NS_PER_SEC)
#define PASS_EACH_NS  (60 * HEARTH_NS_PER_SEC)
#define ROWS_EACH_NS  (600 * HEARTH_NS_PER_SEC)
#define SWEEP_EACH_NS HEARTH_NS_PER_DAY
#define SLICE_NS      HEARTH_NS_PER_SEC
#define N_TABLES      12
#define NO_TENANT     0 /* in hearth_data.tenant_setting: notes about tenants without settings */

enum kept_by {
    BY_PROFILES,
    BY_10M,
    BY_1H,
    BY_1D,
    BY_ALL, /* the longest of profiles and roll-ups */
    BY_SPANS,
    BY_MONITORS,
    BY_NETWORK,
    BY_SPAN_INDEX, /* the longer of profiles and spans */
};

/* Partitioned tables, in the order in which their leaves are dropped. */
static const struct {
    const char *name;
    const char *key; /* the partition key */
    enum kept_by by;
    int64_t unit_ns;   /* of the key */
    int64_t length_ns; /* the time that a row covers */
    bool delete_rows;  /* whether rows of tenants with a shorter retention are deleted */
} TABLES[N_TABLES] = {
    {"profile", "ts", BY_PROFILES, 1, 0, false},
    {"segment", "t0", BY_PROFILES, 1, HEARTH_NS_PER_HOUR, true},
    {"roll_10m", "t0", BY_10M, 1, 600 * HEARTH_NS_PER_SEC, true},
    {"roll_1h", "t0", BY_1H, 1, HEARTH_NS_PER_HOUR, true},
    {"hour_totals", "t0", BY_1H, 1, HEARTH_NS_PER_HOUR, true},
    {"roll_1d", "t0", BY_1D, 1, HEARTH_NS_PER_DAY, true},
    {"dict_chunk", "day", BY_ALL, HEARTH_NS_PER_DAY, HEARTH_NS_PER_DAY, true},
    {"span_group", "start_at", BY_SPANS, 1, 0, false},
    {"span_index", "day", BY_SPAN_INDEX, HEARTH_NS_PER_DAY, HEARTH_NS_PER_DAY, false},
    {"network_sample", "at", BY_NETWORK, HEARTH_NS_PER_MS, 0, false},
    {"series_hour", "hour", BY_ALL, HEARTH_NS_PER_HOUR, HEARTH_NS_PER_HOUR, true},
    {"monitor_minute", "minute", BY_MONITORS, 60 * HEARTH_NS_PER_SEC, 60 * HEARTH_NS_PER_SEC,
     false},
};

/* A tenant with its settings applied. */
struct tenant {
    int32_t tenant_id;
    bool has_settings; /* of its own */
    struct hearth_retention retention;
    struct hearth_retention_history history; /* empty: that of tenants without settings applies */
};

/* One pass over all tenants and tables. */
struct pass {
    struct hearth_builder *builder;
    struct hearth_arena arena;
    int64_t now_ns;         /* the wall clock when the pass began */
    struct tenant *tenants; /* by id */
    size_t n_tenants;
    struct hearth_retention longest;         /* of all tenants */
    struct hearth_retention_history history; /* of tenants without settings */
};

/* ---- how long rows are kept ---- */

/* The longer of two retentions; 0 means forever. */
static int64_t pick_longer(int64_t a_ns, int64_t b_ns)
{
    assert(a_ns >= 0 && b_ns >= 0);

    return a_ns == 0 || b_ns == 0 ? 0 : a_ns > b_ns ? a_ns : b_ns;
}

/* The retention of one kind of rows, in nanoseconds; 0: forever. */
static int64_t kept_ns(const struct hearth_retention *retention, enum kept_by by)
{
    switch (by) {
    case BY_PROFILES:
        return retention->profiles_ns;
    case BY_10M:
        return retention->roll_10m_ns;
    case BY_1H:
        return retention->roll_1h_ns;
    case BY_1D:
        return retention->roll_1d_ns;
    case BY_SPANS:
        return retention->spans_ns;
    case BY_MONITORS:
        return retention->monitors_ns;
    case BY_NETWORK:
        return retention->network_ns;
    case BY_SPAN_INDEX:
        return pick_longer(retention->profiles_ns, retention->spans_ns);
    case BY_ALL:
        break;
    }

    return pick_longer(pick_longer(retention->profiles_ns, retention->roll_10m_ns),
                       pick_longer(retention->roll_1h_ns, retention->roll_1d_ns));
}

/* Rows that end at or before this time have expired; INT64_MIN: none expires. */
static int64_t cutoff_ns(const struct pass *pass, int64_t kept)
{
    assert(kept >= 0);

    int64_t cutoff;
    if (kept == 0 || __builtin_sub_overflow(pass->now_ns - MARGIN_NS, kept, &cutoff)) {
        return INT64_MIN;
    }

    return cutoff;
}

/* Takes the tenants from rows (tenant_id, setting, value), which are sorted by tenant. */
static enum hearth_status take_tenants(struct pass *pass, const PGresult *rows,
                                       struct hearth_err *err)
{
    size_t n_rows = (size_t)PQntuples(rows);
    pass->tenants = hearth_arena_array(&pass->arena, n_rows, sizeof *pass->tenants);
    if (pass->tenants == NULL) {
        return HEARTH_FAIL_ARENA(err, &pass->arena);
    }

    /* A tenant has the defaults, changed by its settings, if any. */
    hearth_retention_history_init(&pass->history);
    for (int row = 0; row < (int)n_rows; row++) {
        int32_t tenant_id = hearth_pg_i32(rows, row, 0);
        if (tenant_id == NO_TENANT) {
            hearth_retention_history_apply(&pass->history, hearth_pg_str(rows, row, 1),
                                           hearth_pg_i64(rows, row, 2));
            continue;
        }

        struct tenant *last = pass->n_tenants > 0 ? &pass->tenants[pass->n_tenants - 1] : NULL;
        if (last == NULL || last->tenant_id != tenant_id) {
            last = &pass->tenants[pass->n_tenants++];
            last->tenant_id = tenant_id;
            last->has_settings = false;
            hearth_retention_default(pass->builder->store, &last->retention);
            hearth_retention_history_init(&last->history);
        }

        if (!hearth_pg_is_null(rows, row, 1)) {
            struct hearth_str name = hearth_pg_str(rows, row, 1);
            int64_t value = hearth_pg_i64(rows, row, 2);
            last->has_settings = true;
            hearth_retention_apply(&last->retention, name, value);
            hearth_retention_history_apply(&last->history, name, value);
        }
    }

    /* Spans, monitors and network have the same retention for all tenants. */
    hearth_retention_default(pass->builder->store, &pass->longest);
    for (size_t i = 0; i < pass->n_tenants; i++) {
        const struct hearth_retention *own = &pass->tenants[i].retention;
        pass->longest =
            i == 0 ? *own
                   : (struct hearth_retention){
                         .profiles_ns = pick_longer(pass->longest.profiles_ns, own->profiles_ns),
                         .roll_10m_ns = pick_longer(pass->longest.roll_10m_ns, own->roll_10m_ns),
                         .roll_1h_ns = pick_longer(pass->longest.roll_1h_ns, own->roll_1h_ns),
                         .roll_1d_ns = pick_longer(pass->longest.roll_1d_ns, own->roll_1d_ns),
                         .spans_ns = own->spans_ns,
                         .monitors_ns = own->monitors_ns,
                         .network_ns = own->network_ns};
    }

    return HEARTH_OK;
}

/*
 * Reads the tenants and their retention. *ret_settled: the settings have not changed for SETTLE_NS.
 * Settings read first after a start count as settled.
 */
static enum hearth_status read_tenants(struct pass *pass, bool *ret_settled, struct hearth_err *err)
{
    struct hearth_retention_progress *at = &pass->builder->store->retention;
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(&pass->builder->pg,
                              "SELECT t.tenant_id, s.name, s.value FROM hearth_data.tenant t LEFT"
                              " JOIN hearth_data.tenant_setting s ON s.tenant_id = t.tenant_id AND"
                              " s.name ~ '^(retain|kept|emptied)-'"
                              " UNION ALL SELECT tenant_id, name, value FROM"
                              " hearth_data.tenant_setting WHERE tenant_id = 0 ORDER BY 1, 2",
                              NULL, NULL, &rows, NULL, err));
    enum hearth_status status = take_tenants(pass, rows, err);
    PQclear(rows);
    HEARTH_TRY(status);

    /* A hash tells whether a setting has changed since the last pass. */
    uint64_t seen = hearth_hash64(pass->tenants, 0, 0);
    for (size_t i = 0; i < pass->n_tenants; i++) {
        const struct hearth_retention *own = &pass->tenants[i].retention;
        seen = hearth_hash_mix(seen, (uint64_t)pass->tenants[i].tenant_id);
        for (enum kept_by by = BY_PROFILES; by < BY_ALL; by++) {
            seen = hearth_hash_mix(seen, (uint64_t)kept_ns(own, by));
        }
    }

    int64_t now_ns = hearth_clock_mono_ns();
    if (seen != at->settings) {
        at->settled_mono_ns = at->settings == 0 ? now_ns : now_ns + SETTLE_NS;
        at->settings = seen;
    }

    *ret_settled = now_ns >= at->settled_mono_ns;

    return HEARTH_OK;
}

/* ---- the record ---- */

/* Settings to write: of each, the tenant, the name and the value. */
struct changes {
    int32_t *tenant_ids;
    struct hearth_str *names;
    int64_t *values; /* negative: the setting is deleted */
    size_t n;
};

/* Adds the settings of a history. */
static void add_history(const struct hearth_retention_history *history, int32_t tenant_id,
                        struct changes *changes)
{
    struct hearth_setting settings[HEARTH_RETENTION_N_SETTINGS];

    hearth_retention_history_list(history, settings);
    for (size_t i = 0; i < HEARTH_RETENTION_N_SETTINGS; i++, changes->n++) {
        changes->tenant_ids[changes->n] = tenant_id;
        changes->names[changes->n] = settings[i].name;
        changes->values[changes->n] = settings[i].value;
    }
}

static enum hearth_status write_changes(struct pass *pass, const struct changes *changes,
                                        struct hearth_err *err)
{
    struct hearth_builder *builder = pass->builder;
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, &pass->arena);
    hearth_pg_param_i32_array(&params, changes->tenant_ids, changes->n);
    hearth_pg_param_text_array(&params, changes->names, changes->n);
    hearth_pg_param_i64_array(&params, changes->values, changes->n);
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_pg_exec(
        &builder->pg,
        "WITH u AS (SELECT * FROM unnest($1::int4[], $2::text[], $3::int8[])"
        " x (tenant_id, name, value)),"
        " gone AS (DELETE FROM hearth_data.tenant_setting s USING u WHERE"
        " s.tenant_id = u.tenant_id AND s.name = u.name AND u.value < 0)"
        " INSERT INTO hearth_data.tenant_setting (tenant_id, name, value) SELECT * FROM u"
        " WHERE value >= 0 ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value",
        &params, NULL, NULL, NULL, err));

    return hearth_builder_commit(builder, err);
}

/* Records the retention of all tenants. Nearly always it is as it was, and nothing is written. */
static enum hearth_status record_retention(struct pass *pass, struct hearth_err *err)
{
    size_t cap = (pass->n_tenants + 1) * HEARTH_RETENTION_N_SETTINGS;
    struct changes changes = {hearth_arena_array(&pass->arena, cap, sizeof *changes.tenant_ids),
                              hearth_arena_array(&pass->arena, cap, sizeof *changes.names),
                              hearth_arena_array(&pass->arena, cap, sizeof *changes.values), 0};
    if (pass->arena.refused) {
        return HEARTH_FAIL_ARENA(err, &pass->arena);
    }

    for (size_t i = 0; i < pass->n_tenants; i++) {
        struct tenant *tenant = &pass->tenants[i];
        if (!tenant->has_settings) {
            continue;
        }

        /* Before its first setting, it was a tenant without settings. */
        bool is_first = hearth_retention_history_is_empty(&tenant->history);
        if (is_first) {
            tenant->history = pass->history;
        }

        if (hearth_retention_record(&tenant->history, &tenant->retention, pass->now_ns) ||
            is_first) {
            add_history(&tenant->history, tenant->tenant_id, &changes);
        }
    }

    struct hearth_retention others;
    hearth_retention_default(pass->builder->store, &others);
    if (hearth_retention_record(&pass->history, &others, pass->now_ns)) {
        add_history(&pass->history, NO_TENANT, &changes);
    }

    return changes.n == 0 ? HEARTH_OK : write_changes(pass, &changes, err);
}

/* ---- leaves ---- */

/*
 * Profiles must not be dropped before the roll-ups that outlive them are built. A service without a
 * roll_state row has no roll-ups yet. The statement answers whether a service has series with hours
 * on this day that are not built.
 */
static enum hearth_status is_built(struct pass *pass, int32_t day, bool *ret_built,
                                   struct hearth_err *err)
{
    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "SELECT FROM hearth_data.service s LEFT JOIN " HEARTH_SQL_STATES_R
                   " USING (service_id) WHERE coalesce(r.built_to, -1) < %" PRId64
                   " AND EXISTS (SELECT FROM hearth_data.series_hour h WHERE h.service_id ="
                   " s.service_id AND h.hour >= %" PRId64 " AND h.hour < %" PRId64
                   " AND (h.hour + 1) * 3600000000000 > coalesce(r.built_to, -1)) LIMIT 1",
                   (day + 1) * HEARTH_NS_PER_DAY, day * INT64_C(24), day * INT64_C(24) + 24);

    bool needed = false;
    HEARTH_TRY(hearth_roll_states_match(&pass->builder->pg, sql, &needed, err));
    *ret_built = !needed;

    return HEARTH_OK;
}

/* *ret_due: the day is past the longest retention and can be dropped. */
static enum hearth_status is_due(struct pass *pass, size_t table, int32_t day, bool *ret_due,
                                 struct hearth_err *err)
{
    int64_t kept = kept_ns(&pass->longest, TABLES[table].by);
    *ret_due = (day + 1) * HEARTH_NS_PER_DAY <= cutoff_ns(pass, kept);
    bool outlived = pick_longer(kept, kept_ns(&pass->longest, BY_ALL)) != kept;

    if (*ret_due && TABLES[table].by == BY_PROFILES) {
        bool built = true, unfilled = false;
        if (outlived) {
            HEARTH_TRY(is_built(pass, day, &built, err));
        }
        HEARTH_TRY(hearth_unfilled_before(&pass->builder->pg, 0, (day + 1) * HEARTH_NS_PER_DAY,
                                          &unfilled, err));
        *ret_due = built && !unfilled;
        if (!*ret_due) {
            HEARTH_LOG(HEARTH_LOG_INFO, "builder",
                       "profiles are past their retention, but are kept until all of their "
                       "roll-ups are built",
                       "day", hearth_log_i64(day), NULL);
        }
    }

    return HEARTH_OK;
}

/*
 * Drops the oldest leaf of a table if it is due, or goes on with a drop that has begun. A reader
 * may delay it.
 */
static enum hearth_status drop_oldest(struct pass *pass, size_t table,
                                      const struct hearth_oldest_leaf *oldest, bool *ret_dropped,
                                      struct hearth_err *err)
{
    assert(table < N_TABLES);

    struct hearth_builder *builder = pass->builder;
    int32_t day = oldest->is_leaving ? oldest->leaving_day : oldest->day;
    bool due = oldest->is_leaving;

    if (!due && oldest->exists) {
        HEARTH_TRY(is_due(pass, table, day, &due, err));
    }

    if (!due) {
        return HEARTH_OK;
    }

    /* A drop that readers prevent is tried again at the next pass. */
    struct hearth_err reason = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_partitions_drop(builder->store, &builder->pg, TABLES[table].name, day, &reason);
    if (status == HEARTH_UNAVAILABLE && hearth_pg_usable(&builder->pg)) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "builder", "a day cannot be dropped yet", "reason", reason.msg,
                   NULL);
        return HEARTH_OK;
    }

    if (status != HEARTH_OK) {
        *err = reason;
        return status;
    }

    /* Report it. */
    *ret_dropped = true;
    hearth_metric_add_label(HEARTH_M_RETENTION_DAYS, hearth_str_c(TABLES[table].name), 1);
    HEARTH_LOG(HEARTH_LOG_INFO, "builder", "dropped a day past its retention", "table",
               TABLES[table].name, "day", hearth_log_i64(day), NULL);

    return HEARTH_OK;
}

/* Drops at most one leaf of each table. */
static enum hearth_status drop_leaves(struct pass *pass, bool *ret_more, struct hearth_err *err)
{
    struct hearth_retention_progress *at = &pass->builder->store->retention;
    struct hearth_str names[N_TABLES];
    struct hearth_oldest_leaf oldest[N_TABLES];
    *ret_more = false;

    for (size_t table = 0; table < N_TABLES; table++) {
        names[table] = hearth_str_c(TABLES[table].name);
    }

    /* One statement for all tables: this runs every minute, and mostly nothing is due. */
    HEARTH_TRY(hearth_partitions_oldest(&pass->builder->pg, names, N_TABLES, oldest, err));
    for (size_t table = 0; table < N_TABLES; table++) {
        bool dropped = false;
        HEARTH_TRY(drop_oldest(pass, table, &oldest[table], &dropped, err));
        *ret_more = *ret_more || dropped;
        if (dropped && TABLES[table].unit_ns == HEARTH_NS_PER_HOUR) {
            at->next_sweep_mono_ns = 0; /* series may have lost their last hour */
        }
    }

    return HEARTH_OK;
}

/* ---- rows of tenants with a shorter retention ---- */

/* Runs a statement with $1 = the services of a tenant, in a transaction. */
static enum hearth_status run_on_services(struct pass *pass, const struct tenant *tenant,
                                          const char *sql, struct hearth_err *err)
{
    struct hearth_builder *builder = pass->builder;
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);

    /* List the services. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32(&params, tenant->tenant_id);
    const struct hearth_pg_query query = {
        .sql = "SELECT service_id FROM hearth_data.service WHERE tenant_id = $1",
        .params = &params,
        .type = &hearth_i32_rows,
        .arena = &arena};
    int32_t *services = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(&builder->pg, &query, &services, &n, NULL, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32_array(&params, services, n);
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, &params, NULL, NULL, NULL, err));

    return hearth_builder_commit(builder, err);
}

/* Deletes the expired rows of a tenant's day, in a transaction. */
static enum hearth_status delete_day(struct pass *pass, const struct tenant *tenant, size_t table,
                                     int32_t day, struct hearth_err *err)
{
    int64_t unit_ns = TABLES[table].unit_ns;
    int64_t cutoff = cutoff_ns(pass, kept_ns(&tenant->retention, TABLES[table].by));
    int64_t end_ns = (day + 1) * HEARTH_NS_PER_DAY, last_ns = cutoff - TABLES[table].length_ns;

    assert(TABLES[table].delete_rows && cutoff > INT64_MIN);

    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.%s WHERE service_id = ANY ($1) AND %s >= %" PRId64
                   " AND %s < %" PRId64 " AND %s * %" PRId64 "::int8 <= %" PRId64,
                   TABLES[table].name, TABLES[table].key, day * HEARTH_NS_PER_DAY / unit_ns,
                   TABLES[table].key, end_ns / unit_ns, TABLES[table].key, unit_ns, last_ns);

    return run_on_services(pass, tenant, sql, err);
}

/* Deletes late profiles past their retention: folding them would be wasted. */
static enum hearth_status delete_late(struct pass *pass, const struct tenant *tenant,
                                      struct hearth_err *err)
{
    int64_t cutoff = cutoff_ns(pass, kept_ns(&tenant->retention, BY_ALL));
    if (cutoff == INT64_MIN) {
        return HEARTH_OK;
    }

    char sql[128];
    (void)snprintf(
        sql, sizeof sql,
        "DELETE FROM hearth_data.profile_late WHERE service_id = ANY ($1) AND ts < %" PRId64,
        cutoff);

    return run_on_services(pass, tenant, sql, err);
}

/*
 * Deletes the expired rows of (tenant, table) from the next day on which the table has a leaf.
 * *ret_done: no such day is left.
 */
static enum hearth_status delete_next(struct pass *pass, const struct tenant *tenant, size_t table,
                                      bool *ret_done, struct hearth_err *err)
{
    struct hearth_retention_progress *at = &pass->builder->store->retention;
    int64_t own = kept_ns(&tenant->retention, TABLES[table].by);
    int64_t cutoff = cutoff_ns(pass, own);
    *ret_done = true;

    if (!TABLES[table].delete_rows || cutoff == INT64_MIN ||
        pick_longer(own, kept_ns(&pass->longest, TABLES[table].by)) == own) {
        return HEARTH_OK; /* its rows go with the leaf */
    }

    /* Find the next day. */
    char names[32];
    int32_t day = 0;
    bool found = false;
    (void)snprintf(names, sizeof names, "'%s'", TABLES[table].name);
    HEARTH_TRY(
        hearth_partitions_next_day(&pass->builder->pg, names, at->next_day, &day, &found, err));
    if (!found || day * HEARTH_NS_PER_DAY >= cutoff) {
        return HEARTH_OK;
    }

    /* Profiles wait for the hours and days that were left out. */
    if (TABLES[table].by == BY_PROFILES) {
        bool unfilled;
        HEARTH_TRY(hearth_unfilled_before(&pass->builder->pg, tenant->tenant_id,
                                          (day + 1) * HEARTH_NS_PER_DAY, &unfilled, err));
        if (unfilled) {
            return HEARTH_OK;
        }
    }

    /* Delete its rows. */
    HEARTH_TRY(delete_day(pass, tenant, table, day, err));
    at->next_day = day + 1;
    *ret_done = false;

    return HEARTH_OK;
}

/* Continues the round over tenants and tables for SLICE_NS. *ret_done: the round is complete. */
static enum hearth_status delete_expired_rows(struct pass *pass, bool *ret_done,
                                              struct hearth_err *err)
{
    struct hearth_retention_progress *at = &pass->builder->store->retention;
    int64_t end_ns = hearth_clock_mono_ns() + SLICE_NS;

    /* Find the tenant at which the last call stopped. */
    size_t i = 0;
    while (i < pass->n_tenants && pass->tenants[i].tenant_id < at->tenant_id) {
        i++;
    }

    /* Delete from its remaining tables, then from those of the next tenants. */
    for (; i < pass->n_tenants; i++, at->table = 0) {
        at->tenant_id = pass->tenants[i].tenant_id;
        if (at->table == 0) {
            HEARTH_TRY(delete_late(pass, &pass->tenants[i], err));
        }

        while (at->table < N_TABLES) {
            if (hearth_clock_mono_ns() >= end_ns) {
                *ret_done = false;
                return HEARTH_OK;
            }

            bool table_done = false;
            HEARTH_TRY(delete_next(pass, &pass->tenants[i], at->table, &table_done, err));
            if (table_done) {
                at->table++;
                at->next_day = INT32_MIN;
            }
        }
    }

    /* The next round begins with the first tenant. */
    *ret_done = true;
    at->tenant_id = INT32_MIN;

    return HEARTH_OK;
}

/* ---- the step ---- */

/* Reads the settings; if they are settled, drops leaves and deletes rows. */
static enum hearth_status enforce(struct pass *pass, bool *ret_more, struct hearth_err *err)
{
    struct hearth_retention_progress *at = &pass->builder->store->retention;
    int64_t now_ns = hearth_clock_mono_ns();
    bool settled = false, done = true, more = false;

    HEARTH_TRY(read_tenants(pass, &settled, err));

    /* Rows are deleted every ten minutes, and without a pause while a round is not complete. */
    if (settled) {
        HEARTH_TRY(record_retention(pass, err));
        HEARTH_TRY(drop_leaves(pass, &more, err));
        if (now_ns >= at->next_rows_mono_ns) {
            HEARTH_TRY(delete_expired_rows(pass, &done, err));
            at->next_rows_mono_ns = done ? now_ns + ROWS_EACH_NS : 0;
        }
    }

    *ret_more = more || !done;
    at->next_pass_mono_ns = *ret_more ? 0 : now_ns + PASS_EACH_NS;

    return HEARTH_OK;
}

/* Runs a pass and a sweep if they are due. */
static enum hearth_status run_due(struct hearth_builder *builder, bool *ret_more,
                                  struct hearth_err *err)
{
    struct hearth_retention_progress *at = &builder->store->retention;
    int64_t now_ns = hearth_clock_mono_ns();

    /* Run a pass. */
    if (now_ns >= at->next_pass_mono_ns) {
        struct pass pass = {.builder = builder, .now_ns = hearth_clock_wall_ns()};
        hearth_arena_init(&pass.arena, 0);
        enum hearth_status status = enforce(&pass, ret_more, err);
        hearth_arena_release(&pass.arena);
        HEARTH_TRY(status);
    }

    /* Sweep the series without hours. */
    if (now_ns >= at->next_sweep_mono_ns) {
        bool done = false;
        HEARTH_TRY(hearth_sweep(builder, &done, err));
        at->next_sweep_mono_ns = done ? now_ns + SWEEP_EACH_NS : 0;
        *ret_more = *ret_more || !done;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_step_retention(struct hearth_builder *builder, bool *ret_more,
                                         struct hearth_err *err)
{
    *ret_more = false;
    enum hearth_status status = run_due(builder, ret_more, err);
    if (status != HEARTH_OK) {
        hearth_builder_rollback(builder);
    }

    return status;
}

void hearth_retention_declare_metrics(void)
{
    for (size_t table = 0; table < N_TABLES; table++) {
        hearth_metric_declare(HEARTH_M_RETENTION_DAYS, TABLES[table].name);
    }

    hearth_metric_declare(HEARTH_M_RETENTION_DAYS, "audit"); /* access_expire.c */
}
