/* test_identity.c -- whose a pushed profile is: service, own labels, profile types, time. */
#include "hearth/base/clock.h"

#include "hand_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const g_aliases[] = {"serviceName", "SERVICE_NAME", "service", "SERVICE", NULL};

struct made {
    struct hearth_arena arena;
    struct hearth_ingest_options options;
    struct hearth_label labels[16];
    struct hearth_push_series series;
    const char *app_name;
    uint64_t discards[HEARTH_N_DISCARDS];
    struct hearth_identity identity;
    struct hearth_err err;
};

static int setup(void **state)
{
    struct made *m = test_calloc(1, sizeof *m);
    hearth_arena_init(&m->arena, 0);
    hearth_limits_init(&m->options.limits);
    m->options.service_labels = g_aliases;
    m->series.labels = m->labels;
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct made *m = *state;
    hearth_arena_release(&m->arena);
    test_free(m);
    return 0;
}

static void label(struct made *m, const char *name, const char *value)
{
    assert_true(m->series.n_labels < HEARTH_ARRAY_LEN(m->labels));
    m->labels[m->series.n_labels++] =
        (struct hearth_label){hearth_str_c(name), hearth_str_c(value)};
}

static enum hearth_status make(struct made *m)
{
    const struct hearth_push_work work = {
        .limits = &m->options.limits,
        .service_labels = m->options.service_labels,
        .app_name = hearth_str_c(m->app_name),
        .arena = &m->arena,
        .discards = m->discards,
    };
    return hearth_identity_make(&work, &m->series, &m->identity, &m->err);
}

static void assert_made(struct made *m, const char *name, const char *service, const char *labels)
{
    enum hearth_status status = make(m);
    if (status != HEARTH_OK) {
        fail_msg("%s", m->err.msg);
    }
    assert_true(hearth_str_eq_c(m->identity.name, name));
    if (!hearth_str_eq_c(m->identity.service_name, service)) {
        fail_msg("service " HEARTH_STR_FMT " instead of %s",
                 HEARTH_STR_ARG(m->identity.service_name), service);
    }
    assert_string_equal(labels_text_of(&m->identity.labels, &m->arena), labels);
}

static void assert_refused(struct made *m, const char *message)
{
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(m->err.status, HEARTH_INVALID_ARGUMENT);
    assert_string_equal(m->err.msg, message);
}

/* ---- service ---- */

static void service_name_wins_over_everything(void **state)
{
    struct made *m = *state;
    m->app_name = "app";
    label(m, "serviceName", "alias");
    label(m, "service_name", "own");
    label(m, "__name__", "cpu");
    assert_made(m, "cpu", "own", "{app_name=\"app\", serviceName=\"alias\"}");
    assert_discards(m->discards, "");
}

static void aliases_name_the_service_in_the_order_of_the_option(void **state)
{
    struct made *m = *state;
    m->app_name = "app";
    label(m, "__name__", "cpu");
    label(m, "SERVICE", "fourth");
    assert_made(m, "cpu", "fourth", "{SERVICE=\"fourth\", app_name=\"app\"}");
    label(m, "service", "third");
    assert_made(m, "cpu", "third", "{SERVICE=\"fourth\", app_name=\"app\", service=\"third\"}");
    label(m, "SERVICE_NAME", "second");
    assert_int_equal(make(m), HEARTH_OK);
    assert_true(hearth_str_eq_c(m->identity.service_name, "second"));
    label(m, "serviceName", "first");
    assert_int_equal(make(m), HEARTH_OK);
    assert_true(hearth_str_eq_c(m->identity.service_name, "first"));
}

static void other_aliases_can_be_configured(void **state)
{
    static const char *const only_job[] = {"job", NULL};
    struct made *m = *state;
    m->options.service_labels = only_job;
    label(m, "__name__", "cpu");
    label(m, "service", "unasked");
    label(m, "job", "batch");
    assert_made(m, "cpu", "batch", "{job=\"batch\", service=\"unasked\"}");
}

