/*
 * test_stack_transforms.c -- transforms of trees and packages of names: the cases that the tests of
 * the web page read, too, and what holds for every tree.
 */
#include "hearth/base/mem.h"
#include "hearth/model/frame_package.h"
#include "hearth/model/stack_transforms.h"

#include "synth_profile.h"
#include "test_files.h"
#include "tree_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASES    HEARTH_TEST_DIR "/../clients/web/test/transforms.txt"
#define MOST     64
#define N_STACKS 4000

static const char *const g_kinds[] = {"focus", "hide", "recursion", "package"};

static struct hearth_transform transform_of(const char *kind, const char *name)
{
    struct hearth_transform transform = {.name = hearth_str_c(name)};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_kinds); i++) {
        if (strcmp(kind, g_kinds[i]) == 0) {
            transform.kind = (enum hearth_transform_kind)i;
        }
    }
    return transform;
}

/* Replaces the tree by a transformed one; returns how many frames were meant. */
static size_t apply(struct fixture *f, const struct hearth_transform *transform)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_stacktree result;
    size_t n_frames = 0;

    assert_int_equal(
        hearth_stacktree_transform(&f->tree, transform, &f->arena, &result, &n_frames, &err),
        HEARTH_OK);
    hearth_stacktree_release(&f->tree);
    f->tree = result;

    return n_frames;
}

/* ---- the shared cases ---- */

/* The stack trace that ends at a node, as "a;b;c VALUE". */
static void print_stack(const struct hearth_stacktree *tree, uint32_t node, char *out, size_t room)
{
    uint32_t path[MOST];
    size_t n = 0, at = 0;

    for (uint32_t i = node; i != 0; i = tree->nodes[i].parent) {
        assert_true(n < MOST);
        path[n++] = i;
    }
    out[0] = '\0';
    while (n-- > 0) {
        at += (size_t)snprintf(out + at, room - at, HEARTH_STR_FMT "%s",
                               HEARTH_STR_ARG(tree->names[tree->nodes[path[n]].name]),
                               n > 0 ? ";" : "");
    }
    (void)snprintf(out + at, room - at, " %lld", (long long)tree->nodes[node].self);
}

/* Checks that the tree has exactly these stack traces. */
static void assert_stacks(const struct hearth_stacktree *tree, char *const *wanted, size_t n)
{
    size_t n_found = 0;

    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        if (tree->nodes[i].self == 0) {
            continue;
        }
        char stack[512];
        bool is_wanted = false;
        print_stack(tree, i, stack, sizeof stack);
        for (size_t k = 0; k < n; k++) {
            is_wanted = is_wanted || strcmp(stack, wanted[k]) == 0;
        }
        if (!is_wanted) {
            fail_msg("\"%s\" was not expected", stack);
        }
        n_found++;
    }
    assert_int_equal(n_found, n);
}

static void check_package(char *text)
{
    char *arrow = strstr(text, " -> ");
    char room[512];

    assert_non_null(arrow);
    *arrow = '\0';
    struct hearth_str found = hearth_frame_package(hearth_str_c(text), room);
    if (!hearth_str_eq_c(found, arrow + 4)) {
        fail_msg("the package of \"%s\" is \"" HEARTH_STR_FMT "\"", text, HEARTH_STR_ARG(found));
    }
}

/* One case, as lines; returns whether it was one of transforms. */
static bool check_case(char **lines, size_t n)
{
    struct fixture f;
    size_t at = 1;

    if (n == 0 || strcmp(lines[0], "stacks") != 0) {
        return false;
    }
    fixture_init(&f);
    for (; strncmp(lines[at], "then ", 5) != 0; at++) {
        char *value = strrchr(lines[at], ' ');
        *value = '\0';
        add(&f, lines[at], strtoll(value + 1, NULL, 10));
    }
    seal(&f);
    for (; strcmp(lines[at], "gives") != 0; at++) {
        char *kind = lines[at] + 5, *name = strchr(kind, ' ');
        *name = '\0';
        struct hearth_transform transform = transform_of(kind, name + 1);
        (void)apply(&f, &transform);
    }
    assert_stacks(&f.tree, lines + at + 1, n - at - 1);
    fixture_release(&f);

    return true;
}

static void the_transforms_give_the_results_of_the_web_page(void **state)
{
    struct hearth_buf text;
    char *lines[MOST], *rest;
    size_t n = 0, n_packages = 0, n_cases = 0;

    (void)state;
    hearth_buf_init(&text, 0);
    assert_true(read_file(CASES, &text));
    hearth_buf_cstr(&text, "\n");
    hearth_buf_byte(&text, '\0');
    for (char *line = text.p; line != NULL; line = rest) {
        char *end = strchr(line, '\n');
        rest = end == NULL ? NULL : end + 1;
        if (end != NULL) {
            *end = '\0';
        }
        if (line[0] == '\0') {
            n_cases += check_case(lines, n);
            n = 0;
        } else if (strncmp(line, "package ", 8) == 0) {
            check_package(line + 8);
            n_packages++;
        } else if (line[0] != '#') {
            assert_true(n < MOST);
            lines[n++] = line;
        }
    }
    assert_true(n_cases >= 10);
    assert_true(n_packages >= 30);
    hearth_buf_release(&text);
}

/* ---- every tree ---- */

static void fill_random(struct fixture *f, uint64_t seed)
{
    uint64_t rng = seed;

    for (int i = 0; i < N_STACKS; i++) {
        char stack[256];
        size_t n = 0;
        for (uint64_t depth = synth_next(&rng) % 12; depth > 0 || n == 0; depth--) {
            n += (size_t)snprintf(stack + n, sizeof stack - n, "%spkg%u.f%u", n > 0 ? ";" : "",
                                  (unsigned)(synth_next(&rng) % 4),
                                  (unsigned)(synth_next(&rng) % 5));
            if (depth == 0) {
                break;
            }
        }
        add(f, stack, (int64_t)(synth_next(&rng) % 1000));
    }
    seal(f);
}

