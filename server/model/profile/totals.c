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
#include <endian.h>

#define MAX_VARINT 10u
/* More times are neither written nor read in runs, so that a damaged number costs little time. */
#define MAX_IN_RUNS (UINT64_C(1) << 20)

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

/* Replaces times by the first one and the changes of the distance: zigzag, in units of scale. */
static void make_changes(int64_t *times, size_t n, uint64_t scale)
{
    int64_t before = 0, distance = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t time = times[i];
        int64_t next = i == 0 ? 0 : (time - before) / (int64_t)scale;
        int64_t number = i == 0 ? time / (int64_t)scale : next - distance;
        times[i] = (int64_t)hearth_zigzag(number);
        before = time;
        distance = next;
    }
}

/* The end of the run of equal numbers that begins at `first`. */
static size_t find_end_of_run(const int64_t *numbers, size_t n, size_t first)
{
    size_t end = first + 1;
    while (end < n && numbers[end] == numbers[first]) {
        end++;
    }

    return end;
}

/* The bytes of all numbers one by one, and of the first, then runs. */
static void measure_numbers(const int64_t *numbers, size_t n, size_t *ret_plain, size_t *ret_runs)
{
    *ret_plain = *ret_runs = n == 0 ? 0 : hearth_varint_size((uint64_t)numbers[0]);
    for (size_t i = 1, end; i < n; i = end) {
        size_t size = hearth_varint_size((uint64_t)numbers[i]);
        end = find_end_of_run(numbers, n, i);
        *ret_plain += (end - i) * size;
        *ret_runs += hearth_varint_size(end - i) + size;
    }
}

/* Writes the numbers one by one, or the first, then runs; returns their end. */
static uint8_t *write_numbers(uint8_t *at, const int64_t *numbers, size_t n, bool in_runs)
{
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        if (in_runs && i > 0) {
            end = find_end_of_run(numbers, n, i);
            at += hearth_varint_write(at, end - i);
        }
        at += hearth_varint_write(at, (uint64_t)numbers[i]);
    }

    return at;
}

static enum hearth_status encode_times(const int64_t *ts_ns, size_t n, int64_t t0_ns,
                                       struct hearth_arena *arena, struct hearth_str *ret,
                                       struct hearth_err *err)
{
    int64_t *times = hearth_arena_array(arena, n, sizeof *times);
    if (times == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    uint64_t scale;
    if (!make_relative(ts_ns, n, t0_ns, times, &scale)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "times of profiles are not ascending, or span more than 64 bits");
    }

    /* Choose the shorter form. */
    size_t n_plain, n_runs;
    make_changes(times, n, scale);
    measure_numbers(times, n, &n_plain, &n_runs);
    bool in_runs = n_runs + 1 < n_plain && n <= MAX_IN_RUNS;
    uint8_t *out = hearth_arena_alloc(arena, 3 * MAX_VARINT + (in_runs ? n_runs : n_plain));
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Write it. */
    uint8_t *at = out;
    at += hearth_varint_write(at, n);
    if (in_runs) {
        at += hearth_varint_write(at, 0);
    }
    at += hearth_varint_write(at, scale);
    at = write_numbers(at, times, n, in_runs);
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

    /* Times in runs: what is left of the current one, and its change as zigzag number. */
    bool in_runs;
    uint64_t n_in_run, change;
};

/* Reads the number and scale of times. In runs, few bytes may have many times: n has a limit. */
static bool open_times(struct totals_reader *r)
{
    if (!hearth_varint_read(&r->ts, r->ts_end, &r->n) ||
        !hearth_varint_read(&r->ts, r->ts_end, &r->ts_scale)) {
        return false;
    }

    r->in_runs = r->ts_scale == 0;
    if (r->in_runs && !hearth_varint_read(&r->ts, r->ts_end, &r->ts_scale)) {
        return false;
    }

    return r->ts_scale > 0 && r->ts_scale <= INT64_MAX &&
           r->n <= (r->in_runs ? MAX_IN_RUNS : (uint64_t)(r->ts_end - r->ts));
}

static bool open_totals(struct hearth_str ts, struct hearth_str val, struct totals_reader *r)
{
    if (ts.n == 0 || val.n == 0) {
        return false;
    }

    *r = (struct totals_reader){.ts = (const uint8_t *)ts.p, .val = (const uint8_t *)val.p};
    r->ts_end = r->ts + ts.n;
    r->val_end = r->val + val.n;

    return open_times(r) && hearth_varint_read(&r->val, r->val_end, &r->val_scale) &&
           r->val_scale <= INT64_MAX &&
           (r->val_scale == 0 || r->n <= (uint64_t)(r->val_end - r->val));
}

