/*
 * agent_methods.h -- who may call the methods of SkyWalking's agents (HEARTH_METHOD_AGENT), and for which tenant.
 *
 * A family of methods can be switched off by an option of its own. Its methods are then UNIMPLEMENTED, at which agents
 * stop asking until they are started again. So are those of OpenTelemetry's protocol unless they are switched on.
 *
 * Threads: pure.
 * Source:  docs/reference/skywalking.md, "Who may call".
 */
#ifndef HEARTH_FRONT_AGENT_METHODS_H
#define HEARTH_FRONT_AGENT_METHODS_H

#include "hearth/front/front.h"

#include "rpc/method.h"
#include "rpc/tenant.h"

/* What a client says of itself, of each the first value. */
struct hearth_front_caller {
    size_t n_tenants, n_tokens;
    struct hearth_str tenant; /* X-Scope-OrgID */
    struct hearth_str token;  /* authentication */
};

/* The option that switches the method off, or NULL when it belongs to no family. */
const char *hearth_agent_option(const struct hearth_method *method);

/*
 * The tenant of a call of any method that belongs to one; of agents also whether they may call.
 *
 * Returns OK; UNIMPLEMENTED for a family that is switched off; UNAUTHENTICATED without the right token; else what
 * hearth_tenant_find returns.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_admit(const struct hearth_front_options *options,
                                      const struct hearth_method *method,
                                      const struct hearth_front_caller *caller,
                                      struct hearth_tenant *ret_tenant, struct hearth_err *err);

/* A number from 0 to 1. */
HEARTH_MUST_CHECK bool hearth_sampling_ratio_parse(struct hearth_str text, double *ret);
HEARTH_MUST_CHECK
enum hearth_status hearth_otlp_check_options(const struct hearth_otlp_options *options,
                                             struct hearth_err *err);
/* Options that cannot be meant are INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agent_check_options(const struct hearth_front_options *options,
                                              struct hearth_err *err);

#endif
