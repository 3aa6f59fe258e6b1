/*
 * task_checks.c -- what makes a request for a task valid (contract: tasks_internal.h).
 *
 * The checks have the order and texts of SkyWalking's server, because its clients and their tests
 * compare them. Texts of Hearth's own checks (units, numbers, syntax) name the field.
 */
#include "hearth/codec/json_writer.h"
#include "hearth/selector/pattern.h"

#include "tasks/tasks_internal.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_LIST         1000
#define MAX_LABEL_JSON   1000
#define MAX_RULES        64
#define MAX_AHEAD_MS     (INT64_C(366) * 86400000)
#define MAX_DURATION_MS  (INT64_C(1000) * INT32_MAX)
#define MIN_EBPF_MS      60000
#define MAX_MINUTES      15
#define NETWORK_MS       600000
#define MAX_TRACE_SAMPLE 10

struct task_check {
    const struct hearth_task_request *request;
    const struct hearth_task_scope *scope;
    struct hearth_arena *arena;
    struct hearth_task *task;
    struct hearth_err *err;
};

/* Refuse the request with a text of SkyWalking's server. */
static enum hearth_status refuse_task(const struct task_check *check, const char *text)
{
    return HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT, "%s", text);
}

/* ---- texts ---- */

static int compare_texts(const void *a, const void *b)
{
    return hearth_str_cmp(*(const struct hearth_str *)a, *(const struct hearth_str *)b);
}

/* Copy the texts without empty ones, in the given order; their number and length are limited. */
static enum hearth_status copy_short_texts(const struct hearth_str *texts, size_t n,
                                           struct hearth_arena *arena, struct hearth_str **ret,
                                           size_t *ret_n, struct hearth_err *err)
{
    assert(texts != NULL || n == 0);

    if (n > MAX_LIST) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a list of the request has %zu texts; it may have %d", n, MAX_LIST);
    }

    struct hearth_str *all = hearth_arena_array(arena, n, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_all = 0;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].n > HEARTH_AGENT_NAME_BYTES) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "a text of the request has %zu bytes; it may have %d", texts[i].n,
                               HEARTH_AGENT_NAME_BYTES);
        }
        if (texts[i].n > 0) {
            all[n_all++] = texts[i];
        }
    }

    *ret = all;
    *ret_n = n_all;

    return HEARTH_OK;
}

enum hearth_status hearth_task_texts(const struct hearth_str *texts, size_t n,
                                     struct hearth_arena *arena, struct hearth_str **ret,
                                     size_t *ret_n, struct hearth_err *err)
{
    struct hearth_str *all;
    size_t n_all, n_kept = 0;

    assert(ret != NULL && ret_n != NULL);

    HEARTH_TRY(copy_short_texts(texts, n, arena, &all, &n_all, err));
    if (n_all > 0) {
        qsort(all, n_all, sizeof *all, compare_texts);
    }

    /* Drop repeated texts, which are neighbours now. */
    for (size_t i = 0; i < n_all; i++) {
        if (n_kept == 0 || !hearth_str_eq(all[n_kept - 1], all[i])) {
            all[n_kept++] = all[i];
        }
    }

    *ret = all;
    *ret_n = n_kept;

    return HEARTH_OK;
}

static enum hearth_status check_text_length(const struct task_check *check, const char *field,
                                            struct hearth_str text, size_t max)
{
    return text.n <= max ? HEARTH_OK
                         : HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT,
                                       "%s has %zu bytes; it may have %zu", field, text.n, max);
}

static enum hearth_status check_task_texts(const struct task_check *check)
{
    const struct hearth_task_request *request = check->request;
    struct hearth_task *task = check->task;

    /* Limit the length of single texts. */
    HEARTH_TRY(check_text_length(check, "service", request->service, HEARTH_AGENT_NAME_BYTES));
    HEARTH_TRY(check_text_length(check, "instance", request->instance, HEARTH_AGENT_NAME_BYTES));
    HEARTH_TRY(check_text_length(check, "endpoint", request->endpoint, HEARTH_AGENT_NAME_BYTES));
    HEARTH_TRY(
        check_text_length(check, "exec_args", request->exec_args, HEARTH_TASK_EXEC_ARGS_BYTES));

    /* Copy the lists. */
    HEARTH_TRY(hearth_task_texts(request->labels, request->n_labels, check->arena, &task->labels,
                                 &task->n_labels, check->err));
    HEARTH_TRY(hearth_task_texts(request->instances, request->n_instances, check->arena,
                                 &task->instances, &task->n_instances, check->err));
    HEARTH_TRY(copy_short_texts(request->events, request->n_events, check->arena, &task->events,
                                &task->n_events, check->err));
    hearth_task_drop_repeated_events(task);

