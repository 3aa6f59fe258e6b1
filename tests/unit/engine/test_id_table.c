/* test_id_table.c -- numbers of ids and of pairs of them. */
#include "hearth/base/budget.h"
#include "hearth/base/mem.h"

#include "common/id_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void keys_get_dense_numbers_in_order_of_insertion(void **state)
{
    (void)state;
    struct hearth_id_table table;
    bool inserted;
    hearth_id_table_init(&table, NULL);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 20000; i++) {
            uint64_t hi = i % 3, lo = (uint64_t)i << (i % 40);
            assert_int_equal(hearth_id_table_intern(&table, hi + 7 * i, lo, &inserted), i);
            assert_int_equal(inserted, round == 0);
        }
    }
    assert_int_equal(hearth_id_table_intern(&table, 0, 0, &inserted), 0);
    hearth_id_table_reset(&table);
    assert_int_equal(hearth_id_table_intern(&table, 5, 5, &inserted), 0);
    assert_true(inserted);
    hearth_id_table_release(&table);
}

static void a_refusal_keeps_the_stored_keys(void **state)
{
    (void)state;
    struct hearth_budget budget;
    struct hearth_id_table table;
    bool inserted;
    hearth_budget_init(&budget, "max-query-memory", 100000);
    hearth_id_table_init(&table, &budget);
    uint64_t n = 0;
    while (hearth_id_table_intern(&table, 1, n, &inserted) != HEARTH_IDMAP_NONE) {
        n++;
    }
    assert_true(n >= 2048 && n < 5000);
    assert_int_equal(hearth_id_table_intern(&table, 2, 2, &inserted), HEARTH_IDMAP_NONE);
    hearth_id_table_release(&table);
    assert_int_equal(budget.used_bytes, 0);
    hearth_id_table_init(&table, &budget);
    for (uint64_t fail_at = 1; fail_at < 4; fail_at++) {
        hearth_mem_fail_after(fail_at);
        for (n = 0; n < 3000 && hearth_id_table_intern(&table, 1, n, &inserted) == n; n++) {
        }
        hearth_mem_fail_after(0);
        assert_true(n < 3000 && n % 256 == 0);
        for (uint64_t i = 0; i < n; i++) {
            assert_int_equal(hearth_id_table_intern(&table, 1, i, &inserted), i);
            assert_false(inserted);
        }
    }
    hearth_id_table_release(&table);
    assert_int_equal(budget.used_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_get_dense_numbers_in_order_of_insertion),
        cmocka_unit_test(a_refusal_keeps_the_stored_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
