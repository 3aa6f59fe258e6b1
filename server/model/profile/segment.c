/*
 * segment.c -- many stored profiles as columns.
 *
 *   byte      WHOLE_NOS or SHORT_NOS
 *   varint    n rows
 *   numbers   series_id, writer_id, ts, duration, period, profile_no, n_samples, n_types
 *   for each value column k, of the rows with that many columns:
 *     varints   length of vals[k] of each row
 *     varints   total[k] of each row minus its expected value (guess_total), zigzag
 *   varints   length of ids of each row
 *   numbers   length of attrs of each row, plus one; 0: the row has no attrs
 *   bytes     ids of all rows, vals[0] of all rows, vals[1] .., attrs of all rows
 *
 * Numbers are one column: a byte that tells how often neighbours were subtracted from each other
 * (0, 1, 2), or CONSTANT; then zigzag varints, one for each row, or one for all. Differences wrap
 * around at 64 bits, so that every column has all forms; the shortest form is used.
 *
 * SHORT_NOS: each profile_no is stored without its minute (hearth_profile_no_base), which is that
 * of the time. WHOLE_NOS: numbers are stored whole, if one of them has no minute or another one.
 *
 * Each row has at least one byte of its own (the length of ids), and each of its value columns two.
 * That bounds the memory that a reader allocates.
 */
#include "hearth/model/segment.h"

#include "hearth/base/varint.h"
#include "hearth/model/columns.h"
#include "hearth/model/profile_id.h"

#include <assert.h>

enum {
    WHOLE_NOS = 1,
    SHORT_NOS = 2,
    MAX_ORDER = 2, /* neighbours are subtracted at most this often */
    CONSTANT = 3,
};

enum field {
    SERIES,
    WRITER,
    TIME,
    DURATION,
    PERIOD,
    PROFILE_NO,
    SAMPLES,
    TYPES,
    N_FIELDS,
    SHORT_NO = N_FIELDS, /* instead of PROFILE_NO */
};

static int64_t get_field(const struct hearth_stored_row *row, enum field field)
{
    switch (field) {
    case SERIES:
        return row->series_id;
    case WRITER:
        return row->writer_id;
    case TIME:
        return row->ts_ns;
    case DURATION:
        return row->duration_ns;
    case PERIOD:
        return row->period;
    case PROFILE_NO:
        return row->profile_no;
    case SHORT_NO:
        return row->profile_no - hearth_profile_no_base(row->ts_ns);
    case SAMPLES:
        return row->n_samples;
    default:
        break;
    }

    return row->n_types;
}

/* False if the value does not fit the field. */
static bool set_field(struct hearth_stored_row *row, enum field field, int64_t value)
{
    switch (field) {
    case SERIES:
        row->series_id = (int32_t)value;
        return value == row->series_id;
    case WRITER:
        row->writer_id = (int32_t)value;
        return value == row->writer_id;
    case TIME:
        row->ts_ns = value;
        return true;
    case DURATION:
        row->duration_ns = value;
        return true;
    case PERIOD:
        row->period = value;
        return true;
    case PROFILE_NO:
        row->profile_no = value;
        return true;
    case SAMPLES:
        row->n_samples = (uint32_t)value;
        return value == row->n_samples;
    default:
        break;
    }

    row->n_types = (uint32_t)value;

    return value == row->n_types;
}

/*
 * The most likely total k of a row: the sum of its values if all were 1, or total 0 times the
 * factor in vals[k].
 */
static uint64_t guess_total(const struct hearth_stored_row *row, uint32_t k, struct hearth_str val)
{
    if (k == 0) {
        return row->n_samples;
    }

    if (!hearth_columns_is_multiple(val)) {
        return 0;
    }

    uint64_t factor = 0;
    const uint8_t *at = (const uint8_t *)val.p + 1, *end = (const uint8_t *)val.p + val.n;
    if (!hearth_varint_read(&at, end, &factor)) {
        return 0;
    }

    return factor * (uint64_t)row->totals[0];
}

/* ---- encode ---- */

/* Subtracts neighbours `order` times; last[i] is the previous i-th difference. */
struct differ {
    unsigned order;
    uint64_t last[MAX_ORDER];
};

static int64_t take_difference(struct differ *d, int64_t value)
{
    uint64_t difference = (uint64_t)value;
    for (unsigned i = 0; i < d->order; i++) {
        uint64_t here = difference;
        difference -= d->last[i];
        d->last[i] = here;
    }
    return (int64_t)difference;
}

typedef int64_t number_fn(const struct hearth_stored_row *row, int field);

static int64_t get_field_number(const struct hearth_stored_row *row, int field)
{
    return get_field(row, (enum field)field);
}

