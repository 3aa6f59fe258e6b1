/* test_quiet_routes.c -- routes of Datadog's agent whose data is not stored. */
#include "hearth/base/buf.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/json_pick.h"

#include "http/quiet_routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct hearth_quiet_route *find(const char *path)
{
    return hearth_quiet_route_find(hearth_str_c(path));
}

static void finds_whole_paths_and_prefixes(void **state)
{
    (void)state;
    assert_int_equal(find("/v0.4/traces")->code, 200);
    assert_string_equal(find("/telemetry/proxy/api/v2/apmtelemetry")->kind, "telemetry");
    assert_null(find("/v0.4/traces/"));
    assert_null(find("/telemetry/proxy"));
    assert_null(find("/profiling/v1/input"));
    assert_null(find("/"));
}

static void tells_tracers_the_path_for_profiles(void **state)
{
    (void)state;
    struct hearth_json_pick picks[] = {{.path = "version"},
                                       {.path = "endpoints", .is_array = true}};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_json_pick(hearth_str_c(find("/info")->answer), picks, 2, &arena, &err),
                     HEARTH_OK);
    assert_int_not_equal(picks[0].text.n, 0);
    bool is_there = false;
    for (size_t i = 0; i < picks[1].n_items; i++) {
        is_there = is_there || hearth_str_eq_c(picks[1].items[i], "/profiling/v1/input");
    }
    assert_true(is_there);
    hearth_arena_release(&arena);
}

static bool metrics_have(const char *line)
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_metrics_write(&text, HEARTH_METRICS_PROMETHEUS);
    hearth_buf_append(&text, "", 1);
    bool found = strstr(text.p, line) != NULL;
    hearth_buf_release(&text);
    return found;
}

static void counts_requests_and_the_traces_in_them(void **state)
{
    (void)state;
    hearth_metrics_start("test");
    hearth_quiet_routes_declare_metrics();
    hearth_quiet_route_count(find("/v0.4/traces"), HEARTH_STR("12"));
    hearth_quiet_route_count(find("/v0.5/traces"), HEARTH_STR("many"));
    hearth_quiet_route_count(find("/v0.5/traces"), HEARTH_STR("9999999999"));
    hearth_quiet_route_count(find("/info"), HEARTH_STR("1"));
    assert_true(metrics_have("hearth_datadog_requests_dropped_total{kind=\"traces\"} 3\n"));
    assert_true(metrics_have("hearth_datadog_requests_dropped_total{kind=\"stats\"} 0\n"));
    assert_true(metrics_have("hearth_datadog_traces_dropped_total 12\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_whole_paths_and_prefixes),
        cmocka_unit_test(tells_tracers_the_path_for_profiles),
        cmocka_unit_test(counts_requests_and_the_traces_in_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
