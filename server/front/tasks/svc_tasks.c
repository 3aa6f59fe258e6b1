/* svc_tasks.c -- hearth.v1.TaskService: prepare, create, list, get, cancel and keep alive tasks. */
#include "tasks/svc_tasks.h"

#include "hearth/codec/pb.h"
#include "hearth/engine/tasks.h"
#include "hearth/pb/hearth/v1/stored.pb-c.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"

#include "handlers.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

#define PAGE_DEFAULT 100
#define PAGE_MAX     1000

/* ---- settings that the database stores as JSON ---- */

/* Parses head, `json` and "}" as one JSON object into a message in the request's arena. */
static enum hearth_status read_stored(struct hearth_rpc *rpc, const char *head,
                                      struct hearth_str json,
                                      const struct ProtobufCMessageDescriptor *descriptor,
                                      struct ProtobufCMessage **ret)
{
    struct hearth_buf text;
    enum hearth_status status;
    assert(json.n > 0);

    /* Make the text of the object. */
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, head);
    hearth_buf_str(&text, json);
    hearth_buf_byte(&text, '}');

    /* The message has copies of its parts. */
    if (text.failed) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for the settings of a task");
    } else {
        status =
            hearth_pb_from_json(descriptor, hearth_buf_view(&text), &rpc->arena, ret, &rpc->err);
    }

    hearth_buf_release(&text);

    return status;
}

