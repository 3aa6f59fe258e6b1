/*
 * svc_otlp_traces.c -- spans by OpenTelemetry's protocol: TraceService/Export, and POST /v1/traces.
 *
 * Only the fields that lead from spans to profiles are passed on: ids, service, instance, name,
 * kind, times, status, and the attributes that otlp-span-attributes names. An attribute of the span
 * overrides the attribute of its resource. A span with invalid ids is left out by itself; the
 * answer counts such spans.
 */
#include "hearth/base/metrics.h"
#include "hearth/codec/pb.h"
#include "hearth/engine/exported_spans.h"
#include "hearth/pb/opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include "handlers.h"
#include "http/http_call.h"
#include "http/otlp_headers.h"
#include "rpc/agent_methods.h"
#include "rpc/messages.h"
#include "rpc/trace_call.h"
#include "spans/otlp_values.h"

#include <assert.h>

#define UNKNOWN_SERVICE "unknown_service"

/* A request while its spans are read; all arrays live in the request's arena. */
struct intake {
    struct hearth_rpc *rpc;
    struct hearth_str *names; /* names of the attributes that are kept */
    size_t n_names;
    struct hearth_str *inherited; /* [n_names]: values of the resource; empty: no value */
    struct hearth_export_resource *resources;
    size_t n_resources;
    size_t at_resource, at_scope, at_span; /* position, for error messages */
    size_t n_invalid;                      /* number of spans without valid ids */
    struct hearth_err first;               /* the error of the first invalid span */
};

static bool read_attribute_names(struct intake *intake)
{
    const char *const *names = intake->rpc->front->options.otlp.span_attributes;
    size_t n = 0;

    while (names != NULL && names[n] != NULL) {
        n++;
    }

    /* Copy the option as views. */
    intake->names = hearth_arena_array(&intake->rpc->arena, n, sizeof *intake->names);
    intake->inherited = hearth_arena_calloc(&intake->rpc->arena, n, sizeof *intake->inherited);
    for (size_t i = 0; i < n && intake->names != NULL; i++) {
        intake->names[i] = hearth_str_c(names[i]);
    }

    intake->n_names = n;

    return !intake->rpc->arena.refused;
}

/* ---- ids ---- */

static bool has_set_byte(const ProtobufCBinaryData *bytes)
{
    for (size_t i = 0; i < bytes->len; i++) {
        if (bytes->data[i] != 0) {
            return true;
        }
    }

    return false;
}

static enum hearth_status check_id(const struct intake *intake, const ProtobufCBinaryData *id,
                                   size_t n_bytes, const char *field, struct hearth_err *err)
{
    assert(n_bytes == 8 || n_bytes == 16);
    if (id->len == n_bytes && has_set_byte(id)) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "resource_spans[%zu].scope_spans[%zu].spans[%zu].%s has %zu bytes%s: %zu "
                       "are needed, not all of them 0",
                       intake->at_resource, intake->at_scope, intake->at_span, field, id->len,
                       id->len == n_bytes ? ", all 0" : "", n_bytes);
}

static enum hearth_status check_ids(const struct intake *intake,
                                    const Opentelemetry__Proto__Trace__V1__Span *in,
                                    struct hearth_err *err)
{
    HEARTH_TRY(check_id(intake, &in->trace_id, 16, "trace_id", err));
    HEARTH_TRY(check_id(intake, &in->span_id, 8, "span_id", err));
    return has_set_byte(&in->parent_span_id)
               ? check_id(intake, &in->parent_span_id, 8, "parent_span_id", err)
               : HEARTH_OK;
}

static struct hearth_str view_bytes(const ProtobufCBinaryData *id)
{
    return hearth_str_n((const char *)id->data, id->len);
}

/* ---- attributes ---- */

static bool has_kept_attribute(const struct intake *intake,
                               Opentelemetry__Proto__Common__V1__KeyValue *const *attributes,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hearth_str key = hearth_str_c(attributes[i]->key);
        for (size_t k = 0; k < intake->n_names; k++) {
            if (hearth_str_eq(key, intake->names[k])) {
                return true;
            }
        }
    }

    return false;
}

/* The kept attributes, in the order of the option; those of the span override its resource's. */
static struct hearth_span_tag *
make_kept_tags(struct intake *intake, Opentelemetry__Proto__Common__V1__KeyValue *const *attributes,
               size_t n, size_t *ret_n)
{
    struct hearth_arena *arena = &intake->rpc->arena;
    struct hearth_span_tag *tags = hearth_arena_array(arena, intake->n_names, sizeof *tags);

    *ret_n = 0;
    for (size_t i = 0; i < intake->n_names && tags != NULL; i++) {
        struct hearth_str own = hearth_otlp_attribute(attributes, n, intake->names[i], arena);
        struct hearth_str value = own.n > 0 ? own : intake->inherited[i];
        if (value.n > 0) {
            tags[(*ret_n)++] = (struct hearth_span_tag){intake->names[i], value};
        }
    }

    return tags;
}

