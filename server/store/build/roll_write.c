/*
 * roll_write.c -- sums profiles, sorted by series and time, into the blocks and totals of their
 * service (contract and picture: roll.h).
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "build/roll.h"
#include "pg/pg.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_COLUMNS \
    "service_id, series_id, t0, writer_id, part, n_profiles, totals, members, ids, vals"
#define N_BLOCK_COLUMNS 10

/* Limit of one sum, which a damaged stack id would exceed. */
#define SUM_LIMIT_BYTES ((size_t)256 << 20)
/* Limit of all whole-service sums together; beyond it they are written as parts. */
#define SERVICE_SUMS_BYTES ((size_t)256 << 20)
/* Rows of COPY that are gathered before they are sent. */
#define SEND_BYTES ((size_t)32 << 20)
/* A block is thin if it holds at most a third of the stacks up to its highest one. */
#define THIN_SHARE 3
/* Profiles of one row of totals; beyond it another part begins. */
#define MAX_TOTALS_ROWS 65536

static const struct {
    const char *table, *label;
    int64_t length_ns;
} TIERS[HEARTH_N_TIERS] = {
    {"roll_10m", "10m", HEARTH_BUCKET_NS},
    {"roll_1h", "1h", HEARTH_NS_PER_HOUR},
    {"roll_1d", "1d", HEARTH_NS_PER_DAY},
};

int64_t hearth_tier_length_ns(enum hearth_tier tier)
{
    assert((size_t)tier < HEARTH_N_TIERS);

    return TIERS[tier].length_ns;
}

const char *hearth_tier_table(enum hearth_tier tier)
{
    assert((size_t)tier < HEARTH_N_TIERS);

    return TIERS[tier].table;
}

/* ---- sums ---- */

struct hearth_roll_sum *hearth_roll_find(struct hearth_roll *roll, struct hearth_roll_set *set,
                                         int32_t series_id, int64_t t0_ns, int32_t writer_id,
                                         uint32_t n_types, struct hearth_err *err)
{
    assert(set->n <= set->n_made && set->n_made <= set->cap);

    /* Find the sum of the key, which is usually the last. */
    for (size_t i = set->n; i-- > 0;) {
        struct hearth_roll_sum *sum = &set->sums[i];
        if (sum->series_id == series_id && sum->t0_ns == t0_ns && sum->writer_id == writer_id) {
            if (sum->sums.n_types == n_types) {
                return sum;
            }

            (void)HEARTH_FAIL(err, HEARTH_CORRUPT,
                              "profiles of series %" PRId32 " of service %" PRId32
                              " differ in their number of value columns",
                              series_id, roll->service_id);
            return NULL;
        }
    }

    /* Make a new one, in the memory of a cleared sum if there is one. */
    if (!hearth_mem_grow(&set->sums, &set->cap, set->n + 1, sizeof *set->sums)) {
        (void)HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the sums of a roll-up");
        return NULL;
    }

    struct hearth_roll_sum *sum = &set->sums[set->n];
    if (set->n == set->n_made) {
        *sum = (struct hearth_roll_sum){0};
        set->n_made++;
    }

    if (sum->sums.n_types != n_types) {
        hearth_block_sums_release(&sum->sums);
        if (hearth_block_sums_init(&sum->sums, n_types, SUM_LIMIT_BYTES, err) != HEARTH_OK) {
            sum->sums = (struct hearth_block_sums){0};
            return NULL;
        }
    }

    /* Give it the key. */
    assert(sum->sums.n_profiles == 0);
    sum->series_id = series_id;
    sum->t0_ns = t0_ns;
    sum->writer_id = writer_id;
    sum->n_members = 0;
    set->n++;

    return sum;
}

void hearth_roll_sum_clear(struct hearth_roll_sum *sum)
{
    hearth_block_sums_reset(&sum->sums);
    sum->n_members = 0;
}

void hearth_roll_set_clear(struct hearth_roll_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        hearth_roll_sum_clear(&set->sums[i]);
    }

    set->n = 0;
}

void hearth_roll_set_release(struct hearth_roll_set *set)
{
    assert(set->n <= set->n_made);

    for (size_t i = 0; i < set->n_made; i++) {
        hearth_block_sums_release(&set->sums[i].sums);
        hearth_mem_free(set->sums[i].members);
    }

    hearth_mem_free(set->sums);
    *set = (struct hearth_roll_set){0};
}

