/*
 * sync.h -- condition variables on the monotonic clock, and mutexes whose order is checked.
 *
 * Lock ranks. Every hearth_mutex has a rank and a name. A thread may only acquire a lock whose rank
 * is higher than the ranks of all locks that it holds, so two locks of one rank are never held
 * together. Each layer lists the ranks of its locks in one enum, outermost lock first, from the
 * value that HEARTH_RANKS_... below gives it:
 *
 *     enum { RANK_CATALOG = HEARTH_RANKS_STORE, RANK_DICTS, RANK_POOL };
 *     hearth_mutex_init(&pool->lock, RANK_POOL, "pool.lock");
 *
 * Builds with HEARTH_DEBUG_LOCKS (the presets dev, asan, tsan, coverage and fuzz) keep a list of
 * held locks per thread. A wrong order prints both names and aborts, even if no other thread is
 * there to complete the deadlock. Without HEARTH_DEBUG_LOCKS a hearth_mutex is a pthread_mutex_t,
 * its functions are the calls of pthread, and ranks and names cost nothing.
 *
 * A condition variable is a plain pthread_cond_t that hearth_cond_init has set up: signal,
 * broadcast and destroy it with pthread's functions.
 *
 * Ownership: locks and conditions live in the caller's storage; names are static strings.
 * Threads:   safe. init and destroy: while no other thread uses the lock or the condition.
 * Errors:    none are returned. Misuse (wrong order, unlocking a lock that is not held, more than
 *            HEARTH_MAX_HELD_LOCKS at once) is a bug of ours and aborts in builds with
 *            HEARTH_DEBUG_LOCKS.
 */
#ifndef HEARTH_BASE_SYNC_H
#define HEARTH_BASE_SYNC_H

#include "hearth/base/compiler.h"

#include <pthread.h>

/* ---- conditions ---- */

/* Timed waits on `cond` use the clock of hearth_clock_mono_ns. */
void hearth_cond_init(pthread_cond_t *cond);

/*
 * Wait for `cond` until the time until_mono_ns (hearth_clock_mono_ns) at the latest. The caller
 * holds `mutex`. Returns false if the time has passed, true if the thread was woken earlier, which
 * may be spurious: check the awaited state again.
 */
bool hearth_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_mono_ns);

/* ---- ranks ---- */

enum {
    HEARTH_MAX_HELD_LOCKS = 16, /* per thread */
};

/*
 * Where the ranks of each layer begin. A layer calls lower layers while it holds its locks, and is
 * never called by them under theirs.
 */
enum {
    HEARTH_RANKS_APP = 100,
    HEARTH_RANKS_FRONT = 1000,
    HEARTH_RANKS_ENGINE = 2000,
    HEARTH_RANKS_STORE = 3000,
    HEARTH_RANKS_MODEL = 4000,
    HEARTH_RANKS_BASE = 5000,
};

/* Ranks of base's own locks: all layers submit jobs and count metrics under their locks. */
enum hearth_base_rank {
    HEARTH_RANK_WORKERS = HEARTH_RANKS_BASE, /* workers.lock: the queue of one pool */
    HEARTH_RANK_METRICS,                     /* metrics: new label values; exemplars */
};

#ifdef HEARTH_DEBUG_LOCKS

/*
 * The bookkeeping, for locks that are not a hearth_mutex, such as a pthread_rwlock_t. `lock` is
 * their address. Call _check before you acquire a lock (it may block), _acquired after, _released
 * before you release it.
 */
void hearth_lock_check(const void *lock, unsigned rank, const char *name);
void hearth_lock_acquired(const void *lock, unsigned rank, const char *name);
void hearth_lock_released(const void *lock, const char *name);
/* Abort unless the calling thread holds `lock`. */
void hearth_lock_assert_held(const void *lock, const char *name);

#else

static inline void hearth_lock_check(const void *lock, unsigned rank, const char *name)
{
    (void)lock, (void)rank, (void)name;
}

static inline void hearth_lock_acquired(const void *lock, unsigned rank, const char *name)
{
    (void)lock, (void)rank, (void)name;
}

static inline void hearth_lock_released(const void *lock, const char *name)
{
    (void)lock, (void)name;
}

