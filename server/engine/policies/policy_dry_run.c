/*
 * policy_dry_run.c -- what a policy would have triggered on (contract: hearth/engine/policies.h;
 * the rule itself: hearth/model/policy_rule.h), with notes on the limits of the answer.
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"

#include "common/shown.h"
#include "policies/policies_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAX_NOTES 64

struct dry_run_state {
    const struct hearth_call *call;
    const struct hearth_policy *policy;
    int64_t start_ms, end_ms;
    struct hearth_monitor_line *lines;
    size_t n_lines;
    struct hearth_dry_run *ret;
};

static void add_run_note(struct dry_run_state *run, char *text)
{
    if (text != NULL && run->ret->n_notes < MAX_NOTES) {
        run->ret->notes[run->ret->n_notes++] = hearth_str_c(text);
    }
}

/* ---- stored metrics ---- */

static enum hearth_status load_monitor_lines(struct dry_run_state *run, struct hearth_err *err)
{
    const struct hearth_call *call = run->call;
    struct hearth_limits limits;

    hearth_call_limits(call, &limits);

    /* Read the monitors of all items. */
    struct hearth_monitor_filter filter = {.service = run->policy->service,
                                           .end_ms = run->end_ms,
                                           .max_values = (size_t)limits.max_points};
    int64_t longest = 0;
    for (size_t i = 0; i < run->policy->n_targets; i++) {
        const struct hearth_policy_target *target = &run->policy->targets[i];
        for (size_t k = 0; k < target->n_items; k++) {
            filter.monitors |= 1u << target->items[k].monitor;
            longest = target->items[k].period_seconds > longest ? target->items[k].period_seconds
                                                                : longest;
        }
    }

    if (filter.monitors == 0) {
        return HEARTH_OK;
    }

    /* A trigger may depend on values of one period and hold time before the range. */
    filter.start_ms = run->start_ms - longest * 1000 - HEARTH_POLICY_HOLD_MS;

    return hearth_store_monitor_lines(HEARTH_CALL_SCOPE(call), &filter, &run->lines, &run->n_lines,
                                      err);
}

static int rank_process(const struct hearth_process *process)
{
    int rank = 2;

    for (size_t i = 0; i < process->n_labels; i++) {
        if (hearth_str_eq_c(process->labels[i], "mesh-application")) {
            rank = 0;
        } else if (hearth_str_eq_c(process->labels[i], "k8s-service") && rank > 1) {
            rank = 1;
        }
    }

    return rank;
}

/*
 * Rank the processes of an instance: agents name the first one when they start network profiling.
 */
static enum hearth_status rank_processes(struct dry_run_state *run, struct hearth_err *err)
{
    const struct hearth_call *call = run->call;
    struct hearth_process_filter filter = {.service = run->policy->service};
    struct hearth_process *processes;
    size_t n;

    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &processes, &n, err));
    for (size_t i = 0; i < run->n_lines; i++) {
        struct hearth_monitor_line *line = &run->lines[i];
        line->process_rank = 2;
        for (size_t k = 0; k < n; k++) {
            if (hearth_str_eq(processes[k].instance, line->instance) &&
                hearth_str_eq(processes[k].name, line->process)) {
                line->process_rank = rank_process(&processes[k]);
            }
        }
    }

    return HEARTH_OK;
}

/* ---- notes on limits of the answer ---- */

static void note_monitor(struct dry_run_state *run, enum hearth_monitor monitor,
                         struct hearth_str uri)
{
    assert(monitor > 0 && monitor < HEARTH_MONITOR_END);

    int64_t first_ms = INT64_MAX;

    /* Find the first value of the monitor. */
    for (size_t i = 0; i < run->n_lines; i++) {
        const struct hearth_monitor_line *line = &run->lines[i];
        if (line->monitor == monitor && (uri.n == 0 || hearth_str_eq(line->uri, uri)) &&
            line->values[0].at_ms < first_ms) {
            first_ms = line->values[0].at_ms;
        }
    }

    /* Note that values are missing, or since when there are some. */
    struct hearth_arena *arena = run->call->arena;
    const char *name = hearth_monitor_name(monitor), *of = uri.n > 0 ? " of " : "";
    if (first_ms == INT64_MAX) {
        add_run_note(run,
                     hearth_arena_printf(arena,
                                         "no metrics of %s%s" HEARTH_STR_FMT
                                         ": agents report them while a policy watches them (it may"
                                         " be observing)",
                                         name, of, HEARTH_STR_ARG(uri)));
    } else if (first_ms > run->start_ms + 2 * HEARTH_POLICY_CHECK_MS) {
        char time[32];
        hearth_clock_format(first_ms * HEARTH_NS_PER_MS, time);
        add_run_note(run,
                     hearth_arena_printf(arena, "no metrics of %s%s" HEARTH_STR_FMT " before %s",
                                         name, of, HEARTH_STR_ARG(uri), time));
    }
}

