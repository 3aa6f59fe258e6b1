/*
 * monitors.c -- metrics of policies: intake, and series over time (contracts: meters.h,
 * policies.h).
 */
#include "hearth/base/clock.h"
#include "hearth/engine/meters.h"

#include "common/shown.h"
#include "policies/policies_internal.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>

#define PREFIX "rover_con_p_"

/* ---- intake ---- */

/* Find a monitor by its name in lower case: "process_cpu" is PROCESS_CPU. */
static bool find_monitor_by_name(struct hearth_str name, enum hearth_monitor *ret)
{
    char upper[32];

    if (name.n > sizeof upper) {
        return false;
    }

    for (size_t i = 0; i < name.n; i++) {
        upper[i] = (char)toupper((unsigned char)name.p[i]);
    }

    return hearth_monitor_find(hearth_str_n(upper, name.n), ret);
}

static struct hearth_str find_meter_label(const struct hearth_meter *meter, const char *name)
{
    for (size_t i = 0; i < meter->n_labels; i++) {
        if (hearth_str_eq_c(meter->labels[i].name, name)) {
            return meter->labels[i].value;
        }
    }

    return hearth_str_n("", 0);
}

static enum hearth_status take_monitor_meter(const struct hearth_meter *meter,
                                             struct hearth_monitor_point *points, size_t *n,
                                             struct hearth_err *err)
{
    assert(points != NULL);

    struct hearth_monitor_point point = {.value = meter->value,
                                         .process = find_meter_label(meter, "process_name"),
                                         .uri = find_meter_label(meter, "uri")};
    struct hearth_str prefix = HEARTH_STR(PREFIX);

    if (!hearth_str_starts(meter->name, prefix) ||
        !find_monitor_by_name(hearth_str_n(meter->name.p + prefix.n, meter->name.n - prefix.n),
                              &point.monitor)) {
        return HEARTH_OK; /* a meter of something else */
    }

    /* The value must be a number, with the labels of its monitor. */
    if (meter->n_buckets > 0 || !isfinite(meter->value)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "meter " HEARTH_STR_FMT " must be a finite number",
                           HEARTH_STR_ARG(meter->name));
    }

    bool is_http = hearth_monitor_is_http(point.monitor);
    if (point.process.n == 0 || (point.uri.n == 0) != !is_http) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "meter " HEARTH_STR_FMT " must have the label process_name, and %s",
                           HEARTH_STR_ARG(meter->name), is_http ? "uri" : "no uri");
    }

    points[(*n)++] = point;

    return HEARTH_OK;
}

/* Whether a time can be stored: neither older than the ingestion window, nor in the future. */
static bool is_monitor_time(const struct hearth_limits *limits, int64_t at_ms)
{
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    int64_t older_ms = limits->reject_older_than_ns / HEARTH_NS_PER_MS;
    int64_t newer_ms = limits->reject_newer_than_ns / HEARTH_NS_PER_MS;

    return at_ms > (older_ms > 0 ? now_ms - older_ms : 0) &&
           (newer_ms <= 0 || at_ms < now_ms + newer_ms);
}

enum hearth_status hearth_monitors_take(const struct hearth_call *call,
                                        const struct hearth_meter_set *set, size_t *ret_n_taken,
                                        struct hearth_err *err)
{
    size_t n = 0;

    assert(call != NULL && ret_n_taken != NULL);

    *ret_n_taken = 0;
    struct hearth_monitor_point *points =
        hearth_arena_array(call->arena, set->n_meters, sizeof points[0]);
    if (points == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Take the meters of monitors. */
    for (size_t i = 0; i < set->n_meters; i++) {
        HEARTH_TRY(take_monitor_meter(&set->meters[i], points, &n, err));
    }

    if (n == 0) {
        return HEARTH_OK;
    }

    if (set->service.n == 0 || set->instance.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the first meter of a set must say service and serviceInstance");
    }

    if (set->instance.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "serviceInstance of a set of meters has %zu bytes; names may have %d",
                           set->instance.n, HEARTH_AGENT_NAME_BYTES);
    }

    HEARTH_TRY(hearth_call_check_service(call, set->service, err));

