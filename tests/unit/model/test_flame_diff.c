/*
 * test_flame_diff.c -- small trees by hand, and random ones against a naive model: pointer nodes
 * with two values, recursion, a sorted list of totals.
 */
#include "hearth/base/mem.h"
#include "hearth/model/flame_diff.h"

#include "tree_fixture.h"

#include <stdio.h>
#include <stdlib.h>

/* Levels as lines of boxes "lx,lt,ls,rx,rt,rs,name". */
static void print_diff(const struct hearth_flame_diff *diff, struct hearth_buf *out)
{
    for (size_t l = 0; l < diff->n_levels; l++) {
        assert_int_equal(diff->levels[l].n % 7, 0);
        for (size_t i = 0; i < diff->levels[l].n; i += 7) {
            const int64_t *v = diff->levels[l].values + i;
            assert_true(v[6] >= 0 && (size_t)v[6] < diff->n_names);
            hearth_buf_printf(out, "%s%lld,%lld,%lld,%lld,%lld,%lld,", i > 0 ? "|" : "",
                              (long long)v[0], (long long)v[1], (long long)v[2], (long long)v[3],
                              (long long)v[4], (long long)v[5]);
            hearth_buf_str(out, diff->names[v[6]]);
        }
        hearth_buf_byte(out, '\n');
    }
}

/* What a parent has is its own and its children's. */
static void assert_parents_have_their_children(const struct hearth_flame_diff *diff)
{
    int64_t *rest = calloc(diff->n_nodes, 2 * sizeof *rest);
    size_t node = 0;
    assert_non_null(rest);
    for (size_t l = 0; l < diff->n_levels; l++) {
        for (size_t i = 0; i < diff->levels[l].n; i += 7, node++) {
            const int64_t *v = diff->levels[l].values + i;
            for (size_t s = 0; s < 2; s++) {
                rest[2 * node + s] = v[3 * s + 1] - v[3 * s + 2];
                if (node > 0) {
                    assert_true(diff->parents[node] < node);
                    rest[2 * diff->parents[node] + s] -= v[3 * s + 1];
                }
            }
        }
    }
    assert_int_equal(node, diff->n_nodes);
    for (size_t i = 0; i < 2 * node; i++) {
        assert_int_equal(rest[i], 0);
    }
    free(rest);
}

static void make(struct fixture *left, struct fixture *right, int64_t max_nodes,
                 struct hearth_arena *arena, struct hearth_flame_diff *ret)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_flame_diff_make(&left->tree, &right->tree, max_nodes, arena, ret, &err),
                     HEARTH_OK);
    assert_parents_have_their_children(ret);
}

/* A stack of one side; a NULL text ends the list. */
struct stack {
    const char *text;
    int64_t value;
};

static void assert_diff(const struct stack *left, const struct stack *right, int64_t max_nodes,
                        const char *want)
{
    struct fixture l, r;
    struct hearth_arena arena;
    struct hearth_buf text;
    struct hearth_flame_diff diff;
    fixture_init(&l);
    fixture_init(&r);
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&text, 0);
    for (; left->text != NULL; left++) {
        add(&l, left->text, left->value);
    }
    for (; right->text != NULL; right++) {
        add(&r, right->text, right->value);
    }
    seal(&l);
    seal(&r);
    make(&l, &r, max_nodes, &arena, &diff);
    int64_t l_total = l.tree.nodes[0].total, r_total = r.tree.nodes[0].total;
    fixture_release(&l); /* the result does not borrow from the trees */
    fixture_release(&r);
    print_diff(&diff, &text);
    hearth_buf_byte(&text, 0);
    assert_string_equal(text.p, want);
    assert_int_equal(diff.left_total, l_total);
    assert_int_equal(diff.right_total, r_total);
    assert_int_equal(diff.total, l_total + r_total);
    hearth_buf_release(&text);
    hearth_arena_release(&arena);
}

static void two_empty_sides_make_a_box_of_zeros(void **state)
{
    (void)state;
    assert_diff((const struct stack[]){{NULL, 0}}, (const struct stack[]){{NULL, 0}}, 10,
                "0,0,0,0,0,0,total\n");
}

