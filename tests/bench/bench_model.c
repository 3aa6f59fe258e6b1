/*
 * bench_model.c -- nanoseconds per profile of the model layer's hot paths, on made profiles of
 * realistic shape.
 *
 * 660 distinct stacks of mean depth 40 over about 5,000 locations and 2,500 functions, drawn from
 * 20,000 stacks: keys      hashing strings, functions, locations and stacks (outside any lock)
 *   resolve   ids of known stacks (under the dictionary's lock)
 *   encode    columns of two sample types, from sorted ids
 *   merge     each form of column into a dense accumulator, over many different profiles
 *   sums      adding profiles and blocks, encoding a block; packed totals
 *   cold      resolve of new stacks, cutting and applying the chunks, building the name tree
 *
 * Prints the best of several rounds, as a shared machine disturbs the others.
 */
#include "hearth/base/clock.h"
#include "hearth/model/block.h"
#include "hearth/model/columns.h"
#include "hearth/model/dict.h"

#include "synth_profile.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    N_PROFILES = 64,
    N_SAMPLES = 660,
    N_COLUMNS = 1000,
    N_WORLD = 20000,
    ROUNDS = 15
};

static struct hearth_profile g_profiles[N_PROFILES];
static struct hearth_columns g_columns[N_COLUMNS];
static int64_t g_acc[N_WORLD];

static void check(enum hearth_status status, const struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "bench_model: %s\n", err->msg);
        exit(1);
    }
}

static void report(const char *what, int64_t best_ns, double n)
{
    (void)printf("%-34s %10.0f ns\n", what, (double)best_ns / n);
}

static int64_t least(int64_t best_ns, int64_t ns)
{
    return best_ns == 0 || ns < best_ns ? ns : best_ns;
}

static void bench_resolve(struct synth_world *world)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    static uint32_t ids[N_SAMPLES];
    int64_t keys_ns = 0, resolve_ns = 0;
    hearth_arena_init(&arena, 0);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t round_keys_ns = 0, round_resolve_ns = 0;
        for (int p = 0; p < N_PROFILES; p++) {
            struct hearth_stack_keys keys;
            /* Twice: a profile that was just decoded is in the cache, and so is a worker's memory.
             */
            check(hearth_stack_keys_make(&g_profiles[p], &arena, &keys, &err), &err);
            hearth_arena_reset(&arena);
            int64_t start = hearth_clock_mono_ns();
            check(hearth_stack_keys_make(&g_profiles[p], &arena, &keys, &err), &err);
            int64_t middle = hearth_clock_mono_ns();
            check(hearth_dict_writer_resolve(writer, &g_profiles[p], &keys, ids, &err), &err);
            round_keys_ns += middle - start;
            round_resolve_ns += hearth_clock_mono_ns() - middle;
        }
        keys_ns = least(keys_ns, round_keys_ns);
        if (round == 0) {
            report("resolve, mostly new stacks", round_resolve_ns, N_PROFILES);
        } else {
            resolve_ns = least(resolve_ns, round_resolve_ns);
        }
    }
    report("keys", keys_ns, N_PROFILES);
    report("resolve, known stacks", resolve_ns, N_PROFILES);
    (void)printf("%-34s %10u of %u\n", "stacks", hearth_dict_writer_stacks(writer),
                 world->n_stacks);
    hearth_dict_writer_free(writer);
    hearth_arena_release(&arena);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Sums of all profiles, then of those whose second column is a multiple of the first. */
