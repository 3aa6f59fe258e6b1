/* svc_selectors.c -- texts that name profiles, spans and traces, as the engine's filter. */
#include "front_internal.h"
#include "svc_querier.h"

static enum hearth_status
fail_id(struct hearth_rpc *rpc, const char *field, const char *text, const char *form)
{
    return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "%s \"%.64s\" is not %s", field, text,
                       form);
}

static enum hearth_status
read_profiles(struct hearth_rpc *rpc, struct hearth_rpc_ids in, struct hearth_profile_filter *out)
{
    struct hearth_profile_id *ids = hearth_arena_array(&rpc->arena, in.n, sizeof ids[0]);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    for (size_t i = 0; i < in.n; i++) {
        if (!hearth_profile_id_parse(hearth_str_c(in.texts[i]), &ids[i])) {
            return fail_id(rpc, in.field, in.texts[i], "a UUID");
        }
    }
    out->profiles = ids;
    out->n_profiles = in.n;
    return HEARTH_OK;
}

static enum hearth_status
read_spans(struct hearth_rpc *rpc, struct hearth_rpc_ids in, struct hearth_profile_filter *out)
{
    uint64_t *spans = hearth_arena_array(&rpc->arena, in.n, sizeof spans[0]);
    if (spans == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    for (size_t i = 0; i < in.n; i++) {
        struct hearth_str text = hearth_str_c(in.texts[i]);
        if (text.n != 16 || !hearth_str_hex_to_u64(text, &spans[i])) {
            return fail_id(rpc, in.field, in.texts[i], "of 16 hex digits");
        }
    }
    out->spans = spans;
    out->n_spans = in.n;
    return HEARTH_OK;
}

static enum hearth_status
read_traces(struct hearth_rpc *rpc, struct hearth_rpc_ids in, struct hearth_profile_filter *out)
{
    struct hearth_trace_id *traces = hearth_arena_array(&rpc->arena, in.n, sizeof traces[0]);
    if (traces == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    for (size_t i = 0; i < in.n; i++) {
        struct hearth_str text = hearth_str_c(in.texts[i]);
        if (text.n != 32 || !hearth_str_hex_to_u64(hearth_str_n(text.p, 16), &traces[i].hi) ||
            !hearth_str_hex_to_u64(hearth_str_n(text.p + 16, 16), &traces[i].lo)) {
            return fail_id(rpc, in.field, in.texts[i], "of 32 hex digits");
        }
    }
    out->traces = traces;
    out->n_traces = in.n;
    return HEARTH_OK;
}

enum hearth_status hearth_rpc_profile_filter(struct hearth_rpc *rpc,
                                             struct hearth_rpc_ids profiles,
                                             struct hearth_rpc_ids spans,
                                             struct hearth_rpc_ids traces,
                                             struct hearth_profile_filter *ret)
{
    *ret = (struct hearth_profile_filter){0};
    HEARTH_TRY(read_profiles(rpc, profiles, ret));
    HEARTH_TRY(read_traces(rpc, traces, ret));
    return read_spans(rpc, spans, ret);
}
