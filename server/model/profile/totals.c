/*
 * totals.c -- times and totals of many profiles, packed (layout in block.h).
 *
 * Profiles arrive at a steady pace, so the change of the distance is near 0. Clocks and values have
 * round units, so a common divisor removes trailing zeros once instead of from each number.
 */
#include "hearth/base/varint.h"
#include "hearth/model/block.h"

#include "profile/gcd.h"

#include <assert.h>

#define MAX_VARINT 10u

/*
 * Subtract t0. *ret_scale is a common divisor of the distances. False if times do not ascend, or
 * distances do not fit.
 */
static bool make_relative(const int64_t *ts_ns, size_t n, int64_t t0_ns, int64_t *ret,
                          uint64_t *ret_scale)
{
    uint64_t scale = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t distance;
        if (__builtin_sub_overflow(ts_ns[i], t0_ns, &ret[i]) ||
            (i > 0 && (__builtin_sub_overflow(ret[i], ret[i - 1], &distance) || distance < 0))) {
            return false;
        }
        if (scale != 1) {
            uint64_t size = ret[i] < 0 ? 0 - (uint64_t)ret[i] : (uint64_t)ret[i];
            scale = hearth_gcd(size, scale);
        }
    }

    scale = scale == 0 ? 1 : scale;
    if (scale > INT64_MAX) { /* a single time, 2^63 before t0 */
        return false;
    }

    *ret_scale = scale;

    return true;
}

static enum hearth_status encode_times(const int64_t *ts_ns, size_t n, int64_t t0_ns,
                                       struct hearth_arena *arena, struct hearth_str *ret,
                                       struct hearth_err *err)
{
    int64_t *times = hearth_arena_array(arena, n, sizeof *times);
    uint8_t *out = n > SIZE_MAX - 2 ? NULL : hearth_arena_array(arena, n + 2, MAX_VARINT);

    if (times == NULL || out == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    uint64_t scale;
    if (!make_relative(ts_ns, n, t0_ns, times, &scale)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "times of profiles are not ascending, or span more than 64 bits");
    }

    /* Write the first time, then the changes of the distance. */
    uint8_t *at = out;
    at += hearth_varint_write(at, n);
    at += hearth_varint_write(at, scale);
    int64_t distance = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t time = times[i] / (int64_t)scale;
        if (i == 0) {
            at += hearth_varint_write(at, hearth_zigzag(time));
        } else {
            int64_t next = (times[i] - times[i - 1]) / (int64_t)scale;
            at += hearth_varint_write(at, hearth_zigzag(next - distance));
            distance = next;
        }
    }

    *ret = hearth_str_n((const char *)out, (size_t)(at - out));

    return HEARTH_OK;
}

/* Column k of values [n][n_types]. */
struct totals_column {
    const int64_t *values;
    size_t n;
    uint32_t n_types, k;
};

static enum hearth_status encode_totals(const struct totals_column *column,
                                        struct hearth_arena *arena, struct hearth_str *ret,
                                        struct hearth_err *err)
{
    const int64_t *values = column->values + column->k;
    size_t n = column->n, step = column->n_types;
    uint64_t scale = 0, bits = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t value = values[i * step];
        if (value < 0) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a total of value column %u is negative",
                               (unsigned)column->k);
        }
        bits |= (uint64_t)value;
        scale = scale == 1 ? 1 : hearth_gcd((uint64_t)value, scale);
    }

    /* No quotient is longer than all values or-ed together. */
    uint8_t *out =
        n > SIZE_MAX - 1 ? NULL : hearth_arena_array(arena, n + 1, hearth_varint_size(bits));
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    uint8_t *at = out;
    at += hearth_varint_write(at, scale);
    for (size_t i = 0; scale > 0 && i < n; i++) {
        at += hearth_varint_write(at, (uint64_t)values[i * step] / scale);
    }

    *ret = hearth_str_n((const char *)out, (size_t)(at - out));

    return HEARTH_OK;
}

enum hearth_status hearth_totals_encode(const int64_t *ts_ns, const int64_t *values, size_t n,
                                        uint32_t n_types, int64_t t0_ns, struct hearth_arena *arena,
                                        struct hearth_totals *ret, struct hearth_err *err)
{
    assert((ts_ns != NULL && values != NULL) || n == 0 || n_types == 0);
    assert(arena != NULL && ret != NULL);

    struct hearth_totals made;

