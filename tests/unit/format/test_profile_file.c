/* test_profile_file.c -- files of several profilers through the one decoder. */
#include "hearth/base/mem.h"
#include "hearth/format/profile_file.h"

#include "print_profile.h"
#include "test_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GOLDEN HEARTH_TEST_DIR "/golden/files/"

struct decoded {
    struct hearth_arena arena;
    struct hearth_file_profiles file;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode_with(struct decoded *d, struct hearth_str bytes,
                        const struct hearth_file_options *options)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d->arena, 64u << 20);
    d->status = hearth_profile_file_decode(bytes, options, &d->arena, &d->file, &d->err);
}

static void decode(struct decoded *d, struct hearth_str bytes)
{
    const struct hearth_file_options options = {.format = NULL};

    decode_with(d, bytes, &options);
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
}

static int64_t sum_values(const struct hearth_profile *p, uint32_t type)
{
    int64_t sum = 0;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        sum += p->values[(size_t)s * p->n_types + type];
    }

    return sum;
}

static void expect_refusal(struct hearth_str bytes, const char *format, const char *part)
{
    const struct hearth_file_options options = {.format = format};
    struct decoded d;

    decode_with(&d, bytes, &options);
    if (d.status != HEARTH_INVALID_ARGUMENT || strstr(d.err.msg, part) == NULL) {
        fail_msg("expected \"%s\", got status %d: %s", part, (int)d.status, d.err.msg);
    }
    release(&d);
}

/* A repository's file, inflated. */
static struct hearth_buf load(const char *path)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf bytes;

    hearth_buf_init(&bytes, 0);
    if (!read_inflated(path, &bytes, &err)) {
        fail_msg("%s: %s", path, err.msg);
    }

    return bytes;
}

static void recognises_recordings_of_perf(void **state)
{
    struct hearth_buf bytes = load(HEARTH_TEST_DIR "/golden/perf/work.perf.data");
    struct decoded d;

    (void)state;
    decode(&d, hearth_buf_view(&bytes));
    assert_int_equal(d.status, HEARTH_OK);
    assert_string_equal(d.file.format, "perf.data");
    assert_int_equal(d.file.n_profiles, 2);
    assert_true(hearth_str_eq_c(d.file.profiles[0].name, "process_cpu"));
    assert_int_equal(sum_values(&d.file.profiles[0].profile, 1), 27081243);
    assert_true(hearth_str_eq_c(d.file.profiles[1].name, "minor_faults"));
    release(&d);
    hearth_buf_release(&bytes);
    expect_refusal(HEARTH_STR("2ELIFREP\0\0\0\0\0\0\0\150"), NULL, "big-endian");
}

static bool has_function(const struct hearth_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_functions; i++) {
        if (hearth_str_eq_c(p->strings[p->functions[i].name], name)) {
            return true;
        }
    }

    return false;
}

static void names_functions_of_programs_beside_a_recording(void **state)
{
    struct hearth_buf bytes = load(HEARTH_TEST_DIR "/golden/perf/work.perf.data"),
                      elf = load(HEARTH_TEST_DIR "/golden/perf/spin.elf");
    struct hearth_file_object object = {HEARTH_STR("spin"), hearth_buf_view(&elf)};
    const struct hearth_file_options options = {.objects = &object, .n_objects = 1};
    struct decoded d;

    (void)state;
    decode(&d, hearth_buf_view(&bytes));
    assert_false(has_function(&d.file.profiles[0].profile, "inner"));
    release(&d);
    decode_with(&d, hearth_buf_view(&bytes), &options);
    assert_int_equal(d.status, HEARTH_OK);
    assert_true(has_function(&d.file.profiles[0].profile, "inner"));
    release(&d);

    object.bytes = HEARTH_STR("no program");
    decode_with(&d, hearth_buf_view(&bytes), &options);
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(d.err.msg, "object \"spin\": it is no ELF file"));
    release(&d);
    hearth_buf_release(&bytes);
    hearth_buf_release(&elf);
}

