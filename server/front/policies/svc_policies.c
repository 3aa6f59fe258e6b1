/*
 * svc_policies.c -- hearth.v1.PolicyService: set, delete and read policies. Queries of recorded
 * metrics are in svc_policy_past.c.
 */
#include "policies/svc_policies.h"

#include "handlers.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

/* ---- requests ---- */

static enum hearth_status read_check_item(struct hearth_rpc *rpc, const Hearth__V1__CheckItem *in,
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
    assert(ret != NULL);
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
            HEARTH_TRY(read_check_item(rpc, from->check_items[k], &target->items[k]));
        }
    }

    return HEARTH_OK;
}

/* ---- messages ---- */

HEARTH_MAP_TYPES(item, struct hearth_check_item, Hearth__V1__CheckItem);
static const struct hearth_message_member item_members[] = {
    HEARTH_MAP(item, monitor, monitor), /* the same numbers */
    HEARTH_MAP(item, threshold, threshold),
    HEARTH_MAP(item, period_seconds, period_seconds),
    HEARTH_MAP(item, count, count),
    HEARTH_MAP_TEXTS(item, uri_paths, n_uri_paths, uri_paths),
    HEARTH_MAP(item, uri_regex, uri_regex),
};
static const struct hearth_message_map item_map =
    HEARTH_MESSAGE_MAP(item, hearth__v1__check_item__descriptor);

HEARTH_MAP_TYPES(target, struct hearth_policy_target, Hearth__V1__PolicyTarget);
static const struct hearth_message_member target_members[] = {
    HEARTH_MAP(target, kind, kind), /* the same numbers */
    HEARTH_MAP_LIST(target, items, n_items, check_items, &item_map),
};
static const struct hearth_message_map target_map =
    HEARTH_MESSAGE_MAP(target, hearth__v1__policy_target__descriptor);

HEARTH_MAP_TYPES(policy, struct hearth_policy, Hearth__V1__Policy);
static const struct hearth_message_member policy_members[] = {
    HEARTH_MAP(policy, service, service),
    HEARTH_MAP_LIST(policy, targets, n_targets, targets, &target_map),
    HEARTH_MAP(policy, version, version),
    HEARTH_MAP(policy, uuid, uuid),
    HEARTH_MAP(policy, modified_ms, modified_ms),
    HEARTH_MAP(policy, modified_by, modified_by),
    HEARTH_MAP(policy, is_observing, is_observing),
};
static const struct hearth_message_map policy_map =
    HEARTH_MESSAGE_MAP(policy, hearth__v1__policy__descriptor);

HEARTH_MAP_TYPES(status, struct hearth_policy_status, Hearth__V1__PolicyTargetStatus);
static const struct hearth_message_member status_members[] = {
    HEARTH_MAP(status, kind, kind), /* the same numbers */
    HEARTH_MAP(status, n_triggered, triggered_count),
    HEARTH_MAP(status, last_triggered_ms, last_triggered_ms),
};
static const struct hearth_message_map status_map =
    HEARTH_MESSAGE_MAP(status, hearth__v1__policy_target_status__descriptor);

HEARTH_MAP_TYPES(state, struct hearth_policy_state, Hearth__V1__GetPolicyResponse);
static const struct hearth_message_member state_members[] = {
    HEARTH_MAP_ONE(state, policy, policy, &policy_map),
    HEARTH_MAP_LIST(state, status, n_status, status, &status_map),
};
static const struct hearth_message_map state_map =
    HEARTH_MESSAGE_MAP(state, hearth__v1__get_policy_response__descriptor);

/* ---- changing ---- */

HEARTH_UNARY(hearth_svc_policy_set, Hearth__V1__SetPolicyRequest, Hearth__V1__SetPolicyResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_change change = {.expected_version = -1,
                                          .validate_only = in->validate_only};
    struct hearth_policy stored;
    struct hearth_str *warnings;
    size_t n_warnings;

    /* Read the request. */
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

    /* Store the policy, and answer it as it is now. */
    HEARTH_TRY(hearth_policies_set(&call, &change, &stored, &warnings, &n_warnings, &rpc->err));
    out->policy = hearth_rpc_map(rpc, &policy_map, &stored);
    out->warnings = hearth_rpc_texts(rpc, warnings, n_warnings);
    out->n_warnings = n_warnings;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_policy_delete, Hearth__V1__DeletePolicyRequest,
             Hearth__V1__DeletePolicyResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_policies_delete(&call, hearth_str_c(in->service), hearth_str_c(in->modified_by),
                                  &rpc->err);
}

/* ---- reading ---- */

HEARTH_UNARY(hearth_svc_policy_get, Hearth__V1__GetPolicyRequest, Hearth__V1__GetPolicyResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_state state;

    HEARTH_TRY(hearth_policies_get(&call, hearth_str_c(in->service), &state, &rpc->err));
    hearth_rpc_map_into(rpc, &state_map, &state, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_policy_list, Hearth__V1__ListPoliciesRequest,
             Hearth__V1__ListPoliciesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_state *states;
    size_t n;

    HEARTH_TRY(hearth_policies_list(&call, &states, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &state_map, states, n, out, policies);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_policy_history, Hearth__V1__PolicyHistoryRequest,
             Hearth__V1__PolicyHistoryResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy *versions;
    size_t n;

    HEARTH_TRY(hearth_policies_history(&call, hearth_str_c(in->service), &versions, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &policy_map, versions, n, out, versions);

    return HEARTH_OK;
}