static inline void hearth_lock_assert_held(const void *lock, const char *name)
{
    (void)lock, (void)name;
}

#endif

/* ---- mutexes with a rank ---- */

struct hearth_mutex {
    pthread_mutex_t mutex;
#ifdef HEARTH_DEBUG_LOCKS
    const char *name;
    unsigned rank;
#endif
};

/* HEARTH_MUTEX_INITIALIZER(rank, name): for locks in static storage. */
#ifdef HEARTH_DEBUG_LOCKS
#    define HEARTH_MUTEX_NAME(mutex) ((mutex)->name)
#    define HEARTH_MUTEX_RANK(mutex) ((mutex)->rank)
#    define HEARTH_MUTEX_INITIALIZER(mutex_rank, mutex_name)                               \
        {                                                                                  \
            .mutex = PTHREAD_MUTEX_INITIALIZER, .name = (mutex_name), .rank = (mutex_rank) \
        }
#else
#    define HEARTH_MUTEX_NAME(mutex) ((void)(mutex), "")
#    define HEARTH_MUTEX_RANK(mutex) ((void)(mutex), 0u)
#    define HEARTH_MUTEX_INITIALIZER(mutex_rank, mutex_name) \
        {                                                    \
            .mutex = PTHREAD_MUTEX_INITIALIZER               \
        }
#endif

static inline void hearth_mutex_init(struct hearth_mutex *mutex, unsigned rank, const char *name)
{
    (void)pthread_mutex_init(&mutex->mutex, NULL);
#ifdef HEARTH_DEBUG_LOCKS
    mutex->name = name;
    mutex->rank = rank;
#else
    (void)rank, (void)name;
#endif
}

/* No thread holds it. */
static inline void hearth_mutex_destroy(struct hearth_mutex *mutex)
{
    (void)pthread_mutex_destroy(&mutex->mutex);
}

static inline void hearth_mutex_lock(struct hearth_mutex *mutex)
{
    hearth_lock_check(mutex, HEARTH_MUTEX_RANK(mutex), HEARTH_MUTEX_NAME(mutex));
    (void)pthread_mutex_lock(&mutex->mutex);
    hearth_lock_acquired(mutex, HEARTH_MUTEX_RANK(mutex), HEARTH_MUTEX_NAME(mutex));
}

/* The calling thread holds it. Locks may be released in any order. */
static inline void hearth_mutex_unlock(struct hearth_mutex *mutex)
{
    hearth_lock_released(mutex, HEARTH_MUTEX_NAME(mutex));
    (void)pthread_mutex_unlock(&mutex->mutex);
}

/* For the head of functions whose contract says "the caller holds the lock". */
static inline void hearth_mutex_assert_held(const struct hearth_mutex *mutex)
{
    hearth_lock_assert_held(mutex, HEARTH_MUTEX_NAME(mutex));
}

/*
 * Wait for `cond`. The calling thread holds `mutex`, which is the innermost of its locks: it is
 * acquired again before the return.
 */
static inline void hearth_mutex_wait(struct hearth_mutex *mutex, pthread_cond_t *cond)
{
    hearth_lock_released(mutex, HEARTH_MUTEX_NAME(mutex));
    hearth_lock_check(mutex, HEARTH_MUTEX_RANK(mutex), HEARTH_MUTEX_NAME(mutex));
    (void)pthread_cond_wait(cond, &mutex->mutex);
    hearth_lock_acquired(mutex, HEARTH_MUTEX_RANK(mutex), HEARTH_MUTEX_NAME(mutex));
}

/* The same, with the time limit and the result of hearth_cond_wait_until. */
static inline bool hearth_mutex_wait_until(struct hearth_mutex *mutex, pthread_cond_t *cond,
                                           int64_t until_mono_ns)
{
    hearth_lock_released(mutex, HEARTH_MUTEX_NAME(mutex));
    hearth_lock_check(mutex, HEARTH_MUTEX_RANK(mutex), HEARTH_MUTEX_NAME(mutex));
    bool woken = hearth_cond_wait_until(cond, &mutex->mutex, until_mono_ns);
    hearth_lock_acquired(mutex, HEARTH_MUTEX_RANK(mutex), HEARTH_MUTEX_NAME(mutex));

    return woken;
}

#endif
