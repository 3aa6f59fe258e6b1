/*
 * erase_step.c -- the second half of a deletion: the rows that a tombstone hides are removed
 * (hearth_step_erase).
 *
 * It begins two minutes after the request. By then every server has noticed that series have left
 * the catalogue (a refresh is at most half a minute away), and profiles that were pushed under
 * their old ids in between lie in the range and are removed too.
 *
 * A tombstone has stages, in transactions of a bounded size. Its rows are hidden already, so
 * readers notice nothing, and a stage that is repeated finds nothing to do: after a restart of the
 * server, the first stage begins again.
 *   rows      profile and profile_late, an hour at a time
 *   segments  segments that hold its rows are written again without them (erase_segments.c)
 *   days      roll-ups of days whose profiles retention has deleted (erase_blocks.c)
 *   end       rows that arrived meanwhile; blocks that can be built again from profiles are deleted
 *             from the first day on, and the builder builds them again; the tombstone is deleted
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/store/background.h"

#include "build/builder.h"
#include "build/erase_work.h"
#include "build/reach.h"
#include "build/roll_fill.h"
#include "pg/pg.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define SLICE_NS            HEARTH_NS_PER_SEC
#define SCRUB_MAX_BYTES     "67108864"
#define SCRUB_PAIRS_PRIMARY "hearth_data.label_pair USING label_pair_pkey"

/* Values of hearth_erase_progress.stage, in their order. */
enum {
    STAGE_ROWS,
    STAGE_SEGMENTS,
    STAGE_DAYS,
    STAGE_END
};

/* ---- statements: the least int8 is written as text, SQL would read its digits as numeric ---- */

static enum hearth_status exec_plain(struct hearth_builder *builder, const char *sql,
                                     struct hearth_err *err)
{
    return hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, err);
}

/* Runs a statement with $1 = the series that returns one int8; INT64_MAX: it is NULL. */
static enum hearth_status exec_series_i64(struct hearth_erase_work *work, const char *sql,
                                          int64_t *ret, struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_erase_exec(work, sql, &result, err));
    *ret = PQntuples(result) > 0 && !hearth_pg_is_null(result, 0, 0) ? hearth_pg_i64(result, 0, 0)
                                                                     : INT64_MAX;
    PQclear(result);

    return HEARTH_OK;
}

/* ---- rows ---- */

/* Rows of a table from one time to another, both included. */
struct row_range {
    const char *table;
    int64_t from_ns, to_ns;
    int64_t counted_from_ns; /* rows before it are deleted, but not counted */
};

/* Deletes the tombstone's rows of the range. Returns their number, and adds it to the log's row. */
static enum hearth_status delete_range(struct hearth_erase_work *work,
                                       const struct row_range *range, int64_t *ret_n,
                                       struct hearth_err *err)
{
    assert(range->from_ns >= work->from_ns && range->to_ns <= work->to_ns);

    char sql[512];
    (void)snprintf(
        sql, sizeof sql,
        "WITH gone AS (DELETE FROM hearth_data.%s WHERE service_id = %" PRId32
        " AND series_id = ANY ($1) AND ts BETWEEN '%" PRId64 "'::int8 AND '%" PRId64
        "'::int8 RETURNING ts) SELECT count(*) FROM gone WHERE ts >= '%" PRId64 "'::int8",
        range->table, work->service_id, range->from_ns, range->to_ns, range->counted_from_ns);
    HEARTH_TRY(exec_series_i64(work, sql, ret_n, err));

    return hearth_erase_count_rows(work, *ret_n, err);
}

/* Rows of profile before compacted_to are copies: segments have these rows, and count them. */
static enum hearth_status delete_profiles(struct hearth_erase_work *work, int64_t from_ns,
                                          int64_t to_ns, int64_t *ret_n, struct hearth_err *err)
{
    struct row_range range = {"profile", from_ns, to_ns, work->compacted_to_ns};

    return delete_range(work, &range, ret_n, err);
}

static enum hearth_status delete_late_profiles(struct hearth_erase_work *work, int64_t *ret_n,
                                               struct hearth_err *err)
{
    struct row_range range = {"profile_late", work->from_ns, work->to_ns, INT64_MIN};

    return delete_range(work, &range, ret_n, err);
}

/* The time of the first row from next_ns on; INT64_MAX: no row is left. */
static enum hearth_status find_next_row(struct hearth_erase_work *work, int64_t *ret_ns,
                                        struct hearth_err *err)
{
    int64_t from_ns = work->builder->store->erase.next_ns;
    from_ns = from_ns > work->from_ns ? from_ns : work->from_ns;

