/*
 * erase_blocks.c -- deletion from roll-ups of days whose profiles retention has deleted: a block of
 * the whole service is replaced by the sum of the blocks of its other series.
 */
#include "hearth/base/mem.h"

#include "build/erase_work.h"
#include "build/roll.h"
#include "pg/pg.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define MAX_UNPACKED_BYTES ((size_t)256 << 20)

/* A block of the whole service that has a series of the tombstone among its members. */
struct mixed {
    int32_t series_id; /* -shape_id */
    int32_t writer_id;
    int64_t t0_ns;
    int32_t *rest; /* its members that stay */
    size_t n_rest;
};

/* The sums of one tier of a day. */
struct resum {
    struct hearth_erase_work *work;
    struct hearth_roll *roll;
    enum hearth_tier tier;
    const struct mixed *of;     /* the block that is summed */
    struct hearth_roll_set set; /* at most one sum */
    bool wider;                 /* blocks of the whole service were deleted without a new sum */
    struct hearth_arena arena;  /* of one row */
    struct hearth_buf unpacked; /* of one column of the row */
};

/* ---- sums of the series that stay ---- */

/* Replaces the packed column by its bytes, in the arena. */
static enum hearth_status unpack_block_column(struct resum *resum, struct hearth_str *bytes,
                                              struct hearth_err *err)
{
    struct hearth_str view;
    hearth_buf_reset(&resum->unpacked);
    HEARTH_TRY(hearth_unpack(resum->work->builder->inflater, *bytes, MAX_UNPACKED_BYTES,
                             &resum->unpacked, &view, err));
    *bytes = hearth_arena_str(&resum->arena, view);

    return bytes->p == NULL ? HEARTH_FAIL_ARENA(err, &resum->arena) : HEARTH_OK;
}

/* Takes the array column of the totals; its elements are big-endian, 8 bytes each. */
static enum hearth_status take_block_totals(const PGresult *row, struct hearth_arena *arena,
                                            int64_t **ret, size_t *ret_n, struct hearth_err *err)
{
    struct hearth_str *elements;
    HEARTH_TRY(hearth_pg_str_array(row, 0, 2, arena, &elements, ret_n, err));
    *ret = hearth_arena_array(arena, *ret_n, sizeof **ret);
    for (size_t i = 0; *ret != NULL && i < *ret_n; i++) {
        uint64_t value = 0;
        for (size_t at = 0; at < elements[i].n; at++) {
            value = value << 8 | (unsigned char)elements[i].p[at];
        }
        (*ret)[i] = (int64_t)value;
    }

    return *ret == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* Finds or makes the sum. A sum that these totals would overflow is first written as a part. */
static enum hearth_status find_sum(struct resum *resum, const int64_t *totals, size_t n_types,
                                   struct hearth_roll_sum **ret_sum, struct hearth_err *err)
{
    struct hearth_roll_sum *sum =
        hearth_roll_find(resum->roll, &resum->set, resum->of->series_id, resum->of->t0_ns,
                         resum->of->writer_id, (uint32_t)n_types, err);
    if (sum == NULL) {
        return err->status;
    }

    assert(resum->set.n == 1);
    if (!hearth_roll_fits(sum, totals)) {
        HEARTH_TRY(hearth_roll_put(resum->roll, resum->tier, sum, err));
        hearth_roll_sum_clear(sum);
        resum->roll->part++;
    }
    *ret_sum = sum;

    return HEARTH_OK;
}

/* Adds a block of a series: a row (series_id, n_profiles, totals, ids, vals). */
static enum hearth_status add_series_block(void *context, const PGresult *row,
                                           struct hearth_err *err)
{
    struct resum *resum = context;
    hearth_arena_reset(&resum->arena);

    /* Decode it. */
    int64_t *totals;
    struct hearth_str *vals;
    size_t n_types, n_vals;
    HEARTH_TRY(take_block_totals(row, &resum->arena, &totals, &n_types, err));
    HEARTH_TRY(hearth_pg_str_array(row, 0, 4, &resum->arena, &vals, &n_vals, err));
    if (n_types != n_vals) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a roll-up block has %zu totals and %zu columns",
                           n_types, n_vals);
    }

    struct hearth_str ids = hearth_pg_str(row, 0, 3);
    HEARTH_TRY(unpack_block_column(resum, &ids, err));
    for (size_t k = 0; k < n_vals; k++) {
        HEARTH_TRY(unpack_block_column(resum, &vals[k], err));
    }

    /* Add it to the sum, and its series to the members. */
    struct hearth_roll_sum *sum = NULL;
    HEARTH_TRY(find_sum(resum, totals, n_types, &sum, err));
    HEARTH_TRY(hearth_block_sums_add(&sum->sums, ids, vals, totals, hearth_pg_i32(row, 0, 1), err));
    int32_t series_id = hearth_pg_i32(row, 0, 0);

    return hearth_roll_add_members(sum, &series_id, 1)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the members of a block");
}

