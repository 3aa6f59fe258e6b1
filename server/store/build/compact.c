/*
 * compact.c -- rewrites closed hours into segments: fewer bytes, and rows that are read together
 * lie next to each other (contract: builder.h).
 *
 * One transaction for an hour of a service: raise compacted_to and the generation, copy the rows.
 * The rows stay in the leaf of `profile`, where readers skip them, until the whole leaf is dropped
 * (compact_days.c): to delete them one by one would write more bytes than the segments have. Rows
 * are fetched by a cursor, some megabytes at a time, so memory does not grow with the hour.
 *
 * Late profiles are folded first. One that arrives after that does no harm: the fold sees
 * compacted_to, and writes the profile as a segment of its own.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/store/background.h"

#include "build/builder.h"
#include "build/roll.h"
#include "build/roll_fill.h"
#include "build/roll_states.h"
#include "pg/pg.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "read/stored_rows.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS          HEARTH_NS_PER_SEC
#define SERVICES_AT_ONCE 1000
#define FLUSH_BYTES      ((size_t)8 << 20)
#define SLICE_BYTES      (HEARTH_SEGMENT_SLICES * HEARTH_SEGMENT_BYTES) /* below it: no slices */
#define FETCH_BYTES      ((size_t)2 << 20)
#define FIRST_FETCH      64
#define MAX_FETCH        4096
#define MAX_RESULTS      64

#define CURSOR "hearth_compact"

/* ---- hours that are due ---- */

/* A service with hours to compact. */
struct due {
    int32_t service_id;
    int64_t compacted_to_ns, limit_ns; /* the hours to compact lie between them */
    bool has_hour;                     /* one of these hours has profiles */
    int64_t hour_ns;                   /* the first hour that has profiles */
    int64_t keep_from_ns;              /* older rows have expired; INT64_MIN: none expires */
    bool has_tombstones;
};

/* Runs a statement that returns at most one int8; *ret_found: it has returned one. */
static enum hearth_status exec_for_found(struct hearth_builder *builder, const char *sql,
                                         int64_t *ret, bool *ret_found, struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret_found = PQntuples(result) > 0 && !hearth_pg_is_null(result, 0, 0);
    *ret = *ret_found ? hearth_pg_i64(result, 0, 0) : 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Finds the service's first hour with profiles from the hour of from_ns on, before the limit. */
static enum hearth_status find_due_hour(struct hearth_builder *builder, struct due *due,
                                        int64_t from_ns, struct hearth_err *err)
{
    assert(due->limit_ns % HEARTH_NS_PER_HOUR == 0);

    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT min(hour)::int8 FROM hearth_data.series_hour WHERE service_id = %" PRId32
                   " AND hour >= %" PRId32 " AND hour < %" PRId32,
                   due->service_id, hearth_hour_of(from_ns), hearth_hour_of(due->limit_ns));
    HEARTH_TRY(exec_for_found(builder, sql, &due->hour_ns, &due->has_hour, err));
    due->hour_ns *= HEARTH_NS_PER_HOUR;

    return HEARTH_OK;
}

/* Takes a row of list_due_services. */
static void take_due(struct hearth_builder *builder, const PGresult *result, int row,
                     int64_t now_ns, struct due *due)
{
    *due = (struct due){
        .service_id = hearth_pg_i32(result, row, 0),
        .compacted_to_ns = hearth_pg_i64(result, row, 1),
        .limit_ns = hearth_floor_ns(hearth_pg_i64(result, row, 2), HEARTH_NS_PER_HOUR),
        .has_hour = !hearth_pg_is_null(result, row, 4),
        .keep_from_ns = INT64_MIN,
    };
    due->hour_ns = due->has_hour ? hearth_pg_i32(result, row, 4) * HEARTH_NS_PER_HOUR : 0;

    struct hearth_retention retention;
    hearth_store_retention(builder->store, hearth_pg_str(result, row, 3), &retention);
    if (retention.profiles_ns > 0) { /* queries see the hour in which it ends as a whole */
        due->keep_from_ns = hearth_floor_ns(now_ns - retention.profiles_ns, HEARTH_NS_PER_HOUR);
    }
}

static int compare_services(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;

    return (left > right) - (left < right);
}

