/*
 * test_flamegraph.c -- random trees against a naive model: pointer nodes, recursion, a sorted list
 * in place of every clever structure.
 */
#include "hearth/base/varint.h"
#include "hearth/model/stacktree.h"

#include "rounds.h"
#include "tree_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- the naive model ---- */

struct model {
    char name[24];
    int64_t self, total;
    struct model *kids[64];
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
    assert_true(m->n_kids < 64);
    memmove(&m->kids[at + 1], &m->kids[at], (m->n_kids - at) * sizeof m->kids[0]);
    m->kids[at] = calloc(1, sizeof *m);
    assert_non_null(m->kids[at]);
    (void)snprintf(m->kids[at]->name, sizeof m->kids[at]->name, "%s", name);
    m->n_kids++;
    return m->kids[at];
}

static int64_t model_sum(struct model *m)
{
    m->total = m->self;
    for (size_t i = 0; i < m->n_kids; i++) {
        m->total += model_sum(m->kids[i]);
    }
    return m->total;
}

static size_t model_count(const struct model *m)
{
    size_t n = 1;
    for (size_t i = 0; i < m->n_kids; i++) {
        n += model_count(m->kids[i]);
    }
    return n;
}

static void model_free(struct model *m)
{
    for (size_t i = 0; i < m->n_kids; i++) {
        model_free(m->kids[i]);
    }
    free(m);
}

/* The heap as it is specified: the largest `max` totals, subtrees of a rejected node not visited.
 */
struct kept {
    int64_t v[4096]; /* descending */
    size_t n, max;
};

static void model_visit(const struct model *m, struct kept *kept)
{
    for (size_t i = m->n_kids; i-- > 0;) {
        const struct model *kid = m->kids[i];
        if (kept->n == kept->max) {
            if (kid->total < kept->v[kept->n - 1]) {
                continue;
            }
            kept->n--;
        }
        size_t at = kept->n++;
        while (at > 0 && kept->v[at - 1] < kid->total) {
            kept->v[at] = kept->v[at - 1];
            at--;
        }
        kept->v[at] = kid->total;
        model_visit(kid, kept);
    }
}

static int64_t model_bound(const struct model *m, int64_t max_nodes)
{
    static struct kept kept;
    if (max_nodes < 1 || model_count(m) - 1 <= (size_t)max_nodes) {
        return 0;
    }
    kept.n = 0;
    kept.max = (size_t)max_nodes;
    model_visit(m, &kept);
    return kept.v[kept.n - 1];
}

struct drawing {
    struct hearth_buf levels[64];
    size_t n_levels, n_boxes, n_other;
    int64_t max_self, end[64];
};

static void draw_box(struct drawing *d, size_t level, int64_t x, const struct model *m)
{
    assert_true(level < 64);
    if (level == d->n_levels) {
        hearth_buf_init(&d->levels[d->n_levels], 0);
        d->end[d->n_levels++] = 0;
    }
    hearth_buf_printf(&d->levels[level], "%s%lld,%lld,%lld,%s", d->levels[level].n > 0 ? "|" : "",
                      (long long)(x - d->end[level]), (long long)m->total, (long long)m->self,
                      level == 0 ? "total" : m->name);
    d->end[level] = x + m->total;
    d->max_self = m->self > d->max_self ? m->self : d->max_self;
    d->n_boxes++;
}

/* Left to right, by recursion. */
static void draw(struct drawing *d, const struct model *m, size_t level, int64_t x, int64_t bound)
{
    draw_box(d, level, x, m);
    x += m->self;
    struct model other = {.name = "other"};
    for (size_t i = 0; i < m->n_kids; i++) {
        const struct model *kid = m->kids[i];
        if (kid->total < bound || strcmp(kid->name, "other") == 0) {
            other.total += kid->total;
            continue;
        }
        draw(d, kid, level + 1, x, bound);
        x += kid->total;
    }
    if (other.total != 0) {
        other.self = other.total;
        draw_box(d, level + 1, x, &other);
        d->n_other++;
    }
}

static uint64_t g_random = 1;

static uint32_t random_below(uint32_t n)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((g_random >> 33) % n);
}

static const char *const g_names[] = {
    "",         "a",     "b",        "other", "othe", "other2", "github.com/x", "github.com/y",
    "github.c", "total", "\xc3\xa4", "zz"};

static void grow_both(struct fixture *f, struct model *model)
{
    uint32_t n_stacks = 1 + random_below(60);
    uint32_t n_names = 2 + random_below(HEARTH_ARRAY_LEN(g_names) - 1);
    int64_t scale = random_below(3) == 0 ? INT64_C(1) << random_below(50) : 1;
    for (uint32_t s = 0; s < n_stacks; s++) {
        uint32_t node = 0;
        struct model *m = model;
        for (uint32_t depth = 1 + random_below(8); depth > 0; depth--) {
            const char *name = g_names[random_below(n_names)];
            node = hearth_stacktree_child(&f->tree, node,
                                          hearth_stacktree_name(&f->tree, hearth_str_c(name)));
            m = model_child(m, name);
        }
        int64_t value = (int64_t)random_below(12) * scale;
        f->tree.nodes[node].self += value;
        m->self += value;
    }
    seal(f);
    (void)model_sum(model);
}