static struct hearth_str
find_first_attribute(const Opentelemetry__Proto__Resource__V1__Resource *resource,
                     const char *const *names, size_t n, struct hearth_arena *arena)
{
    struct hearth_str found = {0};
    for (size_t i = 0; i < n && found.n == 0 && resource != NULL; i++) {
        found = hearth_otlp_attribute(resource->attributes, resource->n_attributes,
                                      hearth_str_c(names[i]), arena);
    }

    return found;
}

/* ---- spans ---- */

static enum hearth_span_kind map_otlp_kind(Opentelemetry__Proto__Trace__V1__Span__SpanKind kind)
{
    switch (kind) {
    case OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER:
        return HEARTH_SPAN_ENTRY;
    case OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_CLIENT:
        return HEARTH_SPAN_EXIT;
    case OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_PRODUCER:
        return HEARTH_SPAN_PRODUCER;
    case OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_CONSUMER:
        return HEARTH_SPAN_CONSUMER;
    default:
        return HEARTH_SPAN_LOCAL;
    }
}

static enum hearth_span_status
map_otlp_status(const Opentelemetry__Proto__Trace__V1__Status *status)
{
    if (status == NULL) {
        return HEARTH_SPAN_UNSET;
    }

    switch (status->code) {
    case OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_OK:
        return HEARTH_SPAN_OK;
    case OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR:
        return HEARTH_SPAN_ERROR;
    default:
        return HEARTH_SPAN_UNSET;
    }
}

/* A start that is 0 or beyond int64_t becomes INT64_MIN; an end beyond int64_t, INT64_MAX. */
static int64_t clamp_start(uint64_t ns)
{
    return ns == 0 || ns > INT64_MAX ? INT64_MIN : (int64_t)ns;
}

