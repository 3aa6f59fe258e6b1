/* cmd_spans.c -- hearth spans: which spans, traces and endpoints carry the most, and how many there are over time. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "listing.h"
#include "text.h"
#include "why.h"

#include <limits.h>
#include <stdio.h>

#define TRACES "hearth.v1.TraceProfileService/"

static const char *const g_by[] = {NULL, "span", "trace", "root", "endpoint", "name"};

static const char *const g_nouns[] = {NULL, "span", "trace", "local root", "endpoint", "span name"};

static void append_field(struct hearth_buf *out, const char *text)
{
    cli_fit(hearth_str_c(text), INT_MAX, false, out);
}

static enum cli_exit no_rows(struct cli *cli, const Hearth__V1__SpansResponse *answer,
                             Hearth__V1__SpansBy by)
{
    char line[128];

    if (answer->total == 0) {
        return cli_no_data(cli);
    }
    if (answer->row_count > 0) {
        (void)snprintf(line, sizeof line, "there are %lld rows; --offset is larger",
                       (long long)answer->row_count);
    } else {
        char total[48];
        cli_value((double)answer->total, hearth_str_c(answer->unit), total);
        (void)snprintf(line, sizeof line, "%s, of which nothing carries a%s %s", total,
                       by == HEARTH__V1__SPANS_BY__SPANS_BY_ENDPOINT ? "n" : "", g_nouns[by]);
    }
    cli_say("hearth", line);

    return CLI_NO_DATA;
}

/* ---- rows ---- */

static bool is_by_span(Hearth__V1__SpansBy by)
{
    return by == HEARTH__V1__SPANS_BY__SPANS_BY_SPAN;
}

/* The name of a span says more than that of its endpoint, which says more than none; its tracer knows best. */
static const char *span_row_name(const Hearth__V1__SpanRow *row)
{
    if (row->stored != NULL && row->stored->name[0] != '\0') {
        return row->stored->name;
    }
    return row->name[0] != '\0' ? row->name : row->endpoint;
}

/* A text that only rows of some kinds have. */
static void add_if(struct cli_listing *list, bool has_it, const char *text)
{
    cli_list_text(list, has_it ? text : "");
}

static void add_span_row(struct cli_listing *list, const Hearth__V1__SpanRow *row, int64_t total,
                         Hearth__V1__SpansBy by)
{
    bool is_root = by == HEARTH__V1__SPANS_BY__SPANS_BY_LOCAL_ROOT;
    bool is_trace = by == HEARTH__V1__SPANS_BY__SPANS_BY_TRACE;
    bool has_ids = is_by_span(by) || is_root;

    cli_list_number(list, row->value);
    cli_list_share(list, (double)row->value, (double)total);
    cli_list_str(list, list->unit);
    cli_list_number(list, row->profile_count);
    if (is_by_span(by)) {
        cli_list_absent(list);
    } else {
        cli_list_number(list, row->span_count);
    }
    if (has_ids && row->stored != NULL) {
        cli_list_number(list, row->stored->end_ns - row->stored->start_ns);
    } else {
        cli_list_absent(list);
    }
    cli_list_time(list, row->first_ns / HEARTH_NS_PER_MS);
    add_if(list, is_by_span(by), row->span_id);
    add_if(list, is_root, row->local_root_id);
    add_if(list, has_ids || is_trace, row->trace_id);
    cli_list_text(list, row->service);
    add_if(list, !is_trace,
           has_ids                                         ? span_row_name(row)
           : by == HEARTH__V1__SPANS_BY__SPANS_BY_ENDPOINT ? row->endpoint
                                                           : row->name);
}