static void an_alias_wins_over_service_name_if_the_option_lists_it_first(void **state)
{
    static const char *const service_first[] = {"service", "service_name", "job", NULL};
    struct made *m = *state;
    m->options.service_labels = service_first;
    label(m, "__name__", "cpu");
    label(m, "job", "last");
    label(m, "service_name", "of-the-sdk");
    assert_made(m, "cpu", "of-the-sdk", "{job=\"last\"}");
    label(m, "service", "shop");
    assert_made(m, "cpu", "shop", "{app_name=\"of-the-sdk\", job=\"last\", service=\"shop\"}");
    assert_discards(m->discards, "");
    m->app_name = "app";
    assert_made(m, "cpu", "shop", "{app_name=\"app\", job=\"last\", service=\"shop\"}");
    assert_discards(m->discards, "reserved_labels=1");
}

static void an_empty_alias_is_ignored(void **state)
{
    struct made *m = *state;
    label(m, "__name__", "cpu");
    label(m, "service_name", "");
    label(m, "serviceName", "");
    label(m, "service", "third");
    assert_made(m, "cpu", "third", "{service=\"third\"}");
    assert_discards(m->discards, "empty_labels=2");
}

static void the_application_name_is_the_service_if_no_label_names_it(void **state)
{
    struct made *m = *state;
    m->app_name = "app";
    label(m, "__name__", "cpu");
    label(m, "pod", "a");
    assert_made(m, "cpu", "app", "{pod=\"a\"}");
}

static void an_app_name_of_the_client_stays(void **state)
{
    struct made *m = *state;
    m->app_name = "app";
    label(m, "__name__", "cpu");
    label(m, "service_name", "s");
    label(m, "app_name", "theirs");
    assert_made(m, "cpu", "s", "{app_name=\"theirs\"}");
}

static void a_service_without_any_name_is_unknown_service(void **state)
{
    struct made *m = *state;
    label(m, "__name__", "cpu");
    assert_made(m, "cpu", "unknown_service", "{}");
    assert_discards(m->discards, "");
}

/* ---- own labels ---- */

static void labels_are_sorted_in_whatever_order_they_are_sent(void **state)
{
    struct made *m = *state;
    label(m, "zone", "z");
    label(m, "__name__", "cpu");
    label(m, "B", "2");
    label(m, "a", "1");
    label(m, "service_name", "s");
    label(m, "process.runtime", "ünï");
    assert_made(m, "cpu", "s", "{B=\"2\", a=\"1\", \"process.runtime\"=\"ünï\", zone=\"z\"}");
    struct hearth_hash128 sent = hearth_labels_fingerprint(&m->identity.labels);
    for (size_t i = 0; i < m->series.n_labels / 2; i++) {
        struct hearth_label swap = m->labels[i];
        m->labels[i] = m->labels[m->series.n_labels - 1 - i];
        m->labels[m->series.n_labels - 1 - i] = swap;
    }
    assert_int_equal(make(m), HEARTH_OK);
    struct hearth_hash128 turned = hearth_labels_fingerprint(&m->identity.labels);
    assert_memory_equal(&sent, &turned, sizeof sent);
}

static void derived_and_managed_labels_are_dropped_and_counted(void **state)
{
    static const char *const names[] = {"__profile_type__", "__type__",        "__unit__",
                                        "__period_type__",  "__period_unit__", "__service_name__",
                                        "__delta__",        "__order__",       "__session_id__"};
    struct made *m = *state;
    label(m, "__name__", "cpu");
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        assert_true(hearth_label_is_reserved(hearth_str_c(names[i])));
        label(m, names[i], "x");
    }
    label(m, "__other__", "kept");
    assert_false(hearth_label_is_reserved(HEARTH_STR("__other__")));
    assert_true(hearth_label_is_reserved(HEARTH_STR("__name__")));
    assert_true(hearth_label_is_reserved(HEARTH_STR("service_name")));
    assert_made(m, "cpu", "unknown_service", "{__other__=\"kept\"}");
    assert_discards(m->discards, "reserved_labels=9");
}

