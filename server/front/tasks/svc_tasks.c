/* svc_tasks.c -- hearth.v1.TaskService: prepare, create, list, get, cancel and keep alive tasks. */
#include "tasks/svc_tasks.h"

#include "hearth/codec/pb.h"
#include "hearth/engine/tasks.h"
#include "hearth/pb/hearth/v1/stored.pb-c.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

#include <stdio.h>

#define PAGE_DEFAULT 100
#define PAGE_MAX     1000

/* Declare `name`, an initialised message in the request's arena; return an error if it is full. */
#define NEW_MESSAGE(type, init, name)                           \
    type *name = hearth_arena_alloc(&rpc->arena, sizeof *name); \
    if (name == NULL) {                                         \
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);       \
    }                                                           \
    init(name)

/* ---- settings that the database stores as JSON ---- */

/* Parse head, `json` and "}" as one JSON object into a message in the request's arena. */
static enum hearth_status read_stored(struct hearth_rpc *rpc, const char *head,
                                      struct hearth_str json,
                                      const struct ProtobufCMessageDescriptor *descriptor,
                                      struct ProtobufCMessage **ret)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, head);
    hearth_buf_str(&text, json);
    hearth_buf_byte(&text, '}');

    enum hearth_status status;
    if (text.failed) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for what a task was given");
    } else {
        status =
            hearth_pb_from_json(descriptor, hearth_buf_view(&text), &rpc->arena, ret, &rpc->err);
    }

    hearth_buf_release(&text);

    return status;
}

static void copy_rule(const Hearth__V1__StoredSampling *in, Hearth__V1__SamplingRule *out)
{
    const Hearth__V1__StoredSamplingSettings *settings = in->settings;

    out->uri_regex = in->uriregex;

    if (in->min_duration_presence_case ==
        HEARTH__V1__STORED_SAMPLING__MIN_DURATION_PRESENCE_MIN_DURATION) {
        out->min_duration_presence_case =
            HEARTH__V1__SAMPLING_RULE__MIN_DURATION_PRESENCE_MIN_DURATION_MS;
        out->min_duration_ms = in->minduration;
    }

    out->when_4xx = in->when4xx;
    out->when_5xx = in->when5xx;

    if (settings == NULL) {
        return;
    }

    out->require_complete_request = settings->requirecompleterequest;
    out->require_complete_response = settings->requirecompleteresponse;

    if (settings->max_request_presence_case ==
        HEARTH__V1__STORED_SAMPLING_SETTINGS__MAX_REQUEST_PRESENCE_MAX_REQUEST_SIZE) {
        out->max_request_presence_case =
            HEARTH__V1__SAMPLING_RULE__MAX_REQUEST_PRESENCE_MAX_REQUEST_BYTES;
        out->max_request_bytes = settings->maxrequestsize;
    }

    if (settings->max_response_presence_case ==
        HEARTH__V1__STORED_SAMPLING_SETTINGS__MAX_RESPONSE_PRESENCE_MAX_RESPONSE_SIZE) {
        out->max_response_presence_case =
            HEARTH__V1__SAMPLING_RULE__MAX_RESPONSE_PRESENCE_MAX_RESPONSE_BYTES;
        out->max_response_bytes = settings->maxresponsesize;
    }
}

static enum hearth_status add_rules(struct hearth_rpc *rpc, struct hearth_str json,
                                    Hearth__V1__Task *out)
{
    struct ProtobufCMessage *message;

    HEARTH_TRY(read_stored(rpc, "{\"NetworkSamplings\":", json,
                           &hearth__v1__stored_extension__descriptor, &message));

    const Hearth__V1__StoredExtension *stored = (const Hearth__V1__StoredExtension *)message;
    size_t n = stored->n_networksamplings;
    Hearth__V1__SamplingRule *rules = hearth_arena_array(&rpc->arena, n, sizeof *rules);

    out->sampling_rules = hearth_arena_array(&rpc->arena, n, sizeof *out->sampling_rules);
    if (rules == NULL || out->sampling_rules == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        hearth__v1__sampling_rule__init(&rules[i]);
        copy_rule(stored->networksamplings[i], &rules[i]);
        out->sampling_rules[i] = &rules[i];
    }

    out->n_sampling_rules = n;

    return HEARTH_OK;
}

