/* svc_lookups.c -- hearth.v1.TraceProfileService: profiles of spans and traces. */
#include "hearth/engine/span_profiles.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "handlers.h"
#include "query/query_maps.h"
#include "rpc/unary.h"
#include "spans/svc_spans.h"

#define DEFAULT_PAD_MS       INT64_C(60000)
#define DEFAULT_MAX_PROFILES 100
#define MAX_MESSAGE_BYTES    2000
#define MAX_PAD_MS           (INT64_MAX / HEARTH_NS_PER_MS / 4)

/* ---- ids as texts ---- */

char **hearth_rpc_span_texts(struct hearth_rpc *rpc, const uint64_t *ids, size_t n)
{
    assert(n == 0 || ids != NULL);

    char **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    for (size_t i = 0; i < n && list != NULL; i++) {
        list[i] = hearth_rpc_span_text(rpc, ids[i]);
    }

    return list;
}

static char **make_trace_texts(struct hearth_rpc *rpc, const struct hearth_trace_id *ids, size_t n)
{
    char **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    for (size_t i = 0; i < n && list != NULL; i++) {
        list[i] = hearth_rpc_trace_text(rpc, ids[i]);
    }

    return list;
}

/* ---- stored spans as messages ---- */

/* SkyWalking's spans are numbered within their segment, so the text of an id names it, too. */
static char *make_stored_id(struct hearth_rpc *rpc, const struct hearth_stored_span *stored,
                            uint64_t id)
{
    return stored->segment.n == 0
               ? hearth_rpc_span_text(rpc, id)
               : hearth_arena_printf(&rpc->arena, "%.*s/%lld", (int)stored->segment.n,
                                     stored->segment.p, (long long)id);
}

HEARTH_MAP_TYPES(tag, struct hearth_span_tag, Hearth__V1__SpanTag);
static const struct hearth_message_member tag_members[] = {
    HEARTH_MAP(tag, key, key),
    HEARTH_MAP(tag, value, value),
};
static const struct hearth_message_map tag_map =
    HEARTH_MESSAGE_MAP(tag, hearth__v1__span_tag__descriptor);

static void fill_span_enums(struct hearth_rpc *rpc, const void *from, void *message)
{
    static const char *const kinds[HEARTH_N_SPAN_KINDS] = {"local", "entry", "exit", "producer",
                                                           "consumer"};
    static const char *const statuses[HEARTH_N_SPAN_STATUSES] = {"unset", "ok", "error"};
    const struct hearth_span *span = from;
    Hearth__V1__StoredSpan *out = message;

    out->kind = hearth_rpc_text(rpc, hearth_str_c(kinds[span->kind]));
    out->status = hearth_rpc_text(rpc, hearth_str_c(statuses[span->status]));
}

/* The fields that the tracer sent, without the ids. */
HEARTH_MAP_TYPES(span, struct hearth_span, Hearth__V1__StoredSpan);
static const struct hearth_message_member span_members[] = {
    HEARTH_MAP(span, name, name),
    HEARTH_MAP(span, start_ns, start_ns),
    HEARTH_MAP(span, end_ns, end_ns),
    HEARTH_MAP_LIST(span, tags, n_tags, tags, &tag_map),
};
static const struct hearth_message_map span_map =
    HEARTH_MESSAGE_MAP_AND(span, hearth__v1__stored_span__descriptor, fill_span_enums);

static void fill_stored_rest(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_stored_span *stored = from;
    Hearth__V1__StoredSpan *out = message;

    assert(stored->span != NULL);
    hearth_rpc_map_into(rpc, &span_map, stored->span, out);

    /* Ids: a stored span has a segment if it is SkyWalking's. */
    out->span_id = make_stored_id(rpc, stored, stored->span_id);
    out->trace_id = stored->segment.n == 0 ? hearth_rpc_trace_text(rpc, stored->trace)
                                           : hearth_rpc_text(rpc, stored->trace_text);
    if (stored->span->has_parent) {
        out->parent_id = make_stored_id(rpc, stored, stored->parent_id);
    }
}

HEARTH_MAP_TYPES(stored, struct hearth_stored_span, Hearth__V1__StoredSpan);
static const struct hearth_message_member stored_members[] = {
    HEARTH_MAP(stored, service, service),
    HEARTH_MAP(stored, instance, instance),
};
const struct hearth_message_map hearth_stored_span_map =
    HEARTH_MESSAGE_MAP_AND(stored, hearth__v1__stored_span__descriptor, fill_stored_rest);

static void fill_stored_of_pointer(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_stored_span *const *stored = from;
    hearth_rpc_map_into(rpc, &hearth_stored_span_map, *stored, message);
}

/* For arrays of pointers to stored spans. */
static const struct hearth_message_map stored_pointer_map = {
    .descriptor = &hearth__v1__stored_span__descriptor,
    .struct_bytes = sizeof(const struct hearth_stored_span *),
    .fill_rest = fill_stored_of_pointer,
};

/* ---- found profiles and spans as messages ---- */

