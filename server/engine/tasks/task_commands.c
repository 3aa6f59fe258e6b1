/*
 * task_commands.c -- tasks as commands of SkyWalking's protocol, and the polls that fetch them.
 *
 * Agents require every argument of a command, as text. SerialNumber differs each time: agents drop
 * commands with a number that they have seen, so a repeated command needs a new number.
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/task_delivery.h"

#include "common/shown.h"
#include "tasks/tasks_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

/* Age up to which a reported process is included in commands. */
#define ALIVE_MS (5 * HEARTH_MS_PER_MINUTE)
/*
 * Time before the start at which trace agents receive a task; they wait for the start themselves,
 * so all of them begin on time.
 */
#define TRACE_AHEAD_MS HEARTH_MS_PER_MINUTE
#define SERIAL_BYTES   16

/* ---- arguments ---- */

static void add_text_arg(struct hearth_command *command, const char *key, struct hearth_str value)
{
    HEARTH_ASSERT(command->n_args < HEARTH_COMMAND_ARGS);
    command->args[command->n_args++] = (struct hearth_command_arg){key, value};
}

static void add_number_arg(struct hearth_command *command, const char *key, int64_t value,
                           struct hearth_arena *arena)
{
    add_text_arg(command, key, hearth_str_c(hearth_arena_printf(arena, "%lld", (long long)value)));
}

static struct hearth_str join_texts(const struct hearth_str *texts, size_t n,
                                    struct hearth_arena *arena)
{
    assert(texts != NULL || n == 0);

    size_t n_bytes = n;

    for (size_t i = 0; i < n; i++) {
        n_bytes += texts[i].n;
    }

    /* Join the texts with commas. */
    char *out = hearth_arena_alloc(arena, n_bytes + 1);
    size_t at = 0;
    for (size_t i = 0; i < n && out != NULL; i++) {
        if (i > 0) {
            out[at++] = ',';
        }
        memcpy(out + at, texts[i].p, texts[i].n);
        at += texts[i].n;
    }

    return hearth_str_n(out, at);
}

static struct hearth_str make_extension(const struct hearth_task *task, struct hearth_arena *arena)
{
    if (task->sampling.n == 0) {
        return HEARTH_STR("null");
    }

    struct hearth_str head = HEARTH_STR("{\"NetworkSamplings\":");
    char *out = hearth_arena_alloc(arena, head.n + task->sampling.n + 2);
    if (out == NULL) {
        return hearth_str_n(NULL, 0);
    }

    /* Wrap the rules in an object: {"NetworkSamplings":[...]}. */
    memcpy(out, head.p, head.n);
    memcpy(out + head.n, task->sampling.p, task->sampling.n);
    out[head.n + task->sampling.n] = '}';
    out[head.n + task->sampling.n + 1] = '\0';

    return hearth_str_n(out, head.n + task->sampling.n + 1);
}

static void add_process_args(const struct hearth_told_task *told, struct hearth_arena *arena,
                             struct hearth_command *ret)
{
    const struct hearth_task *task = &told->task;
    static const char *const targets[] = {
        [HEARTH_TASK_ON_CPU] = "ON_CPU",
        [HEARTH_TASK_OFF_CPU] = "OFF_CPU",
        [HEARTH_TASK_NETWORK] = "NETWORK",
    };

    assert((size_t)task->kind < HEARTH_ARRAY_LEN(targets));

    ret->name = "EBPFProfilingTaskQuery";

    add_text_arg(ret, "TaskId", task->task_id);
    add_text_arg(ret, "ProcessId", join_texts(told->process_ids, told->n_process_ids, arena));
    add_number_arg(ret, "TaskUpdateTime", told->cursor_ms, arena);
    add_text_arg(ret, "TriggerType", HEARTH_STR("FIXED_TIME"));
    add_text_arg(ret, "TargetType", hearth_str_c(targets[task->kind]));
    add_number_arg(ret, "TaskStartTime", task->start_ms, arena);
    add_text_arg(ret, "ExtensionConfigJSON", make_extension(task, arena));
    add_number_arg(ret, "FixedTriggerDuration", task->duration_ms / 1000, arena);
}

