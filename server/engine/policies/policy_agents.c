/*
 * policy_agents.c -- policies for agents, and the reports of agents (contract:
 * hearth/engine/policies.h).
 */
#include "hearth/base/clock.h"
#include "hearth/codec/json_writer.h"
#include "hearth/model/entity_id.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_tasks.h"

#include "common/shown.h"
#include "policies/policies_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* A longer duration is not in seconds. */
#define MAX_DURATION_SECONDS (7 * 86400)
#define MAX_CAUSES           1000
#define TASK_ID_BYTES        16

/* ---- policies for agents ---- */

static int compare_policy_service(const void *key, const void *element)
{
    return hearth_str_cmp(*(const struct hearth_str *)key,
                          ((const struct hearth_policy *)element)->service);
}

enum hearth_status hearth_policies_for_agent(const struct hearth_call *call,
                                             const struct hearth_policy_query *asked, size_t n,
                                             struct hearth_buf *out, struct hearth_err *err)
{
    assert(asked != NULL || n == 0);

    if (n == 0) {
        return HEARTH_OK;
    }

    struct hearth_str *services = hearth_arena_array(call->arena, n, sizeof services[0]);
    struct hearth_policy_entry *entries = hearth_arena_array(call->arena, n, sizeof entries[0]);
    if (services == NULL || entries == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Read the policies of the services; they are sorted by service. */
    for (size_t i = 0; i < n; i++) {
        services[i] = asked[i].service;
        HEARTH_TRY(hearth_call_check_service(call, services[i], err));
    }

    struct hearth_policy *policies;
    size_t n_policies, n_entries = 0;
    HEARTH_TRY(
        hearth_store_policies(HEARTH_CALL_SCOPE(call), services, n, &policies, &n_policies, err));

    /* Keep the differences. */
    for (size_t i = 0; i < n; i++) {
        const struct hearth_policy *policy =
            n_policies == 0 ? NULL
                            : bsearch(&asked[i].service, policies, n_policies, sizeof policies[0],
                                      compare_policy_service);

        bool differs =
            policy == NULL ? asked[i].uuid.n > 0 : !hearth_str_eq(asked[i].uuid, policy->uuid);
        if (differs) {
            entries[n_entries++] = (struct hearth_policy_entry){asked[i].service, policy};
        }
    }

    if (n_entries > 0) {
        hearth_policy_write_entries(entries, n_entries, out);
    }

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the policies of %zu services",
                             n_entries)
               : HEARTH_OK;
}

/* ---- reports ---- */

static enum hearth_status check_report_name(const char *what, struct hearth_str name,
                                            struct hearth_err *err)
{
    if (name.n == 0 || name.n > HEARTH_AGENT_NAME_BYTES || !hearth_str_utf8_valid(name)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s must have 1 to %d bytes of UTF-8",
                           what, HEARTH_AGENT_NAME_BYTES);
    }

    return HEARTH_OK;
}

static enum hearth_status check_report_cause(const struct hearth_policy_cause *cause, size_t i,
                                             struct hearth_err *err)
{
    if (cause->monitor <= 0 || cause->monitor >= HEARTH_MONITOR_END) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "cause %zu has an unknown monitor", i + 1);
    }

    if (!isfinite(cause->threshold) || !isfinite(cause->current)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "cause %zu: threshold and current must be finite", i + 1);
    }

    if (cause->uri_regex.n > HEARTH_AGENT_NAME_BYTES ||
        cause->uri_path.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "cause %zu: a URI may have %d bytes",
                           i + 1, HEARTH_AGENT_NAME_BYTES);
    }

    return HEARTH_OK;
}

