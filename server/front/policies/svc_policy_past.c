/*
 * svc_policy_past.c -- hearth.v1.PolicyService: monitored processes, metrics over time, and dry
 * runs over these metrics.
 */
#include "handlers.h"
#include "policies/svc_policies.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

/* ---- monitored processes ---- */

static Hearth__V1__Property **make_properties(struct hearth_rpc *rpc,
                                              const struct hearth_property *properties, size_t n)
{
    Hearth__V1__Property *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    Hearth__V1__Property **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    for (size_t i = 0; bodies != NULL && list != NULL && i < n; i++) {
        hearth__v1__property__init(&bodies[i]);
        bodies[i].name = hearth_rpc_text(rpc, properties[i].name);
        bodies[i].value = hearth_rpc_text(rpc, properties[i].value);
        list[i] = &bodies[i];
    }

    return bodies == NULL ? NULL : list;
}

static Hearth__V1__MonitoredProcess *make_process(struct hearth_rpc *rpc,
                                                  const struct hearth_monitored_process *in)
{
    const struct hearth_process *process = &in->process;
    Hearth__V1__MonitoredProcess *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Process *body = hearth_arena_alloc(&rpc->arena, sizeof *body);
    if (out == NULL || body == NULL) {
        return NULL;
    }

    hearth__v1__process__init(body);
    body->process_id = hearth_rpc_text(rpc, process->process_id);
    body->service = hearth_rpc_text(rpc, process->service);
    body->instance = hearth_rpc_text(rpc, process->instance);
    body->name = hearth_rpc_text(rpc, process->name);
    body->detect_type = (Hearth__V1__DetectType)process->detect_type;
    body->agent_id = hearth_rpc_text(rpc, process->agent_id);
    body->labels = hearth_rpc_texts(rpc, process->labels, process->n_labels);
    body->n_labels = process->n_labels;
    body->properties = make_properties(rpc, process->properties, process->n_properties);
    body->n_properties = process->n_properties;
    body->can_be_profiled = process->can_be_profiled;
    body->first_seen_ms = process->first_seen_ms;
    body->last_seen_ms = process->last_seen_ms;
    hearth__v1__monitored_process__init(out);
    out->process = body;
    out->triggered_count = in->n_triggered;
    out->last_triggered_ms = in->last_triggered_ms;
    out->silent_until_ms = in->silent_until_ms;

    return out;
}

static Hearth__V1__MonitoredInstance *make_instance(struct hearth_rpc *rpc,
                                                    const struct hearth_monitored_instance *in)
{
    Hearth__V1__MonitoredInstance *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__MonitoredProcess **processes =
        hearth_arena_array(&rpc->arena, in->n_processes, sizeof *processes);
    if (out == NULL || processes == NULL) {
        return NULL;
    }

    hearth__v1__monitored_instance__init(out);
    out->instance = hearth_rpc_text(rpc, in->name);
    out->properties = make_properties(rpc, in->properties, in->n_properties);
    out->n_properties = in->n_properties;
    out->triggered_count = in->n_triggered;
    out->last_triggered_ms = in->last_triggered_ms;

    for (size_t i = 0; i < in->n_processes; i++) {
        processes[i] = make_process(rpc, &in->processes[i]);
    }

    out->processes = processes;
    out->n_processes = in->n_processes;

    return out;
}

