/*
 * tasks.c -- profiling tasks: creation, queries, cancellation, keep-alive (contract:
 * hearth/engine/tasks.h).
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"

#include "common/shown.h"
#include "tasks/tasks_internal.h"

#include <assert.h>
#include <sys/random.h>

/* Age up to which a report counts as current. */
#define ALIVE_MS   (10 * HEARTH_MS_PER_MINUTE)
#define KEEP_MS    (10 * HEARTH_MS_PER_MINUTE)
#define KEEP_BELOW HEARTH_MS_PER_MINUTE
#define ID_RANDOM  8

static int64_t read_clock_ms(void)
{
    return hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
}

/* ---- preparing ---- */

static const char *explain_unprofilable(const struct hearth_task_scope *scope, int64_t now_ms)
{
    assert(scope != NULL);

    if (!scope->is_known) {
        return "no service of this name is known";
    }

    if (scope->n_processes == 0 && scope->asked_ms < now_ms - ALIVE_MS) {
        return "no agent of processes (eBPF) has asked for tasks within 10 minutes";
    }

    if (scope->n_processes == 0) {
        return "agents ask, but none has reported a process of this service within 10 minutes";
    }

    if (scope->n_matching == 0) {
        return "no process has these labels";
    }

    return "the agents of the matching processes say that they cannot be profiled "
           "(support_ebpf_profiling)";
}

enum hearth_status hearth_tasks_prepare(const struct hearth_call *call, struct hearth_str service,
                                        const struct hearth_str *labels, size_t n_labels,
                                        struct hearth_task_prepared *ret, struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    if (service.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "service could not be empty");
    }

    HEARTH_TRY(hearth_call_check_service(call, service, err));

    /* Count the processes that the task would profile. */
    int64_t now_ms = read_clock_ms();
    struct hearth_task_scope scope;
    struct hearth_str *wanted;
    size_t n_wanted;
    HEARTH_TRY(hearth_task_texts(labels, n_labels, call->arena, &wanted, &n_wanted, err));
    struct hearth_task_scope_filter filter = {
        .service = service,
        .instance = HEARTH_STR(""),
        .labels = wanted,
        .n_labels = n_wanted,
        .seen_after_ms = now_ms - ALIVE_MS,
    };
    HEARTH_TRY(hearth_store_task_scope(HEARTH_CALL_SCOPE(call), &filter, &scope, err));

    *ret = (struct hearth_task_prepared){
        .can_be_profiled = scope.n_profilable > 0,
        .labels = scope.labels,
        .n_labels = scope.n_labels,
        .n_processes = scope.n_profilable,
        .reason = scope.n_profilable > 0 ? HEARTH_STR("")
                                         : hearth_str_c(explain_unprofilable(&scope, now_ms)),
    };

    return HEARTH_OK;
}

/* ---- creating ---- */

/* Make an opaque id that cannot be guessed. */
static enum hearth_status make_task_id(struct hearth_task *task, struct hearth_arena *arena,
                                       struct hearth_err *err)
{
    static const char *const kinds[] = {
        [HEARTH_TASK_ON_CPU] = "oncpu",         [HEARTH_TASK_OFF_CPU] = "offcpu",
        [HEARTH_TASK_NETWORK] = "network",      [HEARTH_TASK_TRACE] = "trace",
        [HEARTH_TASK_ASYNC_PROFILER] = "async", [HEARTH_TASK_PPROF] = "pprof",
    };
    unsigned char r[ID_RANDOM];

    assert((size_t)task->kind < HEARTH_ARRAY_LEN(kinds));

    if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes for an id");
    }

    task->task_id = hearth_str_c(hearth_arena_printf(
        arena, "%s-%lld-%02x%02x%02x%02x%02x%02x%02x%02x", kinds[task->kind],
        (long long)task->created_ms, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]));

    return task->task_id.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status judge_tasks(const struct hearth_call *call,
                                      struct hearth_task_view *views, size_t n,
                                      struct hearth_err *err)
{
    struct hearth_task_fact *facts;
    struct hearth_task *tasks = hearth_arena_array(call->arena, n, sizeof *tasks);

