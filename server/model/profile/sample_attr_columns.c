/*
 * sample_attr_columns.c -- attributes of samples by column (the layout stands in sample_attrs.c).
 *
 * A table of distinct values and a number for each sample is what is stored and what comes out, so
 * who looks values up does it once for each, not for each sample. What is not wanted is stepped
 * over by counting the bytes that end a varint, eight at a time.
 */
#include "hearth/base/varint.h"
#include "hearth/model/sample_attrs.h"

#define VERSION   1
#define N_ATTRS   HEARTH_ATTR_TIMESTAMP
#define CONTINUED UINT64_C(0x8080808080808080)
#define ONES      UINT64_C(0x0101010101010101)

struct reader {
    const uint8_t *at, *end;
    size_t n;
    struct hearth_arena *arena;
};

static enum hearth_status fail_damaged(const char *what, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes are damaged: %s", what);
}

static size_t n_left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

static bool skip_varints(struct reader *r, size_t n)
{
    while (n >= 8 && n_left(r) >= 8) {
        uint64_t word;
        memcpy(&word, r->at, sizeof word);
        n -= (size_t)(((~word & CONTINUED) >> 7) * ONES >>
                      56); /* the sum of eight bytes of 0 and 1 */
        r->at += 8;
    }

    while (n > 0 && r->at < r->end) {
        n -= *r->at++ < 0x80;
    }

    return n == 0;
}

static bool take_stacks(struct reader *r, uint32_t *stack_ids)
{
    int64_t stack_id = 0;

    for (size_t i = 0; i < r->n; i++) {
        uint64_t delta;
        if (!hearth_varint_read(&r->at, r->end, &delta) ||
            __builtin_add_overflow(stack_id, hearth_unzigzag(delta), &stack_id) || stack_id < 0 ||
            stack_id >= UINT32_MAX) {
            return false;
        }
        stack_ids[i] = (uint32_t)stack_id;
    }

    return true;
}

static bool take_values(struct reader *r, int64_t *values)
{
    for (size_t i = 0; i < r->n; i++) {
        uint64_t value;
        if (!hearth_varint_read(&r->at, r->end, &value)) {
            return false;
        }
        values[i] = (int64_t)value;
    }

    return true;
}

static enum hearth_status take_samples(struct reader *r, const struct hearth_attr_wish *wish,
                                       uint64_t n_types, struct hearth_attr_columns *ret,
                                       struct hearth_err *err)
{
    ret->values = hearth_arena_array(r->arena, r->n, sizeof ret->values[0]);
    ret->stack_ids =
        wish->stacks ? hearth_arena_array(r->arena, r->n, sizeof ret->stack_ids[0]) : NULL;
    if (ret->values == NULL || (wish->stacks && ret->stack_ids == NULL)) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    if (!(wish->stacks ? take_stacks(r, ret->stack_ids) : skip_varints(r, r->n))) {
        return fail_damaged("stack traces", err);
    }

    if (wish->column >= n_types) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes lack value column %u",
                           (unsigned)wish->column);
    }

    /* n * n_types values have a byte each, at least: no overflow. */
    if (!skip_varints(r, r->n * wish->column) || !take_values(r, ret->values) ||
        !skip_varints(r, r->n * (size_t)(n_types - wish->column - 1))) {
        return fail_damaged("values", err);
    }

    return HEARTH_OK;
}

/* The bitmap, or NULL when every sample has the attribute; *ret_n: how many have it. */
static bool take_presence(struct reader *r, const uint8_t **ret_bitmap, size_t *ret_n)
{
    if (n_left(r) == 0 || *r->at > 1) {
        return false;
    }

    *ret_bitmap = NULL;
    *ret_n = r->n;
    if (*r->at++ == 1) {
        size_t n_bytes = r->n / 8 + (r->n % 8 != 0);
        if (n_left(r) < n_bytes) {
            return false;
        }
        *ret_bitmap = r->at;
        *ret_n = 0;
        for (size_t i = 0; i < n_bytes; i++) {
            bool is_cut =
                i + 1 == n_bytes && r->n % 8 != 0; /* bits behind the last sample mean nothing */
            unsigned bits = is_cut ? r->at[i] & ((1u << r->n % 8) - 1) : r->at[i];
            *ret_n += (size_t)__builtin_popcount(bits);
        }
        r->at += n_bytes;
    }

    return true;
}

static uint64_t take_be64(struct reader *r)
{
    uint64_t value;
    memcpy(&value, r->at, sizeof value);
    r->at += sizeof value;
    return __builtin_bswap64(value);
}

static bool is_text(enum hearth_attr attr)
{
    return attr == HEARTH_ATTR_SPAN_NAME || attr == HEARTH_ATTR_ENDPOINT ||
           attr == HEARTH_ATTR_THREAD_NAME;
}

