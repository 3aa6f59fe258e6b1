/* test_otlp_profiles.c -- exports of OpenTelemetry's protocol as profiles. */
#include "hearth/format/otlp_profiles.h"

#include "otlp_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Strings of the dictionary. */
enum {
    NOTHING,
    SAMPLES,
    COUNT,
    CPU,
    NANOSECONDS,
    WORK,
    MAIN,
    EXE,
    BUILD_ID,
    ABC,
    SERVICE,
    SHOP,
    THREAD,
    WORKER,
    N_STRINGS
};

static const char *const g_strings[N_STRINGS] = {
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "work",
    "main",
    "/bin/app",
    "process.executable.build_id.gnu",
    "abc",
    "service.name",
    "shop",
    "thread.name",
    "worker",
};

/* An attribute of the dictionary with the text at an index. */
#define ATTRIBUTE(key, text) MESSAGE(6, INT(1, key), MESSAGE(2, INT(8, text)))
/* An attribute of a resource. */
#define LABEL(key, text) MESSAGE(1, TEXT(1, key), MESSAGE(2, TEXT(1, text)))

/*
 * Attributes: 1 build id, 2 service shop, 3 thread worker. Mapping 1: the executable. Functions: 1
 * work, 2 main. Locations: 1 work inlined into main, 2 main, 3 without lines. Stacks: 1 is 1 and 2;
 * 2 is 3. Link 1.
 */
static struct hearth_str make_dictionary(void)
{
    struct hearth_str strings = {0};
    for (int i = 0; i < N_STRINGS; i++) {
        strings = JOIN(strings, TEXT(5, g_strings[i]));
    }

    return MESSAGE(2, strings, MESSAGE(6, HEARTH_STR("")), ATTRIBUTE(BUILD_ID, ABC),
                   ATTRIBUTE(SERVICE, SHOP), ATTRIBUTE(THREAD, WORKER), MESSAGE(1, HEARTH_STR("")),
                   MESSAGE(1, INT(1, 0x1000), INT(2, 0x2000), INT(3, 16), INT(4, EXE), LIST(5, 1)),
                   MESSAGE(3, HEARTH_STR("")), MESSAGE(3, INT(1, WORK), INT(2, WORK), INT(4, 7)),
                   MESSAGE(3, INT(1, MAIN)), MESSAGE(2, HEARTH_STR("")),
                   MESSAGE(2, INT(1, 1), INT(2, 0x1010), MESSAGE(3, INT(1, 1), INT(2, 8)),
                           MESSAGE(3, INT(1, 2), INT(2, 20), INT(3, 4))),
                   MESSAGE(2, INT(2, 0x1020), MESSAGE(3, INT(1, 2), INT(2, 21))),
                   MESSAGE(2, INT(1, 1), INT(2, 0x1abc), INT(4, 1)), MESSAGE(4, HEARTH_STR("")),
                   MESSAGE(4, BYTES(1, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20"),
                           BYTES(2, "\0\0\0\0\0\0\1\2")),
                   MESSAGE(7, HEARTH_STR("")), MESSAGE(7, LIST(1, 1, 2)), MESSAGE(7, LIST(1, 3)));
}

/* Of a profile: samples/count with a period of CPU time. */
#define ON_CPU                                                                                \
    MESSAGE(1, INT(1, SAMPLES), INT(2, COUNT)), MESSAGE(5, INT(1, CPU), INT(2, NANOSECONDS)), \
        INT(6, 50)
#define PROFILE(...)           MESSAGE(2, __VA_ARGS__)
#define SAMPLE(...)            MESSAGE(2, __VA_ARGS__)
#define STAMP(ns)              FIXED(5, (ns))
#define EXPORT(...)            make_export(HEARTH_STR(""), JOIN(__VA_ARGS__))
#define EXPORT_OF(labels, ...) make_export((labels), JOIN(__VA_ARGS__))

static struct hearth_str make_export(struct hearth_str labels, struct hearth_str profiles)
{
    return JOIN(MESSAGE(1, MESSAGE(1, labels), MESSAGE(2, profiles)), make_dictionary());
}

/* ---- what a test sees ---- */

static struct hearth_arena g_arena;
static struct hearth_otlp_export g_export;
static struct hearth_profile g_profiles[4];
static struct hearth_err g_err;

static const struct hearth_otlp_options g_options = {
    .limits = {.max_samples = 5, .max_sample_labels = 3},
    .max_label_name_bytes = 30,
    .max_label_value_bytes = 20,
};

static enum hearth_status decode(struct hearth_str bytes)
{
    hearth_arena_reset(&g_arena);
    g_err = (struct hearth_err)HEARTH_ERR_INIT;
    return hearth_otlp_decode(bytes, &g_options, &g_arena, &g_export, &g_err);
}

static void expect_part(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, text);
    }
}

