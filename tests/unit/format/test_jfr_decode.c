/* test_jfr_decode.c -- recordings as profiles: our own recording, damage, limits, names, contexts. */
#include "hearth/format/jfr.h"

#include "jfr/jfr_context.h"
#include "jfr/jfr_frames.h"
#include "print_profile.h"
#include "test_files.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GOLDEN HEARTH_TEST_DIR "/golden/jfr/"

static struct hearth_buf g_recording;

struct decoded {
    struct hearth_arena arena;
    struct hearth_jfr_recording recording;
    struct hearth_err err;
    enum hearth_status status;
};

static struct hearth_str recording(void)
{
    return hearth_buf_view(&g_recording);
}

static void decode(struct decoded *d, struct hearth_str bytes, struct hearth_pprof_limits limits,
                   size_t arena_bytes)
{
    const struct hearth_jfr_options options = {.limits = limits};

    d->err = (struct hearth_err)HEARTH_ERR_INIT;
    hearth_arena_init(&d->arena, arena_bytes);
    d->status = hearth_jfr_decode(bytes, &options, &d->arena, &d->recording, &d->err);
}

static void decode_plainly(struct decoded *d, struct hearth_str bytes)
{
    decode(d, bytes, (struct hearth_pprof_limits){0}, 0);
    if (d->status != HEARTH_OK) {
        fail_msg("%s", d->err.msg);
    }
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
}

/* The sum of a sample type over all profiles; -1: no profile has it. */
static int64_t sum_of(const struct decoded *d, const char *type)
{
    int64_t sum = -1;

    for (size_t i = 0; i < d->recording.n_profiles; i++) {
        const struct hearth_profile *p = &d->recording.profiles[i].profile;
        for (uint32_t t = 0; t < p->n_types; t++) {
            if (!hearth_str_eq_c(p->strings[p->types[t].type], type)) {
                continue;
            }
            sum = sum < 0 ? 0 : sum;
            for (uint32_t s = 0; s < p->n_samples; s++) {
                sum += p->values[(size_t)s * p->n_types + t];
            }
        }
    }

    return sum;
}

/* ---- our own recording ---- */

