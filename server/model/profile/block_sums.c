/*
 * block_sums.c -- sums of every value column over the stack ids of one dictionary.
 *
 * A column that was the same multiple of column 0 in every added profile (cpu time = period times
 * count) is that multiple in the sums, too. It is not summed: only its factor is stored, and the
 * ids are decoded once. The first profile with another factor gives the column sums of its own.
 */
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"
#include "hearth/model/block.h"

#include <assert.h>

#define MIN_CAP 1024u

enum {
    FACTOR_ANY = -1,  /* all zeros so far: any factor is right */
    FACTOR_NONE = -2, /* not a multiple of column 0: the column has sums of its own */
};

enum hearth_status hearth_block_sums_init(struct hearth_block_sums *sums, uint32_t n_types,
                                          size_t limit_bytes, struct hearth_err *err)
{
    assert(sums != NULL);

    *sums = (struct hearth_block_sums){.n_types = n_types, .limit_bytes = limit_bytes};
    sums->acc = hearth_mem_calloc(n_types, sizeof *sums->acc);
    sums->factors = hearth_mem_calloc(n_types, sizeof *sums->factors);
    sums->totals = hearth_mem_calloc(n_types, sizeof *sums->totals);
    if (n_types > 0 && (sums->acc == NULL || sums->factors == NULL || sums->totals == NULL)) {
        hearth_block_sums_release(sums);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for sums of %u columns",
                           (unsigned)n_types);
    }

    for (uint32_t k = 0; k < n_types; k++) {
        sums->factors[k] = k == 0 ? FACTOR_NONE : FACTOR_ANY;
    }

    return HEARTH_OK;
}

void hearth_block_sums_release(struct hearth_block_sums *sums)
{
    for (uint32_t k = 0; sums->acc != NULL && k < sums->n_types; k++) {
        hearth_mem_free(sums->acc[k]);
    }

    hearth_mem_free(sums->acc);
    hearth_mem_free(sums->factors);
    hearth_mem_free(sums->totals);
    hearth_mem_free(sums->listed);
    *sums = (struct hearth_block_sums){0};
}

/* Set a column to 0: the listed stacks only, or all if there is no list. */
static void clear_column(const struct hearth_block_sums *sums, int64_t *acc)
{
    if (!sums->is_listed) {
        memset(acc, 0, sums->bound * sizeof acc[0]);
        return;
    }
    for (uint32_t i = 0; i < sums->n_listed; i++) {
        acc[sums->listed[i]] = 0;
    }
}

void hearth_block_sums_reset(struct hearth_block_sums *sums)
{
    for (uint32_t k = 0; k < sums->n_types; k++) {
        if (sums->acc[k] != NULL) {
            clear_column(sums, sums->acc[k]);
        }
        sums->factors[k] = k == 0 ? FACTOR_NONE : FACTOR_ANY;
        sums->totals[k] = 0;
    }

    sums->bound = 0;
    sums->n_profiles = 0;
    sums->is_listed = false;
}

/* ---- memory ---- */

static enum hearth_status fail_sums_limit(const struct hearth_block_sums *sums,
                                          struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "sums of profiles need more than %zu bytes of memory", sums->limit_bytes);
}

/*
 * Give column k room for `cap` sums; those after the first n_had are 0. The caller adds the bytes
 * to n_bytes.
 */
static enum hearth_status grow_column(struct hearth_block_sums *sums, uint32_t k, uint32_t n_had,
                                      uint32_t cap, struct hearth_err *err)
{
    assert(cap >= n_had);

    int64_t *grown = hearth_mem_reallocarray(sums->acc[k], cap, sizeof *grown);

    if (grown == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for sums of %u stack traces",
                           (unsigned)cap);
    }

    memset(grown + n_had, 0, (size_t)(cap - n_had) * sizeof *grown);
    sums->acc[k] = grown;

    return HEARTH_OK;
}