/*
 * Replaces all parts of the block resum->of by the sum of the blocks of its members that stay.
 * Where these are absent (roll_sparse.h), their profiles are gone, too, and the block is deleted.
 */
static enum hearth_status sum_rest(struct resum *resum, struct hearth_err *err)
{
    struct hearth_builder *builder = resum->work->builder;
    const struct mixed *of = resum->of;
    const char *table = hearth_tier_table(resum->tier);
    char where[192], sql[512];

    assert(of->series_id < 0);
    assert(resum->set.n == 0);

    /* Delete it. */
    (void)snprintf(where, sizeof where,
                   "service_id = %" PRId32 " AND t0 = %" PRId64 " AND writer_id = %" PRId32,
                   resum->work->service_id, of->t0_ns, of->writer_id);
    (void)snprintf(sql, sizeof sql, "DELETE FROM hearth_data.%s WHERE %s AND series_id = %" PRId32,
                   table, where, of->series_id);
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, err));

    /* Sum the others. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &resum->work->arena);
    hearth_pg_param_i32_array(&params, of->rest, of->n_rest);
    (void)snprintf(sql, sizeof sql,
                   "SELECT series_id, n_profiles, totals, ids, vals FROM hearth_data.%s WHERE %s"
                   " AND series_id = ANY ($1)",
                   table, where);
    HEARTH_TRY(
        hearth_pg_stream(&builder->pg, sql, &params, NULL, add_series_block, resum, NULL, err));

    /* Write the sum, if there is one. */
    if (resum->set.n > 0) {
        HEARTH_TRY(hearth_roll_put(resum->roll, resum->tier, &resum->set.sums[0], err));
    }
    resum->wider = resum->wider || (resum->set.n == 0 && of->n_rest > 0);
    hearth_roll_set_clear(&resum->set);

    return hearth_roll_is_full(resum->roll) ? hearth_roll_send(resum->roll, err) : HEARTH_OK;
}

/* ---- blocks of the whole service ---- */

/*
 * Adds the members of a part to those of its key. All parts of a key are replaced when one has a
 * series of the tombstone, so the members of all parts are gathered before anything is summed.
 * *ret_is_mixed is set when this part has such a series, and otherwise left as it is.
 */
static enum hearth_status add_rest(struct hearth_erase_work *work, struct mixed *into,
                                   struct hearth_str encoded, bool *ret_is_mixed,
                                   struct hearth_err *err)
{
    int32_t *members;
    size_t n;
    HEARTH_TRY(hearth_members_decode(encoded, &work->arena, &members, &n, err));

    /* Copy the members so far to a larger array. */
    int32_t *all = hearth_arena_array(&work->arena, into->n_rest + n, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, &work->arena);
    }

    if (into->n_rest > 0) {
        memcpy(all, into->rest, into->n_rest * sizeof *all);
    }

    /* Append those that stay. */
    size_t n_all = into->n_rest;
    for (size_t i = 0; i < n; i++) {
        if (hearth_erase_has_series(work, members[i])) {
            *ret_is_mixed = true;
        } else {
            all[n_all++] = members[i];
        }
    }
    into->rest = all;
    into->n_rest = n_all;

    return HEARTH_OK;
}

