/*
 * sample_attr_columns.c -- attributes of samples by column (layout in sample_attrs.c).
 *
 * Both the stored and the returned form are a table of distinct values and an index for each
 * sample, so a caller processes each distinct value once, not once per sample. Columns that are not
 * requested are skipped by counting the bytes that end a varint, eight at a time.
 */
#include "hearth/base/varint.h"
#include "hearth/model/sample_attrs.h"

#include <assert.h>

#define VERSION   1
#define N_ATTRS   HEARTH_ATTR_TIMESTAMP
#define CONTINUED UINT64_C(0x8080808080808080)
#define ONES      UINT64_C(0x0101010101010101)

struct attr_column_reader {
    const uint8_t *at, *end;
    size_t n;
    struct hearth_arena *arena;
};

static enum hearth_status fail_attr_columns(const char *what, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes are damaged: %s", what);
}

static size_t count_column_bytes_left(const struct attr_column_reader *r)
{
    return (size_t)(r->end - r->at);
}

/* Skip n varints: count the bytes with a clear eighth bit. */
static bool skip_varints(struct attr_column_reader *r, size_t n)
{
    while (n >= 8 && count_column_bytes_left(r) >= 8) {
        uint64_t word;
        memcpy(&word, r->at, sizeof word);

        /* The multiplication sums eight bytes of 0 or 1. */
        n -= (size_t)(((~word & CONTINUED) >> 7) * ONES >> 56);
        r->at += 8;
    }

    while (n > 0 && r->at < r->end) {
        n -= *r->at++ < 0x80;
    }

    return n == 0;
}

static bool take_stack_ids(struct attr_column_reader *r, uint32_t *stack_ids)
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

static bool take_column_values(struct attr_column_reader *r, int64_t *values)
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

static enum hearth_status take_samples(struct attr_column_reader *r,
                                       const struct hearth_attr_wish *wish, uint64_t n_types,
                                       struct hearth_attr_columns *ret, struct hearth_err *err)
{
    /* The requested columns are stack ids and one value column; the others are skipped. */
    ret->values = hearth_arena_array(r->arena, r->n, sizeof ret->values[0]);
    ret->stack_ids =
        wish->stacks ? hearth_arena_array(r->arena, r->n, sizeof ret->stack_ids[0]) : NULL;
    if (ret->values == NULL || (wish->stacks && ret->stack_ids == NULL)) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    if (!(wish->stacks ? take_stack_ids(r, ret->stack_ids) : skip_varints(r, r->n))) {
        return fail_attr_columns("stack traces", err);
    }

    if (wish->column >= n_types) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "sample attributes lack value column %u",
                           (unsigned)wish->column);
    }

    /* n * n_types values have at least one byte each: no overflow. */
    if (!skip_varints(r, r->n * wish->column) || !take_column_values(r, ret->values) ||
        !skip_varints(r, r->n * (size_t)(n_types - wish->column - 1))) {
        return fail_attr_columns("values", err);
    }

    return HEARTH_OK;
}

/*
 * Read which samples have the attribute: *ret_bitmap, NULL if all have it; *ret_n is their number.
 */
static bool take_presence_counted(struct attr_column_reader *r, const uint8_t **ret_bitmap,
                                  size_t *ret_n)
{
    if (count_column_bytes_left(r) == 0 || *r->at > 1) {
        return false;
    }

    *ret_bitmap = NULL;
    *ret_n = r->n;
    if (*r->at++ == 1) {
        size_t n_bytes = r->n / 8 + (r->n % 8 != 0);
        if (count_column_bytes_left(r) < n_bytes) {
            return false;
        }

        *ret_bitmap = r->at;
        *ret_n = 0;
        for (size_t i = 0; i < n_bytes; i++) {
            /* Bits after the last sample are ignored. */
            bool is_last = i + 1 == n_bytes && r->n % 8 != 0;
            unsigned bits = is_last ? r->at[i] & ((1u << r->n % 8) - 1) : r->at[i];
            *ret_n += (size_t)__builtin_popcount(bits);
        }

        r->at += n_bytes;
    }

    return true;
}

static uint64_t load_be64(struct attr_column_reader *r)
{
    uint64_t value;
    memcpy(&value, r->at, sizeof value);
    r->at += sizeof value;
    return __builtin_bswap64(value);
}

