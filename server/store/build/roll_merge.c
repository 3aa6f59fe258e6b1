/*
 * roll_merge.c -- sums stored blocks: an hour from its 10 minutes, a day from its hours, one part
 * from several; and merges the totals of an hour from their parts (contract: roll.h).
 *
 * Blocks are read in the order of their keys and streamed through one sum, a bounded number of
 * series at a time: COPY cannot run while rows are received.
 */
#include "hearth/base/mem.h"

#include "build/roll.h"
#include "pg/pg.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SERIES_AT_ONCE     500                 /* series of one statement that sums a tier */
#define MAX_UNPACKED_BYTES ((size_t)256 << 20) /* of one column */

/* The sums of stored blocks. */
struct merge {
    struct hearth_roll *roll;
    enum hearth_tier tier;      /* tier of the written blocks */
    bool up;                    /* true: the read blocks are of the next shorter tier */
    struct hearth_roll_set set; /* at most one sum */
    struct hearth_arena arena;  /* scratch of one row */
    struct hearth_buf unpacked; /* scratch of one column */
};

/* ---- one block ---- */

/* Unpacks bytes into the arena: the next call would overwrite them in the scratch buffer. */
static enum hearth_status unpack_roll_column(struct merge *merge, struct hearth_str *bytes,
                                             struct hearth_err *err)
{
    struct hearth_str view;

    hearth_buf_reset(&merge->unpacked);
    HEARTH_TRY(hearth_unpack(merge->roll->builder->inflater, *bytes, MAX_UNPACKED_BYTES,
                             &merge->unpacked, &view, err));
    *bytes = hearth_arena_str(&merge->arena, view);

    return bytes->p == NULL ? HEARTH_FAIL_ARENA(err, &merge->arena) : HEARTH_OK;
}

/* Writes the current sum and clears the set. */
static enum hearth_status put_sum(struct merge *merge, struct hearth_err *err)
{
    assert(merge->set.n == 1);

    HEARTH_TRY(hearth_roll_put(merge->roll, merge->tier, &merge->set.sums[0], err));
    hearth_roll_set_clear(&merge->set);

    return HEARTH_OK;
}

/* A stored block: its columns, unpacked; its key is in the row. */
struct stored_block {
    struct hearth_str ids, *vals; /* vals: [n_types] */
    int64_t *totals;              /* [n_types] */
    size_t n_types;
};

/* Takes the columns of a row (see add_stored_block) into the arena. */
static enum hearth_status take_block(struct merge *merge, const PGresult *row,
                                     struct stored_block *ret, struct hearth_err *err)
{
    /* Read the row. */
    size_t n_vals;
    HEARTH_TRY(hearth_pg_i64_array(row, 0, 4, &merge->arena, &ret->totals, &ret->n_types, err));
    HEARTH_TRY(hearth_pg_str_array(row, 0, 7, &merge->arena, &ret->vals, &n_vals, err));
    if (n_vals != ret->n_types) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a roll-up block has %zu totals and %zu columns",
                           ret->n_types, n_vals);
    }

    /* Unpack its columns. */
    ret->ids = hearth_pg_str(row, 0, 6);
    HEARTH_TRY(unpack_roll_column(merge, &ret->ids, err));
    for (size_t k = 0; k < n_vals; k++) {
        HEARTH_TRY(unpack_roll_column(merge, &ret->vals[k], err));
    }

    return HEARTH_OK;
}

/*
 * Finds the sum to which the block belongs. The sum before it is written if its key is another, or
 * if adding the block would exceed 64 bits: then the rest of the key is another part.
 */
static enum hearth_status find_merge_sum(struct merge *merge, const PGresult *row,
                                         const struct stored_block *block,
                                         struct hearth_roll_sum **ret_sum, struct hearth_err *err)
{
    int32_t series_id = hearth_pg_i32(row, 0, 0), writer_id = hearth_pg_i32(row, 0, 2);
    int64_t t0_ns = hearth_pg_i64(row, 0, 1);
    if (merge->up) {
        t0_ns = hearth_floor_ns(t0_ns, hearth_tier_length_ns(merge->tier));
    }

