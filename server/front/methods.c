/* methods.c -- methods.def as a table. */
#include "methods.h"

#include "hearth/base/metrics.h"
#include "hearth/pb/adhocprofiles/v1/adhocprofiles.pb-c.h"
#include "hearth/pb/capabilities/v1/feature_flags.pb-c.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/grpc/health/v1/health.pb-c.h"
#include "hearth/pb/grpc/reflection/v1/reflection.pb-c.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"
#include "hearth/pb/hearth/v1/network.pb-c.h"
#include "hearth/pb/hearth/v1/policies.pb-c.h"
#include "hearth/pb/hearth/v1/processes.pb-c.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"
#include "hearth/pb/opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/settings/v1/recording_rules.pb-c.h"
#include "hearth/pb/settings/v1/settings.pb-c.h"
#include "hearth/pb/skywalking/v10/async_profiler.pb-c.h"
#include "hearth/pb/skywalking/v10/pprof.pb-c.h"
#include "hearth/pb/skywalking/v3/common.pb-c.h"
#include "hearth/pb/skywalking/v3/ebpf.pb-c.h"
#include "hearth/pb/skywalking/v3/logging.pb-c.h"
#include "hearth/pb/skywalking/v3/management.pb-c.h"
#include "hearth/pb/skywalking/v3/meter.pb-c.h"
#include "hearth/pb/skywalking/v3/profile.pb-c.h"
#include "hearth/pb/skywalking/v3/trace.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"
#include "hearth/pb/vcs/v1/vcs.pb-c.h"
#include "hearth/pb/version/v1/version.pb-c.h"

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

/* Of SkyWalking's first agents, whose services had no package. */
static bool is_old_name(struct hearth_str path, struct hearth_str full)
{
    struct hearth_str package = HEARTH_STR("/skywalking.v3.");
    return path.n > 1 && path.p[0] == '/' && hearth_str_starts(full, package) &&
           hearth_str_eq(hearth_str_n(path.p + 1, path.n - 1),
                         hearth_str_n(full.p + package.n, full.n - package.n));
}

/* SDKs that were given the base address of a DeepFlow agent push below it. */
static struct hearth_str without_deepflow(struct hearth_str path)
{
    struct hearth_str base = HEARTH_STR("/api/v1/profile");
    struct hearth_str rest =
        hearth_str_starts(path, base) ? hearth_str_n(path.p + base.n, path.n - base.n) : path;
    return hearth_str_starts(rest, HEARTH_STR("/push.v1.")) ? rest : path;
}

const struct hearth_method *hearth_method_find(struct hearth_str path)
{
    path = without_deepflow(path);
    bool has_package = hearth_str_find(path, '.', 0) < path.n;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_methods); i++) {
        struct hearth_str full = hearth_str_c(g_methods[i].path);
        if (has_package ? hearth_str_eq(path, full) : is_old_name(path, full)) {
            return &g_methods[i];
        }
    }
    return NULL;
}

void hearth_methods_declare_metrics(void)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_methods); i++) {
        if ((g_methods[i].flags & HEARTH_METHOD_COLLECT) != 0) {
            hearth_metric_declare(HEARTH_M_STREAM_MESSAGES, g_methods[i].path + 1);
        }
    }
}

static bool is_new_service(size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(g_services[i], g_services[k]) == 0) {
            return false;
        }
    }
    return true;
}

size_t hearth_service_count(void)
{
    size_t n = 0;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_services); i++) {
        n += is_new_service(i);
    }
    return n;
}

const char *hearth_service_name(size_t wanted)
{
    for (size_t i = 0, n = 0; i < HEARTH_ARRAY_LEN(g_services); i++) {
        if (is_new_service(i) && n++ == wanted) {
            return g_services[i];
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
