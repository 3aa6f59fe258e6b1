/*
 * policy_check.c -- what makes a policy valid, and its text forms (contract:
 * hearth/engine/policies.h).
 */
#include "hearth/base/clock.h"
#include "hearth/base/sha256.h"
#include "hearth/codec/json_writer.h"
#include "hearth/engine/policies.h"
#include "hearth/selector/pattern.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- validation ---- */

/* The error in a threshold; NULL: it is valid. */
static const char *find_threshold_error(const struct hearth_check_item *item)
{
    int64_t threshold = item->threshold;

    if (threshold > HEARTH_POLICY_UNREACHABLE || threshold < -HEARTH_POLICY_UNREACHABLE) {
        return "parsing threshold error"; /* agents read thresholds of 32 bits */
    }

    switch (item->monitor) {
    case HEARTH_MONITOR_PROCESS_CPU:
        return threshold > 0 && threshold <= 100 ? NULL
                                                 : "the process CPU percent should be in (0-100]";
    case HEARTH_MONITOR_PROCESS_THREAD_COUNT:
        return threshold > 0 ? NULL : "the process thread count must be bigger than zero";
    case HEARTH_MONITOR_SYSTEM_LOAD:
        return threshold > 0 ? NULL : "the system load must be bigger than zero";
    case HEARTH_MONITOR_HTTP_ERROR_RATE:
        return threshold > 0 && threshold <= 100 ? NULL
                                                 : "the HTTP error rate should be in (0-100]";
    case HEARTH_MONITOR_HTTP_AVG_RESPONSE_TIME:
        return threshold > 0 ? NULL : "the HTTP average response time must be bigger than zero";
    case HEARTH_MONITOR_END:
        break;
    }

    return "the monitor type cannot be recognized";
}

static enum hearth_status check_item_numbers(const struct hearth_check_item *item,
                                             const struct hearth_limits *limits,
                                             struct hearth_err *err)
{
    int64_t longest = limits->max_policy_period_ns / HEARTH_NS_PER_SEC;
    const char *complaint = item->period_seconds <= 0 ? "period must be bigger than zero"
                            : item->count <= 0        ? "count must be bigger than zero"
                            : item->count > item->period_seconds
                                ? "count must be equal to or smaller than period"
                                : find_threshold_error(item);

    if (complaint != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s", complaint);
    }

    if (longest > 0 && item->period_seconds > longest) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a period of %" PRId32 " s is longer than the %" PRId64
                           " s that max-policy-period allows",
                           item->period_seconds, longest);
    }

    return HEARTH_OK;
}

static enum hearth_status check_uri_paths(const struct hearth_check_item *item,
                                          const struct hearth_limits *limits,
                                          struct hearth_err *err)
{
    if (limits->max_policy_uris > 0 && item->n_uri_paths > (size_t)limits->max_policy_uris) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%zu URIs are more than the %" PRId64 " that max-policy-uris allows",
                           item->n_uri_paths, limits->max_policy_uris);
    }

    for (size_t i = 0; i < item->n_uri_paths; i++) {
        struct hearth_str uri = item->uri_paths[i];
        if (uri.n == 0 || uri.n > HEARTH_AGENT_NAME_BYTES || !hearth_str_utf8_valid(uri)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "URI %zu must have 1 to %d bytes of UTF-8", i + 1,
                               HEARTH_AGENT_NAME_BYTES);
        }
        for (size_t k = 0; k < i; k++) {
            if (hearth_str_eq(uri, item->uri_paths[k])) {
                return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                   "URI \"" HEARTH_STR_FMT "\" is given twice",
                                   HEARTH_STR_ARG(uri));
            }
        }
    }

    return HEARTH_OK;
}

/*
 * Check the URIs of an item. Agents ignore an item with an expression that they cannot compile, and
 * say so only in their log.
 */
static enum hearth_status check_item_uris(const struct hearth_check_item *item,
                                          const struct hearth_limits *limits,
                                          struct hearth_err *err)
{
    if (item->n_uri_paths == 0 && item->uri_regex.n == 0) {
        return HEARTH_OK;
    }

