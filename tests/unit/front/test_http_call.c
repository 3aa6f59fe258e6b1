/* test_http_call.c -- arguments of plain HTTP routes, and the HTTP methods that routes allow. */
#include "http/http_call.h"
#include "rpc/rpc.h"
#include "tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static enum hearth_status parse(const char *query, struct hearth_arena *arena,
                                struct hearth_http_call *call, struct hearth_err *err)
{
    hearth_arena_init(arena, 1u << 20);
    return hearth_http_args_parse(hearth_str_c(query), arena, &call->args, &call->n_args, err);
}

static void assert_pairs(const char *query, size_t n, const char *const pairs[][2])
{
    struct hearth_arena arena;
    struct hearth_http_call call = {0};
    assert_int_equal(parse(query, &arena, &call, NULL), HEARTH_OK);
    assert_int_equal(call.n_args, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(call.args[i].name.p, pairs[i][0]);
        assert_string_equal(call.args[i].value.p, pairs[i][1]);
        assert_int_equal(call.args[i].value.n, strlen(pairs[i][1]));
    }
    hearth_arena_release(&arena);
}

static void arguments_are_decoded_in_their_order(void **state)
{
    (void)state;
    assert_pairs("", 0, NULL);
    assert_pairs("&&", 0, NULL);
    assert_pairs("a=1", 1, (const char *const[][2]){{"a", "1"}});
    assert_pairs("a=1&b=2&a=3", 3, (const char *const[][2]){{"a", "1"}, {"b", "2"}, {"a", "3"}});
    assert_pairs("&a&b=&=c&", 3, (const char *const[][2]){{"a", ""}, {"b", ""}, {"", "c"}});
    assert_pairs("q=a=b", 1, (const char *const[][2]){{"q", "a=b"}});
    assert_pairs("a;b=c", 1, (const char *const[][2]){{"a;b", "c"}});
    assert_pairs("query=process_cpu%3Acpu%7Bx%3d%22y+z%22%7d", 1,
                 (const char *const[][2]){{"query", "process_cpu:cpu{x=\"y z\"}"}});
    assert_pairs("a%26b%3D=%2B+%25", 1, (const char *const[][2]){{"a&b=", "+ %"}});
    assert_pairs("x=%C3%A9", 1, (const char *const[][2]){{"x", "\xc3\xa9"}});
}

static void broken_escapes_and_zero_bytes_are_refused(void **state)
{
    static const char *const queries[] = {"a=%",   "a=%1",  "%",      "%zz=1", "a=%0x",
                                          "a=%+1", "a=%-1", "a=%00b", "%00",   "b=1&a=%4"};
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(queries); i++) {
        struct hearth_arena arena;
        struct hearth_http_call call = {0};
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(parse(queries[i], &arena, &call, &err), HEARTH_INVALID_ARGUMENT);
        assert_int_equal(call.n_args, 0);
        hearth_arena_release(&arena);
    }
}

static void the_number_of_arguments_is_bounded(void **state)
{
    (void)state;
    struct hearth_buf query;
    hearth_buf_init(&query, 0);
    for (size_t i = 0; i < HEARTH_HTTP_MAX_ARGS; i++) {
        hearth_buf_cstr(&query, "&a");
    }
    struct hearth_arena arena;
    struct hearth_http_call call = {0};
    hearth_arena_init(&arena, 1u << 20);
    assert_int_equal(
        hearth_http_args_parse(hearth_buf_view(&query), &arena, &call.args, &call.n_args, NULL),
        HEARTH_OK);
    assert_int_equal(call.n_args, HEARTH_HTTP_MAX_ARGS);
    hearth_buf_cstr(&query, "&a");
    assert_int_equal(
        hearth_http_args_parse(hearth_buf_view(&query), &arena, &call.args, &call.n_args, NULL),
        HEARTH_INVALID_ARGUMENT);
    hearth_arena_release(&arena);
    hearth_arena_init(&arena, 1024);
    query.n -= 2;
    assert_int_equal(
        hearth_http_args_parse(hearth_buf_view(&query), &arena, &call.args, &call.n_args, NULL),
        HEARTH_NO_MEMORY);
    hearth_arena_release(&arena);
    hearth_buf_release(&query);
}

static void the_first_argument_of_a_name_counts(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_http_call call = {0};
    assert_int_equal(parse("a=1&b=&a=2", &arena, &call, NULL), HEARTH_OK);
    struct hearth_rpc rpc = {.http = &call};
    assert_string_equal(hearth_http_arg(&rpc, "a").p, "1");
    assert_non_null(hearth_http_arg(&rpc, "b").p);
    assert_null(hearth_http_arg(&rpc, "c").p);
    assert_null(hearth_http_arg(&rpc, "A").p);
    hearth_arena_release(&arena);
}

static void routes_know_their_methods(void **state)
{
    (void)state;
    const struct hearth_http_route_table *table = &hearth_http_route_table;
    struct hearth_str get = HEARTH_STR("GET"), path = HEARTH_STR("/api/v1/status/config");
    assert_null(hearth_http_route_find(table, HEARTH_STR("/api/v1/status/config/"), get));
    assert_null(hearth_http_route_find(table, HEARTH_STR(""), get));
    const struct hearth_http_route *route = hearth_http_route_find(table, path, get);
    assert_non_null(route);
    assert_true(hearth_http_route_allows(route, HEARTH_STR("GET")));
    assert_true(hearth_http_route_allows(route, HEARTH_STR("HEAD")));
    assert_false(hearth_http_route_allows(route, HEARTH_STR("POST")));
    assert_string_equal(hearth_http_route_allow(table, path), "GET, HEAD");
    assert_ptr_equal(hearth_http_route_find(table, path, HEARTH_STR("POST")), route);
    const struct hearth_http_route post = {.methods = HEARTH_HTTP_POST};
    assert_true(hearth_http_route_allows(&post, HEARTH_STR("POST")));
    assert_false(hearth_http_route_allows(&post, HEARTH_STR("GET")));
    assert_string_equal(hearth_http_route_allow(table, HEARTH_STR("/ingest")), "POST");
}

static void a_path_may_have_a_route_for_each_method(void **state)
{
    (void)state;
    const struct hearth_http_route_table *table = &hearth_http_route_table;
    struct hearth_str path = HEARTH_STR("/api/v1/uploads");
    const struct hearth_http_route *get = hearth_http_route_find(table, path, HEARTH_STR("HEAD"));
    const struct hearth_http_route *post = hearth_http_route_find(table, path, HEARTH_STR("POST"));

    assert_int_equal(get->method.right, HEARTH_RIGHT_READ);
    assert_int_equal(post->method.right, HEARTH_RIGHT_INGEST);
    assert_string_equal(hearth_http_route_allow(table, path), "GET, HEAD, POST");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_decoded_in_their_order),
        cmocka_unit_test(broken_escapes_and_zero_bytes_are_refused),
        cmocka_unit_test(the_number_of_arguments_is_bounded),
        cmocka_unit_test(the_first_argument_of_a_name_counts),
        cmocka_unit_test(routes_know_their_methods),
        cmocka_unit_test(a_path_may_have_a_route_for_each_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
