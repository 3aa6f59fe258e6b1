/* test_stacktree.c -- the tree, its truncation, levels and bytes, by examples computed by hand. */
#include "hearth/base/mem.h"
#include "hearth/model/stacktree.h"

#include "tree_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_graph(struct fixture *f, int64_t max_nodes, const char *want)
{
    seal(f);
    struct hearth_flamegraph graph;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_flamegraph_make(&f->tree, max_nodes, &f->arena, &graph, &err),
                     HEARTH_OK);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    print_graph(&graph, &out);
    hearth_buf_byte(&out, 0);
    assert_string_equal(out.p, want);
    hearth_buf_release(&out);
}

/* ---- by hand ---- */

static void an_empty_tree_is_one_empty_box_and_zero_bytes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct hearth_flamegraph graph;
    struct hearth_err err = HEARTH_ERR_INIT;
    for (int sealed = 0; sealed < 2; sealed++) {
        assert_int_equal(hearth_flamegraph_make(&f.tree, 10, &f.arena, &graph, &err), HEARTH_OK);
        assert_int_equal(graph.n_names, 1);
        assert_true(hearth_str_eq_c(graph.names[0], "total"));
        assert_int_equal(graph.n_levels, 1);
        assert_int_equal(graph.levels[0].n, 4);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(graph.levels[0].values[i], 0);
        }
        assert_int_equal(graph.total, 0);
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        assert_int_equal(hearth_stacktree_write_bytes(&f.tree, 0, &out, &err), HEARTH_OK);
        assert_int_equal(out.n, 0);
        struct hearth_function_total *functions;
        size_t n = 99;
        assert_int_equal(hearth_stacktree_functions(&f.tree, &f.arena, &functions, &n, &err),
                         HEARTH_OK);
        assert_int_equal(n, 0);
        seal(&f);
        assert_int_equal(f.tree.nodes[0].total, 0);
    }
    fixture_release(&f);
}

static void levels_start_after_the_self_of_the_parent(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "main;work;hot", 5);
    add(&f, "main;idle", 2);
    add(&f, "main", 3);
    add(&f, "main;work", 1);
    add(&f, "init", 4);
    assert_graph(&f, 0,
                 "0,15,0,total\n"
                 "0,4,4,init|0,11,3,main\n"
                 "7,2,2,idle|0,6,1,work\n"
                 "10,5,5,hot\n");
    fixture_release(&f);
}

static void nameless_frames_have_an_empty_name_and_only_the_root_is_named_total(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a;", 2);
    add(&f, ";b", 1);
    assert_graph(&f, 0,
                 "0,3,0,total\n"
                 "0,1,0,|0,2,0,a\n"
                 "0,1,1,b|0,2,2,\n");
    fixture_release(&f);
}

static void siblings_are_sorted_by_byte_order_with_other_last(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "zz", 10);
    add(&f, "github.com/a/b.y", 10);
    add(&f, "github.com/a/b.x", 10);
    add(&f, "github.com/a", 10);
    add(&f, "\xc3\xa4", 10);
    add(&f, "B", 10);
    add(&f, "tiny", 1);
    assert_graph(&f, 6,
                 "0,61,0,total\n"
                 "0,10,10,B|0,10,10,github.com/a|0,10,10,github.com/a/b.x|0,10,10,github.com/a/b.y"
                 "|0,10,10,zz|0,10,10,\xc3\xa4|0,1,1,other\n");
    fixture_release(&f);
}

static void a_frame_really_named_other_is_folded(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a;other;deep", 3);
    add(&f, "a;other", 1);
    add(&f, "a;zoo", 2);
    assert_graph(&f, 0, "0,6,0,total\n0,6,0,a\n0,2,2,zoo|0,4,4,other\n");
    fixture_release(&f);
}

static void ties_at_the_bound_are_kept(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a", 9);
    add(&f, "b", 5);
    add(&f, "c", 5);
    add(&f, "d", 5);
    add(&f, "e", 4);
    seal(&f);
    int64_t bound = -1;
    assert_int_equal(hearth_stacktree_min_total(&f.tree, 2, &bound, NULL), HEARTH_OK);
    assert_int_equal(bound, 5);
    assert_int_equal(hearth_stacktree_min_total(&f.tree, 1, &bound, NULL), HEARTH_OK);
    assert_int_equal(bound, 9);
    assert_int_equal(hearth_stacktree_min_total(&f.tree, 5, &bound, NULL), HEARTH_OK);
    assert_int_equal(bound, 0);
    assert_int_equal(hearth_stacktree_min_total(&f.tree, 0, &bound, NULL), HEARTH_OK);
    assert_int_equal(bound, 0);
    assert_int_equal(hearth_stacktree_min_total(&f.tree, -7, &bound, NULL), HEARTH_OK);
    assert_int_equal(bound, 0);
    assert_graph(&f, 2, "0,28,0,total\n0,9,9,a|0,5,5,b|0,5,5,c|0,5,5,d|0,4,4,other\n");
    fixture_release(&f);
}

