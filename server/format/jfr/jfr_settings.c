/*
 * jfr_settings.c -- the settings of a recording that values of its samples depend on, and the
 * endpoints of Datadog's root spans.
 */
#include "hearth/base/clock.h"

#include "jfr/jfr_samples.h"

#include <assert.h>

/* "20 ms", "10 ns", "1 s" as nanoseconds; 0 for other texts. */
static int64_t read_period(struct hearth_str text)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {
        {"ns", 1},
        {"us", 1000},
        {"ms", HEARTH_NS_PER_MS},
        {"s", HEARTH_NS_PER_SEC},
    };
    size_t space = hearth_str_find(text, ' ', 0);
    int64_t n, ns;

    if (space == text.n || !hearth_str_to_i64(hearth_str_n(text.p, space), &n) || n <= 0) {
        return 0;
    }

    struct hearth_str unit = hearth_str_n(text.p + space + 1, text.n - space - 1);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(units); i++) {
        if (hearth_str_eq_c(unit, units[i].unit)) {
            return __builtin_mul_overflow(n, units[i].ns, &ns) ? 0 : ns;
        }
    }

    return 0;
}

/*
 * The interval that a setting "interval" of an event type is about; NULL: it is not the time
 * between two samples. Datadog's profiler has the setting also for its samples of allocations.
 */
static int64_t *find_set_interval(struct jfr_settings *settings, struct hearth_str type)
{
    if (hearth_str_eq_c(type, "datadog.MethodSample")) {
        return &settings->wall_interval_ns;
    }

    bool is_other = hearth_str_starts(type, HEARTH_STR("datadog.")) &&
                    !hearth_str_eq_c(type, "datadog.ExecutionSample");

    return is_other ? NULL : &settings->cpu_interval_ns;
}

/* One row of settings: `name` of the event type is `value`. */
static void apply_setting(struct jfr_sampler *sampler, struct hearth_str type,
                          struct hearth_str name, struct hearth_str value)
{
    struct jfr_settings *settings = &sampler->settings;
    int64_t *interval = find_set_interval(settings, type);
    int64_t ns;

    if (hearth_str_eq_c(name, "event") && value.n > 0 && value.n <= 64) {
        settings->event = hearth_arena_str(sampler->arena, value);
        settings->is_wall = hearth_str_eq_c(value, "wall");
    } else if (hearth_str_eq_c(name, "interval")) {
        bool is_number = interval != NULL && hearth_str_to_i64(value, &ns);
        if (is_number && ns > 0) {
            *interval = ns;
        } else if (is_number && hearth_str_eq_c(type, "jdk.ExecutionSample")) {
            settings->is_default = ns == 0;
        }
    } else if (hearth_str_eq_c(name, "wall") && hearth_str_to_i64(value, &ns) && ns >= 0) {
        settings->wall_interval_ns = ns;
        settings->is_wall_default = ns == 0;
    } else if (hearth_str_eq_c(type, "jdk.ExecutionSample") && hearth_str_eq_c(name, "period")) {
        ns = read_period(value);
        settings->cpu_interval_ns = ns > 0 ? ns : settings->cpu_interval_ns;
    }
}

/* Datadog's intervals are milliseconds. */
static void apply_datadog_interval(const struct jfr_values *values, enum jfr_slot slot,
                                   int64_t *interval_ns)
{
    int64_t ms = (int64_t)jfr_u64(values, slot);
    if (ms > 0 && ms <= INT64_MAX / HEARTH_NS_PER_MS) {
        *interval_ns = ms * HEARTH_NS_PER_MS;
    }
}

void hearth_jfr_apply_settings(struct jfr_sampler *sampler, const struct jfr_pools *pools,
                               const struct jfr_values *values)
{
    assert(sampler != NULL && pools != NULL);

    /* Datadog's profiler writes its settings as one event. */
    apply_datadog_interval(values, JFR_SLOT_CPU_INTERVAL, &sampler->settings.cpu_interval_ns);
    apply_datadog_interval(values, JFR_SLOT_WALL_INTERVAL, &sampler->settings.wall_interval_ns);
    if (!jfr_has(values, JFR_SLOT_NAME) || !jfr_has(values, JFR_SLOT_VALUE)) {
        return;
    }

    const struct jfr_type *type = hearth_jfr_type_of_id(pools->types, jfr_u64(values, JFR_SLOT_ID));
    apply_setting(sampler, type != NULL ? type->name : HEARTH_STR(""),
                  hearth_jfr_text_at(pools, values->v[JFR_SLOT_NAME]),
                  hearth_jfr_text_at(pools, values->v[JFR_SLOT_VALUE]));
}