static void recognises_collapsed_stacks(void **state)
{
    (void)state;
    struct decoded d;

    decode(&d, HEARTH_STR("main;run;work 3\nmain;idle 4\n"));
    assert_int_equal(d.status, HEARTH_OK);
    assert_string_equal(d.file.format, "collapsed");
    assert_int_equal(d.file.n_profiles, 1);
    assert_true(hearth_str_eq_c(d.file.profiles[0].name, "process_cpu"));
    assert_int_equal(sum_values(&d.file.profiles[0].profile, 0), 7);
    release(&d);
}

/* The text in UTF-16 with its byte order mark, in the arena. */
static struct hearth_str make_utf16(const char *text, struct hearth_arena *arena)
{
    size_t n = strlen(text);
    char *bytes = hearth_arena_zalloc(arena, 2 * n + 2);

    assert_non_null(bytes);
    memcpy(bytes, "\xFF\xFE", 2);
    for (size_t i = 0; i < n; i++) {
        bytes[2 * i + 2] = text[i];
    }

    return hearth_str_n(bytes, 2 * n + 2);
}

static void reads_texts_with_a_byte_order_mark(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"speedscope",
         "{\"shared\":{\"frames\":[{\"name\":\"f\"}]},\"profiles\":[{\"type\":\"sampled\","
         "\"unit\":\"none\",\"startValue\":0,\"endValue\":7,\"samples\":[[0]],\"weights\":[7]}]}"},
        {"heapprofile", "{\"head\":{\"callFrame\":{\"functionName\":\"f\"},\"selfSize\":7}}"},
        {"legacy pprof", "threads profile: total 7\n7 @ 0x1\n"},
        {"collapsed", "f 7\n"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        struct hearth_arena arena;
        char marked[512];
        hearth_arena_init(&arena, 0);
        (void)snprintf(marked, sizeof marked, "\xEF\xBB\xBF%s", texts[i][1]);
        const struct hearth_str forms[] = {hearth_str_c(marked), make_utf16(texts[i][1], &arena)};

        for (size_t k = 0; k < HEARTH_ARRAY_LEN(forms); k++) {
            struct decoded d;
            decode(&d, forms[k]);
            if (d.status != HEARTH_OK) {
                fail_msg("%s: %s", texts[i][0], d.err.msg);
            }
            assert_string_equal(d.file.format, texts[i][0]);
            assert_int_equal(sum_values(&d.file.profiles[0].profile, 0), 7);
            release(&d);
        }
        hearth_arena_release(&arena);
    }
    expect_refusal(HEARTH_STR("\xEF\xBB\xBF"), NULL, "the file is empty");
}

static void refuses_a_text_with_a_line_of_no_known_form(void **state)
{
    (void)state;
    struct decoded d;

    decode(&d, HEARTH_STR("a;b 3\na;c 4\nno value\n"));
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_string_equal(d.err.msg, "line 3 is not of the form \"frame;frame value\": \"no value\"");
    release(&d);
}

static void recognises_the_output_of_perf_script(void **state)
{
    (void)state;
    struct hearth_buf text = load(HEARTH_TEST_DIR "/fuzz/corpus/perf_script/odd.txt");
    struct decoded d;

    decode(&d, hearth_buf_view(&text));
    assert_int_equal(d.status, HEARTH_OK);
    assert_string_equal(d.file.format, "perf script");
    assert_int_equal(d.file.n_profiles, 1);
    release(&d);
    hearth_buf_release(&text);
}

static void recognises_a_recording_with_all_its_profiles(void **state)
{
    (void)state;
    struct hearth_buf bytes = load(HEARTH_TEST_DIR "/golden/jfr/work.jfr.gz");
    struct decoded d;

    decode(&d, hearth_buf_view(&bytes));
    assert_int_equal(d.status, HEARTH_OK);
    assert_string_equal(d.file.format, "JFR");
    assert_true(d.file.n_profiles > 1);
    for (size_t i = 0; i < d.file.n_profiles; i++) {
        assert_true(d.file.profiles[i].name.n > 0);
        assert_true(d.file.profiles[i].profile.n_samples > 0);
    }
    release(&d);
    hearth_buf_release(&bytes);
}

