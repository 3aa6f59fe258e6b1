/*
 * svc_policies.c -- hearth.v1.PolicyService: set, delete and read policies. Queries of recorded
 * metrics are in svc_policy_past.c.
 */
#include "policies/svc_policies.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

/* ---- messages ---- */

static enum hearth_status read_item(struct hearth_rpc *rpc, const Hearth__V1__CheckItem *in,
                                    struct hearth_check_item *ret)
{
    *ret = (struct hearth_check_item){
        .monitor = (enum hearth_monitor)in->monitor,
        .threshold = in->threshold,
        .period_seconds = in->period_seconds,
        .count = in->count,
        .uri_paths = hearth_rpc_strs(rpc, in->uri_paths, in->n_uri_paths),
        .n_uri_paths = in->n_uri_paths,
        .uri_regex = hearth_str_c(in->uri_regex),
    };

    return ret->uri_paths == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

enum hearth_status hearth_rpc_read_policy(struct hearth_rpc *rpc, const Hearth__V1__Policy *in,
                                          struct hearth_policy *ret)
{
    if (in == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "policy must be there");
    }

    *ret = (struct hearth_policy){
        .service = hearth_str_c(in->service),
        .targets = hearth_arena_array(&rpc->arena, in->n_targets, sizeof ret->targets[0]),
        .n_targets = in->n_targets,
        .modified_by = hearth_str_c(in->modified_by),
    };
    if (ret->targets == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_targets; i++) {
        const Hearth__V1__PolicyTarget *from = in->targets[i];
        struct hearth_policy_target *target = &ret->targets[i];
        target->kind = (enum hearth_policy_kind)from->kind;
        target->items =
            hearth_arena_array(&rpc->arena, from->n_check_items, sizeof target->items[0]);
        target->n_items = from->n_check_items;
        if (target->items == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }

        for (size_t k = 0; k < from->n_check_items; k++) {
            HEARTH_TRY(read_item(rpc, from->check_items[k], &target->items[k]));
        }
    }

    return HEARTH_OK;
}

static Hearth__V1__PolicyTarget *make_target(struct hearth_rpc *rpc,
                                             const struct hearth_policy_target *target)
{
    struct hearth_arena *arena = &rpc->arena;
    Hearth__V1__PolicyTarget *out = hearth_arena_alloc(arena, sizeof *out);
    Hearth__V1__CheckItem *bodies = hearth_arena_array(arena, target->n_items, sizeof *bodies);
    Hearth__V1__CheckItem **items = hearth_arena_array(arena, target->n_items, sizeof *items);
    if (out == NULL || bodies == NULL || items == NULL) {
        return NULL;
    }

    hearth__v1__policy_target__init(out);
    out->kind = (Hearth__V1__TaskKind)target->kind;
    out->check_items = items;
    out->n_check_items = target->n_items;

    for (size_t i = 0; i < target->n_items; i++) {
        const struct hearth_check_item *item = &target->items[i];
        hearth__v1__check_item__init(&bodies[i]);
        bodies[i].monitor = (Hearth__V1__MonitorKind)item->monitor;
        bodies[i].threshold = item->threshold;
        bodies[i].period_seconds = item->period_seconds;
        bodies[i].count = item->count;
        bodies[i].uri_paths = hearth_rpc_texts(rpc, item->uri_paths, item->n_uri_paths);
        bodies[i].n_uri_paths = item->n_uri_paths;
        bodies[i].uri_regex = hearth_rpc_text(rpc, item->uri_regex);
        items[i] = &bodies[i];
    }

    return out;
}

