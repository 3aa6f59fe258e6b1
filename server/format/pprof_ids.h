/*
 * pprof_ids.h -- from the ids that a profile gives its mappings, functions and locations to their
 * indices, private to the pprof decoder.
 *
 * Most writers number 1..n in order: then an id is its index + 1 and nothing is stored. The first
 * other id starts a list of ids, and sealing makes a hash table of it (open addressing, at most
 * half full, keyed with the process seed, so that nobody can prepare collisions).
 *
 * Shapes: n entries, noted in order of index; at most 20 bytes of arena each.
 */
#ifndef HEARTH_FORMAT_PPROF_IDS_H
#define HEARTH_FORMAT_PPROF_IDS_H

#include "hearth/base/arena.h"
#include "hearth/model/profile.h"

struct pprof_ids {
    const char *what; /* of what these are the ids, for messages */
    uint32_t n;
    uint64_t *ids;   /* of all n; NULL while every id is its index + 1 */
    uint32_t *slots; /* index + 1; 0: empty */
    size_t mask;     /* slots - 1 */
};

/* NO_MEMORY or OK. Use pprof_ids_note. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pprof_ids_note_odd(struct pprof_ids *ids, uint32_t index, uint64_t id,
                                             struct hearth_arena *arena, struct hearth_err *err);

/* When all are noted: make finding possible. INVALID_ARGUMENT for an id given twice; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pprof_ids_seal(struct pprof_ids *ids, struct hearth_arena *arena,
                                         struct hearth_err *err);

/* Use pprof_ids_find. */
uint32_t hearth_pprof_ids_find_odd(const struct pprof_ids *ids, uint64_t id);

/* Entry `index` has this id. Id 0 means none and is never found. */
HEARTH_MUST_CHECK HEARTH_ALWAYS_INLINE enum hearth_status
pprof_ids_note(struct pprof_ids *ids, uint32_t index, uint64_t id, struct hearth_arena *arena,
               struct hearth_err *err)
{
    if (HEARTH_LIKELY(ids->ids == NULL && id == (uint64_t)index + 1)) {
        return HEARTH_OK;
    }
    return hearth_pprof_ids_note_odd(ids, index, id, arena, err);
}

/* The index, or HEARTH_NO_INDEX. */
HEARTH_ALWAYS_INLINE uint32_t pprof_ids_find(const struct pprof_ids *ids, uint64_t id)
{
    if (HEARTH_LIKELY(ids->ids == NULL)) {
        return id - 1 < ids->n ? (uint32_t)(id - 1) : HEARTH_NO_INDEX;
    }
    return hearth_pprof_ids_find_odd(ids, id);
}

#endif