static enum cli_exit print_rows(struct cli *cli, const Hearth__V1__SpansResponse *answer,
                                Hearth__V1__SpansBy by)
{
    if (answer->n_rows == 0) {
        return no_rows(cli, answer, by);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.unit = hearth_str_c(answer->unit);
    for (size_t i = 0; i < answer->n_rows; i++) {
        add_span_row(&list, answer->rows[i], answer->total, by);
    }
    int64_t shown = cli->offset + (int64_t)answer->n_rows;
    if (cli->offset > 0 || shown < answer->row_count) {
        hearth_buf_printf(
            &list.foot, "rows %lld to %lld of %lld; --limit and --offset show others\n",
            (long long)cli->offset + 1, (long long)shown, (long long)answer->row_count);
    }
    char total[48], rest[48], share[32];
    cli_value((double)answer->total, hearth_str_c(answer->unit), total);
    cli_value((double)answer->unlabelled, hearth_str_c(answer->unit), rest);
    cli_percent((double)answer->unlabelled, (double)answer->total, false, share);
    hearth_buf_printf(&list.foot, "total: %s", total);
    if (answer->unlabelled > 0) {
        hearth_buf_printf(&list.foot, ", of which %s (%s) carries no %s", rest, share, g_nouns[by]);
    }
    hearth_buf_byte(&list.foot, '\n');

    return cli_list_end(&list, &answer->base);
}

static int64_t rows_wanted(const struct cli *cli)
{
    return cli->has_limit ? cli->limit : cli_is_table(cli) ? 30 : 0;
}

enum cli_exit cli_spans_top(struct cli *cli)
{
    Hearth__V1__TopSpansRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__SpansResponse *answer = NULL;

    hearth__v1__top_spans_request__init(&request);
    request.by = HEARTH__V1__SPANS_BY__SPANS_BY_SPAN;
    bool known = cli->n_by == 0;
    for (size_t i = 1; cli->n_by == 1 && i < HEARTH_ARRAY_LEN(g_by); i++) {
        if (strcmp(cli->by[0], g_by[i]) == 0) {
            request.by = (Hearth__V1__SpansBy)i;
            known = true;
        }
    }
    if (!known) {
        return cli_usage("--by of spans top must be span, trace, root, endpoint or name");
    }
    enum hearth_status status = cli_selection(cli, 0, &selection);
    request.selection = &selection;
    request.limit = rows_wanted(cli);
    request.offset = cli->offset;
    if (status == HEARTH_OK) {
        status = cli_call(cli, TRACES "TopSpans", &request, &hearth__v1__spans_response__descriptor,
                          &answer);
    }

    return status == HEARTH_OK ? print_rows(cli, answer, request.by) : cli_fail(cli, status);
}

enum cli_exit cli_spans_list(struct cli *cli)
{
    Hearth__V1__ListSpansRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__SpansResponse *answer = NULL;

    hearth__v1__list_spans_request__init(&request);
    enum hearth_status status = cli_selection(cli, 0, &selection);
    request.selection = &selection;
    request.limit = rows_wanted(cli);
    request.offset = cli->offset;
    if (status == HEARTH_OK) {
        status = cli_call(cli, TRACES "ListSpans", &request,
                          &hearth__v1__spans_response__descriptor, &answer);
    }

    return status == HEARTH_OK ? print_rows(cli, answer, HEARTH__V1__SPANS_BY__SPANS_BY_SPAN)
                               : cli_fail(cli, status);
}

/* ---- count ---- */

static int64_t largest_count(const Hearth__V1__SpanCountSeries *series)
{
    int64_t max = 0;
    for (size_t i = 0; i < series->n_points; i++) {
        max = series->points[i]->span_count > max ? series->points[i]->span_count : max;
    }
    return max;
}

static void append_series_labels(const Hearth__V1__SpanCountSeries *series, struct hearth_buf *out)
{
    for (size_t k = 0; k < series->n_labels; k++) {
        hearth_buf_cstr(out, k == 0 ? "" : ", ");
        append_field(out, series->labels[k]->name);
        hearth_buf_byte(out, '=');
        append_field(out, series->labels[k]->value);
    }
    hearth_buf_byte(out, '\n');
}

static void add_counts(struct cli_listing *list, const Hearth__V1__SpanCountSeries *series,
                       bool has_labels)
{
    int64_t max = largest_count(series);

    for (size_t i = 0; i < series->n_points; i++) {
        const Hearth__V1__SpanCountPoint *point = series->points[i];
        cli_list_time(list, point->timestamp);
        cli_list_number(list, point->span_count);
        cli_list_number(list, point->value);
        cli_list_str(list, list->unit);
        if (has_labels) {
            cli_list_labels(list, series->labels, series->n_labels);
        } else {
            cli_list_absent(list);
        }
        cli_list_real(list, max > 0 ? (double)point->span_count / (double)max : 0);
    }
}

static void print_span_courses(const Hearth__V1__SpanCountsResponse *answer,
                               const Hearth__V1__Selection *selection, struct hearth_buf *out)
{
    int64_t max = 0;

    for (size_t i = 0; i < answer->n_series; i++) {
        int64_t here = largest_count(answer->series[i]);
        max = here > max ? here : max;
    }
    for (size_t i = 0; i < answer->n_series; i++) {
        const Hearth__V1__SpanCountSeries *series = answer->series[i];
        struct cli_course course = {.start = selection->start, .end = selection->end};
        double value = 0;
        for (size_t p = 0; p < series->n_points; p++) {
            cli_course_add(&course, series->points[p]->timestamp,
                           (double)series->points[p]->span_count);
            value += (double)series->points[p]->value;
        }
        char spans[64], text[48];
        cli_course(course.cells, HEARTH_ARRAY_LEN(course.cells), (double)max, out);
        cli_number(series->span_count, "span", "spans", spans);
        cli_value(value, hearth_str_c(answer->unit), text);
        hearth_buf_printf(out, "  %12s  %*s  ", spans, hearth_human_width(text, 10), text);
        append_series_labels(series, out);
    }
}

enum cli_exit cli_spans_count(struct cli *cli)
{
    Hearth__V1__SpanCountsRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__SpanCountsResponse *answer = NULL;

    hearth__v1__span_counts_request__init(&request);
    enum hearth_status status = cli_selection(cli, 0, &selection);
    if (status == HEARTH_OK) {
        status = cli_timeline_step(cli, &request.step);
    }
    request.selection = &selection;
    request.n_group_by = cli->n_by;
    request.group_by = cli_by_names(cli);
    request.limit = cli->has_limit ? cli->limit : 0;
    if (status == HEARTH_OK) {
        status = cli_call(cli, TRACES "SpanCounts", &request,
                          &hearth__v1__span_counts_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_series == 0) {
        cli_say("hearth", "no samples of this selection carry a span");
        return CLI_NO_DATA;
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.unit = hearth_str_c(answer->unit);
    list.is_drawn = answer->n_series > 1;
    for (size_t i = 0; i < answer->n_series; i++) {
        add_counts(&list, answer->series[i], list.is_drawn || !cli_is_table(cli));
    }
    if (list.is_drawn) {
        print_span_courses(answer, &selection, &list.foot);
    } else {
        append_series_labels(answer->series[0], &list.foot);
    }

    return cli_list_end(&list, &answer->base);
}