    /* One probe of the index for each series and leaf. */
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "SELECT min(t) FROM unnest($1::int4[]) u (i), LATERAL (SELECT min(ts) t FROM"
                   " hearth_data.profile WHERE service_id = %" PRId32 " AND series_id = u.i AND ts"
                   " BETWEEN '%" PRId64 "'::int8 AND %" PRId64 ") v",
                   work->service_id, from_ns, work->to_ns);

    return exec_series_i64(work, sql, ret_ns, err);
}

/* Deletes the rows of the next hour that has any, and all late ones. *ret_done: no hour had any. */
static enum hearth_status erase_hour(struct hearth_erase_work *work, bool *ret_done,
                                     struct hearth_err *err)
{
    struct hearth_builder *builder = work->builder;
    struct hearth_erase_progress *at = &builder->store->erase;
    int64_t ts_ns, n_rows = 0, n_late = 0, next_ns = at->next_ns;
    HEARTH_TRY(find_next_row(work, &ts_ns, err));
    *ret_done = ts_ns == INT64_MAX;

    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(delete_late_profiles(work, &n_late, err));
    if (!*ret_done) {
        next_ns = hearth_hour_of(ts_ns) * HEARTH_NS_PER_HOUR + HEARTH_NS_PER_HOUR - 1;
        next_ns = next_ns < work->to_ns ? next_ns : work->to_ns;
        HEARTH_TRY(delete_profiles(work, ts_ns, next_ns, &n_rows, err));
    }
    HEARTH_TRY(hearth_builder_commit(builder, err));

    at->next_ns = next_ns;
    hearth_metric_add(HEARTH_M_ERASED_ROWS, n_rows + n_late);

    return HEARTH_OK;
}

/* ---- days whose profiles are gone ---- */

/* Raises reach_ns past days that have roll-ups without their profiles. Once for each call. */
static enum hearth_status raise_reach(struct hearth_erase_work *work, struct hearth_err *err)
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

/*
 * Finds the next day that has blocks which the range may meet and which cannot be built again: they
 * lie before reach_ns.
 */
static enum hearth_status find_next_day(struct hearth_erase_work *work, int32_t *ret_day,
                                        bool *ret_found, struct hearth_err *err)
{
    assert(work->reach_checked);

    struct hearth_builder *builder = work->builder;
    int32_t next = builder->store->erase.next_day;
    int32_t first = hearth_day_of(work->from_ns), last = hearth_day_of(work->to_ns);
    first = next > first ? next : first;

    /* The last day is the one before the end, or the end's own unless it begins there. */
    int64_t end_ns = work->reach_ns < work->built_to_ns ? work->reach_ns : work->built_to_ns;
    if (last >= hearth_day_of(end_ns)) {
        last = hearth_day_of(end_ns) - (end_ns % HEARTH_NS_PER_DAY == 0);
    }

    bool found = false;
    HEARTH_TRY(hearth_partitions_next_day(&builder->pg,
                                          "'roll_10m', 'roll_1h', 'roll_1d', 'hour_totals'", first,
                                          ret_day, &found, err));
    *ret_found = found && *ret_day <= last;

    return HEARTH_OK;
}

/* Takes the series out of the blocks of one day, in a transaction. */
static enum hearth_status erase_blocks(struct hearth_erase_work *work, int32_t day, bool *ret_wider,
                                       struct hearth_err *err)
{
    struct hearth_builder *builder = work->builder;
    int64_t part;
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_builder_next_generation(builder, work->service_id, &part, err));
    HEARTH_TRY(hearth_erase_blocks_of_day(work, day, &part, ret_wider, err));

    /* The generation is the last part that was used. */
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET generation = %" PRId64
                   " WHERE service_id = %" PRId32,
                   part, work->service_id);
    HEARTH_TRY(exec_plain(builder, sql, err));

    return hearth_builder_commit(builder, err);
}

/* Does the next day before reach_ns. *ret_done: no such day is left. */
static enum hearth_status erase_day(struct hearth_erase_work *work, bool *ret_done,
                                    struct hearth_err *err)
{
    int32_t day = 0;
    bool found = false, wider = false;
    HEARTH_TRY(raise_reach(work, err));
    HEARTH_TRY(find_next_day(work, &day, &found, err));
    *ret_done = !found;
    if (!found) {
        return HEARTH_OK;
    }

