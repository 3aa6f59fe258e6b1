/* failures.c -- the table of wrong credentials. */
#include "access/failures.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"

#include "common/call_internal.h"

#define WINDOW_NS (60 * HEARTH_NS_PER_SEC)

void hearth_failures_init(struct hearth_failures *failures)
{
    memset(failures->table, 0, sizeof failures->table);
    hearth_mutex_init(&failures->lock, HEARTH_RANK_FAILURES, "failures.lock");
}

void hearth_failures_destroy(struct hearth_failures *failures)
{
    hearth_mutex_destroy(&failures->lock);
}

/* The entry of the key, cleared if its minute is over. Without one: a free entry or the one with
 * the fewest failures if `make`, otherwise NULL. */
static struct hearth_failure *find_failure(struct hearth_failures *failures, struct hearth_str key,
                                           bool make)
{
    uint64_t hash = hearth_hash64(key.p, key.n, hearth_hash_process_seed());
    struct hearth_failure *bucket = failures->table[hash % HEARTH_FAILURE_BUCKETS];
    struct hearth_failure *least = &bucket[0];
    int64_t now = hearth_clock_mono_ns();

    hearth_mutex_assert_held(&failures->lock);
    hash = hash == 0 ? 1 : hash;
    for (size_t i = 0; i < HEARTH_FAILURE_WAYS; i++) {
        struct hearth_failure *entry = &bucket[i];
        if (entry->key != 0 && now - entry->since_mono_ns >= WINDOW_NS) {
            *entry = (struct hearth_failure){0};
        }
        if (entry->key == hash) {
            return entry;
        }
        least = entry->n < least->n ? entry : least;
    }

    if (!make) {
        return NULL;
    }

    *least = (struct hearth_failure){.key = hash, .since_mono_ns = now};

    return least;
}

void hearth_failures_add(struct hearth_failures *failures, struct hearth_str key)
{
    hearth_mutex_lock(&failures->lock);
    struct hearth_failure *entry = find_failure(failures, key, true);
    entry->n += entry->n < UINT32_MAX ? 1 : 0;
    hearth_mutex_unlock(&failures->lock);
}

uint32_t hearth_failures_count(struct hearth_failures *failures, struct hearth_str key)
{
    hearth_mutex_lock(&failures->lock);
    const struct hearth_failure *entry = find_failure(failures, key, false);
    uint32_t n = entry == NULL ? 0 : entry->n;
    hearth_mutex_unlock(&failures->lock);
    return n;
}

void hearth_failures_undo(struct hearth_failures *failures, struct hearth_str key)
{
    hearth_mutex_lock(&failures->lock);
    struct hearth_failure *entry = find_failure(failures, key, false);
    if (entry != NULL && entry->n > 0) {
        entry->n--;
    }
    hearth_mutex_unlock(&failures->lock);
}

void hearth_failures_forget(struct hearth_failures *failures, struct hearth_str key)
{
    hearth_mutex_lock(&failures->lock);
    struct hearth_failure *entry = find_failure(failures, key, false);
    if (entry != NULL) {
        *entry = (struct hearth_failure){0};
    }
    hearth_mutex_unlock(&failures->lock);
}