static enum hearth_status check_policy_report(const struct hearth_policy_report *report,
                                              struct hearth_err *err)
{
    /* Names, kind and duration. */
    HEARTH_TRY(check_report_name("serviceName", report->service, err));
    HEARTH_TRY(check_report_name("instanceName", report->instance, err));
    HEARTH_TRY(check_report_name("processName", report->process, err));
    if (report->kind <= 0 || report->kind >= HEARTH_POLICY_KIND_END) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the continuous profiling task type cannot be recognized");
    }

    if (report->duration_seconds <= 0 || report->duration_seconds > MAX_DURATION_SECONDS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the duration is %d s; it must be 1 to %d s", report->duration_seconds,
                           MAX_DURATION_SECONDS);
    }

    /* Causes and URIs. */
    if (report->n_causes > MAX_CAUSES || report->n_uri_regexes > MAX_CAUSES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the report has %zu causes and %zu URIs; it may have %d of each",
                           report->n_causes, report->n_uri_regexes, MAX_CAUSES);
    }

    for (size_t i = 0; i < report->n_causes; i++) {
        HEARTH_TRY(check_report_cause(&report->causes[i], i, err));
    }

    for (size_t i = 0; i < report->n_uri_regexes; i++) {
        if (report->uri_regexes[i].n > HEARTH_AGENT_NAME_BYTES) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "URI %zu may have %d bytes", i + 1,
                               HEARTH_AGENT_NAME_BYTES);
        }
    }

    return HEARTH_OK;
}

static void write_report_causes(const struct hearth_policy_report *report, struct hearth_buf *out)
{
    struct hearth_json json;
    struct hearth_buf message;

    hearth_buf_init(&message, 0);
    hearth_json_init(&json, out);
    hearth_json_array(&json);
    for (size_t i = 0; i < report->n_causes; i++) {
        const struct hearth_policy_cause *cause = &report->causes[i];
        struct hearth_str uri = cause->uri_regex.n > 0 ? cause->uri_regex : cause->uri_path;
        hearth_buf_reset(&message);
        hearth_cause_message(cause->monitor, uri, cause->current, cause->threshold, &message);

        hearth_json_object(&json);
        hearth_json_key_c(&json, "monitor");
        hearth_json_string_c(&json, hearth_monitor_name(cause->monitor));
        hearth_json_key_c(&json, "uri_regex");
        hearth_json_string(&json, cause->uri_regex);
        hearth_json_key_c(&json, "uri_path");
        hearth_json_string(&json, cause->uri_path);
        hearth_json_key_c(&json, "threshold");
        hearth_json_double(&json, cause->threshold);
        hearth_json_key_c(&json, "current");
        hearth_json_double(&json, cause->current);
        hearth_json_key_c(&json, "message");
        hearth_json_string(&json, hearth_buf_view(&message));
        hearth_json_object_end(&json);
    }

    hearth_json_array_end(&json);
    out->failed = out->failed || message.failed;
    hearth_buf_release(&message);
}

/* Write the sampling rules that the agent uses: all requests of each URI, complete. */
static void write_report_sampling(const struct hearth_policy_report *report, struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_array(&json);
    for (size_t i = 0; i < report->n_uri_regexes; i++) {
        hearth_json_object(&json);
        if (report->uri_regexes[i].n > 0) {
            hearth_json_key_c(&json, "URIRegex");
            hearth_json_string(&json, report->uri_regexes[i]);
        }
        hearth_json_key_c(&json, "MinDuration");
        hearth_json_i64(&json, 0);
        hearth_json_key_c(&json, "When4xx");
        hearth_json_bool(&json, true);
        hearth_json_key_c(&json, "When5xx");
        hearth_json_bool(&json, true);
        hearth_json_key_c(&json, "Settings");
        hearth_json_object(&json);
        hearth_json_key_c(&json, "RequireCompleteRequest");
        hearth_json_bool(&json, true);
        hearth_json_key_c(&json, "RequireCompleteResponse");
        hearth_json_bool(&json, true);
        hearth_json_object_end(&json);
        hearth_json_object_end(&json);
    }

    hearth_json_array_end(&json);
}

