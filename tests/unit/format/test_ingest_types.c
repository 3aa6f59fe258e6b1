/* test_ingest_types.c -- formats, names and corrections of uploads, table by table. */
#include "hearth/format/collapsed.h"
#include "hearth/format/ingest_types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define S(text) hearth_str_c(text)

/* A profile whose strings, types, functions and stacks are set by a test. */
static struct hearth_str g_strings[16];
static struct hearth_value_type g_types[4];
static struct hearth_function g_functions[4];

static struct hearth_profile with_types(const char *const *types, uint32_t n)
{
    g_strings[0] = HEARTH_STR("");
    for (uint32_t i = 0; i < n; i++) {
        g_strings[i + 1] = S(types[i]);
        g_types[i] = (struct hearth_value_type){i + 1, 0};
    }

    return (struct hearth_profile){
        .strings = g_strings, .n_strings = n + 1, .types = g_types, .n_types = n};
}

static void the_format_is_chosen_by_parameter_then_content_type(void **state)
{
    (void)state;
    static const struct {
        const char *format, *content_type;
        enum hearth_ingest_format want;
    } cases[] = {
        {"", "", HEARTH_INGEST_UNKNOWN},
        {"anything", "text/plain", HEARTH_INGEST_UNKNOWN},
        {"trie", "multipart/form-data", HEARTH_INGEST_TRIE},
        {"", "binary/octet-stream+trie", HEARTH_INGEST_TRIE},
        {"tree", "", HEARTH_INGEST_TREE},
        {"", "Binary/octet-stream+tree; x=y", HEARTH_INGEST_TREE},
        {"lines", "", HEARTH_INGEST_LINES},
        {"jfr", "multipart/form-data; boundary=x", HEARTH_INGEST_JFR},
        {"jfr", "", HEARTH_INGEST_JFR},
        {"pprof", "", HEARTH_INGEST_PPROF},
        {"pprof", "multipart/form-data; boundary=x", HEARTH_INGEST_MULTIPART},
        {"speedscope", "", HEARTH_INGEST_SPEEDSCOPE},
        {"", "multipart/form-data; boundary=x", HEARTH_INGEST_MULTIPART},
        {"groups", "multipart/form-data; boundary=x", HEARTH_INGEST_MULTIPART},
        {"groups", "", HEARTH_INGEST_COLLAPSED},
        {"folded", "", HEARTH_INGEST_COLLAPSED},
        {"collapsed", "application/octet-stream", HEARTH_INGEST_COLLAPSED},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        enum hearth_ingest_format got =
            hearth_ingest_format_of(S(cases[i].format), S(cases[i].content_type));
        if (got != cases[i].want) {
            fail_msg("%s, %s: %d", cases[i].format, cases[i].content_type, (int)got);
        }
    }
}

static void the_format_is_recognised_by_the_bytes(void **state)
{
    (void)state;
    static const struct {
        struct hearth_str bytes;
        enum hearth_ingest_format want;
    } cases[] = {
        {{"FLR\0\0\2", 6}, HEARTH_INGEST_JFR},
        {{" {\n \"$schema\": 1}", 16}, HEARTH_INGEST_SPEEDSCOPE},
        {{"{main};f 1", 10}, HEARTH_INGEST_COLLAPSED},
        {{"{", 1}, HEARTH_INGEST_COLLAPSED},
        {{"\n\4\x08\1\x10\2", 6}, HEARTH_INGEST_PPROF},
        {{"\x12\0", 2}, HEARTH_INGEST_PPROF},
        {{"a;b 1\r\n\tc 2\n", 12}, HEARTH_INGEST_COLLAPSED},
        {{"\xFF\xFE"
          "a\0 \0001\0",
          8},
         HEARTH_INGEST_COLLAPSED},
        {{"\xFE\xFF"
          "\0a\0 \0001",
          8},
         HEARTH_INGEST_COLLAPSED},
        {{"", 0}, HEARTH_INGEST_COLLAPSED},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        if (hearth_ingest_format_of_bytes(cases[i].bytes) != cases[i].want) {
            fail_msg("case %zu", i);
        }
    }
}

