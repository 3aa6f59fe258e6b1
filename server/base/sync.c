/*
 * sync.c -- conditions on the monotonic clock, and the check of lock ranks.
 *
 * The check needs no order between threads: each thread compares with its own locks only. So a
 * wrong order is found the first time any thread uses it, not when two threads happen to meet.
 */
#include "hearth/base/sync.h"

#include "hearth/base/clock.h"
#include "hearth/base/status.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

/* ---- conditions ---- */

void hearth_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

bool hearth_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_mono_ns)
{
    assert(until_mono_ns >= 0);

    const struct timespec until = {.tv_sec = (time_t)(until_mono_ns / HEARTH_NS_PER_SEC),
                                   .tv_nsec = (long)(until_mono_ns % HEARTH_NS_PER_SEC)};

    return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}

/* ---- ranks ---- */

#ifdef HEARTH_DEBUG_LOCKS

struct held_lock {
    const void *lock;
    const char *name;
    unsigned rank;
};

/*
 * Sorted by rank, because each lock is higher than all before it: the last one has the highest
 * rank.
 */
static _Thread_local struct {
    struct held_lock v[HEARTH_MAX_HELD_LOCKS];
    size_t n;
} g_held;

/*
 * The index of `lock` among the held ones, or g_held.n. Most locks are released in reverse order.
 */
static size_t find_held_lock(const void *lock)
{
    for (size_t i = g_held.n; i > 0; i--) {
        if (g_held.v[i - 1].lock == lock) {
            return i - 1;
        }
    }

    return g_held.n;
}

void hearth_lock_check(const void *lock, unsigned rank, const char *name)
{
    char what[256];

    if (g_held.n == 0 || rank > g_held.v[g_held.n - 1].rank) {
        return;
    }

    const struct held_lock *last = &g_held.v[g_held.n - 1];
    (void)snprintf(what, sizeof what, "lock order: %s (rank %u) is acquired under %s (rank %u)%s",
                   name, rank, last->name, last->rank, last->lock == lock ? ", itself" : "");
    HEARTH_BUG(what);
}

void hearth_lock_acquired(const void *lock, unsigned rank, const char *name)
{
    if (g_held.n == HEARTH_MAX_HELD_LOCKS) {
        HEARTH_BUG("a thread holds more than HEARTH_MAX_HELD_LOCKS locks");
    }
    assert(g_held.n == 0 || rank > g_held.v[g_held.n - 1].rank);

    g_held.v[g_held.n++] = (struct held_lock){.lock = lock, .name = name, .rank = rank};
}

void hearth_lock_released(const void *lock, const char *name)
{
    hearth_lock_assert_held(lock, name);
    for (size_t i = find_held_lock(lock); i + 1 < g_held.n; i++) {
        g_held.v[i] = g_held.v[i + 1];
    }
    g_held.n--;
}

void hearth_lock_assert_held(const void *lock, const char *name)
{
    char what[256];

    if (find_held_lock(lock) == g_held.n) {
        (void)snprintf(what, sizeof what, "lock %s is not held by this thread", name);
        HEARTH_BUG(what);
    }
}

#endif
