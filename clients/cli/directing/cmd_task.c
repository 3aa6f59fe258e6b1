/* cmd_task.c -- hearth task: its commands out of a table; prepare, list, get, log, cancel, keep. */
#include "cmd_task.h"

#include "hearth/base/clock.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

/* ---- words ---- */

static const struct {
    Hearth__V1__TaskKind kind;
    const char *word, *text;
} g_kinds[] = {
    {HEARTH__V1__TASK_KIND__TASK_KIND_ON_CPU, "oncpu", "on-CPU"},
    {HEARTH__V1__TASK_KIND__TASK_KIND_OFF_CPU, "offcpu", "off-CPU"},
    {HEARTH__V1__TASK_KIND__TASK_KIND_NETWORK, "network", "network"},
    {HEARTH__V1__TASK_KIND__TASK_KIND_TRACE, "trace", "trace"},
    {HEARTH__V1__TASK_KIND__TASK_KIND_ASYNC_PROFILER, "async", "async"},
    {HEARTH__V1__TASK_KIND__TASK_KIND_PPROF, "pprof", "pprof"},
};

const char *cli_task_kind(Hearth__V1__TaskKind kind)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_kinds); i++) {
        if (g_kinds[i].kind == kind) {
            return g_kinds[i].text;
        }
    }
    return "unknown";
}

bool cli_task_kind_of(const char *word, Hearth__V1__TaskKind *ret)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_kinds); i++) {
        if (strcmp(g_kinds[i].word, word) == 0) {
            *ret = g_kinds[i].kind;
            return true;
        }
    }
    return false;
}

const char *cli_task_state(Hearth__V1__TaskState state)
{
    static const char *const words[] = {"unknown",
                                        "not started",
                                        "waiting for an agent",
                                        "no process matches",
                                        "unsupported",
                                        "notified",
                                        "running",
                                        "finished",
                                        "failed",
                                        "nothing sampled",
                                        "cancelled",
                                        "never delivered"};
    return (size_t)state < HEARTH_ARRAY_LEN(words) ? words[state] : words[0];
}

enum hearth_status cli_task_texts(struct cli *cli, const char *text, size_t *ret_n, char ***ret)
{
    struct hearth_str all = hearth_str_c(text == NULL ? "" : text);
    char **texts = hearth_arena_array(&cli->arena, all.n + 1, sizeof *texts);
    size_t n = 0;
    for (size_t from = 0; texts != NULL && from < all.n;) {
        size_t to = hearth_str_find(all, ',', from);
        if (to > from) {
            texts[n] = hearth_arena_strndup(&cli->arena, all.p + from, to - from);
            n += texts[n] != NULL;
        }
        from = to + 1;
    }
    *ret = texts;
    *ret_n = n;
    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

/* ---- tasks as text ---- */

static void add_list(struct hearth_buf *out, const char *name, size_t n, char **texts)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, "%s%s", i == 0 ? name : ",", texts[i]);
    }
}

/* What the task profiles: exact texts, each after two spaces. */
static void put_selection(const Hearth__V1__Task *task, struct hearth_buf *out)
{
    char *const names[] = {task->instance, task->process, task->endpoint};
    const char *const words[] = {"  instance ", "  process ", "  endpoint "};

    add_list(out, "  labels ", task->n_labels, task->labels);
    add_list(out, "  instances ", task->n_instances, task->instances);
    add_list(out, "  events ", task->n_events, task->events);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        add_list(out, words[i], names[i][0] != '\0', (char *[]){names[i]});
    }
}

