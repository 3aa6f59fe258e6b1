/* test_flame_export.c -- flame graphs and diffs as files: what is read, and how names are escaped. */
#include "hearth/base/mem.h"

#include "flame_export.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define LEVEL(values)                                              \
    {                                                              \
        values, HEARTH_ARRAY_LEN(values), HEARTH_ARRAY_LEN(values) \
    }

/* total 100: main 90 (self 30): parse 60; idle 10 */
static int64_t g_level0[] = {0, 100, 0, 0};
static int64_t g_level1[] = {0, 90, 30, 1, 0, 10, 10, 2};
static int64_t g_level2[] = {30, 60, 60, 3};
static struct hearth_flame_level g_levels[] = {LEVEL(g_level0), LEVEL(g_level1), LEVEL(g_level2)};

/* total 100 and 50: main 100 (self 60), 30 (self 30): old 40, 0; new 0, 20 */
static int64_t g_diff0[] = {0, 100, 0, 0, 50, 0, 0};
static int64_t g_diff1[] = {0, 100, 60, 0, 30, 30, 1, 0, 0, 0, 0, 20, 20, 3};
static int64_t g_diff2[] = {0, 40, 40, 0, 0, 0, 2};
static struct hearth_flame_level g_diffs[] = {LEVEL(g_diff0), LEVEL(g_diff1), LEVEL(g_diff2)};
static const float g_q[] = {1, 0.01F, 0.5F, 0.05F};

struct fixture {
    struct hearth_arena arena;
    struct hearth_str names[4];
    struct hearth_flamegraph graph;
    struct hearth_flame_diff diff;
    struct flame_export_facts facts;
    struct flame_export made;
    struct hearth_buf out;
    struct hearth_err err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const char *const texts[] = {"total", "main", "</script><!--", "pa\"r\x01se"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        f->names[i] = hearth_str_c(texts[i]);
    }
    f->graph = (struct hearth_flamegraph){
        .names = f->names, .n_names = 4, .levels = g_levels, .n_levels = 3, .total = 100};
    f->diff = (struct hearth_flame_diff){
        .names = f->names, .n_names = 4, .levels = g_diffs, .n_levels = 3, .n_nodes = 4};
    f->facts = (struct flame_export_facts){
        .title = "{a=\"<b>\"}", .unit = HEARTH_STR("nanoseconds"), .sides = {"base", "now"}};
    hearth_arena_init(&f->arena, 1 << 20);
    hearth_buf_init(&f->out, 0);
    *state = f;

    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    hearth_buf_release(&f->out);
    hearth_arena_release(&f->arena);
    free(f);
    return 0;
}

static void must_read(struct fixture *f, bool is_diff)
{
    enum hearth_status status =
        is_diff ? flame_export_read_diff(&f->diff, g_q, &f->facts, &f->arena, &f->made, &f->err)
                : flame_export_read(&f->graph, &f->facts, &f->arena, &f->made, &f->err);
    assert_int_equal(status, HEARTH_OK);
    assert_int_equal(f->made.n_nodes, 4);
}

static void must_hold(struct fixture *f, const char *text)
{
    hearth_buf_byte(&f->out, '\0');
    assert_false(hearth_buf_failed(&f->out));
    if (strstr(f->out.p, text) == NULL) {
        fail_msg("no \"%s\" in %s", text, f->out.p);
    }
    f->out.n--;
}

static void reads_parents_of_both_formats(void **state)
{
    struct fixture *f = *state;

    must_read(f, false);
    assert_int_equal(f->made.parent[1], 0);
    assert_int_equal(f->made.parent[2], 0);
    assert_int_equal(f->made.parent[3], 1);
    assert_int_equal(f->made.total[0][3], 60);
    assert_null(f->made.total[1]);

    /* The base of "old" is within main; on the other side it has no width. */
    must_read(f, true);
    assert_int_equal(f->made.parent[3], 1);
    assert_int_equal(f->made.self[0][3], 40);
    assert_int_equal(f->made.total[1][2], 20);
}

