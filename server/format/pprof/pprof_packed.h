/*
 * pprof_packed.h -- packed ids of locations that are numbered 1..n, eight bytes at a time (private
 * to the pprof decoder).
 *
 * Needs byte shuffles, which not every processor has: ask hearth_pprof_packed_works first.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_PPROF_PACKED_H
#define HEARTH_FORMAT_PPROF_PACKED_H

#include "hearth/base/compiler.h"

/* So many ids may be written behind the last one that counts. */
#define PPROF_PACKED_SPARE 8

/* Whether this processor has the instructions. */
bool hearth_pprof_packed_works(void);

/*
 * Reads ids of one and two bytes from p up to `end`, and appends id - 1 of each to *out. Stops
 * before an id that the caller must read: one that is longer, cut off, 0 or above n_locations.
 * Returns where it stopped, and moves *out.
 *
 * The byte before p and 8 bytes from `end` on must be readable; the former must not have its top
 * bit set. *out must have room for one id for each byte, and PPROF_PACKED_SPARE more.
 */
const uint8_t *hearth_pprof_packed_read(const uint8_t *p, const uint8_t *end, uint32_t n_locations,
                                        uint32_t **out);

#endif
