/*
 * test_pprof_real.c -- the pprof scanner over the shared collection of real profiles.
 *
 * Two oracles that share no code with it: the totals of the collection's manifest, and protobuf-c's
 * decoding of the same bytes, compared field by field. Skipped, and says so, where the collection
 * is not there; protobuf-c is compared on the golden profiles in any case.
 */
#include "hearth/codec/pb.h"
#include "hearth/format/pprof.h"
#include "hearth/pb/google/v1/profile.pb-c.h"

#include "test_files.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SHARED   HEARTH_SHARED_DATA "/"
#define MANIFEST SHARED "MANIFEST.tsv"

static const struct hearth_pprof_limits NO_LIMITS;

struct decoded {
    struct hearth_arena arena;
    struct hearth_buf bytes;
    struct hearth_profile profile;
    struct hearth_pprof_notes notes;
    struct hearth_err err;
};

static enum hearth_status decode_file(struct decoded *d, const char *path)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_buf_init(&d->bytes, 0);
    hearth_arena_init(&d->arena, 0);
    if (!read_inflated(path, &d->bytes, &d->err)) {
        return d->err.status;
    }

    return hearth_pprof_decode(hearth_buf_view(&d->bytes), &NO_LIMITS, &d->arena, &d->profile,
                               &d->notes, &d->err);
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
    hearth_buf_release(&d->bytes);
}

/* ---- the manifest ---- */

