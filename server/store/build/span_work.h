/*
 * span_work.h -- the sizes of rows of the span index, and the builder's merges of its parts
 * (private to the store).
 *
 * Threads: struct hearth_span_merge is confined to the builder's thread.
 */
#ifndef HEARTH_STORE_SPAN_WORK_H
#define HEARTH_STORE_SPAN_WORK_H

#include "hearth/model/span_index.h"

/* `bits` of a row is a multiple of this, so that a lookup searches few sizes. */
#define HEARTH_SPAN_SIZE_BITS 2u
#define HEARTH_SPAN_N_SIZES   (HEARTH_SPAN_BUCKET_BITS / HEARTH_SPAN_SIZE_BITS + 1)

/* A tenant's day that may have gathered parts, and the state of its merge. */
struct hearth_span_merge {
    int32_t tenant_id, day;
    bool is_running;        /* false: the fields from bits to n_buckets have no meaning */
    unsigned bits, to_bits; /* size of the merged rows, size of the new rows (not below bits) */
    uint32_t end_bucket;    /* buckets from this one on are merged */
    uint32_t n_buckets;     /* of a transaction, at most */
    size_t n_moved;         /* associations moved since the leaf was vacuumed */
};

#endif
