/*
 * task_states.c -- the state of a task, and why it has no data (contract: tasks_internal.h). Pure:
 * facts in, sentences out.
 *
 * Each target (process or instance) that received the task is judged by itself, and the task by its
 * targets. If no target received it, the facts about polls and reports say why. After the end,
 * agents have some time to send their data; until then nothing counts as missing.
 */
#include "hearth/base/clock.h"
#include "hearth/base/human.h"

#include "tasks/tasks_internal.h"

#include <assert.h>
#include <stdio.h>

/*
 * Time after the end for late data: agents of processes flush every 5 s, trace agents report the
 * end when they notice it, files are uploaded after the end.
 */
#define PROCESS_GRACE_MS 30000
#define TRACE_GRACE_MS   60000
#define UPLOAD_GRACE_MS  90000

/* Part of a run that may be missing without a remark: a little more than two flushes. */
#define COVERAGE_SLACK_MS 15000

struct judge_context {
    const struct hearth_task *task;
    const struct hearth_task_fact *fact;
    int64_t now_ms;
    int64_t end_ms; /* time after which the task is not delivered any more */
    struct hearth_arena *arena;
};

static bool is_of_processes(const struct hearth_task *task)
{
    return task->kind <= HEARTH_TASK_NETWORK;
}

static bool is_upload(const struct hearth_task *task)
{
    return task->kind == HEARTH_TASK_ASYNC_PROFILER || task->kind == HEARTH_TASK_PPROF;
}

const char *hearth_task_time(int64_t ms, struct hearth_arena *arena)
{
    char text[32];
    int64_t ns; /* times from agents and imports may be out of range */

    if (__builtin_mul_overflow(ms, HEARTH_NS_PER_MS, &ns)) {
        ns = ms < 0 ? 0 : INT64_MAX;
    }
    hearth_clock_format(ns, text);
    const char *copy = hearth_arena_strndup(arena, text, strlen(text));

    return copy == NULL ? "" : copy;
}

static struct hearth_judgement make_judgement(const struct judge_context *judge,
                                              enum hearth_task_state state, const char *format, ...)
    HEARTH_PRINTF(3, 4);

static struct hearth_judgement make_judgement(const struct judge_context *judge,
                                              enum hearth_task_state state, const char *format, ...)
{
    char text[1536]; /* texts of agents have at most 256 bytes (HEARTH_STR_ARG) */

    /* Format the sentence. */
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);

    /* A truncated text may end within a character: keep it valid UTF-8. */
    size_t length = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    if (!hearth_str_utf8_valid(hearth_str_n(text, length))) {
        for (size_t i = 0; i < length; i++) {
            text[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
        }
    }

    return (struct hearth_judgement){state,
                                     hearth_arena_str(judge->arena, hearth_str_n(text, length))};
}

#define TIME(ms) hearth_task_time((ms), judge->arena)

/*
 * The time of a poll, to the minute: the store notes polls once a minute, so there may be a later
 * one.
 */
static const char *format_poll_time(const struct judge_context *judge, int64_t ms)
{
    const char *text = TIME(ms);
    size_t to_minute = strlen("2026-11-20T10:36");
    char *copy = strlen(text) < to_minute
                     ? NULL
                     : hearth_arena_printf(judge->arena, "%.*sZ", (int)to_minute, text);

    return copy == NULL ? "" : copy;
}

/* ---- targets ---- */

static int64_t find_target_end(const struct hearth_task *task,
                               const struct hearth_task_target *target)
{
    int64_t from_ms = target->delivered_ms > task->start_ms ? target->delivered_ms : task->start_ms;
    int64_t end_ms = from_ms + task->duration_ms;
    /* Targets of a network task that was kept alive count its longer duration from its start. */
    return task->kind == HEARTH_TASK_NETWORK ? task->start_ms + task->duration_ms : end_ms;
}

static int64_t choose_grace(const struct hearth_task *task)
{
    return is_of_processes(task) ? PROCESS_GRACE_MS
           : is_upload(task)     ? UPLOAD_GRACE_MS
                                 : TRACE_GRACE_MS;
}

