/*
 * student.c -- tails of Student's t-distribution (contract: noise.h).
 *
 * P(|t| > x) with n degrees of freedom is the regularised incomplete beta function
 * I(n / (n + x^2); n/2, 1/2) (DLMF 8.17), evaluated by its continued fraction (DLMF 8.17.22) in
 * Lentz's way.
 */
#include "hearth/model/noise.h"

#include <assert.h>
#include <math.h>

#define MAX_TERMS 500
#define EPSILON   1e-14
#define TINY      1e-300

static double away_from_zero(double x)
{
    return fabs(x) < TINY ? TINY : x;
}

/* The continued fraction of the incomplete beta function. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), ret = d;

    for (int m = 1; m <= MAX_TERMS; m++) {
        /* The even term, then the odd one. */
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        ret *= d * c;

        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        ret *= d * c;
        if (fabs(d * c - 1) < EPSILON) {
            break;
        }
    }

    return ret;
}

double hearth_student_p(double t, double n)
{
    assert(n >= 1);

    double x = n / (n + t * t), a = n / 2, b = 0.5;
    if (!(x < 1)) {
        return 1;
    }
    if (x <= 0) {
        return 0;
    }

    int sign; /* lgamma_r is the form that threads may share */
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log1p(-x));

    /* The fraction converges quickly on one side of the mode; the other side is its mirror. */
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double hearth_student_t95(double n)
{
    double low = 1.9, high = 13; /* n is at least 1: t is at most 12.71 */

    assert(n >= 1);

    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (hearth_student_p(middle, n) > 0.05) {
            low = middle;
        } else {
            high = middle;
        }
    }

    return high;
}
