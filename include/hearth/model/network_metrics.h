/*
 * network_metrics.h -- what agents count of connections between two processes: packed as one flush brought it, and
 * summed over time into the metrics that are asked for.
 *
 * Each metric comes from one meter. Within a flush, values of the same meter are added up. Over flushes:
 *
 *   SUM        added up
 *   MEAN       the mean of the flushes that had a value, each counting the same
 *   CODES      added up for each status code
 *   HISTOGRAM  counts added up for each lower bound; its percentiles are lower bounds
 *
 * Percentile p of a histogram with `total` counts: the lower bound of the first bucket, from below, at which the counts
 * so far reach total * p / 100, rounded half up; 0 of none, and where a bucket has no lower bound.
 *
 * Limits:    HEARTH_NETWORK_MAX_CODES codes and HEARTH_NETWORK_MAX_BUCKETS bounds of a histogram; what is beyond is
 *            OUT_OF_RANGE in one flush; where flushes are merged it is left out.
 * Ownership: sums live in the arena given.
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
    const char *name;   /* as sent, without "rover_net_p_" */
    const char *metric; /* as asked for */
    const char *unit;   /* "1/min", "B/min", "B", "ns", "us", "ms" */
    enum hearth_network_kind kind;
};

/* The position of a meter is its number in packed bytes. */
extern const struct hearth_network_meter hearth_network_meters[HEARTH_NETWORK_METERS];

/* By `name`, or with is_metric by `metric`; HEARTH_NETWORK_METERS: there is none. */
unsigned hearth_network_meter_find(struct hearth_str name, bool is_metric);

struct hearth_network_bucket {
    double lower; /* -INFINITY: none */
    int64_t count;
};

struct hearth_network_code {
    struct hearth_str code;
    double sum;
};

/* One meter. */
struct hearth_network_cell {
    double sum;
    int64_t n; /* flushes that had it; 0: none */
    /* By lower bound, or by code. */
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
 * Within a flush: a value of a meter that is no histogram (code: of CODES), or a bucket of one that is.
 * INVALID_ARGUMENT: a value below 0 or that is no number, a code that is empty or too long; OUT_OF_RANGE; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_add_value(struct hearth_network_sums *sums, unsigned meter,
                                            struct hearth_str code, double value,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_network_add_bucket(struct hearth_network_sums *sums, unsigned meter,
                                             struct hearth_network_bucket bucket,
                                             struct hearth_err *err);

/* Append a flush; empty cells cost nothing. */
void hearth_network_encode(const struct hearth_network_sums *sums, struct hearth_buf *out);
/* Add a stored flush to what came before. CORRUPT (sums may be partly changed), NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_network_merge(struct hearth_network_sums *sums, struct hearth_str bytes,
                                        struct hearth_err *err);

/* SUM and MEAN: the value over all flushes; the cell is not empty. */
double hearth_network_value(unsigned meter, const struct hearth_network_cell *cell);
double hearth_network_percentile(const struct hearth_network_cell *cell, unsigned percentile);

#endif