/* A line: id, kind, service, start, length, state, and what it selects. */
static void print_task_line(const Hearth__V1__Task *task, struct hearth_buf *out)
{
    char start[32], length[48];
    cli_date(task->start_ms, start);
    cli_duration(task->duration_ms, length);
    cli_fit(hearth_str_c(task->task_id), INT_MAX, false, out);

    hearth_buf_printf(out, "  %-7s  ", cli_task_kind(task->kind));
    cli_fit(hearth_str_c(task->service), INT_MAX, false, out);
    hearth_buf_printf(out, "  %s  %s  %s", start, length, cli_task_state(task->state));
    struct hearth_buf selection;
    hearth_buf_init(&selection, 0);
    put_selection(task, &selection);
    hearth_human_escape(hearth_buf_view(&selection), out);
    hearth_buf_byte(out, '\n');
    hearth_buf_release(&selection);
}

static void add_task(struct cli_listing *list, const Hearth__V1__Task *task)
{
    struct hearth_buf selection;

    cli_list_text(list, task->task_id);
    cli_list_text(list, cli_task_kind(task->kind));
    cli_list_text(list, task->service);
    cli_list_time(list, task->start_ms);
    cli_list_number(list, task->duration_ms * HEARTH_NS_PER_MS);
    cli_list_text(list, cli_task_state(task->state));
    cli_list_text(list, task->state_reason);
    hearth_buf_init(&selection, 0);
    put_selection(task, &selection);
    struct hearth_str trimmed = hearth_str_trim(hearth_buf_view(&selection));
    cli_list_str(list, hearth_arena_str(&list->cli->arena, trimmed));
    hearth_buf_release(&selection);
}