    return HEARTH_OK;
}

/* ---- times ---- */

static enum hearth_status check_duration_unit(const struct task_check *check, int64_t unit_ms,
                                              const char *unit)
{
    int64_t duration_ms = check->request->duration_ms;

    assert(unit_ms > 0);

    if (duration_ms % unit_ms != 0 || duration_ms > MAX_DURATION_MS) {
        return HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT,
                           "duration_ms must be whole %s (a multiple of %lld, at most %lld), not "
                           "%lld: agents take no other unit",
                           unit, (long long)unit_ms, (long long)MAX_DURATION_MS,
                           (long long)duration_ms);
    }

    return HEARTH_OK;
}

/* ---- on-CPU, off-CPU ---- */

static bool scope_has_label(const struct hearth_task_scope *scope, struct hearth_str label)
{
    for (size_t i = 0; i < scope->n_labels; i++) {
        if (hearth_str_eq(scope->labels[i], label)) {
            return true;
        }
    }

    return false;
}

static enum hearth_status check_task_labels(const struct task_check *check)
{
    const struct hearth_task *task = check->task;
    struct hearth_buf missing, json;
    struct hearth_json writer;

    /* Write the labels as JSON and collect the unknown ones. */
    hearth_buf_init(&missing, 256);
    hearth_buf_init(&json, 0);
    hearth_json_init(&writer, &json);
    hearth_json_array(&writer);
    for (size_t i = 0; i < task->n_labels; i++) {
        hearth_json_string(&writer, task->labels[i]);
        if (!scope_has_label(check->scope, task->labels[i])) {
            hearth_buf_printf(&missing, "%s" HEARTH_STR_FMT, missing.n > 0 ? ", " : "",
                              HEARTH_STR_ARG(task->labels[i]));
        }
    }

    hearth_json_array_end(&writer);

    /* Refuse unknown labels, and labels that do not fit their column. */
    enum hearth_status status = HEARTH_OK;
    if (missing.n > 0 || missing.failed) {
        status = HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT,
                             "The service doesn't have processes with label(s) %.*s.",
                             (int)missing.n, missing.n > 0 ? missing.p : "");
    } else if (json.n > MAX_LABEL_JSON || json.failed) {
        status =
            refuse_task(check, "The labels length is bigger than 1000, please reduce the labels "
                               "count");
    }

    hearth_buf_release(&missing);
    hearth_buf_release(&json);

    return status;
}

static enum hearth_status check_process_task(const struct task_check *check)
{
    if (check->request->service.n == 0) {
        return refuse_task(check, "service could not be empty");
    }
    HEARTH_TRY(check_task_labels(check));
    if (check->request->duration_ms < MIN_EBPF_MS) {
        return refuse_task(check, "the fixed time duration must be greater than or equals 60s");
    }

    return check_duration_unit(check, 1000, "seconds");
}

/* ---- trace ---- */

static enum hearth_status check_trace_task(const struct task_check *check)
{
    const struct hearth_task_request *request = check->request;
    struct hearth_task *task = check->task;

    /* The checks of SkyWalking's server, in its order. */
    task->endpoint = hearth_str_trim(request->endpoint);
    if (request->service.n == 0) {
        return refuse_task(check, "service cannot be null");
    }

    if (task->endpoint.n == 0) {
        return refuse_task(check, "endpoint name cannot be empty");
    }

    if (request->duration_ms < HEARTH_MS_PER_MINUTE) {
        return refuse_task(check, "monitor duration must greater than 1 minutes");
    }

    HEARTH_TRY(check_duration_unit(check, HEARTH_MS_PER_MINUTE, "minutes"));
    if (request->min_duration_ms < 0) {
        return refuse_task(check, "min duration threshold must greater than or equals zero");
    }

    if (request->max_samples <= 0) {
        return refuse_task(check, "max sampling count must greater than zero");
    }

    if (request->duration_ms > MAX_MINUTES * HEARTH_MS_PER_MINUTE) {
        return refuse_task(check, "The duration of the monitoring task cannot be greater than 15 "
                                  "minutes");
    }

    if (request->dump_period_ms < 10) {
        return refuse_task(check, "dump period must be greater than or equals 10 milliseconds");
    }

