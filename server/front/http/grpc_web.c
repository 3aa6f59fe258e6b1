/* grpc_web.c -- headers, frames and trailers of gRPC and gRPC-Web over HTTP/1.1. */
#include "http/grpc_web.h"

#include "hearth/base/clock.h"

#define FLAG_COMPRESSED 0x01u
#define FLAG_TRAILERS   0x80u

bool hearth_grpc_parse_timeout(struct hearth_str text, int64_t *ret_ns)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = {
        {'H', 3600 * HEARTH_NS_PER_SEC},
        {'M', 60 * HEARTH_NS_PER_SEC},
        {'S', HEARTH_NS_PER_SEC},
        {'m', HEARTH_NS_PER_MS},
        {'u', 1000},
        {'n', 1},
    };
    int64_t n;
    if (text.n < 2 || text.n > 9 || text.p[0] == '-' || text.p[0] == '+' ||
        !hearth_str_to_i64(hearth_str_n(text.p, text.n - 1), &n)) {
        return false;
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(units); i++) {
        if (text.p[text.n - 1] == units[i].unit) {
            if (__builtin_mul_overflow(n, units[i].ns, ret_ns)) {
                *ret_ns = INT64_MAX;
            }
            return true;
        }
    }

    return false;
}

enum hearth_status hearth_grpc_parse_encoding(struct hearth_str text, enum hearth_compression *ret,
                                              struct hearth_err *err)
{
    struct hearth_str name = hearth_str_trim(text);
    if (name.n == 0 || hearth_str_eq_c(name, "identity")) {
        *ret = HEARTH_COMPRESSION_NONE;
    } else if (hearth_str_eq_c(name, "gzip")) {
        *ret = HEARTH_COMPRESSION_GZIP;
    } else if (hearth_str_eq_c(name, "deflate")) {
        *ret = HEARTH_COMPRESSION_ZLIB;
    } else {
        return HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED,
                           "unknown compression \"" HEARTH_STR_FMT
                           "\": supported encodings are gzip, deflate, identity",
                           HEARTH_STR_ARG(name));
    }

    return HEARTH_OK;
}

bool hearth_grpc_accepts_gzip(struct hearth_str text)
{
    for (size_t from = 0; from < text.n;) {
        size_t to = hearth_str_find(text, ',', from);
        if (hearth_str_eq_c(hearth_str_trim(hearth_str_n(text.p + from, to - from)), "gzip")) {
            return true;
        }
        from = to + 1;
    }
    return false;
}

/* Takes the first frame off *rest; false if it is not complete. */
static bool take_frame(struct hearth_str *rest, unsigned *ret_flags, struct hearth_str *ret_bytes)
{
    if (rest->n < HEARTH_GRPC_WEB_FRAME_BYTES) {
        return false;
    }

    unsigned char head[HEARTH_GRPC_WEB_FRAME_BYTES];
    memcpy(head, rest->p, sizeof head);
    size_t n =
        (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | (size_t)head[4];
    if (n > rest->n - sizeof head) {
        return false;
    }

    *ret_flags = head[0];
    *ret_bytes = hearth_str_n(rest->p + sizeof head, n);
    *rest = hearth_str_n(rest->p + sizeof head + n, rest->n - sizeof head - n);

    return true;
}

enum hearth_status hearth_grpc_web_read(struct hearth_str body, enum hearth_compression encoding,
                                        struct hearth_str *ret_message,
                                        enum hearth_compression *ret_compression,
                                        struct hearth_err *err)
{
    unsigned flags, more;
    struct hearth_str message, rest = body, ignored;

    if (!take_frame(&rest, &flags, &message) || (flags & FLAG_TRAILERS) != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the call carries no whole message");
    }

    if ((flags & ~FLAG_COMPRESSED) != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the message has unknown flags: 0x%02x",
                           flags);
    }

    if (flags == FLAG_COMPRESSED && encoding == HEARTH_COMPRESSION_NONE) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the message is compressed, but grpc-encoding does not say how");
    }

    while (rest.n > 0) {
        if (!take_frame(&rest, &more, &ignored)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "%zu bytes after the message are not a whole frame", rest.n);
        }
        if ((more & FLAG_TRAILERS) == 0) {
            return HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED, "the call carries a second message");
        }
    }

    *ret_message = message;
    *ret_compression = flags == FLAG_COMPRESSED ? encoding : HEARTH_COMPRESSION_NONE;

    return HEARTH_OK;
}

static void write_frame_head(unsigned char out[HEARTH_GRPC_WEB_FRAME_BYTES], unsigned flags,
                             size_t n)
{
    out[0] = (unsigned char)flags;
    for (unsigned i = 0; i < 4; i++) {
        out[1 + i] = (unsigned char)(n >> (24 - 8 * i));
    }
}

void hearth_grpc_web_frame(unsigned char out[HEARTH_GRPC_WEB_FRAME_BYTES], bool is_compressed,
                           size_t n)
{
    write_frame_head(out, is_compressed ? FLAG_COMPRESSED : 0, n);
}

/* Appends the text percent-encoded, as grpc-message requires. */
static void write_percent_encoded(const char *msg, struct hearth_buf *out)
{
    for (const char *p = msg; *p != '\0'; p++) {
        if (*p >= ' ' && *p <= '~' && *p != '%') {
            hearth_buf_byte(out, (unsigned char)*p);
        } else {
            hearth_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*p);
        }
    }
}

void hearth_grpc_trailers(enum hearth_status status, const char *msg, const char *const *notes,
                          size_t n_notes, struct hearth_buf *out)
{
    hearth_buf_printf(out, "grpc-status: %d\r\n", hearth_status_grpc(status));
    if (status != HEARTH_OK) {
        hearth_buf_cstr(out, "grpc-message: ");
        write_percent_encoded(msg, out);
        hearth_buf_cstr(out, "\r\n");
    }

    if (status == HEARTH_UNAVAILABLE) {
        hearth_buf_cstr(out, "grpc-retry-pushback-ms: 1000\r\n");
    }

    for (size_t i = 0; i < n_notes; i++) {
        hearth_buf_printf(out, "hearth-note: %s\r\n", notes[i]);
    }
}

void hearth_grpc_web_trailers(enum hearth_status status, const char *msg, const char *const *notes,
                              size_t n_notes, struct hearth_buf *out)
{
    size_t from = out->n;

    if (hearth_buf_reserve(out, HEARTH_GRPC_WEB_FRAME_BYTES) == NULL) {
        return;
    }

    out->n += HEARTH_GRPC_WEB_FRAME_BYTES;
    hearth_grpc_trailers(status, msg, notes, n_notes, out);
    if (!hearth_buf_failed(out)) {
        unsigned char head[HEARTH_GRPC_WEB_FRAME_BYTES];
        write_frame_head(head, FLAG_TRAILERS, out->n - from - sizeof head);
        memcpy(out->p + from, head, sizeof head);
    }
}
