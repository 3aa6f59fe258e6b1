/*
 * roll_fold.c -- moves late profiles into the tables and roll-ups that they missed
 * (docs/decisions/0011-roll-ups.md).
 *
 * One transaction takes a bounded number of a service's late profiles whose bucket is built: it
 * deletes them from profile_late, writes them to `profile` or, if their hour is compacted, to a new
 * part of a segment, and adds delta blocks to every tier that is built, except where its blocks are
 * absent, and totals. The parts of a
 * key that has many become one part. Queries read late profiles, too, so a delay does no harm:
 * services are visited every few rounds, so that late profiles of one bucket share their blocks.
 */
#include "hearth/base/metrics.h"

#include "build/builder.h"
#include "build/roll.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS         HEARTH_NS_PER_SEC
#define MAX_ROWS        5000       /* profiles of a transaction */
#define MAX_BYTES       "67108864" /* of these profiles */
#define WORTH_ANOTHER   500        /* after so many profiles the next transaction begins at once */
#define WORTH_BYTES     (8u << 20) /* as after so many bytes */
#define MAX_PARTS       8          /* of a key; with more, they are merged */
#define ROUNDS_OF_PAUSE 6          /* between two visits of all services */

/* The state of one transaction. */
struct fold {
    struct hearth_builder *builder;
    int32_t service_id;
    int64_t part, built_to_ns, compacted_to_ns;
    struct hearth_absent_set absent; /* blocks that get no delta */
    PGresult *result;                /* the rows borrow from it */
    struct hearth_arena arena;
    struct hearth_stored_row *rows; /* sorted by series and time */
    size_t n_rows;
    struct hearth_roll roll;
};

/* ---- deleting late profiles ---- */

static int compare_late_rows(const void *left, const void *right)
{
    const struct hearth_stored_row *a = left, *b = right;
    if (a->series_id != b->series_id) {
        return a->series_id < b->series_id ? -1 : 1;
    }

    return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

/*
 * Deletes late profiles whose bucket is built, and keeps them in fold->rows. The statement takes
 * them by series and time, up to MAX_ROWS rows and MAX_BYTES bytes; the first row in any case.
 */
static enum hearth_status take_late_rows(struct fold *fold, struct hearth_err *err)
{
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "DELETE FROM hearth_data.profile_late WHERE service_id = %" PRId32
        " AND ctid = ANY (ARRAY(SELECT ctid FROM (SELECT ctid, row_number() OVER w AS n,"
        " sum(octet_length(ids) + pg_column_size(vals) + coalesce(octet_length(attrs), 0)) OVER w"
        " AS n_bytes FROM (SELECT ctid, ids, vals, attrs, series_id, ts FROM"
        " hearth_data.profile_late WHERE service_id = %" PRId32 " AND ts < %" PRId64
        " ORDER BY series_id, ts LIMIT %d) l"
        " WINDOW w AS (ORDER BY series_id, ts ROWS UNBOUNDED PRECEDING)) m"
        " WHERE n = 1 OR n_bytes <= " MAX_BYTES ")) RETURNING " HEARTH_PROFILE_COLUMNS,
        fold->service_id, fold->service_id, fold->built_to_ns, MAX_ROWS);

    HEARTH_TRY(hearth_pg_exec(&fold->builder->pg, sql, NULL, NULL, &fold->result, NULL, err));
    size_t n = (size_t)PQntuples(fold->result);
    fold->rows = hearth_arena_array(&fold->arena, n, sizeof *fold->rows);
    if (fold->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &fold->arena);
    }

    /* Take the rows, and sort them: RETURNING has no order. */
    for (size_t i = 0; i < n; i++) {
        int32_t service_id;
        HEARTH_TRY(hearth_stored_row_take(fold->result, (int)i, &fold->arena, &service_id,
                                          &fold->rows[i], err));
    }

    fold->n_rows = n;
    qsort(fold->rows, n, sizeof *fold->rows, compare_late_rows);

    return HEARTH_OK;
}

/* ---- writing them ---- */

/* Writes the profiles of hours that are not compacted. */
static enum hearth_status put_profiles(const struct fold *fold, struct hearth_err *err)
{
    struct hearth_buf out;

