/*
 * http_labels.c -- GET /pyroscope/label-values and /labels: Pyroscope's plain HTTP for names and
 * values of labels.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/json_writer.h"
#include "hearth/model/labels.h"

#include "handlers.h"
#include "http/http_call.h"
#include "rpc/messages.h"
#include "rpc/rpc.h"

#include <assert.h>

#define DEFAULT_RANGE_MS (HEARTH_NS_PER_HOUR / HEARTH_NS_PER_MS)

/* The values of the argument `label`; the name of a profile is its type. */
static enum hearth_status find_label_values(struct hearth_rpc *rpc,
                                            const struct hearth_query *query,
                                            const struct hearth_label_request *request,
                                            struct hearth_str **ret, size_t *ret_n)
{
    struct hearth_str name = hearth_http_arg(rpc, "label");

    if (name.n == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "label is required");
    }

    bool is_type = hearth_str_eq_c(name, HEARTH_LABEL_NAME);
    name = is_type ? HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE) : name;

    return hearth_query_label_values(query, name, request, ret, ret_n, &rpc->err);
}

/* Answers with the values of the argument's label, or with the names of all labels. */
static enum hearth_status list_labels(struct hearth_rpc *rpc, bool values)
{
    struct hearth_str selector = hearth_http_arg(rpc, "query"), *texts = NULL;
    size_t n = 0;
    struct hearth_json json;
    int64_t now_ns = hearth_clock_wall_ns();

    assert(rpc->http != NULL);

    /* The default range is the last hour. */
    struct hearth_query query =
        hearth_rpc_query(rpc, now_ns / HEARTH_NS_PER_MS - DEFAULT_RANGE_MS,
                         hearth_http_time(rpc, "until", now_ns) / HEARTH_NS_PER_MS);
    if (hearth_http_arg(rpc, "from").p != NULL) {
        query.start_ms = hearth_http_time(rpc, "from", now_ns) / HEARTH_NS_PER_MS;
    }

    /* Query. */
    const struct hearth_label_request request = {.selectors = &selector,
                                                 .n_selectors = selector.n > 0,
                                                 .legacy_only = !rpc->utf8_label_names};
    HEARTH_TRY(values ? find_label_values(rpc, &query, &request, &texts, &n)
                      : hearth_query_label_names(&query, &request, &texts, &n, &rpc->err));

    /* Answer with an array of texts. */
    rpc->http->answer_type = "application/json";
    hearth_json_init(&json, &rpc->packed);
    hearth_json_array(&json);
    for (size_t i = 0; i < n; i++) {
        hearth_json_string(&json, texts[i]);
    }

    hearth_json_array_end(&json);

    return HEARTH_OK;
}

void hearth_http_label_values(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_labels(rpc, true));
}

void hearth_http_labels(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_labels(rpc, false));
}