    /* Write the sum before, unless the block belongs to it. */
    if (merge->set.n > 0) {
        const struct hearth_roll_sum *sum = &merge->set.sums[0];
        bool same =
            sum->series_id == series_id && sum->writer_id == writer_id && sum->t0_ns == t0_ns;
        bool full =
            same && sum->sums.n_types == block->n_types && !hearth_roll_fits(sum, block->totals);
        if (!same || full) {
            HEARTH_TRY(put_sum(merge, err));
        }

        merge->roll->part += full;
    }

    *ret_sum = hearth_roll_find(merge->roll, &merge->set, series_id, t0_ns, writer_id,
                                (uint32_t)block->n_types, err);
    assert(*ret_sum == NULL || merge->set.n == 1);

    return *ret_sum == NULL ? err->status : HEARTH_OK;
}

/* Adds a row to its sum: series_id, t0, writer_id, n_profiles, totals, members, ids, vals. */
static enum hearth_status add_stored_block(void *context, const PGresult *row,
                                           struct hearth_err *err)
{
    struct merge *merge = context;
    struct stored_block block;

    hearth_arena_reset(&merge->arena);
    HEARTH_TRY(take_block(merge, row, &block, err));

    /* Add it to its sum. */
    struct hearth_roll_sum *sum;
    HEARTH_TRY(find_merge_sum(merge, row, &block, &sum, err));
    HEARTH_TRY(hearth_block_sums_add(&sum->sums, block.ids, block.vals, block.totals,
                                     hearth_pg_i32(row, 0, 3), err));

    /* Add the members of a whole-service block. */
    int32_t *members = NULL;
    size_t n_members = 0;
    if (sum->series_id < 0) {
        HEARTH_TRY(hearth_members_decode(hearth_pg_str(row, 0, 5), &merge->arena, &members,
                                         &n_members, err));
    }

    if (!hearth_roll_add_members(sum, members, n_members)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the members of a block");
    }

    return HEARTH_OK;
}

/* Streams the blocks of the statement, which is sorted by key, into merge->roll, and sends it. */
static enum hearth_status run_merge(struct merge *merge, const char *sql,
                                    const struct hearth_pg_params *params, struct hearth_err *err)
{
    struct hearth_roll *roll = merge->roll;
    assert(merge->set.n == 0);

    hearth_arena_init(&merge->arena, 0);
    hearth_buf_init(&merge->unpacked, 0);

    /* Sum the blocks, and write the last sum. */
    enum hearth_status status =
        hearth_pg_stream(&roll->builder->pg, sql, params, NULL, add_stored_block, merge, NULL, err);
    if (status == HEARTH_OK && merge->set.n > 0) {
        status = put_sum(merge, err);
    }

    hearth_roll_set_release(&merge->set);
    hearth_buf_release(&merge->unpacked);
    hearth_arena_release(&merge->arena);

    return status == HEARTH_OK ? hearth_roll_send(roll, err) : status;
}

/* ---- a longer tier from a shorter ---- */

/* Sums the blocks of some series in the next shorter tier. */
static enum hearth_status roll_up_series(struct merge *merge, int64_t t0_ns, int32_t first_id,
                                         int32_t last_id, struct hearth_err *err)
{
    assert(first_id <= last_id);

    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT series_id, t0, writer_id, n_profiles, totals, members, ids, vals FROM"
                   " hearth_data.%s WHERE service_id = %" PRId32 " AND t0 >= %" PRId64
                   " AND t0 < %" PRId64 " AND series_id BETWEEN %" PRId32 " AND %" PRId32
                   " ORDER BY series_id, writer_id",
                   hearth_tier_table(merge->tier - 1), merge->roll->service_id, t0_ns,
                   t0_ns + hearth_tier_length_ns(merge->tier), first_id, last_id);

    return run_merge(merge, sql, NULL, err);
}

