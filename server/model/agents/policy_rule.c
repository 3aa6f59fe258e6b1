/*
 * policy_rule.c -- the agents' rule, applied to reported values (contract:
 * hearth/model/policy_rule.h).
 */
#include "hearth/model/policy_rule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* ---- names ---- */

static const struct {
    const char *name, *unit;
} MONITORS[HEARTH_MONITOR_END] = {
    {"?", ""},
    {"PROCESS_CPU", "percent"},
    {"PROCESS_THREAD_COUNT", "threads"},
    {"SYSTEM_LOAD", "load"},
    {"HTTP_ERROR_RATE", "percent"},
    {"HTTP_AVG_RESPONSE_TIME", "milliseconds"},
};

static const char *const KINDS[HEARTH_POLICY_KIND_END] = {"?", "ON_CPU", "OFF_CPU", "NETWORK"};

const char *hearth_monitor_name(enum hearth_monitor monitor)
{
    return MONITORS[monitor > 0 && monitor < HEARTH_MONITOR_END ? monitor : 0].name;
}

const char *hearth_monitor_unit(enum hearth_monitor monitor)
{
    return MONITORS[monitor > 0 && monitor < HEARTH_MONITOR_END ? monitor : 0].unit;
}

const char *hearth_policy_kind_name(enum hearth_policy_kind kind)
{
    return KINDS[kind > 0 && kind < HEARTH_POLICY_KIND_END ? kind : 0];
}

