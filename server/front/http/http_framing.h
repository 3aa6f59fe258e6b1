/*
 * http_framing.h -- whether the head of a request leaves any doubt about where the request ends.
 *
 * Two parsers that read one head differently are how requests are smuggled past a proxy. libmicrohttpd 0.9.75 is lenient:
 * the first of two Content-Length counts, a blank before the colon belongs to the name, a folded line is appended to the
 * *name* of the field before it, a NUL byte cuts a line, and a body of an unknown transfer coding lasts until the
 * connection ends. It hands out the fields where they lie in its buffer, so their addresses tell what stood between them,
 * and all of the above can be refused. Only behind a NUL byte at the end of a line a bare LF cannot be told from CR LF.
 *
 * Threads:   pure.
 * Source:    RFC 9110 section 5; RFC 9112 sections 2.2, 3.2, 5, 6.
 */
#ifndef HEARTH_FRONT_HTTP_FRAMING_H
#define HEARTH_FRONT_HTTP_FRAMING_H

#include "hearth/base/str.h"

struct hearth_http_framing {
    struct hearth_str
        uri; /* as sent, with what is behind the '?'; its bytes may have been changed since */
    const char *at;  /* where the name of the next field must begin */
    const char *end; /* behind the empty line that ends the head */
    size_t n_hosts, n_lengths, n_codings;
    unsigned code;    /* 0, or the status that refuses the request: 400, 501 */
    const char *text; /* static: why */
};

/* The target of the request line as it came, before the library decodes it in place. */
void hearth_http_framing_uri(struct hearth_http_framing *framing, struct hearth_str uri);
/*
 * The rest of the request line. As the library leaves them, its parts end with a NUL byte where a blank or CR LF stood.
 *
 * end   of the whole head, in the same buffer
 */
void hearth_http_framing_begin(struct hearth_http_framing *framing, struct hearth_str method,
                               struct hearth_str version, const char *end);
/* The next field, in the order of the head; both texts end with a NUL byte. */
void hearth_http_framing_field(struct hearth_http_framing *framing, struct hearth_str name,
                               struct hearth_str value);
/* After the last field: sets the code when the head as a whole is at fault. */
void hearth_http_framing_end(struct hearth_http_framing *framing, struct hearth_str version);

#endif