static bool has_key(const struct mixed *mixed, const PGresult *rows, int row)
{
    return mixed->series_id == hearth_pg_i32(rows, row, 0) &&
           mixed->t0_ns == hearth_pg_i64(rows, row, 1) &&
           mixed->writer_id == hearth_pg_i32(rows, row, 2);
}

/* Sums the mixed blocks. Rows: series_id, t0, writer_id, members; sorted by the first three. */
static enum hearth_status sum_mixed(struct resum *resum, const PGresult *rows,
                                    struct hearth_err *err)
{
    int n = PQntuples(rows);
    for (int row = 0; row < n;) {
        struct mixed key = {.series_id = hearth_pg_i32(rows, row, 0),
                            .t0_ns = hearth_pg_i64(rows, row, 1),
                            .writer_id = hearth_pg_i32(rows, row, 2)};
        bool is_mixed = false;
        for (; row < n && has_key(&key, rows, row); row++) {
            HEARTH_TRY(add_rest(resum->work, &key, hearth_pg_str(rows, row, 3), &is_mixed, err));
        }

        if (is_mixed) {
            resum->of = &key;
            HEARTH_TRY(sum_rest(resum, err));
        }
    }

    return HEARTH_OK;
}

/* ---- a tier of a day ---- */

/* The blocks of a table that meet the range on one day. */
struct day_blocks {
    const char *table;
    int64_t length_ns;         /* of each block */
    int64_t first_ns, last_ns; /* t0 lies between them, both included */
};

/* Finds the first and last t0 of the day; returns false if no block of the day meets the range. */
static bool find_day_blocks(const struct hearth_erase_work *work, int32_t day,
                            struct day_blocks *blocks)
{
    int64_t first_ns = day * HEARTH_NS_PER_DAY, last_ns = first_ns + HEARTH_NS_PER_DAY - 1;
    if (work->from_ns > first_ns) {
        first_ns = hearth_floor_ns(work->from_ns, blocks->length_ns);
    }
    blocks->first_ns = first_ns;
    blocks->last_ns = work->to_ns < last_ns ? work->to_ns : last_ns;

    return blocks->first_ns <= blocks->last_ns;
}

/* Deletes the blocks of the series. Sets *ret_wider if one reached beyond the range. */
static enum hearth_status erase_series_blocks(struct hearth_erase_work *work,
                                              const struct day_blocks *blocks, bool *ret_wider,
                                              struct hearth_err *err)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "WITH gone AS (DELETE FROM hearth_data.%s WHERE service_id = %" PRId32
                   " AND series_id = ANY ($1) AND t0 BETWEEN %" PRId64 " AND %" PRId64
                   " RETURNING t0) SELECT count(*) FILTER (WHERE t0 < $2 OR t0 > $3) FROM gone",
                   blocks->table, work->service_id, blocks->first_ns, blocks->last_ns);

    /* A block ends within the range if t0 <= $3. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &work->arena);
    hearth_pg_param_i32_array(&params, work->series_ids, work->n_series);
    hearth_pg_param_i64(&params, work->from_ns);
    hearth_pg_param_i64(&params, work->to_ns > INT64_MAX - 1 ? INT64_MAX
                                                             : work->to_ns - blocks->length_ns + 1);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&work->builder->pg, sql, &params, NULL, &result, NULL, err));
    *ret_wider = *ret_wider || hearth_pg_i64(result, 0, 0) > 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Takes the series out of the blocks of resum->tier: first their own, then those of the service. */
static enum hearth_status erase_tier(struct resum *resum, int32_t day, bool *ret_wider,
                                     struct hearth_err *err)
{
    struct hearth_erase_work *work = resum->work;
    struct day_blocks blocks = {.table = hearth_tier_table(resum->tier),
                                .length_ns = hearth_tier_length_ns(resum->tier)};
    if (!find_day_blocks(work, day, &blocks)) {
        return HEARTH_OK;
    }

    HEARTH_TRY(erase_series_blocks(work, &blocks, ret_wider, err));