static int64_t get_attrs_number(const struct hearth_stored_row *row, int field)
{
    (void)field;
    return row->attrs.p == NULL ? 0 : (int64_t)row->attrs.n + 1;
}

static void encode_numbers(const struct hearth_stored_row *rows, size_t n, number_fn *number,
                           int field, struct hearth_buf *out)
{
    bool is_constant = true;
    size_t sizes[MAX_ORDER + 1] = {0};
    struct differ d[MAX_ORDER + 1] = {{.order = 0}, {.order = 1}, {.order = 2}};

    /* Measure all forms in one pass. */
    for (size_t i = 0; i < n; i++) {
        int64_t value = number(&rows[i], field);
        is_constant = is_constant && value == number(&rows[0], field);
        for (unsigned order = 0; order <= MAX_ORDER; order++) {
            sizes[order] += hearth_varint_size(hearth_zigzag(take_difference(&d[order], value)));
        }
    }

    /* Write the shortest one. */
    if (is_constant && n > 0) {
        hearth_buf_byte(out, CONSTANT);
        hearth_buf_varint(out, hearth_zigzag(number(&rows[0], field)));
        return;
    }

    unsigned best = 0;
    for (unsigned order = 1; order <= MAX_ORDER; order++) {
        best = sizes[order] < sizes[best] ? order : best;
    }

    struct differ again = {.order = best};
    hearth_buf_byte(out, (unsigned char)best);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_varint(out, hearth_zigzag(take_difference(&again, number(&rows[i], field))));
    }
}

/* True if the numbers of all rows have the minute of their times. */
static bool have_short_nos(const struct hearth_stored_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t base = hearth_profile_no_base(rows[i].ts_ns);
        struct hearth_profile_place place;
        if (!hearth_profile_no_place(rows[i].profile_no, &place) ||
            base != hearth_profile_no_base(place.from_ns)) {
            return false;
        }
    }

    return true;
}

/* Lengths of vals, and totals as differences to the expected ones, column by column. */
static void encode_lengths_and_totals(const struct hearth_stored_row *rows, size_t n,
                                      struct hearth_buf *out)
{
    bool more = true;

    for (uint32_t k = 0; more; k++) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            if (k < rows[i].n_types) {
                hearth_buf_varint(out, rows[i].vals[k].n);
                more = more || k + 1 < rows[i].n_types;
            }
        }

        for (size_t i = 0; i < n; i++) {
            if (k < rows[i].n_types) {
                uint64_t guess = guess_total(&rows[i], k, rows[i].vals[k]);
                uint64_t rest = (uint64_t)rows[i].totals[k] - guess;
                hearth_buf_varint(out, hearth_zigzag((int64_t)rest));
            }
        }
    }
}

static void encode_row_bytes(const struct hearth_stored_row *rows, size_t n, struct hearth_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_str(out, rows[i].ids);
    }

    bool more = true;
    for (uint32_t k = 0; more; k++) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            if (k < rows[i].n_types) {
                hearth_buf_str(out, rows[i].vals[k]);
                more = more || k + 1 < rows[i].n_types;
            }
        }
    }

    for (size_t i = 0; i < n; i++) {
        hearth_buf_str(out, rows[i].attrs);
    }
}

enum hearth_status hearth_segment_encode(const struct hearth_stored_row *rows, size_t n,
                                         struct hearth_buf *out, struct hearth_err *err)
{
    assert((rows != NULL || n == 0) && out != NULL);

    size_t start = out->n;

    for (size_t i = 0; i < n; i++) {
        if (rows[i].n_types > HEARTH_SEGMENT_MAX_TYPES) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "a profile has %u value columns, more than %u",
                               (unsigned)rows[i].n_types, HEARTH_SEGMENT_MAX_TYPES);
        }
    }

    /* The numbers of all rows. */
    bool short_nos = have_short_nos(rows, n);
    hearth_buf_byte(out, short_nos ? SHORT_NOS : WHOLE_NOS);
    hearth_buf_varint(out, n);
    for (int field = 0; field < N_FIELDS; field++) {
        int stored = field == PROFILE_NO && short_nos ? SHORT_NO : field;
        encode_numbers(rows, n, get_field_number, stored, out);
    }

    /* The lengths of all byte columns. */
    encode_lengths_and_totals(rows, n, out);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_varint(out, rows[i].ids.n);
    }

    encode_numbers(rows, n, get_attrs_number, 0, out);

    /* Their bytes. */
    encode_row_bytes(rows, n, out);
    if (hearth_buf_failed(out)) {
        out->n = start;
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a segment of %zu profiles", n);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_segment_encode_heads(const struct hearth_stored_row *rows, size_t n,
                                               struct hearth_arena *arena, struct hearth_buf *out,
                                               struct hearth_err *err)
{
    assert((rows != NULL || n == 0) && arena != NULL && out != NULL);

