/* test_query_maps.c -- flame graphs, diffs and series as messages. */
#include "hearth/engine/query.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "query/query_maps.h"
#include "rpc/rpc.h"
#include "rpc_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_graph_copies_names_and_borrows_values(void **state)
{
    struct hearth_str names[] = {HEARTH_STR("total"), HEARTH_STR("main")};
    int64_t root[] = {0, 9, 0, 0}, leaf[] = {0, 9, 9, 1};
    struct hearth_flame_level levels[] = {{.values = root, .n = 4}, {.values = leaf, .n = 4}};
    const struct hearth_flamegraph graph = {
        .names = names, .n_names = 2, .levels = levels, .n_levels = 2, .total = 9, .max_self = 9};

    const Querier__V1__FlameGraph *out = hearth_rpc_map(*state, &hearth_flamegraph_map, &graph);
    assert_int_equal(out->n_names, 2);
    assert_string_equal(out->names[1], "main");
    assert_int_equal(out->n_levels, 2);
    assert_int_equal(out->levels[1]->n_values, 4);
    assert_ptr_equal(out->levels[1]->values, leaf);
    assert_int_equal(out->total, 9);
    assert_int_equal(out->max_self, 9);
}

static void a_diff_has_the_ticks_of_both_sides(void **state)
{
    struct hearth_str names[] = {HEARTH_STR("total")};
    const struct hearth_flame_diff diff = {
        .names = names, .n_names = 1, .total = 7, .left_total = 3, .right_total = 4};

    const Querier__V1__FlameGraphDiff *out = hearth_rpc_map(*state, &hearth_flame_diff_map, &diff);
    assert_string_equal(out->names[0], "total");
    assert_int_equal(out->n_levels, 0);
    assert_int_equal(out->total, 7);
    assert_int_equal(out->leftticks, 3);
    assert_int_equal(out->rightticks, 4);
}

static void only_points_with_a_profile_have_an_exemplar(void **state)
{
    struct hearth_label pair = {HEARTH_STR("pod"), HEARTH_STR("a")};
    struct hearth_point points[] = {{.ts_ms = 1000, .value = 0.5}, {.ts_ms = 2000, .value = 2}};
    struct hearth_exemplar exemplars[] = {
        {0},
        {.ts_ms = 1500, .value = 2, .has_profile = true, .span_id = 1, .labels = {&pair, 1}},
    };
    struct hearth_timeseries series = {
        .labels = {&pair, 1}, .points = points, .n_points = 2, .exemplars = exemplars};

    const Types__V1__Series *out = hearth_rpc_map(*state, &hearth_timeseries_map, &series);
    assert_string_equal(out->labels[0]->value, "a");
    assert_int_equal(out->n_points, 2);
    assert_int_equal(out->points[1]->timestamp, 2000);
    assert_true(out->points[0]->value == 0.5);
    assert_int_equal(out->points[0]->n_exemplars, 0);
    assert_int_equal(out->points[1]->n_exemplars, 1);
    assert_int_equal(out->points[1]->exemplars[0]->timestamp, 1500);
    assert_string_equal(out->points[1]->exemplars[0]->span_id, "0000000000000001");
    assert_string_equal(out->points[1]->exemplars[0]->trace_id, "");
    assert_string_equal(out->points[1]->exemplars[0]->labels[0]->name, "pod");

    /* Without exemplars in the series, no point has one. */
    series.exemplars = NULL;
    out = hearth_rpc_map(*state, &hearth_timeseries_map, &series);
    assert_int_equal(out->points[1]->n_exemplars, 0);
}

static void a_full_arena_leaves_series_without_points(void **state)
{
    struct hearth_rpc *rpc = *state;
    struct hearth_point points[64] = {{.ts_ms = 1000, .value = 1}};
    const struct hearth_timeseries series = {.points = points, .n_points = 64};
    Types__V1__Series out = TYPES__V1__SERIES__INIT;

    rpc->arena.limit_bytes = 1;
    hearth_rpc_map_into(rpc, &hearth_timeseries_map, &series, &out);
    assert_int_equal(out.n_points, 0);
    assert_true(rpc->arena.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_graph_copies_names_and_borrows_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_diff_has_the_ticks_of_both_sides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_points_with_a_profile_have_an_exemplar, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_full_arena_leaves_series_without_points, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