/* Notes which of the services have deletions whose rows are not removed yet. Few or none have. */
static enum hearth_status note_tombstones(struct hearth_builder *builder, struct due *dues,
                                          size_t n, struct hearth_arena *arena,
                                          struct hearth_err *err)
{
    const struct hearth_pg_query query = {
        .sql = "SELECT DISTINCT service_id FROM hearth_data.tombstone ORDER BY 1",
        .type = &hearth_i32_rows,
        .arena = arena};
    int32_t *hidden = NULL;
    size_t n_hidden = 0;
    HEARTH_TRY(hearth_pg_select(&builder->pg, &query, &hidden, &n_hidden, NULL, err));

    for (size_t i = 0; n_hidden > 0 && i < n; i++) {
        dues[i].has_tombstones = bsearch(&dues[i].service_id, hidden, n_hidden, sizeof *hidden,
                                         compare_services) != NULL;
    }

    return HEARTH_OK;
}

/*
 * Lets services keep profiles past their retention from the first day on that lacks hours or days
 * (roll_fill.h). This matters only if hours expire before they are compacted.
 */
static enum hearth_status keep_unfilled(struct hearth_builder *builder, struct due *dues, size_t n,
                                        struct hearth_arena *arena, struct hearth_err *err)
{
    bool expires = false;
    for (size_t i = 0; i < n; i++) {
        expires = expires || (dues[i].has_hour && dues[i].hour_ns < dues[i].keep_from_ns);
    }

    if (!expires) {
        return HEARTH_OK;
    }

    struct hearth_unfilled *unfilled = NULL;
    size_t n_unfilled = 0;
    HEARTH_TRY(hearth_unfilled_list(&builder->pg, arena, &unfilled, &n_unfilled, err));
    for (size_t i = 0; i < n; i++) {
        int64_t day_ns = hearth_unfilled_day(unfilled, n_unfilled, dues[i].service_id);
        dues[i].keep_from_ns = day_ns < dues[i].keep_from_ns ? day_ns : dues[i].keep_from_ns;
    }

    return HEARTH_OK;
}

/*
 * Lists at most SERVICES_AT_ONCE services with hours to compact, those with the oldest hours first.
 * *ret_dues: the caller frees it by hearth_mem_free.
 *
 * The first statement reads roll_state whole, a row for each service. The first hour is found by
 * the primary key of series_hour (service_id, hour). Services without such an hour are listed last.
 */
static enum hearth_status list_due_services(struct hearth_builder *builder, int64_t closed_ns,
                                            int64_t now_ns, struct due **ret_dues, size_t *ret_n,
                                            struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_roll_state *states = NULL;
    size_t n_states = 0;
    char condition[96];
    (void)snprintf(condition, sizeof condition,
                   "compacted_to + 3600000000000 <= least(built_to, %" PRId64 ")", closed_ns);
    HEARTH_TRY(
        hearth_roll_states_read(&builder->pg, condition, &arena, &states, &n_states, NULL, err));

    char sql[1024];
    (void)snprintf(sql, sizeof sql,
                   "SELECT r.service_id, r.compacted_to, r.reach, t.name, (SELECT min(h.hour) FROM"
                   " hearth_data.series_hour h WHERE h.service_id = r.service_id AND h.hour "
                   ">= " HEARTH_SQL_HOUR("r.compacted_to") " AND h.hour < " HEARTH_SQL_HOUR(
                       "r.reach") ") AS hour FROM (SELECT *, least(built_to, %" PRId64
                                  ") AS reach FROM " HEARTH_SQL_STATES_R
                                  ") r JOIN hearth_data.service s USING (service_id)"
                                  " JOIN hearth_data.tenant t USING (tenant_id)"
                                  " ORDER BY hour, r.service_id LIMIT %d",
                   closed_ns, SERVICES_AT_ONCE);

    struct hearth_pg_params params;
    hearth_roll_states_param(&params, &arena, states, n_states);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, &params, NULL, &result, NULL, err));

    int n = PQntuples(result);
    struct due *dues = hearth_mem_calloc((size_t)n + 1, sizeof *dues);
    for (int row = 0; dues != NULL && row < n; row++) {
        take_due(builder, result, row, now_ns, &dues[row]);
    }
    PQclear(result);
    if (dues == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the list of services");
    }

    enum hearth_status status = note_tombstones(builder, dues, (size_t)n, &arena, err);
    if (status == HEARTH_OK) {
        status = keep_unfilled(builder, dues, (size_t)n, &arena, err);
    }

    if (status != HEARTH_OK) {
        hearth_mem_free(dues);
        return status;
    }

    *ret_dues = dues;
    *ret_n = (size_t)n;

    return HEARTH_OK;
}

