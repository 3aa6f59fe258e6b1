/* mcp_task.c -- tools for profiling tasks. */
#include "ask.h"
#include "cli_call.h"
#include "cmd_task.h"
#include "mcp.h"

static void put_task_members(struct mcp_call *call, const Hearth__V1__Task *task)
{
    mcp_put_text(call, "task", task->task_id);
    mcp_put_text(call, "kind", cli_task_kind(task->kind));
    mcp_put_name(call, "service", task->service);
    mcp_put_text(call, "state", cli_task_state(task->state));
    mcp_put_text(call, "reason", task->state_reason);
    mcp_put_time(call, "start", task->start_ms);
    mcp_put_count(call, "duration_milliseconds", task->duration_ms);
}

enum hearth_status mcp_tasks_list(struct mcp_call *call)
{
    struct cli *cli = &call->cli;
    Hearth__V1__ListTasksRequest request;
    Hearth__V1__ListTasksResponse *answer;

    hearth__v1__list_tasks_request__init(&request);
    request.service = cli_field(cli, cli->agent.service == NULL ? "" : cli->agent.service);
    request.page_size = (int32_t)mcp_limit(call, 10);
    if (cli->since != NULL || cli->from != NULL || cli->to != NULL) {
        HEARTH_TRY(cli_resolve_range(cli));
        request.start_ms = cli->from_ms;
        request.end_ms = cli->to_ms;
    }
    HEARTH_TRY(cli_call(cli, CLI_TASKS "ListTasks", &request,
                        &hearth__v1__list_tasks_response__descriptor, &answer));

    hearth_json_key_c(&call->answer, "tasks");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < answer->n_tasks; i++) {
        hearth_json_object(&call->answer);
        put_task_members(call, answer->tasks[i]);
        hearth_json_object_end(&call->answer);
    }
    hearth_json_array_end(&call->answer);
    if (answer->next_page_token[0] != '\0') {
        mcp_put_text(call, "cut", "there are older tasks; a larger limit shows them");
    }

    return HEARTH_OK;
}

enum hearth_status mcp_task_get(struct mcp_call *call)
{
    Hearth__V1__GetTaskRequest request;
    Hearth__V1__GetTaskResponse *answer;

    hearth__v1__get_task_request__init(&request);
    request.task_id = cli_field(&call->cli, call->task);
    HEARTH_TRY(cli_call(&call->cli, CLI_TASKS "GetTask", &request,
                        &hearth__v1__get_task_response__descriptor, &answer));

    size_t shown = answer->n_targets < 20 ? answer->n_targets : 20;
    put_task_members(call, answer->task);
    hearth_json_key_c(&call->answer, "targets");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < shown; i++) {
        const Hearth__V1__TaskTarget *target = answer->targets[i];
        hearth_json_object(&call->answer);
        mcp_put_name(call, "instance", target->instance);
        mcp_put_name(call, "process", target->process);
        mcp_put_text(call, "state", cli_task_state(target->state));
        mcp_put_text(call, "reason", target->reason);
        hearth_json_object_end(&call->answer);
    }
    hearth_json_array_end(&call->answer);
    mcp_put_cut(call, "targets", 0, (int64_t)shown, (int64_t)answer->n_targets);

    return HEARTH_OK;
}

enum hearth_status mcp_task_create(struct mcp_call *call)
{
    Hearth__V1__CreateTaskRequest request;
    Hearth__V1__CreateTaskResponse *answer;

    hearth__v1__create_task_request__init(&request);
    call->cli.args[0] = call->kind;
    call->cli.n_args = 1;
    HEARTH_TRY(cli_task_request(&call->cli, &request));
    HEARTH_TRY(cli_call(&call->cli, CLI_TASKS "CreateTask", &request,
                        &hearth__v1__create_task_response__descriptor, &answer));
    put_task_members(call, answer->task);

    return HEARTH_OK;
}