/* Make room for ids below `bound`. The capacity doubles if the memory limit allows it. */
static enum hearth_status grow_columns(struct hearth_block_sums *sums, uint32_t bound,
                                       struct hearth_err *err)
{
    if (bound > sums->cap) {
        /* Double, but no further than the limit allows for all columns with sums of their own. */
        uint64_t cap = (uint64_t)sums->cap * 2;
        cap = cap < MIN_CAP ? MIN_CAP : cap;
        uint32_t n_own = 0;
        for (uint32_t k = 0; k < sums->n_types; k++) {
            n_own += k == 0 || sums->acc[k] != NULL;
        }
        uint64_t room = sums->limit_bytes == 0 ? UINT64_MAX : sums->limit_bytes - sums->n_bytes;
        uint64_t column = room / sizeof(int64_t) / n_own; /* by how much each column may grow */
        if (bound - sums->cap > column) {
            return fail_sums_limit(sums, err);
        }

        cap = cap - sums->cap > column ? sums->cap + column : cap;
        cap = cap < bound ? bound : cap;
        cap = cap > UINT32_MAX ? UINT32_MAX : cap;

        for (uint32_t k = 0; k < sums->n_types; k++) {
            if (k == 0 || sums->acc[k] != NULL) {
                HEARTH_TRY(grow_column(sums, k, sums->cap, (uint32_t)cap, err));
            }
        }
        sums->n_bytes += (size_t)(cap - sums->cap) * sizeof(int64_t) * n_own;
        sums->cap = (uint32_t)cap;
    }

    sums->bound = bound > sums->bound ? bound : sums->bound;

    return HEARTH_OK;
}

static enum hearth_status fail_overflow(uint32_t k, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                       "the sum of value column %u over profiles overflows 64 bits", (unsigned)k);
}

/* Give column k sums of its own: those of column 0 times its factor so far. */
static enum hearth_status give_own_sums(struct hearth_block_sums *sums, uint32_t k,
                                        struct hearth_err *err)
{
    assert(k > 0 && sums->factors[k] != FACTOR_NONE);

    if (sums->acc[k] == NULL && sums->cap > 0) {
        size_t n_bytes = sums->cap * sizeof(int64_t);
        if (sums->limit_bytes != 0 && n_bytes > sums->limit_bytes - sums->n_bytes) {
            return fail_sums_limit(sums, err);
        }
        HEARTH_TRY(grow_column(sums, k, 0, sums->cap, err));
        sums->n_bytes += n_bytes;
    }

    int64_t factor = sums->factors[k];
    sums->factors[k] = FACTOR_NONE;
    for (uint32_t i = 0; factor > 0 && i < sums->bound; i++) {
        if (__builtin_mul_overflow(sums->acc[0][i], factor, &sums->acc[k][i])) {
            return fail_overflow(k, err);
        }
    }

    return HEARTH_OK;
}

/* ---- adding ---- */

/*
 * Read the factor of a column that is a multiple; false if it is not, or if the factor is too
 * large.
 */
static bool take_factor(struct hearth_str val, int64_t *ret_factor)
{
    uint64_t factor;
    const uint8_t *at = (const uint8_t *)val.p + 1, *end = (const uint8_t *)val.p + val.n;

    if (!hearth_columns_is_multiple(val) || !hearth_varint_read(&at, end, &factor) || at != end ||
        factor > INT64_MAX) {
        return false;
    }

    *ret_factor = (int64_t)factor;

    return true;
}

static enum hearth_status add_totals(struct hearth_block_sums *sums, const int64_t *totals,
                                     int64_t n_profiles, struct hearth_err *err)
{
    for (uint32_t k = 0; k < sums->n_types; k++) {
        if (totals[k] < 0) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "a stored total is negative");
        }
        if (__builtin_add_overflow(sums->totals[k], totals[k], &sums->totals[k])) {
            return fail_overflow(k, err);
        }
    }

    if (n_profiles < 0 || __builtin_add_overflow(sums->n_profiles, n_profiles, &sums->n_profiles)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a stored number of profiles is damaged");
    }

    return HEARTH_OK;
}

