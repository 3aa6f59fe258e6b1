/*
 * test_call_graph.c -- graphs of small trees by hand, and of random ones against a list of stacks.
 */
#include "hearth/base/mem.h"
#include "hearth/model/call_graph.h"

#include "tree_fixture.h"

#include <stdio.h>
#include <stdlib.h>

/* "name self total|..." and "from>to value" with '~' in place of '>' for indirect calls. */
static void print_call_graph(const struct hearth_call_graph *graph, struct hearth_buf *out)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct hearth_call_node *node = &graph->nodes[i];
        hearth_buf_printf(out, "%s" HEARTH_STR_FMT " %lld %lld", i > 0 ? "|" : "",
                          HEARTH_STR_ARG(node->name), (long long)node->self,
                          (long long)node->total);
    }
    hearth_buf_byte(out, '\n');
    for (size_t i = 0; i < graph->n_edges; i++) {
        const struct hearth_call_edge *edge = &graph->edges[i];
        assert_true(edge->from < graph->n_nodes && edge->to < graph->n_nodes);
        hearth_buf_printf(out, "%s" HEARTH_STR_FMT "%c" HEARTH_STR_FMT " %lld", i > 0 ? "|" : "",
                          HEARTH_STR_ARG(graph->nodes[edge->from].name),
                          edge->is_indirect ? '~' : '>',
                          HEARTH_STR_ARG(graph->nodes[edge->to].name), (long long)edge->value);
    }
    hearth_buf_byte(out, '\n');
    hearth_buf_byte(out, 0);
}

static void assert_graph(struct fixture *f, size_t max_nodes, int64_t min_value, const char *want)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_call_graph graph;
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    seal(f);
    assert_int_equal(
        hearth_call_graph_make(&f->tree, max_nodes, min_value, &f->arena, &graph, &err), HEARTH_OK);
    print_call_graph(&graph, &text);
    assert_string_equal(text.p, want);
    assert_int_equal(graph.total, f->tree.nodes[0].total);
    hearth_buf_release(&text);
}

static void calls_are_summed_over_all_places(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "main;read;parse", 3);
    add(&f, "main;write;parse", 4);
    add(&f, "main;read", 10);
    assert_graph(&f, 100, 0,
                 "main 0 17|read 10 13|parse 7 7|write 0 4\n"
                 "main>read 13|main>write 4|write>parse 4|read>parse 3\n");
    fixture_release(&f);
}

static void recursion_counts_once_per_stack(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "main;fib;fib;fib", 40);
    add(&f, "main;fib", 10);
    add(&f, "main;a;b;a;b", 1);
    assert_graph(&f, 100, 0,
                 "main 0 51|fib 50 50|b 1 1|a 0 1\n"
                 "main>fib 50|fib>fib 40|main>a 1|b>a 1|a>b 1\n");
    fixture_release(&f);
}

/* b and c are the smallest: calls through them are indirect, unless there is also a direct call. */
static void calls_through_hidden_functions_are_indirect(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a;b;x", 2);
    add(&f, "a;c;y", 3);
    add(&f, "a;y", 4);
    add(&f, "x", 20);
    add(&f, "y", 20);
    assert_graph(&f, 3, 0,
                 "y 27 27|x 22 22|a 0 9\n"
                 "a>y 7|a~x 2\n");
    fixture_release(&f);
}

static void hidden_functions_above_all_others_make_no_edge(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "small;big", 5);
    add(&f, "big", 5);
    assert_graph(&f, 1, 0, "big 10 10\n\n");
    fixture_release(&f);
}

static void small_calls_are_omitted_and_counted(void **state)
{
    (void)state;
    struct fixture f;
    struct hearth_call_graph graph;
    struct hearth_err err = HEARTH_ERR_INIT;
    fixture_init(&f);
    add(&f, "a;b", 5);
    add(&f, "a;c", 4);
    assert_graph(&f, 100, 5, "a 0 9|b 5 5|c 4 4\na>b 5\n");
    assert_int_equal(hearth_call_graph_make(&f.tree, 2, 5, &f.arena, &graph, &err), HEARTH_OK);
    assert_int_equal(graph.n_functions, 3);
    assert_int_equal(graph.n_nodes, 2);
    assert_int_equal(graph.n_calls, 1);
    assert_int_equal(hearth_call_graph_make(&f.tree, 9, 5, &f.arena, &graph, &err), HEARTH_OK);
    assert_int_equal(graph.n_calls, 2);
    fixture_release(&f);
}

static void a_tree_without_stacks_has_an_empty_graph(void **state)
{
    (void)state;
    struct fixture f;
    struct hearth_call_graph graph;
    struct hearth_err err = HEARTH_ERR_INIT;
    fixture_init(&f);
    assert_int_equal(hearth_call_graph_make(&f.tree, 10, 0, &f.arena, &graph, &err), HEARTH_OK);
    assert_int_equal(graph.n_nodes + graph.n_edges, 0);
    assert_graph(&f, 10, 0, "\n\n");
    fixture_release(&f);
}

