/* push_scratch.c -- memory of one profile's decoding, reused by later profiles (push_job.h). */
#include "hearth/base/mem.h"

#include "ingest/push_job.h"

#include <assert.h>

#define MAX_SCRATCH_KEPT       32
#define MAX_SCRATCH_KEPT_BYTES (8u * 1024 * 1024) /* larger inflate buffers are not kept */

static void free_scratch_memory(struct hearth_push_scratch *scratch)
{
    hearth_inflater_free(scratch->inflater);
    hearth_buf_release(&scratch->raw);
    hearth_arena_release(&scratch->arena);
    hearth_mem_free(scratch);
}

struct hearth_push_scratch *hearth_push_take_scratch(struct hearth_ingest *ingest)
{
    hearth_mutex_lock(&ingest->lock);
    struct hearth_push_scratch *scratch = ingest->free_scratch;
    if (scratch != NULL) {
        ingest->free_scratch = scratch->next;
        ingest->n_free--;
    }
    hearth_mutex_unlock(&ingest->lock);

    if (scratch != NULL) {
        return scratch;
    }

    /* The free list is empty: new memory, on the same budget. */
    scratch = hearth_mem_zalloc(sizeof *scratch);
    if (scratch == NULL) {
        return NULL;
    }

    hearth_buf_init(&scratch->raw, 0);
    hearth_arena_init(&scratch->arena, 0);
    scratch->raw.budget = scratch->arena.budget = ingest->options.budget;
    scratch->inflater = hearth_inflater_new();
    if (scratch->inflater == NULL) {
        free_scratch_memory(scratch);
        return NULL;
    }

    return scratch;
}

void hearth_push_give_scratch(struct hearth_ingest *ingest, struct hearth_push_scratch *scratch)
{
    assert(scratch != NULL);

    hearth_arena_reset(&scratch->arena);
    hearth_buf_reset(&scratch->raw);
    if (scratch->raw.cap > MAX_SCRATCH_KEPT_BYTES) {
        hearth_buf_release(&scratch->raw);
    }

    hearth_mutex_lock(&ingest->lock);
    bool keep = ingest->n_free < MAX_SCRATCH_KEPT;
    if (keep) {
        scratch->next = ingest->free_scratch;
        ingest->free_scratch = scratch;
        ingest->n_free++;
    }
    hearth_mutex_unlock(&ingest->lock);

    if (!keep) {
        free_scratch_memory(scratch);
    }
}

void hearth_ingest_drop_idle(struct hearth_ingest *ingest)
{
    assert(ingest != NULL);

    hearth_mutex_lock(&ingest->lock);
    struct hearth_push_scratch *idle = ingest->free_scratch;
    ingest->free_scratch = NULL;
    ingest->n_free = 0;
    hearth_mutex_unlock(&ingest->lock);

    while (idle != NULL) {
        struct hearth_push_scratch *next = idle->next;
        free_scratch_memory(idle);
        idle = next;
    }
}
