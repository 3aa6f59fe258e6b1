/*
 * tasks.h -- profiling tasks: validation, delivery to agents, and why a task has no data.
 *
 * The call gives tenant, cancel and arena. Times are milliseconds since the epoch. Texts of
 * requests are borrowed, answers live in the call's arena.
 *
 * Threads: safe; one request runs on one thread.
 * Errors:  INVALID_ARGUMENT with the texts of SkyWalking's server, ALREADY_EXISTS (overlap),
 *          NOT_FOUND, RESOURCE_EXHAUSTED (max-tasks), FAILED_PRECONDITION (keep-alive), and those
 *          of the store.
 * Source:  docs/reference/skywalking.md.
 */
#ifndef HEARTH_ENGINE_TASKS_H
#define HEARTH_ENGINE_TASKS_H

#include "hearth/engine/call.h"
#include "hearth/model/task.h"

/* ---- creating ---- */

struct hearth_sampling_rule {
    struct hearth_str uri_regex; /* empty: the rule for all other requests */
    bool has_min_duration, has_max_request, has_max_response;
    int32_t min_duration_ms, max_request_bytes, max_response_bytes;
    bool when_4xx, when_5xx, require_complete_request, require_complete_response;
};

struct hearth_task_request {
    enum hearth_task_kind kind;
    struct hearth_str service, instance, endpoint, exec_args;
    const struct hearth_str *labels, *instances, *events;
    size_t n_labels, n_instances, n_events;
    int64_t start_ms; /* 0 or less: now */
    int64_t duration_ms;
    int32_t min_duration_ms, dump_period_ms, max_samples;
    const struct hearth_sampling_rule *rules;
    size_t n_rules;
};

/* Numbers as in hearth.v1.TaskState. */
enum hearth_task_state {
    HEARTH_TASK_NOT_STARTED = 1,
    HEARTH_TASK_WAITING_FOR_AGENT = 2,
    HEARTH_TASK_NO_PROCESS_MATCHES = 3,
    HEARTH_TASK_UNSUPPORTED = 4,
    HEARTH_TASK_TOLD = 5,
    HEARTH_TASK_RUNNING = 6,
    HEARTH_TASK_DONE = 7,
    HEARTH_TASK_BROKEN = 8,
    HEARTH_TASK_NOTHING_SAMPLED = 9,
    HEARTH_TASK_CANCELLED = 10,
    HEARTH_TASK_NEVER_DELIVERED = 11,
};

struct hearth_judgement {
    enum hearth_task_state state;
    struct hearth_str reason; /* a sentence */
};

struct hearth_task_view {
    struct hearth_task task;
    struct hearth_judgement judgement;
    const struct hearth_task_log *log; /* in lists, if requested; oldest first */
    size_t n_log;
};

/* One process or instance of a task. */
struct hearth_target_view {
    struct hearth_str instance, process_id, process;
    struct hearth_judgement judgement;
};

struct hearth_task_prepared {
    bool can_be_profiled;
    struct hearth_str *labels; /* labels of the service's processes */
    size_t n_labels;
    int64_t n_processes; /* that a task with these labels would profile now */
    struct hearth_str reason;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_prepare(const struct hearth_call *call, struct hearth_str service,
                                        const struct hearth_str *labels, size_t n_labels,
                                        struct hearth_task_prepared *ret, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_create(const struct hearth_call *call,
                                       const struct hearth_task_request *request,
                                       struct hearth_task_view *ret, struct hearth_err *err);

/* ---- reading ---- */

HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_list(const struct hearth_call *call,
                                     const struct hearth_task_filter *filter, bool with_log,
                                     struct hearth_task_view **ret, size_t *ret_n,
                                     struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_get(const struct hearth_call *call, struct hearth_str task_id,
                                    struct hearth_task_view *ret,
                                    struct hearth_target_view **ret_targets, size_t *ret_n_targets,
                                    struct hearth_task_log **ret_log, size_t *ret_n_log,
                                    struct hearth_err *err);

/* ---- changing ---- */

/* Cancel a task. *ret_note: which parts of it may still run, and until when. */
HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_cancel(const struct hearth_call *call, struct hearth_str task_id,
                                       struct hearth_task_view *ret, struct hearth_str *ret_note,
                                       struct hearth_err *err);
/* Extend a network task that ends within a minute by 10 minutes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_keep_alive(const struct hearth_call *call,
                                           struct hearth_str task_id, struct hearth_task_view *ret,
                                           struct hearth_err *err);

/* ---- agents ---- */

struct hearth_command_arg {
    const char *key;
    struct hearth_str value;
};

#define HEARTH_COMMAND_ARGS 12

/* A command for an agent, as in SkyWalking's protocol. */
struct hearth_command {
    const char *name;
    struct hearth_command_arg args[HEARTH_COMMAND_ARGS];
    size_t n_args;
};

/* Commands for an agent of processes: on-CPU, off-CPU and network tasks. */
HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_ask_agent(const struct hearth_call *call,
                                          struct hearth_str agent_id, int64_t cursor_ms,
                                          struct hearth_command **ret, size_t *ret_n,
                                          struct hearth_err *err);
/*
 * Commands of one kind for an instance: all trace tasks, or one async-profiler or pprof task at a
 * time.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_ask_instance(const struct hearth_call *call,
                                             enum hearth_task_kind kind, struct hearth_str service,
                                             struct hearth_str instance, int64_t cursor_ms,
                                             struct hearth_command **ret, size_t *ret_n,
                                             struct hearth_err *err);
/* Note that an instance has finished a trace task. An unknown task is ignored. */
HEARTH_MUST_CHECK
enum hearth_status hearth_tasks_finished(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_str instance, struct hearth_err *err);

#endif
