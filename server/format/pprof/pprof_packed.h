/*
 * pprof_packed.h -- packed ids of locations that are numbered 1..n, eight bytes at a time (private
 * to the pprof decoder).
 *
 * Needs AVX2, which not every processor has: ask hearth_pprof_packed_works first.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_PPROF_PACKED_H
#define HEARTH_FORMAT_PPROF_PACKED_H

#include "hearth/base/compiler.h"

/* So many ids may be written behind the last one that counts. */
#define PPROF_PACKED_SPARE 8

/* Ids of two bytes reach so many. */
#define PPROF_PACKED_MAX_LOCATIONS 0x3fffu

/* Whether this processor has the instructions. */
bool hearth_pprof_packed_works(void);

/*
 * Reads ids of one and two bytes from p up to `end`, and writes id - 1 of each to `to`; *ret_n says
 * how many. False if one of them is longer, cut off, 0 or above n_locations, or if there are more
 * than PPROF_PACKED_MAX_LOCATIONS locations: then nothing counts.
 *
 * The byte before p and 16 bytes from `end` on must be readable; the former must not have its top
 * bit set. `to` must have room for one id for each byte, and PPROF_PACKED_SPARE more.
 */
HEARTH_MUST_CHECK bool hearth_pprof_packed_read(const uint8_t *p, const uint8_t *end,
                                                uint32_t n_locations, uint32_t *to, size_t *ret_n);

#endif