    char sql[384];
    (void)snprintf(sql, sizeof sql,
                   "SELECT series_id, t0, writer_id, members FROM hearth_data.%s WHERE service_id ="
                   " %" PRId32 " AND series_id < 0 AND t0 BETWEEN %" PRId64 " AND %" PRId64
                   " ORDER BY series_id, t0, writer_id",
                   blocks.table, work->service_id, blocks.first_ns, blocks.last_ns);

    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(&work->builder->pg, sql, NULL, NULL, &rows, NULL, err));
    enum hearth_status status = sum_mixed(resum, rows, err);
    PQclear(rows);

    return status;
}

/* ---- totals that share rows ---- */

/* The rows of totals of a day that have series of the tombstone among others. */
struct regroup {
    struct hearth_erase_work *work;
    struct hearth_roll *roll;
    bool wider;                /* totals of a deleted series reached beyond the range */
    struct hearth_arena arena; /* of one row */
};

static enum hearth_status fail_damaged(const struct regroup *regroup, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "the totals of series of service %d are damaged",
                       (int)regroup->work->service_id);
}

/* Advances all columns to the next series. *ret_has false: none of them has another series. */
static enum hearth_status next_series(const struct regroup *regroup,
                                      struct hearth_totals_group *columns, size_t n_types,
                                      bool *ret_has, struct hearth_err *err)
{
    HEARTH_TRY(hearth_totals_group_next(&columns[0], ret_has, err));
    for (size_t k = 1; k < n_types; k++) {
        bool has;
        HEARTH_TRY(hearth_totals_group_next(&columns[k], &has, err));
        if (has != *ret_has) {
            return fail_damaged(regroup, err);
        }
    }

    return HEARTH_OK;
}

/* Adds a series to the rows that are written again, unless it is one of the tombstone's. */
static enum hearth_status keep_series(struct regroup *regroup,
                                      const struct hearth_packed_totals *packed,
                                      struct hearth_err *err)
{
    const struct hearth_erase_work *work = regroup->work;
    if (!hearth_erase_has_series(work, packed->series_id)) {
        return hearth_roll_group_add(regroup->roll, packed, err);
    }

    regroup->wider = regroup->wider || packed->t0_ns < work->from_ns ||
                     packed->t0_ns + HEARTH_NS_PER_HOUR - 1 > work->to_ns;

    return HEARTH_OK;
}

/* Writes a row (t0, ts, vals, totals) again without the series of the tombstone. */
static enum hearth_status regroup_row(void *context, const PGresult *row, struct hearth_err *err)
{
    struct regroup *regroup = context;
    struct hearth_arena *arena = &regroup->arena;
    hearth_arena_reset(arena);

    /* Decode it. */
    struct hearth_str *vals;
    int64_t *sums;
    size_t n_types, n_sums;
    HEARTH_TRY(hearth_pg_str_array(row, 0, 2, arena, &vals, &n_types, err));
    HEARTH_TRY(hearth_pg_i64_array(row, 0, 3, arena, &sums, &n_sums, err));
    if (n_types == 0 || n_types > HEARTH_SERIES_MAX_TYPES || n_sums % (n_types + 1) != 0) {
        return fail_damaged(regroup, err);
    }

    struct hearth_totals_group columns[HEARTH_SERIES_MAX_TYPES];
    struct hearth_str series_vals[HEARTH_SERIES_MAX_TYPES];
    char ones[HEARTH_SERIES_MAX_TYPES][HEARTH_TOTALS_ONE_BYTES];
    for (size_t k = 0; k < n_types; k++) {
        columns[k] =
            (struct hearth_totals_group){.ts = hearth_pg_str(row, 0, 1),
                                         .val = vals[k].n > 0 ? vals[k] : (struct hearth_str){0}};
    }

