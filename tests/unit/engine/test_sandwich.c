/*
 * test_sandwich.c -- callers and callees of a function: by example, and random stacks against a count of
 * every stack on its own.
 */
#include "select/query_internal.h"
#include "synth_profile.h"
#include "tree_fixture.h"

#include <stdio.h>

static void print_side(const struct hearth_sandwich_node *nodes, size_t n, struct hearth_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, "%s%d:", i > 0 ? " " : "", (int)nodes[i].parent);
        hearth_buf_str(out, nodes[i].name);
        hearth_buf_printf(out, "=%lld/%lld", (long long)nodes[i].self, (long long)nodes[i].total);
    }
}

/* "parent:name=self/total ..." of both sides. */
static void assert_sandwich(struct fixture *f, const char *function, int64_t max_nodes,
                            const char *callers, const char *callees)
{
    struct hearth_sandwich s;
    size_t n_folded;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf out;
    seal(f);
    assert_int_equal(hearth_sandwich_make(&f->tree, hearth_str_c(function), max_nodes, &f->arena,
                                          &s, &n_folded, &err),
                     HEARTH_OK);
    hearth_buf_init(&out, 0);
    print_side(s.callers, s.n_callers, &out);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, callers);
    hearth_buf_reset(&out);
    print_side(s.callees, s.n_callees, &out);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, callees);
    hearth_buf_release(&out);
    assert_int_equal(s.total, s.callees[0].total);
    assert_int_equal(s.total, s.callers[0].total);
    assert_int_equal(s.self, s.callees[0].self);
    assert_int_equal(s.whole, f->tree.nodes[0].total);
}

static void callers_lead_to_the_root_and_callees_to_the_leaves(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "main;a;f", 1);
    add(&f, "main;a;f;g", 2);
    add(&f, "main;b;f;g;h", 4);
    add(&f, "f;h", 8);
    add(&f, "main;a", 16);
    assert_sandwich(&f, "f", 0, "-1:f=8/15 0:a=0/3 1:main=3/3 0:b=0/4 3:main=4/4",
                    "-1:f=1/15 0:g=2/6 1:h=4/4 0:h=8/8");
    fixture_release(&f);
}

static void a_recursive_sample_counts_once_from_its_outermost_and_innermost_call(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "main;f;x;f;f;y", 1);
    add(&f, "main;f;x", 2);
    add(&f, "f;f", 4);
    assert_sandwich(&f, "f", 0, "-1:f=4/7 0:main=3/3", "-1:f=4/7 0:x=2/2 0:y=1/1");
    fixture_release(&f);
}

static void the_largest_frames_stay_and_the_rest_becomes_other(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "m;f;a", 10);
    add(&f, "m;f;b;c", 3);
    add(&f, "m;f;d", 2);
    add(&f, "n;f", 1);
    assert_sandwich(&f, "f", 2, "-1:f=0/16 0:other=1/1 0:m=15/15",
                    "-1:f=1/16 0:other=5/5 0:a=10/10");
    fixture_release(&f);
}

static void functions_that_no_stack_contains_are_not_found(void **state)
{
    (void)state;
    struct fixture f;
    struct hearth_sandwich s;
    size_t n_folded;
    struct hearth_err err = HEARTH_ERR_INIT;
    fixture_init(&f);
    add(&f, "main;a", 1);
    add(&f, "main;zero", 0);
    seal(&f);
    static const char *const absent[] = {"b", "zero", ""};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(absent); i++) {
        assert_int_equal(hearth_sandwich_make(&f.tree, hearth_str_c(absent[i]), 0, &f.arena, &s,
                                              &n_folded, &err),
                         HEARTH_NOT_FOUND);
    }
    fixture_release(&f);
}

/* ---- random: a path of a side is a text, its nodes summed by text ---- */

struct path_sum {
    char path[64];
    int64_t self, total;
};

struct path_sums {
    struct path_sum v[4000];
    size_t n;
};

