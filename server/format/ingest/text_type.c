/*
 * text_type.c -- the profile type of a text format, which has none of its own: by the ending of the
 * application's name, otherwise by the unit and the aggregation that the upload names.
 *
 * If both say something they must agree, because either may be a mistake of the client.
 */
#include "hearth/format/ingest_types.h"

#include <assert.h>

#define COUNT_NS 0 /* factor of values that are numbers of samples: the time between two samples */
#define SEC_NS   INT64_C(1000000000)

#define MAX_QUOTED_BYTES 64u

/* ---- endings of names ---- */

#define PER_CPU "cpu", "nanoseconds"
#define NONE    "", ""

enum aggregation {
    ANY,
    SUM,     /* what happened in the time of the profile */
    AVERAGE, /* what there was at one moment */
};

static const struct text_type {
    struct hearth_ingest_type type;
    enum aggregation aggregation;
} g_text_types[] = {
#define X(ending, name, type, unit, period, factor, aggregation) \
    {{ending, name, type, unit, period, factor}, aggregation},
#include "ingest/text_types.def"
#undef X
};

const char *hearth_ingest_type_suffixes(void)
{
#define X(ending, name, type, unit, period, factor, aggregation) ", " ending
    static const char list[] =
#include "ingest/text_types.def"
        ;
#undef X

    return list + strlen(", ");
}

static const struct text_type *find_suffix(struct hearth_str suffix)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_text_types); i++) {
        if (hearth_str_eq_c(suffix, g_text_types[i].type.suffix)) {
            return &g_text_types[i];
        }
    }

    return NULL;
}

/*
 * Splits "service.suffix". NULL, and the whole name as service, if the suffix is not in the table;
 * *ret_suffix is empty if the name has no dot.
 */
static const struct text_type *split_app(struct hearth_str app, struct hearth_str *ret_service,
                                         struct hearth_str *ret_suffix)
{
    size_t dot = app.n;
    while (dot > 0 && app.p[dot - 1] != '.') {
        dot--;
    }

    *ret_suffix = dot == 0 ? HEARTH_STR("") : hearth_str_n(app.p + dot - 1, app.n - dot + 1);
    const struct text_type *found =
        dot == 0 ? NULL : find_suffix(hearth_str_n(app.p + dot, app.n - dot));
    *ret_service = found == NULL ? app : hearth_str_n(app.p, dot - 1);

    return found;
}

/* ---- units ---- */

static const struct text_unit {
    const char *name;
    const char *unit;          /* that of the types that it fits */
    const char *family;        /* the only __name__ that it fits; NULL: any */
    int64_t factor;            /* of times, in nanoseconds */
    const char *sum, *average; /* the suffix that it stands for, by aggregation; NULL: none */
} g_units[] = {
    {"samples", "count", NULL, 1, "cpu", NULL},
    {"count", "count", NULL, 1, "cpu", NULL},
    {"trace_samples", "count", NULL, 1, "cpu", NULL},
    {"objects", "count", "memory", 1, "alloc_objects", "inuse_objects"},
    {"bytes", "bytes", "memory", 1, "alloc_space", "inuse_space"},
    {"goroutines", "count", "goroutine", 1, NULL, "goroutines"},
    {"lock_samples", "count", "mutex", 1, "mutex_count", NULL},
    {"lock_nanoseconds", "nanoseconds", "mutex", 1, "mutex_duration", NULL},
    {"exceptions", "count", "exceptions", 1, "exceptions", NULL},
    {"seconds", "nanoseconds", NULL, SEC_NS, "cpu", NULL},
    {"milliseconds", "nanoseconds", NULL, SEC_NS / 1000, "cpu", NULL},
    {"microseconds", "nanoseconds", NULL, 1000, "cpu", NULL},
    {"nanoseconds", "nanoseconds", NULL, 1, "cpu", NULL},
};

#define UNIT_NAMES                                                              \
    "samples, count, trace_samples, objects, bytes, goroutines, lock_samples, " \
    "lock_nanoseconds, exceptions, seconds, milliseconds, microseconds or nanoseconds"

static const struct text_unit *find_unit(struct hearth_str name)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_units); i++) {
        if (hearth_str_eq_c(name, g_units[i].name)) {
            return &g_units[i];
        }
    }

    return NULL;
}

static struct hearth_str cut_quoted_value(struct hearth_str value)
{
    return hearth_str_n(value.p, value.n > MAX_QUOTED_BYTES ? MAX_QUOTED_BYTES : value.n);
}

enum hearth_status hearth_ingest_values_check(const struct hearth_ingest_values *values,
                                              struct hearth_err *err)
{
    assert(values != NULL);

    if (values->unit.n > 0 && find_unit(values->unit) == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "units \"" HEARTH_STR_FMT "\" is unknown; it may be " UNIT_NAMES,
                           HEARTH_STR_ARG(cut_quoted_value(values->unit)));
    }

    if (values->aggregation.n > 0 && !hearth_str_eq_c(values->aggregation, "sum") &&
        !hearth_str_eq_c(values->aggregation, "average")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "aggregationType \"" HEARTH_STR_FMT
                           "\" is unknown; it may be sum or average",
                           HEARTH_STR_ARG(cut_quoted_value(values->aggregation)));
    }

    return HEARTH_OK;
}

