/* test_task_stacks.c -- stack traces of tasks: gathered, as bytes, and as trees. */
#include "hearth/base/mem.h"
#include "hearth/model/task_chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_FRAMES 16

static const struct hearth_task_limits g_no_limits = {0};

/* "C-B-A" (leaf first) as texts. */
static size_t frames_of(const char *text, struct hearth_str *out)
{
    size_t n = 0;
    struct hearth_str all = hearth_str_c(text);
    for (size_t from = 0; from < all.n;) {
        size_t dash = hearth_str_find(all, '-', from);
        assert_true(n < MAX_FRAMES);
        out[n++] = hearth_str_n(all.p + from, dash - from);
        from = dash + 1;
    }
    return n;
}

static enum hearth_status add(struct hearth_task_builder *b, const char *kernel, const char *user,
                              int32_t id, int64_t count, int64_t duration_ns,
                              struct hearth_task_notes *notes)
{
    struct hearth_str k[MAX_FRAMES], u[MAX_FRAMES];
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_task_datum datum = {
        .has_kernel = kernel[0] != '\0',
        .has_user = user[0] != '\0',
        .kernel_id = id,
        .user_id = id + 1000,
        .kernel = k,
        .user = u,
        .n_kernel = frames_of(kernel, k),
        .n_user = frames_of(user, u),
        .count = count,
        .duration_ns = duration_ns,
    };
    return hearth_task_builder_add(b, &datum, notes, &err);
}

/* "A:5(B:3(C:3))": the trees of a forest as text. */
static void print_tree(const struct hearth_stack_tree *tree, size_t at, char *out, size_t size)
{
    const struct hearth_stack_element *e = &tree->elements[at];
    size_t n = strlen(out);
    (void)snprintf(out + n, size - n, "%.*s%s:%lld", (int)e->symbol.n, e->symbol.p,
                   e->space == HEARTH_STACK_KERNEL ? "!" : "", (long long)e->total);
    bool any = false;
    for (size_t i = at + 1; i < tree->n; i++) {
        if (tree->elements[i].parent_id == e->id) {
            n = strlen(out);
            (void)snprintf(out + n, size - n, "%s", any ? "," : "(");
            any = true;
            print_tree(tree, i, out, size);
        }
    }
    if (any) {
        n = strlen(out);
        (void)snprintf(out + n, size - n, ")");
    }
}

static void assert_trees(struct hearth_stack_forest *forest, const char *expected)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_stack_tree *trees;
    size_t n;
    char text[1024] = "";
    assert_int_equal(hearth_stack_forest_trees(forest, &trees, &n, &err), HEARTH_OK);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < trees[i].n; k++) {
            assert_int_equal(trees[i].elements[k].id, k + 1);
            assert_true(trees[i].elements[k].parent_id <= k);
        }
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s", i == 0 ? "" : " ");
        print_tree(&trees[i], 0, text, sizeof text);
    }
    assert_string_equal(text, expected);
}

struct fixture {
    struct hearth_arena arena;
    struct hearth_task_builder *on, *off;
    struct hearth_task_notes notes;
    struct hearth_stack_forest *forest;
    struct hearth_err err;
};

static int setup(void **state)
{
    struct fixture *f = hearth_mem_zalloc(sizeof *f);
    hearth_arena_init(&f->arena, 0);
    f->on = hearth_task_builder_new(HEARTH_STACKS_ON_CPU, &g_no_limits, &f->arena);
    f->off = hearth_task_builder_new(HEARTH_STACKS_OFF_CPU, &g_no_limits, &f->arena);
    f->forest = hearth_stack_forest_new(&f->arena);
    *state = f;
    return f->on == NULL || f->off == NULL || f->forest == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    hearth_task_builder_free(f->on);
    hearth_task_builder_free(f->off);
    hearth_stack_forest_free(f->forest);
    hearth_arena_release(&f->arena);
    hearth_mem_free(f);
    return 0;
}

