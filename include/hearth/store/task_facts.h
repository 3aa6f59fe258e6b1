/*
 * task_facts.h -- facts about tasks besides their rows: polls for them, the processes they
 * select, deliveries and results. The engine interprets them (engine/tasks.h).
 *
 * Times are milliseconds since the epoch; 0: it did not happen.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY.
 */
#ifndef HEARTH_STORE_TASK_FACTS_H
#define HEARTH_STORE_TASK_FACTS_H

#include "hearth/store/store_tasks.h"

/* A service and its processes that are not virtual and were reported after a time. */
struct hearth_task_scope {
    bool is_known;
    struct hearth_str *labels; /* labels of all its processes, sorted */
    size_t n_labels;
    int64_t n_processes;
    int64_t n_matching;    /* with all given labels */
    int64_t n_profilable;  /* matching ones that can be profiled */
    int64_t n_of_instance; /* processes of the instance, whenever they were reported */
    int64_t asked_ms;      /* latest poll of an agent that reports processes, of any service */
};

struct hearth_task_scope_filter {
    struct hearth_str service;
    struct hearth_str instance; /* empty: none */
    const struct hearth_str *labels;
    size_t n_labels;
    int64_t seen_after_ms; /* only processes seen at or after this time count */
};

/* Count the processes of a service. ret->is_known is false for an unknown service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_scope(const struct hearth_scope *scope,
                                           const struct hearth_task_scope_filter *filter,
                                           struct hearth_task_scope *ret, struct hearth_err *err);

/* A process or instance that a task was handed out for, or that has results. */
struct hearth_task_target {
    struct hearth_str target;            /* process id; or instance */
    struct hearth_str instance, process; /* names; empty: not known */
    struct hearth_str
        agent_id; /* the agent that the task was delivered to last; empty: the instance itself */
    int64_t delivered_ms; /* first delivery */
    int64_t confirmed_ms; /* the agent is known to have received it */
    int64_t finished_ms, too_large_ms, failed_ms;
    struct hearth_str message;            /* the message of the later of too large and failed */
    int64_t n_records, first_ms, last_ms; /* results */
    int64_t covered_ms;                   /* stack traces: known profiled time of the runs */
    /* Trace tasks: reported requests of the instance while the task ran. */
    int64_t n_requests; /* with the task's endpoint */
    int64_t slowest_ms; /* latency of the slowest of them */
    struct hearth_str
        others;       /* other endpoints, the most frequent first, at most three: "/a, /b" */
    int64_t n_others; /* number of other endpoints */
};

/*
 * Facts of one task. Members about polls and processes are set for tasks that were not handed out
 * yet; their end is when they are no longer handed out (hearth_task_handed_out_until).
 */
struct hearth_task_fact {
    struct hearth_task_target *targets; /* sorted by target */
    size_t n_targets;
    /* Agents, or instances of its service, that polled for its kind while it could run. */
    int64_t n_asked;
    int64_t last_asked_ms;  /* latest noted poll of those that polled before its end; polls are
                            * noted once a minute, so they may have polled up to a minute later */
    int64_t asked_after_ms; /* the first poll after its end, by agents that had not polled before */
    struct hearth_str asked; /* names of the n_asked agents or instances, at most three: "a, b" */
    /* Processes of its service, reported while it could run. */
    int64_t n_processes, n_matching, n_profilable;
    int64_t reported_after_ms; /* the first matching process reported after its end */
    /* async-profiler, pprof: other tasks of the kind, on matching instances that polled */
    int64_t n_told_instead; /* delivered to, or run by, them while this one could be handed out */
    int64_t n_before;       /* handed out before this one, or must end first */
};

/* (*ret)[i] is the fact of tasks[i], which are tasks of the tenant; all in one snapshot. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_facts(const struct hearth_scope *scope,
                                           const struct hearth_task *tasks, size_t n,
                                           struct hearth_task_fact **ret, struct hearth_err *err);

#endif
