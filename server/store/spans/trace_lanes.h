/*
 * trace_lanes.h -- spans on the nodes of distributed tables: each node has a queue and a thread of
 * its own, so a node that is down delays the spans of its services only (private to the store).
 *
 * The catalogue commits first (trace_batch.c): services, ids of spans, snapshots. Then each part of
 * an item is inserted on its node. The service may have been removed between the two, while it had
 * no spans: so its row is locked and looked at afterwards. An item is done when all of its parts
 * are. If one fails, the item fails, and its repetition stores what is missing.
 *
 * Parts of a node take at most half of max-span-queue-bytes.
 *
 * Threads: _submit and _stop belong to the writer's thread and to the one that stops it.
 * Source:  docs/decisions/0044-connections-to-nodes.md, 0043-distributed-tables.md.
 */
#ifndef HEARTH_STORE_TRACE_LANES_H
#define HEARTH_STORE_TRACE_LANES_H

#include "spans/trace_parts.h"

struct hearth_trace_lanes;

/* Called from the thread of a node when the last part of an item has ended. */
typedef void hearth_trace_end_fn(void *context, struct hearth_trace_item *item,
                                 enum hearth_status status, const struct hearth_err *err);

/* No thread runs yet. `cancel` ends statements; it outlives the lanes. */
HEARTH_MUST_CHECK enum hearth_status hearth_trace_lanes_new(struct hearth_store *store,
                                                            struct hearth_cancel *cancel,
                                                            hearth_trace_end_fn *end, void *context,
                                                            struct hearth_trace_lanes **ret,
                                                            struct hearth_err *err);
/* Queue parts, which belong to the lanes then. An item whose node has no room fails. */
void hearth_trace_lanes_submit(struct hearth_trace_lanes *lanes, struct hearth_trace_part *parts);
/*
 * Let the threads empty their queues until the deadline; then `cancel` is set, and the rest fails
 * with UNAVAILABLE. NULL-safe.
 */
void hearth_trace_lanes_stop(struct hearth_trace_lanes *lanes, int64_t deadline_mono_ns);

#endif
