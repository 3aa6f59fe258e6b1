/*
 * profile_source.h -- where profiles and their sums are stored, and the instant that identifies
 * single profiles.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_PROFILE_SOURCE_H
#define HEARTH_MODEL_PROFILE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* In ascending order of preference by query plans. */
enum hearth_source {
    HEARTH_SOURCE_PROFILE,  /* rows that are neither late nor compacted */
    HEARTH_SOURCE_LATE,     /* rows that arrived after their bucket was closed: always read */
    HEARTH_SOURCE_SEGMENT,  /* compacted rows */
    HEARTH_SOURCE_TOTALS,   /* packed totals of a series; hearth_store_read_totals only */
    HEARTH_SOURCE_ROLL_10M, /* blocks */
    HEARTH_SOURCE_ROLL_1H,
    HEARTH_SOURCE_ROLL_1D,
    HEARTH_N_SOURCES
};

const char *hearth_source_name(enum hearth_source source); /* "profile", "late", .., "roll_1d" */
/* Length of a block in nanoseconds; 0 for sources of rows. */
int64_t hearth_source_length_ns(enum hearth_source source);

/* One instant of a series. */
struct hearth_read_instant {
    int32_t service_id, series_id;
    int64_t ts_ns;
};

/* Order instants by (service_id, series_id, ts_ns); for qsort and bsearch. */
int hearth_read_instant_compare(const void *a, const void *b);
/* Sort v[0..n) in that order and drop repeated instants. Returns how many are left. */
size_t hearth_read_instants_sort(struct hearth_read_instant *v, size_t n);

#endif
