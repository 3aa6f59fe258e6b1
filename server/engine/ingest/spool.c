/*
 * spool.c -- the spool's threads, above all the one that appends records (spool_internal.h).
 *
 * The writer takes all records that wait, writes them behind each other, and syncs once. If that
 * fails, the file is cut back: a record that was not acknowledged as spooled is not kept.
 */
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "ingest/spool_internal.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#define JOBS_PER_SYNC 64

/* ---- writing ---- */

bool hearth_spool_has_room(struct hearth_spool *spool, size_t n)
{
    hearth_mutex_lock(&spool->lock);
    bool fits = !spool->is_broken && !spool->is_stopping &&
                (int64_t)n <= spool->max_bytes - spool->end - spool->n_reserved;
    hearth_mutex_unlock(&spool->lock);

    return fits;
}

enum hearth_status hearth_spool_submit(struct hearth_spool *spool, struct hearth_spool_write *write,
                                       struct hearth_err *err)
{
    assert(write->record.n > HEARTH_SPOOL_HEADER_BYTES && write->done != NULL);

    int64_t n = (int64_t)write->record.n;
    hearth_mutex_lock(&spool->lock);
    bool fits = !spool->is_broken && !spool->is_stopping &&
                n <= spool->max_bytes - spool->end - spool->n_reserved;
    if (fits) {
        write->next = NULL;
        *spool->last = write;
        spool->last = &write->next;
        spool->n_reserved += n;
        (void)pthread_cond_signal(&spool->written);
    }
    hearth_mutex_unlock(&spool->lock);

    return fits ? HEARTH_OK
                : HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                              "the spool is full (max-spool-bytes %lld) or takes no more",
                              (long long)spool->max_bytes);
}

bool hearth_spool_run(struct hearth_spool *spool, struct hearth_spool_job *job)
{
    hearth_mutex_lock(&spool->lock);
    bool is_taken = !spool->is_stopping;
    if (is_taken) {
        job->next = NULL;
        *spool->last_job = job;
        spool->last_job = &job->next;
        (void)pthread_cond_signal(&spool->written);
    }
    hearth_mutex_unlock(&spool->lock);

    return is_taken;
}

/* Write the records from `at` on, and sync. False, with errno: nothing is kept. */
static bool write_records(struct hearth_spool *spool, const struct hearth_spool_write *first,
                          int64_t at, bool *ret_is_broken)
{
    int64_t begin = at;
    bool ok = true;

    *ret_is_broken = false;
    for (const struct hearth_spool_write *w = first; w != NULL && ok; w = w->next) {
        for (size_t done = 0; done < w->record.n && ok;) {
            ssize_t n = pwrite(spool->fd, w->record.p + done, w->record.n - done, at);
            ok = n > 0;
            done += ok ? (size_t)n : 0;
            at += ok ? n : 0;
        }
    }

    /* After a failed sync the state of the disk is unknown, and a second sync proves nothing. */
    if (ok && fdatasync(spool->fd) != 0) {
        ok = false;
        *ret_is_broken = true;
    }

    int saved = errno;
    if (!ok && ftruncate(spool->fd, begin) != 0) {
        *ret_is_broken = true;
    }
    errno = saved;

    return ok;
}

static void append_records(struct hearth_spool *spool, struct hearth_spool_write *first, int64_t at)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_OK;
    bool is_broken;
    int64_t n_bytes = 0, n = 0;

    if (!write_records(spool, first, at, &is_broken)) {
        status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "cannot write to the spool: %s",
                             strerrordesc_np(errno));
        HEARTH_LOG(HEARTH_LOG_ERROR, "spool", "pushes are not spooled", "error", err.msg, NULL);
        hearth_metric_add(HEARTH_M_SPOOL_FAULTS, 1);
    }

    for (const struct hearth_spool_write *w = first; w != NULL; w = w->next) {
        n_bytes += (int64_t)w->record.n;
        n++;
    }

    hearth_mutex_lock(&spool->lock);
    spool->n_reserved -= n_bytes;
    spool->is_broken = spool->is_broken || is_broken;
    if (status == HEARTH_OK) {
        spool->oldest_ns = spool->n_waiting == 0 ? first->received_ns : spool->oldest_ns;
        spool->end += n_bytes;
        spool->n_waiting += n;
    }
    hearth_spool_publish(spool);
    hearth_mutex_unlock(&spool->lock);

    while (first != NULL) {
        struct hearth_spool_write *next = first->next;
        first->done(first, status, &err);
        first = next;
    }
}

