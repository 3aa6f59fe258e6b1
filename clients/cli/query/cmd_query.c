/* cmd_query.c -- services, types, labels, values, series, timeline. */
#include "hearth/model/labels.h"
#include "hearth/model/profile_type.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "listing.h"
#include "text.h"
#include "why.h"

#include <stdlib.h>

#define QUERIER "querier.v1.QuerierService/"

static enum cli_exit print_names(struct cli *cli, const ProtobufCMessage *answer,
                                 char *const *names, size_t n)
{
    if (n == 0) {
        return cli_no_data(cli);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < n; i++) {
        cli_list_text(&list, names[i]);
    }
    return cli_list_end(&list, answer);
}

/* The selector argument as the repeated `matchers` of a request, and the range. */
static enum hearth_status read_matchers(struct cli *cli, size_t arg, char ***ret_matchers)
{
    const char *selector;
    HEARTH_TRY(cli_query_selector(cli, arg, &selector));
    char **matchers = hearth_arena_array(&cli->arena, 1, sizeof matchers[0]);
    char *text = hearth_arena_strndup(&cli->arena, selector, strlen(selector));
    if (matchers == NULL || text == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    matchers[0] = text;
    *ret_matchers = matchers;
    return cli_resolve_range(cli);
}

/* The types of a selection, which are values of a label. */
static enum cli_exit list_types_of(struct cli *cli)
{
    Types__V1__LabelValuesRequest request;
    Types__V1__LabelValuesResponse *answer = NULL;

    types__v1__label_values_request__init(&request);
    enum hearth_status status = read_matchers(cli, 0, &request.matchers);
    request.name = cli_field(cli, HEARTH_LABEL_PROFILE_TYPE);
    request.n_matchers = 1;
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERIER "LabelValues", &request,
                          &types__v1__label_values_response__descriptor, &answer);
    }

    return status != HEARTH_OK ? cli_fail(cli, status)
                               : print_names(cli, &answer->base, answer->names, answer->n_names);
}

enum cli_exit cli_types(struct cli *cli)
{
    if (cli->n_args > 0) {
        return list_types_of(cli);
    }
    enum hearth_status status = cli_resolve_range(cli);
    Querier__V1__ProfileTypesRequest request;

    querier__v1__profile_types_request__init(&request);
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    Querier__V1__ProfileTypesResponse *answer = NULL;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERIER "ProfileTypes", &request,
                          &querier__v1__profile_types_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_profile_types == 0) {
        return cli_no_data(cli);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_profile_types; i++) {
        cli_list_text(&list, answer->profile_types[i]->id);
    }

    return cli_list_end(&list, &answer->base);
}

enum cli_exit cli_labels(struct cli *cli)
{
    Types__V1__LabelNamesRequest request;
    types__v1__label_names_request__init(&request);
    Types__V1__LabelNamesResponse *answer = NULL;
    enum hearth_status status = read_matchers(cli, 0, &request.matchers);
    request.n_matchers = 1;
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERIER "LabelNames", &request,
                          &types__v1__label_names_response__descriptor, &answer);
    }
    return answer == NULL ? cli_fail(cli, status)
                          : print_names(cli, &answer->base, answer->names, answer->n_names);
}

enum cli_exit cli_values(struct cli *cli)
{
    Types__V1__LabelValuesRequest request;
    types__v1__label_values_request__init(&request);
    Types__V1__LabelValuesResponse *answer = NULL;
    enum hearth_status status = read_matchers(cli, 1, &request.matchers);
    request.name = hearth_arena_strndup(&cli->arena, cli->args[0], strlen(cli->args[0]));
    request.n_matchers = 1;
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERIER "LabelValues", &request,
                          &types__v1__label_values_response__descriptor, &answer);
    }

    if (status == HEARTH_OK && answer->n_names == 0) {
        status = cli_check_label(cli, cli->args[0]);
    }
    if (status == HEARTH_OK && cli->has_limit && (uint64_t)cli->limit < answer->n_names) {
        const char *note = hearth_arena_printf(&cli->arena, "the first %lld of %zu values",
                                               (long long)cli->limit, answer->n_names);
        cli_say("note", note == NULL ? "not all values" : note);
        answer->n_names = (size_t)cli->limit;
    }

    return status != HEARTH_OK ? cli_fail(cli, status)
                               : print_names(cli, &answer->base, answer->names, answer->n_names);
}