static void refused_memory_is_reported(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a;b;c", 3);
    add(&f, "a;d", 4);
    seal(&f);
    bool passed = false;
    for (uint64_t n = 1; !passed; n++) {
        struct hearth_arena arena;
        struct hearth_call_graph graph;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_true(n < 1000);
        hearth_arena_init(&arena, 0);
        hearth_mem_fail_after(n);
        enum hearth_status status = hearth_call_graph_make(&f.tree, 3, 0, &arena, &graph, &err);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        passed = status == HEARTH_OK;
        hearth_arena_release(&arena);
    }
    fixture_release(&f);
}

/* ---- random trees, against a list of stacks ---- */

#define N_NAMES    8
#define MAX_STACKS 40
#define MAX_DEPTH  10

struct listed {
    int frames[MAX_DEPTH], depth;
    int64_t value;
};

static uint64_t g_random = 1;

static uint32_t random_below(uint32_t n)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((g_random >> 33) % n);
}

static struct hearth_str name_of(int i)
{
    static const char letters[N_NAMES] = "abcdefgh";
    return hearth_str_n(&letters[i], 1);
}

/* The calls between shown functions in one stack, direct or indirect. */
static void look_at(const struct listed *stack, const bool *shown, int calls[N_NAMES][N_NAMES])
{
    int above = -1;
    bool hidden = false;
    for (int i = 0; i < stack->depth; i++) {
        int at = stack->frames[i];
        if (!shown[at]) {
            hidden = true;
            continue;
        }
        if (above >= 0) {
            calls[above][at] |= hidden ? 2 : 1;
        }
        above = at;
        hidden = false;
    }
}

static void compare(struct fixture *f, const struct listed *stacks, int n, size_t max_nodes)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_call_graph graph;
    assert_int_equal(hearth_call_graph_make(&f->tree, max_nodes, 0, &f->arena, &graph, &err),
                     HEARTH_OK);
    bool shown[N_NAMES] = {0};
    int64_t value[N_NAMES][N_NAMES] = {0}, total[N_NAMES] = {0};
    int seen[N_NAMES][N_NAMES] = {0}, n_edges = 0;
    for (size_t i = 0; i < graph.n_nodes; i++) {
        shown[graph.nodes[i].name.p[0] - 'a'] = true;
        assert_true(i == 0 || graph.nodes[i].total <= graph.nodes[i - 1].total);
    }
    for (int s = 0; s < n; s++) {
        int calls[N_NAMES][N_NAMES] = {0};
        bool in[N_NAMES] = {0};
        look_at(&stacks[s], shown, calls);
        for (int i = 0; i < stacks[s].depth; i++) {
            in[stacks[s].frames[i]] = true;
        }
        for (int a = 0; a < N_NAMES; a++) {
            total[a] += in[a] ? stacks[s].value : 0;
            for (int b = 0; b < N_NAMES; b++) {
                value[a][b] += calls[a][b] != 0 ? stacks[s].value : 0;
                seen[a][b] |= calls[a][b];
            }
        }
    }
    for (size_t i = 0; i < graph.n_nodes; i++) {
        assert_int_equal(graph.nodes[i].total, total[graph.nodes[i].name.p[0] - 'a']);
    }
    for (int a = 0; a < N_NAMES; a++) {
        for (int b = 0; b < N_NAMES; b++) {
            n_edges += value[a][b] > 0;
        }
    }
    assert_int_equal(graph.n_edges, n_edges);
    for (size_t i = 0; i < graph.n_edges; i++) {
        const struct hearth_call_edge *edge = &graph.edges[i];
        int a = graph.nodes[edge->from].name.p[0] - 'a', b = graph.nodes[edge->to].name.p[0] - 'a';
        assert_int_equal(edge->value, value[a][b]);
        assert_int_equal(edge->is_indirect, (seen[a][b] & 1) == 0);
    }
}

static void random_trees_agree_with_a_list_of_stacks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct fixture f;
        struct listed stacks[MAX_STACKS];
        g_random = seed;
        fixture_init(&f);
        int n = 1 + (int)random_below(MAX_STACKS - 1);
        for (int s = 0; s < n; s++) {
            stacks[s] = (struct listed){.depth = 1 + (int)random_below(MAX_DEPTH - 1),
                                        .value = 1 + (int64_t)random_below(20)};
            uint32_t node = 0;
            for (int i = 0; i < stacks[s].depth; i++) {
                stacks[s].frames[i] = (int)random_below(N_NAMES);
                node = hearth_stacktree_child(
                    &f.tree, node, hearth_stacktree_name(&f.tree, name_of(stacks[s].frames[i])));
            }
            f.tree.nodes[node].self += stacks[s].value;
        }
        seal(&f);
        compare(&f, stacks, n, 1 + random_below(N_NAMES));
        fixture_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_summed_over_all_places),
        cmocka_unit_test(recursion_counts_once_per_stack),
        cmocka_unit_test(calls_through_hidden_functions_are_indirect),
        cmocka_unit_test(hidden_functions_above_all_others_make_no_edge),
        cmocka_unit_test(small_calls_are_omitted_and_counted),
        cmocka_unit_test(a_tree_without_stacks_has_an_empty_graph),
        cmocka_unit_test(refused_memory_is_reported),
        cmocka_unit_test(random_trees_agree_with_a_list_of_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
