/*
 * test_many_tenants.c -- a query of two tenants: its answers equal those of one tenant that holds
 * both, whose series have the label __tenant_id__; over rows, late rows, blocks and segments.
 */
#include "views_fixture.h"

#define BOTH HEARTH_STR("both")

static const char *const g_names[] = {"a", "b"};

/* Every profile is stored in its tenant, and in the tenant of both. */
static void push_twice(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hearth_arena arena;
        struct drawn d = draw();
        const char *name = g_names[synth_below(&g_rng, 2)];
        hearth_arena_init(&arena, 0);
        struct hearth_profile profile = synth_profile(&g_world, 4, 2, &arena, NULL);
        d.tenant = hearth_str_c(name);
        d.id = store_drawn(&d, &profile, d.tenant, NULL);
        (void)store_drawn(&d, &profile, BOTH, name);
        g_drawn[g_n_drawn++] = d;
        hearth_arena_release(&arena);
    }
}

static const char *const g_selectors[] = {
    "{}",
    "{team=\"team-1\"}",
    "{__tenant_id__=\"a\"}",
    "{__tenant_id__=~\"a|b\", service_name=\"svc-1\"}",
    "{__tenant_id__!=\"b\", env!=\"\"}",
    "{__tenant_id__=\"nobody\"}",
    "{__tenant_id__!~\"a|b\"}",
    "{service_name=~\"svc-[12]\", pod!=\"pod-1\"}",
};

static void write_tenants(const struct asked *a, struct hearth_buf *out)
{
    const struct hearth_str names[] = {HEARTH_STR("__tenant_id__"), HEARTH_STR("team")};
    const struct hearth_str only = HEARTH_STR("__tenant_id__"), team = HEARTH_STR("team");
    struct hearth_profile_stats stats;
    struct hearth_str selector = hearth_str_c(a->selector), *v;
    const struct hearth_label_request request = {.selectors = &selector, .n_selectors = 1};
    size_t n;

    assert_ok(hearth_query_label_values(&a->query, names[0], &request, &v, &n, &err));
    write_texts(out, v, n);
    write_series(a, names, 2, out);
    write_series(a, &only, 1, out);
    write_series(a, &team, 1, out);
    write_label_stats(a, "__tenant_id__", out);
    assert_ok(hearth_query_profile_stats(&a->query, &stats, &err));
    hearth_buf_printf(out, "%d %lld %lld\n", stats.any, (long long)stats.oldest_ms,
                      (long long)stats.newest_ms);
}

static void check_selector(const char *selector, const char *type,
                           const struct hearth_view *tenants)
{
    struct hearth_buf left, right;
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    hearth_buf_init(&left, 0);
    hearth_buf_init(&right, 0);
    struct asked a = {.query = query_of(&arena, tenants[0].tenant),
                      .selector = selector,
                      .type = type,
                      .group_by = {HEARTH_STR("__tenant_id__"), HEARTH_STR("service_name")},
                      .n_group_by = synth_below(&g_rng, 3)};
    struct asked b = a;
    a.query.call.tenants = tenants;
    a.query.call.n_tenants = 2;
    b.query.call.tenant = BOTH;
    a.query.start_ms += (int64_t)synth_below(&g_rng, 3) * 1800000;
    b.query.start_ms = a.query.start_ms;
    write_answers(&a, &left);
    write_tenants(&a, &left);
    write_answers(&b, &right);
    write_tenants(&b, &right);
    assert_same_text(&left, &right, selector);
    hearth_buf_release(&left);
    hearth_buf_release(&right);
    hearth_arena_release(&arena);
}

static void check_tenants(void)
{
    static const char *const types[] = {"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                                        "memory:inuse_space:bytes:space:bytes"};
    const struct hearth_view tenants[] = {{.tenant = HEARTH_STR("a")}, {.tenant = HEARTH_STR("b")}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_selectors); i++) {
        check_selector(g_selectors[i], types[synth_below(&g_rng, 2)], tenants);
    }
}

static void two_tenants_are_read_as_one_that_holds_both_in_every_state(void **state)
{
    (void)state;
    push_twice(120);
    check_tenants();
    build(&g_fix);
    check_tenants();
    push_twice(40);
    assert_true(count(&g_fix, "profile_late") > 0);
    check_tenants();
    fold_late(&g_fix);
    compact_hours(&g_fix);
    assert_true(count(&g_fix, "segment") > 0);
    check_tenants();
}

static void each_tenant_is_read_under_its_own_view(void **state)
{
    (void)state;
    const struct hearth_str team[] = {HEARTH_STR("{team=\"team-1\"}")};
    const struct hearth_str service[] = {HEARTH_STR("{service_name=\"svc-1\"}"),
                                         HEARTH_STR("{service_name=\"svc-2\"}")};
    const struct hearth_view tenants[] = {{HEARTH_STR("a"), team, 1},
                                          {HEARTH_STR("b"), service, 2}};
    const struct hearth_str of_both[] = {
        HEARTH_STR("{__tenant_id__=\"a\", team=\"team-1\"}"),
        HEARTH_STR("{__tenant_id__=\"b\", service_name=~\"svc-[12]\"}")};
    const struct hearth_view both = {BOTH, of_both, 2};
    struct hearth_buf left, right;
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    hearth_buf_init(&left, 0);
    hearth_buf_init(&right, 0);
    struct asked a = {.query = query_of(&arena, HEARTH_STR("a")),
                      .selector = "{}",
                      .type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                      .group_by = {HEARTH_STR("__tenant_id__"), HEARTH_STR("team")},
                      .n_group_by = 2};
    struct asked b = a;
    a.query.call.tenants = tenants;
    a.query.call.n_tenants = 2;
    b.query.call.tenant = BOTH;
    b.query.call.view = &both;
    write_answers(&a, &left);
    write_tenants(&a, &left);
    write_answers(&b, &right);
    write_tenants(&b, &right);
    assert_same_text(&left, &right, "views");
    hearth_buf_release(&left);
    hearth_buf_release(&right);
    hearth_arena_release(&arena);
}

static void a_tenant_without_data_changes_nothing(void **state)
{
    (void)state;
    const struct hearth_view tenants[] = {{.tenant = HEARTH_STR("nobody")},
                                          {.tenant = HEARTH_STR("none-either")}};
    struct hearth_arena arena;
    struct hearth_str *types;
    struct hearth_profile_stats stats;
    size_t n;

    hearth_arena_init(&arena, 0);
    struct hearth_query query = query_of(&arena, HEARTH_STR("nobody"));
    query.call.tenants = tenants;
    query.call.n_tenants = 2;
    assert_ok(hearth_query_profile_types(&query, &types, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_query_profile_stats(&query, &stats, &err));
    assert_false(stats.any);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tenants_are_read_as_one_that_holds_both_in_every_state),
        cmocka_unit_test(each_tenant_is_read_under_its_own_view),
        cmocka_unit_test(a_tenant_without_data_changes_nothing),
    };
    return cmocka_run_group_tests(tests, start_views, stop_views);
}
