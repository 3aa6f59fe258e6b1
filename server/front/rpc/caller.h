/*
 * caller.h -- what a client says of itself in its headers: tenant, credentials, origin.
 *
 * The ways to carry a token, in order of precedence (docs/reference/authentication.md):
 *
 *     authorization: Bearer TOKEN           SDKs, OTLP exporters, hearth, curl
 *     authorization: Basic USER:TOKEN       SDKs that know only user and password; USER is ignored
 *     dd-api-key: TOKEN                     Datadog's libraries
 *     authentication: TOKEN                 SkyWalking's agents
 *
 * Without one of them: the cookie of a session, a proxy's header, the client certificate.
 *
 * Ownership: texts are borrowed from the transport for the duration of the admission.
 * Threads:   pure.
 */
#ifndef HEARTH_FRONT_CALLER_H
#define HEARTH_FRONT_CALLER_H

#include "hearth/base/arena.h"
#include "hearth/base/str.h"

#define HEARTH_CALLER_ADDRESS_BYTES 64

/* The headers of an authenticating proxy, lower case; NULL: none (front.h). */
struct hearth_proxy_headers {
    const char *user, *groups;
};

struct hearth_front_caller {
    size_t n_tenants, n_tokens, n_authorizations; /* number of headers sent */
    struct hearth_str tenant;                     /* the first X-Scope-OrgID */
    struct hearth_str token;                      /* the first authentication */
    struct hearth_str authorization;              /* the first one */
    struct hearth_str api_key;                    /* DD-API-KEY */
    struct hearth_str session;                    /* the value of the session's cookie */
    struct hearth_str login;                      /* the value of the cookie of a log-in */
    struct hearth_str proxy_user, proxy_groups;   /* of a proxy; only trusted ones may set them */
    struct hearth_str forwarded_for;              /* X-Forwarded-For */
    struct hearth_str forwarded_proto;            /* X-Forwarded-Proto */
    struct hearth_str origin, host;               /* of a browser's request */

    /* ---- set by the transport ---- */

    unsigned modes;  /* of the listener, enum hearth_auth_mode */
    bool is_reading; /* GET or HEAD: a request that changes nothing */
    bool is_tls;
    char address[HEARTH_CALLER_ADDRESS_BYTES]; /* of the client, without its port */
    /* Names of a verified certificate, without their kind; [0] is the caller. */
    const struct hearth_str *certificate_names;
    size_t n_certificate_names;
};

/* Takes a header that says something of the caller; others are ignored. Names in any case. */
void hearth_caller_take_field(struct hearth_front_caller *caller,
                              const struct hearth_proxy_headers *proxy, struct hearth_str name,
                              struct hearth_str value);
/* Sets the address from "1.2.3.4:567" or "[::1]:567". */
void hearth_caller_set_address(struct hearth_front_caller *caller, const char *peer_text);

/* The names of the session's cookie: over TLS, and without. */
#define HEARTH_COOKIE_TLS   "__Host-hearth_session"
#define HEARTH_COOKIE_PLAIN "hearth_session"
/* The names of the cookie that a browser carries during a log-in at an issuer. */
#define HEARTH_LOGIN_COOKIE_TLS   "__Host-hearth_login"
#define HEARTH_LOGIN_COOKIE_PLAIN "hearth_login"

/*
 * The token that the caller sent; p is NULL if it sent none, or something else (a JWT is
 * ret_jwt). The text of a basic password lives in the arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_caller_token(const struct hearth_front_caller *caller,
                                       struct hearth_arena *arena, struct hearth_str *ret_token,
                                       struct hearth_str *ret_jwt, struct hearth_err *err);

/* A range of addresses, "10.0.0.0/8" or one address; IPv4 as mapped IPv6. */
struct hearth_network_range {
    unsigned char ip[16];
    unsigned n_bits; /* of ip that count, 0 to 128 */
};

/* False for a text that is not a range. */
HEARTH_MUST_CHECK bool hearth_network_range_parse(struct hearth_str text,
                                                  struct hearth_network_range *ret);
/* False also for a text that is not an address. */
bool hearth_network_range_has(const struct hearth_network_range *range, const char *address);
/* True if the caller's address is in one of the ranges, a list of texts that ends with NULL. */
bool hearth_caller_is_within(const struct hearth_front_caller *caller, const char *const *ranges);
/*
 * Replaces the address of a trusted proxy by the one it names last in X-Forwarded-For, if that is
 * an address.
 */
void hearth_caller_use_forwarded(struct hearth_front_caller *caller);

/*
 * True if the caller uses TLS, to the listener or to a proxy before it. Any caller can claim it, so
 * it may only make a cookie safer.
 */
bool hearth_caller_is_over_tls(const struct hearth_front_caller *caller);
/* True unless a browser sent the request from a page of another origin. */
bool hearth_caller_is_same_origin(const struct hearth_front_caller *caller);

#endif