static void decodes_our_own_recording(void **state)
{
    struct decoded d;
    struct hearth_buf got, want;
    (void)state;

    decode_plainly(&d, recording());
    hearth_buf_init(&got, 0);
    hearth_buf_init(&want, 0);
    for (size_t i = 0; i < d.recording.n_profiles; i++) {
        print_profile(d.recording.profiles[i].name, &d.recording.profiles[i].profile, &got);
    }
    if (getenv("HEARTH_RECORD") != NULL) {
        FILE *file = fopen(GOLDEN "work.txt", "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(got.p, 1, got.n, file), got.n);
        assert_int_equal(fclose(file), 0);
    }

    assert_true(read_file(GOLDEN "work.txt", &want));
    if (!hearth_str_eq(hearth_buf_view(&got), hearth_buf_view(&want))) {
        fail_msg("work.jfr decodes to:\n%.*s", (int)got.n, got.p);
    }

    hearth_buf_release(&got);
    hearth_buf_release(&want);
    release(&d);
}

/* The counts are those of `jfr summary`, the bytes those of Work.java. */
static void counts_the_events_that_jfr_summary_counts(void **state)
{
    struct decoded d;
    (void)state;

    decode_plainly(&d, recording());
    assert_int_equal(sum_of(&d, "cpu"), 14 * INT64_C(10000000));
    assert_int_equal(sum_of(&d, "alloc_outside_tlab_objects"), 1690);
    assert_int_equal(sum_of(&d, "alloc_in_new_tlab_objects"), 11);
    assert_int_equal(sum_of(&d, "contentions"), 2); /* one of a monitor, one of parking */
    assert_int_equal(sum_of(&d, "waits"), 2);
    assert_int_equal(sum_of(&d, "file_reads"), 6);
    assert_int_equal(sum_of(&d, "file_writes"), 1);
    assert_int_equal(sum_of(&d, "file_write_bytes"), 12345);
    assert_int_equal(sum_of(&d, "exceptions"), 5);
    assert_int_equal(sum_of(&d, "wall"), -1);
    release(&d);
}

static void chunks_are_added_up(void **state)
{
    struct decoded d;
    struct hearth_buf twice;
    (void)state;

    hearth_buf_init(&twice, 0);
    hearth_buf_str(&twice, recording());
    hearth_buf_str(&twice, recording());
    decode_plainly(&d, hearth_buf_view(&twice));
    assert_int_equal(sum_of(&d, "cpu"), 28 * INT64_C(10000000));
    assert_int_equal(sum_of(&d, "file_write_bytes"), 2 * 12345);
    release(&d);
    hearth_buf_release(&twice);
}

/* ---- damage and limits ---- */

static void assert_indices_are_valid(const struct hearth_profile *p)
{
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        assert_true(p->stack_locs[i] < p->n_locations);
    }
    for (uint32_t i = 0; i < p->n_lines; i++) {
        assert_true(p->lines[i].function < p->n_functions);
    }
    for (uint32_t i = 0; i < p->n_functions; i++) {
        assert_true(p->functions[i].name < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_sample_labels; i++) {
        assert_true(p->sample_labels[i].key < p->n_strings &&
                    p->sample_labels[i].str < p->n_strings);
    }
    assert_int_equal(p->label_first[p->n_samples], p->n_sample_labels);
    assert_int_equal(p->stack_first[p->n_samples], p->n_stack_locs);
}

static void a_truncated_recording_is_refused(void **state)
{
    (void)state;
    for (size_t n = 0; n < recording().n; n += 1 + recording().n / 200) {
        struct decoded d;
        decode(&d, hearth_str_n(recording().p, n), (struct hearth_pprof_limits){0}, 0);
        assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
        assert_true(d.err.msg[0] != '\0');
        release(&d);
    }
}

static void damage_is_refused_or_yields_valid_profiles(void **state)
{
    struct hearth_buf copy;
    uint64_t seed = 1;
    (void)state;

    hearth_buf_init(&copy, 0);
    hearth_buf_str(&copy, recording());
    for (int round = 0; round < 300; round++) {
        struct decoded d;

        /* Three bytes at a time; most of the file is metadata and constants. */
        memcpy(copy.p, recording().p, recording().n);
        for (int i = 0; i < 3; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy.p[16 + (seed >> 33) % (recording().n - 16)] = (char)(seed >> 20);
        }

        decode(&d, hearth_buf_view(&copy), (struct hearth_pprof_limits){0}, 64u << 20);
        for (size_t i = 0; d.status == HEARTH_OK && i < d.recording.n_profiles; i++) {
            assert_indices_are_valid(&d.recording.profiles[i].profile);
        }
        release(&d);
    }
    hearth_buf_release(&copy);
}

static void refused_memory_is_an_error(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 1u << 20; bytes += 1 + bytes / 3) {
        struct decoded d;
        decode(&d, recording(), (struct hearth_pprof_limits){0}, bytes);
        assert_true(d.status == HEARTH_OK || d.status == HEARTH_NO_MEMORY);
        release(&d);
    }
}

static void limits_cut_stacks_and_refuse_too_many_samples(void **state)
{
    struct decoded d;
    (void)state;

    decode(&d, recording(), (struct hearth_pprof_limits){.max_depth = 2}, 0);
    assert_int_equal(d.status, HEARTH_OK);
    assert_true(d.recording.notes.stacks_cut > 0);
    assert_int_equal(sum_of(&d, "cpu"), 14 * INT64_C(10000000));
    release(&d);

    decode(&d, recording(), (struct hearth_pprof_limits){.max_samples = 2}, 0);
    assert_int_equal(d.status, HEARTH_RESOURCE_EXHAUSTED);
    release(&d);
}

static void other_versions_and_unfinished_chunks_are_named(void **state)
{
    static const struct {
        size_t at;
        char value;
        size_t n;
        const char *message;
    } cases[] = {
        {5, 1, 1, "its version is 1."},     {24, 0, 8, "it is unfinished"},
        {56, 0, 8, "no ticks per second"},  {64, 0, 4, "not compressed"},
        {24, 1, 8, "the metadata at byte"},
    };
    (void)state;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_buf copy;
        struct decoded d;
        hearth_buf_init(&copy, 0);
        hearth_buf_str(&copy, recording());
        memset(copy.p + cases[i].at, cases[i].value, cases[i].n);
        decode(&d, hearth_buf_view(&copy), (struct hearth_pprof_limits){0}, 0);
        assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
        if (strstr(d.err.msg, cases[i].message) == NULL ||
            strstr(d.err.msg, "JFR chunk 1 at byte 0: ") == NULL) {
            fail_msg("%s", d.err.msg);
        }
        release(&d);
        hearth_buf_release(&copy);
    }
}