static void empty_labels_are_dropped_and_counted(void **state)
{
    struct made *m = *state;
    label(m, "__name__", "cpu");
    label(m, "pod", "");
    label(m, "__delta__", "");
    assert_made(m, "cpu", "unknown_service", "{}");
    assert_discards(m->discards, "empty_labels=2");
}

static void godeltaprof_is_taken_off_the_name_and_remembered(void **state)
{
    struct made *m = *state;
    label(m, "__name__", "godeltaprof_memory");
    label(m, "a", "1");
    assert_made(m, "memory", "unknown_service",
                "{__name_replaced__=\"godeltaprof_memory\", a=\"1\"}");
}

static void our_name_replaced_label_overrides_that_of_the_client(void **state)
{
    struct made *m = *state;
    label(m, "__name_replaced__", "lie");
    label(m, "__name__", "godeltaprof_memory");
    assert_made(m, "memory", "unknown_service", "{__name_replaced__=\"godeltaprof_memory\"}");
}

static void a_bare_godeltaprof_stays_a_name(void **state)
{
    struct made *m = *state;
    label(m, "__name__", "godeltaprof_");
    assert_made(m, "godeltaprof_", "unknown_service", "{}");
}

/* ---- refusals ---- */

static void refuses_a_series_without_labels(void **state)
{
    assert_refused(*state, "error at least one label pair is required per profile");
}

static void refuses_a_series_without_a_name(void **state)
{
    struct made *m = *state;
    label(m, "service_name", "s");
    assert_refused(m, "invalid labels '{service_name=\"s\"}' with error: invalid metric name: "
                      "label __name__ is required");
    label(m, "__name__", "");
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(m->err.msg, "invalid metric name"));
}

static void refuses_a_label_without_a_name(void **state)
{
    struct made *m = *state;
    label(m, "__name__", "cpu");
    label(m, "", "x");
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(m->err.msg, "with error: invalid label name ''"));
}

static void refuses_a_repeated_label_name(void **state)
{
    struct made *m = *state;
    label(m, "pod", "a");
    label(m, "__name__", "cpu");
    label(m, "pod", "a");
    assert_refused(m, "profile with labels '{pod=\"a\", __name__=\"cpu\", pod=\"a\"}' has "
                      "duplicate label name: 'pod'");
}

static void the_number_of_label_names_has_a_limit(void **state)
{
    struct made *m = *state;
    m->options.limits.max_label_names = 4;
    label(m, "__name__", "cpu");
    label(m, "a", "1");
    label(m, "b", "2");
    /* What is dropped does not count; service_name does, sent or not. */
    label(m, "c", "");
    label(m, "__type__", "x");
    label(m, "service_name", "");
    assert_made(m, "cpu", "unknown_service", "{a=\"1\", b=\"2\"}");
    label(m, "d", "4");
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(m->err.msg, "profile series '{"));
    assert_non_null(
        strstr(m->err.msg, " has 5 label names; limit 4; raise it with --max-label-names"));
    m->options.limits.max_label_names = 0;
    assert_int_equal(make(m), HEARTH_OK);
}

static void names_and_values_have_limits_named_in_the_message(void **state)
{
    struct made *m = *state;
    m->options.limits.max_label_name_bytes = 8;
    m->options.limits.max_label_value_bytes = 4;
    label(m, "__name__", "cpu");
    label(m, "exactly8", "four");
    assert_int_equal(make(m), HEARTH_OK);
    m->series.n_labels = 1;
    label(m, "nine_long", "x");
    assert_refused(m, "profile with labels '{__name__=\"cpu\", nine_long=\"x\"}' has label name "
                      "too long: 'nine_long' (9 bytes, limit 8); raise it with "
                      "--max-label-name-bytes, or for one tenant with hearth admin limits");
    m->series.n_labels = 1;
    label(m, "v", "12345");
    assert_refused(m, "profile with labels '{__name__=\"cpu\", v=\"12345\"}' has label value too "
                      "long: 'v' (5 bytes, limit 4); raise it with --max-label-value-bytes, or for "
                      "one tenant with hearth admin limits");
    m->options.limits.max_label_name_bytes = m->options.limits.max_label_value_bytes = 0;
    assert_int_equal(make(m), HEARTH_OK);
}

