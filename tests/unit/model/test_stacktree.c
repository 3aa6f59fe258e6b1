/*
 * test_stacktree.c -- the tree, its truncation, levels and bytes, by hand-computed examples and
 * against a naive model: pointer nodes, recursion, a sorted list in place of every clever
 * structure.
 */
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"
#include "hearth/model/stacktree.h"

/* cmocka.h needs the four before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <stdlib.h>

/* ---- helpers ---- */

struct fixture {
    struct hearth_arena arena;
    struct hearth_stacktree tree;
};

static void fixture_init(struct fixture *f)
{
    hearth_arena_init(&f->arena, 0);
    hearth_stacktree_init(&f->tree, &f->arena);
}

static void fixture_release(struct fixture *f)
{
    hearth_stacktree_release(&f->tree);
    hearth_arena_release(&f->arena);
}

/* "a;b;c" with a value on the leaf. */
static void add(struct fixture *f, const char *stack, int64_t value)
{
    struct hearth_str s = hearth_str_c(stack);
    uint32_t node = 0;
    for (size_t from = 0; from <= s.n;) {
        size_t end = hearth_str_find(s, ';', from);
        uint32_t name = hearth_stacktree_name(&f->tree, hearth_str_n(s.p + from, end - from));
        node = hearth_stacktree_child(&f->tree, node, name);
        assert_int_not_equal(node, HEARTH_NO_NODE);
        from = end + 1;
    }
    f->tree.nodes[node].self += value;
}

static void seal(struct fixture *f)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_stacktree_seal(&f->tree, &err), HEARTH_OK);
}

/* "x,total,self,name|..." per level, separated by newlines. */
static void print_graph(const struct hearth_flamegraph *graph, struct hearth_buf *out)
{
    for (size_t l = 0; l < graph->n_levels; l++) {
        const struct hearth_flame_level *level = &graph->levels[l];
        for (size_t i = 0; i < level->n; i += 4) {
            hearth_buf_printf(out, "%s%lld,%lld,%lld,", i > 0 ? "|" : "",
                              (long long)level->values[i], (long long)level->values[i + 1],
                              (long long)level->values[i + 2]);
            hearth_buf_str(out, graph->names[level->values[i + 3]]);
        }
        hearth_buf_byte(out, '\n');
    }
}

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

static void empty_tree_is_one_box_of_nothing_and_zero_bytes(void **state)
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

static void nameless_frames_share_the_name_of_the_root(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "a;", 2);
    add(&f, ";b", 1);
    assert_graph(&f, 0,
                 "0,3,0,total\n"
                 "0,1,0,total|0,2,0,a\n"
                 "0,1,1,b|0,2,2,total\n");
    fixture_release(&f);
}

static void siblings_are_in_byte_order_and_other_is_last(void **state)
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

static void max_self_counts_what_was_folded(void **state)
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

static void tree_bytes_respect_the_limit_of_the_answer(void **state)
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

static void functions_come_by_self_then_total_then_name(void **state)
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
                      m->name[0] == '\0' ? "total" : m->name);
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
    assert_int_equal(bound, want_bound);
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
static void
read_node(const uint8_t **cur, const uint8_t *end, struct model *above, struct hearth_str *prev)
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

static void ten_thousand_random_trees_agree_with_the_naive_model(void **state)
{
    (void)state;
    for (int round = 0; round < 10000; round++) {
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

/* ---- limits ---- */

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

static void holds_the_byte_limit_of_its_arena(void **state)
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
        cmocka_unit_test(empty_tree_is_one_box_of_nothing_and_zero_bytes),
        cmocka_unit_test(levels_start_after_the_self_of_the_parent),
        cmocka_unit_test(nameless_frames_share_the_name_of_the_root),
        cmocka_unit_test(siblings_are_in_byte_order_and_other_is_last),
        cmocka_unit_test(a_frame_really_named_other_is_folded),
        cmocka_unit_test(ties_at_the_bound_are_kept),
        cmocka_unit_test(max_self_counts_what_was_folded),
        cmocka_unit_test(tree_bytes_are_preorder_with_siblings_last_to_first),
        cmocka_unit_test(tree_bytes_respect_the_limit_of_the_answer),
        cmocka_unit_test(a_recursive_function_counts_once_in_its_total),
        cmocka_unit_test(functions_come_by_self_then_total_then_name),
        cmocka_unit_test(refuses_sums_beyond_64_bits_and_negative_values),
        cmocka_unit_test(stacks_may_be_a_hundred_thousand_deep),
        cmocka_unit_test(ten_thousand_random_trees_agree_with_the_naive_model),
        cmocka_unit_test(keeps_exactly_max_nodes_when_totals_differ),
        cmocka_unit_test(holds_the_byte_limit_of_its_arena),
        cmocka_unit_test(every_refused_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests_name("stacktree", tests, NULL, NULL);
}
