/*
 * client_headers.c -- headers of calls (contract: client_headers.h, client.h).
 *
 * gRPC refuses a call with metadata that it does not like, without naming it: names and values are
 * therefore checked here.
 */
#include "client_headers.h"

#include <assert.h>
#include <string.h>

/* Names, in lower case, that are set elsewhere, and by what. */
static const struct {
    const char *name, *reason;
} g_reserved[] = {
    {"accept", "the client sends its own"},
    {"connection", "HTTP/2 has no header for one connection"},
    {"content-length", "gRPC sets it"},
    {"content-type", "gRPC sets it"},
    {"expect", "gRPC has no place for it"},
    {"host", "it is the host of the URL"},
    {"http2-settings", "HTTP/2 has no header for one connection"},
    {"keep-alive", "HTTP/2 has no header for one connection"},
    {"proxy-authenticate", "it is for proxies: put USER:PASSWORD into the URL of the proxy"},
    {"proxy-authorization", "it is for proxies: put USER:PASSWORD into the URL of the proxy"},
    {"proxy-connection", "HTTP/2 has no header for one connection"},
    {"te", "gRPC sets it"},
    {"trailer", "gRPC sets it"},
    {"transfer-encoding", "HTTP/2 has no header for one connection"},
    {"upgrade", "HTTP/2 has no header for one connection"},
    {"user-agent", "gRPC sets it"},
    {"x-scope-orgid", "the tenant sets it"},
};

/* Why a name in lower case cannot be used; NULL: it can. */
static const char *find_reason(struct hearth_str name)
{
    if (hearth_str_starts(name, HEARTH_STR("grpc-"))) {
        return "names of gRPC begin with grpc-";
    }
    if (name.n > 4 && memcmp(name.p + name.n - 4, "-bin", 4) == 0) {
        return "gRPC encodes values of names that end with -bin";
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_reserved); i++) {
        if (hearth_str_eq_c(name, g_reserved[i].name)) {
            return g_reserved[i].reason;
        }
    }

    return NULL;
}

/* The name in lower case; `out` holds as many bytes as the longest header. */
static struct hearth_str lower_name(struct hearth_str name, char *out)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }

    return hearth_str_n(out, name.n);
}

static bool is_header_name(struct hearth_str name)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz_-.";

    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '\0' || strchr(letters, name.p[i]) == NULL) {
            return false;
        }
    }

    return name.n > 0;
}

static enum hearth_status check_header(const struct hearth_header *header, struct hearth_err *err)
{
    char text[HEARTH_CLIENT_MAX_HEADER_BYTES];

    if (header->name.n + header->value.n > sizeof text) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT, "the header \"%.*s\" has more than %zu bytes",
            (int)(header->name.n < 60 ? header->name.n : 60), header->name.p, sizeof text);
    }

    /* Its name. */
    struct hearth_str name = lower_name(header->name, text);
    if (!is_header_name(name)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "\"%.*s\" is no name of a header: letters, digits, - _ and . make one",
                           (int)(name.n < 60 ? name.n : 60), name.p);
    }
    const char *reason = find_reason(name);
    if (reason != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the header " HEARTH_STR_FMT " cannot be given: %s",
                           HEARTH_STR_ARG(name), reason);
    }

    /* Its value. */
    bool is_text = header->value.n > 0;
    for (size_t i = 0; i < header->value.n; i++) {
        is_text = is_text && header->value.p[i] >= ' ' && header->value.p[i] < 0x7f;
    }

    return is_text ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "the value of the header " HEARTH_STR_FMT
                                 " must be visible ASCII characters and spaces",
                                 HEARTH_STR_ARG(name));
}

enum hearth_status hearth_header_parse(struct hearth_str text, struct hearth_header *ret,
                                       struct hearth_err *err)
{
    assert(ret != NULL);

    size_t colon = hearth_str_find(text, ':', 0);
    if (colon >= text.n) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a header is written \"NAME: VALUE\"");
    }

    struct hearth_header header = {
        hearth_str_n(text.p, colon),
        hearth_str_trim(hearth_str_n(text.p + colon + 1, text.n - colon - 1))};
    HEARTH_TRY(check_header(&header, err));
    *ret = header;

    return HEARTH_OK;
}

/* ---- metadata ---- */

void client_metadata_add(struct client_metadata *metadata, struct hearth_str name,
                         struct hearth_str value)
{
    char text[HEARTH_CLIENT_MAX_HEADER_BYTES];
    assert(metadata->n < CLIENT_MAX_METADATA && name.n <= sizeof text);

    struct hearth_str lower = lower_name(name, text);
    metadata->v[metadata->n++] =
        (grpc_metadata){.key = grpc_slice_from_copied_buffer(lower.p, lower.n),
                        .value = grpc_slice_from_copied_buffer(value.p, value.n)};
}

enum hearth_status client_metadata_fill(struct client_metadata *ret,
                                        const struct hearth_client_options *options,
                                        struct hearth_err *err)
{
    /* Without it, servers hide label names that are no identifiers. */
    client_metadata_add(ret, HEARTH_STR("accept"), HEARTH_STR("*/*; allow-utf8-labelnames=true"));
    if (options->tenant != NULL) {
        client_metadata_add(ret, HEARTH_STR("x-scope-orgid"), hearth_str_c(options->tenant));
    }

    if (options->n_headers > HEARTH_CLIENT_MAX_HEADERS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "there are %zu headers, more than %d",
                           options->n_headers, HEARTH_CLIENT_MAX_HEADERS);
    }
    for (size_t i = 0; i < options->n_headers; i++) {
        struct hearth_header header;
        HEARTH_TRY(hearth_header_parse(hearth_str_c(options->headers[i]), &header, err));
        client_metadata_add(ret, header.name, header.value);
    }

    return HEARTH_OK;
}

bool client_metadata_has(const struct client_metadata *metadata, const char *name)
{
    for (size_t i = 0; i < metadata->n; i++) {
        if (grpc_slice_str_cmp(metadata->v[i].key, name) == 0) {
            return true;
        }
    }

    return false;
}

void client_metadata_release(struct client_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        grpc_slice_unref(metadata->v[i].key);
        grpc_slice_unref(metadata->v[i].value);
    }
    metadata->n = 0;
}
