/*
 * cmd_cardinality.c -- hearth query cardinality: which labels make many series, and which services
 * are large.
 *
 * Series are those of the answer of Series, whose labels name the profile type, too: a process that
 * sends two types has two. The bytes of a service are those that a query of the range would read.
 */
#include "hearth/codec/json_writer.h"
#include "hearth/model/labels.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"
#include "progress.h"
#include "text.h"
#include "why.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define QUERIER "querier.v1.QuerierService/"
#define ROWS    20
/* Columns of the table: both numbers, a label, its largest value; the gap and the count beside that. */
#define BEFORE_LABEL  23
#define NAME_COLUMNS  24
#define VALUE_COLUMNS 60
#define BESIDE_VALUE  12
#define LEAST_COLUMNS 8
#define MAX_SERVICES  100 /* that are measured, by the number of their series */

/* A label with the number of its values, or a value with the number of its series. */
struct counted {
    const char *name;
    const char *largest; /* of a label: the value with most series */
    int64_t n_values, n_series, n_largest, n_bytes;
};

struct cardinality {
    struct counted *labels, *services;
    size_t n_labels, n_services;
    int64_t n_series;
};

static int compare_pairs(const void *a, const void *b)
{
    const Types__V1__LabelPair *const *left = a, *const *right = b;
    int by_name = strcmp((*left)->name, (*right)->name);
    return by_name != 0 ? by_name : strcmp((*left)->value, (*right)->value);
}

static int compare_labels(const void *a, const void *b)
{
    const struct counted *left = a, *right = b;
    return left->n_values != right->n_values ? (left->n_values < right->n_values ? 1 : -1)
                                             : strcmp(left->name, right->name);
}

static int compare_services(const void *a, const void *b)
{
    const struct counted *left = a, *right = b;
    return left->n_series != right->n_series ? (left->n_series < right->n_series ? 1 : -1)
                                             : strcmp(left->name, right->name);
}

static int compare_bytes(const void *a, const void *b)
{
    const struct counted *left = a, *right = b;
    return left->n_bytes != right->n_bytes ? (left->n_bytes < right->n_bytes ? 1 : -1)
                                           : compare_services(a, b);
}

/* ---- counting ---- */

/* Counts the pairs of one value, which follow each other. */
static void count_value(struct cardinality *c, const Types__V1__LabelPair *pair, int64_t n_series)
{
    bool is_same = c->n_labels > 0 && strcmp(c->labels[c->n_labels - 1].name, pair->name) == 0;
    if (!is_same) {
        c->labels[c->n_labels++] = (struct counted){.name = pair->name};
    }
    struct counted *label = &c->labels[c->n_labels - 1];

    label->n_values++;
    label->n_series += n_series;
    if (n_series > label->n_largest) {
        label->n_largest = n_series;
        label->largest = pair->value;
    }
    if (strcmp(pair->name, HEARTH_LABEL_SERVICE) == 0) {
        c->services[c->n_services++] = (struct counted){.name = pair->value, .n_series = n_series};
    }
}

/* Sorts all labels of all series, so that equal ones follow each other. */
static enum hearth_status count_labels(struct cli *cli, const Querier__V1__SeriesResponse *answer,
                                       struct cardinality *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < answer->n_labels_set; i++) {
        n += answer->labels_set[i]->n_labels;
    }
    const Types__V1__LabelPair **pairs = hearth_arena_array(&cli->arena, n, sizeof pairs[0]);
    ret->labels = hearth_arena_calloc(&cli->arena, n, sizeof ret->labels[0]);
    ret->services = hearth_arena_calloc(&cli->arena, n, sizeof ret->services[0]);
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }

    n = 0;
    for (size_t i = 0; i < answer->n_labels_set; i++) {
        for (size_t k = 0; k < answer->labels_set[i]->n_labels; k++) {
            pairs[n++] = answer->labels_set[i]->labels[k];
        }
    }
    qsort(pairs, n, sizeof pairs[0], compare_pairs);
    for (size_t from = 0, to = 0; from < n; from = to) {
        while (to < n && compare_pairs(&pairs[from], &pairs[to]) == 0) {
            to++;
        }
        count_value(ret, pairs[from], (int64_t)(to - from));
    }
    ret->n_series = (int64_t)answer->n_labels_set;
    qsort(ret->labels, ret->n_labels, sizeof ret->labels[0], compare_labels);
    qsort(ret->services, ret->n_services, sizeof ret->services[0], compare_services);

    return HEARTH_OK;
}

