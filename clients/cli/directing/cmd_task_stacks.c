/* cmd_task_stacks.c -- what tasks brought: schedules, stacks, uploads, download, export, import. */
#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_task.h"
#include "flame_output.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define SCHEDULE_ID_TEXT 64
#define MAX_FILE_BYTES   ((size_t)1 << 30)

/* ---- runs ---- */

static enum hearth_status ask_schedules(struct cli *cli, const char *task_id,
                                        Hearth__V1__ListSchedulesResponse **ret)
{
    Hearth__V1__ListSchedulesRequest request;
    hearth__v1__list_schedules_request__init(&request);
    request.task_id = cli_field(cli, task_id);
    return cli_call(cli, CLI_TASKS "ListSchedules", &request,
                    &hearth__v1__list_schedules_response__descriptor, ret);
}

enum cli_exit cli_task_schedules(struct cli *cli)
{
    Hearth__V1__ListSchedulesResponse *answer = NULL;
    enum hearth_status status = ask_schedules(cli, cli->args[0], &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_schedules == 0) {
        return cli_task_nothing(cli, cli->args[0], "runs");
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_schedules; i++) {
        const Hearth__V1__Schedule *run = answer->schedules[i];
        cli_list_text(&list, run->schedule_id);
        cli_list_time(&list, run->start_ms);
        cli_list_time(&list, run->end_ms);
        cli_list_text(&list, run->process_id);
        cli_list_text(&list, run->process[0] != '\0' ? run->process : run->process_id);
        cli_list_text(&list, run->instance);
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- stack traces ---- */

static bool is_schedule_id(const char *text)
{
    return strlen(text) == SCHEDULE_ID_TEXT && strspn(text, "0123456789abcdef") == SCHEDULE_ID_TEXT;
}

/* The arguments: runs as they are, of a task all of its. */
static enum hearth_status find_runs(struct cli *cli, Hearth__V1__AnalyzeStacksRequest *request)
{
    if (is_schedule_id(cli->args[0])) {
        request->schedule_ids = hearth_arena_array(&cli->arena, cli->n_args, sizeof(char *));
        for (size_t i = 0; request->schedule_ids != NULL && i < cli->n_args; i++) {
            request->schedule_ids[request->n_schedule_ids++] = cli_field(cli, cli->args[i]);
        }
    } else if (cli->n_args > 1) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "give one task or ids of runs, not both");
    } else {
        Hearth__V1__ListSchedulesResponse *runs = NULL;
        HEARTH_TRY(ask_schedules(cli, cli->args[0], &runs));
        request->schedule_ids = hearth_arena_array(&cli->arena, runs->n_schedules, sizeof(char *));
        for (size_t i = 0; request->schedule_ids != NULL && i < runs->n_schedules; i++) {
            request->schedule_ids[request->n_schedule_ids++] = runs->schedules[i]->schedule_id;
        }
    }

    return cli->arena.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&cli->err, &cli->arena)
                              : HEARTH_OK;
}

static enum hearth_status fill_request(struct cli *cli, Hearth__V1__TimeRange *range,
                                       Hearth__V1__TimeRange **ranges,
                                       Hearth__V1__AnalyzeStacksRequest *request)
{
    HEARTH_TRY(find_runs(cli, request));
    if (cli->from != NULL || cli->to != NULL || cli->since != NULL) {
        HEARTH_TRY(cli_resolve_range(cli));
        hearth__v1__time_range__init(range);
        range->start_ms = cli->from_ms;
        range->end_ms = cli->to_ms;
        ranges[0] = range;
        request->ranges = ranges;
        request->n_ranges = 1;
    }
    const char *weight = cli->agent.weight;
    if (weight != NULL && strcmp(weight, "duration") == 0) {
        request->weight = HEARTH__V1__STACK_WEIGHT__STACK_WEIGHT_DURATION;
    } else if (weight != NULL && strcmp(weight, "count") != 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--weight must be count or duration");
    }

    return HEARTH_OK;
}

static void put_symbol(const Hearth__V1__StackElement *element, struct hearth_buf *out)
{
    cli_fit(hearth_str_c(element->symbol), INT_MAX, false, out);
    if (element->stack_type == HEARTH__V1__STACK_TYPE__STACK_TYPE_KERNEL) {
        hearth_buf_cstr(out, "_[k]");
    }
}

/* Elements are breadth first: the children of one stand together. [i]: the first child of element i + 1; 0: none. */
static uint32_t *first_children(struct cli *cli, const Hearth__V1__StackTree *tree)
{
    uint32_t *first = hearth_arena_calloc(&cli->arena, tree->n_elements + 1, sizeof *first);
    for (size_t i = tree->n_elements; first != NULL && i > 1; i--) {
        int32_t parent = tree->elements[i - 1]->parent_id;
        if (parent > 0 && (size_t)parent < i) {
            first[parent - 1] = (uint32_t)(i - 1);
        }
    }
    return first;
}