    assert(views != NULL || n == 0);

    if (tasks == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        tasks[i] = views[i].task;
    }

    HEARTH_TRY(hearth_store_task_facts(HEARTH_CALL_SCOPE(call), tasks, n, &facts, err));
    int64_t now_ms = read_clock_ms();
    for (size_t i = 0; i < n; i++) {
        hearth_task_judge(&tasks[i], &facts[i], now_ms, call->arena, &views[i].judgement, NULL);
    }

    return call->arena->refused ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
}

enum hearth_status hearth_tasks_create(const struct hearth_call *call,
                                       const struct hearth_task_request *request,
                                       struct hearth_task_view *ret, struct hearth_err *err)
{
    struct hearth_task *task = &ret->task;
    struct hearth_task_scope scope;
    struct hearth_limits limits;
    int64_t now_ms = read_clock_ms();

    assert(call != NULL && ret != NULL);

    HEARTH_TRY(hearth_call_check_service(call, request->service, err));

    /* Check the request against what the service has reported. */
    struct hearth_task_scope_filter filter = {
        .service = request->service,
        .instance = request->instance,
        .seen_after_ms = now_ms - ALIVE_MS,
    };
    HEARTH_TRY(hearth_store_task_scope(HEARTH_CALL_SCOPE(call), &filter, &scope, err));
    HEARTH_TRY(hearth_task_check(request, &scope, now_ms, call->arena, task, err));

    /* Complete the task and store it, unless it overlaps another one. */
    HEARTH_TRY(hearth_store_service_id(HEARTH_CALL_SCOPE(call), request->service, true,
                                       &task->service_id, err));
    task->created_ms = task->updated_ms = now_ms;
    HEARTH_TRY(make_task_id(task, call->arena, err));
    hearth_call_limits(call, &limits);
    HEARTH_TRY(hearth_store_task_put(HEARTH_CALL_SCOPE(call), task, limits.max_tasks,
                                     hearth_task_overlap_message(task->kind), err));

    return judge_tasks(call, ret, 1, err);
}

/* ---- reading ---- */

/* Add the logs of all views, read by one statement; its rows are grouped by task. */
static enum hearth_status add_task_logs(const struct hearth_call *call,
                                        struct hearth_task_view *views, size_t n,
                                        struct hearth_err *err)
{
    struct hearth_str *ids = hearth_arena_array(call->arena, n, sizeof *ids);
    struct hearth_task_log *log;
    size_t n_log;

    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Read the logs of all tasks. */
    for (size_t i = 0; i < n; i++) {
        ids[i] = views[i].task.task_id;
    }

    HEARTH_TRY(hearth_store_task_logs(HEARTH_CALL_SCOPE(call), ids, n, &log, &n_log, err));

    /* Give each group of rows to the view of its task. */
    for (size_t first = 0, next; first < n_log; first = next) {
        next = first + 1;
        while (next < n_log && hearth_str_eq(log[next].task_id, log[first].task_id)) {
            next++;
        }
        for (size_t i = 0; i < n; i++) {
            if (hearth_str_eq(ids[i], log[first].task_id)) {
                views[i].log = &log[first];
                views[i].n_log = next - first;
            }
        }
    }

    return HEARTH_OK;
}

/*
 * Read a page of tasks. A narrowed call reads on until the page is full of tasks that it sees.
 */
