/*
 * fuzz_datadog_profile.c -- a pprof is divided into families: all indices are valid, no family is
 * empty, and no value of the attachment is lost or doubled.
 */
#include "hearth/format/datadog_profile.h"
#include "hearth/format/pprof.h"

#include "short_memory.h"

static void check_part(const struct hearth_profile *p)
{
    HEARTH_ASSERT(p->n_types > 0);
    for (uint32_t i = 0; i < p->n_types; i++) {
        HEARTH_ASSERT(p->types[i].type < p->n_strings && p->types[i].unit < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        HEARTH_ASSERT(p->stack_locs[i] < p->n_locations || p->stack_locs[i] == HEARTH_NO_INDEX);
    }
    for (uint32_t i = 0; i < p->n_sample_labels; i++) {
        HEARTH_ASSERT(p->sample_labels[i].key < p->n_strings &&
                      p->sample_labels[i].str < p->n_strings);
    }
    HEARTH_ASSERT(p->period_type.type < p->n_strings && p->period_type.unit < p->n_strings);
    HEARTH_ASSERT(p->stack_first[p->n_samples] == p->n_stack_locs &&
                  p->label_first[p->n_samples] == p->n_sample_labels);
}

/* The sum of all values, as a number that may wrap. */
static uint64_t sum_values(const struct hearth_profile *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < (size_t)p->n_samples * p->n_types; i++) {
        sum += (uint64_t)p->values[i];
    }
    return sum;
}

static void run_input(const uint8_t *data, size_t size)
{
    static const struct hearth_pprof_limits limits = {.max_samples = 100000, .max_types = 64};
    static const struct hearth_str custom = {"custom", 6};
    struct hearth_datadog_profile parts[HEARTH_DATADOG_MAX_FAMILIES];
    struct hearth_datadog_notes notes;
    struct hearth_pprof_notes cuts;
    struct hearth_profile profile;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;

    begin_memory(&arena);
    if (hearth_pprof_decode(hearth_str_n((const char *)data, size), &limits, &arena, &profile,
                            &cuts, &err) == HEARTH_OK) {
        uint64_t sum = sum_values(&profile);
        struct hearth_str name = size % 2 ? HEARTH_STR("block.pprof") : HEARTH_STR("");
        if (hearth_datadog_profile_divide(&profile, name, &custom, 1, &arena, parts, &n, &notes) ==
            HEARTH_OK) {
            HEARTH_ASSERT(n <= HEARTH_DATADOG_MAX_FAMILIES);
            for (size_t i = 0; i < n; i++) {
                check_part(&parts[i].profile);
                sum -= sum_values(&parts[i].profile);
            }
            HEARTH_ASSERT(sum == 0);
        }
    }
    end_memory(&arena);
}