/* The total of a function in the exact table; 0: it has none. */
static int64_t total_of(struct fixture *f, const char *name)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_function_total *rows;
    size_t n;

    assert_int_equal(hearth_stacktree_functions(&f->tree, &f->arena, &rows, &n, &err), HEARTH_OK);
    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq_c(f->tree.names[rows[i].name], name)) {
            return rows[i].total;
        }
    }
    return 0;
}

static void totals_stay_but_for_focus_which_leaves_that_of_the_function(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        for (size_t kind = 0; kind < HEARTH_ARRAY_LEN(g_kinds); kind++) {
            struct fixture f;
            fixture_init(&f);
            fill_random(&f, seed);
            int64_t whole = f.tree.nodes[0].total, of_function = total_of(&f, "pkg3.f3");
            bool is_package = kind == HEARTH_TRANSFORM_PACKAGE;
            struct hearth_transform transform =
                transform_of(g_kinds[kind], is_package ? "pkg3" : "pkg3.f3");
            assert_true(apply(&f, &transform) > 0);
            assert_int_equal(f.tree.nodes[0].total,
                             kind == HEARTH_TRANSFORM_FOCUS ? of_function : whole);
            /* Of recursion only the outermost calls are left, of hidden functions nothing. */
            if (kind == HEARTH_TRANSFORM_RECURSION) {
                assert_int_equal(total_of(&f, "pkg3.f3"), of_function);
                assert_int_equal(apply(&f, &transform), apply(&f, &transform));
            } else if (kind != HEARTH_TRANSFORM_FOCUS) {
                assert_int_equal(total_of(&f, "pkg3.f3"), 0);
            }
            fixture_release(&f);
        }
    }
}

static bool is_of_pkg1(const void *context, struct hearth_str name)
{
    assert_string_equal(context, "a context");
    return hearth_str_starts(name, HEARTH_STR("pkg1."));
}

static void several_functions_may_be_meant(void **state)
{
    struct hearth_transform hide = {
        .kind = HEARTH_TRANSFORM_HIDE, .is_meant = is_of_pkg1, .context = "a context"};
    struct fixture f;

    (void)state;
    fixture_init(&f);
    fill_random(&f, 7);
    int64_t whole = f.tree.nodes[0].total;
    assert_true(apply(&f, &hide) > 0);
    assert_int_equal(f.tree.nodes[0].total, whole);
    assert_int_equal(apply(&f, &hide), 0);
    fixture_release(&f);
}

/* ---- back to a profile ---- */

static void a_tree_survives_its_conversion_to_a_profile_and_back(void **state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_profile profile;
    struct hearth_stacktree again;
    struct fixture f;

    (void)state;
    fixture_init(&f);
    fill_random(&f, 3);
    add(&f, "pkg1.f1", 5);
    f.tree.nodes[0].self = 17; /* a stack trace without frames */
    seal(&f);
    assert_int_equal(hearth_stacktree_to_profile(&f.tree, HEARTH_STR("cpu"),
                                                 HEARTH_STR("nanoseconds"), &profile, &err),
                     HEARTH_OK);
    assert_true(hearth_str_eq_c(profile.strings[profile.types[0].unit], "nanoseconds"));

    hearth_stacktree_init(&again, &f.arena);
    assert_int_equal(hearth_stacktree_add_profile(&again, &profile, 0, &err), HEARTH_OK);
    assert_int_equal(hearth_stacktree_seal(&again, &err), HEARTH_OK);
    assert_int_equal(again.nodes[0].self, 17);
    assert_int_equal(again.nodes[0].total, f.tree.nodes[0].total);

    struct hearth_function_total *rows[2];
    size_t n[2];
    const struct hearth_stacktree *trees[2] = {&f.tree, &again};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hearth_stacktree_functions(trees[i], &f.arena, &rows[i], &n[i], &err),
                         HEARTH_OK);
    }
    assert_int_equal(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) {
        assert_true(hearth_str_eq(f.tree.names[rows[0][i].name], again.names[rows[1][i].name]));
        assert_int_equal(rows[0][i].self, rows[1][i].self);
        assert_int_equal(rows[0][i].total, rows[1][i].total);
    }
    hearth_stacktree_release(&again);
    fixture_release(&f);
}

static void a_function_without_a_name_is_a_function_of_the_profile(void **state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_profile profile;
    struct fixture f;

    (void)state;
    fixture_init(&f);
    add(&f, "a;;b", 5);
    seal(&f);
    assert_int_equal(hearth_stacktree_to_profile(&f.tree, HEARTH_STR("cpu"),
                                                 HEARTH_STR("nanoseconds"), &profile, &err),
                     HEARTH_OK);

    assert_int_equal(profile.n_stack_locs, 3);
    static const char *const wanted[] = {"b", "", "a"};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_not_equal(profile.stack_locs[i], HEARTH_NO_INDEX);
        const struct hearth_location *location = &profile.locations[profile.stack_locs[i]];
        uint32_t function = profile.lines[location->first_line].function;
        assert_true(hearth_str_eq_c(profile.strings[profile.functions[function].name], wanted[i]));
    }
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_transforms_give_the_results_of_the_web_page),
        cmocka_unit_test(totals_stay_but_for_focus_which_leaves_that_of_the_function),
        cmocka_unit_test(several_functions_may_be_meant),
        cmocka_unit_test(a_tree_survives_its_conversion_to_a_profile_and_back),
        cmocka_unit_test(a_function_without_a_name_is_a_function_of_the_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