/*
 * Without --by, the profile type is a column of its own, and the labels that Hearth adds to name it
 * are left out. Changes the set.
 */
static void add_series(struct cli_listing *list, Types__V1__Labels *set, bool is_chosen)
{
    const char *type = NULL;
    size_t n = 0;

    for (size_t i = 0; i < set->n_labels; i++) {
        const Types__V1__LabelPair *label = set->labels[i];
        bool is_inner = strncmp(label->name, "__", 2) == 0;
        if (!is_chosen && strcmp(label->name, HEARTH_LABEL_PROFILE_TYPE) == 0) {
            type = label->value;
        }
        if (is_chosen || !is_inner) {
            set->labels[n++] = set->labels[i];
        }
    }
    cli_list_labels(list, set->labels, n);
    if (type == NULL) {
        cli_list_absent(list);
    } else {
        cli_list_text(list, type);
    }
}

enum cli_exit cli_series(struct cli *cli)
{
    Querier__V1__SeriesRequest request;

    querier__v1__series_request__init(&request);
    Querier__V1__SeriesResponse *answer = NULL;
    enum hearth_status status = read_matchers(cli, 0, &request.matchers);
    request.n_matchers = 1;
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    request.label_names = cli_by_names(cli);
    request.n_label_names = cli->n_by;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERIER "Series", &request,
                          &querier__v1__series_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_labels_set == 0) {
        return cli_no_data(cli);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_labels_set; i++) {
        add_series(&list, answer->labels_set[i], cli->n_by > 0);
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- services ---- */

struct service_type {
    const char *service, *type;
};

static int compare_service_types(const void *left, const void *right)
{
    const struct service_type *a = left, *b = right;
    int by_service = strcmp(a->service, b->service);

    return by_service != 0 ? by_service : strcmp(a->type, b->type);
}

/* Asks for the services and the types of each, sorted. */
static enum hearth_status ask_service_types(struct cli *cli, Querier__V1__SeriesResponse **answer,
                                            struct service_type **ret, size_t *ret_n)
{
    char service[] = HEARTH_LABEL_SERVICE, type[] = HEARTH_LABEL_PROFILE_TYPE;
    char *names[] = {service, type};
    Querier__V1__SeriesRequest request;

    querier__v1__series_request__init(&request);
    HEARTH_TRY(read_matchers(cli, 0, &request.matchers));
    request.n_matchers = 1;
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    request.label_names = names;
    request.n_label_names = HEARTH_ARRAY_LEN(names);
    HEARTH_TRY(cli_call(cli, QUERIER "Series", &request, &querier__v1__series_response__descriptor,
                        answer));

    size_t n = (*answer)->n_labels_set;
    struct service_type *types = hearth_arena_array(&cli->arena, n, sizeof types[0]);
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        const Types__V1__Labels *set = (*answer)->labels_set[i];
        types[i] = (struct service_type){"", ""};
        for (size_t k = 0; k < set->n_labels; k++) {
            bool is_type = strcmp(set->labels[k]->name, HEARTH_LABEL_PROFILE_TYPE) == 0;
            *(is_type ? &types[i].type : &types[i].service) = set->labels[k]->value;
        }
    }
    if (n > 0) {
        qsort(types, n, sizeof types[0], compare_service_types);
    }
    *ret = types;
    *ret_n = n;

    return HEARTH_OK;
}

/* The first two parts of a type, as --type takes them. */
static void append_short_type(const char *type, struct hearth_buf *out)
{
    struct hearth_str id = hearth_str_c(type);
    size_t n = hearth_str_find(id, ':', hearth_str_find(id, ':', 0) + 1);

    hearth_buf_str(out, hearth_str_n(id.p, n < id.n ? n : id.n));
}