static void add_trace_args(const struct hearth_task *task, int64_t cursor_ms,
                           struct hearth_arena *arena, struct hearth_command *ret)
{
    ret->name = "ProfileTaskQuery";

    add_text_arg(ret, "TaskId", task->task_id);
    add_text_arg(ret, "EndpointName", task->endpoint);
    add_number_arg(ret, "Duration", task->duration_ms / HEARTH_MS_PER_MINUTE, arena);
    add_number_arg(ret, "MinDurationThreshold", task->min_duration_ms, arena);
    add_number_arg(ret, "DumpPeriod", task->dump_period_ms, arena);
    add_number_arg(ret, "MaxSamplingCount", task->max_samples, arena);
    add_number_arg(ret, "StartTime", task->start_ms, arena);
    add_number_arg(ret, "CreateTime", cursor_ms, arena);
}

static void add_async_args(const struct hearth_task *task, int64_t cursor_ms,
                           struct hearth_arena *arena, struct hearth_command *ret)
{
    struct hearth_str events = join_texts(task->events, task->n_events, arena);

    ret->name = "AsyncProfilerTaskQuery";
    add_text_arg(ret, "TaskId", task->task_id);
    add_number_arg(ret, "Duration", task->duration_ms / 1000, arena);

    /* ExecArgs: the events, then the arguments of the request if any. */
    char *args = hearth_arena_alloc(arena, events.n + task->exec_args.n + 8);
    size_t n = 0;
    if (args != NULL && events.p != NULL) {
        memcpy(args, "event=", 6);
        memcpy(args + 6, events.p, events.n);
        n = 6 + events.n;
        if (task->exec_args.n > 0) {
            args[n++] = ',';
            memcpy(args + n, task->exec_args.p, task->exec_args.n);
            n += task->exec_args.n;
        }
    }

    add_text_arg(ret, "ExecArgs", hearth_str_n(args, n));
    add_number_arg(ret, "CreateTime", cursor_ms, arena);
}

static void add_pprof_args(const struct hearth_task *task, int64_t cursor_ms,
                           struct hearth_arena *arena, struct hearth_command *ret)
{
    ret->name = "PprofTaskQuery";

    add_text_arg(ret, "TaskId", task->task_id);
    add_text_arg(ret, "Events", join_texts(task->events, task->n_events, arena));
    add_number_arg(ret, "Duration", task->duration_ms / HEARTH_MS_PER_MINUTE, arena);
    add_number_arg(ret, "CreateTime", cursor_ms, arena);
    add_number_arg(ret, "DumpPeriod", task->dump_period_ms, arena);
}

enum hearth_status hearth_task_command(const struct hearth_told_task *told,
                                       struct hearth_str serial, struct hearth_arena *arena,
                                       struct hearth_command *ret, struct hearth_err *err)
{
    const struct hearth_task *task = &told->task;

    assert(ret != NULL);
    assert(serial.n > 0);

    *ret = (struct hearth_command){0};
    add_text_arg(ret, "SerialNumber", serial);

    if (task->kind <= HEARTH_TASK_NETWORK) {
        add_process_args(told, arena, ret);
    } else if (task->kind == HEARTH_TASK_TRACE) {
        add_trace_args(task, told->cursor_ms, arena, ret);
    } else if (task->kind == HEARTH_TASK_ASYNC_PROFILER) {
        add_async_args(task, told->cursor_ms, arena, ret);
    } else {
        add_pprof_args(task, told->cursor_ms, arena, ret);
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* ---- polls ---- */

/* A random UUID as text. */
static enum hearth_status make_command_serial(struct hearth_arena *arena, struct hearth_str *ret,
                                              struct hearth_err *err)
{
    unsigned char b[SERIAL_BYTES];

    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes for a command");
    }

    /* Set version 4 and the variant of RFC 4122. */
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    *ret = hearth_str_c(hearth_arena_printf(
        arena, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
        b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]));

    return ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status make_commands(const struct hearth_call *call,
                                        const struct hearth_told_task *told, size_t n,
                                        struct hearth_command **ret, struct hearth_err *err)
{
    struct hearth_command *commands = hearth_arena_array(call->arena, n, sizeof *commands);

