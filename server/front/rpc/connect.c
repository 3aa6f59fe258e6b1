/* connect.c -- unary calls of the Connect protocol: headers, bodies, errors. */
#include "rpc/connect.h"

#include "hearth/base/base64.h"
#include "hearth/base/budget.h"
#include "hearth/base/limit.h"
#include "hearth/codec/json_writer.h"
#include "hearth/codec/pb.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

bool hearth_connect_parse_timeout(struct hearth_str text, int64_t *ret_ms)
{
    /* Ten digits are the protocol's bound; converted to nanoseconds they do not overflow. */
    return text.n <= 10 && text.n > 0 && text.p[0] != '-' && text.p[0] != '+' &&
           hearth_str_to_i64(text, ret_ms);
}

enum hearth_status hearth_connect_parse_head(const struct hearth_connect_head *head,
                                             struct hearth_connect_call *ret_call,
                                             struct hearth_err *err)
{
    struct hearth_connect_call call = {.timeout_ms = HEARTH_CONNECT_NO_TIMEOUT};

    if (head->protocol_version.n > 0 && !hearth_str_eq_c(head->protocol_version, "1")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "connect-protocol-version must be \"1\": got \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(head->protocol_version));
    }

    if (head->timeout_ms.n > 0 &&
        !hearth_connect_parse_timeout(head->timeout_ms, &call.timeout_ms)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "connect-timeout-ms \"" HEARTH_STR_FMT
                           "\" is not a number of at most ten digits",
                           HEARTH_STR_ARG(head->timeout_ms));
    }

    HEARTH_TRY(hearth_content_encoding_parse(head->content_encoding, &call.compression, err));
    *ret_call = call;

    return HEARTH_OK;
}

static enum hearth_status decode_plain(const struct ProtobufCMessageDescriptor *descriptor,
                                       enum hearth_rpc_codec codec, struct hearth_str body,
                                       struct hearth_arena *arena,
                                       struct ProtobufCMessage **ret_message,
                                       struct hearth_err *err)
{
    return codec == HEARTH_RPC_JSON ? hearth_pb_from_json(descriptor, body, arena, ret_message, err)
                                    : hearth_pb_unpack(descriptor, body, arena, ret_message, err);
}

static enum hearth_status check_body_size(const struct hearth_rpc_body *body,
                                          struct hearth_err *err)
{
    if (body->bytes.n <= body->max_bytes) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(
        err, HEARTH_TOO_LARGE,
        "request body is %zu bytes; the limit is %zu" HEARTH_RAISE_OPTION("max-request-bytes"),
        body->bytes.n, body->max_bytes);
}

/* Clients that compress send zero bytes for an empty body. */
static bool is_plain_body(const struct hearth_rpc_body *body)
{
    return body->compression == HEARTH_COMPRESSION_NONE || body->bytes.n == 0;
}

/* Appends the decompressed body. */
static enum hearth_status inflate_whole_body(const struct hearth_rpc_body *body,
                                             struct hearth_buf *plain, struct hearth_err *err)
{
    enum hearth_status status =
        hearth_inflate(body->inflater, body->compression, body->bytes, body->max_bytes, plain, err);
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        return HEARTH_FAIL(
            err, HEARTH_TOO_LARGE,
            "request body inflates to more than the limit of %zu bytes" HEARTH_RAISE_OPTION(
                "max-request-bytes"),
            body->max_bytes);
    }

    if (status == HEARTH_NO_MEMORY && plain->budget != NULL) {
        return HEARTH_FAIL_BUDGET(err, plain->budget);
    }

    return status;
}

enum hearth_status hearth_body_decode(const struct ProtobufCMessageDescriptor *descriptor,
                                      const struct hearth_rpc_body *body,
                                      struct hearth_arena *arena,
                                      struct ProtobufCMessage **ret_message, struct hearth_err *err)
{
    HEARTH_TRY(check_body_size(body, err));
    if (is_plain_body(body)) {
        return decode_plain(descriptor, body->codec, body->bytes, arena, ret_message, err);
    }

    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    plain.budget = arena->budget;
    enum hearth_status status = inflate_whole_body(body, &plain, err);
    if (status == HEARTH_OK) {
        status =
            decode_plain(descriptor, body->codec, hearth_buf_view(&plain), arena, ret_message, err);
    }

    if (status == HEARTH_NO_MEMORY) {
        hearth_budget_refused_beside(plain.cap);
    }

    hearth_buf_release(&plain);

    return status;
}

enum hearth_status hearth_body_wire(const struct ProtobufCMessageDescriptor *descriptor,
                                    const struct hearth_rpc_body *body, struct hearth_arena *arena,
                                    struct hearth_buf *wire, struct hearth_err *err)
{
    if (body->codec == HEARTH_RPC_JSON) {
        struct ProtobufCMessage *message;
        HEARTH_TRY(hearth_body_decode(descriptor, body, arena, &message, err));
        hearth_pb_pack(message, wire);
    } else {
        HEARTH_TRY(check_body_size(body, err));
        if (!is_plain_body(body)) {
            return inflate_whole_body(body, wire, err);
        }
        hearth_buf_str(wire, body->bytes);
    }

    return !hearth_buf_failed(wire)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the request body");
}

/* The message is written as base64 and, for people, as the JSON that Connect calls debug. */
static void write_selector_detail(struct hearth_json *json, uint32_t selector_place)
{
    Hearth__V1__SelectorError detail;
    struct hearth_buf wire, text;

    hearth__v1__selector_error__init(&detail);
    detail.offset = selector_place - 1;
    hearth_buf_init(&wire, 0);
    hearth_buf_init(&text, 0);
    hearth_pb_pack(&detail.base, &wire);
    hearth_base64_encode(hearth_buf_view(&wire), &text);
    struct hearth_str value = hearth_buf_view(&text);
    while (value.n > 0 && value.p[value.n - 1] == '=') {
        value.n--;
    }

    hearth_json_key_c(json, "details");
    hearth_json_array(json);
    hearth_json_object(json);
    hearth_json_key_c(json, "type");
    hearth_json_string_c(json, detail.base.descriptor->name);
    hearth_json_key_c(json, "value");
    hearth_json_string(json, value);
    hearth_json_key_c(json, "debug");
    hearth_json_object(json);
    hearth_json_key_c(json, "offset");
    hearth_json_i64(json, detail.offset);
    hearth_json_object_end(json);
    hearth_json_object_end(json);
    hearth_json_array_end(json);
    hearth_buf_release(&text);
    hearth_buf_release(&wire);
}

void hearth_connect_write_error(const char *code, const char *msg, uint32_t selector_place,
                                struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "code");
    hearth_json_string_c(&json, code);
    hearth_json_key_c(&json, "message");
    hearth_json_string_c(&json, msg);
    if (selector_place > 0) {
        write_selector_detail(&json, selector_place);
    }
    hearth_json_object_end(&json);
}
