/* test_speedscope.c -- files of speedscope: units, samples, events, and what is refused. */
#include "hearth/format/speedscope.h"

#include "print_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define FRAMES \
    "\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"b.c\",\"line\":7},{}]}"

struct decoded {
    struct hearth_arena arena;
    struct hearth_speedscope_file file;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode(struct decoded *d, struct hearth_str text, struct hearth_pprof_limits limits)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d->arena, 256u << 20);
    d->status = hearth_speedscope_decode(text, &limits, &d->arena, &d->file, &d->err);
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
}

/* Decodes a file with these profiles; the table of frames is before them, or after them. */
static void decode_profiles(struct decoded *d, const char *profiles, bool are_first)
{
    char text[4096];

    (void)snprintf(text, sizeof text, "{%s%s%s%s}", are_first ? "" : FRAMES ",",
                   "\"profiles\":", profiles, are_first ? "," FRAMES : "");
    decode(d, hearth_str_c(text), (struct hearth_pprof_limits){0});
}

static void expect_text(const char *profiles, const char *want)
{
    for (int i = 0; i < 2; i++) {
        struct decoded d;
        struct hearth_buf got;

        decode_profiles(&d, profiles, i == 0);
        if (d.status != HEARTH_OK) {
            fail_msg("%s: %s", profiles, d.err.msg);
        }
        hearth_buf_init(&got, 0);
        for (size_t k = 0; k < d.file.n_profiles; k++) {
            print_profile(d.file.profiles[k].name, &d.file.profiles[k].profile, &got);
        }
        if (!hearth_str_eq_c(hearth_buf_view(&got), want)) {
            fail_msg("%s is read as:\n%.*s", profiles, (int)got.n, got.p);
        }
        hearth_buf_release(&got);
        release(&d);
    }
}

static void expect_refusal(const char *profiles, const char *part)
{
    struct decoded d;

    decode_profiles(&d, profiles, false);
    if (d.status != HEARTH_INVALID_ARGUMENT || strstr(d.err.msg, part) == NULL) {
        fail_msg("expected \"%s\", got status %d: %s", part, (int)d.status, d.err.msg);
    }
    release(&d);
}

static void reads_samples_root_first_with_their_weights(void **state)
{
    (void)state;
    expect_text("[{\"type\":\"sampled\",\"name\":\"x\",\"unit\":\"seconds\",\"startValue\":1,"
                "\"endValue\":3.5,"
                "\"samples\":[[0,1],[0],[0,1],[]],\"weights\":[0.01,1,0.02,0.5]}]",
                "wall, period cpu/nanoseconds, from 0 for 2500000000\n  wall/nanoseconds\n"
                "a:0;b:7 30000000\na:0 1000000000\n[no stack]:0 500000000\n");
}

static void takes_frames_in_arrays_of_their_own(void **state)
{
    (void)state;
    expect_text("[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[[0],[1]],[[0],1]],"
                "\"weights\":[1,2]}]",
                "process_cpu, period /, from 0 for 0\n  samples/count\na:0;b:7 3\n");
}

static void reads_events_as_time_of_the_innermost_frame(void **state)
{
    (void)state;
    expect_text("[{\"type\":\"evented\",\"name\":\"x\",\"unit\":\"milliseconds\",\"endValue\":20,"
                "\"events\":["
                "{\"type\":\"O\",\"at\":1,\"frame\":0},{\"at\":1.5,\"frame\":1,\"type\":\"O\"},"
                "{\"type\":\"C\",\"at\":3,\"frame\":1},{\"type\":\"O\",\"at\":3,\"frame\":1},"
                "{\"type\":\"C\",\"at\":4,\"frame\":1},{\"type\":\"C\",\"at\":10,\"frame\":0}]}]",
                "wall, period cpu/nanoseconds, from 0 for 20000000\n  wall/nanoseconds\n"
                "a:0 6500000\na:0;b:7 2500000\n");
}

static void closes_frames_that_are_open_at_the_end(void **state)
{
    (void)state;
    expect_text("[{\"type\":\"evented\",\"unit\":\"none\",\"endValue\":9,\"events\":["
                "{\"type\":\"O\",\"at\":1,\"frame\":0},{\"type\":\"O\",\"at\":4,\"frame\":1}]}]",
                "process_cpu, period /, from 0 for 0\n  samples/count\na:0 3\na:0;b:7 5\n");
}

static void keeps_units_apart_and_labels_threads(void **state)
{
    (void)state;
    expect_text("[{\"type\":\"sampled\",\"name\":\"one\",\"unit\":\"bytes\",\"samples\":[[0]],"
                "\"weights\":[5]},"
                "{\"type\":\"sampled\",\"name\":\"two\",\"unit\":\"nanoseconds\",\"samples\":[[0]],"
                "\"weights\":[6]},"
                "{\"type\":\"sampled\",\"name\":\"three\",\"unit\":\"microseconds\",\"samples\":[["
                "0]],\"weights\":[7]}]",
                "wall, period cpu/nanoseconds, from 0 for 0\n  wall/nanoseconds\n"
                "a:0 6 {thread name=two0}\na:0 7000 {thread name=three0}\n"
                "memory, period /, from 0 for 0\n  samples/bytes\na:0 5 {thread name=one0}\n");
}

