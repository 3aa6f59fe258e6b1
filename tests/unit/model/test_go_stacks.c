/* test_go_stacks.c -- generic names, and cut stacks joined to stacks with their roots. */
#include "hearth/base/mem.h"
#include "hearth/model/go_stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- names ---- */

static void assert_short(const char *name, const char *expected)
{
    char out[128];
    size_t n = 0;
    bool is_generic = hearth_go_name_shorten(hearth_str_c(name), out, &n);
    assert_int_equal(is_generic, hearth_go_name_is_generic(hearth_str_c(name)));
    if (expected == NULL) {
        assert_false(is_generic);
        return;
    }
    assert_true(is_generic);
    assert_true(n <= strlen(name));
    out[n] = '\0';
    assert_string_equal(out, expected);
}

static void type_shapes_become_three_dots(void **state)
{
    (void)state;
    assert_short("slices.Sort[go.shape.int]", "slices.Sort[...]");
    assert_short("a.(*Map[go.shape.string,go.shape.struct { x int }]).Get", "a.(*Map[...]).Get");
    assert_short("[go.shape.int]", "[...]");
}

static void everything_between_the_first_shape_and_the_last_bracket_is_removed(void **state)
{
    (void)state;
    assert_short("a.F[go.shape.[]uint8].func1", "a.F[...].func1");
    assert_short("a.F[go.shape.int].G[go.shape.string].func1", "a.F[...].func1");
    assert_short("a.F[int].G[go.shape.map[string]int]", "a.F[int].G[...]");
    assert_short("a[go.shapes]b[go.shape.x]c", "a[go.shapes]b[...]c");
}

static void other_names_are_unchanged(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "main.main",
                                        "a.F[...]",
                                        "a.F[int]",
                                        "[go.",
                                        "[go.shape",
                                        "x[go.shape.",
                                        "x[go.shape.int",
                                        "]x[go.shape.int",
                                        "std::vector<int>::operator[]"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        assert_short(names[i], NULL);
    }
}

static void only_cpu_and_heap_profiles_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint32_t n;
    } types[] = {{"process_cpu:cpu:nanoseconds:cpu:nanoseconds", 64},
                 {"process_cpu:samples:count:cpu:nanoseconds", 64},
                 {"memory:alloc_space:bytes:space:bytes", 32},
                 {"memory:inuse_objects:count:space:bytes", 32},
                 {"goroutine:goroutine:count:goroutine:count", 0},
                 {"mutex:delay:nanoseconds:contentions:count", 0}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(types); i++) {
        struct hearth_profile_type type;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_profile_type_parse(hearth_str_c(types[i].id), &type, &err),
                         HEARTH_OK);
        assert_int_equal(hearth_go_max_frames(&type), types[i].n);
    }
}

/* ---- stacks ---- */

/*
 * A stack: frames by text, root first. "a..p" is each letter from a to p, anything else a frame,
 * and frames are separated by blanks. cut: the runtime may have cut it.
 */
struct stack {
    const char *text;
    int64_t value;
    bool cut;
};

struct fixture {
    struct hearth_arena arena;
    struct hearth_stacktree tree;
    struct hearth_err err;
    struct hearth_go_cut cuts[16];
    size_t n_cuts, n_joined;
    int64_t value;
};

static uint32_t add_frame(struct hearth_stacktree *tree, uint32_t node, const char *text, size_t n)
{
    uint32_t name = hearth_stacktree_name(tree, hearth_str_n(text, n));
    uint32_t child =
        name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE : hearth_stacktree_child(tree, node, name);
    return child;
}

static bool add_stack(struct fixture *f, const struct stack *stack)
{
    uint32_t node = hearth_stacktree_root(&f->tree);
    for (const char *at = stack->text; *at != '\0' && node != HEARTH_NO_NODE;) {
        size_t n = strcspn(at, " ");
        if (n == 4 && memcmp(at + 1, "..", 2) == 0) {
            for (char c = at[0]; c <= at[3] && node != HEARTH_NO_NODE; c++) {
                node = add_frame(&f->tree, node, &c, 1);
            }
        } else {
            node = add_frame(&f->tree, node, at, n);
        }
        at += n + (at[n] == ' ');
    }
    if (node == HEARTH_NO_NODE) {
        return false;
    }
    f->tree.nodes[node].self += stack->value;
    if (stack->cut) {
        f->cuts[f->n_cuts++] = (struct hearth_go_cut){node, stack->value};
    }
    return true;
}