enum hearth_status hearth_roll_up(struct hearth_roll *roll, enum hearth_tier tier, int64_t t0_ns,
                                  enum hearth_roll_whose whose, struct hearth_err *err)
{
    static const char *const CONDITIONS[] = {
        [HEARTH_ROLL_UP_ALL] = "",
        [HEARTH_ROLL_UP_SERIES] = " AND series_id > 0",
        [HEARTH_ROLL_UP_SERVICE] = " AND series_id < 0",
    };

    assert(tier > HEARTH_TIER_10M && tier < HEARTH_N_TIERS);
    assert(hearth_floor_ns(t0_ns, hearth_tier_length_ns(tier)) == t0_ns);

    /* List the series that have blocks of the shorter tier. */
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT DISTINCT series_id FROM hearth_data.%s WHERE service_id = %" PRId32
                   " AND t0 >= %" PRId64 " AND t0 < %" PRId64 "%s ORDER BY series_id",
                   hearth_tier_table(tier - 1), roll->service_id, t0_ns,
                   t0_ns + hearth_tier_length_ns(tier), CONDITIONS[whose]);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, NULL, NULL, &result, NULL, err));

    /* Sum them, SERIES_AT_ONCE at a time. */
    enum hearth_status status = HEARTH_OK;
    int n = PQntuples(result);
    for (int i = 0; i < n && status == HEARTH_OK; i += SERIES_AT_ONCE) {
        int last = (i + SERIES_AT_ONCE < n ? i + SERIES_AT_ONCE : n) - 1;
        struct merge merge = {.roll = roll, .tier = tier, .up = true};
        status = roll_up_series(&merge, t0_ns, hearth_pg_i32(result, i, 0),
                                hearth_pg_i32(result, last, 0), err);
    }

    PQclear(result);

    return status;
}

/* ---- one part from several ---- */

/* Writes the condition on rows that the statements of parts share. $1: the series, if given. */
static void write_keys_condition(char out[256], const struct hearth_roll *roll,
                                 const struct hearth_roll_keys *keys)
{
    assert(keys->series_ids != NULL || keys->n_series == 0);

    (void)snprintf(out, 256,
                   "service_id = %" PRId32 " AND t0 BETWEEN %" PRId64 " AND %" PRId64 "%s",
                   roll->service_id, keys->from_ns, keys->to_ns,
                   keys->series_ids != NULL ? " AND series_id = ANY ($1)" : "");
}

/* Makes the only parameter of these statements: the series, if given. */
static void make_keys_params(struct hearth_pg_params *params, struct hearth_arena *arena,
                             const struct hearth_roll_keys *keys)
{
    hearth_pg_params_init(params, arena);
    if (keys->series_ids != NULL) {
        hearth_pg_param_i32_array(params, keys->series_ids, keys->n_series);
    }
}

/* The statement deletes all parts of each key with more than max_parts, and returns them by key. */
enum hearth_status hearth_roll_merge_parts(struct hearth_roll *roll, enum hearth_tier tier,
                                           const struct hearth_roll_keys *keys, int max_parts,
                                           struct hearth_err *err)
{
    assert(max_parts > 0);

    /* Write the statement. */
    char sql[1024], where[256];
    const char *table = hearth_tier_table(tier);
    write_keys_condition(where, roll, keys);
    (void)snprintf(sql, sizeof sql,
                   "WITH gone AS (DELETE FROM hearth_data.%s WHERE %s AND (series_id, t0,"
                   " writer_id) IN (SELECT series_id, t0, writer_id FROM hearth_data.%s WHERE %s"
                   " GROUP BY series_id, t0, writer_id HAVING count(*) > %d) RETURNING series_id,"
                   " t0, writer_id, n_profiles, totals, members, ids, vals)"
                   " SELECT * FROM gone ORDER BY series_id, t0, writer_id",
                   table, where, table, where, max_parts);

