/* test_label_index_limits.c -- the label index where memory is limited or refused. */
#include "hearth/base/mem.h"

#include "label_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Series with labels of a kilobyte each; every other fill has fewer. */
static void fill_with_long_labels(struct hearth_label_index *index, int32_t n)
{
    char value[1024];
    memset(value, 'v', sizeof value);
    assert_int_equal(hearth_label_index_add_service(index, 1, HEARTH_STR("api")), HEARTH_OK);
    assert_int_equal(
        hearth_label_index_add_shape(index, 1, (const struct hearth_str[]){HEARTH_STR(CPU)}, 1),
        HEARTH_OK);
    for (int32_t i = 1; i <= n; i++) {
        (void)snprintf(value, 16, "%d", (int)i);
        assert_int_equal(hearth_label_index_add_pair(index, i, HEARTH_STR("a"),
                                                     hearth_str_n(value, sizeof value)),
                         HEARTH_OK);
        assert_int_equal(hearth_label_index_add_series(index, i, 1, 1, &i, 1), HEARTH_OK);
        assert_int_equal(hearth_label_index_add_hour(index, i, 100), HEARTH_OK);
    }
}

static void rows_beyond_the_limit_are_omitted_and_the_index_is_cut(void **state)
{
    struct world *w = *state;
    enum {
        LIMIT = 1 << 20
    };
    struct hearth_label_index *index = hearth_label_index_new();
    hearth_label_index_set_limit(index, LIMIT);
    fill_with_long_labels(index, 200);
    assert_false(hearth_label_index_is_cut(index));
    assert_int_equal(hearth_label_index_series(index), 200);
    fill_with_long_labels(index, 5000);
    assert_true(hearth_label_index_is_cut(index));
    assert_true(hearth_label_index_bytes(index) <= LIMIT);
    size_t n = hearth_label_index_series(index);
    assert_in_range(n, 300, 1000);

    /* Rows that fit are found; the omitted ones cause no error. */
    struct hearth_series_hits hits;
    struct hearth_selector selector;
    hearth_selector_init(&selector);
    const struct hearth_index_filter filter = {&selector, at_hour(100), at_hour(100)};
    assert_int_equal(hearth_label_index_select(index, &filter, &w->arena, &hits, &w->err),
                     HEARTH_OK);
    assert_in_range(hits.n, n - 1, n);
    assert_int_equal(hearth_label_index_add_series(index, 9999, 1, 77, NULL, 0), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_hour(index, 9999, 100), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_series(index, 0, 1, 1, NULL, 0), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_series(index), n);
    hearth_selector_release(&selector);
    hearth_label_index_free(index);
}

static void hours_are_omitted_by_a_limit_below_the_reserve_for_hours(void **state)
{
    (void)state;
    struct hearth_label_index *index = hearth_label_index_new();
    fill_with_long_labels(index, 1);
    size_t n_bytes = hearth_label_index_bytes(index);

    hearth_label_index_set_limit(index, 1000);
    for (int32_t day = 1; day <= 1000; day++) {
        assert_int_equal(hearth_label_index_add_hour(index, 1, 100 + 48 * day), HEARTH_OK);
    }

    assert_true(hearth_label_index_is_cut(index));
    assert_int_equal(hearth_label_index_bytes(index), n_bytes);
    hearth_label_index_free(index);
}

static enum hearth_status fill_some(struct hearth_label_index *index)
{
    const struct hearth_str types[] = {HEARTH_STR(CPU), HEARTH_STR(COUNT)};
    HEARTH_TRY(hearth_label_index_add_service(index, 7, HEARTH_STR("api")));
    HEARTH_TRY(hearth_label_index_add_shape(index, 1, types, 2));
    for (int32_t i = 1; i <= 12; i++) {
        char value[16];
        (void)snprintf(value, sizeof value, "v%d", (int)i);
        HEARTH_TRY(hearth_label_index_add_pair(index, i, HEARTH_STR("a"), hearth_str_c(value)));
        HEARTH_TRY(
            hearth_label_index_add_pair(index, 100 + i, hearth_str_c(value), HEARTH_STR("x")));
        const int32_t pairs[] = {i, 100 + i, 101};
        HEARTH_TRY(hearth_label_index_add_series(index, i, 7, 1, pairs, i == 1 ? 2 : 3));
        for (int32_t day = 0; day < 3; day++) {
            HEARTH_TRY(hearth_label_index_add_day(index, i, day, 1));
        }
    }
    return HEARTH_OK;
}

static void refused_memory_leaves_an_intact_index_that_can_continue(void **state)
{
    struct world *w = *state;
    size_t n_refused = 0;
    for (uint64_t after = 1;; after++) {
        hearth_mem_fail_after(after);
        struct hearth_label_index *index = hearth_label_index_new();
        enum hearth_status status = index == NULL ? HEARTH_NO_MEMORY : fill_some(index);
        hearth_mem_fail_after(0);
        if (index != NULL) {
            const struct hearth_index_filter filter =
                make_filter(w, "{v1=\"x\", a=~\"v.+\"}", 0, 100);
            struct hearth_series_hits hits;
            assert_int_equal(fill_some(index), HEARTH_OK); /* existing rows are skipped */
            assert_int_equal(hearth_label_index_select(index, &filter, &w->arena, &hits, &w->err),
                             HEARTH_OK);
            assert_int_equal(hits.n, 24);
        }
        hearth_label_index_free(index);
        if (status == HEARTH_OK) {
            break;
        }
        assert_int_equal(status, HEARTH_NO_MEMORY);
        n_refused++;
    }
    assert_true(n_refused > 30);
}

static void a_result_that_does_not_fit_the_arena_is_refused(void **state)
{
    struct world *w = *state;
    const struct hearth_str names[] = {HEARTH_STR("pod"), HEARTH_STR("__type__")};
    size_t n_refused = 0;
    for (size_t limit = 1;; limit += 16) {
        struct hearth_arena arena;
        struct hearth_index_texts texts;
        struct hearth_label_sets sets;
        struct hearth_series_hits hits;
        const struct hearth_projected_names two = {names, 2};
        const struct hearth_index_filter filter =
            make_filter(w, "{pod=~\"(?i)[A-C]\", zone!=\"q\"}", 0, 200);
        hearth_arena_init(&arena, limit);
        enum hearth_status status[] = {
            hearth_label_index_select(w->index, &filter, &arena, &hits, &w->err),
            hearth_label_index_names(w->index, &filter, &arena, &texts, &w->err),
            hearth_label_index_values(w->index, &filter, names[0], &arena, &texts, &w->err),
            hearth_label_index_project(w->index, &filter, two, &arena, &sets, &w->err),
            hearth_label_index_project(w->index, &filter, g_all_names, &arena, &sets, &w->err),
        };
        bool all = true;
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(status); i++) {
            assert_true(status[i] == HEARTH_OK || status[i] == HEARTH_NO_MEMORY);
            all = all && status[i] == HEARTH_OK;
        }
        hearth_arena_release(&arena);
        if (all) {
            break;
        }
        n_refused++;
    }
    assert_true(n_refused > 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rows_beyond_the_limit_are_omitted_and_the_index_is_cut),
        TEST(hours_are_omitted_by_a_limit_below_the_reserve_for_hours),
        TEST(refused_memory_leaves_an_intact_index_that_can_continue),
        TEST(a_result_that_does_not_fit_the_arena_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
