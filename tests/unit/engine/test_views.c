/*
 * test_views.c -- a narrowed call: the answer to every question equals that to the question joined
 * with the view, over a real PostgreSQL: single rows, late ones, blocks, segments.
 */
#include "hearth/engine/admin.h"

#include "views_fixture.h"

/* A view, and a selector that means the same, without braces. */
struct tried_view {
    const char *selectors[3];
    size_t n;
    const char *means;
};

static const struct tried_view g_views[] = {
    {{"{team=\"team-1\"}"}, 1, "team=\"team-1\""},
    {{"{team=\"team-1\"}", "{team=\"team-2\"}"}, 2, "team=~\"team-1|team-2\""},
    {{"{team=\"team-1\"}", "{team=~\"team-(1|2)\"}", "{team=\"no\"}"}, 3, "team=~\"team-[12]\""},
    {{"{env!=\"prod-1\"}"}, 1, "env!=\"prod-1\""},
    {{"{service_name=\"svc-1\"}"}, 1, "service_name=\"svc-1\""},
    {{"{service_name=\"svc-1\"}", "{service_name=\"svc-2\"}"}, 2, "service_name=~\"svc-[12]\""},
    {{"{service_name=~\"svc-[0-2]\", pod!=\"pod-1\"}"},
     1,
     "service_name=~\"svc-[0-2]\", pod!=\"pod-1\""},
    {{"{}"}, 1, ""},
    {{"{team=\"nobody\"}"}, 1, "team=\"nobody\""},
};

static const char *const g_questions[] = {
    "",
    "team=\"team-1\"",
    "service_name=\"svc-1\"",
    "env!~\"prod-2\", pod=~\"pod-[01]\"",
    "pod=\"pod-2\"",
    "env=\"\"",
};

static struct hearth_view view_of(const struct tried_view *tried, struct hearth_str *texts)
{
    for (size_t i = 0; i < tried->n; i++) {
        texts[i] = hearth_str_c(tried->selectors[i]);
    }
    return (struct hearth_view){TENANT, texts, tried->n};
}

/* A question about a type, once under the view and once joined with it. */
static void check_question(const struct tried_view *tried, const char *question, const char *type)
{
    struct hearth_str texts[3];
    const struct hearth_view view = view_of(tried, texts);
    char narrow[256], joined[512];
    struct hearth_buf left, right;
    struct hearth_arena arena;

    (void)snprintf(narrow, sizeof narrow, "{%s}", question);
    (void)snprintf(joined, sizeof joined, "{%s%s%s}", question,
                   question[0] != '\0' && tried->means[0] != '\0' ? ", " : "", tried->means);
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&left, 0);
    hearth_buf_init(&right, 0);
    struct asked a = {.query = query_of(&arena, TENANT),
                      .selector = narrow,
                      .type = type,
                      .group_by = {HEARTH_STR("team"), HEARTH_STR("service_name")},
                      .n_group_by = synth_below(&g_rng, 3),
                      .with_ids = true};
    struct asked b = a;
    a.query.call.view = &view;
    b.selector = joined;
    a.query.start_ms += (int64_t)synth_below(&g_rng, 3) * 1800000;
    b.query.start_ms = a.query.start_ms;
    write_answers(&a, &left);
    write_answers(&b, &right);
    assert_same_text(&left, &right, joined);
    hearth_buf_release(&left);
    hearth_buf_release(&right);
    hearth_arena_release(&arena);
}

static void check_views(void)
{
    static const char *const types[] = {"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                                        "memory:inuse_space:bytes:space:bytes"};

    for (size_t v = 0; v < HEARTH_ARRAY_LEN(g_views); v++) {
        check_question(&g_views[v], g_questions[synth_below(&g_rng, HEARTH_ARRAY_LEN(g_questions))],
                       types[synth_below(&g_rng, 2)]);
    }
}

static void push_drawn(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hearth_arena arena;
        struct drawn d = draw();
        hearth_arena_init(&arena, 0);
        struct hearth_profile profile = synth_profile(&g_world, 4, 2, &arena, NULL);
        d.id = store_drawn(&d, &profile, TENANT, NULL);
        g_drawn[g_n_drawn++] = d;
        hearth_arena_release(&arena);
    }
}

static void a_narrowed_answer_is_that_of_the_joined_selector_in_every_state(void **state)
{
    (void)state;
    push_drawn(150);
    check_views();
    build(&g_fix);
    check_views();
    push_drawn(50);
    assert_true(count(&g_fix, "profile_late") > 0);
    check_views();
    fold_late(&g_fix);
    compact_hours(&g_fix);
    assert_true(count(&g_fix, "segment") > 0);
    check_views();
}