int64_t hearth_task_last_end(const struct hearth_task *task, const struct hearth_task_fact *fact)
{
    assert(fact->targets != NULL || fact->n_targets == 0);

    int64_t last_ms = 0;

    for (size_t i = 0; i < fact->n_targets; i++) {
        const struct hearth_task_target *target = &fact->targets[i];
        bool has_failed = target->failed_ms > 0 || target->too_large_ms > 0;
        bool is_over = target->finished_ms > 0 || (is_upload(task) && has_failed);
        int64_t end_ms = is_over ? 0 : find_target_end(task, target);
        last_ms = end_ms > last_ms ? end_ms : last_ms;
    }

    return last_ms;
}

/* The noun for n records of the task's kind. */
static const char *name_records(const struct hearth_task *task, int64_t n)
{
    bool is_one = n == 1;

    switch (task->kind) {
    case HEARTH_TASK_ON_CPU:
    case HEARTH_TASK_OFF_CPU:
        return is_one ? "stack trace" : "stack traces";
    case HEARTH_TASK_NETWORK:
        return is_one ? "connection" : "connections";
    case HEARTH_TASK_TRACE:
        return is_one ? "snapshot" : "snapshots";
    case HEARTH_TASK_ASYNC_PROFILER:
    case HEARTH_TASK_PPROF:
        break;
    }

    return is_one ? "file" : "files";
}

/* Explain why an agent that has the command sent nothing until the end. */
static struct hearth_judgement judge_silent_process(const struct judge_context *judge,
                                                    const struct hearth_task_target *target)
{
    const char *taken = TIME(target->delivered_ms);

    switch (judge->task->kind) {
    case HEARTH_TASK_ON_CPU:
        return make_judgement(
            judge, HEARTH_TASK_NOTHING_SAMPLED,
            "its agent took the task at %s and sent no stack traces: the process was idle, "
            "it did not run on a CPU when samples were taken, or it ended",
            taken);
    case HEARTH_TASK_OFF_CPU:
        return make_judgement(
            judge, HEARTH_TASK_NOTHING_SAMPLED,
            "its agent took the task at %s and sent no stack traces: no thread of the "
            "process was switched off a CPU, or it ended",
            taken);
    default:
        return make_judgement(
            judge, HEARTH_TASK_NOTHING_SAMPLED,
            "its agent took the task at %s and reported no connections of the process", taken);
    }
}

static struct hearth_judgement judge_silent_trace(const struct judge_context *judge,
                                                  const struct hearth_task_target *target)
{
    const struct hearth_task *task = judge->task;
    const char *end = target->finished_ms > 0 ? "the instance finished" : "the time is over";

    if (target->n_requests > 0 && target->slowest_ms < task->min_duration_ms) {
        return make_judgement(
            judge, HEARTH_TASK_NOTHING_SAMPLED,
            "%s without snapshots: all %lld requests of " HEARTH_STR_FMT
            " were shorter than the %d ms of min_duration_ms; the slowest took %lld ms",
            end, (long long)target->n_requests, HEARTH_STR_ARG(task->endpoint),
            (int)task->min_duration_ms, (long long)target->slowest_ms);
    }

    if (target->n_requests > 0) {
        return make_judgement(
            judge, HEARTH_TASK_NOTHING_SAMPLED,
            "%s without snapshots, though there were %lld requests of " HEARTH_STR_FMT
            ", the slowest of %lld ms: they may have been running already when the "
            "instance began, or have ended between two snapshots",
            end, (long long)target->n_requests, HEARTH_STR_ARG(task->endpoint),
            (long long)target->slowest_ms);
    }

    if (target->others.n > 0) {
        return make_judgement(judge, HEARTH_TASK_NOTHING_SAMPLED,
                              "%s without snapshots: no request of " HEARTH_STR_FMT
                              " was traced; those seen were " HEARTH_STR_FMT,
                              end, HEARTH_STR_ARG(task->endpoint), HEARTH_STR_ARG(target->others));
    }

    return make_judgement(
        judge, HEARTH_TASK_NOTHING_SAMPLED,
        "%s without snapshots: the instance reported no traced request at all, so none "
        "of " HEARTH_STR_FMT,
        end, HEARTH_STR_ARG(task->endpoint));
}

