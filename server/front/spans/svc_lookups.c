/* svc_lookups.c -- hearth.v1.TraceProfileService: profiles of spans and traces. */
#include "hearth/engine/span_profiles.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "handlers.h"
#include "query/selection.h"
#include "rpc/front_internal.h"
#include "spans/svc_spans.h"

#define DEFAULT_PAD_MS       INT64_C(60000)
#define DEFAULT_MAX_PROFILES 100
#define MAX_MESSAGE_BYTES    2000
#define MAX_PAD_MS           (INT64_MAX / HEARTH_NS_PER_MS / 4)

/*
 * Makes n initialised messages of one type, and the array of pointers that a repeated field has. If
 * the arena is full, arena.refused is set, and the messages must not be used.
 */
#define MAKE_ALL(rpc, n, type, init, ret_list)                                   \
    type *all_ = hearth_arena_array(&(rpc)->arena, (n), sizeof *all_);           \
    *(ret_list) = hearth_arena_array(&(rpc)->arena, (n), sizeof **(ret_list));   \
    for (size_t i_ = 0; i_ < (n) && all_ != NULL && *(ret_list) != NULL; i_++) { \
        init(&all_[i_]);                                                         \
        (*(ret_list))[i_] = &all_[i_];                                           \
    }

static enum hearth_status end_full(struct hearth_rpc *rpc)
{
    return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
}

/* ---- ids as texts ---- */

char **hearth_rpc_span_texts(struct hearth_rpc *rpc, const uint64_t *ids, size_t n)
{
    char **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    for (size_t i = 0; i < n && list != NULL; i++) {
        list[i] = hearth_rpc_span_text(rpc, ids[i]);
    }

    return list;
}

/* ---- found profiles and spans as messages; callers check the arena ---- */

static Hearth__V1__FoundType **make_types(struct hearth_rpc *rpc,
                                          const struct hearth_found_type *types, size_t n)
{
    Hearth__V1__FoundType **list;

    MAKE_ALL(rpc, n, Hearth__V1__FoundType, hearth__v1__found_type__init, &list)
    for (size_t i = 0; i < n && !rpc->arena.refused; i++) {
        list[i]->profile_type = hearth_rpc_text(rpc, types[i].profile_type);
        list[i]->unit = hearth_rpc_text(rpc, types[i].unit);
        list[i]->total = types[i].total;
        list[i]->profile_count = types[i].n_profiles;
    }

    return list;
}

static Hearth__V1__FoundProfile **
make_profiles(struct hearth_rpc *rpc, const struct hearth_found_profile *profiles, size_t n)
{
    Hearth__V1__FoundProfile **list;

    MAKE_ALL(rpc, n, Hearth__V1__FoundProfile, hearth__v1__found_profile__init, &list)
    for (size_t i = 0; i < n && !rpc->arena.refused; i++) {
        char id[HEARTH_PROFILE_ID_TEXT + 1];
        hearth_profile_id_format(profiles[i].id, id);
        list[i]->profile_id = hearth_rpc_text(rpc, hearth_str_c(id));
        list[i]->service = hearth_rpc_text(rpc, profiles[i].service);
        list[i]->time_ns = profiles[i].time_ns;
        list[i]->duration_ns = profiles[i].duration_ns;
        list[i]->n_labels = profiles[i].labels.n;
        if (!hearth_rpc_labels(rpc, &profiles[i].labels, &list[i]->labels)) {
            list[i]->n_labels = 0;
        }
    }

    return list;
}

static Hearth__V1__SpanTag **make_tags(struct hearth_rpc *rpc, const struct hearth_span_tag *tags,
                                       size_t n)
{
    Hearth__V1__SpanTag **list;

    MAKE_ALL(rpc, n, Hearth__V1__SpanTag, hearth__v1__span_tag__init, &list)
    for (size_t i = 0; i < n && !rpc->arena.refused; i++) {
        list[i]->key = hearth_rpc_text(rpc, tags[i].key);
        list[i]->value = hearth_rpc_text(rpc, tags[i].value);
    }

    return list;
}

/* The id of a span as text. SkyWalking's span numbers are unique only within their segment. */
static char *stored_id(struct hearth_rpc *rpc, const struct hearth_stored_span *stored, uint64_t id)
{
    return stored->segment.n == 0
               ? hearth_rpc_span_text(rpc, id)
               : hearth_arena_printf(&rpc->arena, "%.*s/%lld", (int)stored->segment.n,
                                     stored->segment.p, (long long)id);
}