static enum hearth_status make_policy(struct hearth_rpc *rpc, const struct hearth_policy *policy,
                                      Hearth__V1__Policy **ret)
{
    Hearth__V1__Policy *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__PolicyTarget **targets =
        hearth_arena_array(&rpc->arena, policy->n_targets, sizeof *targets);
    if (out == NULL || targets == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__policy__init(out);
    out->service = hearth_rpc_text(rpc, policy->service);
    out->version = policy->version;
    out->uuid = hearth_rpc_text(rpc, policy->uuid);
    out->modified_ms = policy->modified_ms;
    out->modified_by = hearth_rpc_text(rpc, policy->modified_by);
    out->is_observing = policy->is_observing;
    out->targets = targets;
    out->n_targets = policy->n_targets;

    for (size_t i = 0; i < policy->n_targets; i++) {
        targets[i] = make_target(rpc, &policy->targets[i]);
    }

    *ret = out;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* ---- changing ---- */

static enum hearth_status set(struct hearth_rpc *rpc)
{
    const Hearth__V1__SetPolicyRequest *in = (const Hearth__V1__SetPolicyRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_change change = {.expected_version = -1,
                                          .validate_only = in->validate_only};
    struct hearth_policy stored;
    struct hearth_str *warnings;
    size_t n_warnings;

    HEARTH_TRY(hearth_rpc_read_policy(rpc, in->policy, &change.policy));
    change.policy.is_observing = in->observe;

    if (in->expected_version_presence_case ==
        HEARTH__V1__SET_POLICY_REQUEST__EXPECTED_VERSION_PRESENCE_EXPECTED_VERSION) {
        if (in->expected_version < 0) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                               "expected_version must not be negative");
        }

        change.expected_version = in->expected_version;
    }

    HEARTH_TRY(hearth_policies_set(&call, &change, &stored, &warnings, &n_warnings, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__SetPolicyResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__set_policy_response__init(out);
    out->warnings = hearth_rpc_texts(rpc, warnings, n_warnings);
    out->n_warnings = n_warnings;
    rpc->answer = &out->base;

    return make_policy(rpc, &stored, &out->policy);
}

void hearth_svc_policy_set(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, set(rpc));
}

static enum hearth_status delete_one(struct hearth_rpc *rpc)
{
    const Hearth__V1__DeletePolicyRequest *in =
        (const Hearth__V1__DeletePolicyRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);

    HEARTH_TRY(hearth_policies_delete(&call, hearth_str_c(in->service),
                                      hearth_str_c(in->modified_by), &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__DeletePolicyResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__delete_policy_response__init(out);
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_policy_delete(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, delete_one(rpc));
}

/* ---- reading ---- */

static enum hearth_status make_state(struct hearth_rpc *rpc,
                                     const struct hearth_policy_state *state,
                                     Hearth__V1__GetPolicyResponse **ret)
{
    struct hearth_arena *arena = &rpc->arena;
    Hearth__V1__GetPolicyResponse *out = hearth_arena_alloc(arena, sizeof *out);
    Hearth__V1__PolicyTargetStatus *bodies =
        hearth_arena_array(arena, state->n_status, sizeof *bodies);
    Hearth__V1__PolicyTargetStatus **list =
        hearth_arena_array(arena, state->n_status, sizeof *list);
    if (out == NULL || bodies == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, arena);
    }

    hearth__v1__get_policy_response__init(out);

    for (size_t i = 0; i < state->n_status; i++) {
        hearth__v1__policy_target_status__init(&bodies[i]);
        bodies[i].kind = (Hearth__V1__TaskKind)state->status[i].kind;
        bodies[i].triggered_count = state->status[i].n_triggered;
        bodies[i].last_triggered_ms = state->status[i].last_triggered_ms;
        list[i] = &bodies[i];
    }

    out->status = list;
    out->n_status = state->n_status;
    *ret = out;

    return make_policy(rpc, &state->policy, &out->policy);
}

static enum hearth_status get(struct hearth_rpc *rpc)
{
    const Hearth__V1__GetPolicyRequest *in = (const Hearth__V1__GetPolicyRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_state state;
    Hearth__V1__GetPolicyResponse *out = NULL;

    HEARTH_TRY(hearth_policies_get(&call, hearth_str_c(in->service), &state, &rpc->err));
    HEARTH_TRY(make_state(rpc, &state, &out));
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_policy_get(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get(rpc));
}

static enum hearth_status list(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_state *states;
    size_t n;

    HEARTH_TRY(hearth_policies_list(&call, &states, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ListPoliciesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__GetPolicyResponse **all = hearth_arena_array(&rpc->arena, n, sizeof *all);
    if (out == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_policies_response__init(out);

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(make_state(rpc, &states[i], &all[i]));
    }

    out->policies = all;
    out->n_policies = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_policy_list(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list(rpc));
}

static enum hearth_status history(struct hearth_rpc *rpc)
{
    const Hearth__V1__PolicyHistoryRequest *in =
        (const Hearth__V1__PolicyHistoryRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy *versions;
    size_t n;

    HEARTH_TRY(hearth_policies_history(&call, hearth_str_c(in->service), &versions, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__PolicyHistoryResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Policy **all = hearth_arena_array(&rpc->arena, n, sizeof *all);
    if (out == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__policy_history_response__init(out);

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(make_policy(rpc, &versions[i], &all[i]));
    }

    out->versions = all;
    out->n_versions = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_policy_history(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, history(rpc));
}
