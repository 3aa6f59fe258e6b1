/* cmd_over_time.c -- functions over time, and what the values of a label come to. */
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "listing.h"
#include "text.h"
#include "why.h"

#include <limits.h>

#define QUERY "hearth.v1.QueryService/"

/* ---- timeline --function ---- */

static int64_t largest_value(const Hearth__V1__FunctionSeries *series)
{
    int64_t max = 0;
    for (size_t i = 0; i < series->n_points; i++) {
        max = series->points[i]->total > max ? series->points[i]->total : max;
    }
    return max;
}

static void add_function_points(struct cli_listing *list, const Hearth__V1__FunctionSeries *series,
                                bool has_name, bool has_labels)
{
    int64_t max = largest_value(series);

    for (size_t i = 0; i < series->n_points; i++) {
        const Hearth__V1__FunctionPoint *point = series->points[i];
        cli_list_time(list, point->timestamp);
        cli_list_number(list, point->self);
        cli_list_number(list, point->total);
        cli_list_str(list, list->unit);
        cli_list_text(list, has_name ? series->function : "");
        if (has_labels) {
            cli_list_labels(list, series->labels, series->n_labels);
        } else {
            cli_list_absent(list);
        }
        cli_list_real(list, max > 0 ? (double)point->total / (double)max : 0);
    }
}

static void print_function_courses(const Hearth__V1__FunctionTimelineResponse *answer,
                                   const Hearth__V1__Selection *selection, struct hearth_buf *out)
{
    int64_t max = 0;

    for (size_t i = 0; i < answer->n_series; i++) {
        int64_t here = largest_value(answer->series[i]);
        max = here > max ? here : max;
    }
    for (size_t i = 0; i < answer->n_series; i++) {
        const Hearth__V1__FunctionSeries *series = answer->series[i];
        struct cli_course course = {.start = selection->start, .end = selection->end};
        double sum = 0;
        for (size_t p = 0; p < series->n_points; p++) {
            double total = (double)series->points[p]->total;
            cli_course_add(&course, series->points[p]->timestamp, total);
            sum += total;
        }
        char text[48];
        cli_course(course.cells, HEARTH_ARRAY_LEN(course.cells), (double)max, out);
        double figure = cli_line_figure(sum, series->n_points, answer->aggregation);
        cli_value(figure, hearth_str_c(answer->unit), text);
        hearth_buf_printf(out, "  %*s  ", hearth_human_width(text, 10), text);
        cli_fit(hearth_str_c(series->function), INT_MAX, false, out);
        for (size_t k = 0; k < series->n_labels; k++) {
            hearth_buf_cstr(out, k == 0 ? "  " : ", ");
            cli_fit(hearth_str_c(series->labels[k]->name), INT_MAX, false, out);
            hearth_buf_byte(out, '=');
            cli_fit(hearth_str_c(series->labels[k]->value), INT_MAX, false, out);
        }
        hearth_buf_byte(out, '\n');
    }
}

/* Whether a sample contains the function. */
static bool has_function(const Hearth__V1__FunctionTimelineResponse *answer, const char *function)
{
    for (size_t i = 0; i < answer->n_series; i++) {
        const Hearth__V1__FunctionSeries *series = answer->series[i];
        for (size_t k = 0; k < series->n_points && strcmp(series->function, function) == 0; k++) {
            if (series->points[k]->total != 0) {
                return true;
            }
        }
    }
    return false;
}

enum cli_exit cli_function_timeline(struct cli *cli)
{
    Hearth__V1__FunctionTimelineRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__FunctionTimelineResponse *answer = NULL;

    hearth__v1__function_timeline_request__init(&request);

    /* A line for each function: functions are not a filter here. */
    request.n_functions = cli->functions.n;
    request.functions = cli_repeated(cli, &cli->functions);
    cli->functions.n = 0;
    enum hearth_status status = cli_selection(cli, 0, &selection);
    if (status == HEARTH_OK) {
        status = cli_timeline_step(cli, &request.step);
    }
    request.selection = &selection;
    request.n_group_by = cli->n_by;
    request.group_by = cli_by_names(cli);
    request.limit = cli->has_limit ? cli->limit : 0;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERY "FunctionTimeline", &request,
                          &hearth__v1__function_timeline_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    cli_say_aggregation(&selection, answer->aggregation);
    if (answer->n_series == 0) {
        return cli_no_data(cli);
    }
    for (size_t i = 0; i < request.n_functions; i++) {
        if (!has_function(answer, request.functions[i])) {
            return cli_fail(cli, cli_fail_no_function(cli, &selection, request.functions[i]));
        }
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.unit = hearth_str_c(answer->unit);
    list.is_drawn = answer->n_series > 1;
    bool is_chart = answer->n_series == 1 && cli_is_table(cli); /* of the function that was named */
    for (size_t i = 0; i < answer->n_series; i++) {
        add_function_points(&list, answer->series[i], !is_chart, !is_chart && cli->n_by > 0);
    }
    if (list.is_drawn) {
        print_function_courses(answer, &selection, &list.foot);
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- label-stats ---- */

static void add_stats(struct cli_listing *list, const Hearth__V1__LabelStatsResponse *answer)
{
    double whole = 0;

    for (size_t i = 0; i < answer->n_values; i++) {
        whole += (double)answer->values[i]->sum;
    }
    for (size_t i = 0; i < answer->n_values; i++) {
        const Hearth__V1__LabelStat *stat = answer->values[i];
        cli_list_number(list, stat->sum);
        cli_list_share(list, (double)stat->sum, whole);
        cli_list_number(list, stat->count);
        cli_list_number(list, stat->series);
        cli_list_real(list, stat->mean);
        cli_list_real(list, stat->deviation);
        cli_list_number(list, stat->min);
        cli_list_number(list, stat->max);
        cli_list_str(list, list->unit);
        cli_list_text(list, stat->value);
    }
    if (answer->value_count > (int64_t)answer->n_values) {
        hearth_buf_printf(&list->foot, "%zu of %lld values shown; --limit shows more\n",
                          answer->n_values, (long long)answer->value_count);
    }
}

enum cli_exit cli_label_stats(struct cli *cli)
{
    Hearth__V1__LabelStatsRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__LabelStatsResponse *answer = NULL;

    hearth__v1__label_stats_request__init(&request);
    enum hearth_status status = cli_selection(cli, 1, &selection);
    request.selection = &selection;
    request.label = cli_field(cli, cli->args[0]);
    request.limit = cli->has_limit ? cli->limit : 30;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERY "LabelStats", &request,
                          &hearth__v1__label_stats_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_values == 0) {
        return cli_no_data(cli);
    }
    if (answer->n_values == 1 && answer->values[0]->value[0] == '\0') {
        status = cli_check_label(cli, cli->args[0]);
        if (status != HEARTH_OK) {
            return cli_fail(cli, status);
        }
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.unit = hearth_str_c(answer->unit);
    add_stats(&list, answer);

    return cli_list_end(&list, &answer->base);
}
