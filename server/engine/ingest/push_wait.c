/*
 * push_wait.c -- a push whose caller waits for its end.
 *
 * The engine may end a push long after its caller gave up (its batch may have been committed while
 * the database does not answer). Memory that the end writes to is shared by both, and the last one
 * frees it.
 */
#include "ingest/push_wait.h"

#include "hearth/base/cancel.h"
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/sync.h"

#include "common/call_internal.h"

#include <assert.h>
#include <time.h>

#define STEP_NS (50 * HEARTH_NS_PER_MS)

struct push_wait {
    struct hearth_push_request request;
    struct hearth_mutex lock; /* guards is_done, refs */
    pthread_cond_t ended;
    bool is_done;  /* false while the push runs; true once its `done` was called */
    unsigned refs; /* holders of this struct */
    struct hearth_push_receipt receipts[]; /* one per sample */
};

static void release_wait(struct push_wait *wait)
{
    hearth_mutex_lock(&wait->lock);
    assert(wait->refs > 0);
    bool last = --wait->refs == 0;
    hearth_mutex_unlock(&wait->lock);

    if (last) {
        (void)pthread_cond_destroy(&wait->ended);
        hearth_mutex_destroy(&wait->lock);
        hearth_mem_free(wait);
    }
}

static void end_wait(struct hearth_push_request *request)
{
    struct push_wait *wait = HEARTH_CONTAINER_OF(request, struct push_wait, request);

    hearth_mutex_lock(&wait->lock);
    wait->is_done = true;
    (void)pthread_cond_signal(&wait->ended);
    hearth_mutex_unlock(&wait->lock);
    release_wait(wait);
}

static struct push_wait *make_wait(struct hearth_push_series *series, size_t n_series,
                                   size_t *ret_n)
{
    size_t n = 0;
    assert(n_series == 0 || series != NULL);

    for (size_t i = 0; i < n_series; i++) {
        n += series[i].n_samples;
    }
    struct push_wait *wait = hearth_mem_zalloc(sizeof *wait + n * sizeof wait->receipts[0]);
    if (wait == NULL) {
        return NULL;
    }

    /* Each sample gets a receipt in the shared memory. */
    size_t at = 0;
    for (size_t i = 0; i < n_series; i++) {
        for (size_t k = 0; k < series[i].n_samples; k++) {
            series[i].samples[k].receipt = &wait->receipts[at++];
        }
    }

    hearth_cond_init(&wait->ended);
    hearth_mutex_init(&wait->lock, HEARTH_RANK_PUSH_WAIT, "push_wait.lock");
    wait->refs = 2; /* the waiting caller and the running push */
    *ret_n = n;
    return wait;
}

/* Waits until the push has ended, or until the call is cancelled. */
static enum hearth_status wait_for_end(struct push_wait *wait, struct hearth_cancel *cancel,
                                       struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;

    hearth_mutex_lock(&wait->lock);
    while (!wait->is_done && status == HEARTH_OK) {
        (void)hearth_mutex_wait_until(&wait->lock, &wait->ended, hearth_clock_mono_ns() + STEP_NS);
        if (!wait->is_done) {
            status = hearth_cancel_check(cancel, err);
        }
    }
    hearth_mutex_unlock(&wait->lock);
    return status;
}

static void fill_outcome(const struct push_wait *wait, size_t n, struct hearth_push_outcome *ret)
{
    const struct hearth_push_request *request = &wait->request;

    ret->has_ended = true;
    ret->n_profiles = request->n_profiles;
    ret->n_failed = request->n_failed;
    ret->n_repeated = request->n_repeated;
    memcpy(ret->discards, request->discards, sizeof ret->discards);
    if (ret->receipts != NULL && n > 0) {
        memcpy(ret->receipts, wait->receipts, n * sizeof ret->receipts[0]);
    }
}

enum hearth_status hearth_push_wait_outcome(struct hearth_ingest *ingest,
                                            const struct hearth_push_request *what,
                                            struct hearth_cancel *cancel,
                                            struct hearth_push_outcome *ret, struct hearth_err *err)
{
    assert(ingest != NULL && what != NULL && ret != NULL);

    *ret = (struct hearth_push_outcome){.receipts = ret->receipts};
    size_t n;
    struct push_wait *wait = make_wait(what->series, what->n_series, &n);
    if (wait == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a push of %zu series",
                           what->n_series);
    }

    wait->request = (struct hearth_push_request){
        .tenant = what->tenant,
        .view = what->view,
        .series = what->series,
        .n_series = what->n_series,
        .client = what->client,
        .app_name = what->app_name,
        .is_one_upload = what->is_one_upload,
        .replay = what->replay,
        .done = end_wait,
    };
    hearth_ingest_push(ingest, &wait->request);
    enum hearth_status status = wait_for_end(wait, cancel, err);

    /* A push whose end is not awaited is withdrawn from the commit queue. */
    if (status == HEARTH_OK) {
        status = wait->request.status;
        if (status != HEARTH_OK && err != NULL) {
            *err = wait->request.err;
        }
        fill_outcome(wait, n, ret);
    } else {
        status = hearth_ingest_give_up(ingest, &wait->request, status, err);
    }
    release_wait(wait);

    return status;
}

enum hearth_status hearth_push_wait(struct hearth_ingest *ingest,
                                    const struct hearth_push_request *what,
                                    struct hearth_cancel *cancel,
                                    struct hearth_push_receipt *ret_receipts,
                                    struct hearth_err *err)
{
    const struct hearth_push_request own = {.tenant = what->tenant,
                                            .view = what->view,
                                            .series = what->series,
                                            .n_series = what->n_series,
                                            .is_one_upload = what->is_one_upload};
    struct hearth_push_outcome outcome = {.receipts = ret_receipts};

    return hearth_push_wait_outcome(ingest, &own, cancel, &outcome, err);
}
