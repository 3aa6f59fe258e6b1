/*
 * packed_series.c -- sizes first, then bytes (packed_series.h).
 *
 * Each set of labels and each series is measured just before it is written, so that it is read from
 * memory once: 100,000 sets have 32 MB of texts. So the memory of all is estimated by the first.
 *
 * Nearly all points have a value other than zero, and a time whose varint has six bytes, so they
 * have 18 bytes each. These are counted, and written without loops.
 */
#include "query/packed_series.h"

#include "hearth/base/varint.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* Tags of fields: number and wire type; all have one byte. */
#define LABELS_SET_TAG 0x12 /* SeriesResponse.labels_set = 2 */
#define SERIES_TAG     0x0a /* SelectSeriesResponse.series = 1 */
#define LABELS_TAG     0x0a /* Labels.labels = 1, Series.labels = 1 */
#define POINTS_TAG     0x12 /* Series.points = 2 */
#define NAME_TAG       0x0a /* LabelPair.name = 1 */
#define VALUE_TAG      0x12 /* LabelPair.value = 2 */
#define NUMBER_TAG     0x09 /* Point.value = 1, eight bytes */
#define TIME_TAG       0x10 /* Point.timestamp = 2, a varint */

#define USUAL_TIME_BYTES  6 /* of times from 1971 to 2109 in milliseconds */
#define USUAL_POINT_BYTES (3 + sizeof(double) + 1 + USUAL_TIME_BYTES)

#define SAMPLED_SETS 256 /* measured before the memory of all is reserved */
#define AHEAD        8   /* series whose labels are fetched before they are needed */

/* ---- sizes ---- */

/* A field with a length and n bytes. */
static size_t measure_field(size_t n)
{
    return 1 + hearth_varint_size(n) + n;
}

/* Empty texts and zeros are not written. */
static size_t measure_text(struct hearth_str text)
{
    return text.n == 0 ? 0 : measure_field(text.n);
}

static size_t measure_pair(const struct hearth_label *label)
{
    return measure_text(label->name) + measure_text(label->value);
}

static size_t measure_labels(const struct hearth_labels *labels)
{
    size_t n = 0;

    for (size_t i = 0; i < labels->n; i++) {
        n += measure_field(measure_pair(&labels->v[i]));
    }

    return n;
}

static bool is_number_written(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);

    return bits << 1 != 0; /* neither 0 nor -0 */
}

static size_t measure_point(const struct hearth_point *point)
{
    size_t n_number = is_number_written(point->value) ? 1 + sizeof(double) : 0;
    size_t n_time = point->ts_ms == 0 ? 0 : 1 + hearth_varint_size((uint64_t)point->ts_ms);

    return n_number + n_time;
}

/* True if a point has USUAL_POINT_BYTES. */
HEARTH_ALWAYS_INLINE bool is_usual_point(const struct hearth_point *point)
{
    uint64_t top = (uint64_t)point->ts_ms >> (7 * (USUAL_TIME_BYTES - 1));

    return is_number_written(point->value) & (top - 1 < 0x7f);
}

static size_t measure_points(const struct hearth_point *points, size_t n_points)
{
    size_t n_usual = 0, n = 0;

    for (size_t i = 0; i < n_points; i++) {
        n_usual += is_usual_point(&points[i]);
    }

    for (size_t i = 0; n_usual < n_points && i < n_points; i++) {
        n += is_usual_point(&points[i]) ? 0 : measure_field(measure_point(&points[i]));
    }

    return n + n_usual * USUAL_POINT_BYTES;
}

/* ---- bytes ---- */

/* Each returns the place after what it wrote. */
static uint8_t *write_field_head(uint8_t *at, uint8_t tag, size_t n)
{
    *at++ = tag;

    return at + hearth_varint_write(at, n);
}

static uint8_t *write_label_text(uint8_t *at, uint8_t tag, struct hearth_str text)
{
    if (text.n == 0) {
        return at;
    }

    at = write_field_head(at, tag, text.n);
    memcpy(at, text.p, text.n);

    return at + text.n;
}

static uint8_t *write_labels(uint8_t *at, const struct hearth_labels *labels)
{
    for (size_t i = 0; i < labels->n; i++) {
        at = write_field_head(at, LABELS_TAG, measure_pair(&labels->v[i]));
        at = write_label_text(at, NAME_TAG, labels->v[i].name);
        at = write_label_text(at, VALUE_TAG, labels->v[i].value);
    }

    return at;
}

/* A varint of six bytes: seven bits of the time in each, and a mark in all but the last. */
HEARTH_ALWAYS_INLINE uint64_t spread_time(uint64_t ms)
{
    uint64_t x = (ms & 0xfffffff) | (ms >> 28) << 32;

    x = (x & 0x00003fff00003fff) | (x & 0x0fffc0000fffc000) << 2;
    x = (x & 0x007f007f007f007f) | (x & 0x3f803f803f803f80) << 1;

    return x | 0x8080808080;
}