static void note_item(struct dry_run_state *run, const struct hearth_check_item *item)
{
    if (!hearth_monitor_is_http(item->monitor)) {
        note_monitor(run, item->monitor, hearth_str_n("", 0));
        return;
    }

    for (size_t i = 0; i < item->n_uri_paths; i++) {
        note_monitor(run, item->monitor, item->uri_paths[i]);
    }

    if (item->n_uri_paths == 0) {
        note_monitor(run, item->monitor,
                     item->uri_regex.n > 0 ? item->uri_regex : HEARTH_STR(HEARTH_URI_GLOBAL));
    }
}

static void note_limits(struct dry_run_state *run)
{
    bool has_http = false, has_other = false;
    uint32_t seen = 0;

    /* Note each item; other than HTTP monitors once. */
    for (size_t i = 0; i < run->policy->n_targets; i++) {
        const struct hearth_policy_target *target = &run->policy->targets[i];
        for (size_t k = 0; k < target->n_items; k++) {
            bool is_http = hearth_monitor_is_http(target->items[k].monitor);
            uint32_t bit = 1u << target->items[k].monitor;
            has_http = has_http || is_http;
            has_other = has_other || !is_http;
            if (is_http || (seen & bit) == 0) {
                note_item(run, &target->items[k]);
            }
            seen |= bit;
        }
    }

    /* Note the resolution of values. */
    struct hearth_arena *arena = run->call->arena;
    if (has_other) {
        add_run_note(run, hearth_arena_printf(arena,
                                              "agents look each second and report one value of"
                                              " these: it is taken to last until the next, at most"
                                              " 10 s; shorter peaks between them are not seen"));
    }

    if (has_http) {
        add_run_note(run, hearth_arena_printf(arena,
                                              "HTTP values are reported for seconds with requests,"
                                              " without saying which: they are taken to be the last"
                                              " before the report"));
    }
}

static int compare_gaps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median gap in the line with the most values; agents report at one interval. */
static enum hearth_status find_report_interval(struct dry_run_state *run, struct hearth_err *err)
{
    const struct hearth_monitor_line *longest = NULL;

    /* Choose the line with the most values. */
    for (size_t i = 0; i < run->n_lines; i++) {
        if (!hearth_monitor_is_http(run->lines[i].monitor) &&
            (longest == NULL || run->lines[i].n_values > longest->n_values)) {
            longest = &run->lines[i];
        }
    }

    run->ret->resolution_ms = HEARTH_POLICY_CHECK_MS;
    if (longest == NULL || longest->n_values < 2) {
        return HEARTH_OK;
    }

    /* Take the median of its gaps. */
    size_t n = longest->n_values - 1;
    int64_t *gaps = hearth_arena_array(run->call->arena, n, sizeof gaps[0]);
    if (gaps == NULL) {
        return HEARTH_FAIL_ARENA(err, run->call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        gaps[i] = longest->values[i + 1].at_ms - longest->values[i].at_ms;
    }

    qsort(gaps, n, sizeof gaps[0], compare_gaps);
    run->ret->resolution_ms = gaps[n / 2];

    return HEARTH_OK;
}

enum hearth_status hearth_policies_dry_run(const struct hearth_query *query,
                                           const struct hearth_policy *policy,
                                           struct hearth_dry_run *ret, struct hearth_err *err)
{
    struct hearth_limits limits;
    const struct hearth_call *call = &query->call;
    struct dry_run_state run = {.call = call, .policy = policy, .ret = ret};

    assert(query != NULL && ret != NULL);

    /* Check the request. */
    hearth_call_limits(call, &limits);
    HEARTH_TRY(hearth_policy_check(policy, &limits, err));
    HEARTH_TRY(hearth_call_check_service(call, policy->service, err));
    HEARTH_TRY(hearth_policy_range(query, &run.start_ms, &run.end_ms, err));
    *ret = (struct hearth_dry_run){0};
    ret->notes = hearth_arena_array(call->arena, MAX_NOTES, sizeof ret->notes[0]);
    if (ret->notes == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Read the metrics, and replay the policy over them. */
    HEARTH_TRY(load_monitor_lines(&run, err));
    HEARTH_TRY(rank_processes(&run, err));
    HEARTH_TRY(find_report_interval(&run, err));
    note_limits(&run);

    const struct hearth_policy_replay input = {policy->targets, policy->n_targets, run.lines,
                                               run.n_lines,     run.start_ms,      run.end_ms};
    return hearth_policy_replay(&input, call->arena, &ret->triggers, &ret->n_triggers, err);
}
