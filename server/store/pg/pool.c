/*
 * pool.c -- a bounded set of connections.
 *
 * Threads wait for a connection on a condition variable, in no guaranteed order and at most 10 s.
 */
#include "pg/pool.h"

#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "pg/store_state.h"

#include <assert.h>

#define TAKE_LIMIT_NS      (10 * HEARTH_NS_PER_SEC)
#define WAIT_STEP_NS       (50 * HEARTH_NS_PER_MS)
#define CONNECT_TIMEOUT_MS 5000

struct slot {
    struct hearth_pg pg;
    bool taken;
};

struct hearth_pool {
    struct hearth_mutex lock;  /* guards slots[].taken; a taken slot's pg belongs to its taker */
    pthread_cond_t given;      /* with lock: a connection was given back */
    struct hearth_secret *url; /* copy; slots[].pg.url point to it */
    _Atomic(const char *) read_only;                   /* NULL: writing is allowed */
    _Atomic(const struct hearth_pg_address *) address; /* NULL: that of the URL */
    unsigned n_slots;
    struct slot slots[];
};

enum hearth_status hearth_pool_new(const struct hearth_secret *url, unsigned max_connections,
                                   struct hearth_pool **ret_pool, struct hearth_err *err)
{
    assert(url != NULL && max_connections > 0);

    struct hearth_pool *pool =
        hearth_mem_zalloc(sizeof *pool + max_connections * sizeof pool->slots[0]);
    struct hearth_secret *copy = NULL;
    if (pool == NULL || hearth_secret_copy(url, &copy, err) != HEARTH_OK) {
        hearth_mem_free(pool);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the connection pool");
    }

    pool->url = copy;
    pool->n_slots = max_connections;
    for (unsigned i = 0; i < max_connections; i++) {
        pool->slots[i].pg.url = copy;
    }

    hearth_mutex_init(&pool->lock, HEARTH_RANK_POOL, "pool.lock");
    hearth_cond_init(&pool->given);
    hearth_metric_add(HEARTH_M_PG_POOL, max_connections);
    *ret_pool = pool;

    return HEARTH_OK;
}

void hearth_pool_set_lineage(struct hearth_pool *pool, struct hearth_lineage *lineage)
{
    for (unsigned i = 0; i < pool->n_slots; i++) {
        assert(!pool->slots[i].taken);
        pool->slots[i].pg.lineage = lineage;
    }
}

void hearth_pool_set_timeout(struct hearth_pool *pool, int64_t timeout_ms)
{
    for (unsigned i = 0; i < pool->n_slots; i++) {
        assert(!pool->slots[i].taken);
        pool->slots[i].pg.timeout_ms = timeout_ms;
    }
}

void hearth_pool_set_read_only(struct hearth_pool *pool, const char *reason)
{
    atomic_store(&pool->read_only, reason);
}

void hearth_pool_set_address(struct hearth_pool *pool, const struct hearth_pg_address *address)
{
    atomic_store(&pool->address, address);
}

void hearth_pool_free(struct hearth_pool *pool)
{
    if (pool == NULL) {
        return;
    }

    hearth_metric_add(HEARTH_M_PG_POOL, -(int64_t)pool->n_slots);
    for (unsigned i = 0; i < pool->n_slots; i++) {
        HEARTH_ASSERT(!pool->slots[i].taken);
        hearth_pg_close(&pool->slots[i].pg);
    }

    (void)pthread_cond_destroy(&pool->given);
    hearth_mutex_destroy(&pool->lock);
    hearth_secret_free(pool->url);
    hearth_mem_free(pool);
}

/*
 * Return a free slot, one with a connection if there is any; NULL if all are taken. The caller
 * holds pool->lock.
 */
static struct slot *find_free_slot(struct hearth_pool *pool)
{
    struct slot *found = NULL;

    hearth_mutex_assert_held(&pool->lock);
    for (unsigned i = 0; i < pool->n_slots; i++) {
        struct slot *slot = &pool->slots[i];
        if (!slot->taken && (found == NULL || (found->pg.conn == NULL && slot->pg.conn != NULL))) {
            found = slot;
        }
    }

    return found;
}

