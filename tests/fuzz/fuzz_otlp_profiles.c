/*
 * fuzz_otlp_profiles.c -- any bytes as an export of profiles: they are refused with a reason, or
 * their profiles have valid indices and texts, and the counts agree.
 */
#include "hearth/format/otlp_profiles.h"

#include "short_memory.h"

static void check_tables(const struct hearth_profile *p)
{
    for (uint32_t i = 0; i < p->n_strings; i++) {
        HEARTH_ASSERT(hearth_str_utf8_valid(p->strings[i]));
    }
    for (uint32_t i = 0; i < p->n_mappings; i++) {
        HEARTH_ASSERT(p->mappings[i].filename < p->n_strings &&
                      p->mappings[i].build_id < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_functions; i++) {
        HEARTH_ASSERT(p->functions[i].name < p->n_strings &&
                      p->functions[i].system_name < p->n_strings &&
                      p->functions[i].filename < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_lines; i++) {
        HEARTH_ASSERT(p->lines[i].function < p->n_functions);
    }
    for (uint32_t i = 0; i < p->n_locations; i++) {
        HEARTH_ASSERT(p->locations[i].first_line + p->locations[i].n_lines <= p->n_lines);
        HEARTH_ASSERT(p->locations[i].mapping == HEARTH_NO_INDEX ||
                      p->locations[i].mapping < p->n_mappings);
    }
}

static void check_profile(const struct hearth_profile *p)
{
    check_tables(p);
    HEARTH_ASSERT(p->n_types == 1 && p->n_samples > 0 && p->strings[0].n == 0);
    HEARTH_ASSERT(p->types[0].type < p->n_strings && p->types[0].unit < p->n_strings);
    HEARTH_ASSERT(p->period_type.type < p->n_strings && p->period_type.unit < p->n_strings);
    HEARTH_ASSERT(p->stack_first[p->n_samples] == p->n_stack_locs &&
                  p->label_first[p->n_samples] == p->n_sample_labels);
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        HEARTH_ASSERT(p->stack_locs[i] < p->n_locations);
    }
    for (uint32_t i = 0; i < p->n_sample_labels; i++) {
        HEARTH_ASSERT(p->sample_labels[i].key < p->n_strings &&
                      p->sample_labels[i].str < p->n_strings);
    }
}

static void check_series(const struct hearth_otlp_profile *profile)
{
    HEARTH_ASSERT(profile->service.n > 0 && hearth_str_utf8_valid(profile->service));
    HEARTH_ASSERT(hearth_str_utf8_valid(profile->name));
    for (size_t i = 0; i < profile->n_labels; i++) {
        HEARTH_ASSERT(profile->labels[i].name.n > 0 && profile->labels[i].value.n > 0 &&
                      hearth_str_utf8_valid(profile->labels[i].name) &&
                      hearth_str_utf8_valid(profile->labels[i].value));
    }
}

static void check_built(const struct hearth_otlp_export *export, size_t i)
{
    struct hearth_profile profile;
    struct hearth_pprof_notes notes = {0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    enum hearth_status status = hearth_otlp_build(export, i, &arena, &profile, &notes, &err);
    HEARTH_ASSERT(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
    if (status == HEARTH_OK) {
        check_profile(&profile);
    }
    end_memory(&arena);
}

static void run_input(const uint8_t *data, size_t size)
{
    const struct hearth_otlp_options options = {
        .limits = {.max_samples = 1000,
                   .max_depth = 8,
                   .max_string_bytes = 64,
                   .max_entries = 100000,
                   .max_frames = 1000000,
                   .max_memory = 32u << 20},
        .max_label_value_bytes = 32,
    };
    struct hearth_otlp_export export = {0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    enum hearth_status status = hearth_otlp_decode((struct hearth_str){(const char *)data, size},
                                                   &options, &arena, &export, &err);
    HEARTH_ASSERT(status == HEARTH_OK || err.msg[0] != '\0');
    if (status == HEARTH_OK) {
        HEARTH_ASSERT(export.n_rejected + export.n_empty <= export.n_received);
        HEARTH_ASSERT(export.n_bad_samples + export.n_rejected == 0 ||
                      export.first.status != HEARTH_OK);
        for (size_t i = 0; i < export.n_profiles; i++) {
            check_series(&export.profiles[i]);
            check_built(&export, i);
        }
    }
    end_memory(&arena);
}