HEARTH_MAP_TYPES(type, struct hearth_found_type, Hearth__V1__FoundType);
static const struct hearth_message_member type_members[] = {
    HEARTH_MAP(type, profile_type, profile_type),
    HEARTH_MAP(type, unit, unit),
    HEARTH_MAP(type, total, total),
    HEARTH_MAP(type, n_profiles, profile_count),
};
static const struct hearth_message_map type_map =
    HEARTH_MESSAGE_MAP(type, hearth__v1__found_type__descriptor);

HEARTH_MAP_TYPES(profile, struct hearth_found_profile, Hearth__V1__FoundProfile);
static const struct hearth_message_member profile_members[] = {
    HEARTH_MAP(profile, id, profile_id),        HEARTH_MAP(profile, service, service),
    HEARTH_MAP(profile, time_ns, time_ns),      HEARTH_MAP(profile, duration_ns, duration_ns),
    HEARTH_MAP_LABELS(profile, labels, labels),
};
static const struct hearth_message_map profile_map =
    HEARTH_MESSAGE_MAP(profile, hearth__v1__found_profile__descriptor);

/* The id of a stored span has the form of its tracer. */
static void fill_found_span_rest(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_found_span *found = from;
    Hearth__V1__FoundSpan *out = message;

    if (found->stored == NULL) {
        out->span_id = hearth_rpc_span_text(rpc, found->span_id);
    } else {
        out->span_id = make_stored_id(rpc, found->stored, found->stored->span_id);
        out->span = hearth_rpc_map(rpc, &hearth_stored_span_map, found->stored);
    }
}

HEARTH_MAP_TYPES(found_span, struct hearth_found_span, Hearth__V1__FoundSpan);
static const struct hearth_message_member found_span_members[] = {
    HEARTH_MAP(found_span, service, service),
    HEARTH_MAP_LIST(found_span, types, n_types, types, &type_map),
};
static const struct hearth_message_map found_span_map =
    HEARTH_MESSAGE_MAP_AND(found_span, hearth__v1__found_span__descriptor, fill_found_span_rest);

static void fill_lookup_rest(struct hearth_rpc *rpc, const void *from, void *message)
{
    static const Hearth__V1__Certainty certainties[] = {
        [HEARTH_CERTAINTY_NONE] = HEARTH__V1__CERTAINTY__CERTAINTY_UNSPECIFIED,
        [HEARTH_CERTAINTY_EXACT] = HEARTH__V1__CERTAINTY__CERTAINTY_EXACT,
        [HEARTH_CERTAINTY_WINDOW] = HEARTH__V1__CERTAINTY__CERTAINTY_WINDOW,
    };
    const struct hearth_found *found = from;
    Hearth__V1__Lookup *out = message;

    assert((size_t)found->certainty < HEARTH_ARRAY_LEN(certainties));
    out->certainty = certainties[found->certainty];
    out->span_ids = hearth_rpc_span_texts(rpc, found->span_ids, found->n_span_ids);
    out->n_span_ids = found->n_span_ids;
    out->trace_ids = make_trace_texts(rpc, found->trace_ids, found->n_trace_ids);
    out->n_trace_ids = found->n_trace_ids;
}

/* All but the id, which is the subject's. */
HEARTH_MAP_TYPES(lookup, struct hearth_found, Hearth__V1__Lookup);
static const struct hearth_message_member lookup_members[] = {
    HEARTH_MAP_LIST(lookup, types, n_types, types, &type_map),
    HEARTH_MAP_LIST(lookup, profiles, n_profiles, profiles, &profile_map),
    HEARTH_MAP(lookup, n_all_profiles, profile_count),
    HEARTH_MAP(lookup, selector, label_selector),
    HEARTH_MAP(lookup, start_ms, start),
    HEARTH_MAP(lookup, end_ms, end),
    HEARTH_MAP_LIST(lookup, spans, n_spans, spans, &found_span_map),
    HEARTH_MAP_LIST(lookup, stored, n_stored, stored, &stored_pointer_map),
    HEARTH_MAP(lookup, searched, searched),
    HEARTH_MAP(lookup, reason, reason),
};
static const struct hearth_message_map lookup_map =
    HEARTH_MESSAGE_MAP_AND(lookup, hearth__v1__lookup__descriptor, fill_lookup_rest);

/* ---- LookupSpan, LookupTrace ---- */

static enum hearth_status read_window_options(struct hearth_rpc *rpc,
                                              const Hearth__V1__WindowOptions *in,
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
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_tags; i++) {
        mappings[i] = (struct hearth_tag_mapping){hearth_str_c(in->tags[i]->tag),
                                                  hearth_str_c(in->tags[i]->label)};
    }

    ret->rules = (struct hearth_tag_rules){mappings, in->n_tags, hearth_str_c(in->query)};

    return HEARTH_OK;
}