/* n services without profiles, whose compacted_to is to be raised from was_ns to limits_ns. */
struct empty_services {
    int32_t *ids;
    int64_t *was_ns, *limits_ns;
    size_t n;
};

/* Takes the services that have no hour with profiles. */
static enum hearth_status take_empty(const struct due *dues, size_t n, struct hearth_arena *arena,
                                     struct empty_services *empty, struct hearth_err *err)
{
    empty->ids = hearth_arena_array(arena, n, sizeof *empty->ids);
    empty->was_ns = hearth_arena_array(arena, n, sizeof *empty->was_ns);
    empty->limits_ns = hearth_arena_array(arena, n, sizeof *empty->limits_ns);
    if (empty->ids == NULL || empty->was_ns == NULL || empty->limits_ns == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        if (!dues[i].has_hour) {
            empty->ids[empty->n] = dues[i].service_id;
            empty->was_ns[empty->n] = dues[i].compacted_to_ns;
            empty->limits_ns[empty->n++] = dues[i].limit_ns;
        }
    }

    return HEARTH_OK;
}

/* Raises compacted_to of these services, in a transaction with one statement. */
static enum hearth_status raise_empty(struct hearth_builder *builder,
                                      const struct empty_services *empty,
                                      struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32_array(&params, empty->ids, empty->n);
    hearth_pg_param_i64_array(&params, empty->was_ns, empty->n);
    hearth_pg_param_i64_array(&params, empty->limits_ns, empty->n);

    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_pg_exec(
        &builder->pg,
        "UPDATE hearth_data.roll_state r SET compacted_to = u.upto, generation ="
        " generation + 1 FROM unnest($1::int4[], $2::int8[], $3::int8[]) u (s, was, upto)"
        " WHERE r.service_id = u.s AND r.compacted_to = u.was AND r.built_to >= u.upto",
        &params, NULL, NULL, NULL, err));

    return hearth_builder_commit(builder, err);
}

/* Raises compacted_to of the services that have no hour with profiles. */
static enum hearth_status skip_empty(struct hearth_builder *builder, const struct due *dues,
                                     size_t n, struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct empty_services empty = {0};

    enum hearth_status status = take_empty(dues, n, &arena, &empty, err);
    if (status == HEARTH_OK && empty.n > 0) {
        status = raise_empty(builder, &empty, &arena, err);
    }

    /* After a failure the services that have hours are compacted nevertheless. */
    hearth_builder_rollback(builder);
    hearth_arena_release(&arena);

    return status;
}

/* ---- one hour ---- */

/* An hour that is compacted, with the rows that are fetched and not written yet. */
struct hour {
    struct hearth_builder *builder;
    int32_t service_id;
    int64_t from_ns, part;
    int32_t ordinal;                /* of the next segment, without its slice */
    struct hearth_arena arena;      /* of the rows */
    PGresult *results[MAX_RESULTS]; /* the rows borrow from them */
    size_t n_results;
    struct hearth_stored_row *rows; /* by series and time */
    size_t n_rows, cap_rows, n_bytes;
    struct hearth_stored_row *slice; /* the rows of one slice */
    size_t cap_slice;
    int64_t n_written, n_written_bytes;
};

static void clear_rows(struct hour *hour)
{
    assert(hour->n_results <= MAX_RESULTS);

    for (size_t i = 0; i < hour->n_results; i++) {
        PQclear(hour->results[i]);
    }
    hour->n_results = hour->n_rows = hour->n_bytes = 0;
    hearth_arena_reset(&hour->arena);
}

/* Writes rows as segments. slice: 1 and more; 0: the rows are of the whole hour. */
static enum hearth_status append_segments(struct hour *hour, int32_t slice,
                                          const struct hearth_stored_row *rows, size_t n_rows,
                                          struct hearth_err *err)
{
    assert(slice >= 0 && slice <= HEARTH_SEGMENT_SLICES);