/* Mark a free slot as taken; wait for one in steps, so that a cancellation is noticed. */
static enum hearth_status take_slot(struct hearth_pool *pool, struct hearth_cancel *cancel,
                                    struct slot **ret_slot, struct hearth_err *err)
{
    int64_t began_ns = hearth_clock_mono_ns(), until_ns = began_ns + TAKE_LIMIT_NS;
    enum hearth_status status = HEARTH_OK;
    struct slot *slot = NULL;

    hearth_mutex_lock(&pool->lock);
    while ((slot = find_free_slot(pool)) == NULL) {
        status = hearth_cancel_check(cancel, err);
        int64_t now_ns = hearth_clock_mono_ns();
        if (status == HEARTH_OK && now_ns >= until_ns) {
            status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                                 "all %u database connections were busy for 10 s; try again, or "
                                 "raise --readers",
                                 pool->n_slots);
        }

        if (status != HEARTH_OK) {
            break;
        }

        (void)hearth_mutex_wait_until(&pool->lock, &pool->given, now_ns + WAIT_STEP_NS);
    }

    if (slot != NULL) {
        slot->taken = true;
        *ret_slot = slot;
        hearth_metric_add(HEARTH_M_PG_POOL_TAKEN, 1);
    }

    hearth_mutex_unlock(&pool->lock);
    hearth_metric_observe_ns(HEARTH_M_PG_POOL_WAIT, hearth_str_n(NULL, 0),
                             hearth_clock_mono_ns() - began_ns);

    return status;
}

/* Set what holds for the taker of a slot. Needs no lock: the slot is this thread's. */
static void equip_slot(struct hearth_pool *pool, struct slot *slot, struct hearth_cancel *cancel)
{
    slot->pg.cancel = cancel;
    slot->pg.read_only = atomic_load(&pool->read_only);
    hearth_pg_set_address(&slot->pg, atomic_load(&pool->address));
}

enum hearth_status hearth_pool_take_free(struct hearth_pool *pool, struct hearth_cancel *cancel,
                                         const struct hearth_pg_doubt *doubt, bool may_connect,
                                         struct hearth_pg **ret_pg, struct hearth_err *err)
{
    hearth_mutex_lock(&pool->lock);
    struct slot *slot = find_free_slot(pool);
    if (slot != NULL) {
        slot->taken = true;
        hearth_metric_add(HEARTH_M_PG_POOL_TAKEN, 1);
    }
    hearth_mutex_unlock(&pool->lock);
    *ret_pg = NULL;
    if (slot == NULL) {
        return HEARTH_OK;
    }

    equip_slot(pool, slot, cancel);
    slot->pg.doubt = doubt;
    bool is_open = hearth_pg_alive(&slot->pg);
    enum hearth_status status =
        is_open || !may_connect ? HEARTH_OK : hearth_pg_connect(&slot->pg, CONNECT_TIMEOUT_MS, err);
    if (is_open || (may_connect && status == HEARTH_OK)) {
        *ret_pg = &slot->pg;
    } else {
        hearth_pool_give(pool, &slot->pg);
    }

    return status;
}

enum hearth_status hearth_pool_take(struct hearth_pool *pool, struct hearth_cancel *cancel,
                                    struct hearth_pg **ret_pg, struct hearth_err *err)
{
    struct slot *slot = NULL;

    HEARTH_TRY(take_slot(pool, cancel, &slot, err));

    equip_slot(pool, slot, cancel);
    if (!hearth_pg_alive(&slot->pg)) {
        enum hearth_status status = hearth_pg_connect(&slot->pg, CONNECT_TIMEOUT_MS, err);
        if (status != HEARTH_OK) {
            hearth_pool_give(pool, &slot->pg);
            return status;
        }
    }

    *ret_pg = &slot->pg;

    return HEARTH_OK;
}

void hearth_pool_give(struct hearth_pool *pool, struct hearth_pg *pg)
{
    struct slot *slot = HEARTH_CONTAINER_OF(pg, struct slot, pg);
    assert(slot >= pool->slots && slot < pool->slots + pool->n_slots);

    pg->cancel = NULL;
    pg->doubt = NULL;
    pg->wall = NULL;
    if (!hearth_pg_usable(pg)) { /* broken, or in a transaction */
        hearth_pg_close(pg);
    }

    hearth_mutex_lock(&pool->lock);
    assert(slot->taken);
    slot->taken = false;
    hearth_metric_add(HEARTH_M_PG_POOL_TAKEN, -1);
    (void)pthread_cond_signal(&pool->given);
    hearth_mutex_unlock(&pool->lock);
}