/* ---- names ---- */

static void numbers_of_one_run_become_an_underscore(void **state)
{
    static const char *const cases[][2] = {
        {"Work$$Lambda$88+0x00007f0c34007a08/1790421142", "Work$$Lambda_"},
        {"App$$Lambda$14/0x0000000800c3d000", "App$$Lambda_"},
        {"App$$Lambda/0x00007fd1e8001000", "App$$Lambda_"},
        {"App$$Lambda$14.123", "App$$Lambda_"},
        {"jdk/internal/reflect/GeneratedMethodAccessor12",
         "jdk/internal/reflect/GeneratedMethodAccessor_"},
        {"com/sun/proxy/$Proxy7", "com/sun/proxy/$Proxy_"},
        {"A$$EnhancerByCGLIB$$1a2b3c4d", "A$$EnhancerByCGLIB$$_"},
        {"java/lang/invoke/LambdaForm$DMH.0x0000000801280400", "java/lang/invoke/LambdaForm$DMH_"},
        {"libzstd-jni-1.5.1-16931311898282279136.so", "libzstd-jni-1.5.1-_.so"},
        {"libc-2.31.so", "libc-2.31.so"},
        {"java/lang/Thread", "java/lang/Thread"},
        {"App$1", "App$1"},
        {"", ""},
    };
    struct hearth_arena arena;
    (void)state;

    hearth_arena_init(&arena, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_str got = hearth_jfr_plain_name(hearth_str_c(cases[i][0]), &arena);
        if (!hearth_str_eq_c(got, cases[i][1])) {
            fail_msg("%s becomes %.*s", cases[i][0], (int)got.n, got.p);
        }
    }
    hearth_arena_release(&arena);
}

/* ---- texts and contexts ---- */

static void texts_of_every_encoding_become_utf8(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        enum jfr_text_kind kind;
        const char *text;
    } cases[] = {
        {"\0", 1, JFR_TEXT_NULL, ""},
        {"\1", 1, JFR_TEXT_EMPTY, ""},
        {"\2\7", 2, JFR_TEXT_CONSTANT, ""},
        {"\3\3abc", 5, JFR_TEXT_UTF8, "abc"},
        {"\5\2a\xe9", 4, JFR_TEXT_LATIN1, "a\xc3\xa9"},
        {"\4\2a\xe9\1", 5, JFR_TEXT_CHARS, "a\xc3\xa9"},
        {"\4\2\xbd\xb0\3\x80\xb8\3", 8, JFR_TEXT_CHARS, "\xf0\x9f\x90\x80"}, /* a pair */
        {"\4\1\xbd\xb0\3", 5, JFR_TEXT_CHARS, "\xef\xbf\xbd"},               /* half of one */
        {"\3\5abc", 5, JFR_TEXT_NULL, ""},                                   /* cut off */
        {"\4\377\377\377\377\17", 6, JFR_TEXT_NULL, ""},                     /* absurd length */
        {"\7", 1, JFR_TEXT_NULL, ""},                                        /* no such encoding */
    };
    struct hearth_arena arena;
    (void)state;

    hearth_arena_init(&arena, 1u << 20);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        const uint8_t *at = (const uint8_t *)cases[i].bytes;
        struct jfr_cursor c = {at, at + cases[i].n, false};
        struct hearth_str text;
        uint64_t constant;

        assert_int_equal(hearth_jfr_text(&c, &arena, &text, &constant), cases[i].kind);
        assert_true(hearth_str_eq_c(text, cases[i].text));
        assert_int_equal(constant, cases[i].kind == JFR_TEXT_CONSTANT ? 7 : 0);

        /* Passing over a text ends at the same byte. */
        struct jfr_cursor skipping = {at, at + cases[i].n, false};
        hearth_jfr_skip_text(&skipping);
        assert_true(c.at == skipping.at && c.failed == skipping.failed);
    }
    hearth_arena_release(&arena);
}

static void integers_have_up_to_nine_bytes(void **state)
{
    static const uint8_t bytes[] = {0x7f, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0x80};
    struct jfr_cursor c = {bytes, bytes + sizeof bytes, false};
    (void)state;

    assert_int_equal(jfr_int(&c), 0x7f);
    assert_int_equal(jfr_int(&c), 0x80);
    assert_true(jfr_int(&c) == UINT64_MAX);
    assert_false(c.failed);
    assert_int_equal(jfr_int(&c), 0);
    assert_true(c.failed);
}

