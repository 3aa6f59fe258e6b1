/*
 * columns.c -- encode and merge the stored form of a profile's samples (layout in columns.h). The
 * bit form is in columns_bits.c.
 *
 * The merge runs once per stored profile of every query, so it decides how fast Hearth answers. Its
 * cost is mispredicted branches: whether an id takes one byte or two, and whether a value is 1, are
 * practically random. So ids are decoded in groups of four from an eight-byte word, values are
 * selected by arithmetic, and only rare cases (longer ids, values above 127, the ends of the
 * columns) branch. Bounds and overflow are tested for every sample; those branches are never taken
 * on intact bytes.
 */
#include "hearth/model/columns.h"

#include "hearth/base/varint.h"

#include "columns_bits.h"

#include <assert.h>

#define MAX_ID_BYTES 5u /* a 32-bit delta and the flag: 33 bits */

/* ---- encode ---- */

/* Sum and bitwise or of one column; false if the sum overflows. */
static bool sum_column(const int64_t *values, uint32_t n, uint32_t n_types, uint32_t k,
                       int64_t *ret_total, uint64_t *ret_bits)
{
    int64_t total = 0;
    uint64_t bits = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t value = values[i * n_types + k];
        if (__builtin_add_overflow(total, value, &total)) {
            return false;
        }
        bits |= (uint64_t)value;
    }

    *ret_total = total;
    *ret_bits = bits;

    return true;
}

/* True if column k is column 0 times a constant (zero wherever column 0 is zero). */
static bool find_factor(const int64_t *values, uint32_t n, uint32_t n_types, uint32_t k,
                        int64_t *ret_factor)
{
    int64_t factor = 0;

    /* The first non-zero value of column 0 determines the factor; check it for all samples. */
    for (size_t i = 0; i < n; i++) {
        if (values[i * n_types] != 0) {
            factor = values[i * n_types + k] / values[i * n_types];
            break;
        }
    }

    for (size_t i = 0; i < n; i++) {
        int64_t product;
        if (__builtin_mul_overflow(values[i * n_types], factor, &product) ||
            product != values[i * n_types + k]) {
            return false;
        }
    }

    *ret_factor = factor;

    return true;
}

static size_t encode_ids(const uint32_t *ids, const int64_t *values, uint32_t n, uint32_t n_types,
                         uint8_t *out)
{
    uint8_t *at = out;
    uint32_t previous = 0;

    if (n > 0) {
        at += hearth_varint_write(at, (uint64_t)ids[n - 1] + 1);
    }

    for (size_t i = 0; i < n; i++) {
        uint64_t one = values[i * n_types] == 1;
        at += hearth_varint_write(at, (uint64_t)(ids[i] - previous) << 1 | one);
        previous = ids[i];
    }

    return (size_t)(at - out);
}

/* Columns that are being encoded. */
struct encoding {
    const uint32_t *ids;
    const int64_t *values;
    uint64_t *bits; /* [n_types]: the values of each column, or-ed together; 0: a multiple */
    struct hearth_arena *arena;
    struct hearth_columns made;
};

static struct hearth_value_list list_values(const struct encoding *e, uint32_t k)
{
    const int64_t *first =
        e->made.n == 0 ? NULL : e->values + k; /* without samples there is no array */
    return (struct hearth_value_list){first, e->made.n, e->made.n_types};
}

/* Write the values of column k as varints; those that are 1 only if `ones` says so. */
static size_t write_value_bytes(const struct encoding *e, uint32_t k, bool ones, uint8_t *out)
{
    struct hearth_value_list list = list_values(e, k);
    uint8_t *at = out;

    *at++ = HEARTH_VALUES_BYTES;
    for (size_t i = 0; i < list.n; i++) {
        int64_t value = list.values[i * list.stride];
        if (ones || value != 1) {
            at += hearth_varint_write(at, (uint64_t)value);
        }
    }

    return (size_t)(at - out);
}

struct hearth_str hearth_columns_multiple(uint64_t factor, struct hearth_arena *arena)
{
    uint8_t *out = hearth_arena_alloc(arena, 11);
    if (out == NULL) {
        return (struct hearth_str){NULL, 0};
    }
    out[0] = HEARTH_VALUES_MULTIPLE;
    return hearth_str_n((const char *)out, 1 + hearth_varint_write(out + 1, factor));
}

