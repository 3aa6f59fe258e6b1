/* svc_applications.c -- hearth.v1.ApplicationService. */
#include "hearth/engine/applications.h"
#include "hearth/pb/hearth/v1/applications.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(application, struct hearth_application, Hearth__V1__Application);
static const struct hearth_message_member application_members[] = {
    HEARTH_MAP(application, name, name),
    HEARTH_MAP(application, owner, owner),
    HEARTH_MAP(application, description, description),
    HEARTH_MAP(application, profiling, profiling),
    HEARTH_MAP(application, approved, approved),
    HEARTH_MAP(application, first_seen_ms, first_seen_ms),
    HEARTH_MAP(application, last_seen_ms, last_seen_ms),
    HEARTH_MAP(application, updated_by, updated_by),
    HEARTH_MAP(application, updated_ms, updated_at_ms),
};
static const struct hearth_message_map application_map =
    HEARTH_MESSAGE_MAP(application, hearth__v1__application__descriptor);

HEARTH_MAP_TYPES(application_rule, struct hearth_application_rule, Hearth__V1__ApplicationRule);
static const struct hearth_message_member application_rule_members[] = {
    HEARTH_MAP(application_rule, name, name),
    HEARTH_MAP(application_rule, selector, label_selector),
    HEARTH_MAP(application_rule, profiling, profiling),
    HEARTH_MAP(application_rule, updated_by, updated_by),
    HEARTH_MAP(application_rule, updated_ms, updated_at_ms),
};
static const struct hearth_message_map application_rule_map =
    HEARTH_MESSAGE_MAP(application_rule, hearth__v1__application_rule__descriptor);

/* ---- applications ---- */

HEARTH_UNARY(hearth_svc_applications_list, Hearth__V1__ListApplicationsRequest,
             Hearth__V1__ListApplicationsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_application *applications;
    size_t n;

    HEARTH_TRY(hearth_applications_list(&call, &applications, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &application_map, applications, n, out, applications);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_application_get, Hearth__V1__GetApplicationRequest, Hearth__V1__Application)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_application application;

    HEARTH_TRY(hearth_application_get(&call, hearth_str_c(in->name), &application, &rpc->err));
    hearth_rpc_map_into(rpc, &application_map, &application, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_application_set, Hearth__V1__SetApplicationRequest, Hearth__V1__Application)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_str owner, description;
    struct hearth_application application;
    struct hearth_application_update update = {.name = hearth_str_c(in->name),
                                               .profiling = -1,
                                               .approved = -1,
                                               .updated_by = hearth_str_c(in->updated_by)};

    /* Fields that are set. */
    if (in->owner_presence_case == HEARTH__V1__SET_APPLICATION_REQUEST__OWNER_PRESENCE_OWNER) {
        owner = hearth_str_c(in->owner);
        update.owner = &owner;
    }
    if (in->description_presence_case ==
        HEARTH__V1__SET_APPLICATION_REQUEST__DESCRIPTION_PRESENCE_DESCRIPTION) {
        description = hearth_str_c(in->description);
        update.description = &description;
    }
    if (in->profiling_presence_case ==
        HEARTH__V1__SET_APPLICATION_REQUEST__PROFILING_PRESENCE_PROFILING) {
        if ((int)in->profiling < HEARTH_PROFILING_UNSET ||
            (int)in->profiling > HEARTH_PROFILING_OFF) {
            return HEARTH_FAIL(
                &rpc->err, HEARTH_INVALID_ARGUMENT,
                "profiling is %d; it must be 1 (on), 2 (off) or 0 (as the rules say)",
                (int)in->profiling);
        }
        update.profiling = (int32_t)in->profiling;
    }
    if (in->approved_presence_case ==
        HEARTH__V1__SET_APPLICATION_REQUEST__APPROVED_PRESENCE_APPROVED) {
        update.approved = in->approved;
    }

    HEARTH_TRY(hearth_application_set(&call, &update, &application, &rpc->err));
    hearth_rpc_map_into(rpc, &application_map, &application, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_application_delete, Hearth__V1__DeleteApplicationRequest,
             Hearth__V1__DeleteApplicationResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_application_delete(&call, hearth_str_c(in->name), &rpc->err);
}

/* ---- rules ---- */

HEARTH_UNARY(hearth_svc_application_rules_list, Hearth__V1__ListApplicationRulesRequest,
             Hearth__V1__ListApplicationRulesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_application_rule *rules;
    size_t n;

    HEARTH_TRY(hearth_application_rules_list(&call, &rules, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &application_rule_map, rules, n, out, rules);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_application_rule_set, Hearth__V1__ApplicationRule,
             Hearth__V1__ApplicationRule)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_application_rule rule = {.name = hearth_str_c(in->name),
                                           .selector = hearth_str_c(in->label_selector),
                                           .profiling = (int32_t)in->profiling,
                                           .updated_by = hearth_str_c(in->updated_by)};

    HEARTH_TRY(hearth_application_rule_set(&call, &rule, &rpc->err));
    hearth_rpc_map_into(rpc, &application_rule_map, &rule, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_application_rule_delete, Hearth__V1__DeleteApplicationRuleRequest,
             Hearth__V1__DeleteApplicationRuleResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_application_rule_delete(&call, hearth_str_c(in->name), &rpc->err);
}