/* A pprof of one sample type and no sample. */
static void encode_pprof(const char *type, struct hearth_buf *out)
{
    struct hearth_str strings[] = {HEARTH_STR(""), hearth_str_c(type), HEARTH_STR("count")};
    struct hearth_value_type types[] = {{1, 2}};
    uint32_t none[] = {0};
    const struct hearth_profile p = {
        .strings = strings,
        .n_strings = 3,
        .types = types,
        .n_types = 1,
        .stack_first = none,
        .label_first = none,
    };

    hearth_buf_init(out, 0);
    hearth_pprof_encode(&p, out);
    assert_false(hearth_buf_failed(out));
}

static void names_a_pprof_by_its_sample_types(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"inuse_space", "memory"},
        {"goroutine", "goroutines"},
        {"lambs", "lambs"},
        {"", "profile"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_buf bytes;
        struct decoded d;

        encode_pprof(cases[i][0], &bytes);
        decode(&d, hearth_buf_view(&bytes));
        assert_int_equal(d.status, HEARTH_OK);
        assert_string_equal(d.file.format, "pprof");
        assert_true(hearth_str_eq_c(d.file.profiles[0].name, cases[i][1]));
        release(&d);
        hearth_buf_release(&bytes);
    }
}

static void takes_the_format_that_the_sender_names(void **state)
{
    (void)state;
    struct hearth_str text = HEARTH_STR("main;run 3\n");
    const struct hearth_file_options options = {.format = "Collapsed"};
    struct decoded d;

    decode_with(&d, text, &options);
    assert_int_equal(d.status, HEARTH_OK);
    release(&d);
    expect_refusal(text, "jfr", "not a JFR recording");
    expect_refusal(text, "gif", "unknown format \"gif\"; supported are JFR, perf.data, ");
}

static void names_the_format_of_bytes_that_it_refuses(void **state)
{
    (void)state;
    expect_refusal(HEARTH_STR(""), NULL, "the file is empty");
    expect_refusal(HEARTH_STR("\x7f"
                              "ELF\0\0\0\0"),
                   NULL, "the file is an ELF binary");
    expect_refusal(HEARTH_STR("{\"a\": 1}"), NULL, "the file is JSON; supported are");
    expect_refusal(HEARTH_STR("go 1.22 trace\0\0\0\1"), NULL,
                   "the file is an execution trace of Go");

    /* OTLP: resource_profiles with a first field of each number, and a dictionary; JSON. */
    const char *otlp = "the file is an export of OpenTelemetry's profiles (OTLP "
                       "ExportProfilesServiceRequest), which is sent by POST to "
                       "/v1development/profiles with Content-Type: application/";
    expect_refusal(HEARTH_STR("\x0a\x02\x12\x00\x12\x02\x3a\x00"), NULL, otlp);
    expect_refusal(HEARTH_STR("\x12\x02\x3a\x00\x0a\x02\x0a\x00"), NULL, otlp);
    expect_refusal(HEARTH_STR("\x12\x02\x3a\x00\x0a\x02\x1a\x00"), NULL, otlp);
    expect_refusal(HEARTH_STR("{ \"resourceProfiles\":[]}"), NULL, otlp);
}

static void applies_the_limits_to_texts(void **state)
{
    (void)state;
    const struct hearth_file_options cut = {.limits = {.max_depth = 2}};
    const struct hearth_file_options few = {.limits = {.max_samples = 1}};
    struct decoded d;

    decode_with(&d, HEARTH_STR("a;b;c;d 1\n"), &cut);
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.file.notes.stacks_cut, 1);
    release(&d);

    decode_with(&d, HEARTH_STR("a;b 1\na;c 1\n"), &few);
    assert_int_equal(d.status, HEARTH_RESOURCE_EXHAUSTED);
    release(&d);
}

/* ---- recordings of real profilers ---- */