static void expect_refusal(struct hearth_str bytes, const char *part)
{
    assert_int_equal(decode(bytes), HEARTH_INVALID_ARGUMENT);
    expect_part(g_err.msg, part);
}

/* Decodes n profiles. */
static void expect_profiles(struct hearth_str bytes, size_t n)
{
    if (decode(bytes) != HEARTH_OK) {
        fail_msg("%s", g_err.msg);
    }
    assert_int_equal(g_export.n_profiles, n);
    assert_true(n <= HEARTH_ARRAY_LEN(g_profiles));
    for (size_t i = 0; i < n; i++) {
        struct hearth_pprof_notes notes = {0};
        assert_int_equal(hearth_otlp_build(&g_export, i, &g_arena, &g_profiles[i], &notes, &g_err),
                         HEARTH_OK);
    }
}

static void expect_text(struct hearth_str text, const char *expected)
{
    if (!hearth_str_eq_c(text, expected)) {
        fail_msg("\"%.*s\" instead of \"%s\"", (int)text.n, text.p, expected);
    }
}

static struct hearth_str find_label(const struct hearth_otlp_profile *p, const char *name)
{
    for (size_t i = 0; i < p->n_labels; i++) {
        if (hearth_str_eq_c(p->labels[i].name, name)) {
            return p->labels[i].value;
        }
    }
    return HEARTH_STR("");
}

/* The only type of profile i as name:type:unit. */
static void expect_type(size_t i, const char *expected)
{
    const struct hearth_otlp_profile *p = &g_export.profiles[i];
    const struct hearth_profile *profile = &g_profiles[i];
    struct hearth_str type = profile->strings[profile->types[0].type];
    struct hearth_str unit = profile->strings[profile->types[0].unit];
    char text[128];

    assert_int_equal(profile->n_types, 1);
    (void)snprintf(text, sizeof text, "%.*s:%.*s:%.*s", (int)p->name.n, p->name.p, (int)type.n,
                   type.p, (int)unit.n, unit.p);
    assert_string_equal(text, expected);
}

/* ---- values and types ---- */

static void counts_timestamps_as_the_period_of_cpu_time(void **state)
{
    (void)state;
    expect_profiles(EXPORT(PROFILE(ON_CPU, FIXED(3, 1000), INT(4, 60),
                                   SAMPLE(INT(1, 1), STAMP(1001), STAMP(1002)),
                                   SAMPLE(INT(1, 2), STAMP(1003)))),
                    1);
    const struct hearth_profile *p = &g_profiles[0];
    expect_type(0, "process_cpu:cpu:nanoseconds");
    assert_int_equal(p->n_samples, 2);
    assert_int_equal(p->values[0], 100);
    assert_int_equal(p->values[1], 50);
    assert_int_equal(p->period, 50);
    assert_int_equal(p->time_ns, 1000);
    assert_int_equal(p->duration_ns, 60);
    expect_text(p->strings[p->period_type.type], "cpu");
}

static void sums_the_values_of_timestamps(void **state)
{
    (void)state;
    struct hearth_str off_cpu = MESSAGE(1, INT(1, WORK), INT(2, NANOSECONDS));
    expect_profiles(
        EXPORT(PROFILE(off_cpu, SAMPLE(INT(1, 1), LIST(4, 5, 7), STAMP(20), STAMP(10)),
                       SAMPLE(INT(1, 2), INT(4, 9)), SAMPLE(INT(1, 2), LIST(4, 9), STAMP(40)))),
        1);
    const struct hearth_profile *p = &g_profiles[0];
    expect_type(0, "work:work:nanoseconds");
    assert_int_equal(p->values[0], 12);
    assert_int_equal(p->values[1], 9);
    assert_int_equal(p->values[2], 9);
    assert_int_equal(p->time_ns, 10); /* the profile has no time */
    assert_int_equal(p->duration_ns, 30);
}

