/*
 * erase_step.c -- a deletion's second half: what a tombstone hides is removed physically
 * (hearth_step_erase).
 *
 * Not before two minutes have passed since the request: every server has noticed by then that
 * series are gone (a refresh is at most half a minute away), and what was pushed under their old
 * ids in between is in the range and goes too.
 *
 * Stages of one tombstone, in transactions of a bounded size. All of it is hidden already, so
 * readers notice nothing, and a stage that is done again finds nothing to do: after a restart the
 * tombstone begins anew.
 *   rows      profile and profile_late, an hour at a time
 *   segments  those that hold rows of it are written again without them (erase_segments.c)
 *   days      roll-ups of days whose profiles retention has taken (erase_blocks.c)
 *   end       what came meanwhile; blocks that can be built again from profiles are deleted from the
 *             first day on and the builder builds them again; the tombstone goes
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/store/background.h"

#include "build/builder.h"
#include "build/erase_work.h"
#include "build/reach.h"
#include "pg/partitions.h"
#include "pg/pg.h"
#include "pg/store_state.h"

#include <inttypes.h>
#include <stdio.h>

#define SLICE_NS            HEARTH_NS_PER_SEC
#define SCRUB_MAX_BYTES     "67108864"
#define SCRUB_PAIRS_PRIMARY "hearth_data.label_pair USING label_pair_pkey"

enum {
    STAGE_ROWS,
    STAGE_SEGMENTS,
    STAGE_DAYS,
    STAGE_END
};

bool hearth_erase_has_series(const struct hearth_erase_work *work, int32_t series_id)
{
    size_t low = 0, high = work->n_series;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (work->series_ids[mid] < series_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < work->n_series && work->series_ids[low] == series_id;
}

/* ---- statements: the least int8 is written as text, SQL would read its digits as numeric ---- */

enum hearth_status hearth_erase_exec(struct hearth_erase_work *work, const char *sql,
                                     PGresult **ret_result, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &work->arena);
    hearth_pg_param_i32_array(&params, work->series_ids, work->n_series);
    return hearth_pg_exec(&work->builder->pg, sql, &params, NULL, ret_result, NULL, err);
}

static enum hearth_status run_plain(struct hearth_builder *builder, const char *sql,
                                    struct hearth_err *err)
{
    return hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, err);
}

/* One int8 of a statement that has $1 = the series. */
static enum hearth_status ask(struct hearth_erase_work *work, const char *sql, int64_t *ret,
                              struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_erase_exec(work, sql, &result, err));
    *ret = PQntuples(result) > 0 && !hearth_pg_is_null(result, 0, 0) ? hearth_pg_i64(result, 0, 0)
                                                                     : INT64_MAX;
    PQclear(result);
    return HEARTH_OK;
}

enum hearth_status hearth_erase_count_rows(struct hearth_erase_work *work, int64_t n_rows,
                                           struct hearth_err *err)
{
    char sql[160];
    if (n_rows == 0) {
        return HEARTH_OK;
    }
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.erasure SET n_rows = n_rows + %" PRId64
                   " WHERE erasure_id = %" PRId64,
                   n_rows, work->erasure_id);
    return run_plain(work->builder, sql, err);
}

/* Rows of profile before compacted_to are leftovers: segments have them, and count them. */
static enum hearth_status delete_rows(struct hearth_erase_work *work, const char *table,
                                      int64_t from_ns, int64_t to_ns, bool late, int64_t *ret_n,
                                      struct hearth_err *err)
{
    char sql[512];
    (void)snprintf(
        sql, sizeof sql,
        "WITH gone AS (DELETE FROM hearth_data.%s WHERE service_id = %" PRId32
        " AND series_id = ANY ($1) AND ts BETWEEN '%" PRId64 "'::int8 AND '%" PRId64
        "'::int8 RETURNING ts) SELECT count(*) FROM gone WHERE ts >= '%" PRId64 "'::int8",
        table, work->service_id, from_ns, to_ns, late ? INT64_MIN : work->compacted_to_ns);
    HEARTH_TRY(ask(work, sql, ret_n, err));
    return hearth_erase_count_rows(work, *ret_n, err);
}

/* ---- rows ---- */

