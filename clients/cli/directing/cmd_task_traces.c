/* cmd_task_traces.c -- hearth task segments, threads: requests that a trace task found, and where their time went. */
#include "hearth/base/clock.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_task.h"
#include "text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#define INDENT     2
#define MAX_INDENT 60
#define MAX_NAMED  20 /* segments in the first line of their threads */

static void append_indent(size_t depth, struct hearth_buf *out)
{
    size_t columns = depth * INDENT < MAX_INDENT ? depth * INDENT : MAX_INDENT;
    hearth_buf_printf(out, "%*s", (int)columns, "");
}

static void print_tip(const char *tip)
{
    if (tip[0] != '\0') {
        cli_say("note", tip);
    }
}

/* ---- segments ---- */

/* How many spans stand above this one in its segment; of circles, as many as there are spans. */
static size_t depth_of(const Hearth__V1__ProfiledSegment *request, size_t span)
{
    size_t depth = 0, at = span;

    while (depth < request->n_spans && request->spans[at]->parent_span_id >= 0) {
        size_t parent = 0;
        while (parent < request->n_spans &&
               (request->spans[parent]->span_id != request->spans[at]->parent_span_id ||
                strcmp(request->spans[parent]->segment_id, request->spans[at]->segment_id) != 0)) {
            parent++;
        }
        if (parent == request->n_spans) {
            break;
        }
        at = parent;
        depth++;
    }

    return depth;
}

static void print_span(const Hearth__V1__ProfiledSegment *request, size_t i, struct hearth_buf *out)
{
    const Hearth__V1__SegmentSpan *span = request->spans[i];
    bool begins = i == 0 || strcmp(request->spans[i - 1]->segment_id, span->segment_id) != 0;

    if (begins) {
        hearth_buf_cstr(out, "  segment ");
        cli_fit(hearth_str_c(span->segment_id), INT_MAX, false, out);
        hearth_buf_cstr(out, span->is_profiled ? "  has snapshots\n" : "\n");
    }
    char ms[48];
    cli_value((double)(span->end_ms - span->start_ms) * 1e6, HEARTH_STR("nanoseconds"), ms);
    hearth_buf_printf(out, "    %*s  %-8s ", hearth_human_width(ms, 10), ms, span->type);
    append_indent(depth_of(request, i), out);
    cli_fit(hearth_str_c(span->endpoint), INT_MAX, false, out);
    if (span->component[0] != '\0') {
        hearth_buf_printf(out, "  %s", span->component);
    }
    if (span->peer[0] != '\0') {
        hearth_buf_cstr(out, "  to ");
        cli_fit(hearth_str_c(span->peer), INT_MAX, false, out);
    }
    hearth_buf_cstr(out, span->is_error ? "  failed\n" : "\n");
}

static void print_request(const Hearth__V1__ProfiledSegment *request, struct hearth_buf *out)
{
    char at[32], ms[48];
    cli_date(request->start_ms, at);
    cli_value((double)request->duration_ms * 1e6, HEARTH_STR("nanoseconds"), ms);

    hearth_buf_printf(out, "%s  %s ", at, ms);
    for (size_t i = 0; i < request->n_endpoints; i++) {
        hearth_buf_cstr(out, i == 0 ? " " : ", ");
        cli_fit(hearth_str_c(request->endpoints[i]), INT_MAX, false, out);
    }
    hearth_buf_cstr(out, "  instance ");
    cli_fit(hearth_str_c(request->instance), INT_MAX, false, out);
    hearth_buf_cstr(out, "  trace ");
    cli_fit(hearth_str_c(request->trace_id), INT_MAX, false, out);
    hearth_buf_byte(out, '\n');
    for (size_t i = 0; i < request->n_spans; i++) {
        print_span(request, i, out);
    }
}

static void add_request(struct cli_listing *list, const Hearth__V1__ProfiledSegment *request)
{
    struct hearth_buf endpoints;

    cli_list_time(list, request->start_ms);
    cli_list_number(list, request->duration_ms * HEARTH_NS_PER_MS);
    cli_list_text(list, request->instance);
    cli_list_text(list, request->trace_id);
    cli_list_number(list, (int64_t)request->n_spans);
    hearth_buf_init(&endpoints, 0);
    for (size_t i = 0; i < request->n_endpoints; i++) {
        hearth_buf_printf(&endpoints, "%s%s", i == 0 ? "" : ", ", request->endpoints[i]);
    }
    cli_list_take(list, &endpoints);
}