static void leaves_out_samples_that_break_a_rule_and_names_it(void **state)
{
    (void)state;
    static const uint64_t huge = (uint64_t)INT64_MAX;
    struct hearth_str good = SAMPLE(INT(1, 1), STAMP(1));
    const struct {
        struct hearth_str sample;
        const char *why;
    } bad[] = {
        {SAMPLE(INT(1, 3), STAMP(1)), "samples[1].stack_index is 3; the stack_table has 3 entries"},
        {SAMPLE(INT(1, -1), STAMP(1)), "stack_index is -1"},
        {SAMPLE(INT(3, 2), LIST(4, 1)), "link_index is 2; the link_table has 2 entries"},
        {SAMPLE(LIST(2, 4), LIST(4, 1)), "attribute_indices has 4; the attribute_table has 4"},
        {SAMPLE(LIST(2, 3, 3, 3, 3), STAMP(1)), "has 4 attributes; the limit is 3; raise it"},
        {SAMPLE(INT(1, 1), INT(3, 1)), "has neither values nor timestamps"},
        {SAMPLE(LIST(4, 1, 2), STAMP(1)), "has 2 values and 1 timestamps"},
        {SAMPLE(LIST(4, huge, huge), STAMP(1), STAMP(2)), "more than 63 bits"},
        {SAMPLE(LIST(4, huge)), "more than 63 bits"}, /* times the period */
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        expect_profiles(EXPORT(PROFILE(ON_CPU, good, bad[i].sample)), 1);
        assert_int_equal(g_profiles[0].n_samples, 1);
        assert_int_equal(g_export.n_bad_samples, 1);
        assert_int_equal(g_export.n_rejected, 0);
        expect_part(g_export.first.msg, "resource_profiles[0].scope_profiles[0].profiles[0]");
        expect_part(g_export.first.msg, bad[i].why);
    }
}

