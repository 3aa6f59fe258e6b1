/*
 * network_metrics.c -- meters of connections (contract: hearth/model/network_metrics.h).
 *
 * Bytes: 1 (version); number of meters; for each meter, ascending: its index, then its number (SUM,
 * MEAN), or the number of items and for each item length, bytes and number (CODES) or lower bound
 * and count (HISTOGRAM). Whole numbers below 2^52, which nearly all are, are varint(2 * value);
 * other numbers are varint(1) and the 8 bytes of the double, little-endian. All the rest are
 * varints.
 */
#include "hearth/model/network_metrics.h"

#include "hearth/base/varint.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define VERSION   1
#define MAX_WHOLE ((double)(UINT64_C(1) << 52))
/* Largest value accepted from agents, so that no sum of flushes exceeds a double. */
#define MAX_AMOUNT 1e100

#define SUM       HEARTH_NETWORK_SUM
#define MEAN      HEARTH_NETWORK_MEAN
#define CODES     HEARTH_NETWORK_CODES
#define HISTOGRAM HEARTH_NETWORK_HISTOGRAM

/* Meters of one end of a connection. Times are nanoseconds; round trips are microseconds. */
#define ROLE(role, connect_time)                                                                \
    {role "_write_counts_counter", role "_write_cpm", "1/min", SUM},                            \
        {role "_read_counts_counter", role "_read_cpm", "1/min", SUM},                          \
        {role "_connect_counts_counter", role "_connect_cpm", "1/min", SUM},                    \
        {role "_close_counts_counter", role "_close_cpm", "1/min", SUM},                        \
        {role "_retransmit_counts_counter", role "_retransmit_cpm", "1/min", SUM},              \
        {role "_drop_counts_counter", role "_drop_cpm", "1/min", SUM},                          \
        {role "_write_bytes_counter", role "_write_total_bytes", "B/min", SUM},                 \
        {role "_read_bytes_counter", role "_read_total_bytes", "B/min", SUM},                   \
        {role "_write_exe_time_counter", role "_write_avg_exe_time", "ns", MEAN},               \
        {role "_read_exe_time_counter", role "_read_avg_exe_time", "ns", MEAN},                 \
        {role "_connect_exe_time_counter", role connect_time, "ns", MEAN},                      \
        {role "_close_exe_time_counter", role "_close_avg_exe_time", "ns", MEAN},               \
        {role "_write_rtt_exe_time_counter", role "_write_avg_rtt_time", "us", MEAN},           \
        {role "_write_rtt_histogram", role "_write_rtt_time_percentile", "us", HISTOGRAM},      \
        {role "_write_exe_time_histogram", role "_write_exe_time_percentile", "ns", HISTOGRAM}, \
    {                                                                                           \
        role "_read_exe_time_histogram", role "_read_exe_time_percentile", "ns", HISTOGRAM      \
    }
#define HTTP(name, unit)                                       \
    {name "_avg", name, unit, MEAN},                           \
    {                                                          \
        name "_histogram", name "_percentile", unit, HISTOGRAM \
    }

const struct hearth_network_meter hearth_network_meters[HEARTH_NETWORK_METERS] = {
    ROLE("client", "_connect_exe_time"),
    ROLE("server", "_connect_avg_exe_time"),
    {"http1_request_counter", "http1_request_cpm", "1/min", SUM},
    {"http1_response_status_counter", "http1_response_status_cpm", "1/min", CODES},
    HTTP("http1_request_package_size", "B"),
    HTTP("http1_response_package_size", "B"),
    HTTP("http1_client_duration", "ms"),
    HTTP("http1_server_duration", "ms"),
};

unsigned hearth_network_meter_find(struct hearth_str name, bool is_metric)
{
    unsigned i = 0;
    while (i < HEARTH_NETWORK_METERS &&
           !hearth_str_eq_c(name, is_metric ? hearth_network_meters[i].metric
                                            : hearth_network_meters[i].name)) {
        i++;
    }
    return i;
}

