/* small_profile.h -- profiles of a few samples of one frame each, with labels; for the tests of what tasks bring. */
#ifndef HEARTH_TESTS_SMALL_PROFILE_H
#define HEARTH_TESTS_SMALL_PROFILE_H

#include "hearth/model/profile.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MAX_SAMPLES = 8
};

/* Samples of one frame each, "a" to "z", with as many types as are named. */
struct small {
    struct hearth_profile p;
    struct hearth_str strings[40];
    struct hearth_value_type types[4];
    struct hearth_function functions[26];
    struct hearth_line lines[26];
    struct hearth_location locations[26];
    uint32_t stack_first[MAX_SAMPLES + 1], stack_locs[MAX_SAMPLES], label_first[MAX_SAMPLES + 1];
    struct hearth_sample_label labels[MAX_SAMPLES];
    int64_t values[MAX_SAMPLES * 4];
};

static inline uint32_t small_string(struct small *s, const char *text)
{
    s->strings[s->p.n_strings] = hearth_str_c(text);
    return s->p.n_strings++;
}

static inline void small_init(struct small *s, const char *const *types, uint32_t n_types)
{
    static const char letters[] =
        "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z";
    *s = (struct small){0};
    s->p = (struct hearth_profile){.strings = s->strings,
                                   .types = s->types,
                                   .functions = s->functions,
                                   .lines = s->lines,
                                   .locations = s->locations,
                                   .stack_first = s->stack_first,
                                   .stack_locs = s->stack_locs,
                                   .values = s->values,
                                   .label_first = s->label_first,
                                   .sample_labels = s->labels,
                                   .n_types = n_types,
                                   .n_functions = 26,
                                   .n_lines = 26,
                                   .n_locations = 26};
    (void)small_string(s, "");
    for (uint32_t i = 0; i < 26; i++) {
        s->functions[i].name = small_string(s, &letters[(size_t)i * 2]);
        s->lines[i] = (struct hearth_line){.function = i, .line = 7};
        s->locations[i] = (struct hearth_location){
            .mapping = HEARTH_NO_INDEX, .first_line = i, .n_lines = 1, .address = 16 * i};
    }
    for (uint32_t t = 0; t < n_types; t++) {
        s->types[t] = (struct hearth_value_type){small_string(s, types[t]), 0};
    }
}

/* size: a numeric label, as Go's heap has; 0: none. */
static inline void small_add(struct small *s, char frame, int64_t size, int64_t first,
                             int64_t second)
{
    struct hearth_profile *p = &s->p;
    s->stack_locs[p->n_stack_locs++] = (uint32_t)(frame - 'a');
    if (size > 0) {
        s->labels[p->n_sample_labels++] = (struct hearth_sample_label){.key = 1, .num = size};
    }
    s->values[p->n_samples * p->n_types] = first;
    s->values[p->n_samples * p->n_types + 1] = second;
    p->n_samples++;
    s->stack_first[p->n_samples] = p->n_stack_locs;
    s->label_first[p->n_samples] = p->n_sample_labels;
}

#endif
