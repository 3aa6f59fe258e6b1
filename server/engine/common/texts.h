/*
 * texts.h -- numbers the texts of many dictionaries, each text once (private to the engine).
 *
 * Texts are copied to the arena, whose budget also counts the map.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_TEXTS_H
#define HEARTH_ENGINE_TEXTS_H

#include "hearth/base/arena.h"
#include "hearth/base/hash.h"

struct hearth_texts {
    struct hearth_arena *arena;
    struct hearth_str *v; /* [n] */
    size_t n, cap;
    struct hearth_idmap by_text;
    size_t budgeted_bytes; /* of by_text */
};

void hearth_texts_init(struct hearth_texts *texts, struct hearth_arena *arena); /* arena is kept */
void hearth_texts_release(struct hearth_texts *texts);
/* The number of a text; "" always has number 0. HEARTH_IDMAP_NONE: memory was refused. */
uint32_t hearth_texts_id(struct hearth_texts *texts, struct hearth_str text);

#endif
