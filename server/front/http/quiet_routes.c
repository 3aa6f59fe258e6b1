/* quiet_routes.c -- the table of quiet routes, and their metrics. */
#include "http/quiet_routes.h"

#include "hearth/base/metrics.h"

/*
 * What the tracers need: where profiles and traces go. ddtrace warns of an old agent unless it
 * finds the routes of the debugger. No route of configuration, statistics or telemetry: tracers
 * that ask do not send any. The version decides what some tracers send at all.
 */
#define DATADOG_INFO                                                                  \
    "{\"version\":\"7.60.0\",\"endpoints\":[\"/v0.3/traces\",\"/v0.4/traces\","       \
    "\"/v0.5/traces\",\"/profiling/v1/input\",\"/debugger/v1/input\","                \
    "\"/debugger/v1/diagnostics\",\"/debugger/v2/input\"],\"client_drop_p0s\":false," \
    "\"long_running_spans\":false,"                                                   \
    "\"config\":{\"default_env\":\"none\",\"statsd_port\":0}}"

#define MAX_TRACES 1000000 /* in one request; a larger number in the header is not believed */

static const struct hearth_quiet_route g_quiet_routes[] = {
#define QUIET(path, kind, code, answer) {path, kind, code, answer},
#include "http/quiet_routes.def"
#undef QUIET
};

const struct hearth_quiet_route *hearth_quiet_route_find(struct hearth_str path)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_quiet_routes); i++) {
        struct hearth_str known = hearth_str_c(g_quiet_routes[i].path);
        bool is_prefix = known.p[known.n - 1] == '*';
        if (is_prefix ? hearth_str_starts(path, hearth_str_n(known.p, known.n - 1))
                      : hearth_str_eq(path, known)) {
            return &g_quiet_routes[i];
        }
    }

    return NULL;
}

bool hearth_quiet_route_allows(struct hearth_str method)
{
    return hearth_str_eq_c(method, "GET") || hearth_str_eq_c(method, "HEAD") ||
           hearth_str_eq_c(method, "POST") || hearth_str_eq_c(method, "PUT");
}

void hearth_quiet_route_count(const struct hearth_quiet_route *route, struct hearth_str traces)
{
    int64_t n;

    if (route->kind == NULL) {
        return;
    }

    hearth_metric_add_label(HEARTH_M_DATADOG_DROPPED, hearth_str_c(route->kind), 1);
    if (hearth_str_to_i64(traces, &n) && n > 0 && n <= MAX_TRACES) {
        hearth_metric_add(HEARTH_M_DATADOG_TRACES, n);
    }
}

void hearth_quiet_routes_declare_metrics(void)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_quiet_routes); i++) {
        if (g_quiet_routes[i].kind != NULL) {
            hearth_metric_declare(HEARTH_M_DATADOG_DROPPED, g_quiet_routes[i].kind);
        }
    }
}