static void kernel_frames_are_above_the_program_that_called_them(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk;
    assert_int_equal(add(f->on, "vfs_read-sys_read", "read-main", 1, 3, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->on, "", "spin-main", 2, 5, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->on, "main", "", 3, 9, 0, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(f->on, &chunk);
    assert_int_equal(hearth_stack_forest_add(f->forest, &chunk, HEARTH_STACK_COUNT, &f->err),
                     HEARTH_OK);
    assert_trees(f->forest, "main!:9 main:8(spin:5,read:3(sys_read!:3(vfs_read!:3)))");
}

static void equal_stacks_with_different_numbers_both_count(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk;
    assert_int_equal(add(f->on, "", "B-A", 1, 1, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->on, "", "B-A", 2, 1, 0, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(f->on, &chunk);
    assert_int_equal(chunk.n_records, 2);
    assert_int_equal(chunk.n_stacks, 1);
    assert_int_equal(hearth_stack_forest_add(f->forest, &chunk, HEARTH_STACK_COUNT, &f->err),
                     HEARTH_OK);
    assert_trees(f->forest, "A:2(B:2)");
}

static void a_stack_repeated_in_its_flush_counts_once(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk;
    assert_int_equal(add(f->on, "K", "B-A", 7, 4, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->on, "K", "B-A", 7, 4, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->on, "", "B-A", 7, 4, 0, &f->notes),
                     HEARTH_OK); /* another pair of ids */
    hearth_task_builder_chunk(f->on, &chunk);
    assert_int_equal(chunk.n_records, 2);
    assert_int_equal(f->notes.n_repeated, 1);
}

static void off_cpu_trees_count_switches_or_time(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk;
    struct hearth_stack_forest *by_time = hearth_stack_forest_new(&f->arena);
    assert_int_equal(add(f->off, "", "B-A", 1, 10, 7, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->off, "", "C-A", 2, 1, 500, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->off, "", "D-A", 3, 0, 2, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(f->off, &chunk);
    assert_int_equal(hearth_stack_forest_add(f->forest, &chunk, HEARTH_STACK_COUNT, &f->err),
                     HEARTH_OK);
    assert_int_equal(hearth_stack_forest_add(by_time, &chunk, HEARTH_STACK_DURATION, &f->err),
                     HEARTH_OK);
    assert_trees(f->forest, "A:11(B:10,C:1)");
    assert_trees(by_time, "A:509(C:500,B:7,D:2)");
    hearth_stack_forest_free(by_time);
}

static void on_cpu_stacks_have_no_duration(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk;
    assert_int_equal(add(f->on, "", "A", 1, 2, 999, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->on, "", "B", 2, 0, 999, &f->notes),
                     HEARTH_OK); /* neither count nor duration */
    hearth_task_builder_chunk(f->on, &chunk);
    assert_int_equal(chunk.n_records, 1);
    assert_int_equal(f->notes.n_empty, 1);
    assert_int_equal(hearth_stack_forest_add(f->forest, &chunk, HEARTH_STACK_DURATION, &f->err),
                     HEARTH_OK);
    assert_trees(f->forest, "A:2");
}

static void negative_values_are_refused(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk;
    assert_int_equal(add(f->on, "", "A", 1, -1, 0, &f->notes), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(add(f->off, "", "A", 1, 1, -1, &f->notes), HEARTH_INVALID_ARGUMENT);
    hearth_task_builder_chunk(f->on, &chunk);
    assert_int_equal(chunk.n_records, 0);
}

static void sums_beyond_64_bits_are_an_error(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk;
    assert_int_equal(add(f->off, "", "A", 1, 1, INT64_MAX, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->off, "", "A", 2, 1, 1, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(f->off, &chunk);
    assert_int_equal(hearth_stack_forest_add(f->forest, &chunk, HEARTH_STACK_DURATION, &f->err),
                     HEARTH_OUT_OF_RANGE);
}

static void deep_stacks_lose_their_leaf_end_and_long_symbols_their_head(void **state)
{
    struct fixture *f = *state;
    const struct hearth_task_limits limits = {.max_depth = 3, .max_symbol_bytes = 4};
    struct hearth_task_builder *b =
        hearth_task_builder_new(HEARTH_STACKS_ON_CPU, &limits, &f->arena);
    struct hearth_task_chunk chunk;
    assert_int_equal(add(b, "k2-k1", "u2-u1", 1, 1, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(b, "k1", "u4-u3-u2-u1", 2, 1, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(b, "", "abc\xc3\xa9z", 3, 1, 0, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(b, &chunk);
    assert_int_equal(hearth_stack_forest_add(f->forest, &chunk, HEARTH_STACK_COUNT, &f->err),
                     HEARTH_OK);
    assert_trees(f->forest, "u1:2(u2:2(k1!:1,u3:1)) c\xc3\xa9z:1");
    assert_int_equal(f->notes.stacks_cut, 2);
    assert_int_equal(f->notes.frames_cut, 3);
    assert_int_equal(f->notes.strings_cut, 1);
    assert_int_equal(chunk.n_cut, 3);
    hearth_task_builder_free(b);
}

static void decoding_restores_the_encoded_chunk(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_chunk chunk, again;
    assert_int_equal(add(f->off, "K-L", "B-A", -5, 3, 4, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->off, "", "A", INT32_MAX - 1000, 0, INT64_MAX, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->off, "L", "", 9, 1, 0, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(f->off, &chunk);
    struct hearth_buf bytes, second;
    hearth_buf_init(&bytes, 0);
    hearth_buf_init(&second, 0);
    hearth_task_chunk_encode(&chunk, &bytes);
    assert_int_equal(hearth_task_chunk_decode(hearth_buf_view(&bytes), &f->arena, &again, &f->err),
                     HEARTH_OK);
    hearth_task_chunk_encode(&again, &second);
    assert_int_equal(bytes.n, second.n);
    assert_memory_equal(bytes.p, second.p, bytes.n);
    assert_true(hearth_hash128_eq(hearth_task_chunk_hash(&chunk), hearth_task_chunk_hash(&again)));
    for (size_t n = 0; n < bytes.n; n++) { /* no prefix of it is a chunk */
        assert_int_equal(
            hearth_task_chunk_decode(hearth_str_n(bytes.p, n), &f->arena, &again, &f->err),
            HEARTH_CORRUPT);
    }
    hearth_buf_release(&bytes);
    hearth_buf_release(&second);
}

static void a_hash_does_not_depend_on_the_order_of_records(void **state)
{
    struct fixture *f = *state;
    struct hearth_task_builder *other =
        hearth_task_builder_new(HEARTH_STACKS_ON_CPU, &g_no_limits, &f->arena);
    struct hearth_task_chunk a, b;
    assert_int_equal(add(f->on, "", "B-A", 1, 3, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(f->on, "K", "C-A", 2, 4, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(other, "K", "C-A", 2, 4, 0, &f->notes), HEARTH_OK);
    assert_int_equal(add(other, "", "B-A", 1, 3, 0, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(f->on, &a);
    hearth_task_builder_chunk(other, &b);
    assert_true(hearth_hash128_eq(hearth_task_chunk_hash(&a), hearth_task_chunk_hash(&b)));
    assert_int_equal(add(other, "", "B-A", 3, 3, 0, &f->notes), HEARTH_OK);
    hearth_task_builder_chunk(other, &b);
    assert_false(hearth_hash128_eq(hearth_task_chunk_hash(&a), hearth_task_chunk_hash(&b)));
    hearth_task_builder_free(other);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(kernel_frames_are_above_the_program_that_called_them),
        TEST(equal_stacks_with_different_numbers_both_count),
        TEST(a_stack_repeated_in_its_flush_counts_once),
        TEST(off_cpu_trees_count_switches_or_time),
        TEST(on_cpu_stacks_have_no_duration),
        TEST(negative_values_are_refused),
        TEST(sums_beyond_64_bits_are_an_error),
        TEST(deep_stacks_lose_their_leaf_end_and_long_symbols_their_head),
        TEST(decoding_restores_the_encoded_chunk),
        TEST(a_hash_does_not_depend_on_the_order_of_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
