/* http_call.c -- look-ups in the table of plain routes; arguments of their requests. */
#include "http/http_call.h"

#include "hearth/selector/timeexpr.h"

#include "rpc/rpc.h"

#include <assert.h>

#define NOTED_BYTES 64u /* of an argument that is not a time, in the note */

const struct hearth_http_route *hearth_http_route_find(const struct hearth_http_route_table *table,
                                                       struct hearth_str path)
{
    for (size_t i = 0; i < table->n; i++) {
        if (hearth_str_eq_c(path, table->routes[i].method.path)) {
            return &table->routes[i];
        }
    }
    return NULL;
}

const char *hearth_http_route_allow(const struct hearth_http_route *route)
{
    return route->methods == HEARTH_HTTP_POST       ? "POST"
           : route->methods == HEARTH_HTTP_GET_POST ? "GET, HEAD, POST"
                                                    : "GET, HEAD";
}

bool hearth_http_route_allows(const struct hearth_http_route *route, struct hearth_str method)
{
    bool is_post = hearth_str_eq_c(method, "POST");
    bool is_get = hearth_str_eq_c(method, "GET") || hearth_str_eq_c(method, "HEAD");

    return (is_post && route->methods != HEARTH_HTTP_GET) ||
           (is_get && route->methods != HEARTH_HTTP_POST);
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