static enum hearth_status ask_segments(struct cli *cli, const char *task_id,
                                       Hearth__V1__ListSegmentsResponse **ret)
{
    Hearth__V1__ListSegmentsRequest request;
    hearth__v1__list_segments_request__init(&request);
    request.task_id = cli_field(cli, task_id);
    return cli_call(cli, CLI_TASKS "ListSegments", &request,
                    &hearth__v1__list_segments_response__descriptor, ret);
}

enum cli_exit cli_task_segments(struct cli *cli)
{
    Hearth__V1__ListSegmentsResponse *answer = NULL;
    enum hearth_status status = ask_segments(cli, cli->args[0], &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_segments == 0 && answer->tip[0] == '\0' && cli->output != CLI_JSON) {
        return cli_task_nothing(cli, cli->args[0], "requests");
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    for (size_t i = 0; i < answer->n_segments; i++) {
        print_request(answer->segments[i], &list.foot);
        add_request(&list, answer->segments[i]);
    }
    print_tip(answer->tip);
    enum cli_exit code = cli_list_end(&list, &answer->base);

    return code == CLI_OK && answer->n_segments == 0 ? CLI_NO_DATA : code;
}

/* ---- threads ---- */

/* "ID" or "ID@FROM-TO" in milliseconds. */
static enum hearth_status read_query(struct cli *cli, const char *text,
                                     Hearth__V1__SegmentQuery *ret)
{
    struct hearth_str all = hearth_str_c(text);
    size_t at = hearth_str_find(all, '@', 0), dash = hearth_str_find(all, '-', at);

    hearth__v1__segment_query__init(ret);
    if (at == all.n) {
        ret->segment_id = cli_field(cli, text);
        return HEARTH_OK;
    }
    Hearth__V1__TimeRange *range = hearth_arena_alloc(&cli->arena, sizeof *range);
    if (range == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    hearth__v1__time_range__init(range);
    if (dash == all.n ||
        !hearth_str_to_i64(hearth_str_n(text + at + 1, dash - at - 1), &range->start_ms) ||
        !hearth_str_to_i64(hearth_str_n(text + dash + 1, all.n - dash - 1), &range->end_ms)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "\"%s\" is neither SEGMENT nor SEGMENT@FROM-TO, in milliseconds", text);
    }
    ret->segment_id = hearth_arena_strndup(&cli->arena, text, at);
    ret->range = range;

    return HEARTH_OK;
}

/* The first element whose parent it is: breadth first, elements are in the order of their parents. */
static size_t first_below(const Hearth__V1__SnapshotTree *tree, int32_t parent_id)
{
    size_t from = 0, to = tree->n_elements;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (tree->elements[middle]->parent_id < parent_id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

/* Zero is printed as milliseconds, in which the clock counts, not as nanoseconds. */
static void put_ms(int64_t ms, char out[48])
{
    if (ms == 0) {
        (void)snprintf(out, 48, "0 ms");
    } else {
        cli_value((double)ms * 1e6, HEARTH_STR("nanoseconds"), out);
    }
}

/* What is below an element follows it. A tree is not deeper than max-snapshot-frames. */
static void print_below(const Hearth__V1__SnapshotTree *tree, int32_t parent_id, size_t depth,
                        struct hearth_buf *out)
{
    for (size_t i = first_below(tree, parent_id);
         i < tree->n_elements && tree->elements[i]->parent_id == parent_id; i++) {
        const Hearth__V1__SnapshotElement *element = tree->elements[i];
        char ms[48], self[48];
        put_ms(element->duration_ms, ms);
        put_ms(element->duration_child_excluded_ms, self);
        hearth_buf_printf(out, "%*s  %*s  %6" PRId64 "  ", hearth_human_width(ms, 10), ms,
                          hearth_human_width(self, 10), self, element->count);
        append_indent(depth, out);
        cli_fit(hearth_str_c(element->code_signature), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
        if (element->id > parent_id) {
            print_below(tree, element->id, depth + 1, out);
        }
    }
}

/* Room for n queries in the request. */
static enum hearth_status make_queries(struct cli *cli, size_t n,
                                       Hearth__V1__AnalyzeSegmentsRequest *request,
                                       Hearth__V1__SegmentQuery **ret)
{
    *ret = hearth_arena_array(&cli->arena, n, sizeof **ret);
    request->queries = hearth_arena_array(&cli->arena, n, sizeof *request->queries);
    if (*ret == NULL || request->queries == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        request->queries[i] = &(*ret)[i];
    }
    return HEARTH_OK;
}

/* The segments with snapshots of all requests: spans of a segment stand together. */
static enum hearth_status add_segments(struct cli *cli,
                                       const Hearth__V1__ListSegmentsResponse *found,
                                       Hearth__V1__AnalyzeSegmentsRequest *request)
{
    size_t n_spans = 0;

    for (size_t i = 0; i < found->n_segments; i++) {
        n_spans += found->segments[i]->n_spans;
    }
    Hearth__V1__SegmentQuery *queries;
    HEARTH_TRY(make_queries(cli, n_spans, request, &queries));
    for (size_t i = 0; i < found->n_segments; i++) {
        const Hearth__V1__ProfiledSegment *one = found->segments[i];
        const char *last = "";
        for (size_t k = 0; k < one->n_spans; k++) {
            char *segment_id = one->spans[k]->segment_id;
            if (one->spans[k]->is_profiled && strcmp(segment_id, last) != 0) {
                hearth__v1__segment_query__init(&queries[request->n_queries]);
                queries[request->n_queries++].segment_id = segment_id;
                last = segment_id;
            }
        }
    }

    return HEARTH_OK;
}

/* One argument may be a task, which is all of its segments. *ret_is_task says whether it is one. */
static enum hearth_status find_queries(struct cli *cli, Hearth__V1__AnalyzeSegmentsRequest *request,
                                       bool *ret_is_task)
{
    *ret_is_task = false;
    if (cli->n_args == 1 && strchr(cli->args[0], '@') == NULL) {
        Hearth__V1__ListSegmentsResponse *found = NULL;
        enum hearth_status status = ask_segments(cli, cli->args[0], &found);
        if (status == HEARTH_OK) {
            *ret_is_task = true;
            print_tip(found->tip);
            return add_segments(cli, found, request);
        }
        if (status != HEARTH_NOT_FOUND) {
            return status;
        }
    }
    Hearth__V1__SegmentQuery *queries;
    HEARTH_TRY(make_queries(cli, cli->n_args, request, &queries));
    for (size_t i = 0; i < cli->n_args; i++) {
        HEARTH_TRY(read_query(cli, cli->args[i], &queries[i]));
    }
    request->n_queries = cli->n_args;

    return HEARTH_OK;
}

/* Whose threads these are: "segments a, b, c and 4 more". */
static void print_segments(const Hearth__V1__AnalyzeSegmentsRequest *request,
                           struct hearth_buf *out)
{
    size_t n = request->n_queries, n_named = n > MAX_NAMED ? MAX_NAMED : n;
    hearth_buf_cstr(out, n == 1 ? "segment " : "segments ");
    for (size_t i = 0; i < n_named; i++) {
        hearth_buf_cstr(out, i == 0 ? "" : ", ");
        cli_fit(hearth_str_c(request->queries[i]->segment_id), INT_MAX, false, out);
    }
    if (n > n_named) {
        hearth_buf_printf(out, " and %zu more", n - n_named);
    }
    hearth_buf_byte(out, '\n');
}

static void say_no_snapshots(const struct cli *cli, bool is_task)
{
    char text[256];
    const char *id = cli->args[0];
    if (is_task) {
        (void)snprintf(text, sizeof text, "no snapshots of task %.100s", id);
    } else {
        (void)snprintf(text, sizeof text,
                       "no snapshots of segment %.100s%s; hearth task segments TASK says which "
                       "segments have some",
                       id, cli->n_args > 1 ? " or any other of these" : "");
    }
    cli_say("hearth", text);
}

enum cli_exit cli_task_threads(struct cli *cli)
{
    Hearth__V1__AnalyzeSegmentsRequest request;
    Hearth__V1__AnalyzeSegmentsResponse *answer = NULL;
    bool is_task;

    hearth__v1__analyze_segments_request__init(&request);
    enum hearth_status status = find_queries(cli, &request, &is_task);
    if (status == HEARTH_OK && request.n_queries == 0) {
        return cli_task_nothing(cli, cli->args[0],
                                "segments"); /* there may be snapshots of lost ones */
    }
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_TASKS "AnalyzeSegments", &request,
                          &hearth__v1__analyze_segments_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (answer->n_trees > 0) {
        print_segments(&request, &out);
        hearth_buf_printf(&out, "%10s  %10s  %6s  %s\n", "duration", "self", "dumps", "code");
    }
    for (size_t i = 0; i < answer->n_trees; i++) {
        print_below(answer->trees[i], 0, 0, &out);
    }
    if (answer->n_trees == 0) {
        say_no_snapshots(cli, is_task);
    } else {
        print_tip(answer->tip);
    }
    enum cli_exit code = cli_print_answer(cli, &answer->base, &out);

    return code == CLI_OK && answer->n_trees == 0 ? CLI_NO_DATA : code;
}