    struct hearth_stored_row *heads = hearth_arena_array(arena, n, sizeof heads[0]);
    if (heads == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* A column that is a multiple is a few bytes, and its total is expected from them. */
    for (size_t i = 0; i < n; i++) {
        struct hearth_str *vals = hearth_arena_calloc(arena, rows[i].n_types, sizeof vals[0]);
        if (vals == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        for (uint32_t k = 1; k < rows[i].n_types; k++) {
            vals[k] = hearth_columns_is_multiple(rows[i].vals[k]) ? rows[i].vals[k]
                                                                  : (struct hearth_str){0};
        }
        heads[i] = rows[i];
        heads[i].ids = heads[i].attrs = (struct hearth_str){0};
        heads[i].vals = vals;
    }

    return hearth_segment_encode(heads, n, out, err);
}

/* ---- decode ---- */

struct segment_reader {
    const uint8_t *at, *end;
    struct hearth_stored_row *rows;
    size_t n;
    struct hearth_str *vals; /* of all rows, row after row */
    int64_t *totals;
};

static size_t count_bytes_left(const struct segment_reader *r)
{
    return (size_t)(r->end - r->at);
}

static bool read_length(struct segment_reader *r, size_t *ret)
{
    uint64_t length;

    /* A length of more than the remaining bytes is damage, wherever the bytes are. */
    if (!hearth_varint_read(&r->at, r->end, &length) || length > count_bytes_left(r)) {
        return false;
    }

    *ret = (size_t)length;
    return true;
}

/* Decoder of one column of numbers. */
struct numbers {
    unsigned form;            /* 0 to MAX_ORDER, or CONSTANT */
    int64_t constant;         /* CONSTANT only */
    uint64_t sums[MAX_ORDER]; /* previous values of each order */
};

static bool open_numbers(struct segment_reader *r, struct numbers *numbers)
{
    uint64_t word = 0;

    if (r->at == r->end || *r->at > CONSTANT) {
        return false;
    }

    *numbers = (struct numbers){.form = *r->at++};
    if (numbers->form == CONSTANT && !hearth_varint_read(&r->at, r->end, &word)) {
        return false;
    }

    numbers->constant = hearth_unzigzag(word);

    return true;
}

static bool read_number(struct segment_reader *r, struct numbers *numbers, int64_t *ret)
{
    assert(numbers->form <= CONSTANT);

    uint64_t word;

    if (numbers->form == CONSTANT) {
        *ret = numbers->constant;
        return true;
    }

    if (!hearth_varint_read(&r->at, r->end, &word)) {
        return false;
    }

    uint64_t value = (uint64_t)hearth_unzigzag(word);
    for (unsigned i = numbers->form; i-- > 0;) {
        value = numbers->sums[i] += value;
    }

    *ret = (int64_t)value;

    return true;
}

static bool read_field(struct segment_reader *r, enum field field)
{
    struct numbers numbers;
    bool ok = open_numbers(r, &numbers);
    for (size_t i = 0; ok && i < r->n; i++) {
        int64_t value;
        ok = read_number(r, &numbers, &value) && set_field(&r->rows[i], field, value);
    }
    return ok;
}

/*
 * Allocate vals and totals of all rows. *ret_ok is false if the bytes cannot hold so many columns.
 */
static enum hearth_status make_columns(struct segment_reader *r, struct hearth_arena *arena,
                                       bool *ret_ok, struct hearth_err *err)
{
    size_t n_columns = 0;

    for (size_t i = 0; i < r->n; i++) {
        /* At most 2^32 and 2^12: no overflow before the comparison ends the loop. */
        n_columns += r->rows[i].n_types;
        if (r->rows[i].n_types > HEARTH_SEGMENT_MAX_TYPES || n_columns > count_bytes_left(r) / 2) {
            *ret_ok = false;
            return HEARTH_OK;
        }
    }

    r->vals = hearth_arena_array(arena, n_columns, sizeof *r->vals);
    r->totals = hearth_arena_array(arena, n_columns, sizeof *r->totals);
    if (r->vals == NULL || r->totals == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t first = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->rows[i].vals = r->vals + first;
        r->rows[i].totals = r->totals + first;
        first += r->rows[i].n_types;
    }

    return HEARTH_OK;
}

/* The index of column k of the row in vals and totals. */
static size_t find_column(const struct segment_reader *r, size_t row, uint32_t k)
{
    assert(row < r->n && k < r->rows[row].n_types);

    return (size_t)(r->rows[row].vals - r->vals) + k;
}

static bool has_column(const struct segment_reader *r, uint32_t k)
{
    for (size_t i = 0; i < r->n; i++) {
        if (k < r->rows[i].n_types) {
            return true;
        }
    }
    return false;
}

/* Read the lengths of vals, and the differences of totals to the expected ones. */
static bool read_lengths_and_totals(struct segment_reader *r)
{
    for (uint32_t k = 0; has_column(r, k); k++) {
        for (size_t i = 0; i < r->n; i++) {
            if (k < r->rows[i].n_types && !read_length(r, &r->vals[find_column(r, i, k)].n)) {
                return false;
            }
        }

        for (size_t i = 0; i < r->n; i++) {
            uint64_t word;
            if (k < r->rows[i].n_types) {
                if (!hearth_varint_read(&r->at, r->end, &word)) {
                    return false;
                }
                r->totals[find_column(r, i, k)] = hearth_unzigzag(word);
            }
        }
    }

    return true;
}

static bool read_lengths(struct segment_reader *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (!read_length(r, &r->rows[i].ids.n)) {
            return false;
        }
    }

    /* attrs: the length plus one, so that 0 means none. */
    struct numbers numbers;
    bool ok = open_numbers(r, &numbers);
    for (size_t i = 0; ok && i < r->n; i++) {
        int64_t length;
        ok = read_number(r, &numbers, &length) && length >= 0 &&
             (uint64_t)length <= (uint64_t)count_bytes_left(r) + 1;
        if (ok && length > 0) {
            r->rows[i].attrs = hearth_str_n((const char *)r->at, (size_t)length - 1);
        }
    }

    return ok;
}

/* Take the next s->n bytes. */
static bool take_bytes(struct segment_reader *r, struct hearth_str *s)
{
    if (s->n > count_bytes_left(r)) {
        return false;
    }
    s->p = (const char *)r->at;
    r->at += s->n;
    return true;
}

static bool read_row_bytes(struct segment_reader *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (!take_bytes(r, &r->rows[i].ids)) {
            return false;
        }
    }

