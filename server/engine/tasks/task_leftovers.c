/*
 * task_leftovers.c -- the thread that makes profiles of leftovers (contract:
 * hearth/engine/task_leftovers.h).
 */
#include "hearth/engine/task_leftovers.h"

#include "hearth/base/budget.h"
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"
#include "hearth/engine/task_stacks.h"

#include "select/query_internal.h"
#include "tasks/task_uploads_internal.h"

#include <assert.h>

#define LOOK_EACH_NS (15 * HEARTH_NS_PER_SEC)
/* Earlier, the server that stored a result may still be working on it. */
#define LEFT_AFTER_MS INT64_C(60000)
#define LEFT_UNTIL_MS (50 * LEFT_AFTER_MS)

struct hearth_task_leftovers {
    struct hearth_query_engine *engine;
    struct hearth_ingest *ingest;
    struct hearth_budget *budget;
    struct hearth_cancel cancel;
    pthread_t thread;
    struct hearth_mutex lock; /* guards `stopping` */
    pthread_cond_t wake;
    bool stopping;
};

static enum hearth_status push_leftover(struct hearth_task_leftovers *l,
                                        const struct hearth_task_left *left, int64_t from_ms,
                                        int64_t to_ms, struct hearth_err *err)
{
    assert(left != NULL && from_ms <= to_ms);

    /* Each push has an arena of its own. */
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    arena.budget = l->budget;
    const struct hearth_call call = {
        .engine = l->engine, .tenant = left->tenant, .arena = &arena, .cancel = &l->cancel};
    enum hearth_status status =
        left->upload_id.n > 0 ? hearth_upload_push_left(&call, l->ingest, left->upload_id, err)
                              : hearth_task_stacks_push_left(&call, l->ingest, from_ms, to_ms, err);
    hearth_arena_release(&arena);

    return status;
}

static void push_leftovers(struct hearth_task_leftovers *l)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_task_left *left = NULL;
    size_t n = 0;
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    int64_t from_ms = now_ms - LEFT_UNTIL_MS, to_ms = now_ms - LEFT_AFTER_MS;

    /* Find the leftovers of all tenants. */
    hearth_arena_init(&arena, 0);
    /* An unreachable database is reported by requests, not here. */
    if (hearth_store_task_left(
            &(const struct hearth_scope){
                .store = l->engine->store, .cancel = &l->cancel, .arena = &arena},
            &(const struct hearth_task_range){from_ms, to_ms}, &left, &n, &err) != HEARTH_OK) {
        n = 0;
    }

    /* Push them one by one; one that fails does not hold up the others. */
    for (size_t i = 0; i < n && hearth_cancel_check(&l->cancel, NULL) == HEARTH_OK; i++) {
        if (push_leftover(l, &left[i], from_ms, to_ms, &err) != HEARTH_OK) {
            HEARTH_LOG(HEARTH_LOG_WARN, "tasks",
                       "a result of a task could not be pushed as a profile; it is tried again",
                       "reason", err.msg, NULL);
        }
    }

    hearth_arena_release(&arena);
}

static void *run_leftovers(void *arg)
{
    struct hearth_task_leftovers *l = arg;

    hearth_mutex_lock(&l->lock);
    while (!l->stopping) {
        hearth_mutex_unlock(&l->lock);
        push_leftovers(l);

        /* Sleep until the next look or the stop. */
        int64_t until_ns = hearth_clock_mono_ns() + LOOK_EACH_NS;
        hearth_mutex_lock(&l->lock);
        while (!l->stopping && hearth_clock_mono_ns() < until_ns) {
            (void)hearth_mutex_wait_until(&l->lock, &l->wake, until_ns);
        }
    }

    hearth_mutex_unlock(&l->lock);

    return NULL;
}

static void free_leftovers(struct hearth_task_leftovers *l)
{
    (void)pthread_cond_destroy(&l->wake);
    hearth_mutex_destroy(&l->lock);
    hearth_mem_free(l);
}

enum hearth_status hearth_task_leftovers_start(struct hearth_query_engine *engine,
                                               struct hearth_ingest *ingest,
                                               struct hearth_budget *budget,
                                               struct hearth_task_leftovers **ret,
                                               struct hearth_err *err)
{
    struct hearth_task_leftovers *l = hearth_mem_zalloc(sizeof *l);

    assert(ret != NULL);
    assert(engine != NULL && ingest != NULL);

    if (l == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the thread of leftovers");
    }

    /* Set up the state. */
    l->engine = engine;
    l->ingest = ingest;
    l->budget = budget;
    hearth_cancel_init(&l->cancel, INT64_MAX);
    hearth_mutex_init(&l->lock, HEARTH_RANK_LEFTOVERS, "leftovers.lock");
    hearth_cond_init(&l->wake);

    /* Start the thread with signals blocked: the main thread handles them. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&l->thread, NULL, run_leftovers, l);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        free_leftovers(l);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "cannot start the thread that pushes leftovers of tasks");
    }

    (void)pthread_setname_np(l->thread, "leftovers");
    *ret = l;

    return HEARTH_OK;
}

void hearth_task_leftovers_stop(struct hearth_task_leftovers *l)
{
    if (l == NULL) {
        return;
    }

    /* Stop the thread, also in the middle of a push. */
    atomic_store(&l->cancel.cancelled, true);
    hearth_mutex_lock(&l->lock);
    l->stopping = true;
    (void)pthread_cond_broadcast(&l->wake);
    hearth_mutex_unlock(&l->lock);

    (void)pthread_join(l->thread, NULL);
    free_leftovers(l);
}
