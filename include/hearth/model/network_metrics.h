/*
 * network_metrics.h -- metrics of connections between two processes: packed as one flush of an
 * agent brought them, and summed over time into the metrics that clients query.
 *
 * Each metric comes from one meter. Within a flush, values of the same meter are added. Over
 * flushes:
 *
 *   SUM        values are added
 *   MEAN       mean of the flushes that had a value, each with the same weight
 *   CODES      values are added per status code
 *   HISTOGRAM  counts are added per lower bound; its percentiles are lower bounds
 *
 * Percentile p of a histogram with `total` counts: the lower bound of the first bucket, in
 * ascending order, at which the cumulated count reaches total * p / 100, rounded half up; 0 for an
 * empty histogram and for a bucket without a lower bound.
 *
 * Limits:    HEARTH_NETWORK_MAX_CODES codes per meter and HEARTH_NETWORK_MAX_BUCKETS bounds per
 *            histogram. Beyond them, adding a value is OUT_OF_RANGE; merging flushes drops the
 *            excess.
 * Ownership: sums live in the given arena.
 * Threads:   pure.
 * Source:    docs/reference/network-metrics.md.
 */
#ifndef HEARTH_MODEL_NETWORK_METRICS_H
#define HEARTH_MODEL_NETWORK_METRICS_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

#define HEARTH_NETWORK_METERS      42
#define HEARTH_NETWORK_MAX_CODES   256
#define HEARTH_NETWORK_CODE_BYTES  32
#define HEARTH_NETWORK_MAX_BUCKETS 1024

enum hearth_network_kind {
    HEARTH_NETWORK_SUM,
    HEARTH_NETWORK_MEAN,
    HEARTH_NETWORK_CODES,
    HEARTH_NETWORK_HISTOGRAM,
};

struct hearth_network_meter {
    const char *name;   /* as agents send it, without "rover_net_p_" */
    const char *metric; /* as clients query it */
    const char *unit;   /* "1/min", "B/min", "B", "ns", "us", "ms" */
    enum hearth_network_kind kind;
};

/* The position of a meter is its number in packed bytes. */
extern const struct hearth_network_meter hearth_network_meters[HEARTH_NETWORK_METERS];

/* The index of a meter, by `name`, or by `metric` if is_metric. HEARTH_NETWORK_METERS: unknown. */
unsigned hearth_network_meter_find(struct hearth_str name, bool is_metric);

struct hearth_network_bucket {
    double lower; /* -INFINITY: none */
    int64_t count;
};

struct hearth_network_code {
    struct hearth_str code;
    double sum;
};

/* The sums of one meter. */
struct hearth_network_cell {
    double sum;
    int64_t n; /* number of flushes with a value; 0: the cell is empty */
    /* HISTOGRAM: buckets, sorted by lower bound. CODES: codes, sorted. n_items of either. */
    struct hearth_network_bucket *buckets;
    struct hearth_network_code *codes;
    uint32_t n_items, cap;
};

struct hearth_network_sums {
    struct hearth_arena *arena;
    struct hearth_network_cell cells[HEARTH_NETWORK_METERS];
};

void hearth_network_sums_init(struct hearth_network_sums *sums, struct hearth_arena *arena);

/*
 * Within a flush: add a value of a meter that is no histogram (`code` is for CODES only), or a
 * bucket of a histogram. INVALID_ARGUMENT for a negative value or one that is not a number, and for
 * an empty or too long code; OUT_OF_RANGE beyond the limits; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_add_value(struct hearth_network_sums *sums, unsigned meter,
                                            struct hearth_str code, double value,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_network_add_bucket(struct hearth_network_sums *sums, unsigned meter,
                                             struct hearth_network_bucket bucket,
                                             struct hearth_err *err);

/* Append the packed flush; empty cells take no bytes. */
void hearth_network_encode(const struct hearth_network_sums *sums, struct hearth_buf *out);
/* Add a packed flush to the sums. CORRUPT (sums may be partly changed); NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_merge(struct hearth_network_sums *sums, struct hearth_str bytes,
                                        struct hearth_err *err);

/* The value of SUM or MEAN over all flushes; the cell must not be empty. */
double hearth_network_value(unsigned meter, const struct hearth_network_cell *cell);
/* The percentile of a HISTOGRAM; percentile is in 0..100. */
double hearth_network_percentile(const struct hearth_network_cell *cell, unsigned percentile);

#endif