/* Sum the columns, and write those that are multiples of column 0. */
static enum hearth_status write_multiples(struct encoding *e, struct hearth_err *err)
{
    struct hearth_columns *made = &e->made;

    for (uint32_t k = 0; k < made->n_types; k++) {
        int64_t factor;
        if (!sum_column(e->values, made->n, made->n_types, k, &made->totals[k], &e->bits[k])) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "the sum of value column %u overflows 64 bits", (unsigned)k);
        }

        made->vals[k] = (struct hearth_str){0};
        if (k > 0 && find_factor(e->values, made->n, made->n_types, k, &factor)) {
            made->vals[k] = hearth_columns_multiple((uint64_t)factor, e->arena);
            if (made->vals[k].p == NULL) {
                return HEARTH_FAIL_ARENA(err, e->arena);
            }
        }
    }

    return HEARTH_OK;
}

/* Write ids and values in the byte form. */
static enum hearth_status encode_bytes(struct encoding *e, struct hearth_err *err)
{
    struct hearth_columns *made = &e->made;
    uint32_t n = made->n;

    uint8_t *out = hearth_arena_array(e->arena, (size_t)n + 1, MAX_ID_BYTES);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(err, e->arena);
    }

    size_t n_bytes = encode_ids(e->ids, e->values, n, made->n_types, out);
    made->ids = hearth_str_n((const char *)out, n_bytes);
    for (uint32_t k = 0; k < made->n_types; k++) {
        if (made->vals[k].p != NULL) {
            continue; /* a multiple */
        }

        /* No varint is longer than that of all values or-ed together. */
        out = hearth_arena_alloc(e->arena, 1 + (size_t)n * hearth_varint_size(e->bits[k]));
        if (out == NULL) {
            return HEARTH_FAIL_ARENA(err, e->arena);
        }

        n_bytes = write_value_bytes(e, k, k > 0, out);
        made->vals[k] = hearth_str_n((const char *)out, n_bytes);
    }

    return HEARTH_OK;
}

/* How one column is written in the bit form. */
struct bit_column {
    enum hearth_value_form form;
    uint32_t n_above;
    size_t n_bytes;
    struct hearth_run_shape *shapes;
};

/* How all are, but those that are multiples. */
struct bit_plan {
    size_t n_bytes;            /* of all */
    struct bit_column ids;     /* without a form */
    struct bit_column *values; /* [n_types] */
};

/* Bytes of column k in the byte form; values that are 1 count only if `ones` says so. */
static size_t count_value_bytes(const struct encoding *e, uint32_t k, bool ones)
{
    struct hearth_value_list list = list_values(e, k);
    size_t n_bytes = 1;

    for (size_t i = 0; i < list.n; i++) {
        int64_t value = list.values[i * list.stride];
        n_bytes += ones || value != 1 ? hearth_varint_size((uint64_t)value) : 0;
    }

    return n_bytes;
}

static struct hearth_run_shape *make_shapes(const struct encoding *e)
{
    return hearth_arena_array(e->arena, e->made.n / HEARTH_RUN_NUMBERS + 1,
                              sizeof(struct hearth_run_shape));
}

/* True if the column is planned in this form, which takes fewer bytes than the plan so far. */
static bool try_form(const struct hearth_value_list *list, enum hearth_value_form form,
                     uint32_t n_above, struct hearth_run_shape *shapes, struct bit_column *plan)
{
    size_t n_bytes = hearth_values_write_bits(list, form, n_above, shapes, NULL);
    if (n_bytes == 0 || n_bytes >= plan->n_bytes) {
        return false;
    }

    *plan = (struct bit_column){form, n_above, n_bytes, shapes};

    return true;
}

/* Choose the form of column k. */
static bool plan_values(const struct encoding *e, uint32_t k, struct bit_column *plan)
{
    struct hearth_value_list list = list_values(e, k);
    uint32_t n_positive = hearth_values_count_above(&list, 0), n_above = n_positive;
    enum hearth_value_form above = HEARTH_VALUES_ABOVE_ZERO;

    if (n_positive == list.n) {
        n_above = hearth_values_count_above(&list, 1);
        above = HEARTH_VALUES_ABOVE_ONE;
    }

    struct hearth_run_shape *shapes = make_shapes(e);
    if (shapes == NULL) {
        return false;
    }

    /* The other form in bits is shorter only if most values are above the base. */
    *plan = (struct bit_column){.n_bytes = SIZE_MAX};
    bool has_form = try_form(&list, above, n_above, shapes, plan);
    if (has_form && n_above > list.n / 2) {
        shapes = make_shapes(e);
        if (shapes == NULL) {
            return false;
        }
        (void)try_form(&list, HEARTH_VALUES_BITS, n_above, shapes, plan);
    }

    if (!has_form) {
        plan->form = HEARTH_VALUES_BYTES;
        plan->n_bytes = count_value_bytes(e, k, true);
    }

    return true;
}