    /* Make their rows. */
    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < fold->n_rows; i++) {
        if (fold->rows[i].ts_ns >= fold->compacted_to_ns) {
            hearth_copy_stored_row(&out, fold->service_id, &fold->rows[i]);
        }
    }

    /* Send them. */
    enum hearth_status status = HEARTH_OK;
    if (hearth_buf_failed(&out)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to fold %zu profiles", fold->n_rows);
    } else if (out.n > 0) {
        status = hearth_pg_copy(&fold->builder->pg,
                                "COPY hearth_data.profile (" HEARTH_PROFILE_COLUMNS
                                ") FROM STDIN (FORMAT binary)",
                                hearth_buf_view(&out), NULL, err);
    }

    hearth_buf_release(&out);

    return status;
}

static int64_t hour_of(const struct hearth_stored_row *row)
{
    return hearth_floor_ns(row->ts_ns, HEARTH_NS_PER_HOUR);
}

static int compare_by_hour(const void *left, const void *right)
{
    int64_t a = hour_of(left), b = hour_of(right);
    return a != b ? (a > b) - (a < b) : compare_late_rows(left, right);
}

/* Writes the profiles of compacted hours as segments, an hour at a time. */
static enum hearth_status put_segments(struct fold *fold, struct hearth_err *err)
{
    struct hearth_stored_row *rows = hearth_arena_array(&fold->arena, fold->n_rows, sizeof *rows);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &fold->arena);
    }

    /* Select them, and sort them by hour. */
    size_t n = 0;
    for (size_t i = 0; i < fold->n_rows; i++) {
        if (fold->rows[i].ts_ns < fold->compacted_to_ns) {
            rows[n++] = fold->rows[i];
        }
    }

    assert(n <= fold->n_rows);
    qsort(rows, n, sizeof *rows, compare_by_hour);

    /* Write each hour. */
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && hour_of(&rows[to]) == hour_of(&rows[from]); to++) {
        }

        HEARTH_TRY(hearth_segments_write(&fold->builder->pg, fold->service_id, fold->part,
                                         rows + from, to - from, err));
    }

    return HEARTH_OK;
}

static int compare_series_ids(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/*
 * Makes one part of keys that have many parts now: keys of the written series and of their shapes.
 */
static enum hearth_status merge_parts(struct fold *fold, struct hearth_err *err)
{
    struct hearth_roll *roll = &fold->roll;
    assert(fold->n_rows > 0 && roll->service_id == fold->service_id);

    int32_t *ids = hearth_arena_array(&fold->arena, fold->n_rows + roll->n_shapes, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &fold->arena);
    }

    /* List the series, and the range of their times. */
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    size_t n = 0, n_series;
    for (size_t i = 0; i < fold->n_rows; i++) {
        const struct hearth_stored_row *row = &fold->rows[i];
        first_ns = row->ts_ns < first_ns ? row->ts_ns : first_ns;
        last_ns = row->ts_ns > last_ns ? row->ts_ns : last_ns;
        if (n == 0 || ids[n - 1] != row->series_id) {
            ids[n++] = row->series_id;
        }
    }

    /* Append their shapes, as negative ids; both lists are sorted by series. */
    n_series = n;
    for (size_t i = 0, k = 0; i < roll->n_shapes && k < n_series; i++) {
        while (k < n_series && ids[k] < roll->shapes[i].series_id) {
            k++;
        }

        int32_t id = -roll->shapes[i].shape_id;
        if (k < n_series && ids[k] == roll->shapes[i].series_id &&
            (n == n_series || ids[n - 1] != id)) {
            ids[n++] = id;
        }
    }

    assert(n <= fold->n_rows + roll->n_shapes);

    /* Merge the totals of the series. */
    struct hearth_roll_keys keys = {
        .series_ids = ids,
        .n_series = n_series,
        .from_ns = hearth_floor_ns(first_ns, HEARTH_NS_PER_HOUR),
        .to_ns = hearth_floor_ns(last_ns, HEARTH_NS_PER_HOUR),
    };
    HEARTH_TRY(hearth_roll_merge_totals(roll, &keys, MAX_PARTS, err));

    /* Merge the blocks of series and shapes in the tiers that have new blocks. */
    qsort(ids, n, sizeof *ids, compare_series_ids);
    keys.n_series = n;
    for (int i = 0; i < HEARTH_N_TIERS; i++) {
        enum hearth_tier tier = (enum hearth_tier)i;
        int64_t length_ns = hearth_tier_length_ns(tier);
        keys.from_ns = hearth_floor_ns(first_ns, length_ns);
        keys.to_ns = hearth_floor_ns(last_ns, length_ns);
        if (roll->n_blocks[tier] > 0) {
            HEARTH_TRY(hearth_roll_merge_parts(roll, tier, &keys, MAX_PARTS, err));
        }
    }

    return HEARTH_OK;
}