/* The selector with a condition for a service, in the arena. */
static char *select_service(struct cli *cli, const char *selector, const char *service)
{
    struct hearth_label one = {HEARTH_STR(HEARTH_LABEL_SERVICE), hearth_str_c(service)};
    const struct hearth_labels set = {&one, 1};
    struct hearth_str before = hearth_str_trim(hearth_str_c(selector));
    struct hearth_buf text;

    /* The matcher is what labels look like between their braces. */
    hearth_buf_init(&text, 0);
    hearth_labels_format(&set, 0, &text);
    bool has_braces = before.n > 0 && before.p[before.n - 1] == '}';
    before.n -= has_braces ? 1 : 0;
    before = hearth_str_trim(before);
    char last = before.n > 0 ? before.p[before.n - 1] : '{';
    char *made =
        hearth_arena_printf(&cli->arena, "%.*s%s%.*s}", (int)before.n, before.p,
                            !has_braces                  ? "{"
                            : last == '{' || last == ',' ? ""
                                                         : ",",
                            (int)(text.n > 2 ? text.n - 2 : 0), text.n > 2 ? text.p + 1 : "");
    hearth_buf_release(&text);

    return made;
}

/* Asks for the bytes of the services with most series. */
static enum hearth_status measure_services(struct cli *cli, const char *selector,
                                           struct cardinality *c)
{
    size_t n = c->n_services < MAX_SERVICES ? c->n_services : MAX_SERVICES;

    for (size_t i = 0; i < n; i++) {
        Querier__V1__AnalyzeQueryRequest request = QUERIER__V1__ANALYZE_QUERY_REQUEST__INIT;
        Querier__V1__AnalyzeQueryResponse *answer;
        cli_progress(cli, "service %zu of %zu", i + 1, n);
        request.start = cli->from_ms;
        request.end = cli->to_ms;
        request.query = select_service(cli, selector, c->services[i].name);
        if (request.query == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        HEARTH_TRY(cli_call(cli, QUERIER "AnalyzeQuery", &request,
                            &querier__v1__analyze_query_response__descriptor, &answer));
        c->services[i].n_bytes = answer->query_impact == NULL
                                     ? 0
                                     : (int64_t)answer->query_impact->total_bytes_in_time_range;
    }
    cli_progress_end();
    qsort(c->services, n, sizeof c->services[0], compare_bytes);
    c->n_services = n;

    return HEARTH_OK;
}

/* ---- text ---- */

static size_t count_rows(const struct cli *cli, size_t n)
{
    size_t limit = cli->has_limit ? (size_t)cli->limit : ROWS;
    return n < limit ? n : limit;
}

static int clamp_columns(int n, int most)
{
    return n < LEAST_COLUMNS ? LEAST_COLUMNS : n < most ? n : most;
}

static void print_cardinality(const struct cli *cli, const struct cardinality *c,
                              struct hearth_buf *out)
{
    char n_values[32], n_series[32], bytes[48];
    int name_columns = NAME_COLUMNS, value_columns = VALUE_COLUMNS;

    if (cli_is_fitted(cli)) {
        int left = cli->width - BEFORE_LABEL - BESIDE_VALUE;
        name_columns = clamp_columns(left * 2 / 5, NAME_COLUMNS);
        value_columns = clamp_columns(left - name_columns, VALUE_COLUMNS);
    }

    hearth_buf_printf(out, "%10s %10s  %-*s  largest value\n", "values", "series", name_columns,
                      "label");
    for (size_t i = 0; i < count_rows(cli, c->n_labels); i++) {
        const struct counted *label = &c->labels[i];
        cli_count(label->n_values, n_values);
        cli_count(label->n_series, n_series);
        hearth_buf_printf(out, "%10s %10s  ", n_values, n_series);
        cli_fit(hearth_str_c(label->name), name_columns, true, out);
        hearth_buf_cstr(out, "  ");
        cli_fit(hearth_str_c(label->largest), value_columns, false, out);
        cli_count(label->n_largest, n_series);
        hearth_buf_printf(out, " (%s)\n", n_series);
    }