static void rejects_profiles_by_themselves(void **state)
{
    (void)state;
    struct hearth_str sample = SAMPLE(INT(1, 1), STAMP(1));
    struct hearth_str good = PROFILE(ON_CPU, sample);
    const struct {
        struct hearth_str profile;
        const char *why;
    } bad[] = {
        {PROFILE(sample), "profiles[1] has no sample_type"},
        {PROFILE(ON_CPU, sample, sample, sample, sample, sample, sample),
         "profiles[1] has 6 samples; the limit is 5; raise it with --max-samples"},
        {PROFILE(ON_CPU, SAMPLE(INT(1, 9), STAMP(1))), "profiles[1].samples[0].stack_index is 9"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        expect_profiles(EXPORT(good, bad[i].profile, PROFILE(ON_CPU)), 1);
        assert_int_equal(g_export.n_received, 3);
        assert_int_equal(g_export.n_rejected, 1);
        assert_int_equal(g_export.n_empty, 1);
        assert_int_equal(g_export.n_bad_samples, 0);
        expect_part(g_export.first.msg, bad[i].why);
    }
}

/* ---- stacks ---- */

static void keeps_build_id_and_address_of_frames_without_lines(void **state)
{
    (void)state;
    expect_profiles(EXPORT(PROFILE(ON_CPU, SAMPLE(INT(1, 2), STAMP(1)))), 1);
    const struct hearth_profile *p = &g_profiles[0];
    assert_int_equal(p->n_stack_locs, 1);
    assert_int_equal(p->n_locations, 1); /* those that are used */
    assert_int_equal(p->n_functions, 0);
    const struct hearth_location *location = &p->locations[p->stack_locs[0]];
    assert_int_equal(location->n_lines, 0);
    assert_int_equal(location->address, 0x1abc);
    const struct hearth_mapping *mapping = &p->mappings[location->mapping];
    expect_text(p->strings[mapping->filename], "/bin/app");
    expect_text(p->strings[mapping->build_id], "abc");
    assert_int_equal(mapping->start, 0x1000);
    assert_int_equal(mapping->limit, 0x2000);
    assert_int_equal(mapping->offset, 16);
    assert_false(mapping->has_functions);
}

static void keeps_inlined_lines_in_their_order(void **state)
{
    (void)state;
    expect_profiles(EXPORT(PROFILE(ON_CPU, SAMPLE(INT(1, 1), STAMP(1)))), 1);
    const struct hearth_profile *p = &g_profiles[0];
    assert_int_equal(p->n_stack_locs, 2);
    const struct hearth_location *leaf = &p->locations[p->stack_locs[0]];
    const struct hearth_line *lines = &p->lines[leaf->first_line];
    assert_int_equal(leaf->n_lines, 2);
    expect_text(p->strings[p->functions[lines[0].function].name], "work");
    assert_int_equal(p->functions[lines[0].function].start_line, 7);
    assert_int_equal(lines[0].line, 8);
    expect_text(p->strings[p->functions[lines[1].function].name], "main");
    assert_int_equal(p->locations[p->stack_locs[1]].mapping, HEARTH_NO_INDEX);
    assert_true(p->mappings[leaf->mapping].has_functions);
}

/* ---- labels ---- */

static void names_the_service_by_the_sample_then_the_resource_then_the_executable(void **state)
{
    (void)state;
    struct hearth_str plain = SAMPLE(INT(1, 1), STAMP(1));
    struct hearth_str of_shop = SAMPLE(INT(1, 1), LIST(2, 2), STAMP(1));
    struct hearth_str till = LABEL("service.name", "till");
    struct hearth_str app = LABEL("process.executable.name", "app");

    expect_profiles(EXPORT_OF(JOIN(app, till),
                              PROFILE(ON_CPU, BYTES(7, "0123456789abcdef"), plain, of_shop, plain)),
                    2);
    expect_text(g_export.profiles[0].service, "till");
    assert_int_equal(g_profiles[0].n_samples, 2);
    expect_text(g_export.profiles[1].service, "shop");
    assert_int_equal(g_profiles[1].n_samples, 1);
    assert_int_equal(g_export.n_received, 1);

    /* The parts have ids of their own. */
    expect_text(g_export.profiles[0].id, "30313233343536373839616263646566:0:cpu");
    expect_text(g_export.profiles[1].id, "30313233343536373839616263646566:1:cpu");

    expect_profiles(EXPORT_OF(app, PROFILE(ON_CPU, plain)), 1);
    expect_text(g_export.profiles[0].service, "unknown_service:app");
    expect_text(find_label(&g_export.profiles[0], "process.executable.name"), "app");
    assert_int_equal(g_export.profiles[0].id.n, 0);
    expect_profiles(EXPORT(PROFILE(ON_CPU, plain)), 1);
    expect_text(g_export.profiles[0].service, "unknown_service");
}

static void makes_labels_of_attributes_with_a_scalar(void **state)
{
    (void)state;
    struct hearth_str labels =
        JOIN(LABEL("host.name", "a"), LABEL("host.name", "b"), LABEL("empty", ""),
             MESSAGE(1, INT(3, THREAD), MESSAGE(2, INT(8, WORKER))), /* both by index */
             MESSAGE(1, TEXT(1, "both"), INT(3, THREAD), MESSAGE(2, TEXT(1, "c"))),
             MESSAGE(1, TEXT(1, "pid"), MESSAGE(2, INT(3, 42))),
             MESSAGE(1, TEXT(1, "flag"), MESSAGE(2, INT(2, 1))),
             MESSAGE(1, TEXT(1, "one"), MESSAGE(2, MESSAGE(5, MESSAGE(1, TEXT(1, "d"))))),
             MESSAGE(1, TEXT(1, "two"),
                     MESSAGE(2, MESSAGE(5, MESSAGE(1, TEXT(1, "d")), MESSAGE(1, TEXT(1, "e"))))),
             MESSAGE(1, TEXT(1, "bytes"), MESSAGE(2, BYTES(7, "x"))), LABEL("__name__", "f"),
             LABEL("service_name", "g"), LABEL("long", "123456789012345678901"));

    expect_profiles(EXPORT_OF(labels, PROFILE(ON_CPU, LIST(11, 3, 1), SAMPLE(STAMP(1)))), 1);
    const struct hearth_otlp_profile *p = &g_export.profiles[0];
    static const char *const expected[][2] = {{"host.name", "a"}, {"thread.name", "worker"},
                                              {"both", "c"},      {"pid", "42"},
                                              {"flag", "true"},   {"one", "d"}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(expected); i++) {
        expect_text(find_label(p, expected[i][0]), expected[i][1]);
    }
    assert_int_equal(p->n_labels, HEARTH_ARRAY_LEN(expected));
    assert_int_equal(g_export.n_complex, 2);
    assert_int_equal(g_export.n_reserved, 2);
    assert_int_equal(g_export.n_long, 2); /* the name of the build id, too */
}

static void writes_a_number_of_a_label_with_its_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0.1, "0.1"},       {-2.5, "-2.5"},  {3, "3"},
                 {100000, "100000"}, {1e21, "1e+21"}, {1.0 / 3, "0.3333333333333333"},
                 {-1e-7, "-1e-07"}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        uint64_t bits;
        memcpy(&bits, &cases[i].number, sizeof bits);
        expect_profiles(EXPORT_OF(MESSAGE(1, TEXT(1, "n"), MESSAGE(2, FIXED(4, bits))),
                                  PROFILE(ON_CPU, SAMPLE(STAMP(1)))),
                        1);
        expect_text(find_label(&g_export.profiles[0], "n"), cases[i].text);
    }
}