bool hearth_roll_add_members(struct hearth_roll_sum *sum, const int32_t *series_ids, size_t n)
{
    assert(series_ids != NULL || n == 0);

    if (n > 0 && sum->n_members > 0 && sum->members[sum->n_members - 1] == series_ids[0]) {
        series_ids++; /* the series is listed: its sum is added in several parts */
        n--;
    }

    if (!hearth_mem_grow(&sum->members, &sum->cap_members, sum->n_members + n,
                         sizeof *sum->members)) {
        return false;
    }

    for (size_t i = 0; i < n; i++) {
        sum->members[sum->n_members++] = series_ids[i];
    }

    return true;
}

bool hearth_roll_fits(const struct hearth_roll_sum *sum, const int64_t *totals)
{
    for (uint32_t k = 0; k < sum->sums.n_types; k++) {
        int64_t total;
        if (__builtin_add_overflow(sum->sums.totals[k], totals[k], &total)) {
            return false;
        }
    }

    return true;
}

/* ---- rows of COPY ---- */

static int compare_members(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* Sorts the members and removes repeated ones, then appends them to `out`. */
static void put_members(const struct hearth_roll_sum *sum, struct hearth_buf *scratch,
                        struct hearth_buf *out)
{
    if (sum->n_members > 1) {
        qsort(sum->members, sum->n_members, sizeof *sum->members, compare_members);
    }

    /* Remove repeated members. */
    size_t n = 0;
    for (size_t i = 0; i < sum->n_members; i++) {
        if (n == 0 || sum->members[n - 1] != sum->members[i]) {
            sum->members[n++] = sum->members[i];
        }
    }

    /* Encode them. */
    size_t from = scratch->n;
    hearth_members_encode(sum->members, n, scratch);
    if (hearth_buf_failed(scratch)) {
        out->failed = true;
        return;
    }

    hearth_copy_bytes(out, hearth_str_n(scratch->p + from, scratch->n - from));
}

/* The columns of a block, packed. */
struct packed_block {
    size_t n_bytes;           /* of all */
    struct hearth_str *texts; /* [1 + n_types]: ids and vals; borrow from roll->packed */
};

/* Packs ids and vals into roll->packed, from where it ends on. Sets only the lengths of texts. */
static enum hearth_status pack_columns(struct hearth_roll *roll,
                                       const struct hearth_columns *columns,
                                       struct packed_block *ret, struct hearth_err *err)
{
    struct hearth_buf *out = &roll->packed;
    size_t begin = out->n;

    ret->texts = hearth_arena_array(&roll->arena, (size_t)columns->n_types + 1, sizeof *ret->texts);
    if (ret->texts == NULL) {
        return HEARTH_FAIL_ARENA(err, &roll->arena);
    }

    for (uint32_t k = 0; k <= columns->n_types; k++) {
        size_t from = out->n;
        struct hearth_str in = k == 0 ? columns->ids : columns->vals[k - 1];
        HEARTH_TRY(hearth_pack(roll->builder->packer, in, out, err));
        ret->texts[k].n = out->n - from;
    }

    ret->n_bytes = out->n - begin;

    return HEARTH_OK;
}

/*
 * Encodes and packs a sum: in bytes, or in bits if it is thin and they take less. *ret_totals lies
 * in the arena of the roll.
 */
static enum hearth_status pack_sum(struct hearth_roll *roll, const struct hearth_block_sums *sums,
                                   struct packed_block *ret, int64_t **ret_totals,
                                   struct hearth_err *err)
{
    struct hearth_columns columns;
    size_t from = 0;

    hearth_arena_reset(&roll->arena);
    hearth_buf_reset(&roll->packed);
    HEARTH_TRY(hearth_block_sums_encode(sums, &roll->arena, &columns, err));
    HEARTH_TRY(pack_columns(roll, &columns, ret, err));

    if (columns.n <= sums->bound / THIN_SHARE) {
        struct packed_block thin;
        HEARTH_TRY(hearth_block_sums_encode_thin(sums, &roll->arena, &columns, err));
        HEARTH_TRY(pack_columns(roll, &columns, &thin, err));
        if (thin.n_bytes < ret->n_bytes) {
            from = ret->n_bytes;
            *ret = thin;
        }
    }

    /* Locate the texts last: the buffer may have moved. */
    const char *at = roll->packed.p + from;
    for (uint32_t k = 0; k <= columns.n_types; k++) {
        ret->texts[k].p = at;
        at += ret->texts[k].n;
    }

    *ret_totals = columns.totals;

    return HEARTH_OK;
}

enum hearth_status hearth_roll_put(struct hearth_roll *roll, enum hearth_tier tier,
                                   const struct hearth_roll_sum *sum, struct hearth_err *err)
{
    assert((size_t)tier < HEARTH_N_TIERS);
    assert(sum->n_members == 0 || sum->series_id < 0);

    struct hearth_buf *out = &roll->blocks[tier];
    size_t before = out->n;
    uint32_t n_types = sum->sums.n_types;
    struct packed_block packed;
    int64_t *totals = NULL;
    HEARTH_TRY(pack_sum(roll, &sum->sums, &packed, &totals, err));

    /* Append the row. Only whole-service blocks have members. */
    int64_t n_profiles = sum->sums.n_profiles;
    hearth_copy_row(out, N_BLOCK_COLUMNS);
    hearth_copy_i32(out, roll->service_id);
    hearth_copy_i32(out, sum->series_id);
    hearth_copy_i64(out, sum->t0_ns);
    hearth_copy_i32(out, sum->writer_id);
    hearth_copy_i64(out, roll->part);
    hearth_copy_i32(out, n_profiles > INT32_MAX ? INT32_MAX : (int32_t)n_profiles);
    hearth_copy_i64_array(out, totals, n_types);
    if (sum->series_id < 0) {
        struct hearth_buf members;
        hearth_buf_init(&members, 0);
        put_members(sum, &members, out);
        hearth_buf_release(&members);
    } else {
        hearth_copy_null(out);
    }

    hearth_copy_bytes(out, packed.texts[0]);
    hearth_copy_bytes_array(out, packed.texts + 1, n_types);

    if (hearth_buf_failed(out)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the blocks of a roll-up");
    }

    roll->n_blocks[tier]++;
    roll->n_block_bytes[tier] += (int64_t)(out->n - before);

    return HEARTH_OK;
}

/* ---- the cascade ---- */

/* Whether the roll makes the block of this tier at t0: it lies within [from_ns, to_ns). */
static bool is_made(const struct hearth_roll *roll, enum hearth_tier tier, int64_t t0_ns)
{
    return t0_ns >= roll->from_ns && t0_ns <= roll->to_ns - TIERS[tier].length_ns;
}

int32_t hearth_roll_shape_of(const struct hearth_roll *roll, int32_t series_id)
{
    size_t low = 0, high = roll->n_shapes;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (roll->shapes[mid].series_id < series_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low < roll->n_shapes && roll->shapes[low].series_id == series_id
               ? roll->shapes[low].shape_id
               : 0;
}

/* Writes all whole-service sums and clears them. */
static enum hearth_status put_service_sums(struct hearth_roll *roll, struct hearth_err *err)
{
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        struct hearth_roll_set *set = &roll->service[tier];
        for (size_t i = 0; i < set->n; i++) {
            HEARTH_TRY(hearth_roll_put(roll, (enum hearth_tier)tier, &set->sums[i], err));
        }

        hearth_roll_set_clear(set);
    }

    return HEARTH_OK;
}

/* Writes the whole-service sums as a part before they are complete, and frees their memory. */
static enum hearth_status shed_service_sums(struct hearth_roll *roll, struct hearth_err *err)
{
    HEARTH_TRY(put_service_sums(roll, err));
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        hearth_roll_set_release(&roll->service[tier]);
    }

    roll->n_sum_bytes = 0;
    roll->part++;

    return HEARTH_OK;
}