static int64_t clamp_end(uint64_t ns)
{
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static void read_otlp_span(struct intake *intake, const Opentelemetry__Proto__Trace__V1__Span *in,
                           const struct hearth_span *like, struct hearth_export_resource *to)
{
    assert(to->spans != NULL);

    /* A span with invalid ids is counted; the first error is kept. */
    struct hearth_err err = HEARTH_ERR_INIT;
    if (check_ids(intake, in, &err) != HEARTH_OK) {
        if (intake->n_invalid++ == 0) {
            intake->first = err;
        }

        return;
    }

    /* Ids, kind, status, times and name. */
    struct hearth_exported_span *out = &to->spans[to->n_spans++];
    out->trace = hearth_trace_id_of_bytes(view_bytes(&in->trace_id));
    out->span = (struct hearth_span){
        .span_id = (int64_t)hearth_span_id_of_bytes(view_bytes(&in->span_id)),
        .parent_id = (int64_t)hearth_span_id_of_bytes(view_bytes(&in->parent_span_id)),
        .has_parent = has_set_byte(&in->parent_span_id),
        .kind = map_otlp_kind(in->kind),
        .status = map_otlp_status(in->status),
        .start_ns = clamp_start(in->start_time_unix_nano),
        .end_ns = clamp_end(in->end_time_unix_nano),
        .name = hearth_str_c(in->name),
        .tags = like->tags, /* spans without kept attributes share an array */
        .n_tags = like->n_tags,
    };

    /* Kept attributes of the span itself. */
    if (has_kept_attribute(intake, in->attributes, in->n_attributes)) {
        out->span.tags =
            make_kept_tags(intake, in->attributes, in->n_attributes, &out->span.n_tags);
    }
}

static void read_otlp_resource(struct intake *intake,
                               const Opentelemetry__Proto__Trace__V1__ResourceSpans *in,
                               struct hearth_export_resource *to)
{
    static const char *const services[] = {"service.name"};
    static const char *const instances[] = {"service.instance.id", "k8s.pod.name", "pod",
                                            "host.name", "hostname"};
    const Opentelemetry__Proto__Resource__V1__Resource *resource = in->resource;
    struct hearth_arena *arena = &intake->rpc->arena;
    struct hearth_span like = {0};
    size_t n = 0;

    assert(intake->n_names == 0 || intake->inherited != NULL);

    /* Service and instance. */
    to->service = find_first_attribute(resource, services, HEARTH_ARRAY_LEN(services), arena);
    to->service = to->service.n > 0 ? to->service : HEARTH_STR(UNKNOWN_SERVICE);
    to->instance = find_first_attribute(resource, instances, HEARTH_ARRAY_LEN(instances), arena);

    /* Attributes that spans inherit. */
    for (size_t i = 0; i < intake->n_names; i++) {
        intake->inherited[i] =
            resource == NULL ? hearth_str_n(NULL, 0)
                             : hearth_otlp_attribute(resource->attributes, resource->n_attributes,
                                                     intake->names[i], arena);
    }

    like.tags = make_kept_tags(intake, NULL, 0, &like.n_tags);

    /* Spans of all scopes. */
    for (size_t i = 0; i < in->n_scope_spans; i++) {
        n += in->scope_spans[i]->n_spans;
    }

    to->spans = hearth_arena_array(arena, n, sizeof *to->spans);
    for (size_t i = 0; i < in->n_scope_spans && to->spans != NULL; i++) {
        intake->at_scope = i;
        for (size_t k = 0; k < in->scope_spans[i]->n_spans; k++) {
            intake->at_span = k;
            read_otlp_span(intake, in->scope_spans[i]->spans[k], &like, to);
        }
    }
}

static enum hearth_status
read_otlp_resources(struct intake *intake,
                    const Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest *in)
{
    struct hearth_rpc *rpc = intake->rpc;

    intake->resources =
        hearth_arena_calloc(&rpc->arena, in->n_resource_spans, sizeof *intake->resources);
    if (intake->resources == NULL || !read_attribute_names(intake)) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Read each resource; its position is kept for error messages. */
    intake->n_resources = in->n_resource_spans;
    for (size_t i = 0; i < in->n_resource_spans; i++) {
        intake->at_resource = i;
        read_otlp_resource(intake, in->resource_spans[i], &intake->resources[i]);
    }

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* ---- the answer ---- */

/* Appends a count and a reason, such as ", 3 beyond max-otlp-span-rate"; nothing if n is 0. */
static void add_reason(struct hearth_buf *text, size_t n, const char *what)
{
    if (n > 0) {
        hearth_buf_printf(text, "%s%zu %s", text->n == 0 ? "" : ", ", n, what);
    }
}

static char *explain_rejected_spans(const struct intake *intake,
                                    const struct hearth_export_outcome *outcome)
{
    struct hearth_rpc *rpc = intake->rpc;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    add_reason(&text, intake->n_invalid, "without valid ids");
    if (intake->n_invalid > 0) {
        hearth_buf_printf(&text, " (%s%s)", intake->n_invalid > 1 ? "the first: " : "",
                          intake->first.msg);
    }

    add_reason(&text, outcome->n_untimely,
               "that did not begin within retain-spans or began in the future");
    add_reason(&text, outcome->n_too_many, "beyond max-otlp-span-rate");

    /* The text is copied to the arena; the reasons are left out without memory for all of them. */
    bool has_reasons = !hearth_buf_failed(&text) && text.n > 0;
    char *copy = has_reasons ? hearth_arena_printf(&rpc->arena, "spans are not kept: %.*s",
                                                   (int)text.n, text.p)
                             : hearth_rpc_text(rpc, HEARTH_STR("spans are not kept"));
    hearth_buf_release(&text);

    return copy;
}

/* Spans that sampling leaves out are not counted as rejected. */
static enum hearth_status
make_otlp_answer(struct intake *intake, const struct hearth_export_outcome *outcome,
                 Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse **ret)
{
    struct hearth_arena *arena = &intake->rpc->arena;
    struct {
        Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse answer;
        Opentelemetry__Proto__Collector__Trace__V1__ExportTracePartialSuccess partial;
    } *made = hearth_arena_alloc(arena, sizeof *made);
    if (made == NULL) {
        return HEARTH_FAIL_ARENA(&intake->rpc->err, arena);
    }

    opentelemetry__proto__collector__trace__v1__export_trace_service_response__init(&made->answer);
    opentelemetry__proto__collector__trace__v1__export_trace_partial_success__init(&made->partial);

    /* Say how many spans are rejected, and why. */
    size_t n = intake->n_invalid + outcome->n_untimely + outcome->n_too_many;
    if (n > 0) {
        made->partial.rejected_spans = (int64_t)n;
        made->partial.error_message = explain_rejected_spans(intake, outcome);
        made->answer.partial_success = &made->partial;
    }

    *ret = &made->answer;

    return arena->refused ? HEARTH_FAIL_ARENA(&intake->rpc->err, arena) : HEARTH_OK;
}

/* ---- the request ---- */

static enum hearth_status
take_export(struct hearth_rpc *rpc, struct hearth_trace_call *call,
            const Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest *in,
            Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse **ret)
{
    struct hearth_call context = hearth_rpc_call(rpc);
    struct intake intake = {.rpc = rpc};
    struct hearth_export_outcome outcome;

    /* Read the options and the spans. */
    const char *text = rpc->front->options.otlp.traces_ratio;
    double ratio = 1;
    if (text != NULL && !hearth_sampling_ratio_parse(hearth_str_c(text), &ratio)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INTERNAL, "otlp-traces-ratio is \"%s\"", text);
    }

    HEARTH_TRY(read_otlp_resources(&intake, in));

    /* The call waits for the commit if the engine has accepted data. */
    struct hearth_traces_waiter waiter = {hearth_trace_call_done, call, false};
    hearth_trace_call_expect(call);
    enum hearth_status status = hearth_traces_take_export(
        &context, ratio, intake.resources, intake.n_resources, &waiter, &outcome, &rpc->err);
    if (!waiter.waits) {
        hearth_trace_call_forget(call);
    }

    HEARTH_TRY(status);

    /* Count the spans that were left out. */
    if (intake.n_invalid > 0) {
        hearth_metric_add(HEARTH_M_OTLP_SPANS, (int64_t)intake.n_invalid);
        hearth_metric_add_label(HEARTH_M_OTLP_SPANS_DROPPED, HEARTH_STR("invalid"),
                                (int64_t)intake.n_invalid);
    }

    return make_otlp_answer(&intake, &outcome, ret);
}

void hearth_svc_otlp_traces(struct hearth_rpc *rpc)
{
    struct hearth_trace_call *call = hearth_trace_call_of(rpc);
    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for an export"));
        return;
    }

    /* Take the spans; the call ends when they are committed. */
    Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse *answer = NULL;
    enum hearth_status status = take_export(
        rpc, call,
        (const Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest *)rpc->request,
        &answer);
    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, status);
        return;
    }

    rpc->answer = &answer->base;
    hearth_trace_call_end(rpc, call);
}

