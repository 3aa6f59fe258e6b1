/*
 * id_table.c -- open addressing, at most half full; keys are in the order of their numbers.
 *
 * The cost of a look-up is waiting for memory. A slot holds a part of its key's hash, so that other
 * keys are hardly ever read, and growing reads only the slots, in order.
 */
#include "common/id_table.h"

#include "hearth/base/budget.h"
#include "hearth/base/mem.h"

#define FIRST_CAP 256u
#define HASH_BITS 32

void hearth_id_table_init(struct hearth_id_table *table, struct hearth_budget *budget)
{
    *table = (struct hearth_id_table){.budget = budget, .seed = hearth_hash_process_seed()};
}

void hearth_id_table_release(struct hearth_id_table *table)
{
    hearth_mem_free(table->keys);
    hearth_mem_free(table->slots);
    hearth_budget_give(table->budget, table->held_bytes);
    hearth_id_table_init(table, table->budget);
}

void hearth_id_table_reset(struct hearth_id_table *table)
{
    table->n = 0;
    if (table->n_slots > 0) {
        memset(table->slots, 0, table->n_slots * sizeof table->slots[0]);
    }
}

/* Doubles the capacity. Budget of a refused attempt is returned when the table is released. */
static bool grow_id_table(struct hearth_id_table *table)
{
    size_t cap = table->cap == 0 ? FIRST_CAP : 2 * table->cap;
    size_t n_slots = 2 * cap;
    size_t bytes = cap * sizeof table->keys[0] + n_slots * sizeof table->slots[0];
    if (cap > UINT32_MAX / 4 || !hearth_budget_take(table->budget, bytes - table->held_bytes)) {
        return false;
    }

    table->held_bytes = bytes;
    struct hearth_id_key *keys = hearth_mem_reallocarray(table->keys, cap, sizeof keys[0]);
    if (keys == NULL) {
        return false;
    }

    table->keys = keys;
    uint64_t *slots = hearth_mem_calloc(n_slots, sizeof slots[0]);
    if (slots == NULL) {
        return false;
    }

    /* Put the slots into their places in the larger table. */
    for (size_t i = 0; i < table->n_slots; i++) {
        if (table->slots[i] != 0) {
            size_t at = (size_t)(table->slots[i] >> HASH_BITS) & (n_slots - 1);
            while (slots[at] != 0) {
                at = (at + 1) & (n_slots - 1);
            }
            slots[at] = table->slots[i];
        }
    }

    hearth_mem_free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    table->cap = cap;

    return true;
}

uint32_t hearth_id_table_intern(struct hearth_id_table *table, uint64_t hi, uint64_t lo,
                                bool *ret_inserted)
{
    *ret_inserted = false;
    if (HEARTH_UNLIKELY(table->n == table->cap) && !grow_id_table(table)) {
        return HEARTH_IDMAP_NONE;
    }

    /* Keys are compared only where the hashes agree. */
    uint32_t hash = hearth_id_table_hash(table, hi, lo);
    size_t mask = table->n_slots - 1, at = hash & mask;
    for (; table->slots[at] != 0; at = (at + 1) & mask) {
        const struct hearth_id_key *key = &table->keys[(uint32_t)table->slots[at] - 1];
        if (table->slots[at] >> HASH_BITS == hash && key->lo == lo && key->hi == hi) {
            return (uint32_t)table->slots[at] - 1;
        }
    }

    table->keys[table->n] = (struct hearth_id_key){hi, lo};
    table->slots[at] = (uint64_t)hash << HASH_BITS | (uint32_t)++table->n;
    *ret_inserted = true;
    return (uint32_t)(table->n - 1);
}
