/*
 * demangle_names.c -- each mangled name is demangled once, however many functions have it: the
 * table of strings grows by the readable names.
 */
#include "hearth/format/demangle_names.h"

#include <assert.h>

static bool has_mangled_name(const struct hearth_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_functions; i++) {
        if (hearth_demangle_applies(profile->strings[profile->functions[i].name])) {
            return true;
        }
    }

    return false;
}

/* Demangles the name of one function. readable: per string 0 or the index of its readable name. */
static bool demangle_function(struct hearth_function *function, enum hearth_demangle how,
                              struct hearth_profile *profile, uint32_t *readable,
                              struct hearth_arena *arena)
{
    uint32_t name = function->name;
    struct hearth_str text = profile->strings[name];

    if (!hearth_demangle_applies(text)) {
        return true;
    }

    /* The first function with this name. */
    if (readable[name] == 0) {
        struct hearth_str plain;
        if (!hearth_demangle(text, how, arena, &plain)) {
            return false;
        }

        readable[name] = name;
        if (plain.p != text.p) {
            profile->strings[profile->n_strings] = plain;
            readable[name] = profile->n_strings++;
        }
    }

    if (readable[name] != name) {
        function->name = readable[name];
        function->system_name = function->system_name == 0 ? name : function->system_name;
    }

    return true;
}

enum hearth_status hearth_profile_demangle(struct hearth_profile *profile, enum hearth_demangle how,
                                           struct hearth_arena *arena, struct hearth_err *err)
{
    assert(profile != NULL && arena != NULL);

    uint32_t n = profile->n_strings, n_max;
    if (how == HEARTH_DEMANGLE_NONE || !has_mangled_name(profile)) {
        return HEARTH_OK;
    }
    if (__builtin_add_overflow(n, profile->n_functions, &n_max)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile has too many functions and strings: more than 2^32");
    }

    /* Copies, because a decoder may have lent the profile to others, too. */
    struct hearth_profile changed = *profile;
    uint32_t *readable = hearth_arena_calloc(arena, n, sizeof *readable);
    changed.strings = hearth_arena_array(arena, n_max, sizeof *changed.strings);
    changed.functions = hearth_arena_array(arena, profile->n_functions, sizeof *changed.functions);
    if (readable == NULL || changed.strings == NULL || changed.functions == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    memcpy(changed.strings, profile->strings, n * sizeof *changed.strings);
    memcpy(changed.functions, profile->functions, profile->n_functions * sizeof *changed.functions);
    for (uint32_t i = 0; i < changed.n_functions; i++) {
        if (!demangle_function(&changed.functions[i], how, &changed, readable, arena)) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    *profile = changed;

    return HEARTH_OK;
}
