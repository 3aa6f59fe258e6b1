/* methods.c -- methods.def as a table. */
#include "methods.h"

#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/grpc/health/v1/health.pb-c.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

static const struct hearth_method g_methods[] = {
#define X(id, service, method, request, response, handler, pool, flags) \
    {"/" service "/" method,  &request##__descriptor,                   \
     &response##__descriptor, handler,                                  \
     HEARTH_POOL_##pool,      (flags)},
#include "methods.def"
#undef X
};

static const char *const g_services[] = {
#define X(id, service, method, request, response, handler, pool, flags) service,
#include "methods.def"
#undef X
};

const struct hearth_method *hearth_method_find(struct hearth_str path)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_methods); i++) {
        if (hearth_str_eq_c(path, g_methods[i].path)) {
            return &g_methods[i];
        }
    }
    return NULL;
}

bool hearth_service_is_known(struct hearth_str service)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_services); i++) {
        if (hearth_str_eq_c(service, g_services[i])) {
            return true;
        }
    }
    return service.n == 0;
}
