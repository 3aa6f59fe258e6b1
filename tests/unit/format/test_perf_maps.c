/* test_perf_maps.c -- maps of address spaces, compared with a plain array of pages. */
#include "perf/perf_maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N_PAGES  64
#define N_SPACES 8

/* What is mapped at each address of a space: object and offset. */
struct model {
    uint32_t object[N_PAGES];
    uint64_t offset[N_PAGES];
};

static uint32_t g_seed = 7;

static uint32_t pick(uint32_t n)
{
    g_seed = g_seed * 1664525 + 1013904223;
    return (g_seed >> 8) % n;
}

static void assert_equal(const struct perf_map_pool *pool, const struct perf_maps *maps,
                         const struct model *model)
{
    for (uint64_t at = 0; at < N_PAGES; at++) {
        const struct perf_map *map = hearth_perf_maps_find(pool, maps, at);
        if (model->object[at] == 0) {
            assert_null(map);
        } else {
            assert_non_null(map);
            assert_int_equal(map->object, model->object[at]);
            assert_int_equal(map->offset + (at - map->start), model->offset[at]);
        }
    }
}

static void a_later_mapping_replaces_the_earlier_one(void **state)
{
    struct hearth_arena arena;
    struct perf_map_pool pool = {.arena = &arena};
    struct perf_maps maps[N_SPACES] = {0};
    struct model models[N_SPACES] = {0};

    (void)state;
    hearth_arena_init(&arena, 0);
    for (uint32_t round = 1; round < 20000; round++) {
        uint32_t s = pick(N_SPACES), start = pick(N_PAGES), n = 1 + pick(N_PAGES - start);
        if (pick(10) == 0) {
            uint32_t child = pick(N_SPACES);
            if (child != s) {
                hearth_perf_maps_share(&maps[s], &maps[child]);
                models[child] = models[s];
            }
            continue;
        }

        n = pick(2) == 0 ? 1 : n;
        const struct perf_map map = {start, start + n, round * 100u, round, PERF_NO_PLACE};
        assert_true(hearth_perf_maps_add(&pool, &maps[s], &map));
        for (uint32_t i = 0; i < n; i++) {
            models[s].object[start + i] = round;
            models[s].offset[start + i] = round * 100u + i;
        }
        assert_equal(&pool, &maps[s], &models[s]);
        assert_equal(&pool, &maps[(s + 1) % N_SPACES], &models[(s + 1) % N_SPACES]);
    }
    hearth_arena_release(&arena);
}

static void many_maps_in_order_take_little_memory(void **state)
{
    struct hearth_arena arena;
    struct perf_map_pool pool = {.arena = &arena};
    struct perf_maps maps = {0};

    (void)state;
    hearth_arena_init(&arena, 32u << 20);
    for (uint32_t i = 0; i < 200000; i++) {
        const struct perf_map map = {i, i + 1u, 0, i, PERF_NO_PLACE};
        assert_true(hearth_perf_maps_add(&pool, &maps, &map));
    }
    assert_int_equal(hearth_perf_maps_find(&pool, &maps, 12345)->object, 12345);
    hearth_arena_release(&arena);
}

/* Work and memory of random maps, counted: a tree that degenerates visits thousands of nodes. */
static void many_random_maps_take_little_work_and_memory(void **state)
{
    struct hearth_arena arena;
    struct perf_map_pool pool = {.arena = &arena};
    struct perf_maps maps = {0};
    const uint32_t n = 100000;

    (void)state;
    hearth_arena_init(&arena, 8u << 20);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t start = ((uint64_t)pick(1u << 24) << 24 | pick(1u << 24)) << 12;
        const struct perf_map map = {start, start + 4096, 0, i, PERF_NO_PLACE};
        assert_true(hearth_perf_maps_add(&pool, &maps, &map));
    }
    assert_true(pool.n_nodes < n + 100); /* hardly any overlap */
    assert_true(pool.n_visits < 120u * (uint64_t)n);
    hearth_arena_release(&arena);
}

static void the_number_of_nodes_is_limited(void **state)
{
    struct hearth_arena arena;
    struct perf_map_pool pool = {.arena = &arena, .max_nodes = 10};
    struct perf_maps maps = {0};

    (void)state;
    hearth_arena_init(&arena, 0);
    for (uint32_t i = 0; i < 10; i++) {
        const struct perf_map map = {i, i + 1u, 0, i, PERF_NO_PLACE};
        assert_true(hearth_perf_maps_add(&pool, &maps, &map));
    }
    const struct perf_map last = {20, 21, 0, 20, PERF_NO_PLACE};
    assert_false(hearth_perf_maps_add(&pool, &maps, &last));
    assert_true(pool.is_full);
    assert_int_equal(hearth_perf_maps_find(&pool, &maps, 9)->object, 9);
    hearth_arena_release(&arena);
}

static void refused_memory_is_an_error(void **state)
{
    struct hearth_arena arena;
    struct perf_map_pool pool = {.arena = &arena};
    struct perf_maps maps = {0};
    bool added = true;

    (void)state;
    hearth_arena_init(&arena, 65536);
    for (uint32_t i = 0; i < 10000 && added; i++) {
        const struct perf_map map = {i, i + 1u, 0, i, PERF_NO_PLACE};
        added = hearth_perf_maps_add(&pool, &maps, &map);
    }
    assert_false(added);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_mapping_replaces_the_earlier_one),
        cmocka_unit_test(many_maps_in_order_take_little_memory),
        cmocka_unit_test(many_random_maps_take_little_work_and_memory),
        cmocka_unit_test(the_number_of_nodes_is_limited),
        cmocka_unit_test(refused_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
