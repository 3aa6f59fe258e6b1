/*
 * policy_monitored.c -- the monitored processes and their triggers (contract:
 * hearth/engine/policies.h).
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"

#include "common/shown.h"
#include "policies/policies_internal.h"

#include <assert.h>

/* Facts of one service, each list sorted by instance. */
struct monitored_facts {
    const struct hearth_call *call;
    enum hearth_policy_kind kind;
    int64_t now_ms;
    struct hearth_process *processes;
    struct hearth_instance *instances;
    struct hearth_trigger_count *counts;
    size_t n_processes, n_instances, n_counts;
    size_t next_instance, next_count; /* of the lists, while instances are completed in turn */
};

static enum hearth_status read_monitored_facts(struct monitored_facts *answer,
                                               struct hearth_str service, struct hearth_err *err)
{
    const struct hearth_call *call = answer->call;
    struct hearth_process_filter filter = {.service = service,
                                           .seen_after_ms =
                                               answer->now_ms - HEARTH_POLICY_WINDOW_MS,
                                           .without_virtual = true};

    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &answer->processes,
                                      &answer->n_processes, err));
    HEARTH_TRY(hearth_store_instances(HEARTH_CALL_SCOPE(call), service, 0, &answer->instances,
                                      &answer->n_instances, err));

    return hearth_policy_triggers(call, service, true, &answer->counts, &answer->n_counts, err);
}

static void find_instance_properties(struct monitored_facts *answer,
                                     struct hearth_monitored_instance *instance)
{
    size_t i = answer->next_instance;
    while (i < answer->n_instances &&
           hearth_str_cmp(answer->instances[i].name, instance->name) < 0) {
        i++;
    }
    if (i < answer->n_instances && hearth_str_eq(answer->instances[i].name, instance->name)) {
        instance->properties = answer->instances[i].properties;
        instance->n_properties = answer->instances[i].n_properties;
    }

    answer->next_instance = i;
}

static void count_process_triggers(const struct hearth_trigger_count *counted,
                                   struct hearth_monitored_instance *instance)
{
    instance->n_triggered += counted->n;
    if (counted->last_ms > instance->last_triggered_ms) {
        instance->last_triggered_ms = counted->last_ms;
    }

    for (size_t k = 0; k < instance->n_processes; k++) {
        struct hearth_monitored_process *process = &instance->processes[k];
        if (hearth_str_eq(process->process.process_id, counted->process_id)) {
            process->n_triggered = counted->n;
            process->last_triggered_ms = counted->last_ms;
        }
    }
}

static void count_instance_triggers(struct monitored_facts *answer,
                                    struct hearth_monitored_instance *instance)
{
    assert(instance->processes != NULL);

    /* Add up the triggers of the instance and its processes. */
    size_t i = answer->next_count;
    while (i < answer->n_counts && hearth_str_cmp(answer->counts[i].instance, instance->name) < 0) {
        i++;
    }
    for (; i < answer->n_counts && hearth_str_eq(answer->counts[i].instance, instance->name); i++) {
        if (answer->counts[i].kind == (int32_t)answer->kind) {
            count_process_triggers(&answer->counts[i], instance);
        }
    }

    answer->next_count = i;

    /* Compute until when each process is silent. */
    for (size_t k = 0; k < instance->n_processes; k++) {
        struct hearth_monitored_process *process = &instance->processes[k];
        /* Network profiling covers the whole instance, and so does the silence after it. */
        int64_t last_ms = answer->kind == HEARTH_POLICY_NETWORK ? instance->last_triggered_ms
                                                                : process->last_triggered_ms;
        int64_t until_ms = last_ms + HEARTH_POLICY_SILENCE_MS;
        process->silent_until_ms = last_ms > 0 && until_ms > answer->now_ms ? until_ms : 0;
    }
}

enum hearth_status hearth_policies_monitored(const struct hearth_call *call,
                                             struct hearth_str service,
                                             enum hearth_policy_kind kind,
                                             struct hearth_monitored_instance **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    assert(call != NULL && ret != NULL && ret_n != NULL);

    if (service.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the service id cannot be empty");
    }

    if (kind <= 0 || kind >= HEARTH_POLICY_KIND_END) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "kind: a policy starts ON_CPU, OFF_CPU or NETWORK");
    }

    bool shows;
    HEARTH_TRY(hearth_call_shows_service(call, NULL, service, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    /* Read processes, instances and counts. */
    struct monitored_facts answer = {
        .call = call, .kind = kind, .now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS};
    HEARTH_TRY(read_monitored_facts(&answer, service, err));
    size_t n = answer.n_processes, n_instances = 0;
    struct hearth_monitored_instance *instances =
        hearth_arena_array(call->arena, n, sizeof instances[0]);
    struct hearth_monitored_process *all = hearth_arena_calloc(call->arena, n, sizeof all[0]);
    if (instances == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Group the processes by instance; they are sorted by it. */
    for (size_t i = 0; i < n; i++) {
        all[i].process = answer.processes[i];
        if (i == 0 ||
            !hearth_str_eq(answer.processes[i].instance, answer.processes[i - 1].instance)) {
            instances[n_instances++] = (struct hearth_monitored_instance){
                .name = answer.processes[i].instance, .processes = &all[i]};
        }
        instances[n_instances - 1].n_processes++;
    }

    /* Complete each instance. */
    for (size_t i = 0; i < n_instances; i++) {
        find_instance_properties(&answer, &instances[i]);
        count_instance_triggers(&answer, &instances[i]);
    }

    *ret = instances;
    *ret_n = n_instances;

    return HEARTH_OK;
}
