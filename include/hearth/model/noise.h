/*
 * noise.h -- whether costs changed between two sides by more than noise.
 *
 * Each side is divided into parts, such as slices of time or series. An item, such as a node of a
 * flame graph, has a value in each part, and a part has a weight: for shares the total of the part,
 * for rates its duration. The ratio of an item is its value over the weight of the side. How much
 * the item's value varies from part to part around its ratio gives the standard error of the ratio
 * (the ratio estimator of cluster sampling), and Student's t gives an interval of the change and
 * the probability that noise alone makes a change as large. A part that both sides have is compared
 * with itself, so what both sides share in it cancels.
 *
 * Few parts can agree by chance. Therefore no share is given less than the usual variance of a
 * share of its size: the binomial variance times the median over-dispersion of all items.
 *
 * A side may be divided in several ways; the way with the least evidence counts. Without any usable
 * division, hearth_noise_assume takes the Poisson distribution of a known number of samples.
 *
 * Probabilities become q-values by the procedure of Benjamini and Hochberg: among items whose q is
 * at most 0.05, at most 5 % are expected to be chance.
 *
 * Threads: an object belongs to one thread.
 * Source:  docs/explanation/noise.md names the formulas and their origin.
 */
#ifndef HEARTH_MODEL_NOISE_H
#define HEARTH_MODEL_NOISE_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

/* A change is beyond noise if its q is at most this. */
#define HEARTH_NOISE_Q 0.05

/* A side with fewer parts is not judged by them. */
#define HEARTH_NOISE_MIN_PARTS 4u

enum hearth_noise_kind {
    HEARTH_NOISE_SHARES, /* ratios from 0 to 1 */
    HEARTH_NOISE_RATES,  /* other ratios */
};

/* One side: left is side 0, right is side 1. Arrays are borrowed. */
struct hearth_noise_side {
    const int64_t *weights; /* [n_parts] >= 0; 0: the side has nothing in the part */
    const int64_t *values;  /* [n_parts * n_items], part by part, >= 0 */
};

/* The change of an item's ratio from left to right. */
struct hearth_change {
    double change;    /* right - left */
    double low, high; /* the interval that contains the true change in 95 % of all cases */
    double p, q;      /* 1, 1: not judged */
};

struct hearth_noise {
    enum hearth_noise_kind kind;
    size_t n_items;
    struct hearth_arena *arena;
    double *left, *right, *mean; /* [n_items]: ratios of the sides, and of both together */
    double *half, *p;            /* [n_items]: half of the widest interval, largest p */
    double weight[2];
    size_t n_divisions;
};

/*
 * Starts with the exact values of the items, [n_items] of each side, and the weights of both sides,
 * which must not be 0. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_noise_init(struct hearth_noise *noise, enum hearth_noise_kind kind,
                                     size_t n_items, const int64_t *const values[2],
                                     const int64_t weights[2], struct hearth_arena *arena,
                                     struct hearth_err *err);

/*
 * Adds a division of both sides into the same parts. It is ignored, and *ret_used is false, if a
 * side has fewer than HEARTH_NOISE_MIN_PARTS parts with a weight. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_noise_divide(struct hearth_noise *noise, size_t n_parts,
                                       const struct hearth_noise_side sides[2], bool *ret_used,
                                       struct hearth_err *err);

/* For shares without a division: every value is a sum of independent samples of `quantum` each. */
void hearth_noise_assume(struct hearth_noise *noise, double quantum);

/* The changes of all items; the object needs no release. */
HEARTH_MUST_CHECK
enum hearth_status hearth_noise_finish(const struct hearth_noise *noise,
                                       struct hearth_change *changes, struct hearth_err *err);

/*
 * Set the q-values of changes by their p, as if all belonged to one object: for the changes of
 * several objects that are shown together. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_noise_rank(struct hearth_change *changes, size_t n,
                                     struct hearth_arena *arena, struct hearth_err *err);

/* The probability of a larger |t| in Student's distribution of n >= 1 degrees of freedom. */
double hearth_student_p(double t, double n);
/* The t that |t| exceeds with probability 0.05. */
double hearth_student_t95(double n);

#endif
