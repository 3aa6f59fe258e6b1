/*
 * peers_pace.c -- finds connections that are slow on purpose.
 *
 * Neither library reports the first byte of a head, or the progress of an incomplete frame. Known
 * are the stage of an HTTP request (by callbacks of the library), the time when a call or message
 * of gRPC was complete, and the bytes and segments (for TLS: records) that were received. That is
 * enough: a client that sends anything either brings a request, which must be complete in time, or
 * sends HTTP/2 frames of its own, such as pings, which come complete: the shortest has nine bytes.
 */
#include "hearth/base/clock.h"

#include "net/peers_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define PREFACE_BYTES    24u
#define FRAME_HEAD_BYTES 9u
/* The preface, SETTINGS, and the acknowledgement of the server's SETTINGS. */
#define GREETING_BYTES (PREFACE_BYTES + 2 * FRAME_HEAD_BYTES)
/* Fewer segments say nothing about the pace. */
#define FEW_SEGMENTS 4u
/* About half the head of a frame: a decent client may send head and rest of a frame apart. */
#define SEGMENT_MIN_BYTES 4u
#define IDLE_MIN_NS       (10 * HEARTH_NS_PER_SEC)
/* One eighth of the candidates is cut. */
#define ROOM_PART 8

void hearth_peers_stage(struct hearth_peers *peers, int fd, enum hearth_peer_stage stage)
{
    if (fd < 0 || (size_t)fd >= peers->max_fds) {
        return;
    }

    struct peer *peer = &peers->by_fd[fd];
    atomic_store_explicit(&peer->stage, stage, memory_order_relaxed);
    if (stage == HEARTH_PEER_WORK) {
        atomic_store_explicit(&peer->is_proven, true, memory_order_relaxed);
    }

    /* Release: a thread that sees the progress also sees the stage. */
    (void)atomic_fetch_add_explicit(&peer->n_progress, 1, memory_order_release);
}

void hearth_peers_prove(struct hearth_peers *peers, const struct hearth_peer *peer)
{
    if (peer->fd >= 0) { /* may be another connection by now: see hearth_peers_progress */
        atomic_store_explicit(&peers->by_fd[peer->fd].is_proven, true, memory_order_relaxed);
    }
}

/* Begins another period of measuring. */
static void begin_period(struct peer *peer, const struct hearth_traffic *traffic,
                         int64_t now_mono_ns)
{
    peer->pace.bytes = traffic->bytes;
    peer->pace.segments = traffic->segments;
    peer->pace.mono_ns = now_mono_ns;
}

/* True if received bytes wait for this server to read them: that is not the client's fault. */
static bool has_unread_bytes(int fd)
{
    int n = 0;
    return ioctl(fd, FIONREAD, &n) == 0 && n > 0;
}

static bool is_slow_grpc(struct peer *peer, const struct hearth_traffic *traffic,
                         const struct hearth_pace *pace, int64_t now_mono_ns)
{
    if (traffic->bytes < GREETING_BYTES) {
        return now_mono_ns - peer->added_mono_ns >= pace->head_timeout_ns;
    }

    uint32_t n_segments = traffic->segments - peer->pace.segments;
    uint64_t n_bytes = traffic->bytes - peer->pace.bytes;
    if (n_segments < FEW_SEGMENTS || now_mono_ns - peer->pace.mono_ns < pace->head_timeout_ns) {
        return false;
    }
    if (n_bytes < (uint64_t)n_segments * SEGMENT_MIN_BYTES) {
        return true;
    }

    begin_period(peer, traffic, now_mono_ns);

    return false;
}

static bool is_slow_http(struct peer *peer, const struct hearth_traffic *traffic,
                         const struct hearth_pace *pace, int64_t now_mono_ns)
{
    uint32_t stage = atomic_load_explicit(&peer->stage, memory_order_relaxed);
    uint64_t n_bytes = traffic->bytes - peer->pace.bytes;
    bool is_head = stage == HEARTH_PEER_HEAD || (stage == HEARTH_PEER_IDLE && n_bytes > 0);
    bool is_body = stage == HEARTH_PEER_BODY && pace->min_body_rate > 0;

    if (!is_head && !is_body) {
        begin_period(peer, traffic, now_mono_ns);
        return false;
    }

    if (now_mono_ns - peer->pace.mono_ns < pace->head_timeout_ns) {
        return false;
    }

    uint64_t ms = (uint64_t)(now_mono_ns - peer->pace.mono_ns) / HEARTH_NS_PER_MS;
    if (is_head || n_bytes < ms * (uint64_t)pace->min_body_rate / 1000) {
        return true;
    }

    begin_period(peer, traffic, now_mono_ns); /* for the next part of the body */

    return false;
}