static enum hearth_status add_causes(struct hearth_rpc *rpc, struct hearth_str json,
                                     Hearth__V1__Task *out)
{
    struct ProtobufCMessage *message;

    HEARTH_TRY(
        read_stored(rpc, "{\"causes\":", json, &hearth__v1__stored_causes__descriptor, &message));

    const Hearth__V1__StoredCauses *stored = (const Hearth__V1__StoredCauses *)message;

    out->causes = stored->causes;
    out->n_causes = stored->n_causes;

    return HEARTH_OK;
}

bool hearth_task_json_is_shown(void *context, struct hearth_str sampling, struct hearth_str causes)
{
    struct hearth_rpc *rpc = context;
    Hearth__V1__Task shown;

    hearth__v1__task__init(&shown);

    return (sampling.n == 0 || add_rules(rpc, sampling, &shown) == HEARTH_OK) &&
           (causes.n == 0 || add_causes(rpc, causes, &shown) == HEARTH_OK);
}

/* ---- tasks as messages ---- */

static void copy_task(struct hearth_rpc *rpc, const struct hearth_task *task, Hearth__V1__Task *out)
{
    out->task_id = hearth_rpc_text(rpc, task->task_id);
    out->kind = (Hearth__V1__TaskKind)task->kind;
    out->origin = (Hearth__V1__TaskOrigin)task->origin;
    out->service = hearth_rpc_text(rpc, task->service);
    out->instance = hearth_rpc_text(rpc, task->instance);
    out->process_id = hearth_rpc_text(rpc, task->process_id);
    out->process = hearth_rpc_text(rpc, task->process);
    out->labels = hearth_rpc_texts(rpc, task->labels, task->n_labels);
    out->n_labels = task->n_labels;
    out->instances = hearth_rpc_texts(rpc, task->instances, task->n_instances);
    out->n_instances = task->n_instances;
    out->endpoint = hearth_rpc_text(rpc, task->endpoint);
    out->events = hearth_rpc_texts(rpc, task->events, task->n_events);
    out->n_events = task->n_events;
    out->exec_args = hearth_rpc_text(rpc, task->exec_args);
    out->start_ms = task->start_ms;
    out->duration_ms = task->duration_ms;
    out->created_ms = task->created_ms;
    out->updated_ms = task->updated_ms;
    out->cancelled_ms = task->cancelled_ms;
    out->min_duration_ms = task->min_duration_ms;
    out->dump_period_ms = task->dump_period_ms;
    out->max_samples = task->max_samples;
}