    struct hearth_segment_target target = {
        .service_id = hour->service_id,
        .part = hour->part,
        .ordinal = slice << HEARTH_SEGMENT_SLICE_BITS | hour->ordinal,
    };

    enum hearth_status status =
        hearth_segments_append(&hour->builder->pg, &target, rows, n_rows, err);
    hour->ordinal = target.ordinal & ((1 << HEARTH_SEGMENT_SLICE_BITS) - 1);
    hour->n_written += (int64_t)n_rows;
    hour->n_written_bytes += target.n_bytes;

    return status;
}

/* Writes slice after slice of ten minutes, each by series and time. */
static enum hearth_status append_slices(struct hour *hour, struct hearth_err *err)
{
    if (!hearth_mem_grow(&hour->slice, &hour->cap_slice, hour->n_rows, sizeof *hour->slice)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for profiles to compact");
    }

    for (int32_t k = 0; k < HEARTH_SEGMENT_SLICES; k++) {
        size_t n = 0;
        for (size_t i = 0; i < hour->n_rows; i++) {
            int64_t offset_ns = hour->rows[i].ts_ns - hour->from_ns;
            if (offset_ns / HEARTH_SEGMENT_SLICE_NS == k) {
                hour->slice[n++] = hour->rows[i];
            }
        }

        HEARTH_TRY(append_segments(hour, k + 1, hour->slice, n, err));
    }

    return HEARTH_OK;
}

/* Writes the fetched rows, in slices if they are many. */
static enum hearth_status flush_rows(struct hour *hour, struct hearth_err *err)
{
    enum hearth_status status = hour->n_bytes >= SLICE_BYTES
                                    ? append_slices(hour, err)
                                    : append_segments(hour, 0, hour->rows, hour->n_rows, err);
    clear_rows(hour);

    return status;
}

/*
 * Declares the cursor over the hour's rows, by series and time. The index of `profile` is by
 * (series_id, ts): the statement makes one probe for each series of the service. OFFSET 0 keeps the
 * planner from sorting the whole hour instead.
 */
static enum hearth_status declare_cursor(struct hour *hour, const struct due *due,
                                         struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    HEARTH_TRY(
        hearth_stored_series_param(&hour->builder->pg, due->service_id, &arena, &params, err));

    char sql[1280], tombstones[256] = "";
    int64_t from_ns = due->hour_ns > due->keep_from_ns ? due->hour_ns : due->keep_from_ns;

    /* Rows that a deletion hides are not copied. */
    if (due->has_tombstones) {
        (void)snprintf(tombstones, sizeof tombstones,
                       " AND NOT EXISTS (SELECT 1 FROM hearth_data.tombstone d WHERE d.service_id ="
                       " %" PRId32 " AND p.ts BETWEEN d.from_ts AND d.to_ts AND p.series_id = ANY"
                       " (d.series_ids))",
                       due->service_id);
    }

    (void)snprintf(sql, sizeof sql,
                   "DECLARE " CURSOR
                   " NO SCROLL CURSOR FOR SELECT p.* FROM " HEARTH_SQL_STORED_SERIES
                   " CROSS JOIN LATERAL (SELECT " HEARTH_PROFILE_COLUMNS
                   " FROM hearth_data.profile p WHERE p.service_id = %" PRId32
                   " AND p.series_id = s.series_id AND p.ts >= %" PRId64 " AND p.ts < %" PRId64
                   "%s ORDER BY p.ts OFFSET 0) p ORDER BY s.at, p.ts",
                   due->service_id, from_ns, due->hour_ns + HEARTH_NS_PER_HOUR, tombstones);

    return hearth_pg_exec(&hour->builder->pg, sql, &params, NULL, NULL, NULL, err);
}

/* Fetches the next rows of the cursor; *ret_n is 0 at the end. */
static enum hearth_status fetch_rows(struct hour *hour, int n_wanted, int *ret_n,
                                     struct hearth_err *err)
{
    assert(hour->n_results < MAX_RESULTS);

