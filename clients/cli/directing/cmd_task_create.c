/* cmd_task_create.c -- hearth task create KIND. */
#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_task.h"

#include <limits.h>
#include <stdio.h>

#define MS HEARTH_NS_PER_MS

/* "100ms" as milliseconds of an int32 field. */
static enum hearth_status read_milliseconds(struct cli *cli, const char *flag, const char *text,
                                            int32_t *ret)
{
    int64_t ns;

    if (hearth_str_eq_c(hearth_str_c(text), "0") || hearth_str_eq_c(hearth_str_c(text), "0ms")) {
        *ret = 0;
        return HEARTH_OK;
    }
    enum hearth_status status = hearth_duration_parse(hearth_str_c(text), &ns, &cli->err);
    if (status == HEARTH_OK && (ns % MS != 0 || ns / MS > INT32_MAX)) {
        status = HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                             "\"%.60s\" is not a number of milliseconds", text);
    }
    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "%s", flag);
        return status;
    }
    *ret = (int32_t)(ns / MS);

    return HEARTH_OK;
}

static enum hearth_status read_rule_number(struct cli *cli, const char *flag,
                                           struct hearth_str text, int32_t *ret)
{
    int64_t n;
    if (!hearth_str_to_i64(text, &n) || n < INT32_MIN || n > INT32_MAX) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "%s: \"" HEARTH_STR_FMT "\" is not a number", flag,
                           HEARTH_STR_ARG(text));
    }
    *ret = (int32_t)n;
    return HEARTH_OK;
}

/* ---- sampling rules ---- */

/* One of uri=REGEX, min=100ms, 4xx, 5xx, request=BYTES, response=BYTES. */
static enum hearth_status read_word(struct cli *cli, struct hearth_str word,
                                    Hearth__V1__SamplingRule *rule)
{
    size_t eq = hearth_str_find(word, '=', 0);
    struct hearth_str key = hearth_str_n(word.p, eq);
    struct hearth_str value =
        eq < word.n ? hearth_str_n(word.p + eq + 1, word.n - eq - 1) : HEARTH_STR("");
    const char *text = hearth_arena_strndup(&cli->arena, value.p, value.n);

    if (text == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    if (hearth_str_eq_c(key, "uri")) {
        rule->uri_regex = cli_field(cli, text);
        return HEARTH_OK;
    }
    if (hearth_str_eq_c(key, "min")) {
        rule->min_duration_presence_case =
            HEARTH__V1__SAMPLING_RULE__MIN_DURATION_PRESENCE_MIN_DURATION_MS;
        return read_milliseconds(cli, "--sample min", text, &rule->min_duration_ms);
    }
    if (hearth_str_eq_c(word, "4xx")) {
        rule->when_4xx = true;
        return HEARTH_OK;
    }
    if (hearth_str_eq_c(word, "5xx")) {
        rule->when_5xx = true;
        return HEARTH_OK;
    }
    if (hearth_str_eq_c(key, "request")) {
        rule->require_complete_request = true;
        rule->max_request_presence_case =
            HEARTH__V1__SAMPLING_RULE__MAX_REQUEST_PRESENCE_MAX_REQUEST_BYTES;
        return read_rule_number(cli, "--sample request", value, &rule->max_request_bytes);
    }
    if (hearth_str_eq_c(key, "response")) {
        rule->require_complete_response = true;
        rule->max_response_presence_case =
            HEARTH__V1__SAMPLING_RULE__MAX_RESPONSE_PRESENCE_MAX_RESPONSE_BYTES;
        return read_rule_number(cli, "--sample response", value, &rule->max_response_bytes);
    }

    return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                       "--sample: \"" HEARTH_STR_FMT "\" is not uri=REGEX, min=100ms, 4xx, 5xx, "
                       "request=BYTES or response=BYTES",
                       HEARTH_STR_ARG(word));
}

static enum hearth_status read_rule(struct cli *cli, struct hearth_str text,
                                    Hearth__V1__SamplingRule *rule)
{
    hearth__v1__sampling_rule__init(rule);
    for (size_t from = 0; from < text.n;) {
        size_t to = hearth_str_find(text, ',', from);
        HEARTH_TRY(read_word(cli, hearth_str_n(text.p + from, to - from), rule));
        from = to + 1;
    }
    return HEARTH_OK;
}

static enum hearth_status read_rules(struct cli *cli, Hearth__V1__CreateTaskRequest *request)
{
    const struct cli_texts *samples = &cli->agent.samples;
    Hearth__V1__SamplingRule *rules = hearth_arena_array(&cli->arena, samples->n, sizeof *rules);
    request->sampling_rules =
        hearth_arena_array(&cli->arena, samples->n, sizeof *request->sampling_rules);
    if (rules == NULL || request->sampling_rules == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < samples->n; i++) {
        HEARTH_TRY(read_rule(cli, hearth_str_c(samples->v[i]), &rules[i]));
        request->sampling_rules[i] = &rules[i];
    }
    request->n_sampling_rules = samples->n;
    return HEARTH_OK;
}

/* ---- the request ---- */

