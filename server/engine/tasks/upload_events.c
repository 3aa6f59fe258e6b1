/*
 * upload_events.c -- how the event of a pprof task determines the types of its file (contract:
 * task_uploads_internal.h).
 */
#include "hearth/format/ingest_types.h"

#include "tasks/task_uploads_internal.h"

#include <assert.h>

static const struct {
    const char *event, *name; /* name: __name__ of its ordinary profile */
    const char *prefix;       /* prefix of the kept sample types */
} g_events[] = {
    {"heap", "memory", "inuse_"},
    {"allocs", "allocs", "alloc_"},
    {"block", "block", ""},
    {"mutex", "mutex", ""},
};

static size_t find_pprof_event(struct hearth_str event)
{
    size_t i = 0;

    while (i < HEARTH_ARRAY_LEN(g_events) && !hearth_str_eq_c(event, g_events[i].event)) {
        i++;
    }
    return i;
}

bool hearth_upload_is_cumulative(struct hearth_str event, struct hearth_str type)
{
    return find_pprof_event(event) < HEARTH_ARRAY_LEN(g_events) &&
           (hearth_str_starts(type, HEARTH_STR("alloc_")) || hearth_str_eq_c(type, "contentions") ||
            hearth_str_eq_c(type, "delay"));
}

struct hearth_str hearth_upload_name(const struct hearth_profile *profile, struct hearth_str event)
{
    size_t i = find_pprof_event(event);
    return i < HEARTH_ARRAY_LEN(g_events) ? hearth_str_c(g_events[i].name)
                                          : hearth_ingest_pprof_name(profile, NULL, 0);
}

void hearth_upload_keep_types(struct hearth_profile *p, struct hearth_str event)
{
    assert(p->n_samples == 0 || p->values != NULL);

    size_t i = find_pprof_event(event);

    if (i == HEARTH_ARRAY_LEN(g_events)) {
        return;
    }

    /* Count the columns to keep. Without any, the file is not the one that Go makes for the event,
     * and stays unchanged. */
    struct hearth_str prefix = hearth_str_c(g_events[i].prefix);
    uint32_t n_kept = 0;
    for (uint32_t t = 0; t < p->n_types; t++) {
        n_kept += hearth_str_starts(p->strings[p->types[t].type], prefix);
    }

    if (n_kept == 0 || n_kept == p->n_types) {
        return;
    }

    /* Move the kept values to the front; each is read before it is overwritten. */
    size_t to = 0;
    for (size_t from = 0; from < (size_t)p->n_samples * p->n_types; from++) {
        if (hearth_str_starts(p->strings[p->types[from % p->n_types].type], prefix)) {
            p->values[to++] = p->values[from];
        }
    }

    /* Drop the other types. */
    uint32_t n = 0;
    for (uint32_t t = 0; t < p->n_types; t++) {
        if (hearth_str_starts(p->strings[p->types[t].type], prefix)) {
            p->types[n++] = p->types[t];
        }
    }

    p->n_types = n;
}