void cli_task_print(const Hearth__V1__Task *task, struct hearth_buf *out)
{
    print_task_line(task, out);
    if (task->state_reason[0] != '\0') {
        hearth_buf_cstr(out, "  ");
        cli_fit(hearth_str_c(task->state_reason), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
    }
    for (size_t i = 0; i < task->n_causes; i++) {
        hearth_buf_cstr(out, "  cause: ");
        cli_fit(hearth_str_c(task->causes[i]->message), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
    }
}

/* ---- queries ---- */

enum cli_exit cli_task_prepare(struct cli *cli)
{
    Hearth__V1__PrepareTaskRequest request;
    Hearth__V1__PrepareTaskResponse *answer = NULL;

    hearth__v1__prepare_task_request__init(&request);
    request.service = cli_field(cli, cli->args[0]);
    enum hearth_status status =
        cli_task_texts(cli, cli->agent.process_labels, &request.n_labels, &request.labels);
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_TASKS "PrepareTask", &request,
                          &hearth__v1__prepare_task_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    char processes[64];
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_number(answer->process_count, "process", "processes", processes);
    hearth_buf_printf(&out, "%s would be profiled\n", processes);
    struct hearth_buf labels;
    hearth_buf_init(&labels, 0);
    add_list(&labels, "labels: ", answer->n_labels, answer->labels);
    hearth_human_escape(hearth_buf_view(&labels), &out);
    hearth_buf_release(&labels);
    hearth_buf_cstr(&out, answer->n_labels > 0 ? "\n" : "");
    if (answer->reason[0] != '\0') {
        cli_fit(hearth_str_c(answer->reason), INT_MAX, false, &out);
        hearth_buf_byte(&out, '\n');
    }
    bool can = answer->can_be_profiled;
    enum cli_exit code = cli_print_answer(cli, &answer->base, &out);

    return code == CLI_OK && !can ? CLI_NO_DATA : code;
}

static enum hearth_status fill_list(struct cli *cli, Hearth__V1__ListTasksRequest *request)
{
    const struct cli_agent *agent = &cli->agent;
    const char *service = cli->n_args > 0 ? cli->args[0] : agent->service;

    request->include_logs = agent->log;
    request->service = cli_field(cli, service == NULL ? "" : service);
    request->instance = cli_field(cli, agent->instance == NULL ? "" : agent->instance);
    request->endpoint = cli_field(cli, agent->endpoint == NULL ? "" : agent->endpoint);
    if (agent->kind != NULL) {
        request->kinds = hearth_arena_array(&cli->arena, 1, sizeof *request->kinds);
        if (request->kinds == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        if (!cli_task_kind_of(agent->kind, &request->kinds[0])) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                               "--kind must be oncpu, offcpu, network, trace, async or pprof");
        }
        request->n_kinds = 1;
    }
    if (cli->since != NULL || cli->from != NULL || cli->to != NULL) {
        HEARTH_TRY(cli_resolve_range(cli));
        request->start_ms = cli->from_ms;
        request->end_ms = cli->to_ms;
    }

    return HEARTH_OK;
}

static const char *name_event(Hearth__V1__TaskEvent event)
{
    static const char *const events[] = {"unknown", "notified", "finished", "too large", "failed"};
    return events[(size_t)event < HEARTH_ARRAY_LEN(events) ? (size_t)event : 0];
}

static void print_entry(const Hearth__V1__TaskLogEntry *entry, struct hearth_buf *out)
{
    char at[32];
    cli_date(entry->at_ms, at);
    hearth_buf_printf(out, "  %s  %-9s  ", at, name_event(entry->event));
    cli_fit(hearth_str_c(entry->instance), INT_MAX, false, out);
    hearth_buf_cstr(out, entry->process_id[0] == '\0' ? "" : "  ");
    cli_fit(hearth_str_c(entry->process_id), INT_MAX, false, out);
    hearth_buf_cstr(out, entry->message[0] == '\0' ? "" : "  ");
    cli_fit(hearth_str_c(entry->message), INT_MAX, false, out);
    hearth_buf_byte(out, '\n');
}

/* With --log, entries stand below their tasks. */
static void draw_logs(const Hearth__V1__ListTasksResponse *answer, struct hearth_buf *out)
{
    for (size_t i = 0; i < answer->n_tasks; i++) {
        print_task_line(answer->tasks[i], out);
        for (size_t k = 0; i < answer->n_logs && k < answer->logs[i]->n_entries; k++) {
            print_entry(answer->logs[i]->entries[k], out);
        }
    }
}

/* All pages up to --limit. As JSON: one page after the other. */
enum cli_exit cli_task_list(struct cli *cli)
{
    Hearth__V1__ListTasksRequest request;

    hearth__v1__list_tasks_request__init(&request);
    enum hearth_status status = fill_list(cli, &request);
    int64_t left = cli->has_limit ? cli->limit : 100, n = 0;
    enum cli_exit code = CLI_OK;
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = cli->agent.log;
    for (bool is_last = false; status == HEARTH_OK && code == CLI_OK && left > 0 && !is_last;) {
        Hearth__V1__ListTasksResponse *answer = NULL;
        request.page_size = left > 500 ? 500 : (int32_t)left;
        status = cli_call(cli, CLI_TASKS "ListTasks", &request,
                          &hearth__v1__list_tasks_response__descriptor, &answer);
        if (status != HEARTH_OK) {
            break;
        }
        if (cli->output == CLI_JSON) {
            struct hearth_buf none;
            hearth_buf_init(&none, 0);
            code = cli_print_answer(cli, &answer->base, &none);
        }
        for (size_t i = 0; i < answer->n_tasks; i++) {
            add_task(&list, answer->tasks[i]);
        }
        if (cli->agent.log) {
            draw_logs(answer, &list.foot);
        }
        n += (int64_t)answer->n_tasks;
        left -= (int64_t)answer->n_tasks;
        request.page_token = cli_field(cli, answer->next_page_token);
        is_last = answer->next_page_token[0] == '\0';
    }
    if (status != HEARTH_OK) {
        cli_list_drop(&list);
        return cli_fail(cli, status);
    }
    if (n == 0) {
        cli_list_drop(&list);
        return cli_fail(cli, HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND,
                                         "no task matches; hearth task create starts one"));
    }
    if (cli->output == CLI_JSON) {
        cli_list_drop(&list);
        return code;
    }

    return cli_list_end(&list, NULL);
}

