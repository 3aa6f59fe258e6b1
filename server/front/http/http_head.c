/* http_head.c -- finds header fields by their names. */
#include "http/http_head.h"

#include "rpc/request_ids.h"

#include <assert.h>
#include <stddef.h>

/* If a field is sent several times, the last one counts. */
static const struct {
    const char *name;
    size_t offset;
} g_texts[] = {
    {"content-type", offsetof(struct hearth_http_head, connect.content_type)},
    {"content-encoding", offsetof(struct hearth_http_head, connect.content_encoding)},
    {"connect-protocol-version", offsetof(struct hearth_http_head, connect.protocol_version)},
    {"connect-timeout-ms", offsetof(struct hearth_http_head, connect.timeout_ms)},
    {"accept", offsetof(struct hearth_http_head, accept)},
    {"accept-encoding", offsetof(struct hearth_http_head, accept_encoding)},
    {"if-none-match", offsetof(struct hearth_http_head, if_none_match)},
    {"user-agent", offsetof(struct hearth_http_head, user_agent)},
    {HEARTH_REQUEST_ID_HEADER, offsetof(struct hearth_http_head, request_id)},
    {"traceparent", offsetof(struct hearth_http_head, traceparent)},
    {"x-datadog-trace-count", offsetof(struct hearth_http_head, trace_count)},
    {"grpc-encoding", offsetof(struct hearth_http_head, grpc_encoding)},
    {"grpc-accept-encoding", offsetof(struct hearth_http_head, grpc_accept_encoding)},
    {"grpc-timeout", offsetof(struct hearth_http_head, grpc_timeout)},
};

struct head_reader {
    struct hearth_http_head *head;
    struct hearth_http_framing *framing;
    const struct hearth_proxy_headers *proxy;
};

static enum MHD_Result read_head_field(void *cls, enum MHD_ValueKind kind, const char *key,
                                       size_t key_bytes, const char *text, size_t text_bytes)
{
    struct head_reader *reading = cls;
    struct hearth_http_head *head = reading->head;
    struct hearth_str name = hearth_str_n(key, key_bytes), value = hearth_str_n(text, text_bytes);

    (void)kind;
    hearth_http_framing_field(reading->framing, name, value);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_texts); i++) {
        if (hearth_str_eq_nocase(name, hearth_str_c(g_texts[i].name))) {
            memcpy((char *)head + g_texts[i].offset, &value, sizeof value);
            return MHD_YES;
        }
    }

    hearth_caller_take_field(&head->caller, reading->proxy, name, value);
    if (hearth_str_eq_nocase(name, HEARTH_STR("content-length"))) {
        if (!hearth_str_to_i64(value, &head->content_length)) {
            head->content_length = INT64_MAX;
        }
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("expect"))) {
        head->expects_continue = true;
    }

    return MHD_YES;
}

void hearth_http_head_read(struct MHD_Connection *connection,
                           const struct hearth_proxy_headers *proxy, const char *method,
                           const char *version, struct hearth_http_framing *framing,
                           struct hearth_http_head *ret_head)
{
    assert(framing->uri.p != NULL);
    *ret_head = (struct hearth_http_head){.content_length = -1};
    struct head_reader reading = {.head = ret_head, .framing = framing, .proxy = proxy};
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *end = method + (size != NULL ? size->header_size : 0);
    hearth_http_framing_begin(framing, hearth_str_c(method), hearth_str_c(version), end);
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, read_head_field, &reading);
    hearth_http_framing_end(framing, hearth_str_c(version));
}