static void nodes_missing_on_one_side_are_zero(void **state)
{
    (void)state;
    const struct stack left[] = {{"a;b", 3}, {"c", 2}, {NULL, 0}};
    const struct stack right[] = {{"a;d", 5}, {"c", 1}, {NULL, 0}};
    assert_diff(left, right, 10,
                "0,5,0,0,6,0,total\n"
                "0,3,0,0,5,0,a|0,2,2,0,1,1,c\n"
                "0,3,3,0,0,0,b|0,0,0,0,5,5,d\n");
}

static void a_single_side_keeps_its_shape(void **state)
{
    (void)state;
    const struct stack left[] = {{NULL, 0}};
    const struct stack right[] = {{"m", 1}, {"m;x", 2}, {"m;y", 4}, {NULL, 0}};
    assert_diff(left, right, 10,
                "0,0,0,0,7,0,total\n"
                "0,0,0,0,7,1,m\n"
                "0,0,0,1,2,2,x|0,0,0,0,4,4,y\n");
}

/* Level 2 on the left begins after a's self and continues below b; on the right a has more self. */
static void offsets_of_the_sides_are_independent(void **state)
{
    (void)state;
    const struct stack left[] = {{"a", 1}, {"a;x", 10}, {"b;x", 100}, {NULL, 0}};
    const struct stack right[] = {{"a", 7}, {"b", 20}, {"b;x", 3}, {NULL, 0}};
    assert_diff(left, right, 10,
                "0,111,0,0,30,0,total\n"
                "0,11,1,0,7,7,a|0,100,0,0,23,20,b\n"
                "1,10,10,7,0,0,x|0,100,100,20,3,3,x\n");
}

/* Five nodes, two are kept: the bound is the second largest of max(left, right) = 8 8 5 4 1. */
static void the_larger_side_decides_what_is_folded(void **state)
{
    (void)state;
    const struct stack left[] = {{"a", 8}, {"b", 1}, {"c", 4}, {NULL, 0}};
    const struct stack right[] = {{"b", 8}, {"c", 5}, {"d", 1}, {NULL, 0}};
    assert_diff(left, right, 2,
                "0,13,0,0,14,0,total\n"
                "0,8,8,0,0,0,a|0,1,1,0,8,8,b|0,4,4,0,6,6,other\n");
}

static void ties_at_the_bound_stay(void **state)
{
    (void)state;
    const struct stack left[] = {{"a", 5}, {"b", 1}, {NULL, 0}};
    const struct stack right[] = {{"c", 5}, {"d", 5}, {"e", 2}, {NULL, 0}};
    assert_diff(left, right, 1,
                "0,6,0,0,12,0,total\n"
                "0,5,5,0,0,0,a|0,0,0,0,5,5,c|0,0,0,0,5,5,d|0,1,1,0,2,2,other\n");
}

/*
 * Even without truncation, with all nodes below, and from both sides into one box after all names.
 */
static void a_frame_named_other_is_folded(void **state)
{
    (void)state;
    const struct stack left[] = {{"other;below", 2}, {"zebra", 1}, {NULL, 0}};
    const struct stack right[] = {{"other", 3}, {"apple", 4}, {NULL, 0}};
    assert_diff(left, right, 100,
                "0,3,0,0,7,0,total\n"
                "0,0,0,0,4,4,apple|0,1,1,0,0,0,zebra|0,2,2,0,3,3,other\n");
}

static void a_nameless_frame_has_an_empty_name(void **state)
{
    (void)state;
    const struct stack left[] = {{"", 2}, {NULL, 0}};
    const struct stack right[] = {{"", 3}, {NULL, 0}};
    assert_diff(left, right, 100,
                "0,2,0,0,3,0,total\n"
                "0,2,2,0,3,3,\n");
}

static void totals_beyond_64_bits_are_an_error(void **state)
{
    (void)state;
    struct fixture l, r;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_flame_diff diff;
    fixture_init(&l);
    fixture_init(&r);
    add(&l, "a", INT64_MAX);
    add(&r, "a", 1);
    seal(&l);
    seal(&r);
    assert_int_equal(hearth_flame_diff_make(&l.tree, &r.tree, 10, &l.arena, &diff, &err),
                     HEARTH_OUT_OF_RANGE);
    fixture_release(&l);
    fixture_release(&r);
}