/* True if column k is, or becomes, the same multiple of column 0 as the added column. */
static bool join_factor(struct hearth_block_sums *sums, uint32_t k, int64_t factor)
{
    if (sums->factors[k] == FACTOR_ANY) {
        sums->factors[k] = factor;
    }
    return sums->factors[k] == factor;
}

enum hearth_status hearth_block_sums_add(struct hearth_block_sums *sums, struct hearth_str ids,
                                         const struct hearth_str *vals, const int64_t *totals,
                                         int64_t n_profiles, struct hearth_err *err)
{
    assert(sums != NULL);
    assert(sums->n_types == 0 || (vals != NULL && totals != NULL));

    uint32_t bound = 0;

    /* The head of the ids tells how many sums are needed. */
    if (!hearth_columns_id_bound(ids, &bound)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "sample columns are damaged: the highest stack id");
    }

    sums->is_listed = false;
    HEARTH_TRY(add_totals(sums, totals, n_profiles, err));
    if (sums->n_types == 0) {
        return HEARTH_OK;
    }

    /* Make room, then add every column. */
    HEARTH_TRY(grow_columns(sums, bound, err));

    /* Column 0 is added last: give_own_sums needs its sums without this profile. */
    for (uint32_t k = sums->n_types; k-- > 0;) {
        int64_t factor;
        if (k > 0 && bound > 0 && take_factor(vals[k], &factor) && join_factor(sums, k, factor)) {
            continue;
        }

        if (k > 0 && bound > 0 && sums->factors[k] != FACTOR_NONE) {
            HEARTH_TRY(give_own_sums(sums, k, err));
        }

        HEARTH_TRY(hearth_columns_merge(ids, vals[k], vals[0], k == 0, sums->acc[k], bound, err));
    }

    return HEARTH_OK;
}

/*
 * acc[i] += from[i] * factor for the ids of `other`; the values of `from` are >= 0. False if a sum
 * overflows.
 */
static bool add_column(int64_t *acc, const struct hearth_block_sums *other, const int64_t *from,
                       int64_t factor)
{
    assert(factor >= 0);

    bool overflow = false;
    uint32_t n = other->is_listed ? other->n_listed : other->bound;

    for (uint32_t at = 0; at < n; at++) {
        uint32_t i = other->is_listed ? other->listed[at] : at;
        int64_t product;
        overflow |= __builtin_mul_overflow(from[i], factor, &product);
        overflow |= __builtin_add_overflow(acc[i], product, &acc[i]);
    }

    return !overflow;
}

enum hearth_status hearth_block_sums_add_sums(struct hearth_block_sums *sums,
                                              const struct hearth_block_sums *other,
                                              struct hearth_err *err)
{
    assert(sums != NULL && other != NULL && sums != other);

    if (sums->n_types != other->n_types) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "sums of %u columns cannot be added to sums of %u",
                           (unsigned)other->n_types, (unsigned)sums->n_types);
    }

    sums->is_listed = false;
    HEARTH_TRY(add_totals(sums, other->totals, other->n_profiles, err));
    if (sums->n_types == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(grow_columns(sums, other->bound, err));
    for (uint32_t k = sums->n_types; k-- > 0;) {
        int64_t factor = other->factors[k];
        if (factor == FACTOR_ANY && k > 0) {
            continue; /* `other` has only zeros here */
        }
        if (factor >= 0 && join_factor(sums, k, factor)) {
            continue;
        }

        if (sums->factors[k] != FACTOR_NONE) {
            HEARTH_TRY(give_own_sums(sums, k, err));
        }

        const int64_t *from = factor >= 0 ? other->acc[0] : other->acc[k];
        if (!add_column(sums->acc[k], other, from, factor >= 0 ? factor : 1)) {
            return fail_overflow(k, err);
        }
    }

    return HEARTH_OK;
}

/* ---- stacks with non-zero sums ---- */

