/* mcp_tables.c -- tools whose answers are lists: names, rows, points. */
#include "hearth/model/labels.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "filters.h"
#include "mcp.h"
#include "text.h"
#include "why.h"

#define QUERY          "hearth.v1.QueryService/"
#define DEFAULT_ROWS   15
#define DEFAULT_NAMES  50
#define DEFAULT_POINTS 24

/* ---- services, types, labels ---- */

static enum hearth_status read_names_query(struct mcp_call *call, const char **ret_selector)
{
    call->cli.args[0] = call->selector;
    call->cli.n_args = call->selector != NULL;
    HEARTH_TRY(cli_query_selector(&call->cli, 0, ret_selector));

    return cli_resolve_range(&call->cli);
}

/* The head of an answer about names, which have no type. */
static void put_names_query(struct mcp_call *call, const char *selector)
{
    Hearth__V1__Selection selection;

    hearth__v1__selection__init(&selection);
    selection.label_selector = cli_field(&call->cli, selector);
    selection.start = call->cli.from_ms;
    selection.end = call->cli.to_ms;
    mcp_put_query(call, "query", &selection, NULL);
}

static void put_names(struct mcp_call *call, const char *key, char *const *names, size_t n)
{
    int64_t limit = mcp_limit(call, DEFAULT_NAMES);
    size_t shown = n < (size_t)limit ? n : (size_t)limit;

    hearth_json_key_c(&call->answer, key);
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < shown; i++) {
        hearth_json_string_c(&call->answer, names[i]);
    }
    hearth_json_array_end(&call->answer);
    mcp_put_cut(call, key, 0, (int64_t)shown, (int64_t)n);
}

static enum hearth_status list_values(struct mcp_call *call, const char *key, const char *label)
{
    const char *selector;
    char **names;
    size_t n;

    HEARTH_TRY(read_names_query(call, &selector));
    HEARTH_TRY(cli_ask_values(&call->cli, label, selector, call->cli.from_ms, call->cli.to_ms,
                              &names, &n));
    if (n == 0) {
        HEARTH_TRY(cli_check_label(&call->cli, label));
        return cli_fail_no_data(&call->cli);
    }
    put_names_query(call, selector);
    put_names(call, key, names, n);

    return HEARTH_OK;
}

enum hearth_status mcp_services(struct mcp_call *call)
{
    return list_values(call, "services", "service_name");
}

enum hearth_status mcp_labels(struct mcp_call *call)
{
    const char *selector;
    Types__V1__LabelNamesRequest request;
    Types__V1__LabelNamesResponse *answer;

    if (call->label != NULL) {
        return list_values(call, "values", call->label);
    }
    HEARTH_TRY(read_names_query(call, &selector));
    types__v1__label_names_request__init(&request);
    char *matchers[] = {cli_field(&call->cli, selector)};
    request.matchers = matchers;
    request.n_matchers = 1;
    request.start = call->cli.from_ms;
    request.end = call->cli.to_ms;
    HEARTH_TRY(cli_call(&call->cli, "querier.v1.QuerierService/LabelNames", &request,
                        &types__v1__label_names_response__descriptor, &answer));
    if (answer->n_names == 0) {
        return cli_fail_no_data(&call->cli);
    }
    put_names_query(call, selector);
    put_names(call, "labels", answer->names, answer->n_names);

    return HEARTH_OK;
}

enum hearth_status mcp_types(struct mcp_call *call)
{
    const char *selector;
    char **types;
    size_t n;

    HEARTH_TRY(read_names_query(call, &selector));
    HEARTH_TRY(cli_ask_values(&call->cli, HEARTH_LABEL_PROFILE_TYPE, selector, call->cli.from_ms,
                              call->cli.to_ms, &types, &n));
    if (n == 0) {
        return cli_fail_no_data(&call->cli);
    }

    size_t limit = (size_t)mcp_limit(call, DEFAULT_NAMES), shown = n < limit ? n : limit;
    put_names_query(call, selector);
    hearth_json_key_c(&call->answer, "types");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < shown; i++) {
        struct hearth_str unit = cli_type_unit(types[i]);
        hearth_json_object(&call->answer);
        mcp_put_text(call, "type", types[i]);
        hearth_json_key_c(&call->answer, "unit");
        hearth_json_string(&call->answer, unit);
        hearth_json_object_end(&call->answer);
    }
    hearth_json_array_end(&call->answer);
    mcp_put_cut(call, "types", 0, (int64_t)shown, (int64_t)n);

    return HEARTH_OK;
}

/* ---- top ---- */

static void put_top_row(struct mcp_call *call, const Hearth__V1__TopRow *row, int64_t whole)
{
    hearth_json_object(&call->answer);
    mcp_put_name(call, "name", row->name);
    mcp_put_count(call, "self", row->self);
    mcp_put_percent(call, "self_percent", (double)row->self, (double)whole);
    mcp_put_count(call, "total", row->total);
    mcp_put_percent(call, "total_percent", (double)row->total, (double)whole);
    if (row->file[0] != '\0') {
        mcp_put_name(call, "file", row->file);
    }
    if (row->line != 0) {
        mcp_put_count(call, "line", row->line);
    }
    hearth_json_object_end(&call->answer);
}

