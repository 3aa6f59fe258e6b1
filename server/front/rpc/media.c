/* media.c -- a scanner for media types with parameters, and the header fields made of them. */
#include "rpc/media.h"

struct param {
    struct hearth_str name, value; /* a quoted value without its quotes, escapes left in */
};

static bool is_media_token_byte(char c)
{
    return c > ' ' && c < 0x7f && strchr("()<>@,;:\\\"/[]?={}", c) == NULL;
}

static void skip_space(struct hearth_str s, size_t *at)
{
    while (*at < s.n && (s.p[*at] == ' ' || s.p[*at] == '\t')) {
        (*at)++;
    }
}

static bool scan_token(struct hearth_str s, size_t *at, struct hearth_str *ret)
{
    size_t from = *at;
    while (*at < s.n && is_media_token_byte(s.p[*at])) {
        (*at)++;
    }
    if (*at == from) {
        return false; /* the text of an absent header is NULL: no offset may be added to it */
    }

    *ret = hearth_str_n(s.p + from, *at - from);

    return true;
}

static bool scan_value(struct hearth_str s, size_t *at, struct hearth_str *ret)
{
    if (*at >= s.n || s.p[*at] != '"') {
        return scan_token(s, at, ret);
    }

    size_t from = ++*at;
    for (; *at < s.n; (*at)++) {
        unsigned char c = (unsigned char)s.p[*at];
        if (c == '"') {
            *ret = hearth_str_n(s.p + from, *at - from);
            (*at)++;
            return true;
        }
        if (c == '\\') {
            (*at)++;
        } else if (c < ' ' && c != '\t') {
            return false;
        }
    }

    return false;
}

/* A type with or without a subtype: older Java clients send a single "*". */
static bool scan_type(struct hearth_str s, size_t *at, struct hearth_str *ret)
{
    size_t from = *at;
    struct hearth_str part;

    if (!scan_token(s, at, &part)) {
        return false;
    }

    if (*at < s.n && s.p[*at] == '/') {
        (*at)++;
        if (!scan_token(s, at, &part)) {
            return false;
        }
    }

    *ret = hearth_str_n(s.p + from, *at - from);

    return true;
}

/*
 * Scans the next ";name=value". *ret_found is false at the end of the element (a ',' or the end of
 * the text) and after an empty parameter (";" alone). Returns false if malformed.
 */
static bool scan_param(struct hearth_str s, size_t *at, struct param *ret, bool *ret_found)
{
    *ret_found = false;
    skip_space(s, at);
    if (*at >= s.n || s.p[*at] == ',') {
        return true;
    }
    if (s.p[*at] != ';') {
        return false;
    }

    (*at)++;
    skip_space(s, at);
    if (*at >= s.n || s.p[*at] == ',' || s.p[*at] == ';') {
        return true;
    }
    if (!scan_token(s, at, &ret->name)) {
        return false;
    }

    skip_space(s, at);
    if (*at >= s.n || s.p[*at] != '=') {
        return false;
    }

    (*at)++;
    skip_space(s, at);
    *ret_found = true;

    return scan_value(s, at, &ret->value);
}

static bool is_element_end(struct hearth_str s, size_t at)
{
    return at >= s.n || s.p[at] == ',';
}

bool hearth_accept_parse(struct hearth_str header, struct hearth_accept *ret)
{
    struct hearth_accept accept = {0};
    struct hearth_str s = hearth_str_trim(header);

    for (size_t at = 0; at < s.n; at++) { /* at++ steps over the ',' */
        struct hearth_str type;
        skip_space(s, &at);
        if (!scan_type(s, &at, &type)) {
            return false;
        }
        if (hearth_str_eq_nocase(type, HEARTH_STR("application/json"))) {
            accept.json = true;
        } else if (hearth_str_eq_nocase(type, HEARTH_STR("application/openmetrics-text"))) {
            accept.openmetrics = true;
        }
        do {
            struct param param;
            bool found;
            if (!scan_param(s, &at, &param, &found)) {
                return false;
            }
            if (found && hearth_str_eq_nocase(param.name, HEARTH_STR("allow-utf8-labelnames")) &&
                hearth_str_eq_nocase(param.value, HEARTH_STR("true"))) {
                accept.utf8_label_names = true;
            }
            skip_space(s, &at);
        } while (!is_element_end(s, at));
        if (at + 1 == s.n) { /* a list does not end with a comma */
            return false;
        }
    }

    *ret = accept;

    return true;
}

