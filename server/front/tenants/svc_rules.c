/* svc_rules.c -- settings.v1.RecordingRulesService, and the rules' counters over plain HTTP. */
#include "hearth/engine/rules.h"
#include "hearth/pb/settings/v1/recording_rules.pb-c.h"

#include "handlers.h"
#include "http/http_call.h"
#include "query/svc_querier.h"
#include "rpc/front_internal.h"

/* ---- messages ---- */

static Settings__V1__StacktraceFilter *make_filter(struct hearth_rpc *rpc,
                                                   const struct hearth_rule *rule)
{
    Settings__V1__StacktraceFilter *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Settings__V1__StacktraceFilterFunctionName *name =
        hearth_arena_alloc(&rpc->arena, sizeof *name);
    if (out == NULL || name == NULL) {
        return NULL;
    }

    settings__v1__stacktrace_filter__init(out);
    settings__v1__stacktrace_filter_function_name__init(name);
    name->function_name = hearth_rpc_text(rpc, rule->function);
    out->function_name = name;

    return out;
}

static enum hearth_status make_rule(struct hearth_rpc *rpc, const struct hearth_rule *rule,
                                    Settings__V1__RecordingRule **ret)
{
    Settings__V1__RecordingRule *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__recording_rule__init(out);
    out->id = hearth_rpc_text(rpc, rule->id);
    out->metric_name = hearth_rpc_text(rpc, rule->metric_name);
    out->profile_type = hearth_rpc_text(rpc, hearth_rule_profile_type(rule, &rpc->arena));
    out->matchers = hearth_rpc_texts(rpc, rule->matchers, rule->n_matchers);
    out->n_matchers = rule->n_matchers;
    out->group_by = hearth_rpc_texts(rpc, rule->group_by, rule->n_group_by);
    out->n_group_by = rule->n_group_by;
    out->n_external_labels = rule->external.n;
    out->generation = rule->generation;

    if (rule->has_function) {
        out->stacktrace_filter = make_filter(rpc, rule);
    }

    if (!hearth_rpc_labels(rpc, &rule->external, &out->external_labels) || rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    *ret = out;

    return HEARTH_OK;
}

/* ---- reading ---- */

static enum hearth_status get(struct hearth_rpc *rpc)
{
    const Settings__V1__GetRecordingRuleRequest *in =
        (const Settings__V1__GetRecordingRuleRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_rule rule;

    HEARTH_TRY(hearth_rules_get(&call, hearth_str_c(in->id), &rule, &rpc->err));

    /* Build the answer in the request's arena. */
    Settings__V1__GetRecordingRuleResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__get_recording_rule_response__init(out);
    rpc->answer = &out->base;

    return make_rule(rpc, &rule, &out->rule);
}

void hearth_svc_rules_get(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get(rpc));
}

static enum hearth_status list(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_rule *rules;
    size_t n;

    HEARTH_TRY(hearth_rules_list(&call, &rules, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Settings__V1__ListRecordingRulesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Settings__V1__RecordingRule **all = hearth_arena_array(&rpc->arena, n, sizeof *all);
    if (out == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__list_recording_rules_response__init(out);

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(make_rule(rpc, &rules[i], &all[i]));
    }

    out->rules = all;
    out->n_rules = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_rules_list(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list(rpc));
}

/* ---- changing ---- */

static enum hearth_status read_filter(struct hearth_rpc *rpc,
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

static enum hearth_status read_rule(struct hearth_rpc *rpc,
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

    return read_filter(rpc, in->stacktrace_filter, ret);
}

static enum hearth_status upsert(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_rule rule;

    HEARTH_TRY(
        read_rule(rpc, (const Settings__V1__UpsertRecordingRuleRequest *)rpc->request, &rule));
    HEARTH_TRY(hearth_rules_put(&call, &rule, &rpc->err));

    /* Build the answer in the request's arena. */
    Settings__V1__UpsertRecordingRuleResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__upsert_recording_rule_response__init(out);
    rpc->answer = &out->base;

    return make_rule(rpc, &rule, &out->rule);
}

void hearth_svc_rules_upsert(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, upsert(rpc));
}

static enum hearth_status delete_one(struct hearth_rpc *rpc)
{
    const Settings__V1__DeleteRecordingRuleRequest *in =
        (const Settings__V1__DeleteRecordingRuleRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);

    HEARTH_TRY(hearth_rules_delete(&call, hearth_str_c(in->id), &rpc->err));

    /* Build the answer in the request's arena. */
    Settings__V1__DeleteRecordingRuleResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    settings__v1__delete_recording_rule_response__init(out);
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_rules_delete(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, delete_one(rpc));
}

/* ---- counters ---- */

void hearth_http_rule_metrics(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    rpc->http->answer_type = "text/plain; version=0.0.4; charset=utf-8";
    hearth_rpc_end(rpc, hearth_rules_write_metrics(&call, &rpc->packed, &rpc->err));
}