    /* Only HTTP monitors have URIs, as paths or as an expression. */
    if (!hearth_monitor_is_http(item->monitor)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "URIs are of HTTP monitors: HTTP_ERROR_RATE, HTTP_AVG_RESPONSE_TIME");
    }

    if (item->n_uri_paths > 0 && item->uri_regex.n > 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "URI paths and a URI regex cannot be given together");
    }

    /* Check the paths. */
    HEARTH_TRY(check_uri_paths(item, limits, err));
    if (item->uri_regex.n == 0) {
        return HEARTH_OK;
    }

    /* Check the expression. */
    if (item->uri_regex.n > HEARTH_AGENT_NAME_BYTES || !hearth_str_utf8_valid(item->uri_regex)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the URI regex must have at most %d bytes of UTF-8",
                           HEARTH_AGENT_NAME_BYTES);
    }

    struct hearth_pattern *pattern = NULL;
    HEARTH_TRY(hearth_pattern_new(item->uri_regex, "the URI regex", &pattern, err));
    hearth_pattern_free(pattern);

    return HEARTH_OK;
}

static enum hearth_status check_policy_item(const struct hearth_policy_target *target, size_t i,
                                            const struct hearth_limits *limits,
                                            struct hearth_err *err)
{
    assert(i < target->n_items);

    const struct hearth_check_item *item = &target->items[i];
    const char *monitor = hearth_monitor_name(item->monitor);
    const char *kind = hearth_policy_kind_name(target->kind);

    /* Each monitor occurs once in a target. */
    for (size_t k = 0; k < i; k++) {
        if (target->items[k].monitor == item->monitor) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "contains multiple same monitor type %s in %s", monitor, kind);
        }
    }

    /* Check the item itself; errors name it. */
    enum hearth_status status = check_item_numbers(item, limits, err);
    if (status == HEARTH_OK) {
        status = check_item_uris(item, limits, err);
    }

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "check %s in %s error", monitor, kind);
    }

    return status;
}

static enum hearth_status check_policy_targets(const struct hearth_policy *policy,
                                               struct hearth_err *err)
{
    for (size_t i = 0; i < policy->n_targets; i++) {
        enum hearth_policy_kind kind = policy->targets[i].kind;
        if (kind <= 0 || kind >= HEARTH_POLICY_KIND_END) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "target %zu: a policy starts ON_CPU, OFF_CPU or NETWORK", i + 1);
        }
        for (size_t k = 0; k < i; k++) {
            if (policy->targets[k].kind == kind) {
                return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                   "contains multiple same target type: %s",
                                   hearth_policy_kind_name(kind));
            }
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_policy_check(const struct hearth_policy *policy,
                                       const struct hearth_limits *limits, struct hearth_err *err)
{
    assert(limits != NULL);

    if (policy->service.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the service id cannot be empty");
    }

    if (policy->service.n > HEARTH_AGENT_NAME_BYTES ||
        policy->modified_by.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "service and modified_by may have %d bytes each",
                           HEARTH_AGENT_NAME_BYTES);
    }

    /* Each kind once, then each item. */
    HEARTH_TRY(check_policy_targets(policy, err));
    for (size_t i = 0; i < policy->n_targets; i++) {
        for (size_t k = 0; k < policy->targets[i].n_items; k++) {
            HEARTH_TRY(check_policy_item(&policy->targets[i], k, limits, err));
        }
    }

    return HEARTH_OK;
}

/* ---- canonical form ---- */

static int compare_item_monitors(const void *a, const void *b)
{
    return (int)((const struct hearth_check_item *)a)->monitor -
           (int)((const struct hearth_check_item *)b)->monitor;
}

static int compare_target_kinds(const void *a, const void *b)
{
    return (int)((const struct hearth_policy_target *)a)->kind -
           (int)((const struct hearth_policy_target *)b)->kind;
}

static void write_policy_item(struct hearth_json *json, const struct hearth_check_item *item)
{
    hearth_json_object(json);
    hearth_json_key_c(json, "monitor");
    hearth_json_i64(json, item->monitor);
    hearth_json_key_c(json, "threshold");
    hearth_json_i64(json, item->threshold);
    hearth_json_key_c(json, "period");
    hearth_json_i64(json, item->period_seconds);
    hearth_json_key_c(json, "count");
    hearth_json_i64(json, item->count);
    hearth_json_key_c(json, "uri_paths");
    hearth_json_array(json);
    for (size_t i = 0; i < item->n_uri_paths; i++) {
        hearth_json_string(json, item->uri_paths[i]);
    }

    hearth_json_array_end(json);
    hearth_json_key_c(json, "uri_regex");
    hearth_json_string(json, item->uri_regex);
    hearth_json_object_end(json);
}

