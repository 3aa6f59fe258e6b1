/*
 * oidc_fetch.h -- one request to an issuer.
 *
 * No redirects, no proxies, no more than max_bytes and HEARTH_OIDC_FETCH_MS. Only addresses that
 * oidc_url.h allows.
 *
 * Threads: safe; blocks.
 */
#ifndef HEARTH_FRONT_OIDC_FETCH_H
#define HEARTH_FRONT_OIDC_FETCH_H

#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"

#define HEARTH_OIDC_FETCH_MS 10000

struct hearth_oidc_request {
    const char *url;
    const char *issuer_url;           /* whose documents name `url` */
    const char *const *private_hosts; /* may be in private networks, too; NULL-terminated or NULL */
    const char *ca_file;              /* NULL or "": those of the system */
    const char *form;                 /* body of a POST; NULL: a GET */
    const char *user, *password;      /* of HTTP Basic, form-encoded here; NULL: none */
    size_t max_bytes;                 /* of the answer */
    struct hearth_cancel *cancel;
};

/*
 * The answer, with its HTTP status, into the initialised `body`. INVALID_ARGUMENT for a URL that is
 * not allowed; UNAVAILABLE; CANCELLED; DEADLINE_EXCEEDED; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_fetch(const struct hearth_oidc_request *request,
                                     struct hearth_buf *body, long *ret_code,
                                     struct hearth_err *err);

#endif
