/*
 * jfr_pools.h -- the constants of a chunk: stack traces, methods, classes, symbols, threads
 * (private to the JFR reader).
 *
 * Checkpoint events hold pools of constants, by type and key. Reading one only notes where each
 * constant begins; a constant is decoded when something refers to it. If a key is defined again,
 * the later definition is used.
 *
 * Ownership: offsets live in an arena.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_JFR_POOLS_H
#define HEARTH_FORMAT_JFR_POOLS_H

#include "jfr/jfr_types.h"

enum jfr_pool_id {
    JFR_POOL_STACK_TRACE,
    JFR_POOL_METHOD,
    JFR_POOL_CLASS,
    JFR_POOL_SYMBOL,
    JFR_POOL_THREAD,
    JFR_POOL_STATE,
    JFR_POOL_STRING,
    JFR_N_POOLS,
};

#define JFR_NO_CONSTANT UINT32_MAX

struct jfr_pool {
    const struct jfr_type *type; /* NULL: the chunk has no such type */
    struct hearth_idmap by_key;
    uint64_t *offsets; /* of constants, in the chunk */
    size_t n, cap;
    size_t charged_bytes; /* of by_key, to the budget of the arena */
};

struct jfr_pools {
    const struct jfr_types *types;
    struct hearth_arena *arena;
    struct jfr_pool pools[JFR_N_POOLS];
};

/* Release the pools in any case. */
void hearth_jfr_pools_init(struct jfr_pools *pools, const struct jfr_types *types,
                           struct hearth_arena *arena);
void hearth_jfr_pools_release(struct jfr_pools *pools);

/* Adds the constants of a checkpoint event; c is after the event's size and type. */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_pools_add(struct jfr_pools *pools, struct jfr_cursor c,
                                        struct hearth_err *err);

/* The index of a constant, below pools[pool].n, or JFR_NO_CONSTANT. */
uint32_t hearth_jfr_pool_find(const struct jfr_pools *pools, enum jfr_pool_id pool, uint64_t key);

/* Reads the constant with an index; false if its bytes are damaged. */
HEARTH_MUST_CHECK bool hearth_jfr_pool_read(const struct jfr_pools *pools, enum jfr_pool_id pool,
                                            uint32_t i, struct jfr_values *values);

/* The text at an offset of the chunk; "" if it is damaged or its constant is absent. */
struct hearth_str hearth_jfr_text_at(const struct jfr_pools *pools, uint64_t offset);
/* The text of a constant of java.lang.String; "" if there is no such constant. */
struct hearth_str hearth_jfr_string(const struct jfr_pools *pools, uint64_t key);
/* The text of a symbol; "" if there is no such symbol. */
struct hearth_str hearth_jfr_symbol(const struct jfr_pools *pools, uint64_t key);

#endif