/* The number of a name among "a|b|c", from 1; 0 without a name. Others were refused before. */
static unsigned number_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 1; name != NULL && i < n; i++) {
        if (names[i] != NULL && strcmp(name, names[i]) == 0) {
            return (unsigned)i;
        }
    }
    return 0;
}

enum hearth_status mcp_top(struct mcp_call *call)
{
    static const char *const sorts[] = {NULL, "self", "total", "name"};
    Hearth__V1__TopRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__TopResponse *answer;

    HEARTH_TRY(mcp_selection(call, &selection));
    hearth__v1__top_request__init(&request);
    request.selection = &selection;
    request.kind = number_of(call->cli.by_kind, cli_row_kinds, CLI_ROW_KINDS);
    request.sort = number_of(call->cli.sort, sorts, HEARTH_ARRAY_LEN(sorts));
    request.search = cli_field(&call->cli, call->cli.search == NULL ? "" : call->cli.search);
    request.limit = mcp_limit(call, DEFAULT_ROWS);
    request.offset = call->cli.offset;
    HEARTH_TRY(cli_call(&call->cli, QUERY "Top", &request, &hearth__v1__top_response__descriptor,
                        &answer));
    if (answer->total == 0) {
        return cli_fail_no_data(&call->cli);
    }

    mcp_put_query(call, "query", &selection, answer->unit);
    mcp_put_count(call, "total", answer->total);
    hearth_json_key_c(&call->answer, "rows");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < answer->n_rows; i++) {
        put_top_row(call, answer->rows[i], answer->total);
    }
    hearth_json_array_end(&call->answer);
    mcp_put_cut(call, "rows", request.offset, (int64_t)answer->n_rows, answer->row_count);

    return HEARTH_OK;
}

/* ---- spans ---- */

static void put_given(struct mcp_call *call, const char *key, const char *text)
{
    if (text[0] != '\0') {
        mcp_put_name(call, key, text);
    }
}

static void put_span_row(struct mcp_call *call, const Hearth__V1__SpanRow *row, int64_t whole)
{
    hearth_json_object(&call->answer);
    put_given(call, "span", row->span_id);
    put_given(call, "trace", row->trace_id);
    put_given(call, "root", row->local_root_id);
    put_given(call, "name", row->stored != NULL ? row->stored->name : row->name);
    put_given(call, "endpoint", row->endpoint);
    put_given(call, "service", row->service);
    mcp_put_count(call, "value", row->value);
    mcp_put_percent(call, "percent", (double)row->value, (double)whole);
    mcp_put_count(call, "profiles", row->profile_count);
    mcp_put_count(call, "spans", row->span_count);
    if (row->stored != NULL) {
        mcp_put_count(call, "took_nanoseconds", row->stored->end_ns - row->stored->start_ns);
    }
    hearth_json_object_end(&call->answer);
}

enum hearth_status mcp_spans(struct mcp_call *call)
{
    static const char *const kinds[] = {NULL, "span", "trace", "root", "endpoint", "name"};
    Hearth__V1__TopSpansRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__SpansResponse *answer;

    HEARTH_TRY(mcp_selection(call, &selection));
    hearth__v1__top_spans_request__init(&request);
    request.selection = &selection;
    request.by = number_of(call->by, kinds, HEARTH_ARRAY_LEN(kinds));
    request.limit = mcp_limit(call, DEFAULT_ROWS);
    request.offset = call->cli.offset;
    HEARTH_TRY(cli_call(&call->cli, "hearth.v1.TraceProfileService/TopSpans", &request,
                        &hearth__v1__spans_response__descriptor, &answer));
    if (answer->total == 0) {
        return cli_fail_no_data(&call->cli);
    }

    mcp_put_query(call, "query", &selection, answer->unit);
    mcp_put_count(call, "total", answer->total);
    mcp_put_count(call, "total_without_id", answer->unlabelled);
    hearth_json_key_c(&call->answer, "rows");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < answer->n_rows; i++) {
        put_span_row(call, answer->rows[i], answer->total);
    }
    hearth_json_array_end(&call->answer);
    mcp_put_cut(call, "rows", request.offset, (int64_t)answer->n_rows, answer->row_count);

    return HEARTH_OK;
}

/* ---- history ---- */

/* A step of a 24th of the range, or the given one, unless it makes too many points. */
static enum hearth_status find_step(struct mcp_call *call, double *ret_seconds)
{
    double range = (double)(call->cli.to_ms - call->cli.from_ms) / 1000;

    if (call->cli.step == NULL) {
        *ret_seconds = range > DEFAULT_POINTS ? range / DEFAULT_POINTS : 1;
        return HEARTH_OK;
    }
    HEARTH_TRY(cli_timeline_step(&call->cli, ret_seconds));