static struct hearth_judgement judge_silent_target(const struct judge_context *judge,
                                                   const struct hearth_task_target *target)
{
    assert(target->n_records <= 0);

    bool knows = target->confirmed_ms > 0 || target->finished_ms > 0;

    /* The target has not been heard of since delivery. */
    if (!knows && is_of_processes(judge->task)) {
        return make_judgement(
            judge, HEARTH_TASK_NOTHING_SAMPLED,
            "its agent " HEARTH_STR_FMT
            " was told at %s and has not been heard of since: it has ended, or lost its "
            "connection",
            HEARTH_STR_ARG(target->agent_id), TIME(target->delivered_ms));
    }

    if (!knows) {
        return make_judgement(
            judge, HEARTH_TASK_NOTHING_SAMPLED,
            "the instance was told at %s and has not been heard of since: it has ended, or "
            "lost its connection",
            TIME(target->delivered_ms));
    }

    /* It took the task and sent nothing. */
    if (is_of_processes(judge->task)) {
        return judge_silent_process(judge, target);
    }

    return judge->task->kind == HEARTH_TASK_TRACE
               ? judge_silent_trace(judge, target)
               : make_judgement(judge, HEARTH_TASK_NOTHING_SAMPLED,
                                "the instance took the task at %s and uploaded no file",
                                TIME(target->delivered_ms));
}

/*
 * Whether a target sent no data because something was refused or failed. A later file makes up for
 * an earlier failure; the end of a trace task does not.
 */
static bool target_has_failed(const struct hearth_task *task,
                              const struct hearth_task_target *target)
{
    return is_upload(task) ? target->failed_ms > target->finished_ms
                           : target->failed_ms > 0 && target->n_records == 0;
}

/*
 * A remark about runs that cover little of the task: "; they cover 20 s of the 2 min of the task:
 * .."
 */
static const char *describe_coverage(const struct judge_context *judge,
                                     const struct hearth_task_target *target)
{
    const struct hearth_task *task = judge->task;
    bool has_coverage = task->kind == HEARTH_TASK_ON_CPU || task->kind == HEARTH_TASK_OFF_CPU;
    int64_t missing_ms = task->duration_ms - target->covered_ms;

    if (!has_coverage || missing_ms < COVERAGE_SLACK_MS || missing_ms < task->duration_ms / 10) {
        return "";
    }

    /* Say how much of the task the records cover. */
    char covered[48], whole[48];
    hearth_human_value((double)target->covered_ms * 1e6, HEARTH_STR("nanoseconds"), covered);
    hearth_human_value((double)task->duration_ms * 1e6, HEARTH_STR("nanoseconds"), whole);
    const char *text = hearth_arena_printf(
        judge->arena,
        "; they cover %s of the %s of the task: its agent began late or ended early, or there was "
        "nothing to sample in the rest",
        covered, whole);

    return text == NULL ? "" : text;
}

static struct hearth_judgement judge_records(const struct judge_context *judge,
                                             const struct hearth_task_target *target, bool is_over)
{
    const struct hearth_task *task = judge->task;
    bool is_part = target->failed_ms > 0 && !is_upload(task);
    const struct hearth_str nothing = HEARTH_STR("");

    return make_judgement(
        judge, is_over ? HEARTH_TASK_DONE : HEARTH_TASK_RUNNING,
        "%lld %s %s, the last at %s%s%s" HEARTH_STR_FMT, (long long)target->n_records,
        name_records(task, target->n_records), is_over ? "came" : "so far", TIME(target->last_ms),
        is_over ? describe_coverage(judge, target) : "", is_part ? "; not all: " : "",
        HEARTH_STR_ARG(is_part ? target->message : nothing));
}

static struct hearth_judgement judge_target(const struct judge_context *judge,
                                            const struct hearth_task_target *target)
{
    const struct hearth_task *task = judge->task;
    int64_t end_ms = find_target_end(task, target);
    bool is_over = target->finished_ms > 0 || judge->now_ms > end_ms + choose_grace(task) ||
                   (is_upload(task) && target->n_records > 0);

    /* Failures first, then data, then their absence. */
    if (target->too_large_ms > target->finished_ms) {
        return make_judgement(judge, HEARTH_TASK_BROKEN,
                              "the result was refused as too large: " HEARTH_STR_FMT,
                              HEARTH_STR_ARG(target->message));
    }

    if (target_has_failed(task, target)) {
        return make_judgement(judge, HEARTH_TASK_BROKEN, HEARTH_STR_FMT,
                              HEARTH_STR_ARG(target->message));
    }

    if (target->n_records > 0) {
        return judge_records(judge, target, is_over);
    }

    if (is_over) {
        return judge_silent_target(judge, target);
    }

    /* Not over yet: wait for a sign of life, then for data. */
    if (target->confirmed_ms == 0) {
        return make_judgement(judge, HEARTH_TASK_TOLD,
                              "told at %s; it is not known yet whether the answer arrived",
                              TIME(target->delivered_ms));
    }

    return make_judgement(judge, HEARTH_TASK_TOLD,
                          "told at %s; nothing has come yet, it ends at %s",
                          TIME(target->delivered_ms), TIME(end_ms));
}

