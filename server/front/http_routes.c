/* http_routes.c -- the table of plain routes, made from http_routes.def. */
#include "handlers.h"
#include "tables.h"

static const struct hearth_http_route g_routes[] = {
#define X(id, path_, methods_, handler, pool_, right_, flags_) \
    {.method = {.path = path_,                                 \
                .handle = handler,                             \
                .pool = HEARTH_POOL_##pool_,                   \
                .right = HEARTH_RIGHT_##right_,                \
                .flags = flags_},                              \
     .methods = HEARTH_HTTP_##methods_},
#include "http_routes.def"
#undef X
};

const struct hearth_http_route_table hearth_http_route_table = {
    .routes = g_routes,
    .n = HEARTH_ARRAY_LEN(g_routes),
};