static enum hearth_status read_task_times(struct cli *cli, Hearth__V1__CreateTaskRequest *request)
{
    const struct cli_agent *agent = &cli->agent;
    int64_t ns;

    if (agent->start != NULL) {
        HEARTH_TRY(cli_parse_time(cli, agent->start, &ns));
        request->start_ms = ns / MS;
    }
    if (agent->duration != NULL) {
        HEARTH_TRY(hearth_duration_parse(hearth_str_c(agent->duration), &ns, &cli->err));
        if (ns % MS != 0) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                               "--duration: \"%.60s\" is not a number of milliseconds",
                               agent->duration);
        }
        request->duration_ms = ns / MS;
    } else if (request->kind != HEARTH__V1__TASK_KIND__TASK_KIND_NETWORK) {
        request->duration_ms = 60000;
    }

    return HEARTH_OK;
}

static enum hearth_status read_request(struct cli *cli, Hearth__V1__CreateTaskRequest *request)
{
    const struct cli_agent *agent = &cli->agent;
    bool is_trace = request->kind == HEARTH__V1__TASK_KIND__TASK_KIND_TRACE;
    const struct {
        const char *text;
        char **to;
    } texts[] = {{agent->service, &request->service},
                 {agent->instance, &request->instance},
                 {agent->endpoint, &request->endpoint},
                 {agent->exec_args, &request->exec_args}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        *texts[i].to = cli_field(cli, texts[i].text == NULL ? "" : texts[i].text);
    }

    HEARTH_TRY(cli_task_texts(cli, agent->process_labels, &request->n_labels, &request->labels));
    HEARTH_TRY(cli_task_texts(cli, agent->instances, &request->n_instances, &request->instances));
    HEARTH_TRY(cli_task_texts(cli, agent->events, &request->n_events, &request->events));
    HEARTH_TRY(read_task_times(cli, request));
    request->max_samples = is_trace ? 5 : 0;
    request->dump_period_ms = is_trace ? 10 : 0;
    if (agent->max_samples != NULL) {
        HEARTH_TRY(read_rule_number(cli, "--max-samples", hearth_str_c(agent->max_samples),
                                    &request->max_samples));
    }
    if (agent->min_duration != NULL) {
        HEARTH_TRY(read_milliseconds(cli, "--min-duration", agent->min_duration,
                                     &request->min_duration_ms));
    }
    if (agent->dump_period != NULL && is_trace) {
        HEARTH_TRY(
            read_milliseconds(cli, "--dump-period", agent->dump_period, &request->dump_period_ms));
    } else if (agent->dump_period != NULL) {
        HEARTH_TRY(read_rule_number(cli, "--dump-period", hearth_str_c(agent->dump_period),
                                    &request->dump_period_ms));
    }
    return read_rules(cli, request);
}

/* What each kind needs, before the server is asked; in the words of the command line. */
static enum hearth_status check_needed(struct cli *cli, Hearth__V1__TaskKind kind)
{
    const struct cli_agent *agent = &cli->agent;
    bool is_trace = kind == HEARTH__V1__TASK_KIND__TASK_KIND_TRACE;
    bool is_network = kind == HEARTH__V1__TASK_KIND__TASK_KIND_NETWORK;
    bool has_file = kind == HEARTH__V1__TASK_KIND__TASK_KIND_ASYNC_PROFILER ||
                    kind == HEARTH__V1__TASK_KIND__TASK_KIND_PPROF;
    const struct {
        bool is_needed;
        const char *value, *flag;
    } needed[] = {{true, agent->service, "--service NAME"},
                  {is_trace, agent->endpoint, "--endpoint NAME"},
                  {is_network, agent->instance, "--instance NAME"},
                  {has_file, agent->instances, "--instances A,B"},
                  {has_file, agent->events, "--events A,B"}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(needed); i++) {
        if (needed[i].is_needed && (needed[i].value == NULL || needed[i].value[0] == '\0')) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "task create %s needs %s",
                               cli->args[0], needed[i].flag);
        }
    }
    return HEARTH_OK;
}

enum hearth_status cli_task_request(struct cli *cli, Hearth__V1__CreateTaskRequest *request)
{
    if (!cli_task_kind_of(cli->args[0], &request->kind)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "KIND of task create must be oncpu, offcpu, network, trace, async or "
                           "pprof");
    }
    HEARTH_TRY(check_needed(cli, request->kind));

    return read_request(cli, request);
}

enum cli_exit cli_task_create(struct cli *cli)
{
    Hearth__V1__CreateTaskRequest request;
    Hearth__V1__CreateTaskResponse *answer = NULL;

    hearth__v1__create_task_request__init(&request);
    enum hearth_status status = cli_task_request(cli, &request);
    if (status == HEARTH_INVALID_ARGUMENT) {
        return cli_usage(cli->err.msg);
    }
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_TASKS "CreateTask", &request,
                          &hearth__v1__create_task_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    char *task_id = cli_field(cli, answer->task->task_id);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_task_print(answer->task, &out);
    enum cli_exit code = cli_print_answer(cli, &answer->base, &out);

    return code == CLI_OK && cli->agent.watch ? cli_task_watch(cli, task_id) : code;
}
