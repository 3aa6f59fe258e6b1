/*
 * instructions.c -- a fixed piece of each hot path, for callgrind to count: instructions POOL
 *
 * Every step runs once to warm what a server has warm (dictionary, arenas, inflater), then ROUNDS profiles of the pool are
 * counted; callgrind writes one file a step, named by it. Run by instructions.py, which divides and compares. Without
 * callgrind it does the same and counts nothing.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/format/pprof.h"
#include "hearth/model/block.h"
#include "hearth/model/columns.h"
#include "hearth/model/dict.h"
#include "hearth/selector/label_index.h"

#include "../bench/pool.h"
#include "ingest/ingest_internal.h"

#include <valgrind/callgrind.h>

enum {
    MAX_STACKS = 1 << 16,
    N_TOTALS = 240, /* instructions.py divides by these two */
    N_SERIES = 1000,
};

struct work {
    struct pool pool;
    struct hearth_inflater *inflater;
    struct hearth_dict_writer *dict;
    struct hearth_arena keep, scratch;
    uint32_t n; /* profiles */
    struct hearth_str *bodies;
    struct hearth_buf *raw;
    struct hearth_profile *profiles;
    struct hearth_stack_keys *keys;
    uint32_t **ids;
    struct hearth_push_row *rows;
    int64_t *acc;
    struct hearth_block_sums sums;
    struct hearth_totals packed;
    int64_t total;
    struct hearth_label_index *index;
    struct hearth_series_hits hits;
};

static struct hearth_err g_err = HEARTH_ERR_INIT;

static void must(enum hearth_status status)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "instructions: %s\n", g_err.msg);
        exit(1);
    }
}

static void *array(struct hearth_arena *arena, size_t n, size_t size)
{
    void *p = hearth_arena_calloc(arena, n, size);
    if (p == NULL) {
        (void)fprintf(stderr, "instructions: no memory\n");
        exit(1);
    }
    return p;
}

/* ---- the steps of a pushed profile, as server/engine/ingest/ingest.c takes them ---- */

static void inflate_body(struct work *w, uint32_t i)
{
    hearth_buf_reset(&w->raw[i]);
    must(hearth_inflate(w->inflater, HEARTH_COMPRESSION_GZIP, w->bodies[i], 64u << 20, &w->raw[i],
                        &g_err));
}

static void scan(struct work *w, uint32_t i)
{
    static const struct hearth_pprof_limits limits;
    struct hearth_pprof_notes notes = {0};
    must(hearth_pprof_decode(hearth_buf_view(&w->raw[i]), &limits, &w->keep, &w->profiles[i],
                             &notes, &g_err));
}

static void keys(struct work *w, uint32_t i)
{
    must(hearth_stack_keys_make(&w->profiles[i], &w->keep, &w->keys[i], &g_err));
}

static void resolve(struct work *w, uint32_t i)
{
    must(hearth_dict_writer_resolve(w->dict, &w->profiles[i], &w->keys[i], w->ids[i], &g_err));
}

/* Grouping by labels, sorting and encoding. */
static void encode(struct work *w, uint32_t i)
{
    static const struct hearth_labels no_labels;
    struct hearth_limits limits;
    struct hearth_split split;
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    hearth_limits_init(&limits);
    const struct hearth_push_work work = {
        .limits = &limits,
        .arena = &w->scratch,
        .keep = &w->keep,
        .discards = discards,
        .profile = &w->profiles[i],
    };
    must(hearth_split_samples(&work, &no_labels, w->keys[i].skip, &split, &g_err));
    must(hearth_group_encode(&work, &split.groups[0], w->ids[i], split.has_attrs, &w->rows[i],
                             &g_err));
    hearth_arena_reset(&w->scratch);
}

static void merge(struct work *w, uint32_t i)
{
    const struct hearth_columns *c = &w->rows[i].columns;
    must(hearth_columns_merge(c->ids, c->vals[0], c->vals[0], true, w->acc, MAX_STACKS, &g_err));
}

/* A column that is a multiple of another: CPU time. */
static void merge_multiple(struct work *w, uint32_t i)
{
    const struct hearth_columns *c = &w->rows[i].columns;
    must(hearth_columns_merge(c->ids, c->vals[1], c->vals[0], false, w->acc, MAX_STACKS, &g_err));
}

/* Both columns of a profile into the sums of a roll-up. */
static void sum(struct work *w, uint32_t i)
{
    const struct hearth_columns *c = &w->rows[i].columns;
    must(hearth_block_sums_add(&w->sums, c->ids, c->vals, c->totals, 1, &g_err));
}

/* ---- steps of a time series ---- */

static enum hearth_status add_totals(void *context, const int64_t *ts_ns, const int64_t *values,
                                     size_t n, struct hearth_err *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++) {
        *(int64_t *)context += values[i] ^ ts_ns[i];
    }
    return HEARTH_OK;
}

/* An hour of packed totals. */
static void totals(struct work *w, uint32_t i)
{
    (void)i;
    must(hearth_totals_read(w->packed.ts, w->packed.vals[0], 0, add_totals, &w->total, &g_err));
}

/* Series by a label that tells them apart. */
static void group(struct work *w, uint32_t i)
{
    static const struct hearth_str pod[] = {HEARTH_STR("pod")};
    struct hearth_label_groups groups;
    (void)i;
    must(hearth_label_index_group(w->index, &w->hits, (struct hearth_projected_names){pod, 1},
                                  &w->scratch, &groups, &g_err));
    hearth_arena_reset(&w->scratch);
}

