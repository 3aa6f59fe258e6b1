/* test_recent_queries.c -- recent queries: whose are listed, how many are kept, what is cut. */
#include "hearth/base/arena.h"
#include "hearth/base/mem.h"
#include "hearth/engine/recent_queries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct hearth_recent_queries *queries;
    struct hearth_arena arena;
};

static void begin(struct fixture *fix)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_recent_queries_new(&fix->queries, &err), HEARTH_OK);
    hearth_arena_init(&fix->arena, 0);
}

static void end(struct fixture *fix)
{
    hearth_recent_queries_free(fix->queries);
    hearth_arena_release(&fix->arena);
}

static void note(struct fixture *fix, const char *tenant, const char *request, int64_t took_us)
{
    const struct hearth_recent_query query = {.tenant = hearth_str_c(tenant),
                                              .subject = HEARTH_STR("user:anna"),
                                              .method = HEARTH_STR("/a.B/C"),
                                              .code = HEARTH_STR("ok"),
                                              .request = hearth_str_c(request),
                                              .took_us = took_us};
    hearth_recent_queries_note(fix->queries, &query);
}

static size_t list(struct fixture *fix, const char *tenant, bool slow_only,
                   struct hearth_recent_query **ret)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_call call = {.tenant = hearth_str_c(tenant), .arena = &fix->arena};
    size_t n = 0;
    assert_int_equal(hearth_recent_queries_list(fix->queries, &call, slow_only, ret, &n, &err),
                     HEARTH_OK);
    return n;
}

static void tenants_have_their_own_and_slow_ones_stay(void **state)
{
    (void)state;
    struct fixture fix;
    struct hearth_recent_query *found;
    begin(&fix);
    assert_int_equal(list(&fix, "red", false, &found), 0);
    note(&fix, "red", "slow", HEARTH_SLOW_QUERY_US);
    note(&fix, "blue", "other", 1);
    for (unsigned i = 0; i < HEARTH_RECENT_QUERIES; i++) {
        note(&fix, "red", i + 1 == HEARTH_RECENT_QUERIES ? "last" : "quick",
             HEARTH_SLOW_QUERY_US - 1);
    }
    assert_int_equal(list(&fix, "red", false, &found), HEARTH_RECENT_QUERIES);
    assert_true(hearth_str_eq_c(found[0].request, "last"));
    assert_true(hearth_str_eq_c(found[1].request, "quick"));
    assert_true(hearth_str_eq_c(found[1].subject, "user:anna"));
    assert_int_equal(list(&fix, "red", true, &found), 1);
    assert_true(hearth_str_eq_c(found[0].request, "slow"));
    assert_int_equal(found[0].took_us, HEARTH_SLOW_QUERY_US);
    assert_int_equal(list(&fix, "blue", true, &found), 0);
    end(&fix);
}

static void long_texts_are_cut_to_valid_ones(void **state)
{
    (void)state;
    struct fixture fix;
    struct hearth_recent_query *found;
    char text[4001] = "x";
    begin(&fix);
    for (size_t i = 1; i + 2 < sizeof text; i += 2) {
        memcpy(text + i, "\xc3\xa4", 3);
    }
    note(&fix, "red", text, 1);
    assert_int_equal(list(&fix, "red", false, &found), 1);
    assert_int_equal(found[0].request.n, HEARTH_RECENT_QUERY_BYTES);
    assert_true(hearth_str_utf8_valid(found[0].request));
    end(&fix);
}

static void a_query_without_memory_is_left_out(void **state)
{
    (void)state;
    struct fixture fix;
    struct hearth_recent_query *found;
    begin(&fix);
    for (uint64_t fail_at = 1; fail_at <= 3; fail_at++) {
        hearth_mem_fail_after(fail_at);
        note(&fix, "red", "lost or kept", HEARTH_SLOW_QUERY_US);
        hearth_mem_fail_after(0);
    }
    note(&fix, "red", "kept", 1);
    assert_true(list(&fix, "red", false, &found) >= 1);
    assert_true(hearth_str_eq_c(found[0].request, "kept"));
    end(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_have_their_own_and_slow_ones_stay),
        cmocka_unit_test(long_texts_are_cut_to_valid_ones),
        cmocka_unit_test(a_query_without_memory_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
