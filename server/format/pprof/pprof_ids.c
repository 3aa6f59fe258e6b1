/* pprof_ids.c -- the hash table for ids that are not 1..n. */
#include "pprof/pprof_ids.h"

#include "hearth/base/hash.h"

#include <assert.h>

static size_t find_first_slot(const struct pprof_ids *ids, uint64_t id)
{
    return (size_t)hearth_hash_mix(id, hearth_hash_process_seed()) & ids->mask;
}

enum hearth_status hearth_pprof_ids_note_odd(struct pprof_ids *ids, uint32_t index, uint64_t id,
                                             struct hearth_arena *arena, struct hearth_err *err)
{
    assert(index < ids->n);

    /* The first such id: all before it are their index + 1. */
    if (ids->ids == NULL) {
        ids->ids = hearth_arena_array(arena, ids->n, sizeof *ids->ids);
        if (ids->ids == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        for (uint32_t i = 0; i < index; i++) {
            ids->ids[i] = (uint64_t)i + 1;
        }
    }

    ids->ids[index] = id;

    return HEARTH_OK;
}

enum hearth_status hearth_pprof_ids_seal(struct pprof_ids *ids, struct hearth_arena *arena,
                                         struct hearth_err *err)
{
    if (ids->ids == NULL) {
        return HEARTH_OK;
    }

    /* At most half full. */
    size_t n_slots = 8;
    while (n_slots < (size_t)ids->n * 2) {
        n_slots *= 2;
    }

    ids->slots = hearth_arena_calloc(arena, n_slots, sizeof *ids->slots);
    if (ids->slots == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Insert all ids except 0; a repeated one is refused. */
    ids->mask = n_slots - 1;
    for (uint32_t i = 0; i < ids->n; i++) {
        uint64_t id = ids->ids[i];
        size_t slot = find_first_slot(ids, id);
        while (id != 0 && ids->slots[slot] != 0) {
            uint32_t other = ids->slots[slot] - 1;
            if (ids->ids[other] == id) {
                return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %u has the id of %s %u (%llu)",
                                   ids->what, i, ids->what, other, (unsigned long long)id);
            }
            slot = (slot + 1) & ids->mask;
        }

        if (id != 0) {
            ids->slots[slot] = i + 1;
        }
    }

    return HEARTH_OK;
}

uint32_t hearth_pprof_ids_find_odd(const struct pprof_ids *ids, uint64_t id)
{
    size_t slot = find_first_slot(ids, id);
    while (ids->slots[slot] != 0) {
        uint32_t index = ids->slots[slot] - 1;
        if (ids->ids[index] == id) {
            return index;
        }
        slot = (slot + 1) & ids->mask;
    }

    return HEARTH_NO_INDEX;
}
