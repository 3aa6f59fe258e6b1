/* svc_tasks.h -- how tasks are shown, for who takes them in from elsewhere (private to the front).
 * */
#ifndef HEARTH_FRONT_SVC_TASKS_H
#define HEARTH_FRONT_SVC_TASKS_H

#include "hearth/base/str.h"

/* Can a task with this JSON (empty: none) be answered? `rpc`: a call, whose arena is used. */
bool hearth_task_json_is_shown(void *rpc, struct hearth_str sampling, struct hearth_str causes);

#endif