/* ---- what joining does not say ---- */

static void names_of_hidden_series_do_not_even_leave_an_empty_set(void **state)
{
    (void)state;
    const struct hearth_str selectors[] = {HEARTH_STR("{service_name=\"svc-1\", team=\"\"}")};
    const struct hearth_view view = {TENANT, selectors, 1};
    const struct hearth_str team = HEARTH_STR("team"), pod = HEARTH_STR("pod");
    const struct hearth_label_request of_team = {.names = &team, .n_names = 1};
    const struct hearth_str of_both[] = {team, pod};
    const struct hearth_label_request of_two = {.names = of_both, .n_names = 2};
    struct hearth_arena arena;
    struct hearth_labels *sets;
    size_t n = 0;

    hearth_arena_init(&arena, 0);
    struct hearth_query query = query_of(&arena, TENANT);
    assert_ok(hearth_query_series(&query, &of_team, &sets, &n, &err));
    assert_true(n > 1 && sets[0].n == 0);
    query.call.view = &view;
    assert_ok(hearth_query_series(&query, &of_team, &sets, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_query_series(&query, &of_two, &sets, &n, &err));
    assert_true(n > 0 && n <= 3 && sets[0].n == 1);
    hearth_arena_release(&arena);
}

static bool shows_drawn(const struct drawn *d, const char *selector)
{
    struct hearth_selector parsed;
    struct hearth_arena arena;
    char text[3][16], service[16];
    struct hearth_label v[5];

    hearth_arena_init(&arena, 0);
    hearth_selector_init(&parsed);
    assert_ok(hearth_selector_parse(&parsed, hearth_str_c(selector), &arena, NULL, &err));
    struct hearth_labels labels = labels_of(d, NULL, text, v);
    (void)snprintf(service, sizeof service, "svc-%d", d->service);
    v[labels.n++] = (struct hearth_label){HEARTH_STR("service_name"), hearth_str_c(service)};
    hearth_labels_sort(&labels);
    bool shows = hearth_selector_matches(&parsed, &labels);
    hearth_selector_release(&parsed);
    hearth_arena_release(&arena);

    return shows;
}

static void the_times_of_a_narrowed_tenant_are_those_of_its_visible_profiles(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_views); i++) {
        struct hearth_str texts[3];
        const struct hearth_view view = view_of(&g_views[i], texts);
        struct hearth_profile_stats stats;
        struct hearth_arena arena;
        char selector[256];
        int64_t oldest_ns = INT64_MAX, newest_ns = INT64_MIN;

        (void)snprintf(selector, sizeof selector, "{%s}", g_views[i].means);
        for (size_t d = 0; d < g_n_drawn; d++) {
            if (shows_drawn(&g_drawn[d], selector)) {
                oldest_ns = g_drawn[d].ts_ns < oldest_ns ? g_drawn[d].ts_ns : oldest_ns;
                newest_ns = g_drawn[d].ts_ns > newest_ns ? g_drawn[d].ts_ns : newest_ns;
            }
        }
        hearth_arena_init(&arena, 0);
        struct hearth_query query = query_of(&arena, TENANT);
        query.call.view = &view;
        assert_ok(hearth_query_profile_stats(&query, &stats, &err));
        assert_int_equal(stats.any, oldest_ns != INT64_MAX);
        if (stats.any) {
            assert_int_equal(stats.oldest_ms, oldest_ns / HEARTH_NS_PER_MS);
            assert_int_equal(stats.newest_ms, newest_ns / HEARTH_NS_PER_MS);
        }
        hearth_arena_release(&arena);
    }
}

static void a_hidden_profile_is_not_found_by_its_id(void **state)
{
    (void)state;
    const struct hearth_str selectors[] = {HEARTH_STR("{team=\"team-1\"}")};
    const struct hearth_view view = {TENANT, selectors, 1};

    for (size_t i = 0; i < 40; i++) {
        struct hearth_arena arena;
        struct hearth_listed_detail detail;
        struct hearth_err err = HEARTH_ERR_INIT, unknown = HEARTH_ERR_INIT;
        struct hearth_buf pprof;
        char text[HEARTH_PROFILE_ID_TEXT + 1], other[HEARTH_PROFILE_ID_TEXT + 1];

        hearth_arena_init(&arena, 0);
        hearth_buf_init(&pprof, 0);
        struct hearth_call call = query_of(&arena, TENANT).call;
        call.view = &view;
        bool shown = g_drawn[i].team == 1;
        assert_int_equal(hearth_listed_find(&call, g_drawn[i].id, &detail, &err),
                         shown ? HEARTH_OK : HEARTH_NOT_FOUND);
        assert_int_equal(hearth_listed_pprof(&call, g_drawn[i].id, &pprof, NULL),
                         shown ? HEARTH_OK : HEARTH_NOT_FOUND);

        /* With the words for an id that there is not. */
        struct hearth_profile_id no_id = {9999, g_drawn[i].id.profile_no};
        hearth_profile_id_format(no_id, other);
        hearth_profile_id_format(g_drawn[i].id, text);
        assert_int_equal(hearth_listed_find(&call, no_id, &detail, &unknown), HEARTH_NOT_FOUND);
        if (!shown) {
            memcpy(strstr(err.msg, text), other, strlen(other));
            assert_string_equal(err.msg, unknown.msg);
        }
        hearth_buf_release(&pprof);
        hearth_arena_release(&arena);
    }
}