static const struct hearth_rpc_media g_media[] = {
    {"application/proto", HEARTH_RPC_CONNECT, HEARTH_RPC_PROTO},
    {"application/json", HEARTH_RPC_CONNECT, HEARTH_RPC_JSON},
    {"application/grpc", HEARTH_RPC_GRPC, HEARTH_RPC_PROTO},
    {"application/grpc+proto", HEARTH_RPC_GRPC, HEARTH_RPC_PROTO},
    {"application/grpc-web", HEARTH_RPC_GRPC_WEB, HEARTH_RPC_PROTO},
    {"application/grpc-web+proto", HEARTH_RPC_GRPC_WEB, HEARTH_RPC_PROTO},
    {"application/grpc-web+json", HEARTH_RPC_GRPC_WEB, HEARTH_RPC_JSON},
    {"application/grpc-web-text", HEARTH_RPC_GRPC_WEB_TEXT, HEARTH_RPC_PROTO},
    {"application/grpc-web-text+proto", HEARTH_RPC_GRPC_WEB_TEXT, HEARTH_RPC_PROTO},
};

/* The type of a Content-Type; false if malformed or if the charset is not UTF-8. */
static bool scan_content_type(struct hearth_str header, struct hearth_str *ret_type)
{
    struct hearth_str s = hearth_str_trim(header);
    size_t at = 0;

    if (!scan_type(s, &at, ret_type)) {
        return false;
    }

    while (at < s.n) {
        struct param param;
        bool found;
        if (!scan_param(s, &at, &param, &found) || (at < s.n && s.p[at] == ',')) {
            return false;
        }
        if (found && hearth_str_eq_nocase(param.name, HEARTH_STR("charset")) &&
            !hearth_str_eq_nocase(param.value, HEARTH_STR("utf-8"))) {
            return false;
        }
    }

    return true;
}

bool hearth_otlp_media_find(struct hearth_str header, enum hearth_rpc_codec *ret)
{
    struct hearth_str type;
    if (!scan_content_type(header, &type)) {
        return false;
    }
    bool is_json = hearth_str_eq_nocase(type, HEARTH_STR("application/json"));
    *ret = is_json ? HEARTH_RPC_JSON : HEARTH_RPC_PROTO;
    return is_json || hearth_str_eq_nocase(type, HEARTH_STR(HEARTH_OTLP_PROTO));
}

const struct hearth_rpc_media *hearth_rpc_media_find(struct hearth_str header)
{
    struct hearth_str type;

    if (!scan_content_type(header, &type)) {
        return NULL;
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_media); i++) {
        if (hearth_str_eq_nocase(type, hearth_str_c(g_media[i].type))) {
            return &g_media[i];
        }
    }

    return NULL;
}

bool hearth_otlp_encoding_find(struct hearth_str header, enum hearth_compression *ret)
{
    static const struct {
        const char *name;
        enum hearth_compression compression;
    } all[] = {
        {"", HEARTH_COMPRESSION_NONE},     {"identity", HEARTH_COMPRESSION_NONE},
        {"gzip", HEARTH_COMPRESSION_GZIP}, {"deflate", HEARTH_COMPRESSION_ZLIB},
        {"zstd", HEARTH_COMPRESSION_ZSTD},
    };
    struct hearth_str name = hearth_str_trim(header);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(all); i++) {
        if (hearth_str_eq_nocase(name, hearth_str_c(all[i].name))) {
            *ret = all[i].compression;
            return true;
        }
    }

    return false;
}

enum hearth_status hearth_content_encoding_parse(struct hearth_str header,
                                                 enum hearth_compression *ret,
                                                 struct hearth_err *err)
{
    struct hearth_str name = hearth_str_trim(header);
    if (name.n == 0 || hearth_str_eq_nocase(name, HEARTH_STR("identity"))) {
        *ret = HEARTH_COMPRESSION_NONE;
        return HEARTH_OK;
    }

    if (hearth_str_eq_nocase(name, HEARTH_STR("gzip"))) {
        *ret = HEARTH_COMPRESSION_GZIP;
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED,
                       "unknown compression \"" HEARTH_STR_FMT
                       "\": supported encodings are gzip, identity",
                       HEARTH_STR_ARG(name));
}

static bool weight_is_zero(struct hearth_str text)
{
    double weight;
    return hearth_str_to_double(text, &weight) && weight <= 0;
}

bool hearth_accept_encoding_has(struct hearth_str header, struct hearth_str coding)
{
    struct hearth_str s = hearth_str_trim(header);
    bool any = false;

    for (size_t at = 0; at < s.n; at++) {
        struct hearth_str name;
        skip_space(s, &at);
        if (!scan_token(s, &at, &name)) {
            return false;
        }
        bool refused = false;
        do {
            struct param param;
            bool found;
            if (!scan_param(s, &at, &param, &found)) {
                return false;
            }
            if (found && hearth_str_eq_nocase(param.name, HEARTH_STR("q"))) {
                refused = weight_is_zero(param.value);
            }
            skip_space(s, &at);
        } while (!is_element_end(s, at));
        if (hearth_str_eq_nocase(name, coding)) {
            return !refused;
        }
        if (hearth_str_eq_c(name, "*")) {
            any = !refused;
        }
    }

    return any;
}
