/*
 * test_merge_tree.c -- sums of stacks to a tree of names: several dictionaries into one tree, and
 * what a call site keeps of it.
 */
#include "hearth/format/profile_builder.h"

#include "select/query_internal.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A dictionary of "a;b;c" texts (root first), as a writer stores it and a reader gets it. */
struct book {
    struct hearth_dict *dict;
    uint32_t *ids; /* stack id of text i */
    struct hearth_dict_sums sums;
};

struct world {
    struct hearth_arena arena;
    struct hearth_name_tree *names; /* that the dictionaries share; NULL: each has its own */
    struct hearth_stacktree tree;
    struct hearth_err err;
};

static int setup(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);
    hearth_arena_init(&w->arena, 0);
    hearth_stacktree_init(&w->tree, &w->arena);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    hearth_name_tree_unref(w->names);
    hearth_stacktree_release(&w->tree);
    hearth_arena_release(&w->arena);
    test_free(w);
    return 0;
}

/* The location of a frame; "x+y" is y with x inlined into it, "0x12" has no lines. */
static uint32_t locate(struct hearth_profile_builder *b, struct hearth_str frame, uint32_t mapping)
{
    struct hearth_location location = {.mapping = mapping};
    struct hearth_line lines[8];
    uint32_t n = 0;
    if (hearth_str_starts(frame, HEARTH_STR("0x"))) {
        assert_true(
            hearth_str_hex_to_u64(hearth_str_n(frame.p + 2, frame.n - 2), &location.address));
        return hearth_profile_builder_location(b, &location, NULL, 0);
    }
    for (size_t from = 0; from <= frame.n;) {
        size_t end = hearth_str_find(frame, '+', from);
        uint32_t name = hearth_profile_builder_string(b, hearth_str_n(frame.p + from, end - from));
        struct hearth_function function = {.name = name, .system_name = name};
        lines[n] = (struct hearth_line){hearth_profile_builder_function(b, &function), 1};
        n++;
        from = end + 1;
    }
    return hearth_profile_builder_location(b, &location, lines, n);
}

static void add_stack(struct hearth_profile_builder *b, const char *text, uint32_t mapping)
{
    struct hearth_str all = hearth_str_c(text);
    struct hearth_err err = HEARTH_ERR_INIT;
    uint32_t locations[16], leaf_first[16];
    uint32_t n = 0;
    for (size_t from = 0; from < all.n;) {
        size_t end = hearth_str_find(all, ';', from);
        locations[n++] = locate(b, hearth_str_n(all.p + from, end - from), mapping);
        from = end + 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        leaf_first[i] = locations[n - 1 - i];
    }
    const int64_t one = 1;
    assert_int_equal(hearth_profile_builder_sample(b, leaf_first, n, &one, &err), HEARTH_OK);
}

/* Distinct texts; stack i gets values[i]. */
static struct book bind(struct world *w, const char *const *texts, const int64_t *values,
                        uint32_t n)
{
    struct hearth_profile_builder *b = hearth_profile_builder_new(&w->arena);
    assert_non_null(b);
    (void)hearth_profile_builder_type(b, HEARTH_STR("cpu"), HEARTH_STR("nanoseconds"));
    struct hearth_mapping libc = {
        .start = 0x1000,
        .limit = 0x9000,
        .filename = hearth_profile_builder_string(b, HEARTH_STR("/lib/libc.so.6"))};
    uint32_t mapping = hearth_profile_builder_mapping(b, &libc);
    for (uint32_t i = 0; i < n; i++) {
        add_stack(b, texts[i], mapping);
    }
    struct hearth_profile profile;
    assert_int_equal(hearth_profile_builder_finish(b, &profile, &w->err), HEARTH_OK);
    hearth_profile_builder_free(b);
    assert_int_equal(profile.n_samples, n);

    struct book book = {.dict = hearth_dict_new()};
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_stack_keys keys;
    struct hearth_dict_mark upto;
    struct hearth_buf chunk;
    assert_true(book.dict != NULL && writer != NULL);
    if (w->names != NULL) {
        hearth_dict_use_tree(book.dict, w->names);
    }
    book.ids = hearth_arena_array(&w->arena, n, sizeof book.ids[0]);
    assert_int_equal(hearth_stack_keys_make(&profile, &w->arena, &keys, &w->err), HEARTH_OK);
    assert_int_equal(hearth_dict_writer_resolve(writer, &profile, &keys, book.ids, &w->err),
                     HEARTH_OK);
    hearth_buf_init(&chunk, 0);
    hearth_dict_writer_cut(writer, &chunk, &upto);
    assert_int_equal(hearth_dict_apply(book.dict, hearth_buf_view(&chunk), &w->err), HEARTH_OK);
    assert_int_equal(hearth_dict_build_tree(book.dict, &w->err), HEARTH_OK);
    hearth_buf_release(&chunk);
    hearth_dict_writer_free(writer);

    book.sums.bound = n;
    book.sums.acc = hearth_arena_calloc(&w->arena, n, sizeof book.sums.acc[0]);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(book.ids[i] < n);
        book.sums.acc[book.ids[i]] = values[i];
    }
    return book;
}