    if (commands == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Each command has a serial number of its own. */
    for (size_t i = 0; i < n; i++) {
        struct hearth_str serial;
        HEARTH_TRY(make_command_serial(call->arena, &serial, err));
        HEARTH_TRY(hearth_task_command(&told[i], serial, call->arena, &commands[i], err));
    }

    *ret = commands;

    return HEARTH_OK;
}

/*
 * An agent gets the tasks of all its processes, so a narrowed call must see all their services. If
 * it sees none of them, the agent does not exist for it. Hidden services are not named: the caller
 * gave the id of the agent only.
 */
static enum hearth_status check_agent_services(const struct hearth_call *call,
                                               struct hearth_str agent_id, bool *ret_exists,
                                               struct hearth_err *err)
{
    const struct hearth_process_filter filter = {.agent_id = agent_id};
    struct hearth_shown shown = {0};
    struct hearth_process *processes;
    char text[HEARTH_NARROWED_BYTES];
    size_t n, n_shown = 0;

    *ret_exists = true;
    if (!hearth_call_is_narrow(call)) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &processes, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, processes[i].service, &shows, err));
        n_shown += shows;
    }
    *ret_exists = n_shown > 0;

    return n_shown == 0 || n_shown == n
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                             "the credential is narrowed to %s, and does not see all services of "
                             "agent \"" HEARTH_STR_FMT "\"",
                             hearth_view_text(call->view, text), HEARTH_STR_ARG(agent_id));
}

enum hearth_status hearth_tasks_ask_agent(const struct hearth_call *call,
                                          struct hearth_str agent_id, int64_t cursor_ms,
                                          struct hearth_command **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    assert(call != NULL && ret != NULL && ret_n != NULL);

    if (agent_id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "roverInstanceId is empty");
    }

    bool exists;
    HEARTH_TRY(check_agent_services(call, agent_id, &exists, err));
    if (!exists) {
        *ret_n = 0;
        return HEARTH_OK;
    }

    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;

    const struct hearth_task_poll poll = {.tenant = call->tenant,
                                          .cursor_ms = cursor_ms,
                                          .now_ms = now_ms,
                                          .agent_id = agent_id,
                                          .seen_after_ms = now_ms - ALIVE_MS};
    struct hearth_told_task *told;
    size_t n;
    HEARTH_TRY(hearth_store_tell_agent(HEARTH_CALL_SCOPE(call), &poll, &told, &n, err));

    HEARTH_TRY(make_commands(call, told, n, ret, err));
    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_tasks_ask_instance(const struct hearth_call *call,
                                             enum hearth_task_kind kind, struct hearth_str service,
                                             struct hearth_str instance, int64_t cursor_ms,
                                             struct hearth_command **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    assert(call != NULL && ret != NULL && ret_n != NULL);

    if (service.n == 0 || instance.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s is empty",
                           service.n == 0 ? "service" : "serviceInstance");
    }

    HEARTH_TRY(hearth_call_check_service(call, service, err));
    bool is_trace = kind == HEARTH_TASK_TRACE;

    const struct hearth_task_poll poll = {.tenant = call->tenant,
                                          .cursor_ms = cursor_ms,
                                          .now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
                                          .service = service,
                                          .instance = instance,
                                          .kind = kind,
                                          .ahead_ms = is_trace ? TRACE_AHEAD_MS : 0,
                                          .limit = is_trace ? 0 : 1};
    struct hearth_told_task *told;
    size_t n;
    HEARTH_TRY(hearth_store_tell_instance(HEARTH_CALL_SCOPE(call), &poll, &told, &n, err));

    HEARTH_TRY(make_commands(call, told, n, ret, err));
    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_tasks_finished(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_str instance, struct hearth_err *err)
{
    const struct hearth_task_log entry = {.instance = instance,
                                          .event = HEARTH_TASK_FINISHED,
                                          .at_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS};
    bool shows;

    HEARTH_TRY(hearth_call_shows_task(call, task_id, &shows, err));
    if (!shows) { /* as one that does not exist */
        return HEARTH_OK;
    }

    return hearth_store_task_log_add(HEARTH_CALL_SCOPE(call), task_id, &entry, NULL, err);
}
