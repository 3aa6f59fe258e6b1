/*
 * agent_methods.h -- access to the methods of SkyWalking agents (HEARTH_METHOD_AGENT) and to spans
 * by OTLP (HEARTH_METHOD_SPANS): on/off switches, token, default tenant.
 *
 * Each family of agents' methods has an option that switches it off. Its methods are then
 * UNIMPLEMENTED, and agents do not call them again until they are restarted. The methods for
 * spans by OTLP are UNIMPLEMENTED unless an option switches them on.
 *
 * Threads: pure.
 * Source:  docs/reference/skywalking.md, "Who may call".
 */
#ifndef HEARTH_FRONT_AGENT_METHODS_H
#define HEARTH_FRONT_AGENT_METHODS_H

#include "hearth/front/front.h"

#include "rpc/caller.h"
#include "rpc/method.h"
#include "rpc/tenant.h"

/* The option that switches the method off; NULL if it belongs to no family. */
const char *hearth_agent_option(const struct hearth_method *method);

/* UNIMPLEMENTED for methods that an option switches off, or does not switch on. */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_check_switches(const struct hearth_front_options *options,
                                               const struct hearth_method *method,
                                               struct hearth_err *err);
/* What X-Scope-OrgID may say for a method. */
struct hearth_tenant_rules hearth_front_tenant_rules(const struct hearth_front_options *options,
                                                     const struct hearth_method *method);
/*
 * Finds the tenants of a caller on a listener where everybody may do everything
 * (HEARTH_AUTH_NONE). *ret is unchanged if the method has no tenant.
 *
 * Returns  OK; UNIMPLEMENTED for methods that are switched off; UNAUTHENTICATED without the right
 *          token of agents (agent-token); otherwise the status of hearth_tenant_find.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_admit_all(const struct hearth_front_options *options,
                                          const struct hearth_method *method,
                                          const struct hearth_front_caller *caller,
                                          struct hearth_arena *arena, struct hearth_tenants *ret,
                                          struct hearth_err *err);

/* False unless the text is a number from 0 to 1. */
HEARTH_MUST_CHECK bool hearth_sampling_ratio_parse(struct hearth_str text, double *ret);
/* INVALID_ARGUMENT for option values out of their range. */
HEARTH_MUST_CHECK
enum hearth_status hearth_otlp_check_options(const struct hearth_otlp_options *options,
                                             struct hearth_err *err);
/* INVALID_ARGUMENT for option values that are unknown or contradict each other. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agent_check_options(const struct hearth_front_options *options,
                                              struct hearth_err *err);

#endif