    /* Copy the series that stay, still packed. */
    size_t at = 0;
    for (bool has = true; has; at += n_types + 1) {
        HEARTH_TRY(next_series(regroup, columns, n_types, &has, err));
        if (!has) {
            break;
        }
        if (at >= n_sums || sums[at] >> 32 != columns[0].series_id) {
            return fail_damaged(regroup, err);
        }

        for (size_t k = 0; k < n_types; k++) {
            size_t n = vals[k].n > 0 ? 0 : hearth_totals_pack_one(sums[at + 1 + k], ones[k]);
            series_vals[k] = vals[k].n > 0 ? columns[k].series_val : hearth_str_n(ones[k], n);
        }
        const struct hearth_packed_totals packed = {
            .series_id = columns[0].series_id,
            .t0_ns = hearth_pg_i64(row, 0, 0),
            .n_profiles = (size_t)(sums[at] & UINT32_MAX),
            .n_types = (uint32_t)n_types,
            .totals = {columns[0].series_ts, series_vals},
            .sums = sums + at + 1,
        };
        HEARTH_TRY(keep_series(regroup, &packed, err));
    }

    return at == n_sums ? HEARTH_OK : fail_damaged(regroup, err);
}

/* Takes the series out of the rows of totals that they share with others. */
static enum hearth_status erase_from_groups(struct regroup *regroup, const struct day_blocks *hours,
                                            struct hearth_err *err)
{
    struct hearth_erase_work *work = regroup->work;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &work->arena);
    hearth_pg_param_i32_array(&params, work->series_ids, work->n_series);

    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "WITH gone AS (DELETE FROM hearth_data.hour_totals WHERE service_id = %" PRId32
                   " AND series_id = 0 AND t0 BETWEEN %" PRId64 " AND %" PRId64
                   " AND EXISTS (SELECT FROM generate_series(1, cardinality(totals),"
                   " cardinality(vals) + 1) i WHERE (totals[i] >> 32)::int4 = ANY ($1))"
                   " RETURNING t0, part, ts, vals, totals)"
                   " SELECT t0, ts, vals, totals FROM gone ORDER BY t0, part",
                   work->service_id, hours->first_ns, hours->last_ns);
    HEARTH_TRY(
        hearth_pg_stream(&work->builder->pg, sql, &params, NULL, regroup_row, regroup, NULL, err));

    return hearth_roll_put_groups(regroup->roll, err);
}

enum hearth_status hearth_erase_blocks_of_day(struct hearth_erase_work *work, int32_t day,
                                              int64_t *part, bool *ret_wider,
                                              struct hearth_err *err)
{
    struct hearth_roll roll;
    struct resum resum = {.work = work, .roll = &roll};
    hearth_arena_init(&resum.arena, 0);
    hearth_buf_init(&resum.unpacked, 0);
    *ret_wider = false;

    /* Blocks of all tiers. */
    enum hearth_status status =
        hearth_roll_init(&roll, work->builder, work->service_id, *part, day * HEARTH_NS_PER_DAY,
                         (day + 1) * HEARTH_NS_PER_DAY, err);
    for (int tier = 0; tier < HEARTH_N_TIERS && status == HEARTH_OK; tier++) {
        resum.tier = (enum hearth_tier)tier;
        status = erase_tier(&resum, day, ret_wider, err);
    }

    /* Totals of hours: of the series alone, then those that it shares rows with. */
    struct day_blocks hours = {.table = "hour_totals", .length_ns = HEARTH_NS_PER_HOUR};
    struct regroup regroup = {.work = work, .roll = &roll};
    hearth_arena_init(&regroup.arena, 0);
    if (status == HEARTH_OK && find_day_blocks(work, day, &hours)) {
        status = erase_series_blocks(work, &hours, ret_wider, err);
        status = status == HEARTH_OK ? erase_from_groups(&regroup, &hours, err) : status;
    }

    if (status == HEARTH_OK) {
        status = hearth_roll_send(&roll, err);
    }
    *part = roll.part;
    *ret_wider = *ret_wider || resum.wider || regroup.wider;

    hearth_arena_release(&regroup.arena);
    hearth_roll_set_release(&resum.set);
    hearth_roll_release(&roll);
    hearth_buf_release(&resum.unpacked);
    hearth_arena_release(&resum.arena);

    return status;
}