static bool make_bit_plan(const struct encoding *e, struct bit_plan *plan)
{
    plan->values = hearth_arena_array(e->arena, e->made.n_types, sizeof plan->values[0]);
    plan->ids.shapes = make_shapes(e);
    if (plan->values == NULL || plan->ids.shapes == NULL) {
        return false;
    }

    plan->ids.n_bytes = hearth_ids_write_bits(e->ids, e->made.n, plan->ids.shapes, NULL);
    plan->n_bytes = plan->ids.n_bytes;
    for (uint32_t k = 0; k < e->made.n_types; k++) {
        bool is_multiple = e->made.vals[k].p != NULL;
        if (!is_multiple && !plan_values(e, k, &plan->values[k])) {
            return false;
        }
        plan->n_bytes += is_multiple ? 0 : plan->values[k].n_bytes;
    }

    return true;
}

/* True if the byte form takes no more bytes than the plan. */
static bool are_bytes_smaller(const struct encoding *e, const struct bit_plan *plan)
{
    size_t n_bytes = hearth_varint_size((uint64_t)e->ids[e->made.n - 1] + 1);
    uint32_t previous = 0;

    /* Each sample takes a byte or more. */
    if (e->made.n >= plan->n_bytes) {
        return false;
    }

    for (size_t i = 0; i < e->made.n && n_bytes <= plan->n_bytes; i++) {
        n_bytes += hearth_varint_size((uint64_t)(e->ids[i] - previous) << 1);
        previous = e->ids[i];
    }

    for (uint32_t k = 0; k < e->made.n_types && n_bytes <= plan->n_bytes; k++) {
        n_bytes += e->made.vals[k].p != NULL ? 0 : count_value_bytes(e, k, k > 0);
    }

    return n_bytes <= plan->n_bytes;
}

/* Write ids and values in the bit form. */
static enum hearth_status encode_bits(struct encoding *e, const struct bit_plan *plan,
                                      struct hearth_err *err)
{
    struct hearth_columns *made = &e->made;

    uint8_t *out = hearth_arena_alloc(e->arena, plan->ids.n_bytes + HEARTH_RUN_SLACK);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(err, e->arena);
    }

    size_t n_bytes = hearth_ids_write_bits(e->ids, made->n, plan->ids.shapes, out);
    made->ids = hearth_str_n((const char *)out, n_bytes);
    for (uint32_t k = 0; k < made->n_types; k++) {
        struct hearth_value_list list = list_values(e, k);
        const struct bit_column *column = &plan->values[k];
        if (made->vals[k].p != NULL) {
            continue; /* a multiple */
        }

        out = hearth_arena_alloc(e->arena, column->n_bytes + HEARTH_RUN_SLACK);
        if (out == NULL) {
            return HEARTH_FAIL_ARENA(err, e->arena);
        }

        n_bytes = column->form == HEARTH_VALUES_BYTES
                      ? write_value_bytes(e, k, true, out)
                      : hearth_values_write_bits(&list, column->form, column->n_above,
                                                 column->shapes, out);
        made->vals[k] = hearth_str_n((const char *)out, n_bytes);
    }

    return HEARTH_OK;
}

static enum hearth_status begin_encoding(struct encoding *e, struct hearth_err *err)
{
    uint32_t n_types = e->made.n_types;

    e->made.vals = hearth_arena_array(e->arena, n_types, sizeof e->made.vals[0]);
    e->made.totals = hearth_arena_array(e->arena, n_types, sizeof e->made.totals[0]);
    e->bits = hearth_arena_array(e->arena, n_types, sizeof e->bits[0]);
    if (e->made.vals == NULL || e->made.totals == NULL || e->bits == NULL) {
        return HEARTH_FAIL_ARENA(err, e->arena);
    }

    return write_multiples(e, err);
}