/* Adds the sum of a series to the sum of its shape in the whole service. */
static enum hearth_status add_to_service(struct hearth_roll *roll, enum hearth_tier tier,
                                         const struct hearth_roll_sum *from, struct hearth_err *err)
{
    assert(from->series_id == roll->series_id);

    int32_t shape_id = hearth_roll_shape_of(roll, from->series_id);
    if (shape_id == 0) {
        return HEARTH_OK;
    }

    struct hearth_roll_sum *sum =
        hearth_roll_find(roll, &roll->service[tier], -shape_id, from->t0_ns, from->writer_id,
                         from->sums.n_types, err);
    if (sum == NULL) {
        return err->status;
    }

    /* A sum that would exceed 64 bits is written as a part first. */
    if (!hearth_roll_fits(sum, from->sums.totals)) {
        HEARTH_TRY(hearth_roll_put(roll, tier, sum, err));
        hearth_roll_sum_clear(sum);
        roll->part++;
    }

    /* Add it, and account for its memory. */
    size_t before = sum->sums.n_bytes;
    HEARTH_TRY(hearth_block_sums_add_sums(&sum->sums, &from->sums, err));
    if (!hearth_roll_add_members(sum, &from->series_id, 1)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the members of a block");
    }

    roll->n_sum_bytes += sum->sums.n_bytes - before;
    size_t max = roll->builder->max_sum_bytes;
    max = max > 0 ? max : SERVICE_SUMS_BYTES;

    return roll->n_sum_bytes > max ? shed_service_sums(roll, err) : HEARTH_OK;
}

