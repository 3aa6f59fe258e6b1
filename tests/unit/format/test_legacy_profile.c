/* test_legacy_profile.c -- texts of gperftools and Go, and CPU profiles of machine words. */
#include "hearth/format/legacy_profile.h"

#include "print_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct decoded {
    struct hearth_arena arena;
    struct hearth_profile profile;
    struct hearth_legacy_notes notes;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode(struct decoded *d, struct hearth_str bytes)
{
    const struct hearth_pprof_limits limits = {.max_depth = 1000};

    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d->arena, 16u << 20);
    d->status = hearth_legacy_decode(bytes, &limits, &d->arena, &d->profile, &d->notes, &d->err);
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
}

static void expect_profile(struct hearth_str bytes, const char *want)
{
    struct decoded d;
    struct hearth_buf got;

    assert_true(hearth_legacy_recognise(bytes));
    decode(&d, bytes);
    if (d.status != HEARTH_OK) {
        fail_msg("%s", d.err.msg);
    }
    hearth_buf_init(&got, 0);
    print_profile(d.notes.name == NULL ? "-" : d.notes.name, &d.profile, &got);
    if (!hearth_str_eq_c(hearth_buf_view(&got), want)) {
        fail_msg("read as:\n%.*s", (int)got.n, got.p);
    }
    hearth_buf_release(&got);
    release(&d);
}

static void expect_text(const char *text, const char *want)
{
    expect_profile(hearth_str_c(text), want);
}

static void expect_refusal(const char *text, const char *part)
{
    struct decoded d;

    decode(&d, hearth_str_c(text));
    if (d.status != HEARTH_INVALID_ARGUMENT || strstr(d.err.msg, part) == NULL) {
        fail_msg("expected \"%s\", got status %d: %s", part, (int)d.status, d.err.msg);
    }
    release(&d);
}

/* ---- texts ---- */

static void reads_heap_profiles_as_they_are(void **state)
{
    (void)state;
    expect_text("heap profile:  3:  30 [ 3:  30] @ heapprofile\n"
                "  2:  20 [ 2: 20] @ 0x11 0x21\n 1: 10 [ 1: 10] @ 0x00031\n",
                "memory, period space/bytes, from 0 for 0\n  objects/count  space/bytes\n"
                "0x20;0x10 2 20\n0x30 1 10\n");
    expect_text("--- heapz 1 ---\nheap profile: 1: 10 [ 3: 30] @ growthz\n1: 10 [ 3: 30] @ 0x11\n",
                "memory, period space/bytes, from 0 for 0\n  alloc_objects/count  alloc_space/bytes"
                "  inuse_objects/count  inuse_space/bytes\n0x10 3 30 1 10\n");
}

/* The numbers are those of `go tool pprof -raw`. */
static void scales_sampled_heap_profiles(void **state)
{
    (void)state;
    expect_text("heap profile: 2: 1024 [ 2: 1024] @ heap_v2/524288\n 2: 1024 [ 2: 1024] @ 0x11\n",
                "memory, period space/bytes, from 0 for 0\n  objects/count  space/bytes\n"
                "0x10 2049 1049088\n");
    expect_text("heap profile: 2: 1024 [ 2: 1024] @ heap/1048576\n 2: 1024 [ 2: 1024] @ 0x11\n",
                "memory, period space/bytes, from 0 for 0\n  objects/count  space/bytes\n"
                "0x10 2049 1049088\n");
}

static void scales_contentions_to_nanoseconds(void **state)
{
    (void)state;
    expect_text("--- contentionz 7 ---\ncycles/second = 2000000000\nsampling period = 100\n"
                "ms since reset = 5\ndiscarded samples = 0\n  30 2 @ 0x11 0x21\n",
                "mutex, period contentions/count, from 0 for 5000000\n"
                "  contentions/count  delay/nanoseconds\n0x20;0x10 200 1500\n");
    expect_text("--- contention:\n3 1 @ 0x11\n",
                "block, period contentions/count, from 0 for 0\n"
                "  contentions/count  delay/nanoseconds\n0x10 1 3\n");
}

static void takes_functions_and_labels_that_go_writes(void **state)
{
    (void)state;
    expect_text(
        "goroutine profile: total 4\n3 @ 0x11 0x21 0x31\n# labels: {\"a\":\"b\", \"c\":\"\"}\n"
        "#\t0x20\tmain.f[...]+0x18\t\t/src/a b.go:26\n#\t0x30\tmain.(*T).g+0x1\t/src/b.go:7\n\n"
        "1 @ 0x41\n#\t0x40\n\n",
        "-, period goroutine/count, from 0 for 0\n  goroutine/count\n"
        "main.(*T).g:7;main.f[...]:26 3 {a=b0} {c=0}\n0x40 1\n");
}