/* Writes the profiles as blocks and totals of a new part, and merges parts. */
static enum hearth_status add_deltas(struct fold *fold, struct hearth_err *err)
{
    assert(fold->n_rows > 0 && fold->roll.part == fold->part);

    for (size_t i = 0; i < fold->n_rows; i++) {
        HEARTH_TRY(hearth_roll_add(&fold->roll, &fold->rows[i], err));
    }

    HEARTH_TRY(hearth_roll_end(&fold->roll, err));
    fold->roll.part++; /* a merged key must have another part than the rows it is made of */

    return merge_parts(fold, err);
}

/* Marks the buckets of the profiles for the recording rules. */
static enum hearth_status mark_folded_buckets(struct fold *fold, struct hearth_err *err)
{
    int64_t *t0s_ns = hearth_arena_array(&fold->arena, fold->n_rows, sizeof *t0s_ns);
    if (t0s_ns == NULL) {
        return HEARTH_FAIL_ARENA(err, &fold->arena);
    }

    for (size_t i = 0; i < fold->n_rows; i++) {
        t0s_ns[i] = hearth_floor_ns(fold->rows[i].ts_ns, HEARTH_BUCKET_NS);
    }

    return hearth_rules_mark(fold->builder, fold->service_id, t0s_ns, fold->n_rows, err);
}

/* ---- one transaction ---- */

/* Locks the service's roll_state, raises its generation, and reads its state. */
static enum hearth_status lock_fold_state(struct fold *fold, struct hearth_err *err)
{
    char sql[224];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET generation = generation + 1 WHERE service_id"
                   " = %" PRId32 " RETURNING generation, built_to, compacted_to, absent",
                   fold->service_id);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&fold->builder->pg, sql, NULL, NULL, &result, NULL, err));
    if (PQntuples(result) == 0) {
        PQclear(result);
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "service %" PRId32 " has no row in roll_state",
                           fold->service_id);
    }

    fold->part = hearth_pg_i64(result, 0, 0);
    fold->built_to_ns = hearth_pg_i64(result, 0, 1);
    fold->compacted_to_ns = hearth_pg_i64(result, 0, 2);
    enum hearth_status status = hearth_absent_set_take(result, 0, 3, &fold->absent, err);
    PQclear(result);

    return status;
}

/* Folds late profiles and commits. */
static enum hearth_status fold_late_in_transaction(struct fold *fold, struct hearth_err *err)
{
    HEARTH_TRY(lock_fold_state(fold, err));

    /* Move the profiles. */
    HEARTH_TRY(take_late_rows(fold, err));
    HEARTH_TRY(put_profiles(fold, err));
    HEARTH_TRY(put_segments(fold, err));

    /* Add them to the roll-ups. */
    HEARTH_TRY(hearth_roll_init(&fold->roll, fold->builder, fold->service_id, fold->part,
                                HEARTH_NEVER_NS, fold->built_to_ns, err));
    fold->roll.absent = fold->absent;
    if (fold->n_rows > 0) {
        HEARTH_TRY(add_deltas(fold, err));
        HEARTH_TRY(mark_folded_buckets(fold, err));
    }

    /* Store the last part used. */
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET generation = %" PRId64
                   " WHERE service_id = %" PRId32,
                   fold->roll.part, fold->service_id);
    HEARTH_TRY(hearth_pg_exec(&fold->builder->pg, sql, NULL, NULL, NULL, NULL, err));

    return hearth_builder_commit(fold->builder, err);
}

/*
 * Ensures the leaves for the late profiles of the service: leaves of roll-ups, and of `profile` or,
 * for compacted hours, of segments. If `forget`, deletes them from the cache of leaves instead:
 * they may have been dropped.
 */