static void the_application_name_is_a_label_value_too(void **state)
{
    struct made *m = *state;
    m->options.limits.max_label_value_bytes = 4;
    m->app_name = "12345";
    label(m, "__name__", "cpu");
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(m->err.msg, "label value too long: 'app_name' (5 bytes"));
}

static void a_monstrous_label_leaves_room_for_the_limits_name(void **state)
{
    static char monster[5000];
    struct made *m = *state;
    memset(monster, 'x', sizeof monster - 1);
    label(m, monster, monster);
    label(m, "__name__", "cpu");
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_non_null(
        strstr(m->err.msg, "(4999 bytes, limit 1024); raise it with --max-label-name-bytes"));
    m->labels[0].name.n = 1024;
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_non_null(
        strstr(m->err.msg, "(4999 bytes, limit 2048); raise it with --max-label-value-bytes"));
    m->labels[0].value.n = 1;
    label(m, monster, "2");
    m->labels[2].name.n = 1024;
    assert_int_equal(make(m), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(m->err.msg, "has duplicate label name: 'xxxx"));
    assert_true(strlen(m->err.msg) < sizeof m->err.msg - 100); /* ingest puts series and id first */
}

static void a_refused_arena_fails_with_no_memory(void **state)
{
    struct made *m = *state;
    hearth_arena_release(&m->arena);
    hearth_arena_init(&m->arena, 8);
    label(m, "__name__", "cpu");
    label(m, "a", "1");
    assert_int_equal(make(m), HEARTH_NO_MEMORY);
}

/* ---- types ---- */

/* What a series may be called; the defaults. */
static const struct hearth_limits TYPE_LIMITS = {.max_label_value_bytes = 2048};

static void assert_types(struct hand *h, const char *name, const char *const *expected)
{
    struct hearth_identity identity = {.name = hearth_str_c(name)};
    struct hearth_str *ids;
    struct hearth_push_work work = hand_work(h);
    work.limits = &TYPE_LIMITS;
    assert_int_equal(hearth_identity_types(&work, &identity, &ids, &h->err), HEARTH_OK);
    for (uint32_t i = 0; i < h->p.n_types; i++) {
        if (!hearth_str_eq_c(ids[i], expected[i])) {
            fail_msg(HEARTH_STR_FMT " instead of %s", HEARTH_STR_ARG(ids[i]), expected[i]);
        }
    }
}

static void a_type_id_has_five_parts_empty_ones_kept(void **state)
{
    struct hand h;
    (void)state;
    hand_init(&h);
    hand_type(&h, "samples", "count");
    assert_types(
        &h, "process_cpu",
        (const char *const[]){"process_cpu:cpu:nanoseconds::", "process_cpu:samples:count::"});
    h.p.period_type.unit = hand_string(&h, "milliseconds");
    assert_types(&h, "process_cpu",
                 (const char *const[]){"process_cpu:cpu:nanoseconds::milliseconds",
                                       "process_cpu:samples:count::milliseconds"});
    h.p.period_type.type = hand_string(&h, "cpu");
    assert_types(&h, "x-y z",
                 (const char *const[]){"x-y z:cpu:nanoseconds:cpu:milliseconds",
                                       "x-y z:samples:count:cpu:milliseconds"});
    hand_release(&h);
}

static void all_types_of_a_profile_begin_with_its_name(void **state)
{
    struct hand h;
    (void)state;
    hand_init(&h);
    hand_type(&h, "wall", "nanoseconds");
    hand_type(&h, "cpu-time", "nanoseconds");
    assert_types(&h, "wall",
                 (const char *const[]){"wall:cpu:nanoseconds::", "wall:wall:nanoseconds::",
                                       "wall:cpu-time:nanoseconds::"});
    hand_release(&h);
}

/* ---- time ---- */