    HEARTH_TRY(erase_blocks(work, day, &wider, err));
    if (wider) {
        HEARTH_LOG(
            HEARTH_LOG_WARN, "builder",
            "deletion: roll-ups reach beyond the range; their profiles are deleted already, so "
            "the roll-ups were deleted as a whole",
            "erasure", hearth_log_i64(work->erasure_id), "service",
            hearth_log_i64(work->service_id), "day", hearth_log_i64(day), NULL);
    }
    work->builder->store->erase.next_day = day + 1;

    return HEARTH_OK;
}

/* ---- the end ---- */

/* Deletes the blocks from the range's first day on; the builder builds them again. */
static enum hearth_status request_rebuild(struct hearth_erase_work *work, struct hearth_err *err)
{
    static const char *const tables[] = {"roll_10m", "roll_1h", "roll_1d", "hour_totals"};

    assert(work->reach_checked);

    /* Nothing to do unless some have been built, and can be built again. */
    int64_t first_ns = work->from_ns > work->reach_ns ? work->from_ns : work->reach_ns;
    if (first_ns >= work->built_to_ns || work->to_ns < work->reach_ns) {
        return HEARTH_OK;
    }

    int64_t day_ns = hearth_day_of(first_ns) * HEARTH_NS_PER_DAY;
    char sql[256];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tables); i++) {
        (void)snprintf(sql, sizeof sql,
                       "DELETE FROM hearth_data.%s WHERE service_id = %" PRId32
                       " AND t0 >= %" PRId64,
                       tables[i], work->service_id, day_ns);
        HEARTH_TRY(exec_plain(work->builder, sql, err));
    }

    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET built_to = least(built_to, %" PRId64
                   ") WHERE service_id = %" PRId32,
                   day_ns, work->service_id);

    return exec_plain(work->builder, sql, err);
}

/* Runs a query without parameters. *ret: it has rows. */
static enum hearth_status query_has_rows(struct hearth_erase_work *work, const char *sql, bool *ret,
                                         struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(&work->builder->pg, sql, NULL, NULL, &rows, NULL, err));
    *ret = PQntuples(rows) > 0;
    PQclear(rows);

    return HEARTH_OK;
}

/*
 * Deletes the symbols and the state of a service that has no series left.
 *
 * A series is committed before its symbols. So the catalogue is asked again after the deletion: if
 * there is no series even then, no symbol that was deleted belongs to a new one.
 */
static enum hearth_status forget_service(struct hearth_erase_work *work, struct hearth_err *err)
{
    char series_sql[128], sql[512];
    bool has_series;
    (void)snprintf(series_sql, sizeof series_sql,
                   "SELECT FROM hearth_data.series WHERE service_id = %" PRId32 " LIMIT 1",
                   work->service_id);
    HEARTH_TRY(query_has_rows(work, series_sql, &has_series, err));
    if (has_series) {
        return HEARTH_OK;
    }

    (void)snprintf(
        sql, sizeof sql,
        "SAVEPOINT forget; DELETE FROM hearth_data.dict_chunk WHERE service_id = %" PRId32
        "; DELETE FROM hearth_data.roll_state WHERE service_id = %" PRId32
        " AND NOT EXISTS (SELECT 1 FROM hearth_data.tombstone WHERE service_id = %" PRId32 ")",
        work->service_id, work->service_id, work->service_id);
    HEARTH_TRY(hearth_pg_script(&work->builder->pg, sql, NULL, err));
    HEARTH_TRY(query_has_rows(work, series_sql, &has_series, err));

    return has_series ? exec_plain(work->builder, "ROLLBACK TO forget", err) : HEARTH_OK;
}

/* Deletes the tombstone; the erasure is done if it was its last one. */
static enum hearth_status delete_tombstone(struct hearth_erase_work *work, struct hearth_err *err)
{
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.tombstone WHERE service_id = %" PRId32
                   " AND erasure_id = %" PRId64,
                   work->service_id, work->erasure_id);
    HEARTH_TRY(exec_plain(work->builder, sql, err));
    HEARTH_TRY(forget_service(work, err));

    bool has_others;
    (void)snprintf(sql, sizeof sql,
                   "SELECT 1 FROM hearth_data.tombstone WHERE erasure_id = %" PRId64 " LIMIT 1",
                   work->erasure_id);
    HEARTH_TRY(query_has_rows(work, sql, &has_others, err));
    if (has_others) {
        return HEARTH_OK;
    }

    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.erasure SET done_at = now() WHERE erasure_id = %" PRId64,
                   work->erasure_id);

    return exec_plain(work->builder, sql, err);
}