static bool is_child(const Hearth__V1__StackTree *tree, size_t i, size_t parent)
{
    return i < tree->n_elements && tree->elements[i]->parent_id == (int32_t)parent + 1;
}

/* Depth first by a path of indices, so that deep stacks need no deep recursion. `line` gets each element. */
typedef void tree_line_fn(const Hearth__V1__StackTree *tree, const uint32_t *first,
                          const uint32_t *path, size_t depth, struct hearth_buf *out);

static bool walk_tree(struct cli *cli, const Hearth__V1__StackTree *tree, tree_line_fn *line,
                      struct hearth_buf *out)
{
    uint32_t *first = first_children(cli, tree);
    uint32_t *path = hearth_arena_array(&cli->arena, tree->n_elements + 1, sizeof *path);

    if (first == NULL || path == NULL || tree->n_elements == 0) {
        return first != NULL && path != NULL;
    }
    size_t depth = 1;
    path[0] = 0;
    line(tree, first, path, depth, out);
    while (depth > 0) {
        uint32_t at = path[depth - 1];
        uint32_t child = first[at];
        if (child != 0) {
            first[at] = is_child(tree, (size_t)child + 1, at) ? child + 1 : 0;
            path[depth++] = child;
            line(tree, first, path, depth, out);
        } else {
            depth--;
        }
    }

    return true;
}

static void put_tree_line(const Hearth__V1__StackTree *tree, const uint32_t *first,
                          const uint32_t *path, size_t depth, struct hearth_buf *out)
{
    (void)first;
    const Hearth__V1__StackElement *element = tree->elements[path[depth - 1]];
    hearth_buf_printf(out, "%14lld  %*s", (long long)element->total, (int)(depth - 1) * 2, "");
    put_symbol(element, out);
    hearth_buf_byte(out, '\n');
}

/* What the element has for itself; nothing when it is only passed through. */
static void put_collapsed_line(const Hearth__V1__StackTree *tree, const uint32_t *first,
                               const uint32_t *path, size_t depth, struct hearth_buf *out)
{
    uint32_t at = path[depth - 1];
    int64_t self = tree->elements[at]->total;
    for (size_t c = first[at]; c != 0 && is_child(tree, c, at); c++) {
        self -= tree->elements[c]->total;
    }
    if (self <= 0) {
        return;
    }
    for (size_t i = 0; i < depth; i++) {
        hearth_buf_cstr(out, i == 0 ? "" : ";");
        put_symbol(tree->elements[path[i]], out);
    }
    hearth_buf_printf(out, " %lld\n", (long long)self);
}

static enum cli_exit print_stacks(struct cli *cli, const Hearth__V1__AnalyzeStacksResponse *answer)
{
    struct hearth_buf out;

    if (answer->tip[0] != '\0') {
        cli_say("note", answer->tip);
    }
    if (flame_output_is_chosen(cli)) {
        return cli_task_write_stacks(cli, answer);
    }
    hearth_buf_init(&out, 0);
    bool is_collapsed = cli->output == CLI_COLLAPSED, done = true;
    if (!is_collapsed) {
        hearth_buf_printf(&out, "%14s\n", answer->unit);
    }
    for (size_t i = 0; i < answer->n_trees && done && cli->output != CLI_JSON; i++) {
        done = walk_tree(cli, answer->trees[i], is_collapsed ? put_collapsed_line : put_tree_line,
                         &out);
    }
    if (!done) {
        hearth_buf_release(&out);
        return cli_fail(cli, HEARTH_FAIL_ARENA(&cli->err, &cli->arena));
    }

    return is_collapsed ? cli_print_exact(&out) : cli_print_answer(cli, &answer->base, &out);
}

enum cli_exit cli_task_stacks(struct cli *cli)
{
    Hearth__V1__AnalyzeStacksRequest request;
    Hearth__V1__AnalyzeStacksResponse *answer = NULL;
    Hearth__V1__TimeRange range, *ranges[1];

    hearth__v1__analyze_stacks_request__init(&request);
    enum hearth_status status = fill_request(cli, &range, ranges, &request);
    if (status == HEARTH_OK && request.n_schedule_ids == 0) {
        return cli_task_nothing(cli, cli->args[0], "stack traces");
    }
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_TASKS "AnalyzeStacks", &request,
                          &hearth__v1__analyze_stacks_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    enum cli_exit code = print_stacks(cli, answer);

    return code == CLI_OK && answer->n_trees == 0 ? CLI_NO_DATA : code;
}

/* ---- files ---- */