/* The first hour from next_ns on that has rows of it; INT64_MAX: none. */
static enum hearth_status next_hour(struct hearth_erase_work *work, int64_t *ret_ns,
                                    struct hearth_err *err)
{
    int64_t from_ns = work->builder->store->erase.next_ns;
    char sql[320];
    from_ns = from_ns > work->from_ns ? from_ns : work->from_ns;
    /* One probe of the index per series and leaf. */
    (void)snprintf(sql, sizeof sql,
                   "SELECT min(t) FROM unnest($1::int4[]) u (i), LATERAL (SELECT min(ts) t FROM"
                   " hearth_data.profile WHERE service_id = %" PRId32 " AND series_id = u.i AND ts"
                   " BETWEEN '%" PRId64 "'::int8 AND %" PRId64 ") v",
                   work->service_id, from_ns, work->to_ns);
    return ask(work, sql, ret_ns, err);
}

static enum hearth_status erase_hour(struct hearth_erase_work *work, bool *ret_done,
                                     struct hearth_err *err)
{
    struct hearth_builder *builder = work->builder;
    int64_t ts_ns, n_rows = 0, n_late = 0, next_ns = builder->store->erase.next_ns;
    HEARTH_TRY(next_hour(work, &ts_ns, err));
    *ret_done = ts_ns == INT64_MAX;
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(delete_rows(work, "profile_late", work->from_ns, work->to_ns, true, &n_late, err));
    if (!*ret_done) {
        int64_t end_ns = hearth_hour_of(ts_ns) * HEARTH_NS_PER_HOUR + HEARTH_NS_PER_HOUR - 1;
        end_ns = end_ns < work->to_ns ? end_ns : work->to_ns;
        HEARTH_TRY(delete_rows(work, "profile", ts_ns, end_ns, false, &n_rows, err));
        next_ns = end_ns;
    }
    HEARTH_TRY(hearth_builder_commit(builder, err));
    builder->store->erase.next_ns = next_ns;
    hearth_metric_add(HEARTH_M_ERASED_ROWS, n_rows + n_late);
    return HEARTH_OK;
}

/* ---- days whose profiles are gone ---- */

static enum hearth_status check_reach(struct hearth_erase_work *work, struct hearth_err *err)
{
    if (work->reach_checked) {
        return HEARTH_OK;
    }
    int64_t from_ns = work->from_ns > work->reach_ns ? work->from_ns : work->reach_ns;
    if (from_ns < work->built_to_ns) {
        HEARTH_TRY(hearth_profiles_check_reach(&work->builder->pg, work->service_id, from_ns,
                                               &work->reach_ns, NULL, err));
    }
    work->reach_checked = true;
    return HEARTH_OK;
}

/* The next day before `reach` that has blocks which the range may meet. */
static enum hearth_status erase_day(struct hearth_erase_work *work, bool *ret_done,
                                    struct hearth_err *err)
{
    struct hearth_builder *builder = work->builder;
    struct hearth_erase_progress *at = &builder->store->erase;
    int32_t first = hearth_day_of(work->from_ns), last = hearth_day_of(work->to_ns), day = 0;
    HEARTH_TRY(check_reach(work, err));
    int64_t end_ns = work->reach_ns < work->built_to_ns ? work->reach_ns : work->built_to_ns;
    first = at->next_day > first ? at->next_day : first;
    if (last >= hearth_day_of(end_ns)) {
        last = hearth_day_of(end_ns) - (end_ns % HEARTH_NS_PER_DAY == 0);
    }
    bool found = false;
    HEARTH_TRY(hearth_partitions_next_day(
        &builder->pg, "'roll_10m', 'roll_1h', 'roll_1d', 'hour_totals'", first, &day, &found, err));
    *ret_done = !found || day > last;
    if (*ret_done) {
        return HEARTH_OK;
    }
    int64_t part;
    bool wider = false;
    char sql[160];
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_builder_next_generation(builder, work->service_id, &part, err));
    HEARTH_TRY(hearth_erase_blocks_of_day(work, day, &part, &wider, err));
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET generation = %" PRId64
                   " WHERE service_id = %" PRId32,
                   part, work->service_id);
    HEARTH_TRY(run_plain(builder, sql, err));
    HEARTH_TRY(hearth_builder_commit(builder, err));
    if (wider) {
        HEARTH_LOG(
            HEARTH_LOG_WARN, "builder",
            "deletion: roll-ups reached beyond the range; their profiles are gone already, so "
            "they went whole",
            "erasure", hearth_log_i64(work->erasure_id), "service",
            hearth_log_i64(work->service_id), "day", hearth_log_i64(day), NULL);
    }
    at->next_day = day + 1;
    return HEARTH_OK;
}

/* ---- the end ---- */

