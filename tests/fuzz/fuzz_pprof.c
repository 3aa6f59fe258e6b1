/*
 * fuzz_pprof.c -- the pprof scanner on any bytes: no crash, and decode -> encode -> decode gives
 * the same profile, as does a decoder without byte shuffles. The first byte chooses limits, so that
 * cutting runs too.
 */
#include "hearth/format/pprof.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SAME_ARRAY(a, b, n) ((n) == 0 || memcmp((a), (b), (size_t)(n) * sizeof *(a)) == 0)
#define REQUIRE(condition)  \
    do {                    \
        if (!(condition)) { \
            abort();        \
        }                   \
    } while (0)

static void require_same_counts(const struct hearth_profile *a, const struct hearth_profile *b)
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

static void require_same_symbols(const struct hearth_profile *a, const struct hearth_profile *b)
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

static void require_same_samples(const struct hearth_profile *a, const struct hearth_profile *b)
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

/* Everything a reader of the arrays relies on. */
static bool has_dangling_location(const struct hearth_profile *p)
{
    bool dangling = false;
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        dangling |= p->stack_locs[i] == HEARTH_NO_INDEX;
        REQUIRE(p->stack_locs[i] < p->n_locations || p->stack_locs[i] == HEARTH_NO_INDEX);
    }
    for (uint32_t i = 0; i < p->n_strings; i++) {
        REQUIRE(hearth_str_utf8_valid(p->strings[i]));
    }
    REQUIRE(p->n_strings > 0 && p->strings[0].n == 0 && p->n_types > 0);
    return dangling;
}

static void check_round_trip(const struct hearth_profile *profile)
{
    struct hearth_pprof_limits no_limits = {0};
    struct hearth_pprof_notes notes;
    struct hearth_profile again;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_buf out;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    hearth_pprof_encode(profile, &out);
    REQUIRE(!hearth_buf_failed(&out));
    enum hearth_status status =
        hearth_pprof_decode(hearth_buf_view(&out), &no_limits, &arena, &again, &notes, &err);
    if (has_dangling_location(profile)) {
        REQUIRE(status == HEARTH_INVALID_ARGUMENT);
    } else {
        REQUIRE(status == HEARTH_OK);
        REQUIRE(notes.strings_repaired == 0);
        require_same_counts(profile, &again);
        require_same_symbols(profile, &again);
        require_same_samples(profile, &again);
    }
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

/* The same result without the instructions that some processors lack. */
static void check_portable(struct hearth_str bytes, struct hearth_pprof_limits limits,
                           enum hearth_status status, const struct hearth_profile *profile,
                           const struct hearth_err *err)
{
    struct hearth_pprof_notes notes;
    struct hearth_profile again;
    struct hearth_err other = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    hearth_arena_init(&arena, ARENA_BYTES);
    limits.portable = true;
    REQUIRE(hearth_pprof_decode(bytes, &limits, &arena, &again, &notes, &other) == status);
    REQUIRE(strcmp(err->msg, other.msg) == 0);
    if (status == HEARTH_OK) {
        require_same_counts(profile, &again);
        require_same_symbols(profile, &again);
        require_same_samples(profile, &again);
    }
    hearth_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct hearth_pprof_limits limits = {
        .max_samples = data[0] & 1 ? 50 : 0,
        .max_sample_labels = data[0] & 2 ? 2 : 0,
        .max_types = data[0] & 4 ? 3 : 0,
        .max_depth = data[0] & 8 ? 2 : 0,
        .max_string_bytes = data[0] & 16 ? 7 : 0,
    };
    struct hearth_pprof_notes notes;
    struct hearth_profile profile;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    hearth_arena_init(&arena, ARENA_BYTES);
    struct hearth_str bytes = hearth_str_n((const char *)data + 1, size - 1);
    enum hearth_status status = hearth_pprof_decode(bytes, &limits, &arena, &profile, &notes, &err);
    check_portable(bytes, limits, status, &profile, &err);
    if (status == HEARTH_OK) {
        check_round_trip(&profile);
    } else {
        REQUIRE(err.status == status && err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);
    return 0;
}
