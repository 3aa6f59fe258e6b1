/*
 * task_facts.h -- what is known about tasks beyond their rows: who asked for them, which processes they select, who
 * was told, what came. What it means is the engine's (engine/tasks.h).
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY.
 */
#ifndef HEARTH_STORE_TASK_FACTS_H
#define HEARTH_STORE_TASK_FACTS_H

#include "hearth/store/store_tasks.h"

/* A service and its processes that are not virtual and were reported after a time. */
struct hearth_task_scope {
    bool is_known;
    struct hearth_str *labels; /* of all its processes, sorted */
    size_t n_labels;
    int64_t n_processes, n_matching, n_profilable; /* of those that match */
    int64_t n_of_instance;                         /* whenever they were reported */
    int64_t asked_ms; /* an agent of processes asked for tasks, of any service; 0: none */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_scope(const struct hearth_scope *scope,
                                           struct hearth_str service,
                                           struct hearth_str instance, /* empty: none */
                                           const struct hearth_str *labels, size_t n_labels,
                                           int64_t seen_after_ms, struct hearth_task_scope *ret,
                                           struct hearth_err *err);

/* One process or instance of a task. Times 0: it did not happen. */
struct hearth_task_target {
    struct hearth_str target;            /* process id; or instance */
    struct hearth_str instance, process; /* names; empty: not known */
    struct hearth_str agent_id;          /* that was told last; empty: the instance itself */
    int64_t delivered_ms, confirmed_ms;  /* first, and when its agent was known to have it */
    int64_t finished_ms, too_large_ms, failed_ms;
    struct hearth_str message;            /* of the latest of too large and failed */
    int64_t n_records, first_ms, last_ms; /* results */
    int64_t covered_ms; /* of stack traces: how long the runs were profiled, as far as is known */
    /* Trace tasks: requests of the instance while the task ran, as far as they were reported. */
    int64_t n_requests; /* of the task's endpoint */
    int64_t slowest_ms; /* of them */
    struct hearth_str
        others;       /* other endpoints, the most frequent first, three at most: "/a, /b" */
    int64_t n_others; /* how many there are */
};

/*
 * How a task stands. What is said of asking and processes holds for tasks that nobody was told of; their end is when they
 * are no longer handed out (hearth_task_handed_out_until).
 */
struct hearth_task_fact {
    struct hearth_task_target *targets; /* by target */
    size_t n_targets;
    int64_t
        n_asked; /* agents (or instances of its service) that asked for its kind while it could run */
    int64_t last_asked_ms; /* of those that asked before its end, noted once a minute: they may
                            * have asked up to a minute later; 0: none */
    int64_t
        asked_after_ms; /* the first that asked after its end, having not asked before; 0: none */
    struct hearth_str asked;                       /* names of those instances, three at most */
    int64_t n_processes, n_matching, n_profilable; /* of its service, reported while it could run */
    int64_t
        reported_after_ms; /* the first matching process that was reported after its end; 0: none */
    /* async-profiler, pprof: other tasks of the kind, on instances that match and asked */
    int64_t n_told_instead; /* that these were told of, or ran, while this one was handed out */
    int64_t n_before;       /* that are told before this one, or have to end first */
};

/* fact[i] of tasks[i], which are tasks of the tenant; all of one moment. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_facts(const struct hearth_scope *scope,
                                           const struct hearth_task *tasks, size_t n,
                                           struct hearth_task_fact **ret, struct hearth_err *err);

#endif