static void fill_rule(struct hearth_rpc *rpc HEARTH_UNUSED, const void *from, void *message)
{
    const Hearth__V1__StoredSampling *in = *(Hearth__V1__StoredSampling *const *)from;
    const Hearth__V1__StoredSamplingSettings *settings = in->settings;
    Hearth__V1__SamplingRule *out = message;

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

/* Its structs are pointers to stored rules. */
static const struct hearth_message_map rule_map = {
    .descriptor = &hearth__v1__sampling_rule__descriptor,
    .struct_bytes = sizeof(Hearth__V1__StoredSampling *),
    .fill_rest = fill_rule,
};

static enum hearth_status add_rules(struct hearth_rpc *rpc, struct hearth_str json,
                                    Hearth__V1__Task *out)
{
    struct ProtobufCMessage *message;

    HEARTH_TRY(read_stored(rpc, "{\"NetworkSamplings\":", json,
                           &hearth__v1__stored_extension__descriptor, &message));

    const Hearth__V1__StoredExtension *stored = (const Hearth__V1__StoredExtension *)message;
    HEARTH_RPC_LIST(rpc, &rule_map, stored->networksamplings, stored->n_networksamplings, out,
                    sampling_rules);

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

/* Adds the settings to the message of a task. They are valid unless the database is damaged. */
static enum hearth_status add_settings(struct hearth_rpc *rpc, struct hearth_str sampling,
                                       struct hearth_str causes, Hearth__V1__Task *out)
{
    HEARTH_TRY(sampling.n > 0 ? add_rules(rpc, sampling, out) : HEARTH_OK);

    return causes.n > 0 ? add_causes(rpc, causes, out) : HEARTH_OK;
}

bool hearth_task_json_is_shown(void *context, struct hearth_str sampling, struct hearth_str causes)
{
    struct hearth_rpc *rpc = context;
    Hearth__V1__Task shown;
    assert(rpc != NULL);

    hearth__v1__task__init(&shown);
    enum hearth_status status = add_settings(rpc, sampling, causes, &shown);

    /* Nothing may be imported when a message is incomplete. */
    if (status == HEARTH_OK && rpc->arena.refused) {
        status = HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    return status == HEARTH_OK;
}

/* ---- messages ---- */

HEARTH_MAP_TYPES(task, struct hearth_task_view, Hearth__V1__Task);
static const struct hearth_message_member task_members[] = {
    HEARTH_MAP(task, task.task_id, task_id),
    HEARTH_MAP(task, task.kind, kind),     /* the same numbers */
    HEARTH_MAP(task, task.origin, origin), /* the same numbers */
    HEARTH_MAP(task, task.service, service),
    HEARTH_MAP(task, task.instance, instance),
    HEARTH_MAP(task, task.process_id, process_id),
    HEARTH_MAP(task, task.process, process),
    HEARTH_MAP_TEXTS(task, task.labels, task.n_labels, labels),
    HEARTH_MAP_TEXTS(task, task.instances, task.n_instances, instances),
    HEARTH_MAP(task, task.endpoint, endpoint),
    HEARTH_MAP_TEXTS(task, task.events, task.n_events, events),
    HEARTH_MAP(task, task.exec_args, exec_args),
    HEARTH_MAP(task, task.start_ms, start_ms),
    HEARTH_MAP(task, task.duration_ms, duration_ms),
    HEARTH_MAP(task, task.created_ms, created_ms),
    HEARTH_MAP(task, task.updated_ms, updated_ms),
    HEARTH_MAP(task, task.cancelled_ms, cancelled_ms),
    HEARTH_MAP(task, task.min_duration_ms, min_duration_ms),
    HEARTH_MAP(task, task.dump_period_ms, dump_period_ms),
    HEARTH_MAP(task, task.max_samples, max_samples),
    HEARTH_MAP(task, judgement.state, state), /* the same numbers */
    HEARTH_MAP(task, judgement.reason, state_reason),
};
static const struct hearth_message_map task_map =
    HEARTH_MESSAGE_MAP(task, hearth__v1__task__descriptor);

HEARTH_MAP_TYPES(log_entry, struct hearth_task_log, Hearth__V1__TaskLogEntry);
static const struct hearth_message_member log_entry_members[] = {
    HEARTH_MAP(log_entry, instance, instance), HEARTH_MAP(log_entry, process_id, process_id),
    HEARTH_MAP(log_entry, event, event), /* the same numbers */
    HEARTH_MAP(log_entry, at_ms, at_ms),       HEARTH_MAP(log_entry, message, message),
};
static const struct hearth_message_map log_entry_map =
    HEARTH_MESSAGE_MAP(log_entry, hearth__v1__task_log_entry__descriptor);

HEARTH_MAP_TYPES(log, struct hearth_task_view, Hearth__V1__TaskLog);
static const struct hearth_message_member log_members[] = {
    HEARTH_MAP(log, task.task_id, task_id),
    HEARTH_MAP_LIST(log, log, n_log, entries, &log_entry_map),
};
static const struct hearth_message_map log_map =
    HEARTH_MESSAGE_MAP(log, hearth__v1__task_log__descriptor);

HEARTH_MAP_TYPES(target, struct hearth_target_view, Hearth__V1__TaskTarget);
static const struct hearth_message_member target_members[] = {
    HEARTH_MAP(target, instance, instance),
    HEARTH_MAP(target, process_id, process_id),
    HEARTH_MAP(target, process, process),
    HEARTH_MAP(target, judgement.state, state), /* the same numbers */
    HEARTH_MAP(target, judgement.reason, reason),
};
static const struct hearth_message_map target_map =
    HEARTH_MESSAGE_MAP(target, hearth__v1__task_target__descriptor);

HEARTH_MAP_TYPES(prepared, struct hearth_task_prepared, Hearth__V1__PrepareTaskResponse);
static const struct hearth_message_member prepared_members[] = {
    HEARTH_MAP(prepared, can_be_profiled, can_be_profiled),
    HEARTH_MAP_TEXTS(prepared, labels, n_labels, labels),
    HEARTH_MAP(prepared, n_processes, process_count),
    HEARTH_MAP(prepared, reason, reason),
};
static const struct hearth_message_map prepared_map =
    HEARTH_MESSAGE_MAP(prepared, hearth__v1__prepare_task_response__descriptor);

static enum hearth_status make_task(struct hearth_rpc *rpc, const struct hearth_task_view *view,
                                    Hearth__V1__Task **ret)
{
    *ret = hearth_rpc_map(rpc, &task_map, view);
    if (*ret == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    return add_settings(rpc, view->task.sampling, view->task.causes, *ret);
}

/* ---- preparing, creating ---- */

HEARTH_UNARY(hearth_svc_task_prepare, Hearth__V1__PrepareTaskRequest,
             Hearth__V1__PrepareTaskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_prepared prepared;
    struct hearth_str *labels = hearth_rpc_strs(rpc, in->labels, in->n_labels);
    if (labels == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_tasks_prepare(&call, hearth_str_c(in->service), labels, in->n_labels,
                                    &prepared, &rpc->err));
    hearth_rpc_map_into(rpc, &prepared_map, &prepared, out);

    return HEARTH_OK;
}

static void read_sampling_rule(const Hearth__V1__SamplingRule *in, struct hearth_sampling_rule *out)
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

static enum hearth_status read_task_request(struct hearth_rpc *rpc,
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
        read_sampling_rule(in->sampling_rules[i], &rules[i]);
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_task_create, Hearth__V1__CreateTaskRequest, Hearth__V1__CreateTaskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_request request;
    struct hearth_task_view view;

    HEARTH_TRY(read_task_request(rpc, in, &request));
    HEARTH_TRY(hearth_tasks_create(&call, &request, &view, &rpc->err));

    return make_task(rpc, &view, &out->task);
}

/* ---- reading ---- */

/* A page token names the last task of a page: its start in ms, a colon, its id. */
static enum hearth_status read_page_token(struct hearth_rpc *rpc, struct hearth_str token,
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
                           "page_token is not valid; send the next_page_token of an answer");
    }

    filter->before_task_id = hearth_str_n(token.p + colon + 1, token.n - colon - 1);

    return HEARTH_OK;
}

static enum hearth_status read_task_kinds(struct hearth_rpc *rpc,
                                          const Hearth__V1__ListTasksRequest *in,
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

static enum hearth_status read_task_filter(struct hearth_rpc *rpc,
                                           const Hearth__V1__ListTasksRequest *in,
                                           struct hearth_task_filter *filter)
{
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
    HEARTH_TRY(read_task_kinds(rpc, in, filter));

    return read_page_token(rpc, hearth_str_c(in->page_token), filter);
}

HEARTH_UNARY(hearth_svc_task_list, Hearth__V1__ListTasksRequest, Hearth__V1__ListTasksResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_filter filter;
    struct hearth_task_view *views;
    size_t n;

    /* One task more than the page shows whether there is another page. */
    HEARTH_TRY(read_task_filter(rpc, in, &filter));
    size_t page = filter.limit++;
    HEARTH_TRY(hearth_tasks_list(&call, &filter, in->include_logs, &views, &n, &rpc->err));
    assert(page > 0 && n <= filter.limit);

    /* The tasks of the page, with their logs. */
    size_t n_shown = n > page ? page : n;
    HEARTH_RPC_LIST(rpc, &task_map, views, n_shown, out, tasks);
    HEARTH_RPC_LIST(rpc, &log_map, views, in->include_logs ? n_shown : 0, out, logs);

    for (size_t i = 0; i < out->n_tasks; i++) {
        HEARTH_TRY(add_settings(rpc, views[i].task.sampling, views[i].task.causes, out->tasks[i]));
    }

    /* The next page. */
    if (n > page) {
        const struct hearth_task *last = &views[page - 1].task;
        out->next_page_token =
            hearth_arena_printf(&rpc->arena, "%lld:" HEARTH_STR_FMT, (long long)last->start_ms,
                                HEARTH_STR_ARG(last->task_id));
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_task_get, Hearth__V1__GetTaskRequest, Hearth__V1__GetTaskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_view view;
    struct hearth_target_view *targets;
    struct hearth_task_log *log;
    size_t n_targets, n_log;

    HEARTH_TRY(hearth_tasks_get(&call, hearth_str_c(in->task_id), &view, &targets, &n_targets, &log,
                                &n_log, &rpc->err));
    HEARTH_TRY(make_task(rpc, &view, &out->task));
    HEARTH_RPC_LIST(rpc, &log_entry_map, log, n_log, out, log);
    HEARTH_RPC_LIST(rpc, &target_map, targets, n_targets, out, targets);

    return HEARTH_OK;
}

/* ---- changing ---- */

HEARTH_UNARY(hearth_svc_task_cancel, Hearth__V1__CancelTaskRequest, Hearth__V1__CancelTaskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_view view;
    struct hearth_str note;

    HEARTH_TRY(hearth_tasks_cancel(&call, hearth_str_c(in->task_id), &view, &note, &rpc->err));
    out->note = hearth_rpc_text(rpc, note);

    return make_task(rpc, &view, &out->task);
}

HEARTH_UNARY(hearth_svc_task_keep_alive, Hearth__V1__KeepAliveTaskRequest,
             Hearth__V1__KeepAliveTaskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_view view;

    HEARTH_TRY(hearth_tasks_keep_alive(&call, hearth_str_c(in->task_id), &view, &rpc->err));

    return make_task(rpc, &view, &out->task);
}