static enum hearth_status make_task(struct hearth_rpc *rpc, const struct hearth_task_view *view,
                                    Hearth__V1__Task **ret)
{
    NEW_MESSAGE(Hearth__V1__Task, hearth__v1__task__init, out);

    copy_task(rpc, &view->task, out);
    out->state = (Hearth__V1__TaskState)view->judgement.state;
    out->state_reason = hearth_rpc_text(rpc, view->judgement.reason);

    if (view->task.sampling.n > 0) {
        HEARTH_TRY(add_rules(rpc, view->task.sampling, out));
    }

    if (view->task.causes.n > 0) {
        HEARTH_TRY(add_causes(rpc, view->task.causes, out));
    }

    *ret = out;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* ---- preparing, creating ---- */

static enum hearth_status prepare(struct hearth_rpc *rpc)
{
    const Hearth__V1__PrepareTaskRequest *in = (const Hearth__V1__PrepareTaskRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_prepared prepared;
    struct hearth_str *labels = hearth_rpc_strs(rpc, in->labels, in->n_labels);
    NEW_MESSAGE(Hearth__V1__PrepareTaskResponse, hearth__v1__prepare_task_response__init, out);

    if (labels == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_tasks_prepare(&call, hearth_str_c(in->service), labels, in->n_labels,
                                    &prepared, &rpc->err));
    out->can_be_profiled = prepared.can_be_profiled;
    out->labels = hearth_rpc_texts(rpc, prepared.labels, prepared.n_labels);
    out->n_labels = prepared.n_labels;
    out->process_count =
        prepared.n_processes > INT32_MAX ? INT32_MAX : (int32_t)prepared.n_processes;
    out->reason = hearth_rpc_text(rpc, prepared.reason);
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_task_prepare(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, prepare(rpc));
}

static void read_rule(const Hearth__V1__SamplingRule *in, struct hearth_sampling_rule *out)
{
    *out = (struct hearth_sampling_rule){
        .uri_regex = hearth_str_c(in->uri_regex),
        .has_min_duration = in->min_duration_presence_case !=
                            HEARTH__V1__SAMPLING_RULE__MIN_DURATION_PRESENCE__NOT_SET,
        .has_max_request = in->max_request_presence_case !=
                           HEARTH__V1__SAMPLING_RULE__MAX_REQUEST_PRESENCE__NOT_SET,
        .has_max_response = in->max_response_presence_case !=
                            HEARTH__V1__SAMPLING_RULE__MAX_RESPONSE_PRESENCE__NOT_SET,
        .when_4xx = in->when_4xx,
        .when_5xx = in->when_5xx,
        .require_complete_request = in->require_complete_request,
        .require_complete_response = in->require_complete_response,
    };

    /* A member of a oneof has no value unless it is set. */
    out->min_duration_ms = out->has_min_duration ? in->min_duration_ms : 0;
    out->max_request_bytes = out->has_max_request ? in->max_request_bytes : 0;
    out->max_response_bytes = out->has_max_response ? in->max_response_bytes : 0;
}

static enum hearth_status read_request(struct hearth_rpc *rpc,
                                       const Hearth__V1__CreateTaskRequest *in,
                                       struct hearth_task_request *out)
{
    struct hearth_sampling_rule *rules =
        hearth_arena_array(&rpc->arena, in->n_sampling_rules, sizeof *rules);

    *out = (struct hearth_task_request){
        .kind = (enum hearth_task_kind)in->kind,
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->instance),
        .endpoint = hearth_str_c(in->endpoint),
        .exec_args = hearth_str_c(in->exec_args),
        .labels = hearth_rpc_strs(rpc, in->labels, in->n_labels),
        .n_labels = in->n_labels,
        .instances = hearth_rpc_strs(rpc, in->instances, in->n_instances),
        .n_instances = in->n_instances,
        .events = hearth_rpc_strs(rpc, in->events, in->n_events),
        .n_events = in->n_events,
        .start_ms = in->start_ms,
        .duration_ms = in->duration_ms,
        .min_duration_ms = in->min_duration_ms,
        .dump_period_ms = in->dump_period_ms,
        .max_samples = in->max_samples,
        .rules = rules,
        .n_rules = in->n_sampling_rules,
    };

    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_sampling_rules; i++) {
        read_rule(in->sampling_rules[i], &rules[i]);
    }

    return HEARTH_OK;
}

static enum hearth_status create(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_request request;
    struct hearth_task_view view;
    NEW_MESSAGE(Hearth__V1__CreateTaskResponse, hearth__v1__create_task_response__init, out);

    HEARTH_TRY(read_request(rpc, (const Hearth__V1__CreateTaskRequest *)rpc->request, &request));
    HEARTH_TRY(hearth_tasks_create(&call, &request, &view, &rpc->err));
    rpc->answer = &out->base;

    return make_task(rpc, &view, &out->task);
}

void hearth_svc_task_create(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, create(rpc));
}

/* ---- reading ---- */

/* A page token names the last task of a page: its start in ms, a colon, its id. */
static enum hearth_status read_token(struct hearth_rpc *rpc, struct hearth_str token,
                                     struct hearth_task_filter *filter)
{
    size_t colon = hearth_str_find(token, ':', 0);
    if (token.n == 0) {
        return HEARTH_OK;
    }