/* The last stage, in a transaction. */
static enum hearth_status end_erasure(struct hearth_erase_work *work, struct hearth_err *err)
{
    struct hearth_builder *builder = work->builder;
    int64_t part, n_rows, n_late;
    HEARTH_TRY(raise_reach(work, err));

    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_builder_next_generation(builder, work->service_id, &part, err));
    HEARTH_TRY(delete_profiles(work, work->from_ns, work->to_ns, &n_rows, err));
    HEARTH_TRY(delete_late_profiles(work, &n_late, err));
    HEARTH_TRY(request_rebuild(work, err));
    HEARTH_TRY(delete_tombstone(work, err));
    HEARTH_TRY(hearth_builder_commit(builder, err));

    hearth_metric_add(HEARTH_M_ERASED_ROWS, n_rows + n_late);
    HEARTH_LOG(HEARTH_LOG_INFO, "builder", "deletion: removed", "erasure",
               hearth_log_i64(work->erasure_id), "service", hearth_log_i64(work->service_id), NULL);

    return HEARTH_OK;
}

/*
 * Deleted rows stay as bytes of their pages until other rows are written there. Label texts are the
 * texts into which secrets leak: after the last tombstone of an erasure their table is rewritten,
 * or vacuumed if it is too large to be locked that long. A failure does no harm: autovacuum will
 * clean the table later.
 */
static void scrub_label_texts(struct hearth_builder *builder, int64_t erasure_id)
{
    /* Find out whether the erasure is done, and whether the table is small. */
    struct hearth_err err = HEARTH_ERR_INIT;
    PGresult *result = NULL;
    char size_sql[256];
    (void)snprintf(size_sql, sizeof size_sql,
                   "SELECT pg_relation_size('hearth_data.label_pair') <= " SCRUB_MAX_BYTES
                   " FROM hearth_data.erasure WHERE erasure_id = %" PRId64
                   " AND done_at IS NOT NULL",
                   erasure_id);
    if (hearth_pg_exec(&builder->pg, size_sql, NULL, NULL, &result, NULL, &err) != HEARTH_OK) {
        return;
    }

    bool done = PQntuples(result) == 1;
    bool small = done && PQgetvalue(result, 0, 0)[0] != 0;
    PQclear(result);
    if (!done) {
        return;
    }

    /* Rewrite or vacuum it. */
    const char *sql = small ? "BEGIN; SET LOCAL lock_timeout = 200; CLUSTER " SCRUB_PAIRS_PRIMARY
                              "; COMMIT"
                            : "VACUUM (TRUNCATE false) hearth_data.label_pair";
    if (hearth_pg_script(&builder->pg, sql, NULL, &err) != HEARTH_OK) {
        hearth_pg_rollback(&builder->pg);
        HEARTH_LOG(HEARTH_LOG_INFO, "builder",
                   "deletion: the table of label texts was not rewritten, vacuum will do it",
                   "reason", err.msg, NULL);
    }
}

/* ---- one tombstone ---- */

/* Does a piece of the present stage. *ret_done: the tombstone is deleted. */
static enum hearth_status advance_erasure(struct hearth_erase_work *work, bool *ret_done,
                                          struct hearth_err *err)
{
    struct hearth_erase_progress *at = &work->builder->store->erase;
    bool stage_done = false;

    assert(at->service_id == work->service_id && at->erasure_id == work->erasure_id);
    assert(at->stage >= STAGE_ROWS && at->stage <= STAGE_END);

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
        HEARTH_TRY(end_erasure(work, err));
        *ret_done = true;
        break;
    }

    at->stage += stage_done;

    return HEARTH_OK;
}

/* A deletion that may begin, and its tenant. */
struct due_erasure {
    int64_t erasure_id;
    struct hearth_str tenant;
};

#define DUE(kind, member) HEARTH_COLUMN(kind, struct due_erasure, member)
static const struct hearth_column due_erasure_columns[] = {DUE(I64, erasure_id), DUE(TEXT, tenant)};
static const struct hearth_row_type due_erasure_rows =
    HEARTH_ROW_TYPE(due_erasure_columns, struct due_erasure);

/* Takes a row of pick_tombstone, and finds how far back its tenant's profiles reach. */
static enum hearth_status take_picked_tombstone(struct hearth_erase_work *work,
                                                const PGresult *rows,
                                                const struct due_erasure *erasures,
                                                struct hearth_err *err)
{
    work->service_id = hearth_pg_i32(rows, 0, 0);
    work->erasure_id = hearth_pg_i64(rows, 0, 1);
    work->from_ns = hearth_pg_i64(rows, 0, 2);
    work->to_ns = hearth_pg_i64(rows, 0, 3);
    work->compacted_to_ns = hearth_pg_i64(rows, 0, 5);
    work->built_to_ns = hearth_pg_i64(rows, 0, 6);
    HEARTH_TRY(
        hearth_pg_i32_array(rows, 0, 4, &work->arena, &work->series_ids, &work->n_series, err));

