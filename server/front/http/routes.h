/*
 * routes.h -- the plain GET routes that are answered at once, from the front's state: /ready,
 * /healthz, /metrics, /api/v1/status/buildinfo and /, and the shape of such answers.
 *
 * Threads:   safe.
 * Source:    docs/reference/api-admin.md, "Plain routes".
 */
#ifndef HEARTH_FRONT_ROUTES_H
#define HEARTH_FRONT_ROUTES_H

#include "hearth/base/buf.h"

#include "rpc/method.h"
#include "rpc/rpc.h"

#define HEARTH_ROUTE_HEADERS 8

struct hearth_route_answer {
    unsigned code;
    const char *content_type; /* NULL: none */
    struct hearth_buf body;
    struct hearth_str fixed; /* bytes that live as long as the process, instead of `body` */
    struct hearth_rpc_header headers[HEARTH_ROUTE_HEADERS]; /* texts are static, or `etag` */
    size_t n_headers;
    char etag[40];
};

/* The route of a path: its path and right; NULL if there is no such route. */
const struct hearth_method *hearth_route_find(struct hearth_str path);
/*
 * Answers the route.
 *
 * accept  what the client accepts: JSON of /ready, OpenMetrics of /metrics
 * answer  filled; the caller owns answer->body
 */
void hearth_route_get(struct hearth_front *front, const struct hearth_method *route,
                      const struct hearth_accept *accept, struct hearth_route_answer *answer);

#endif