static void fill_stored(struct hearth_rpc *rpc, const struct hearth_stored_span *stored,
                        Hearth__V1__StoredSpan *out)
{
    static const char *const kinds[HEARTH_N_SPAN_KINDS] = {"local", "entry", "exit", "producer",
                                                           "consumer"};
    static const char *const statuses[HEARTH_N_SPAN_STATUSES] = {"unset", "ok", "error"};
    const struct hearth_span *span = stored->span;

    /* Ids: a stored span has a segment if it is SkyWalking's. */
    out->span_id = stored_id(rpc, stored, stored->span_id);
    out->trace_id = stored->segment.n == 0 ? hearth_rpc_trace_text(rpc, stored->trace)
                                           : hearth_rpc_text(rpc, stored->trace_text);
    out->parent_id = span->has_parent ? stored_id(rpc, stored, stored->parent_id)
                                      : hearth_rpc_text(rpc, HEARTH_STR(""));

    /* Texts, times and tags. */
    out->service = hearth_rpc_text(rpc, stored->service);
    out->instance = hearth_rpc_text(rpc, stored->instance);
    out->name = hearth_rpc_text(rpc, span->name);
    out->kind = hearth_rpc_text(rpc, hearth_str_c(kinds[span->kind]));
    out->status = hearth_rpc_text(rpc, hearth_str_c(statuses[span->status]));
    out->start_ns = span->start_ns;
    out->end_ns = span->end_ns;
    out->tags = make_tags(rpc, span->tags, span->n_tags);
    out->n_tags = span->n_tags;
}

Hearth__V1__StoredSpan *hearth_rpc_stored_span(struct hearth_rpc *rpc,
                                               const struct hearth_stored_span *stored)
{
    Hearth__V1__StoredSpan *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out != NULL) {
        hearth__v1__stored_span__init(out);
        fill_stored(rpc, stored, out);
    }

    return out;
}

static Hearth__V1__StoredSpan **
list_stored(struct hearth_rpc *rpc, const struct hearth_stored_span *const *stored, size_t n)
{
    Hearth__V1__StoredSpan **list;
    MAKE_ALL(rpc, n, Hearth__V1__StoredSpan, hearth__v1__stored_span__init, &list)
    for (size_t i = 0; i < n && !rpc->arena.refused; i++) {
        fill_stored(rpc, stored[i], list[i]);
    }

    return list;
}

static Hearth__V1__FoundSpan **make_spans(struct hearth_rpc *rpc,
                                          const struct hearth_found_span *spans, size_t n)
{
    Hearth__V1__FoundSpan **list;

    MAKE_ALL(rpc, n, Hearth__V1__FoundSpan, hearth__v1__found_span__init, &list)
    for (size_t i = 0; i < n && !rpc->arena.refused; i++) {
        const struct hearth_stored_span *stored = spans[i].stored;

        /* The id of a stored span has the form of its tracer. */
        list[i]->span_id = stored != NULL ? stored_id(rpc, stored, stored->span_id)
                                          : hearth_rpc_span_text(rpc, spans[i].span_id);
        list[i]->service = hearth_rpc_text(rpc, spans[i].service);
        list[i]->types = make_types(rpc, spans[i].types, spans[i].n_types);
        list[i]->n_types = spans[i].n_types;
        if (stored != NULL) {
            list[i]->span = hearth_rpc_stored_span(rpc, stored);
        }
    }

    return list;
}

static void make_lookup(struct hearth_rpc *rpc, const struct hearth_span_subject *subject,
                        const struct hearth_found *found, Hearth__V1__Lookup *out)
{
    static const Hearth__V1__Certainty certainties[] = {
        [HEARTH_CERTAINTY_NONE] = HEARTH__V1__CERTAINTY__CERTAINTY_UNSPECIFIED,
        [HEARTH_CERTAINTY_EXACT] = HEARTH__V1__CERTAINTY__CERTAINTY_EXACT,
        [HEARTH_CERTAINTY_WINDOW] = HEARTH__V1__CERTAINTY__CERTAINTY_WINDOW,
    };

    /* Profiles. */
    out->id = hearth_rpc_text(rpc, subject->id);
    out->certainty = certainties[found->certainty];
    out->types = make_types(rpc, found->types, found->n_types);
    out->n_types = found->n_types;
    out->profiles = make_profiles(rpc, found->profiles, found->n_profiles);
    out->n_profiles = found->n_profiles;
    out->profile_count = found->n_all_profiles;
    out->label_selector = hearth_rpc_text(rpc, found->selector);
    out->start = found->start_ms;
    out->end = found->end_ms;

    /* Spans and traces. */
    out->span_ids = hearth_rpc_span_texts(rpc, found->span_ids, found->n_span_ids);
    out->n_span_ids = found->n_span_ids;
    out->trace_ids = hearth_arena_array(&rpc->arena, found->n_trace_ids, sizeof *out->trace_ids);
    for (size_t i = 0; i < found->n_trace_ids && out->trace_ids != NULL; i++) {
        out->trace_ids[i] = hearth_rpc_trace_text(rpc, found->trace_ids[i]);
    }

    out->n_trace_ids = found->n_trace_ids;
    out->spans = make_spans(rpc, found->spans, found->n_spans);
    out->n_spans = found->n_spans;
    out->stored = list_stored(rpc, found->stored, found->n_stored);
    out->n_stored = found->n_stored;

    /* The searched places, and the reason if nothing is found. */
    out->searched = hearth_rpc_text(rpc, found->searched);
    out->reason = hearth_rpc_text(rpc, found->reason);
}