static enum hearth_status make_report_task_id(struct hearth_arena *arena, struct hearth_str *ret,
                                              struct hearth_err *err)
{
    unsigned char random[TASK_ID_BYTES];
    char text[TASK_ID_BYTES * 2 + 1];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "cannot get random bytes for the id of a task");
    }

    for (size_t i = 0; i < TASK_ID_BYTES; i++) {
        (void)snprintf(text + i * 2, 3, "%02x", random[i]);
    }

    *ret = hearth_arena_str(arena, hearth_str_n(text, sizeof text - 1));

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/*
 * Find the task of an earlier copy of the report: an agent whose answer was lost reports again at
 * its next check, seconds later.
 */
static enum hearth_status find_repeated_report(const struct hearth_call *call,
                                               const struct hearth_policy_report *report,
                                               int64_t now_ms, struct hearth_str *ret_task_id,
                                               struct hearth_err *err)
{
    struct hearth_task_filter filter = {.service = report->service,
                                        .instance = report->instance,
                                        .kinds = 1u << report->kind,
                                        .origin = HEARTH_TASK_BY_POLICY,
                                        .start_from_ms = now_ms - HEARTH_POLICY_REPEAT_MS};
    struct hearth_task *tasks;
    size_t n;

    HEARTH_TRY(hearth_store_tasks(HEARTH_CALL_SCOPE(call), &filter, &tasks, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].cancelled_ms == 0 && (report->kind == HEARTH_POLICY_NETWORK ||
                                           hearth_str_eq(tasks[i].process, report->process))) {
            *ret_task_id = tasks[i].task_id;
        }
    }

    return HEARTH_OK;
}

static enum hearth_status store_report_task(const struct hearth_call *call,
                                            const struct hearth_policy_report *report,
                                            struct hearth_task *task, struct hearth_buf *text,
                                            struct hearth_err *err)
{
    assert(report->kind > 0 && report->kind < HEARTH_POLICY_KIND_END);

    /* Write causes and sampling rules as JSON. */
    write_report_causes(report, text);
    task->causes = hearth_arena_str(call->arena, hearth_buf_view(text));
    hearth_buf_reset(text);
    if (report->n_uri_regexes > 0) {
        write_report_sampling(report, text);
        task->sampling = hearth_arena_str(call->arena, hearth_buf_view(text));
    }

    if (hearth_buf_failed(text) || call->arena->refused) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Store the task. */
    HEARTH_TRY(make_report_task_id(call->arena, &task->task_id, err));
    HEARTH_TRY(hearth_store_service_id(HEARTH_CALL_SCOPE(call), report->service, true,
                                       &task->service_id, err));

    return hearth_store_task_put(HEARTH_CALL_SCOPE(call), task, 0, NULL, err);
}

enum hearth_status hearth_policies_report(const struct hearth_call *call,
                                          const struct hearth_policy_report *report,
                                          struct hearth_str *ret_task_id, struct hearth_err *err)
{
    assert(call != NULL && ret_task_id != NULL);

    /* Check the report. */
    HEARTH_TRY(check_policy_report(report, err));
    HEARTH_TRY(hearth_call_check_service(call, report->service, err));
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    struct hearth_entity_hash process_id;
    if (!hearth_process_public_id(report->service, report->instance, report->process,
                                  &process_id)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the id of a process");
    }

    /* A repeated report has its task already. */
    *ret_task_id = hearth_str_n("", 0);
    HEARTH_TRY(find_repeated_report(call, report, now_ms, ret_task_id, err));
    if (ret_task_id->n > 0) {
        return HEARTH_OK;
    }

    /* Make the task. */
    struct hearth_task task = {
        .kind = (enum hearth_task_kind)report->kind,
        .origin = HEARTH_TASK_BY_POLICY,
        .service = report->service,
        .instance = report->instance,
        .process_id = hearth_arena_str(call->arena, hearth_str_c(process_id.text)),
        .process = report->process,
        .start_ms = now_ms,
        .duration_ms = (int64_t)report->duration_seconds * 1000,
        .created_ms = now_ms,
        .updated_ms = now_ms,
    };

    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    enum hearth_status status = store_report_task(call, report, &task, &text, err);
    hearth_buf_release(&text);
    *ret_task_id = task.task_id;

    return status;
}