bool hearth_monitor_find(struct hearth_str name, enum hearth_monitor *ret)
{
    for (enum hearth_monitor i = 1; i < HEARTH_MONITOR_END; i++) {
        if (hearth_str_eq_c(name, MONITORS[i].name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool hearth_policy_kind_find(struct hearth_str name, enum hearth_policy_kind *ret)
{
    for (enum hearth_policy_kind i = 1; i < HEARTH_POLICY_KIND_END; i++) {
        if (hearth_str_eq_c(name, KINDS[i])) {
            *ret = i;
            return true;
        }
    }
    return false;
}

/* ---- causes ---- */

/*
 * Truncate to two digits. The multiplication may make a value slightly too small (0.29 x 100); the
 * margin is far below a digit.
 */
static double truncate_value(double value)
{
    return trunc(value * 100 + (value < 0 ? -1e-6 : 1e-6)) / 100;
}

static void put_cause_value(enum hearth_monitor monitor, double value, struct hearth_buf *out)
{
    switch (monitor) {
    case HEARTH_MONITOR_PROCESS_CPU:
    case HEARTH_MONITOR_HTTP_ERROR_RATE:
        hearth_buf_printf(out, "%.2f%%", truncate_value(value));
        break;
    case HEARTH_MONITOR_HTTP_AVG_RESPONSE_TIME:
        hearth_buf_printf(out, "%.2fms", truncate_value(value));
        break;
    case HEARTH_MONITOR_PROCESS_THREAD_COUNT:
    case HEARTH_MONITOR_SYSTEM_LOAD:
    case HEARTH_MONITOR_END:
        hearth_buf_printf(out, "%.0f", trunc(value));
        break;
    }
}

void hearth_cause_message(enum hearth_monitor monitor, struct hearth_str uri, double current,
                          double threshold, struct hearth_buf *out)
{
    assert(out != NULL);

    hearth_buf_printf(out, "%s: current ", hearth_monitor_name(monitor));
    put_cause_value(monitor, current, out);
    hearth_buf_cstr(out, " >= threshold ");
    put_cause_value(monitor, threshold, out);
    if (uri.n > 0) {
        hearth_buf_cstr(out, " on ");
        hearth_buf_str(out, uri);
    }
}

/* ---- slots ---- */

/* The seconds [second, second + n) hold a value. */
struct slot {
    int64_t second, n;
    double value;
};

struct line {
    const struct hearth_monitor_line *from;
    struct slot *slots; /* by second; they do not overlap */
    size_t n;
    size_t first; /* the first slot that a window can still reach */
};

struct replay {
    const struct hearth_policy_target *targets;
    size_t n_targets;
    int64_t start_ms, end_ms;
    struct hearth_arena *arena;
    struct line *lines; /* lines of one instance at a time */
    size_t n_lines;
    int64_t *times; /* times of its checks */
    size_t n_times;
    int64_t periods[HEARTH_MONITOR_END]; /* window of each monitor without URI, in seconds */
    int64_t longest;                     /* longest window of all monitors */
    struct hearth_policy_trigger *triggers;
    size_t n_triggers, cap;
};

static int64_t get_second(int64_t at_ms)
{
    return at_ms >= 0 ? at_ms / 1000 : (at_ms - 999) / 1000;
}

/* Make slots of values that are valid until the next one, at most HEARTH_POLICY_HOLD_MS. */
static void hold_values(struct line *line)
{
    const struct hearth_monitor_value *values = line->from->values;

    for (size_t i = 0; i < line->from->n_values; i++) {
        int64_t second = get_second(values[i].at_ms);
        if (line->n > 0 && line->slots[line->n - 1].second == second) {
            line->slots[line->n - 1].value = values[i].value; /* the last value of a second */
            continue;
        }

        /* The previous value ends here at the latest. */
        if (line->n > 0) {
            struct slot *before = &line->slots[line->n - 1];
            int64_t gap = second - before->second;
            before->n = gap < HEARTH_POLICY_HOLD_MS / 1000 ? gap : HEARTH_POLICY_HOLD_MS / 1000;
        }

        line->slots[line->n++] =
            (struct slot){second, HEARTH_POLICY_CHECK_MS / 1000, values[i].value};
    }
}

/* Spread the values of each report over the seconds up to it, back to the previous report. */
static void spread_values(struct line *line)
{
    const struct hearth_monitor_value *values = line->from->values;
    size_t n = line->from->n_values;
    int64_t before = INT64_MIN;

    for (size_t i = 0, end; i < n; i = end) {
        int64_t second = get_second(values[i].at_ms);

        /* Values [i, end) belong to one report. */
        for (end = i + 1; end < n && get_second(values[end].at_ms) == second; end++) {
        }

        size_t room = before == INT64_MIN || (uint64_t)(second - before) > end - i
                          ? end - i
                          : (size_t)(second - before);

        /* The newest value is first. */
        for (size_t k = room; k-- > 0;) {
            line->slots[line->n++] = (struct slot){second - (int64_t)k, 1, values[i + k].value};
        }

        before = second;
    }
}

static enum hearth_status open_line(struct replay *replay, const struct hearth_monitor_line *from,
                                    struct hearth_err *err)
{
    struct line *line = &replay->lines[replay->n_lines++];

    *line = (struct line){.from = from};
    line->slots = hearth_arena_array(replay->arena, from->n_values, sizeof line->slots[0]);
    if (line->slots == NULL) {
        return HEARTH_FAIL_ARENA(err, replay->arena);
    }

    if (hearth_monitor_is_http(from->monitor)) {
        spread_values(line);
    } else {
        hold_values(line);
    }

    return HEARTH_OK;
}

/*
 * Count the slots of the `period` seconds up to `second` that reach the threshold. *ret_oldest is
 * the first such value, if any.
 */
static int64_t count_matches(const struct line *line, int64_t second, int64_t period,
                             double threshold, double *ret_oldest)
{
    assert(period >= 0 && ret_oldest != NULL);

    int64_t n = 0, from = second - period + 1;

    for (size_t i = line->first; i < line->n && line->slots[i].second <= second; i++) {
        const struct slot *slot = &line->slots[i];
        int64_t begin = slot->second > from ? slot->second : from;
        int64_t end = slot->second + slot->n <= second ? slot->second + slot->n : second + 1;
        if (end > begin && slot->value >= threshold) {
            *ret_oldest = n == 0 ? slot->value : *ret_oldest;
            n += end - begin;
        }
    }

    return n;
}

/* Drop slots that no window at or after `second` reaches. */
static void move_window(struct replay *replay, int64_t second)
{
    for (size_t i = 0; i < replay->n_lines; i++) {
        struct line *line = &replay->lines[i];
        while (line->first < line->n &&
               line->slots[line->first].second + line->slots[line->first].n <=
                   second - replay->longest + 1) {
            line->first++;
        }
    }
}

/* ---- the rule ---- */

static bool item_matches(const struct hearth_check_item *item,
                         const struct hearth_monitor_line *line)
{
    if (item->monitor != line->monitor) {
        return false;
    }

    if (!hearth_monitor_is_http(item->monitor)) {
        return true;
    }

    if (item->n_uri_paths == 0) {
        return item->uri_regex.n > 0 ? hearth_str_eq(line->uri, item->uri_regex)
                                     : hearth_str_eq_c(line->uri, HEARTH_URI_GLOBAL);
    }

    bool wanted = false;
    for (size_t i = 0; i < item->n_uri_paths; i++) {
        wanted = wanted || hearth_str_eq(line->uri, item->uri_paths[i]);
    }

    return wanted;
}

/* Find the first fulfilled item of the target for the line's process. */
static bool find_fulfilled_item(const struct replay *replay,
                                const struct hearth_policy_target *target, const struct line *line,
                                int64_t at_ms, struct hearth_policy_trigger *ret)
{
    for (size_t i = 0; i < target->n_items; i++) {
        const struct hearth_check_item *item = &target->items[i];
        if (!item_matches(item, line->from)) {
            continue;
        }

        /* Does it have enough values in its window? */
        bool is_http = hearth_monitor_is_http(item->monitor);
        int64_t period = is_http ? item->period_seconds : replay->periods[item->monitor];
        double current = 0;
        if (count_matches(line, get_second(at_ms), period, (double)item->threshold, &current) <
            item->count) {
            continue;
        }

        bool is_global = !is_http || (item->n_uri_paths == 0 && item->uri_regex.n == 0);
        *ret = (struct hearth_policy_trigger){
            .kind = target->kind,
            .instance = line->from->instance,
            .process = line->from->process,
            .at_ms = at_ms,
            .monitor = item->monitor,
            .uri = is_global ? hearth_str_n("", 0) : line->from->uri,
            .uri_is_regex = !is_global && item->n_uri_paths == 0,
            .current = current,
            .threshold = (double)item->threshold,
        };
        return true;
    }

    return false;
}

/* True if the profiling that a target starts was started recently. */
static bool is_silent(const struct replay *replay, size_t first_of_instance,
                      enum hearth_policy_kind kind, const struct hearth_monitor_line *line,
                      int64_t at_ms)
{
    for (size_t i = first_of_instance; i < replay->n_triggers; i++) {
        const struct hearth_policy_trigger *trigger = &replay->triggers[i];
        if (trigger->kind == kind &&
            (kind == HEARTH_POLICY_NETWORK || hearth_str_eq(trigger->process, line->process)) &&
            at_ms - trigger->at_ms <= HEARTH_POLICY_SILENCE_MS) {
            return true;
        }
    }

    return false;
}

static enum hearth_status add_trigger(struct replay *replay,
                                      const struct hearth_policy_trigger *trigger,
                                      struct hearth_err *err)
{
    if (replay->n_triggers == replay->cap) {
        size_t cap = replay->cap == 0 ? 16 : replay->cap * 2;
        struct hearth_policy_trigger *more = hearth_arena_array(replay->arena, cap, sizeof more[0]);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, replay->arena);
        }
        if (replay->n_triggers > 0) {
            memcpy(more, replay->triggers, replay->n_triggers * sizeof more[0]);
        }
        replay->triggers = more;
        replay->cap = cap;
    }

    replay->triggers[replay->n_triggers++] = *trigger;

    return HEARTH_OK;
}

/* Check one target at one time: a trigger per process, or one for the instance (network). */
static enum hearth_status check_target(struct replay *replay,
                                       const struct hearth_policy_target *target, int64_t at_ms,
                                       size_t first_of_instance, struct hearth_err *err)
{
    struct hearth_policy_trigger found, best;
    int best_rank = 0;
    bool any = false;

    for (size_t i = 0; i < replay->n_lines; i++) {
        const struct line *line = &replay->lines[i];
        if (is_silent(replay, first_of_instance, target->kind, line->from, at_ms) ||
            !find_fulfilled_item(replay, target, line, at_ms, &found)) {
            continue;
        }

        if (target->kind != HEARTH_POLICY_NETWORK) {
            HEARTH_TRY(add_trigger(replay, &found, err));
        } else if (!any || line->from->process_rank < best_rank) {
            best = found;
            best_rank = line->from->process_rank;
            any = true;
        }
    }

    return any ? add_trigger(replay, &best, err) : HEARTH_OK;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Collect the times of checks: those of all reports of the instance in the range. */
static enum hearth_status find_times(struct replay *replay, struct hearth_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < replay->n_lines; i++) {
        n += replay->lines[i].from->n_values;
    }

    replay->times = hearth_arena_array(replay->arena, n, sizeof replay->times[0]);
    if (replay->times == NULL) {
        return HEARTH_FAIL_ARENA(err, replay->arena);
    }

    replay->n_times = 0;
    for (size_t i = 0; i < replay->n_lines; i++) {
        const struct hearth_monitor_line *line = replay->lines[i].from;
        for (size_t k = 0; k < line->n_values; k++) {
            int64_t at_ms = line->values[k].at_ms;
            if (at_ms >= replay->start_ms && at_ms <= replay->end_ms) {
                replay->times[replay->n_times++] = at_ms;
            }
        }
    }

    if (replay->n_times > 0) {
        qsort(replay->times, replay->n_times, sizeof replay->times[0], compare_times);
    }

    return HEARTH_OK;
}

static enum hearth_status replay_instance(struct replay *replay, struct hearth_err *err)
{
    size_t first_of_instance = replay->n_triggers;

    HEARTH_TRY(find_times(replay, err));
    for (size_t i = 0; i < replay->n_times; i++) {
        if (i > 0 && replay->times[i] == replay->times[i - 1]) {
            continue;
        }
        move_window(replay, get_second(replay->times[i]));
        for (size_t t = 0; t < replay->n_targets; t++) {
            HEARTH_TRY(check_target(replay, &replay->targets[t], replay->times[i],
                                    first_of_instance, err));
        }
    }

    return HEARTH_OK;
}

static void find_periods(struct replay *replay)
{
    for (size_t t = 0; t < replay->n_targets; t++) {
        for (size_t i = 0; i < replay->targets[t].n_items; i++) {
            const struct hearth_check_item *item = &replay->targets[t].items[i];
            int64_t *period = &replay->periods[item->monitor];
            *period = item->period_seconds > *period ? item->period_seconds : *period;
            replay->longest =
                item->period_seconds > replay->longest ? item->period_seconds : replay->longest;
        }
    }
}

static int compare_triggers(const void *a, const void *b)
{
    const struct hearth_policy_trigger *x = a, *y = b;
    int order = (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
    order = order != 0 ? order : hearth_str_cmp(x->instance, y->instance);
    order = order != 0 ? order : hearth_str_cmp(x->process, y->process);
    return order != 0 ? order : (int)x->kind - (int)y->kind;
}

enum hearth_status hearth_policy_replay(const struct hearth_policy_replay *input,
                                        struct hearth_arena *arena,
                                        struct hearth_policy_trigger **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    assert((input->targets != NULL || input->n_targets == 0) && arena != NULL);
    assert((input->lines != NULL || input->n_lines == 0) && ret != NULL && ret_n != NULL);

    const struct hearth_monitor_line *lines = input->lines;
    size_t n_lines = input->n_lines;
    struct replay replay = {.targets = input->targets,
                            .n_targets = input->n_targets,
                            .start_ms = input->start_ms,
                            .end_ms = input->end_ms,
                            .arena = arena};

    replay.lines = hearth_arena_array(arena, n_lines, sizeof replay.lines[0]);
    if (replay.lines == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Replay one instance after the other. */
    find_periods(&replay);
    for (size_t i = 0, end; i < n_lines; i = end) {
        replay.n_lines = 0;
        for (end = i; end < n_lines && hearth_str_eq(lines[end].instance, lines[i].instance);
             end++) {
            HEARTH_TRY(open_line(&replay, &lines[end], err));
        }

        HEARTH_TRY(replay_instance(&replay, err));
    }

    if (replay.n_triggers > 1) {
        qsort(replay.triggers, replay.n_triggers, sizeof replay.triggers[0], compare_triggers);
    }

    *ret = replay.triggers;
    *ret_n = replay.n_triggers;

    return HEARTH_OK;
}