static void contexts_have_the_labels_of_their_snapshot(void **state)
{
    /* Context 7 has the label 1=2; the strings 2 "b" and 1 "a" follow it. */
    static const char bytes[] = "\x0a\x0a\x08\x07\x12\x06\x0a\x04\x08\x01\x10\x02"
                                "\x12\x05\x08\x02\x12\x01"
                                "b"
                                "\x12\x05\x08\x01\x12\x01"
                                "a";
    struct hearth_arena arena;
    struct jfr_contexts contexts;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;
    (void)state;

    hearth_arena_init(&arena, 0);
    assert_int_equal(
        hearth_jfr_contexts_read(hearth_str_n(bytes, sizeof bytes - 1), &arena, &contexts, &err),
        HEARTH_OK);
    const struct jfr_context_label *labels = hearth_jfr_context_labels(&contexts, 7, &n);
    assert_int_equal(n, 1);
    assert_true(hearth_str_eq_c(hearth_jfr_context_string(&contexts, labels[0].key), "a"));
    assert_true(hearth_str_eq_c(hearth_jfr_context_string(&contexts, labels[0].value), "b"));
    (void)hearth_jfr_context_labels(&contexts, 6, &n);
    assert_int_equal(n, 0);
    assert_int_equal(hearth_jfr_context_string(&contexts, 9).n, 0);

    assert_int_equal(hearth_jfr_contexts_read(hearth_str_n(bytes, 6), &arena, &contexts, &err),
                     HEARTH_INVALID_ARGUMENT);
    hearth_arena_release(&arena);
}

/* It writes the interval 0, if none was asked for. */
static void samples_of_async_profiler_without_an_interval_are_10_ms(void **state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf plain;
    struct decoded d;
    (void)state;

    hearth_buf_init(&plain, 0);
    assert_true(read_inflated(GOLDEN "async.jfr.gz", &plain, &err));
    decode_plainly(&d, hearth_buf_view(&plain));
    assert_int_equal(sum_of(&d, "cpu"), 46 * INT64_C(10000000));
    release(&d);
    hearth_buf_release(&plain);
}

/* The same recording, whose setting "event" is made "wall": async-profiler samples each 50 ms then. */
static void wall_time_of_async_profiler_without_an_interval_is_50_ms(void **state)
{
    static const char itimer[] = "event\x03\x06itimer", wall[] = "event\x03\x84\x80\x00wall";
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf plain;
    struct decoded d;
    (void)state;

    hearth_buf_init(&plain, 0);
    assert_true(read_inflated(GOLDEN "async.jfr.gz", &plain, &err));
    char *at = memmem(plain.p, plain.n, itimer, sizeof itimer - 1);
    assert_non_null(at);
    memcpy(at, wall, sizeof wall - 1);
    decode_plainly(&d, hearth_buf_view(&plain));
    assert_int_equal(sum_of(&d, "wall"), 46 * INT64_C(50000000));
    release(&d);
    hearth_buf_release(&plain);
}

static int read_recording(void **state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)state;
    hearth_buf_init(&g_recording, 0);
    return read_inflated(GOLDEN "work.jfr.gz", &g_recording, &err) ? 0 : 1;
}

static int free_recording(void **state)
{
    (void)state;
    hearth_buf_release(&g_recording);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_our_own_recording),
        cmocka_unit_test(counts_the_events_that_jfr_summary_counts),
        cmocka_unit_test(chunks_are_added_up),
        cmocka_unit_test(a_truncated_recording_is_refused),
        cmocka_unit_test(damage_is_refused_or_yields_valid_profiles),
        cmocka_unit_test(refused_memory_is_an_error),
        cmocka_unit_test(limits_cut_stacks_and_refuse_too_many_samples),
        cmocka_unit_test(other_versions_and_unfinished_chunks_are_named),
        cmocka_unit_test(numbers_of_one_run_become_an_underscore),
        cmocka_unit_test(texts_of_every_encoding_become_utf8),
        cmocka_unit_test(integers_have_up_to_nine_bytes),
        cmocka_unit_test(contexts_have_the_labels_of_their_snapshot),
        cmocka_unit_test(samples_of_async_profiler_without_an_interval_are_10_ms),
        cmocka_unit_test(wall_time_of_async_profiler_without_an_interval_is_50_ms),
    };

    return cmocka_run_group_tests(tests, read_recording, free_recording);
}
