/*
 * texts.h -- texts of many dictionaries, each once, by dense numbers (private to the engine).
 *
 * Texts are copied to the arena; the budget of the arena counts the map, too.
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_TEXTS_H
#define HEARTH_ENGINE_TEXTS_H

#include "hearth/base/arena.h"
#include "hearth/base/hash.h"

struct hearth_texts {
    struct hearth_arena *arena;
    struct hearth_str *v;
    size_t n, cap;
    struct hearth_idmap by_text;
    size_t budgeted_bytes; /* of the map */
};

void hearth_texts_init(struct hearth_texts *texts, struct hearth_arena *arena); /* arena is kept */
void hearth_texts_release(struct hearth_texts *texts);
/* The number of a text; "" is 0 whenever it is asked for first. HEARTH_IDMAP_NONE: memory was refused. */
uint32_t hearth_texts_id(struct hearth_texts *texts, struct hearth_str text);

/*
 * Account for the growth of a map of a query: *held is what was taken for it so far. False: the budget
 * refuses.
 */
HEARTH_MUST_CHECK bool hearth_idmap_account(const struct hearth_idmap *map,
                                            struct hearth_arena *arena, size_t *held);

/* Room for `want` elements of `size` in an array of the arena. False: memory was refused. */
HEARTH_MUST_CHECK bool hearth_arena_grow(struct hearth_arena *arena, void *arr, size_t *cap,
                                         size_t want, size_t size);

#endif
