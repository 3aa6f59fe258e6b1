/* test_flame_tree.c -- the flame graph behind the screen: reading, merging, sums. */
#include "hearth/base/mem.h"

#include "flame_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/*
 * total 100: main 90 (self 5): parse 45 (self 15): main 30 (self 10): parse 20 (self 20)
 *                              write 40 (self 40)
 *            idle 10
 */
enum {
    TOTAL,
    MAIN,
    PARSE,
    WRITE,
    IDLE,
    N_NAMES
};

static int64_t g_level0[] = {0, 100, 0, TOTAL};
static int64_t g_level1[] = {0, 10, 10, IDLE, 0, 90, 5, MAIN};
static int64_t g_level2[] = {10, 45, 15, PARSE, 0, 40, 40, WRITE};
static int64_t g_level3[] = {10, 30, 10, MAIN};
static int64_t g_level4[] = {10, 20, 20, PARSE};
#define LEVEL(values)                                              \
    {                                                              \
        values, HEARTH_ARRAY_LEN(values), HEARTH_ARRAY_LEN(values) \
    }
static struct hearth_flame_level g_levels[] = {LEVEL(g_level0), LEVEL(g_level1), LEVEL(g_level2),
                                               LEVEL(g_level3), LEVEL(g_level4)};

struct fixture {
    struct hearth_str texts[N_NAMES];
    struct hearth_flamegraph graph;
    struct flame_names names;
    struct flame_tree tree;
    struct hearth_err err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const char *const texts[] = {"total", "main", "parse", "write", "idle"};
    for (size_t i = 0; i < N_NAMES; i++) {
        f->texts[i] = hearth_str_c(texts[i]);
    }
    f->graph = (struct hearth_flamegraph){.names = f->texts,
                                          .n_names = N_NAMES,
                                          .levels = g_levels,
                                          .n_levels = HEARTH_ARRAY_LEN(g_levels),
                                          .total = 100};
    assert_int_equal(flame_names_init(&f->names, &f->graph, &f->err), HEARTH_OK);
    assert_int_equal(flame_tree_read(&f->graph, &f->tree, &f->err), HEARTH_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    flame_tree_release(&f->tree);
    flame_names_release(&f->names);
    free(f);
    return 0;
}

/* Lines "level name from total self", one for each node. */
static void assert_tree(const struct fixture *f, const struct flame_tree *tree, const char *want)
{
    struct hearth_buf got;
    hearth_buf_init(&got, 0);
    for (uint32_t i = 0; i < tree->n; i++) {
        hearth_buf_printf(&got, "%u %s %lld %lld %lld\n", flame_tree_level(tree, i),
                          f->texts[tree->name[i]].p, (long long)tree->from[i],
                          (long long)tree->total[i], (long long)tree->self[i]);
    }
    hearth_buf_byte(&got, '\0');
    assert_string_equal(got.p, want);
    hearth_buf_release(&got);
}

static void a_graph_is_read_level_by_level(void **state)
{
    struct fixture *f = *state;
    assert_tree(f, &f->tree,
                "0 total 0 100 0\n1 idle 0 10 10\n1 main 10 90 5\n2 parse 10 45 15\n"
                "2 write 55 40 40\n3 main 10 30 10\n4 parse 10 20 20\n");
    assert_int_equal(f->tree.first_child[0], 1);
    assert_int_equal(f->tree.first_child[1], 3); /* idle has no children */
    assert_int_equal(f->tree.first_child[2], 3);
    assert_int_equal(f->tree.first_child[3], 5);
    assert_int_equal(flame_tree_at(&f->tree, 2, 54), 3);
    assert_int_equal(flame_tree_at(&f->tree, 2, 55), 4);
    assert_int_equal(flame_tree_at(&f->tree, 2, 95), 5); /* the end of the level */
}

static void stacks_from_their_leaves_keep_the_total(void **state)
{
    struct fixture *f = *state;
    struct flame_tree tree;
    assert_int_equal(flame_tree_invert(&f->tree, &f->names, &tree, &f->err), HEARTH_OK);
    assert_tree(f, &tree,
                "0 total 0 100 0\n1 idle 0 10 10\n1 main 10 15 5\n1 parse 25 35 0\n"
                "1 write 60 40 0\n2 parse 10 10 0\n2 main 25 35 15\n2 main 60 40 40\n"
                "3 main 10 10 10\n3 parse 25 20 0\n4 main 25 20 20\n");
    flame_tree_release(&tree);
}

static void a_recursive_function_counts_once_in_its_sandwich(void **state)
{
    struct fixture *f = *state;
    struct flame_tree tree;
    assert_int_equal(flame_tree_sandwich(&f->tree, &f->names, PARSE, false, &tree, &f->err),
                     HEARTH_OK);
    assert_tree(f, &tree, "0 parse 0 45 15\n1 main 0 30 10\n2 parse 0 20 20\n");
    flame_tree_release(&tree);
    assert_int_equal(flame_tree_sandwich(&f->tree, &f->names, PARSE, true, &tree, &f->err),
                     HEARTH_OK);
    assert_tree(f, &tree, "0 parse 0 45 0\n1 main 0 45 45\n");
    flame_tree_release(&tree);
}

static void matches_below_matches_are_not_counted_again(void **state)
{
    struct fixture *f = *state;
    uint8_t marks[N_NAMES] = {[PARSE] = 1, [WRITE] = 1};
    int64_t total;
    assert_int_equal(flame_tree_matched(&f->tree, marks, &total, &f->err), HEARTH_OK);
    assert_int_equal(total, 85);
}

static void the_table_counts_recursion_once(void **state)
{
    struct fixture *f = *state;
    int64_t self[N_NAMES] = {0}, total[N_NAMES] = {0};
    assert_int_equal(flame_tree_functions(&f->tree, N_NAMES, self, total, &f->err), HEARTH_OK);
    assert_int_equal(self[MAIN], 15);
    assert_int_equal(total[MAIN], 90);
    assert_int_equal(self[PARSE], 35);
    assert_int_equal(total[PARSE], 45);
    assert_int_equal(total[IDLE], 10);
    assert_int_equal(total[TOTAL], 100);
}

static void a_graph_that_contradicts_itself_is_refused(void **state)
{
    struct fixture *f = *state;
    static int64_t root[] = {0, 100, 0, TOTAL};
    static int64_t wide[] = {0, 101, 0, MAIN}, unnamed[] = {0, 1, 0, N_NAMES};
    static int64_t negative[] = {0, -1, 0, MAIN}, huge[] = {INT64_MAX, INT64_MAX, 0, MAIN};
    int64_t *const bad[] = {wide, unnamed, negative, huge};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct hearth_flame_level levels[] = {{root, 4, 4}, {bad[i], 4, 4}};
        struct hearth_flamegraph graph = f->graph;
        struct flame_tree tree;
        graph.levels = levels;
        graph.n_levels = 2;
        assert_int_equal(flame_tree_read(&graph, &tree, &f->err), HEARTH_CORRUPT);
    }
}

static void a_refused_allocation_is_reported(void **state)
{
    struct fixture *f = *state;
    struct flame_tree tree;
    enum hearth_status status = HEARTH_NO_MEMORY;
    uint64_t n = 1;
    for (; status != HEARTH_OK; n++) {
        hearth_mem_fail_after(n);
        status = flame_tree_invert(&f->tree, &f->names, &tree, &f->err);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
    }
    assert_true(n > 5);
    flame_tree_release(&tree);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_graph_is_read_level_by_level),
        TEST(stacks_from_their_leaves_keep_the_total),
        TEST(a_recursive_function_counts_once_in_its_sandwich),
        TEST(matches_below_matches_are_not_counted_again),
        TEST(the_table_counts_recursion_once),
        TEST(a_graph_that_contradicts_itself_is_refused),
        TEST(a_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
