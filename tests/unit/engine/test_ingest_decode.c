/* test_ingest_decode.c -- bytes and what an upload says beside them: name, types, period, time, limits. */
#include "hearth/base/clock.h"
#include "hearth/format/profile_builder.h"

#include "hand_profile.h"

#define S(text) hearth_str_c(text)
#define SEC     HEARTH_NS_PER_SEC

struct decoded {
    struct hearth_arena arena;
    struct hearth_limits limits;
    struct hearth_push_hints hints;
    uint64_t discards[HEARTH_N_DISCARDS];
    struct hearth_profile profile;
    struct hearth_ingest_type type;
    struct hearth_str name;
    struct hearth_err err;
};

static int setup(void **state)
{
    struct decoded *d = test_calloc(1, sizeof *d);
    hearth_arena_init(&d->arena, 0);
    hearth_limits_init(&d->limits);
    d->hints = (struct hearth_push_hints){.format = HEARTH_INGEST_PPROF,
                                          .sample_rate = 100,
                                          .spy = S("gospy"),
                                          .from_ns = 1000000 * SEC,
                                          .until_ns = 1000010 * SEC};
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct decoded *d = *state;
    hearth_arena_release(&d->arena);
    test_free(d);
    return 0;
}

static enum hearth_status decode(struct decoded *d, struct hearth_str bytes, bool with_hints)
{
    const struct hearth_push_work work = {
        .limits = &d->limits,
        .arena = &d->arena,
        .discards = d->discards,
        .profile = &d->profile,
    };
    return hearth_ingest_decode(&work, with_hints ? &d->hints : NULL, bytes, &d->name, &d->err);
}

static void as_text(struct decoded *d, enum hearth_ingest_format format, const char *app)
{
    struct hearth_str service;
    d->hints.format = format;
    const struct hearth_ingest_values values = {.sample_rate = 100};
    assert_int_equal(hearth_ingest_type_find(S(app), &values, &d->type, &service, &d->err),
                     HEARTH_OK);
    d->hints.type = &d->type;
}

static bool is_string(const struct decoded *d, uint32_t index, const char *want)
{
    return hearth_str_eq_c(d->profile.strings[index], want);
}

/* One stack "main" of value 5 in types samples and cpu. */
static struct hearth_str pprof(struct decoded *d, int64_t time_ns, int64_t duration_ns)
{
    struct hearth_profile_builder *b = hearth_profile_builder_new(&d->arena);
    struct hearth_profile profile;
    const int64_t values[] = {1, 5};
    (void)hearth_profile_builder_type(b, S("samples"), S("count"));
    (void)hearth_profile_builder_type(b, S("cpu"), S("nanoseconds"));
    const struct hearth_function function = {.name = hearth_profile_builder_string(b, S("main"))};
    const struct hearth_line line = {.function = hearth_profile_builder_function(b, &function)};
    const struct hearth_location location = {.mapping = HEARTH_NO_INDEX};
    uint32_t at = hearth_profile_builder_location(b, &location, &line, 1);
    assert_int_equal(hearth_profile_builder_sample(b, &at, 1, values, NULL), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_finish(b, &profile, NULL), HEARTH_OK);
    profile.time_ns = time_ns;
    profile.duration_ns = duration_ns;
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_pprof_encode(&profile, &out);
    struct hearth_str bytes = hearth_arena_str(&d->arena, hearth_buf_view(&out));
    hearth_buf_release(&out);
    hearth_profile_builder_free(b);
    return bytes;
}

static void a_push_has_no_name_and_keeps_its_times(void **state)
{
    struct decoded *d = *state;
    assert_int_equal(decode(d, pprof(d, 7, 0), false), HEARTH_OK);
    assert_int_equal(d->name.n, 0);
    assert_int_equal(d->profile.time_ns, 7);
    assert_int_equal(d->profile.duration_ns, 0);
}

static void a_pprof_upload_is_named_by_its_types(void **state)
{
    struct decoded *d = *state;
    assert_int_equal(decode(d, pprof(d, 2000000000 * SEC, 3 * SEC), true), HEARTH_OK);
    assert_true(hearth_str_eq_c(d->name, "process_cpu"));
    assert_int_equal(d->profile.time_ns, 2000000000 * SEC);
    assert_int_equal(d->profile.duration_ns, 3 * SEC);
    assert_int_equal(d->profile.values[1], 5); /* the sample rate is not of pprof */
}

static void a_missing_time_or_one_of_1970_is_replaced_by_that_of_the_upload(void **state)
{
    struct decoded *d = *state;
    static const int64_t times[] = {0, -5, 1, 365 * HEARTH_NS_PER_DAY - 1};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(times); i++) {
        assert_int_equal(decode(d, pprof(d, times[i], 0), true), HEARTH_OK);
        assert_int_equal(d->profile.time_ns, d->hints.from_ns);
        assert_int_equal(d->profile.duration_ns, 10 * SEC);
    }
    assert_int_equal(decode(d, pprof(d, 365 * HEARTH_NS_PER_DAY, 0), true), HEARTH_OK);
    assert_int_equal(d->profile.time_ns, 365 * HEARTH_NS_PER_DAY);
    d->hints.until_ns = INT64_MIN;
    assert_int_equal(decode(d, pprof(d, 0, 0), true), HEARTH_OK);
    assert_int_equal(d->profile.duration_ns, 0);
}

