/*
 * http_labels.c -- GET /pyroscope/label-values and /labels: Pyroscope's plain HTTP for names and
 * values of labels.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/json_writer.h"
#include "hearth/model/labels.h"
#include "hearth/selector/selector.h"
#include "hearth/selector/typed_query.h"

#include "handlers.h"
#include "http/http_call.h"
#include "rpc/messages.h"
#include "rpc/rpc.h"

#include <assert.h>

#define DEFAULT_RANGE_MS (HEARTH_NS_PER_HOUR / HEARTH_NS_PER_MS)

/* Writes a profile type as a selector, in the request's arena. */
static enum hearth_status
write_type_selector(struct hearth_rpc *rpc, struct hearth_str profile_type, struct hearth_str *ret)
{
    struct hearth_selector by_type;
    struct hearth_buf out;

    hearth_selector_init(&by_type);
    hearth_buf_init(&out, 0);
    enum hearth_status status =
        hearth_selector_add(&by_type, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE), HEARTH_MATCH_EQ,
                            profile_type, &rpc->arena, &rpc->err);
    if (status == HEARTH_OK) {
        hearth_selector_format(&by_type, &out);
        *ret = hearth_arena_str(&rpc->arena, hearth_buf_view(&out));
        status = hearth_buf_failed(&out) ? HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY,
                                                       "no memory for the selector of a type")
                 : ret->p == NULL        ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                                         : HEARTH_OK;
    }

    hearth_buf_release(&out);
    hearth_selector_release(&by_type);

    return status;
}

/* Reads a typed query as one or two selectors: its matchers, and its profile type, if any. */
static enum hearth_status read_label_query(struct hearth_rpc *rpc, struct hearth_str selectors[2],
                                           size_t *ret_n)
{
    struct hearth_str text = hearth_http_arg(rpc, "query");
    struct hearth_typed_query typed = {.selector = HEARTH_STR("{}")};

    if (text.p != NULL && text.n > 0) {
        enum hearth_status status = hearth_typed_query_parse(text, &rpc->arena, &typed, &rpc->err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(&rpc->err, "query");
            return status;
        }
    }

    selectors[0] = typed.selector;
    *ret_n = 1;
    if (typed.profile_type.n == 0) {
        return HEARTH_OK;
    }

    *ret_n = 2;

    return write_type_selector(rpc, typed.profile_type, &selectors[1]);
}

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
    struct hearth_str selectors[2], *texts = NULL;
    size_t n_selectors, n = 0;
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
    HEARTH_TRY(read_label_query(rpc, selectors, &n_selectors));
    const struct hearth_label_request request = {
        .selectors = selectors, .n_selectors = n_selectors, .legacy_only = !rpc->utf8_label_names};
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
