/*
 * tree_fixture.h -- a stack tree with its arena, filled from "a;b;c" texts; for tests.
 */
#ifndef HEARTH_TESTS_TREE_FIXTURE_H
#define HEARTH_TESTS_TREE_FIXTURE_H

#include "hearth/model/stacktree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct fixture {
    struct hearth_arena arena;
    struct hearth_stacktree tree;
};

static inline void fixture_init(struct fixture *f)
{
    hearth_arena_init(&f->arena, 0);
    hearth_stacktree_init(&f->tree, &f->arena);
}

static inline void fixture_release(struct fixture *f)
{
    hearth_stacktree_release(&f->tree);
    hearth_arena_release(&f->arena);
}

/* "a;b;c" with a value on the leaf. */
static inline void add(struct fixture *f, const char *stack, int64_t value)
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

static inline void seal(struct fixture *f)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_stacktree_seal(&f->tree, &err), HEARTH_OK);
}

/* "x,total,self,name|..." per level, separated by newlines. */
static inline void print_graph(const struct hearth_flamegraph *graph, struct hearth_buf *out)
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

#endif