    if (request->max_samples >= MAX_TRACE_SAMPLE) {
        return refuse_task(check, "max sampling count must less than 10");
    }

    return HEARTH_OK;
}

/* ---- network ---- */

static enum hearth_status check_sampling_rule(const struct task_check *check, size_t at,
                                              bool *has_default)
{
    const struct hearth_sampling_rule *rules = check->request->rules, *rule = &rules[at];

    assert(at < check->request->n_rules);

    /* At most one default rule, and one rule for each expression. */
    if (rule->uri_regex.n == 0 && *has_default) {
        return refuse_task(check, "already contains the default sampling config");
    }

    *has_default = *has_default || rule->uri_regex.n == 0;
    for (size_t i = 0; i < at && rule->uri_regex.n > 0; i++) {
        if (hearth_str_eq(rules[i].uri_regex, rule->uri_regex)) {
            return HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT,
                               "already contains the \"" HEARTH_STR_FMT "\" sampling config",
                               HEARTH_STR_ARG(rule->uri_regex));
        }
    }

    /* Numbers must be positive, and something must be collected. */
    if (rule->has_min_duration && rule->min_duration_ms < 0) {
        return refuse_task(check, "the min duration must bigger or equals zero");
    }

    if (!rule->require_complete_request && !rule->require_complete_response) {
        return refuse_task(check, "please collect at least one of request or response");
    }

    if (rule->has_max_request && rule->max_request_bytes <= 0) {
        return refuse_task(check, "the max request size must bigger than zero");
    }

    if (rule->has_max_response && rule->max_response_bytes <= 0) {
        return refuse_task(check, "the max response size must bigger than zero");
    }

    /* The expression, if any, must compile. */
    if (rule->uri_regex.n == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(check_text_length(check, "uri_regex", rule->uri_regex, HEARTH_AGENT_NAME_BYTES));
    struct hearth_pattern *pattern = NULL;
    HEARTH_TRY(hearth_pattern_new(rule->uri_regex, "uri_regex", &pattern, check->err));
    hearth_pattern_free(pattern);

    return HEARTH_OK;
}

static void write_sampling_rule(struct hearth_json *json, const struct hearth_sampling_rule *rule)
{
    hearth_json_object(json);
    if (rule->uri_regex.n > 0) {
        hearth_json_key_c(json, "URIRegex");
        hearth_json_string(json, rule->uri_regex);
    }

    if (rule->has_min_duration) {
        hearth_json_key_c(json, "MinDuration");
        hearth_json_i64(json, rule->min_duration_ms);
    }

    hearth_json_key_c(json, "When4xx");
    hearth_json_bool(json, rule->when_4xx);
    hearth_json_key_c(json, "When5xx");
    hearth_json_bool(json, rule->when_5xx);

    hearth_json_key_c(json, "Settings");
    hearth_json_object(json);

    hearth_json_key_c(json, "RequireCompleteRequest");
    hearth_json_bool(json, rule->require_complete_request);
    if (rule->has_max_request) {
        hearth_json_key_c(json, "MaxRequestSize");
        hearth_json_i64(json, rule->max_request_bytes);
    }

    hearth_json_key_c(json, "RequireCompleteResponse");
    hearth_json_bool(json, rule->require_complete_response);
    if (rule->has_max_response) {
        hearth_json_key_c(json, "MaxResponseSize");
        hearth_json_i64(json, rule->max_response_bytes);
    }

    hearth_json_object_end(json);
    hearth_json_object_end(json);
}

static enum hearth_status write_sampling_rules(const struct task_check *check)
{
    const struct hearth_task_request *request = check->request;
    struct hearth_buf out;
    struct hearth_json json;

    /* Write all rules into one array. */
    hearth_buf_init(&out, 0);
    hearth_json_init(&json, &out);
    hearth_json_array(&json);
    for (size_t i = 0; i < request->n_rules; i++) {
        write_sampling_rule(&json, &request->rules[i]);
    }

    hearth_json_array_end(&json);

    /* Keep it with the task. */
    if (!out.failed) {
        check->task->sampling = hearth_arena_str(check->arena, hearth_buf_view(&out));
    }

    hearth_buf_release(&out);

    return check->task->sampling.p == NULL ? HEARTH_FAIL_ARENA(check->err, check->arena)
                                           : HEARTH_OK;
}

static enum hearth_status check_network_task(const struct task_check *check)
{
    const struct hearth_task_request *request = check->request;
    struct hearth_task *task = check->task;

    /* The instance must have processes. */
    if (request->instance.n == 0) {
        return refuse_task(check, "instance could not be empty");
    }