    /* Points outside of the ingestion window are ignored. */
    struct hearth_limits limits;
    hearth_call_limits(call, &limits);
    if (!is_monitor_time(&limits, set->at_ms)) {
        return HEARTH_OK;
    }

    struct hearth_monitor_report report = {set->service, set->instance, set->at_ms, points, n};
    HEARTH_TRY(
        hearth_store_monitors_add(HEARTH_CALL_SCOPE(call), &report, limits.max_monitor_lines, err));
    *ret_n_taken = n;

    return HEARTH_OK;
}

/* ---- over time ---- */

/*
 * Replace the values by one for each step, in place. Every step in the result has at least one
 * value.
 */
static void reduce_to_steps(struct hearth_monitor_line *line, struct hearth_monitor_steps steps)
{
    assert(steps.seconds > 0);

    int64_t step_ms = (int64_t)steps.seconds * 1000;
    size_t n = 0;

    for (size_t i = 0, end; i < line->n_values; i = end) {
        int64_t step = line->values[i].at_ms / step_ms;
        double sum = 0, lowest = line->values[i].value, highest = lowest;
        for (end = i; end < line->n_values && line->values[end].at_ms / step_ms == step; end++) {
            double value = line->values[end].value;
            sum += value;
            lowest = value < lowest ? value : lowest;
            highest = value > highest ? value : highest;
        }
        double kept = steps.value == HEARTH_MONITOR_STEP_LOWEST    ? lowest
                      : steps.value == HEARTH_MONITOR_STEP_HIGHEST ? highest
                                                                   : sum / (double)(end - i);
        line->values[n++] = (struct hearth_monitor_value){step * step_ms, kept};
    }

    line->n_values = n;
}

enum hearth_status hearth_policy_range(const struct hearth_query *query, int64_t *ret_start_ms,
                                       int64_t *ret_end_ms, struct hearth_err *err)
{
    int64_t hour_ms = HEARTH_NS_PER_HOUR / HEARTH_NS_PER_MS;
    int64_t end_ms = query->end_ms == 0 ? hearth_clock_wall_ns() / HEARTH_NS_PER_MS : query->end_ms;
    int64_t start_ms = query->start_ms;

    assert(query != NULL && ret_start_ms != NULL && ret_end_ms != NULL);

    if (start_ms == 0 && end_ms > hour_ms) {
        start_ms = end_ms - hour_ms;
    }

    /* Check the range. */
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    int64_t longest_ms = limits.max_query_range_ns / HEARTH_NS_PER_MS;
    if (start_ms < 0 || end_ms < start_ms) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "the range from %lld to %lld is invalid: start_ms must not be negative or after end_ms",
            (long long)start_ms, (long long)end_ms);
    }

    if (longest_ms > 0 && end_ms - start_ms > longest_ms) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the range is longer than the %lld ms that max-query-range allows",
                           (long long)longest_ms);
    }

    *ret_start_ms = start_ms;
    *ret_end_ms = end_ms;

    return HEARTH_OK;
}

enum hearth_status hearth_monitors_series(const struct hearth_query *query,
                                          const struct hearth_monitor_filter *filter,
                                          struct hearth_monitor_steps steps,
                                          struct hearth_monitor_line **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    assert(query != NULL && ret != NULL && ret_n != NULL);

    if (filter->service.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the service id cannot be empty");
    }

    if (steps.seconds < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "step_seconds must not be negative");
    }

    /* Read the lines. */
    const struct hearth_call *call = &query->call;
    struct hearth_limits limits;
    struct hearth_monitor_filter own = *filter;
    hearth_call_limits(call, &limits);
    own.max_values = (size_t)limits.max_points;
    HEARTH_TRY(hearth_policy_range(query, &own.start_ms, &own.end_ms, err));
    bool shows;
    HEARTH_TRY(hearth_call_shows_service(call, NULL, own.service, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }
    HEARTH_TRY(hearth_store_monitor_lines(HEARTH_CALL_SCOPE(call), &own, ret, ret_n, err));

    for (size_t i = 0; steps.seconds > 0 && i < *ret_n; i++) {
        reduce_to_steps(&(*ret)[i], steps);
    }

    return HEARTH_OK;
}