/* The type that a name has with these parameters; fails if there is none. */
static struct hearth_ingest_type find_type(const char *app, const char *unit,
                                           const char *aggregation, int64_t rate,
                                           const char *want_service)
{
    const struct hearth_ingest_values values = {S(unit), S(aggregation), rate};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_ingest_type type;
    struct hearth_str service;

    if (hearth_ingest_type_find(S(app), &values, &type, &service, &err) != HEARTH_OK) {
        fail_msg("%s, %s, %s: %s", app, unit, aggregation, err.msg);
    }

    assert_true(hearth_str_eq_c(service, want_service));
    return type;
}

static void assert_no_type(const char *app, const char *unit, const char *aggregation,
                           const char *part)
{
    const struct hearth_ingest_values values = {S(unit), S(aggregation), 100};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_ingest_type type;
    struct hearth_str service;
    enum hearth_status status = hearth_ingest_type_find(S(app), &values, &type, &service, &err);

    if (status != HEARTH_INVALID_ARGUMENT || strstr(err.msg, part) == NULL) {
        fail_msg("%s, %s, %s: %s", app, unit, aggregation,
                 status == HEARTH_OK ? "is taken" : err.msg);
    }
}

static void the_suffix_of_an_application_is_its_type(void **state)
{
    (void)state;
    assert_string_equal(find_type("app", "", "", 100, "app").name, "process_cpu");
    struct hearth_ingest_type type = find_type("a.b.alloc_space", "", "", 100, "a.b");
    assert_string_equal(type.name, "memory");
    assert_string_equal(type.type, "alloc_space");
    assert_string_equal(type.unit, "bytes");
    assert_no_type("my.python.app", "", "", "\"my.python.app\" ends with none of cpu, itimer");
    assert_no_type("app.", "", "sum", "unknown profile type");
    type = find_type("a.goroutines", "", "", 100, "a");
    assert_string_equal(type.name, "goroutine");
    assert_string_equal(type.type, "goroutines");

    /* Every suffix that is named in messages exists. */
    struct hearth_str all = S(hearth_ingest_type_suffixes());
    for (size_t from = 0; from < all.n;) {
        char app[64];
        size_t end = hearth_str_find(all, ',', from);
        (void)snprintf(app, sizeof app, "x.%.*s", (int)(end - from), all.p + from);
        (void)find_type(app, "", "", 100, "x");
        from = end + 2;
    }
}

static void without_a_suffix_unit_and_aggregation_are_the_type(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *aggregation, *name, *type, *type_unit;
        int64_t factor;
    } cases[] = {
        {"samples", "", "process_cpu", "cpu", "nanoseconds", 0},
        {"count", "sum", "process_cpu", "cpu", "nanoseconds", 0},
        {"trace_samples", "sum", "process_cpu", "cpu", "nanoseconds", 0},
        {"objects", "", "memory", "alloc_objects", "count", 1},
        {"objects", "sum", "memory", "alloc_objects", "count", 1},
        {"objects", "average", "memory", "inuse_objects", "count", 1},
        {"bytes", "", "memory", "alloc_space", "bytes", 1},
        {"bytes", "average", "memory", "inuse_space", "bytes", 1},
        {"goroutines", "", "goroutine", "goroutines", "count", 1},
        {"goroutines", "average", "goroutine", "goroutines", "count", 1},
        {"lock_samples", "sum", "mutex", "contentions", "count", 1},
        {"lock_nanoseconds", "sum", "mutex", "delay", "nanoseconds", 1},
        {"exceptions", "sum", "exceptions", "samples", "count", 1},
        {"seconds", "", "process_cpu", "cpu", "nanoseconds", 1000000000},
        {"milliseconds", "", "process_cpu", "cpu", "nanoseconds", 1000000},
        {"microseconds", "sum", "process_cpu", "cpu", "nanoseconds", 1000},
        {"nanoseconds", "", "process_cpu", "cpu", "nanoseconds", 1},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        static const char *const apps[] = {"app", "my.python.app"};
        for (size_t k = 0; k < HEARTH_ARRAY_LEN(apps); k++) {
            const struct hearth_ingest_type type =
                find_type(apps[k], cases[i].unit, cases[i].aggregation, 100, apps[k]);

            assert_string_equal(type.name, cases[i].name);
            assert_string_equal(type.type, cases[i].type);
            assert_string_equal(type.unit, cases[i].type_unit);
            assert_int_equal(type.factor, cases[i].factor);
        }
    }

    assert_no_type("app", "samples", "average",
                   "aggregationType \"average\" contradicts units \"samples\"");
    assert_no_type("a.b", "goroutines", "sum",
                   "aggregationType \"sum\" contradicts units \"goroutines\"");
    assert_no_type("app", "", "average",
                   "aggregationType \"average\" contradicts the application name (no ending: cpu)");
}

