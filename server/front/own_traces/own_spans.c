/* own_spans.c -- spans as messages of OpenTelemetry (contract: own_spans.h). */
#include "own_traces/own_spans.h"

#include "hearth/codec/pb.h"
#include "hearth/pb/opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <assert.h>

#define MAX_PAIRS     6u
#define N_TRACE_BYTES 16u
#define N_SPAN_BYTES  8u

/* A span and what it points to. */
struct packed_span {
    Opentelemetry__Proto__Trace__V1__Span span;
    Opentelemetry__Proto__Trace__V1__Status status;
    Opentelemetry__Proto__Common__V1__KeyValue pairs[MAX_PAIRS], *pair_pointers[MAX_PAIRS];
    Opentelemetry__Proto__Common__V1__AnyValue values[MAX_PAIRS];
    uint8_t trace[N_TRACE_BYTES], id[N_SPAN_BYTES], parent[N_SPAN_BYTES];
};

static void write_big_endian(uint64_t number, uint8_t out[8])
{
    for (size_t i = 0; i < 8; i++) {
        out[i] = (uint8_t)(number >> (56 - 8 * i));
    }
}

static void set_pair(Opentelemetry__Proto__Common__V1__KeyValue *pair,
                     Opentelemetry__Proto__Common__V1__AnyValue *value, const char *key,
                     const char *text)
{
    opentelemetry__proto__common__v1__key_value__init(pair);
    opentelemetry__proto__common__v1__any_value__init(value);
    pair->key = (char *)(uintptr_t)key;
    pair->value = value;
    value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    value->string_value = (char *)(uintptr_t)text;
}

static void add_pair(struct packed_span *packed, const char *key, const char *text)
{
    size_t n = packed->span.n_attributes;

    assert(n < MAX_PAIRS);
    set_pair(&packed->pairs[n], &packed->values[n], key, text);
    packed->pair_pointers[n] = &packed->pairs[n];
    packed->span.attributes = packed->pair_pointers;
    packed->span.n_attributes = n + 1;
}

static void begin_packed(struct packed_span *packed, const char *name, struct hearth_trace_id trace,
                         uint64_t id, uint64_t parent)
{
    Opentelemetry__Proto__Trace__V1__Span *span = &packed->span;

    opentelemetry__proto__trace__v1__span__init(span);
    write_big_endian(trace.hi, packed->trace);
    write_big_endian(trace.lo, packed->trace + 8);
    write_big_endian(id, packed->id);
    write_big_endian(parent, packed->parent);
    span->trace_id = (ProtobufCBinaryData){.len = N_TRACE_BYTES, .data = packed->trace};
    span->span_id = (ProtobufCBinaryData){.len = N_SPAN_BYTES, .data = packed->id};
    if (parent != 0) {
        span->parent_span_id = (ProtobufCBinaryData){.len = N_SPAN_BYTES, .data = packed->parent};
    }
    span->name = (char *)(uintptr_t)name;
}

/* The span of the request. */
static void pack_request(const struct hearth_own_span *in, int64_t mono_to_wall_ns,
                         struct packed_span *packed)
{
    Opentelemetry__Proto__Trace__V1__Span *span = &packed->span;

    begin_packed(packed, in->name, in->trace, in->span, in->parent);
    span->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    span->start_time_unix_nano = (uint64_t)(in->began_mono_ns + mono_to_wall_ns);
    span->end_time_unix_nano = (uint64_t)(in->ended_mono_ns + mono_to_wall_ns);
    add_pair(packed, "rpc.system", in->transport);
    add_pair(packed, "rpc.method", in->name);
    add_pair(packed, "hearth.code", in->code);
    add_pair(packed, "hearth.request_id", in->request_id);
    if (in->tenant[0] != '\0') {
        add_pair(packed, "hearth.tenant", in->tenant);
    }
    if (in->steps.n_left_out > 0) {
        add_pair(packed, "hearth.steps", "some are left out");
    }

    /* A caller's mistake is not an error of the server's span. */
    if (in->is_fault) {
        opentelemetry__proto__trace__v1__status__init(&packed->status);
        packed->status.code =
            OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
        packed->status.message = (char *)(uintptr_t)in->code;
        span->status = &packed->status;
    }
}

/* A step below the request. Its id is made of the request's, which is random. */
static void pack_step(const struct hearth_own_span *in, size_t i, int64_t mono_to_wall_ns,
                      struct packed_span *packed)
{
    const struct hearth_work_step *step = &in->steps.v[i];

    begin_packed(packed, step->name, in->trace, in->span + i + 1, in->span);
    packed->span.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    packed->span.start_time_unix_nano = (uint64_t)(step->began_mono_ns + mono_to_wall_ns);
    packed->span.end_time_unix_nano = (uint64_t)(step->ended_mono_ns + mono_to_wall_ns);
}

enum hearth_status hearth_own_spans_encode(const struct hearth_own_span *spans, size_t n,
                                           const char *version, int64_t mono_to_wall_ns,
                                           struct hearth_arena *arena, struct hearth_buf *out,
                                           struct hearth_err *err)
{
    size_t n_all = n, k = 0;
    for (size_t i = 0; i < n; i++) {
        n_all += spans[i].steps.n;
    }

    struct packed_span *packed = hearth_arena_calloc(arena, n_all, sizeof *packed);
    Opentelemetry__Proto__Trace__V1__Span **pointers =
        hearth_arena_calloc(arena, n_all, sizeof(void *));
    if (packed == NULL || pointers == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        pack_request(&spans[i], mono_to_wall_ns, &packed[k++]);
        for (size_t step = 0; step < spans[i].steps.n; step++) {
            pack_step(&spans[i], step, mono_to_wall_ns, &packed[k++]);
        }
    }
    for (size_t i = 0; i < n_all; i++) {
        pointers[i] = &packed[i].span;
    }

    /* The envelope: one resource, one scope. */
    Opentelemetry__Proto__Common__V1__KeyValue pairs[2], *pair_pointers[2] = {&pairs[0], &pairs[1]};
    Opentelemetry__Proto__Common__V1__AnyValue values[2];
    set_pair(&pairs[0], &values[0], "service.name", "hearthd");
    set_pair(&pairs[1], &values[1], "service.version", version);

    Opentelemetry__Proto__Resource__V1__Resource resource;
    opentelemetry__proto__resource__v1__resource__init(&resource);
    resource.attributes = pair_pointers;
    resource.n_attributes = 2;

    Opentelemetry__Proto__Trace__V1__ScopeSpans scope, *scope_pointer = &scope;
    opentelemetry__proto__trace__v1__scope_spans__init(&scope);
    scope.spans = pointers;
    scope.n_spans = n_all;

    Opentelemetry__Proto__Trace__V1__ResourceSpans of_resource, *resource_pointer = &of_resource;
    opentelemetry__proto__trace__v1__resource_spans__init(&of_resource);
    of_resource.resource = &resource;
    of_resource.scope_spans = &scope_pointer;
    of_resource.n_scope_spans = 1;

    Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request;
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__init(&request);
    request.resource_spans = &resource_pointer;
    request.n_resource_spans = 1;
    hearth_pb_pack(&request.base, out);

    return hearth_buf_failed(out) ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the spans")
                                  : HEARTH_OK;
}
