/*
 * task_leftovers.h -- what tasks brought that was stored and never became profiles: its server was lost in between, or the
 * push failed, and agents do not send it again. A thread looks for it every 15 s and makes the same push, under the same
 * key, from a minute on until the key is forgotten (50 minutes). Several servers may do it at once.
 *
 * Threads: start and stop from one thread.
 */
#ifndef HEARTH_ENGINE_TASK_LEFTOVERS_H
#define HEARTH_ENGINE_TASK_LEFTOVERS_H

#include "hearth/engine/ingest.h"
#include "hearth/engine/query.h"

struct hearth_task_leftovers;

/* The database may not be there yet. */
HEARTH_MUST_CHECK
enum hearth_status
hearth_task_leftovers_start(struct hearth_query_engine *engine, /* kept, as the next two */
                            struct hearth_ingest *ingest,
                            struct hearth_budget *budget, /* of pushes */
                            struct hearth_task_leftovers **ret, struct hearth_err *err);
/* While the store is open. NULL-safe. */
void hearth_task_leftovers_stop(struct hearth_task_leftovers *leftovers);

#endif
