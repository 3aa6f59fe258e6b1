/*
 * span_work.h -- how parts of the span index are cut into rows, and what the builder is at with them (private to the store).
 *
 * Threads: a merge is the builder's.
 */
#ifndef HEARTH_STORE_SPAN_WORK_H
#define HEARTH_STORE_SPAN_WORK_H

#include "hearth/model/span_index.h"

/* `bits` of a row is a multiple of this, so that a lookup has few sizes to ask for. */
#define HEARTH_SPAN_SIZE_BITS 2u
#define HEARTH_SPAN_N_SIZES   (HEARTH_SPAN_BUCKET_BITS / HEARTH_SPAN_SIZE_BITS + 1)

/* A tenant's day, of which parts may have gathered; of a running merge: which, and how far it is. */
struct hearth_span_merge {
    int32_t tenant_id, day;
    bool is_running;
    unsigned bits, to_bits;
    uint32_t end_bucket; /* those from here on are done */
    uint32_t n_buckets;  /* in a transaction */
    size_t n_moved;      /* associations, since the leaf was vacuumed */
};

#endif