/* Compares a decoded file with its text, which HEARTH_RECORD=1 writes again. */
static void compare_with_text(const struct hearth_file_profiles *file, const char *path)
{
    struct hearth_buf got, want;

    hearth_buf_init(&got, 0);
    hearth_buf_init(&want, 0);
    hearth_buf_printf(&got, "%s\n", file->format);
    for (size_t i = 0; i < file->n_profiles; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, HEARTH_STR_FMT, HEARTH_STR_ARG(file->profiles[i].name));
        print_profile(name, &file->profiles[i].profile, &got);
    }
    if (getenv("HEARTH_RECORD") != NULL) {
        FILE *text = fopen(path, "wb");
        assert_non_null(text);
        assert_int_equal(fwrite(got.p, 1, got.n, text), got.n);
        assert_int_equal(fclose(text), 0);
    }

    assert_true(read_file(path, &want));
    if (!hearth_str_eq(hearth_buf_view(&got), hearth_buf_view(&want))) {
        fail_msg("not as in %s:\n%.*s", path, (int)got.n, got.p);
    }
    hearth_buf_release(&got);
    hearth_buf_release(&want);
}

static const char *const g_files[][2] = {
    {GOLDEN "busy.speedscope.json.gz", GOLDEN "busy.speedscope.txt"},
    {GOLDEN "events.speedscope.json.gz", GOLDEN "events.speedscope.txt"},
    {GOLDEN "work.cpuprofile.gz", GOLDEN "work.cpuprofile.txt"},
    {GOLDEN "work.heapprofile.gz", GOLDEN "work.heapprofile.txt"},
    {GOLDEN "gperftools.heap", GOLDEN "gperftools.heap.txt"},
    {GOLDEN "gperftools.cpu", GOLDEN "gperftools.cpu.txt"},
    {GOLDEN "debug1.heap", GOLDEN "debug1.heap.txt"},
    {GOLDEN "debug1.goroutine", GOLDEN "debug1.goroutine.txt"},
    {GOLDEN "debug1.threadcreate", GOLDEN "debug1.threadcreate.txt"},
    {GOLDEN "debug1.mutex", GOLDEN "debug1.mutex.txt"},
    {GOLDEN "debug1.block", GOLDEN "debug1.block.txt"},
};

static void decodes_recordings_of_real_profilers(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_files); i++) {
        struct hearth_buf bytes = load(g_files[i][0]);
        struct decoded d;

        decode(&d, hearth_buf_view(&bytes));
        if (d.status != HEARTH_OK) {
            fail_msg("%s: %s", g_files[i][0], d.err.msg);
        }
        compare_with_text(&d.file, g_files[i][1]);
        release(&d);
        hearth_buf_release(&bytes);
    }
}

/* Refuses the first, second, ... allocation, until the file is decoded without a refusal. */
static void survives_every_refused_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_files); i++) {
        struct hearth_buf bytes = load(g_files[i][0]);
        enum hearth_status status = HEARTH_NO_MEMORY;

        for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
            struct decoded d;
            hearth_mem_fail_after(nth);
            decode(&d, hearth_buf_view(&bytes));
            hearth_mem_fail_after(0);
            status = d.status;
            if (status != HEARTH_OK && (status != HEARTH_NO_MEMORY || d.err.msg[0] == '\0')) {
                fail_msg("%s, allocation %d: %s", g_files[i][0], (int)nth, d.err.msg);
            }
            release(&d);
        }
        hearth_buf_release(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recognises_recordings_of_perf),
        cmocka_unit_test(names_functions_of_programs_beside_a_recording),
        cmocka_unit_test(recognises_collapsed_stacks),
        cmocka_unit_test(reads_texts_with_a_byte_order_mark),
        cmocka_unit_test(refuses_a_text_with_a_line_of_no_known_form),
        cmocka_unit_test(recognises_the_output_of_perf_script),
        cmocka_unit_test(recognises_a_recording_with_all_its_profiles),
        cmocka_unit_test(names_a_pprof_by_its_sample_types),
        cmocka_unit_test(takes_the_format_that_the_sender_names),
        cmocka_unit_test(names_the_format_of_bytes_that_it_refuses),
        cmocka_unit_test(applies_the_limits_to_texts),
        cmocka_unit_test(decodes_recordings_of_real_profilers),
        cmocka_unit_test(survives_every_refused_allocation),
    };

    return cmocka_run_group_tests_name("profile_file", tests, NULL, NULL);
}
