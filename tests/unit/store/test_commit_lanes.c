/* test_commit_lanes.c -- whose rows the next batch takes. */
#include "commit/commit_lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KB ((size_t)1 << 10)

static struct hearth_commit_lanes g_lanes;
static struct hearth_push_item g_items[256];
static size_t g_n;

static int open_queue(void **state)
{
    (void)state;
    g_lanes = (struct hearth_commit_lanes){.waiting = 0};
    g_n = 0;
    return 0;
}

static struct hearth_push_item *append(unsigned lane, size_t n_bytes)
{
    struct hearth_push_item *item = &g_items[g_n++];
    *item = (struct hearth_push_item){.lane = lane, .n_bytes = n_bytes};
    hearth_commit_lanes_append(&g_lanes, item);
    return item;
}

static struct hearth_push_item *take(void)
{
    struct hearth_push_item *item = hearth_commit_lanes_next(&g_lanes);
    if (item != NULL) {
        hearth_commit_lanes_take(&g_lanes, item);
    }
    return item;
}

static void a_lane_keeps_its_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        (void)append(7, 100 * KB);
    }
    for (size_t i = 0; i < 200; i++) {
        assert_ptr_equal(take(), &g_items[i]);
    }
    assert_null(take());
    assert_int_equal(g_lanes.waiting, 0);
}

static void a_quiet_tenant_does_not_wait_for_a_flood(void **state)
{
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        (void)append(3, 1 * KB);
    }
    (void)take();
    struct hearth_push_item *quiet = append(60, 1 * KB);

    /* At most one turn of the flood, 64 items of 1 KB, is before it. */
    size_t n_before = 0;
    while (take() != quiet) {
        n_before++;
    }
    assert_in_range(n_before, 0, 64);
}

static void lanes_share_by_bytes(void **state)
{
    (void)state;
    size_t n_large = 0;
    for (size_t i = 0; i < 100; i++) {
        (void)append(0, 64 * KB);
        (void)append(63, 16 * KB);
    }
    for (size_t i = 0; i < 100; i++) {
        n_large += take()->n_bytes == 64 * KB;
    }
    assert_in_range(n_large, 19, 21); /* a fifth of the items, half of the bytes */
}

static void a_large_item_is_paid_for_afterwards(void **state)
{
    (void)state;
    struct hearth_push_item *large = append(0, 640 * KB), *next = append(0, 1 * KB);
    for (size_t i = 0; i < 100; i++) {
        (void)append(1, 64 * KB);
    }
    while (take() != large) {
    }
    size_t n_between = 0;
    while (take() != next) {
        n_between++;
    }
    assert_in_range(n_between, 9, 11);
}

static void a_withdrawn_item_leaves_its_lane(void **state)
{
    (void)state;
    struct hearth_push_item *a = append(5, KB), *b = append(5, KB), *c = append(5, KB);
    hearth_commit_lanes_unlink(&g_lanes, b);
    assert_ptr_equal(take(), a);
    hearth_commit_lanes_unlink(&g_lanes, c);
    assert_null(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lane_keeps_its_order, open_queue),
        cmocka_unit_test_setup(a_quiet_tenant_does_not_wait_for_a_flood, open_queue),
        cmocka_unit_test_setup(lanes_share_by_bytes, open_queue),
        cmocka_unit_test_setup(a_large_item_is_paid_for_afterwards, open_queue),
        cmocka_unit_test_setup(a_withdrawn_item_leaves_its_lane, open_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
