/*
 * svc_policy_past.c -- hearth.v1.PolicyService: monitored processes, metrics over time, and dry
 * runs over these metrics.
 */
#include "handlers.h"
#include "policies/svc_policies.h"
#include "rpc/unary.h"
#include "tasks/shared_maps.h"

#define NO_METRICS \
    "no metrics: agents report them while a policy watches them (it may be observing)"

/* ---- monitored processes ---- */

HEARTH_MAP_TYPES(process, struct hearth_monitored_process, Hearth__V1__MonitoredProcess);
static const struct hearth_message_member process_members[] = {
    HEARTH_MAP_ONE(process, process, process, &hearth_process_map),
    HEARTH_MAP(process, n_triggered, triggered_count),
    HEARTH_MAP(process, last_triggered_ms, last_triggered_ms),
    HEARTH_MAP(process, silent_until_ms, silent_until_ms),
};
static const struct hearth_message_map process_map =
    HEARTH_MESSAGE_MAP(process, hearth__v1__monitored_process__descriptor);

HEARTH_MAP_TYPES(instance, struct hearth_monitored_instance, Hearth__V1__MonitoredInstance);
static const struct hearth_message_member instance_members[] = {
    HEARTH_MAP(instance, name, instance),
    HEARTH_MAP_LIST(instance, properties, n_properties, properties, &hearth_property_map),
    HEARTH_MAP(instance, n_triggered, triggered_count),
    HEARTH_MAP(instance, last_triggered_ms, last_triggered_ms),
    HEARTH_MAP_LIST(instance, processes, n_processes, processes, &process_map),
};
static const struct hearth_message_map instance_map =
    HEARTH_MESSAGE_MAP(instance, hearth__v1__monitored_instance__descriptor);

HEARTH_UNARY(hearth_svc_policy_monitored, Hearth__V1__MonitoredInstancesRequest,
             Hearth__V1__MonitoredInstancesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_monitored_instance *instances;
    size_t n;

    HEARTH_TRY(hearth_policies_monitored(&call, hearth_str_c(in->service),
                                         (enum hearth_policy_kind)in->kind, &instances, &n,
                                         &rpc->err));
    HEARTH_RPC_LIST(rpc, &instance_map, instances, n, out, instances);

    return HEARTH_OK;
}

/* ---- dry run ---- */

static void fill_cause_texts(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_policy_trigger *trigger = from;
    Hearth__V1__TriggerCause *out = message;
    struct hearth_buf sentence;
    assert(trigger->monitor > 0 && trigger->monitor < HEARTH_MONITOR_END);

    /* The URI is one of these two. */
    out->monitor = hearth_rpc_text(rpc, hearth_str_c(hearth_monitor_name(trigger->monitor)));
    if (trigger->uri.n > 0) {
        *(trigger->uri_is_regex ? &out->uri_regex : &out->uri_path) =
            hearth_rpc_text(rpc, trigger->uri);
    }

    hearth_buf_init(&sentence, 0);
    hearth_cause_message(trigger->monitor, trigger->uri, trigger->current, trigger->threshold,
                         &sentence);
    out->message = hearth_rpc_text(rpc, hearth_buf_view(&sentence));
    hearth_buf_release(&sentence);
}

HEARTH_MAP_TYPES(cause, struct hearth_policy_trigger, Hearth__V1__TriggerCause);
static const struct hearth_message_member cause_members[] = {
    HEARTH_MAP(cause, threshold, threshold),
    HEARTH_MAP(cause, current, current),
};
static const struct hearth_message_map cause_map =
    HEARTH_MESSAGE_MAP_AND(cause, hearth__v1__trigger_cause__descriptor, fill_cause_texts);

static void fill_cause(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_policy_trigger *trigger = from;
    Hearth__V1__DryRunTrigger *out = message;

    out->cause = hearth_rpc_map(rpc, &cause_map, trigger);
    out->silent_until_ms = trigger->at_ms + HEARTH_POLICY_SILENCE_MS;
}

