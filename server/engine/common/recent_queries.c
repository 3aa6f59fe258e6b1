/* recent_queries.c -- rings of copied queries (contract: hearth/engine/recent_queries.h). */
#include "hearth/engine/recent_queries.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"

#include "common/call_internal.h"
#include "common/shown.h"

#include <assert.h>

#define N_SLOTS         64u
#define MAX_OTHER_BYTES (HEARTH_RECENT_QUERY_BYTES / 4)

/* A query and its texts in one block. */
struct kept_query {
    struct hearth_recent_query query;
    char texts[];
};

struct ring {
    struct kept_query *kept[HEARTH_RECENT_QUERIES];
    size_t next; /* where the next one is put: the oldest is there */
};

struct slot {
    struct ring all, slow;
};

struct hearth_recent_queries {
    struct hearth_mutex lock;    /* guards the rest */
    struct slot *slots[N_SLOTS]; /* NULL: no tenant of the slot has asked yet */
};

enum hearth_status hearth_recent_queries_new(struct hearth_recent_queries **ret,
                                             struct hearth_err *err)
{
    struct hearth_recent_queries *queries = hearth_mem_zalloc(sizeof *queries);
    if (queries == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the list of recent queries");
    }

    hearth_mutex_init(&queries->lock, HEARTH_RANK_RECENT, "recent_queries.lock");
    *ret = queries;

    return HEARTH_OK;
}

static void clear_ring(struct ring *ring)
{
    for (size_t i = 0; i < HEARTH_RECENT_QUERIES; i++) {
        hearth_mem_free(ring->kept[i]);
    }
}

void hearth_recent_queries_free(struct hearth_recent_queries *queries)
{
    if (queries == NULL) {
        return;
    }

    for (size_t i = 0; i < N_SLOTS; i++) {
        if (queries->slots[i] != NULL) {
            clear_ring(&queries->slots[i]->all);
            clear_ring(&queries->slots[i]->slow);
            hearth_mem_free(queries->slots[i]);
        }
    }
    hearth_mutex_destroy(&queries->lock);
    hearth_mem_free(queries);
}

/* Move the text to *at. A character that was cut is replaced. */
static void place_text(struct hearth_str *text, char **at)
{
    if (text->n > 0) {
        memcpy(*at, text->p, text->n);
        hearth_str_utf8_mend(*at, text->n);
    }
    text->p = *at;
    *at += text->n;
}

static size_t cut(struct hearth_str *text, size_t max)
{
    text->n = text->n < max ? text->n : max;
    return text->n;
}

static struct kept_query *copy_query(const struct hearth_recent_query *query)
{
    struct hearth_recent_query q = *query;
    struct hearth_str *texts[] = {&q.tenant, &q.subject, &q.method,
                                  &q.code,   &q.message, &q.request_id};

    size_t n = cut(&q.request, HEARTH_RECENT_QUERY_BYTES);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        n += cut(texts[i], MAX_OTHER_BYTES);
    }

    struct kept_query *kept = hearth_mem_alloc(sizeof *kept + n);
    if (kept == NULL) {
        return NULL;
    }

    char *at = kept->texts;
    place_text(&q.request, &at);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        place_text(texts[i], &at);
    }
    kept->query = q;

    return kept;
}

/* Returns the query that made room, or NULL. */
static struct kept_query *put(struct ring *ring, struct kept_query *kept)
{
    struct kept_query *oldest = ring->kept[ring->next];

    ring->kept[ring->next] = kept;
    ring->next = (ring->next + 1) % HEARTH_RECENT_QUERIES;

    return oldest;
}

static size_t slot_of(struct hearth_str tenant)
{
    return hearth_hash64(tenant.p, tenant.n, hearth_hash_process_seed()) % N_SLOTS;
}

void hearth_recent_queries_note(struct hearth_recent_queries *queries,
                                const struct hearth_recent_query *query)
{
    bool is_slow = query->took_us >= HEARTH_SLOW_QUERY_US;
    struct kept_query *kept = copy_query(query), *slow = is_slow ? copy_query(query) : NULL;
    struct kept_query *old = NULL, *old_slow = NULL;
    struct slot **slot = &queries->slots[slot_of(query->tenant)];

    /* Memory is given back without the lock. */
    hearth_mutex_lock(&queries->lock);
    if (*slot == NULL) {
        *slot = hearth_mem_zalloc(sizeof **slot);
    }
    if (*slot == NULL) {
        old = kept;
        old_slow = slow;
    } else {
        old = kept == NULL ? NULL : put(&(*slot)->all, kept);
        old_slow = slow == NULL ? NULL : put(&(*slot)->slow, slow);
    }
    hearth_mutex_unlock(&queries->lock);
    hearth_mem_free(old);
    hearth_mem_free(old_slow);
}

/* ---- reading ---- */

static bool copy_to_arena(struct hearth_arena *arena, const struct hearth_recent_query *query,
                          struct hearth_recent_query *ret)
{
    *ret = *query;
    ret->tenant = hearth_arena_str(arena, query->tenant);
    ret->subject = hearth_arena_str(arena, query->subject);
    ret->method = hearth_arena_str(arena, query->method);
    ret->code = hearth_arena_str(arena, query->code);
    ret->message = hearth_arena_str(arena, query->message);
    ret->request = hearth_arena_str(arena, query->request);

    return !arena->refused;
}

/* The caller holds the lock. False: the arena is full. */
static bool copy_ring(const struct ring *ring, const struct hearth_call *call,
                      struct hearth_recent_query *ret, size_t *ret_n)
{
    for (size_t i = 1; i <= HEARTH_RECENT_QUERIES; i++) {
        size_t at = (ring->next + HEARTH_RECENT_QUERIES - i) % HEARTH_RECENT_QUERIES;
        const struct kept_query *kept = ring->kept[at];
        if (kept != NULL && hearth_str_eq(kept->query.tenant, call->tenant) &&
            !copy_to_arena(call->arena, &kept->query, &ret[(*ret_n)++])) {
            return false;
        }
    }

    return true;
}

enum hearth_status hearth_recent_queries_list(struct hearth_recent_queries *queries,
                                              const struct hearth_call *call, bool slow_only,
                                              struct hearth_recent_query **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    bool fits = true;

    assert(ret != NULL && ret_n != NULL);
    HEARTH_TRY(hearth_call_check_whole(call, err));
    *ret = hearth_arena_array(call->arena, HEARTH_RECENT_QUERIES, sizeof **ret);
    *ret_n = 0;
    if (*ret == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    hearth_mutex_lock(&queries->lock);
    const struct slot *slot = queries->slots[slot_of(call->tenant)];
    if (slot != NULL) {
        fits = copy_ring(slow_only ? &slot->slow : &slot->all, call, *ret, ret_n);
    }
    hearth_mutex_unlock(&queries->lock);

    return fits ? HEARTH_OK : HEARTH_FAIL_ARENA(err, call->arena);
}