    hearth_buf_printf(out, "\n%10s %10s  service\n", "bytes", "series");
    for (size_t i = 0; i < count_rows(cli, c->n_services); i++) {
        cli_value((double)c->services[i].n_bytes, HEARTH_STR("bytes"), bytes);
        cli_count(c->services[i].n_series, n_series);
        hearth_buf_printf(out, "%10s %10s  ", bytes, n_series);
        cli_fit(hearth_str_c(c->services[i].name), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
    }
    cli_count(c->n_series, n_series);
    hearth_buf_printf(out, "\n%s series\n", n_series);
}

/* Adds the rows of labels, then those of services: each lacks the columns of the other. */
static void list_cardinality(const struct cli *cli, const struct cardinality *c,
                             struct cli_listing *list)
{
    for (size_t i = 0; i < count_rows(cli, c->n_labels); i++) {
        const struct counted *label = &c->labels[i];
        cli_list_text(list, "label");
        cli_list_number(list, label->n_values);
        cli_list_number(list, label->n_series);
        cli_list_text(list, label->largest);
        cli_list_number(list, label->n_largest);
        cli_list_absent(list);
        cli_list_text(list, label->name);
    }
    for (size_t i = 0; i < count_rows(cli, c->n_services); i++) {
        const struct counted *service = &c->services[i];
        cli_list_text(list, "service");
        cli_list_absent(list);
        cli_list_number(list, service->n_series);
        cli_list_absent(list);
        cli_list_absent(list);
        cli_list_number(list, service->n_bytes);
        cli_list_text(list, service->name);
    }
}

static void json_number(struct hearth_json *json, const char *key, int64_t value)
{
    hearth_json_key_c(json, key);
    hearth_json_double(json, (double)value);
}

static void json_cardinality(const struct cli *cli, const struct cardinality *c,
                             struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_object(&json);
    json_number(&json, "series", c->n_series);
    hearth_json_key_c(&json, "labels");
    hearth_json_array(&json);
    for (size_t i = 0; i < count_rows(cli, c->n_labels); i++) {
        hearth_json_object(&json);
        hearth_json_key_c(&json, "name");
        hearth_json_string_c(&json, c->labels[i].name);
        json_number(&json, "values", c->labels[i].n_values);
        json_number(&json, "series", c->labels[i].n_series);
        hearth_json_key_c(&json, "largestValue");
        hearth_json_string_c(&json, c->labels[i].largest);
        json_number(&json, "largestSeries", c->labels[i].n_largest);
        hearth_json_object_end(&json);
    }
    hearth_json_array_end(&json);
    hearth_json_key_c(&json, "services");
    hearth_json_array(&json);
    for (size_t i = 0; i < count_rows(cli, c->n_services); i++) {
        hearth_json_object(&json);
        hearth_json_key_c(&json, "name");
        hearth_json_string_c(&json, c->services[i].name);
        json_number(&json, "series", c->services[i].n_series);
        json_number(&json, "bytes", c->services[i].n_bytes);
        hearth_json_object_end(&json);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
}

/* ---- the command ---- */

static enum hearth_status ask_cardinality(struct cli *cli, struct cardinality *ret)
{
    Querier__V1__SeriesRequest request = QUERIER__V1__SERIES_REQUEST__INIT;
    Querier__V1__SeriesResponse *answer;
    const char *selector;

    HEARTH_TRY(cli_query_selector(cli, 0, &selector));
    HEARTH_TRY(cli_resolve_range(cli));
    char *matcher = cli_field(cli, selector);
    request.matchers = &matcher;
    request.n_matchers = 1;
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    HEARTH_TRY(cli_call(cli, QUERIER "Series", &request, &querier__v1__series_response__descriptor,
                        &answer));
    if (answer->n_labels_set == 0) {
        return cli_fail_no_data(cli);
    }
    HEARTH_TRY(count_labels(cli, answer, ret));

    return measure_services(cli, selector, ret);
}

enum cli_exit cli_cardinality(struct cli *cli)
{
    struct cardinality c = {0};
    enum hearth_status status = ask_cardinality(cli, &c);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (cli->output == CLI_JSON) {
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        json_cardinality(cli, &c, &out);
        return cli_print(&out);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    list_cardinality(cli, &c, &list);
    print_cardinality(cli, &c, &list.foot);

    return cli_list_end(&list, NULL);
}
