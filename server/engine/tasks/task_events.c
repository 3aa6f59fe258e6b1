/*
 * task_events.c -- the events of async-profiler and pprof tasks (contract: tasks_internal.h).
 *
 * Their order matters: async-profiler 3.0, which SkyWalking's Java agent bundles, takes the first
 * name as its event. In later positions it accepts alloc, lock and wall, and ignores cpu, ctimer
 * and itimer without an error.
 */
#include "tasks/tasks_internal.h"

#include <assert.h>

static const char *const g_async_events[] = {"cpu", "wall", "lock", "alloc", "ctimer", "itimer"};
static const char *const g_pprof_events[] = {"cpu",       "heap",         "block", "mutex",
                                             "goroutine", "threadcreate", "allocs"};

void hearth_task_drop_repeated_events(struct hearth_task *task)
{
    assert(task->events != NULL || task->n_events == 0);

    struct hearth_str *events = task->events;
    size_t n_kept = 0;

    for (size_t i = 0; i < task->n_events; i++) {
        size_t k = 0;
        while (k < n_kept && !hearth_str_eq(events[k], events[i])) {
            k++;
        }
        if (k == n_kept) {
            events[n_kept++] = events[i];
        }
    }

    task->n_events = n_kept;
}

/* Replace each event by its known name, ignoring case. */
static enum hearth_status normalize_events(struct hearth_task *task, const char *const *names,
                                           size_t n_names, const char *all, struct hearth_err *err)
{
    for (size_t i = 0; i < task->n_events; i++) {
        size_t k = 0;
        while (k < n_names && !hearth_str_eq_nocase(task->events[i], hearth_str_c(names[k]))) {
            k++;
        }
        if (k == n_names) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "events: \"" HEARTH_STR_FMT "\" is not one of %s",
                               HEARTH_STR_ARG(task->events[i]), all);
        }
        task->events[i] = hearth_str_c(names[k]);
    }

    hearth_task_drop_repeated_events(task);

    return HEARTH_OK;
}

static bool is_ignored_later(struct hearth_str event)
{
    return hearth_str_eq_c(event, "cpu") || hearth_str_eq_c(event, "ctimer") ||
           hearth_str_eq_c(event, "itimer");
}

/* Move the event that samples execution to the front; the others keep their order. */
static enum hearth_status move_execution_first(struct hearth_task *task, struct hearth_err *err)
{
    size_t n = task->n_events, first = n;

    /* Find the only event of cpu, ctimer and itimer. */
    for (size_t i = 0; i < n; i++) {
        if (is_ignored_later(task->events[i]) && first < n) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "events: async-profiler samples one of cpu, ctimer and itimer at a "
                               "time, not " HEARTH_STR_FMT " and " HEARTH_STR_FMT,
                               HEARTH_STR_ARG(task->events[first]),
                               HEARTH_STR_ARG(task->events[i]));
        }
        first = is_ignored_later(task->events[i]) ? i : first;
    }

    /* wall samples execution too, but is also accepted in later positions. */
    for (size_t i = 0; i < n && first == n; i++) {
        first = hearth_str_eq_c(task->events[i], "wall") ? i : first;
    }

    /* Move it, or wall, to the front. */
    if (first < n) {
        struct hearth_str event = task->events[first];
        memmove(&task->events[1], &task->events[0], first * sizeof event);
        task->events[0] = event;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_task_check_events(struct hearth_task *task, struct hearth_err *err)
{
    assert(task->kind == HEARTH_TASK_PPROF || task->kind == HEARTH_TASK_ASYNC_PROFILER);

    if (task->kind == HEARTH_TASK_PPROF) {
        return normalize_events(task, g_pprof_events, HEARTH_ARRAY_LEN(g_pprof_events),
                                "cpu, heap, block, mutex, goroutine, threadcreate, allocs", err);
    }
    HEARTH_TRY(normalize_events(task, g_async_events, HEARTH_ARRAY_LEN(g_async_events),
                                "cpu, wall, lock, alloc, ctimer, itimer", err));

    return move_execution_first(task, err);
}
