/*
 * svc_task_results.c -- results of tasks: the part of hearth.v1.TaskService in task_results.proto.
 */
#include "hearth/engine/task_archive.h"
#include "hearth/engine/task_stacks.h"
#include "hearth/engine/task_uploads.h"
#include "hearth/pb/hearth/v1/task_results.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"
#include "tasks/svc_tasks.h"

/* Texts of answers are never NULL: an unknown text is empty. */
static char *text_of(struct hearth_rpc *rpc, struct hearth_str text)
{
    return hearth_rpc_text(rpc, hearth_str_n(text.n > 0 ? text.p : "", text.n));
}

/* ---- stack traces ---- */

static char **profile_ids_of(struct hearth_rpc *rpc, const struct hearth_task_schedule *schedule)
{
    char **out = hearth_arena_array(&rpc->arena, schedule->n_profiles, sizeof *out);
    for (size_t i = 0; i < schedule->n_profiles && out != NULL; i++) {
        char text[HEARTH_PROFILE_ID_TEXT + 1];
        hearth_profile_id_format(schedule->profiles[i], text);
        out[i] = hearth_rpc_text(rpc, hearth_str_c(text));
    }

    return out;
}

static enum hearth_status list_schedules(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListSchedulesRequest *in =
        (const Hearth__V1__ListSchedulesRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_schedule *schedules;
    size_t n;

    HEARTH_TRY(hearth_task_schedules(&call, hearth_str_c(in->task_id), &schedules, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ListSchedulesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Schedule *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    Hearth__V1__Schedule **all = hearth_arena_array(&rpc->arena, n, sizeof *all);
    if (out == NULL || bodies == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_schedules_response__init(out);

    for (size_t i = 0; i < n; i++) {
        hearth__v1__schedule__init(&bodies[i]);
        bodies[i].schedule_id = text_of(rpc, schedules[i].schedule_id);
        bodies[i].task_id = text_of(rpc, schedules[i].task_id);
        bodies[i].process_id = text_of(rpc, schedules[i].process_id);
        bodies[i].process = text_of(rpc, schedules[i].process);
        bodies[i].instance = text_of(rpc, schedules[i].instance);
        bodies[i].start_ms = schedules[i].start_ms;
        bodies[i].end_ms = schedules[i].end_ms;
        bodies[i].profile_ids = profile_ids_of(rpc, &schedules[i]);
        bodies[i].n_profile_ids = bodies[i].profile_ids != NULL ? schedules[i].n_profiles : 0;
        all[i] = &bodies[i];
    }

    out->schedules = all;
    out->n_schedules = n;
    rpc->answer = &out->base;

    return rpc->arena.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                              : HEARTH_OK;
}

void hearth_svc_list_schedules(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_schedules(rpc));
}

static Hearth__V1__StackTree *make_tree(struct hearth_rpc *rpc,
                                        const struct hearth_stack_tree *tree)
{
    Hearth__V1__StackTree *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__StackElement *bodies = hearth_arena_array(&rpc->arena, tree->n, sizeof *bodies);
    Hearth__V1__StackElement **all = hearth_arena_array(&rpc->arena, tree->n, sizeof *all);
    if (out == NULL || bodies == NULL || all == NULL) {
        return NULL;
    }

    hearth__v1__stack_tree__init(out);

    for (size_t i = 0; i < tree->n; i++) {
        const struct hearth_stack_element *element = &tree->elements[i];
        hearth__v1__stack_element__init(&bodies[i]);
        bodies[i].id = (int32_t)element->id;
        bodies[i].parent_id = (int32_t)element->parent_id;
        bodies[i].symbol = text_of(rpc, element->symbol);
        bodies[i].stack_type = (Hearth__V1__StackType)element->space;
        bodies[i].total = element->total;
        all[i] = &bodies[i];
    }

    out->elements = all;
    out->n_elements = tree->n;

    return out;
}

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

static enum hearth_status analyze_stacks(struct hearth_rpc *rpc)
{
    const Hearth__V1__AnalyzeStacksRequest *in =
        (const Hearth__V1__AnalyzeStacksRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_range *ranges;
    struct hearth_stack_analysis analysis;

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
    HEARTH_TRY(hearth_task_analyze_stacks(&call, ids, in->n_schedule_ids, ranges, in->n_ranges,
                                          weight, &analysis, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__AnalyzeStacksResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__StackTree **trees =
        hearth_arena_array(&rpc->arena, analysis.n_trees, sizeof *trees);
    if (out == NULL || trees == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__analyze_stacks_response__init(out);

    for (size_t i = 0; i < analysis.n_trees; i++) {
        trees[i] = make_tree(rpc, &analysis.trees[i]);
    }

    out->trees = trees;
    out->n_trees = analysis.n_trees;
    out->tip = text_of(rpc, analysis.tip);
    out->unit = text_of(rpc, hearth_str_c(analysis.unit));
    rpc->answer = &out->base;

    return rpc->arena.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                              : HEARTH_OK;
}

void hearth_svc_analyze_stacks(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, analyze_stacks(rpc));
}

/* ---- files ---- */

static void fill_upload(struct hearth_rpc *rpc, const struct hearth_task_upload *in,
                        Hearth__V1__Upload *out)
{
    hearth__v1__upload__init(out);
    out->upload_id = text_of(rpc, in->upload_id);
    out->task_id = text_of(rpc, in->task_id);
    out->instance = text_of(rpc, in->instance);
    out->format = text_of(rpc, in->format);
    out->size_bytes = in->n_bytes;
    out->received_ms = in->received_ms;
}

static enum hearth_status list_uploads(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListUploadsRequest *in = (const Hearth__V1__ListUploadsRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_upload *uploads;
    size_t n;

    HEARTH_TRY(hearth_task_uploads(&call, hearth_str_c(in->task_id), &uploads, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ListUploadsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Upload *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    Hearth__V1__Upload **all = hearth_arena_array(&rpc->arena, n, sizeof *all);
    if (out == NULL || bodies == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_uploads_response__init(out);

    for (size_t i = 0; i < n; i++) {
        fill_upload(rpc, &uploads[i], &bodies[i]);
        all[i] = &bodies[i];
    }

    out->uploads = all;
    out->n_uploads = n;
    rpc->answer = &out->base;

    return rpc->arena.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                              : HEARTH_OK;
}

void hearth_svc_list_uploads(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_uploads(rpc));
}

static enum hearth_status get_upload(struct hearth_rpc *rpc)
{
    const Hearth__V1__GetUploadRequest *in = (const Hearth__V1__GetUploadRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_task_upload upload;

    HEARTH_TRY(hearth_task_upload_get(&call, hearth_str_c(in->upload_id), &upload, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__GetUploadResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Upload *head = hearth_arena_alloc(&rpc->arena, sizeof *head);
    if (out == NULL || head == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__get_upload_response__init(out);
    fill_upload(rpc, &upload, head);
    out->upload = head;
    out->content.len = upload.content.n;

    /* The content is not copied. The answer is only read, but protobuf-c has no const bytes. */
    memcpy(&out->content.data, &upload.content.p, sizeof out->content.data);
    rpc->answer = &out->base;

    return rpc->arena.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                              : HEARTH_OK;
}

void hearth_svc_get_upload(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get_upload(rpc));
}

static enum hearth_status fill_analysis(struct hearth_rpc *rpc,
                                        const struct hearth_upload_analysis *analysis,
                                        Hearth__V1__AnalyzeUploadsResponse *out)
{
    size_t n = analysis->n_elements;
    Hearth__V1__UploadElement *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);

    out->elements = hearth_arena_array(&rpc->arena, n, sizeof *out->elements);
    if (bodies == NULL || out->elements == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        const struct hearth_upload_element *element = &analysis->elements[i];
        hearth__v1__upload_element__init(&bodies[i]);
        bodies[i].id = (int32_t)element->id;
        bodies[i].parent_id = (int32_t)element->parent_id;
        bodies[i].code_signature = text_of(rpc, element->code_signature);
        bodies[i].total = element->total;
        bodies[i].self = element->self;
        out->elements[i] = &bodies[i];
    }

    out->n_elements = n;
    out->unit = text_of(rpc, analysis->unit);
    out->tip = text_of(rpc, analysis->tip);
    out->sample_types = hearth_rpc_texts(rpc, analysis->sample_types, analysis->n_sample_types);
    out->n_sample_types = analysis->n_sample_types;

    return rpc->arena.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                              : HEARTH_OK;
}

static enum hearth_status analyze_uploads(struct hearth_rpc *rpc)
{
    const Hearth__V1__AnalyzeUploadsRequest *in =
        (const Hearth__V1__AnalyzeUploadsRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_upload_analysis analysis;
    struct hearth_str *instances = hearth_rpc_strs(rpc, in->instances, in->n_instances);
    Hearth__V1__AnalyzeUploadsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (instances == NULL || out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__analyze_uploads_response__init(out);
    HEARTH_TRY(hearth_task_analyze_uploads(&call, hearth_str_c(in->task_id), instances,
                                           in->n_instances, hearth_str_c(in->sample_type),
                                           &analysis, &rpc->err));
    HEARTH_TRY(fill_analysis(rpc, &analysis, out));
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_analyze_uploads(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, analyze_uploads(rpc));
}

/* ---- for bug reports ---- */

static enum hearth_status export_task(struct hearth_rpc *rpc)
{
    const Hearth__V1__ExportTaskRequest *in = (const Hearth__V1__ExportTaskRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_str archive;
    int64_t max_bytes = in->max_bytes_presence_case != 0 ? in->max_bytes : 0;
    if (max_bytes < 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "max_bytes is %lld",
                           (long long)max_bytes);
    }

    HEARTH_TRY(
        hearth_task_export(&call, hearth_str_c(in->task_id), max_bytes, &archive, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ExportTaskResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__export_task_response__init(out);
    out->archive.len = archive.n;
    memcpy(&out->archive.data, &archive.p,
           sizeof out->archive.data); /* only read, as in get_upload */
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_export_task(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, export_task(rpc));
}

static enum hearth_status import_task(struct hearth_rpc *rpc)
{
    const Hearth__V1__ImportTaskRequest *in = (const Hearth__V1__ImportTaskRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_str task_id;
    int64_t n_records;
    Hearth__V1__ImportTaskResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__import_task_response__init(out);

    const struct hearth_task_json_check check = {rpc, hearth_task_json_is_shown};

    HEARTH_TRY(hearth_task_import(&call,
                                  hearth_str_n((const char *)in->archive.data, in->archive.len),
                                  &check, &task_id, &n_records, &rpc->err));
    out->task_id = text_of(rpc, task_id);
    out->record_count = n_records;
    rpc->answer = &out->base;

    return rpc->arena.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                              : HEARTH_OK;
}

void hearth_svc_import_task(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, import_task(rpc));
}