static void refused_memory_is_reported(void **state)
{
    (void)state;
    struct fixture l, r;
    fixture_init(&l);
    fixture_init(&r);
    add(&l, "a;b;c", 3);
    add(&l, "a;d", 4);
    add(&r, "a;b;e", 5);
    seal(&l);
    seal(&r);
    bool passed = false;
    for (uint64_t n = 1; !passed; n++) {
        struct hearth_arena arena;
        struct hearth_flame_diff diff;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_true(n < 1000);
        hearth_arena_init(&arena, 0);
        hearth_mem_fail_after(n);
        enum hearth_status status =
            hearth_flame_diff_make(&l.tree, &r.tree, 3, &arena, &diff, &err);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        passed = status == HEARTH_OK;
        hearth_arena_release(&arena);
    }
    fixture_release(&l);
    fixture_release(&r);
}

/* ---- random trees ---- */

struct model {
    char name[24];
    int64_t self[2], total[2];
    bool in[2]; /* the sides that have it */
    struct model *kids[32];
    size_t n_kids;
};

static struct model *model_child(struct model *m, const char *name)
{
    size_t at = 0;
    while (at < m->n_kids && strcmp(m->kids[at]->name, name) < 0) {
        at++;
    }
    if (at < m->n_kids && strcmp(m->kids[at]->name, name) == 0) {
        return m->kids[at];
    }
    assert_true(m->n_kids < 32);
    memmove(&m->kids[at + 1], &m->kids[at], (m->n_kids - at) * sizeof m->kids[0]);
    m->kids[at] = calloc(1, sizeof *m);
    assert_non_null(m->kids[at]);
    (void)snprintf(m->kids[at]->name, sizeof m->kids[at]->name, "%s", name);
    m->n_kids++;
    return m->kids[at];
}

static int64_t model_max(const struct model *m)
{
    return m->total[0] > m->total[1] ? m->total[0] : m->total[1];
}

/* Sums totals, and lists the larger of each node below. */
static void model_sum(struct model *m, int64_t *list, size_t *n)
{
    m->total[0] = m->self[0];
    m->total[1] = m->self[1];
    for (size_t i = 0; i < m->n_kids; i++) {
        model_sum(m->kids[i], list, n);
        m->total[0] += m->kids[i]->total[0];
        m->total[1] += m->kids[i]->total[1];
        assert_true(*n < 4096);
        list[(*n)++] = model_max(m->kids[i]);
    }
}

static void model_free(struct model *m)
{
    for (size_t i = 0; i < m->n_kids; i++) {
        model_free(m->kids[i]);
    }
    free(m);
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

struct drawing {
    struct hearth_buf levels[16];
    size_t n_levels;
    int64_t end[16][2], max_self, n_shown[2];
};

static void draw_box(struct drawing *d, size_t level, const int64_t x[2], const struct model *m)
{
    assert_true(level < 16);
    if (level == d->n_levels) {
        hearth_buf_init(&d->levels[d->n_levels++], 0);
    }
    struct hearth_buf *out = &d->levels[level];
    hearth_buf_cstr(out, out->n > 0 ? "|" : "");
    for (int s = 0; s < 2; s++) {
        hearth_buf_printf(out, "%lld,%lld,%lld,", (long long)(x[s] - d->end[level][s]),
                          (long long)m->total[s], (long long)m->self[s]);
        d->end[level][s] = x[s] + m->total[s];
        d->max_self = m->self[s] > d->max_self ? m->self[s] : d->max_self;
    }
    hearth_buf_cstr(out, level == 0 ? "total" : m->name);
}

static void draw(struct drawing *d, const struct model *m, size_t level, const int64_t at[2],
                 int64_t bound)
{
    draw_box(d, level, at, m);
    d->n_shown[0] += m->in[0];
    d->n_shown[1] += m->in[1];
    int64_t x[2] = {at[0] + m->self[0], at[1] + m->self[1]};
    struct model other = {.name = "other"};
    for (size_t i = 0; i < m->n_kids; i++) {
        const struct model *kid = m->kids[i];
        bool folded = model_max(kid) < bound || strcmp(kid->name, "other") == 0;
        if (!folded) {
            draw(d, kid, level + 1, x, bound);
        }
        for (int s = 0; s < 2; s++) {
            *(folded ? &other.total[s] : &x[s]) += kid->total[s];
        }
    }
    if (other.total[0] != 0 || other.total[1] != 0) {
        memcpy(other.self, other.total, sizeof other.self);
        draw_box(d, level + 1, x, &other);
    }
}

static uint64_t g_random = 1;

static uint32_t random_below(uint32_t n)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((g_random >> 33) % n);
}

