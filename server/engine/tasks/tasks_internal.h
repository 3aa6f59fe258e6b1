/* tasks_internal.h -- declarations shared by the files about tasks (private to the engine). */
#ifndef HEARTH_ENGINE_TASKS_INTERNAL_H
#define HEARTH_ENGINE_TASKS_INTERNAL_H

#include "hearth/engine/tasks.h"
#include "hearth/store/task_delivery.h"
#include "hearth/store/task_facts.h"

#include "select/query_internal.h"

#define HEARTH_MS_PER_MINUTE        INT64_C(60000)
#define HEARTH_TASK_EXEC_ARGS_BYTES 4096

/* ---- task_checks.c ---- */

/*
 * Check a request as far as no database is needed, in the order of SkyWalking's server, and make
 * its task in arena: texts trimmed, without empty and repeated ones, with start and duration; id,
 * service id and creation time are not set. scope: facts about the service, for checks that depend
 * on its processes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_check(const struct hearth_task_request *request,
                                     const struct hearth_task_scope *scope, int64_t now_ms,
                                     struct hearth_arena *arena, struct hearth_task *ret,
                                     struct hearth_err *err);
/* The error text if another task overlaps; NULL: tasks of this kind may overlap. */
const char *hearth_task_overlap_message(enum hearth_task_kind kind);
/* Copy labels without empty and repeated ones, sorted. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_texts(const struct hearth_str *texts, size_t n,
                                     struct hearth_arena *arena, struct hearth_str **ret,
                                     size_t *ret_n, struct hearth_err *err);

/* ---- task_events.c ---- */

/* Drop events that repeat an earlier one; the order is kept. */
void hearth_task_drop_repeated_events(struct hearth_task *task);
/*
 * Replace events by their known names, each once, in the order in which agents receive them: for
 * async-profiler the event that samples execution first, the others in the order of the request.
 * INVALID_ARGUMENT: an unknown event, or several that sample execution.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_check_events(struct hearth_task *task, struct hearth_err *err);

/* ---- task_commands.c ---- */

/* Make the command of a task, in arena. serial: not empty, different each time. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_command(const struct hearth_told_task *told,
                                       struct hearth_str serial, struct hearth_arena *arena,
                                       struct hearth_command *ret, struct hearth_err *err);

/* ---- task_states.c ---- */

/* Judge a task and each of its targets. Texts in arena; the caller checks arena->refused. */
void hearth_task_judge(const struct hearth_task *task, const struct hearth_task_fact *fact,
                       int64_t now_ms, struct hearth_arena *arena, struct hearth_judgement *ret,
                       struct hearth_judgement *ret_targets); /* one for each target; may be NULL */
/* Time at which the last target that received the task ends by itself; 0: no target received it. */
int64_t hearth_task_last_end(const struct hearth_task *task, const struct hearth_task_fact *fact);
/* A time as text in arena: "2026-11-20T10:36:30.000Z". */
const char *hearth_task_time(int64_t ms, struct hearth_arena *arena);

#endif