    for (uint32_t k = 0; has_column(r, k); k++) {
        for (size_t i = 0; i < r->n; i++) {
            if (k < r->rows[i].n_types) {
                size_t at = find_column(r, i, k);
                if (!take_bytes(r, &r->vals[at])) {
                    return false;
                }

                /* The expected total is known now. */
                uint64_t rest = (uint64_t)r->totals[at];
                r->totals[at] = (int64_t)(rest + guess_total(&r->rows[i], k, r->vals[at]));
            }
        }
    }

    for (size_t i = 0; i < r->n; i++) {
        if (r->rows[i].attrs.p != NULL && !take_bytes(r, &r->rows[i].attrs)) {
            return false;
        }
    }

    return r->at == r->end;
}

/* Adds the minutes that the numbers were stored without. */
static void restore_profile_nos(struct segment_reader *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct hearth_stored_row *row = &r->rows[i];
        row->profile_no =
            (int64_t)((uint64_t)row->profile_no + (uint64_t)hearth_profile_no_base(row->ts_ns));
    }
}

static enum hearth_status read_segment(struct segment_reader *r, struct hearth_arena *arena,
                                       bool *ret_ok, struct hearth_err *err)
{
    uint64_t n;

    unsigned format = r->at < r->end ? *r->at++ : 0;
    *ret_ok = (format == SHORT_NOS || format == WHOLE_NOS) &&
              hearth_varint_read(&r->at, r->end, &n) && n <= count_bytes_left(r);
    if (!*ret_ok) {
        return HEARTH_OK;
    }

    /* The rows, with their numbers. */
    r->n = (size_t)n;
    r->rows = hearth_arena_calloc(arena, r->n, sizeof *r->rows);
    if (r->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (int field = 0; *ret_ok && field < N_FIELDS; field++) {
        *ret_ok = read_field(r, (enum field)field);
    }

    if (*ret_ok && format == SHORT_NOS) {
        restore_profile_nos(r);
    }

    /* Their columns: first lengths, then bytes. */
    if (*ret_ok) {
        HEARTH_TRY(make_columns(r, arena, ret_ok, err));
    }

    *ret_ok = *ret_ok && read_lengths_and_totals(r) && read_lengths(r) && read_row_bytes(r);

    return HEARTH_OK;
}

enum hearth_status hearth_segment_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                         struct hearth_stored_row **ret_rows, size_t *ret_n,
                                         struct hearth_err *err)
{
    assert(arena != NULL && ret_rows != NULL && ret_n != NULL);

    struct segment_reader r = {.at = (const uint8_t *)bytes.p};
    bool ok = bytes.n > 0;

    if (ok) {
        r.end = r.at + bytes.n;
        HEARTH_TRY(read_segment(&r, arena, &ok, err));
    }

    if (!ok) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a segment of %zu bytes is damaged near byte %zu",
                           bytes.n, (size_t)(r.at - (const uint8_t *)bytes.p));
    }

    *ret_rows = r.rows;
    *ret_n = r.n;

    return HEARTH_OK;
}
