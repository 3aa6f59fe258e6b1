/* test_hash.c -- stable hashes and the id map. */
#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Fingerprints are stored: these values must never change (XXH3, seed 0). */
static void stored_hashes_never_change(void **state)
{
    (void)state;
    assert_true(hearth_hash64("", 0, 0) == UINT64_C(0x2D06800538D394C2));
    struct hearth_hash128 empty = hearth_hash128("", 0, 0);
    assert_true(empty.hi == UINT64_C(0x99AA06D3014798D8) &&
                empty.lo == UINT64_C(0x6001C324468D497F));
    assert_true(hearth_hash64(NULL, 0, 0) == hearth_hash64("", 0, 0));
}

static void seeds_and_bytes_change_the_hash(void **state)
{
    (void)state;
    assert_true(hearth_hash64("abc", 3, 0) != hearth_hash64("abc", 3, 1));
    assert_true(hearth_hash64("abc", 3, 0) != hearth_hash64("abd", 3, 0));
    assert_false(hearth_hash128_eq(hearth_hash128("abc", 3, 0), hearth_hash128("abc", 3, 1)));
    assert_true(hearth_hash128_eq(hearth_hash128("abc", 3, 5), hearth_hash128("abc", 3, 5)));
    assert_true(hearth_hash_mix(1, 2) != hearth_hash_mix(2, 1));
}

static void the_process_seed_is_chosen_once(void **state)
{
    (void)state;
    uint64_t seed = hearth_hash_process_seed();
    assert_true(seed != 0);
    assert_true(seed == hearth_hash_process_seed());
}

static struct hearth_hash128 key_of(uint32_t i)
{
    return hearth_hash128(&i, sizeof i, 1);
}

static void finds_every_interned_key(void **state)
{
    (void)state;
    struct hearth_idmap map;
    hearth_idmap_init(&map);
    assert_int_equal(hearth_idmap_find(&map, key_of(0)), HEARTH_IDMAP_NONE);
    enum {
        N = 20000
    };

    for (uint32_t i = 0; i < N; i++) {
        bool inserted = false;
        assert_int_equal(hearth_idmap_intern(&map, key_of(i), i, &inserted), i);
        assert_true(inserted);
    }

    for (uint32_t i = 0; i < N; i++) {
        bool inserted = true;
        assert_int_equal(hearth_idmap_find(&map, key_of(i)), i);
        assert_int_equal(hearth_idmap_intern(&map, key_of(i), 7, &inserted), i);
        assert_false(inserted);
    }

    assert_int_equal(hearth_idmap_find(&map, key_of(N)), HEARTH_IDMAP_NONE);
    assert_int_equal(map.n, N);
    assert_true(map.n * 2 <= map.cap);
    assert_int_equal(hearth_idmap_bytes(&map), map.cap * sizeof map.slots[0]);
    hearth_idmap_reset(&map);
    assert_int_equal(hearth_idmap_find(&map, key_of(1)), HEARTH_IDMAP_NONE);
    hearth_idmap_release(&map);
}

static void keys_that_collide_stay_apart(void **state)
{
    (void)state;
    struct hearth_idmap map;
    hearth_idmap_init(&map);
    for (uint32_t i = 0; i < 100; i++) {
        bool inserted;
        struct hearth_hash128 key = {UINT64_MAX, i};
        assert_int_equal(hearth_idmap_intern(&map, key, i, &inserted), i);
    }

    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(hearth_idmap_find(&map, (struct hearth_hash128){UINT64_MAX, i}), i);
    }

    hearth_idmap_release(&map);
}

static void a_refused_growth_changes_nothing(void **state)
{
    (void)state;
    struct hearth_idmap map;
    hearth_idmap_init(&map);
    bool inserted;
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(hearth_idmap_intern(&map, key_of(i), i, &inserted), i);
    }

    assert_int_equal(map.n * 2, map.cap); /* the next one must grow */
    hearth_mem_fail_after(1);
    uint32_t fresh = hearth_idmap_intern(&map, key_of(99), 99, &inserted);
    uint32_t known = hearth_idmap_intern(&map, key_of(5), 99, &inserted);
    hearth_mem_fail_after(0);
    assert_int_equal(fresh, HEARTH_IDMAP_NONE);
    assert_int_equal(known, 5);
    assert_false(inserted);
    assert_int_equal(map.n, 32);

    assert_int_equal(hearth_idmap_intern(&map, key_of(99), 99, &inserted), 99);
    assert_true(inserted);
    hearth_idmap_release(&map);
}

static void the_growth_of_a_map_is_charged_to_the_budget_once(void **state)
{
    (void)state;
    struct hearth_budget budget;
    hearth_budget_init(&budget, "test-limit", 64 * 20 + 100);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    arena.budget = &budget;
    struct hearth_idmap map;
    hearth_idmap_init(&map);
    size_t held = 0;
    bool inserted;

    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(hearth_idmap_intern(&map, key_of(i), i, &inserted), i);
        assert_true(hearth_idmap_account(&map, &arena, &held));
        assert_int_equal(held, 64 * 20);
        assert_int_equal(atomic_load(&budget.used_bytes), held);
    }

    assert_int_equal(hearth_idmap_intern(&map, key_of(32), 32, &inserted), 32);
    assert_false(hearth_idmap_account(&map, &arena, &held));
    assert_true(arena.over_budget);
    assert_int_equal(held, 64 * 20);

    hearth_budget_give(&budget, held);
    hearth_idmap_release(&map);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_hashes_never_change),
        cmocka_unit_test(seeds_and_bytes_change_the_hash),
        cmocka_unit_test(the_process_seed_is_chosen_once),
        cmocka_unit_test(finds_every_interned_key),
        cmocka_unit_test(keys_that_collide_stay_apart),
        cmocka_unit_test(a_refused_growth_changes_nothing),
        cmocka_unit_test(the_growth_of_a_map_is_charged_to_the_budget_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
