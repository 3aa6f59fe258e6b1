/*
 * roll_totals.c -- rows of hour_totals (contract: roll.h).
 *
 * A row takes about 150 bytes with its entry in the index, however few profiles it has. So in an
 * hour in which the series have few profiles, those that have the same number of types share rows:
 *
 *   series_id  0
 *   ts, vals   packed totals of several series (block.h)
 *   totals     of each series: series_id << 32 | number of profiles, then the sum of each type;
 *              hearth.totals, which cannot unpack anything, reads them, and reads of a few series
 *              skip the rows of other series by the first and the last of them
 *
 * If each series has one profile, its values are its sums, and the columns in vals are empty.
 */
#include "hearth/base/mem.h"

#include "build/roll.h"
#include "pg/pg.h"

#include <assert.h>

/* Profiles of a shared row: a query of one series unpacks as many in vain. */
#define MAX_GROUP_PROFILES 256

struct hearth_roll_group {
    int64_t t0_ns;
    int32_t last_id;
    size_t n_profiles;
    bool has_more; /* a series has more than one profile */
    struct hearth_buf ts, vals[HEARTH_SERIES_MAX_TYPES];
    int64_t *sums; /* [n_sums]: the column `totals` */
    size_t n_sums, cap_sums;
};

/* ---- rows ---- */

struct totals_row {
    int32_t series_id;
    int64_t t0_ns;
    size_t n_profiles;
    struct hearth_str ts;
    const struct hearth_str *vals; /* [n_types] */
    uint32_t n_types;
    const int64_t *sums; /* [n_sums]; NULL: one exceeds 64 bits */
    size_t n_sums;
};

static enum hearth_status put_totals_row(struct hearth_roll *roll, const struct totals_row *row,
                                         struct hearth_err *err)
{
    struct hearth_buf *out = &roll->totals;
    size_t before = out->n;

    hearth_copy_row(out, HEARTH_N_TOTALS_COLUMNS);
    hearth_copy_i32(out, roll->service_id);
    hearth_copy_i32(out, row->series_id);
    hearth_copy_i64(out, row->t0_ns);
    hearth_copy_i64(out, roll->part);
    hearth_copy_i32(out, row->n_profiles > INT32_MAX ? INT32_MAX : (int32_t)row->n_profiles);
    hearth_copy_bytes(out, row->ts);
    hearth_copy_bytes_array(out, row->vals, row->n_types);
    if (row->sums != NULL) {
        hearth_copy_i64_array(out, row->sums, row->n_sums);
    } else {
        hearth_copy_null(out);
    }

    if (hearth_buf_failed(out)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a roll-up");
    }

    roll->n_totals_bytes += (int64_t)(out->n - before);

    return HEARTH_OK;
}

/* ---- shared rows ---- */

/* Writes the row of a group, if it has series, and empties the group. */
static enum hearth_status put_group(struct hearth_roll *roll, uint32_t n_types,
                                    struct hearth_err *err)
{
    struct hearth_roll_group *group = roll->groups[n_types];
    struct hearth_str vals[HEARTH_SERIES_MAX_TYPES];
    if (group == NULL || group->n_sums == 0) {
        return HEARTH_OK;
    }

    /* Write it. */
    bool failed = hearth_buf_failed(&group->ts);
    for (uint32_t k = 0; k < n_types; k++) {
        failed = failed || hearth_buf_failed(&group->vals[k]);
        vals[k] = group->has_more ? hearth_buf_view(&group->vals[k]) : HEARTH_STR("");
    }

    if (failed) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a roll-up");
    }

    const struct totals_row row = {.t0_ns = group->t0_ns,
                                   .n_profiles = group->n_profiles,
                                   .ts = hearth_buf_view(&group->ts),
                                   .vals = vals,
                                   .n_types = n_types,
                                   .sums = group->sums,
                                   .n_sums = group->n_sums};
    HEARTH_TRY(put_totals_row(roll, &row, err));
    roll->part++;

    /* Empty it. */
    hearth_buf_reset(&group->ts);
    for (uint32_t k = 0; k < n_types; k++) {
        hearth_buf_reset(&group->vals[k]);
    }

    group->last_id = 0;
    group->has_more = false;
    group->n_profiles = group->n_sums = 0;

    return HEARTH_OK;
}

enum hearth_status hearth_roll_put_groups(struct hearth_roll *roll, struct hearth_err *err)
{
    for (uint32_t n_types = 1; n_types <= HEARTH_SERIES_MAX_TYPES; n_types++) {
        HEARTH_TRY(put_group(roll, n_types, err));
    }

    return HEARTH_OK;
}