static void names_the_place_of_a_fault(void **state)
{
    (void)state;
#define EVENTED(events) "[{\"type\":\"evented\",\"unit\":\"none\",\"events\":[" events "]}]"
#define SAMPLED(samples, weights)                                                                  \
    "[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[" samples "],\"weights\":[" weights "]" \
    "}"                                                                                            \
    "]"
#define EVENT(type, at, frame) "{\"type\":\"" type "\",\"at\":" at ",\"frame\":" frame "}"
    static const char *const cases[][2] = {
        {EVENTED(EVENT("O", "-1", "0")), "event 0 of profile 0: at byte"},
        {EVENTED(EVENT("O", "-1", "0")), "the time is negative"},
        {EVENTED(EVENT("O", "5", "0") "," EVENT("C", "4", "0")), "event 1 of profile 0"},
        {EVENTED(EVENT("O", "5", "0") "," EVENT("C", "4", "0")), "before that of the event before"},
        {EVENTED(EVENT("O", "5", "0") "," EVENT("C", "6", "1")), "closes another frame"},
        {EVENTED(EVENT("C", "6", "1")), "no frame is open"},
        {EVENTED(EVENT("O", "6", "3")), "frame 3 is not one of the 3 frames"},
        {EVENTED(EVENT("X", "6", "1")), "an event needs \"type\" (O or C)"},
        {EVENTED("{\"type\":\"O\",\"frame\":1}"), "an event needs"},
        {EVENTED("7"), "'7' where an object is expected"},
        {SAMPLED("[0],[0,9]", "1,1"), "sample 1 of profile 0: at byte"},
        {SAMPLED("[0],[0,-1]", "1,1"), "frame -1 is not one of the 3 frames"},
        {SAMPLED("[[0,1]]", "1"), "an array in a stack has exactly one frame"},
        {SAMPLED("[0,[]]", "1"), "an array in a stack has exactly one frame"},
        {SAMPLED("[0]", "-2"), "the weight is negative"},
        {SAMPLED("[0],[1]", "1"), "profile 0 has only 1 weights for its samples"},
        {SAMPLED("[0]", "1,2"), "profile 0 has more weights than its 1 samples"},
        {"[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[]}]",
         "profile 0 has no \"weights\""},
        {"[{\"type\":\"evented\",\"unit\":\"none\"}]", "profile 0 has no \"events\""},
        {"[{\"type\":\"evented\",\"events\":[]}]", "profile 0 has no unit"},
        {"[{\"unit\":\"days\"}]", "profile 0 has the unknown unit \"days\""},
        {"[{\"unit\":\"none\",\"type\":\"odd\"}]", "profile 0 has the unknown type \"odd\""},
        {"[{\"unit\":\"none\",\"endValue\":\"x\"}]", "profile 0 has no number as startValue"},
        {"[", "'}' where an object is expected"},
        {"{}", "'{' where an array is expected"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        expect_refusal(cases[i][0], cases[i][1]);
    }
}

static void refuses_a_file_without_tables(void **state)
{
    (void)state;
    struct decoded d;

    decode(&d, HEARTH_STR("{\"shared\":{}}"), (struct hearth_pprof_limits){0});
    assert_string_equal(d.err.msg, "the file has no \"profiles\"");
    release(&d);
    decode(&d, HEARTH_STR("{\"profiles\":[],\"shared\":{}}"), (struct hearth_pprof_limits){0});
    assert_string_equal(d.err.msg, "the file has no \"shared.frames\"");
    release(&d);
    decode(&d, HEARTH_STR("{\"profiles\":[],\"shared\":{\"frames\":[]}}"),
           (struct hearth_pprof_limits){0});
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.file.n_profiles, 0);
    release(&d);
}

/* Opens `depth` frames, one each nanosecond. */
static struct hearth_buf make_deep_events(size_t depth)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text,
                    "{" FRAMES
                    ",\"profiles\":[{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"events\":[");
    for (size_t i = 0; i < depth; i++) {
        hearth_buf_printf(&text, "%s{\"type\":\"O\",\"at\":%zu,\"frame\":0}", i == 0 ? "" : ",", i);
    }
    hearth_buf_cstr(&text, "]}]}");

    return text;
}

static void cuts_deep_stacks_at_their_leaf_end(void **state)
{
    (void)state;
    struct hearth_buf text = make_deep_events(11);
    struct decoded d;

    decode(&d, hearth_buf_view(&text), (struct hearth_pprof_limits){.max_depth = 4});
    assert_int_equal(d.status, HEARTH_OK);

    /* Depths 1 to 10 last a nanosecond each; those of 4 and more are one stack. */
    const struct hearth_profile *p = &d.file.profiles[0].profile;
    assert_int_equal(p->n_samples, 4);
    assert_int_equal(p->values[3], 7);
    assert_int_equal(d.file.notes.stacks_cut, 6);
    assert_int_equal(d.file.notes.frames_cut, 1 + 2 + 3 + 4 + 5 + 6);
    release(&d);
    hearth_buf_release(&text);
}

