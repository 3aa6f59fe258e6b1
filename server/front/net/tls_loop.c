/*
 * tls_loop.c -- one epoll set, edge-triggered; each round notes the events, then gives a turn to
 * each stream that has an event or did not finish its last turn.
 */
#include "net/tls_loop.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"

#include "rpc/front_internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_EVENTS 256
#define SWEEP_NS   HEARTH_NS_PER_SEC
/* So long a client whose handshake failed may take to read why. */
#define REFUSED_NS   HEARTH_NS_PER_SEC
#define STOP_NS      (2 * HEARTH_NS_PER_SEC)
#define STOP_WAIT_MS 20

enum tls_stop {
    STOP_NOT,
    STOP_DRAINS, /* as soon as all clients were sent what their libraries wrote */
    STOP_NOW,
};

void hearth_tls_queue_add(struct hearth_tls_queue *queue, struct hearth_tls_stream *stream)
{
    stream->next_queued = NULL;
    *(queue->last != NULL ? &queue->last->next_queued : &queue->first) = stream;
    queue->last = stream;
}

struct hearth_tls_stream *hearth_tls_queue_take(struct hearth_tls_queue *queue)
{
    struct hearth_tls_stream *stream = queue->first;
    if (stream != NULL) {
        queue->first = stream->next_queued;
        queue->last = queue->first == NULL ? NULL : queue->last;
    }
    return stream;
}

/* ---- streams of the loop ---- */

static void queue_turn(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream)
{
    if (!stream->is_queued) {
        stream->is_queued = true;
        hearth_tls_queue_add(&loop->turns, stream);
    }
}

static void unlink_stream(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream)
{
    assert(!stream->is_queued);
    if (stream->state == HEARTH_TLS_DRAINING || stream->state == HEARTH_TLS_LINGERING) {
        (void)atomic_fetch_sub(&loop->n_draining, 1);
    }
    *(stream->prev != NULL ? &stream->prev->next : &loop->oldest) = stream->next;
    *(stream->next != NULL ? &stream->next->prev : &loop->newest) = stream->prev;
    (void)atomic_fetch_sub(&loop->n_streams, 1);
}

static void free_stream(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream)
{
    unlink_stream(loop, stream);
    hearth_tls_stream_free(stream);
}

/* Counts a failed handshake; a client that may read the reason has a moment for it. */
static void refuse_stream(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream,
                          int64_t now)
{
    bool is_heard = strcmp(stream->failure, "closed") != 0 &&
                    strcmp(stream->failure, "timeout") != 0 &&
                    strcmp(stream->failure, "displaced") != 0;

    loop->options.failed(loop->options.context, stream);
    if (!is_heard) {
        free_stream(loop, stream);
        return;
    }

    (void)shutdown(stream->client.fd, SHUT_WR);
    hearth_tls_stream_drop_ssl(stream);
    stream->state = HEARTH_TLS_LINGERING;
    stream->until_mono_ns = now + REFUSED_NS;
    (void)atomic_fetch_add(&loop->n_draining, 1);
    queue_turn(loop, stream);
}

static bool watch_end(struct hearth_tls_loop *loop, struct hearth_tls_end *end)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = end};
    return end->fd < 0 || epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, end->fd, &event) == 0;
}

/* Ends the oldest handshake if there are too many. */
static void displace_oldest(struct hearth_tls_loop *loop)
{
    struct hearth_tls_stream *oldest = loop->oldest;
    if (atomic_load(&loop->n_streams) <= loop->options.max_shaking || oldest == NULL) {
        return;
    }

    if (oldest->state == HEARTH_TLS_LINGERING && !oldest->is_queued) {
        free_stream(loop, oldest);
    } else {
        oldest->failure = oldest->failure == NULL ? "displaced" : oldest->failure;
        oldest->until_mono_ns = 0;
        queue_turn(loop, oldest);
    }
}

static void adopt_stream(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream,
                         int64_t now)
{
    /* Older ones first, so that a new one never ends itself. */
    if (stream->state == HEARTH_TLS_SHAKING) {
        displace_oldest(loop);
        stream->until_mono_ns = now + loop->options.first_bytes_timeout_ns;
    }

    stream->prev = loop->newest;
    stream->next = NULL;
    *(stream->prev != NULL ? &stream->prev->next : &loop->oldest) = stream;
    loop->newest = stream;
    if (!watch_end(loop, &stream->client) || !watch_end(loop, &stream->pair)) {
        if (stream->state == HEARTH_TLS_SHAKING) {
            stream->failure = "other";
            loop->options.failed(loop->options.context, stream);
        }
        free_stream(loop, stream);
        return;
    }

    queue_turn(loop, stream);
}

