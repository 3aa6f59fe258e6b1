/* noise.c -- standard errors of ratios, intervals and q-values (contract: noise.h). */
#include "hearth/model/noise.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Degrees of freedom are rounded down, and not distinguished above this number. */
#define MAX_FREEDOM 200u

enum part_group {
    IN_BOTH,
    ONLY_LEFT,
    ONLY_RIGHT,
    N_PART_GROUPS
};

struct item_error {
    double variance, freedom;
    double usual; /* the binomial variance of a share of this size */
};

enum hearth_status hearth_noise_init(struct hearth_noise *noise, enum hearth_noise_kind kind,
                                     size_t n_items, const int64_t *const values[2],
                                     const int64_t weights[2], struct hearth_arena *arena,
                                     struct hearth_err *err)
{
    assert(weights[0] > 0 && weights[1] > 0);

    *noise = (struct hearth_noise){.kind = kind,
                                   .n_items = n_items,
                                   .arena = arena,
                                   .weight = {(double)weights[0], (double)weights[1]}};
    double *all = hearth_arena_calloc(arena, 5 * n_items, sizeof all[0]);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    noise->left = all;
    noise->right = all + n_items;
    noise->mean = all + 2 * n_items;
    noise->half = all + 3 * n_items;
    noise->p = all + 4 * n_items;
    for (size_t i = 0; i < n_items; i++) {
        double left = (double)values[0][i], right = (double)values[1][i];
        noise->left[i] = left / noise->weight[0];
        noise->right[i] = right / noise->weight[1];
        noise->mean[i] = (left + right) / (noise->weight[0] + noise->weight[1]);
    }

    return HEARTH_OK;
}

static enum part_group find_part_group(const struct hearth_noise_side sides[2], size_t part)
{
    return sides[1].weights[part] == 0   ? ONLY_LEFT
           : sides[0].weights[part] == 0 ? ONLY_RIGHT
                                         : IN_BOTH;
}

/* What a division has: the weight of each side, and the number of parts of each group. */
struct division {
    size_t n_parts, n_items;
    const struct hearth_noise_side *sides;
    double weight[2];
    size_t n_of_group[N_PART_GROUPS];
};

static bool measure_division(struct division *division)
{
    size_t n_of_side[2] = {0, 0};

    for (size_t part = 0; part < division->n_parts; part++) {
        for (size_t s = 0; s < 2; s++) {
            division->weight[s] += (double)division->sides[s].weights[part];
            n_of_side[s] += division->sides[s].weights[part] > 0;
        }
        if (division->sides[0].weights[part] > 0 || division->sides[1].weights[part] > 0) {
            division->n_of_group[find_part_group(division->sides, part)]++;
        }
    }

    return n_of_side[0] >= HEARTH_NOISE_MIN_PARTS && n_of_side[1] >= HEARTH_NOISE_MIN_PARTS;
}

/*
 * The variance of an item's change. Each part moves the ratio of a side by its residual over the
 * weight of the side; the squares of these moves add up. Parts of both sides count by the
 * difference of their two moves. Degrees of freedom are those of Welch and Satterthwaite.
 */
static struct item_error measure_item(const struct division *division, size_t item)
{
    double squares[N_PART_GROUPS] = {0}, ratio[2] = {0, 0};
    const struct hearth_noise_side *sides = division->sides;

    for (size_t s = 0; s < 2; s++) {
        for (size_t part = 0; part < division->n_parts; part++) {
            ratio[s] += (double)sides[s].values[part * division->n_items + item];
        }
        ratio[s] /= division->weight[s];
    }

    for (size_t part = 0; part < division->n_parts; part++) {
        double move[2];
        for (size_t s = 0; s < 2; s++) {
            double value = (double)sides[s].values[part * division->n_items + item];
            move[s] = (value - ratio[s] * (double)sides[s].weights[part]) / division->weight[s];
        }
        squares[find_part_group(sides, part)] += (move[1] - move[0]) * (move[1] - move[0]);
    }

    struct item_error error = {0};
    double divisor = 0;
    for (size_t g = 0; g < N_PART_GROUPS; g++) {
        size_t n = division->n_of_group[g];
        if (n == 0) {
            continue;
        }
        double freedom = n > 1 ? (double)(n - 1) : 1;
        double variance = squares[g] * (double)n / freedom;
        error.variance += variance;
        divisor += variance * variance / freedom;
        error.freedom += freedom; /* if nothing varies */
    }

    if (divisor > 0) {
        error.freedom = error.variance * error.variance / divisor;
    }

    return error;
}

