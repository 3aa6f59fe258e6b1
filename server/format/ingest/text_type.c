/*
 * text_type.c -- the profile type of a text format, which has none of its own: by the ending of the
 * application's name.
 */
#include "hearth/format/ingest_types.h"

#include <assert.h>

#define COUNT_NS 0 /* factor of values that are numbers of samples: the time between two samples */
#define SEC_NS   INT64_C(1000000000)

#define CPU     "cpu", "nanoseconds"
#define PER_CPU "cpu", "nanoseconds"
#define NONE    "", ""

static const struct hearth_ingest_type g_types[] = {
    {"cpu", "process_cpu", CPU, PER_CPU, COUNT_NS},
    {"itimer", "process_cpu", CPU, PER_CPU, COUNT_NS},
    {"wall", "wall", "wall", "nanoseconds", PER_CPU, COUNT_NS},
    {"inuse_objects", "memory", "inuse_objects", "count", NONE, 1},
    {"alloc_objects", "memory", "alloc_objects", "count", NONE, 1},
    {"inuse_space", "memory", "inuse_space", "bytes", NONE, 1},
    {"alloc_space", "memory", "alloc_space", "bytes", NONE, 1},
    {"goroutines", "goroutine", "goroutines", "count", NONE, 1},
    {"mutex_count", "mutex", "contentions", "count", NONE, 1},
    {"mutex_duration", "mutex", "delay", "nanoseconds", NONE, 1},
    {"block_count", "block", "contentions", "count", NONE, 1},
    {"lock_count", "block", "contentions", "count", NONE, 1},
    {"block_duration", "block", "delay", "nanoseconds", NONE, 1},
    {"lock_duration", "block", "delay", "nanoseconds", NONE, 1},
    {"alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count", NONE, 1},
    {"alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes", NONE, 1},
    {"alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count", NONE, 1},
    {"alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes", NONE, 1},
    {"live", "memory", "live", "count", NONE, 1},
    {"exceptions", "exceptions", "samples", "count", NONE, 1},
    {"seconds", "wall", "wall", "nanoseconds", PER_CPU, SEC_NS},
    {"milliseconds", "wall", "wall", "nanoseconds", PER_CPU, SEC_NS / 1000},
    {"microseconds", "wall", "wall", "nanoseconds", PER_CPU, 1000},
    {"nanoseconds", "wall", "wall", "nanoseconds", PER_CPU, 1},
    {"bytes", "memory", "samples", "bytes", NONE, 1},
};

/* Without a sample rate the time that a sample represents is unknown: it remains a count. */
static const struct hearth_ingest_type *choose_by_rate(const struct hearth_ingest_type *type,
                                                       int64_t rate)
{
    static const struct hearth_ingest_type counted[] = {
        {"", "process_cpu", "samples", "count", NONE, 1},
        {"", "wall", "samples", "count", NONE, 1},
    };

    if (type->factor != COUNT_NS || rate > 0) {
        return type;
    }

    return &counted[strcmp(type->name, "wall") == 0];
}

const struct hearth_ingest_type *hearth_ingest_type_of(struct hearth_str app, int64_t sample_rate,
                                                       struct hearth_str *ret_service)
{
    assert(ret_service != NULL);

    size_t dot = app.n;
    while (dot > 0 && app.p[dot - 1] != '.') {
        dot--;
    }

    if (dot == 0) {
        *ret_service = app;
        return choose_by_rate(&g_types[0], sample_rate);
    }

    struct hearth_str suffix = {app.p + dot, app.n - dot};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_types); i++) {
        if (hearth_str_eq_c(suffix, g_types[i].suffix)) {
            *ret_service = hearth_str_n(app.p, dot - 1);
            return choose_by_rate(&g_types[i], sample_rate);
        }
    }

    return NULL;
}

const char *hearth_ingest_type_suffixes(void)
{
    return "cpu, itimer, wall, inuse_objects, inuse_space, alloc_objects, alloc_space, goroutines, "
           "mutex_count, mutex_duration, block_count, block_duration, lock_count, lock_duration, "
           "live, exceptions, bytes, seconds, milliseconds, microseconds, nanoseconds";
}