static void refuses_a_small_file_whose_stacks_are_large_in_sum(void **state)
{
    (void)state;
    struct hearth_buf text = make_deep_events(6000);
    struct decoded d;

    decode(&d, hearth_buf_view(&text), (struct hearth_pprof_limits){.max_frames = 10000000});
    assert_int_equal(d.status, HEARTH_RESOURCE_EXHAUSTED);
    assert_string_equal(d.err.msg,
                        "the stacks have 17997000 frames in sum; the limit is 10000000; raise it "
                        "with --max-stack-frames, or for one tenant with hearth admin limits");
    assert_true(d.arena.used_bytes < 4u << 20);
    release(&d);
    hearth_buf_release(&text);
}

/* Each part is small enough, all together are not. */
static void refuses_many_parts_whose_stacks_are_large_in_sum(void **state)
{
    (void)state;
    struct hearth_buf text;
    struct decoded d;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{" FRAMES ",\"profiles\":[");
    for (int part = 0; part < 20; part++) {
        hearth_buf_printf(&text, "%s{\"type\":\"evented\",\"unit\":\"none\",\"events\":[",
                          part == 0 ? "" : ",");
        for (int i = 0; i < 2000; i++) {
            hearth_buf_printf(&text, "%s{\"type\":\"O\",\"frame\":0,\"at\":%d}", i == 0 ? "" : ",",
                              i);
        }
        hearth_buf_cstr(&text, "]}");
    }
    hearth_buf_cstr(&text, "]}");
    decode(&d, hearth_buf_view(&text), (struct hearth_pprof_limits){.max_frames = 10000000});
    assert_int_equal(d.status, HEARTH_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(d.err.msg, "frames in sum"));
    release(&d);
    hearth_buf_release(&text);
}

/* Each part would clear the table of the largest one. */
static void reads_many_parts_after_a_large_one(void **state)
{
    (void)state;
    struct hearth_buf text;
    struct decoded d;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{" FRAMES ",\"profiles\":["
                           "{\"type\":\"evented\",\"unit\":\"none\",\"events\":[");
    for (int i = 0; i < 300000; i++) {
        hearth_buf_printf(&text, "%s{\"type\":\"O\",\"frame\":0,\"at\":0}", i == 0 ? "" : ",");
    }
    hearth_buf_cstr(&text, "]}");
    for (int part = 0; part < 30000; part++) {
        hearth_buf_cstr(&text, ",{\"type\":\"evented\",\"unit\":\"none\",\"events\":["
                               "{\"type\":\"O\",\"frame\":0,\"at\":0},"
                               "{\"type\":\"C\",\"frame\":0,\"at\":1}]}");
    }
    hearth_buf_cstr(&text, "]}");

    clock_t start = clock();
    decode(&d, hearth_buf_view(&text), (struct hearth_pprof_limits){.max_depth = 100});
    assert_int_equal(d.status, HEARTH_OK);
    assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
    release(&d);
    hearth_buf_release(&text);
}

static void limits_the_depth_of_a_sample(void **state)
{
    (void)state;
    struct hearth_buf text;
    struct decoded d;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(
        &text,
        "{" FRAMES
        ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"weights\":[1],\"samples\":[[0");
    for (int i = 0; i < 65536; i++) {
        hearth_buf_cstr(&text, ",0");
    }
    hearth_buf_cstr(&text, "]]}]}");
    decode(&d, hearth_buf_view(&text), (struct hearth_pprof_limits){0});
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(d.err.msg, "the stack has more than 65536 frames"));
    release(&d);
    hearth_buf_release(&text);
}

static void refuses_sums_beyond_63_bits(void **state)
{
    (void)state;
    struct decoded d;

    decode_profiles(&d, SAMPLED("[0],[0]", "9223372036854775807,1"), true);
    assert_int_equal(d.status, HEARTH_OUT_OF_RANGE);
    release(&d);
    expect_refusal(
        "[{\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[0]],\"weights\":[10000000000]}]",
        "sample 0 of profile 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_samples_root_first_with_their_weights),
        cmocka_unit_test(takes_frames_in_arrays_of_their_own),
        cmocka_unit_test(reads_events_as_time_of_the_innermost_frame),
        cmocka_unit_test(closes_frames_that_are_open_at_the_end),
        cmocka_unit_test(keeps_units_apart_and_labels_threads),
        cmocka_unit_test(names_the_place_of_a_fault),
        cmocka_unit_test(refuses_a_file_without_tables),
        cmocka_unit_test(cuts_deep_stacks_at_their_leaf_end),
        cmocka_unit_test(refuses_a_small_file_whose_stacks_are_large_in_sum),
        cmocka_unit_test(refuses_many_parts_whose_stacks_are_large_in_sum),
        cmocka_unit_test(reads_many_parts_after_a_large_one),
        cmocka_unit_test(limits_the_depth_of_a_sample),
        cmocka_unit_test(refuses_sums_beyond_63_bits),
    };

    return cmocka_run_group_tests_name("speedscope", tests, NULL, NULL);
}