enum hearth_status hearth_columns_encode(const uint32_t *ids, const int64_t *values, uint32_t n,
                                         uint32_t n_types, struct hearth_arena *arena,
                                         struct hearth_columns *ret, struct hearth_err *err)
{
    assert(n_types > 0 || n == 0);
    assert(n < 2 || ids[0] < ids[n - 1]);
    assert(arena != NULL && ret != NULL);

    struct encoding e = {ids, values, NULL, arena, {.n = n, .n_types = n_types}};
    struct bit_plan plan;

    HEARTH_TRY(begin_encoding(&e, err));
    if (n > 0 && !make_bit_plan(&e, &plan)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(n == 0 || are_bytes_smaller(&e, &plan) ? encode_bytes(&e, err)
                                                      : encode_bits(&e, &plan, err));
    *ret = e.made;

    return HEARTH_OK;
}

enum hearth_status hearth_columns_encode_bytes(const uint32_t *ids, const int64_t *values,
                                               uint32_t n, uint32_t n_types,
                                               struct hearth_arena *arena,
                                               struct hearth_columns *ret, struct hearth_err *err)
{
    assert(n_types > 0 || n == 0);
    assert(n < 2 || ids[0] < ids[n - 1]);
    assert(arena != NULL && ret != NULL);

    struct encoding e = {ids, values, NULL, arena, {.n = n, .n_types = n_types}};

    HEARTH_TRY(begin_encoding(&e, err));
    HEARTH_TRY(encode_bytes(&e, err));
    *ret = e.made;

