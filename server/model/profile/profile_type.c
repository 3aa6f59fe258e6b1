/* profile_type.c -- profile type ids: parse, format, and which types are gauges. */
#include "hearth/model/profile_type.h"

#define N_PARTS 5u

enum hearth_status hearth_profile_type_parse(struct hearth_str id,
                                             struct hearth_profile_type *ret_type,
                                             struct hearth_err *err)
{
    struct hearth_str part[N_PARTS + 1];
    size_t n = 0, from = 0;

    for (;;) {
        size_t colon = hearth_str_find(id, ':', from);
        if (n == N_PARTS + 1) {
            n++; /* a seventh part */
            break;
        }
        part[n++] = hearth_str_n(id.n == 0 ? "" : id.p + from, colon - from);
        if (colon >= id.n) {
            break;
        }
        from = colon + 1;
    }

    if (n != N_PARTS && n != N_PARTS + 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profile type \"" HEARTH_STR_FMT "\" is not of the form "
                           "<name>:<sample-type>:<sample-unit>:<period-type>:<period-unit>(:delta)",
                           HEARTH_STR_ARG(id));
    }

    *ret_type = (struct hearth_profile_type){part[0], part[1], part[2], part[3], part[4]};

    return HEARTH_OK;
}

static void append_part(struct hearth_buf *out, struct hearth_str part)
{
    char *at = hearth_buf_reserve(out, part.n);

    if (at == NULL) {
        return;
    }

    for (size_t i = 0; i < part.n; i++) {
        unsigned char c = (unsigned char)part.p[i];
        at[i] = part.p[i];
        if (c < 0x20 || c == 0x7f || c == ':') {
            at[i] = '_';
        }
    }

    out->n += part.n;
}

void hearth_profile_type_format(const struct hearth_profile_type *type, struct hearth_buf *out)
{
    append_part(out, type->name);
    hearth_buf_byte(out, ':');
    append_part(out, type->sample_type);
    hearth_buf_byte(out, ':');
    append_part(out, type->sample_unit);
    hearth_buf_byte(out, ':');
    append_part(out, type->period_type);
    hearth_buf_byte(out, ':');
    append_part(out, type->period_unit);
}

/* a == b, '-' and '_' being the same; with prefix_only: a starts with b. */
static bool same_name(struct hearth_str a, struct hearth_str b, bool prefix_only)
{
    if (a.n < b.n || (!prefix_only && a.n != b.n)) {
        return false;
    }

    for (size_t i = 0; i < b.n; i++) {
        bool same = a.p[i] == b.p[i] || (a.p[i] == '-' && b.p[i] == '_');
        if (!same) {
            return false;
        }
    }

    return true;
}

bool hearth_profile_type_is_gauge(const struct hearth_profile_type *type)
{
    /* Go; Datadog's .NET and Node (inuse-*) and libdatadog (heap-live-*, heap-space); DeepFlow's
     * eBPF agent; async-profiler's live objects; heaps of gperftools and V8 (objects, space). */
    static const char *const names[] = {"inuse",     "goroutine",  "goroutines", "goroutineleak",
                                        "mem_inuse", "hbm_inuse",  "live",       "heap_live",
                                        "objects",   "heap_space", "space",      "threadcreate"};
    static const char *const prefixes[] = {"inuse_", "heap_live_", "live_"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (same_name(type->sample_type, hearth_str_c(names[i]), false)) {
            return true;
        }
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(prefixes); i++) {
        if (same_name(type->sample_type, hearth_str_c(prefixes[i]), true)) {
            return true;
        }
    }

    return false;
}