static enum hearth_status join(struct fixture *f, const struct stack *stacks, size_t n,
                               bool reverse)
{
    *f = (struct fixture){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&f->arena, 0);
    hearth_stacktree_init(&f->tree, &f->arena);
    for (size_t i = 0; i < n; i++) {
        if (!add_stack(f, &stacks[reverse ? n - 1 - i : i])) {
            return HEARTH_NO_MEMORY;
        }
    }
    HEARTH_TRY(hearth_go_stacks_join(&f->tree, f->cuts, f->n_cuts, &f->arena, &f->n_joined,
                                     &f->value, &f->err));
    return hearth_stacktree_seal(&f->tree, &f->err);
}

static void release(struct fixture *f)
{
    hearth_stacktree_release(&f->tree);
    hearth_arena_release(&f->arena);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "frames value" of each node with a value, sorted. */
static void print_stacks(struct fixture *f, struct hearth_buf *out)
{
    char lines[32][256], *sorted[32];
    size_t n = 0;
    for (uint32_t i = 0; i < f->tree.n_nodes; i++) {
        const struct hearth_tree_node *node = &f->tree.nodes[i];
        if (node->self == 0) {
            continue;
        }
        uint32_t path[128];
        size_t depth = 0, at = 0;
        for (uint32_t up = i; up != 0; up = f->tree.nodes[up].parent) {
            path[depth++] = f->tree.nodes[up].name;
        }
        while (depth > 0) {
            struct hearth_str name = f->tree.names[path[--depth]];
            at += (size_t)snprintf(lines[n] + at, 256 - at, HEARTH_STR_FMT, HEARTH_STR_ARG(name));
        }
        (void)snprintf(lines[n] + at, 256 - at, " %lld", (long long)node->self);
        sorted[n] = lines[n];
        n++;
    }
    qsort(sorted, n, sizeof sorted[0], by_text);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, "%s\n", sorted[i]);
    }
}

/* The result is independent of the order of the stacks. No node is left without a value below. */
static void assert_joined(const struct stack *stacks, size_t n, size_t n_joined,
                          const char *expected)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        struct fixture f;
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        assert_int_equal(join(&f, stacks, n, reverse), HEARTH_OK);
        print_stacks(&f, &out);
        hearth_buf_byte(&out, '\0');
        assert_string_equal(out.p, expected);
        assert_int_equal(f.n_joined, n_joined);
        int64_t total = 0;
        for (size_t i = 0; i < n; i++) {
            total += stacks[i].value;
        }
        assert_int_equal(f.tree.nodes[0].total, total);
        for (size_t i = 1; n_joined > 0 && i < f.tree.n_nodes; i++) {
            assert_true(f.tree.nodes[i].total > 0 && f.tree.nodes[i].parent < i);
        }
        hearth_buf_release(&out);
        release(&f);
    }
}

#define ASSERT_JOINED(n_joined, expected, ...)                                   \
    do {                                                                         \
        const struct stack stacks[] = {__VA_ARGS__};                             \
        assert_joined(stacks, HEARTH_ARRAY_LEN(stacks), (n_joined), (expected)); \
    } while (0)

static void
a_cut_stack_is_joined_below_the_frames_that_another_has_above_its_first_frames(void **state)
{
    (void)state;
    ASSERT_JOINED(1, "MNabcdefghijklmnop 2\nMNabcdefghijklmnopxy 3\n", {"M N a..p", 2, false},
                  {"a..p x y", 3, true});
    /* Its further frames may differ, or be present already. */
    ASSERT_JOINED(1, "Mabcdefghijklmnopq 2\nMabcdefghijklmnopx 12\n", {"M a..p q", 2, false},
                  {"a..p x", 3, true}, {"M a..p x", 4, false}, {"a..p x", 5, true});
}

static void fewer_common_frames_do_not_join_stacks(void **state)
{
    (void)state;
    ASSERT_JOINED(0, "MNabcdefghijklmno 2\nabcdefghijklmnopx 3\n", {"M N a..o", 2, false},
                  {"a..p x", 3, true});
    ASSERT_JOINED(0, "Mabcdefghijklmno 2\nabcdefghijklmno 3\n", {"M a..o", 2, false},
                  {"a..o", 3, true});
}

static void complete_stacks_are_not_moved(void **state)
{
    (void)state;
    ASSERT_JOINED(0, "Mabcdefghijklmnop 2\nabcdefghijklmnopx 3\n", {"M a..p", 2, false},
                  {"a..p x", 3, false});
    ASSERT_JOINED(1, "Mabcdefghijklmnop 2\nMabcdefghijklmnopx 3\nabcdefghijklmnopx 4\n",
                  {"M a..p", 2, false}, {"a..p x", 3, true}, {"a..p x", 4, false});
}