HEARTH_ALWAYS_INLINE uint8_t *write_usual_point(uint8_t *at, const struct hearth_point *point)
{
    static const uint8_t head[] = {POINTS_TAG, USUAL_POINT_BYTES - 2, NUMBER_TAG};
    uint64_t time = htole64(spread_time((uint64_t)point->ts_ms));

    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, &point->value, sizeof point->value);
    at += sizeof head + sizeof point->value;
    *at++ = TIME_TAG;
    memcpy(at, &time, USUAL_TIME_BYTES);

    return at + USUAL_TIME_BYTES;
}

static uint8_t *write_point(uint8_t *at, const struct hearth_point *point)
{
    at = write_field_head(at, POINTS_TAG, measure_point(point));
    if (is_number_written(point->value)) {
        *at++ = NUMBER_TAG;
        memcpy(at, &point->value, sizeof point->value);
        at += sizeof point->value;
    }

    if (point->ts_ms != 0) {
        *at++ = TIME_TAG;
        at += hearth_varint_write(at, (uint64_t)point->ts_ms);
    }

    return at;
}

/* n_bytes: what measure_points says of them. */
static uint8_t *write_points(uint8_t *at, const struct hearth_point *points, size_t n_points,
                             size_t n_bytes)
{
    bool all_usual = n_bytes == n_points * USUAL_POINT_BYTES;

    for (size_t i = 0; i < n_points; i++) {
        at = all_usual || is_usual_point(&points[i]) ? write_usual_point(at, &points[i])
                                                     : write_point(at, &points[i]);
    }

    return at;
}

/* Reserves memory that an answer probably needs. A refusal is not one of the answer yet. */
static void reserve_probable(struct hearth_buf *out, size_t n_bytes)
{
    bool had_failed = out->failed;

    (void)hearth_buf_reserve(out, n_bytes);
    out->failed = had_failed;
}

/* Bytes of n sets, of which n_seen have n_bytes. */
static size_t estimate_sets(size_t n_bytes, size_t n_seen, size_t n)
{
    if (n == n_seen) {
        return n_bytes;
    }

    n_bytes = n_bytes / n_seen * n;

    return n_bytes + n_bytes / 16;
}

void hearth_pack_label_sets(struct hearth_buf *out, const struct hearth_labels *sets, size_t n)
{
    size_t n_seen = n < SAMPLED_SETS ? n : SAMPLED_SETS, n_seen_bytes = 0;

    assert(out != NULL && (sets != NULL || n == 0));
    for (size_t i = 0; i < n_seen; i++) {
        n_seen_bytes += measure_field(measure_labels(&sets[i]));
    }

    reserve_probable(out, estimate_sets(n_seen_bytes, n_seen, n));
    for (size_t i = 0; i < n; i++) {
        size_t n_labels = measure_labels(&sets[i]), n_bytes = measure_field(n_labels);
        uint8_t *start = (uint8_t *)hearth_buf_reserve(out, n_bytes);
        if (start == NULL) {
            return;
        }

        uint8_t *end = write_labels(write_field_head(start, LABELS_SET_TAG, n_labels), &sets[i]);
        assert(end == start + n_bytes);
        out->n = (size_t)((char *)end - out->p);
    }
}

/* ---- series ---- */

/* Series are in another order than their labels in memory. */
HEARTH_ALWAYS_INLINE void fetch_ahead(const struct hearth_timeseries *series, size_t i, size_t n)
{
    if (i + AHEAD < n) {
        __builtin_prefetch(series[i + AHEAD].labels.v);
        __builtin_prefetch(series[i + AHEAD].points);
    }
}

/* Room for all series, if all points are usual and the labels of others are like the first. */
static void reserve_series(struct hearth_buf *out, const struct hearth_timeseries *series, size_t n)
{
    size_t n_seen = n < SAMPLED_SETS ? n : SAMPLED_SETS, n_seen_bytes = 0, n_points = 0;

    for (size_t i = 0; i < n; i++) {
        n_points += series[i].n_points;
        if (i < n_seen) {
            size_t n_labels = measure_labels(&series[i].labels);
            n_seen_bytes += measure_field(n_labels + series[i].n_points * USUAL_POINT_BYTES) -
                            series[i].n_points * USUAL_POINT_BYTES;
        }
    }

    reserve_probable(out, estimate_sets(n_seen_bytes, n_seen, n) + n_points * USUAL_POINT_BYTES);
}

void hearth_pack_timeseries(struct hearth_buf *out, const struct hearth_timeseries *series,
                            size_t n)
{
    assert(out != NULL && (series != NULL || n == 0));

    reserve_series(out, series, n);
    for (size_t i = 0; i < n; i++) {
        const struct hearth_timeseries *one = &series[i];
        assert(one->exemplars == NULL);
        fetch_ahead(series, i, n);

        /* Measure it, then write it. */
        size_t n_points_bytes = measure_points(one->points, one->n_points);
        size_t n_fields = measure_labels(&one->labels) + n_points_bytes;
        size_t n_bytes = measure_field(n_fields);
        uint8_t *start = (uint8_t *)hearth_buf_reserve(out, n_bytes);
        if (start == NULL) {
            return;
        }

        uint8_t *at = write_labels(write_field_head(start, SERIES_TAG, n_fields), &one->labels);
        at = write_points(at, one->points, one->n_points, n_points_bytes);

        assert(at == start + n_bytes);
        out->n += n_bytes;
    }
}