    if (request->service.n == 0) {
        return refuse_task(check, "service could not be empty");
    }

    if (check->scope->n_of_instance == 0) {
        return refuse_task(check, "The instance doesn't have processes.");
    }

    /* Check the rules. */
    if (request->n_rules > MAX_RULES) {
        return HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT,
                           "the request has %zu sampling_rules; it may have %d", request->n_rules,
                           MAX_RULES);
    }

    bool has_default = false;
    for (size_t i = 0; i < request->n_rules; i++) {
        HEARTH_TRY(check_sampling_rule(check, i, &has_default));
    }

    /* The duration is fixed; keep-alive extends it. */
    if (request->duration_ms != 0 && request->duration_ms != NETWORK_MS) {
        return HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT,
                           "duration_ms: a network task lasts 10 minutes (%d), and longer while it "
                           "is kept alive; not %lld",
                           NETWORK_MS, (long long)request->duration_ms);
    }

    task->instance = request->instance;
    task->duration_ms = NETWORK_MS;
    task->n_labels = 0;

    return request->n_rules > 0 ? write_sampling_rules(check) : HEARTH_OK;
}

/* ---- async-profiler, pprof ---- */

static enum hearth_status check_async_task(const struct task_check *check)
{
    if (check->request->service.n == 0) {
        return refuse_task(check, "service cannot be null");
    }

    if (check->request->duration_ms <= 0) {
        return refuse_task(check, "duration cannot be negative");
    }

    HEARTH_TRY(check_duration_unit(check, 1000, "seconds"));
    if (check->task->n_events == 0) {
        return refuse_task(check, "events cannot be empty");
    }

    if (check->task->n_instances == 0) {
        return refuse_task(check, "serviceInstanceIds cannot be empty");
    }

    return hearth_task_check_events(check->task, check->err);
}

static bool is_only_event(const struct task_check *check, const char *name)
{
    return check->task->n_events == 1 &&
           hearth_str_eq_nocase(check->task->events[0], hearth_str_c(name));
}

static enum hearth_status check_pprof_task(const struct task_check *check)
{
    struct hearth_task *task = check->task;
    bool has_rate = is_only_event(check, "block") || is_only_event(check, "mutex");

    if (check->request->service.n == 0) {
        return refuse_task(check, "service cannot be null");
    }

    /* Events with a duration are limited to 15 minutes; others are sampled at once and get a
     * minute. */
    if (has_rate || is_only_event(check, "cpu")) {
        if (task->duration_ms <= 0) {
            return refuse_task(check, "duration cannot be negative");
        }
        if (task->duration_ms > MAX_MINUTES * HEARTH_MS_PER_MINUTE) {
            return refuse_task(check, "duration cannot be greater than 15 minutes");
        }
    } else if (task->duration_ms <= 0) {
        task->duration_ms = HEARTH_MS_PER_MINUTE;
    }

    HEARTH_TRY(check_duration_unit(check, HEARTH_MS_PER_MINUTE, "minutes"));

    /* block and mutex need a rate. */
    if (has_rate && check->request->dump_period_ms == 0) {
        return refuse_task(check,
                           "dumpPeriod is missing: tasks of block and mutex need the rate of "
                           "their event, dump_period_ms (--dump-period)");
    }

    if (has_rate && check->request->dump_period_ms < 0) {
        return refuse_task(check, "dumpPeriod cannot be negative");
    }

    /* Exactly one event, of named instances. */
    if (task->n_events == 0) {
        return refuse_task(check, "events cannot be empty");
    }

    if (task->n_instances == 0) {
        return refuse_task(check, "serviceInstanceIds cannot be empty");
    }

    if (task->n_events > 1) {
        return HEARTH_FAIL(check->err, HEARTH_INVALID_ARGUMENT,
                           "events: a pprof task takes one, not %zu", task->n_events);
    }

    return hearth_task_check_events(task, check->err);
}

/* ---- all ---- */

static enum hearth_status check_task_kind(const struct task_check *check)
{
    switch (check->request->kind) {
    case HEARTH_TASK_ON_CPU:
    case HEARTH_TASK_OFF_CPU:
        return check_process_task(check);
    case HEARTH_TASK_NETWORK:
        return check_network_task(check);
    case HEARTH_TASK_TRACE:
        return check_trace_task(check);
    case HEARTH_TASK_ASYNC_PROFILER:
        return check_async_task(check);
    case HEARTH_TASK_PPROF:
        return check_pprof_task(check);
    }