/* Sums of books, within a call site, to the tree. */
static enum hearth_status add_within(struct world *w, const struct book *const *books,
                                     size_t n_books, const struct hearth_str *call_site,
                                     size_t n_call_site)
{
    struct hearth_merge_spec spec = {
        .stacks = {.call_site = call_site, .n_call_site = n_call_site}};
    struct hearth_tree_merge merge;
    enum hearth_status status = HEARTH_OK;
    hearth_tree_merge_init(&merge, &w->arena);
    for (size_t i = 0; status == HEARTH_OK && i < n_books; i++) {
        status = hearth_tree_merge_add(&merge, books[i]->dict, &books[i]->sums, &w->err);
    }
    if (status == HEARTH_OK) {
        status = hearth_tree_merge_finish(&merge, &spec, 0, &w->tree, &w->err);
    }
    hearth_tree_merge_release(&merge);
    return status;
}

static enum hearth_status add(struct world *w, const struct book *book,
                              const struct hearth_str *call_site, size_t n_call_site)
{
    return add_within(w, &book, 1, call_site, n_call_site);
}

static void print_node(const struct hearth_stacktree *tree, uint32_t node, struct hearth_buf *out)
{
    const struct hearth_tree_node *n = &tree->nodes[node];
    hearth_buf_str(out, tree->names[n->name]);
    hearth_buf_printf(out, "=%lld/%lld", (long long)n->self, (long long)n->total);
    if (n->first_child != HEARTH_NO_NODE) {
        hearth_buf_byte(out, '(');
        for (uint32_t c = n->first_child; c != HEARTH_NO_NODE; c = tree->nodes[c].next_sibling) {
            if (c != n->first_child) {
                hearth_buf_byte(out, ' ');
            }
            print_node(tree, c, out);
        }
        hearth_buf_byte(out, ')');
    }
}

/* "name=self/total(children)", children in the order in which the tree links them. */
static void assert_tree(struct world *w, const char *expected)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_stacktree_seal(&w->tree, &w->err), HEARTH_OK);
    if (w->tree.n_nodes > 0) {
        print_node(&w->tree, 0, &out);
    }
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, expected);
    hearth_buf_release(&out);
}

static void stacks_of_one_dictionary_become_a_tree(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;handle;query", "main;handle", "main;fib;fib;fib"};
    struct book book = bind(w, texts, (const int64_t[]){30, 10, 5}, 3);
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/45(main=0/45(fib=0/5(fib=0/5(fib=5/5)) handle=10/40(query=30/30)))");
    hearth_dict_free(book.dict);
}

static const char *const g_first[] = {"main;handle", "start"};
static const char *const g_second[] = {"gc", "main;handle;query", "main"};