/* Whether the block of a series, or of the whole service, is written. */
static bool is_written(const struct hearth_roll *roll, enum hearth_tier tier, bool whole,
                       int64_t t0_ns)
{
    bool is_in_scope =
        roll->scope == HEARTH_ROLL_ALL ||
        (tier == HEARTH_TIER_1H && !(whole && roll->scope == HEARTH_ROLL_HOURS_OF_SERIES));
    return is_in_scope && !hearth_absent_set_meets(&roll->absent, TIERS[tier].length_ns, whole,
                                                   t0_ns, t0_ns + TIERS[tier].length_ns);
}

/*
 * Writes the sum of a series, and adds it to the whole service and to the next longer block. The
 * sum is empty afterwards.
 */
static enum hearth_status pass_on(struct hearth_roll *roll, enum hearth_tier tier,
                                  struct hearth_roll_sum *sum, struct hearth_err *err)
{
    assert(roll->has_row && sum->series_id == roll->series_id);

    /* Write the block, and add it to the whole service. */
    hearth_block_sums_list(&sum->sums);
    if (is_written(roll, tier, false, sum->t0_ns)) {
        HEARTH_TRY(hearth_roll_put(roll, tier, sum, err));
    }

    if (is_written(roll, tier, true, sum->t0_ns)) {
        HEARTH_TRY(add_to_service(roll, tier, sum, err));
    }

    /* Add it to the longer block, if that is made. */
    enum hearth_tier next = tier + 1;
    int64_t t0_ns = next < HEARTH_N_TIERS ? hearth_floor_ns(sum->t0_ns, TIERS[next].length_ns) : 0;
    if (next < HEARTH_N_TIERS && is_made(roll, next, t0_ns)) {
        struct hearth_roll_sum *longer =
            hearth_roll_find(roll, &roll->series[next], sum->series_id, t0_ns, sum->writer_id,
                             sum->sums.n_types, err);
        if (longer == NULL) {
            return err->status;
        }

        if (!hearth_roll_fits(longer, sum->sums.totals)) {
            HEARTH_TRY(pass_on(roll, next, longer, err));
            roll->part++;
        }

        HEARTH_TRY(hearth_block_sums_add_sums(&longer->sums, &sum->sums, err));
    }

    hearth_roll_sum_clear(sum);

    return HEARTH_OK;
}

/* Writes the blocks of a tier of the current series. */
static enum hearth_status end_blocks(struct hearth_roll *roll, enum hearth_tier tier,
                                     struct hearth_err *err)
{
    struct hearth_roll_set *set = &roll->series[tier];
    for (size_t i = 0; i < set->n; i++) {
        HEARTH_TRY(pass_on(roll, tier, &set->sums[i], err));
    }

    hearth_roll_set_clear(set);

    return HEARTH_OK;
}

/* Writes the totals of the current hour, if any. */
static enum hearth_status end_totals(struct hearth_roll *roll, struct hearth_err *err)
{
    if (roll->n_totals == 0) {
        return HEARTH_OK;
    }

    struct hearth_roll_totals totals = {
        .series_id = roll->series_id,
        .t0_ns = roll->t0_ns[HEARTH_TIER_1H],
        .ts_ns = roll->ts_ns,
        .values = roll->values,
        .n = roll->n_totals,
        .n_types = roll->n_types,
    };
    HEARTH_TRY(hearth_roll_put_totals(roll, &totals, err));
    roll->n_totals = 0;

    return HEARTH_OK;
}

/* ---- rows ---- */

