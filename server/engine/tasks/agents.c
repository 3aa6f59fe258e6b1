/* agents.c -- instances and processes of agents (contract: hearth/engine/agents.h). */
#include "hearth/engine/agents.h"

#include "hearth/base/clock.h"
#include "hearth/model/entity_id.h"
#include "hearth/store/store_agents.h"

#include "common/shown.h"
#include "select/query_internal.h"

#include <assert.h>

/* ---- reports ---- */

static enum hearth_status check_agent_name(const struct hearth_reported *reported,
                                           struct hearth_str name, const char *field,
                                           struct hearth_err *err)
{
    assert(reported->path != NULL);

    if (hearth_str_trim(name).n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s%s is missing", reported->path, field);
    }
    if (name.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s%s has %zu bytes; names may have %d",
                           reported->path, field, name.n, HEARTH_AGENT_NAME_BYTES);
    }

    return HEARTH_OK;
}

static enum hearth_status check_agent_properties(const struct hearth_reported *reported,
                                                 const struct hearth_limits *limits,
                                                 struct hearth_err *err)
{
    const struct hearth_process *process = &reported->process;
    size_t n_bytes = 0;

    /* The limit is on the bytes of all names and values together. */
    for (size_t i = 0; i < process->n_properties; i++) {
        n_bytes += process->properties[i].name.n + process->properties[i].value.n;
    }

    if (limits->max_agent_property_bytes > 0 &&
        n_bytes > (uint64_t)limits->max_agent_property_bytes) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "%sproperties have %zu bytes; max-agent-property-bytes allows %lld",
                           reported->path, n_bytes, (long long)limits->max_agent_property_bytes);
    }

    return HEARTH_OK;
}

static enum hearth_status check_reported_process(const struct hearth_reported *reported,
                                                 const struct hearth_limits *limits,
                                                 struct hearth_err *err)
{
    const struct hearth_process *process = &reported->process;

    HEARTH_TRY(check_agent_name(reported, process->service, "serviceName", err));
    HEARTH_TRY(check_agent_name(reported, process->instance, "instanceName", err));
    HEARTH_TRY(check_agent_name(reported, process->name, "processName", err));
    if (process->layer.n > 0) {
        HEARTH_TRY(check_agent_name(reported, process->layer, "layer", err));
    }

    /* The agent's id is a field of the whole report. */
    if (process->agent_id.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "ebpfAgentID has %zu bytes; names may have %d", process->agent_id.n,
                           HEARTH_AGENT_NAME_BYTES);
    }

    /* The limit is on the number of labels; each label is a name. */
    if (limits->max_agent_labels > 0 && process->n_labels > (uint64_t)limits->max_agent_labels) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "%slabels: %zu of them; max-agent-labels allows %lld", reported->path,
                           process->n_labels, (long long)limits->max_agent_labels);
    }

    for (size_t i = 0; i < process->n_labels; i++) {
        HEARTH_TRY(check_agent_name(reported, process->labels[i], "labels", err));
    }

    return check_agent_properties(reported, limits, err);
}

static bool declares_profiling(const struct hearth_process *process)
{
    bool can = false;

    for (size_t i = 0; i < process->n_properties; i++) {
        if (hearth_str_eq_c(process->properties[i].name, HEARTH_PROPERTY_CAN_PROFILE)) {
            can = hearth_str_eq_c(process->properties[i].value, "true");
        }
    }

    return can;
}

enum hearth_status hearth_agents_report_processes(const struct hearth_call *call,
                                                  const struct hearth_reported *reported, size_t n,
                                                  struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(reported != NULL || n == 0);

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    struct hearth_process *processes = hearth_arena_array(call->arena, n, sizeof *processes);
    if (processes == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Check every process before any is stored. */
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(check_reported_process(&reported[i], &limits, err));
        HEARTH_TRY(hearth_call_check_service(call, reported[i].process.service, err));
        processes[i] = reported[i].process;
        processes[i].can_be_profiled = declares_profiling(&processes[i]);
        processes[i].last_seen_ms = now_ms;
    }

    struct hearth_agent_report report = {
        .processes = processes,
        .n_processes = n,
        .max_instances = limits.max_agent_instances,
        .max_processes = limits.max_agent_processes,
    };

    return hearth_store_report_agents(HEARTH_CALL_SCOPE(call), &report, err);
}