/* Run some of the jobs; those before may have queued records. The caller holds the lock. */
static void run_jobs(struct hearth_spool *spool)
{
    for (unsigned i = 0; i < JOBS_PER_SYNC && spool->first_job != NULL; i++) {
        struct hearth_spool_job *job = spool->first_job;
        spool->first_job = job->next;
        spool->last_job = spool->first_job == NULL ? &spool->first_job : spool->last_job;
        hearth_mutex_unlock(&spool->lock);
        job->run(job);
        hearth_mutex_lock(&spool->lock);
    }
}

static void *run_writer(void *arg)
{
    struct hearth_spool *spool = arg;

    hearth_mutex_lock(&spool->lock);
    while (!spool->is_stopping || spool->first != NULL || spool->first_job != NULL) {
        run_jobs(spool);
        struct hearth_spool_write *first = spool->first;
        if (first == NULL && (spool->first_job != NULL || spool->is_stopping)) {
            continue;
        }
        if (first == NULL) {
            hearth_mutex_wait(&spool->lock, &spool->written);
            continue;
        }
        spool->first = NULL;
        spool->last = &spool->first;
        int64_t at = spool->end;
        hearth_mutex_unlock(&spool->lock);
        append_records(spool, first, at);
        hearth_mutex_lock(&spool->lock);
    }
    hearth_mutex_unlock(&spool->lock);

    return NULL;
}

/* ---- threads ---- */

enum hearth_status hearth_spool_start(struct hearth_spool *spool, struct hearth_ingest *ingest,
                                      struct hearth_store *store, hearth_spool_refused_fn *refused,
                                      void *refused_context, struct hearth_err *err)
{
    sigset_t everything, old; /* signals are for the main thread */

    spool->ingest = ingest;
    spool->store = store;
    spool->refused = refused;
    spool->refused_context = refused_context;

    /* As after opening, if it was stopped. */
    spool->is_stopping = false;
    hearth_cancel_init(&spool->cancel, INT64_MAX);
    spool->cursor = spool->next_pass_mono_ns = 0;
    spool->is_pass_first = true;
    spool->has_progress = false;

    hearth_signals_to_block(&everything);
    (void)pthread_sigmask(SIG_BLOCK, &everything, &old);
    bool ok = pthread_create(&spool->writer, NULL, run_writer, spool) == 0;
    spool->n_threads = ok;
    while (ok && spool->n_threads <= HEARTH_SPOOL_REPLAYERS) {
        pthread_t *thread = &spool->replayers[spool->n_threads - 1];
        ok = pthread_create(thread, NULL, hearth_spool_replay, spool) == 0;
        spool->n_threads += ok;
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the threads of the spool");
}

void hearth_spool_stop(struct hearth_spool *spool)
{
    if (spool == NULL || spool->n_threads == 0) {
        return;
    }

    hearth_mutex_lock(&spool->lock);
    spool->is_stopping = true;
    atomic_store(&spool->cancel.cancelled, true);
    (void)pthread_cond_broadcast(&spool->written);
    (void)pthread_cond_broadcast(&spool->waiting);
    hearth_mutex_unlock(&spool->lock);

    (void)pthread_join(spool->writer, NULL);
    for (unsigned i = 0; i + 1 < spool->n_threads; i++) {
        (void)pthread_join(spool->replayers[i], NULL);
    }
    spool->n_threads = 0;
}
