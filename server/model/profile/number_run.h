/*
 * number_run.h -- runs of up to 128 numbers in Rice code (private to the room).
 *
 *   byte   k, 0 to 56
 *   bits   the remainder of each number: its lowest k bits; zeros up to a whole byte
 *   bits   the quotient of each number, its other bits: as many 0 as it tells, then a 1; zeros up
 *          to a whole byte
 *
 * Bits are counted from the lowest one of each byte. Small numbers with a similar magnitude take
 * about two bits more than k, and each run has the k that suits it.
 *
 * Threads: pure.
 * Source:  R. F. Rice, "Some Practical Universal Noiseless Coding Techniques", JPL 79-22, 1979.
 */
#ifndef HEARTH_MODEL_NUMBER_RUN_H
#define HEARTH_MODEL_NUMBER_RUN_H

#include "hearth/base/compiler.h"

#define HEARTH_RUN_NUMBERS 128u
/* Numbers of more bits have no code. */
#define HEARTH_RUN_MAX_BITS 56u
/* hearth_run_write may touch so many bytes after the end of a run. */
#define HEARTH_RUN_SLACK 8u

struct hearth_run_shape {
    uint16_t n_bytes; /* at most 8 for each number, and 3 */
    uint8_t k;
};

/*
 * Choose k for a run of 1 to HEARTH_RUN_NUMBERS numbers. False if a number has more than
 * HEARTH_RUN_MAX_BITS bits.
 */
bool hearth_run_measure(const uint64_t *numbers, uint32_t n, struct hearth_run_shape *ret);
/* Write the run; returns its end. `out` has room for its bytes and HEARTH_RUN_SLACK. */
uint8_t *hearth_run_write(uint8_t *out, const uint64_t *numbers, uint32_t n, uint32_t k);

/* Where the next run starts. Stored bytes are hostile: nothing is read at or after `end`. */
struct hearth_run_reader {
    const uint8_t *at, *end;
};

/*
 * Read a run of n numbers, n as for hearth_run_measure. places[i] is the sum of the numbers up to
 * number i, plus i: if each number is the distance from one element of an ascending list to the
 * next one, less one, these are the elements, less the first possible one. Both arrays have room
 * for HEARTH_RUN_NUMBERS. False if the bytes are damaged, a place exceeds UINT32_MAX, or a number
 * 63 bits.
 */
HEARTH_MUST_CHECK bool hearth_run_read_places(struct hearth_run_reader *reader, uint32_t n,
                                              uint32_t *places);
HEARTH_MUST_CHECK bool hearth_run_read_numbers(struct hearth_run_reader *reader, uint32_t n,
                                               uint64_t *numbers);

#endif