enum hearth_status hearth_agents_report_instance(const struct hearth_call *call,
                                                 const struct hearth_reported *reported,
                                                 struct hearth_err *err)
{
    const struct hearth_process *said = &reported->process;
    struct hearth_limits limits;

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);

    /* Check the report; names are required, the layer is optional. */
    HEARTH_TRY(check_agent_name(reported, said->service, "service", err));
    HEARTH_TRY(check_agent_name(reported, said->instance, "serviceInstance", err));
    HEARTH_TRY(check_agent_properties(reported, &limits, err));
    if (said->layer.n > 0) {
        HEARTH_TRY(check_agent_name(reported, said->layer, "layer", err));
    }
    HEARTH_TRY(hearth_call_check_service(call, said->service, err));

    const struct hearth_instance instance = {
        .service = said->service,
        .name = said->instance,
        .layer = said->layer.n > 0 ? said->layer : HEARTH_STR("GENERAL"),
        .properties = said->properties,
        .n_properties = said->n_properties,
        .last_seen_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
    };

    struct hearth_agent_report report = {
        .instances = &instance,
        .n_instances = 1,
        .max_instances = limits.max_agent_instances,
        .max_processes = limits.max_agent_processes,
    };

    return hearth_store_report_agents(HEARTH_CALL_SCOPE(call), &report, err);
}

/* ---- reading ---- */

static enum hearth_status require_service(struct hearth_str service, struct hearth_err *err)
{
    return service.n > 0 ? HEARTH_OK
                         : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the service is missing");
}

enum hearth_status hearth_agents_services(const struct hearth_call *call, int64_t seen_after_ms,
                                          struct hearth_reported_service **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    struct hearth_reported_service *services;
    struct hearth_shown shown = {0};
    size_t n, n_shown = 0;

    assert(call != NULL && ret != NULL && ret_n != NULL);

    HEARTH_TRY(hearth_store_reported_services(HEARTH_CALL_SCOPE(call), HEARTH_STR(""),
                                              seen_after_ms, &services, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, services[i].name, &shows, err));
        if (shows) {
            services[n_shown++] = services[i];
        }
    }

    *ret = services;
    *ret_n = n_shown;

    return HEARTH_OK;
}

enum hearth_status hearth_agents_instances(const struct hearth_call *call,
                                           struct hearth_str service, int64_t seen_after_ms,
                                           struct hearth_instance **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    HEARTH_TRY(require_service(service, err));
    bool shows;
    HEARTH_TRY(hearth_call_shows_service(call, NULL, service, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_instances(HEARTH_CALL_SCOPE(call), service, seen_after_ms, ret, ret_n, err);
}

enum hearth_status hearth_agents_processes(const struct hearth_call *call,
                                           const struct hearth_process_filter *filter,
                                           struct hearth_process **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    HEARTH_TRY(require_service(filter->service, err));
    bool shows;
    HEARTH_TRY(hearth_call_shows_service(call, NULL, filter->service, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_processes(HEARTH_CALL_SCOPE(call), filter, ret, ret_n, err);
}

enum hearth_status hearth_agents_process(const struct hearth_call *call,
                                         struct hearth_str process_id, struct hearth_process *ret,
                                         struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    if (process_id.n != HEARTH_ENTITY_HASH_TEXT) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "process_id \"" HEARTH_STR_FMT "\" is not %d hex digits",
                           HEARTH_STR_ARG(process_id), HEARTH_ENTITY_HASH_TEXT);
    }

    const struct hearth_process_filter filter = {.process_id = process_id};
    struct hearth_process *found;
    size_t n = 0;
    bool shows = false;
    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &found, &n, err));
    if (n > 0) {
        HEARTH_TRY(hearth_call_shows_service(call, NULL, found[0].service, &shows, err));
    }
    if (!shows) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no process \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(process_id));
    }

    *ret = found[0];

    return HEARTH_OK;
}