enum cli_exit cli_services(struct cli *cli)
{
    Querier__V1__SeriesResponse *answer = NULL;
    struct service_type *types;
    struct cli_listing list;
    size_t n;
    enum hearth_status status = ask_service_types(cli, &answer, &types, &n);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (n == 0) {
        return cli_no_data(cli);
    }
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < n;) {
        const char *service = types[i].service;
        struct hearth_buf names;
        hearth_buf_init(&names, 0);
        for (size_t first = i; i < n && strcmp(types[i].service, service) == 0; i++) {
            hearth_buf_cstr(&names, i == first ? "" : ", ");
            append_short_type(types[i].type, &names);
        }
        cli_list_text(&list, service);
        cli_list_take(&list, &names);
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- timeline ---- */

static double largest_point(const Types__V1__Series *series)
{
    double max = 0;
    for (size_t i = 0; i < series->n_points; i++) {
        max = series->points[i]->value > max ? series->points[i]->value : max;
    }
    return max;
}

/* A row for each point of a series. */
static void add_points(struct cli_listing *list, const Types__V1__Series *series, bool has_labels)
{
    double max = largest_point(series);

    for (size_t i = 0; i < series->n_points; i++) {
        cli_list_time(list, series->points[i]->timestamp);
        cli_list_absent(list);
        cli_list_real(list, series->points[i]->value);
        cli_list_str(list, list->unit);
        cli_list_absent(list);
        if (has_labels) {
            cli_list_labels(list, series->labels, series->n_labels);
        } else {
            cli_list_absent(list);
        }
        cli_list_real(list, max > 0 ? series->points[i]->value / max : 0);
    }
}

/* Several: a line per series with its course in block characters, on one scale. */
static void print_timeline_courses(const Hearth__V1__TimelineResponse *answer,
                                   const Hearth__V1__Selection *selection, struct hearth_str unit,
                                   struct hearth_buf *out)
{
    double max = 0;

    for (size_t i = 0; i < answer->n_series; i++) {
        double here = largest_point(answer->series[i]);
        max = here > max ? here : max;
    }
    for (size_t i = 0; i < answer->n_series; i++) {
        const Types__V1__Series *series = answer->series[i];
        struct cli_course course = {.start = selection->start, .end = selection->end};
        double sum = 0;
        for (size_t p = 0; p < series->n_points; p++) {
            cli_course_add(&course, series->points[p]->timestamp, series->points[p]->value);
            sum += series->points[p]->value;
        }
        cli_course(course.cells, HEARTH_ARRAY_LEN(course.cells), max, out);
        char text[48];
        cli_value(cli_line_figure(sum, series->n_points, answer->aggregation), unit, text);
        struct hearth_buf labels;
        hearth_buf_init(&labels, 0);
        cli_put_labels(series->labels, series->n_labels, &labels);
        hearth_buf_printf(out, "  %*s  ", hearth_human_width(text, 10), text);
        hearth_human_escape(hearth_buf_view(&labels), out);
        hearth_buf_byte(out, '\n');
        hearth_buf_release(&labels);
    }
}

static enum hearth_status ask_timeline(struct cli *cli, Hearth__V1__Selection *selection,
                                       Hearth__V1__TimelineResponse **ret_answer)
{
    Hearth__V1__TimelineRequest request;
    hearth__v1__timeline_request__init(&request);
    HEARTH_TRY(cli_selection(cli, 0, selection));
    HEARTH_TRY(cli_timeline_step(cli, &request.step));
    request.selection = selection;
    request.group_by = cli_by_names(cli);
    request.n_group_by = cli->n_by;
    request.limit = cli->has_limit ? cli->limit : 0;
    HEARTH_TRY(cli_call(cli, "hearth.v1.QueryService/Timeline", &request,
                        &hearth__v1__timeline_response__descriptor, ret_answer));
    cli_say_aggregation(selection, (*ret_answer)->aggregation);
    return HEARTH_OK;
}

enum cli_exit cli_timeline(struct cli *cli)
{
    if (cli->functions.n > 0) {
        return cli_function_timeline(cli);
    }
    Hearth__V1__Selection selection;
    Hearth__V1__TimelineResponse *answer = NULL;
    enum hearth_status status = ask_timeline(cli, &selection, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_series == 0) {
        return cli_no_data(cli);
    }
    for (size_t i = 0; answer->n_series == 1 && i < cli->n_by; i++) {
        status = cli_check_label(cli, cli->by[i]);
        if (status != HEARTH_OK) {
            return cli_fail(cli, status);
        }
    }
    struct hearth_profile_type type;
    status = hearth_profile_type_parse(hearth_str_c(selection.profile_type), &type, &cli->err);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.unit = type.sample_unit;
    list.is_drawn = answer->n_series > 1;
    for (size_t i = 0; i < answer->n_series; i++) {
        add_points(&list, answer->series[i], cli->n_by > 0);
    }
    if (list.is_drawn) {
        print_timeline_courses(answer, &selection, type.sample_unit, &list.foot);
    }

    return cli_list_end(&list, &answer->base);
}