void hearth_roll_release_groups(struct hearth_roll *roll)
{
    for (uint32_t n_types = 1; n_types <= HEARTH_SERIES_MAX_TYPES; n_types++) {
        struct hearth_roll_group *group = roll->groups[n_types];
        if (group == NULL) {
            continue;
        }

        hearth_buf_release(&group->ts);
        for (uint32_t k = 0; k < n_types; k++) {
            hearth_buf_release(&group->vals[k]);
        }

        hearth_mem_free(group->sums);
        hearth_mem_free(group);
        roll->groups[n_types] = NULL;
    }
}

/* The group of series with so many types; NULL: memory was refused. */
static struct hearth_roll_group *find_totals_group(struct hearth_roll *roll, uint32_t n_types)
{
    struct hearth_roll_group *group = roll->groups[n_types];
    if (group != NULL) {
        return group;
    }

    group = hearth_mem_calloc(1, sizeof *group);
    if (group != NULL) {
        hearth_buf_init(&group->ts, 0);
        for (uint32_t k = 0; k < n_types; k++) {
            hearth_buf_init(&group->vals[k], 0);
        }

        roll->groups[n_types] = group;
    }

    return group;
}

enum hearth_status hearth_roll_group_add(struct hearth_roll *roll,
                                         const struct hearth_packed_totals *packed,
                                         struct hearth_err *err)
{
    uint32_t n_types = packed->n_types;
    assert(packed->series_id > 0 && n_types > 0 && n_types <= HEARTH_SERIES_MAX_TYPES);

    struct hearth_roll_group *group = find_totals_group(roll, n_types);
    if (group == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a roll-up");
    }

    /* Begin another row if this one is full, or of another hour. */
    if (group->n_profiles + packed->n_profiles > MAX_GROUP_PROFILES ||
        group->t0_ns != packed->t0_ns || group->last_id >= packed->series_id) {
        HEARTH_TRY(put_group(roll, n_types, err));
    }

    if (!hearth_mem_grow(&group->sums, &group->cap_sums, group->n_sums + 1 + n_types,
                         sizeof *group->sums)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a roll-up");
    }

    hearth_totals_group_add(group->last_id, packed->series_id, &packed->totals, n_types, &group->ts,
                            group->vals);
    group->sums[group->n_sums++] = (int64_t)packed->series_id << 32 | (int64_t)packed->n_profiles;
    memcpy(group->sums + group->n_sums, packed->sums, n_types * sizeof *packed->sums);
    group->n_sums += n_types;
    group->t0_ns = packed->t0_ns;
    group->last_id = packed->series_id;
    group->n_profiles += packed->n_profiles;
    group->has_more = group->has_more || packed->n_profiles != 1;

    return HEARTH_OK;
}

/* ---- totals of a series ---- */

/* Sums each type, in the arena of the roll. *ret NULL: a sum exceeds 64 bits. */
static enum hearth_status sum_hour(struct hearth_roll *roll,
                                   const struct hearth_roll_totals *totals, int64_t **ret,
                                   struct hearth_err *err)
{
    int64_t *sums = hearth_arena_calloc(&roll->arena, totals->n_types, sizeof *sums);
    bool fits = true;
    if (sums == NULL) {
        return HEARTH_FAIL_ARENA(err, &roll->arena);
    }

    for (size_t i = 0; i < totals->n * totals->n_types; i++) {
        size_t k = i % totals->n_types;
        fits = !__builtin_add_overflow(sums[k], totals->values[i], &sums[k]) && fits;
    }

    *ret = fits ? sums : NULL;

    return HEARTH_OK;
}

enum hearth_status hearth_roll_put_totals(struct hearth_roll *roll,
                                          const struct hearth_roll_totals *totals,
                                          struct hearth_err *err)
{
    assert(totals->n > 0 && totals->ts_ns != NULL);

    /* Pack and sum the totals. */
    struct hearth_totals packed;
    int64_t *sums = NULL;
    hearth_arena_reset(&roll->arena);
    HEARTH_TRY(hearth_totals_encode(totals->ts_ns, totals->values, totals->n, totals->n_types,
                                    totals->t0_ns, &roll->arena, &packed, err));
    HEARTH_TRY(sum_hour(roll, totals, &sums, err));

    /* Let them share a row. */
    if (roll->groups_totals && sums != NULL && totals->n <= MAX_GROUP_PROFILES &&
        totals->n_types > 0 && totals->n_types <= HEARTH_SERIES_MAX_TYPES) {
        const struct hearth_packed_totals part = {totals->series_id, totals->t0_ns, totals->n,
                                                  totals->n_types,   packed,        sums};
        return hearth_roll_group_add(roll, &part, err);
    }

    const struct totals_row row = {totals->series_id, totals->t0_ns,   totals->n, packed.ts,
                                   packed.vals,       totals->n_types, sums,      totals->n_types};

    return put_totals_row(roll, &row, err);
}