/* From the range's first day on, blocks are deleted and will be built again. */
static enum hearth_status rebuild(struct hearth_erase_work *work, struct hearth_err *err)
{
    static const char *const tables[] = {"roll_10m", "roll_1h", "roll_1d", "hour_totals"};
    int64_t first_ns = work->from_ns > work->reach_ns ? work->from_ns : work->reach_ns;
    if (first_ns >= work->built_to_ns || work->to_ns < work->reach_ns) {
        return HEARTH_OK; /* nothing that can be built again has been built */
    }
    int64_t day_ns = hearth_day_of(first_ns) * HEARTH_NS_PER_DAY;
    char sql[256];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tables); i++) {
        (void)snprintf(sql, sizeof sql,
                       "DELETE FROM hearth_data.%s WHERE service_id = %" PRId32
                       " AND t0 >= %" PRId64,
                       tables[i], work->service_id, day_ns);
        HEARTH_TRY(run_plain(work->builder, sql, err));
    }
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET built_to = least(built_to, %" PRId64
                   ") WHERE service_id = %" PRId32,
                   day_ns, work->service_id);
    return run_plain(work->builder, sql, err);
}

/* A service that is gone needs neither its symbols nor its state. */
static enum hearth_status forget_service(struct hearth_erase_work *work, struct hearth_err *err)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.dict_chunk WHERE service_id = %" PRId32
                   " AND NOT EXISTS (SELECT FROM hearth_data.series WHERE service_id = %" PRId32
                   ")",
                   work->service_id, work->service_id);
    HEARTH_TRY(run_plain(work->builder, sql, err));
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.roll_state WHERE service_id = %" PRId32
                   " AND NOT EXISTS (SELECT FROM hearth_data.series WHERE service_id = %" PRId32
                   ") AND NOT EXISTS (SELECT FROM hearth_data.tombstone WHERE service_id = %" PRId32
                   ")",
                   work->service_id, work->service_id, work->service_id);
    return run_plain(work->builder, sql, err);
}

static enum hearth_status finish(struct hearth_erase_work *work, struct hearth_err *err)
{
    struct hearth_builder *builder = work->builder;
    int64_t part, n_rows, n_late;
    char sql[320];
    HEARTH_TRY(check_reach(work, err));
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_builder_next_generation(builder, work->service_id, &part, err));
    HEARTH_TRY(delete_rows(work, "profile", work->from_ns, work->to_ns, false, &n_rows, err));
    HEARTH_TRY(delete_rows(work, "profile_late", work->from_ns, work->to_ns, true, &n_late, err));
    HEARTH_TRY(rebuild(work, err));
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.tombstone WHERE service_id = %" PRId32
                   " AND erasure_id = %" PRId64,
                   work->service_id, work->erasure_id);
    HEARTH_TRY(run_plain(builder, sql, err));
    HEARTH_TRY(forget_service(work, err));
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.erasure SET done_at = now() WHERE erasure_id = %" PRId64
                   " AND NOT EXISTS (SELECT FROM hearth_data.tombstone WHERE erasure_id = %" PRId64
                   ")",
                   work->erasure_id, work->erasure_id);
    HEARTH_TRY(run_plain(builder, sql, err));
    HEARTH_TRY(hearth_builder_commit(builder, err));
    hearth_metric_add(HEARTH_M_ERASED_ROWS, n_rows + n_late);
    HEARTH_LOG(HEARTH_LOG_INFO, "builder", "deletion: removed", "erasure",
               hearth_log_i64(work->erasure_id), "service", hearth_log_i64(work->service_id), NULL);
    return HEARTH_OK;
}

/*
 * Deleted rows stay as bytes of their pages until something else is put there. Of label texts,
 * which is where secrets leak to, the table is written anew; one too large to do that while people
 * wait is vacuumed. Failing is no harm: vacuum comes by.
 */
static void scrub(struct hearth_builder *builder, int64_t erasure_id)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    PGresult *result = NULL;
    char ask_sql[256];
    (void)snprintf(ask_sql, sizeof ask_sql,
                   "SELECT pg_relation_size('hearth_data.label_pair') <= " SCRUB_MAX_BYTES
                   " FROM hearth_data.erasure WHERE erasure_id = %" PRId64
                   " AND done_at IS NOT NULL",
                   erasure_id);
    if (hearth_pg_exec(&builder->pg, ask_sql, NULL, NULL, &result, NULL, &err) != HEARTH_OK) {
        return;
    }
    bool done = PQntuples(result) == 1; /* of its last service */
    bool small = done && PQgetvalue(result, 0, 0)[0] != 0;
    PQclear(result);
    if (!done) {
        return;
    }
    const char *sql = small ? "BEGIN; SET LOCAL lock_timeout = 200; CLUSTER " SCRUB_PAIRS_PRIMARY
                              "; COMMIT"
                            : "VACUUM (TRUNCATE false) hearth_data.label_pair";
    if (hearth_pg_script(&builder->pg, sql, NULL, &err) != HEARTH_OK) {
        hearth_pg_rollback(&builder->pg);
        HEARTH_LOG(HEARTH_LOG_INFO, "builder", "deletion: left to vacuum", "reason", err.msg, NULL);
    }
}