/* ---- tasks that no target received ---- */

/* The end of delivery, as text. */
static const char *describe_end(const struct judge_context *judge)
{
    const char *what = is_upload(judge->task) ? "it stopped being handed out" : "the end";
    const char *text = hearth_arena_printf(judge->arena, "%s at %s", what, TIME(judge->end_ms));
    return text == NULL ? "" : text;
}

static struct hearth_judgement judge_unpolled(const struct judge_context *judge,
                                              enum hearth_task_state state)
{
    const struct hearth_task_fact *fact = judge->fact;
    const char *who =
        is_of_processes(judge->task) ? "agent of processes (eBPF)" : "instance of the service";
    const char *kind = is_of_processes(judge->task)             ? "tasks"
                       : judge->task->kind == HEARTH_TASK_TRACE ? "trace tasks"
                       : judge->task->kind == HEARTH_TASK_PPROF ? "pprof tasks"
                                                                : "async-profiler tasks";

    /* A poll after the end came too late. */
    if (fact->asked_after_ms > 0 && state == HEARTH_TASK_NEVER_DELIVERED) {
        return make_judgement(judge, state,
                              "no %s asked for %s before %s; the first came at %s, too late", who,
                              kind, describe_end(judge), TIME(fact->asked_after_ms));
    }

    if (fact->last_asked_ms > 0) {
        return make_judgement(judge, state, "no %s has asked for %s since about %s", who, kind,
                              format_poll_time(judge, fact->last_asked_ms));
    }

    return make_judgement(judge, state, "no %s has ever asked for %s", who, kind);
}

static struct hearth_judgement judge_unmatched(const struct judge_context *judge,
                                               enum hearth_task_state state)
{
    const struct hearth_task *task = judge->task;
    const struct hearth_task_fact *fact = judge->fact;

    /* A process reported after the end came too late. */
    if (fact->reported_after_ms > 0) {
        return make_judgement(
            judge, state,
            "no matching process was reported before the end at %s; the first came at %s, "
            "too late",
            TIME(judge->end_ms), TIME(fact->reported_after_ms));
    }

    if (fact->n_processes == 0) {
        return make_judgement(
            judge, state, "%lld agents ask, but none reports a process of service " HEARTH_STR_FMT,
            (long long)fact->n_asked, HEARTH_STR_ARG(task->service));
    }

    if (task->kind == HEARTH_TASK_NETWORK) {
        return make_judgement(
            judge, state, "the service has %lld processes, but none of instance " HEARTH_STR_FMT,
            (long long)fact->n_processes, HEARTH_STR_ARG(task->instance));
    }

    /* Name the labels that no process has. */
    struct hearth_buf labels;
    hearth_buf_init(&labels, 256);
    for (size_t i = 0; i < task->n_labels; i++) {
        hearth_buf_printf(&labels, "%s" HEARTH_STR_FMT, i > 0 ? ", " : "",
                          HEARTH_STR_ARG(task->labels[i]));
    }

    struct hearth_judgement judgement = make_judgement(
        judge, state, "the service has %lld processes, but none has the label(s) %.*s",
        (long long)fact->n_processes, (int)labels.n, labels.n > 0 ? labels.p : "");
    hearth_buf_release(&labels);

    return judgement;
}

/*
 * Judge an async-profiler or pprof task that waits for other tasks, or waited for them until the
 * end; false: it does not wait.
 */
static bool judge_queued(const struct judge_context *judge, bool ended,
                         struct hearth_judgement *ret)
{
    const struct hearth_task_fact *fact = judge->fact;
    const char *kind = judge->task->kind == HEARTH_TASK_PPROF ? "pprof" : "async-profiler";