static void unit_and_aggregation_must_agree_with_the_suffix(void **state)
{
    (void)state;
    static const struct {
        const char *app, *unit, *aggregation;
        int64_t factor;
    } agreeing[] = {
        {"a.cpu", "samples", "sum", 0},
        {"a.itimer", "count", "", 0},
        {"a.wall", "microseconds", "", 1000},
        {"a.cpu", "nanoseconds", "sum", 1},
        {"a.inuse_objects", "objects", "average", 1},
        {"a.alloc_objects", "count", "sum", 1},
        {"a.live", "objects", "average", 1},
        {"a.alloc_in_new_tlab_bytes", "bytes", "sum", 1},
        {"a.bytes", "bytes", "average", 1},
        {"a.bytes", "bytes", "sum", 1},
        {"a.lock_count", "lock_samples", "sum", 1},
        {"a.block_duration", "lock_nanoseconds", "sum", 1},
        {"a.mutex_duration", "milliseconds", "", 1000000},
        {"a.exceptions", "exceptions", "sum", 1},
        {"a.seconds", "seconds", "", 1000000000},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(agreeing); i++) {
        struct hearth_ingest_type type =
            find_type(agreeing[i].app, agreeing[i].unit, agreeing[i].aggregation, 100, "a");
        assert_int_equal(type.factor, agreeing[i].factor);
    }

    assert_no_type("a.cpu", "bytes", "", "units \"bytes\" contradicts the application name (.cpu)");
    assert_no_type("a.cpu", "objects", "", "units \"objects\" contradicts");
    assert_no_type("a.inuse_space", "samples", "", "(.inuse_space), whose values are bytes");
    assert_no_type("a.mutex_count", "lock_nanoseconds", "", "whose values are count");
    assert_no_type("a.mutex_count", "goroutines", "", "contradicts");
    assert_no_type("a.seconds", "milliseconds", "", "contradicts");
    assert_no_type("a.inuse_space", "", "sum", "whose values have the aggregation average");
    assert_no_type("a.alloc_space", "bytes", "average", "whose values have the aggregation sum");
}

static void unknown_units_and_aggregations_are_named(void **state)
{
    (void)state;
    assert_no_type(
        "a.cpu", "parsecs", "",
        "units \"parsecs\" is unknown; it may be samples, count, trace_samples, objects");
    assert_no_type("a.cpu", "", "median",
                   "aggregationType \"median\" is unknown; it may be sum or average");
    assert_no_type("a.cpu", "Samples", "", "is unknown");
}

static void assert_family(const char *const *types, uint32_t n, const char *want)
{
    struct hearth_profile profile = with_types(types, n);
    struct hearth_str got = hearth_ingest_pprof_name(&profile, NULL, 0);
    if (!hearth_str_eq_c(got, want)) {
        fail_msg("%s: " HEARTH_STR_FMT, types[0], HEARTH_STR_ARG(got));
    }
}

static void the_name_of_a_pprof_comes_from_its_sample_types(void **state)
{
    (void)state;
    assert_family((const char *[]){"samples", "cpu"}, 2, "process_cpu");
    assert_family((const char *[]){"sample", "wall"}, 2, "wall");
    assert_family((const char *[]){"cpu", "wall"}, 2, "wall");
    assert_family((const char *[]){"alloc_objects", "alloc_space"}, 2, "memory");
    assert_family((const char *[]){"inuse_space"}, 1, "memory");
    assert_family((const char *[]){"objects", "space"}, 2, "memory");
    assert_family((const char *[]){"contentions", "delay"}, 2, "mutex");
    assert_family((const char *[]){"goroutine"}, 1, "goroutines");
    assert_family((const char *[]){"cpu", "exception", "lock_count"}, 3, "process_cpu");
    assert_family((const char *[]){"gc", "pauses"}, 2, "pauses");
}

