/*
 * legacy_contention.c -- profiles of contention:
 *
 *     --- mutex:
 *     cycles/second=2596069573
 *     sampling period=1
 *     145841134 19 @ 0x4dcaa7 0x4dcaa6
 */
#include "legacy/legacy_reader.h"

#define SECOND_NS 1000000000
#define MS_NS     1000000

__extension__ typedef unsigned __int128 u128;

struct contention_scale {
    int64_t cycles_per_second; /* 0: the delays are nanoseconds */
    int64_t period;            /* contentions per recorded one; 0: unknown */
};

/* A line "attribute = value". Returns false for another line. */
static bool take_attribute(struct hearth_str line, struct hearth_str *name,
                           struct hearth_str *value)
{
    size_t n = hearth_str_find(line, '=', 0);

    if (n == line.n) {
        return false;
    }

    *name = hearth_str_trim(hearth_str_n(line.p, n));
    *value = hearth_str_trim(hearth_str_n(line.p + n + 1, line.n - n - 1));

    return true;
}

static enum hearth_status read_attribute(struct legacy_reader *r, struct hearth_str line,
                                         struct contention_scale *scale, struct legacy_head *head,
                                         struct hearth_err *err)
{
    struct hearth_str name, text;
    int64_t ms = 0, unused, *value = NULL;

    (void)take_attribute(line, &name, &text);
    if (hearth_str_eq_c(name, "cycles/second")) {
        value = &scale->cycles_per_second;
    } else if (hearth_str_eq_c(name, "sampling period")) {
        value = &scale->period;
    } else if (hearth_str_eq_c(name, "ms since reset")) {
        value = &ms;
    } else if (hearth_str_eq_c(name, "discarded samples")) {
        value = &unused;
    }

    if (value == NULL || !hearth_str_to_i64(text, value) || *value < 0 ||
        __builtin_mul_overflow(ms, MS_NS, &ms)) {
        return hearth_legacy_fail_line(r, line, "known attribute of contention", err);
    }
    head->duration_ns = ms > 0 ? ms : head->duration_ns;

    return HEARTH_OK;
}

/* delay · period · ns per cycle, rounded down. */
static bool scale_delay(int64_t delay, const struct contention_scale *scale, int64_t *ret)
{
    bool is_scaled = scale->period > 0 && scale->cycles_per_second > 0;
    u128 whole = (u128)(uint64_t)delay * (uint64_t)(is_scaled ? scale->period : 1);

    /* Below 2^126 before, and at most that of 63 bits after the multiplication. */
    if (is_scaled && whole > ((u128)INT64_MAX * INT64_MAX) / SECOND_NS) {
        return false;
    }
    if (is_scaled) {
        whole = whole * SECOND_NS / (uint64_t)scale->cycles_per_second;
    }
    *ret = (int64_t)whole;

    return whole <= (u128)INT64_MAX;
}

static enum hearth_status read_contention_sample(struct legacy_reader *r, struct hearth_str line,
                                                 const struct contention_scale *scale,
                                                 struct hearth_err *err)
{
    struct hearth_str rest = line;
    int64_t delay, count, *values = r->values; /* contentions, delay */

    if (!hearth_legacy_take_i64(&rest, &delay) || !hearth_legacy_take_i64(&rest, &count) ||
        !hearth_legacy_take(&rest, "@") || delay < 0 || count < 0) {
        return hearth_legacy_fail_line(r, line, "sample \"DELAY COUNT @ ADDRESSES\"", err);
    }
    if (!scale_delay(delay, scale, &values[1]) ||
        __builtin_mul_overflow(count, scale->period > 0 ? scale->period : 1, &values[0])) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the values of line %llu exceed 63 bits",
                           (unsigned long long)r->line_no);
    }
    r->is_open = true;

    return hearth_legacy_add_addresses(r, rest, err);
}

enum hearth_status hearth_legacy_read_contention(struct legacy_reader *r, struct legacy_head *head,
                                                 struct hearth_err *err)
{
    static const struct legacy_type types[] = {{"contentions", "count"}, {"delay", "nanoseconds"}};
    struct contention_scale scale = {.period = 1};
    struct hearth_str line, name, value;
    bool has_samples = false;

    HEARTH_TRY(hearth_legacy_add_types(r, types, HEARTH_ARRAY_LEN(types), err));
    head->period_type = types[0];

    /* Go calls its block profile so; all others are of mutexes. */
    (void)hearth_legacy_line(r, &line);
    r->notes->name = hearth_str_starts(line, HEARTH_STR("--- contention:")) ? "block" : "mutex";

    while (hearth_legacy_line(r, &line)) {
        if (hearth_legacy_is_comment(line)) {
            HEARTH_TRY(hearth_legacy_read_comment(r, line, err));
        } else if (!has_samples && take_attribute(line, &name, &value)) {
            HEARTH_TRY(read_attribute(r, line, &scale, head, err));
        } else {
            has_samples = true;
            HEARTH_TRY(hearth_legacy_close_sample(r, err));
            HEARTH_TRY(read_contention_sample(r, line, &scale, err));
        }
    }
    head->period = scale.period;

    return hearth_legacy_close_sample(r, err);
}