    if (ended && fact->n_told_instead > 0) {
        *ret = make_judgement(
            judge, HEARTH_TASK_NEVER_DELIVERED,
            "its turn did not come before %s: the matching instances had %lld other %s "
            "task%s to run",
            describe_end(judge), (long long)fact->n_told_instead, kind,
            fact->n_told_instead == 1 ? "" : "s");
        return true;
    }

    if (!ended && fact->n_before > 0) {
        *ret = make_judgement(
            judge, HEARTH_TASK_WAITING_FOR_AGENT,
            "%lld other %s task%s first: a matching instance is told of one each time it "
            "asks, and of none that would disturb one that it runs",
            (long long)fact->n_before, kind, fact->n_before == 1 ? " comes" : "s come");
        return true;
    }

    return false;
}

/*
 * Judge a task that no target received. ended: NEVER_DELIVERED replaces the state that could still
 * change.
 */
static struct hearth_judgement judge_undelivered(const struct judge_context *judge, bool ended)
{
    const struct hearth_task *task = judge->task;
    const struct hearth_task_fact *fact = judge->fact;
    enum hearth_task_state over = HEARTH_TASK_NEVER_DELIVERED;

    /* No agent asked, or the asking agents have nothing that matches. */
    if (fact->n_asked == 0) {
        return judge_unpolled(judge, ended ? over : HEARTH_TASK_WAITING_FOR_AGENT);
    }

    if (is_of_processes(task) && fact->n_matching == 0) {
        return judge_unmatched(judge, ended ? over : HEARTH_TASK_NO_PROCESS_MATCHES);
    }

    if (is_of_processes(task) && task->kind != HEARTH_TASK_NETWORK && fact->n_profilable == 0) {
        return make_judgement(
            judge, ended ? over : HEARTH_TASK_UNSUPPORTED,
            "%lld processes match, but their agents say that they cannot be profiled "
            "(support_ebpf_profiling)",
            (long long)fact->n_matching);
    }

    if (!is_of_processes(task) && task->n_instances > 0 && fact->n_matching == 0) {
        return make_judgement(judge, ended ? over : HEARTH_TASK_NO_PROCESS_MATCHES,
                              "instances that ask: " HEARTH_STR_FMT
                              "; none is one of those that the task names",
                              HEARTH_STR_ARG(fact->asked));
    }

    /* The task matches, but others of its kind go first. */
    struct hearth_judgement turn;
    if (judge_queued(judge, ended, &turn)) {
        return turn;
    }

    /* It matches, but no matching agent asked in time. */
    if (ended && is_upload(task)) {
        return make_judgement(judge, over,
                              "no matching agent asked for it before %s; one asked last at %s",
                              describe_end(judge), TIME(fact->last_asked_ms));
    }

    if (ended) {
        return make_judgement(
            judge, over,
            "it ended at %s before a matching agent asked for it; one last asked at about "
            "%s",
            TIME(judge->end_ms), format_poll_time(judge, fact->last_asked_ms));
    }

    return make_judgement(judge, HEARTH_TASK_WAITING_FOR_AGENT,
                          "a matching agent last asked at about %s, and is told when it asks again",
                          format_poll_time(judge, fact->last_asked_ms));
}

/* ---- tasks ---- */

static struct hearth_judgement judge_cancelled(const struct judge_context *judge,
                                               size_t n_with_data)
{
    const struct hearth_task *task = judge->task;
    const char *at = TIME(task->cancelled_ms);

    if (judge->fact->n_targets == 0) {
        return make_judgement(judge, HEARTH_TASK_CANCELLED,
                              "cancelled at %s, before anybody was told", at);
    }

    return make_judgement(
        judge, HEARTH_TASK_CANCELLED,
        "cancelled at %s; %zu had been told, %zu of them sent data, which is kept", at,
        judge->fact->n_targets, n_with_data);
}

/* The first of the n targets that decide, with their number. */
static struct hearth_judgement add_target_count(const struct judge_context *judge,
                                                const struct hearth_judgement *first, size_t n,
                                                const char *noun)
{
    size_t n_all = judge->fact->n_targets;

    assert(n > 0 && n <= n_all);

    if (n_all == 1) {
        return *first;
    }

    return make_judgement(judge, first->state, "%zu of %zu %s; the first: " HEARTH_STR_FMT, n,
                          n_all, noun, HEARTH_STR_ARG(first->reason));
}