    char sql[64];
    PGresult *result = NULL;
    (void)snprintf(sql, sizeof sql, "FETCH %d FROM " CURSOR, n_wanted);
    HEARTH_TRY(hearth_pg_exec(&hour->builder->pg, sql, NULL, NULL, &result, NULL, err));
    hour->results[hour->n_results++] = result;

    int n = PQntuples(result);
    if (!hearth_mem_grow(&hour->rows, &hour->cap_rows, hour->n_rows + (size_t)n,
                         sizeof *hour->rows)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for profiles to compact");
    }

    for (int i = 0; i < n; i++) {
        int32_t service_id;
        struct hearth_stored_row *row = &hour->rows[hour->n_rows++];
        HEARTH_TRY(hearth_stored_row_take(result, i, &hour->arena, &service_id, row, err));
        hour->n_bytes += hearth_stored_row_bytes(row);
    }

    *ret_n = n;

    return HEARTH_OK;
}

/* Copies all rows of the cursor into segments. */
static enum hearth_status copy_rows(struct hour *hour, struct hearth_err *err)
{
    int n_wanted = FIRST_FETCH, n;
    do {
        size_t before = hour->n_bytes;
        HEARTH_TRY(fetch_rows(hour, n_wanted, &n, err));

        /* The size of these rows tells how many the next fetch may take. */
        if (n > 0) {
            size_t each = (hour->n_bytes - before) / (size_t)n + 1;
            n_wanted = FETCH_BYTES / each < MAX_FETCH ? (int)(FETCH_BYTES / each) + 1 : MAX_FETCH;
        }

        if (hour->n_bytes >= FLUSH_BYTES || hour->n_results == MAX_RESULTS) {
            HEARTH_TRY(flush_rows(hour, err));
        }
    } while (n > 0);

    return flush_rows(hour, err);
}

/*
 * Raises compacted_to past the hour; *ret_part is the new generation. *ret_part 0: the row of
 * roll_state has changed, or late profiles are not folded yet.
 */
static enum hearth_status raise_compacted(struct hearth_builder *builder, const struct due *due,
                                          int64_t *ret_part, struct hearth_err *err)
{
    char sql[384];
    bool found;
    int64_t end_ns = due->hour_ns + HEARTH_NS_PER_HOUR;
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET compacted_to = %" PRId64
                   ", generation = generation + 1 WHERE service_id = %" PRId32
                   " AND compacted_to = %" PRId64 " AND built_to >= %" PRId64
                   " AND NOT EXISTS (SELECT 1 FROM hearth_data.profile_late l WHERE l.service_id ="
                   " %" PRId32 " AND l.ts < %" PRId64 ") RETURNING generation",
                   end_ns, due->service_id, due->compacted_to_ns, end_ns, due->service_id, end_ns);

    return exec_for_found(builder, sql, ret_part, &found, err);
}

/* *ret_done false: nothing was written, and the caller rolls back. */
static enum hearth_status compact_in_transaction(struct hour *hour, const struct due *due,
                                                 bool *ret_done, struct hearth_err *err)
{
    HEARTH_TRY(hearth_builder_begin(hour->builder, err));
    HEARTH_TRY(raise_compacted(hour->builder, due, &hour->part, err));
    *ret_done = hour->part != 0;
    if (!*ret_done) {
        return HEARTH_OK;
    }

    HEARTH_TRY(declare_cursor(hour, due, err));
    HEARTH_TRY(copy_rows(hour, err));

    return hearth_builder_commit(hour->builder, err);
}

/* Compacts the service's first hour with profiles. *ret_done: compacted_to was raised. */
static enum hearth_status compact_hour(struct hearth_builder *builder, const struct due *due,
                                       bool *ret_done, struct hearth_err *err)
{
    assert(due->has_hour);
    assert(due->hour_ns + HEARTH_NS_PER_HOUR <= due->limit_ns);

    struct hour hour = {.builder = builder, .service_id = due->service_id, .from_ns = due->hour_ns};
    *ret_done = false;
    hearth_arena_init(&hour.arena, 0);

    /* Compact it. */
    HEARTH_TRY(hearth_partitions_ensure(builder->store, &builder->pg, HEARTH_LEAF_SEGMENT,
                                        hearth_day_of(due->hour_ns), err));
    enum hearth_status status = compact_in_transaction(&hour, due, ret_done, err);
    hearth_builder_rollback(builder);

    /* Free its rows. */
    clear_rows(&hour);
    hearth_arena_release(&hour.arena);
    hearth_mem_free(hour.rows);
    hearth_mem_free(hour.slice);

    /* Report it. */
    if (status == HEARTH_OK && *ret_done) {
        hearth_metric_add(HEARTH_M_COMPACTED_ROWS, hour.n_written);
        hearth_metric_add(HEARTH_M_SEGMENT_BYTES, hour.n_written_bytes);
    }

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "compacting an hour of service %" PRId32, due->service_id);
    }

    return status;
}