static int compare_doubles(const void *left, const void *right)
{
    double a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* The median, over all items, of the variance over the usual variance; 0: unknown. */
static double find_dispersion(const struct item_error *errors, size_t n, double *scratch)
{
    size_t n_known = 0;

    for (size_t i = 0; i < n; i++) {
        if (errors[i].usual > 0) {
            scratch[n_known++] = errors[i].variance / errors[i].usual;
        }
    }

    if (n_known == 0) {
        return 0;
    }

    qsort(scratch, n_known, sizeof scratch[0], compare_doubles);
    return scratch[n_known / 2];
}

/* The binomial variance of the change of a share, for samples of weight 1. */
static double find_usual_variance(const struct hearth_noise *noise, size_t item)
{
    double share = noise->mean[item];
    return noise->kind == HEARTH_NOISE_SHARES
               ? share * (1 - share) * (1 / noise->weight[0] + 1 / noise->weight[1])
               : 0;
}

/*
 * The 95th percentile of a variance that is estimated with n degrees of freedom, over the true one:
 * that of chi-squared over n, in the approximation of Wilson and Hilferty.
 */
static double find_chance_ratio(double n)
{
    double root = 1 - 2 / (9 * n) + 1.644854 * sqrt(2 / (9 * n));
    return root * root * root;
}

/* Keeps the larger p and the wider interval of an item. */
static void keep_weaker(struct hearth_noise *noise, size_t item, double p, double half)
{
    noise->p[item] = p > noise->p[item] ? p : noise->p[item];
    noise->half[item] = half > noise->half[item] ? half : noise->half[item];
}

enum hearth_status hearth_noise_divide(struct hearth_noise *noise, size_t n_parts,
                                       const struct hearth_noise_side sides[2], bool *ret_used,
                                       struct hearth_err *err)
{
    struct division division = {.n_parts = n_parts, .n_items = noise->n_items, .sides = sides};

    *ret_used = measure_division(&division);
    if (!*ret_used) {
        return HEARTH_OK;
    }

    struct item_error *errors = hearth_arena_array(noise->arena, noise->n_items, sizeof errors[0]);
    double *scratch = hearth_arena_array(noise->arena, noise->n_items, sizeof scratch[0]);
    if (errors == NULL || scratch == NULL) {
        return HEARTH_FAIL_ARENA(err, noise->arena);
    }

    for (size_t i = 0; i < noise->n_items; i++) {
        errors[i] = measure_item(&division, i);
        errors[i].usual = find_usual_variance(noise, i);
    }

    /*
     * No item varies less than an item of its size usually does. If it does not vary more than that
     * either, but for chance, its variance is known as well as that of all items together.
     */
    double dispersion = find_dispersion(errors, noise->n_items, scratch);
    double t95[MAX_FREEDOM + 1] = {0}; /* by degrees of freedom; 0: not computed yet */
    double pooled = (double)(division.n_of_group[IN_BOTH] + division.n_of_group[ONLY_LEFT] +
                             division.n_of_group[ONLY_RIGHT] - 1);
    for (size_t i = 0; i < noise->n_items; i++) {
        double least = dispersion * errors[i].usual, variance = errors[i].variance;
        double freedom = errors[i].freedom;
        if (variance <= least * find_chance_ratio(freedom) && pooled > freedom) {
            freedom = pooled;
        }
        variance = variance < least ? least : variance;
        freedom = freedom > MAX_FREEDOM ? MAX_FREEDOM : freedom < 1 ? 1 : floor(freedom);

        double *t = &t95[(size_t)freedom];
        *t = *t == 0 ? hearth_student_t95(freedom) : *t;
        double change = noise->right[i] - noise->left[i], deviation = sqrt(variance);
        keep_weaker(noise, i,
                    change == 0      ? 1
                    : deviation == 0 ? 0
                                     : hearth_student_p(change / deviation, freedom),
                    *t * deviation);
    }

    noise->n_divisions++;
    return HEARTH_OK;
}

void hearth_noise_assume(struct hearth_noise *noise, double quantum)
{
    assert(noise->n_divisions == 0 && noise->kind == HEARTH_NOISE_SHARES && quantum > 0);

    for (size_t i = 0; i < noise->n_items; i++) {
        double deviation = sqrt(quantum * find_usual_variance(noise, i));
        double change = noise->right[i] - noise->left[i];
        keep_weaker(noise, i, deviation == 0 ? 1 : erfc(fabs(change) / deviation / M_SQRT2),
                    1.959964 * deviation);
    }

    noise->n_divisions++;
}

/* An item and its p, to be sorted. */
struct ranked_item {
    double p;
    size_t item;
};

static int compare_item_ranks(const void *left, const void *right)
{
    struct ranked_item a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return a.p != b.p ? (a.p > b.p) - (a.p < b.p) : (a.item > b.item) - (a.item < b.item);
}

enum hearth_status hearth_noise_rank(struct hearth_change *changes, size_t n,
                                     struct hearth_arena *arena, struct hearth_err *err)
{
    struct ranked_item *ranked = hearth_arena_array(arena, n, sizeof ranked[0]);
    if (ranked == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        ranked[i] = (struct ranked_item){changes[i].p, i};
    }

    /* The q of an item is the least level at which it or a less likely one is accepted. */
    if (n > 0) {
        qsort(ranked, n, sizeof ranked[0], compare_item_ranks);
    }

    double q = 1;
    for (size_t rank = n; rank > 0; rank--) {
        double own = ranked[rank - 1].p * (double)n / (double)rank;
        q = own < q ? own : q;
        changes[ranked[rank - 1].item].q = q;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_noise_finish(const struct hearth_noise *noise,
                                       struct hearth_change *changes, struct hearth_err *err)
{
    for (size_t i = 0; i < noise->n_items; i++) {
        double change = noise->right[i] - noise->left[i], half = noise->half[i];
        double p = noise->n_divisions == 0 ? 1 : noise->p[i];
        changes[i] = (struct hearth_change){change, change - half, change + half, p, 1};
    }

    return hearth_noise_rank(changes, noise->n_items, noise->arena, err);
}