static void write_policy_targets(const struct hearth_policy *policy, struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_array(&json);
    for (size_t i = 0; i < policy->n_targets; i++) {
        hearth_json_object(&json);
        hearth_json_key_c(&json, "kind");
        hearth_json_i64(&json, policy->targets[i].kind);
        hearth_json_key_c(&json, "items");
        hearth_json_array(&json);
        for (size_t k = 0; k < policy->targets[i].n_items; k++) {
            write_policy_item(&json, &policy->targets[i].items[k]);
        }
        hearth_json_array_end(&json);
        hearth_json_object_end(&json);
    }

    hearth_json_array_end(&json);
}

enum hearth_status hearth_policy_finish(struct hearth_policy *policy, struct hearth_arena *arena,
                                        struct hearth_err *err)
{
    /* Sort items and targets. */
    for (size_t i = 0; i < policy->n_targets; i++) {
        if (policy->targets[i].n_items > 0) {
            qsort(policy->targets[i].items, policy->targets[i].n_items,
                  sizeof policy->targets[i].items[0], compare_item_monitors);
        }
    }

    if (policy->n_targets > 0) {
        qsort(policy->targets, policy->n_targets, sizeof policy->targets[0], compare_target_kinds);
    }

    /* Write the canonical form. */
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    write_policy_targets(policy, &text);

    /* The uuid is its hash, together with the mode. */
    struct hearth_sha256 hash;
    char uuid[HEARTH_SHA256_HEX + 1];
    hearth_sha256_init(&hash);
    hearth_sha256_add(&hash, hearth_buf_view(&text));
    hearth_sha256_add(&hash, policy->is_observing ? HEARTH_STR("observe") : HEARTH_STR(""));
    hearth_sha256_end_hex(&hash, uuid);

    policy->json = hearth_arena_str(arena, hearth_buf_view(&text));
    policy->uuid = hearth_arena_str(arena, hearth_str_c(uuid));
    bool failed = hearth_buf_failed(&text);
    hearth_buf_release(&text);

    return failed || arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* ---- the form for agents ---- */

static void write_agent_item(struct hearth_json *json, const struct hearth_check_item *item,
                             bool is_observing)
{
    char threshold[32];

    (void)snprintf(threshold, sizeof threshold, "%" PRId64,
                   is_observing ? HEARTH_POLICY_UNREACHABLE : item->threshold);
    hearth_json_key_c(json, hearth_monitor_name(item->monitor));

    hearth_json_object(json);
    hearth_json_key_c(json, "Threshold");
    hearth_json_string_c(json, threshold);
    hearth_json_key_c(json, "Period");
    hearth_json_i64(json, item->period_seconds);
    hearth_json_key_c(json, "Count");
    hearth_json_i64(json, item->count);
    if (item->n_uri_paths > 0) {
        hearth_json_key_c(json, "URIList");
        hearth_json_array(json);
        for (size_t i = 0; i < item->n_uri_paths; i++) {
            hearth_json_string(json, item->uri_paths[i]);
        }
        hearth_json_array_end(json);
    }

    if (item->uri_regex.n > 0) {
        hearth_json_key_c(json, "URIRegex");
        hearth_json_string(json, item->uri_regex);
    }

    hearth_json_object_end(json);
}

static void write_agent_profiling(struct hearth_json *json, const struct hearth_policy *policy)
{
    hearth_json_key_c(json, "Profiling");
    hearth_json_object(json);
    for (size_t i = 0; i < policy->n_targets; i++) {
        const struct hearth_policy_target *target = &policy->targets[i];
        hearth_json_key_c(json, hearth_policy_kind_name(target->kind));
        hearth_json_object(json);
        for (size_t k = 0; k < target->n_items; k++) {
            write_agent_item(json, &target->items[k], policy->is_observing);
        }
        hearth_json_object_end(json);
    }

    hearth_json_object_end(json);
}

void hearth_policy_write_entries(const struct hearth_policy_entry *entries, size_t n,
                                 struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_array(&json);
    for (size_t i = 0; i < n; i++) {
        const struct hearth_policy *policy = entries[i].policy;
        hearth_json_object(&json);
        hearth_json_key_c(&json, "ServiceName");
        hearth_json_string(&json, entries[i].service);
        hearth_json_key_c(&json, "UUID");
        hearth_json_string(&json, policy == NULL ? hearth_str_n("", 0) : policy->uuid);
        if (policy != NULL) {
            write_agent_profiling(&json, policy);
        }
        hearth_json_object_end(&json);
    }

    hearth_json_array_end(&json);
}
