/* cmd_policy_past.c -- hearth policy dry-run, monitored, series: past metrics, and what they trigger. */
#include "hearth/base/clock.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_policy.h"
#include "cmd_task.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

static void append_cause(struct hearth_buf *out, const char *text)
{
    cli_fit(hearth_str_c(text), INT_MAX, false, out);
}

static void say_notes(char **notes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cli_say("note", notes[i]);
    }
}

/* ---- dry-run ---- */

enum cli_exit cli_policy_dry_run(struct cli *cli)
{
    Hearth__V1__DryRunRequest request;
    Hearth__V1__DryRunResponse *answer = NULL;

    hearth__v1__dry_run_request__init(&request);
    enum hearth_status status = cli_resolve_range(cli);
    if (status == HEARTH_OK) {
        status = cli_policy_from_file(cli, cli->args[0], &request.policy);
    }
    if (status == HEARTH_OK) {
        request.start_ms = cli->from_ms;
        request.end_ms = cli->to_ms;
        status = cli_call(cli, CLI_POLICIES "DryRun", &request,
                          &hearth__v1__dry_run_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "nothing would have started";
    for (size_t i = 0; i < answer->n_triggers; i++) {
        const Hearth__V1__DryRunTrigger *trigger = answer->triggers[i];
        cli_list_time(&list, trigger->at_ms);
        cli_list_text(&list, hearth_policy_kind_name((enum hearth_policy_kind)trigger->kind));
        cli_list_text(&list, trigger->instance);
        cli_list_text(&list, trigger->process);
        cli_list_text(&list, trigger->cause == NULL ? "" : trigger->cause->message);
    }
    say_notes(answer->notes, answer->n_notes);

    return cli_list_end(&list, &answer->base);
}

/* ---- monitored ---- */

static void print_time(struct hearth_buf *out, const char *before, int64_t ms)
{
    char at[32];
    if (ms > 0) {
        cli_date(ms, at);
        hearth_buf_printf(out, "%s%s", before, at);
    }
}

static void print_instance(const Hearth__V1__MonitoredInstance *instance, struct hearth_buf *out)
{
    append_cause(out, instance->instance);
    hearth_buf_printf(out, "  triggered %d times", instance->triggered_count);
    print_time(out, ", last ", instance->last_triggered_ms);
    hearth_buf_byte(out, '\n');
    for (size_t i = 0; i < instance->n_processes; i++) {
        const Hearth__V1__MonitoredProcess *process = instance->processes[i];
        hearth_buf_cstr(out, "  ");
        append_cause(out, process->process->name);
        hearth_buf_printf(out, "  triggered %d times", process->triggered_count);
        print_time(out, ", last ", process->last_triggered_ms);
        print_time(out, ", silent until ", process->silent_until_ms);
        hearth_buf_cstr(out, process->process->can_be_profiled ? "\n" : ", cannot be profiled\n");
    }
}

static void add_monitored(struct cli_listing *list, const Hearth__V1__MonitoredInstance *instance)
{
    for (size_t i = 0; i < instance->n_processes; i++) {
        const Hearth__V1__MonitoredProcess *process = instance->processes[i];
        cli_list_text(list, instance->instance);
        cli_list_text(list, process->process->name);
        cli_list_number(list, process->process->can_be_profiled);
        cli_list_number(list, process->triggered_count);
        cli_list_time(list, process->last_triggered_ms);
        cli_list_time(list, process->silent_until_ms);
    }
}

static enum hearth_status ask_started(struct cli *cli, int64_t since_ms,
                                      Hearth__V1__ListTasksResponse **ret)
{
    Hearth__V1__ListTasksRequest request;
    hearth__v1__list_tasks_request__init(&request);
    request.service = cli_field(cli, cli->args[0]);
    request.origin = HEARTH__V1__TASK_ORIGIN__TASK_ORIGIN_POLICY;
    request.start_ms = since_ms;
    return cli_call(cli, CLI_TASKS "ListTasks", &request,
                    &hearth__v1__list_tasks_response__descriptor, ret);
}

static void print_started(const Hearth__V1__Task *task, struct hearth_buf *out)
{
    char at[32];
    cli_date(task->start_ms, at);
    hearth_buf_printf(out, "%s  %s  %s  ", at, cli_task_kind(task->kind), task->task_id);
    append_cause(out, task->instance);
    hearth_buf_byte(out, '/');
    append_cause(out, task->process);
    for (size_t i = 0; i < task->n_causes; i++) {
        hearth_buf_cstr(out, i == 0 ? "  " : "; ");
        append_cause(out, task->causes[i]->message);
    }
    hearth_buf_byte(out, '\n');
}

/* Each second, what policies have started since. Until it is interrupted, or the server is gone. */
static enum cli_exit watch_starts(struct cli *cli)
{
    int64_t since_ms = cli->now_ns / HEARTH_NS_PER_MS, last_ms = since_ms - 1;

    struct hearth_arena whole = cli->arena; /* each answer has its own: a watch may last for days */
    for (enum cli_exit printed = CLI_OK;;) {
        Hearth__V1__ListTasksResponse *answer = NULL;
        struct hearth_buf out;
        int64_t newest_ms = last_ms;
        hearth_arena_init(&cli->arena, 0);
        enum hearth_status status = ask_started(cli, last_ms + 1, &answer);
        if (status != HEARTH_OK) {
            hearth_arena_release(&cli->arena);
            cli->arena = whole;
            return cli_fail(cli, status);
        }
        hearth_buf_init(&out, 0);
        for (size_t i = answer->n_tasks; i-- > 0;) {
            print_started(answer->tasks[i], &out);
            newest_ms =
                answer->tasks[i]->start_ms > newest_ms ? answer->tasks[i]->start_ms : newest_ms;
        }
        last_ms = newest_ms;
        if (answer->n_tasks > 0) {
            printed = cli_print_answer(cli, &answer->base, &out);
        } else {
            hearth_buf_release(&out);
        }
        hearth_arena_release(&cli->arena);
        if (printed != CLI_OK) {
            cli->arena = whole;
            return printed;
        }
        (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
}

enum cli_exit cli_policy_monitored(struct cli *cli)
{
    Hearth__V1__MonitoredInstancesRequest request;
    Hearth__V1__MonitoredInstancesResponse *answer = NULL;

    hearth__v1__monitored_instances_request__init(&request);
    request.service = cli_field(cli, cli->args[0]);
    request.kind = HEARTH__V1__TASK_KIND__TASK_KIND_ON_CPU;
    if (cli->agent.kind != NULL && !cli_task_kind_of(cli->agent.kind, &request.kind)) {
        return cli_usage("--kind of policy monitored must be oncpu, offcpu or network");
    }
    if (cli->agent.watch) {
        return watch_starts(cli);
    }
    enum hearth_status status =
        cli_call(cli, CLI_POLICIES "MonitoredInstances", &request,
                 &hearth__v1__monitored_instances_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    for (size_t i = 0; i < answer->n_instances; i++) {
        print_instance(answer->instances[i], &list.foot);
        add_monitored(&list, answer->instances[i]);
    }
    if (answer->n_instances == 0) {
        cli_say("hearth", "no process was seen in the last 48 hours");
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- series ---- */

static void print_monitor_line(struct cli *cli, const Hearth__V1__MonitorLine *line,
                               struct hearth_buf *out)
{
    double cells[48] = {0}, max = 0, sum = 0;
    size_t counts[48] = {0}, n_cells = HEARTH_ARRAY_LEN(cells);
    int64_t length_ms = cli->to_ms - cli->from_ms + 1;

    for (size_t i = 0; i < line->n_points; i++) {
        const Hearth__V1__MonitorPoint *point = line->points[i];
        int64_t at_ms = point->at_ms < cli->from_ms ? 0 : point->at_ms - cli->from_ms;
        size_t cell = (size_t)((double)at_ms / (double)length_ms * (double)n_cells);
        cell = cell < n_cells ? cell : n_cells - 1;
        cells[cell] += point->value;
        counts[cell]++;
        sum += point->value;
        max = point->value > max ? point->value : max;
    }
    for (size_t i = 0; i < n_cells; i++) {
        cells[i] = counts[i] == 0 ? 0 : cells[i] / (double)counts[i];
    }
    append_cause(out, line->instance);
    hearth_buf_byte(out, '/');
    append_cause(out, line->process);
    hearth_buf_printf(out, "  %s ", hearth_monitor_name((enum hearth_monitor)line->monitor));
    append_cause(out, line->uri);
    hearth_buf_cstr(out, "\n  ");
    cli_course(cells, n_cells, max, out);
    hearth_buf_printf(out, "  %zu values, mean %.4g, most %.4g %s\n", line->n_points,
                      sum / (double)(line->n_points == 0 ? 1 : line->n_points), max, line->unit);
}

static void add_monitor_points(struct cli_listing *list, const Hearth__V1__MonitorLine *line)
{
    for (size_t i = 0; i < line->n_points; i++) {
        cli_list_time(list, line->points[i]->at_ms);
        cli_list_text(list, line->instance);
        cli_list_text(list, line->process);
        cli_list_text(list, line->uri);
        cli_list_real(list, line->points[i]->value);
        cli_list_text(list, line->unit);
        cli_list_text(list, hearth_monitor_name((enum hearth_monitor)line->monitor));
    }
}

static enum hearth_status fill_series(struct cli *cli, Hearth__V1__MonitorSeriesRequest *request)
{
    HEARTH_TRY(cli_resolve_range(cli));
    request->service = cli_field(cli, cli->args[0]);
    request->instance = cli_field(cli, cli->agent.instance == NULL ? "" : cli->agent.instance);
    request->process = cli_field(cli, cli->agent.process == NULL ? "" : cli->agent.process);
    request->start_ms = cli->from_ms;
    request->end_ms = cli->to_ms;
    if (cli->step != NULL) {
        double seconds;
        HEARTH_TRY(cli_timeline_step(cli, &seconds));
        request->step_seconds = seconds < 1 ? 1 : seconds > INT_MAX ? INT_MAX : (int32_t)seconds;
    }
    enum hearth_monitor monitor = 0;
    if (cli->agent.monitor != NULL &&
        !hearth_monitor_find(hearth_str_c(cli->agent.monitor), &monitor)) {
        return HEARTH_FAIL(
            &cli->err, HEARTH_INVALID_ARGUMENT,
            "unknown monitor \"%s\"; monitors are PROCESS_CPU, PROCESS_THREAD_COUNT, SYSTEM_LOAD,"
            " HTTP_ERROR_RATE, HTTP_AVG_RESPONSE_TIME",
            cli->agent.monitor);
    }
    request->monitor = (Hearth__V1__MonitorKind)monitor;

    return HEARTH_OK;
}

enum cli_exit cli_policy_series(struct cli *cli)
{
    Hearth__V1__MonitorSeriesRequest request;
    Hearth__V1__MonitorSeriesResponse *answer = NULL;

    hearth__v1__monitor_series_request__init(&request);
    enum hearth_status status = fill_series(cli, &request);
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_POLICIES "MonitorSeries", &request,
                          &hearth__v1__monitor_series_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    for (size_t i = 0; i < answer->n_lines; i++) {
        print_monitor_line(cli, answer->lines[i], &list.foot);
        add_monitor_points(&list, answer->lines[i]);
    }
    say_notes(answer->notes, answer->n_notes);

    return cli_list_end(&list, &answer->base);
}