static struct path_sum *sum_of(struct path_sums *sums, const char *path)
{
    size_t i = 0;
    while (i < sums->n && strcmp(sums->v[i].path, path) != 0) {
        i++;
    }
    if (i == sums->n) {
        assert_true(sums->n++ < HEARTH_ARRAY_LEN(sums->v));
        (void)strcpy(sums->v[i].path, path);
    }
    return &sums->v[i];
}

/* All prefixes of a path get the value; the whole path has it as self. */
static void add_path(struct path_sums *sums, const char *path, int64_t value)
{
    char prefix[64];
    size_t n = strlen(path);
    for (size_t i = 1; i <= n; i++) {
        (void)snprintf(prefix, sizeof prefix, "%.*s", (int)i, path);
        sum_of(sums, prefix)->total += value;
    }
    sum_of(sums, path)->self += value;
}

static void assert_side(const struct hearth_sandwich_node *nodes, size_t n, struct path_sums *sums)
{
    static char paths[4000][64];
    assert_int_equal(n, sums->n);
    for (size_t i = 0; i < n; i++) {
        assert_true(nodes[i].parent < (int32_t)i);
        (void)snprintf(paths[i], sizeof paths[i], "%s%.*s",
                       nodes[i].parent < 0 ? "" : paths[nodes[i].parent], (int)nodes[i].name.n,
                       nodes[i].name.p);
        const struct path_sum *sum = sum_of(sums, paths[i]);
        assert_int_equal(sums->n, n); /* it was there */
        assert_int_equal(nodes[i].self, sum->self);
        assert_int_equal(nodes[i].total, sum->total);
    }
}

static void random_sandwiches_are_those_of_single_stacks(void **state)
{
    (void)state;
    static struct path_sums callers, callees;
    uint64_t rng = 11;
    for (int round = 0; round < 30; round++) {
        struct fixture f;
        struct hearth_sandwich s;
        size_t n_folded;
        struct hearth_err err = HEARTH_ERR_INIT;
        int64_t total = 0, whole = 0;
        fixture_init(&f);
        callers.n = callees.n = 0;
        memset(callers.v, 0, sizeof callers.v);
        memset(callees.v, 0, sizeof callees.v);
        for (int i = 0; i < 100; i++) {
            char names[16] = "", joined[32] = "", up[16] = "", down[16] = "";
            uint32_t depth = 1 + synth_below(&rng, 8);
            for (uint32_t d = 0; d < depth; d++) {
                names[d] = "fabcd"[synth_below(&rng, 5)];
                joined[2 * d] = names[d];
                joined[2 * d + 1] = d + 1 < depth ? ';' : '\0';
            }
            int64_t value = 1 + synth_below(&rng, 100);
            add(&f, joined, value);
            whole += value;
            const char *first = strchr(names, 'f'), *last = strrchr(names, 'f');
            if (first == NULL) {
                continue;
            }
            total += value;
            for (const char *p = first; p >= names; p--) {
                up[first - p] = *p;
            }
            (void)strcpy(down, last);
            add_path(&callers, up, value);
            add_path(&callees, down, value);
        }
        seal(&f);
        assert_int_equal(
            hearth_sandwich_make(&f.tree, HEARTH_STR("f"), 0, &f.arena, &s, &n_folded, &err),
            HEARTH_OK);
        assert_int_equal(s.total, total);
        assert_int_equal(s.whole, whole);
        assert_int_equal(n_folded, 0);
        assert_side(s.callers, s.n_callers, &callers);
        assert_side(s.callees, s.n_callees, &callees);
        fixture_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_lead_to_the_root_and_callees_to_the_leaves),
        cmocka_unit_test(a_recursive_sample_counts_once_from_its_outermost_and_innermost_call),
        cmocka_unit_test(the_largest_frames_stay_and_the_rest_becomes_other),
        cmocka_unit_test(functions_that_no_stack_contains_are_not_found),
        cmocka_unit_test(random_sandwiches_are_those_of_single_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