static enum hearth_status ask_task(struct cli *cli, const char *task_id,
                                   Hearth__V1__GetTaskResponse **ret)
{
    Hearth__V1__GetTaskRequest request;
    hearth__v1__get_task_request__init(&request);
    request.task_id = cli_field(cli, task_id);
    return cli_call(cli, CLI_TASKS "GetTask", &request, &hearth__v1__get_task_response__descriptor,
                    ret);
}

static void print_target(const Hearth__V1__TaskTarget *target, struct hearth_buf *out)
{
    const char *process = target->process[0] != '\0' ? target->process : target->process_id;
    struct hearth_buf name;
    hearth_buf_init(&name, 0);
    cli_fit(hearth_str_c(target->instance), INT_MAX, false, &name);
    hearth_buf_cstr(&name, target->instance[0] != '\0' && process[0] != '\0' ? "/" : "");
    cli_fit(hearth_str_c(process), INT_MAX, false, &name);
    hearth_buf_printf(out, "  %-24.*s", (int)name.n, name.n > 0 ? name.p : "");
    hearth_buf_release(&name);
    hearth_buf_printf(out, "  %s: ", cli_task_state(target->state));
    cli_fit(hearth_str_c(target->reason), INT_MAX, false, out);
    hearth_buf_byte(out, '\n');
}

void cli_task_say_left_out(struct cli *cli, const char *task_id)
{
    Hearth__V1__GetTaskResponse *answer = NULL;
    if (ask_task(cli, task_id, &answer) != HEARTH_OK) {
        return;
    }
    if (answer->task->kind == HEARTH__V1__TASK_KIND__TASK_KIND_NETWORK) {
        cli_say("note", "topology and metrics of the network task are not included");
    }
}

/* The results of a kind, and where they are read. */
struct result_place {
    const char *what, *command;
};

static struct result_place results_of(Hearth__V1__TaskKind kind)
{
    switch (kind) {
    case HEARTH__V1__TASK_KIND__TASK_KIND_TRACE:
        return (struct result_place){"requests", "hearth task segments"};
    case HEARTH__V1__TASK_KIND__TASK_KIND_ASYNC_PROFILER:
    case HEARTH__V1__TASK_KIND__TASK_KIND_PPROF:
        return (struct result_place){"files", "hearth task uploads"};
    case HEARTH__V1__TASK_KIND__TASK_KIND_NETWORK:
        return (struct result_place){"traffic", "hearth network"};
    default:
        return (struct result_place){"stack traces", "hearth task stacks"};
    }
}

enum cli_exit cli_task_nothing(struct cli *cli, const char *task_id, const char *what)
{
    Hearth__V1__GetTaskResponse *answer = NULL;
    enum hearth_status status = ask_task(cli, task_id, &answer);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    struct result_place results = results_of(answer->task->kind);
    hearth_buf_printf(&line, "no %s of this %s task", what, cli_task_kind(answer->task->kind));
    if (strcmp(what, results.what) != 0) {
        hearth_buf_printf(&line, " (%s has its results)", results.command);
    }
    hearth_buf_printf(&line, ": %s: %s", cli_task_state(answer->task->state),
                      answer->task->state_reason);
    hearth_buf_byte(&line, '\0');
    cli_say("hearth", hearth_buf_failed(&line) ? what : line.p);
    hearth_buf_release(&line);

    return CLI_NO_DATA;
}