static void a_text_has_the_type_of_its_name_and_a_period(void **state)
{
    struct decoded *d = *state;
    as_text(d, HEARTH_INGEST_COLLAPSED, "a.wall");
    assert_int_equal(decode(d, HEARTH_STR("a;b 2\n"), true), HEARTH_OK);
    assert_true(hearth_str_eq_c(d->name, "wall"));
    assert_true(is_string(d, d->profile.types[0].type, "wall"));
    assert_true(is_string(d, d->profile.types[0].unit, "nanoseconds"));
    assert_true(is_string(d, d->profile.period_type.type, "cpu"));
    assert_true(is_string(d, d->profile.period_type.unit, "nanoseconds"));
    assert_int_equal(d->profile.period, 10000000);
    assert_int_equal(d->profile.values[0], 20000000);
    assert_int_equal(d->profile.time_ns, d->hints.from_ns);
    as_text(d, HEARTH_INGEST_LINES, "a.alloc_space");
    assert_int_equal(decode(d, HEARTH_STR("a;b 2\n"), true), HEARTH_OK);
    assert_int_equal(d->profile.period_type.type, 0);
    assert_int_equal(d->profile.values[0], 1);
}

static void a_fraction_counts_in_the_unit_that_is_stored(void **state)
{
    struct decoded *d = *state;
    static const struct {
        const char *app, *text;
        int64_t value;
    } cases[] = {
        {"a.seconds", "a 1.5", 1500000000},
        {"a.seconds", "a 0.0000000005", 1},
        {"a.seconds", "a 2.00000000049", 2000000000},
        {"a.milliseconds", "a;b .0004", 400},
        {"a.microseconds", "a 7.9996", 8000},
        {"a.microseconds", "a 1.", 1000},
        {"a.cpu", "a 0.25", 2500000},
        {"a.alloc_space", "a 2.5", 3},
        {"a.seconds", "a 9223372036.854775807", INT64_MAX},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        as_text(d, HEARTH_INGEST_COLLAPSED, cases[i].app);
        assert_int_equal(decode(d, S(cases[i].text), true), HEARTH_OK);
        assert_int_equal(d->profile.values[0], cases[i].value);
    }

    as_text(d, HEARTH_INGEST_COLLAPSED, "a.seconds");
    assert_int_equal(decode(d, S("b 1\na 9223372036.854775808"), true), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(d->err.msg, "the value of line 2 times 1000000000 (its unit or the "
                                       "sample rate) needs more than 63 bits"));
}

static void limits_of_texts_are_counted_or_refused(void **state)
{
    struct decoded *d = *state;
    as_text(d, HEARTH_INGEST_COLLAPSED, "a");
    d->limits.max_stack_depth = 2;
    d->limits.max_symbol_bytes = 2;
    assert_int_equal(decode(d, HEARTH_STR("a;b;c 1\nlong 2\n"), true), HEARTH_OK);
    assert_int_equal(d->discards[HEARTH_DISCARD_CUT_STACKS], 1);
    assert_int_equal(d->discards[HEARTH_DISCARD_CUT_FRAMES], 1);
    assert_true(d->discards[HEARTH_DISCARD_CUT_STRINGS] >= 1);
    d->limits.max_samples = 1;
    assert_int_equal(decode(d, HEARTH_STR("a;b;c 1\nlong 2\n"), true), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(
        d->err.msg, "the profile has 2 samples; the limit is 1; raise it with --max-samples"));
}

static void unreadable_bodies_are_invalid(void **state)
{
    struct decoded *d = *state;
    assert_int_equal(decode(d, HEARTH_STR("\3"), true), HEARTH_INVALID_ARGUMENT);
    as_text(d, HEARTH_INGEST_TRIE, "a");
    assert_int_equal(decode(d, HEARTH_STR("\3"), true), HEARTH_INVALID_ARGUMENT);
    as_text(d, HEARTH_INGEST_COLLAPSED, "a");
    assert_int_equal(decode(d, HEARTH_STR("a 9223372036854775807"), true), HEARTH_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_push_has_no_name_and_keeps_its_times, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pprof_upload_is_named_by_its_types, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_missing_time_or_one_of_1970_is_replaced_by_that_of_the_upload, setup, teardown),
        cmocka_unit_test_setup_teardown(a_text_has_the_type_of_its_name_and_a_period, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_fraction_counts_in_the_unit_that_is_stored, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(limits_of_texts_are_counted_or_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(unreadable_bodies_are_invalid, setup, teardown),
    };
    return cmocka_run_group_tests_name("ingest_decode", tests, NULL, NULL);
}
