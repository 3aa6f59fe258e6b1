/* test_name_tree.c -- the tree that dictionaries share: growth, use, concurrent readers. */
#include "hearth/base/mem.h"
#include "hearth/model/name_tree.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* "a;b;c", root first; used once. */
static uint32_t add_path(struct hearth_name_tree *tree, const char *text)
{
    struct hearth_str all = hearth_str_c(text);
    uint32_t node = 0;
    hearth_name_tree_begin(tree);
    for (size_t from = 0; from <= all.n && all.n > 0;) {
        size_t end = hearth_str_find(all, ';', from);
        uint32_t name = hearth_name_tree_intern(tree, hearth_str_n(all.p + from, end - from));
        assert_int_not_equal(name, HEARTH_NO_INDEX);
        node = hearth_name_tree_child(tree, node, name);
        assert_int_not_equal(node, HEARTH_NO_INDEX);
        from = end + 1;
    }
    hearth_name_tree_use_node(tree, node);
    hearth_name_tree_end(tree);
    return node;
}

static void drop(struct hearth_name_tree *tree, uint32_t node)
{
    hearth_name_tree_begin(tree);
    hearth_name_tree_drop_node(tree, node);
    hearth_name_tree_end(tree);
}

static void a_path_has_one_node_for_all_dictionaries(void **state)
{
    (void)state;
    struct hearth_name_tree *tree = hearth_name_tree_new();
    assert_int_equal(hearth_name_tree_size(tree), 1);
    uint32_t query = add_path(tree, "main;handle;query");
    uint32_t fib = add_path(tree, "main;fib;fib");
    assert_int_equal(hearth_name_tree_size(tree), 6);
    assert_int_equal(add_path(tree, "main;handle;query"), query);
    assert_int_equal(add_path(tree, "main;fib;fib"), fib);
    assert_int_equal(add_path(tree, ""), 0);
    uint32_t below = add_path(tree, "main;handle;query;deeper"); /* a leaf gets a child later */
    assert_int_equal(add_path(tree, "main;handle;query;deeper"), below);
    assert_int_equal(hearth_name_tree_node(tree, below).parent, query);
    assert_int_equal(hearth_name_tree_size(tree), 7);
    assert_int_equal(hearth_name_tree_n_names(tree), 6); /* with the empty one */
    hearth_name_tree_unref(tree);
}

static void unused_nodes_are_dead_until_they_are_used_again(void **state)
{
    (void)state;
    struct hearth_name_tree *tree = hearth_name_tree_new();
    uint32_t a = add_path(tree, "main;a;x"), b = add_path(tree, "main;b");
    assert_int_equal(add_path(tree, "main;b"), b);
    assert_int_equal(hearth_name_tree_n_dead(tree), 0);
    drop(tree, a);
    assert_int_equal(hearth_name_tree_n_dead(tree), 2);
    drop(tree, b);
    assert_int_equal(hearth_name_tree_n_dead(tree), 2); /* it was used twice */
    drop(tree, b);
    assert_int_equal(hearth_name_tree_n_dead(tree), 4);
    assert_int_equal(add_path(tree, "main;a"), hearth_name_tree_node(tree, a).parent);
    assert_int_equal(hearth_name_tree_n_dead(tree), 2);
    hearth_name_tree_unref(tree);
}

static void a_tree_that_is_mostly_dead_is_stale(void **state)
{
    (void)state;
    enum {
        N = 150000
    };
    struct hearth_name_tree *tree = hearth_name_tree_new();
    uint32_t *nodes = hearth_mem_calloc(N, sizeof nodes[0]);
    char text[64];
    for (uint32_t i = 0; i < N; i++) {
        (void)snprintf(text, sizeof text, "m%u;f%u", (unsigned)(i % 300), (unsigned)(i / 300));
        nodes[i] = add_path(tree, text);
    }
    for (uint32_t i = 0; i < N; i++) {
        (void)snprintf(text, sizeof text, "m%u;f%u", (unsigned)(i % 300), (unsigned)(i / 300));
        assert_int_equal(add_path(tree, text), nodes[i]);
        drop(tree, nodes[i]);
    }
    assert_int_equal(hearth_name_tree_size(tree), N + 300 + 1);
    for (uint32_t i = 0; i < N / 2 - 300; i++) {
        drop(tree, nodes[i]);
        assert_false(hearth_name_tree_is_stale(tree));
    }
    for (uint32_t i = N / 2 - 300; i < N; i++) {
        drop(tree, nodes[i]);
    }
    assert_true(hearth_name_tree_is_stale(tree));
    assert_int_equal(hearth_name_tree_n_dead(tree), N + 300);
    assert_true(hearth_name_tree_bytes(tree) > N * sizeof(struct hearth_name_node));
    hearth_mem_free(nodes);
    hearth_name_tree_unref(tree);
}

static void dead_texts_make_a_tree_stale_too(void **state)
{
    (void)state;
    static char text[40000];
    struct hearth_name_tree *tree = hearth_name_tree_new();
    memset(text, 'x', sizeof text);
    hearth_name_tree_begin(tree);
    for (uint32_t i = 0; i < 120; i++) {
        memcpy(text, &i, sizeof i);
        hearth_name_tree_use_name(tree,
                                  hearth_name_tree_intern(tree, hearth_str_n(text, sizeof text)));
    }
    hearth_name_tree_end(tree);
    assert_false(hearth_name_tree_is_stale(tree));
    hearth_name_tree_begin(tree);
    for (uint32_t name = 1; name < 121; name++) {
        hearth_name_tree_drop_name(tree, name);
    }
    hearth_name_tree_end(tree);
    assert_true(hearth_name_tree_is_stale(tree));
    hearth_name_tree_unref(tree);
}

