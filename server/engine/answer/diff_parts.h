/*
 * diff_parts.h -- the two sides of a diff, summed by slices of time and by series (private to the
 * engine).
 *
 * The parts of a division are numbered for both sides together. Slices begin at multiples of their
 * length, and equal slices of both sides have one number, as have equal series: the sides are then
 * compared part by part. Many series share parts.
 *
 * Threads: an object belongs to one query.
 */
#ifndef HEARTH_ENGINE_DIFF_PARTS_H
#define HEARTH_ENGINE_DIFF_PARTS_H

#include "hearth/model/noise.h"

#include "select/planned.h"

/* A range has at most this number of slices, and one more where both its ends cut one. */
#define HEARTH_DIFF_MAX_SLICES 32u
/* More series than this share parts. */
#define HEARTH_DIFF_MAX_SERIES_PARTS 24u
/* With more series than this in a side, blocks of whole services are read, which have no series. */
#define HEARTH_DIFF_MAX_SERIES 256u

enum hearth_diff_division {
    HEARTH_DIFF_BY_SLICES,
    HEARTH_DIFF_BY_SERIES,
    HEARTH_DIFF_N_DIVISIONS
};

struct hearth_diff_part_side {
    const struct hearth_query *query; /* borrowed, as the specification is */
    const struct hearth_merge_spec *spec;
    struct hearth_selection selection;
    int64_t slice_ns;    /* length of a slice */
    int64_t first_slice; /* time of the first slice over slice_ns, rounded down */
    size_t n_slices, first_part;
    size_t n_series;                                   /* series that are selected */
    struct hearth_sums *sums[HEARTH_DIFF_N_DIVISIONS]; /* [n_parts]; NULL: not divided so */
};

struct hearth_diff_parts {
    struct hearth_diff_part_side sides[2];
    int32_t *series_ids; /* of both sides, ascending */
    size_t n_series;
    size_t n_parts[HEARTH_DIFF_N_DIVISIONS]; /* 0: the sides are not divided so */
};

/*
 * Selects both sides, and reads their samples into sums, which are sorted. Release the object in
 * any case. Errors: those of a merge.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_diff_parts_read(struct hearth_diff_parts *parts,
                                          const struct hearth_query *const queries[2],
                                          const struct hearth_merge_spec *const specs[2],
                                          struct hearth_err *err);
void hearth_diff_parts_release(struct hearth_diff_parts *parts);

/* How much of the side's range lies in a slice, in nanoseconds. */
int64_t hearth_diff_slice_overlap(const struct hearth_diff_part_side *side, size_t part);

#endif