static enum hearth_status read_shown_tasks(const struct hearth_call *call,
                                           const struct hearth_task_filter *filter,
                                           struct hearth_task **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    struct hearth_task_filter own = *filter;
    struct hearth_task *page, *shown_tasks = NULL;
    struct hearth_shown shown = {0};
    size_t n, n_shown = 0, cap = 0;

    if (!hearth_call_is_narrow(call)) {
        return hearth_store_tasks(HEARTH_CALL_SCOPE(call), filter, ret, ret_n, err);
    }

    do {
        HEARTH_TRY(hearth_store_tasks(HEARTH_CALL_SCOPE(call), &own, &page, &n, err));
        if (!hearth_arena_grow(call->arena, &shown_tasks, &cap, n_shown + n + 1, sizeof *page)) {
            return HEARTH_FAIL_ARENA(err, call->arena);
        }

        for (size_t i = 0; i < n && (own.limit == 0 || n_shown < own.limit); i++) {
            bool shows;
            HEARTH_TRY(hearth_call_shows_service(call, &shown, page[i].service, &shows, err));
            if (shows) {
                shown_tasks[n_shown++] = page[i];
            }
        }
        if (n > 0) {
            own.before_start_ms = page[n - 1].start_ms;
            own.before_task_id = page[n - 1].task_id;
        }
    } while (own.limit > 0 && n == own.limit && n_shown < own.limit);

    *ret = shown_tasks;
    *ret_n = n_shown;

    return HEARTH_OK;
}

enum hearth_status hearth_tasks_list(const struct hearth_call *call,
                                     const struct hearth_task_filter *filter, bool with_log,
                                     struct hearth_task_view **ret, size_t *ret_n,
                                     struct hearth_err *err)
{
    struct hearth_task *tasks;
    size_t n;

    assert(call != NULL && ret != NULL && ret_n != NULL);

    HEARTH_TRY(read_shown_tasks(call, filter, &tasks, &n, err));
    struct hearth_task_view *views = hearth_arena_calloc(call->arena, n, sizeof *views);
    if (views == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        views[i].task = tasks[i];
    }

    HEARTH_TRY(with_log ? add_task_logs(call, views, n, err) : HEARTH_OK);

    *ret = views;
    *ret_n = n;

    return judge_tasks(call, views, n, err);
}

/* The facts of a task, with a judgement of each of its targets. */
struct judged_fact {
    struct hearth_task_fact *fact;
    struct hearth_judgement *judgements; /* [fact->n_targets] */
};

/* Read a task with its facts, and judge it and its targets. */
static enum hearth_status read_task_facts(const struct hearth_call *call, struct hearth_str task_id,
                                          struct hearth_task_view *ret,
                                          struct judged_fact *ret_judged, struct hearth_err *err)
{
    struct judged_fact judged;

    HEARTH_TRY(hearth_call_find_task(call, task_id, &ret->task, err));
    HEARTH_TRY(hearth_store_task_facts(HEARTH_CALL_SCOPE(call), &ret->task, 1, &judged.fact, err));
    judged.judgements =
        hearth_arena_array(call->arena, judged.fact->n_targets, sizeof judged.judgements[0]);
    if (judged.judgements == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    hearth_task_judge(&ret->task, judged.fact, read_clock_ms(), call->arena, &ret->judgement,
                      judged.judgements);
    *ret_judged = judged;

    return call->arena->refused ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
}

enum hearth_status hearth_tasks_get(const struct hearth_call *call, struct hearth_str task_id,
                                    struct hearth_task_view *ret,
                                    struct hearth_target_view **ret_targets, size_t *ret_n_targets,
                                    struct hearth_task_log **ret_log, size_t *ret_n_log,
                                    struct hearth_err *err)
{
    struct judged_fact judged;

    assert(call != NULL && ret != NULL && ret_targets != NULL);