static enum hearth_status read_lookup_options(struct hearth_rpc *rpc,
                                              const Hearth__V1__LookupOptions *in,
                                              struct hearth_lookup_options *ret)
{
    *ret = (struct hearth_lookup_options){.max_profiles = DEFAULT_MAX_PROFILES};
    HEARTH_TRY(read_window_options(rpc, in == NULL ? NULL : in->window, ret));
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

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

static enum hearth_status read_subject_tags(struct hearth_rpc *rpc, Hearth__V1__SpanTag *const *in,
                                            size_t n, struct hearth_span_subject *ret)
{
    struct hearth_span_tag *tags = hearth_arena_array(&rpc->arena, n, sizeof *tags);
    if (tags == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        tags[i] = (struct hearth_span_tag){hearth_str_c(in[i]->key), hearth_str_c(in[i]->value)};
    }

    ret->tags = tags;
    ret->n_tags = n;

    return HEARTH_OK;
}

static enum hearth_status fail_not_found(struct hearth_rpc *rpc,
                                         const struct hearth_span_subject *subjects,
                                         const struct hearth_found *found, size_t n)
{
    assert(n > 0);

    struct hearth_str id = subjects[0].id;
    const char *about = id.n == 0 ? "no profiles of that service and time"
                                  : hearth_arena_printf(&rpc->arena, "no profiles of %s%s \"%.*s\"",
                                                        n > 1 ? "any of these, such as " : "",
                                                        subjects[0].is_trace ? "trace" : "span",
                                                        id.n > 64 ? 64 : (int)id.n, id.p);

    /* Name the first subject, the reason and the searched places. */
    if (about == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
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
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->long_message = all;

    return HEARTH_FAIL(&rpc->err, HEARTH_NOT_FOUND, "%s", all);
}

static enum hearth_status lookup_subjects(struct hearth_rpc *rpc,
                                          const struct hearth_span_subject *subjects, size_t n,
                                          const Hearth__V1__LookupOptions *requested,
                                          Hearth__V1__LookupResponse *out)
{
    struct hearth_query query = hearth_rpc_query(rpc, 0, 0);
    struct hearth_lookup_options options;
    struct hearth_explanation plan = {0};
    struct hearth_found *found = hearth_arena_calloc(&rpc->arena, n, sizeof *found);
    if (found == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    assert(n > 0); /* the handlers refuse requests without subjects */

    /* Read the options, and query. */
    HEARTH_TRY(read_lookup_options(rpc, requested, &options));
    bool is_plan = requested != NULL && requested->explain;
    query.plan = is_plan ? &plan : NULL;
    HEARTH_TRY(hearth_query_lookup_spans(&query, subjects, n, &options, found, &rpc->err));

    if (is_plan) {
        out->plan = hearth_rpc_map(rpc, &hearth_explanation_map, &plan);
        return HEARTH_OK;
    }

    /* It is an error if nothing is found for any subject. */
    size_t n_found = 0;
    for (size_t i = 0; i < n; i++) {
        n_found += found[i].certainty != HEARTH_CERTAINTY_NONE;
    }

    if (n_found == 0) {
        return fail_not_found(rpc, subjects, found, n);
    }

    /* Make one message for each subject. */
    HEARTH_RPC_LIST(rpc, &lookup_map, found, n, out, results);
    for (size_t i = 0; i < out->n_results; i++) {
        out->results[i]->id = hearth_rpc_text(rpc, subjects[i].id);
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_lookup_span, Hearth__V1__LookupSpanRequest, Hearth__V1__LookupResponse)
{
    struct hearth_span_subject *subjects =
        hearth_arena_calloc(&rpc->arena, in->n_spans, sizeof *subjects);
    if (subjects == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    if (in->n_spans == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "spans are required");
    }

    for (size_t i = 0; i < in->n_spans; i++) {
        const Hearth__V1__SpanRef *span = in->spans[i];
        subjects[i] = (struct hearth_span_subject){.id = hearth_str_c(span->span_id),
                                                   .service = hearth_str_c(span->service),
                                                   .start_ns = span->start_ns,
                                                   .end_ns = span->end_ns};
        HEARTH_TRY(read_subject_tags(rpc, span->tags, span->n_tags, &subjects[i]));
    }

    return lookup_subjects(rpc, subjects, in->n_spans, in->options, out);
}

HEARTH_UNARY(hearth_svc_lookup_trace, Hearth__V1__LookupTraceRequest, Hearth__V1__LookupResponse)
{
    struct hearth_span_subject *subjects =
        hearth_arena_calloc(&rpc->arena, in->n_traces, sizeof *subjects);
    if (subjects == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    if (in->n_traces == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "traces are required");
    }

    for (size_t i = 0; i < in->n_traces; i++) {
        const Hearth__V1__TraceRef *trace = in->traces[i];
        subjects[i] = (struct hearth_span_subject){.is_trace = true,
                                                   .id = hearth_str_c(trace->trace_id),
                                                   .service = hearth_str_c(trace->service),
                                                   .start_ns = trace->start_ns,
                                                   .end_ns = trace->end_ns};
        HEARTH_TRY(read_subject_tags(rpc, trace->tags, trace->n_tags, &subjects[i]));
    }

    return lookup_subjects(rpc, subjects, in->n_traces, in->options, out);
}
