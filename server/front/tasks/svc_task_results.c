/*
 * svc_task_results.c -- results of tasks: the part of hearth.v1.TaskService in task_results.proto.
 */
#include "hearth/engine/task_archive.h"
#include "hearth/engine/task_stacks.h"
#include "hearth/engine/task_uploads.h"
#include "hearth/pb/hearth/v1/task_results.pb-c.h"

#include "handlers.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"
#include "tasks/svc_tasks.h"

/* Bytes that are not copied. The answer is only read, but protobuf-c has no const bytes. */
static ProtobufCBinaryData borrow_bytes(struct hearth_str bytes)
{
    ProtobufCBinaryData borrowed = {.len = bytes.n};
    memcpy(&borrowed.data, &bytes.p, sizeof borrowed.data);
    return borrowed;
}

/* ---- stack traces ---- */

static void fill_profile_ids(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_task_schedule *schedule = from;
    Hearth__V1__Schedule *out = message;

    out->profile_ids =
        hearth_arena_array(&rpc->arena, schedule->n_profiles, sizeof *out->profile_ids);
    if (out->profile_ids == NULL) {
        return;
    }

    for (size_t i = 0; i < schedule->n_profiles; i++) {
        char text[HEARTH_PROFILE_ID_TEXT + 1];
        hearth_profile_id_format(schedule->profiles[i], text);
        out->profile_ids[i] = hearth_rpc_text(rpc, hearth_str_c(text));
    }

    out->n_profile_ids = schedule->n_profiles;
}

HEARTH_MAP_TYPES(schedule, struct hearth_task_schedule, Hearth__V1__Schedule);
static const struct hearth_message_member schedule_members[] = {
    HEARTH_MAP(schedule, schedule_id, schedule_id), HEARTH_MAP(schedule, task_id, task_id),
    HEARTH_MAP(schedule, process_id, process_id),   HEARTH_MAP(schedule, process, process),
    HEARTH_MAP(schedule, instance, instance),       HEARTH_MAP(schedule, start_ms, start_ms),
    HEARTH_MAP(schedule, end_ms, end_ms),
};
static const struct hearth_message_map schedule_map =
    HEARTH_MESSAGE_MAP_AND(schedule, hearth__v1__schedule__descriptor, fill_profile_ids);