static void max_self_includes_folded_nodes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a", 10);
    for (int i = 0; i < 5; i++) {
        char stack[8] = {(char)('b' + i), 0};
        add(&f, stack, 4);
    }
    seal(&f);
    struct hearth_flamegraph graph;
    assert_int_equal(hearth_flamegraph_make(&f.tree, 1, &f.arena, &graph, NULL), HEARTH_OK);
    assert_int_equal(graph.total, 30);
    assert_int_equal(graph.max_self, 20);
    assert_int_equal(graph.n_folded, 5);
    fixture_release(&f);
}

static void tree_bytes_are_preorder_with_siblings_last_to_first(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a;b", 1);
    add(&f, "a;c", 300);
    add(&f, "d", 2);
    seal(&f);
    struct hearth_buf out;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_stacktree_write_bytes(&f.tree, 0, &out, &err), HEARTH_OK);
    const char want[] = "\0\0\2"
                        "\1d\2\0"
                        "\1a\0\2"
                        "\1c\xac\2\0"
                        "\1b\1\0";
    assert_int_equal(out.n, sizeof want - 1);
    assert_memory_equal(out.p, want, out.n);
    hearth_buf_reset(&out);
    assert_int_equal(hearth_stacktree_write_bytes(&f.tree, 2, &out, &err), HEARTH_OK);
    const char cut[] = "\0\0\2"
                       "\5other\2\0"
                       "\1a\0\2"
                       "\5other\1\0"
                       "\1c\xac\2\0";
    assert_int_equal(out.n, sizeof cut - 1);
    assert_memory_equal(out.p, cut, out.n);
    hearth_buf_release(&out);
    fixture_release(&f);
}

static void tree_bytes_respect_the_limit_of_the_buffer(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a_long_name;another_long_name", 1);
    seal(&f);
    struct hearth_buf out;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&out, 20);
    assert_int_equal(hearth_stacktree_write_bytes(&f.tree, 0, &out, &err), HEARTH_NO_MEMORY);
    assert_true(out.n <= 20);
    hearth_buf_release(&out);
    fixture_release(&f);
}

static void a_recursive_function_counts_once_in_its_total(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "main;fib;fib;fib", 4);
    add(&f, "main;fib;fib", 2);
    add(&f, "main;fib;add;fib", 1);
    add(&f, "fib", 10);
    add(&f, "main;add", 3);
    seal(&f);
    struct hearth_function_total *got;
    size_t n;
    assert_int_equal(hearth_stacktree_functions(&f.tree, &f.arena, &got, &n, NULL), HEARTH_OK);
    assert_int_equal(n, 3);
    const struct {
        const char *name;
        int64_t self, total;
    } want[] = {{"fib", 17, 17}, {"add", 3, 4}, {"main", 0, 10}};
    for (size_t i = 0; i < 3; i++) {
        assert_true(hearth_str_eq_c(f.tree.names[got[i].name], want[i].name));
        assert_int_equal(got[i].self, want[i].self);
        assert_int_equal(got[i].total, want[i].total);
    }
    fixture_release(&f);
}

static void functions_are_sorted_by_self_then_total_then_name(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "q;b", 2);
    add(&f, "p;a", 2);
    add(&f, "p;c;d", 1);
    add(&f, "zero", 0);
    seal(&f);
    struct hearth_function_total *got;
    size_t n;
    assert_int_equal(hearth_stacktree_functions(&f.tree, &f.arena, &got, &n, NULL), HEARTH_OK);
    const char *want[] = {"a", "b", "d", "p", "q", "c"};
    assert_int_equal(n, 6); /* "zero" is not listed */
    for (size_t i = 0; i < n; i++) {
        assert_true(hearth_str_eq_c(f.tree.names[got[i].name], want[i]));
    }
    fixture_release(&f);
}

static void refuses_sums_beyond_64_bits_and_negative_values(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a;b", INT64_MAX);
    seal(&f);
    add(&f, "a;c", 1);
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_stacktree_seal(&f.tree, &err), HEARTH_OUT_OF_RANGE);
    assert_non_null(strstr(err.msg, "\"a\""));
    add(&f, "a;b", -INT64_MAX);
    seal(&f);
    add(&f, "a;b", -1);
    assert_int_equal(hearth_stacktree_seal(&f.tree, &err), HEARTH_OUT_OF_RANGE);
    assert_non_null(strstr(err.msg, "\"b\""));
    fixture_release(&f);
}