/* Eight bytes of varints. */
#define MARKS      UINT64_C(0x8080808080808080) /* of bytes that are not the last of their varint */
#define MARKS_OF_2 UINT64_C(0x0080008000800080) /* of four varints of two bytes */
#define BITS_OF_2  UINT64_C(0x007f007f007f007f)
#define BITS_OF_4  UINT64_C(0x00003fff00003fff)
#define BITS_OF_8  UINT64_C(0x000000000fffffff)

#define MAX_OF_1 UINT64_C(0x7f) /* of a varint of one byte */
#define MAX_OF_2 UINT64_C(0x3fff)

/* Joins the seven bits of the bytes in each two of them. */
HEARTH_ALWAYS_INLINE uint64_t join_pairs(uint64_t word)
{
    return (word & BITS_OF_2) | (word >> 1 & BITS_OF_2 << 7);
}

/* Reads four varints of two bytes each. */
HEARTH_ALWAYS_INLINE void read_four(uint64_t word, uint64_t *ret)
{
    word = join_pairs(word);
    ret[0] = word & 0xffff;
    ret[1] = word >> 16 & 0xffff;
    ret[2] = word >> 32 & 0xffff;
    ret[3] = word >> 48;
}

/* Reads eight varints of one byte each. */
HEARTH_ALWAYS_INLINE void read_eight(uint64_t word, uint64_t *ret)
{
    ret[0] = word & 0xff;
    ret[1] = word >> 8 & 0xff;
    ret[2] = word >> 16 & 0xff;
    ret[3] = word >> 24 & 0xff;
    ret[4] = word >> 32 & 0xff;
    ret[5] = word >> 40 & 0xff;
    ret[6] = word >> 48 & 0xff;
    ret[7] = word >> 56;
}

/* Reads the varint that a word begins with, and that ends in it. Returns its number of bytes. */
HEARTH_ALWAYS_INLINE size_t read_first(uint64_t word, uint64_t *ret)
{
    uint64_t ends = ~word & MARKS;

    word = join_pairs(word & (ends ^ (ends - 1)));
    word = (word & BITS_OF_4) | (word >> 2 & BITS_OF_4 << 14);
    *ret = (word & BITS_OF_8) | (word >> 4 & BITS_OF_8 << 28);

    return ((size_t)__builtin_ctzll(ends) + 1) / 8;
}

/*
 * Reads the next n varints; none is larger than *bound. Most times have one or two bytes, most
 * values two, and neighbours are of one length; numbers of other lengths are read without a branch
 * for each byte.
 */
static bool read_numbers(const uint8_t **cur, const uint8_t *end, uint64_t *ret, size_t n,
                         uint64_t *bound)
{
    const uint8_t *at = *cur;
    uint64_t any = 0;

    for (size_t i = 0; i < n;) {
        uint64_t word;

        if (HEARTH_UNLIKELY(n - i < 8 || end - at < 8)) {
            if (!hearth_varint_read(&at, end, &ret[i])) {
                return false;
            }
            any |= ret[i++];
            continue;
        }

        memcpy(&word, at, sizeof word);
        word = le64toh(word);
        uint64_t marks = word & MARKS;
        if (marks == MARKS_OF_2) {
            read_four(word, &ret[i]);
            any |= MAX_OF_2;
            i += 4;
            at += 8;
        } else if (marks == 0) {
            read_eight(word, &ret[i]);
            any |= MAX_OF_1;
            i += 8;
            at += 8;
        } else if (HEARTH_LIKELY(marks != MARKS)) {
            at += read_first(word, &ret[i]);
            any |= ret[i++];
        } else if (hearth_varint_read(&at, end, &ret[i])) {
            any |= ret[i++];
        } else {
            return false;
        }
    }

    *cur = at;
    *bound = any;

    return true;
}

/*
 * Whether the next n times are certain to fit if no zigzag number of a change exceeds `most`. Then
 * they need not be tested one by one. Only damaged numbers are so large that they may not fit.
 */
static bool fit_times(const struct totals_reader *r, size_t n, uint64_t most, int64_t t0_ns)
{
    uint64_t distance, time;

    return !__builtin_mul_overflow(most, n, &distance) &&
           !__builtin_add_overflow(distance, (uint64_t)r->distance, &distance) &&
           !__builtin_mul_overflow(distance, n, &distance) &&
           !__builtin_add_overflow(distance, r->time < 0 ? 0 : (uint64_t)r->time, &time) &&
           !__builtin_mul_overflow(time, r->ts_scale, &time) &&
           !__builtin_add_overflow(time, t0_ns < 0 ? 0 : (uint64_t)t0_ns, &time) &&
           time <= INT64_MAX;
}