static void refuses_malformed_levels(void **state)
{
    struct fixture *f = *state;
    static const struct {
        size_t at;
        int64_t value;
    } wrong[] = {{3, 4}, {3, -1}, {1, -60}, {1, 61}, {2, 61}, {0, -1}, {0, 31}, {1, INT64_MAX}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(wrong); i++) {
        int64_t saved = g_level2[wrong[i].at];
        g_level2[wrong[i].at] = wrong[i].value;
        assert_int_equal(flame_export_read(&f->graph, &f->facts, &f->arena, &f->made, &f->err),
                         HEARTH_CORRUPT);
        g_level2[wrong[i].at] = saved;
    }
    f->graph.n_levels = 0;
    assert_int_equal(flame_export_read(&f->graph, &f->facts, &f->arena, &f->made, &f->err),
                     HEARTH_CORRUPT);
}

static void html_holds_the_graph_and_no_name_as_markup(void **state)
{
    struct fixture *f = *state;

    must_read(f, false);
    flame_export_html(&f->made, &f->out);
    must_hold(f, "{\"title\":\"{a=\\\"\\u003cb>\\\"}\",\"unit\":\"nanoseconds\"");
    must_hold(f, "\"names\":[\"total\",\"main\",\"\\u003c/script>\\u003c!--\",\"pa\\\"r\\u0001se\"]"
                 ",\"name\":[0,1,2,3],\"parent\":[0,0,0,1],\"self\":[[0,30,10,60]]}</script>");
}

static void html_of_a_diff_holds_both_sides_and_the_changes_beyond_noise(void **state)
{
    struct fixture *f = *state;

    must_read(f, true);
    flame_export_html(&f->made, &f->out);
    must_hold(f, "\"sides\":[\"base\",\"now\"]");
    must_hold(f, "\"self\":[[0,60,0,40],[0,30,20,0]],\"changed\":[1,2]}</script>");
}

static void speedscope_holds_samples_of_each_side(void **state)
{
    struct fixture *f = *state;

    must_read(f, true);
    flame_export_speedscope(&f->made, &f->out);
    must_hold(f, "\"profiles\":[{\"type\":\"sampled\",\"name\":\"base\",\"unit\":\"nanoseconds\","
                 "\"startValue\":0,\"endValue\":100,\"samples\":[[1],[1,2]],\"weights\":[60,40]},");
    must_hold(f, "\"endValue\":50,\"samples\":[[1],[3]],\"weights\":[30,20]}]}");
}

static void svg_draws_boxes_in_their_places(void **state)
{
    struct fixture *f = *state;

    must_read(f, false);
    flame_export_svg(&f->made, &f->out);
    must_hold(f, "<title>main · total 90 ns (90.00%) · self 30 ns (30.00%)</title>"
                 "<rect x=\"0.00\" y=\"62\" width=\"1079.00\" height=\"17\"");
    must_hold(f, "<title>&#60;/script&#62;&#60;!-- · total 10 ns");
    must_hold(f, "pa&#34;r\\u0001se · total 60 ns (60.00%) · self 60 ns (60.00%)</title>"
                 "<rect x=\"0.00\" y=\"80\" width=\"719.00\"");
}

/* A level deeper than the picture may have, and names that are no text. */
static void svg_omits_levels_beyond_its_limit(void **state)
{
    struct fixture *f = *state;
    static struct hearth_flame_level deep[FLAME_EXPORT_SVG_LEVELS + 9];

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(deep); i++) {
        deep[i] = g_levels[0];
    }
    f->graph.levels = deep;
    f->graph.n_levels = HEARTH_ARRAY_LEN(deep);
    f->names[0] = HEARTH_STR("\xff\xe2\x80\xae\xef\xbf\xbf\xf3\xa0\x81\x81"
                             "a\xe2\x82");
    assert_int_equal(flame_export_read(&f->graph, &f->facts, &f->arena, &f->made, &f->err),
                     HEARTH_OK);
    flame_export_svg(&f->made, &f->out);
    must_hold(f, "<title>\\xff\\u202e?\\U000e0041a\\xe2\\x82 · total");
    must_hold(f, "9 deeper levels are not drawn");
    must_hold(f, "height=\"4670\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_parents_of_both_formats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_malformed_levels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(html_holds_the_graph_and_no_name_as_markup, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            html_of_a_diff_holds_both_sides_and_the_changes_beyond_noise, set_up, tear_down),
        cmocka_unit_test_setup_teardown(speedscope_holds_samples_of_each_side, set_up, tear_down),
        cmocka_unit_test_setup_teardown(svg_draws_boxes_in_their_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(svg_omits_levels_beyond_its_limit, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
