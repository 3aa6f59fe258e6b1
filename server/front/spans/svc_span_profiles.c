/* svc_span_profiles.c -- hearth.v1.TraceProfileService: the cost of spans. */
#include "hearth/engine/span_profiles.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "handlers.h"
#include "query/query_maps.h"
#include "query/selection.h"
#include "rpc/front_internal.h"
#include "rpc/gauges.h"
#include "rpc/unary.h"
#include "spans/svc_spans.h"

/* ---- the request ---- */

static enum hearth_status read_profile_spec(struct hearth_rpc *rpc,
                                            const Hearth__V1__SpanProfileRequest *in,
                                            struct hearth_span_profile_spec *ret, char **ret_unit)
{
    static const enum hearth_span_profile_format formats[] = {
        [HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_UNSPECIFIED] = HEARTH_SPAN_FLAMEGRAPH,
        [HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_FLAMEGRAPH] = HEARTH_SPAN_FLAMEGRAPH,
        [HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_TREE] = HEARTH_SPAN_TREE,
        [HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_PPROF] = HEARTH_SPAN_PPROF,
        [HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_TOP] = HEARTH_SPAN_TOP,
    };
    struct hearth_profile_type type;

    /* Numbers of the request are hostile. */
    if ((unsigned)in->format >= HEARTH_ARRAY_LEN(formats)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "format %d is not known",
                           (int)in->format);
    }

    HEARTH_TRY(hearth_profile_type_parse(hearth_str_c(in->profile_type), &type, &rpc->err));

    /* An absent limit of nodes is 0. */
    *ret = (struct hearth_span_profile_spec){
        .merge = {.profile_type = hearth_str_c(in->profile_type),
                  .selector = hearth_str_c(in->label_selector),
                  .mean = hearth_rpc_gauge_mean(rpc, in->profile_type),
                  .has_max_nodes = in->max_nodes != 0,
                  .max_nodes = in->max_nodes},
        .span_ids = hearth_rpc_strs(rpc, in->span_ids, in->n_span_ids),
        .n_span_ids = in->n_span_ids,
        .local_root_ids = hearth_rpc_strs(rpc, in->local_root_ids, in->n_local_root_ids),
        .n_local_root_ids = in->n_local_root_ids,
        .trace_ids = hearth_rpc_strs(rpc, in->trace_ids, in->n_trace_ids),
        .n_trace_ids = in->n_trace_ids,
        .children = in->children,
        .format = formats[in->format],
    };
    *ret_unit = hearth_rpc_text(rpc, type.sample_unit);

    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    return hearth_rpc_stack_filter(rpc, in->stacks, &ret->merge.stacks);
}

/* ---- the answer ---- */

/* The profile of one id, or of all ids. */
struct item {
    struct hearth_str id; /* empty: of all ids */
    enum hearth_span_profile_format format;
    bool is_found; /* otherwise the profile is zeroed */
    struct hearth_span_profile profile;
};

static void fill_item_rest(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct item *item = from;
    const struct hearth_span_profile *profile = &item->profile;
    ProtobufCBinaryData bytes = {profile->bytes.n, (uint8_t *)(uintptr_t)profile->bytes.p};
    Hearth__V1__SpanProfileItem *out = message;

    if (!item->is_found) {
        return;
    }

    out->span_ids = hearth_rpc_span_texts(rpc, profile->span_ids, profile->n_span_ids);
    out->n_span_ids = profile->n_span_ids;

    /* Each format has its own field. */
    switch (item->format) {
    case HEARTH_SPAN_TREE:
        out->tree = bytes;
        break;
    case HEARTH_SPAN_PPROF:
        out->pprof = bytes;
        break;
    case HEARTH_SPAN_TOP:
        HEARTH_RPC_LIST(rpc, &hearth_top_row_map, profile->top.rows, profile->top.n_rows, out, top);
        break;
    case HEARTH_SPAN_FLAMEGRAPH:
        out->flamegraph = hearth_rpc_map(rpc, &hearth_flamegraph_map, &profile->flamegraph);
        break;
    }
}