static void stacks_may_be_a_hundred_thousand_deep(void **state)
{
    (void)state;
    enum {
        DEPTH = 100000
    };
    struct fixture f;
    fixture_init(&f);
    uint32_t node = 0;
    for (int i = 0; i < DEPTH; i++) {
        node = hearth_stacktree_child(
            &f.tree, node,
            hearth_stacktree_name(&f.tree, i % 2 == 0 ? HEARTH_STR("a") : HEARTH_STR("b")));
    }
    f.tree.nodes[node].self = 7;
    seal(&f);
    struct hearth_flamegraph graph;
    assert_int_equal(hearth_flamegraph_make(&f.tree, 0, &f.arena, &graph, NULL), HEARTH_OK);
    assert_int_equal(graph.n_levels, DEPTH + 1);
    assert_int_equal(graph.levels[DEPTH].values[2], 7);
    struct hearth_function_total *got;
    size_t n;
    assert_int_equal(hearth_stacktree_functions(&f.tree, &f.arena, &got, &n, NULL), HEARTH_OK);
    assert_int_equal(n, 2);
    assert_int_equal(got[0].total, 7);
    assert_int_equal(got[1].total, 7);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_stacktree_write_bytes(&f.tree, 0, &out, NULL), HEARTH_OK);
    assert_int_equal(out.n, 3 + 4 * DEPTH);
    hearth_buf_release(&out);
    fixture_release(&f);
}

/* ---- limits ---- */

static void respects_the_byte_limit_of_its_arena(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_stacktree tree;
    hearth_arena_init(&arena, 1 << 20);
    hearth_stacktree_init(&tree, &arena);
    uint32_t node = 0, name = hearth_stacktree_name(&tree, HEARTH_STR("f"));
    size_t n = 0;
    while (n < 1000000 && node != HEARTH_NO_NODE) {
        node = hearth_stacktree_child(&tree, node, name);
        n++;
    }
    assert_int_equal(node, HEARTH_NO_NODE);
    assert_in_range(n, 5000, 60000);
    assert_int_equal(hearth_stacktree_child(&tree, 0, name), 1); /* still usable */
    hearth_stacktree_release(&tree);
    hearth_arena_release(&arena);
}

static enum hearth_status use_everything(struct hearth_stacktree *tree, struct hearth_arena *arena)
{
    char text[16];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(text, sizeof text, "f%d", i);
        uint32_t name = hearth_stacktree_name(tree, hearth_str_c(text));
        if (name == HEARTH_IDMAP_NONE) {
            return HEARTH_NO_MEMORY;
        }
        uint32_t node = hearth_stacktree_child(tree, tree->n_nodes > 3 ? (uint32_t)i % 3 : 0, name);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_NO_MEMORY;
        }
        tree->nodes[node].self += i;
    }
    struct hearth_flamegraph graph;
    struct hearth_function_total *functions;
    size_t n;
    HEARTH_TRY(hearth_stacktree_seal(tree, NULL));
    HEARTH_TRY(hearth_flamegraph_make(tree, 100, arena, &graph, NULL));
    HEARTH_TRY(hearth_stacktree_functions(tree, arena, &functions, &n, NULL));
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    enum hearth_status status = hearth_stacktree_write_bytes(tree, 100, &out, NULL);
    hearth_buf_release(&out);
    return status;
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    enum hearth_status status = HEARTH_NO_MEMORY;
    uint64_t nth = 0;
    while (status != HEARTH_OK) {
        struct fixture f;
        fixture_init(&f);
        hearth_mem_fail_after(++nth);
        status = use_everything(&f.tree, &f.arena);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        fixture_release(&f);
        assert_true(nth < 1000);
    }
    assert_true(nth > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_tree_is_one_empty_box_and_zero_bytes),
        cmocka_unit_test(levels_start_after_the_self_of_the_parent),
        cmocka_unit_test(nameless_frames_have_an_empty_name_and_only_the_root_is_named_total),
        cmocka_unit_test(siblings_are_sorted_by_byte_order_with_other_last),
        cmocka_unit_test(a_frame_really_named_other_is_folded),
        cmocka_unit_test(ties_at_the_bound_are_kept),
        cmocka_unit_test(max_self_includes_folded_nodes),
        cmocka_unit_test(tree_bytes_are_preorder_with_siblings_last_to_first),
        cmocka_unit_test(tree_bytes_respect_the_limit_of_the_buffer),
        cmocka_unit_test(a_recursive_function_counts_once_in_its_total),
        cmocka_unit_test(functions_are_sorted_by_self_then_total_then_name),
        cmocka_unit_test(refuses_sums_beyond_64_bits_and_negative_values),
        cmocka_unit_test(stacks_may_be_a_hundred_thousand_deep),
        cmocka_unit_test(respects_the_byte_limit_of_its_arena),
        cmocka_unit_test(every_refused_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests_name("stacktree", tests, NULL, NULL);
}
