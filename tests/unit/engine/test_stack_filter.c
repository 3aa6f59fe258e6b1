/*
 * test_stack_filter.c -- filters of stacks over name trees: each condition by an example, and all of them
 * on random trees against a check of every path on its own.
 */
#include "select/stack_filter.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MAX_DEPTH 12

struct world {
    struct hearth_arena arena;
    struct hearth_name_tree *tree;
    struct hearth_err err;
};

static int setup(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);
    hearth_arena_init(&w->arena, 0);
    w->tree = hearth_name_tree_new();
    assert_non_null(w->tree);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    hearth_name_tree_unref(w->tree);
    hearth_arena_release(&w->arena);
    test_free(w);
    return 0;
}

/* The node of "a;b;c" (root first); "" is the root. */
static uint32_t put(struct world *w, const char *path)
{
    struct hearth_str all = hearth_str_c(path);
    uint32_t node = 0;
    hearth_name_tree_begin(w->tree);
    for (size_t from = 0; all.n > 0 && from <= all.n;) {
        size_t end = hearth_str_find(all, ';', from);
        uint32_t name = hearth_name_tree_intern(w->tree, hearth_str_n(all.p + from, end - from));
        node = hearth_name_tree_child(w->tree, node, name);
        assert_int_not_equal(node, HEARTH_NO_INDEX);
        from = end + 1;
    }
    hearth_name_tree_end(w->tree);
    return node;
}

static bool *run(struct world *w, const struct hearth_stack_filter *filter)
{
    bool *inside = NULL;
    uint32_t n = hearth_name_tree_size(w->tree);
    assert_int_equal(hearth_stack_filter_nodes(filter, w->tree, n, &w->arena, &inside, &w->err),
                     HEARTH_OK);
    return inside;
}

static const char *const g_paths[] = {
    "", "main", "main;read", "main;write", "main;read;gc", "main;read;gc;read", "gc", "gc;main"};

/* `expected` has a '+' for each of g_paths that passes. */
static void assert_passing(struct world *w, struct hearth_stack_filter filter, const char *expected)
{
    uint32_t nodes[HEARTH_ARRAY_LEN(g_paths)];
    char got[HEARTH_ARRAY_LEN(g_paths) + 1] = "";
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_paths); i++) {
        nodes[i] = put(w, g_paths[i]);
    }
    bool *inside = run(w, &filter);
    assert_non_null(inside);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_paths); i++) {
        got[i] = inside[nodes[i]] ? '+' : '.';
    }
    assert_string_equal(got, expected);
}

static const struct hearth_str g_read_gc[] = {{"read", 4}, {"gc", 2}};
static const struct hearth_str g_main_read[] = {{"main", 4}, {"read", 4}};

static void an_empty_filter_marks_nothing(void **state)
{
    struct world *w = *state;
    assert_null(run(w, &(struct hearth_stack_filter){0}));
    assert_null(run(w, &(struct hearth_stack_filter){.all_functions = true}));
}

static void a_call_site_passes_stacks_that_begin_with_it(void **state)
{
    assert_passing(*state, (struct hearth_stack_filter){.call_site = g_main_read, .n_call_site = 2},
                   "..+.++..");
    assert_passing(*state,
                   (struct hearth_stack_filter){.call_site = g_main_read + 1, .n_call_site = 1},
                   "........");
}

static void functions_pass_stacks_with_any_or_with_each_of_them(void **state)
{
    assert_passing(*state, (struct hearth_stack_filter){.functions = g_read_gc, .n_functions = 2},
                   "..+.++++");
    assert_passing(*state,
                   (struct hearth_stack_filter){
                       .functions = g_read_gc, .n_functions = 2, .all_functions = true},
                   "....++..");
    assert_passing(*state,
                   (struct hearth_stack_filter){
                       .functions = g_read_gc + 1, .n_functions = 1, .all_functions = true},
                   "....++++");
}

