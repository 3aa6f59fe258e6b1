/* pg_cancel.c -- requests to cancel a statement, each sent by a thread of its own (pg_cancel.h). */
#include "pg/pg_cancel.h"

#include "hearth/base/mem.h"
#include "hearth/base/signals.h"

#include "pg/pg.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* A request; the caller and the thread share it, and the last one frees it. */
struct request {
    PGcancel *cancel;
    sem_t sent;
    _Atomic unsigned refs;
};

/* Requests whose threads have not ended. */
static _Atomic unsigned g_n_requests;

static void release_request(struct request *request)
{
    if (atomic_fetch_sub(&request->refs, 1) == 1) {
        PQfreeCancel(request->cancel);
        (void)sem_destroy(&request->sent);
        hearth_mem_free(request);
    }
}

static void *send_request(void *arg)
{
    struct request *request = arg;
    char text[256];

    (void)PQcancel(request->cancel, text, sizeof text);
    (void)sem_post(&request->sent);
    release_request(request);
    atomic_fetch_sub(&g_n_requests, 1);

    return NULL;
}

static struct request *make_request(PGconn *conn)
{
    struct request *request = hearth_mem_zalloc(sizeof *request);
    if (request == NULL) {
        return NULL;
    }

    request->cancel = PQgetCancel(conn);
    if (request->cancel == NULL || sem_init(&request->sent, 0, 0) != 0) {
        PQfreeCancel(request->cancel);
        hearth_mem_free(request);
        return NULL;
    }
    atomic_init(&request->refs, 2);

    return request;
}

static bool start_cancel_thread(struct request *request)
{
    pthread_t thread;
    sigset_t everything, old; /* signals are for the main thread */

    hearth_signals_to_block(&everything);
    (void)pthread_sigmask(SIG_BLOCK, &everything, &old);
    bool is_started = pthread_create(&thread, NULL, send_request, request) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (is_started) {
        (void)pthread_detach(thread);
    }

    return is_started;
}

static void wait_until_sent(struct request *request, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / HEARTH_NS_PER_SEC),
                                   .tv_nsec = (long)(until_ns % HEARTH_NS_PER_SEC)};

    while (sem_clockwait(&request->sent, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
    }
}

/* Start a request; NULL: it is not sent. */
static struct request *start_request(PGconn *conn)
{
    assert(conn != NULL);

    if (atomic_fetch_add(&g_n_requests, 1) >= HEARTH_PG_MAX_CANCELS) {
        atomic_fetch_sub(&g_n_requests, 1);
        return NULL;
    }

    struct request *request = make_request(conn);
    if (request != NULL && !start_cancel_thread(request)) {
        atomic_store(&request->refs, 1);
        release_request(request);
        request = NULL;
    }
    if (request == NULL) {
        atomic_fetch_sub(&g_n_requests, 1);
    }

    return request;
}

void hearth_pg_cancel_statements(PGconn *const *conns, size_t n)
{
    struct request *requests[HEARTH_PG_MAX_CANCELS];
    int64_t until_ns = hearth_clock_mono_ns() + HEARTH_PG_CANCEL_WAIT_NS;
    assert(n <= HEARTH_PG_MAX_CANCELS);

    for (size_t i = 0; i < n; i++) {
        requests[i] = start_request(conns[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (requests[i] != NULL) {
            wait_until_sent(requests[i], until_ns);
            release_request(requests[i]);
        }
    }
}

void hearth_pg_give_up(struct hearth_pg *const *pgs, size_t n)
{
    PGconn *conns[HEARTH_PG_MAX_CANCELS] = {NULL};
    size_t n_conns = 0;
    assert(n <= HEARTH_PG_MAX_CANCELS);

    for (size_t i = 0; i < n; i++) {
        if (pgs[i]->conn != NULL && pgs[i]->ahead != NULL) {
            conns[n_conns++] = pgs[i]->conn;
        }
    }
    hearth_pg_cancel_statements(conns, n_conns);
    for (size_t i = 0; i < n; i++) {
        hearth_pg_close(pgs[i]);
    }
}