static void grow(struct fixture *f, struct model *model, int side)
{
    static const char *const names[] = {"",        "a",    "b",      "github.com/x", "github.com/y",
                                        "other",   "othe", "other2", "total",        "zz",
                                        "\xc3\xa4"};
    uint32_t n_names = 2 + random_below(HEARTH_ARRAY_LEN(names) - 1);
    model->in[side] = true;
    int64_t scale = random_below(3) == 0 ? INT64_C(1) << random_below(50) : 1;
    for (uint32_t n = random_below(40); n > 0; n--) {
        uint32_t node = 0;
        struct model *m = model;
        for (uint32_t depth = 1 + random_below(8); depth > 0; depth--) {
            const char *name = names[random_below(n_names)];
            uint32_t id = hearth_stacktree_name(&f->tree, hearth_str_c(name));
            node = hearth_stacktree_child(&f->tree, node, id);
            m = model_child(m, name);
            m->in[side] = true;
        }
        int64_t value = (int64_t)random_below(12) * scale;
        f->tree.nodes[node].self += value;
        m->self[side] += value;
    }
    seal(f);
}

static void compare(struct fixture sides[2], struct model *model, int64_t max_nodes)
{
    static int64_t list[4096];
    size_t n = 0;
    model_sum(model, list, &n);
    qsort(list, n, sizeof list[0], descending);
    int64_t bound = max_nodes < 1 || (size_t)max_nodes >= n ? 0 : list[max_nodes - 1];
    struct drawing d = {0};
    draw(&d, model, 0, (int64_t[2]){0, 0}, bound);
    struct hearth_buf want, got;
    hearth_buf_init(&want, 0);
    hearth_buf_init(&got, 0);
    for (size_t l = 0; l < d.n_levels; l++) {
        hearth_buf_str(&want, hearth_buf_view(&d.levels[l]));
        hearth_buf_byte(&want, '\n');
        hearth_buf_release(&d.levels[l]);
    }
    struct hearth_flame_diff diff;
    make(&sides[0], &sides[1], max_nodes, &sides[0].arena, &diff);
    print_diff(&diff, &got);
    hearth_buf_byte(&want, 0);
    hearth_buf_byte(&got, 0);
    assert_string_equal(got.p, want.p);
    assert_int_equal(diff.max_self, d.max_self);
    assert_int_equal(diff.total, model->total[0] + model->total[1]);
    assert_int_equal(diff.left_folded, (int64_t)sides[0].tree.n_nodes - d.n_shown[0]);
    assert_int_equal(diff.right_folded, (int64_t)sides[1].tree.n_nodes - d.n_shown[1]);
    hearth_buf_release(&want);
    hearth_buf_release(&got);
}

static void random_trees_agree_with_the_naive_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct fixture sides[2];
        struct model *model = calloc(1, sizeof *model);
        assert_non_null(model);
        g_random = seed;
        for (int s = 0; s < 2; s++) {
            fixture_init(&sides[s]);
            grow(&sides[s], model, s);
        }
        compare(sides, model, 0);
        compare(sides, model, 1 + random_below(40));
        for (int s = 0; s < 2; s++) {
            fixture_release(&sides[s]);
        }
        model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_empty_sides_make_a_box_of_zeros),
        cmocka_unit_test(nodes_missing_on_one_side_are_zero),
        cmocka_unit_test(a_single_side_keeps_its_shape),
        cmocka_unit_test(offsets_of_the_sides_are_independent),
        cmocka_unit_test(the_larger_side_decides_what_is_folded),
        cmocka_unit_test(ties_at_the_bound_stay),
        cmocka_unit_test(a_frame_named_other_is_folded),
        cmocka_unit_test(a_nameless_frame_has_an_empty_name),
        cmocka_unit_test(totals_beyond_64_bits_are_an_error),
        cmocka_unit_test(refused_memory_is_reported),
        cmocka_unit_test(random_trees_agree_with_the_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
