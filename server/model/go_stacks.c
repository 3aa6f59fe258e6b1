/*
 * go_stacks.c -- see go_stacks.h.
 *
 */
#include "hearth/model/go_stacks.h"

#include "hearth/base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- names and types ---- */

/* Where the type arguments begin and what is behind them. False: there are none. */
static bool find_shape(struct hearth_str name, size_t *ret_from, size_t *ret_behind)
{
    static const char shape[] = "[go.shape.";
    const size_t n_shape = sizeof shape - 1;
    for (size_t at = 0; at + n_shape < name.n; at++) {
        const char *bracket = memchr(name.p + at, '[', name.n - at);
        if (bracket == NULL) {
            return false;
        }
        at = (size_t)(bracket - name.p);
        if (name.n - at <= n_shape || memcmp(bracket, shape, n_shape) != 0) {
            continue;
        }
        size_t behind = name.n;
        while (behind > at + n_shape && name.p[behind - 1] != ']') {
            behind--;
        }
        *ret_from = at;
        *ret_behind = behind;
        return behind > at + n_shape;
    }
    return false;
}

bool hearth_go_name_is_generic(struct hearth_str name)
{
    size_t from, behind;
    return find_shape(name, &from, &behind);
}

bool hearth_go_name_shorten(struct hearth_str name, char *out, size_t *ret_n)
{
    static const char dots[] = "[...]";
    size_t from, behind;
    if (!find_shape(name, &from, &behind)) {
        return false;
    }
    memcpy(out, name.p, from);
    memcpy(out + from, dots, sizeof dots - 1);
    memcpy(out + from + sizeof dots - 1, name.p + behind, name.n - behind);
    *ret_n = from + sizeof dots - 1 + name.n - behind;
    return true;
}

uint32_t hearth_go_max_frames(const struct hearth_profile_type *type)
{
    if (hearth_str_eq_c(type->sample_type, "cpu") || hearth_str_eq_c(type->period_type, "cpu")) {
        return HEARTH_GO_MAX_CPU_FRAMES;
    }
    bool is_heap = hearth_str_starts(type->sample_type, HEARTH_STR("alloc_")) ||
                   hearth_str_starts(type->sample_type, HEARTH_STR("inuse_"));
    return is_heap ? HEARTH_GO_MAX_HEAP_FRAMES : 0;
}