    /* Run it. */
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_keys_params(&params, &arena, keys);
    struct merge merge = {.roll = roll, .tier = tier};
    enum hearth_status status = run_merge(&merge, sql, &params, err);
    hearth_arena_release(&arena);

    return status;
}

/* ---- totals ---- */

/* The time of a profile, and where its values are. */
struct totals_entry {
    int64_t ts_ns;
    size_t at; /* index of its values; keeps the order of equal times */
};

/* The merge of totals. The key and n_types are those of the entries, if has_key. */
struct totals_merge {
    struct hearth_roll *roll;
    bool has_key;
    int32_t series_id;
    int64_t t0_ns;
    size_t n_types;
    struct totals_entry *entries;
    int64_t *values; /* [n_entries * n_types] */
    size_t n_entries, cap_entries, cap_values;
    size_t column, at;         /* state of a part: the current column, and the next entry in it */
    struct hearth_arena arena; /* scratch of the written totals */
};

static int compare_entries(const void *left, const void *right)
{
    const struct totals_entry *a = left, *b = right;
    return a->ts_ns != b->ts_ns ? (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns)
                                : (a->at > b->at) - (a->at < b->at);
}

/* Writes the merged totals of the current key, if any, sorted by time. */
static enum hearth_status put_merged_totals(struct totals_merge *merge, struct hearth_err *err)
{
    size_t n = merge->n_entries, n_types = merge->n_types;
    if (n == 0) {
        return HEARTH_OK;
    }

    assert(merge->has_key);

    /* Allocate the sorted arrays. */
    hearth_arena_reset(&merge->arena);
    int64_t *ts_ns = hearth_arena_array(&merge->arena, n, sizeof *ts_ns);
    int64_t *values = hearth_arena_array(&merge->arena, n * n_types, sizeof *values);
    if (ts_ns == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, &merge->arena);
    }

    /* Fill them. */
    qsort(merge->entries, n, sizeof *merge->entries, compare_entries);
    for (size_t i = 0; i < n; i++) {
        ts_ns[i] = merge->entries[i].ts_ns;
        memcpy(values + i * n_types, merge->values + merge->entries[i].at * n_types,
               n_types * sizeof *values);
    }

    merge->n_entries = 0;

    struct hearth_roll_totals totals = {
        .series_id = merge->series_id,
        .t0_ns = merge->t0_ns,
        .ts_ns = ts_ns,
        .values = values,
        .n = n,
        .n_types = (uint32_t)n_types,
    };

    return hearth_roll_put_totals(merge->roll, &totals, err);
}

/* Adds a value of a column: column 0 makes the entries, the other columns fill them in. */
static enum hearth_status take_column_total(void *context, int64_t ts_ns, int64_t value,
                                            struct hearth_err *err)
{
    struct totals_merge *merge = context;
    assert(merge->column < merge->n_types);

    if (merge->column == 0) {
        if (!hearth_mem_grow(&merge->entries, &merge->cap_entries, merge->n_entries + 1,
                             sizeof *merge->entries) ||
            !hearth_mem_grow(&merge->values, &merge->cap_values,
                             (merge->n_entries + 1) * merge->n_types, sizeof *merge->values)) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to merge totals");
        }

        merge->entries[merge->n_entries] = (struct totals_entry){ts_ns, merge->n_entries};
        merge->n_entries++;
    }

    if (merge->at >= merge->n_entries) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "packed totals differ in length");
    }

    merge->values[merge->at++ * merge->n_types + merge->column] = value;

    return HEARTH_OK;
}

static enum hearth_status take_column_totals(void *context, const int64_t *ts_ns,
                                             const int64_t *values, size_t n,
                                             struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(take_column_total(context, ts_ns[i], values[i], err));
    }

    return HEARTH_OK;
}