static void gives_samples_their_attributes_and_the_ids_of_their_link(void **state)
{
    (void)state;
    expect_profiles(
        EXPORT(PROFILE(ON_CPU, SAMPLE(LIST(2, 3), INT(3, 1), STAMP(1)), SAMPLE(STAMP(2)))), 1);
    const struct hearth_profile *p = &g_profiles[0];
    const struct hearth_sample_label *labels = p->sample_labels;
    assert_int_equal(p->label_first[1], 3);
    assert_int_equal(p->label_first[2], 3);
    expect_text(p->strings[labels[0].key], "thread.name");
    expect_text(p->strings[labels[0].str], "worker");
    expect_text(p->strings[labels[1].key], "trace_id");
    expect_text(p->strings[labels[1].str], "0102030405060708090a0b0c0d0e0f10");
    expect_text(p->strings[labels[2].key], "span_id");
    assert_int_equal(labels[2].str, 0);
    assert_int_equal(labels[2].num, 0x0102);
}

/* ---- refusals ---- */

static void refuses_older_layouts_with_the_versions_that_are_read(void **state)
{
    (void)state;
    const struct {
        struct hearth_str profile;
        const char *version;
    } old[] = {
        {PROFILE(BYTES(1, "id"), FIXED(2, 1), FIXED(3, 2)), "1.3 or earlier"},
        {PROFILE(SAMPLE(INT(2, 3), LIST(3, 7)), MESSAGE(3, INT(1, 1))), "1.4 to 1.7"},
        {PROFILE(SAMPLE(INT(2, 3), LIST(3, 7), LIST(6, 1))), "1.4 to 1.7"},
        {PROFILE(ON_CPU, SAMPLE(INT(1, 1), LIST(2, 7), LIST(3, 1), INT(4, 1))), "1.8 or 1.9"},
        {PROFILE(ON_CPU, SAMPLE(INT(1, 1), LIST(2, 7), INT(4, 1))), "1.8 or 1.9"},
        {PROFILE(ON_CPU, SAMPLE(INT(1, 1), LIST(2, 7))), "1.8 or 1.9"},
        {PROFILE(ON_CPU, SAMPLE(INT(1, 1), LIST(2, 9), STAMP(1))), "1.8 or 1.9"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(old); i++) {
        expect_refusal(EXPORT(old[i].profile), old[i].version);
        expect_part(g_err.msg, "read is the one of 1.10 and later");
        expect_part(g_err.msg, "OpenTelemetry Collector 0.148");
    }
}

static void reads_lists_that_are_not_packed_as_async_profiler_writes_them(void **state)
{
    (void)state;
    struct hearth_str itimer = MESSAGE(1, INT(1, CPU), INT(2, COUNT));
    expect_profiles(EXPORT(PROFILE(itimer, SAMPLE(INT(1, 1), INT(4, 10000000)),
                                   SAMPLE(INT(1, 1), INT(2, 3), INT(4, 7)))),
                    1);
    const struct hearth_profile *p = &g_profiles[0];
    assert_int_equal(p->values[0], 10000000);
    assert_int_equal(p->values[1], 7);
    assert_int_equal(p->n_sample_labels, 1);
}

static void refuses_damage_with_its_place(void **state)
{
    (void)state;
    expect_refusal(HEARTH_STR("{}"), "not an export of profiles");
    expect_refusal(JOIN(INT(1, 5)), "known field with the wrong wire type");
    expect_refusal(MESSAGE(2, MESSAGE(7, LIST(1, 5))),
                   "dictionary.stack_table[0] refers to entry 5 of location_table, which has 1");
    expect_refusal(MESSAGE(2, TEXT(5, ""), MESSAGE(3, INT(1, 1))),
                   "dictionary.function_table[0] refers to entry 1 of string_table, which has 1");
    expect_refusal(MESSAGE(2, MESSAGE(4, BYTES(1, "short"))),
                   "link_table[0].trace_id has 5 bytes instead of 16");
    expect_profiles(HEARTH_STR(""), 0);
}

static void refuses_too_many_resources_at_once(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    for (size_t i = 0; i <= HEARTH_OTLP_MAX_PROFILES; i++) {
        hearth_buf_str(&buf, HEARTH_STR("\x0a\0"));
    }
    assert_int_equal(decode(hearth_buf_view(&buf)), HEARTH_RESOURCE_EXHAUSTED);
    expect_part(g_err.msg, "more than 100000 resources");
    buf.n -= 2;
    expect_profiles(hearth_buf_view(&buf), 0);
    hearth_buf_release(&buf);
}

static void survives_a_cut_at_every_byte(void **state)
{
    (void)state;
    struct hearth_str whole =
        EXPORT_OF(LABEL("host.name", "a"),
                  PROFILE(ON_CPU, BYTES(7, "0123456789abcdef"), LIST(11, 3),
                          SAMPLE(INT(1, 1), LIST(2, 2, 3), INT(3, 1), LIST(4, 1), STAMP(1))));
    for (size_t n = 0; n < whole.n; n++) {
        char *exact = hearth_arena_strndup(&g_messages, whole.p, n);
        enum hearth_status status = decode(hearth_str_n(exact, n));
        assert_true(status == HEARTH_OK || status == HEARTH_INVALID_ARGUMENT);
        assert_true(status == HEARTH_OK || g_err.msg[0] != '\0');
    }
}

static void stays_within_the_memory_of_the_arena(void **state)
{
    (void)state;
    struct hearth_str bytes = EXPORT(PROFILE(ON_CPU, SAMPLE(INT(1, 1), STAMP(1))));
    enum hearth_status status = HEARTH_NO_MEMORY;

    for (size_t limit = 64; status == HEARTH_NO_MEMORY; limit += 64) {
        struct hearth_arena arena;
        hearth_arena_init(&arena, limit);
        status = hearth_otlp_decode(bytes, &g_options, &arena, &g_export, &g_err);
        if (status == HEARTH_OK) {
            struct hearth_pprof_notes notes = {0};
            status = hearth_otlp_build(&g_export, 0, &arena, &g_profiles[0], &notes, &g_err);
        }
        hearth_arena_release(&arena);
        assert_true(limit < 1u << 20);
    }
    assert_int_equal(status, HEARTH_OK);
}

static int set_up(void **state)
{
    (void)state;
    hearth_arena_init(&g_messages, 0);
    hearth_arena_init(&g_arena, 16u << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hearth_arena_release(&g_messages);
    hearth_arena_release(&g_arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_timestamps_as_the_period_of_cpu_time),
        cmocka_unit_test(sums_the_values_of_timestamps),
        cmocka_unit_test(leaves_out_samples_that_break_a_rule_and_names_it),
        cmocka_unit_test(rejects_profiles_by_themselves),
        cmocka_unit_test(keeps_build_id_and_address_of_frames_without_lines),
        cmocka_unit_test(keeps_inlined_lines_in_their_order),
        cmocka_unit_test(names_the_service_by_the_sample_then_the_resource_then_the_executable),
        cmocka_unit_test(makes_labels_of_attributes_with_a_scalar),
        cmocka_unit_test(writes_a_number_of_a_label_with_its_fewest_digits),
        cmocka_unit_test(gives_samples_their_attributes_and_the_ids_of_their_link),
        cmocka_unit_test(refuses_older_layouts_with_the_versions_that_are_read),
        cmocka_unit_test(reads_lists_that_are_not_packed_as_async_profiler_writes_them),
        cmocka_unit_test(refuses_damage_with_its_place),
        cmocka_unit_test(refuses_too_many_resources_at_once),
        cmocka_unit_test(survives_a_cut_at_every_byte),
        cmocka_unit_test(stays_within_the_memory_of_the_arena),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