    made.vals = hearth_arena_array(arena, n_types, sizeof made.vals[0]);
    if (made.vals == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(encode_times(ts_ns, n, t0_ns, arena, &made.ts, err));
    for (uint32_t k = 0; k < n_types; k++) {
        const struct totals_column column = {values, n, n_types, k};
        HEARTH_TRY(encode_totals(&column, arena, &made.vals[k], err));
    }

    *ret = made;

    return HEARTH_OK;
}

/* ---- reading ---- */

struct totals_reader {
    const uint8_t *ts, *ts_end;
    const uint8_t *val, *val_end;
    uint64_t n, ts_scale, val_scale;
    int64_t time, distance; /* of the previous profile, in units of ts_scale */
};

static bool open_totals(struct hearth_str ts, struct hearth_str val, struct totals_reader *r)
{
    if (ts.n == 0 || val.n == 0) {
        return false;
    }

    *r = (struct totals_reader){.ts = (const uint8_t *)ts.p, .val = (const uint8_t *)val.p};
    r->ts_end = r->ts + ts.n;
    r->val_end = r->val + val.n;

    return hearth_varint_read(&r->ts, r->ts_end, &r->n) &&
           hearth_varint_read(&r->ts, r->ts_end, &r->ts_scale) &&
           hearth_varint_read(&r->val, r->val_end, &r->val_scale) && r->ts_scale > 0 &&
           r->ts_scale <= INT64_MAX && r->val_scale <= INT64_MAX &&
           r->n <= (uint64_t)(r->ts_end - r->ts) &&
           (r->val_scale == 0 || r->n <= (uint64_t)(r->val_end - r->val));
}

/* hearth_varint_read, quicker for two bytes: most times have one or two, most values two. */
HEARTH_ALWAYS_INLINE bool read_number(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    const uint8_t *p = *at;

    if (HEARTH_LIKELY(end - p >= 2 && p[0] >= 0x80 && p[1] < 0x80)) {
        *ret = (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
        *at = p + 2;
        return true;
    }

    return hearth_varint_read(at, end, ret);
}

/* Reads the next n times; is_first: the first of all is among them. */
static bool read_times(struct totals_reader *r, size_t n, bool is_first, int64_t t0_ns,
                       int64_t *ts_ns)
{
    const uint8_t *at = r->ts, *end = r->ts_end;
    const int64_t scale = (int64_t)r->ts_scale;
    int64_t time = r->time, distance = r->distance;

    for (size_t i = 0; i < n; i++) {
        uint64_t word;
        int64_t ns;

        if (!read_number(&at, end, &word)) {
            return false;
        }

        int64_t change = hearth_unzigzag(word);
        if (is_first && i == 0) {
            time = change;
        } else if (__builtin_add_overflow(distance, change, &distance) || distance < 0 ||
                   __builtin_add_overflow(time, distance, &time)) {
            return false;
        }

        if (__builtin_mul_overflow(time, scale, &ns) ||
            __builtin_add_overflow(ns, t0_ns, &ts_ns[i])) {
            return false;
        }
    }

    r->ts = at;
    r->time = time;
    r->distance = distance;

    return true;
}

/* Reads the next n values. */
static bool read_values(struct totals_reader *r, size_t n, int64_t *values)
{
    const uint8_t *at = r->val, *end = r->val_end;
    const uint64_t scale = r->val_scale;

    for (size_t i = 0; i < n; i++) {
        uint64_t word;

        if (!read_number(&at, end, &word) || __builtin_mul_overflow(word, scale, &word) ||
            word > INT64_MAX) {
            return false;
        }

        values[i] = (int64_t)word;
    }

    r->val = at;

    return true;
}

/* Reads the next n times and values; is_first: the first of all are among them. */
static bool read_totals_chunk(struct totals_reader *r, size_t n, bool is_first, int64_t t0_ns,
                              int64_t *ts_ns, int64_t *values)
{
    if (!read_times(r, n, is_first, t0_ns, ts_ns)) {
        return false;
    }

    if (r->val_scale == 0) {
        memset(values, 0, n * sizeof values[0]);
        return true;
    }

    return read_values(r, n, values);
}

enum hearth_status hearth_totals_read(struct hearth_str ts, struct hearth_str val, int64_t t0_ns,
                                      hearth_totals_fn *visit, void *context,
                                      struct hearth_err *err)
{
    assert(visit != NULL);

    struct totals_reader r = {.n = 0};
    HEARTH_UNFILLED int64_t times[HEARTH_TOTALS_CHUNK];
    HEARTH_UNFILLED int64_t values[HEARTH_TOTALS_CHUNK];
    bool is_good = open_totals(ts, val, &r);

    for (uint64_t i = 0, n; is_good && i < r.n; i += n) {
        n = r.n - i < HEARTH_TOTALS_CHUNK ? r.n - i : HEARTH_TOTALS_CHUNK;
        is_good = read_totals_chunk(&r, (size_t)n, i == 0, t0_ns, times, values);
        if (is_good) {
            HEARTH_TRY(visit(context, times, values, (size_t)n, err));
        }
    }

    if (!is_good || r.ts != r.ts_end || r.val != r.val_end) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "packed totals are damaged (%zu bytes of times, %zu of values)", ts.n,
                           val.n);
    }

    return HEARTH_OK;
}
