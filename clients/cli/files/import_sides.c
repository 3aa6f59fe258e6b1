/* import_sides.c -- calls of `hearth import` to the source and to the server, and what both have. */
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "cli_call.h"
#include "cli_credential.h"
#include "cli_settings.h"
#include "import.h"
#include "listing.h"

#include <stdlib.h>

#define MAX_SOURCE_BYTES ((size_t)256 << 20) /* of an answer */
#define MAX_GROUPS       100                 /* of SelectSeries in Hearth */

enum hearth_status import_ask(struct import *im, struct hearth_client *client,
                              struct hearth_arena *arena, const char *method, const void *request,
                              const struct ProtobufCMessageDescriptor *answer_type,
                              void *ret_answer)
{
    struct ProtobufCMessage *answer;
    struct hearth_call call = {.method = method};
    enum hearth_status status =
        hearth_call_message(client, &call, request, answer_type, arena, &answer, &im->cli->err);

    if (status != HEARTH_OK) {
        hearth_err_prefix(&im->cli->err, "%s", client == im->source ? im->url : im->cli->url);
        return status;
    }
    memcpy(ret_answer, &answer, sizeof answer);

    return HEARTH_OK;
}

enum hearth_status import_connect(struct import *im)
{
    struct cli *cli = im->cli;
    struct hearth_client_options options;
    struct hearth_client_error error;
    struct hearth_str token = {0};
    const char *ignored;

    cli_client_options(cli, &options);
    HEARTH_TRY(cli_find_proxy(cli, im->url, &options.proxy, &ignored));
    options.url = im->url;
    options.tenant = cli->source.tenant;
    options.headers = cli->source.headers.v;
    options.n_headers = cli->source.headers.n;
    options.ca_file = cli->source.ca_file;
    options.cert_file = options.key_file = NULL;
    options.skip_verify = false;
    options.waiting = NULL; /* it would name the other server */
    options.max_answer_bytes = MAX_SOURCE_BYTES;
    if (cli->source.token_file != NULL) {
        HEARTH_TRY(
            cli_read_secret(cli, "source token file", cli->source.token_file, &token, &cli->err));
    }
    if (hearth_client_new(&options, &im->source, &error) != HEARTH_CLIENT_OK ||
        (token.p != NULL &&
         hearth_client_set_token(im->source, token.p, &error) != HEARTH_CLIENT_OK)) {
        return hearth_call_error_in(&error, &cli->err);
    }

    return HEARTH_OK;
}

static int compare_lines(const void *a, const void *b)
{
    const struct import_line *x = a, *y = b;
    return hearth_labels_cmp(&x->labels, &y->labels);
}

char *import_select(struct hearth_arena *arena, Types__V1__LabelPair *const *labels, size_t n)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    cli_put_labels(labels, n, &text);
    char *kept = hearth_buf_failed(&text) ? NULL : hearth_arena_strndup(arena, text.p, text.n);
    hearth_buf_release(&text);

    return kept;
}

/* The names that tell the series of the type apart; all private labels follow from the type. */
enum hearth_status import_find_names(struct import *im)
{
    Types__V1__LabelNamesRequest request;
    Types__V1__LabelNamesResponse *answer;
    Types__V1__LabelPair of_type = TYPES__V1__LABEL_PAIR__INIT, *pairs[] = {&of_type};
    of_type.name = (char[]){HEARTH_LABEL_PROFILE_TYPE};
    of_type.value = im->type->id;
    char *matchers[] = {hearth_arena_strndup(&im->window, im->selector, strlen(im->selector)),
                        import_select(&im->window, pairs, 1)};

    types__v1__label_names_request__init(&request);
    request.matchers = matchers;
    request.n_matchers = HEARTH_ARRAY_LEN(matchers);
    request.start = im->from_ms;
    request.end = im->to_ms + 1;
    if (matchers[0] == NULL || matchers[1] == NULL) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->window);
    }
    HEARTH_TRY(import_ask(im, im->source, &im->window, IMPORT_QUERIER "LabelNames", &request,
                          &types__v1__label_names_response__descriptor, &answer));
    im->names = answer->names;
    im->n_names = 0;
    for (size_t i = 0; i < answer->n_names; i++) {
        if (strncmp(answer->names[i], "__", 2) != 0) {
            im->names[im->n_names++] = answer->names[i];
        }
    }

    return im->n_names <= MAX_GROUPS
               ? HEARTH_OK
               : HEARTH_FAIL(&im->cli->err, HEARTH_OUT_OF_RANGE,
                             "%.200s: the series of %.200s have %zu labels, more than %d; narrow "
                             "the selector",
                             im->url, im->type->id, im->n_names, MAX_GROUPS);
}

enum hearth_status import_find_lines(struct import *im, struct hearth_client *client,
                                     struct import_lines *ret)
{
    Querier__V1__SelectSeriesRequest request;
    Querier__V1__SelectSeriesResponse *answer;

    querier__v1__select_series_request__init(&request);
    request.profile_typeid = im->type->id;
    request.label_selector = hearth_arena_strndup(&im->window, im->selector, strlen(im->selector));
    request.start = im->from_ms;
    request.end = im->to_ms + 1;
    request.step = (double)im->step_ms / 1000;
    request.group_by = im->names;
    request.n_group_by = im->n_names;
    request.aggregation_presence_case =
        QUERIER__V1__SELECT_SERIES_REQUEST__AGGREGATION_PRESENCE_AGGREGATION;
    request.aggregation = TYPES__V1__TIME_SERIES_AGGREGATION_TYPE__TIME_SERIES_AGGREGATION_TYPE_SUM;
    if (request.label_selector == NULL) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->window);
    }
    HEARTH_TRY(import_ask(im, client, &im->window, IMPORT_QUERIER "SelectSeries", &request,
                          &querier__v1__select_series_response__descriptor, &answer));
    struct import_line *lines = hearth_arena_array(&im->window, answer->n_series, sizeof lines[0]);
    for (size_t i = 0; lines != NULL && i < answer->n_series; i++) {
        const Types__V1__Series *series = answer->series[i];
        struct hearth_label *labels =
            hearth_arena_array(&im->window, series->n_labels, sizeof labels[0]);
        for (size_t k = 0; labels != NULL && k < series->n_labels; k++) {
            labels[k] = (struct hearth_label){hearth_str_c(series->labels[k]->name),
                                              hearth_str_c(series->labels[k]->value)};
        }
        lines[i] =
            (struct import_line){{labels, series->n_labels}, series->points, series->n_points};
        if (labels != NULL) {
            hearth_labels_sort(&lines[i].labels);
        }
    }
    if (im->window.refused) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->window);
    }

    qsort(lines, answer->n_series, sizeof lines[0], compare_lines);
    *ret = (struct import_lines){lines, answer->n_series};

    return HEARTH_OK;
}

const struct import_line *import_find_line(const struct import_lines *lines,
                                           const struct import_line *like)
{
    return lines->n == 0 ? NULL
                         : bsearch(like, lines->v, lines->n, sizeof lines->v[0], compare_lines);
}
