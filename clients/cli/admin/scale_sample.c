/*
 * scale_sample.c -- a digest of answers (hearth admin scale-out --digest): equal before and after
 * rows have moved, if none was lost or doubled.
 *
 * The sample are flame graphs, complete and of single services and profile types, spread evenly over
 * all that a range has.
 */
#include "admin/scale_sample.h"

#include "hearth/base/hash.h"
#include "hearth/codec/pb.h"
#include "hearth/model/labels.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "cli_call.h"

#include <inttypes.h>

#define QUERIER     "querier.v1.QuerierService/"
#define MAX_ANSWERS 100
#define MAX_NODES   1048576 /* the default of max-flamegraph-nodes: usually all */

/* The services and types of the range, each once, sorted. */
static enum hearth_status ask_series(struct cli *cli, const Querier__V1__SeriesResponse **ret)
{
    Querier__V1__SeriesRequest request;
    char service[] = HEARTH_LABEL_SERVICE, type[] = HEARTH_LABEL_PROFILE_TYPE;
    char *names[] = {service, type};

    querier__v1__series_request__init(&request);
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    request.label_names = names;
    request.n_label_names = HEARTH_ARRAY_LEN(names);

    return cli_call(cli, QUERIER "Series", &request, &querier__v1__series_response__descriptor,
                    ret);
}

static const char *value_of(const Types__V1__Labels *labels, const char *name)
{
    for (size_t i = 0; i < labels->n_labels; i++) {
        if (strcmp(labels->labels[i]->name, name) == 0) {
            return labels->labels[i]->value;
        }
    }

    return "";
}

/* Add the flame graph of a service and type to the digest. */
static enum hearth_status add_answer(struct cli *cli, const Types__V1__Labels *labels,
                                     struct hearth_hash128 *digest)
{
    Querier__V1__SelectMergeStacktracesRequest request;
    Querier__V1__SelectMergeStacktracesResponse *answer = NULL;
    struct hearth_label service = {HEARTH_STR(HEARTH_LABEL_SERVICE),
                                   hearth_str_c(value_of(labels, HEARTH_LABEL_SERVICE))};
    const struct hearth_labels set = {&service, 1};
    struct hearth_buf selector, bytes;

    hearth_buf_init(&selector, 0);
    hearth_buf_init(&bytes, 0);
    hearth_labels_format(&set, 0, &selector);
    struct hearth_str text = hearth_buf_view(&selector);
    querier__v1__select_merge_stacktraces_request__init(&request);
    request.profile_typeid = cli_field(cli, value_of(labels, HEARTH_LABEL_PROFILE_TYPE));
    request.label_selector = hearth_arena_strndup(&cli->arena, text.p, text.n);
    request.start = cli->from_ms;
    request.end = cli->to_ms;
    request.max_nodes_presence_case =
        QUERIER__V1__SELECT_MERGE_STACKTRACES_REQUEST__MAX_NODES_PRESENCE_MAX_NODES;
    request.max_nodes = MAX_NODES;

    enum hearth_status status =
        cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
    if (status == HEARTH_OK) {
        status = cli_call(cli, QUERIER "SelectMergeStacktraces", &request,
                          &querier__v1__select_merge_stacktraces_response__descriptor, &answer);
    }
    if (status == HEARTH_OK) {
        hearth_buf_str(&bytes, text);
        hearth_buf_cstr(&bytes, request.profile_typeid);
        hearth_pb_pack(&answer->base, &bytes);
        struct hearth_str packed = hearth_buf_view(&bytes);
        *digest = hearth_hash128(packed.p, packed.n, digest->lo ^ digest->hi);
    }
    hearth_buf_release(&bytes);
    hearth_buf_release(&selector);

    return status;
}

enum hearth_status cli_sample_answers(struct cli *cli, struct hearth_buf *foot)
{
    const Querier__V1__SeriesResponse *series = NULL;
    struct hearth_hash128 digest = {0};

    HEARTH_TRY(ask_series(cli, &series));
    size_t n_all = series->n_labels_set, n = n_all < MAX_ANSWERS ? n_all : MAX_ANSWERS;
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(add_answer(cli, series->labels_set[i * n_all / n], &digest));
    }

    hearth_buf_printf(foot,
                      "sample: %zu of %zu flame graphs of a service and type, digest %016" PRIx64
                      "%016" PRIx64 "\n"
                      "The same after the move: hearth admin scale-out --digest --from %" PRId64
                      " --to %" PRId64 "\n",
                      n, n_all, digest.hi, digest.lo, cli->from_ms, cli->to_ms);

    return HEARTH_OK;
}
