/* ingest_fix.c -- changes to a decoded upload: names written by agents, units, limits. */
#include "hearth/base/limit.h"
#include "hearth/format/ingest_types.h"

#include "pprof/pprof_text.h"

#include <assert.h>

#define SEC_NS INT64_C(1000000000)

/* ---- agents ---- */

/* A copy of the string table with room for `more` strings after its end. */
static struct hearth_str *grow_strings(struct hearth_profile *profile, uint32_t more,
                                       struct hearth_arena *arena)
{
    struct hearth_str *grown =
        hearth_arena_array(arena, (size_t)profile->n_strings + more, sizeof *grown);
    if (grown != NULL && profile->n_strings > 0) {
        memcpy(grown, profile->strings, profile->n_strings * sizeof *grown);
    }

    return grown;
}

/* Name each function that has a file "<filename> <name>". */
static enum hearth_status put_files_first(bool skip_absolute, struct hearth_arena *arena,
                                          struct hearth_profile *profile, struct hearth_err *err)
{
    uint32_t n = profile->n_strings, n_max;
    if (__builtin_add_overflow(n, profile->n_functions, &n_max)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile has too many functions and strings: more than 2^32");
    }

    struct hearth_str *strings = grow_strings(profile, profile->n_functions, arena);
    if (strings == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t i = 0; i < profile->n_functions; i++) {
        struct hearth_function *function = &profile->functions[i];
        struct hearth_str file = strings[function->filename], name = strings[function->name];
        if (file.n == 0 || (skip_absolute && file.p[0] == '/')) {
            continue;
        }

        char *text = hearth_arena_alloc(arena, file.n + 1 + name.n);
        if (text == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        memcpy(text, file.p, file.n);
        text[file.n] = ' ';
        if (name.n > 0) {
            memcpy(text + file.n + 1, name.p, name.n);
        }

        strings[n] = hearth_str_n(text, file.n + 1 + name.n);
        function->name = n++;
    }

    assert(n <= n_max);
    profile->strings = strings;
    profile->n_strings = n;

    return HEARTH_OK;
}

/* Replace "-" by "_" in the names of the sample types. */
static enum hearth_status fix_dashes(struct hearth_arena *arena, struct hearth_profile *profile,
                                     struct hearth_err *err)
{
    struct hearth_str *strings = grow_strings(profile, profile->n_types, arena);
    if (strings == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    profile->strings = strings;
    for (uint32_t i = 0; i < profile->n_types; i++) {
        struct hearth_str type = strings[profile->types[i].type];
        if (hearth_str_find(type, '-', 0) == type.n) {
            continue;
        }

        char *text = hearth_arena_strndup(arena, type.p, type.n);
        if (text == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        for (char *dash = strchr(text, '-'); dash != NULL; dash = strchr(dash, '-')) {
            *dash = '_';
        }

        strings[profile->n_strings] = hearth_str_n(text, type.n);
        profile->types[i].type = profile->n_strings++;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_ingest_fix_spy(struct hearth_str spy, struct hearth_arena *arena,
                                         struct hearth_profile *profile, struct hearth_err *err)
{
    bool is_pyspy = hearth_str_eq_c(spy, "pyspy");
    if (is_pyspy || hearth_str_eq_c(spy, "rbspy") || hearth_str_eq_c(spy, "scripting")) {
        return put_files_first(is_pyspy, arena, profile, err);
    }
    if (hearth_str_eq_c(spy, "dotnetspy")) {
        return fix_dashes(arena, profile, err);
    }

    return HEARTH_OK;
}

/* ---- units ---- */

int64_t hearth_ingest_factor(const struct hearth_ingest_type *type, int64_t sample_rate)
{
    assert(type != NULL);

    if (type->factor != 0 || sample_rate <= 0) {
        return type->factor > 1 ? type->factor : 1;
    }

    return sample_rate < SEC_NS ? SEC_NS / sample_rate : 1;
}

enum hearth_status hearth_ingest_scale(int64_t factor, struct hearth_profile *profile,
                                       struct hearth_err *err)
{
    if (factor <= 1) {
        return HEARTH_OK;
    }

    size_t n = (size_t)profile->n_samples * profile->n_types;
    for (size_t i = 0; i < n; i++) {
        if (__builtin_mul_overflow(profile->values[i], factor, &profile->values[i])) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "a value times %lld (its unit or the sample rate) needs more than "
                               "63 bits",
                               (long long)factor);
        }
    }

    return HEARTH_OK;
}

/* ---- limits ---- */

/* Remove the leaf ends of deeper stacks; the remaining frames move forward in place. */
static void cut_stacks(uint32_t max_depth, struct hearth_profile *profile,
                       struct hearth_pprof_notes *notes)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        uint32_t from = profile->stack_first[i], end = profile->stack_first[i + 1];
        if (end - from > max_depth) {
            notes->stacks_cut++;
            notes->frames_cut += end - from - max_depth;
            from = end - max_depth;
        }
        assert(at <= from); /* frames only move forward */
        profile->stack_first[i] = at;
        for (uint32_t k = from; k < end; k++) {
            profile->stack_locs[at++] = profile->stack_locs[k];
        }
    }

    profile->stack_first[profile->n_samples] = at;
    profile->n_stack_locs = at;
}

enum hearth_status hearth_ingest_cut(const struct hearth_pprof_limits *limits,
                                     struct hearth_arena *arena, struct hearth_profile *profile,
                                     struct hearth_pprof_notes *notes, struct hearth_err *err)
{
    if (limits->max_samples != 0 && profile->n_samples > limits->max_samples) {
        return HEARTH_FAIL(
            err, HEARTH_RESOURCE_EXHAUSTED,
            "the profile has %u samples; the limit is %u" HEARTH_RAISE_LIMIT("max-samples"),
            profile->n_samples, limits->max_samples);
    }

    if (limits->max_types != 0 && profile->n_types > limits->max_types) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the profile has %u sample types; the limit is %u" HEARTH_RAISE_LIMIT(
                               "max-sample-types"),
                           profile->n_types, limits->max_types);
    }

    if (limits->max_depth != 0) {
        cut_stacks(limits->max_depth, profile, notes);
    }

    for (uint32_t i = 0; i < profile->n_strings && limits->max_string_bytes != 0; i++) {
        if (profile->strings[i].n > limits->max_string_bytes &&
            !hearth_pprof_mend_text(&profile->strings[i], limits->max_string_bytes, arena, notes)) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    return HEARTH_OK;
}
