/*
 * svc_tasks.h -- check that stored task settings can be answered, for the import of tasks (private
 * to the front). Threads: confined to the request.
 */
#ifndef HEARTH_FRONT_SVC_TASKS_H
#define HEARTH_FRONT_SVC_TASKS_H

#include "hearth/base/str.h"

/*
 * True if a task with this JSON can be answered. An empty text is valid: the task has no such
 * setting. `rpc` is a struct hearth_rpc: its arena is used, and its err is set on failure.
 */
bool hearth_task_json_is_shown(void *rpc, struct hearth_str sampling, struct hearth_str causes);

#endif