HEARTH_MAP_TYPES(trigger, struct hearth_policy_trigger, Hearth__V1__DryRunTrigger);
static const struct hearth_message_member trigger_members[] = {
    HEARTH_MAP(trigger, kind, kind), /* the same numbers */
    HEARTH_MAP(trigger, instance, instance),
    HEARTH_MAP(trigger, process, process),
    HEARTH_MAP(trigger, at_ms, at_ms),
};
static const struct hearth_message_map trigger_map =
    HEARTH_MESSAGE_MAP_AND(trigger, hearth__v1__dry_run_trigger__descriptor, fill_cause);

HEARTH_MAP_TYPES(dry_run, struct hearth_dry_run, Hearth__V1__DryRunResponse);
static const struct hearth_message_member dry_run_members[] = {
    HEARTH_MAP_LIST(dry_run, triggers, n_triggers, triggers, &trigger_map),
    HEARTH_MAP(dry_run, resolution_ms, resolution_ms),
    HEARTH_MAP_TEXTS(dry_run, notes, n_notes, notes),
};
static const struct hearth_message_map dry_run_map =
    HEARTH_MESSAGE_MAP(dry_run, hearth__v1__dry_run_response__descriptor);

HEARTH_UNARY(hearth_svc_policy_dry_run, Hearth__V1__DryRunRequest, Hearth__V1__DryRunResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    struct hearth_policy policy;
    struct hearth_dry_run run;

    HEARTH_TRY(hearth_rpc_read_policy(rpc, in->policy, &policy));
    HEARTH_TRY(hearth_policies_dry_run(&query, &policy, &run, &rpc->err));
    hearth_rpc_map_into(rpc, &dry_run_map, &run, out);

    return HEARTH_OK;
}

/* ---- metrics ---- */

HEARTH_MAP_TYPES(point, struct hearth_monitor_value, Hearth__V1__MonitorPoint);
static const struct hearth_message_member point_members[] = {
    HEARTH_MAP(point, at_ms, at_ms),
    HEARTH_MAP(point, value, value),
};
static const struct hearth_message_map point_map =
    HEARTH_MESSAGE_MAP(point, hearth__v1__monitor_point__descriptor);

static void fill_monitor_unit(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_monitor_line *line = from;
    Hearth__V1__MonitorLine *out = message;

    out->unit = hearth_rpc_text(rpc, hearth_str_c(hearth_monitor_unit(line->monitor)));
}

HEARTH_MAP_TYPES(line, struct hearth_monitor_line, Hearth__V1__MonitorLine);
static const struct hearth_message_member line_members[] = {
    HEARTH_MAP(line, monitor, monitor), /* the same numbers */
    HEARTH_MAP(line, instance, instance),
    HEARTH_MAP(line, process, process),
    HEARTH_MAP(line, uri, uri),
    HEARTH_MAP_LIST(line, values, n_values, points, &point_map),
};
static const struct hearth_message_map line_map =
    HEARTH_MESSAGE_MAP_AND(line, hearth__v1__monitor_line__descriptor, fill_monitor_unit);

HEARTH_UNARY(hearth_svc_policy_series, Hearth__V1__MonitorSeriesRequest,
             Hearth__V1__MonitorSeriesResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    struct hearth_monitor_filter filter = {.service = hearth_str_c(in->service),
                                           .instance = hearth_str_c(in->instance),
                                           .process = hearth_str_c(in->process)};
    const struct hearth_str no_metrics = HEARTH_STR(NO_METRICS);
    struct hearth_monitor_steps steps = {in->step_seconds,
                                         (enum hearth_monitor_step_value)in->step_value};
    struct hearth_monitor_line *lines;
    size_t n;

    /* Check the enums, which may be unsigned. */
    if ((int)in->monitor < 0 || (int)in->monitor >= HEARTH_MONITOR_END) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "monitor %d is not known",
                           (int)in->monitor);
    }

    if ((int)in->step_value < 0 || (int)in->step_value >= HEARTH_MONITOR_STEP_END) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "step_value %d is not known",
                           (int)in->step_value);
    }

    filter.monitors = in->monitor == 0 ? 0 : 1u << in->monitor;

    /* Query. */
    HEARTH_TRY(hearth_monitors_series(&query, &filter, steps, &lines, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &line_map, lines, n, out, lines);
    out->notes = hearth_rpc_texts(rpc, &no_metrics, n == 0);
    out->n_notes = n == 0;

    return HEARTH_OK;
}
