/*
 * routes.h -- the plain GET routes that are answered at once, from the front's state: /ready,
 * /healthz, /metrics, /api/v1/status/buildinfo and /.
 *
 * Threads:   safe.
 * Source:    docs/reference/api-admin.md, "Plain routes".
 */
#ifndef HEARTH_FRONT_ROUTES_H
#define HEARTH_FRONT_ROUTES_H

#include "hearth/base/buf.h"

struct hearth_front;

struct hearth_route_answer {
    unsigned code;
    const char *content_type;
    struct hearth_buf body;
};

/*
 * Answers the route; false if there is no such route.
 *
 * json    the client accepts application/json
 * answer  on true, filled; the caller owns answer->body
 */
HEARTH_MUST_CHECK bool hearth_route_get(struct hearth_front *front, struct hearth_str path,
                                        bool json, struct hearth_route_answer *answer);

#endif
