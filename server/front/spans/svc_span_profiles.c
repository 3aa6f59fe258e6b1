/* svc_span_profiles.c -- hearth.v1.TraceProfileService: the cost of spans. */
#include "hearth/engine/span_profiles.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "handlers.h"
#include "query/selection.h"
#include "rpc/front_internal.h"
#include "rpc/gauges.h"
#include "spans/svc_spans.h"

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

static enum hearth_status make_item(struct hearth_rpc *rpc,
                                    const struct hearth_span_profile_spec *spec,
                                    const struct hearth_span_profile *profile,
                                    Hearth__V1__SpanProfileItem *out)
{
    ProtobufCBinaryData bytes = {profile->bytes.n, (uint8_t *)(uintptr_t)profile->bytes.p};
    out->total = profile->total;
    out->span_ids = hearth_rpc_span_texts(rpc, profile->span_ids, profile->n_span_ids);
    out->n_span_ids = profile->n_span_ids;

    /* Each format has its own field. */
    switch (spec->format) {
    case HEARTH_SPAN_TREE:
        out->tree = bytes;
        break;
    case HEARTH_SPAN_PPROF:
        out->pprof = bytes;
        break;
    case HEARTH_SPAN_TOP:
        HEARTH_TRY(hearth_rpc_top_rows(rpc, &profile->top, &out->top));
        out->n_top = profile->top.n_rows;
        break;
    case HEARTH_SPAN_FLAMEGRAPH:
        HEARTH_TRY(hearth_rpc_flamegraph(rpc, &profile->flamegraph, &out->flamegraph));
        break;
    }

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* Reduces a spec to its i-th id, in the order of spans, local roots, traces, and returns the id. */
static struct hearth_str take_one(struct hearth_span_profile_spec *spec, size_t i)
{
    size_t n_spans = spec->n_span_ids, n_roots = spec->n_local_root_ids;

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

/* Makes a profile for each id, empty for an id without samples; NOT_FOUND if no id has samples. */
static enum hearth_status profile_each(struct hearth_rpc *rpc, const struct hearth_query *query,
                                       const struct hearth_span_profile_spec *spec, size_t n,
                                       Hearth__V1__SpanProfileItem *const *items)
{
    size_t n_found = 0;

    for (size_t i = 0; i < n; i++) {
        struct hearth_span_profile_spec one = *spec;
        struct hearth_span_profile profile;
        items[i]->id = hearth_rpc_text(rpc, take_one(&one, i));

        /* NOT_FOUND of the last id fails the request if no other id has samples. */
        enum hearth_status status = hearth_query_span_profile(query, &one, &profile, &rpc->err);
        if (status == HEARTH_NOT_FOUND && (n_found > 0 || i + 1 < n)) {
            continue;
        }

        HEARTH_TRY(status);
        n_found++;
        HEARTH_TRY(make_item(rpc, spec, &profile, items[i]));
    }

    return HEARTH_OK;
}

static enum hearth_status span_profile(struct hearth_rpc *rpc)
{
    const Hearth__V1__SpanProfileRequest *in = (const Hearth__V1__SpanProfileRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_span_profile_spec spec;
    struct hearth_limits limits;
    Hearth__V1__SpanProfileResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    char *unit;
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Read the request; the number of ids is limited. */
    hearth__v1__span_profile_response__init(out);
    HEARTH_TRY(read_profile_spec(rpc, in, &spec, &unit));
    out->unit = unit;
    size_t n_ids = spec.n_span_ids + spec.n_local_root_ids + spec.n_trace_ids;
    size_t n = in->each && n_ids > 0 ? n_ids : 1;
    hearth_query_tenant_limits(rpc->front->query, query.call.tenant, &limits);
    if (limits.max_lookup_ids > 0 && n > (uint64_t)limits.max_lookup_ids) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "%zu spans and traces are asked about, max-lookup-ids allows %lld", n,
                           (long long)limits.max_lookup_ids);
    }

    /* Make the answer: one profile, or one for each id. */
    Hearth__V1__SpanProfileItem *items = hearth_arena_array(&rpc->arena, n, sizeof *items);
    out->profiles = hearth_arena_array(&rpc->arena, n, sizeof *out->profiles);
    if (items == NULL || out->profiles == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (; out->n_profiles < n; out->n_profiles++) {
        hearth__v1__span_profile_item__init(&items[out->n_profiles]);
        out->profiles[out->n_profiles] = &items[out->n_profiles];
    }

    rpc->answer = &out->base;

    /* Query. */
    if (in->each && n_ids > 0) { /* the engine refuses a request without ids */
        return profile_each(rpc, &query, &spec, n_ids, out->profiles);
    }

    struct hearth_span_profile profile;
    HEARTH_TRY(hearth_query_span_profile(&query, &spec, &profile, &rpc->err));

    return make_item(rpc, &spec, &profile, out->profiles[0]);
}

void hearth_svc_span_profile(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, span_profile(rpc));
}
