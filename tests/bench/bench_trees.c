/*
 * bench_trees.c -- a flame graph over the dictionaries of seven days: what it costs to load them,
 * to keep them, and to make one tree of their sums.
 *
 *   bench_trees [stacks per dictionary, 20000]
 *
 * One program of mean depth 40; each day's dictionary has 95 % of its stacks in common with the
 * day before, and the query touches all of them. Prints the best of several rounds.
 */
#include "hearth/base/clock.h"

#include "select/query_internal.h"
#include "synth_profile.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    N_DAYS = 7,
    ROUNDS = 9,
    MAX_NODES = 8192
};

static struct hearth_buf g_chunks[N_DAYS];
static struct hearth_dict_sums g_sums[N_DAYS];

static void check(enum hearth_status status, const struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "bench_trees: %s\n", err->msg);
        exit(1);
    }
}

static int64_t least(int64_t best_ns, int64_t ns)
{
    return best_ns == 0 || ns < best_ns ? ns : best_ns;
}

static void report(const char *what, int64_t ns)
{
    (void)printf("%-44s %10.3f ms\n", what, (double)ns / 1e6);
}

/* The dictionary of a day as one chunk, and a sum for each of its stacks. */
static void make_day(const struct synth_world *world, int day, uint32_t n_stacks)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_stack_keys keys;
    struct hearth_dict_mark upto;
    hearth_arena_init(&arena, 0);
    struct synth_world part = *world;
    part.rng += (uint64_t)day;
    part.stack_first += (uint32_t)day * (n_stacks / 20);
    part.n_stacks = n_stacks;
    struct hearth_profile p = synth_profile(&part, n_stacks, 1, &arena, NULL);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    uint32_t *ids = synth_array(&arena, n_stacks, sizeof *ids);
    check(hearth_stack_keys_make(&p, &arena, &keys, &err), &err);
    check(hearth_dict_writer_resolve(writer, &p, &keys, ids, &err), &err);
    struct hearth_dict_sums *sums = &g_sums[day];
    sums->bound = hearth_dict_writer_stacks(writer);
    sums->acc = calloc(sums->bound, sizeof sums->acc[0]);
    for (uint32_t s = 0; sums->acc != NULL && s < n_stacks; s++) {
        sums->acc[ids[s]] += p.values[s] * 10000000;
    }
    hearth_buf_init(&g_chunks[day], 0);
    hearth_dict_writer_cut(writer, &g_chunks[day], &upto);
    hearth_dict_writer_free(writer);
    hearth_arena_release(&arena);
}

static void load_days(struct hearth_dict **dicts, int64_t *first_ns, int64_t *later_ns)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_name_tree *names = hearth_name_tree_new();
    for (int d = 0; d < N_DAYS; d++) {
        int64_t start = hearth_clock_mono_ns();
        dicts[d] = hearth_dict_new();
        hearth_dict_use_tree(dicts[d], names);
        check(hearth_dict_apply(dicts[d], hearth_buf_view(&g_chunks[d]), &err), &err);
        check(hearth_dict_build_tree(dicts[d], &err), &err);
        int64_t *best = d == 0 ? first_ns : later_ns;
        *best = least(*best, hearth_clock_mono_ns() - start);
    }
    hearth_name_tree_unref(names);
}

struct times {
    int64_t add, finish, seal, graph;
};

static void query(struct hearth_dict *const *dicts, int n_days, struct times *best,
                  size_t *ret_n_nodes)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena scratch, arena;
    struct hearth_tree_merge merge;
    struct hearth_merge_spec spec = {0};
    struct hearth_stacktree tree;
    struct hearth_flamegraph graph;
    hearth_arena_init(&scratch, 0);
    hearth_arena_init(&arena, 0);
    hearth_tree_merge_init(&merge, &scratch);
    hearth_stacktree_init(&tree, &arena);
    int64_t at[5] = {hearth_clock_mono_ns()};
    for (int d = 0; d < n_days; d++) {
        check(hearth_tree_merge_add(&merge, dicts[d], &g_sums[d], &err), &err);
    }
    at[1] = hearth_clock_mono_ns();
    check(hearth_tree_merge_finish(&merge, &spec, MAX_NODES, &tree, &err), &err);
    at[2] = hearth_clock_mono_ns();
    check(hearth_stacktree_seal(&tree, &err), &err);
    at[3] = hearth_clock_mono_ns();
    check(hearth_flamegraph_make(&tree, MAX_NODES, &arena, &graph, &err), &err);
    at[4] = hearth_clock_mono_ns();
    *best = (struct times){least(best->add, at[1] - at[0]), least(best->finish, at[2] - at[1]),
                           least(best->seal, at[3] - at[2]), least(best->graph, at[4] - at[3])};
    *ret_n_nodes = tree.n_nodes;
    hearth_tree_merge_release(&merge);
    hearth_stacktree_release(&tree);
    hearth_arena_release(&scratch);
    hearth_arena_release(&arena);
}

int main(int argc, char **argv)
{
    uint32_t n_stacks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20000;
    struct hearth_arena arena;
    struct synth_world world;
    struct hearth_dict *dicts[N_DAYS];
    int64_t first_ns = 0, later_ns = 0;
    hearth_arena_init(&arena, 0);
    synth_world_init(&world, 2024, n_stacks / 8, n_stacks / 4,
                     n_stacks + n_stacks / 20 * (N_DAYS - 1), 40, &arena);
    for (int d = 0; d < N_DAYS; d++) {
        make_day(&world, d, n_stacks);
    }
    hearth_arena_release(&arena);
    for (int round = 0; round < ROUNDS; round++) {
        load_days(dicts, &first_ns, &later_ns);
        for (int d = 0; round + 1 < ROUNDS && d < N_DAYS; d++) {
            hearth_dict_free(dicts[d]);
        }
    }
    size_t n_bytes = hearth_name_tree_bytes(dicts[0]->tree);
    (void)printf("%-44s %10u nodes, %zu bytes\n", "name tree",
                 hearth_name_tree_size(dicts[0]->tree), n_bytes);
    for (int d = 0; d < N_DAYS; d++) {
        n_bytes += hearth_dict_bytes(dicts[d]);
    }
    report("load, first dictionary", first_ns);
    report("load, one more", later_ns);
    (void)printf("%-44s %10.1f MB\n", "memory of seven and their tree", (double)n_bytes / 1e6);
    for (int n = 1; n <= N_DAYS; n += N_DAYS - 1) {
        struct times best = {0};
        size_t n_nodes = 0;
        for (int round = 0; round < ROUNDS; round++) {
            query(dicts, n, &best, &n_nodes);
        }
        (void)printf("%d dictionaries, %zu nodes\n", n, n_nodes);
        report("  sums to the name tree", best.add);
        report("  to a tree", best.finish);
        report("  totals", best.seal);
        report("  flame graph", best.graph);
        report("  together", best.add + best.finish + best.seal + best.graph);
    }
    for (int d = 0; d < N_DAYS; d++) {
        hearth_dict_free(dicts[d]);
        hearth_buf_release(&g_chunks[d]);
        free(g_sums[d].acc);
    }
    return 0;
}