static bool is_slow(struct hearth_peers *peers, int fd, const struct hearth_pace *pace,
                    int64_t now_mono_ns)
{
    struct peer *peer = &peers->by_fd[fd];
    struct hearth_traffic traffic;

    if (peer->is_cut || !hearth_peers_measure(peers, fd, &traffic)) {
        return false;
    }

    uint32_t progress = atomic_load_explicit(&peer->n_progress, memory_order_acquire);
    bool has_progress = progress != peer->pace.seen_progress;
    if (has_progress) {
        peer->pace.seen_progress = progress;
        peer->pace.progress_mono_ns = now_mono_ns;
    }

    if (has_progress || has_unread_bytes(fd)) {
        begin_period(peer, &traffic, now_mono_ns);
        return false;
    }

    return peer->is_grpc ? is_slow_grpc(peer, &traffic, pace, now_mono_ns)
                         : is_slow_http(peer, &traffic, pace, now_mono_ns);
}

size_t hearth_peers_cut_slow(struct hearth_peers *peers, const struct hearth_pace *pace)
{
    size_t n_cut = 0;
    int64_t now = hearth_clock_mono_ns();

    if (pace->head_timeout_ns <= 0) {
        return 0;
    }

    for (size_t i = 0; i < peers->n; i++) {
        int fd = (int)peers->fds[i];
        if (is_slow(peers, fd, pace, now)) {
            n_cut += hearth_peers_cut(peers, fd) ? 1 : 0;
        }
    }

    return n_cut;
}

/* ---- room ---- */

/* The time since when the connection may be cut to make room; INT64_MAX if it may not. */
typedef int64_t since_fn(const struct hearth_peers *peers, int fd, const struct hearth_pace *pace,
                         int64_t now_mono_ns);

static int64_t get_unproven_since(const struct hearth_peers *peers, int fd,
                                  const struct hearth_pace *pace, int64_t now_mono_ns)
{
    const struct peer *peer = &peers->by_fd[fd];
    struct hearth_traffic traffic;

    if (atomic_load_explicit(&peer->is_proven, memory_order_relaxed) ||
        !hearth_peers_measure(peers, fd, &traffic)) {
        return INT64_MAX;
    }

    /* A rate over less than a second says nothing: the first bytes may still be on their way. */
    uint64_t ms = (uint64_t)(now_mono_ns - peer->added_mono_ns) / HEARTH_NS_PER_MS;
    ms = ms < 1000 ? 1000 : ms;
    bool is_fast = traffic.bytes > ms * (uint64_t)pace->min_body_rate / 1000;

    return is_fast && pace->min_body_rate > 0 ? INT64_MAX : peer->added_mono_ns;
}

static int64_t get_idle_since(const struct hearth_peers *peers, int fd,
                              const struct hearth_pace *pace, int64_t now_mono_ns)
{
    const struct peer *peer = &peers->by_fd[fd];
    (void)pace;
    bool is_idle = !peer->is_grpc &&
                   atomic_load_explicit(&peer->stage, memory_order_relaxed) == HEARTH_PEER_IDLE;
    uint32_t progress = atomic_load_explicit(&peer->n_progress, memory_order_relaxed);
    bool is_settled = progress == peer->pace.seen_progress &&
                      now_mono_ns - peer->pace.progress_mono_ns >= IDLE_MIN_NS;
    return is_idle && is_settled ? peer->pace.progress_mono_ns : INT64_MAX;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Cuts an eighth and not a single one, so that one search serves several new connections. */
static size_t cut_oldest_eighth(struct hearth_peers *peers, since_fn *since,
                                const struct hearth_pace *pace)
{
    int64_t now = hearth_clock_mono_ns();
    size_t n = 0, n_cut = 0;

    /* Collect the times of the candidates. */
    for (size_t i = 0; i < peers->n; i++) {
        int fd = (int)peers->fds[i];
        struct peer *peer = &peers->by_fd[fd];
        peer->room_since = peer->is_cut ? INT64_MAX : since(peers, fd, pace, now);
        if (peer->room_since != INT64_MAX) {
            peers->times[n++] = peer->room_since;
        }
    }

    if (n == 0) {
        return 0;
    }

    /* Cut the oldest of them. */
    assert(n <= peers->n);
    qsort(peers->times, n, sizeof peers->times[0], compare_times);
    int64_t until = peers->times[(n - 1) / ROOM_PART];
    for (size_t i = 0; i < peers->n; i++) {
        int fd = (int)peers->fds[i];
        if (peers->by_fd[fd].room_since <= until) {
            n_cut += hearth_peers_cut(peers, fd) ? 1 : 0;
        }
    }

    return n_cut;
}

size_t hearth_peers_make_room(struct hearth_peers *peers, const struct hearth_pace *pace)
{
    size_t n_cut = cut_oldest_eighth(peers, get_unproven_since, pace);
    return n_cut > 0 ? n_cut : cut_oldest_eighth(peers, get_idle_since, pace);
}
