/*
 * pprof_ids.h -- maps the ids of mappings, functions and locations in a profile to their indices
 * (private to the pprof decoder).
 *
 * Most writers number 1..n in order: then an id is its index + 1 and nothing is stored. The first
 * other id starts a list of ids, and sealing makes a hash table of it (open addressing, at most
 * half full, keyed with the seed of the process, so that clients cannot prepare collisions).
 *
 * Use: note n ids in the order of their indices, seal, find. At most 20 bytes of the arena per
 *      entry.
 */
#ifndef HEARTH_FORMAT_PPROF_IDS_H
#define HEARTH_FORMAT_PPROF_IDS_H

#include "hearth/base/arena.h"
#include "hearth/model/profile.h"

struct pprof_ids {
    const char *what; /* kind of object, for error messages */
    uint32_t n;
    uint64_t *ids;   /* all n ids; NULL as long as every id is its index + 1 */
    uint32_t *slots; /* index + 1; 0: empty */
    size_t mask;     /* slots - 1 */
};

/* The slow path of pprof_ids_note, which callers use instead. OK or NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pprof_ids_note_odd(struct pprof_ids *ids, uint32_t index, uint64_t id,
                                             struct hearth_arena *arena, struct hearth_err *err);

/* Call when all ids are noted, before finding. INVALID_ARGUMENT for a repeated id; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pprof_ids_seal(struct pprof_ids *ids, struct hearth_arena *arena,
                                         struct hearth_err *err);

/* The slow path of pprof_ids_find, which callers use instead. */
uint32_t hearth_pprof_ids_find_odd(const struct pprof_ids *ids, uint64_t id);

/* Note the id of entry `index`. Id 0 means that the entry has no id; it is never found. */
HEARTH_MUST_CHECK HEARTH_ALWAYS_INLINE enum hearth_status
pprof_ids_note(struct pprof_ids *ids, uint32_t index, uint64_t id, struct hearth_arena *arena,
               struct hearth_err *err)
{
    if (HEARTH_LIKELY(ids->ids == NULL && id == (uint64_t)index + 1)) {
        return HEARTH_OK;
    }
    return hearth_pprof_ids_note_odd(ids, index, id, arena, err);
}

/* The index of the entry with this id, or HEARTH_NO_INDEX. */
HEARTH_ALWAYS_INLINE uint32_t pprof_ids_find(const struct pprof_ids *ids, uint64_t id)
{
    if (HEARTH_LIKELY(ids->ids == NULL)) {
        return id - 1 < ids->n ? (uint32_t)(id - 1) : HEARTH_NO_INDEX;
    }
    return hearth_pprof_ids_find_odd(ids, id);
}

#endif