static void dictionaries_are_unified_by_name(void **state)
{
    struct world *w = *state;
    struct book a = bind(w, g_first, (const int64_t[]){1, 2}, 2);
    struct book b = bind(w, g_second, (const int64_t[]){4, 8, 16}, 3);
    const struct book *books[] = {&a, &b, &a};
    assert_int_equal(add_within(w, books, 3, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/34(gc=4/4 start=4/4 main=16/26(handle=2/10(query=8/8)))");
    hearth_dict_free(a.dict);
    hearth_dict_free(b.dict);
}

static void dictionaries_of_one_tree_are_added_node_by_node(void **state)
{
    struct world *w = *state;
    w->names = hearth_name_tree_new();
    struct book a = bind(w, g_first, (const int64_t[]){1, 2}, 2);
    const struct book *first[] = {&a};
    struct hearth_tree_merge merge;
    hearth_tree_merge_init(&merge, &w->arena);
    assert_int_equal(hearth_tree_merge_add(&merge, a.dict, &a.sums, &w->err), HEARTH_OK);
    /* The tree grows while the merge is under way. */
    struct book b = bind(w, g_second, (const int64_t[]){4, 8, 16}, 3);
    assert_ptr_equal(a.dict->tree, b.dict->tree);
    assert_int_equal(hearth_tree_merge_add(&merge, b.dict, &b.sums, &w->err), HEARTH_OK);
    assert_int_equal(hearth_tree_merge_add(&merge, a.dict, &a.sums, &w->err), HEARTH_OK);
    assert_int_equal(merge.n_parts, 1);
    hearth_dict_free(b.dict); /* the merge needs no dictionary any more */
    struct hearth_merge_spec spec = {0};
    assert_int_equal(hearth_tree_merge_finish(&merge, &spec, 0, &w->tree, &w->err), HEARTH_OK);
    hearth_tree_merge_release(&merge);
    assert_tree(w, "=0/34(gc=4/4 start=4/4 main=16/26(handle=2/10(query=8/8)))");
    /* What others have in the tree does not show. */
    hearth_stacktree_release(&w->tree);
    hearth_stacktree_init(&w->tree, &w->arena);
    assert_int_equal(add_within(w, first, 1, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/3(start=2/2 main=0/1(handle=1/1))");
    hearth_dict_free(a.dict);
}

static void nodes_without_any_value_are_left_out(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;quiet;deeper", "main;loud"};
    struct book book = bind(w, texts, (const int64_t[]){0, 7}, 2);
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/7(main=0/7(loud=7/7))");
    assert_int_equal(w->tree.n_nodes, 3);
    hearth_dict_free(book.dict);
}

static void stack_ids_beyond_the_bound_are_not_read(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"a", "b", "c"};
    struct book book = bind(w, texts, (const int64_t[]){1, 2, 4}, 3);
    book.sums.bound = 2;
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/3(b=2/2 a=1/1)");
    hearth_dict_free(book.dict);
}

static void inlined_lines_are_frames_and_addresses_have_names(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;inner+outer", "main;0x1f00"};
    struct book book = bind(w, texts, (const int64_t[]){1, 2}, 2);
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/3(main=0/3(libc.so.6+0xf00=2/2 outer=0/1(inner=1/1)))");
    hearth_dict_free(book.dict);
}

static void functions_without_a_name_are_unknown(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;;leaf", ";main"};
    struct book book = bind(w, texts, (const int64_t[]){1, 2}, 2);
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/3([unknown]=0/2(main=2/2) main=0/1([unknown]=0/1(leaf=1/1)))");
    hearth_dict_free(book.dict);
}

static void functions_without_a_name_and_those_called_unknown_are_one(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;;a", "main;[unknown];a", "main;[unknown];b"};
    struct book book = bind(w, texts, (const int64_t[]){1, 2, 4}, 3);
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/7(main=0/7([unknown]=0/7(b=4/4 a=3/3)))");
    hearth_dict_free(book.dict);
}

static void empty_names_stay_where_they_are_wanted(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;;a", "main;[unknown];a"};
    struct book book = bind(w, texts, (const int64_t[]){1, 2}, 2);
    const struct hearth_merge_spec spec = {.empty_names = true};
    struct hearth_tree_merge merge;
    hearth_tree_merge_init(&merge, &w->arena);
    assert_int_equal(hearth_tree_merge_add(&merge, book.dict, &book.sums, &w->err), HEARTH_OK);
    assert_int_equal(hearth_tree_merge_finish(&merge, &spec, 0, &w->tree, &w->err), HEARTH_OK);
    hearth_tree_merge_release(&merge);
    assert_tree(w, "=0/3(main=0/3([unknown]=0/2(a=2/2) =0/1(a=1/1)))");
    hearth_dict_free(book.dict);
}

static void unknown_and_the_empty_name_select_functions_without_a_name(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;;a", "main;b", ";c"};
    const struct hearth_str sites[] = {HEARTH_STR("[unknown]"), HEARTH_STR("")};
    for (size_t i = 0; i < 2; i++) {
        struct book book = bind(w, texts, (const int64_t[]){1, 2, 4}, 3);
        hearth_stacktree_release(&w->tree);
        assert_int_equal(add(w, &book, &sites[i], 1), HEARTH_OK);
        assert_tree(w, "=0/4([unknown]=0/4(c=4/4))");
        hearth_dict_free(book.dict);
    }
}

static void stacks_without_frames_are_the_roots_own(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"", "main"};
    struct book book = bind(w, texts, (const int64_t[]){3, 4}, 2);
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_int_equal(add(w, &book, NULL, 0), HEARTH_OK);
    assert_tree(w, "=6/14(main=8/8)");
    hearth_dict_free(book.dict);
}

/* ---- call sites ---- */

static const char *const g_sites[] = {"main;handle;query", "main;handle",  "main",
                                      "main;main;handle",  "handle;query", "",
                                      "main;fib;handle"};
static const int64_t g_site_values[] = {1, 2, 4, 8, 16, 32, 64};

/* The tree below a call site, added on an empty tree. */
static void assert_inside(struct world *w, const struct hearth_str *call_site, size_t n,
                          const char *expected)
{
    struct book book = bind(w, g_sites, g_site_values, HEARTH_ARRAY_LEN(g_site_values));
    hearth_stacktree_release(&w->tree);
    hearth_stacktree_init(&w->tree, &w->arena);
    assert_int_equal(add(w, &book, call_site, n), HEARTH_OK);
    assert_tree(w, expected);
    hearth_dict_free(book.dict);
}

static void a_call_site_keeps_the_stacks_that_begin_with_it(void **state)
{
    struct world *w = *state;
    const struct hearth_str site[] = {HEARTH_STR("main"), HEARTH_STR("handle"),
                                      HEARTH_STR("query")};
    assert_inside(w, site, 2, "=0/3(main=0/3(handle=2/3(query=1/1)))");
    assert_inside(w, site, 3, "=0/1(main=0/1(handle=0/1(query=1/1)))");
    assert_inside(w, site, 1,
                  "=0/79(main=4/79(fib=0/64(handle=64/64) main=0/8(handle=8/8) "
                  "handle=2/3(query=1/1)))");
}

static void a_call_site_begins_at_the_root_and_skips_nothing(void **state)
{
    struct world *w = *state;
    const struct hearth_str below[] = {HEARTH_STR("query")};
    const struct hearth_str gap[] = {HEARTH_STR("main"), HEARTH_STR("query")};
    const struct hearth_str deeper[] = {HEARTH_STR("main"), HEARTH_STR("main"), HEARTH_STR("main")};
    const struct hearth_str part[] = {HEARTH_STR("mai")};
    assert_inside(w, below, 1, "=0/0");
    assert_inside(w, gap, 2, "=0/0");
    assert_inside(w, deeper, 3, "=0/0");
    assert_inside(w, part, 1, "=0/0");
    const struct hearth_str twice[] = {HEARTH_STR("main"), HEARTH_STR("main")};
    assert_inside(w, twice, 2, "=0/8(main=0/8(main=0/8(handle=8/8)))");
}

/* ---- truncation ---- */

/* Random stacks of few names, "other" among them, so that ties, folds and real "other" are many. */
static struct book random_book(struct world *w, uint64_t *rng, uint32_t n)
{
    static const char *const names[] = {"a", "b", "c", "d", "other", "e+f"};
    const char **texts = hearth_arena_calloc(&w->arena, n, sizeof texts[0]);
    int64_t *values = hearth_arena_calloc(&w->arena, n, sizeof values[0]);
    for (uint32_t i = 0; i < n; i++) {
        char text[128];
        int at = snprintf(text, sizeof text, "r%u", (unsigned)i); /* distinct */
        for (uint32_t depth = synth_below(rng, 9); depth > 0; depth--) {
            at += snprintf(text + at, sizeof text - (size_t)at, ";%s", names[synth_below(rng, 6)]);
        }
        size_t skip = synth_below(rng, 4) == 0 ? 0 : hearth_str_find(hearth_str_c(text), ';', 0);
        skip += skip > 0 && text[skip] == ';' ? 1 : 0;
        texts[i] = hearth_arena_strndup(&w->arena, text + skip, strlen(text + skip));
        values[i] = (int64_t)synth_below(rng, 4) << synth_below(rng, 40);
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(texts[i], texts[j]) == 0) { /* a dictionary has each stack once */
                texts[i] = hearth_arena_printf(&w->arena, "r%u", (unsigned)i);
            }
        }
    }
    return bind(w, texts, values, n);
}

