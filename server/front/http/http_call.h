/*
 * http_call.h -- plain HTTP routes whose work runs on a pool like an RPC's: /ingest, /pyroscope/render and their like.
 *
 * A route is a struct hearth_method without messages, out of http_routes.def. Its handler reads the arguments and the
 * body (rpc->body, compressed as the client sent it; the handler may drop it early by rpc->drop_body), appends the
 * answer's body to rpc->packed and ends the request. Errors are answered as Connect errors are (status code by the
 * table, JSON), of routes with HEARTH_METHOD_OTLP as google.rpc.Status in the request's own encoding. Deadlines, cancellation, tenants, budgets, gzip of answers and the log are those of RPCs.
 *
 * Before a handler runs: the method is one of the route's (else 405), the arguments are well formed (else 400), the
 * body is complete and within max-request-bytes, and the tenant is known when the route has HEARTH_METHOD_TENANT.
 *
 * Threads: as rpc.h; parsing is pure.
 * Source:  the query syntax of application/x-www-form-urlencoded (WHATWG URL, section 5.1).
 */
#ifndef HEARTH_FRONT_HTTP_CALL_H
#define HEARTH_FRONT_HTTP_CALL_H

#include "hearth/base/arena.h"

#include "rpc/method.h"

struct hearth_rpc;

#define HEARTH_HTTP_MAX_ARGS 1024u

struct hearth_http_arg {
    struct hearth_str name, value; /* percent-decoded; '+' is a blank; no NUL inside, one behind */
};

/* What an error is answered with. */
enum hearth_http_errors {
    HEARTH_HTTP_ERRORS_CONNECT,
    HEARTH_HTTP_ERRORS_STATUS, /* google.rpc.Status */
    HEARTH_HTTP_ERRORS_STATUS_JSON,
};

/* Of a request by such a route; rpc->http, NULL for RPCs. Texts live in the request's arena. */
struct hearth_http_call {
    struct hearth_str method;     /* "GET", "HEAD", "POST" */
    struct hearth_http_arg *args; /* in order of the query string */
    size_t n_args;
    struct hearth_str content_type, content_encoding; /* as sent; empty: absent */
    /* The answer. */
    unsigned code;           /* in place of 200 or of the status' own number; 0: those */
    const char *answer_type; /* Content-Type, static; NULL: none */
    const char *error_code;  /* in place of the status' name, static; NULL: that */
    enum hearth_http_errors errors;
};

enum hearth_http_methods {
    HEARTH_HTTP_GET, /* and HEAD */
    HEARTH_HTTP_POST,
};

struct hearth_http_route {
    struct hearth_method method; /* .path is the whole path, .request and .response are NULL */
    enum hearth_http_methods methods;
};

/* All plain routes, in the order of http_routes.def. */
struct hearth_http_route_table {
    const struct hearth_http_route *routes;
    size_t n;
};

/* The route of a path; NULL if there is none. */
const struct hearth_http_route *hearth_http_route_find(const struct hearth_http_route_table *table,
                                                       struct hearth_str path);
/* For the header Allow. */
const char *hearth_http_route_allow(const struct hearth_http_route *route);
bool hearth_http_route_allows(const struct hearth_http_route *route, struct hearth_str method);

/*
 * The arguments of a query string (what is behind the '?'); empty pairs are skipped.
 *
 * Returns  OK; INVALID_ARGUMENT for a '%' without two hex digits, %00, or more than HEARTH_HTTP_MAX_ARGS; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_http_args_parse(struct hearth_str query, struct hearth_arena *arena,
                                          struct hearth_http_arg **ret_args, size_t *ret_n,
                                          struct hearth_err *err);

/* The first argument of a name; p is NULL when there is none. */
struct hearth_str hearth_http_arg(const struct hearth_rpc *rpc, const char *name);

/* An argument as a time, in ns; without one now_ns, and so what is no time: then with a note. */
int64_t hearth_http_time(struct hearth_rpc *rpc, const char *name, int64_t now_ns);

#endif
