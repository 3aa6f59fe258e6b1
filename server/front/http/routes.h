/*
 * routes.h -- the plain GET routes: what they answer, as pure functions of the front's state.
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

/* False: no such route. `json`: the client asked for application/json. `answer->body` is
 * initialised. */
HEARTH_MUST_CHECK bool hearth_route_get(struct hearth_front *front, struct hearth_str path,
                                        bool json, struct hearth_route_answer *answer);

#endif