static enum hearth_status ask_uploads(struct cli *cli, const char *task_id,
                                      Hearth__V1__ListUploadsResponse **ret)
{
    Hearth__V1__ListUploadsRequest request;
    hearth__v1__list_uploads_request__init(&request);
    request.task_id = cli_field(cli, task_id);
    return cli_call(cli, CLI_TASKS "ListUploads", &request,
                    &hearth__v1__list_uploads_response__descriptor, ret);
}

enum cli_exit cli_task_uploads(struct cli *cli)
{
    Hearth__V1__ListUploadsResponse *answer = NULL;
    enum hearth_status status = ask_uploads(cli, cli->args[0], &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_uploads == 0) {
        return cli_task_nothing(cli, cli->args[0], "files");
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_uploads; i++) {
        const Hearth__V1__Upload *upload = answer->uploads[i];
        cli_list_text(&list, upload->upload_id);
        cli_list_time(&list, upload->received_ms);
        cli_list_text(&list, upload->format);
        cli_list_number(&list, upload->size_bytes);
        cli_list_text(&list, upload->instance);
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- files as one tree ---- */

/* [i]: how many are above element i, which come before it; NULL: no memory. */
static uint32_t *depths_of(struct cli *cli, const Hearth__V1__AnalyzeUploadsResponse *answer)
{
    uint32_t *depths = hearth_arena_calloc(&cli->arena, answer->n_elements + 1, sizeof *depths);
    for (size_t i = 0; depths != NULL && i < answer->n_elements; i++) {
        int32_t parent = answer->elements[i]->parent_id;
        depths[i] = parent >= 0 && (size_t)parent < i ? depths[parent] + 1 : 0;
    }
    return depths;
}

static void put_upload_tree(const Hearth__V1__AnalyzeUploadsResponse *answer,
                            const uint32_t *depths, struct hearth_buf *out)
{
    for (size_t i = 0; i < answer->n_sample_types; i++) {
        hearth_buf_cstr(out, i == 0 ? "sample types: " : ", ");
        cli_fit(hearth_str_c(answer->sample_types[i]), INT_MAX, false, out);
    }
    hearth_buf_printf(out, "\n%14s  %14s  ", "total", "self");
    cli_fit(hearth_str_c(answer->unit), INT_MAX, false, out);
    hearth_buf_byte(out, '\n');
    for (size_t i = 0; i < answer->n_elements; i++) {
        const Hearth__V1__UploadElement *element = answer->elements[i];
        hearth_buf_printf(out, "%14lld  %14lld  %*s", (long long)element->total,
                          (long long)element->self, (int)depths[i] * 2, "");
        cli_fit(hearth_str_c(element->code_signature), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
    }
}

/* Inlined functions stand in one signature, with the separator of frames between them: a colon here, as in profiles. */
static void put_signature(const char *text, struct hearth_buf *out)
{
    size_t from = out->n;
    cli_fit(hearth_str_c(text), INT_MAX, false, out);
    for (size_t i = from; i < out->n; i++) {
        out->p[i] = out->p[i] == ';' ? ':' : out->p[i];
    }
}

/* The root is of the tree, not of its stack traces: it has a line only for those without any frame. */
static bool put_upload_lines(struct cli *cli, const Hearth__V1__AnalyzeUploadsResponse *answer,
                             const uint32_t *depths, struct hearth_buf *out)
{
    uint32_t *path = hearth_arena_array(&cli->arena, answer->n_elements + 1, sizeof *path);
    for (size_t i = 0; path != NULL && i < answer->n_elements; i++) {
        path[depths[i]] = (uint32_t)i;
        if (answer->elements[i]->self <= 0) {
            continue;
        }
        size_t from = depths[i] > 0;
        for (size_t k = from; k <= depths[i]; k++) {
            hearth_buf_cstr(out, k == from ? "" : ";");
            put_signature(answer->elements[path[k]]->code_signature, out);
        }
        hearth_buf_printf(out, " %lld\n", (long long)answer->elements[i]->self);
    }
    return path != NULL;
}

static enum cli_exit print_analysis(struct cli *cli,
                                    const Hearth__V1__AnalyzeUploadsResponse *answer)
{
    struct hearth_buf out;

    if (answer->tip[0] != '\0') {
        cli_say("note", answer->tip);
    }
    bool is_empty = answer->n_elements == 0 || answer->elements[0]->total == 0;
    if (is_empty && answer->n_elements > 0) {
        cli_say("hearth", "the files have no samples of this type");
    }
    if (flame_output_is_chosen(cli)) {
        return cli_task_write_analysis(cli, answer);
    }
    hearth_buf_init(&out, 0);
    bool is_collapsed = cli->output == CLI_COLLAPSED;
    uint32_t *depths = depths_of(cli, answer);
    bool done = depths != NULL;
    if (done && is_collapsed) {
        done = put_upload_lines(cli, answer, depths, &out);
    } else if (done && answer->n_elements > 0) {
        put_upload_tree(answer, depths, &out);
    }
    if (!done) {
        hearth_buf_release(&out);
        return cli_fail(cli, HEARTH_FAIL_ARENA(&cli->err, &cli->arena));
    }
    enum cli_exit code =
        is_collapsed ? cli_print(&out) : cli_print_answer(cli, &answer->base, &out);

    return code == CLI_OK && is_empty ? CLI_NO_DATA : code;
}

static enum hearth_status ask_analysis(struct cli *cli, Hearth__V1__AnalyzeUploadsResponse **ret)
{
    Hearth__V1__AnalyzeUploadsRequest request;
    const char *type = cli->agent.sample_type;
    hearth__v1__analyze_uploads_request__init(&request);
    request.task_id = cli_field(cli, cli->args[0]);
    request.sample_type = cli_field(cli, type == NULL ? "" : type);
    HEARTH_TRY(cli_task_texts(cli, cli->agent.instances, &request.n_instances, &request.instances));
    return cli_call(cli, CLI_TASKS "AnalyzeUploads", &request,
                    &hearth__v1__analyze_uploads_response__descriptor, ret);
}

enum cli_exit cli_task_analyze(struct cli *cli)
{
    Hearth__V1__AnalyzeUploadsResponse *answer = NULL;
    Hearth__V1__ListUploadsResponse *uploads = NULL;
    enum hearth_status status = ask_analysis(cli, &answer);
    if (status == HEARTH_OK && answer->n_elements == 0) {
        status = ask_uploads(cli, cli->args[0], &uploads);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    return uploads != NULL && uploads->n_uploads == 0 ? cli_task_nothing(cli, cli->args[0], "files")
                                                      : print_analysis(cli, answer);
}

/* ---- files as they came ---- */

static enum cli_exit save_archive(struct cli *cli, enum hearth_status status,
                                  ProtobufCBinaryData bytes)
{
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    return cli_save(cli->args[1], hearth_str_n((const char *)bytes.data, bytes.len), "");
}

enum cli_exit cli_task_download(struct cli *cli)
{
    Hearth__V1__GetUploadRequest request;
    Hearth__V1__GetUploadResponse *answer = NULL;
    hearth__v1__get_upload_request__init(&request);
    request.upload_id = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, CLI_TASKS "GetUpload", &request,
                                         &hearth__v1__get_upload_response__descriptor, &answer);
    return save_archive(cli, status,
                        status == HEARTH_OK ? answer->content : (ProtobufCBinaryData){0});
}

enum cli_exit cli_task_export(struct cli *cli)
{
    Hearth__V1__ExportTaskRequest request;
    Hearth__V1__ExportTaskResponse *answer = NULL;
    hearth__v1__export_task_request__init(&request);
    request.task_id = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, CLI_TASKS "ExportTask", &request,
                                         &hearth__v1__export_task_response__descriptor, &answer);
    enum cli_exit code =
        save_archive(cli, status, status == HEARTH_OK ? answer->archive : (ProtobufCBinaryData){0});
    if (code == CLI_OK) {
        cli_task_say_left_out(cli, cli->args[0]);
    }
    return code;
}

/* All of a file; out's limit is the largest. */
static enum hearth_status read_archive(struct cli *cli, const char *path, struct hearth_buf *out)
{
    FILE *file = fopen(path, "rbe");

    if (file == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "cannot open %s: %s", path,
                           strerrordesc_np(errno));
    }
    for (size_t n = 1; n > 0;) {
        char *room = hearth_buf_reserve(out, 65536);
        n = room == NULL ? 0 : fread(room, 1, 65536, file);
        out->n += n;
    }
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed || hearth_buf_failed(out)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "cannot read %s: read error, or larger than 1 GiB", path);
    }

    return HEARTH_OK;
}

enum cli_exit cli_task_import(struct cli *cli)
{
    Hearth__V1__ImportTaskRequest request;
    Hearth__V1__ImportTaskResponse *answer = NULL;
    struct hearth_buf file, out;

    hearth_buf_init(&file, MAX_FILE_BYTES);
    hearth__v1__import_task_request__init(&request);
    enum hearth_status status = read_archive(cli, cli->args[0], &file);
    if (status == HEARTH_OK) {
        request.archive.data = (uint8_t *)file.p;
        request.archive.len = file.n;
        status = cli_call(cli, CLI_TASKS "ImportTask", &request,
                          &hearth__v1__import_task_response__descriptor, &answer);
    }
    hearth_buf_release(&file);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth_buf_init(&out, 0);
    hearth_buf_printf(&out, "%s  %lld records\n", answer->task_id, (long long)answer->record_count);

    return cli_print_answer(cli, &answer->base, &out);
}