/* ---- the step ---- */

/* Compacts hours of a service until `until_mono_ns`. Sets *ret_more if it has others then. */
static enum hearth_status compact_service(struct hearth_builder *builder, struct due *due,
                                          int64_t until_mono_ns, bool *ret_more,
                                          struct hearth_err *err)
{
    while (due->has_hour) {
        /* Skip hours that have expired. */
        if (due->hour_ns + HEARTH_NS_PER_HOUR <= due->keep_from_ns) {
            HEARTH_TRY(find_due_hour(builder, due, due->keep_from_ns, err));
            if (!due->has_hour) {
                break;
            }
        }

        if (hearth_clock_mono_ns() >= until_mono_ns) {
            *ret_more = true;
            return HEARTH_OK;
        }

        /* Compact one; if late profiles prevent it, the service waits for the next round. */
        bool done;
        HEARTH_TRY(compact_hour(builder, due, &done, err));
        if (!done) {
            return HEARTH_OK;
        }

        due->compacted_to_ns = due->hour_ns + HEARTH_NS_PER_HOUR;
        HEARTH_TRY(find_due_hour(builder, due, due->compacted_to_ns, err));
    }

    return due->compacted_to_ns < due->limit_ns ? skip_empty(builder, due, 1, err) : HEARTH_OK;
}

/*
 * Compacts the services until the time is over. A service that cannot be compacted does not keep
 * the others from it: the first failure is returned at the end. Only a lost lease
 * (FAILED_PRECONDITION) or connection ends the loop.
 */
static enum hearth_status compact_services(struct hearth_builder *builder, struct due *dues,
                                           size_t n, bool *ret_more, struct hearth_err *err)
{
    int64_t until_mono_ns = hearth_clock_mono_ns() + STEP_NS;
    enum hearth_status status = skip_empty(builder, dues, n, err);

    for (size_t i = 0; i < n; i++) {
        if (status == HEARTH_FAILED_PRECONDITION || !hearth_pg_usable(&builder->pg)) {
            break;
        }

        if (!dues[i].has_hour) {
            continue;
        }

        struct hearth_err own = HEARTH_ERR_INIT;
        enum hearth_status one = compact_service(builder, &dues[i], until_mono_ns, ret_more, &own);
        if (one != HEARTH_OK) {
            hearth_builder_rollback(builder);
            if (status == HEARTH_OK && err != NULL) {
                *err = own;
            }
            status = status == HEARTH_OK || one == HEARTH_FAILED_PRECONDITION ? one : status;
        }
    }

    return status;
}

enum hearth_status hearth_step_compact(struct hearth_builder *builder, bool *ret_more,
                                       struct hearth_err *err)
{
    const struct hearth_store_options *options = hearth_store_live(builder->store);
    *ret_more = false;
    if (!options->compaction) {
        return HEARTH_OK;
    }

    /* Find the services whose closed hours are not compacted yet. */
    int64_t now_ns = hearth_clock_wall_ns();
    int64_t closed_ns = hearth_floor_ns(now_ns - options->compact_after_ns, HEARTH_NS_PER_HOUR);
    struct due *dues = NULL;
    size_t n = 0;
    HEARTH_TRY(list_due_services(builder, closed_ns, now_ns, &dues, &n, err));

    /* Compact their hours. */
    enum hearth_status status = compact_services(builder, dues, n, ret_more, err);
    hearth_mem_free(dues);
    hearth_builder_rollback(builder);
    HEARTH_TRY(status);
    *ret_more = *ret_more || n == SERVICES_AT_ONCE;

    /* Drop a day of `profile` that segments have replaced. */
    return hearth_compact_days(builder, closed_ns, err);
}