static enum hearth_status monitored(struct hearth_rpc *rpc)
{
    const Hearth__V1__MonitoredInstancesRequest *in =
        (const Hearth__V1__MonitoredInstancesRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_monitored_instance *instances;
    size_t n;

    HEARTH_TRY(hearth_policies_monitored(&call, hearth_str_c(in->service),
                                         (enum hearth_policy_kind)in->kind, &instances, &n,
                                         &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__MonitoredInstancesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__MonitoredInstance **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__monitored_instances_response__init(out);

    for (size_t i = 0; i < n; i++) {
        list[i] = make_instance(rpc, &instances[i]);
    }

    out->instances = list;
    out->n_instances = n;
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_policy_monitored(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, monitored(rpc));
}

/* ---- dry run ---- */

static Hearth__V1__TriggerCause *make_cause(struct hearth_rpc *rpc,
                                            const struct hearth_policy_trigger *trigger)
{
    Hearth__V1__TriggerCause *cause = hearth_arena_alloc(&rpc->arena, sizeof *cause);
    if (cause == NULL) {
        return NULL;
    }

    struct hearth_buf message;
    hearth_buf_init(&message, 0);
    hearth_cause_message(trigger->monitor, trigger->uri, trigger->current, trigger->threshold,
                         &message);

    struct hearth_str none = {"", 0};

    hearth__v1__trigger_cause__init(cause);
    cause->monitor = hearth_rpc_text(rpc, hearth_str_c(hearth_monitor_name(trigger->monitor)));
    cause->uri_regex = hearth_rpc_text(rpc, trigger->uri_is_regex ? trigger->uri : none);
    cause->uri_path = hearth_rpc_text(rpc, trigger->uri_is_regex ? none : trigger->uri);
    cause->threshold = trigger->threshold;
    cause->current = trigger->current;
    cause->message = hearth_rpc_text(rpc, hearth_buf_view(&message));
    hearth_buf_release(&message);

    return cause;
}

static enum hearth_status dry_run(struct hearth_rpc *rpc)
{
    const Hearth__V1__DryRunRequest *in = (const Hearth__V1__DryRunRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    struct hearth_policy policy;
    struct hearth_dry_run run;

    HEARTH_TRY(hearth_rpc_read_policy(rpc, in->policy, &policy));
    HEARTH_TRY(hearth_policies_dry_run(&query, &policy, &run, &rpc->err));

    struct hearth_arena *arena = &rpc->arena;
    Hearth__V1__DryRunResponse *out = hearth_arena_alloc(arena, sizeof *out);
    Hearth__V1__DryRunTrigger *bodies = hearth_arena_array(arena, run.n_triggers, sizeof *bodies);
    Hearth__V1__DryRunTrigger **list = hearth_arena_array(arena, run.n_triggers, sizeof *list);
    if (out == NULL || bodies == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, arena);
    }

    hearth__v1__dry_run_response__init(out);

    for (size_t i = 0; i < run.n_triggers; i++) {
        const struct hearth_policy_trigger *trigger = &run.triggers[i];
        hearth__v1__dry_run_trigger__init(&bodies[i]);
        bodies[i].kind = (Hearth__V1__TaskKind)trigger->kind;
        bodies[i].instance = hearth_rpc_text(rpc, trigger->instance);
        bodies[i].process = hearth_rpc_text(rpc, trigger->process);
        bodies[i].at_ms = trigger->at_ms;
        bodies[i].cause = make_cause(rpc, trigger);
        bodies[i].silent_until_ms = trigger->at_ms + HEARTH_POLICY_SILENCE_MS;
        list[i] = &bodies[i];
    }

    out->triggers = list;
    out->n_triggers = run.n_triggers;
    out->resolution_ms = run.resolution_ms;
    out->notes = hearth_rpc_texts(rpc, run.notes, run.n_notes);
    out->n_notes = run.n_notes;
    rpc->answer = &out->base;

    return arena->refused ? HEARTH_FAIL_ARENA(&rpc->err, arena) : HEARTH_OK;
}

void hearth_svc_policy_dry_run(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, dry_run(rpc));
}

/* ---- metrics ---- */

static Hearth__V1__MonitorLine *make_line(struct hearth_rpc *rpc,
                                          const struct hearth_monitor_line *line)
{
    Hearth__V1__MonitorLine *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__MonitorPoint *bodies =
        hearth_arena_array(&rpc->arena, line->n_values, sizeof *bodies);
    Hearth__V1__MonitorPoint **list = hearth_arena_array(&rpc->arena, line->n_values, sizeof *list);
    if (out == NULL || bodies == NULL || list == NULL) {
        return NULL;
    }

    hearth__v1__monitor_line__init(out);
    out->monitor = (Hearth__V1__MonitorKind)line->monitor;
    out->instance = hearth_rpc_text(rpc, line->instance);
    out->process = hearth_rpc_text(rpc, line->process);
    out->uri = hearth_rpc_text(rpc, line->uri);
    out->unit = hearth_rpc_text(rpc, hearth_str_c(hearth_monitor_unit(line->monitor)));

    for (size_t i = 0; i < line->n_values; i++) {
        hearth__v1__monitor_point__init(&bodies[i]);
        bodies[i].at_ms = line->values[i].at_ms;
        bodies[i].value = line->values[i].value;
        list[i] = &bodies[i];
    }

    out->points = list;
    out->n_points = line->n_values;

    return out;
}

static char **make_series_notes(struct hearth_rpc *rpc, size_t n_lines, size_t *ret_n)
{
    struct hearth_str none = HEARTH_STR(
        "no metrics: agents report them while a policy watches them (it may be observing)");
    *ret_n = n_lines == 0;
    return hearth_rpc_texts(rpc, &none, *ret_n);
}

static enum hearth_status series(struct hearth_rpc *rpc)
{
    const Hearth__V1__MonitorSeriesRequest *in =
        (const Hearth__V1__MonitorSeriesRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    struct hearth_monitor_filter filter = {.service = hearth_str_c(in->service),
                                           .instance = hearth_str_c(in->instance),
                                           .process = hearth_str_c(in->process)};

    if ((int)in->monitor < 0 ||
        (int)in->monitor >= HEARTH_MONITOR_END) { /* the enum may be unsigned */
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "monitor %d is not known",
                           (int)in->monitor);
    }

    filter.monitors = in->monitor == 0 ? 0 : 1u << in->monitor;

    struct hearth_monitor_line *lines;
    size_t n;

    HEARTH_TRY(hearth_monitors_series(&query, &filter, in->step_seconds, &lines, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__MonitorSeriesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__MonitorLine **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__monitor_series_response__init(out);

    for (size_t i = 0; i < n; i++) {
        list[i] = make_line(rpc, &lines[i]);
    }

    out->lines = list;
    out->n_lines = n;
    out->notes = make_series_notes(rpc, n, &out->n_notes);
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_policy_series(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, series(rpc));
}