static enum aggregation parse_aggregation(struct hearth_str text)
{
    return text.n == 0 ? ANY : hearth_str_eq_c(text, "sum") ? SUM : AVERAGE;
}

/* True for endings such as "seconds", which are units of time themselves. */
static bool is_time_ending(const struct hearth_ingest_type *type)
{
    return type->factor != COUNT_NS && strcmp(type->name, "wall") == 0;
}

/* True if values of the unit can be those of the type. */
static bool fits_unit(const struct hearth_ingest_type *type, const struct text_unit *unit)
{
    bool is_lock = strcmp(type->name, "mutex") == 0 || strcmp(type->name, "block") == 0;
    const char *family = is_lock ? "mutex" : type->name;
    if (unit->family != NULL && strcmp(unit->family, family) != 0) {
        return false;
    }

    if (type->factor == COUNT_NS) {
        return strcmp(unit->unit, "bytes") != 0;
    }
    if (is_time_ending(type) && type->factor != unit->factor) {
        return false;
    }

    return strcmp(unit->unit, type->unit) == 0;
}

/* ---- both ---- */

/* The type that unit and aggregation stand for without an ending; NULL: none. */
static const struct text_type *find_type_of_unit(const struct text_unit *unit,
                                                 enum aggregation aggregation)
{
    bool is_average = aggregation == AVERAGE || (aggregation == ANY && unit->sum == NULL);
    const char *suffix = is_average ? unit->average : unit->sum;

    return suffix == NULL ? NULL : find_suffix(hearth_str_c(suffix));
}

static enum hearth_status check_agreement(const struct text_type *type,
                                          const struct hearth_ingest_values *values,
                                          struct hearth_str suffix, struct hearth_err *err)
{
    const struct text_unit *unit = find_unit(values->unit);
    enum aggregation aggregation = parse_aggregation(values->aggregation);
    struct hearth_str ending = suffix.n == 0 ? HEARTH_STR("no ending: cpu") : suffix;

    if (unit != NULL && !fits_unit(&type->type, unit)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "units \"%s\" contradicts the application name (" HEARTH_STR_FMT
                           "), whose values are %s",
                           unit->name, HEARTH_STR_ARG(ending), type->type.unit);
    }

    if (aggregation != ANY && type->aggregation != ANY && aggregation != type->aggregation) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "aggregationType \"" HEARTH_STR_FMT
                           "\" contradicts the application name (" HEARTH_STR_FMT
                           "), whose values have the aggregation %s",
                           HEARTH_STR_ARG(values->aggregation), HEARTH_STR_ARG(ending),
                           type->aggregation == SUM ? "sum" : "average");
    }

    return HEARTH_OK;
}

/* The type as it is stored: times are scaled by their unit, numbers of samples by the rate. */
static struct hearth_ingest_type make_stored_type(const struct hearth_ingest_type *type,
                                                  const struct hearth_ingest_values *values)
{
    static const struct hearth_ingest_type counted[] = {
        {"", "process_cpu", "samples", "count", NONE, 1},
        {"", "wall", "samples", "count", NONE, 1},
    };
    const struct text_unit *unit = find_unit(values->unit);
    struct hearth_ingest_type stored = *type;

    if (unit != NULL && strcmp(unit->unit, "nanoseconds") == 0) {
        stored.factor = unit->factor;
    } else if (type->factor == COUNT_NS && values->sample_rate == 0) {
        /* The time that a sample represents is unknown: it remains a count. */
        stored = counted[strcmp(type->name, "wall") == 0];
    }

    return stored;
}

enum hearth_status hearth_ingest_type_find(struct hearth_str app,
                                           const struct hearth_ingest_values *values,
                                           struct hearth_ingest_type *ret_type,
                                           struct hearth_str *ret_service, struct hearth_err *err)
{
    assert(values != NULL && values->sample_rate >= 0 && ret_type != NULL && ret_service != NULL);

    struct hearth_str service, suffix;
    const struct text_type *type = split_app(app, &service, &suffix);
    HEARTH_TRY(hearth_ingest_values_check(values, err));

    /* Without a known ending the unit decides; without both, a name without a dot is CPU time. */
    const struct text_unit *unit = find_unit(values->unit);
    if (type == NULL && unit != NULL) {
        type = find_type_of_unit(unit, parse_aggregation(values->aggregation));
        if (type == NULL) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "aggregationType \"" HEARTH_STR_FMT "\" contradicts units \"%s\"",
                               HEARTH_STR_ARG(values->aggregation), unit->name);
        }
    } else if (type == NULL && suffix.n == 0) {
        type = &g_text_types[0];
    } else if (type == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "unknown profile type: the application name \"" HEARTH_STR_FMT
                           "\" ends with none of %s, and no units are given",
                           HEARTH_STR_ARG(cut_quoted_value(app)), hearth_ingest_type_suffixes());
    }

    HEARTH_TRY(check_agreement(type, values, suffix, err));
    *ret_type = make_stored_type(&type->type, values);
    *ret_service = service;

    return HEARTH_OK;
}