/* The properties that hold for any graph, whatever the model says. */
static void assert_conserved(const struct hearth_flamegraph *graph, int64_t total)
{
    int64_t sum_self = 0;
    assert_int_equal(graph->total, total);
    assert_int_equal(graph->levels[0].n, 4);
    assert_int_equal(graph->levels[0].values[1], total);
    for (size_t l = 0; l < graph->n_levels; l++) {
        int64_t width = 0, below = 0, end = 0;
        for (size_t i = 0; i < graph->levels[l].n; i += 4) {
            const int64_t *box = graph->levels[l].values + i;
            assert_true(box[0] >= 0 && box[1] >= box[2] && box[2] >= 0);
            assert_true(box[3] >= 0 && (size_t)box[3] < graph->n_names);
            width += box[1];
            below += box[1] - box[2];
            sum_self += box[2];
            end += box[0] + box[1];
        }
        assert_true(end <= total);
        int64_t next = 0;
        if (l + 1 < graph->n_levels) {
            for (size_t i = 0; i < graph->levels[l + 1].n; i += 4) {
                next += graph->levels[l + 1].values[i + 1];
            }
        }
        assert_int_equal(next, below);
        assert_true(width <= total);
    }
    assert_int_equal(sum_self, total);
}

static void compare_graphs(struct fixture *f, const struct model *model, int64_t max_nodes)
{
    struct hearth_flamegraph graph;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_flamegraph_make(&f->tree, max_nodes, &f->arena, &graph, &err),
                     HEARTH_OK);
    assert_conserved(&graph, model->total);
    int64_t bound = -1, want_bound = model_bound(model, max_nodes);
    assert_int_equal(hearth_stacktree_min_total(&f->tree, max_nodes, &bound, &err), HEARTH_OK);
    assert_int_equal(bound, f->tree.is_cut ? 0 : want_bound);
    struct drawing d = {0};
    draw(&d, model, 0, 0, want_bound);
    struct hearth_buf want, got;
    hearth_buf_init(&want, 0);
    hearth_buf_init(&got, 0);
    for (size_t l = 0; l < d.n_levels; l++) {
        hearth_buf_str(&want, hearth_buf_view(&d.levels[l]));
        hearth_buf_byte(&want, '\n');
        hearth_buf_release(&d.levels[l]);
    }
    print_graph(&graph, &got);
    hearth_buf_byte(&want, 0);
    hearth_buf_byte(&got, 0);
    assert_string_equal(got.p, want.p);
    assert_int_equal(graph.max_self, d.max_self);
    assert_int_equal((size_t)graph.n_folded, model_count(model) - (d.n_boxes - d.n_other));
    hearth_buf_release(&want);
    hearth_buf_release(&got);
}

static uint64_t take_varint(const uint8_t **cur, const uint8_t *end)
{
    uint64_t value = 0;
    assert_true(hearth_varint_read(cur, end, &value));
    return value;
}

/* A reader as a client has it: counters only, children merged by name. Checks the order on the way.
 */
static void read_node(const uint8_t **cur, const uint8_t *end, struct model *above,
                      struct hearth_str *prev)
{
    uint64_t n = take_varint(cur, end);
    assert_true(n < 24 && n <= (uint64_t)(end - *cur));
    struct hearth_str name = hearth_str_n((const char *)*cur, n);
    char text[24] = "";
    memcpy(text, *cur, n);
    *cur += n;
    if (prev->p != NULL && !hearth_str_eq_c(*prev, "other")) {
        assert_true(hearth_str_cmp(name, *prev) < 0);
    }
    *prev = name;
    struct model *m = model_child(above, text);
    m->self += (int64_t)take_varint(cur, end);
    struct hearth_str last = {NULL, 0};
    for (uint64_t kids = take_varint(cur, end); kids > 0; kids--) {
        read_node(cur, end, m, &last);
    }
}

static void copy_truncated(const struct model *m, struct model *to, int64_t bound)
{
    to->self = m->self;
    for (size_t i = 0; i < m->n_kids; i++) {
        const struct model *kid = m->kids[i];
        if (kid->total < bound || strcmp(kid->name, "other") == 0) {
            if (kid->total != 0) {
                model_child(to, "other")->self += kid->total;
            }
        } else {
            copy_truncated(kid, model_child(to, kid->name), bound);
        }
    }
}

static void assert_same(const struct model *a, const struct model *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->self, b->self);
    assert_int_equal(a->n_kids, b->n_kids);
    for (size_t i = 0; i < a->n_kids; i++) {
        assert_same(a->kids[i], b->kids[i]);
    }
}

