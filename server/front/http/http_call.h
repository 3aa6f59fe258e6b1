/*
 * http_call.h -- plain HTTP routes whose work runs on a pool like that of an RPC: /ingest,
 * /pyroscope/render and others.
 *
 * A route is a struct hearth_method without messages, from http_routes.def. Its handler reads the
 * arguments and the body (rpc->body, compressed as the client sent it; the handler may free it
 * early with rpc->drop_body), appends the body of the answer to rpc->packed and ends the request.
 * Errors are answered like Connect errors: JSON, with the HTTP status of the table of statuses.
 * Errors of routes with HEARTH_METHOD_OTLP are google.rpc.Status in the encoding of the request.
 * Deadlines, cancellation, tenants, budgets, compression of answers and the log are the same as for
 * RPCs.
 *
 * Before a handler runs: the HTTP method is allowed for the route (else 405), the arguments are
 * well formed (else 400), the body is complete and within max-request-bytes, and the tenant is
 * known if the route has HEARTH_METHOD_TENANT.
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
    /* Percent-decoded, with '+' as blank. NUL-terminated, without other NUL bytes. */
    struct hearth_str name, value;
};

/* The form of an error in the answer. */
enum hearth_http_errors {
    HEARTH_HTTP_ERRORS_CONNECT,     /* JSON of a Connect error */
    HEARTH_HTTP_ERRORS_STATUS,      /* google.rpc.Status as protobuf */
    HEARTH_HTTP_ERRORS_STATUS_JSON, /* google.rpc.Status as JSON */
};

/* A request of a plain route: rpc->http, NULL for RPCs. Texts live in the request's arena. */
struct hearth_http_call {
    struct hearth_str method;     /* "GET", "HEAD", "POST" */
    struct hearth_http_arg *args; /* in order of the query string */
    size_t n_args;
    struct hearth_str content_type, content_encoding; /* as sent; empty: not sent */
    struct hearth_str login_cookie; /* of a log-in at an issuer; p is NULL: not sent */

    /* The answer; may be set by the handler. */
    unsigned code;           /* the HTTP status; 0: 200, or that of the status of the rpc */
    const char *answer_type; /* the Content-Type; static; NULL: none */
    const char *error_code;  /* the code of a Connect error; static; NULL: the name of the status */
    enum hearth_http_errors errors;
};

/* The HTTP methods that a route allows. */
enum hearth_http_methods {
    HEARTH_HTTP_GET, /* GET and HEAD */
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

/*
 * The route of a path that allows the HTTP method; otherwise another route of the path; NULL if
 * there is none.
 */
const struct hearth_http_route *hearth_http_route_find(const struct hearth_http_route_table *table,
                                                       struct hearth_str path,
                                                       struct hearth_str method);
/* The value of the header Allow for a path that has a route. */
const char *hearth_http_route_allow(const struct hearth_http_route_table *table,
                                    struct hearth_str path);
bool hearth_http_route_allows(const struct hearth_http_route *route, struct hearth_str method);

/*
 * Parses the arguments of a query string (the part of a URL after the '?'). Empty pairs are
 * ignored.
 *
 * Returns  OK; INVALID_ARGUMENT for a '%' without two hexadecimal digits, for %00, and for more
 *          than HEARTH_HTTP_MAX_ARGS arguments; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_http_args_parse(struct hearth_str query, struct hearth_arena *arena,
                                          struct hearth_http_arg **ret_args, size_t *ret_n,
                                          struct hearth_err *err);

/* The first argument with the name; p is NULL if there is none. */
struct hearth_str hearth_http_arg(const struct hearth_rpc *rpc, const char *name);

/* An argument as a time in ns. now_ns if it is missing; also, with a note, if it is not a time. */
int64_t hearth_http_time(struct hearth_rpc *rpc, const char *name, int64_t now_ns);

#endif
