/* jfr_pools.c -- the constants of a chunk, by type and key. */
#include "jfr/jfr_pools.h"

#include "hearth/base/budget.h"

#include <assert.h>

static const char *const g_pool_types[JFR_N_POOLS] = {
    [JFR_POOL_STACK_TRACE] = "jdk.types.StackTrace",
    [JFR_POOL_METHOD] = "jdk.types.Method",
    [JFR_POOL_CLASS] = "java.lang.Class",
    [JFR_POOL_SYMBOL] = "jdk.types.Symbol",
    [JFR_POOL_THREAD] = "java.lang.Thread",
    [JFR_POOL_STATE] = "jdk.types.ThreadState",
    [JFR_POOL_STRING] = "java.lang.String",
};

void hearth_jfr_pools_init(struct jfr_pools *pools, const struct jfr_types *types,
                           struct hearth_arena *arena)
{
    *pools = (struct jfr_pools){.types = types, .arena = arena};
    for (size_t i = 0; i < JFR_N_POOLS; i++) {
        pools->pools[i].type = hearth_jfr_type_of_name(types, g_pool_types[i]);
        hearth_idmap_init(&pools->pools[i].by_key);
    }
}

void hearth_jfr_pools_release(struct jfr_pools *pools)
{
    for (size_t i = 0; i < JFR_N_POOLS; i++) {
        hearth_idmap_release(&pools->pools[i].by_key);
        hearth_budget_give(pools->arena->budget, pools->pools[i].charged_bytes);
    }
}

static struct hearth_hash128 key_of(uint64_t key)
{
    return (struct hearth_hash128){hearth_hash_mix(key, hearth_hash_process_seed()), key};
}

static struct jfr_pool *pool_of(struct jfr_pools *pools, const struct jfr_type *type)
{
    for (size_t i = 0; i < JFR_N_POOLS; i++) {
        if (pools->pools[i].type == type) {
            return &pools->pools[i];
        }
    }
    return NULL;
}

/* Notes where a constant begins; false: no memory. */
static bool note_constant(struct jfr_pools *pools, struct jfr_pool *pool, uint64_t key,
                          uint64_t offset)
{
    size_t limit = pools->arena->limit_bytes;
    bool fresh;

    /* The map grows outside the arena, whose limit applies to it, too. */
    if (pool->n >= JFR_NO_CONSTANT - 1 ||
        (limit != 0 && hearth_idmap_bytes(&pool->by_key) > limit) ||
        !hearth_arena_grow(pools->arena, &pool->offsets, &pool->cap, pool->n + 1,
                           sizeof *pool->offsets)) {
        return false;
    }

    uint32_t i = hearth_idmap_intern(&pool->by_key, key_of(key), (uint32_t)pool->n, &fresh);
    if (i == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&pool->by_key, pools->arena, &pool->charged_bytes)) {
        return false;
    }

    pool->n += fresh;
    pool->offsets[i] = offset;

    return true;
}

/* Adds the constants of one pool of a checkpoint; false: no memory. */
static bool add_pool(struct jfr_pools *pools, const struct jfr_type *type, struct jfr_cursor *c)
{
    const uint8_t *begin = (const uint8_t *)pools->types->chunk.p;
    struct jfr_pool *pool = pool_of(pools, type);

    for (uint64_t n = jfr_int(c); n > 0 && !c->failed; n--) {
        uint64_t key = jfr_int(c);
        if (pool != NULL && !note_constant(pools, pool, key, (uint64_t)(c->at - begin))) {
            return false;
        }
        hearth_jfr_read_value(pools->types, type, c, NULL);
    }

    return true;
}

enum hearth_status hearth_jfr_pools_add(struct jfr_pools *pools, struct jfr_cursor c,
                                        struct hearth_err *err)
{
    /* Start, duration, distance to the previous checkpoint, kind. */
    for (int i = 0; i < 3; i++) {
        (void)jfr_int(&c);
    }
    (void)jfr_byte(&c);

    for (uint64_t n = jfr_int(&c); n > 0 && !c.failed; n--) {
        uint64_t id = jfr_int(&c);
        const struct jfr_type *type = hearth_jfr_type_of_id(pools->types, id);
        if (type == NULL && !c.failed) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "a checkpoint has constants of the type id %llu, which the "
                               "metadata does not declare",
                               (unsigned long long)id);
        }
        if (!c.failed && !add_pool(pools, type, &c)) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the constants of a recording");
        }
    }

    return c.failed ? HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a checkpoint is damaged")
                    : HEARTH_OK;
}

uint32_t hearth_jfr_pool_find(const struct jfr_pools *pools, enum jfr_pool_id pool, uint64_t key)
{
    uint32_t i = hearth_idmap_find(&pools->pools[pool].by_key, key_of(key));
    return i == HEARTH_IDMAP_NONE ? JFR_NO_CONSTANT : i;
}

bool hearth_jfr_pool_read(const struct jfr_pools *pools, enum jfr_pool_id pool, uint32_t i,
                          struct jfr_values *values)
{
    const struct jfr_pool *p = &pools->pools[pool];
    assert(i < p->n);

    struct jfr_cursor c = hearth_jfr_at(pools->types->chunk, p->offsets[i]);
    hearth_jfr_read_value(pools->types, p->type, &c, values);

    return !c.failed;
}

/* The text at an offset; a constant is followed once, since texts of the pool are no constants. */
static struct hearth_str read_text(const struct jfr_pools *pools, uint64_t offset,
                                   uint64_t *ret_constant, enum jfr_text_kind *ret_kind)
{
    struct jfr_cursor c = hearth_jfr_at(pools->types->chunk, offset);
    struct hearth_str text;

    *ret_kind = hearth_jfr_text(&c, pools->arena, &text, ret_constant);

    return text;
}

struct hearth_str hearth_jfr_string(const struct jfr_pools *pools, uint64_t key)
{
    enum jfr_text_kind kind;
    struct jfr_values values;

    uint32_t i = hearth_jfr_pool_find(pools, JFR_POOL_STRING, key);
    if (i == JFR_NO_CONSTANT || !hearth_jfr_pool_read(pools, JFR_POOL_STRING, i, &values) ||
        !jfr_has(&values, JFR_SLOT_STRING)) {
        return HEARTH_STR("");
    }

    return read_text(pools, values.v[JFR_SLOT_STRING], &key, &kind);
}

struct hearth_str hearth_jfr_text_at(const struct jfr_pools *pools, uint64_t offset)
{
    enum jfr_text_kind kind;
    uint64_t key;
    struct hearth_str text = read_text(pools, offset, &key, &kind);

    return kind == JFR_TEXT_CONSTANT ? hearth_jfr_string(pools, key) : text;
}

struct hearth_str hearth_jfr_symbol(const struct jfr_pools *pools, uint64_t key)
{
    uint32_t i = hearth_jfr_pool_find(pools, JFR_POOL_SYMBOL, key);
    struct jfr_values values;

    if (i == JFR_NO_CONSTANT || !hearth_jfr_pool_read(pools, JFR_POOL_SYMBOL, i, &values) ||
        !jfr_has(&values, JFR_SLOT_STRING)) {
        return HEARTH_STR("");
    }

    return hearth_jfr_text_at(pools, values.v[JFR_SLOT_STRING]);
}