/* ---- LookupSpan, LookupTrace ---- */

static enum hearth_status read_rules(struct hearth_rpc *rpc, const Hearth__V1__WindowOptions *in,
                                     struct hearth_lookup_options *ret)
{
    int64_t pad_ms = DEFAULT_PAD_MS;

    if (in != NULL && in->pad_presence_case == HEARTH__V1__WINDOW_OPTIONS__PAD_PRESENCE_PAD_MS) {
        pad_ms = in->pad_ms;
    }

    /* Check the padding of the window. */
    if (pad_ms < 0 || pad_ms > MAX_PAD_MS) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "options.window.pad_ms %lld is not from 0 to %lld", (long long)pad_ms,
                           (long long)MAX_PAD_MS);
    }

    ret->pad_ns = pad_ms * HEARTH_NS_PER_MS;
    if (in == NULL) {
        return HEARTH_OK;
    }

    /* Read the mapping of tags to labels. */
    struct hearth_tag_mapping *mappings =
        hearth_arena_array(&rpc->arena, in->n_tags, sizeof *mappings);
    if (mappings == NULL) {
        return end_full(rpc);
    }

    for (size_t i = 0; i < in->n_tags; i++) {
        mappings[i] = (struct hearth_tag_mapping){hearth_str_c(in->tags[i]->tag),
                                                  hearth_str_c(in->tags[i]->label)};
    }

    ret->rules = (struct hearth_tag_rules){mappings, in->n_tags, hearth_str_c(in->query)};

    return HEARTH_OK;
}

static enum hearth_status read_options(struct hearth_rpc *rpc, const Hearth__V1__LookupOptions *in,
                                       struct hearth_lookup_options *ret)
{
    *ret = (struct hearth_lookup_options){.max_profiles = DEFAULT_MAX_PROFILES};
    HEARTH_TRY(read_rules(rpc, in == NULL ? NULL : in->window, ret));
    if (in == NULL) {
        return HEARTH_OK;
    }

    /* A limit of 0 is the default. */
    if (in->max_profiles < 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "options.max_profiles %lld is negative", (long long)in->max_profiles);
    }

    ret->profile_types = hearth_rpc_strs(rpc, in->profile_types, in->n_profile_types);
    ret->n_profile_types = in->n_profile_types;
    ret->exact_only = in->exact_only;
    ret->max_profiles = in->max_profiles == 0 ? DEFAULT_MAX_PROFILES : (size_t)in->max_profiles;

    return rpc->arena.refused ? end_full(rpc) : HEARTH_OK;
}

static enum hearth_status read_tags(struct hearth_rpc *rpc, Hearth__V1__SpanTag *const *in,
                                    size_t n, struct hearth_span_subject *ret)
{
    struct hearth_span_tag *tags = hearth_arena_array(&rpc->arena, n, sizeof *tags);
    if (tags == NULL) {
        return end_full(rpc);
    }

    for (size_t i = 0; i < n; i++) {
        tags[i] = (struct hearth_span_tag){hearth_str_c(in[i]->key), hearth_str_c(in[i]->value)};
    }

    ret->tags = tags;
    ret->n_tags = n;

    return HEARTH_OK;
}

