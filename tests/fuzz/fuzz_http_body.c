/*
 * fuzz_http_body.c -- decodes the head and the body of an HTTP request.
 *
 * Input: one byte that picks the message type; then five lines (content type, content encoding,
 * timeout, accept, accept encoding); the rest is the body.
 */
#include "hearth/codec/json_fields.h"
#include "hearth/codec/pb.h"
#include "hearth/pb/grpc/health/v1/health.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "rpc/connect.h"
#include "rpc/tenant.h"

#include <stdlib.h>

#define MAX_BODY_BYTES  (1u << 20)
#define MAX_ARENA_BYTES (8u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const ProtobufCMessageDescriptor *const g_types[] = {
    &push__v1__push_request__descriptor,
    &querier__v1__select_merge_stacktraces_request__descriptor,
    &querier__v1__select_series_request__descriptor,
    &querier__v1__series_request__descriptor,
    &grpc__health__v1__health_check_request__descriptor,
};

static struct hearth_str take_line(struct hearth_str *rest)
{
    size_t end = hearth_str_find(*rest, '\n', 0);
    struct hearth_str line = {rest->p, end};
    size_t used = end < rest->n ? end + 1 : end;
    *rest = hearth_str_n(rest->p + used, rest->n - used);
    return line;
}

/* A decoded message must stay the same when it is encoded and decoded again. */
static void check_round_trip(const ProtobufCMessageDescriptor *type,
                             const ProtobufCMessage *message)
{
    struct hearth_buf wire, again;
    struct hearth_arena arena;
    hearth_buf_init(&wire, 0);
    hearth_buf_init(&again, 0);
    hearth_arena_init(&arena, 4 * MAX_ARENA_BYTES);
    hearth_pb_pack(message, &wire);
    ProtobufCMessage *second = NULL;
    if (hearth_pb_unpack(type, hearth_buf_view(&wire), &arena, &second, NULL) != HEARTH_OK) {
        abort();
    }
    hearth_pb_pack(second, &again);
    if (!hearth_str_eq(hearth_buf_view(&wire), hearth_buf_view(&again))) {
        abort();
    }
    hearth_arena_release(&arena);
    hearth_buf_release(&wire);
    hearth_buf_release(&again);
}

/* The wire form of a body is that of its message, and an error is JSON wherever the selector is wrong. */
static void check_wire(const ProtobufCMessageDescriptor *type, const struct hearth_rpc_body *body,
                       bool is_decoded)
{
    struct hearth_arena arena;
    struct hearth_buf wire;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_json_field *fields;
    size_t n;

    hearth_arena_init(&arena, 4 * MAX_ARENA_BYTES);
    hearth_buf_init(&wire, MAX_BODY_BYTES);
    if (hearth_body_wire(type, body, &arena, &wire, &err) != HEARTH_OK && is_decoded &&
        err.status != HEARTH_NO_MEMORY) {
        abort();
    }
    hearth_buf_reset(&wire);
    hearth_connect_write_error("invalid_argument", err.msg, (uint32_t)body->bytes.n, &wire);
    if (hearth_json_fields_read(hearth_buf_view(&wire), &arena, &fields, &n, &err) != HEARTH_OK) {
        abort();
    }
    hearth_buf_release(&wire);
    hearth_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const ProtobufCMessageDescriptor *type = g_types[bytes[0] % HEARTH_ARRAY_LEN(g_types)];
    struct hearth_str rest = {(const char *)bytes + 1, size - 1};
    struct hearth_connect_head head = {.content_type = take_line(&rest)};
    head.content_encoding = take_line(&rest);
    head.timeout_ms = take_line(&rest);
    struct hearth_str accept_text = take_line(&rest);
    struct hearth_str accept_encoding = take_line(&rest);
    struct hearth_accept accept;
    struct hearth_tenants tenants;
    struct hearth_arena of_tenants;
    const struct hearth_tenant_rules rules = {true, 16, "/method"};
    hearth_arena_init(&of_tenants, 0);
    (void)!hearth_accept_parse(accept_text, &accept);
    (void)!hearth_tenant_find(&rules, 1, accept_text, &of_tenants, &tenants, NULL);
    hearth_arena_release(&of_tenants);
    (void)hearth_accept_encoding_has(accept_encoding, HEARTH_STR("gzip"));
    enum hearth_rpc_codec codec;
    enum hearth_compression compression;
    if (hearth_otlp_media_find(head.content_type, &codec) && codec != HEARTH_RPC_JSON &&
        codec != HEARTH_RPC_PROTO) {
        abort();
    }
    (void)!hearth_otlp_encoding_find(head.content_encoding, &compression);

    struct hearth_connect_call call;
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_rpc_media *media = hearth_rpc_media_find(head.content_type);
    if (media == NULL || hearth_connect_parse_head(&head, &call, &err) != HEARTH_OK) {
        return 0;
    }
    struct hearth_inflater *inflater = hearth_inflater_new();
    struct hearth_arena arena;
    hearth_arena_init(&arena, MAX_ARENA_BYTES);
    ProtobufCMessage *message = NULL;
    const struct hearth_rpc_body body = {rest, media->codec, call.compression, MAX_BODY_BYTES,
                                         inflater};
    enum hearth_status status = hearth_body_decode(type, &body, &arena, &message, &err);
    if (status == HEARTH_OK) {
        check_round_trip(type, message);
    }
    check_wire(type, &body, status == HEARTH_OK);
    hearth_arena_release(&arena);
    hearth_inflater_free(inflater);
    return 0;
}
