/* client_task.c -- creates profiling tasks, and follows one by asking for its state each second. */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"

#include "client_call.h"

#include <assert.h>
#include <time.h>

#define PERIOD_NS HEARTH_NS_PER_SEC

/* The texts of a request are never written, but the generated structs want them writable. */
static char *writable(const char *text)
{
    return text == NULL ? (char *)(uintptr_t)protobuf_c_empty_string : (char *)(uintptr_t)text;
}

enum hearth_client_status hearth_client_task_create(struct hearth_client *client,
                                                    const struct hearth_client_task_request *task,
                                                    struct hearth_client_bytes *ret_id,
                                                    struct hearth_client_error *error)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    Hearth__V1__CreateTaskRequest request;
    struct ProtobufCMessage *message;
    struct hearth_call call = {.method = "hearth.v1.TaskService/CreateTask"};
    struct hearth_arena arena;
    assert(client != NULL && task != NULL && ret_id != NULL);

    hearth__v1__create_task_request__init(&request);
    request.kind = (Hearth__V1__TaskKind)task->kind;
    request.service = writable(task->service);
    request.instance = writable(task->instance);
    request.instances = (char **)(uintptr_t)task->instances;
    request.n_instances = task->n_instances;
    request.endpoint = writable(task->endpoint);
    request.events = (char **)(uintptr_t)task->events;
    request.n_events = task->n_events;
    request.start_ms = task->start_ms;
    request.duration_ms = task->duration_ms;
    request.min_duration_ms = task->min_duration_ms;
    request.dump_period_ms = task->dump_period_ms;
    request.max_samples = task->max_samples;

    hearth_arena_init(&arena, 0);
    enum hearth_status status =
        hearth_call_message(client, &call, &request.base,
                            &hearth__v1__create_task_response__descriptor, &arena, &message, &err);
    if (status == HEARTH_OK) {
        const Hearth__V1__CreateTaskResponse *answer = (const void *)message;
        const char *id = answer->task == NULL ? "" : answer->task->task_id;
        ret_id->n = strlen(id);
        ret_id->p = hearth_mem_strndup(id, ret_id->n);
        if (ret_id->p == NULL) {
            status = HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate the answer");
        }
    }
    hearth_arena_release(&arena);

    return hearth_call_error_out(&err, status, call.is_open, error);
}

static enum hearth_status ask_task(struct hearth_client *client, const char *id,
                                   struct hearth_arena *arena, const Hearth__V1__Task **ret,
                                   struct hearth_err *err)
{
    Hearth__V1__GetTaskRequest request;
    struct ProtobufCMessage *message;
    struct hearth_call call = {.method = "hearth.v1.TaskService/GetTask"};

    hearth__v1__get_task_request__init(&request);
    request.task_id = hearth_arena_strndup(arena, id, strlen(id));
    if (request.task_id == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    HEARTH_TRY(hearth_call_message(client, &call, &request.base,
                                   &hearth__v1__get_task_response__descriptor, arena, &message,
                                   err));
    *ret = ((const Hearth__V1__GetTaskResponse *)(const void *)message)->task;

    return *ret != NULL ? HEARTH_OK : HEARTH_FAIL(err, HEARTH_INTERNAL, "the server sent no task");
}

static struct hearth_client_task describe_task(const Hearth__V1__Task *task)
{
    static const char prefix[] = "TASK_STATE_";
    const ProtobufCEnumValue *state =
        protobuf_c_enum_descriptor_get_value(&hearth__v1__task_state__descriptor, (int)task->state);
    bool is_named = state != NULL && strncmp(state->name, prefix, sizeof prefix - 1) == 0;

    /* States after RUNNING are final. */
    return (struct hearth_client_task){
        .id = task->task_id,
        .state = is_named ? state->name + sizeof prefix - 1 : "UNSPECIFIED",
        .reason = task->state_reason,
        .has_ended = task->state > HEARTH__V1__TASK_STATE__TASK_STATE_RUNNING,
        .has_data = task->state == HEARTH__V1__TASK_STATE__TASK_STATE_FINISHED,
    };
}

/* Whether the task is to be followed further. *last_state is the state that was told. */
static enum hearth_status follow_once(struct hearth_client *client, const char *id,
                                      hearth_client_task_fn *changed, void *context,
                                      int *last_state, bool *ret_has_ended, struct hearth_err *err)
{
    const Hearth__V1__Task *task;
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    enum hearth_status status = ask_task(client, id, &arena, &task, err);
    if (status == HEARTH_OK) {
        struct hearth_client_task told = describe_task(task);
        bool is_new = *last_state != (int)task->state;
        *last_state = (int)task->state;
        *ret_has_ended = told.has_ended;
        if (is_new && !changed(context, &told)) {
            status = HEARTH_FAIL(err, HEARTH_CANCELLED, "the callback ended the call");
        }
    }
    hearth_arena_release(&arena);

    return status;
}

enum hearth_client_status hearth_client_task_follow(struct hearth_client *client, const char *id,
                                                    int64_t for_ms, hearth_client_task_fn *changed,
                                                    void *context,
                                                    struct hearth_client_error *error)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int last_state = -1;
    bool has_ended = false;
    enum hearth_status status = HEARTH_OK;
    assert(client != NULL && id != NULL && changed != NULL);

    int64_t until_ns = hearth_call_until_ns(for_ms);
    while (status == HEARTH_OK && !has_ended) {
        status = follow_once(client, id, changed, context, &last_state, &has_ended, &err);
        if (status != HEARTH_OK || has_ended) {
            break;
        }
        if (hearth_clock_mono_ns() + PERIOD_NS > until_ns) {
            status = HEARTH_FAIL(&err, HEARTH_DEADLINE_EXCEEDED,
                                 "the task %.100s has not ended within %.3g s", id,
                                 (double)for_ms / 1000);
            break;
        }
        const struct timespec period = {.tv_sec = PERIOD_NS / HEARTH_NS_PER_SEC};
        (void)nanosleep(&period, NULL);
    }

    return hearth_call_error_out(&err, status, false, error);
}