/*
 * Ends the blocks to which the row does not belong: shorter tiers first, up to the first tier whose
 * block continues.
 */
static enum hearth_status turn_to(struct hearth_roll *roll, const struct hearth_stored_row *row,
                                  struct hearth_err *err)
{
    bool new_series = !roll->has_row || row->series_id != roll->series_id;

    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        int64_t t0_ns = hearth_floor_ns(row->ts_ns, TIERS[tier].length_ns);
        if (!new_series && t0_ns == roll->t0_ns[tier]) {
            break; /* longer blocks continue, too */
        }

        if (tier == HEARTH_TIER_1H) {
            HEARTH_TRY(end_totals(roll, err));
        }

        HEARTH_TRY(end_blocks(roll, (enum hearth_tier)tier, err));
        roll->t0_ns[tier] = t0_ns;
    }

    roll->has_row = true;
    roll->series_id = row->series_id;

    return HEARTH_OK;
}

/* Adds the row to the totals of its hour; full totals are written as a part first. */
static enum hearth_status add_totals(struct hearth_roll *roll, const struct hearth_stored_row *row,
                                     struct hearth_err *err)
{
    assert(roll->n_totals <= MAX_TOTALS_ROWS);
    assert(hearth_floor_ns(row->ts_ns, HEARTH_NS_PER_HOUR) == roll->t0_ns[HEARTH_TIER_1H]);

    if (roll->n_totals == MAX_TOTALS_ROWS) {
        HEARTH_TRY(end_totals(roll, err));
        roll->part++;
    }

    if (roll->n_totals > 0 && row->n_types != roll->n_types) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "profiles of series %" PRId32 " of service %" PRId32
                           " differ in their number of value columns",
                           row->series_id, roll->service_id);
    }

    /* Append the time and the values. */
    roll->n_types = row->n_types;
    size_t at = roll->n_totals * row->n_types;
    if (!hearth_mem_grow(&roll->ts_ns, &roll->cap_ts, roll->n_totals + 1, sizeof *roll->ts_ns) ||
        !hearth_mem_grow(&roll->values, &roll->cap_values, at + row->n_types + 1,
                         sizeof *roll->values)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a roll-up");
    }

    roll->ts_ns[roll->n_totals++] = row->ts_ns;
    memcpy(roll->values + at, row->totals, row->n_types * sizeof *row->totals);

    return HEARTH_OK;
}

enum hearth_status hearth_roll_add(struct hearth_roll *roll, const struct hearth_stored_row *row,
                                   struct hearth_err *err)
{
    HEARTH_TRY(turn_to(roll, row, err));
    if (roll->scope == HEARTH_ROLL_ALL) {
        HEARTH_TRY(add_totals(roll, row, err));
    }

    assert(roll->has_row && roll->series_id == row->series_id);

    /* Find the sum of the 10 minutes. */
    struct hearth_roll_sum *sum =
        hearth_roll_find(roll, &roll->series[HEARTH_TIER_10M], row->series_id,
                         roll->t0_ns[HEARTH_TIER_10M], row->writer_id, row->n_types, err);
    if (sum == NULL) {
        return err->status;
    }

    /* A sum that would exceed 64 bits is written as a part first. */
    if (!hearth_roll_fits(sum, row->totals)) {
        HEARTH_TRY(pass_on(roll, HEARTH_TIER_10M, sum, err));
        roll->part++;
    }

    roll->n_rows += roll->scope == HEARTH_ROLL_ALL;

    return hearth_block_sums_add(&sum->sums, row->ids, row->vals, row->totals, 1, err);
}

enum hearth_status hearth_roll_end_series(struct hearth_roll *roll, struct hearth_err *err)
{
    HEARTH_TRY(end_totals(roll, err));
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        HEARTH_TRY(end_blocks(roll, (enum hearth_tier)tier, err));
    }

    assert(roll->n_totals == 0 && roll->series[HEARTH_TIER_10M].n == 0);
    roll->has_row = false;

    return HEARTH_OK;
}

/* ---- sending ---- */

bool hearth_roll_is_full(const struct hearth_roll *roll)
{
    size_t n = roll->totals.n;
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        n += roll->blocks[tier].n;
    }

    size_t max = roll->builder->max_send_bytes;

    return n > (max > 0 ? max : SEND_BYTES);
}

