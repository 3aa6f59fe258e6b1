/* http_call.c -- look-ups in the table of plain routes; arguments of their requests. */
#include "http/http_call.h"

#include "hearth/selector/timeexpr.h"

#include "rpc/rpc.h"

#include <assert.h>

#define NOTED_BYTES 64u /* of an argument that is not a time, in the note */

const struct hearth_http_route *hearth_http_route_find(const struct hearth_http_route_table *table,
                                                       struct hearth_str path,
                                                       struct hearth_str method)
{
    const struct hearth_http_route *found = NULL;

    for (size_t i = 0; i < table->n; i++) {
        const struct hearth_http_route *route = &table->routes[i];
        if (!hearth_str_eq_c(path, route->method.path)) {
            continue;
        }
        if (hearth_http_route_allows(route, method)) {
            return route;
        }
        found = found == NULL ? route : found;
    }

    return found;
}

const char *hearth_http_route_allow(const struct hearth_http_route_table *table,
                                    struct hearth_str path)
{
    bool gets = false, posts = false;

    for (size_t i = 0; i < table->n; i++) {
        if (hearth_str_eq_c(path, table->routes[i].method.path)) {
            gets = gets || table->routes[i].methods == HEARTH_HTTP_GET;
            posts = posts || table->routes[i].methods == HEARTH_HTTP_POST;
        }
    }

    assert(gets || posts);

    return !posts ? "GET, HEAD" : !gets ? "POST" : "GET, HEAD, POST";
}

bool hearth_http_route_allows(const struct hearth_http_route *route, struct hearth_str method)
{
    if (route->methods == HEARTH_HTTP_POST) {
        return hearth_str_eq_c(method, "POST");
    }
    return hearth_str_eq_c(method, "GET") || hearth_str_eq_c(method, "HEAD");
}

struct hearth_str hearth_http_arg(const struct hearth_rpc *rpc, const char *name)
{
    assert(rpc->http != NULL); /* a plain route */
    for (size_t i = 0; i < rpc->http->n_args; i++) {
        if (hearth_str_eq_c(rpc->http->args[i].name, name)) {
            return rpc->http->args[i].value;
        }
    }
    return hearth_str_n(NULL, 0);
}

int64_t hearth_http_time(struct hearth_rpc *rpc, const char *name, int64_t now_ns)
{
    bool understood;
    struct hearth_str text = hearth_http_arg(rpc, name);
    int64_t ns = hearth_attime_parse(text, now_ns, &understood);

    if (!understood) {
        /* Each line is a note: stop at a control byte, which may be a line feed. */
        size_t n = 0;
        while (n < text.n && n < NOTED_BYTES && (unsigned char)text.p[n] >= ' ') {
            n++;
        }
        hearth_buf_printf(&rpc->notes, "%s \"%.*s%s\" is not a time: now is used\n", name, (int)n,
                          text.p, n < text.n ? "..." : "");
    }

    return ns;
}