enum cli_exit cli_task_get(struct cli *cli)
{
    if (cli->agent.watch) {
        return cli_task_watch(cli, cli->args[0]);
    }
    Hearth__V1__GetTaskResponse *answer = NULL;
    enum hearth_status status = ask_task(cli, cli->args[0], &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_task_print(answer->task, &out);
    for (size_t i = 0; i < answer->n_targets; i++) {
        print_target(answer->targets[i], &out);
    }

    return cli_print_answer(cli, &answer->base, &out);
}

enum cli_exit cli_task_log(struct cli *cli)
{
    Hearth__V1__GetTaskResponse *answer = NULL;
    enum hearth_status status = ask_task(cli, cli->args[0], &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_log == 0 && cli->output != CLI_JSON) {
        return cli_task_nothing(cli, cli->args[0], "log");
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_log; i++) {
        const Hearth__V1__TaskLogEntry *entry = answer->log[i];
        cli_list_time(&list, entry->at_ms);
        cli_list_text(&list, name_event(entry->event));
        cli_list_text(&list, entry->instance);
        cli_list_text(&list, entry->process_id);
        cli_list_text(&list, entry->message);
    }
    return cli_list_end(&list, &answer->base);
}

/* ---- changes ---- */

enum cli_exit cli_task_cancel(struct cli *cli)
{
    Hearth__V1__CancelTaskRequest request;
    Hearth__V1__CancelTaskResponse *answer = NULL;
    hearth__v1__cancel_task_request__init(&request);
    request.task_id = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, CLI_TASKS "CancelTask", &request,
                                         &hearth__v1__cancel_task_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_fit(hearth_str_c(answer->note), INT_MAX, false, &out);
    hearth_buf_byte(&out, '\n');
    return cli_print_answer(cli, &answer->base, &out);
}

enum cli_exit cli_task_keep(struct cli *cli)
{
    Hearth__V1__KeepAliveTaskRequest request;
    Hearth__V1__KeepAliveTaskResponse *answer = NULL;
    hearth__v1__keep_alive_task_request__init(&request);
    request.task_id = cli_field(cli, cli->args[0]);
    enum hearth_status status =
        cli_call(cli, CLI_TASKS "KeepAliveTask", &request,
                 &hearth__v1__keep_alive_task_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_task_print(answer->task, &out);
    return cli_print_answer(cli, &answer->base, &out);
}

/* ---- --watch ---- */

/* What a state means for a script; -1: the task has not ended. */
static int exit_of(Hearth__V1__TaskState state)
{
    switch (state) {
    case HEARTH__V1__TASK_STATE__TASK_STATE_FINISHED:
        return CLI_OK;
    case HEARTH__V1__TASK_STATE__TASK_STATE_FAILED:
    case HEARTH__V1__TASK_STATE__TASK_STATE_CANCELLED:
        return CLI_FAILED;
    case HEARTH__V1__TASK_STATE__TASK_STATE_NOTHING_SAMPLED:
    case HEARTH__V1__TASK_STATE__TASK_STATE_NEVER_DELIVERED:
        return CLI_NO_DATA;
    default:
        return -1;
    }
}

static enum cli_exit print_change(struct cli *cli, const Hearth__V1__GetTaskResponse *answer)
{
    char at[32];
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    cli_date(hearth_clock_wall_ns() / HEARTH_NS_PER_MS, at);
    hearth_buf_printf(&out, "%s  %s: ", at, cli_task_state(answer->task->state));
    cli_fit(hearth_str_c(answer->task->state_reason), INT_MAX, false, &out);
    hearth_buf_byte(&out, '\n');
    return cli_print_answer(cli, &answer->base, &out);
}

enum cli_exit cli_task_watch(struct cli *cli, const char *task_id)
{
    char last[640] = "";

    for (;;) {
        Hearth__V1__GetTaskResponse *answer = NULL;
        enum hearth_status status = ask_task(cli, task_id, &answer);
        if (status != HEARTH_OK) {
            return cli_fail(cli, status);
        }
        char now[640];
        (void)snprintf(now, sizeof now, "%d %s", (int)answer->task->state,
                       answer->task->state_reason);
        int code = exit_of(answer->task->state);
        if (strcmp(now, last) != 0) {
            enum cli_exit printed = print_change(cli, answer);
            if (printed != CLI_OK) {
                return printed;
            }
        }
        if (code >= 0) {
            return (enum cli_exit)code;
        }
        memcpy(last, now, sizeof last);
        (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
}
