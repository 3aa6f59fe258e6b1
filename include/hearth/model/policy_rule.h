/*
 * policy_rule.h -- policies: their content, and the rule by which agents decide that one triggers.
 *
 * The rule, as agents apply it: each second they measure every monitored process and store the
 * values in slots of one second; each 5 s they check. A check item is fulfilled if at least `count`
 * slots of its window hold a value of at least the threshold. One fulfilled item of a target
 * suffices. The window ends with the second of the check; its length is the longest period of all
 * items of the policy with the same monitor (HTTP monitors: the item's own period). `current` is
 * the oldest value that reached the threshold. On-CPU and off-CPU profiling start for a process,
 * network profiling for an instance. Profiling that was started does not start again within
 * HEARTH_POLICY_SILENCE_MS.
 *
 * hearth_policy_replay applies the rule to reported values, of which there is one each 5 s. It
 * checks at each time of a report of the instance. A value of process CPU, threads or load is valid
 * until the next one, but at most HEARTH_POLICY_HOLD_MS. A report has one HTTP value for each
 * second with requests, all with the time of the report, the newest first: they fill the seconds up
 * to it.
 *
 * Ownership: inputs are borrowed; results live in the given arena. Threads: pure.
 * Errors:    NO_MEMORY.
 * Source:    docs/reference/monitors.md.
 */
#ifndef HEARTH_MODEL_POLICY_RULE_H
#define HEARTH_MODEL_POLICY_RULE_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/status.h"

/* Numbers as in hearth.v1.MonitorKind. */
enum hearth_monitor {
    HEARTH_MONITOR_PROCESS_CPU = 1,        /* percent of one processor */
    HEARTH_MONITOR_PROCESS_THREAD_COUNT,   /* threads */
    HEARTH_MONITOR_SYSTEM_LOAD,            /* load average of one minute */
    HEARTH_MONITOR_HTTP_ERROR_RATE,        /* percent of requests with a status of 500 or above */
    HEARTH_MONITOR_HTTP_AVG_RESPONSE_TIME, /* milliseconds */
    HEARTH_MONITOR_END
};

/* Numbers as in hearth.v1.TaskKind. */
enum hearth_policy_kind {
    HEARTH_POLICY_ON_CPU = 1,
    HEARTH_POLICY_OFF_CPU = 2,
    HEARTH_POLICY_NETWORK = 3,
    HEARTH_POLICY_KIND_END
};

#define HEARTH_POLICY_CHECK_MS    5000
#define HEARTH_POLICY_HOLD_MS     10000
#define HEARTH_POLICY_SILENCE_MS  1200000    /* the agents' default */
#define HEARTH_POLICY_UNREACHABLE 2147483647 /* the largest threshold that agents can read */
/* The agents' name for all HTTP requests of a process together. */
#define HEARTH_URI_GLOBAL "global"

/* Names as agents and people write them, "PROCESS_CPU", "ON_CPU"; "?" for other numbers. */
const char *hearth_monitor_name(enum hearth_monitor monitor);
const char *hearth_policy_kind_name(enum hearth_policy_kind kind);
/* "percent", "threads", "load", "percent" or "milliseconds". */
const char *hearth_monitor_unit(enum hearth_monitor monitor);
static inline bool hearth_monitor_is_http(enum hearth_monitor monitor)
{
    return monitor == HEARTH_MONITOR_HTTP_ERROR_RATE ||
           monitor == HEARTH_MONITOR_HTTP_AVG_RESPONSE_TIME;
}
/* Look up such a name; false for other names. */
HEARTH_MUST_CHECK bool hearth_monitor_find(struct hearth_str name, enum hearth_monitor *ret);
HEARTH_MUST_CHECK bool hearth_policy_kind_find(struct hearth_str name,
                                               enum hearth_policy_kind *ret);

struct hearth_check_item {
    enum hearth_monitor monitor;
    int64_t threshold; /* in the monitor's unit */
    int32_t period_seconds, count;
    /* HTTP monitors only: the paths, or the paths that match uri_regex; neither: all requests. */
    struct hearth_str *uri_paths;
    size_t n_uri_paths;
    struct hearth_str uri_regex;
};

struct hearth_policy_target {
    enum hearth_policy_kind kind;
    struct hearth_check_item *items;
    size_t n_items;
};

/*
 * Append "PROCESS_CPU: current 97.52% >= threshold 10.00%", with " on <uri>" unless uri is empty.
 * Numbers are truncated, not rounded.
 */
void hearth_cause_message(enum hearth_monitor monitor, struct hearth_str uri, double current,
                          double threshold, struct hearth_buf *out);

/* ---- replay ---- */

struct hearth_monitor_value {
    int64_t at_ms;
    double value;
};

struct hearth_monitor_line {
    struct hearth_str instance, process;
    enum hearth_monitor monitor;
    struct hearth_str uri; /* HTTP monitors: a path, a regular expression, or HEARTH_URI_GLOBAL */
    int process_rank;      /* network triggers name the process with the lowest rank */
    struct hearth_monitor_value *values; /* by time; equal times in order of arrival */
    size_t n_values;
};

struct hearth_policy_trigger {
    enum hearth_policy_kind kind;
    struct hearth_str instance, process;
    int64_t at_ms;
    enum hearth_monitor monitor; /* of the first fulfilled item */
    struct hearth_str uri;       /* of that item; empty: all requests, or no HTTP monitor */
    bool uri_is_regex;
    double current, threshold;
};

/* What is replayed: a policy, over the values of a service. */
struct hearth_policy_replay {
    const struct hearth_policy_target *targets;
    size_t n_targets;
    const struct hearth_monitor_line *lines; /* sorted by instance and process */
    size_t n_lines;
    int64_t start_ms,
        end_ms; /* of the triggers; earlier values fill the windows of the first checks */
};

/* The triggers with start_ms <= at_ms <= end_ms, the earliest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_replay(const struct hearth_policy_replay *input,
                                        struct hearth_arena *arena,
                                        struct hearth_policy_trigger **ret, size_t *ret_n,
                                        struct hearth_err *err);

#endif