static struct hearth_judgement judge_delivered(const struct judge_context *judge, const size_t *n,
                                               const struct hearth_judgement *const *first)
{
    bool goes_on = n[HEARTH_TASK_TOLD] + n[HEARTH_TASK_RUNNING] > 0;

    /* The first of these that applies: runs, is partly done, was delivered. */
    if (n[HEARTH_TASK_RUNNING] > 0) {
        return add_target_count(judge, first[HEARTH_TASK_RUNNING], n[HEARTH_TASK_RUNNING], "run");
    }

    if (goes_on && n[HEARTH_TASK_DONE] > 0) {
        struct hearth_judgement running = *first[HEARTH_TASK_DONE];
        running.state = HEARTH_TASK_RUNNING;
        return add_target_count(judge, &running, n[HEARTH_TASK_DONE], "are done");
    }

    if (goes_on) {
        return add_target_count(judge, first[HEARTH_TASK_TOLD], n[HEARTH_TASK_TOLD], "were told");
    }

    /* All targets are over: data beat failures, failures beat silence. */
    if (n[HEARTH_TASK_DONE] > 0) {
        return add_target_count(judge, first[HEARTH_TASK_DONE], n[HEARTH_TASK_DONE], "sent data");
    }

    if (n[HEARTH_TASK_BROKEN] > 0) {
        return add_target_count(judge, first[HEARTH_TASK_BROKEN], n[HEARTH_TASK_BROKEN], "failed");
    }

    return add_target_count(judge, first[HEARTH_TASK_NOTHING_SAMPLED],
                            n[HEARTH_TASK_NOTHING_SAMPLED], "sent nothing");
}

void hearth_task_judge(const struct hearth_task *task, const struct hearth_task_fact *fact,
                       int64_t now_ms, struct hearth_arena *arena, struct hearth_judgement *ret,
                       struct hearth_judgement *ret_targets)
{
    bool is_imported = task->origin == HEARTH_TASK_IMPORTED;

    if (is_imported) {
        now_ms = INT64_MAX; /* an imported task has ended, whatever its times */
    }

    const struct judge_context value = {task, fact, now_ms, hearth_task_handed_out_until(task),
                                        arena};
    const struct judge_context *judge = &value;
    struct hearth_judgement firsts[HEARTH_TASK_NEVER_DELIVERED + 1];
    const struct hearth_judgement *first[HEARTH_TASK_NEVER_DELIVERED + 1] = {NULL};
    size_t n[HEARTH_TASK_NEVER_DELIVERED + 1] = {0}, n_with_data = 0;

    /* Judge each target; keep the first of each state. */
    for (size_t i = 0; i < fact->n_targets; i++) {
        struct hearth_judgement judgement = judge_target(judge, &fact->targets[i]);
        if (n[judgement.state]++ == 0) {
            firsts[judgement.state] = judgement;
            first[judgement.state] = &firsts[judgement.state];
        }
        n_with_data += fact->targets[i].n_records > 0;
        if (ret_targets != NULL) {
            ret_targets[i] = judgement;
        }
    }

    /* Judge the task by its targets, or by why it has none. */
    if (task->cancelled_ms > 0) {
        *ret = judge_cancelled(judge, n_with_data);
    } else if (is_imported && n_with_data == 0 && task->kind == HEARTH_TASK_NETWORK) {
        *ret = make_judgement(judge, HEARTH_TASK_NOTHING_SAMPLED,
                              "imported: what network tasks see is not in exported tasks");
    } else if (fact->n_targets > 0) {
        *ret = judge_delivered(judge, n, first);
    } else if (is_imported) {
        *ret = make_judgement(judge, HEARTH_TASK_NOTHING_SAMPLED, "imported without results");
    } else if (now_ms < task->start_ms) {
        *ret =
            make_judgement(judge, HEARTH_TASK_NOT_STARTED, "it starts at %s", TIME(task->start_ms));
    } else {
        *ret = judge_undelivered(judge, now_ms > judge->end_ms);
    }
}
