/*
 * quiet_routes.h -- routes of Datadog's agent whose data is not stored: they are answered as the
 * agent answers them, and counted.
 *
 * They take any of GET, HEAD, POST and PUT, any body, and no tenant: nothing of a request is kept.
 *
 * Threads: safe.
 * Source:  the agent's trace API; requests of dd-trace-{java,js,py,go}, docs/reference/datadog.md.
 */
#ifndef HEARTH_FRONT_QUIET_ROUTES_H
#define HEARTH_FRONT_QUIET_ROUTES_H

#include "hearth/base/str.h"

struct hearth_quiet_route {
    const char *path; /* a prefix if it ends with '*' */
    const char *kind; /* label value of hearth_datadog_requests_dropped_total; NULL: not counted */
    unsigned code;
    const char *answer; /* JSON, but for texts of old routes */
};

/* NULL if there is no such route. */
const struct hearth_quiet_route *hearth_quiet_route_find(struct hearth_str path);
bool hearth_quiet_route_allows(struct hearth_str method);
#define HEARTH_QUIET_ROUTE_ALLOW "GET, HEAD, POST, PUT"

/*
 * Counts a request of the route.
 *
 * traces  the header X-Datadog-Trace-Count: the number of traces in the body; may be empty
 */
void hearth_quiet_route_count(const struct hearth_quiet_route *route, struct hearth_str traces);
/* Makes all kinds appear in the metric, with 0, from the start. */
void hearth_quiet_routes_declare_metrics(void);

#endif