static enum hearth_status fail_nothing(struct hearth_rpc *rpc,
                                       const struct hearth_span_subject *subjects,
                                       const struct hearth_found *found, size_t n)
{
    struct hearth_str id = subjects[0].id;
    const char *about = id.n == 0 ? "no profiles of that service and time"
                                  : hearth_arena_printf(&rpc->arena, "no profiles of %s%s \"%.*s\"",
                                                        n > 1 ? "any of these, such as " : "",
                                                        subjects[0].is_trace ? "trace" : "span",
                                                        id.n > 64 ? 64 : (int)id.n, id.p);

    /* Name the first subject, the reason and the searched places. */
    if (about == NULL) {
        return end_full(rpc);
    }

    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_printf(&text, "%s: ", about);
    hearth_buf_str(&text, found[0].reason);
    hearth_buf_cstr(&text, "; searched: ");
    hearth_buf_str(&text, found[0].searched);

    /* Trailers of gRPC have room for some kilobytes, and a byte may be encoded in three. */
    if (text.n > MAX_MESSAGE_BYTES) {
        for (text.n = MAX_MESSAGE_BYTES; ((unsigned char)text.p[text.n] & 0xC0) == 0x80;) {
            text.n--; /* do not split a character */
        }
    }

    /* The message must live as long as the call: it is copied to the arena. */
    const char *all =
        hearth_buf_failed(&text) ? NULL : hearth_arena_strndup(&rpc->arena, text.p, text.n);
    hearth_buf_release(&text);
    if (all == NULL) {
        return end_full(rpc);
    }

    rpc->long_message = all;

    return HEARTH_FAIL(&rpc->err, HEARTH_NOT_FOUND, "%s", all);
}

static enum hearth_status lookup(struct hearth_rpc *rpc, const struct hearth_span_subject *subjects,
                                 size_t n, const Hearth__V1__LookupOptions *asked)
{
    struct hearth_query query = hearth_rpc_query(rpc, 0, 0);
    struct hearth_lookup_options options;
    struct hearth_found *found = hearth_arena_calloc(&rpc->arena, n, sizeof *found);
    Hearth__V1__LookupResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (found == NULL || out == NULL) {
        return end_full(rpc);
    }

    /* Read the options, and query. */
    HEARTH_TRY(read_options(rpc, asked, &options));
    HEARTH_TRY(hearth_query_lookup_spans(&query, subjects, n, &options, found, &rpc->err));

    /* It is an error if nothing is found for any subject. */
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        n_found += found[i].certainty != HEARTH_CERTAINTY_NONE;
    }

    if (n_found == 0) {
        return fail_nothing(rpc, subjects, found, n);
    }

    /* Make one message for each subject. */
    hearth__v1__lookup_response__init(out);
    MAKE_ALL(rpc, n, Hearth__V1__Lookup, hearth__v1__lookup__init, &out->results)
    for (size_t i = 0; i < n && !rpc->arena.refused; i++) {
        make_lookup(rpc, &subjects[i], &found[i], out->results[i]);
    }

    out->n_results = n;
    rpc->answer = &out->base;

    return rpc->arena.refused ? end_full(rpc) : HEARTH_OK;
}

static enum hearth_status lookup_span(struct hearth_rpc *rpc)
{
    const Hearth__V1__LookupSpanRequest *in = (const Hearth__V1__LookupSpanRequest *)rpc->request;
    struct hearth_span_subject *subjects =
        hearth_arena_calloc(&rpc->arena, in->n_spans, sizeof *subjects);

    if (in->n_spans == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "spans are required");
    }

    for (size_t i = 0; i < in->n_spans && subjects != NULL; i++) {
        const Hearth__V1__SpanRef *span = in->spans[i];
        subjects[i] = (struct hearth_span_subject){.id = hearth_str_c(span->span_id),
                                                   .service = hearth_str_c(span->service),
                                                   .start_ns = span->start_ns,
                                                   .end_ns = span->end_ns};
        HEARTH_TRY(read_tags(rpc, span->tags, span->n_tags, &subjects[i]));
    }

    return subjects == NULL ? end_full(rpc) : lookup(rpc, subjects, in->n_spans, in->options);
}

void hearth_svc_lookup_span(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, lookup_span(rpc));
}

static enum hearth_status lookup_trace(struct hearth_rpc *rpc)
{
    const Hearth__V1__LookupTraceRequest *in = (const Hearth__V1__LookupTraceRequest *)rpc->request;
    struct hearth_span_subject *subjects =
        hearth_arena_calloc(&rpc->arena, in->n_traces, sizeof *subjects);

    if (in->n_traces == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "traces are required");
    }

    for (size_t i = 0; i < in->n_traces && subjects != NULL; i++) {
        const Hearth__V1__TraceRef *trace = in->traces[i];
        subjects[i] = (struct hearth_span_subject){.is_trace = true,
                                                   .id = hearth_str_c(trace->trace_id),
                                                   .service = hearth_str_c(trace->service),
                                                   .start_ns = trace->start_ns,
                                                   .end_ns = trace->end_ns};
        HEARTH_TRY(read_tags(rpc, trace->tags, trace->n_tags, &subjects[i]));
    }

    return subjects == NULL ? end_full(rpc) : lookup(rpc, subjects, in->n_traces, in->options);
}

void hearth_svc_lookup_trace(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, lookup_trace(rpc));
}