static void display_names_rename_sample_types_first(void **state)
{
    (void)state;
    struct hearth_profile profile = with_types((const char *[]){"contentions", "delay"}, 2);
    const struct hearth_json_cell cells[] = {
        {HEARTH_STR("contentions"), HEARTH_STR("units"), HEARTH_STR("mutex_units")},
        {HEARTH_STR("contentions"), HEARTH_STR("display-name"), HEARTH_STR("block_count")},
    };

    assert_true(hearth_str_eq_c(hearth_ingest_pprof_name(&profile, cells, 2), "block"));
    assert_true(hearth_str_eq_c(hearth_ingest_pprof_name(&profile, cells, 1), "delay"));
    assert_true(hearth_str_eq_c(hearth_ingest_pprof_name(&profile, NULL, 0), "mutex"));
}

static struct hearth_profile with_functions(void)
{
    g_strings[0] = HEARTH_STR("");
    g_strings[1] = HEARTH_STR("work");
    g_strings[2] = HEARTH_STR("app.py");
    g_strings[3] = HEARTH_STR("/lib/x.py");
    g_functions[0] = (struct hearth_function){.name = 1, .filename = 2};
    g_functions[1] = (struct hearth_function){.name = 1, .filename = 3};
    g_functions[2] = (struct hearth_function){.name = 1};
    g_functions[3] = (struct hearth_function){.filename = 2};

    return (struct hearth_profile){
        .strings = g_strings, .n_strings = 4, .functions = g_functions, .n_functions = 4};
}

static void scripting_agents_get_the_file_before_the_name(void **state)
{
    (void)state;
    static const struct {
        const char *spy;
        const char *names[4];
    } cases[] = {
        {"pyspy", {"app.py work", "work", "work", "app.py "}},
        {"rbspy", {"app.py work", "/lib/x.py work", "work", "app.py "}},
        {"scripting", {"app.py work", "/lib/x.py work", "work", "app.py "}},
        {"gospy", {"work", "work", "work", ""}},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_arena arena;
        struct hearth_profile profile = with_functions();
        hearth_arena_init(&arena, 0);
        assert_int_equal(hearth_ingest_fix_spy(S(cases[i].spy), &arena, &profile, NULL), HEARTH_OK);
        for (uint32_t k = 0; k < 4; k++) {
            assert_true(profile.functions[k].name < profile.n_strings);
            assert_true(
                hearth_str_eq_c(profile.strings[profile.functions[k].name], cases[i].names[k]));
        }
        hearth_arena_release(&arena);
    }
}

static void dashes_of_dotnet_types_become_underscores(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_profile profile = with_types((const char *[]){"alloc-in-use", "cpu"}, 2);
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_ingest_fix_spy(S("dotnetspy"), &arena, &profile, NULL), HEARTH_OK);
    assert_true(hearth_str_eq_c(profile.strings[profile.types[0].type], "alloc_in_use"));
    assert_true(hearth_str_eq_c(profile.strings[profile.types[1].type], "cpu"));
    assert_int_equal(profile.n_strings, 4);
    hearth_arena_release(&arena);
}

static void only_counts_are_multiplied_by_the_time_between_samples(void **state)
{
    (void)state;
    static const struct {
        const char *app, *unit;
        int64_t rate, value;
    } cases[] = {
        {"a.cpu", "", 100, 30000000},
        {"a.wall", "samples", 97, 30927834},
        {"a.cpu", "", 0, 3},
        {"a.cpu", "count", INT64_MAX, 3},
        {"a.cpu", "nanoseconds", 100, 3},
        {"a.wall", "microseconds", 0, 3000},
        {"a.alloc_space", "", 100, 3},
        {"a.seconds", "", 100, 3000000000},
        {"a.microseconds", "", 100, 3000},
        {"a.nanoseconds", "", 100, 3},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        int64_t value = 3;
        struct hearth_profile profile = {.values = &value, .n_samples = 1, .n_types = 1};

        struct hearth_ingest_type type =
            find_type(cases[i].app, cases[i].unit, "", cases[i].rate, "a");
        int64_t factor = hearth_ingest_factor(&type, cases[i].rate);
        assert_int_equal(hearth_ingest_scale(factor, &profile, NULL), HEARTH_OK);
        assert_int_equal(value, cases[i].value);
        value = INT64_MAX;
        assert_int_equal(hearth_ingest_scale(factor, &profile, NULL),
                         cases[i].value > 3 ? HEARTH_OUT_OF_RANGE : HEARTH_OK);
    }
}

