/*
 * oidc_url.h -- which addresses hearthd itself may fetch from.
 *
 * An issuer is https, or http on this machine (127.0.0.0/8, ::1, localhost). Its documents name
 * further addresses, which must be https as well, or http on this machine if the issuer is. A name
 * that is neither the issuer's nor listed must not lead to a private network.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_OIDC_URL_H
#define HEARTH_FRONT_OIDC_URL_H

#include "hearth/base/status.h"

#include <sys/socket.h>

#define HEARTH_OIDC_MAX_URL 2048

struct hearth_oidc_url {
    bool is_plain; /* http */
    char host[256];
};

/*
 * INVALID_ARGUMENT for anything but https://HOST and http://LOOPBACK, for user names, fragments,
 * and more than HEARTH_OIDC_MAX_URL bytes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_url_parse(const char *text, struct hearth_oidc_url *ret,
                                         struct hearth_err *err);

/* True for loopback, link-local, private and unspecified addresses, and other families. */
bool hearth_oidc_is_private(const struct sockaddr *address);

/*
 * True for a path of this server that a browser may be sent to: it begins with one '/', and has
 * printable ASCII characters without blanks, quotes and backslashes; at most
 * HEARTH_OIDC_MAX_RETURN bytes.
 */
#define HEARTH_OIDC_MAX_RETURN 1024
bool hearth_oidc_is_local_path(struct hearth_str path);

#endif
