/*
 * committers.h -- the threads that commit batches (private to the store).
 *
 * Threads: safe; _start and _stop are for the thread that opens, keeps and closes the store, and
 * _follow is for one thread at a time.
 */
#ifndef HEARTH_STORE_COMMITTERS_H
#define HEARTH_STORE_COMMITTERS_H

#include "hearth/store/store.h"

struct hearth_committers;
struct hearth_nodes;

/*
 * List the seqs of the batches that are under way, in the arena. No other batch with a seq below
 * *ret_next will be sent again. NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_committers_list_unsettled(struct hearth_committers *all,
                                                                      struct hearth_arena *arena,
                                                                      int64_t **ret, size_t *ret_n,
                                                                      int64_t *ret_next,
                                                                      struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status
hearth_committers_start(struct hearth_store *store, struct hearth_committers **ret_committers,
                        struct hearth_err *err);
/*
 * Store services on the nodes that own them by the present map, and follow it when it has changed:
 * for the thread that refreshes it. `nodes` outlives the committers. Costs little if the map is the
 * same. After a failure the old map holds.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_committers_follow(struct hearth_committers *all,
                                                              struct hearth_nodes *nodes,
                                                              struct hearth_err *err);
/* Start the committers of nodes 0 to n_nodes - 1, as far as they do not run yet. For _follow. */
HEARTH_MUST_CHECK enum hearth_status
hearth_committers_add(struct hearth_committers *all, unsigned n_nodes, struct hearth_err *err);
void hearth_committers_stop(struct hearth_committers *all, int64_t deadline_mono_ns);

#endif