static void bench_sums(void)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_block_sums sums;
    struct hearth_columns block;
    hearth_arena_init(&arena, 0);
    for (int stride = 1; stride <= 2; stride++) {
        check(hearth_block_sums_init(&sums, 2, 0, &err), &err);
        int64_t add_ns = 0, encode_ns = 0, block_ns = 0;
        for (int round = 0; round < ROUNDS; round++) {
            hearth_block_sums_reset(&sums);
            int64_t start = hearth_clock_mono_ns();
            for (int p = 0; p < N_COLUMNS; p += stride) {
                const struct hearth_columns *c = &g_columns[p];
                check(hearth_block_sums_add(&sums, c->ids, c->vals, c->totals, 1, &err), &err);
            }
            add_ns = least(add_ns, hearth_clock_mono_ns() - start);
            hearth_arena_reset(&arena);
            start = hearth_clock_mono_ns();
            check(hearth_block_sums_encode(&sums, &arena, &block, &err), &err);
            encode_ns = least(encode_ns, hearth_clock_mono_ns() - start);
            start = hearth_clock_mono_ns();
            check(hearth_block_sums_add(&sums, block.ids, block.vals, block.totals, 1, &err), &err);
            block_ns = least(block_ns, hearth_clock_mono_ns() - start);
        }
        const char *what = stride == 1 ? "any" : "multiples";
        (void)printf("sums of %s: add a profile %.0f ns; a block of %u stacks: encode %.0f ns,"
                     " add %.0f ns\n",
                     what, (double)add_ns * stride / N_COLUMNS, block.n, (double)encode_ns,
                     (double)block_ns);
        hearth_block_sums_release(&sums);
    }
    hearth_arena_release(&arena);
}

/* Two types: odd profiles have a second column of its own, even ones a multiple of the first. */
static void bench_columns(struct synth_world *world)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    static bool taken[N_WORLD];
    static uint32_t ids[N_COLUMNS][N_SAMPLES];
    static int64_t values[N_COLUMNS][N_SAMPLES * 2];
    int64_t best = 0;
    for (int p = 0; p < N_COLUMNS; p++) {
        memset(taken, 0, sizeof taken);
        for (int s = 0; s < N_SAMPLES; s++) {
            ids[p][s] = synth_draw(world, taken);
            int64_t count =
                synth_below(&world->rng, 4) > 0 ? 1 : 1 + (int64_t)synth_below(&world->rng, 40);
            values[p][2 * s] = count;
            values[p][2 * s + 1] =
                count * 10000000 + p % 2 * (int64_t)synth_below(&world->rng, 9999);
        }
        qsort(ids[p], N_SAMPLES, sizeof ids[p][0], by_value);
    }
    hearth_arena_init(&arena, 0);
    for (int round = 0; round < ROUNDS; round++) {
        hearth_arena_reset(&arena);
        int64_t start = hearth_clock_mono_ns();
        for (int p = 0; p < N_COLUMNS; p++) {
            check(
                hearth_columns_encode(ids[p], values[p], N_SAMPLES, 2, &arena, &g_columns[p], &err),
                &err);
        }
        best = least(best, hearth_clock_mono_ns() - start);
    }
    report("encode, two columns", best, N_COLUMNS);
    size_t n_bytes = 0;
    for (int p = 0; p < N_COLUMNS; p += 2) {
        n_bytes += g_columns[p].ids.n + g_columns[p].vals[0].n + g_columns[p].vals[1].n;
    }
    (void)printf("%-34s %10zu\n", "bytes of a profile", n_bytes * 2 / N_COLUMNS);
    static const char *const forms[] = {"column 0", "a multiple of it", "a column of its own"};
    for (int form = 0; form < 3; form++) {
        best = 0;
        for (int round = 0; round < ROUNDS; round++) {
            int64_t start = hearth_clock_mono_ns();
            for (int p = form == 2; p < N_COLUMNS; p += 2) {
                const struct hearth_columns *c = &g_columns[p];
                check(hearth_columns_merge(c->ids, c->vals[form > 0], c->vals[0], form == 0, g_acc,
                                           N_WORLD, &err),
                      &err);
            }
            best = least(best, hearth_clock_mono_ns() - start);
        }
        (void)printf("merge, %-27s %10.0f ns  %4.0f M samples/s\n", forms[form],
                     (double)best * 2 / N_COLUMNS, 1e3 * N_SAMPLES * N_COLUMNS / 2 / (double)best);
    }
    bench_sums();
    hearth_arena_release(&arena);
}

static enum hearth_status add_totals(void *context, const int64_t *ts_ns, const int64_t *values,
                                     size_t n, struct hearth_err *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++) {
        *(int64_t *)context += values[i] + ts_ns[i] % 2;
    }
    return HEARTH_OK;
}