static void reads_every_escape_of_a_label_that_go_quotes(void **state)
{
    (void)state;
    expect_text("goroutine profile: total 3\n1 @ 0x11\n"
                "# labels: {\"a\\\"b\":\"\\x1b[0m\\a\\v\\\\\", \"c\":\"\\u00a0\\U000e0041\"}\n"
                "1 @ 0x21\n# labels: {\"d\":\"\\xff\\xfe!\"}\n1 @ 0x31\n# labels: {}\n",
                "-, period goroutine/count, from 0 for 0\n  goroutine/count\n"
                "0x10 1 {a\"b=\x1b[0m\a\v\\0} {c=\u00a0\xf3\xa0\x81\x81\x30}\n"
                "0x20 1 {d=\uFFFD!0}\n0x30 1\n");
}

static void finds_the_mappings_of_addresses(void **state)
{
    (void)state;
    struct decoded d;

    decode(&d, HEARTH_STR("x profile: total 1\n1 @ 0x2001 0x1001 0x5000\n\nMAPPED_LIBRARIES:\n"
                          "00002000-00003000 r-xp 00000040 08:01 1234  /lib/with blank.so\n"
                          "00004000-00006000 rw-p 00000000 08:01 1234  /not/code\n"
                          "1000-2000: /usr/bin/x (@20) build-id\nnot a mapping\n"));
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.notes.skipped_lines, 1);
    assert_int_equal(d.profile.n_mappings, 2);

    const struct hearth_mapping *m = d.profile.mappings;
    const uint32_t *stack = d.profile.stack_locs;
    assert_int_equal(d.profile.locations[stack[0]].mapping, 0);
    assert_int_equal(d.profile.locations[stack[1]].mapping, 1);
    assert_int_equal(d.profile.locations[stack[2]].mapping, HEARTH_NO_INDEX);
    assert_true(hearth_str_eq_c(d.profile.strings[m[0].filename], "/lib/with blank.so"));
    assert_int_equal(m[0].offset, 0x40);
    assert_true(hearth_str_eq_c(d.profile.strings[m[1].filename], "/usr/bin/x"));
    assert_true(hearth_str_eq_c(d.profile.strings[m[1].build_id], "build-id"));
    assert_int_equal(m[1].offset, 0x20);
    release(&d);
}

static void names_the_line_of_a_fault(void **state)
{
    (void)state;
#define HEAP_HEAD "heap profile: 1: 1 [ 1: 1] @ heapprofile\n"
    static const char *const cases[][2] = {
        {"heap profile: 1\n", "line 1 is no head of a heap profile: \"heap profile: 1\""},
        {"heap profile: 1: 1 [ 1: 1] @ pile\n", "line 1 is no head of a known heap profile"},
        {"heap profile: 1: 1 [ 1: 1] @ heap/x\n", "line 1 is no head"},
        {HEAP_HEAD "\nnonsense\n", "line 3 is no sample \"N: BYTES [N: BYTES] @ ADDRESSES\""},
        {HEAP_HEAD "1: 1 [ 1: 1] @ 0x1 main\n", "line 2 is no list of addresses"},
        {HEAP_HEAD "0: 1 [ 1: 1] @ 0x1\n", "line 2 has bytes of no allocation"},
        {"--- heapz 1 ---\n", "the heap profile has no head"},
        {"--- mutex:\nformat=java\n", "line 2 is no known attribute of contention"},
        {"--- mutex:\n1 @ 0x1\n", "line 2 is no sample \"DELAY COUNT @ ADDRESSES\""},
        {"--- mutex:\n1 1 @ 0x1\ncycles/second=1\n", "line 3 is no sample"},
        {"x profile: total 1\n0x1\n", "line 2 is no sample \"COUNT @ ADDRESSES\""},
        {"x profile: total 1\n1 @ 0x1\n# labels: {\n", "line 3 is no list of labels"},
        {"x profile: total 1\n1 @ 0x1\n# labels: {\"a\":\"b\",\n", "line 3 is no list of labels"},
        {"x profile: total 1\n1 @ 0x1\n# labels: {\"a\":\"\\q\"}\n", "line 3 is no list of labels"},
        {"x profile: total 1\n1 @ 0x1\n# labels: {\"a\":\"b\\\n", "line 3 is no list of labels"},
        {"x profile: total 1\n1 @ 0x1\n# labels: {\"a\":\"b\"} c\n", "line 3 is no list of labels"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        expect_refusal(cases[i][0], cases[i][1]);
    }
}

static void refuses_values_beyond_63_bits(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "--- mutex:\ncycles/second=1\n9223372036854775807 1 @ 0x1\n",
        "--- mutex:\nsampling period=4000000000\n1 9000000000 @ 0x1\n",
        "heap profile: 1: 1 [ 1: 1] @ heap_v2/524288\n9000000000000: 1 [ 1: 1] @ 0x1\n",
        "heap profile: 1: 1 [ 1: 1] @ heap_v2/100000000000000000\n1: 1 [ 1: 1] @ 0x1\n",
        "x profile: total 1\n9223372036854775807 @ 0x1\n1 @ 0x1\n",
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct decoded d;
        decode(&d, hearth_str_c(cases[i]));
        assert_int_equal(d.status, HEARTH_OUT_OF_RANGE);
        release(&d);
    }
}

