/*
 * http_framing.h -- refuses heads that leave any doubt about where the request ends.
 *
 * A request can be smuggled past a proxy if the proxy and the server read a head differently.
 * libmicrohttpd 0.9.75 is lenient: the first of two Content-Length fields counts, a blank before
 * the colon belongs to the name, a folded line is appended to the *name* of the previous field, a
 * NUL byte ends a line, and a body with an unknown transfer coding lasts until the connection ends.
 * It returns fields as pointers into its buffer, so the bytes between them can be checked, and all
 * of these heads are refused. One case remains: after a NUL byte at the end of a line, a bare LF
 * cannot be told from CR LF.
 *
 * Threads:   pure.
 * Source:    RFC 9110 section 5; RFC 9112 sections 2.2, 3.2, 5, 6.
 */
#ifndef HEARTH_FRONT_HTTP_FRAMING_H
#define HEARTH_FRONT_HTTP_FRAMING_H

#include "hearth/base/str.h"

struct hearth_http_framing {
    /* The target as sent, with its arguments. The library changes the bytes later, so then only
     * pointer and length are valid. */
    struct hearth_str uri;
    const char *at;   /* where the name of the next field must begin */
    const char *end;  /* the first byte after the head */
    size_t n_hosts;   /* number of fields Host */
    size_t n_lengths; /* number of fields Content-Length */
    size_t n_codings; /* number of transfer codings */
    unsigned code;    /* 0, or the status that refuses the request: 400, 501 */
    const char *text; /* if code is not 0: the reason; static, ends with a line feed */
};

/* Begins with the target of the request line, before the library decodes it in place. */
void hearth_http_framing_uri(struct hearth_http_framing *framing, struct hearth_str uri);
/*
 * Checks the rest of the request line. The library has replaced the blank or CR LF after each of
 * its parts by NUL bytes.
 *
 * end   the end of the head, in the same buffer
 */
void hearth_http_framing_begin(struct hearth_http_framing *framing, struct hearth_str method,
                               struct hearth_str version, const char *end);
/* Checks the next field, in the order of the head. NUL bytes follow both texts. */
void hearth_http_framing_field(struct hearth_http_framing *framing, struct hearth_str name,
                               struct hearth_str value);
/* To be called after the last field: checks the head as a whole. */
void hearth_http_framing_end(struct hearth_http_framing *framing, struct hearth_str version);

#endif
