/* routes.c -- the plain routes that are answered at once: a function for each, and their table. */
#include "http/routes.h"

#include "hearth/base/metrics.h"
#include "hearth/codec/json_writer.h"

#include "http/http_call.h"
#include "http/web_page.h"
#include "rpc/front_internal.h"
#include "rpc/media.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#define TEXT "text/plain; charset=utf-8"
#define JSON "application/json"

typedef void route_fn(struct hearth_front *front, const struct hearth_accept *accept,
                      struct hearth_route_answer *answer);

static void get_ready(struct hearth_front *front, const struct hearth_accept *accept,
                      struct hearth_route_answer *answer)
{
    char reason[256] = "";
    bool ready = hearth_front_is_ready(front, reason);

    answer->code = ready ? 200 : 503;
    if (!accept->json) {
        hearth_buf_printf(&answer->body, "%s%s",
                          !ready           ? ""
                          : reason[0] == 0 ? "ready"
                                           : "ready, degraded: ",
                          reason);
        return;
    }

    answer->content_type = JSON;
    struct hearth_json out;
    hearth_json_init(&out, &answer->body);
    hearth_json_object(&out);
    hearth_json_key_c(&out, "ready");
    hearth_json_bool(&out, ready);
    hearth_json_key_c(&out, "degraded");
    hearth_json_bool(&out, ready && reason[0] != 0);
    hearth_json_key_c(&out, "reasons");
    hearth_json_array(&out);
    if (reason[0] != 0) {
        hearth_json_string_c(&out, reason);
    }

    hearth_json_array_end(&out);
    hearth_json_object_end(&out);
}

/* Says only that this process answers; does not depend on the database. */
static void get_healthz(struct hearth_front *front, const struct hearth_accept *accept,
                        struct hearth_route_answer *answer)
{
    (void)front;
    (void)accept;
    hearth_buf_cstr(&answer->body, "ok\n");
}

static void get_metrics(struct hearth_front *front, const struct hearth_accept *accept,
                        struct hearth_route_answer *answer)
{
    bool is_open = accept->openmetrics;
    char reason[256];
    hearth_metric_set(HEARTH_M_READY, hearth_front_is_ready(front, reason) ? 1 : 0);
    hearth_metrics_refresh_process();
    answer->content_type = is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                   : "text/plain; version=0.0.4; charset=utf-8";
    hearth_metrics_write(&answer->body,
                         is_open ? HEARTH_METRICS_OPENMETRICS : HEARTH_METRICS_PROMETHEUS);
}

/* In the form that Grafana reads. Fields that only a Go program has are empty. */
static void get_buildinfo(struct hearth_front *front, const struct hearth_accept *accept,
                          struct hearth_route_answer *answer)
{
    static const char *const empty[] = {"revision", "branch", "buildUser", "buildDate",
                                        "goVersion"};

    (void)accept;
    answer->content_type = JSON;
    struct hearth_json out;
    hearth_json_init(&out, &answer->body);
    hearth_json_object(&out);
    hearth_json_key_c(&out, "status");
    hearth_json_string_c(&out, "success");
    hearth_json_key_c(&out, "data");
    hearth_json_object(&out);
    hearth_json_key_c(&out, "version");
    hearth_json_string_c(&out, front->version);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(empty); i++) {
        hearth_json_key_c(&out, empty[i]);
        hearth_json_string_c(&out, "");
    }

    hearth_json_object_end(&out);
    hearth_json_object_end(&out);
}

static void get_root(struct hearth_front *front, const struct hearth_accept *accept,
                     struct hearth_route_answer *answer)
{
    (void)accept;
    hearth_buf_printf(&answer->body, "Hearth %s, a continuous profiling database\n\n",
                      front->version);
    hearth_buf_cstr(
        &answer->body,
        hearth_web_page_is_here()
            ? "GET  /                           the web page, for browsers; this list for others\n"
              "GET  /docs/                      the documents\n"
            : "This program was built without the web page and the documents (HEARTH_UI=OFF).\n");
    hearth_buf_cstr(
        &answer->body,
        "GET  /ready                      200 if the server can work, else 503 and why\n"
        "GET  /healthz                    200 while this process answers\n"
        "GET  /metrics                    Prometheus text, or OpenMetrics\n"
        "GET  /api/v1/status/buildinfo    version as JSON\n");

    for (size_t i = 0; i < front->routes->n; i++) {
        const struct hearth_http_route *route = &front->routes->routes[i];
        hearth_buf_printf(&answer->body, "%s  %s\n",
                          route->methods == HEARTH_HTTP_POST ? "POST" : "GET", route->method.path);
    }

    hearth_buf_cstr(&answer->body,
                    "\n"
                    "gRPC, and POST of application/proto or application/json (Connect):\n");

    for (size_t i = 0; i < front->methods->n; i++) {
        hearth_buf_printf(&answer->body, "     %s\n", front->methods->methods[i].path);
    }
}

static const struct hearth_method g_routes[] = {
#define ROUTE(path_, get, right_) {.path = path_, .right = HEARTH_RIGHT_##right_},
#include "http/instant_routes.def"
#undef ROUTE
};

static route_fn *const g_route_functions[] = {
#define ROUTE(path, get, right) get,
#include "http/instant_routes.def"
#undef ROUTE
};

const struct hearth_method *hearth_route_find(struct hearth_str path)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_routes); i++) {
        if (hearth_str_eq_c(path, g_routes[i].path)) {
            return &g_routes[i];
        }
    }
    return NULL;
}

void hearth_route_get(struct hearth_front *front, const struct hearth_method *route,
                      const struct hearth_accept *accept, struct hearth_route_answer *answer)
{
    assert(route >= g_routes && route < g_routes + HEARTH_ARRAY_LEN(g_routes));

    *answer = (struct hearth_route_answer){.code = 200, .content_type = TEXT};
    hearth_buf_init(&answer->body, 0);
    g_route_functions[route - g_routes](front, accept, answer);
}
