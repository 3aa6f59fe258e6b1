/* check_profile.h -- aborts unless all indices of a profile are valid, and texts are UTF-8. */
#ifndef HEARTH_FUZZ_CHECK_PROFILE_H
#define HEARTH_FUZZ_CHECK_PROFILE_H

#include "hearth/base/status.h"
#include "hearth/model/profile.h"

static inline void check_profile(const struct hearth_profile *p)
{
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        HEARTH_ASSERT(p->stack_locs[i] < p->n_locations);
    }
    for (uint32_t i = 0; i < p->n_locations; i++) {
        HEARTH_ASSERT(p->locations[i].first_line + p->locations[i].n_lines <= p->n_lines);
        HEARTH_ASSERT(p->locations[i].mapping == HEARTH_NO_INDEX ||
                      p->locations[i].mapping < p->n_mappings);
    }
    for (uint32_t i = 0; i < p->n_mappings; i++) {
        HEARTH_ASSERT(p->mappings[i].filename < p->n_strings &&
                      p->mappings[i].build_id < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_lines; i++) {
        HEARTH_ASSERT(p->lines[i].function < p->n_functions);
    }
    for (uint32_t i = 0; i < p->n_functions; i++) {
        HEARTH_ASSERT(p->functions[i].name < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_strings; i++) {
        HEARTH_ASSERT(hearth_str_utf8_valid(p->strings[i]));
    }
    for (uint32_t i = 0; i < p->n_sample_labels; i++) {
        HEARTH_ASSERT(p->sample_labels[i].key < p->n_strings &&
                      p->sample_labels[i].str < p->n_strings);
    }
    HEARTH_ASSERT(p->stack_first[p->n_samples] == p->n_stack_locs &&
                  p->label_first[p->n_samples] == p->n_sample_labels);
}

#endif