    /* Read the task, and judge its targets. */
    HEARTH_TRY(read_task_facts(call, task_id, ret, &judged, err));
    const struct hearth_task_fact *fact = judged.fact;
    struct hearth_target_view *targets =
        hearth_arena_array(call->arena, fact->n_targets, sizeof *targets);
    if (targets == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Answer the targets; targets of agents inside a program have no process. */
    bool is_of_instances = ret->task.kind > HEARTH_TASK_NETWORK;
    for (size_t i = 0; i < fact->n_targets; i++) {
        const struct hearth_task_target *target = &fact->targets[i];
        targets[i] = (struct hearth_target_view){
            .instance = target->instance,
            .process_id = is_of_instances ? HEARTH_STR("") : target->target,
            .process = target->process,
            .judgement = judged.judgements[i],
        };
    }

    /* Add the log of the task. */
    *ret_targets = targets;
    *ret_n_targets = fact->n_targets;

    return hearth_store_task_logs(HEARTH_CALL_SCOPE(call), &task_id, 1, ret_log, ret_n_log, err);
}

/* ---- changing ---- */

static struct hearth_str describe_cancel(const struct hearth_call *call,
                                         const struct hearth_task_view *view,
                                         const struct hearth_task_fact *fact, int64_t now_ms)
{
    assert(view != NULL && fact != NULL);

    struct hearth_arena *arena = call->arena;
    int64_t end_ms = hearth_task_last_end(&view->task, fact);

    if (hearth_task_handed_out_until(&view->task) < now_ms && end_ms < now_ms) {
        return HEARTH_STR("it had ended already; its results are kept");
    }

    if (fact->n_targets == 0) {
        return HEARTH_STR("no agent has received it, and none will: nothing runs");
    }

    const char *of = view->task.kind <= HEARTH_TASK_NETWORK ? "process" : "instance";
    if (end_ms <= now_ms) {
        return hearth_str_c(hearth_arena_printf(
            arena, "it is sent to no other %s, and has ended where it ran. Results are kept", of));
    }

    return hearth_str_c(hearth_arena_printf(
        arena,
        "it is sent to no other %s. It was sent to %zu before and cannot be called back: it ends "
        "by itself, at %s at the latest. Results are kept",
        of, fact->n_targets, hearth_task_time(end_ms, arena)));
}

enum hearth_status hearth_tasks_cancel(const struct hearth_call *call, struct hearth_str task_id,
                                       struct hearth_task_view *ret, struct hearth_str *ret_note,
                                       struct hearth_err *err)
{
    struct judged_fact judged;
    int64_t now_ms = read_clock_ms();

    assert(call != NULL && ret != NULL && ret_note != NULL);

    /* Cancel a task that may still be delivered or run. */
    HEARTH_TRY(read_task_facts(call, task_id, ret, &judged, err));
    int64_t end_ms = hearth_task_handed_out_until(&ret->task);
    int64_t last_ms = hearth_task_last_end(&ret->task, judged.fact);
    if (ret->task.cancelled_ms > 0 || end_ms >= now_ms || last_ms >= now_ms) {
        HEARTH_TRY(hearth_store_task_cancel(HEARTH_CALL_SCOPE(call), task_id, now_ms, err));

        /* It may have been delivered in between. */
        HEARTH_TRY(read_task_facts(call, task_id, ret, &judged, err));
    }

    *ret_note = describe_cancel(call, ret, judged.fact, now_ms);

    return ret_note->p == NULL ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
}

enum hearth_status hearth_tasks_keep_alive(const struct hearth_call *call,
                                           struct hearth_str task_id, struct hearth_task_view *ret,
                                           struct hearth_err *err)
{
    struct judged_fact judged;

    assert(call != NULL && ret != NULL);

    /* Only network tasks that have not ended can be extended. */
    HEARTH_TRY(read_task_facts(call, task_id, ret, &judged, err));
    if (ret->task.kind != HEARTH_TASK_NETWORK) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "current task is not a \"NETWORK\" task");
    }

    int64_t now_ms = read_clock_ms();
    if (ret->task.start_ms + ret->task.duration_ms < now_ms || ret->task.cancelled_ms > 0 ||
        ret->task.origin == HEARTH_TASK_IMPORTED) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "profiling task has been finished");
    }

    struct hearth_task_extension extension = {now_ms, KEEP_BELOW, KEEP_MS};
    HEARTH_TRY(hearth_store_task_extend(HEARTH_CALL_SCOPE(call), task_id, &extension, err));

    /* Another call may have extended or cancelled it meanwhile. */
    return read_task_facts(call, task_id, ret, &judged, err);
}