#define CHUNK 256u

/* An array of n entries: non-zero where any column with sums of its own is non-zero. */
static const int64_t *combine_columns(const struct hearth_block_sums *sums, uint32_t from,
                                      uint32_t n, int64_t mixed[CHUNK])
{
    const int64_t *any = sums->acc[0] + from;

    for (uint32_t k = 1; k < sums->n_types; k++) {
        if (sums->factors[k] != FACTOR_NONE) {
            continue;
        }
        const int64_t *acc = sums->acc[k] + from;
        for (uint32_t i = 0; i < n; i++) {
            mixed[i] = any[i] | acc[i];
        }
        any = mixed;
    }

    return any;
}

static uint32_t count_stacks(const struct hearth_block_sums *sums)
{
    uint32_t count = 0;
    int64_t mixed[CHUNK];

    for (uint32_t from = 0; from < sums->bound; from += CHUNK) {
        uint32_t n = sums->bound - from < CHUNK ? sums->bound - from : CHUNK;
        const int64_t *any = combine_columns(sums, from, n, mixed);
        for (uint32_t i = 0; i < n; i++) {
            count += any[i] != 0;
        }
    }

    return count;
}

/*
 * Write the stacks with non-zero sums. ids has room for one more than their number, so that the
 * loop needs no branch.
 */
static uint32_t gather_ids(const struct hearth_block_sums *sums, uint32_t *ids)
{
    assert(sums->n_types > 0);

    uint32_t count = 0;
    int64_t mixed[CHUNK];

    for (uint32_t from = 0; from < sums->bound; from += CHUNK) {
        uint32_t n = sums->bound - from < CHUNK ? sums->bound - from : CHUNK;
        const int64_t *any = combine_columns(sums, from, n, mixed);
        for (uint32_t i = 0; i < n; i++) {
            ids[count] = from + i;
            count += any[i] != 0;
        }
    }

    return count;
}

void hearth_block_sums_list(struct hearth_block_sums *sums)
{
    size_t n = (size_t)sums->bound + 1, had = sums->cap_listed;
    size_t room = sums->limit_bytes == 0 ? SIZE_MAX : sums->limit_bytes - sums->n_bytes;
    bool fits = n <= had || n <= room / sizeof sums->listed[0] / 2; /* growing may double it */

    sums->is_listed = sums->n_types > 0 && fits &&
                      hearth_mem_grow(&sums->listed, &sums->cap_listed, n, sizeof sums->listed[0]);
    sums->n_bytes += (sums->cap_listed - had) * sizeof sums->listed[0];

    if (sums->is_listed) {
        sums->n_listed = gather_ids(sums, sums->listed);
    }
}

/* ---- encoding ---- */

static enum hearth_status gather_values(const struct hearth_block_sums *sums, const uint32_t *ids,
                                        uint32_t n, int64_t *values, struct hearth_err *err)
{
    size_t n_types = sums->n_types;

    for (uint32_t k = 0; k < n_types; k++) {
        bool own = sums->factors[k] == FACTOR_NONE;
        const int64_t *from = own ? sums->acc[k] : sums->acc[0];
        int64_t factor = own ? 1 : sums->factors[k];
        factor = factor == FACTOR_ANY ? 0 : factor;

        bool overflow = false;
        for (size_t i = 0; i < n; i++) {
            overflow |= __builtin_mul_overflow(from[ids[i]], factor, &values[i * n_types + k]);
        }

        if (overflow) {
            return fail_overflow(k, err);
        }
    }

    return HEARTH_OK;
}

/* hearth_columns_encode or hearth_columns_encode_bytes. */
typedef enum hearth_status encode_columns_fn(const uint32_t *ids, const int64_t *values, uint32_t n,
                                             uint32_t n_types, struct hearth_arena *arena,
                                             struct hearth_columns *ret, struct hearth_err *err);