/* Sends the rows of one table, if any. */
static enum hearth_status send_table(struct hearth_roll *roll, const char *table,
                                     const char *columns, struct hearth_buf *rows,
                                     struct hearth_err *err)
{
    if (rows->n == 0) {
        return HEARTH_OK;
    }

    char sql[256];
    (void)snprintf(sql, sizeof sql, "COPY hearth_data.%s (%s) FROM STDIN (FORMAT binary)", table,
                   columns);
    HEARTH_TRY(hearth_pg_copy(&roll->builder->pg, sql, hearth_buf_view(rows), NULL, err));
    hearth_buf_reset(rows);

    return HEARTH_OK;
}

enum hearth_status hearth_roll_send(struct hearth_roll *roll, struct hearth_err *err)
{
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        HEARTH_TRY(send_table(roll, TIERS[tier].table, BLOCK_COLUMNS, &roll->blocks[tier], err));
    }

    return send_table(roll, "hour_totals", HEARTH_TOTALS_COLUMNS, &roll->totals, err);
}

enum hearth_status hearth_roll_end(struct hearth_roll *roll, struct hearth_err *err)
{
    HEARTH_TRY(hearth_roll_end_series(roll, err));
    HEARTH_TRY(put_service_sums(roll, err));
    HEARTH_TRY(hearth_roll_put_groups(roll, err));

    return hearth_roll_send(roll, err);
}

void hearth_roll_count(const struct hearth_roll *roll)
{
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        struct hearth_str label = hearth_str_c(TIERS[tier].label);
        hearth_metric_add_label(HEARTH_M_ROLL_BLOCKS, label, roll->n_blocks[tier]);
        hearth_metric_add_label(HEARTH_M_ROLL_BYTES, label, roll->n_block_bytes[tier]);
    }

    hearth_metric_add_label(HEARTH_M_ROLL_BYTES, HEARTH_STR("totals"), roll->n_totals_bytes);
    hearth_metric_add(HEARTH_M_ROLL_PROFILES, roll->n_rows);
}

/* ---- life ---- */

/* Loads the series and shapes of the service, sorted by series. */
static enum hearth_status load_shapes(struct hearth_roll *roll, struct hearth_err *err)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "SELECT series_id, shape_id FROM hearth_data.series WHERE service_id = %" PRId32
                   " ORDER BY series_id",
                   roll->service_id);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&roll->builder->pg, sql, NULL, NULL, &result, NULL, err));

    size_t n = (size_t)PQntuples(result);
    roll->shapes = hearth_arena_array(&roll->keep, n, sizeof *roll->shapes);
    for (size_t i = 0; roll->shapes != NULL && i < n; i++) {
        roll->shapes[i] = (struct hearth_roll_shape){hearth_pg_i32(result, (int)i, 0),
                                                     hearth_pg_i32(result, (int)i, 1)};
    }

    roll->n_shapes = n;
    PQclear(result);

    return roll->shapes == NULL ? HEARTH_FAIL_ARENA(err, &roll->keep) : HEARTH_OK;
}

enum hearth_status hearth_roll_init(struct hearth_roll *roll, struct hearth_builder *builder,
                                    int32_t service_id, int64_t part, int64_t from_ns,
                                    int64_t to_ns, struct hearth_err *err)
{
    assert(builder->packer != NULL && builder->inflater != NULL);

    *roll = (struct hearth_roll){
        .builder = builder,
        .service_id = service_id,
        .part = part,
        .from_ns = from_ns,
        .to_ns = to_ns,
    };
    hearth_arena_init(&roll->arena, 0);
    hearth_arena_init(&roll->keep, 0);
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        hearth_buf_init(&roll->blocks[tier], 0);
    }

    hearth_buf_init(&roll->totals, 0);
    hearth_buf_init(&roll->packed, 0);

    return load_shapes(roll, err);
}

void hearth_roll_release(struct hearth_roll *roll)
{
    for (int tier = 0; tier < HEARTH_N_TIERS; tier++) {
        hearth_roll_set_release(&roll->series[tier]);
        hearth_roll_set_release(&roll->service[tier]);
        hearth_buf_release(&roll->blocks[tier]);
    }

    hearth_roll_release_groups(roll);
    hearth_buf_release(&roll->totals);
    hearth_buf_release(&roll->packed);
    hearth_arena_release(&roll->arena);
    hearth_arena_release(&roll->keep);
    hearth_mem_free(roll->ts_ns);
    hearth_mem_free(roll->values);
}
