/* texts.c -- dense numbers for texts of many dictionaries. */
#include "common/texts.h"

#include "hearth/base/budget.h"

void hearth_texts_init(struct hearth_texts *texts, struct hearth_arena *arena)
{
    *texts = (struct hearth_texts){.arena = arena};
    hearth_idmap_init(&texts->by_text);
}

void hearth_texts_release(struct hearth_texts *texts)
{
    hearth_idmap_release(&texts->by_text);
    hearth_budget_give(texts->arena->budget, texts->budgeted_bytes);
    hearth_texts_init(texts, texts->arena);
}

uint32_t hearth_texts_id(struct hearth_texts *texts, struct hearth_str text)
{
    /* The first text is always "". */
    if (texts->n == 0 &&
        hearth_arena_grow(texts->arena, &texts->v, &texts->cap, 1, sizeof texts->v[0])) {
        texts->v[texts->n++] = HEARTH_STR("");
    }

    if (texts->n == 0) {
        return HEARTH_IDMAP_NONE;
    }

    if (text.n == 0) {
        return 0;
    }

    struct hearth_hash128 key = hearth_hash128(text.p, text.n, hearth_hash_process_seed());
    uint32_t id = hearth_idmap_find(&texts->by_text, key);
    if (id != HEARTH_IDMAP_NONE) {
        return id;
    }

    /* A new text: its copy gets the next number. */
    bool inserted;
    struct hearth_str copy = hearth_arena_str(texts->arena, text);
    if (copy.p == NULL || texts->n >= HEARTH_IDMAP_NONE - 1 ||
        !hearth_arena_grow(texts->arena, &texts->v, &texts->cap, texts->n + 1,
                           sizeof texts->v[0]) ||
        hearth_idmap_intern(&texts->by_text, key, (uint32_t)texts->n, &inserted) ==
            HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&texts->by_text, texts->arena, &texts->budgeted_bytes)) {
        return HEARTH_IDMAP_NONE;
    }

    texts->v[texts->n] = copy;
    return (uint32_t)texts->n++;
}