static void compare_bytes(struct fixture *f, const struct model *model, int64_t max_nodes)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_stacktree_write_bytes(&f->tree, max_nodes, &out, NULL), HEARTH_OK);
    struct model *above = calloc(1, sizeof *above), *want = calloc(1, sizeof *want);
    assert_true(above != NULL && want != NULL);
    const uint8_t *cur = (const uint8_t *)out.p, *end = cur + out.n;
    struct hearth_str prev = {NULL, 0};
    read_node(&cur, end, above, &prev);
    assert_ptr_equal(cur, end);
    copy_truncated(model, want, model_bound(model, max_nodes));
    assert_int_equal(above->n_kids, 1);
    assert_same(above->kids[0], want);
    assert_int_equal(model_sum(above->kids[0]), model->total);
    model_free(above);
    model_free(want);
    hearth_buf_release(&out);
}

/* For one name: self, and total over nodes with no node of that name above. */
static void model_function(const struct model *m, const char *name, bool inside, int64_t sums[2])
{
    for (size_t i = 0; i < m->n_kids; i++) {
        const struct model *kid = m->kids[i];
        bool is = strcmp(kid->name, name) == 0;
        sums[0] += is ? kid->self : 0;
        sums[1] += is && !inside ? kid->total : 0;
        model_function(kid, name, inside || is, sums);
    }
}

static void compare_functions(struct fixture *f, const struct model *model)
{
    struct hearth_function_total *got;
    size_t n, n_want = 0;
    assert_int_equal(hearth_stacktree_functions(&f->tree, &f->arena, &got, &n, NULL), HEARTH_OK);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_names); i++) {
        int64_t sums[2] = {0, 0};
        model_function(model, g_names[i], false, sums);
        n_want += sums[0] != 0 || sums[1] != 0;
        for (size_t k = 0; k < n; k++) {
            if (hearth_str_eq_c(f->tree.names[got[k].name], g_names[i])) {
                assert_int_equal(got[k].self, sums[0]);
                assert_int_equal(got[k].total, sums[1]);
            }
        }
    }
    assert_int_equal(n, n_want);
}

static void random_trees_agree_with_the_naive_model(void **state)
{
    (void)state;
    for (int round = 0; round < test_rounds(10000); round++) {
        struct fixture f;
        fixture_init(&f);
        struct model *model = calloc(1, sizeof *model);
        assert_non_null(model);
        grow_both(&f, model);
        assert_int_equal(f.tree.n_nodes, model_count(model));
        const int64_t limits[] = {0, 1, 1 + random_below(10), 1 + random_below(100), 100000};
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(limits); i++) {
            compare_graphs(&f, model, limits[i]);
            compare_bytes(&f, model, limits[i]);
        }
        compare_functions(&f, model);
        model_free(model);
        fixture_release(&f);
    }
}

static void a_tree_that_was_cut_gives_the_same_answers(void **state)
{
    (void)state;
    size_t n_cut = 0;
    for (int round = 0; round < test_rounds(5000); round++) {
        struct fixture f;
        fixture_init(&f);
        struct model *model = calloc(1, sizeof *model);
        assert_non_null(model);
        grow_both(&f, model);
        const int64_t limits[] = {0, 1, 1 + random_below(10), 1 + random_below(100)};
        int64_t max_nodes = limits[round % HEARTH_ARRAY_LEN(limits)];
        size_t n_all = f.tree.n_nodes;
        assert_int_equal(hearth_stacktree_cut(&f.tree, max_nodes, NULL), HEARTH_OK);
        assert_int_equal(f.tree.n_nodes + f.tree.n_left_out, n_all);
        compare_graphs(&f, model, max_nodes);
        compare_bytes(&f, model, max_nodes);
        n_cut += f.tree.is_cut;
        model_free(model);
        fixture_release(&f);
    }
    assert_true(n_cut > 0);
}

/* Distinct totals: no ties, so the number of kept nodes is exact. */
static void keeps_exactly_max_nodes_when_totals_differ(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 5000; i++) {
        char stack[32];
        (void)snprintf(stack, sizeof stack, "f%d", i);
        add(&f, stack, 1 + (i * 7919) % 5000);
    }
    seal(&f);
    for (int64_t max = 1; max < 5000; max = max * 3 + 1) {
        struct hearth_flamegraph graph;
        assert_int_equal(hearth_flamegraph_make(&f.tree, max, &f.arena, &graph, NULL), HEARTH_OK);
        assert_int_equal(graph.levels[1].n, 4 * (max + 1));
        assert_int_equal(graph.n_folded, 5000 - max);
        assert_conserved(&graph, 12502500);
    }
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_agree_with_the_naive_model),
        cmocka_unit_test(a_tree_that_was_cut_gives_the_same_answers),
        cmocka_unit_test(keeps_exactly_max_nodes_when_totals_differ),
    };
    return cmocka_run_group_tests_name("flamegraph", tests, NULL, NULL);
}