#define NOW    (INT64_C(1700000000) * HEARTH_NS_PER_SEC)
#define OLDEST (NOW - 7 * HEARTH_NS_PER_DAY)
#define NEWEST (NOW + 600 * HEARTH_NS_PER_SEC)

static enum hearth_status time_of(const struct hearth_limits *limits, int64_t time_ns, int64_t *ret,
                                  struct hearth_err *err)
{
    struct hearth_identity identity = {.service_name = HEARTH_STR("shop")};
    return hearth_identity_time(limits, &identity, time_ns, NOW, 0, ret, err);
}

static void the_window_includes_both_of_its_ends(void **state)
{
    struct hearth_limits limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t ts;
    (void)state;
    hearth_limits_init(&limits);
    assert_int_equal(time_of(&limits, OLDEST, &ts, &err), HEARTH_OK);
    assert_int_equal(ts, OLDEST);
    assert_int_equal(time_of(&limits, NEWEST, &ts, &err), HEARTH_OK);
    assert_int_equal(ts, NEWEST);
    assert_int_equal(time_of(&limits, OLDEST - 1, &ts, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(
        err.msg,
        "profile with labels '{service_name=\"shop\"}' is outside of ingestion window (profile "
        "timestamp: "
        "2023-11-07T22:13:19.999Z, the ingestion window starts at 2023-11-07T22:13:20.000Z and "
        "ends at 2023-11-14T22:23:20.000Z); raise it with --reject-older-than, or for one tenant "
        "with hearth admin limits");
    assert_int_equal(time_of(&limits, NEWEST + 1, &ts, &err), HEARTH_INVALID_ARGUMENT);
}

static void another_clock_widens_the_window_and_is_named_in_a_refusal(void **state)
{
    static const int64_t TWO_HOURS = 2 * HEARTH_NS_PER_HOUR;
    struct hearth_identity identity = {.service_name = HEARTH_STR("shop")};
    struct hearth_limits limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)state;
    hearth_limits_init(&limits);
    const struct {
        int64_t ahead_ns, first_ns, last_ns;
        const char *named;
    } cases[] = {
        {TWO_HOURS, OLDEST, NEWEST + TWO_HOURS, "clock is 7200 s behind the database's"},
        {-TWO_HOURS, OLDEST - TWO_HOURS, NEWEST, "clock is 7200 s ahead of the database's"},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        const int64_t ahead = cases[i].ahead_ns, ends[] = {cases[i].first_ns, cases[i].last_ns};
        int64_t ts;
        for (int k = 0; k < 2; k++) {
            assert_int_equal(
                hearth_identity_time(&limits, &identity, ends[k], NOW, ahead, &ts, &err),
                HEARTH_OK);
            assert_int_equal(ts, ends[k]);
            assert_int_equal(hearth_identity_time(&limits, &identity, ends[k] + (k == 0 ? -1 : 1),
                                                  NOW, ahead, &ts, &err),
                             HEARTH_INVALID_ARGUMENT);
            assert_non_null(strstr(err.msg, cases[i].named));
        }
    }
}

static void a_profile_without_a_time_gets_the_time_of_its_arrival(void **state)
{
    struct hearth_limits limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t ts = 0;
    (void)state;
    hearth_limits_init(&limits);
    assert_int_equal(time_of(&limits, 0, &ts, &err), HEARTH_OK);
    assert_int_equal(ts, NOW);
    ts = 0;
    assert_int_equal(time_of(&limits, INT64_MIN, &ts, &err), HEARTH_OK);
    assert_int_equal(ts, NOW);
}

static void zero_opens_the_window_and_a_huge_limit_does_not_overflow(void **state)
{
    struct hearth_limits limits = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t ts;
    (void)state;
    assert_int_equal(time_of(&limits, 1, &ts, &err), HEARTH_OK);
    assert_int_equal(ts, 1);
    assert_int_equal(time_of(&limits, INT64_MAX, &ts, &err), HEARTH_OK);
    limits.reject_older_than_ns = limits.reject_newer_than_ns = INT64_MAX;
    assert_int_equal(time_of(&limits, 1, &ts, &err), HEARTH_OK);
    assert_int_equal(time_of(&limits, INT64_MAX, &ts, &err), HEARTH_OK);
    assert_int_equal(ts, INT64_MAX);
    /* Each end has a limit of its own. */
    limits.reject_older_than_ns = 1;
    assert_int_equal(time_of(&limits, NOW - 2, &ts, &err), HEARTH_INVALID_ARGUMENT);
    limits = (struct hearth_limits){.reject_newer_than_ns = 1};
    assert_int_equal(time_of(&limits, 1, &ts, &err), HEARTH_OK);
    assert_int_equal(time_of(&limits, NOW + 2, &ts, &err), HEARTH_INVALID_ARGUMENT);
}

#define made_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void types_are_bounded_like_the_values_of_labels(void **state)
{
    (void)state;
    char longest[2049], halves[1025];
    memset(longest, 'x', sizeof longest - 1);
    memset(halves, 'y', sizeof halves - 1);
    longest[2048] = halves[1024] = '\0';
    const struct {
        const char *type, *unit, *part;
    } cases[] = {
        {"x", "count", NULL},
        {longest, "count", "profile type too long"}, /* with its name and its colons */
        {"x", halves, NULL},
        {halves, halves, "profile type too long"},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hand h;
        struct hearth_identity identity = {.name = HEARTH_STR("process_cpu")};
        struct hearth_str *ids;
        hand_init(&h);
        hand_type(&h, cases[i].type, cases[i].unit);
        struct hearth_push_work work = hand_work(&h);
        work.limits = &TYPE_LIMITS;
        enum hearth_status status = hearth_identity_types(&work, &identity, &ids, &h.err);
        assert_int_equal(status, cases[i].part == NULL ? HEARTH_OK : HEARTH_INVALID_ARGUMENT);
        if (cases[i].part != NULL) {
            assert_non_null(strstr(h.err.msg, cases[i].part));
            assert_non_null(
                strstr(h.err.msg, "limit 2048); raise it with --max-label-value-bytes"));
        }
        hand_release(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        made_test(service_name_wins_over_everything),
        made_test(aliases_name_the_service_in_the_order_of_the_option),
        made_test(other_aliases_can_be_configured),
        made_test(an_alias_wins_over_service_name_if_the_option_lists_it_first),
        made_test(an_empty_alias_is_ignored),
        made_test(the_application_name_is_the_service_if_no_label_names_it),
        made_test(an_app_name_of_the_client_stays),
        made_test(a_service_without_any_name_is_unknown_service),
        made_test(labels_are_sorted_in_whatever_order_they_are_sent),
        made_test(derived_and_managed_labels_are_dropped_and_counted),
        made_test(empty_labels_are_dropped_and_counted),
        made_test(godeltaprof_is_taken_off_the_name_and_remembered),
        made_test(our_name_replaced_label_overrides_that_of_the_client),
        made_test(a_bare_godeltaprof_stays_a_name),
        made_test(refuses_a_series_without_labels),
        made_test(refuses_a_series_without_a_name),
        made_test(refuses_a_label_without_a_name),
        made_test(refuses_a_repeated_label_name),
        made_test(the_number_of_label_names_has_a_limit),
        made_test(names_and_values_have_limits_named_in_the_message),
        made_test(the_application_name_is_a_label_value_too),
        made_test(a_monstrous_label_leaves_room_for_the_limits_name),
        made_test(a_refused_arena_fails_with_no_memory),
        cmocka_unit_test(a_type_id_has_five_parts_empty_ones_kept),
        cmocka_unit_test(all_types_of_a_profile_begin_with_its_name),
        cmocka_unit_test(types_are_bounded_like_the_values_of_labels),
        cmocka_unit_test(the_window_includes_both_of_its_ends),
        cmocka_unit_test(another_clock_widens_the_window_and_is_named_in_a_refusal),
        cmocka_unit_test(a_profile_without_a_time_gets_the_time_of_its_arrival),
        cmocka_unit_test(zero_opens_the_window_and_a_huge_limit_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
