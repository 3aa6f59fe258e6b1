/*
 * profile.h -- one decoded profile as flat arrays; every input format is decoded into it.
 *
 * All cross references are array indices (HEARTH_NO_INDEX: none); the format layer has resolved ids
 * and checked ranges. Stacks are leaf first; the lines of a location are innermost (inlined) first.
 * Text is borrowed from the input bytes; arrays live in the arena that was passed to the decoder.
 *
 * Layout:  strings[n_strings], strings[0] is empty;
 *          sample s has locations stack_locs[stack_first[s] .. stack_first[s+1]),
 *          values[s * n_types .. +n_types), labels sample_labels[label_first[s] ..
 *          label_first[s+1]); location l has lines lines[locations[l].first_line .. +n_lines).
 * Units:   time and duration in nanoseconds; values in the unit of their sample type.
 * Threads: immutable after decoding.
 */
#ifndef HEARTH_MODEL_PROFILE_H
#define HEARTH_MODEL_PROFILE_H

#include "hearth/base/str.h"

#define HEARTH_NO_INDEX UINT32_MAX

struct hearth_value_type {
    uint32_t type, unit; /* string indices */
};

struct hearth_mapping {
    uint64_t start, limit, offset;
    uint32_t filename, build_id; /* string indices */
    bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct hearth_function {
    uint32_t name, system_name, filename; /* string indices */
    int64_t start_line;
};

struct hearth_line {
    uint32_t function; /* index */
    int64_t line;
};

struct hearth_location {
    uint32_t mapping; /* index or HEARTH_NO_INDEX */
    uint32_t first_line, n_lines;
    bool is_folded;
    uint64_t address;
};

struct hearth_sample_label {
    uint32_t key, str, num_unit; /* string indices; str 0: the label is numeric */
    int64_t num;
};

struct hearth_profile {
    struct hearth_str *strings;
    struct hearth_value_type *types;
    struct hearth_mapping *mappings;
    struct hearth_function *functions;
    struct hearth_line *lines;
    struct hearth_location *locations;
    uint32_t *stack_first; /* n_samples + 1 */
    uint32_t *stack_locs;  /* location indices, or HEARTH_NO_INDEX where an id was dangling */
    int64_t *values;
    uint32_t *label_first; /* n_samples + 1 */
    struct hearth_sample_label *sample_labels;
    uint32_t n_strings, n_types, n_mappings, n_functions, n_lines, n_locations, n_samples;
    uint32_t n_stack_locs, n_sample_labels;
    struct hearth_value_type period_type; /* indices 0, 0 if absent */
    int64_t period, time_ns, duration_ns;
    uint32_t default_type; /* string index */
    uint32_t *comments;    /* string indices */
    uint32_t n_comments;
    uint32_t doc_url; /* string index */
};

#endif