static void assert_same_graphs(const struct hearth_flamegraph *a, const struct hearth_flamegraph *b)
{
    assert_int_equal(a->total, b->total);
    assert_int_equal(a->max_self, b->max_self);
    assert_int_equal(a->n_folded, b->n_folded);
    assert_int_equal(a->n_names, b->n_names);
    for (size_t i = 0; i < a->n_names; i++) {
        assert_true(hearth_str_eq(a->names[i], b->names[i]));
    }
    assert_int_equal(a->n_levels, b->n_levels);
    for (size_t l = 0; l < a->n_levels; l++) {
        assert_int_equal(a->levels[l].n, b->levels[l].n);
        assert_memory_equal(a->levels[l].values, b->levels[l].values,
                            a->levels[l].n * sizeof a->levels[l].values[0]);
    }
}

static void a_tree_truncated_while_it_is_made_has_the_same_answer(void **state)
{
    struct world *w = *state;
    uint64_t rng = 7;
    unsigned n_cut = 0;
    for (int round = 0; round < 60; round++) {
        struct book book = random_book(w, &rng, 1 + synth_below(&rng, 60));
        for (int64_t max_nodes = -1; max_nodes < 90; max_nodes += 1 + max_nodes / 4) {
            struct hearth_merge_spec spec = {0};
            struct hearth_flamegraph graphs[2];
            struct hearth_buf bytes[2];
            for (int cut = 0; cut < 2; cut++) {
                struct hearth_stacktree tree;
                struct hearth_tree_merge merge;
                hearth_stacktree_init(&tree, &w->arena);
                hearth_tree_merge_init(&merge, &w->arena);
                assert_int_equal(hearth_tree_merge_add(&merge, book.dict, &book.sums, &w->err),
                                 HEARTH_OK);
                assert_int_equal(
                    hearth_tree_merge_finish(&merge, &spec, cut ? max_nodes : 0, &tree, &w->err),
                    HEARTH_OK);
                assert_int_equal(hearth_stacktree_seal(&tree, &w->err), HEARTH_OK);
                n_cut += tree.is_cut ? 1 : 0;
                assert_int_equal(
                    hearth_flamegraph_make(&tree, max_nodes, &w->arena, &graphs[cut], &w->err),
                    HEARTH_OK);
                hearth_buf_init(&bytes[cut], 0);
                assert_int_equal(
                    hearth_stacktree_write_bytes(&tree, max_nodes, &bytes[cut], &w->err),
                    HEARTH_OK);
                hearth_tree_merge_release(&merge);
                hearth_stacktree_release(&tree);
            }
            assert_same_graphs(&graphs[0], &graphs[1]);
            assert_true(hearth_str_eq(hearth_buf_view(&bytes[0]), hearth_buf_view(&bytes[1])));
            hearth_buf_release(&bytes[0]);
            hearth_buf_release(&bytes[1]);
        }
        hearth_dict_free(book.dict);
    }
    assert_true(n_cut > 300);
}