/* All columns are multiples of column 0: gather and encode column 0 only. */
static enum hearth_status encode_multiples(const struct hearth_block_sums *sums,
                                           encode_columns_fn *encode, const uint32_t *ids,
                                           uint32_t n, struct hearth_arena *arena,
                                           struct hearth_columns *ret, struct hearth_err *err)
{
    struct hearth_columns one;
    int64_t *values = hearth_arena_array(arena, n, sizeof *values);

    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Encode column 0. */
    for (uint32_t i = 0; i < n; i++) {
        values[i] = sums->acc[0][ids[i]];
    }

    HEARTH_TRY(encode(ids, values, n, 1, arena, &one, err));

    /* Describe the other columns by their factors. */
    *ret = (struct hearth_columns){.n = n, .n_types = sums->n_types, .ids = one.ids};
    ret->vals = hearth_arena_array(arena, sums->n_types, sizeof ret->vals[0]);
    ret->totals = hearth_arena_array(arena, sums->n_types, sizeof ret->totals[0]);
    if (ret->vals == NULL || ret->totals == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    ret->vals[0] = one.vals[0];
    for (uint32_t k = 1; k < sums->n_types; k++) {
        int64_t factor = n == 0 || sums->factors[k] == FACTOR_ANY ? 0 : sums->factors[k];
        if (__builtin_mul_overflow(one.totals[0], factor, &ret->totals[k])) {
            return fail_overflow(k, err);
        }
        ret->vals[k] = hearth_columns_multiple((uint64_t)factor, arena);
        if (ret->vals[k].p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status encode_all(const struct hearth_block_sums *sums,
                                     encode_columns_fn *encode, const uint32_t *ids, uint32_t n,
                                     struct hearth_arena *arena, struct hearth_columns *ret,
                                     struct hearth_err *err)
{
    size_t n_values;
    int64_t *values = NULL;

    if (!__builtin_mul_overflow((size_t)n, (size_t)sums->n_types, &n_values)) {
        values = hearth_arena_array(arena, n_values, sizeof *values);
    }

    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(gather_values(sums, ids, n, values, err));

    return encode(ids, values, n, sums->n_types, arena, ret, err);
}

static enum hearth_status encode_sums(const struct hearth_block_sums *sums,
                                      encode_columns_fn *encode, struct hearth_arena *arena,
                                      struct hearth_columns *ret, struct hearth_err *err)
{
    assert(sums != NULL && arena != NULL && ret != NULL);

    bool multiples = sums->n_types > 0;

    /* Choose the encoding, and find the stacks. */
    for (uint32_t k = 1; k < sums->n_types; k++) {
        multiples = multiples && sums->factors[k] != FACTOR_NONE;
    }

    const uint32_t *ids = sums->listed;
    uint32_t n = sums->n_listed;
    if (!sums->is_listed) {
        n = sums->n_types > 0 ? count_stacks(sums) : 0;
        uint32_t *found = hearth_arena_array(arena, (size_t)n + 1, sizeof *found);
        if (found == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        n = sums->n_types > 0 ? gather_ids(sums, found) : 0;
        ids = found;
    }

    HEARTH_TRY((multiples ? encode_multiples : encode_all)(sums, encode, ids, n, arena, ret, err));

    /* The stored totals are the sums of the stored totals of the profiles. */
    for (uint32_t k = 0; k < sums->n_types; k++) {
        ret->totals[k] = sums->totals[k];
    }

    return HEARTH_OK;
}

enum hearth_status hearth_block_sums_encode(const struct hearth_block_sums *sums,
                                            struct hearth_arena *arena, struct hearth_columns *ret,
                                            struct hearth_err *err)
{
    return encode_sums(sums, hearth_columns_encode_bytes, arena, ret, err);
}

enum hearth_status hearth_block_sums_encode_thin(const struct hearth_block_sums *sums,
                                                 struct hearth_arena *arena,
                                                 struct hearth_columns *ret, struct hearth_err *err)
{
    return encode_sums(sums, hearth_columns_encode, arena, ret, err);
}
