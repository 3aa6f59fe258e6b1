/*
 * packed_series.c -- sizes first, then bytes (packed_series.h).
 *
 * Series are measured together, sets of labels one by one: their texts are read from memory once
 * then, and 100,000 sets have 32 MB of them. So their memory is estimated by the first sets.
 */
#include "query/packed_series.h"

#include "hearth/base/varint.h"

#include <assert.h>
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
    return value < 0 || value > 0 || value != value;
}

static size_t measure_point(const struct hearth_point *point)
{
    size_t n_number = is_number_written(point->value) ? 1 + sizeof(double) : 0;
    size_t n_time = point->ts_ms == 0 ? 0 : 1 + hearth_varint_size((uint64_t)point->ts_ms);

    return n_number + n_time;
}

static size_t measure_series(const struct hearth_timeseries *series)
{
    size_t n = measure_labels(&series->labels);

    for (size_t i = 0; i < series->n_points; i++) {
        n += measure_field(measure_point(&series->points[i]));
    }

    return n;
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

/* Room for all sets, if the others are like the first. A refusal is not one of the answer yet. */
static void reserve_label_sets(struct hearth_buf *out, const struct hearth_labels *sets, size_t n)
{
    size_t n_seen = n < SAMPLED_SETS ? n : SAMPLED_SETS, n_bytes = 0;

    for (size_t i = 0; i < n_seen; i++) {
        n_bytes += measure_field(measure_labels(&sets[i]));
    }

    if (n > n_seen) {
        n_bytes = n_bytes / n_seen * n;
        n_bytes += n_bytes / 16;
    }

    bool had_failed = out->failed;
    (void)hearth_buf_reserve(out, n_bytes);
    out->failed = had_failed;
}

void hearth_pack_label_sets(struct hearth_buf *out, const struct hearth_labels *sets, size_t n)
{
    assert(out != NULL && (sets != NULL || n == 0));

    reserve_label_sets(out, sets, n);
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

/* Series are in another order than their labels in memory. */
HEARTH_ALWAYS_INLINE void fetch_ahead(const struct hearth_timeseries *series, size_t i, size_t n)
{
    if (i + AHEAD < n) {
        __builtin_prefetch(series[i + AHEAD].labels.v);
        __builtin_prefetch(series[i + AHEAD].points);
    }
}

void hearth_pack_timeseries(struct hearth_buf *out, const struct hearth_timeseries *series,
                            size_t n)
{
    size_t n_bytes = 0;

    assert(out != NULL && (series != NULL || n == 0));
    for (size_t i = 0; i < n; i++) {
        assert(series[i].exemplars == NULL);
        fetch_ahead(series, i, n);
        n_bytes += measure_field(measure_series(&series[i]));
    }

    uint8_t *start = (uint8_t *)hearth_buf_reserve(out, n_bytes), *at = start;
    for (size_t i = 0; start != NULL && i < n; i++) {
        fetch_ahead(series, i, n);
        at = write_field_head(at, SERIES_TAG, measure_series(&series[i]));
        at = write_labels(at, &series[i].labels);
        for (size_t p = 0; p < series[i].n_points; p++) {
            at = write_point(at, &series[i].points[p]);
        }
    }

    assert(start == NULL || at == start + n_bytes);
    out->n += start == NULL ? 0 : n_bytes;
}