    if (colon == token.n ||
        !hearth_str_to_i64(hearth_str_n(token.p, colon), &filter->before_start_ms) ||
        filter->before_start_ms <= 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "page_token is not one that an answer had");
    }

    filter->before_task_id = hearth_str_n(token.p + colon + 1, token.n - colon - 1);

    return HEARTH_OK;
}

static enum hearth_status read_kinds(struct hearth_rpc *rpc, const Hearth__V1__ListTasksRequest *in,
                                     struct hearth_task_filter *filter)
{
    for (size_t i = 0; i < in->n_kinds; i++) {
        int kind = (int)in->kinds[i];
        if (kind < HEARTH_TASK_ON_CPU || kind > HEARTH_TASK_PPROF) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "kinds: there is no kind %d",
                               kind);
        }

        filter->kinds |= 1u << kind;
    }

    int origin = (int)in->origin;
    if (origin < 0 || origin > HEARTH_TASK_IMPORTED) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "origin: there is no origin %d",
                           origin);
    }

    filter->origin = (enum hearth_task_origin)origin;

    return HEARTH_OK;
}

static enum hearth_status read_filter(struct hearth_rpc *rpc, struct hearth_task_filter *filter)
{
    const Hearth__V1__ListTasksRequest *in = (const Hearth__V1__ListTasksRequest *)rpc->request;
    if (in->page_size < 0 || in->page_size > PAGE_MAX) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "page_size is from 0 to %d, not %d",
                           PAGE_MAX, (int)in->page_size);
    }

    *filter = (struct hearth_task_filter){
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->instance),
        .endpoint = hearth_str_c(in->endpoint),
        .start_from_ms = in->start_ms,
        .start_to_ms = in->end_ms,
        .limit = in->page_size == 0 ? PAGE_DEFAULT : (size_t)in->page_size,
    };
    HEARTH_TRY(read_kinds(rpc, in, filter));

    return read_token(rpc, hearth_str_c(in->page_token), filter);
}

static enum hearth_status make_entries(struct hearth_rpc *rpc, const struct hearth_task_log *log,
                                       size_t n, Hearth__V1__TaskLogEntry ***ret)
{
    Hearth__V1__TaskLogEntry **entries = hearth_arena_array(&rpc->arena, n, sizeof *entries);
    if (entries == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        NEW_MESSAGE(Hearth__V1__TaskLogEntry, hearth__v1__task_log_entry__init, entry);
        entry->instance = hearth_rpc_text(rpc, log[i].instance);
        entry->process_id = hearth_rpc_text(rpc, log[i].process_id);
        entry->event = (Hearth__V1__TaskEvent)log[i].event;
        entry->at_ms = log[i].at_ms;
        entry->message = hearth_rpc_text(rpc, log[i].message);
        entries[i] = entry;
    }

    *ret = entries;

    return HEARTH_OK;
}

static enum hearth_status make_log(struct hearth_rpc *rpc, const struct hearth_task_view *view,
                                   Hearth__V1__TaskLog **ret)
{
    NEW_MESSAGE(Hearth__V1__TaskLog, hearth__v1__task_log__init, out);

    out->task_id = hearth_rpc_text(rpc, view->task.task_id);
    HEARTH_TRY(make_entries(rpc, view->log, view->n_log, &out->entries));
    out->n_entries = view->n_log;
    *ret = out;

    return HEARTH_OK;
}

static enum hearth_status list(struct hearth_rpc *rpc)
{
    bool with_logs = ((const Hearth__V1__ListTasksRequest *)rpc->request)->include_logs;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_filter filter;
    struct hearth_task_view *views;
    size_t n;

    HEARTH_TRY(read_filter(rpc, &filter));

    size_t page = filter.limit++; /* one task more shows whether there is another page */

    HEARTH_TRY(hearth_tasks_list(&call, &filter, with_logs, &views, &n, &rpc->err));

    size_t n_shown = n > page ? page : n;
    NEW_MESSAGE(Hearth__V1__ListTasksResponse, hearth__v1__list_tasks_response__init, out);