/* ---- machine words ---- */

/* Appends numbers as words, then a table of mappings. */
static struct hearth_str write_words(char *out, const uint64_t *words, size_t n, size_t word_bytes,
                                     bool is_big_endian)
{
    static const char maps[] = "1000-2000 r-xp 00000000 08:01 1 /usr/bin/x\n";
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < word_bytes; k++) {
            size_t byte = is_big_endian ? word_bytes - 1 - k : k;
            out[at++] = (char)(words[i] >> (8 * byte) & 0xFF);
        }
    }
    memcpy(out + at, maps, sizeof maps - 1);

    return hearth_str_n(out, at + sizeof maps - 1);
}

static void reads_cpu_profiles_of_any_machine(void **state)
{
    (void)state;
    static const uint64_t words[] = {0, 3, 0,      10000,  0, 2, 3,      0x1010, 0x1021, 0x1031,
                                     5, 2, 0x1110, 0x1121, 1, 1, 0x1210, 0,      1,      0};
    char bytes[512];

    for (int kind = 0; kind < 4; kind++) {
        expect_profile(
            write_words(bytes, words, HEARTH_ARRAY_LEN(words), kind < 2 ? 8 : 4, kind % 2 != 0),
            "-, period cpu/nanoseconds, from 0 for 0\n  samples/count  cpu/nanoseconds\n"
            "0x1030;0x1020;0x1010 2 20000000\n0x1120;0x1110 5 50000000\n"
            "0x1210 1 10000000\n");
    }
}

static void leaves_out_the_frames_of_the_signal_handler(void **state)
{
    (void)state;
    static const uint64_t words[] = {0,      3,      0,      10000,  0, 2, 4,
                                     0x1010, 0x9001, 0x1011, 0x1031, 5, 4, 0x1110,
                                     0x9001, 0x1111, 0x1121, 0,      1, 0};
    char bytes[512];

    expect_profile(write_words(bytes, words, HEARTH_ARRAY_LEN(words), 8, false),
                   "-, period cpu/nanoseconds, from 0 for 0\n  samples/count  cpu/nanoseconds\n"
                   "0x1030;0x1010;0x1010 2 20000000\n0x1120;0x1110;0x1110 5 50000000\n");
}

static void refuses_a_cpu_profile_that_ends_within_a_sample(void **state)
{
    (void)state;
    static const uint64_t words[] = {0, 3, 0, 10000, 0, 2, UINT64_MAX, 0x1010};
    char bytes[512];
    struct decoded d;

    decode(&d, write_words(bytes, words, HEARTH_ARRAY_LEN(words), 8, false));
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_string_equal(d.err.msg, "the sample at byte 40 of the CPU profile is not complete");
    release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_heap_profiles_as_they_are),
        cmocka_unit_test(scales_sampled_heap_profiles),
        cmocka_unit_test(scales_contentions_to_nanoseconds),
        cmocka_unit_test(takes_functions_and_labels_that_go_writes),
        cmocka_unit_test(reads_every_escape_of_a_label_that_go_quotes),
        cmocka_unit_test(finds_the_mappings_of_addresses),
        cmocka_unit_test(names_the_line_of_a_fault),
        cmocka_unit_test(refuses_values_beyond_63_bits),
        cmocka_unit_test(reads_cpu_profiles_of_any_machine),
        cmocka_unit_test(leaves_out_the_frames_of_the_signal_handler),
        cmocka_unit_test(refuses_a_cpu_profile_that_ends_within_a_sample),
    };

    return cmocka_run_group_tests_name("legacy_profile", tests, NULL, NULL);
}