    return refuse_task(check, "the profiling target could not be null");
}

#define OF(kind)     (1U << HEARTH_TASK_##kind)
#define OF_PROCESSES (OF(ON_CPU) | OF(OFF_CPU))
#define OF_PROFILERS (OF(ASYNC_PROFILER) | OF(PPROF))
#define OF_INSTANCES (OF_PROFILERS | OF(TRACE))

/*
 * Refuse fields that the kind of task does not use: ignoring them could, for example, make a task
 * for one instance a task for all.
 */
static enum hearth_status check_unused_fields(const struct task_check *check)
{
    const struct hearth_task_request *request = check->request;
    const struct {
        bool is_given;

        unsigned kinds;
        const char *name;
    } fields[] = {
        {request->instance.n > 0, OF(NETWORK), "instance: only network tasks have one"},
        {request->endpoint.n > 0, OF(TRACE), "endpoint: only trace tasks have one"},
        {request->exec_args.n > 0, OF(ASYNC_PROFILER),
         "exec_args: only async-profiler tasks have them"},
        {request->n_labels > 0, OF_PROCESSES, "labels: only on-CPU and off-CPU tasks have them"},
        {request->n_instances > 0, OF_INSTANCES,
         "instances: only async-profiler, pprof and trace tasks have them"},
        {request->n_events > 0, OF_PROFILERS,
         "events: only async-profiler and pprof tasks have them"},
        {request->min_duration_ms > 0, OF(TRACE), "min_duration_ms: only trace tasks have one"},
        {request->dump_period_ms > 0, OF(TRACE) | OF(PPROF),
         "dump_period_ms: only trace and pprof tasks have one"},
        {request->max_samples > 0, OF(TRACE), "max_samples: only trace tasks have one"},
        {request->n_rules > 0, OF(NETWORK), "sampling_rules: only network tasks have them"},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(fields); i++) {
        if (fields[i].is_given && (fields[i].kinds & (1U << request->kind)) == 0) {
            return refuse_task(check, fields[i].name);
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_task_check(const struct hearth_task_request *request,
                                     const struct hearth_task_scope *scope, int64_t now_ms,
                                     struct hearth_arena *arena, struct hearth_task *ret,
                                     struct hearth_err *err)
{
    assert(request != NULL && scope != NULL && ret != NULL);

    *ret = (struct hearth_task){
        .kind = request->kind,
        .origin = HEARTH_TASK_CREATED,
        .service = request->service,
        .start_ms = request->start_ms > 0 ? request->start_ms : now_ms,
        .duration_ms = request->duration_ms,
        .min_duration_ms = request->min_duration_ms > 0 ? request->min_duration_ms : 0,
        .dump_period_ms = request->dump_period_ms > 0 ? request->dump_period_ms : 0,
        .max_samples = request->max_samples > 0 ? request->max_samples : 0,
        .exec_args = request->exec_args,
    };

    const struct task_check check = {
        .request = request, .scope = scope, .arena = arena, .task = ret, .err = err};

    /* Check the request. */
    HEARTH_TRY(check_task_texts(&check));
    HEARTH_TRY(check_task_kind(&check));
    HEARTH_TRY(check_unused_fields(&check));

    /* The start may lie ahead, except for network tasks, which start at once. */
    if (ret->start_ms > now_ms + MAX_AHEAD_MS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "start_ms %lld lies more than 366 days ahead", (long long)ret->start_ms);
    }

    if (request->kind == HEARTH_TASK_NETWORK) {
        ret->start_ms = now_ms;
    }

    /* It may have passed, but not the whole task: no agent would get it. */
    if (hearth_task_handed_out_until(ret) < now_ms) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "start_ms is %lld, %s: the task would have ended already",
                           (long long)ret->start_ms, hearth_task_time(ret->start_ms, arena));
    }

    return HEARTH_OK;
}

const char *hearth_task_overlap_message(enum hearth_task_kind kind)
{
    switch (kind) {
    case HEARTH_TASK_ON_CPU:
    case HEARTH_TASK_OFF_CPU:
        return "Task's time range overlaps with other tasks";
    case HEARTH_TASK_TRACE:
        return "current service already has monitor task execute at this time";
    case HEARTH_TASK_ASYNC_PROFILER:
        return "current service already has monitor async profiler task execute at this time";
    case HEARTH_TASK_PPROF:
        return "current service already has monitor pprof task execute at this time";
    case HEARTH_TASK_NETWORK:
        break;
    }

    return NULL;
}
