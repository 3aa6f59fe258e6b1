/*
 * task_leftovers.h -- stored results of tasks that never became profiles: their server was lost in
 * between, or the push failed, and agents do not send them again. A thread looks for them every 15
 * s and repeats the push under the same key, from one minute after they were stored until the key
 * is forgotten (50 minutes). Several servers may do this at once.
 *
 * Ownership: engine, ingest and budget are kept.
 * Threads:   start and stop from one thread.
 * Errors:    those of starting a thread.
 */
#ifndef HEARTH_ENGINE_TASK_LEFTOVERS_H
#define HEARTH_ENGINE_TASK_LEFTOVERS_H

#include "hearth/engine/ingest.h"
#include "hearth/engine/query.h"

struct hearth_task_leftovers;

/* Start the thread. The database need not be reachable yet. */
HEARTH_MUST_CHECK
enum hearth_status
hearth_task_leftovers_start(struct hearth_query_engine *engine, /* kept, like the next two */
                            struct hearth_ingest *ingest,
                            struct hearth_budget *budget, /* the budget of pushes */
                            struct hearth_task_leftovers **ret, struct hearth_err *err);
/* Stop the thread; the store must still be open. NULL-safe. */
void hearth_task_leftovers_stop(struct hearth_task_leftovers *leftovers);

#endif