static const struct step {
    const char *name;
    void (*run)(struct work *work, uint32_t profile);
} STEPS[] = {
    {"inflate", inflate_body},
    {"scan", scan},
    {"keys", keys},
    {"resolve", resolve},
    {"encode", encode},
    {"merge", merge},
    {"merge_multiple", merge_multiple},
    {"sum", sum},
    {"totals", totals},
    {"group", group},
};

/* A profile each 15 s, not quite; values of CPU time in steps of 10 ms. */
static void prepare_totals(struct work *w)
{
    static int64_t ts[N_TOTALS], values[N_TOTALS];
    for (int64_t i = 0; i < N_TOTALS; i++) {
        ts[i] = i * 15 * HEARTH_NS_PER_SEC + i * 7919 % 1000 * 1000;
        values[i] = i * 104729 % 2000 * 10000000;
    }
    must(hearth_totals_encode(ts, values, N_TOTALS, 1, 0, &w->keep, &w->packed, &g_err));
}

/* Series of one service with four labels, of which the pod differs. */
static void prepare_series(struct work *w)
{
    static const struct hearth_str type[] = {
        HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")};
    static const char *const names[] = {"namespace", "zone", "version", "pod"};
    struct hearth_selector all;
    hearth_selector_init(&all);
    w->index = hearth_label_index_new();
    must(hearth_label_index_add_service(w->index, 1, HEARTH_STR("thin")));
    must(hearth_label_index_add_shape(w->index, 1, type, 1));
    for (int32_t i = 1; i <= 3; i++) {
        must(hearth_label_index_add_pair(w->index, i, hearth_str_c(names[i - 1]),
                                         HEARTH_STR("same")));
    }
    for (int32_t i = 1; i <= N_SERIES; i++) {
        char pod[16];
        (void)snprintf(pod, sizeof pod, "pod-%05d", i * 7919 % N_SERIES);
        const int32_t pairs[] = {1, 2, 3, 3 + i};
        must(hearth_label_index_add_pair(w->index, 3 + i, hearth_str_c(names[3]),
                                         hearth_str_c(pod)));
        must(hearth_label_index_add_series(w->index, i, 1, 1, pairs, 4));
        must(hearth_label_index_add_hour(w->index, i, 0));
    }
    must(hearth_label_index_select(w->index, &(struct hearth_index_filter){.selector = &all},
                                   &w->keep, &w->hits, &g_err));
    if (w->hits.n != N_SERIES) {
        (void)fprintf(stderr, "instructions: %zu series instead of %d\n", w->hits.n, N_SERIES);
        exit(1);
    }
}

static void prepare(const char *path, struct work *w)
{
    pool_open(path, &w->pool);
    hearth_arena_init(&w->keep, 0);
    hearth_arena_init(&w->scratch, 0);
    w->inflater = hearth_inflater_new();
    w->dict = hearth_dict_writer_new();
    w->n = w->pool.head->n_profiles;
    w->bodies = array(&w->keep, w->n, sizeof w->bodies[0]);
    w->raw = array(&w->keep, w->n, sizeof w->raw[0]);
    w->profiles = array(&w->keep, w->n, sizeof w->profiles[0]);
    w->keys = array(&w->keep, w->n, sizeof w->keys[0]);
    w->ids = array(&w->keep, w->n, sizeof w->ids[0]);
    w->rows = array(&w->keep, w->n, sizeof w->rows[0]);
    w->acc = array(&w->keep, MAX_STACKS, sizeof w->acc[0]);
    must(hearth_block_sums_init(&w->sums, 2, 0, &g_err));
    for (uint32_t i = 0; i < w->n; i++) {
        const struct pool_entry *entry = pool_entry(&w->pool, 0, i);
        size_t n = entry->n_bytes + POOL_TAIL_BYTES;
        char *body = array(&w->keep, n, 1);
        memcpy(body, w->pool.bytes + entry->offset, entry->n_bytes);
        pool_tail(&w->pool, entry, 1, (unsigned char *)body + entry->n_bytes);
        w->bodies[i] = hearth_str_n(body, n);
        w->ids[i] = array(&w->keep, entry->n_samples, sizeof w->ids[i][0]);
        hearth_buf_init(&w->raw[i], 0);
    }
}

int main(int argc, char **argv)
{
    static struct work work;
    if (argc != 2) {
        (void)fprintf(stderr, "instructions POOL\n");
        return 2;
    }
    prepare(argv[1], &work);
    prepare_totals(&work);
    prepare_series(&work);
    for (size_t s = 0; s < sizeof STEPS / sizeof STEPS[0]; s++) {
        for (uint32_t i = 0; i < work.n; i++) {
            STEPS[s].run(&work, i);
        }
        CALLGRIND_ZERO_STATS;
        CALLGRIND_TOGGLE_COLLECT;
        for (uint32_t i = 0; i < work.n; i++) {
            STEPS[s].run(&work, i);
        }
        CALLGRIND_TOGGLE_COLLECT;
        CALLGRIND_DUMP_STATS_AT(STEPS[s].name);
    }
    uint64_t n_samples = 0;
    for (uint32_t i = 0; i < work.n; i++) {
        n_samples += work.rows[i].columns.n;
    }
    (void)printf("%u profiles, %llu samples\n", work.n, (unsigned long long)n_samples);
    return 0;
}
