/*
 * read_parts.h -- the plan of the services of one node (private to the room).
 *
 * Threads: pure.
 */
#ifndef HEARTH_STORE_READ_PARTS_H
#define HEARTH_STORE_READ_PARTS_H

#include "hearth/store/read.h"

#include "read/node_parts.h"

/*
 * Make the plan of a part: the legs of the plan for each of its shards, one after the other, or
 * once if it has none, with the hits of its services only. Legs without hits stay, so that leg i
 * comes from leg i % plan->n_legs. All in the arena. NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_read_part_plan(const struct hearth_read_plan *plan,
                                                           const struct hearth_node_part *part,
                                                           struct hearth_arena *arena,
                                                           struct hearth_read_plan *ret,
                                                           struct hearth_err *err);

#endif
