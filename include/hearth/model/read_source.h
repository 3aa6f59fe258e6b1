/*
 * read_source.h -- the kinds of stored rows and blocks that a query reads.
 *
 * Threads: pure functions.
 * Source:  docs/decisions/0011-roll-ups.md.
 */
#ifndef HEARTH_MODEL_READ_SOURCE_H
#define HEARTH_MODEL_READ_SOURCE_H

#include <stdint.h>

/* Where profiles and sums of profiles lie. Order: what a plan prefers is further down. */
enum hearth_source {
    HEARTH_SOURCE_PROFILE,  /* rows that are neither late nor compacted */
    HEARTH_SOURCE_LATE,     /* rows that came after their bucket was closed: always read */
    HEARTH_SOURCE_SEGMENT,  /* compacted rows */
    HEARTH_SOURCE_TOTALS,   /* packed totals of a series and hour; hearth_store_read_totals only */
    HEARTH_SOURCE_ROLL_10M, /* blocks */
    HEARTH_SOURCE_ROLL_1H,
    HEARTH_SOURCE_ROLL_1D,
    HEARTH_N_SOURCES
};

const char *hearth_source_name(enum hearth_source source); /* "profile", "late", .., "roll_1d" */
/* Length of a block: 0 for rows. */
int64_t hearth_source_length_ns(enum hearth_source source);

#endif
