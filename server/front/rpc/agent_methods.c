/* agent_methods.c -- access to SkyWalking and OTLP methods: on/off switches, token, default tenant.
 * */
#include "rpc/agent_methods.h"

#include "hearth/engine/traces.h"

#include <assert.h>
#include <stddef.h>

#define ANONYMOUS "anonymous"

static const struct family {
    const char *service, *option;
    size_t offset; /* the position of its switch in struct hearth_agent_options */
} g_families[] = {
#define FAMILY(service, option, member)                                \
    {                                                                  \
        service, option, offsetof(struct hearth_agent_options, member) \
    }
    FAMILY("skywalking.v3.EBPFProcessService", "agent-processes", processes),
    FAMILY("skywalking.v3.EBPFProfilingService", "agent-ebpf", ebpf),
    FAMILY("skywalking.v3.ContinuousProfilingService", "agent-policies", policies),
    FAMILY("skywalking.v3.ProfileTask", "agent-trace-profiling", trace_profiling),
    FAMILY("skywalking.v10.AsyncProfilerTask", "agent-async-profiler", async_profiler),
    FAMILY("skywalking.v10.PprofTask", "agent-pprof", pprof),
    FAMILY("skywalking.v3.TraceSegmentReportService", "agent-segments", segments),
    FAMILY("skywalking.v3.MeterReportService", "agent-meters", meters),
    FAMILY("skywalking.v3.LogReportService", "agent-logs", logs),
    FAMILY("skywalking.v3.SpanAttachedEventReportService", "agent-logs", logs),
    FAMILY("skywalking.v3.ManagementService", "agent-management", management),
    FAMILY("skywalking.v3.ConfigurationDiscoveryService", "agent-management", management),
    FAMILY("skywalking.v3.JVMMetricReportService", "agent-management", management),
    FAMILY("skywalking.v3.EventService", "agent-management", management),
    FAMILY("skywalking.v3.EBPFAccessLogService", "agent-management", management),
#undef FAMILY
};

static const struct family *find_family(const struct hearth_method *method)
{
    struct hearth_str service = hearth_method_service(method);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_families); i++) {
        if (hearth_str_eq_c(service, g_families[i].service)) {
            return &g_families[i];
        }
    }
    return NULL;
}

const char *hearth_agent_option(const struct hearth_method *method)
{
    const struct family *family = find_family(method);
    return family == NULL ? NULL : family->option;
}

static enum hearth_status check_switch(const struct hearth_agent_options *options,
                                       const struct hearth_method *method, struct hearth_err *err)
{
    const struct family *family = find_family(method);
    bool is_on = true;

    if (family != NULL) {
        memcpy(&is_on, (const char *)options + family->offset, sizeof is_on);
    }

    return is_on ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED, "%s is switched off (%s)",
                               method->path + 1, family->option);
}

static enum hearth_status check_otlp_switch(const struct hearth_otlp_options *options,
                                            const struct hearth_method *method,
                                            struct hearth_err *err)
{
    return options->traces ? HEARTH_OK
                           : HEARTH_FAIL(err, HEARTH_UNIMPLEMENTED,
                                         "%s is switched off; start hearthd with --otlp-traces to "
                                         "accept spans",
                                         method->path + 1);
}

static enum hearth_status check_token(const struct hearth_secret *token,
                                      const struct hearth_front_caller *caller,
                                      struct hearth_err *err)
{
    if (token == NULL) {
        return HEARTH_OK;
    }

    if (caller->n_tokens == 0) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the metadata \"authentication\" is missing; agents send their token "
                           "in it (agent-token)");
    }

    if (caller->n_tokens > 1 || !hearth_secret_equals(token, caller->token)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the metadata \"authentication\" does not hold the token of agents "
                           "(agent-token)");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_front_check_switches(const struct hearth_front_options *options,
                                               const struct hearth_method *method,
                                               struct hearth_err *err)
{
    if ((method->flags & HEARTH_METHOD_SPANS) != 0) {
        HEARTH_TRY(check_otlp_switch(&options->otlp, method, err));
    }
    return (method->flags & HEARTH_METHOD_AGENT) != 0 ? check_switch(&options->agents, method, err)
                                                      : HEARTH_OK;
}

struct hearth_tenant_rules hearth_front_tenant_rules(const struct hearth_front_options *options,
                                                     const struct hearth_method *method)
{
    bool many = (method->flags & HEARTH_METHOD_MANY_TENANTS) != 0;

    return (struct hearth_tenant_rules){
        .multitenancy = options->multitenancy,
        .max_tenants = many ? options->max_read_tenants : 1,
        .path = method->path,
    };
}

enum hearth_status hearth_front_admit_all(const struct hearth_front_options *options,
                                          const struct hearth_method *method,
                                          const struct hearth_front_caller *caller,
                                          struct hearth_arena *arena, struct hearth_tenants *ret,
                                          struct hearth_err *err)
{
    assert(method != NULL && ret != NULL);
    size_t n_tenants = caller->n_tenants;
    struct hearth_str tenant = caller->tenant;

    HEARTH_TRY(hearth_front_check_switches(options, method, err));
    if ((method->flags & HEARTH_METHOD_AGENT) != 0) {
        HEARTH_TRY(check_token(atomic_load(&options->agents.token), caller, err));
        if (n_tenants == 0 && options->agents.tenant != NULL) {
            tenant = hearth_str_c(options->agents.tenant);
            n_tenants = 1;
        }
    }

    if ((method->flags & HEARTH_METHOD_TENANT) == 0) {
        return HEARTH_OK;
    }

    const struct hearth_tenant_rules rules = hearth_front_tenant_rules(options, method);

    return hearth_tenant_find(&rules, n_tenants, tenant, arena, ret, err);
}

bool hearth_sampling_ratio_parse(struct hearth_str text, double *ret)
{
    double ratio;
    if (!hearth_str_to_double(text, &ratio) || !(ratio >= 0 && ratio <= 1)) {
        return false;
    }
    *ret = ratio;
    return true;
}

enum hearth_status hearth_otlp_check_options(const struct hearth_otlp_options *options,
                                             struct hearth_err *err)
{
    double ignored;
    const char *ratio = options->traces_ratio;
    return ratio == NULL || hearth_sampling_ratio_parse(hearth_str_c(ratio), &ignored)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "otlp-traces-ratio is \"%s\"; it must be a number from 0 to 1", ratio);
}

enum hearth_status hearth_agent_check_options(const struct hearth_front_options *options,
                                              struct hearth_err *err)
{
    const char *name = options->agents.tenant, *keep = options->agents.segments_keep;
    enum hearth_segments_keep ignored;

    if (keep != NULL && !hearth_segments_keep_parse(hearth_str_c(keep), &ignored)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "agent-segments-keep is \"%s\"; it must be all, profiled or none", keep);
    }

    if (name == NULL || strcmp(name, ANONYMOUS) == 0) {
        return HEARTH_OK;
    }

    if (!options->multitenancy) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "agent-tenant is \"%s\", but without multitenancy the only tenant is "
                           "\"" ANONYMOUS "\"; set multitenancy or remove agent-tenant",
                           name);
    }

    if (name[0] == '\0') {
        return HEARTH_OK; /* no default: agents must send their tenant */
    }

    struct hearth_err why = HEARTH_ERR_INIT;

    return hearth_tenant_name_check(hearth_str_c(name), &why) == HEARTH_OK
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "agent-tenant: %s", why.msg);
}
