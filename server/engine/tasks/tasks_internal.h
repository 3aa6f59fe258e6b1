/* tasks_internal.h -- what the files about tasks share (private to the engine). */
#ifndef HEARTH_ENGINE_TASKS_INTERNAL_H
#define HEARTH_ENGINE_TASKS_INTERNAL_H

#include "hearth/engine/tasks.h"
#include "hearth/store/task_facts.h"

#include "select/query_internal.h"

#define HEARTH_MS_PER_MINUTE        INT64_C(60000)
#define HEARTH_TASK_EXEC_ARGS_BYTES 4096

/* ---- task_checks.c ---- */

/*
 * What of a request needs no database, in the order of its source, and the task that it makes: trimmed, without empty
 * and repeated texts, with start and duration; no id, service id or creation time yet. In arena. scope: of
 * the service, for what depends on its processes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_check(const struct hearth_task_request *request,
                                     const struct hearth_task_scope *scope, int64_t now_ms,
                                     struct hearth_arena *arena, struct hearth_task *ret,
                                     struct hearth_err *err);
/* What is said when another task runs then; NULL: it may. */
const char *hearth_task_overlap_message(enum hearth_task_kind kind);
/* Labels as they count: without empty ones and repetitions, sorted. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_texts(const struct hearth_str *texts, size_t n,
                                     struct hearth_arena *arena, struct hearth_str **ret,
                                     size_t *ret_n, struct hearth_err *err);

/* ---- task_events.c ---- */

/* Later events that equal an earlier one are dropped; the order stays. */
void hearth_task_drop_repeated_events(struct hearth_task *task);
/*
 * Events by their known names, each once, in the order in which agents are given them: of async-profiler the one that
 * samples execution first, the others as the request has them. INVALID_ARGUMENT.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_check_events(struct hearth_task *task, struct hearth_err *err);

/* ---- task_commands.c ---- */

/* In arena; serial: not empty, another one each time. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_command(const struct hearth_task *task,
                                       const struct hearth_str *process_ids, size_t n_process_ids,
                                       int64_t cursor_ms, struct hearth_str serial,
                                       struct hearth_arena *arena, struct hearth_command *ret,
                                       struct hearth_err *err);

/* ---- task_states.c ---- */

/* How a task and each of its targets stand. Texts in arena; NO_MEMORY shows there. */
void hearth_task_judge(const struct hearth_task *task, const struct hearth_task_fact *fact,
                       int64_t now_ms, struct hearth_arena *arena, struct hearth_judgement *ret,
                       struct hearth_judgement *ret_targets); /* [n_targets]; may be NULL */
/* When the last of those who were told ends by itself; 0: nobody was told. */
int64_t hearth_task_last_end(const struct hearth_task *task, const struct hearth_task_fact *fact);
/* "2026-11-20T10:36:30.000Z" in arena. */
const char *hearth_task_time(int64_t ms, struct hearth_arena *arena);

#endif