static void samples_without_a_rate_are_counts(void **state)
{
    (void)state;
    static const struct {
        const char *app, *name, *type, *unit;
    } cases[] = {
        {"a", "process_cpu", "samples", "count"},
        {"a.cpu", "process_cpu", "samples", "count"},
        {"a.itimer", "process_cpu", "samples", "count"},
        {"a.wall", "wall", "samples", "count"},
        {"a.seconds", "wall", "wall", "nanoseconds"},
        {"a.alloc_space", "memory", "alloc_space", "bytes"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_ingest_type type = find_type(cases[i].app, "", "", 0, "a");
        assert_string_equal(type.name, cases[i].name);
        assert_string_equal(type.type, cases[i].type);
        assert_string_equal(type.unit, cases[i].unit);
        assert_string_equal(type.period_type, i < 4 ? "" : i == 4 ? "cpu" : "");
    }
}

static void the_limits_of_pprof_apply_to_text_formats(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_profile profile;
    struct hearth_pprof_notes notes = {0};
    struct hearth_buf out;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    struct hearth_str text = HEARTH_STR("a;b;c;d 1\na;b 2\nname_is_long;c 3\na;b;e 4\n");
    assert_int_equal(hearth_collapsed_decode(text, S("t"), S("u"), 1, &arena, &profile, NULL),
                     HEARTH_OK);
    struct hearth_pprof_limits limits = {.max_samples = 3};
    assert_int_equal(hearth_ingest_cut(&limits, &arena, &profile, &notes, NULL),
                     HEARTH_RESOURCE_EXHAUSTED);
    profile.n_types = 2;
    limits = (struct hearth_pprof_limits){.max_types = 1};
    assert_int_equal(hearth_ingest_cut(&limits, &arena, &profile, &notes, NULL),
                     HEARTH_RESOURCE_EXHAUSTED);
    profile.n_types = 1;
    limits = (struct hearth_pprof_limits){.max_samples = 4, .max_depth = 2, .max_string_bytes = 4};
    assert_int_equal(hearth_ingest_cut(&limits, &arena, &profile, &notes, NULL), HEARTH_OK);
    assert_int_equal(notes.stacks_cut, 2);
    assert_int_equal(notes.frames_cut, 3);
    assert_int_equal(notes.strings_cut, 1);
    assert_int_equal(profile.n_stack_locs, 8);
    hearth_collapsed_encode(&profile, 0, &out);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, "a;b 7\nlong;c 3\n");
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_format_is_chosen_by_parameter_then_content_type),
        cmocka_unit_test(the_format_is_recognised_by_the_bytes),
        cmocka_unit_test(the_suffix_of_an_application_is_its_type),
        cmocka_unit_test(without_a_suffix_unit_and_aggregation_are_the_type),
        cmocka_unit_test(unit_and_aggregation_must_agree_with_the_suffix),
        cmocka_unit_test(unknown_units_and_aggregations_are_named),
        cmocka_unit_test(the_name_of_a_pprof_comes_from_its_sample_types),
        cmocka_unit_test(display_names_rename_sample_types_first),
        cmocka_unit_test(scripting_agents_get_the_file_before_the_name),
        cmocka_unit_test(dashes_of_dotnet_types_become_underscores),
        cmocka_unit_test(only_counts_are_multiplied_by_the_time_between_samples),
        cmocka_unit_test(samples_without_a_rate_are_counts),
        cmocka_unit_test(the_limits_of_pprof_apply_to_text_formats),
    };

    return cmocka_run_group_tests_name("ingest_types", tests, NULL, NULL);
}
