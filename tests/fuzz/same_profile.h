/*
 * same_profile.h -- aborts unless two decoded profiles are the same; and a comparison of both readers of pprof: with the
 * loops over usual messages and the instructions that some processors lack, and without either.
 */
#ifndef HEARTH_FUZZ_SAME_PROFILE_H
#define HEARTH_FUZZ_SAME_PROFILE_H

#include "hearth/format/pprof.h"

#include <stdlib.h>
#include <string.h>

#define PPROF_ARENA_BYTES ((size_t)64 << 20)

#define SAME_ARRAY(a, b, n) ((n) == 0 || memcmp((a), (b), (size_t)(n) * sizeof *(a)) == 0)
#define REQUIRE(condition)  \
    do {                    \
        if (!(condition)) { \
            abort();        \
        }                   \
    } while (0)

static inline void require_same_counts(const struct hearth_profile *a,
                                       const struct hearth_profile *b)
{
    REQUIRE(a->n_strings == b->n_strings && a->n_types == b->n_types);
    REQUIRE(a->n_mappings == b->n_mappings && a->n_functions == b->n_functions);
    REQUIRE(a->n_lines == b->n_lines && a->n_locations == b->n_locations);
    REQUIRE(a->n_samples == b->n_samples && a->n_stack_locs == b->n_stack_locs);
    REQUIRE(a->n_sample_labels == b->n_sample_labels && a->n_comments == b->n_comments);
    REQUIRE(a->period == b->period && a->time_ns == b->time_ns && a->duration_ns == b->duration_ns);
    REQUIRE(a->period_type.type == b->period_type.type &&
            a->period_type.unit == b->period_type.unit);
    REQUIRE(a->default_type == b->default_type && a->doc_url == b->doc_url);
}

static inline void require_same_symbols(const struct hearth_profile *a,
                                        const struct hearth_profile *b)
{
    for (uint32_t i = 0; i < a->n_strings; i++) {
        REQUIRE(hearth_str_eq(a->strings[i], b->strings[i]));
    }
    for (uint32_t i = 0; i < a->n_mappings; i++) {
        const struct hearth_mapping *x = &a->mappings[i], *y = &b->mappings[i];
        REQUIRE(x->start == y->start && x->limit == y->limit && x->offset == y->offset);
        REQUIRE(x->filename == y->filename && x->build_id == y->build_id);
        REQUIRE(x->has_functions == y->has_functions && x->has_filenames == y->has_filenames);
        REQUIRE(x->has_line_numbers == y->has_line_numbers);
        REQUIRE(x->has_inline_frames == y->has_inline_frames);
    }
    for (uint32_t i = 0; i < a->n_functions; i++) {
        const struct hearth_function *x = &a->functions[i], *y = &b->functions[i];
        REQUIRE(x->name == y->name && x->system_name == y->system_name);
        REQUIRE(x->filename == y->filename && x->start_line == y->start_line);
    }
    for (uint32_t i = 0; i < a->n_lines; i++) {
        REQUIRE(a->lines[i].function == b->lines[i].function &&
                a->lines[i].line == b->lines[i].line);
        REQUIRE(a->lines[i].function < a->n_functions);
    }
    for (uint32_t i = 0; i < a->n_locations; i++) {
        const struct hearth_location *x = &a->locations[i], *y = &b->locations[i];
        REQUIRE(x->mapping == y->mapping && x->address == y->address);
        REQUIRE(x->first_line == y->first_line && x->n_lines == y->n_lines);
        REQUIRE(x->is_folded == y->is_folded);
    }
}

static inline void require_same_samples(const struct hearth_profile *a,
                                        const struct hearth_profile *b)
{
    REQUIRE(SAME_ARRAY(a->types, b->types, a->n_types));
    REQUIRE(SAME_ARRAY(a->comments, b->comments, a->n_comments));
    REQUIRE(SAME_ARRAY(a->stack_first, b->stack_first, a->n_samples + 1));
    REQUIRE(SAME_ARRAY(a->stack_locs, b->stack_locs, a->n_stack_locs));
    REQUIRE(SAME_ARRAY(a->values, b->values, (size_t)a->n_samples * a->n_types));
    REQUIRE(SAME_ARRAY(a->label_first, b->label_first, a->n_samples + 1));
    for (uint32_t i = 0; i < a->n_sample_labels; i++) {
        const struct hearth_sample_label *x = &a->sample_labels[i], *y = &b->sample_labels[i];
        REQUIRE(x->key == y->key && x->str == y->str && x->num == y->num &&
                x->num_unit == y->num_unit);
    }
}

static inline void require_same_profile(const struct hearth_profile *a,
                                        const struct hearth_profile *b)
{
    require_same_counts(a, b);
    require_same_symbols(a, b);
    require_same_samples(a, b);
}

/* Decode with both readers, which have to agree on everything. */
static inline enum hearth_status decode_both_ways(struct hearth_str bytes,
                                                  const struct hearth_pprof_limits *limits,
                                                  struct hearth_arena *arena,
                                                  struct hearth_profile *ret_profile,
                                                  struct hearth_err *err)
{
    struct hearth_pprof_limits portable = *limits;
    struct hearth_pprof_notes notes, other_notes;
    struct hearth_profile other;
    struct hearth_err other_err = HEARTH_ERR_INIT;
    struct hearth_arena other_arena;

    portable.portable = true;
    hearth_arena_init(&other_arena, PPROF_ARENA_BYTES);
    enum hearth_status status = hearth_pprof_decode(bytes, limits, arena, ret_profile, &notes, err);
    REQUIRE(hearth_pprof_decode(bytes, &portable, &other_arena, &other, &other_notes, &other_err) ==
            status);
    REQUIRE(strcmp(err->msg, other_err.msg) == 0);
    REQUIRE((status == HEARTH_OK) == (err->msg[0] == '\0'));
    if (status == HEARTH_OK) {
        REQUIRE(SAME_ARRAY(&notes, &other_notes, 1));
        require_same_profile(ret_profile, &other);
    }
    hearth_arena_release(&other_arena);

    return status;
}

#endif