static void a_malformed_view_shows_nothing(void **state)
{
    (void)state;
    const struct hearth_str selectors[] = {HEARTH_STR("{team=\"team-1\"}"), HEARTH_STR("{team=")};
    const struct hearth_view view = {TENANT, selectors, 2};
    struct hearth_arena arena;
    struct hearth_str *types;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;

    hearth_arena_init(&arena, 0);
    struct hearth_query query = query_of(&arena, TENANT);
    query.call.view = &view;
    assert_int_equal(hearth_query_profile_types(&query, &types, &n, &err), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(err.msg, "narrows the credential"));
    hearth_arena_release(&arena);
}

/* ---- deletion ---- */

static void a_narrowed_deletion_deletes_visible_series_only(void **state)
{
    (void)state;
    const struct hearth_str team[] = {HEARTH_STR("{team=\"team-1\"}")};
    const struct hearth_str cpu[] = {HEARTH_STR("{__type__=\"wall\"}")};
    const struct hearth_view of_team = {TENANT, team, 1}, of_type = {TENANT, cpu, 1};
    const struct hearth_admin_erase everything = {
        .selector = HEARTH_STR("{}"), .to_ms = INT64_MAX, .requested_by = HEARTH_STR("test")};
    struct hearth_admin_erased erased;
    struct hearth_erasure *erasures;
    struct hearth_arena arena;
    struct hearth_labels *sets;
    size_t n, n_visible, n_after;

    /* Profiles are deleted with all their types: a view of one type permits nothing. */
    hearth_arena_init(&arena, 0);
    struct hearth_query query = query_of(&arena, TENANT);
    query.call.view = &of_type;
    assert_ok(hearth_admin_erase(&query.call, &everything, &erased, &err));
    assert_int_equal(erased.n_series, 0);

    const struct hearth_label_request all = {0};
    query.call.view = NULL;
    assert_ok(hearth_query_series(&query, &all, &sets, &n, &err));
    query.call.view = &of_team;
    assert_ok(hearth_query_series(&query, &all, &sets, &n_visible, &err));
    assert_true(n_visible > 0 && n_visible < n);
    assert_ok(hearth_admin_erase(&query.call, &everything, &erased, &err));
    assert_true(erased.n_series > 0);
    assert_ok(hearth_admin_erasures(&query.call, &erasures, &n_after, &err));
    assert_int_equal(n_after, 0);

    query.call.view = NULL;
    assert_ok(hearth_query_series(&query, &all, &sets, &n_after, &err));
    assert_int_equal(n_after, n - n_visible);
    assert_ok(hearth_admin_erasures(&query.call, &erasures, &n_after, &err));
    assert_int_equal(n_after, 1);

    /* Settings of the tenant are not the narrowed caller's. */
    query.call.view = &of_team;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_admin_retention_set(&query.call, HEARTH_STR("retain-raw"), 1, &err),
                     HEARTH_PERMISSION_DENIED);
    assert_non_null(strstr(err.msg, "narrowed to {team=\"team-1\"}"));
    assert_int_equal(hearth_admin_rebuild(&query.call, HEARTH_STR("svc-1"), 1, &err),
                     HEARTH_PERMISSION_DENIED);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_narrowed_answer_is_that_of_the_joined_selector_in_every_state),
        cmocka_unit_test(names_of_hidden_series_do_not_even_leave_an_empty_set),
        cmocka_unit_test(the_times_of_a_narrowed_tenant_are_those_of_its_visible_profiles),
        cmocka_unit_test(a_hidden_profile_is_not_found_by_its_id),
        cmocka_unit_test(a_malformed_view_shows_nothing),
        cmocka_unit_test(a_narrowed_deletion_deletes_visible_series_only),
    };
    return cmocka_run_group_tests(tests, start_views, stop_views);
}