static enum hearth_status ensure_late_days(struct hearth_builder *builder, int32_t service_id,
                                           bool forget, struct hearth_err *err)
{
    char sql[384];
    (void)snprintf(sql, sizeof sql,
                   "SELECT (l.ts / %" PRId64 ")::int4, bool_or(l.ts >= r.compacted_to),"
                   " bool_or(l.ts < r.compacted_to) FROM hearth_data.profile_late l JOIN"
                   " hearth_data.roll_state r USING (service_id) WHERE l.service_id = %" PRId32
                   " AND l.ts < r.built_to GROUP BY 1",
                   HEARTH_NS_PER_DAY, service_id);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));

    /* Ensure or forget the leaves of each day. */
    enum hearth_status status = HEARTH_OK;
    for (int i = 0; i < PQntuples(result) && status == HEARTH_OK; i++) {
        int32_t day = hearth_pg_i32(result, i, 0);
        unsigned leaves = HEARTH_LEAVES_ROLL;
        leaves |= PQgetvalue(result, i, 1)[0] != 0 ? HEARTH_LEAF_PROFILE : 0;
        leaves |= PQgetvalue(result, i, 2)[0] != 0 ? HEARTH_LEAF_SEGMENT : 0;
        if (forget) {
            hearth_partitions_forget(builder->store, day);
        } else {
            status = hearth_partitions_ensure(builder->store, &builder->pg, leaves, day, err);
        }
    }

    PQclear(result);

    return status;
}

static bool is_worth_another(const struct fold *fold)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < fold->n_rows; i++) {
        n_bytes += hearth_stored_row_bytes(&fold->rows[i]);
    }

    return fold->n_rows >= WORTH_ANOTHER || n_bytes >= WORTH_BYTES;
}

/* Folds once. *ret_more: another transaction at once is worthwhile. */
static enum hearth_status fold_late_profiles(struct hearth_builder *builder, int32_t service_id,
                                             bool *ret_more, struct hearth_err *err)
{
    HEARTH_TRY(ensure_late_days(builder, service_id, false, err));
    HEARTH_TRY(hearth_builder_begin(builder, err));

    /* Fold in one transaction. */
    struct fold fold = {.builder = builder, .service_id = service_id};
    hearth_arena_init(&fold.arena, 0);
    enum hearth_status status = fold_late_in_transaction(&fold, err);
    if (status == HEARTH_OK) {
        hearth_roll_count(&fold.roll);
        hearth_metric_add(HEARTH_M_ROLL_FOLDED, (int64_t)fold.n_rows);
        *ret_more = is_worth_another(&fold);
    }

    /* Release everything; a rollback after the commit has no effect. */
    hearth_roll_release(&fold.roll);
    hearth_arena_release(&fold.arena);
    PQclear(fold.result);
    hearth_builder_rollback(builder);

    /* A missing leaf may have caused a failure. */
    if (status != HEARTH_OK) {
        (void)ensure_late_days(builder, service_id, true, NULL);
        hearth_err_prefix(err, "service %" PRId32, service_id);
    }

    return status;
}

/* Finds the next service with late profiles that can be folded; 0: no such service is left. */
static enum hearth_status find_late_service(struct hearth_builder *builder, int32_t *ret_service_id,
                                            struct hearth_err *err)
{
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "SELECT service_id FROM hearth_data.roll_state r WHERE service_id > %" PRId32
                   " AND EXISTS (SELECT 1 FROM hearth_data.profile_late l WHERE l.service_id ="
                   " r.service_id AND l.ts < r.built_to) ORDER BY service_id LIMIT 1",
                   builder->fold_after);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret_service_id = PQntuples(result) > 0 ? hearth_pg_i32(result, 0, 0) : 0;
    PQclear(result);

    return HEARTH_OK;
}

enum hearth_status hearth_step_fold(struct hearth_builder *builder, bool *ret_more,
                                    struct hearth_err *err)
{
    /* Pause after each visit of all services. */
    int64_t now_ns = hearth_clock_mono_ns();
    if (now_ns < builder->next_fold_mono_ns) {
        return HEARTH_OK;
    }

    /* Visit services until the time is over. */
    int64_t until_ns = now_ns + STEP_NS;
    while (hearth_clock_mono_ns() < until_ns) {
        int32_t service_id;
        HEARTH_TRY(find_late_service(builder, &service_id, err));

        /* All services were visited: pause. */
        if (service_id == 0) {
            builder->fold_after = 0;
            builder->next_fold_mono_ns =
                hearth_clock_mono_ns() +
                ROUNDS_OF_PAUSE * hearth_store_live(builder->store)->builder_interval_ns;
            return HEARTH_OK;
        }

        /* Fold this service until few late profiles are left. */
        bool more = true;
        while (more && hearth_clock_mono_ns() < until_ns) {
            more = false;
            enum hearth_status status = fold_late_profiles(builder, service_id, &more, err);
            if (status != HEARTH_OK) {
                builder->fold_after =
                    service_id; /* the next step continues with the other services */
                return status;
            }
        }

        if (!more) {
            builder->fold_after = service_id;
        }
    }

    *ret_more = true;

    return HEARTH_OK;
}
