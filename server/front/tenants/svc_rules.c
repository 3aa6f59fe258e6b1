/* svc_rules.c -- settings.v1.RecordingRulesService, and the rules' counters over plain HTTP. */
#include "hearth/engine/rules.h"
#include "hearth/pb/settings/v1/recording_rules.pb-c.h"

#include "handlers.h"
#include "http/http_call.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

/* ---- messages ---- */

/* The filter by function of a rule that has one. */
static Settings__V1__StacktraceFilter *make_rule_filter(struct hearth_rpc *rpc,
                                                        const struct hearth_rule *rule)
{
    assert(rule->has_function);

    struct {
        Settings__V1__StacktraceFilter filter;
        Settings__V1__StacktraceFilterFunctionName name;
    } *made = hearth_arena_alloc(&rpc->arena, sizeof *made);
    if (made == NULL) {
        return NULL;
    }

    settings__v1__stacktrace_filter__init(&made->filter);
    settings__v1__stacktrace_filter_function_name__init(&made->name);
    made->name.function_name = hearth_rpc_text(rpc, rule->function);
    made->filter.function_name = &made->name;

    return &made->filter;
}

static void fill_rule_rest(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_rule *rule = from;
    Settings__V1__RecordingRule *out = message;

    out->profile_type = hearth_rpc_text(rpc, hearth_rule_profile_type(rule, &rpc->arena));
    if (rule->has_function) {
        out->stacktrace_filter = make_rule_filter(rpc, rule);
    }
}

HEARTH_MAP_TYPES(rule, struct hearth_rule, Settings__V1__RecordingRule);
static const struct hearth_message_member rule_members[] = {
    HEARTH_MAP(rule, id, id),
    HEARTH_MAP(rule, metric_name, metric_name),
    HEARTH_MAP_TEXTS(rule, matchers, n_matchers, matchers),
    HEARTH_MAP_TEXTS(rule, group_by, n_group_by, group_by),
    HEARTH_MAP_LABELS(rule, external, external_labels),
    HEARTH_MAP(rule, generation, generation),
};
static const struct hearth_message_map rule_map =
    HEARTH_MESSAGE_MAP_AND(rule, settings__v1__recording_rule__descriptor, fill_rule_rest);

/* ---- reading ---- */

HEARTH_UNARY(hearth_svc_rules_get, Settings__V1__GetRecordingRuleRequest,
             Settings__V1__GetRecordingRuleResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_rule rule;

    HEARTH_TRY(hearth_rules_get(&call, hearth_str_c(in->id), &rule, &rpc->err));
    out->rule = hearth_rpc_map(rpc, &rule_map, &rule);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_rules_list, Settings__V1__ListRecordingRulesRequest,
             Settings__V1__ListRecordingRulesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_rule *rules;
    size_t n;

    HEARTH_TRY(hearth_rules_list(&call, &rules, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &rule_map, rules, n, out, rules);

    return HEARTH_OK;
}

/* ---- changing ---- */

static enum hearth_status read_rule_filter(struct hearth_rpc *rpc,
                                           const Settings__V1__StacktraceFilter *in,
                                           struct hearth_rule *rule)
{
    if (in == NULL || in->function_name == NULL) {
        return HEARTH_OK;
    }

    if (in->function_name->metric_type != SETTINGS__V1__METRIC_TYPE__TOTAL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "stacktrace_filter: metric_type %d is not known; there is TOTAL",
                           (int)in->function_name->metric_type);
    }

    rule->has_function = true;
    rule->function = hearth_str_c(in->function_name->function_name);

    return HEARTH_OK;
}

static enum hearth_status read_recording_rule(struct hearth_rpc *rpc,
                                              const Settings__V1__UpsertRecordingRuleRequest *in,
                                              struct hearth_rule *ret)
{
    *ret = (struct hearth_rule){
        .id = hearth_str_c(in->id),
        .metric_name = hearth_str_c(in->metric_name),
        .matchers = hearth_rpc_strs(rpc, in->matchers, in->n_matchers),
        .n_matchers = in->n_matchers,
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .external.v =
            hearth_arena_array(&rpc->arena, in->n_external_labels, sizeof ret->external.v[0]),
        .external.n = in->n_external_labels,
        .function = hearth_str_n("", 0),
        .generation = in->generation,
    };
    if (ret->matchers == NULL || ret->group_by == NULL || ret->external.v == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_external_labels; i++) {
        ret->external.v[i] = (struct hearth_label){hearth_str_c(in->external_labels[i]->name),
                                                   hearth_str_c(in->external_labels[i]->value)};
    }

    return read_rule_filter(rpc, in->stacktrace_filter, ret);
}

HEARTH_UNARY(hearth_svc_rules_upsert, Settings__V1__UpsertRecordingRuleRequest,
             Settings__V1__UpsertRecordingRuleResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_rule rule;

    HEARTH_TRY(read_recording_rule(rpc, in, &rule));
    HEARTH_TRY(hearth_rules_put(&call, &rule, &rpc->err));
    out->rule = hearth_rpc_map(rpc, &rule_map, &rule);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_rules_delete, Settings__V1__DeleteRecordingRuleRequest,
             Settings__V1__DeleteRecordingRuleResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_rules_delete(&call, hearth_str_c(in->id), &rpc->err);
}

/* ---- counters ---- */

void hearth_http_rule_metrics(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    rpc->http->answer_type = "text/plain; version=0.0.4; charset=utf-8";
    hearth_rpc_end(rpc, hearth_rules_write_metrics(&call, &rpc->packed, &rpc->err));
}
