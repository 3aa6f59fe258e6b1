/* method.c -- look-ups in the table of RPCs. */
#include "rpc/method.h"

#include "hearth/base/metrics.h"

#include <assert.h>

/* SkyWalking's first agents call services without a package. */
static bool is_name_without_package(struct hearth_str path, struct hearth_str full)
{
    struct hearth_str package = HEARTH_STR("/skywalking.v3.");
    return path.n > 1 && path.p[0] == '/' && hearth_str_starts(full, package) &&
           hearth_str_eq(hearth_str_n(path.p + 1, path.n - 1),
                         hearth_str_n(full.p + package.n, full.n - package.n));
}

/* SDKs configured with the base address of a DeepFlow agent push below /api/v1/profile. */
static struct hearth_str skip_deepflow_base(struct hearth_str path)
{
    struct hearth_str base = HEARTH_STR("/api/v1/profile");
    struct hearth_str rest =
        hearth_str_starts(path, base) ? hearth_str_n(path.p + base.n, path.n - base.n) : path;
    return hearth_str_starts(rest, HEARTH_STR("/push.v1.")) ? rest : path;
}

const struct hearth_method *hearth_method_find(const struct hearth_method_table *table,
                                               struct hearth_str path)
{
    path = skip_deepflow_base(path);
    bool has_package = hearth_str_find(path, '.', 0) < path.n;

    for (size_t i = 0; i < table->n; i++) {
        struct hearth_str full = hearth_str_c(table->methods[i].path);
        if (has_package ? hearth_str_eq(path, full) : is_name_without_package(path, full)) {
            return &table->methods[i];
        }
    }

    return NULL;
}

struct hearth_str hearth_method_service(const struct hearth_method *method)
{
    struct hearth_str path = hearth_str_c(method->path);
    assert(path.n > 1 && path.p[0] == '/');
    return hearth_str_n(path.p + 1, hearth_str_find(path, '/', 1) - 1);
}

static bool is_service_listed(const struct hearth_str *services, size_t n,
                              struct hearth_str service)
{
    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq(services[i], service)) {
            return true;
        }
    }
    return false;
}

size_t hearth_method_services(const struct hearth_method_table *table, struct hearth_str *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < table->n; i++) {
        struct hearth_str service = hearth_method_service(&table->methods[i]);
        if (!is_service_listed(ret, n, service)) {
            ret[n++] = service;
        }
    }

    return n;
}

bool hearth_service_is_known(const struct hearth_method_table *table, struct hearth_str service)
{
    for (size_t i = 0; i < table->n; i++) {
        if (hearth_str_eq(service, hearth_method_service(&table->methods[i]))) {
            return true;
        }
    }
    return service.n == 0;
}

void hearth_methods_declare_metrics(const struct hearth_method_table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        if ((table->methods[i].flags & HEARTH_METHOD_COLLECT) != 0) {
            hearth_metric_declare(HEARTH_M_STREAM_MESSAGES, table->methods[i].path + 1);
        }
    }
}