static void an_exclusion_passes_a_stack_whose_deeper_stacks_it_excludes(void **state)
{
    assert_passing(*state, (struct hearth_stack_filter){.without = g_read_gc, .n_without = 2},
                   "++.+....");
    assert_passing(*state, (struct hearth_stack_filter){.without = g_read_gc + 1, .n_without = 1},
                   "++++....");
}

static void regular_expressions_match_anywhere_in_a_name(void **state)
{
    assert_passing(*state, (struct hearth_stack_filter){.regex = HEARTH_STR("ri")}, "...+....");
    assert_passing(*state, (struct hearth_stack_filter){.regex = HEARTH_STR("^.ead$|^gc")},
                   "..+.++++");
    assert_passing(*state, (struct hearth_stack_filter){.without_regex = HEARTH_STR("[rc]$|ead")},
                   "++.+....");
    assert_passing(*state, (struct hearth_stack_filter){.regex = HEARTH_STR("(?i)READ")},
                   "..+.++..");
}

static void a_stack_without_frames_contains_nothing(void **state)
{
    struct world *w = *state;
    const struct hearth_str empty = {0};
    struct hearth_stack_filter filter = {.functions = &empty, .n_functions = 1};
    assert_false(run(w, &filter)[0]);
    filter = (struct hearth_stack_filter){.regex = HEARTH_STR(".*")};
    assert_false(run(w, &filter)[0]);
    filter = (struct hearth_stack_filter){.call_site = &empty, .n_call_site = 1};
    assert_false(run(w, &filter)[0]);
}

static void assert_refused(struct hearth_stack_filter filter, const char *message)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_stack_filter_check(&filter, &arena, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, message);
    hearth_arena_release(&arena);
}

static void an_invalid_regular_expression_is_named_with_its_field(void **state)
{
    struct world *w = *state;
    assert_refused((struct hearth_stack_filter){.regex = HEARTH_STR("a(b")},
                   "stacks.regex: bad regular expression: missing ): a(b");
    assert_refused((struct hearth_stack_filter){.without_regex = HEARTH_STR("*")},
                   "stacks.without_regex: bad regular expression: no argument for repetition "
                   "operator: *");
    bool *inside;
    struct hearth_stack_filter filter = {.regex = HEARTH_STR("a(b")};
    assert_int_equal(hearth_stack_filter_nodes(&filter, w->tree, 1, &w->arena, &inside, &w->err),
                     HEARTH_INVALID_ARGUMENT);
}

static void a_filter_accepts_64_functions_and_no_more(void **state)
{
    struct world *w = *state;
    struct hearth_str names[65];
    char path[1024] = "f0";
    for (int i = 0; i < 65; i++) {
        names[i] = hearth_str_c(hearth_arena_printf(&w->arena, "f%d", i));
        if (i > 0) {
            (void)strcat(strcat(path, ";"), names[i].p);
        }
    }
    uint32_t leaf = put(w, path);
    struct hearth_stack_filter filter = {
        .functions = names, .n_functions = 64, .all_functions = true};
    const bool *inside = run(w, &filter);
    assert_true(inside[leaf]);
    uint32_t above = hearth_name_tree_node(w->tree, leaf).parent; /* has f0 to f63 */
    assert_true(inside[above]);
    assert_false(inside[hearth_name_tree_node(w->tree, above).parent]);
    filter.n_functions = 65;
    assert_refused(filter, "stacks.functions: 65 names, at most 64 with all_functions");
    filter.all_functions = false;
    assert_true(run(w, &filter)[leaf]);
}

/* ---- random ---- */

static bool is_one_of(struct hearth_str name, const struct hearth_str *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq(name, v[i])) {
            return true;
        }
    }
    return false;
}

/* The only regular expressions of the random filters, and what they mean. */
static bool has_b_or_d(struct hearth_str name)
{
    return memchr(name.p, 'b', name.n) != NULL || memchr(name.p, 'd', name.n) != NULL;
}