/* ---- one tombstone ---- */

static enum hearth_status advance(struct hearth_erase_work *work, bool *ret_done,
                                  struct hearth_err *err)
{
    struct hearth_erase_progress *at = &work->builder->store->erase;
    bool stage_done = false;
    switch (at->stage) {
    case STAGE_ROWS:
        HEARTH_TRY(erase_hour(work, &stage_done, err));
        break;
    case STAGE_SEGMENTS:
        HEARTH_TRY(hearth_erase_segments(work, &stage_done, err));
        break;
    case STAGE_DAYS:
        HEARTH_TRY(erase_day(work, &stage_done, err));
        break;
    default:
        HEARTH_TRY(finish(work, err));
        *ret_done = true;
        break;
    }
    at->stage += stage_done;
    return HEARTH_OK;
}

/* The oldest that has waited long enough; work->service_id 0: none. */
static enum hearth_status pick(struct hearth_erase_work *work, struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        &work->builder->pg,
        "SELECT t.service_id, t.erasure_id, t.from_ts, t.to_ts, t.series_ids, r.compacted_to,"
        " r.built_to, n.name FROM hearth_data.tombstone t JOIN hearth_data.erasure e USING"
        " (erasure_id) JOIN hearth_data.roll_state r USING (service_id) JOIN hearth_data.tenant n"
        " USING (tenant_id) WHERE e.requested_at <= now() - interval '2 minutes'"
        " ORDER BY t.erasure_id, t.service_id LIMIT 1",
        NULL, NULL, &rows, NULL, err));
    enum hearth_status status = HEARTH_OK;
    if (PQntuples(rows) == 1) {
        work->service_id = hearth_pg_i32(rows, 0, 0);
        work->erasure_id = hearth_pg_i64(rows, 0, 1);
        work->from_ns = hearth_pg_i64(rows, 0, 2);
        work->to_ns = hearth_pg_i64(rows, 0, 3);
        work->compacted_to_ns = hearth_pg_i64(rows, 0, 5);
        work->built_to_ns = hearth_pg_i64(rows, 0, 6);
        status =
            hearth_pg_i32_array(rows, 0, 4, &work->arena, &work->series_ids, &work->n_series, err);
        if (status == HEARTH_OK) {
            status = hearth_profiles_reach(work->builder->store, &work->builder->pg,
                                           hearth_pg_str(rows, 0, 7), &work->reach_ns, err);
        }
    }
    PQclear(rows);
    return status;
}

static enum hearth_status work_off(struct hearth_erase_work *work, bool *ret_more,
                                   struct hearth_err *err)
{
    struct hearth_erase_progress *at = &work->builder->store->erase;
    HEARTH_TRY(pick(work, err));
    *ret_more = work->service_id != 0;
    if (work->service_id == 0) {
        return HEARTH_OK;
    }
    if (at->service_id != work->service_id || at->erasure_id != work->erasure_id) {
        *at = (struct hearth_erase_progress){.service_id = work->service_id,
                                             .erasure_id = work->erasure_id,
                                             .stage = STAGE_ROWS,
                                             .next_ns = INT64_MIN,
                                             .next_day = INT32_MIN,
                                             .segment_t0_ns = INT64_MIN};
    }
    int64_t end_ns = hearth_clock_mono_ns() + SLICE_NS;
    bool done = false;
    while (!done && hearth_clock_mono_ns() < end_ns) {
        HEARTH_TRY(advance(work, &done, err));
    }
    if (done) {
        *at = (struct hearth_erase_progress){0};
        scrub(work->builder, work->erasure_id);
    }
    return HEARTH_OK;
}

enum hearth_status hearth_step_erase(struct hearth_builder *builder, bool *ret_more,
                                     struct hearth_err *err)
{
    struct hearth_erase_work work = {.builder = builder};
    hearth_arena_init(&work.arena, 0);
    enum hearth_status status = work_off(&work, ret_more, err);
    if (status != HEARTH_OK) {
        hearth_builder_rollback(builder);
    }
    hearth_arena_release(&work.arena);
    return status;
}