void hearth_network_sums_init(struct hearth_network_sums *sums, struct hearth_arena *arena)
{
    assert(sums != NULL && arena != NULL);

    *sums = (struct hearth_network_sums){.arena = arena};
}

/* ---- adding ---- */

/*
 * Make room for one more item of `size` bytes. Outgrown arrays stay in the arena; together they are
 * smaller than the current one.
 */
static bool make_item_room(struct hearth_network_sums *sums, struct hearth_network_cell *cell,
                           void **items, size_t size)
{
    if (cell->n_items < cell->cap) {
        return true;
    }

    uint32_t cap = cell->cap == 0 ? 8 : cell->cap * 2;
    void *more = hearth_arena_array(sums->arena, cap, size);
    if (more == NULL) {
        return false;
    }

    if (cell->n_items > 0) {
        memcpy(more, *items, cell->n_items * size);
    }

    *items = more;
    cell->cap = cap;

    return true;
}

static enum hearth_status add_code(struct hearth_network_sums *sums,
                                   struct hearth_network_cell *cell, struct hearth_str code,
                                   double value, struct hearth_err *err)
{
    uint32_t at = 0;
    int order = 1;

    /* Find the code, or its place in the order. */
    while (at < cell->n_items && (order = hearth_str_cmp(code, cell->codes[at].code)) > 0) {
        at++;
    }

    if (at < cell->n_items && order == 0) {
        cell->codes[at].sum += value;
        return HEARTH_OK;
    }

    if (cell->n_items == HEARTH_NETWORK_MAX_CODES) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "more than %d status codes",
                           HEARTH_NETWORK_MAX_CODES);
    }

    /* Insert it. */
    void *items = cell->codes;
    struct hearth_str copy = hearth_arena_str(sums->arena, code);
    if (copy.p == NULL || !make_item_room(sums, cell, &items, sizeof cell->codes[0])) {
        return HEARTH_FAIL_ARENA(err, sums->arena);
    }

    cell->codes = items;
    memmove(cell->codes + at + 1, cell->codes + at, (cell->n_items - at) * sizeof cell->codes[0]);
    cell->codes[at] = (struct hearth_network_code){copy, value};
    cell->n_items++;

    return HEARTH_OK;
}

static enum hearth_status add_bucket(struct hearth_network_sums *sums,
                                     struct hearth_network_cell *cell,
                                     struct hearth_network_bucket bucket, struct hearth_err *err)
{
    uint32_t at = cell->n_items;

    /* Find the bucket, or its place in the order. */
    while (at > 0 && cell->buckets[at - 1].lower >= bucket.lower) {
        at--;
    }

    if (at < cell->n_items && !(cell->buckets[at].lower > bucket.lower)) {
        int64_t count; /* an overflow writes it, too */
        if (__builtin_add_overflow(cell->buckets[at].count, bucket.count, &count)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a bucket's counts do not fit 63 bits");
        }
        cell->buckets[at].count = count;
        return HEARTH_OK;
    }

    if (cell->n_items == HEARTH_NETWORK_MAX_BUCKETS) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "more than %d buckets",
                           HEARTH_NETWORK_MAX_BUCKETS);
    }

    /* Insert it. */
    void *items = cell->buckets;
    if (!make_item_room(sums, cell, &items, sizeof cell->buckets[0])) {
        return HEARTH_FAIL_ARENA(err, sums->arena);
    }

    cell->buckets = items;
    memmove(cell->buckets + at + 1, cell->buckets + at,
            (cell->n_items - at) * sizeof cell->buckets[0]);
    cell->buckets[at] = bucket;
    cell->n_items++;

    return HEARTH_OK;
}

static bool is_quantity(double value)
{
    return isfinite(value) && value >= 0;
}

enum hearth_status hearth_network_add_value(struct hearth_network_sums *sums, unsigned meter,
                                            struct hearth_str code, double value,
                                            struct hearth_err *err)
{
    assert(meter < HEARTH_NETWORK_METERS);
    assert(hearth_network_meters[meter].kind != HISTOGRAM);

    struct hearth_network_cell *cell = &sums->cells[meter];

