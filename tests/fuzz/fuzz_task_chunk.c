/*
 * fuzz_task_chunk.c -- hostile chunks of stack traces: decoded without a crash, for memory in proportion; what
 * comes out goes in again, comes out the same, and makes trees.
 */
#include "hearth/model/task_chunk.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void grow_trees(const struct hearth_task_chunk *chunk, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_stack_forest *forest = hearth_stack_forest_new(arena);
    struct hearth_stack_tree *trees;
    size_t n;
    require(forest != NULL);
    enum hearth_status status = hearth_stack_forest_add(forest, chunk, HEARTH_STACK_COUNT, &err);
    require(status == HEARTH_OK || status == HEARTH_OUT_OF_RANGE || status == HEARTH_NO_MEMORY);
    if (status == HEARTH_OK) {
        status = hearth_stack_forest_trees(forest, &trees, &n, &err);
        require(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
    }
    hearth_stack_forest_free(forest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena, more;
    struct hearth_task_chunk chunk, again;
    hearth_arena_init(&arena, (size + 64) * 64);
    hearth_arena_init(&more, 64u << 20);
    enum hearth_status status =
        hearth_task_chunk_decode(hearth_str_n((const char *)data, size), &arena, &chunk, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT);
    if (status == HEARTH_OK) {
        struct hearth_buf bytes;
        hearth_buf_init(&bytes, 0);
        hearth_task_chunk_encode(&chunk, &bytes);
        require(hearth_task_chunk_decode(hearth_buf_view(&bytes), &more, &again, &err) ==
                HEARTH_OK);
        require(again.n_records == chunk.n_records && again.n_cut == chunk.n_cut);
        require(hearth_hash128_eq(hearth_task_chunk_hash(&chunk), hearth_task_chunk_hash(&again)));
        grow_trees(&chunk, &more);
        hearth_buf_release(&bytes);
    }
    hearth_arena_release(&arena);
    hearth_arena_release(&more);
    return 0;
}