static bool is_text_attr(enum hearth_attr attr)
{
    return attr == HEARTH_ATTR_SPAN_NAME || attr == HEARTH_ATTR_ENDPOINT ||
           attr == HEARTH_ATTR_THREAD_NAME;
}

/* Read one value of a table; ret may be NULL. */
static bool take_table_value(struct attr_column_reader *r, enum hearth_attr attr,
                             struct hearth_attr_value *ret)
{
    struct hearth_attr_value value = {0};

    if (is_text_attr(attr)) {
        uint64_t n;
        if (!hearth_varint_read(&r->at, r->end, &n) || n == 0 || n > count_column_bytes_left(r)) {
            return false;
        }
        value.text = hearth_str_n((const char *)r->at, (size_t)n);
        r->at += n;
    } else {
        if (count_column_bytes_left(r) < (attr == HEARTH_ATTR_TRACE_ID ? 16u : 8u)) {
            return false;
        }
        value.hi = attr == HEARTH_ATTR_TRACE_ID ? load_be64(r) : 0;
        value.lo = load_be64(r);
    }

    if (ret != NULL) {
        *ret = value;
    }

    return true;
}

/* Read the index of each sample with the attribute; the others get 0. */
static bool take_index(struct attr_column_reader *r, const uint8_t *bitmap, size_t n_values,
                       uint32_t *index)
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

/* Read an attribute that some sample has; column NULL: it is not requested. */
static enum hearth_status take_attr_column(struct attr_column_reader *r, enum hearth_attr attr,
                                           struct hearth_attr_column *column,
                                           struct hearth_err *err)
{
    const uint8_t *bitmap;
    size_t n_present;
    uint64_t n_values = 0;

    if (!take_presence_counted(r, &bitmap, &n_present)) {
        return fail_attr_columns("which samples have an attribute", err);
    }

    if (attr == HEARTH_ATTR_TIMESTAMP) {
        return skip_varints(r, n_present) ? HEARTH_OK : fail_attr_columns("timestamps", err);
    }

    /* The table of distinct values. */
    if (!hearth_varint_read(&r->at, r->end, &n_values) ||
        n_values > count_column_bytes_left(r) / 2) {
        return fail_attr_columns("size of a table", err);
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
        if (!take_table_value(r, attr, column == NULL ? NULL : &column->values[i])) {
            return fail_attr_columns("a distinct value", err);
        }
    }

    /* The index of each sample. */
    if (!(column == NULL ? skip_varints(r, n_present)
                         : take_index(r, bitmap, (size_t)n_values, column->index))) {
        return fail_attr_columns("index of a value", err);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_sample_attrs_columns(struct hearth_str bytes,
                                               const struct hearth_attr_wish *wish,
                                               struct hearth_arena *arena,
                                               struct hearth_attr_columns *ret,
                                               struct hearth_err *err)
{
    assert(wish != NULL && arena != NULL && ret != NULL);

    *ret = (struct hearth_attr_columns){0};
    if (bytes.n == 0) {
        return HEARTH_OK;
    }

    struct attr_column_reader r = {(const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n, 0,
                                   arena};
    uint64_t n, n_types, mask;
    if (*r.at++ != VERSION) {
        return fail_attr_columns("unknown version", err);
    }

    /* Every sample takes at least one byte for its stack and one for each value. */
    if (!hearth_varint_read(&r.at, r.end, &n) || n == 0 ||
        !hearth_varint_read(&r.at, r.end, &n_types) || n > count_column_bytes_left(&r) ||
        n_types > count_column_bytes_left(&r) / n) {
        return fail_attr_columns("number of samples", err);
    }

    /* The samples, then the attributes that some of them have. */
    r.n = (size_t)n;
    HEARTH_TRY(take_samples(&r, wish, n_types, ret, err));
    if (!hearth_varint_read(&r.at, r.end, &mask) || mask >> N_ATTRS != 0) {
        return fail_attr_columns("unknown attributes", err);
    }

    for (int attr = 1; attr <= N_ATTRS; attr++) {
        bool wanted = attr < N_ATTRS && (wish->attrs >> attr & 1) != 0;
        if ((mask >> (attr - 1) & 1) != 0) {
            HEARTH_TRY(
                take_attr_column(&r, (enum hearth_attr)attr, wanted ? &ret->of[attr] : NULL, err));
        }
    }

    if (r.at != r.end) {
        return fail_attr_columns("bytes are left over", err);
    }

    ret->n = r.n;

    return HEARTH_OK;
}
