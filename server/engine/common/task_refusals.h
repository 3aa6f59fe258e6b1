/*
 * task_refusals.h -- texts about data that agents sent for tasks and that was refused (private to
 * the engine).
 *
 * Threads: pure functions.
 */
#ifndef HEARTH_ENGINE_TASK_REFUSALS_H
#define HEARTH_ENGINE_TASK_REFUSALS_H

#include "hearth/base/arena.h"
#include "hearth/base/str.h"

/* "the agent's clock is 20 min ahead of the server's"; ahead_ns below 0: behind. */
void hearth_task_clock_text(double ahead_ns, char out[96]);
/*
 * The sentence for the log of a task whose data was refused, in arena; .p is NULL if that is full.
 */
struct hearth_str hearth_task_refusal_text(const struct hearth_err *err,
                                           struct hearth_arena *arena);

#endif
