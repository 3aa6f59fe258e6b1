/*
 * gcd.h -- greatest common divisor, by which packed times and values are scaled (private to the
 * model).
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_GCD_H
#define HEARTH_MODEL_GCD_H

#include <stdint.h>

/* gcd(a, 0) is a. */
static inline uint64_t hearth_gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