/* Reads one time; is_first: the first of all. */
static bool read_time(struct totals_reader *r, uint64_t word, bool is_first, int64_t t0_ns,
                      int64_t *ret_ns)
{
    int64_t change = hearth_unzigzag(word), ns;

    if (is_first) {
        r->time = change;
    } else if (__builtin_add_overflow(r->distance, change, &r->distance) || r->distance < 0 ||
               __builtin_add_overflow(r->time, r->distance, &r->time)) {
        return false;
    }

    return !__builtin_mul_overflow(r->time, (int64_t)r->ts_scale, &ns) &&
           !__builtin_add_overflow(ns, t0_ns, ret_ns);
}

/* Makes the next n times at the distance of the time before, which fit. */
static void make_steady_times(struct totals_reader *r, size_t n, int64_t t0_ns, int64_t *ts_ns)
{
    const uint64_t step_ns = (uint64_t)r->distance * r->ts_scale;
    uint64_t time_ns = (uint64_t)r->time * r->ts_scale + (uint64_t)t0_ns;

    for (size_t i = 0; i < n; i++) {
        time_ns += step_ns;
        ts_ns[i] = (int64_t)time_ns;
    }

    r->time += (int64_t)n * r->distance;
}

/*
 * Reads the next n times, if they go on at the distance of the time before: their changes are n
 * zeros. False, and nothing is read: they do not, or may not fit.
 */
static bool read_steady_times(struct totals_reader *r, size_t n, int64_t t0_ns, int64_t *ts_ns)
{
    static const uint8_t zeros[HEARTH_TOTALS_CHUNK];
    assert(n <= sizeof zeros);

    if ((size_t)(r->ts_end - r->ts) < n || memcmp(r->ts, zeros, n) != 0 ||
        !fit_times(r, n, 0, t0_ns)) {
        return false;
    }

    make_steady_times(r, n, t0_ns, ts_ns);
    r->ts += n;

    return true;
}

/* Reads the next n times in runs, none of which is the first of all. */
static bool read_times_in_runs(struct totals_reader *r, size_t n, int64_t t0_ns, int64_t *ts_ns)
{
    for (size_t i = 0, end; i < n; i = end) {
        if (r->n_in_run == 0 && (!hearth_varint_read(&r->ts, r->ts_end, &r->n_in_run) ||
                                 !hearth_varint_read(&r->ts, r->ts_end, &r->change))) {
            return false;
        }

        size_t n_here = r->n_in_run < n - i ? (size_t)r->n_in_run : n - i;
        end = i + n_here;
        r->n_in_run -= n_here;
        if (r->change == 0 && fit_times(r, n_here, 0, t0_ns)) {
            make_steady_times(r, n_here, t0_ns, ts_ns + i);
            continue;
        }

        for (size_t k = i; k < end; k++) {
            if (!read_time(r, r->change, false, t0_ns, &ts_ns[k])) {
                return false;
            }
        }
    }

    return true;
}

/* Reads the next n times, none of which is the first of all. */
static bool read_more_times(struct totals_reader *r, size_t n, int64_t t0_ns, int64_t *ts_ns)
{
    HEARTH_UNFILLED uint64_t words[HEARTH_TOTALS_CHUNK];
    const uint64_t scale = r->ts_scale;
    uint64_t most;

    if (!read_numbers(&r->ts, r->ts_end, words, n, &most)) {
        return false;
    }

    if (HEARTH_UNLIKELY(!fit_times(r, n, most, t0_ns))) {
        for (size_t i = 0; i < n; i++) {
            if (!read_time(r, words[i], false, t0_ns, &ts_ns[i])) {
                return false;
            }
        }
        return true;
    }

    /* Only a distance below 0 is left to look for. Sums with one may wrap. */
    uint64_t time = (uint64_t)r->time, distance = (uint64_t)r->distance, sign = 0;
    for (size_t i = 0; i < n; i++) {
        distance += (uint64_t)hearth_unzigzag(words[i]);
        sign |= distance;
        time += distance;
        ts_ns[i] = (int64_t)(time * scale + (uint64_t)t0_ns);
    }
    r->time = (int64_t)time;
    r->distance = (int64_t)distance;

    return (int64_t)sign >= 0;
}

/*
 * Reads the next n times; is_first: the first of all is among them. That one and the first distance
 * are numbers of their own; if all other changes are 0, they need not be read one by one.
 */