    return range / *ret_seconds > MCP_MAX_POINTS
               ? HEARTH_FAIL(&call->cli.err, HEARTH_INVALID_ARGUMENT,
                             "a step of %.20s makes %.0f points, and an answer has at most %d: use "
                             "a larger step or a shorter range",
                             call->cli.step, range / *ret_seconds, MCP_MAX_POINTS)
               : HEARTH_OK;
}

static void put_labels(struct mcp_call *call, Types__V1__LabelPair *const *labels, size_t n)
{
    hearth_json_key_c(&call->answer, "labels");
    hearth_json_object(&call->answer);
    for (size_t i = 0; i < n; i++) {
        mcp_put_name(call, labels[i]->name, labels[i]->value);
    }
    hearth_json_object_end(&call->answer);
}

static enum hearth_status put_function_history(struct mcp_call *call,
                                               const Hearth__V1__Selection *selection,
                                               const Hearth__V1__FunctionTimelineRequest *request)
{
    Hearth__V1__FunctionTimelineResponse *answer;

    HEARTH_TRY(cli_call(&call->cli, QUERY "FunctionTimeline", request,
                        &hearth__v1__function_timeline_response__descriptor, &answer));
    if (answer->n_series == 0) {
        return cli_fail_no_data(&call->cli);
    }
    mcp_put_query(call, "query", selection, answer->unit);
    hearth_json_key_c(&call->answer, "lines");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < answer->n_series; i++) {
        const Hearth__V1__FunctionSeries *series = answer->series[i];
        hearth_json_object(&call->answer);
        mcp_put_name(call, "function", series->function);
        put_labels(call, series->labels, series->n_labels);
        hearth_json_key_c(&call->answer, "points");
        hearth_json_array(&call->answer);
        for (size_t k = 0; k < series->n_points; k++) {
            hearth_json_object(&call->answer);
            mcp_put_time(call, "until", series->points[k]->timestamp);
            mcp_put_count(call, "self", series->points[k]->self);
            mcp_put_count(call, "total", series->points[k]->total);
            hearth_json_object_end(&call->answer);
        }
        hearth_json_array_end(&call->answer);
        hearth_json_object_end(&call->answer);
    }
    hearth_json_array_end(&call->answer);

    return HEARTH_OK;
}

static enum hearth_status put_total_history(struct mcp_call *call,
                                            const Hearth__V1__Selection *selection,
                                            const Hearth__V1__TimelineRequest *request)
{
    Hearth__V1__TimelineResponse *answer;

    HEARTH_TRY(cli_call(&call->cli, QUERY "Timeline", request,
                        &hearth__v1__timeline_response__descriptor, &answer));
    if (answer->n_series == 0) {
        return cli_fail_no_data(&call->cli);
    }
    mcp_put_query(call, "query", selection, answer->unit);
    hearth_json_key_c(&call->answer, "lines");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < answer->n_series; i++) {
        const Types__V1__Series *series = answer->series[i];
        hearth_json_object(&call->answer);
        put_labels(call, series->labels, series->n_labels);
        hearth_json_key_c(&call->answer, "points");
        hearth_json_array(&call->answer);
        for (size_t k = 0; k < series->n_points; k++) {
            hearth_json_object(&call->answer);
            mcp_put_time(call, "until", series->points[k]->timestamp);
            hearth_json_key_c(&call->answer, "total");
            hearth_json_double(&call->answer, series->points[k]->value);
            hearth_json_object_end(&call->answer);
        }
        hearth_json_array_end(&call->answer);
        hearth_json_object_end(&call->answer);
    }
    hearth_json_array_end(&call->answer);

    return HEARTH_OK;
}

enum hearth_status mcp_history(struct mcp_call *call)
{
    Hearth__V1__TimelineRequest totals;
    Hearth__V1__FunctionTimelineRequest functions;
    Hearth__V1__Selection selection;
    double step;
    char *by[1] = {NULL};

    /* A line for each function: functions are not a filter here. */
    hearth__v1__function_timeline_request__init(&functions);
    functions.n_functions = call->cli.functions.n;
    functions.functions = cli_repeated(&call->cli, &call->cli.functions);
    call->cli.functions.n = 0;
    HEARTH_TRY(mcp_selection(call, &selection));
    HEARTH_TRY(find_step(call, &step));
    if (call->group_by != NULL) {
        by[0] = cli_field(&call->cli, call->group_by);
        HEARTH_TRY(cli_check_label(&call->cli, call->group_by));
    }

    functions.selection = &selection;
    functions.step = step;
    functions.group_by = by;
    functions.n_group_by = call->group_by != NULL;
    functions.limit = mcp_limit(call, 5);
    if (functions.n_functions > 0) {
        return put_function_history(call, &selection, &functions);
    }
    hearth__v1__timeline_request__init(&totals);
    totals.selection = &selection;
    totals.step = step;
    totals.group_by = by;
    totals.n_group_by = functions.n_group_by;
    totals.limit = functions.limit;

    return put_total_history(call, &selection, &totals);
}
