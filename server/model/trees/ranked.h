/*
 * ranked.h -- siblings in byte order of their names, for the files that lay out trees (private to
 * the model).
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_RANKED_H
#define HEARTH_MODEL_RANKED_H

#include "hearth/base/str.h"

/* A child with the key of its order among its siblings. */
struct hearth_ranked {
    uint64_t prefix; /* the first eight bytes of the name, big-endian: decides most comparisons */
    uint32_t node;
    struct hearth_str name;
};

struct hearth_ranked hearth_ranked(uint32_t node, struct hearth_str name);
void hearth_ranked_sort(struct hearth_ranked *kids, size_t n);

#endif