static bool read_times(struct totals_reader *r, size_t n, bool is_first, int64_t t0_ns,
                       int64_t *ts_ns)
{
    size_t n_alone = !is_first ? 0 : r->in_runs ? 1 : 2, i = 0;

    for (; i < n_alone && i < n; i++) {
        uint64_t word;
        if (!hearth_varint_read(&r->ts, r->ts_end, &word) ||
            !read_time(r, word, i == 0, t0_ns, &ts_ns[i])) {
            return false;
        }
    }

    if (r->in_runs) {
        return read_times_in_runs(r, n - i, t0_ns, ts_ns + i);
    }

    return read_steady_times(r, n - i, t0_ns, ts_ns + i) ||
           read_more_times(r, n - i, t0_ns, ts_ns + i);
}

/* Multiplies n values; false if one does not fit. */
static bool scale_values(int64_t *values, size_t n, uint64_t scale)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value;
        if (__builtin_mul_overflow((uint64_t)values[i], scale, &value) || value > INT64_MAX) {
            return false;
        }
        values[i] = (int64_t)value;
    }

    return true;
}

/* Reads the next n values. */
static bool read_values(struct totals_reader *r, size_t n, int64_t *values)
{
    const uint64_t scale = r->val_scale;
    uint64_t most, largest;

    if (!read_numbers(&r->val, r->val_end, (uint64_t *)values, n, &most)) {
        return false;
    }

    if (HEARTH_UNLIKELY(__builtin_mul_overflow(most, scale, &largest) || largest > INT64_MAX)) {
        return scale_values(values, n, scale);
    }

    for (size_t i = 0; i < n; i++) {
        values[i] = (int64_t)((uint64_t)values[i] * scale);
    }

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

    if (!is_good || r.n_in_run > 0 || r.ts != r.ts_end || r.val != r.val_end) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "packed totals are damaged (%zu bytes of times, %zu of values)", ts.n,
                           val.n);
    }

    return HEARTH_OK;
}

/* ---- totals of several series ---- */

static void add_bytes(struct hearth_buf *out, struct hearth_str bytes)
{
    hearth_buf_varint(out, bytes.n);
    hearth_buf_str(out, bytes);
}

void hearth_totals_group_add(int32_t id_before, int32_t series_id,
                             const struct hearth_totals *totals, uint32_t n_types,
                             struct hearth_buf *ts, struct hearth_buf *vals)
{
    assert(id_before >= 0 && id_before < series_id);

    hearth_buf_varint(ts, (uint64_t)((int64_t)series_id - id_before));
    add_bytes(ts, totals->ts);
    for (uint32_t k = 0; k < n_types; k++) {
        add_bytes(&vals[k], totals->vals[k]);
    }
}

size_t hearth_totals_pack_one(int64_t value, char out[HEARTH_TOTALS_ONE_BYTES])
{
    /* The scale is the value, of which there is one. */
    size_t n = hearth_varint_write((uint8_t *)out, (uint64_t)value);
    assert(n < HEARTH_TOTALS_ONE_BYTES);
    if (value != 0) {
        out[n++] = 1;
    }

    return n;
}

/* Cuts a number off the beginning. */
static bool cut_number(struct hearth_str *from, uint64_t *ret)
{
    const uint8_t *at = (const uint8_t *)from->p, *begin = at;
    if (from->n == 0 || !hearth_varint_read(&at, at + from->n, ret)) {
        return false;
    }

    size_t n = (size_t)(at - begin);
    *from = hearth_str_n(from->p + n, from->n - n);

    return true;
}

/* Cuts a length and as many bytes off the beginning. */
static bool cut_bytes(struct hearth_str *from, struct hearth_str *ret)
{
    uint64_t n;
    if (!cut_number(from, &n) || n > from->n) {
        return false;
    }

    *ret = hearth_str_n(from->p, (size_t)n);
    *from = hearth_str_n(from->p + n, from->n - (size_t)n);

    return true;
}

enum hearth_status hearth_totals_group_next(struct hearth_totals_group *group, bool *ret_has,
                                            struct hearth_err *err)
{
    assert(group->series_id >= 0);

    if (group->ts.n == 0 && group->val.n == 0) {
        *ret_has = false;
        return HEARTH_OK;
    }

    uint64_t distance;
    if (!cut_number(&group->ts, &distance) || distance == 0 ||
        distance > (uint64_t)(INT32_MAX - group->series_id) ||
        !cut_bytes(&group->ts, &group->series_ts) ||
        (group->val.p != NULL && !cut_bytes(&group->val, &group->series_val))) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "packed totals of several series are damaged after series %d",
                           (int)group->series_id);
    }

    group->series_id += (int32_t)distance;
    *ret_has = true;

    return HEARTH_OK;
}
