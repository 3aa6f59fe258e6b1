/*
 * fuzz_task_chunk.c -- hostile chunks of stack traces: decoded without a crash, for memory in proportion; what
 * comes out goes in again, comes out the same, makes trees, and is gathered like the data of an agent.
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

/* The symbols of a stack, in the arena. */
static const struct hearth_str *find_symbols(const struct hearth_task_chunk *chunk, uint32_t stack,
                                             struct hearth_arena *arena, size_t *ret_n)
{
    const struct hearth_task_stack *s = &chunk->stacks[stack];
    struct hearth_str *symbols = hearth_arena_array(arena, s->n, sizeof symbols[0]);

    *ret_n = symbols == NULL ? 0 : s->n;
    for (size_t i = 0; i < *ret_n; i++) {
        symbols[i] = chunk->strings[chunk->frames[s->first + i]];
    }

    return symbols;
}

/* Gathers the records as an agent sends them. What is gathered is a chunk that can be stored. */
static void gather(const struct hearth_task_chunk *chunk, uint32_t max_depth,
                   struct hearth_arena *arena)
{
    const struct hearth_task_limits limits = {.max_depth = max_depth,
                                              .max_symbol_bytes = max_depth};
    struct hearth_task_builder *builder = hearth_task_builder_new(chunk->kind, &limits, arena);
    struct hearth_task_notes notes = {0};
    struct hearth_task_chunk gathered, again;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf bytes;
    bool is_complete = true;

    require(builder != NULL);
    for (uint32_t i = 0; i < chunk->n_records && i < 50; i++) {
        const struct hearth_task_record *r = &chunk->records[i];
        struct hearth_task_datum datum = {.has_kernel = r->kernel != HEARTH_NO_STACK,
                                          .has_user = r->user != HEARTH_NO_STACK,
                                          .kernel_id = r->kernel_id,
                                          .user_id = r->user_id,
                                          .count = r->count,
                                          .duration_ns = r->duration_ns};
        if (datum.has_kernel) {
            datum.kernel = find_symbols(chunk, r->kernel, arena, &datum.n_kernel);
        }
        if (datum.has_user) {
            datum.user = find_symbols(chunk, r->user, arena, &datum.n_user);
        }
        is_complete =
            hearth_task_builder_add(builder, &datum, &notes, &err) == HEARTH_OK && is_complete;
    }
    hearth_buf_init(&bytes, 0);
    hearth_task_builder_chunk(builder, &gathered);
    require(gathered.n_records + notes.n_repeated + notes.n_empty <= chunk->n_records);
    if (is_complete) {
        hearth_task_chunk_encode(&gathered, &bytes);
        enum hearth_status status =
            hearth_task_chunk_decode(hearth_buf_view(&bytes), arena, &again, &err);
        require(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
    }
    hearth_buf_release(&bytes);
    hearth_task_builder_free(builder);
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
        gather(&chunk, (uint32_t)(size % 8), &more);
        hearth_buf_release(&bytes);
    }
    hearth_arena_release(&arena);
    hearth_arena_release(&more);
    return 0;
}