HEARTH_UNARY(hearth_svc_list_schedules, Hearth__V1__ListSchedulesRequest,
             Hearth__V1__ListSchedulesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_schedule *schedules;
    size_t n;

    HEARTH_TRY(hearth_task_schedules(&call, hearth_str_c(in->task_id), &schedules, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &schedule_map, schedules, n, out, schedules);

    return HEARTH_OK;
}

HEARTH_MAP_TYPES(stack_element, struct hearth_stack_element, Hearth__V1__StackElement);
static const struct hearth_message_member stack_element_members[] = {
    HEARTH_MAP(stack_element, id, id),
    HEARTH_MAP(stack_element, parent_id, parent_id),
    HEARTH_MAP(stack_element, symbol, symbol),
    HEARTH_MAP(stack_element, space, stack_type), /* the same numbers */
    HEARTH_MAP(stack_element, total, total),
};
static const struct hearth_message_map stack_element_map =
    HEARTH_MESSAGE_MAP(stack_element, hearth__v1__stack_element__descriptor);

HEARTH_MAP_TYPES(stack_tree, struct hearth_stack_tree, Hearth__V1__StackTree);
static const struct hearth_message_member stack_tree_members[] = {
    HEARTH_MAP_LIST(stack_tree, elements, n, elements, &stack_element_map),
};
static const struct hearth_message_map stack_tree_map =
    HEARTH_MESSAGE_MAP(stack_tree, hearth__v1__stack_tree__descriptor);

HEARTH_MAP_TYPES(stacks, struct hearth_stack_analysis, Hearth__V1__AnalyzeStacksResponse);
static const struct hearth_message_member stacks_members[] = {
    HEARTH_MAP_LIST(stacks, trees, n_trees, trees, &stack_tree_map),
    HEARTH_MAP(stacks, tip, tip),
    HEARTH_MAP(stacks, unit, unit),
};
static const struct hearth_message_map stacks_map =
    HEARTH_MESSAGE_MAP(stacks, hearth__v1__analyze_stacks_response__descriptor);

static enum hearth_status read_ranges(struct hearth_rpc *rpc, Hearth__V1__TimeRange *const *in,
                                      size_t n, struct hearth_task_range **ret)
{
    *ret = hearth_arena_array(&rpc->arena, n, sizeof **ret);
    if (*ret == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        (*ret)[i] = (struct hearth_task_range){in[i]->start_ms, in[i]->end_ms};
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_analyze_stacks, Hearth__V1__AnalyzeStacksRequest,
             Hearth__V1__AnalyzeStacksResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_range *ranges;
    struct hearth_stack_analysis analysis;

    /* Read the request. */
    if (in->weight < 0 || in->weight > HEARTH__V1__STACK_WEIGHT__STACK_WEIGHT_DURATION) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "weight %d is not known",
                           (int)in->weight);
    }

    enum hearth_stack_weight weight = in->weight == HEARTH__V1__STACK_WEIGHT__STACK_WEIGHT_DURATION
                                          ? HEARTH_STACK_DURATION
                                          : HEARTH_STACK_COUNT;
    struct hearth_str *ids = hearth_rpc_strs(rpc, in->schedule_ids, in->n_schedule_ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(read_ranges(rpc, in->ranges, in->n_ranges, &ranges));

    /* Analyse. */
    HEARTH_TRY(hearth_task_analyze_stacks(&call, ids, in->n_schedule_ids, ranges, in->n_ranges,
                                          weight, &analysis, &rpc->err));
    assert(analysis.unit != NULL);
    hearth_rpc_map_into(rpc, &stacks_map, &analysis, out);

    return HEARTH_OK;
}

/* ---- files ---- */

HEARTH_MAP_TYPES(upload, struct hearth_task_upload, Hearth__V1__Upload);
static const struct hearth_message_member upload_members[] = {
    HEARTH_MAP(upload, upload_id, upload_id), HEARTH_MAP(upload, task_id, task_id),
    HEARTH_MAP(upload, instance, instance),   HEARTH_MAP(upload, format, format),
    HEARTH_MAP(upload, n_bytes, size_bytes),  HEARTH_MAP(upload, received_ms, received_ms),
};
static const struct hearth_message_map upload_map =
    HEARTH_MESSAGE_MAP(upload, hearth__v1__upload__descriptor);

HEARTH_UNARY(hearth_svc_list_uploads, Hearth__V1__ListUploadsRequest,
             Hearth__V1__ListUploadsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_upload *uploads;
    size_t n;

    HEARTH_TRY(hearth_task_uploads(&call, hearth_str_c(in->task_id), &uploads, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &upload_map, uploads, n, out, uploads);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_get_upload, Hearth__V1__GetUploadRequest, Hearth__V1__GetUploadResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_upload upload;

    HEARTH_TRY(hearth_task_upload_get(&call, hearth_str_c(in->upload_id), &upload, &rpc->err));
    out->upload = hearth_rpc_map(rpc, &upload_map, &upload);
    out->content = borrow_bytes(upload.content);

    return HEARTH_OK;
}

HEARTH_MAP_TYPES(upload_element, struct hearth_upload_element, Hearth__V1__UploadElement);
static const struct hearth_message_member upload_element_members[] = {
    HEARTH_MAP(upload_element, id, id),
    HEARTH_MAP(upload_element, parent_id, parent_id),
    HEARTH_MAP(upload_element, code_signature, code_signature),
    HEARTH_MAP(upload_element, total, total),
    HEARTH_MAP(upload_element, self, self),
};
static const struct hearth_message_map upload_element_map =
    HEARTH_MESSAGE_MAP(upload_element, hearth__v1__upload_element__descriptor);

HEARTH_MAP_TYPES(uploads, struct hearth_upload_analysis, Hearth__V1__AnalyzeUploadsResponse);
static const struct hearth_message_member uploads_members[] = {
    HEARTH_MAP_LIST(uploads, elements, n_elements, elements, &upload_element_map),
    HEARTH_MAP(uploads, unit, unit),
    HEARTH_MAP(uploads, tip, tip),
    HEARTH_MAP_TEXTS(uploads, sample_types, n_sample_types, sample_types),
};
static const struct hearth_message_map uploads_map =
    HEARTH_MESSAGE_MAP(uploads, hearth__v1__analyze_uploads_response__descriptor);

HEARTH_UNARY(hearth_svc_analyze_uploads, Hearth__V1__AnalyzeUploadsRequest,
             Hearth__V1__AnalyzeUploadsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_upload_analysis analysis;
    struct hearth_str *instances = hearth_rpc_strs(rpc, in->instances, in->n_instances);
    if (instances == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_task_analyze_uploads(&call, hearth_str_c(in->task_id), instances,
                                           in->n_instances, hearth_str_c(in->sample_type),
                                           &analysis, &rpc->err));
    hearth_rpc_map_into(rpc, &uploads_map, &analysis, out);

    return HEARTH_OK;
}

/* ---- for bug reports ---- */

HEARTH_UNARY(hearth_svc_export_task, Hearth__V1__ExportTaskRequest, Hearth__V1__ExportTaskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_str archive;
    int64_t max_bytes = in->max_bytes_presence_case != 0 ? in->max_bytes : 0;
    if (max_bytes < 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "max_bytes is %lld",
                           (long long)max_bytes);
    }

    HEARTH_TRY(
        hearth_task_export(&call, hearth_str_c(in->task_id), max_bytes, &archive, &rpc->err));
    out->archive = borrow_bytes(archive);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_import_task, Hearth__V1__ImportTaskRequest, Hearth__V1__ImportTaskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    const struct hearth_task_json_check check = {rpc, hearth_task_json_is_shown};
    struct hearth_str task_id;
    int64_t n_records;

    HEARTH_TRY(hearth_task_import(&call,
                                  hearth_str_n((const char *)in->archive.data, in->archive.len),
                                  &check, &task_id, &n_records, &rpc->err));
    out->task_id = hearth_rpc_text(rpc, task_id);
    out->record_count = n_records;

    return HEARTH_OK;
}
