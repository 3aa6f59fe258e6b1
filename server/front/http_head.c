/* http_head.c -- fields by name. */
#include "http_head.h"

#include <stddef.h>

/* Of a field that comes several times, the last counts. */
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
    {"user-agent", offsetof(struct hearth_http_head, user_agent)},
    {"grpc-encoding", offsetof(struct hearth_http_head, grpc_encoding)},
    {"grpc-accept-encoding", offsetof(struct hearth_http_head, grpc_accept_encoding)},
    {"grpc-timeout", offsetof(struct hearth_http_head, grpc_timeout)},
};

static enum MHD_Result
read_field(void *cls, enum MHD_ValueKind kind, const char *key, const char *text)
{
    struct hearth_http_head *head = cls;
    struct hearth_str name = hearth_str_c(key), value = hearth_str_c(text);
    (void)kind;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_texts); i++) {
        if (hearth_str_eq_nocase(name, hearth_str_c(g_texts[i].name))) {
            memcpy((char *)head + g_texts[i].offset, &value, sizeof value);
            return MHD_YES;
        }
    }
    if (hearth_str_eq_nocase(name, HEARTH_STR("x-scope-orgid"))) {
        if (head->caller.n_tenants++ == 0) {
            head->caller.tenant = value;
        }
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("authentication"))) {
        if (head->caller.n_tokens++ == 0) {
            head->caller.token = value;
        }
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("content-length"))) {
        head->has_length = true;
        if (!hearth_str_to_i64(value, &head->content_length)) {
            head->content_length = INT64_MAX;
        }
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("transfer-encoding"))) {
        head->has_transfer_encoding = true;
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("expect"))) {
        head->expects_continue = true;
    }
    return MHD_YES;
}

void hearth_http_head_read(struct MHD_Connection *connection, struct hearth_http_head *ret_head)
{
    *ret_head = (struct hearth_http_head){.content_length = -1};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, read_field, ret_head);
}