static bool passes(const struct hearth_stack_filter *f, const struct hearth_str *path, size_t n)
{
    size_t n_wanted = 0;
    bool begins = f->n_call_site <= n, matched = false;
    for (size_t i = 0; begins && i < f->n_call_site; i++) {
        begins = hearth_str_eq(path[i], f->call_site[i]);
    }
    for (size_t i = 0; i < f->n_functions; i++) {
        n_wanted += is_one_of(f->functions[i], path, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (is_one_of(path[i], f->without, f->n_without) ||
            (f->without_regex.n > 0 && has_b_or_d(path[i]))) {
            return false;
        }
        matched = matched || has_b_or_d(path[i]);
    }
    if (f->n_functions > 0 && n_wanted < (f->all_functions ? f->n_functions : 1)) {
        return false;
    }
    return begins && (f->regex.n == 0 || matched);
}

static const struct hearth_str g_names[] = {{"a", 1},  {"b", 1},  {"c", 1},  {"d", 1},
                                            {"ab", 2}, {"ca", 2}, {"xd", 2}, {NULL, 0}};

static size_t pick(uint64_t *rng, struct hearth_str *out, uint32_t max)
{
    size_t n = synth_below(rng, 2) == 0 ? 0 : synth_below(rng, max + 1);
    for (size_t i = 0; i < n; i++) {
        out[i] = g_names[synth_below(rng, HEARTH_ARRAY_LEN(g_names))];
    }
    return n;
}

static void grow_randomly(struct world *w, uint64_t *rng, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = 0;
        hearth_name_tree_begin(w->tree);
        for (uint32_t depth = synth_below(rng, MAX_DEPTH); depth > 0; depth--) {
            struct hearth_str name = g_names[synth_below(rng, HEARTH_ARRAY_LEN(g_names))];
            node = hearth_name_tree_child(w->tree, node, hearth_name_tree_intern(w->tree, name));
        }
        hearth_name_tree_end(w->tree);
    }
}

static void every_node_is_judged_as_its_own_path_would_be(void **state)
{
    struct world *w = *state;
    uint64_t rng = 42;
    size_t n_inside = 0, n_outside = 0;
    grow_randomly(w, &rng, 300);
    for (int round = 0; round < 300; round++) {
        struct hearth_str site[3], functions[3], without[2];
        struct hearth_stack_filter f = {
            .call_site = site,
            .n_call_site = pick(&rng, site, 3),
            .functions = functions,
            .n_functions = pick(&rng, functions, 3),
            .all_functions = synth_below(&rng, 2) == 0,
            .without = without,
            .n_without = pick(&rng, without, 2),
            .regex = synth_below(&rng, 3) == 0 ? HEARTH_STR("b|d") : HEARTH_STR(""),
            .without_regex = synth_below(&rng, 6) == 0 ? HEARTH_STR("[bd]") : HEARTH_STR(""),
        };
        uint32_t n_nodes = hearth_name_tree_size(w->tree);
        const bool *inside = run(w, &f);
        for (uint32_t i = 0; i < n_nodes; i++) {
            struct hearth_str path[MAX_DEPTH];
            size_t at = MAX_DEPTH;
            for (uint32_t node = i; node != 0; node = hearth_name_tree_node(w->tree, node).parent) {
                path[--at] =
                    hearth_name_tree_name(w->tree, hearth_name_tree_node(w->tree, node).name);
            }
            bool expected = passes(&f, path + at, MAX_DEPTH - at);
            assert_int_equal(inside == NULL || inside[i], expected);
            n_inside += expected;
            n_outside += !expected;
        }
    }
    assert_true(n_inside > 10000 && n_outside > 10000);
}

int main(void)
{
#define world_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        world_test(an_empty_filter_marks_nothing),
        world_test(a_call_site_passes_stacks_that_begin_with_it),
        world_test(functions_pass_stacks_with_any_or_with_each_of_them),
        world_test(an_exclusion_passes_a_stack_whose_deeper_stacks_it_excludes),
        world_test(regular_expressions_match_anywhere_in_a_name),
        world_test(a_stack_without_frames_contains_nothing),
        world_test(an_invalid_regular_expression_is_named_with_its_field),
        world_test(a_filter_accepts_64_functions_and_no_more),
        world_test(every_node_is_judged_as_its_own_path_would_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