/* One value of a table; ret may be NULL. */
static bool take_value(struct reader *r, enum hearth_attr attr, struct hearth_attr_value *ret)
{
    struct hearth_attr_value value = {0};

    if (is_text(attr)) {
        uint64_t n;
        if (!hearth_varint_read(&r->at, r->end, &n) || n == 0 || n > n_left(r)) {
            return false;
        }
        value.text = hearth_str_n((const char *)r->at, (size_t)n);
        r->at += n;
    } else {
        if (n_left(r) < (attr == HEARTH_ATTR_TRACE_ID ? 16u : 8u)) {
            return false;
        }
        value.hi = attr == HEARTH_ATTR_TRACE_ID ? take_be64(r) : 0;
        value.lo = take_be64(r);
    }

    if (ret != NULL) {
        *ret = value;
    }

    return true;
}

static bool take_index(struct reader *r, const uint8_t *bitmap, size_t n_values, uint32_t *index)
{
    for (size_t i = 0; i < r->n; i++) {
        uint64_t number;
        if (bitmap != NULL && (bitmap[i / 8] >> (i % 8) & 1) == 0) {
            index[i] = 0;
            continue;
        }
        if (!hearth_varint_read(&r->at, r->end, &number) || number >= n_values) {
            return false;
        }
        index[i] = (uint32_t)number + 1;
    }

    return true;
}

/* An attribute that some sample has; column NULL: it is not wanted. */
static enum hearth_status take_attr(struct reader *r, enum hearth_attr attr,
                                    struct hearth_attr_column *column, struct hearth_err *err)
{
    const uint8_t *bitmap;
    size_t n_present;
    uint64_t n_values = 0;

    if (!take_presence(r, &bitmap, &n_present)) {
        return fail_damaged("which samples have an attribute", err);
    }

    if (attr == HEARTH_ATTR_TIMESTAMP) {
        return skip_varints(r, n_present) ? HEARTH_OK : fail_damaged("timestamps", err);
    }

    if (!hearth_varint_read(&r->at, r->end, &n_values) || n_values > n_left(r) / 2) {
        return fail_damaged("size of a table", err);
    }

    if (column != NULL) {
        column->n_values = (size_t)n_values;
        column->values = hearth_arena_array(r->arena, (size_t)n_values, sizeof column->values[0]);
        column->index = hearth_arena_array(r->arena, r->n, sizeof column->index[0]);
        if (column->values == NULL || column->index == NULL) {
            return HEARTH_FAIL_ARENA(err, r->arena);
        }
    }

    for (uint64_t i = 0; i < n_values; i++) {
        if (!take_value(r, attr, column == NULL ? NULL : &column->values[i])) {
            return fail_damaged("a distinct value", err);
        }
    }

    if (!(column == NULL ? skip_varints(r, n_present)
                         : take_index(r, bitmap, (size_t)n_values, column->index))) {
        return fail_damaged("index of a value", err);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_sample_attrs_columns(struct hearth_str bytes,
                                               const struct hearth_attr_wish *wish,
                                               struct hearth_arena *arena,
                                               struct hearth_attr_columns *ret,
                                               struct hearth_err *err)
{
    *ret = (struct hearth_attr_columns){0};
    if (bytes.n == 0) {
        return HEARTH_OK;
    }

    struct reader r = {(const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n, 0, arena};
    uint64_t n, n_types, mask;
    if (*r.at++ != VERSION) {
        return fail_damaged("unknown version", err);
    }

    /* Every sample takes a byte for its stack and one for each value. */
    if (!hearth_varint_read(&r.at, r.end, &n) || n == 0 ||
        !hearth_varint_read(&r.at, r.end, &n_types) || n > n_left(&r) || n_types > n_left(&r) / n) {
        return fail_damaged("number of samples", err);
    }

    r.n = (size_t)n;
    HEARTH_TRY(take_samples(&r, wish, n_types, ret, err));
    if (!hearth_varint_read(&r.at, r.end, &mask) || mask >> N_ATTRS != 0) {
        return fail_damaged("unknown attributes", err);
    }

    for (int attr = 1; attr <= N_ATTRS; attr++) {
        bool wanted = attr < N_ATTRS && (wish->attrs >> attr & 1) != 0;
        if ((mask >> (attr - 1) & 1) != 0) {
            HEARTH_TRY(take_attr(&r, (enum hearth_attr)attr, wanted ? &ret->of[attr] : NULL, err));
        }
    }

    if (r.at != r.end) {
        return fail_damaged("bytes are left over", err);
    }

    ret->n = r.n;

    return HEARTH_OK;
}