static struct hearth_hash128 number_key(uint32_t i)
{
    return hearth_hash128(&i, sizeof i, 7);
}

/* Notes `n` stacks that end in `node`; returns how many of them are known afterwards. */
static uint32_t note_stacks(struct hearth_name_tree *tree, uint32_t n, uint32_t node)
{
    uint32_t n_known = 0;
    hearth_name_tree_begin(tree);
    for (uint32_t i = 0; i < n; i++) {
        hearth_name_tree_note_stack(tree, number_key(i), node);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t found = hearth_name_tree_find_stack(tree, number_key(i));
        assert_true(found == node || found == HEARTH_NO_INDEX);
        n_known += found == node;
    }
    hearth_name_tree_end(tree);
    return n_known;
}

static void notes_of_stacks_are_bounded_by_the_stacks_in_use(void **state)
{
    (void)state;
    const uint32_t kept = 64 << 10;
    struct hearth_name_tree *tree = hearth_name_tree_new();
    size_t before = hearth_name_tree_bytes(tree);
    uint32_t node = add_path(tree, "main;handle");
    assert_int_equal(note_stacks(tree, kept, node), kept);
    assert_true(hearth_name_tree_bytes(tree) > before + (size_t)kept * 20);

    /* One more: all are forgotten, because one stack is in use. */
    assert_int_equal(note_stacks(tree, kept + 1, node), 1);
    assert_true(hearth_name_tree_bytes(tree) < before + (size_t)kept * 20);

    /* With enough in use they stay. */
    hearth_name_tree_begin(tree);
    for (uint32_t i = 0; i < kept; i++) {
        hearth_name_tree_use_node(tree, node);
    }
    hearth_name_tree_end(tree);
    assert_int_equal(note_stacks(tree, kept + 1, node), kept + 1);
    hearth_name_tree_unref(tree);
}

static void refused_memory_leaves_the_tree_intact(void **state)
{
    (void)state;
    bool refused = true;
    unsigned n_refused = 0;
    for (uint64_t n = 1; refused; n++) {
        hearth_mem_fail_after(n);
        struct hearth_name_tree *tree = hearth_name_tree_new();
        refused = tree == NULL;
        for (uint32_t i = 0; tree != NULL && i < 400 && !refused; i++) {
            char text[16];
            (void)snprintf(text, sizeof text, "f%u", (unsigned)i);
            hearth_name_tree_begin(tree);
            uint32_t name = hearth_name_tree_intern(tree, hearth_str_c(text));
            uint32_t node = name == HEARTH_NO_INDEX
                                ? name
                                : hearth_name_tree_child(tree, i % 3 == 0 ? 0 : i / 2, name);
            hearth_name_tree_end(tree);
            refused = node == HEARTH_NO_INDEX;
        }
        hearth_mem_fail_after(0);
        if (tree != NULL && refused) {
            uint32_t size = hearth_name_tree_size(tree), node = add_path(tree, "new;path");
            assert_true(node >= size && hearth_name_tree_node(tree, node).parent >= size);
        }
        n_refused += refused ? 1 : 0;
        hearth_name_tree_unref(tree);
    }
    assert_true(n_refused > 10);
}

/* ---- concurrent readers ---- */

struct beside {
    struct hearth_name_tree *tree;
    _Atomic bool stop;
    unsigned n_wrong, n_rounds;
};

static void *run_reader(void *arg)
{
    struct beside *b = arg;
    do {
        uint32_t size = hearth_name_tree_size(b->tree);
        uint32_t n_names = hearth_name_tree_n_names(b->tree);
        for (uint32_t i = 1; i < size; i++) {
            struct hearth_name_node node = hearth_name_tree_node(b->tree, i);
            if (node.parent >= i || node.name >= n_names ||
                hearth_name_tree_name(b->tree, node.name).n < 2) {
                b->n_wrong++;
            }
        }
        b->n_rounds++;
    } while (!atomic_load(&b->stop));
    return NULL;
}

static void readers_need_no_lock_while_it_grows(void **state)
{
    (void)state;
    struct beside b = {.tree = hearth_name_tree_new()};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_reader, &b), 0);
    for (uint32_t i = 0; i < 20000; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "m%u;f%u;g%u", (unsigned)(i % 7), (unsigned)(i % 301),
                       (unsigned)i);
        uint32_t node = add_path(b.tree, text);
        if (i % 2 == 0) {
            drop(b.tree, node);
        }
    }
    atomic_store(&b.stop, true);
    (void)pthread_join(thread, NULL);
    assert_int_equal(b.n_wrong, 0);
    assert_true(b.n_rounds > 0);
    hearth_name_tree_unref(b.tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_has_one_node_for_all_dictionaries),
        cmocka_unit_test(unused_nodes_are_dead_until_they_are_used_again),
        cmocka_unit_test(a_tree_that_is_mostly_dead_is_stale),
        cmocka_unit_test(dead_texts_make_a_tree_stale_too),
        cmocka_unit_test(notes_of_stacks_are_bounded_by_the_stacks_in_use),
        cmocka_unit_test(refused_memory_leaves_the_tree_intact),
        cmocka_unit_test(readers_need_no_lock_while_it_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