static void adopt_streams(struct hearth_tls_loop *loop, int64_t now)
{
    hearth_mutex_lock(&loop->lock);
    struct hearth_tls_queue inbox = loop->inbox;
    loop->inbox = (struct hearth_tls_queue){0};
    hearth_mutex_unlock(&loop->lock);

    for (struct hearth_tls_stream *stream; (stream = hearth_tls_queue_take(&inbox)) != NULL;) {
        adopt_stream(loop, stream, now);
    }
}

/* ---- turns ---- */

static void pass_ready(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream)
{
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, stream->client.fd, NULL);
    unlink_stream(loop, stream);
    loop->options.ready(loop->options.context, stream);
}

static void shake_stream(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream,
                         int64_t now)
{
    bool was_sniffed = stream->is_sniffed;
    enum hearth_tls_turn turn = stream->failure == NULL ? hearth_tls_shake(stream) : HEARTH_TLS_END;

    if (!was_sniffed && stream->is_sniffed) {
        stream->until_mono_ns = now + loop->options.shake_timeout_ns;
    }

    if (turn == HEARTH_TLS_DONE) {
        pass_ready(loop, stream);
    } else if (turn == HEARTH_TLS_END) {
        refuse_stream(loop, stream, now);
    } else if (turn == HEARTH_TLS_MORE) {
        queue_turn(loop, stream);
    }
}

static void relay_stream(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream,
                         int64_t now)
{
    bool was_relaying = stream->state == HEARTH_TLS_RELAYING;
    enum hearth_tls_turn turn = hearth_tls_relay(stream, loop->scratch, now);

    if (was_relaying && stream->state != HEARTH_TLS_RELAYING) {
        (void)atomic_fetch_add(&loop->n_draining, 1);
    }

    if (turn == HEARTH_TLS_END) {
        free_stream(loop, stream);
    } else if (turn == HEARTH_TLS_MORE) {
        queue_turn(loop, stream);
    }
}

/* One turn for each stream that waits for one now. */
static void take_turns(struct hearth_tls_loop *loop, int64_t now)
{
    struct hearth_tls_queue turns = loop->turns;

    loop->turns = (struct hearth_tls_queue){0};
    for (struct hearth_tls_stream *stream; (stream = hearth_tls_queue_take(&turns)) != NULL;) {
        stream->is_queued = false;
        if (stream->state == HEARTH_TLS_SHAKING) {
            shake_stream(loop, stream, now);
        } else {
            relay_stream(loop, stream, now);
        }
    }
}

static void note_event(struct hearth_tls_loop *loop, const struct epoll_event *event)
{
    struct hearth_tls_end *end = event->data.ptr;
    bool is_pair = end == &end->stream->pair;

    end->can_read |= (event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    end->can_write |= (event->events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    end->hung_up |= (event->events & (is_pair ? EPOLLHUP : EPOLLERR)) != 0;
    queue_turn(loop, end->stream);
}

/* Ends streams whose time is over. */
static void sweep_streams(struct hearth_tls_loop *loop, int64_t now)
{
    struct hearth_tls_stream *next;

    loop->swept_ns = now;
    for (struct hearth_tls_stream *stream = loop->oldest; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->is_queued || stream->state == HEARTH_TLS_RELAYING ||
            stream->until_mono_ns > now) {
            continue;
        }
        if (stream->state == HEARTH_TLS_SHAKING) {
            stream->failure = "timeout";
            loop->options.failed(loop->options.context, stream);
        }
        free_stream(loop, stream);
    }
}

/* True if a stream has a time limit. */
static bool has_limits(const struct hearth_tls_loop *loop)
{
    return (loop->oldest != NULL && loop->oldest->state == HEARTH_TLS_SHAKING) ||
           atomic_load(&loop->n_draining) > 0;
}

/* True if all clients were sent what their libraries wrote, also those of streams that the loop
 * was given and has not adopted yet. */
static bool is_drained(struct hearth_tls_loop *loop)
{
    hearth_mutex_lock(&loop->lock);
    bool has_new = loop->inbox.first != NULL;
    hearth_mutex_unlock(&loop->lock);
    if (has_new) {
        return false;
    }

    for (const struct hearth_tls_stream *stream = loop->oldest; stream != NULL;
         stream = stream->next) {
        if (stream->state != HEARTH_TLS_LINGERING) {
            return false;
        }
    }
    return true;
}

static bool should_stop(struct hearth_tls_loop *loop, int64_t now, int64_t *stop_ns)
{
    int stop = atomic_load(&loop->stop);

    if (stop != STOP_NOT && *stop_ns == 0) {
        *stop_ns = now + STOP_NS;
    }

    return stop == STOP_NOW || (stop == STOP_DRAINS && (is_drained(loop) || now >= *stop_ns));
}

static void *run_loop(void *arg)
{
    struct hearth_tls_loop *loop = arg;
    struct epoll_event events[MAX_EVENTS];
    int64_t stop_ns = 0, now = hearth_clock_mono_ns();

    while (!should_stop(loop, now, &stop_ns)) {
        int wait_ms = loop->turns.first != NULL ? 0
                      : stop_ns != 0            ? STOP_WAIT_MS
                      : has_limits(loop)        ? (int)(SWEEP_NS / HEARTH_NS_PER_MS)
                                                : -1;
        int n = epoll_wait(loop->epoll_fd, events, MAX_EVENTS, wait_ms);
        now = hearth_clock_mono_ns();

        /* All events are noted before the turns, which may free streams. */
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr != loop) {
                note_event(loop, &events[i]);
                continue;
            }
            uint64_t count;
            (void)!read(loop->wake_fd, &count, sizeof count);
        }

        adopt_streams(loop, now);
        take_turns(loop, now);
        if (now - loop->swept_ns >= SWEEP_NS) {
            sweep_streams(loop, now);
        }
    }

    return NULL;
}

