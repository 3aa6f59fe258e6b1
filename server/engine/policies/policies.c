/* policies.c -- writing and reading policies (contract: hearth/engine/policies.h). */
#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"

#include "common/shown.h"
#include "policies/policies_internal.h"

#include <assert.h>

/* ---- counts ---- */

enum hearth_status hearth_policy_triggers(const struct hearth_call *call, struct hearth_str service,
                                          bool by_process, struct hearth_trigger_count **ret,
                                          size_t *ret_n, struct hearth_err *err)
{
    struct hearth_trigger_filter filter = {
        .service = service,
        .since_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS - HEARTH_POLICY_WINDOW_MS,
        .by_process = by_process,
    };

    return hearth_store_trigger_counts(HEARTH_CALL_SCOPE(call), &filter, ret, ret_n, err);
}

static enum hearth_status count_policy_triggers(const struct hearth_call *call,
                                                const struct hearth_trigger_count *counts,
                                                size_t n_counts, struct hearth_policy_state *state,
                                                struct hearth_err *err)
{
    assert(counts != NULL || n_counts == 0);

    const struct hearth_policy *policy = &state->policy;

    state->status = hearth_arena_array(call->arena, policy->n_targets, sizeof state->status[0]);
    if (state->status == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Each target has the count of its kind. */
    state->n_status = policy->n_targets;
    for (size_t i = 0; i < policy->n_targets; i++) {
        struct hearth_policy_status *status = &state->status[i];
        *status = (struct hearth_policy_status){.kind = policy->targets[i].kind};
        for (size_t k = 0; k < n_counts; k++) {
            if (counts[k].kind == (int32_t)status->kind &&
                hearth_str_eq(counts[k].service, policy->service)) {
                status->n_triggered = counts[k].n;
                status->last_triggered_ms = counts[k].last_ms;
            }
        }
    }

    return HEARTH_OK;
}

/* ---- reading ---- */

static enum hearth_status find_policy(const struct hearth_call *call, struct hearth_str service,
                                      struct hearth_policy *ret, struct hearth_err *err)
{
    struct hearth_policy *found;
    size_t n;

    bool shows;
    HEARTH_TRY(hearth_call_shows_service(call, NULL, service, &shows, err));
    HEARTH_TRY(hearth_store_policies(HEARTH_CALL_SCOPE(call), &service, 1, &found, &n, err));
    if (n == 0 || !shows) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "service \"" HEARTH_STR_FMT "\" has no policy",
                           HEARTH_STR_ARG(service));
    }

    *ret = found[0];

    return HEARTH_OK;
}

enum hearth_status hearth_policies_get(const struct hearth_call *call, struct hearth_str service,
                                       struct hearth_policy_state *ret, struct hearth_err *err)
{
    struct hearth_trigger_count *counts;
    size_t n;

    assert(call != NULL && ret != NULL);

    HEARTH_TRY(find_policy(call, service, &ret->policy, err));
    HEARTH_TRY(hearth_policy_triggers(call, service, false, &counts, &n, err));

    return count_policy_triggers(call, counts, n, ret, err);
}

enum hearth_status hearth_policies_list(const struct hearth_call *call,
                                        struct hearth_policy_state **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    struct hearth_policy *policies;
    struct hearth_trigger_count *counts;
    struct hearth_shown shown = {0};
    size_t n, n_counts, n_shown = 0;

    assert(call != NULL && ret != NULL && ret_n != NULL);

    HEARTH_TRY(hearth_store_policies(HEARTH_CALL_SCOPE(call), NULL, 0, &policies, &n, err));
    HEARTH_TRY(hearth_policy_triggers(call, hearth_str_n("", 0), false, &counts, &n_counts, err));
    struct hearth_policy_state *states = hearth_arena_array(call->arena, n, sizeof states[0]);
    if (states == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, policies[i].service, &shows, err));
        if (shows) {
            states[n_shown].policy = policies[i];
            HEARTH_TRY(count_policy_triggers(call, counts, n_counts, &states[n_shown++], err));
        }
    }

    *ret = states;
    *ret_n = n_shown;

    return HEARTH_OK;
}

