/* svc_querier.c -- querier.v1: profile types, labels and series that exist. */
#include "query/svc_querier.h"

#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"

void hearth_rpc_end_full(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena));
}

/* Ends the call with a message, which lives in the request's arena. */
static void end_with(struct hearth_rpc *rpc, const ProtobufCMessage *answer)
{
    rpc->answer = answer;
    hearth_rpc_end(rpc, HEARTH_OK);
}

static Types__V1__ProfileType *make_type(struct hearth_rpc *rpc, struct hearth_str id)
{
    struct hearth_profile_type type;
    Types__V1__ProfileType *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL || hearth_profile_type_parse(id, &type, NULL) != HEARTH_OK) {
        return NULL;
    }

    types__v1__profile_type__init(out);
    out->id = hearth_rpc_text(rpc, id);
    out->name = hearth_rpc_text(rpc, type.name);
    out->sample_type = hearth_rpc_text(rpc, type.sample_type);
    out->sample_unit = hearth_rpc_text(rpc, type.sample_unit);
    out->period_type = hearth_rpc_text(rpc, type.period_type);
    out->period_unit = hearth_rpc_text(rpc, type.period_unit);

    return rpc->arena.refused ? NULL : out;
}

void hearth_svc_profile_types(struct hearth_rpc *rpc)
{
    const Querier__V1__ProfileTypesRequest *in =
        (const Querier__V1__ProfileTypesRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_str *ids;
    size_t n;

    /* Query. */
    enum hearth_status status = hearth_query_profile_types(&query, &ids, &n, &rpc->err);
    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    /* Make the answer in the arena. */
    Querier__V1__ProfileTypesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Types__V1__ProfileType **types = hearth_arena_array(&rpc->arena, n, sizeof *types);
    if (out == NULL || types == NULL) {
        hearth_rpc_end_full(rpc);
        return;
    }

    querier__v1__profile_types_response__init(out);
    out->profile_types = types;
    for (size_t i = 0; i < n; i++) {
        /* A stored type that cannot be parsed is left out: the list does not fail because of it. */
        Types__V1__ProfileType *type = make_type(rpc, ids[i]);
        if (rpc->arena.refused) {
            hearth_rpc_end_full(rpc);
            return;
        }

        if (type != NULL) {
            types[out->n_profile_types++] = type;
        }
    }

    end_with(rpc, &out->base);
}

void hearth_svc_label_names(struct hearth_rpc *rpc)
{
    const Types__V1__LabelNamesRequest *in = (const Types__V1__LabelNamesRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_str *selectors = hearth_rpc_strs(rpc, in->matchers, in->n_matchers);
    Types__V1__LabelNamesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (selectors == NULL || out == NULL) {
        hearth_rpc_end_full(rpc);
        return;
    }

    /* Query. */
    struct hearth_str *names;
    size_t n;
    const struct hearth_label_request request = {.selectors = selectors,
                                                 .n_selectors = in->n_matchers,
                                                 .legacy_only = !rpc->utf8_label_names};
    enum hearth_status status = hearth_query_label_names(&query, &request, &names, &n, &rpc->err);
    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    /* Copy the names to the answer. */
    types__v1__label_names_response__init(out);
    out->n_names = n;
    out->names = hearth_rpc_texts(rpc, names, n);
    if (out->names == NULL) {
        hearth_rpc_end_full(rpc);
        return;
    }

    end_with(rpc, &out->base);
}

void hearth_svc_label_values(struct hearth_rpc *rpc)
{
    const Types__V1__LabelValuesRequest *in = (const Types__V1__LabelValuesRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_str *selectors = hearth_rpc_strs(rpc, in->matchers, in->n_matchers);
    Types__V1__LabelValuesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (selectors == NULL || out == NULL) {
        hearth_rpc_end_full(rpc);
        return;
    }

    /* Query. */
    struct hearth_str *values;
    size_t n;
    const struct hearth_label_request request = {.selectors = selectors,
                                                 .n_selectors = in->n_matchers};
    enum hearth_status status =
        hearth_query_label_values(&query, hearth_str_c(in->name), &request, &values, &n, &rpc->err);
    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    types__v1__label_values_response__init(out);
    out->n_names = n;
    out->names = hearth_rpc_texts(rpc, values, n);
    if (out->names == NULL) {
        hearth_rpc_end_full(rpc);
        return;
    }

    end_with(rpc, &out->base);
}

bool hearth_rpc_labels(struct hearth_rpc *rpc, const struct hearth_labels *labels,
                       Types__V1__LabelPair ***ret_pairs)
{
    Types__V1__LabelPair **pairs = hearth_arena_array(&rpc->arena, labels->n, sizeof *pairs);
    Types__V1__LabelPair *bodies = hearth_arena_array(&rpc->arena, labels->n, sizeof *bodies);
    if (pairs == NULL || bodies == NULL) {
        return false;
    }

    for (size_t i = 0; i < labels->n; i++) {
        types__v1__label_pair__init(&bodies[i]);
        bodies[i].name = hearth_rpc_text(rpc, labels->v[i].name);
        bodies[i].value = hearth_rpc_text(rpc, labels->v[i].value);
        pairs[i] = &bodies[i];
    }

    *ret_pairs = pairs;

    return !rpc->arena.refused;
}

void hearth_svc_series(struct hearth_rpc *rpc)
{
    const Querier__V1__SeriesRequest *in = (const Querier__V1__SeriesRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_str *selectors = hearth_rpc_strs(rpc, in->matchers, in->n_matchers);
    struct hearth_str *names = hearth_rpc_strs(rpc, in->label_names, in->n_label_names);
    Querier__V1__SeriesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (selectors == NULL || names == NULL || out == NULL) {
        hearth_rpc_end_full(rpc);
        return;
    }

    /* Query. */
    struct hearth_labels *sets;
    size_t n;
    const struct hearth_label_request request = {.selectors = selectors,
                                                 .n_selectors = in->n_matchers,
                                                 .names = names,
                                                 .n_names = in->n_label_names,
                                                 .legacy_only = !rpc->utf8_label_names};
    enum hearth_status status = hearth_query_series(&query, &request, &sets, &n, &rpc->err);
    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    /* Make one message for each set of labels. */
    querier__v1__series_response__init(out);
    Types__V1__Labels **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Types__V1__Labels *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (list == NULL || bodies == NULL) {
        hearth_rpc_end_full(rpc);
        return;
    }

    out->n_labels_set = n;
    out->labels_set = list;
    for (size_t i = 0; i < n; i++) {
        types__v1__labels__init(&bodies[i]);
        bodies[i].n_labels = sets[i].n;
        list[i] = &bodies[i];
        if (!hearth_rpc_labels(rpc, &sets[i], &bodies[i].labels)) {
            hearth_rpc_end_full(rpc);
            return;
        }
    }

    end_with(rpc, &out->base);
}
