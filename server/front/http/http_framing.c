/* http_framing.c -- checks lines, names and values of a head, and fields about the body's length.
 * */
#include "http/http_framing.h"

#include "hearth/base/compiler.h"

#include <string.h>

#define LINE_END_BYTES 2u /* CR LF, which the library has replaced by NUL bytes */

/* The first reason counts. */
static void refuse_head(struct hearth_http_framing *framing, unsigned code, const char *text)
{
    if (framing->code == 0) {
        framing->code = code;
        framing->text = text;
    }
}

static bool is_http_token(struct hearth_str s)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alnum && memchr(others, c, sizeof others - 1) == NULL) {
            return false;
        }
    }

    return s.n > 0;
}

static bool has_control_byte(struct hearth_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return true;
        }
    }
    return false;
}

/* The library decodes the path, and reads it up to the first NUL. */
static bool has_nul_in_path(struct hearth_str uri)
{
    for (size_t i = 0; i + 3 <= uri.n && uri.p[i] != '?'; i++) {
        if (memcmp(uri.p + i, "%00", 3) == 0) {
            return true;
        }
    }
    return false;
}

/* A bare LF has become a single NUL byte, directly before the next line or part of a line. */
static bool ends_line(const struct hearth_http_framing *framing, const char *p)
{
    return p + LINE_END_BYTES <= framing->end && p[0] == '\0' && p[1] == '\0';
}

void hearth_http_framing_uri(struct hearth_http_framing *framing, struct hearth_str uri)
{
    *framing = (struct hearth_http_framing){.uri = uri};
    if (has_control_byte(uri) || memchr(uri.p, ' ', uri.n) != NULL) {
        refuse_head(framing, 400, "the target of the request holds a blank or a control byte\n");
    } else if (has_nul_in_path(uri)) {
        refuse_head(framing, 400, "the path of the request holds a NUL byte, as %00\n");
    }
}

void hearth_http_framing_begin(struct hearth_http_framing *framing, struct hearth_str method,
                               struct hearth_str version, const char *end)
{
    framing->at = version.p + version.n + LINE_END_BYTES;
    framing->end = end;
    bool is_one_line = framing->uri.p == method.p + method.n + 1 &&
                       version.p == framing->uri.p + framing->uri.n + 1 &&
                       ends_line(framing, version.p + version.n);
    if (!is_one_line || !is_http_token(method)) {
        refuse_head(
            framing, 400,
            "the request line is not a method, a target and a version with one blank between "
            "them and CR LF at the end\n");
    }
}

/* The library has read the first one only, and has refused it if it is not a number. */
static void check_length(struct hearth_http_framing *framing)
{
    if (++framing->n_lengths > 1) {
        refuse_head(framing, 400, "more than one Content-Length\n");
    }
}

static void check_codings(struct hearth_http_framing *framing, struct hearth_str value)
{
    for (size_t from = 0; from <= value.n;) {
        size_t to = hearth_str_find(value, ',', from);
        struct hearth_str coding = hearth_str_trim(hearth_str_n(value.p + from, to - from));
        framing->n_codings++;
        if (!is_http_token(coding)) {
            refuse_head(framing, 400, "malformed Transfer-Encoding\n");
        } else if (!hearth_str_eq_nocase(coding, HEARTH_STR("chunked"))) {
            refuse_head(framing, 501,
                        "unknown transfer coding: chunked is the only one supported\n");
        }
        from = to + 1;
    }

    /* The library compares the whole text. With any other, it would read until the connection ends.
     * */
    if (!hearth_str_eq_nocase(value, HEARTH_STR("chunked"))) {
        refuse_head(framing, 400, "Transfer-Encoding must be \"chunked\" and nothing else\n");
    }
}

void hearth_http_framing_field(struct hearth_http_framing *framing, struct hearth_str name,
                               struct hearth_str value)
{
    /* A folded line has moved the name; text after a NUL byte belongs to no field. */
    if (name.p != framing->at) {
        refuse_head(framing, 400,
                    "a header line is folded, holds a NUL byte, or does not end with CR LF\n");
        return;
    }

    if (!is_http_token(name)) {
        refuse_head(framing, 400,
                    "a header name is empty, or has a blank or another byte that is not "
                    "allowed before the colon\n");
    }

    if (has_control_byte(value)) {
        refuse_head(framing, 400, "a header value holds a control byte\n");
    }

    if (!ends_line(framing, value.p + value.n)) {
        refuse_head(framing, 400, "a header line holds a NUL byte, or does not end with CR LF\n");
    }

    framing->at = value.p + value.n + LINE_END_BYTES;

    if (hearth_str_eq_nocase(name, HEARTH_STR("content-length"))) {
        check_length(framing);
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("transfer-encoding"))) {
        check_codings(framing, value);
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("host")) && ++framing->n_hosts > 1) {
        refuse_head(framing, 400, "more than one Host\n");
    }
}

void hearth_http_framing_end(struct hearth_http_framing *framing, struct hearth_str version)
{
    /* Only the empty line is left. */
    if (framing->at + LINE_END_BYTES != framing->end || !ends_line(framing, framing->at)) {
        refuse_head(framing, 400,
                    "a header line is folded, holds a NUL byte, or does not end with CR LF\n");
    }

    if (framing->n_hosts == 0 && !hearth_str_eq_c(version, "HTTP/1.0")) {
        refuse_head(framing, 400, "no Host\n");
    }

    if (framing->n_codings > 1) {
        refuse_head(framing, 400, "more than one transfer coding\n");
    }

    if (framing->n_codings > 0 && framing->n_lengths > 0) {
        refuse_head(framing, 400, "both Content-Length and Transfer-Encoding\n");
    }

    if (framing->n_codings > 0 && hearth_str_eq_c(version, "HTTP/1.0")) {
        refuse_head(framing, 400, "HTTP/1.0 has no Transfer-Encoding\n");
    }
}
