/*
 * fuzz_perf_script.c -- any text as `perf script` output: an error, or a profile whose indices all
 * hold and whose sample count is the number of records.
 */
#include "hearth/format/perf_script.h"

#include "short_memory.h"

static void check_symbols(const struct hearth_profile *p)
{
    for (uint32_t i = 0; i < p->n_strings; i++) {
        HEARTH_ASSERT(hearth_str_utf8_valid(p->strings[i]));
    }
    for (uint32_t i = 0; i < p->n_locations; i++) {
        const struct hearth_location *l = &p->locations[i];
        HEARTH_ASSERT(l->mapping == HEARTH_NO_INDEX || l->mapping < p->n_mappings);
        HEARTH_ASSERT(l->n_lines <= p->n_lines && l->first_line <= p->n_lines - l->n_lines);
    }
    for (uint32_t i = 0; i < p->n_lines; i++) {
        HEARTH_ASSERT(p->lines[i].function < p->n_functions);
    }
    for (uint32_t i = 0; i < p->n_functions; i++) {
        HEARTH_ASSERT(p->functions[i].name < p->n_strings &&
                      p->functions[i].filename < p->n_strings);
    }
}

static void check_samples(const struct hearth_profile *p, uint64_t n_records)
{
    uint64_t n_samples = 0;
    HEARTH_ASSERT(p->n_types > 0 && p->stack_first[p->n_samples] == p->n_stack_locs);
    for (uint32_t s = 0; s < p->n_samples; s++) {
        HEARTH_ASSERT(p->stack_first[s] <= p->stack_first[s + 1]);
        n_samples += (uint64_t)p->values[(size_t)s * p->n_types];
    }
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        HEARTH_ASSERT(p->stack_locs[i] < p->n_locations);
    }
    if (hearth_str_eq_c(p->strings[p->types[0].type], "samples") && p->n_types <= 2 &&
        p->types[0].type != p->period_type.type) {
        /* With two types, the first may be that of records without an event. */
        HEARTH_ASSERT(p->n_types == 1 ? n_samples == n_records : n_samples <= n_records);
    }
    HEARTH_ASSERT(p->duration_ns >= 0);
}

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_profile profile;
    struct hearth_perf_notes notes;
    begin_memory(&arena);
    if (hearth_perf_script_decode(hearth_str_n((const char *)data, size), &arena, &profile, &notes,
                                  NULL) == HEARTH_OK) {
        check_symbols(&profile);
        check_samples(&profile, notes.records);
    }
    end_memory(&arena);
}