HEARTH_MAP_TYPES(item, struct item, Hearth__V1__SpanProfileItem);
static const struct hearth_message_member item_members[] = {
    HEARTH_MAP(item, id, id),
    HEARTH_MAP(item, profile.total, total),
};
static const struct hearth_message_map item_map =
    HEARTH_MESSAGE_MAP_AND(item, hearth__v1__span_profile_item__descriptor, fill_item_rest);

/* ---- SpanProfile ---- */

/* Reduces a spec to its i-th id, in the order of spans, local roots, traces, and returns the id. */
static struct hearth_str take_one_id(struct hearth_span_profile_spec *spec, size_t i)
{
    size_t n_spans = spec->n_span_ids, n_roots = spec->n_local_root_ids;

    assert(i < n_spans + n_roots + spec->n_trace_ids);
    spec->n_span_ids = spec->n_local_root_ids = spec->n_trace_ids = 0;
    if (i < n_spans) {
        spec->span_ids += i;
        spec->n_span_ids = 1;
        return spec->span_ids[0];
    }

    if (i < n_spans + n_roots) {
        spec->local_root_ids += i - n_spans;
        spec->n_local_root_ids = 1;
        return spec->local_root_ids[0];
    }

    spec->trace_ids += i - n_spans - n_roots;
    spec->n_trace_ids = 1;

    return spec->trace_ids[0];
}

/*
 * Makes a profile for each of n ids, empty for an id without samples; NOT_FOUND if no id has
 * samples. The items are zeroed.
 */
static enum hearth_status profile_each_id(struct hearth_rpc *rpc, const struct hearth_query *query,
                                          const struct hearth_span_profile_spec *spec,
                                          struct item *items, size_t n)
{
    size_t n_found = 0;

    assert(n == spec->n_span_ids + spec->n_local_root_ids + spec->n_trace_ids);
    for (size_t i = 0; i < n; i++) {
        struct hearth_span_profile_spec one = *spec;
        struct hearth_span_profile profile;
        items[i].id = take_one_id(&one, i);

        /* NOT_FOUND of the last id fails the request if no other id has samples. */
        enum hearth_status status = hearth_query_span_profile(query, &one, &profile, &rpc->err);
        if (status == HEARTH_NOT_FOUND && (n_found > 0 || i + 1 < n)) {
            continue;
        }

        HEARTH_TRY(status);
        n_found++;
        items[i].is_found = true;
        items[i].profile = profile;
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_span_profile, Hearth__V1__SpanProfileRequest,
             Hearth__V1__SpanProfileResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_span_profile_spec spec;
    struct hearth_limits limits;
    struct hearth_explanation plan = {0};

    /* Read the request; the number of ids is limited. */
    HEARTH_TRY(read_profile_spec(rpc, in, &spec, &out->unit));
    size_t n_ids = spec.n_span_ids + spec.n_local_root_ids + spec.n_trace_ids;
    bool is_each = in->each && n_ids > 0; /* the engine refuses a request without ids */
    size_t n = is_each ? n_ids : 1;
    hearth_query_tenant_limits(rpc->front->query, query.call.tenant, &limits);
    if (limits.max_lookup_ids > 0 && n > (uint64_t)limits.max_lookup_ids) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "the request has %zu spans and traces; max-lookup-ids allows %lld", n,
                           (long long)limits.max_lookup_ids);
    }

    struct item *items = hearth_arena_calloc(&rpc->arena, n, sizeof *items);
    if (items == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    query.plan = in->explain ? &plan : NULL;

    /* Query: one profile, or one for each id. */
    if (is_each) {
        HEARTH_TRY(profile_each_id(rpc, &query, &spec, items, n));
    } else {
        HEARTH_TRY(hearth_query_span_profile(&query, &spec, &items[0].profile, &rpc->err));
        items[0].is_found = true;
    }

    if (in->explain) {
        out->plan = hearth_rpc_map(rpc, &hearth_explanation_map, &plan);
        return HEARTH_OK;
    }

    for (size_t i = 0; i < n; i++) {
        items[i].format = spec.format;
    }

    HEARTH_RPC_LIST(rpc, &item_map, items, n, out, profiles);

    return HEARTH_OK;
}
