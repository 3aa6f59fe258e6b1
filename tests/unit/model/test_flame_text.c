/* test_flame_text.c -- flame graphs as text, exactly. */
#include "hearth/base/mem.h"
#include "hearth/model/flame_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_str g_names[] = {
    {"total", 5}, {"main", 4}, {"par\033se", 6}, {"render", 6}, {"a name that is cut", 18}};

/* main has a self of 100, parse 300, render 800 with children of 2 and 600. */
static int64_t g_total[] = {0, 1200, 0, 0};
static int64_t g_main[] = {0, 1200, 100, 1};
static int64_t g_below[] = {100, 300, 300, 2, 0, 800, 198, 3};
static int64_t g_leaves[] = {598, 2, 2, 1, 0, 600, 600, 4};

static enum hearth_status write(double min_percent, const char *option, struct hearth_arena *arena,
                                struct hearth_buf *out)
{
    struct hearth_flame_level levels[] = {
        {.values = g_total, .n = 4},
        {.values = g_main, .n = 4},
        {.values = g_below, .n = 8},
        {.values = g_leaves, .n = 8},
    };
    struct hearth_flamegraph graph = {.names = g_names,
                                      .n_names = HEARTH_ARRAY_LEN(g_names),
                                      .levels = levels,
                                      .n_levels = HEARTH_ARRAY_LEN(levels),
                                      .total = 1200};
    struct hearth_flame_text how = {.unit = HEARTH_STR("nanoseconds"),
                                    .min_percent = min_percent,
                                    .option = option,
                                    .name_width = 8};
    struct hearth_err err = HEARTH_ERR_INIT;
    return hearth_flame_text_write(&graph, &how, arena, out, &err);
}

static void assert_text(double min_percent, const char *option, const char *want)
{
    struct hearth_arena arena;
    struct hearth_buf out;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    assert_int_equal(write(min_percent, option, &arena, &out), HEARTH_OK);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, want);
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

static void a_tree_forks_where_paths_divide(void **state)
{
    (void)state;
    assert_text(0, NULL,
                "   1.20 µs 100.00% ████████████████ total\n"
                "   1.20 µs 100.00% ████████████████  main\n"
                "    800 ns  66.67% ██████████▋       ├ render\n"
                "    600 ns  50.00% ████████          │ ├ a name …\n"
                "      2 ns   0.17%                   │ └ main\n"
                "    300 ns  25.00% ████              └ par…\n");
}

static void a_chain_of_only_children_is_indented_once(void **state)
{
    int64_t all[] = {0, 8, 0, 0}, first[] = {0, 8, 0, 1}, second[] = {0, 8, 0, 3};
    int64_t fork[] = {0, 6, 0, 1, 0, 2, 2, 3}, leaf[] = {0, 6, 6, 3};
    struct hearth_flame_level levels[] = {{.values = all, .n = 4},
                                          {.values = first, .n = 4},
                                          {.values = second, .n = 4},
                                          {.values = fork, .n = 8},
                                          {.values = leaf, .n = 4}};
    struct hearth_flamegraph graph = {.names = g_names,
                                      .n_names = HEARTH_ARRAY_LEN(g_names),
                                      .levels = levels,
                                      .n_levels = HEARTH_ARRAY_LEN(levels),
                                      .total = 8};
    const struct hearth_flame_text how = {.unit = HEARTH_STR("count"), .name_width = 8};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_buf out;
    (void)state;

    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_flame_text_write(&graph, &how, &arena, &out, &err), HEARTH_OK);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, "         8 100.00% ████████████████ total\n"
                               "         8 100.00% ████████████████  main\n"
                               "         8 100.00% ████████████████  render\n"
                               "         6  75.00% ████████████      ├ main\n"
                               "         6  75.00% ████████████      │  render\n"
                               "         2  25.00% ████              └ render\n");
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

static void small_nodes_are_omitted_and_counted(void **state)
{
    (void)state;
    assert_text(30, "--min-percent",
                "   1.20 µs 100.00% ████████████████ total\n"
                "   1.20 µs 100.00% ████████████████  main\n"
                "    800 ns  66.67% ██████████▋       └ render\n"
                "    600 ns  50.00% ████████            └ a name …\n"
                "4 nodes shown; 2 below 30% left out (--min-percent)\n");
}

static void broken_graphs_are_refused(void **state)
{
    struct hearth_arena arena;
    struct hearth_buf out;
    (void)state;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    g_leaves[3] = 5;
    assert_int_equal(write(0, NULL, &arena, &out), HEARTH_CORRUPT);
    g_leaves[3] = -1;
    assert_int_equal(write(0, NULL, &arena, &out), HEARTH_CORRUPT);
    g_leaves[3] = 1;
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

static void refused_memory_is_reported(void **state)
{
    (void)state;
    bool passed = false;
    for (uint64_t n = 1; !passed; n++) {
        struct hearth_arena arena;
        struct hearth_buf out;
        assert_true(n < 100);
        hearth_arena_init(&arena, 0);
        hearth_buf_init(&out, 0);
        hearth_mem_fail_after(n);
        enum hearth_status status = write(0, NULL, &arena, &out);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        passed = status == HEARTH_OK && !hearth_buf_failed(&out);
        hearth_buf_release(&out);
        hearth_arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_forks_where_paths_divide),
        cmocka_unit_test(a_chain_of_only_children_is_indented_once),
        cmocka_unit_test(small_nodes_are_omitted_and_counted),
        cmocka_unit_test(broken_graphs_are_refused),
        cmocka_unit_test(refused_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