    return HEARTH_OK;
}

/* ---- merge ---- */

/* Source of a sample's value. */
enum merge_mode {
    FLAGGED, /* column 0: 1 if the id's flag is set, otherwise the next value of the column */
    SCALED,  /* as FLAGGED, times a factor */
    PLAIN,   /* always the next value of the column */
};

struct merge {
    const uint8_t *ids, *ids_end;
    const uint8_t *vals, *vals_end;
    uint64_t factor; /* SCALED only */
    uint64_t id;     /* id of the previous sample, below n_acc after the first one */
    int64_t *acc;
    size_t n_acc;
};

HEARTH_ALWAYS_INLINE uint64_t load_le64(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

#define CONTINUED 0x8080808080808080ull /* the continuation bits of eight varint bytes */

/*
 * A value and the position after it; `at` is NULL if the bytes are damaged. Passed by value, so
 * that its members stay in registers.
 */
struct taken_value {
    const uint8_t *at;
    uint64_t value;
};

/*
 * Decode one varint: without a loop if eight bytes are readable and it ends within them, otherwise
 * by the checked reader.
 */
static struct taken_value take_varint(const uint8_t *at, const uint8_t *end)
{
    struct taken_value taken = {NULL, 0};
    uint64_t word = end - at >= 8 ? load_le64(at) : CONTINUED;
    uint64_t ends = ~word & CONTINUED;

    if (HEARTH_UNLIKELY(ends == 0)) {
        if (hearth_varint_read(&at, end, &taken.value) && taken.value <= INT64_MAX) {
            taken.at = at;
        }
        return taken;
    }

    /*
     * Keep the bytes up to the first end, then remove the eighth bits: join 1, 2, then 4 bytes at a
     * time.
     */
    word &= ends ^ (ends - 1);
    word &= ~CONTINUED;
    word = (word & 0x007f007f007f007full) | (word & 0x7f007f007f007f00ull) >> 1;
    word = (word & 0x00003fff00003fffull) | (word & 0x3fff00003fff0000ull) >> 2;
    taken.value = (word & 0x0fffffffull) | (word & 0x0fffffff00000000ull) >> 4;
    taken.at = at + (size_t)(__builtin_ctzll(ends) + 1) / 8;

    return taken;
}

/*
 * Add one sample; `word` is its entry in the ids column. One byte is readable at m->vals even after
 * its end (the caller checks afterwards whether that happened). Returns OK, CORRUPT or OUT_OF_RANGE
 * without a message; hearth_columns_merge sets it.
 */
HEARTH_ALWAYS_INLINE enum hearth_status add_sample(enum merge_mode mode, struct merge *m,
                                                   uint64_t word)
{
    /*
     * Select the value by arithmetic: a branch on `one` would be mispredicted for about every
     * fourth sample.
     */
    uint64_t one = mode == PLAIN ? 0 : word & 1;
    uint64_t value = (*m->vals & (one - 1)) | one;

    if (HEARTH_LIKELY(value < 0x80)) {
        m->vals += 1 - one;
    } else {
        struct taken_value taken = take_varint(m->vals, m->vals_end);
        if (taken.at == NULL) {
            return HEARTH_CORRUPT;
        }
        m->vals = taken.at;
        value = taken.value;
    }

    /* id < n_acc before, and word / 2 < 2^63: the sum does not wrap. */
    m->id += word >> 1;
    if (HEARTH_UNLIKELY(m->id >= m->n_acc)) {
        return HEARTH_CORRUPT;
    }

    int64_t sum;
    if (mode == SCALED && (__builtin_mul_overflow(value, m->factor, &value) || value > INT64_MAX)) {
        return HEARTH_CORRUPT;
    }

    if (HEARTH_UNLIKELY(__builtin_add_overflow(m->acc[m->id], (int64_t)value, &sum))) {
        return HEARTH_OUT_OF_RANGE;
    }

    m->acc[m->id] = sum;

    return HEARTH_OK;
}

/*
 * Add four samples whose ids take one byte each. About half of the groups of a usual profile are
 * such, so testing four at once leaves a quarter of the mispredicted branches.
 */
HEARTH_ALWAYS_INLINE enum hearth_status add_four_short(enum merge_mode mode, struct merge *m,
                                                       uint64_t eight)
{
    HEARTH_TRY(add_sample(mode, m, eight & 0x7f));
    HEARTH_TRY(add_sample(mode, m, eight >> 8 & 0x7f));
    HEARTH_TRY(add_sample(mode, m, eight >> 16 & 0x7f));
    HEARTH_TRY(add_sample(mode, m, eight >> 24 & 0x7f));
    m->ids += 4;
    return HEARTH_OK;
}

/* The entry that starts at `bit` of `eight` and takes one or two bytes. */
HEARTH_ALWAYS_INLINE uint64_t extract_entry(uint64_t eight, unsigned bit)
{
    uint64_t at = eight >> bit;
    uint64_t two = 0 - (at >> 7 & 1);
    return (at & 0x7f) | (at >> 1 & 0x3f80 & two);
}

/*
 * Add four samples whose ids take one or two bytes, without a branch on the length. No two
 * continuation bytes of `eight` are adjacent, so at least four of its bytes end an id.
 */
HEARTH_ALWAYS_INLINE enum hearth_status add_four(enum merge_mode mode, struct merge *m,
                                                 uint64_t eight)
{
    uint64_t ends = ~eight & CONTINUED;
    unsigned start = 0;

    HEARTH_TRY(add_sample(mode, m, extract_entry(eight, start)));
    start = (unsigned)__builtin_ctzll(ends) + 1;
    ends &= ends - 1;
    HEARTH_TRY(add_sample(mode, m, extract_entry(eight, start)));
    start = (unsigned)__builtin_ctzll(ends) + 1;
    ends &= ends - 1;
    HEARTH_TRY(add_sample(mode, m, extract_entry(eight, start)));
    start = (unsigned)__builtin_ctzll(ends) + 1;
    ends &= ends - 1;
    HEARTH_TRY(add_sample(mode, m, extract_entry(eight, start)));
    m->ids += ((unsigned)__builtin_ctzll(ends) + 1) / 8;

    return HEARTH_OK;
}

/* Add one sample with an id of any length. */
HEARTH_ALWAYS_INLINE enum hearth_status add_any_sample(enum merge_mode mode, struct merge *m)
{
    uint64_t word;
    if (!hearth_varint_read(&m->ids, m->ids_end, &word)) {
        return HEARTH_CORRUPT;
    }
    return add_sample(mode, m, word);
}

/* Most bytes that the values of four samples take. */
#define FOUR_VALUES 40

/* Add all samples. Inlined once per mode, so that the mode costs nothing in the loop. */
HEARTH_ALWAYS_INLINE enum hearth_status merge_all(enum merge_mode mode, struct merge m)
{
    /* A copy of the end of the values, after which bytes are readable. */
    uint8_t tail[FOUR_VALUES + 8] = {0};
    bool in_tail = false;

    while (m.ids < m.ids_end) {
        if (m.vals_end - m.vals < FOUR_VALUES && !in_tail) {
            size_t n = (size_t)(m.vals_end - m.vals);
            memcpy(tail, m.vals, n);
            m.vals = tail;
            m.vals_end = tail + n;
            in_tail = true;
        }

        enum hearth_status status;
        uint64_t eight = m.ids_end - m.ids >= 8 ? load_le64(m.ids) : CONTINUED;
        uint64_t continued = eight & CONTINUED;
        if ((continued & 0x80808080) == 0) {
            status = add_four_short(mode, &m, eight);
        } else if (HEARTH_LIKELY((continued & continued >> 8) == 0)) {
            status = add_four(mode, &m, eight);
        } else {
            status = add_any_sample(mode, &m);
        }

        if (HEARTH_UNLIKELY(status != HEARTH_OK)) {
            return status;
        }
        if (HEARTH_UNLIKELY(m.vals > m.vals_end)) {
            return HEARTH_CORRUPT;
        }
    }

    bool bound_is_last = m.n_acc == 0 || m.id + 1 == m.n_acc;

    return m.vals == m.vals_end && bound_is_last ? HEARTH_OK : HEARTH_CORRUPT;
}

/* Read the bound before the ids: 0 for an empty column, otherwise at least 1. */
static bool read_bound(const uint8_t **at, const uint8_t *end, uint32_t *ret_bound)
{
    uint64_t bound = 0;
    if (*at < end && (!hearth_varint_read(at, end, &bound) || bound == 0 || bound > UINT32_MAX)) {
        return false;
    }
    *ret_bound = (uint32_t)bound;
    return true;
}

/* Read the factor of a column that is stored as one. */
static bool read_factor(struct hearth_str val, uint64_t *ret)
{
    const uint8_t *at = (const uint8_t *)val.p + 1, *end = (const uint8_t *)val.p + val.n;
    return hearth_varint_read(&at, end, ret) && at == end;
}

static enum hearth_status merge_in_mode(struct hearth_str ids, struct hearth_str val,
                                        struct hearth_str val0, bool is_column0, int64_t *acc,
                                        size_t n_acc)
{
    struct merge m = {.acc = acc, .factor = 1};

    /* Whose values are merged, and times what? */
    bool is_multiple = hearth_columns_is_multiple(val);
    if (is_multiple && (is_column0 || !read_factor(val, &m.factor))) {
        return HEARTH_CORRUPT;
    }

    val = is_multiple ? val0 : val;
    if (val.n == 0) {
        return HEARTH_CORRUPT;
    }

    if (hearth_ids_in_bits(ids)) {
        return hearth_columns_merge_bits(ids, val, m.factor, acc, n_acc);
    }

    m.ids = (const uint8_t *)ids.p;
    m.ids_end = m.ids + ids.n;
    uint32_t bound;
    if (!read_bound(&m.ids, m.ids_end, &bound) || bound > n_acc) {
        return HEARTH_CORRUPT;
    }

    if (val.p[0] != HEARTH_VALUES_BYTES) {
        return HEARTH_CORRUPT;
    }

    m.n_acc = bound;
    m.vals = (const uint8_t *)val.p + 1;
    m.vals_end = (const uint8_t *)val.p + val.n;
    if (is_multiple) {
        return merge_all(SCALED, m);
    }

    return is_column0 ? merge_all(FLAGGED, m) : merge_all(PLAIN, m);
}

enum hearth_status hearth_columns_merge(struct hearth_str ids, struct hearth_str val,
                                        struct hearth_str val0, bool is_column0, int64_t *acc,
                                        size_t n_acc, struct hearth_err *err)
{
    assert(acc != NULL || n_acc == 0);

    enum hearth_status status = merge_in_mode(ids, val, val0, is_column0, acc, n_acc);

    if (HEARTH_LIKELY(status == HEARTH_OK)) {
        return HEARTH_OK;
    }

    if (status == HEARTH_OUT_OF_RANGE) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "the sum of a stack trace's values overflows 64 bits");
    }

    return HEARTH_FAIL(
        err, HEARTH_CORRUPT,
        "sample columns are damaged (%zu bytes of ids, %zu of values, %zu stack traces)", ids.n,
        val.n, n_acc);
}

bool hearth_columns_id_bound(struct hearth_str ids, uint32_t *ret_bound)
{
    assert(ret_bound != NULL);

    const uint8_t *at = (const uint8_t *)ids.p, *end = at + ids.n;
    if (hearth_ids_in_bits(ids) && ++at == end) {
        return false;
    }
    return read_bound(&at, end, ret_bound);
}
