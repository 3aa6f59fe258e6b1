/* svc_selectors.c -- reads ids of profiles, spans and traces as the engine's filter. */
#include "query/svc_querier.h"
#include "rpc/rpc.h"

#include <assert.h>

static enum hearth_status fail_id(struct hearth_rpc *rpc, const char *field, const char *text,
                                  const char *form)
{
    assert(field != NULL && text != NULL);
    return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "%s \"%.64s\" is not %s", field, text,
                       form);
}

static enum hearth_status read_profile_ids(struct hearth_rpc *rpc, struct hearth_rpc_ids in,
                                           struct hearth_profile_filter *out)
{
    struct hearth_profile_id *ids = hearth_arena_array(&rpc->arena, in.n, sizeof ids[0]);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Parse each UUID. */
    for (size_t i = 0; i < in.n; i++) {
        if (!hearth_profile_id_parse(hearth_str_c(in.texts[i]), &ids[i])) {
            return fail_id(rpc, in.field, in.texts[i], "a UUID");
        }
    }

    out->profiles = ids;
    out->n_profiles = in.n;

    return HEARTH_OK;
}

/*
 * Whether an id has the form that Pyroscope's clients write, n_digits (16 or 32) hex digits. Other
 * texts get the refusal that these clients expect.
 */
static bool is_hex_id(struct hearth_str text, size_t n_digits)
{
    uint64_t part;

    assert(n_digits == HEARTH_SPAN_ID_TEXT || n_digits == HEARTH_TRACE_ID_TEXT);
    for (size_t at = 0; at < n_digits; at += 16) {
        if (text.n != n_digits || !hearth_str_hex_to_u64(hearth_str_n(text.p + at, 16), &part)) {
            return false;
        }
    }

    return true;
}

static const char *get_id_form(struct hearth_rpc_ids in, const char *hex)
{
    return in.any_spelling ? "the id of anything: it is empty or zero" : hex;
}

static enum hearth_status read_span_ids(struct hearth_rpc *rpc, struct hearth_rpc_ids in,
                                        struct hearth_profile_filter *out)
{
    uint64_t *spans =
        hearth_arena_array(&rpc->arena, in.n, HEARTH_SPAN_ID_MEANINGS * sizeof spans[0]);
    if (spans == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Add all ids that a text may mean. */
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        struct hearth_str text = hearth_str_c(in.texts[i]);
        bool is_text = in.any_spelling || is_hex_id(text, HEARTH_SPAN_ID_TEXT);
        size_t n_more = is_text ? hearth_span_id_meanings(text, spans + n) : 0;
        if (n_more == 0 && (in.any_spelling || !is_text)) {
            return fail_id(rpc, in.field, in.texts[i], get_id_form(in, "of 16 hex digits"));
        }

        if (n_more == 0) {
            spans[n] = 0; /* matches no span; an empty filter would match everything */
        }

        n += n_more == 0 ? 1 : n_more;
    }

    assert(n <= in.n * HEARTH_SPAN_ID_MEANINGS);
    out->spans = spans;
    out->n_spans = n;

    return HEARTH_OK;
}

static enum hearth_status read_trace_ids(struct hearth_rpc *rpc, struct hearth_rpc_ids in,
                                         struct hearth_profile_filter *out)
{
    struct hearth_trace_id *traces =
        hearth_arena_array(&rpc->arena, in.n, HEARTH_TRACE_ID_MEANINGS * sizeof traces[0]);
    if (traces == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Add all ids that a text may mean. */
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        struct hearth_str text = hearth_str_c(in.texts[i]);
        bool is_text = in.any_spelling || is_hex_id(text, HEARTH_TRACE_ID_TEXT);
        size_t n_more = is_text ? hearth_trace_id_meanings(text, traces + n) : 0;
        if (n_more == 0 && (in.any_spelling || !is_text)) {
            return fail_id(rpc, in.field, in.texts[i], get_id_form(in, "of 32 hex digits"));
        }

        if (n_more == 0) {
            traces[n] = (struct hearth_trace_id){0};
        }

        n += n_more == 0 ? 1 : n_more;
    }

    assert(n <= in.n * HEARTH_TRACE_ID_MEANINGS);
    out->traces = traces;
    out->n_traces = n;

    return HEARTH_OK;
}

enum hearth_status hearth_rpc_profile_filter(struct hearth_rpc *rpc, struct hearth_rpc_ids profiles,
                                             struct hearth_rpc_ids spans,
                                             struct hearth_rpc_ids traces,
                                             struct hearth_profile_filter *ret)
{
    *ret = (struct hearth_profile_filter){0};
    HEARTH_TRY(read_profile_ids(rpc, profiles, ret));
    HEARTH_TRY(read_trace_ids(rpc, traces, ret));
    return read_span_ids(rpc, spans, ret);
}