static void the_place_with_the_largest_value_is_chosen(void **state)
{
    (void)state;
    ASSERT_JOINED(1, "Mabcdefghijklmnop 5\nMabcdefghijklmnopx 3\nNabcdefghijklmnop 2\n",
                  {"M a..p", 5, false}, {"N a..p", 2, false}, {"a..p x", 3, true});
    /* Of equal places, the one with fewer frames above is chosen, then the first by name. */
    ASSERT_JOINED(1, "MNabcdefghijklmnop 5\nZabcdefghijklmnop 5\nZabcdefghijklmnopx 3\n",
                  {"M N a..p", 5, false}, {"Z a..p", 5, false}, {"a..p x", 3, true});
    ASSERT_JOINED(1, "YZabcdefghijklmnop 5\nYZabcdefghijklmnopx 3\nZAabcdefghijklmnop 5\n",
                  {"Z A a..p", 5, false}, {"Y Z a..p", 5, false}, {"a..p x", 3, true});
}

static void chains_of_cut_stacks_are_followed(void **state)
{
    (void)state;
    ASSERT_JOINED(2,
                  "Mabcdefghijklmnop 1\nMabcdefghijklmnopqrst 2\nMabcdefghijklmnopqrstuvwxyz 4\n",
                  {"M a..p", 1, false}, {"a..t", 2, true}, {"c..z", 4, true});
}

static void a_stack_is_never_put_below_itself(void **state)
{
    (void)state;
    /* Recursion whose root is in no stack. */
    ASSERT_JOINED(0, "aaaaaaaaaaaaaaaaaaaa 1\n",
                  {"a a a a a a a a a a a a a a a a a a a a", 1, true});
    /* Two stacks that would each be below the other. */
    ASSERT_JOINED(0, "12345678123456781abcdefghijklmnop 2\nabcdefghijklmnop12345678123456781 1\n",
                  {"1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 a..p", 2, true},
                  {"a..p 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1", 1, true});
}

static void recursion_adds_only_the_necessary_frames(void **state)
{
    (void)state;
    ASSERT_JOINED(1, "Maaaaaaaaaaaaaaaaaaa 1\nMaaaaaaaaaaaaaaaax 2\n",
                  {"M a a a a a a a a a a a a a a a a a a a", 1, false},
                  {"a a a a a a a a a a a a a a a a x", 2, true});
}

static void a_tree_without_cut_stacks_is_unchanged(void **state)
{
    (void)state;
    struct fixture f;
    hearth_arena_init(&f.arena, 0);
    hearth_stacktree_init(&f.tree, &f.arena);
    assert_int_equal(
        hearth_go_stacks_join(&f.tree, NULL, 0, &f.arena, &f.n_joined, &f.value, &f.err),
        HEARTH_OK);
    assert_int_equal(f.n_joined, 0);
    release(&f);
    ASSERT_JOINED(0, "Mabcdefghijklmnop 2\n", {"M a..p", 2, false});
}

static void refused_memory_is_an_error_at_every_step(void **state)
{
    (void)state;
    static const struct stack stacks[] = {
        {"M a..p", 1, false}, {"a..t", 2, true}, {"c..z", 4, true}};
    enum hearth_status status = HEARTH_NO_MEMORY;
    for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
        struct fixture f;
        assert_true(nth < 1000);
        hearth_mem_fail_after(nth);
        status = join(&f, stacks, HEARTH_ARRAY_LEN(stacks), false);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_shapes_become_three_dots),
        cmocka_unit_test(everything_between_the_first_shape_and_the_last_bracket_is_removed),
        cmocka_unit_test(other_names_are_unchanged),
        cmocka_unit_test(only_cpu_and_heap_profiles_are_cut),
        cmocka_unit_test(
            a_cut_stack_is_joined_below_the_frames_that_another_has_above_its_first_frames),
        cmocka_unit_test(fewer_common_frames_do_not_join_stacks),
        cmocka_unit_test(complete_stacks_are_not_moved),
        cmocka_unit_test(the_place_with_the_largest_value_is_chosen),
        cmocka_unit_test(chains_of_cut_stacks_are_followed),
        cmocka_unit_test(a_stack_is_never_put_below_itself),
        cmocka_unit_test(recursion_adds_only_the_necessary_frames),
        cmocka_unit_test(a_tree_without_cut_stacks_is_unchanged),
        cmocka_unit_test(refused_memory_is_an_error_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