/* Appends the columns of a part, whose key is that of the merge. */
static enum hearth_status append_totals_columns(struct totals_merge *merge, struct hearth_str ts,
                                                const struct hearth_str *vals,
                                                struct hearth_err *err)
{
    size_t from = merge->n_entries;
    for (merge->column = 0; merge->column < merge->n_types; merge->column++) {
        merge->at = from;
        HEARTH_TRY(hearth_totals_read(ts, vals[merge->column], merge->t0_ns, take_column_totals,
                                      merge, err));
    }

    return HEARTH_OK;
}

/*
 * Adds a part of the totals of a key: series_id, t0, ts, vals. If the key is another than before,
 * the totals of the key before are written.
 */
static enum hearth_status add_totals_part(void *context, const PGresult *row,
                                          struct hearth_err *err)
{
    struct totals_merge *merge = context;
    int32_t series_id = hearth_pg_i32(row, 0, 0);
    int64_t t0_ns = hearth_pg_i64(row, 0, 1);

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_str *vals;
    size_t n_types;

    /* Write the totals of the key before. */
    enum hearth_status status = HEARTH_OK;
    if (merge->has_key && (merge->series_id != series_id || merge->t0_ns != t0_ns)) {
        status = put_merged_totals(merge, err);
    }

    /* Append this part. */
    if (status == HEARTH_OK) {
        status = hearth_pg_str_array(row, 0, 3, &arena, &vals, &n_types, err);
    }

    if (status == HEARTH_OK && merge->n_entries > 0 && n_types != merge->n_types) {
        status = HEARTH_FAIL(err, HEARTH_CORRUPT,
                             "totals of series %" PRId32 " differ in their number of columns",
                             series_id);
    }

    if (status == HEARTH_OK) {
        merge->has_key = true;
        merge->series_id = series_id;
        merge->t0_ns = t0_ns;
        merge->n_types = n_types;
        status = append_totals_columns(merge, hearth_pg_str(row, 0, 2), vals, err);
    }

    hearth_arena_release(&arena);

    return status;
}

/*
 * The statement deletes all parts of each key with more than max_parts, and returns them by key and
 * part.
 */
enum hearth_status hearth_roll_merge_totals(struct hearth_roll *roll,
                                            const struct hearth_roll_keys *keys, int max_parts,
                                            struct hearth_err *err)
{
    assert(max_parts >= 0);

    /* Write the statement. */
    char sql[1024], where[256];
    write_keys_condition(where, roll, keys);
    (void)snprintf(sql, sizeof sql,
                   "WITH gone AS (DELETE FROM hearth_data.hour_totals WHERE %s AND series_id > 0"
                   " AND (series_id, t0) IN (SELECT series_id, t0 FROM hearth_data.hour_totals"
                   " WHERE %s GROUP BY series_id, t0 HAVING count(*) > %d) RETURNING series_id, t0,"
                   " ts, vals, part)"
                   " SELECT series_id, t0, ts, vals FROM gone ORDER BY series_id, t0, part",
                   where, where, max_parts);

    struct totals_merge merge = {.roll = roll};
    hearth_arena_init(&merge.arena, 0);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_keys_params(&params, &arena, keys);

    /* Merge the parts, and write the last totals. */
    enum hearth_status status = hearth_pg_stream(&roll->builder->pg, sql, &params, NULL,
                                                 add_totals_part, &merge, NULL, err);
    if (status == HEARTH_OK) {
        status = put_merged_totals(&merge, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_roll_put_groups(roll, err);
    }

    hearth_arena_release(&arena);
    hearth_arena_release(&merge.arena);
    hearth_mem_free(merge.entries);
    hearth_mem_free(merge.values);

    return status == HEARTH_OK ? hearth_roll_send(roll, err) : status;
}
