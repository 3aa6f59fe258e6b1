/* cmd_rules.c -- recording rules: list, get, set, delete. */
#include "hearth/model/labels.h"
#include "hearth/pb/settings/v1/recording_rules.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "listing.h"

#define RULES "settings.v1.RecordingRulesService/"

/* Adds texts, separated by commas or other marks, as one. */
static void add_texts(struct cli_listing *list, char *const *texts, size_t n, const char *mark)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(&text, "%s%s", i == 0 ? "" : mark, texts[i]);
    }
    cli_list_take(list, &text);
}

static void add_rule(struct cli_listing *list, const Settings__V1__RecordingRule *rule)
{
    const Settings__V1__StacktraceFilter *filter = rule->stacktrace_filter;
    bool has_function = filter != NULL && filter->function_name != NULL;
    struct hearth_buf labels;

    hearth_buf_init(&labels, 0);
    for (size_t i = 0; i < rule->n_external_labels; i++) {
        hearth_buf_printf(&labels, "%s%s=%s", i == 0 ? "" : ",", rule->external_labels[i]->name,
                          rule->external_labels[i]->value);
    }
    cli_list_text(list, rule->id);
    cli_list_text(list, rule->metric_name);
    add_texts(list, rule->group_by, rule->n_group_by, ",");
    cli_list_take(list, &labels);
    cli_list_text(list, has_function ? filter->function_name->function_name : "");
    add_texts(list, rule->matchers, rule->n_matchers, " ");
}

static enum cli_exit end_rule(struct cli *cli, const ProtobufCMessage *answer,
                              const Settings__V1__RecordingRule *rule)
{
    struct cli_listing list;

    cli_list_begin(cli, &list);
    if (rule != NULL) {
        add_rule(&list, rule);
    }
    return cli_list_end(&list, answer);
}

enum cli_exit cli_rules_list(struct cli *cli)
{
    Settings__V1__ListRecordingRulesRequest request;
    Settings__V1__ListRecordingRulesResponse *answer = NULL;
    settings__v1__list_recording_rules_request__init(&request);
    enum hearth_status status =
        cli_call(cli, RULES "ListRecordingRules", &request,
                 &settings__v1__list_recording_rules_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "there are no rules";
    for (size_t i = 0; i < answer->n_rules; i++) {
        add_rule(&list, answer->rules[i]);
    }

    return cli_list_end(&list, &answer->base);
}

static enum hearth_status ask_rule(struct cli *cli, const char *id,
                                   Settings__V1__GetRecordingRuleResponse **ret)
{
    Settings__V1__GetRecordingRuleRequest request;
    settings__v1__get_recording_rule_request__init(&request);
    request.id = cli_field(cli, id);
    return cli_call(cli, RULES "GetRecordingRule", &request,
                    &settings__v1__get_recording_rule_response__descriptor, ret);
}

enum cli_exit cli_rules_delete(struct cli *cli)
{
    Settings__V1__DeleteRecordingRuleRequest request;
    Settings__V1__DeleteRecordingRuleResponse *answer = NULL;
    settings__v1__delete_recording_rule_request__init(&request);
    request.id = cli_field(cli, cli->args[0]);
    enum hearth_status status =
        cli_call(cli, RULES "DeleteRecordingRule", &request,
                 &settings__v1__delete_recording_rule_response__descriptor, &answer);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);

    return status == HEARTH_OK ? cli_print_answer(cli, &answer->base, &out) : cli_fail(cli, status);
}

/* --label K=V, checked by the options. */
static enum hearth_status external_labels(struct cli *cli,
                                          Settings__V1__UpsertRecordingRuleRequest *request)
{
    Types__V1__LabelPair *pairs = hearth_arena_array(&cli->arena, cli->n_labels, sizeof pairs[0]);
    Types__V1__LabelPair **at = hearth_arena_array(&cli->arena, cli->n_labels, sizeof at[0]);

    if (pairs == NULL || at == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < cli->n_labels; i++) {
        struct hearth_str text = hearth_str_c(cli->labels[i]);
        size_t eq = hearth_str_find(text, '=', 0);
        types__v1__label_pair__init(&pairs[i]);
        pairs[i].name = hearth_arena_strndup(&cli->arena, text.p, eq);
        pairs[i].value = cli_field(cli, text.p + eq + 1);
        at[i] = &pairs[i];
    }
    request->n_external_labels = cli->n_labels;
    request->external_labels = at;

    return HEARTH_OK;
}

/* METRIC SELECTOR: the selector with the profile type as a matcher, if it has none of its own. */
static enum hearth_status fill_rule(struct cli *cli,
                                    Settings__V1__UpsertRecordingRuleRequest *request)
{
    const char *selector;

    HEARTH_TRY(cli_selector(cli, 1, &selector));
    char **matchers = hearth_arena_array(&cli->arena, 2, sizeof matchers[0]);
    if (matchers == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    matchers[request->n_matchers++] = cli_field(cli, selector);
    if (strstr(selector, HEARTH_LABEL_PROFILE_TYPE) == NULL) {
        const char *type;
        struct hearth_buf text;
        HEARTH_TRY(cli_resolve_range(cli));
        HEARTH_TRY(cli_profile_type(cli, selector, &type));
        hearth_buf_init(&text, 0);
        hearth_buf_printf(&text, "{" HEARTH_LABEL_PROFILE_TYPE "=\"%s\"}", type);
        matchers[request->n_matchers++] = hearth_arena_strndup(&cli->arena, text.p, text.n);
        hearth_buf_release(&text);
    }
    request->matchers = matchers;
    request->metric_name = cli_field(cli, cli->args[0]);
    request->n_group_by = cli->n_by;
    request->group_by = cli_by_names(cli);
    if (cli->id != NULL) {
        Settings__V1__GetRecordingRuleResponse *old;
        HEARTH_TRY(ask_rule(cli, cli->id, &old));
        request->id = cli_field(cli, cli->id);
        request->generation = old->rule == NULL ? 0 : old->rule->generation;
    }

    return external_labels(cli, request);
}

enum cli_exit cli_rules_set(struct cli *cli)
{
    Settings__V1__UpsertRecordingRuleRequest request;
    Settings__V1__UpsertRecordingRuleResponse *answer = NULL;
    Settings__V1__StacktraceFilter filter;
    Settings__V1__StacktraceFilterFunctionName function;
    settings__v1__upsert_recording_rule_request__init(&request);
    settings__v1__stacktrace_filter__init(&filter);
    settings__v1__stacktrace_filter_function_name__init(&function);
    if (cli->functions.n > 1) {
        return cli_usage("a rule supports at most one --function");
    }
    if (cli->functions.n == 1) {
        function.function_name = cli_field(cli, cli->functions.v[0]);
        filter.function_name = &function;
        request.stacktrace_filter = &filter;
    }
    enum hearth_status status = fill_rule(cli, &request);
    if (status == HEARTH_OK) {
        status = cli_call(cli, RULES "UpsertRecordingRule", &request,
                          &settings__v1__upsert_recording_rule_response__descriptor, &answer);
    }

    return status == HEARTH_OK ? end_rule(cli, &answer->base, answer->rule) : cli_fail(cli, status);
}

enum cli_exit cli_rules_get(struct cli *cli)
{
    Settings__V1__GetRecordingRuleResponse *answer = NULL;
    enum hearth_status status = ask_rule(cli, cli->args[0], &answer);

    return status == HEARTH_OK ? end_rule(cli, &answer->base, answer->rule) : cli_fail(cli, status);
}