    if (!is_quantity(value) || value > MAX_AMOUNT) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%g is no amount", value);
    }

    if (hearth_network_meters[meter].kind == CODES) {
        if (code.n == 0 || code.n > HEARTH_NETWORK_CODE_BYTES || !hearth_str_utf8_valid(code)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "its label code is 1 to %d bytes of UTF-8",
                               HEARTH_NETWORK_CODE_BYTES);
        }
        HEARTH_TRY(add_code(sums, cell, code, value, err));
    }

    cell->sum += value;
    cell->n = 1;

    return HEARTH_OK;
}

enum hearth_status hearth_network_add_bucket(struct hearth_network_sums *sums, unsigned meter,
                                             struct hearth_network_bucket bucket,
                                             struct hearth_err *err)
{
    assert(meter < HEARTH_NETWORK_METERS);
    assert(hearth_network_meters[meter].kind == HISTOGRAM);

    if (isnan(bucket.lower) || (isinf(bucket.lower) && bucket.lower > 0) || bucket.count < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a bucket from %g with %lld counts",
                           bucket.lower, (long long)bucket.count);
    }
    HEARTH_TRY(add_bucket(sums, &sums->cells[meter], bucket, err));
    sums->cells[meter].n = 1;
    return HEARTH_OK;
}

/* ---- bytes ---- */

static void put_number(double value, struct hearth_buf *out)
{
    if (value >= 0 && value < MAX_WHOLE && value == floor(value)) {
        hearth_buf_varint(out, (uint64_t)value << 1);
        return;
    }

    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hearth_buf_varint(out, 1);
    for (int i = 0; i < 8; i++) {
        hearth_buf_byte(out, (unsigned char)(bits >> (8 * i)));
    }
}

void hearth_network_encode(const struct hearth_network_sums *sums, struct hearth_buf *out)
{
    assert(sums != NULL && out != NULL);

    /* The number of cells that are not empty. */
    uint64_t n = 0;
    for (unsigned i = 0; i < HEARTH_NETWORK_METERS; i++) {
        n += sums->cells[i].n > 0;
    }

    hearth_buf_byte(out, VERSION);
    hearth_buf_varint(out, n);
    for (unsigned i = 0; i < HEARTH_NETWORK_METERS; i++) {
        const struct hearth_network_cell *cell = &sums->cells[i];
        enum hearth_network_kind kind = hearth_network_meters[i].kind;
        if (cell->n == 0) {
            continue;
        }

        /* A cell is one number, or a list of items. */
        hearth_buf_varint(out, i);
        if (kind == SUM || kind == MEAN) {
            put_number(cell->sum, out);
            continue;
        }

        hearth_buf_varint(out, cell->n_items);
        for (uint32_t k = 0; k < cell->n_items; k++) {
            if (kind == CODES) {
                hearth_buf_varint(out, cell->codes[k].code.n);
                hearth_buf_str(out, cell->codes[k].code);
                put_number(cell->codes[k].sum, out);
            } else {
                put_number(cell->buckets[k].lower, out);
                hearth_buf_varint(out, (uint64_t)cell->buckets[k].count);
            }
        }
    }
}

struct flush_reader {
    const uint8_t *at, *end;
};

static bool get_number(struct flush_reader *reader, double *ret)
{
    uint64_t head, bits = 0;

    if (!hearth_varint_read(&reader->at, reader->end, &head)) {
        return false;
    }

    if ((head & 1) == 0) {
        *ret = (double)(head >> 1);
        return true;
    }

    if (head != 1 || reader->end - reader->at < 8) {
        return false;
    }

    for (int i = 0; i < 8; i++) {
        bits |= (uint64_t)*reader->at++ << (8 * i);
    }

    memcpy(ret, &bits, sizeof bits);

    return true;
}

static enum hearth_status fail_flush(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "a stored flush of network metrics is damaged");
}

/* Merge codes or buckets. Items beyond the limits are dropped. */
static enum hearth_status merge_items(struct hearth_network_sums *sums, unsigned meter,
                                      struct flush_reader *reader, struct hearth_err *err)
{
    struct hearth_network_cell *cell = &sums->cells[meter];
    uint64_t n, length;
    double number;