/* ---- what cannot be answered ---- */

static void sums_beyond_64_bits_are_out_of_range(void **state)
{
    struct world *w = *state;
    static const char *const apart[] = {"main;a", "main;b"};
    struct book a = bind(w, apart, (const int64_t[]){INT64_MAX, 1}, 2);
    assert_int_equal(add(w, &a, NULL, 0), HEARTH_OUT_OF_RANGE);
    assert_string_equal(w->err.msg, "a sum of the flame graph exceeds 64 bits");
    static const char *const one[] = {"main;a"};
    struct book b = bind(w, one, (const int64_t[]){INT64_MAX}, 1);
    assert_int_equal(add(w, &b, NULL, 0), HEARTH_OK);
    assert_int_equal(add(w, &b, NULL, 0), HEARTH_OUT_OF_RANGE);
    static const char *const none[] = {""};
    struct book c = bind(w, none, (const int64_t[]){INT64_MAX}, 1);
    assert_int_equal(add(w, &c, NULL, 0), HEARTH_OK);
    assert_int_equal(add(w, &c, NULL, 0), HEARTH_OUT_OF_RANGE);
    hearth_dict_free(a.dict);
    hearth_dict_free(b.dict);
    hearth_dict_free(c.dict);
}

static void negative_values_are_out_of_range(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"main;a", "main;b"};
    struct book a = bind(w, texts, (const int64_t[]){5, -5}, 2);
    assert_int_equal(add(w, &a, NULL, 0), HEARTH_OUT_OF_RANGE);
    assert_string_equal(w->err.msg, "frame \"b\" has a negative value");
    /* In one tree another dictionary may make up for it. */
    w->names = hearth_name_tree_new();
    struct book b = bind(w, texts, (const int64_t[]){0, -6}, 2);
    struct book c = bind(w, texts, (const int64_t[]){1, 8}, 2);
    const struct book *books[] = {&b, &c};
    hearth_stacktree_release(&w->tree);
    assert_int_equal(add_within(w, books, 2, NULL, 0), HEARTH_OK);
    assert_tree(w, "=0/3(main=0/3(b=2/2 a=1/1))");
    hearth_dict_free(a.dict);
    hearth_dict_free(b.dict);
    hearth_dict_free(c.dict);
}