/* An hour of a series that is profiled every 15 s. */
static void bench_totals(struct synth_world *world)
{
    enum {
        N = 240
    };
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_totals packed;
    static int64_t ts[N], values[N];
    int64_t best = 0, sum = 0;
    hearth_arena_init(&arena, 0);
    for (int i = 0; i < N; i++) {
        ts[i] = i * 15 * HEARTH_NS_PER_SEC + (int64_t)synth_below(&world->rng, 1000) * 1000;
        values[i] = (int64_t)synth_below(&world->rng, 2000) * 10000000;
    }
    check(hearth_totals_encode(ts, values, N, 1, 0, &arena, &packed, &err), &err);
    for (int round = 0; round < ROUNDS * 100; round++) {
        int64_t start = hearth_clock_mono_ns();
        check(hearth_totals_read(packed.ts, packed.vals[0], 0, add_totals, &sum, &err), &err);
        best = least(best, hearth_clock_mono_ns() - start);
    }
    (void)printf("%-34s %10lld ns, %zu bytes%s\n", "read 240 packed totals", (long long)best,
                 packed.ts.n + packed.vals[0].n, sum == 0 ? " (all 0)" : "");
    hearth_arena_release(&arena);
}

/* The whole world as profiles of new stacks, one chunk each; then read back. */
static void bench_cold(void)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    hearth_arena_init(&arena, 0);
    static uint32_t ids[N_SAMPLES];
    static struct hearth_buf chunks[N_PROFILES];
    for (int p = 0; p < N_PROFILES; p++) {
        struct hearth_stack_keys keys;
        struct hearth_dict_mark upto;
        check(hearth_stack_keys_make(&g_profiles[p], &arena, &keys, &err), &err);
        check(hearth_dict_writer_resolve(writer, &g_profiles[p], &keys, ids, &err), &err);
        hearth_buf_init(&chunks[p], 0);
        hearth_dict_writer_cut(writer, &chunks[p], &upto);
        hearth_dict_writer_commit(writer, upto);
    }
    int64_t apply_ns = 0, tree_ns = 0;
    uint32_t n_nodes = 0;
    size_t n_bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct hearth_dict *dict = hearth_dict_new();
        int64_t start = hearth_clock_mono_ns();
        for (int p = 0; p < N_PROFILES; p++) {
            check(hearth_dict_apply(dict, hearth_buf_view(&chunks[p]), &err), &err);
        }
        apply_ns = least(apply_ns, hearth_clock_mono_ns() - start);
        start = hearth_clock_mono_ns();
        check(hearth_dict_build_tree(dict, &err), &err);
        tree_ns = least(tree_ns, hearth_clock_mono_ns() - start);
        n_nodes = hearth_name_tree_size(dict->tree);
        n_bytes = hearth_dict_bytes(dict) + hearth_name_tree_bytes(dict->tree);
        hearth_dict_free(dict);
    }
    report("apply, whole dictionary", apply_ns, 1);
    report("name tree, whole dictionary", tree_ns, 1);
    (void)printf("%-34s %10u, %zu bytes in memory; writer %zu\n", "nodes", n_nodes, n_bytes,
                 hearth_dict_writer_bytes(writer));
    for (int p = 0; p < N_PROFILES; p++) {
        hearth_buf_release(&chunks[p]);
    }
    hearth_dict_writer_free(writer);
    hearth_arena_release(&arena);
}

int main(void)
{
    struct hearth_arena arena;
    struct synth_world world;
    hearth_arena_init(&arena, 0);
    synth_world_init(&world, 2024, 2500, 5000, N_WORLD, 40, &arena);
    for (int p = 0; p < N_PROFILES; p++) {
        g_profiles[p] = synth_profile(&world, N_SAMPLES, 2, &arena, NULL);
    }
    (void)printf("%-34s %10u strings, %u functions, %u locations, %u frames\n", "first profile",
                 g_profiles[0].n_strings, g_profiles[0].n_functions, g_profiles[0].n_locations,
                 g_profiles[0].n_stack_locs);
    bench_resolve(&world);
    bench_columns(&world);
    bench_totals(&world);
    bench_cold();
    hearth_arena_release(&arena);
    return 0;
}