    out->tasks = hearth_arena_array(&rpc->arena, n_shown, sizeof *out->tasks);
    out->logs = hearth_arena_array(&rpc->arena, n_shown, sizeof *out->logs);
    if (out->tasks == NULL || out->logs == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n_shown; i++) {
        HEARTH_TRY(make_task(rpc, &views[i], &out->tasks[i]));
        HEARTH_TRY(with_logs ? make_log(rpc, &views[i], &out->logs[i]) : HEARTH_OK);
    }

    out->n_tasks = n_shown;
    out->n_logs = with_logs ? n_shown : 0;

    if (n > page) {
        const struct hearth_task *last = &views[page - 1].task;
        out->next_page_token =
            hearth_arena_printf(&rpc->arena, "%lld:" HEARTH_STR_FMT, (long long)last->start_ms,
                                HEARTH_STR_ARG(last->task_id));
    }

    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_task_list(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list(rpc));
}

static enum hearth_status add_targets(struct hearth_rpc *rpc,
                                      const struct hearth_target_view *targets, size_t n,
                                      Hearth__V1__GetTaskResponse *out)
{
    out->targets = hearth_arena_array(&rpc->arena, n, sizeof *out->targets);
    if (out->targets == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        NEW_MESSAGE(Hearth__V1__TaskTarget, hearth__v1__task_target__init, target);
        target->instance = hearth_rpc_text(rpc, targets[i].instance);
        target->process_id = hearth_rpc_text(rpc, targets[i].process_id);
        target->process = hearth_rpc_text(rpc, targets[i].process);
        target->state = (Hearth__V1__TaskState)targets[i].judgement.state;
        target->reason = hearth_rpc_text(rpc, targets[i].judgement.reason);
        out->targets[i] = target;
    }

    out->n_targets = n;

    return HEARTH_OK;
}

static enum hearth_status get(struct hearth_rpc *rpc)
{
    const Hearth__V1__GetTaskRequest *in = (const Hearth__V1__GetTaskRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_view view;
    struct hearth_target_view *targets;
    struct hearth_task_log *log;
    size_t n_targets, n_log;
    NEW_MESSAGE(Hearth__V1__GetTaskResponse, hearth__v1__get_task_response__init, out);

    HEARTH_TRY(hearth_tasks_get(&call, hearth_str_c(in->task_id), &view, &targets, &n_targets, &log,
                                &n_log, &rpc->err));
    HEARTH_TRY(make_task(rpc, &view, &out->task));
    HEARTH_TRY(make_entries(rpc, log, n_log, &out->log));
    out->n_log = n_log;
    HEARTH_TRY(add_targets(rpc, targets, n_targets, out));
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_task_get(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get(rpc));
}

/* ---- changing ---- */

static enum hearth_status cancel(struct hearth_rpc *rpc)
{
    const Hearth__V1__CancelTaskRequest *in = (const Hearth__V1__CancelTaskRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_view view;
    struct hearth_str note;
    NEW_MESSAGE(Hearth__V1__CancelTaskResponse, hearth__v1__cancel_task_response__init, out);

    HEARTH_TRY(hearth_tasks_cancel(&call, hearth_str_c(in->task_id), &view, &note, &rpc->err));
    out->note = hearth_rpc_text(rpc, note);
    rpc->answer = &out->base;

    return make_task(rpc, &view, &out->task);
}

void hearth_svc_task_cancel(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, cancel(rpc));
}

static enum hearth_status keep_alive(struct hearth_rpc *rpc)
{
    const Hearth__V1__KeepAliveTaskRequest *in =
        (const Hearth__V1__KeepAliveTaskRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_view view;
    NEW_MESSAGE(Hearth__V1__KeepAliveTaskResponse, hearth__v1__keep_alive_task_response__init, out);

    HEARTH_TRY(hearth_tasks_keep_alive(&call, hearth_str_c(in->task_id), &view, &rpc->err));
    rpc->answer = &out->base;

    return make_task(rpc, &view, &out->task);
}

void hearth_svc_task_keep_alive(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, keep_alive(rpc));
}