/* Decodes the message of a plain HTTP request; *ret_codec is the codec of the answer, too. */
static enum hearth_status read_otlp_body(struct hearth_rpc *rpc, enum hearth_rpc_codec *ret_codec,
                                         struct ProtobufCMessage **ret)
{
    struct hearth_inflater *inflater = hearth_rpc_inflater();
    enum hearth_compression compression;

    assert(rpc->http != NULL && rpc->drop_body != NULL);

    HEARTH_TRY(hearth_otlp_headers_read(rpc, ret_codec, &compression));

    /* Decode the body. */
    if (inflater == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    const struct hearth_rpc_body body = {rpc->body, *ret_codec, compression,
                                         (size_t)rpc->front->options.max_request_bytes, inflater};
    HEARTH_TRY(hearth_body_decode(
        &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor,
        &body, &rpc->arena, ret, &rpc->err));
    rpc->drop_body(rpc); /* the message holds copies */
    rpc->drop_body = NULL;

    return HEARTH_OK;
}

/*
 * The status of a failed request. A request that exceeds the limit of its arena is TOO_LARGE,
 * so that the client does not repeat it; a request that finds the shared memory in use may be
 * repeated.
 */
static enum hearth_status judge_otlp_failure(struct hearth_rpc *rpc, enum hearth_status status)
{
    status = hearth_rpc_judge_memory(rpc, 0, status);
    if (status != HEARTH_NO_MEMORY || !rpc->arena.refused || rpc->arena.over_budget) {
        return status;
    }

    return HEARTH_FAIL(&rpc->err, HEARTH_TOO_LARGE,
                       "the spans of this request need more than %zu bytes of memory, which is due "
                       "to max-request-bytes: send fewer at once",
                       rpc->arena.limit_bytes);
}

void hearth_http_otlp_traces(struct hearth_rpc *rpc)
{
    struct hearth_trace_call *call = hearth_trace_call_of(rpc);
    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for an export"));
        return;
    }

    /* Decode and take the spans. */
    Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse *answer = NULL;
    struct ProtobufCMessage *in = NULL;
    enum hearth_rpc_codec codec = HEARTH_RPC_PROTO;
    enum hearth_status status = read_otlp_body(rpc, &codec, &in);
    if (status == HEARTH_OK) {
        status = take_export(
            rpc, call,
            (const Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest *)in,
            &answer);
    }

    if (status != HEARTH_OK) {
        hearth_rpc_end(rpc, judge_otlp_failure(rpc, status));
        return;
    }

    /* Answer in the codec of the request; the call ends when the spans are committed. */
    if (codec == HEARTH_RPC_JSON) {
        hearth_pb_to_json(&answer->base, &rpc->packed);
        rpc->http->answer_type = HEARTH_OTLP_JSON;
    } else {
        rpc->answer = &answer->base;
        rpc->http->answer_type = HEARTH_OTLP_PROTO;
    }

    hearth_trace_call_end(rpc, call);
}