/* The number after `"key": ` in a line of facts, searched from `from`. */
static int64_t fact(const char *from, const char *key)
{
    char quoted[64];

    (void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(from, quoted);
    if (at == NULL) {
        fail_msg("no fact %s", key);
        return 0;
    }

    return strtoll(at + strlen(quoted), NULL, 10);
}

static void assert_fact(const char *path, const char *facts, const char *key, int64_t got)
{
    int64_t want = fact(facts, key);
    if (got != want) {
        fail_msg("%s: %s: got %" PRId64 ", want %" PRId64, path, key, got, want);
    }
}

static void check_locations(const char *path, const char *facts, const struct hearth_profile *p)
{
    int64_t unsymbolized = 0, inlined = 0, max_lines = 0, folded = 0, at_zero = 0;
    for (uint32_t i = 0; i < p->n_locations; i++) {
        const struct hearth_location *l = &p->locations[i];
        unsymbolized += l->n_lines == 0;
        inlined += l->n_lines > 1;
        folded += l->is_folded;
        at_zero += l->address == 0;
        max_lines = l->n_lines > max_lines ? l->n_lines : max_lines;
    }

    assert_fact(path, facts, "unsymbolized_locations", unsymbolized);
    assert_fact(path, facts, "inlined_locations", inlined);
    assert_fact(path, facts, "max_lines_per_location", max_lines);
    assert_fact(path, facts, "folded_locations", folded);
    assert_fact(path, facts, "zero_address_locations", at_zero);
}

/* Totals and non-zero samples of each type are listed in the order of the types. */
static void check_values(const char *path, const char *facts, const struct hearth_profile *p)
{
    const char *totals = strstr(facts, "\"totals\": {"), *nonzero = strstr(facts, "\"nonzero\": {");

    assert_non_null(totals);
    assert_non_null(nonzero);
    for (uint32_t type = 0; type < p->n_types; type++) {
        int64_t total = 0, n_nonzero = 0;
        for (uint32_t i = 0; i < p->n_samples; i++) {
            int64_t value = p->values[(size_t)i * p->n_types + type];
            total += value;
            n_nonzero += value != 0;
        }

        totals = strstr(totals, "\": ") + 3;
        nonzero = strstr(nonzero, "\": ") + 3;
        if (type == 0) { /* the one after the key itself */
            totals = strstr(totals, "\": ") + 3;
            nonzero = strstr(nonzero, "\": ") + 3;
        }

        if (strtoll(totals, NULL, 10) != total || strtoll(nonzero, NULL, 10) != n_nonzero) {
            fail_msg("%s: type %u: total %" PRId64 ", %" PRId64 " not 0", path, type, total,
                     n_nonzero);
        }
    }
}

static void check_facts(const char *path, const char *facts, const struct hearth_profile *p)
{
    int64_t string_bytes = 0, depth_max = 0, build_ids = 0;
    for (uint32_t i = 0; i < p->n_strings; i++) {
        string_bytes += (int64_t)p->strings[i].n;
    }

    for (uint32_t i = 0; i < p->n_samples; i++) {
        int64_t depth = p->stack_first[i + 1] - p->stack_first[i];
        depth_max = depth > depth_max ? depth : depth_max;
    }

    for (uint32_t i = 0; i < p->n_mappings; i++) {
        build_ids += p->mappings[i].build_id != 0;
    }

    assert_fact(path, facts, "samples", p->n_samples);
    assert_fact(path, facts, "locations", p->n_locations);
    assert_fact(path, facts, "functions", p->n_functions);
    assert_fact(path, facts, "mappings", p->n_mappings);
    assert_fact(path, facts, "strings", p->n_strings);
    assert_fact(path, facts, "string_bytes", string_bytes);
    assert_fact(path, facts, "build_ids", build_ids);
    assert_fact(path, facts, "period", p->period);
    assert_fact(path, facts, "time_nanos", p->time_ns);
    assert_fact(path, facts, "duration_nanos", p->duration_ns);
    const char *depth = strstr(facts, "\"depth\": {");
    assert_non_null(depth);
    assert_fact(path, depth, "max", depth_max);
    check_locations(path, facts, p);
    check_values(path, facts, p);
}

/*
 * Calls `check` for every pprof file of the manifest that has a profile in it; the number of them.
 */
static int for_each_real(void (*check)(const char *path, const char *facts))
{
    struct hearth_buf manifest;

    hearth_buf_init(&manifest, 0);
    if (!read_file(MANIFEST, &manifest)) {
        print_message("no shared collection of profiles at " SHARED ": skipped\n");
        hearth_buf_release(&manifest);
        skip();
    }

    hearth_buf_byte(&manifest, '\0');
    int n = 0;
    char *line_end;
    for (char *line = manifest.p; (line_end = strchr(line, '\n')) != NULL; line = line_end + 1) {
        *line_end = '\0';
        char path[512];
        if (strncmp(line, "pprof/", 6) == 0 && strstr(line, "\"raw_bytes\": ") != NULL) {
            (void)snprintf(path, sizeof path, SHARED "%.*s", (int)strcspn(line, "\t"), line);
            check(path, strrchr(line, '\t'));
            n++;
        }
    }

    hearth_buf_release(&manifest);

    return n;
}

static void check_against_manifest(const char *path, const char *facts)
{
    struct decoded d;
    if (decode_file(&d, path) != HEARTH_OK) {
        fail_msg("%s: %s", path, d.err.msg);
    }

    assert_int_equal(fact(facts, "raw_bytes"), d.bytes.n);
    assert_int_equal(d.notes.strings_cut + d.notes.stacks_cut, 0);
    check_facts(path, facts, &d.profile);
    release(&d);
}

static void decodes_real_profiles_as_the_manifest_says(void **state)
{
    (void)state;
    assert_true(for_each_real(check_against_manifest) >= 40);
}

/* ---- protobuf-c ---- */

#define SAME(path, i, got, want)                                                                \
    do {                                                                                        \
        if ((uint64_t)(got) != (uint64_t)(want)) {                                              \
            fail_msg("%s: %s of %zu: %" PRIu64 " instead of %" PRIu64, path, #got, (size_t)(i), \
                     (uint64_t)(got), (uint64_t)(want));                                        \
        }                                                                                       \
    } while (0)

static void same_samples(const char *path, const struct hearth_profile *p,
                         const Google__V1__Profile *o)
{
    SAME(path, 0, p->n_samples, o->n_sample);
    for (uint32_t i = 0; i < p->n_samples; i++) {
        const Google__V1__Sample *s = o->sample[i];

        SAME(path, i, p->n_types, s->n_value);
        SAME(path, i, p->stack_first[i + 1] - p->stack_first[i], s->n_location_id);
        SAME(path, i, p->label_first[i + 1] - p->label_first[i], s->n_label);
        for (uint32_t k = 0; k < p->n_types; k++) {
            SAME(path, i, p->values[(size_t)i * p->n_types + k], s->value[k]);
        }

        for (size_t k = 0; k < s->n_location_id; k++) {
            uint32_t loc = p->stack_locs[p->stack_first[i] + k];
            assert_true(loc < p->n_locations);
            SAME(path, i, o->location[loc]->id, s->location_id[k]);
        }

        for (size_t k = 0; k < s->n_label; k++) {
            const struct hearth_sample_label *l = &p->sample_labels[p->label_first[i] + k];
            SAME(path, i, l->key, s->label[k]->key);
            SAME(path, i, l->str, s->label[k]->str);
            SAME(path, i, l->num, s->label[k]->num);
            SAME(path, i, l->num_unit, s->label[k]->num_unit);
        }
    }
}

static void same_locations(const char *path, const struct hearth_profile *p,
                           const Google__V1__Profile *o)
{
    SAME(path, 0, p->n_locations, o->n_location);
    uint32_t n_lines = 0;
    for (uint32_t i = 0; i < p->n_locations; i++) {
        const struct hearth_location *l = &p->locations[i];
        const Google__V1__Location *want = o->location[i];

        SAME(path, i, l->address, want->address);
        SAME(path, i, l->is_folded, want->is_folded);
        SAME(path, i, l->first_line, n_lines);
        SAME(path, i, l->n_lines, want->n_line);
        n_lines += l->n_lines;
        SAME(path, i, l->mapping == HEARTH_NO_INDEX ? 0 : o->mapping[l->mapping]->id,
             want->mapping_id);
        for (uint32_t k = 0; k < l->n_lines; k++) {
            const struct hearth_line *line = &p->lines[l->first_line + k];
            SAME(path, i, line->line, want->line[k]->line);
            SAME(path, i, o->function[line->function]->id, want->line[k]->function_id);
        }
    }

    SAME(path, 0, p->n_lines, n_lines);
}

static void same_symbols(const char *path, const struct hearth_profile *p,
                         const Google__V1__Profile *o)
{
    SAME(path, 0, p->n_functions, o->n_function);
    for (uint32_t i = 0; i < p->n_functions; i++) {
        const struct hearth_function *f = &p->functions[i];
        SAME(path, i, f->name, o->function[i]->name);
        SAME(path, i, f->system_name, o->function[i]->system_name);
        SAME(path, i, f->filename, o->function[i]->filename);
        SAME(path, i, f->start_line, o->function[i]->start_line);
    }

    SAME(path, 0, p->n_mappings, o->n_mapping);
    for (uint32_t i = 0; i < p->n_mappings; i++) {
        const struct hearth_mapping *m = &p->mappings[i];
        SAME(path, i, m->start, o->mapping[i]->memory_start);
        SAME(path, i, m->limit, o->mapping[i]->memory_limit);
        SAME(path, i, m->offset, o->mapping[i]->file_offset);
        SAME(path, i, m->filename, o->mapping[i]->filename);
        SAME(path, i, m->build_id, o->mapping[i]->build_id);
        SAME(path, i, m->has_functions, o->mapping[i]->has_functions);
        SAME(path, i, m->has_filenames, o->mapping[i]->has_filenames);
        SAME(path, i, m->has_line_numbers, o->mapping[i]->has_line_numbers);
        SAME(path, i, m->has_inline_frames, o->mapping[i]->has_inline_frames);
    }
}

static void same_rest(const char *path, const struct hearth_profile *p,
                      const Google__V1__Profile *o)
{
    SAME(path, 0, p->n_types, o->n_sample_type);
    for (uint32_t i = 0; i < p->n_types; i++) {
        SAME(path, i, p->types[i].type, o->sample_type[i]->type);
        SAME(path, i, p->types[i].unit, o->sample_type[i]->unit);
    }

    SAME(path, 0, p->n_strings, o->n_string_table);
    for (uint32_t i = 0; i < p->n_strings; i++) {
        if (!hearth_str_eq_c(p->strings[i], o->string_table[i])) {
            fail_msg("%s: string %u", path, i);
        }
    }

    SAME(path, 0, p->n_comments, o->n_comment);
    for (uint32_t i = 0; i < p->n_comments; i++) {
        SAME(path, i, p->comments[i], o->comment[i]);
    }

    SAME(path, 0, p->time_ns, o->time_nanos);
    SAME(path, 0, p->duration_ns, o->duration_nanos);
    SAME(path, 0, p->period, o->period);
    SAME(path, 0, p->default_type, o->default_sample_type);
    SAME(path, 0, p->period_type.type, o->period_type == NULL ? 0 : o->period_type->type);
    SAME(path, 0, p->period_type.unit, o->period_type == NULL ? 0 : o->period_type->unit);
}

static void compare_with_protobuf_c(const char *path)
{
    struct decoded d;
    if (decode_file(&d, path) != HEARTH_OK) {
        fail_msg("%s: %s", path, d.err.msg);
    }

    Google__V1__Profile *o =
        google__v1__profile__unpack(NULL, d.bytes.n, (const uint8_t *)d.bytes.p);
    assert_non_null(o);
    same_samples(path, &d.profile, o);
    same_locations(path, &d.profile, o);
    same_symbols(path, &d.profile, o);
    same_rest(path, &d.profile, o);
    google__v1__profile__free_unpacked(o, NULL);
    release(&d);
}

static void check_against_protobuf_c(const char *path, const char *facts)
{
    (void)facts;
    compare_with_protobuf_c(path);
}

static void agrees_with_protobuf_c_on_real_profiles(void **state)
{
    (void)state;
    assert_true(for_each_real(check_against_protobuf_c) >= 40);
}

static void agrees_with_protobuf_c_on_the_golden_profiles(void **state)
{
    (void)state;
    compare_with_protobuf_c(HEARTH_TEST_DIR "/golden/pprof/go-cpu-labels.pb.gz");
    compare_with_protobuf_c(HEARTH_TEST_DIR "/golden/pprof/go-heap.pb.gz");
}

/* ---- files that are not profiles ---- */

static void refuses_real_files_that_are_damaged_or_older_than_profile_proto(void **state)
{
    (void)state;
    static const struct {
        const char *path, *message;
    } cases[] = {
        {"pprof/malformed/bad-gzip-checksum.pgo", "gzip"}, /* refused by the inflater */
        {"pprof/malformed/go-fuzz-corpus-6281ce98.txt", "not a pprof profile but text"},
        {"pprof/legacy-not-protobuf/cppbench.heap", "legacy text heap profile"},
        {"pprof/legacy-not-protobuf/java.cpu", "legacy binary CPU profile"},
    };

    struct decoded d;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        char path[512];

        (void)snprintf(path, sizeof path, SHARED "%s", cases[i].path);
        enum hearth_status status = decode_file(&d, path);
        if (d.bytes.n == 0 && status == HEARTH_OK) {
            print_message("no shared collection of profiles at " SHARED ": skipped\n");
            release(&d);
            skip();
        }

        if (status != HEARTH_INVALID_ARGUMENT || strstr(d.err.msg, cases[i].message) == NULL) {
            fail_msg("%s: %s: %s", path, hearth_status_name(status), d.err.msg);
        }

        release(&d);
    }

    /* The bytes that the file of the fuzz corpus describes. */
    d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d.arena, 0);
    struct hearth_str fuzzed = HEARTH_STR("\x12\n\xed\xef"
                                          "00000\b00");
    assert_int_equal(
        hearth_pprof_decode(fuzzed, &NO_LIMITS, &d.arena, &d.profile, &d.notes, &d.err),
        HEARTH_INVALID_ARGUMENT);
    hearth_arena_release(&d.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_real_profiles_as_the_manifest_says),
        cmocka_unit_test(agrees_with_protobuf_c_on_real_profiles),
        cmocka_unit_test(agrees_with_protobuf_c_on_the_golden_profiles),
        cmocka_unit_test(refuses_real_files_that_are_damaged_or_older_than_profile_proto),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