enum hearth_status hearth_policies_history(const struct hearth_call *call,
                                           struct hearth_str service, struct hearth_policy **ret,
                                           size_t *ret_n, struct hearth_err *err)
{
    bool shows;

    HEARTH_TRY(hearth_call_shows_service(call, NULL, service, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_policy_versions(HEARTH_CALL_SCOPE(call), service, ret, ret_n, err);
}

/* ---- writing ---- */

struct warning_list {
    struct hearth_arena *arena;
    struct hearth_str *v;
    size_t n;
};

#define MAX_WARNINGS 16

static void add_warning(struct warning_list *warnings, const char *text)
{
    if (warnings->n < MAX_WARNINGS) {
        warnings->v[warnings->n++] = hearth_str_c(text);
    }
}

static bool have_same_monitor(const struct hearth_check_item *a, const struct hearth_check_item *b)
{
    if (a->monitor != b->monitor || !hearth_monitor_is_http(a->monitor) ||
        a->n_uri_paths != b->n_uri_paths || !hearth_str_eq(a->uri_regex, b->uri_regex)) {
        return false;
    }

    for (size_t i = 0; i < a->n_uri_paths; i++) {
        if (!hearth_str_eq(a->uri_paths[i], b->uri_paths[i])) {
            return false;
        }
    }

    return true;
}

/*
 * Warn of an HTTP monitor that two targets share: agents measure and report it once for each
 * target.
 */
static void warn_of_repeated_monitors(const struct hearth_policy *policy,
                                      struct warning_list *warnings)
{
    /* Compare each item with the items of all earlier targets. */
    for (size_t i = 0; i < policy->n_targets; i++) {
        for (size_t k = 0; k < policy->targets[i].n_items; k++) {
            const struct hearth_check_item *item = &policy->targets[i].items[k];
            for (size_t j = 0; j < i; j++) {
                for (size_t l = 0; l < policy->targets[j].n_items; l++) {
                    if (have_same_monitor(item, &policy->targets[j].items[l])) {
                        add_warning(
                            warnings,
                            hearth_arena_printf(warnings->arena,
                                                "%s is monitored for %s and %s: agents report its"
                                                " values twice",
                                                hearth_monitor_name(item->monitor),
                                                hearth_policy_kind_name(policy->targets[j].kind),
                                                hearth_policy_kind_name(policy->targets[i].kind)));
                    }
                }
            }
        }
    }
}

static enum hearth_status list_warnings(const struct hearth_call *call,
                                        const struct hearth_policy *policy,
                                        struct warning_list *warnings, struct hearth_err *err)
{
    struct hearth_process_filter filter = {
        .service = policy->service,
        .seen_after_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS - HEARTH_POLICY_WINDOW_MS,
        .without_virtual = true};
    struct hearth_process *processes;
    size_t n, n_profilable = 0;

    /* Warn if nothing can be profiled. */
    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &processes, &n, err));
    for (size_t i = 0; i < n; i++) {
        n_profilable += processes[i].can_be_profiled;
    }

    if (n == 0) {
        add_warning(warnings,
                    "no agent has reported a process of this service in the last 48 hours");
    } else if (n_profilable == 0) {
        add_warning(warnings,
                    "the agents of this service's processes say that they cannot profile them");
    }

    /* Warn of targets that never start, and of repeated monitors. */
    for (size_t i = 0; i < policy->n_targets; i++) {
        if (policy->targets[i].n_items == 0) {
            add_warning(warnings,
                        hearth_arena_printf(call->arena, "%s has no check items: nothing starts it",
                                            hearth_policy_kind_name(policy->targets[i].kind)));
        }
    }

    warn_of_repeated_monitors(policy, warnings);

    return call->arena->refused ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
}

static enum hearth_status check_policy_version(const struct hearth_call *call,
                                               const struct hearth_policy_change *change,
                                               struct hearth_err *err)
{
    struct hearth_policy stored = {0};
    enum hearth_status status = find_policy(call, change->policy.service, &stored, err);

    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
        return status;
    }

    if (change->expected_version >= 0 && change->expected_version != stored.version) {
        return HEARTH_FAIL(err, HEARTH_ABORTED,
                           "the policy of \"" HEARTH_STR_FMT
                           "\" has version %lld, not %lld: it was changed; read it again",
                           HEARTH_STR_ARG(change->policy.service), (long long)stored.version,
                           (long long)change->expected_version);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_policies_set(const struct hearth_call *call,
                                       struct hearth_policy_change *change,
                                       struct hearth_policy *ret_policy,
                                       struct hearth_str **ret_warnings, size_t *ret_n_warnings,
                                       struct hearth_err *err)
{
    struct hearth_limits limits;
    struct hearth_policy *policy = &change->policy;

    assert(call != NULL && ret_policy != NULL && ret_warnings != NULL);

    /* Check the policy and bring it into its canonical form. */
    hearth_call_limits(call, &limits);
    HEARTH_TRY(hearth_policy_check(policy, &limits, err));
    HEARTH_TRY(hearth_call_check_service(call, policy->service, err));
    HEARTH_TRY(hearth_policy_finish(policy, call->arena, err));

    /* Find mistakes that deserve a warning only. */
    struct warning_list warnings = {.arena = call->arena};
    warnings.v = hearth_arena_array(call->arena, MAX_WARNINGS, sizeof warnings.v[0]);
    if (warnings.v == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    HEARTH_TRY(list_warnings(call, policy, &warnings, err));

    /* Store it, or only check the version. */
    if (change->validate_only) {
        HEARTH_TRY(check_policy_version(call, change, err));
        *ret_policy = *policy;
    } else {
        HEARTH_TRY(hearth_store_policy_put(HEARTH_CALL_SCOPE(call), policy,
                                           change->expected_version, limits.max_policy_versions,
                                           err));
        HEARTH_TRY(find_policy(call, policy->service, ret_policy, err));
    }

    *ret_warnings = warnings.v;
    *ret_n_warnings = warnings.n;

    return HEARTH_OK;
}

enum hearth_status hearth_policies_delete(const struct hearth_call *call, struct hearth_str service,
                                          struct hearth_str modified_by, struct hearth_err *err)
{
    struct hearth_limits limits;

    hearth_call_limits(call, &limits);
    if (service.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the service id cannot be empty");
    }

    if (modified_by.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "modified_by may have %d bytes",
                           HEARTH_AGENT_NAME_BYTES);
    }

    HEARTH_TRY(hearth_call_check_service(call, service, err));

    return hearth_store_policy_delete(HEARTH_CALL_SCOPE(call), service, modified_by,
                                      limits.max_policy_versions, err);
}
