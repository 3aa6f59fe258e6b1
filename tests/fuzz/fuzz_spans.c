/*
 * fuzz_spans.c -- hostile packed spans and snapshots: read without a crash; what is read and packed again reads the same,
 * and trees of it hold together.
 *
 * Input: first byte even: spans; odd: snapshots.
 */
#include "hearth/model/snapshot_trees.h"
#include "hearth/model/spans.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_BYTES ((size_t)64 << 20)

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void spans(struct hearth_str bytes, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_span *all, *same;
    size_t n, n_same;
    enum hearth_status status = hearth_spans_decode(bytes, 1000, arena, &all, &n, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT || status == HEARTH_NO_MEMORY);
    if (status != HEARTH_OK) {
        return;
    }
    struct hearth_buf again;
    hearth_buf_init(&again, 0);
    hearth_spans_encode(all, n, 1000, &again);
    status = hearth_spans_decode(hearth_buf_view(&again), 1000, arena, &same, &n_same, &err);
    require(status == HEARTH_NO_MEMORY || (status == HEARTH_OK && n_same == n));
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        require(same[i].span_id == all[i].span_id && same[i].start_ns == all[i].start_ns &&
                same[i].end_ns == all[i].end_ns && same[i].n_tags == all[i].n_tags &&
                same[i].n_refs == all[i].n_refs && same[i].n_logs == all[i].n_logs &&
                hearth_str_eq(same[i].name, all[i].name));
    }
    hearth_buf_release(&again);
}

static void check_trees(const struct hearth_snapshot_trees *trees)
{
    for (size_t t = 0; t < trees->n_trees; t++) {
        const struct hearth_snapshot_tree *tree = &trees->trees[t];
        for (size_t i = 0; i < tree->n_nodes; i++) {
            const struct hearth_snapshot_node *node = &tree->nodes[i];
            require(node->id == (int32_t)i + 1 && node->parent_id < node->id && node->count > 0);
            require(node->duration_ms >= 0);
        }
    }
}

static void snapshots(struct hearth_str bytes, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_snapshot *all, *same;
    size_t n, n_same;
    enum hearth_status status = hearth_snapshots_decode(bytes, 1, arena, &all, &n, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT || status == HEARTH_NO_MEMORY);
    if (status != HEARTH_OK) {
        return;
    }
    struct hearth_buf again;
    hearth_buf_init(&again, 0);
    hearth_snapshots_encode(all, n, &again);
    status = hearth_snapshots_decode(hearth_buf_view(&again), 1, arena, &same, &n_same, &err);
    require(status == HEARTH_NO_MEMORY || (status == HEARTH_OK && n_same == n));
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        require(all[i].is_cut == same[i].is_cut);
    }
    hearth_buf_release(&again);
    const struct hearth_snapshot_query query = {1, -1000, 1000};
    struct hearth_snapshot_trees trees;
    const struct hearth_snapshot_choice choice = {all, n, &query, 1, 100};
    if (hearth_snapshot_trees_make(&choice, arena, &trees, &err) == HEARTH_OK) {
        check_trees(&trees);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct hearth_arena arena;
    hearth_arena_init(&arena, MEMORY_BYTES);
    struct hearth_str bytes = hearth_str_n((const char *)data + 1, size - 1);
    if (data[0] % 2 == 0) {
        spans(bytes, &arena);
    } else {
        snapshots(bytes, &arena);
    }
    hearth_arena_release(&arena);
    return 0;
}