    /* Its erasure is one of the due ones. */
    while (erasures->erasure_id != work->erasure_id) {
        erasures++;
    }

    HEARTH_TRY(hearth_profiles_reach(work->builder->store, &work->builder->pg, erasures->tenant,
                                     &work->reach_ns, err));

    /* Profiles past their retention are kept where hours or days are still absent. */
    struct hearth_unfilled *unfilled = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_unfilled_list(&work->builder->pg, &work->arena, &unfilled, &n, err));
    int64_t day_ns = hearth_unfilled_day(unfilled, n, work->service_id);
    work->reach_ns = day_ns < work->reach_ns ? day_ns : work->reach_ns;

    return HEARTH_OK;
}

/* Lists the erasures that have tombstones and were requested two minutes ago or before. */
static enum hearth_status list_due_erasures(struct hearth_erase_work *work,
                                            struct due_erasure **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    struct hearth_pg *pg = &work->builder->pg;
    struct hearth_pg_query query = {.sql = "SELECT DISTINCT erasure_id FROM hearth_data.tombstone",
                                    .type = &hearth_i64_rows,
                                    .arena = &work->arena};
    int64_t *ids = NULL;
    size_t n = 0;
    *ret_n = 0;
    HEARTH_TRY(hearth_pg_select(pg, &query, &ids, &n, NULL, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &work->arena);
    hearth_pg_param_i64_array(&params, ids, n);
    query.sql = "SELECT e.erasure_id, n.name FROM hearth_data.erasure e JOIN hearth_data.tenant n"
                " USING (tenant_id) WHERE e.erasure_id = ANY ($1) AND e.requested_at <= now() -"
                " interval '2 minutes'";
    query.params = &params;
    query.type = &due_erasure_rows;

    return hearth_pg_select(pg, &query, ret, ret_n, NULL, err);
}

/* Picks the oldest tombstone that has waited two minutes; service_id stays 0 if none has. */
static enum hearth_status pick_tombstone(struct hearth_erase_work *work, struct hearth_err *err)
{
    struct due_erasure *erasures = NULL;
    size_t n = 0;
    HEARTH_TRY(list_due_erasures(work, &erasures, &n, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    int64_t *ids = hearth_arena_array(&work->arena, n, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &work->arena);
    }

    for (size_t i = 0; i < n; i++) {
        ids[i] = erasures[i].erasure_id;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &work->arena);
    hearth_pg_param_i64_array(&params, ids, n);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        &work->builder->pg,
        "SELECT t.service_id, t.erasure_id, t.from_ts, t.to_ts, t.series_ids, r.compacted_to,"
        " r.built_to FROM hearth_data.tombstone t JOIN hearth_data.roll_state r USING (service_id)"
        " WHERE t.erasure_id = ANY ($1) ORDER BY t.erasure_id, t.service_id LIMIT 1",
        &params, NULL, &rows, NULL, err));
    enum hearth_status status = HEARTH_OK;
    if (PQntuples(rows) == 1) {
        status = take_picked_tombstone(work, rows, erasures, err);
    }
    PQclear(rows);

    return status;
}

/* Works on the oldest tombstone for SLICE_NS. *ret_more: there is one. */
static enum hearth_status erase_oldest(struct hearth_erase_work *work, bool *ret_more,
                                       struct hearth_err *err)
{
    struct hearth_erase_progress *at = &work->builder->store->erase;
    HEARTH_TRY(pick_tombstone(work, err));
    *ret_more = work->service_id != 0;
    if (work->service_id == 0) {
        return HEARTH_OK;
    }

    /* Continue where the last call stopped, unless it is another tombstone. */
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
        HEARTH_TRY(advance_erasure(work, &done, err));
    }

    if (done) {
        *at = (struct hearth_erase_progress){0};
        scrub_label_texts(work->builder, work->erasure_id);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_step_erase(struct hearth_builder *builder, bool *ret_more,
                                     struct hearth_err *err)
{
    struct hearth_erase_work work = {.builder = builder};
    hearth_arena_init(&work.arena, 0);
    enum hearth_status status = erase_oldest(&work, ret_more, err);
    if (status != HEARTH_OK) {
        hearth_builder_rollback(builder);
    }
    hearth_arena_release(&work.arena);

    return status;
}
