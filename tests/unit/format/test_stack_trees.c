/* test_stack_trees.c -- trie and tree: made by tests, truncated anywhere, nested too deep. */
#include "hearth/base/mem.h"
#include "hearth/format/collapsed.h"
#include "hearth/format/stack_trees.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef enum hearth_status decode_fn(struct hearth_str bytes, struct hearth_str type,
                                     struct hearth_str unit, struct hearth_arena *arena,
                                     struct hearth_profile *ret_profile, struct hearth_err *err);

/* The result as collapsed text, or the error message. */
static void assert_decoded(decode_fn *decode, struct hearth_str bytes, const char *want)
{
    struct hearth_arena arena;
    struct hearth_profile profile;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf out;

    hearth_arena_init(&arena, (size_t)256 << 20);
    hearth_buf_init(&out, 0);
    enum hearth_status status =
        decode(bytes, HEARTH_STR("cpu"), HEARTH_STR("nanoseconds"), &arena, &profile, &err);
    if (status == HEARTH_OK) {
        assert_int_equal(profile.n_types, 1);
        assert_true(hearth_str_eq_c(profile.strings[profile.types[0].type], "cpu"));
        assert_true(hearth_str_eq_c(profile.strings[profile.types[0].unit], "nanoseconds"));
        hearth_collapsed_encode(&profile, 0, &out);
    } else {
        hearth_buf_cstr(&out, err.msg);
    }

    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, want);
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

static void node(struct hearth_buf *out, const char *text, uint64_t value, uint64_t n_children)
{
    hearth_buf_varint(out, strlen(text));
    hearth_buf_cstr(out, text);
    hearth_buf_varint(out, value);
    hearth_buf_varint(out, n_children);
}

static void a_trie_may_divide_stacks_anywhere(void **state)
{
    (void)state;
    struct hearth_buf b;
    hearth_buf_init(&b, 0);
    node(&b, "", 0, 2);
    node(&b, "ma", 0, 2);
    node(&b, "in;work", 200, 1);
    node(&b, "er;x", 3, 0);
    node(&b, "rk", 5, 0);
    node(&b, "other", 7, 0);
    assert_decoded(hearth_trie_decode, hearth_buf_view(&b),
                   "main;work 200\nmain;worker;x 3\nmark 5\nother 7\n");
    hearth_buf_release(&b);
}

static void a_tree_has_a_frame_in_each_node(void **state)
{
    (void)state;
    struct hearth_buf b;
    hearth_buf_init(&b, 0);
    node(&b, "", 9, 2); /* a value without any frame */
    node(&b, "main", 1, 2);
    node(&b, "a;b", 2, 0);
    node(&b, "", 4, 0);
    node(&b, "main2", 8, 0);
    assert_decoded(hearth_tree_decode, hearth_buf_view(&b),
                   "main 1\nmain;a:b 2\nmain;[unknown] 4\nmain2 8\n");
    b.n = 0;
    node(&b, "root", 1, 1);
    node(&b, "leaf", 2, 0);
    assert_decoded(hearth_tree_decode, hearth_buf_view(&b), "root 1\nroot;leaf 2\n");
    hearth_buf_release(&b);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    decode_fn *const decoders[] = {hearth_trie_decode, hearth_tree_decode};
    struct hearth_buf b;
    hearth_buf_init(&b, 0);
    node(&b, "", 0, 1);
    node(&b, "main;", 300, 2);
    node(&b, "a", 2, 0);
    node(&b, "b", 4, 0);
    for (size_t d = 0; d < HEARTH_ARRAY_LEN(decoders); d++) {
        for (size_t n = 0; n <= b.n + 1; n++) {
            struct hearth_arena arena;
            struct hearth_profile profile;
            struct hearth_err err = HEARTH_ERR_INIT;
            char *copy = test_malloc(n + 1); /* so that ASan detects a read past the end */
            memcpy(copy, b.p, n < b.n ? n : b.n);

            copy[n > 0 ? n - 1 : 0] = n > b.n ? 0 : copy[n > 0 ? n - 1 : 0];
            hearth_arena_init(&arena, 0);
            enum hearth_status status = decoders[d](hearth_str_n(copy, n), HEARTH_STR("a"),
                                                    HEARTH_STR("b"), &arena, &profile, &err);
            assert_int_equal(status, n == b.n ? HEARTH_OK : HEARTH_INVALID_ARGUMENT);
            hearth_arena_release(&arena);
            test_free(copy);
        }
    }

    hearth_buf_release(&b);
}

static void refuses_values_out_of_range(void **state)
{
    (void)state;
    struct hearth_buf b;
    hearth_buf_init(&b, 0);
    node(&b, "", 0, 0);
    assert_decoded(hearth_tree_decode, hearth_buf_view(&b), "tree of stacks: no stack has a value");
    b.n = 0;
    node(&b, "a", UINT64_MAX, 0);
    assert_decoded(hearth_trie_decode, hearth_buf_view(&b),
                   "tree of stacks: a value has more than 63 bits");
    b.n = 0;
    node(&b, "a", 1, UINT64_MAX);
    assert_decoded(hearth_tree_decode, hearth_buf_view(&b),
                   "tree of stacks: there are more children than bytes, at byte 13 of 13");
    b.n = 0;
    for (unsigned i = 0; i < HEARTH_STACK_TREE_MAX_DEPTH; i++) {
        node(&b, "a", 0, 1);
    }

    node(&b, "a", 1, 0);
    assert_decoded(hearth_trie_decode, hearth_buf_view(&b),
                   "tree of stacks: nested too deep, at byte 16388 of 16388");
    hearth_buf_release(&b);
}

static void a_trie_whose_stacks_have_too_much_text_is_refused(void **state)
{
    (void)state;
    struct hearth_buf b;
    hearth_buf_init(&b, 0);
    char *text = test_malloc(1000001);
    memset(text, 'x', 1000000);
    text[1000000] = '\0';
    node(&b, text, 0, 80);
    for (int i = 0; i < 80; i++) {
        node(&b, "", 1, 0);
    }

    assert_decoded(hearth_trie_decode, hearth_buf_view(&b),
                   "the stacks of a trie of 1000245 bytes have too much text");
    test_free(text);
    hearth_buf_release(&b);
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    decode_fn *const decoders[] = {hearth_trie_decode, hearth_tree_decode};
    struct hearth_buf b;
    hearth_buf_init(&b, 0);
    node(&b, "main;", 300, 1);
    node(&b, "a;b\xff", 2, 0);
    for (size_t d = 0; d < HEARTH_ARRAY_LEN(decoders); d++) {
        enum hearth_status status = HEARTH_NO_MEMORY;
        for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
            struct hearth_arena arena;
            struct hearth_profile profile;
            struct hearth_err err = HEARTH_ERR_INIT;
            hearth_arena_init(&arena, 0);
            hearth_mem_fail_after(nth);
            status = decoders[d](hearth_buf_view(&b), HEARTH_STR("cpu"), HEARTH_STR("nanoseconds"),
                                 &arena, &profile, &err);
            hearth_mem_fail_after(0);
            assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
            hearth_arena_release(&arena);
            assert_true(nth < 200);
        }
    }

    hearth_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trie_may_divide_stacks_anywhere),
        cmocka_unit_test(a_tree_has_a_frame_in_each_node),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(refuses_values_out_of_range),
        cmocka_unit_test(a_trie_whose_stacks_have_too_much_text_is_refused),
        cmocka_unit_test(every_refused_allocation_is_reported_and_nothing_leaks),
    };

    return cmocka_run_group_tests_name("stack_trees", tests, NULL, NULL);
}