/* ---- start and stop ---- */

static void wake_loop(struct hearth_tls_loop *loop)
{
    uint64_t one = 1;
    ssize_t n = write(loop->wake_fd, &one, sizeof one);
    HEARTH_ASSERT(n == (ssize_t)sizeof one);
}

enum hearth_status hearth_tls_loop_start(const struct hearth_tls_loop_options *options,
                                         struct hearth_tls_loop **ret_loop, struct hearth_err *err)
{
    struct hearth_tls_loop *loop = hearth_mem_zalloc(sizeof *loop);
    if (loop == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for TLS");
    }

    loop->options = *options;
    hearth_mutex_init(&loop->lock, HEARTH_RANK_TLS, "tls_loop.lock");
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = loop};
    bool ok = loop->epoll_fd >= 0 && loop->wake_fd >= 0 &&
              epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) == 0;

    /* The thread leaves signals to the main thread. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    loop->runs = ok && pthread_create(&loop->thread, NULL, run_loop, loop) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!loop->runs) {
        hearth_tls_loop_free(loop);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "cannot start a thread of TLS; raise the limits of threads and files");
    }

    (void)pthread_setname_np(loop->thread, options->name);
    *ret_loop = loop;

    return HEARTH_OK;
}

void hearth_tls_loop_give(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream)
{
    (void)atomic_fetch_add(&loop->n_streams, 1);
    hearth_mutex_lock(&loop->lock);
    bool was_empty = loop->inbox.first == NULL;
    hearth_tls_queue_add(&loop->inbox, stream);
    hearth_mutex_unlock(&loop->lock);

    if (was_empty) {
        wake_loop(loop);
    }
}

void hearth_tls_loop_stop(struct hearth_tls_loop *loop, bool drains)
{
    if (loop->runs) {
        atomic_store(&loop->stop, drains ? STOP_DRAINS : STOP_NOW);
        wake_loop(loop);
        (void)pthread_join(loop->thread, NULL);
        loop->runs = false;
    }

    /* What the thread left, and what came after it. */
    for (struct hearth_tls_stream *stream;
         (stream = hearth_tls_queue_take(&loop->turns)) != NULL;) {
        stream->is_queued = false;
    }
    while (loop->oldest != NULL) {
        free_stream(loop, loop->oldest);
    }
    for (struct hearth_tls_stream *stream;
         (stream = hearth_tls_queue_take(&loop->inbox)) != NULL;) {
        hearth_tls_stream_free(stream);
    }
}

void hearth_tls_loop_free(struct hearth_tls_loop *loop)
{
    if (loop == NULL) {
        return;
    }

    hearth_tls_loop_stop(loop, false);
    if (loop->epoll_fd >= 0) {
        (void)close(loop->epoll_fd);
    }
    if (loop->wake_fd >= 0) {
        (void)close(loop->wake_fd);
    }
    hearth_mutex_destroy(&loop->lock);
    hearth_mem_free(loop);
}
