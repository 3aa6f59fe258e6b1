/*
 * fuzz_pb_json.c -- protobuf and its JSON form, both ways, over the messages of our APIs.
 *
 * Byte 0 chooses the message type (127: one of every type of field, made for tests) and, by its top
 * bit, whether the rest is wire form or JSON. What
 * is accepted must survive: JSON -> message -> JSON -> message, wire -> message -> wire -> message,
 * and from one form to the other, without a difference.
 */
#include "hearth/codec/pb.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/grpc/health/v1/health.pb-c.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/pb/opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "hearth/pb/opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/skywalking/v3/management.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "all_types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const g_types[] = {
    &querier__v1__select_merge_stacktraces_request__descriptor,
    &querier__v1__select_merge_stacktraces_response__descriptor,
    &querier__v1__select_series_request__descriptor,
    &querier__v1__select_series_response__descriptor,
    &querier__v1__series_response__descriptor,
    &types__v1__label_values_request__descriptor,
    &google__v1__profile__descriptor,
    &push__v1__push_request__descriptor,
    &grpc__health__v1__health_check_response__descriptor,
    &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor,
    &skywalking__v3__event__descriptor,     /* a map */
    &hearth__v1__diff_response__descriptor, /* floats */
    &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor,
};

#define ALL_TYPES 127

static struct hearth_buf json_of(const ProtobufCMessage *message)
{
    struct hearth_buf json;
    hearth_buf_init(&json, 0);
    hearth_pb_to_json(message, &json);
    return json;
}

/* The same text in pieces of n bytes and what a step makes of them. */
static struct hearth_buf pieces_of(const ProtobufCMessage *message, size_t n,
                                   struct hearth_arena *arena)
{
    struct hearth_buf json;
    hearth_buf_init(&json, 0);
    struct hearth_pb_json *pieces = hearth_pb_json_new(message, arena);
    HEARTH_ASSERT(pieces != NULL);
    bool more = true;
    while (more) {
        size_t before = json.n;
        more = hearth_pb_json_more(pieces, n, &json);
        HEARTH_ASSERT(!more || json.n - before >= n);
        HEARTH_ASSERT(json.n - before < n + HEARTH_PB_JSON_STEP_BYTES);
    }
    hearth_pb_json_release(pieces);
    return json;
}

static struct hearth_buf wire_of(const ProtobufCMessage *message)
{
    struct hearth_buf wire;
    hearth_buf_init(&wire, 0);
    hearth_pb_pack(message, &wire);
    HEARTH_ASSERT(!hearth_buf_failed(&wire));
    return wire;
}

static void require_same(struct hearth_buf *a, struct hearth_buf *b)
{
    HEARTH_ASSERT(hearth_str_eq(hearth_buf_view(a), hearth_buf_view(b)));
    hearth_buf_release(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    bool is_all = (data[0] & 0x7f) == ALL_TYPES;
    const ProtobufCMessageDescriptor *type =
        is_all ? &all_types_descriptor : g_types[(data[0] & 0x7f) % HEARTH_ARRAY_LEN(g_types)];
    struct hearth_str in = hearth_str_n((const char *)data + 1, size - 1);
    bool is_wire = (data[0] & 0x80) != 0;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    ProtobufCMessage *first, *again;
    struct hearth_err err = HEARTH_ERR_INIT;
    if ((is_wire ? hearth_pb_unpack(type, in, &arena, &first, &err)
                 : hearth_pb_from_json(type, in, &arena, &first, &err)) == HEARTH_OK) {
        struct hearth_buf json = json_of(first), wire = wire_of(first), other;
        if (hearth_buf_failed(&json)) { /* a time has no JSON form after the year 9999 */
            HEARTH_ASSERT(is_all && is_wire);
            hearth_buf_release(&json);
            hearth_buf_release(&wire);
            hearth_arena_release(&arena);
            return 0;
        }
        other = pieces_of(first, 1 + size % 97, &arena);
        require_same(&json, &other);
        HEARTH_ASSERT(hearth_pb_unpack(type, hearth_buf_view(&wire), &arena, &again, &err) ==
                      HEARTH_OK);
        other = wire_of(again);
        require_same(&wire, &other);
        other = json_of(again);
        require_same(&json, &other);
        HEARTH_ASSERT(hearth_pb_from_json(type, hearth_buf_view(&json), &arena, &again, &err) ==
                      HEARTH_OK);
        other = json_of(again);
        require_same(&json, &other);
        if (!is_wire) { /* the wire form may hold unknown fields, which JSON leaves out */
            other = wire_of(again);
            require_same(&wire, &other);
        }
        hearth_buf_release(&json);
        hearth_buf_release(&wire);
    } else {
        HEARTH_ASSERT(err.status == HEARTH_INVALID_ARGUMENT && err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);
    return 0;
}