    if (!hearth_varint_read(&reader->at, reader->end, &n)) {
        return fail_flush(err);
    }

    for (uint64_t i = 0; i < n; i++) { /* each takes at least one byte */
        enum hearth_status status;
        if (hearth_network_meters[meter].kind == CODES) {
            if (!hearth_varint_read(&reader->at, reader->end, &length) || length == 0 ||
                length > HEARTH_NETWORK_CODE_BYTES ||
                length > (uint64_t)(reader->end - reader->at)) {
                return fail_flush(err);
            }

            struct hearth_str code = hearth_str_n((const char *)reader->at, (size_t)length);
            reader->at += length;
            if (!hearth_str_utf8_valid(code) || !get_number(reader, &number) ||
                !is_quantity(number)) {
                return fail_flush(err);
            }

            cell->sum += number;
            status = add_code(sums, cell, code, number, err);
        } else {
            uint64_t count;
            if (!get_number(reader, &number) || isnan(number) || (isinf(number) && number > 0) ||
                !hearth_varint_read(&reader->at, reader->end, &count) || count > INT64_MAX) {
                return fail_flush(err);
            }

            status =
                add_bucket(sums, cell, (struct hearth_network_bucket){number, (int64_t)count}, err);
        }

        if (status != HEARTH_OK && status != HEARTH_OUT_OF_RANGE) {
            return status;
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_network_merge(struct hearth_network_sums *sums, struct hearth_str bytes,
                                        struct hearth_err *err)
{
    assert(sums != NULL && sums->arena != NULL);

    struct flush_reader reader = {(const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n};
    uint64_t n, meter = 0;
    int64_t last = -1;

    if (bytes.n == 0 || *reader.at++ != VERSION ||
        !hearth_varint_read(&reader.at, reader.end, &n) || n > HEARTH_NETWORK_METERS) {
        return fail_flush(err);
    }

    /* Meters ascend, so that none occurs twice. */
    for (; n > 0; n--) {
        if (!hearth_varint_read(&reader.at, reader.end, &meter) || meter >= HEARTH_NETWORK_METERS ||
            (int64_t)meter <= last) {
            return fail_flush(err);
        }

        /* Merge one number, or a list of items. */
        last = (int64_t)meter;
        struct hearth_network_cell *cell = &sums->cells[meter];
        enum hearth_network_kind kind = hearth_network_meters[meter].kind;
        double number;
        if (kind == CODES || kind == HISTOGRAM) {
            HEARTH_TRY(merge_items(sums, (unsigned)meter, &reader, err));
        } else if (get_number(&reader, &number) && is_quantity(number)) {
            cell->sum += number;
        } else {
            return fail_flush(err);
        }

        cell->n++;
    }

    return reader.at == reader.end ? HEARTH_OK : fail_flush(err);
}

/* ---- metrics ---- */

double hearth_network_value(unsigned meter, const struct hearth_network_cell *cell)
{
    assert(meter < HEARTH_NETWORK_METERS && cell->n > 0);

    return hearth_network_meters[meter].kind == MEAN ? cell->sum / (double)cell->n : cell->sum;
}

double hearth_network_percentile(const struct hearth_network_cell *cell, unsigned percentile)
{
    assert(percentile <= 100);

    __extension__ typedef unsigned __int128 u128;
    u128 total = 0, so_far = 0;
    for (uint32_t i = 0; i < cell->n_items; i++) {
        total += (u128)(uint64_t)cell->buckets[i].count;
    }

    if (total == 0) {
        return 0;
    }

    /* Rounded half up. */
    u128 wanted = (total * percentile + 50) / 100;
    for (uint32_t i = 0; i < cell->n_items; i++) {
        so_far += (u128)(uint64_t)cell->buckets[i].count;
        if (so_far >= wanted) {
            return isinf(cell->buckets[i].lower) ? 0 : cell->buckets[i].lower;
        }
    }

    return 0;
}