static void a_refused_arena_fails_with_no_memory(void **state)
{
    struct world *w = *state;
    struct book book = bind(w, g_sites, g_site_values, HEARTH_ARRAY_LEN(g_site_values));
    const struct hearth_str site = HEARTH_STR("main");
    struct hearth_merge_spec spec = {.stacks = {.call_site = &site, .n_call_site = 1}};
    struct hearth_arena small;
    size_t limit = 1;
    enum hearth_status status = HEARTH_NO_MEMORY;
    unsigned n_refused = 0;
    while (status != HEARTH_OK) { /* refused at every allocation in turn */
        struct hearth_tree_merge merge;
        hearth_arena_init(&small, limit);
        hearth_tree_merge_init(&merge, &small);
        status = hearth_tree_merge_add(&merge, book.dict, &book.sums, &w->err);
        if (status == HEARTH_OK) {
            status = hearth_tree_merge_finish(&merge, &spec, 0, &w->tree, &w->err);
        }
        hearth_tree_merge_release(&merge);
        hearth_arena_release(&small);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        n_refused += status == HEARTH_NO_MEMORY ? 1 : 0;
        limit += 16;
    }
    assert_true(n_refused > 5);
    hearth_dict_free(book.dict);
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(stacks_of_one_dictionary_become_a_tree),
        world_test(dictionaries_are_unified_by_name),
        world_test(dictionaries_of_one_tree_are_added_node_by_node),
        world_test(nodes_without_any_value_are_left_out),
        world_test(stack_ids_beyond_the_bound_are_not_read),
        world_test(inlined_lines_are_frames_and_addresses_have_names),
        world_test(functions_without_a_name_are_unknown),
        world_test(functions_without_a_name_and_those_called_unknown_are_one),
        world_test(empty_names_stay_where_they_are_wanted),
        world_test(unknown_and_the_empty_name_select_functions_without_a_name),
        world_test(stacks_without_frames_are_the_roots_own),
        world_test(a_call_site_keeps_the_stacks_that_begin_with_it),
        world_test(a_call_site_begins_at_the_root_and_skips_nothing),
        world_test(a_tree_truncated_while_it_is_made_has_the_same_answer),
        world_test(sums_beyond_64_bits_are_out_of_range),
        world_test(negative_values_are_out_of_range),
        world_test(a_refused_arena_fails_with_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
