/*
 * acceptor.c -- accepts connections, peeks at their first bytes, hands them over.
 *
 * One thread, one epoll set: the listeners (level-triggered), a wake-up eventfd, the epoll set of
 * lingering connections, and the pending connections, whose first bytes have not come
 * (edge-triggered, because a peeked byte stays readable). Pending connections are in a list in
 * order of arrival and time out from its head; an extra one, whose time is shorter, may have to
 * wait for an older one.
 */
#include "net/acceptor.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/log_rate.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "net/cpu_timer.h"
#include "net/linger.h"
#include "net/listen.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_EVENTS        256
#define ACCEPTS_PER_ROUND 64
#define SWEEP_NS          HEARTH_NS_PER_SEC
#define FULL_SWEEP_NS     (50 * HEARTH_NS_PER_MS)  /* between searches for room, at the limit */
#define GUARD_NS          (100 * HEARTH_NS_PER_MS) /* of wall time at least, of CPU time at most */
/* More than a client sends before it knows that its call was refused. */
#define GUARD_SLACK   (UINT64_C(16) << 20)
#define TRIM_NS       HEARTH_NS_PER_SEC
#define PAUSE_NS      (50 * HEARTH_NS_PER_MS)
#define MAX_TABLE_FDS (1u << 20)
/* Connections above the limit, for health checks; fit_to_descriptors leaves room for them. */
#define HEALTH_RESERVE 32
/* The client's socket and the two ends of the pair. */
#define FDS_PER_TLS_CONNECTION 3
/* How many of them may be pending. */
#define HEALTH_MAX_PENDING    16
#define HEALTH_FIRST_BYTES_NS (2 * HEARTH_NS_PER_SEC)

/* A connection that has not shown yet whether it is gRPC or HTTP. */
struct pending {
    struct pending *prev, *next;
    int64_t deadline_mono_ns;
    int fd;
    bool is_extra; /* above max_connections: may only be a health check */
    struct hearth_origin origin;
};

struct hearth_acceptor {
    struct hearth_acceptor_options options;
    struct hearth_listeners listeners;
    struct hearth_peers *peers;
    struct hearth_lingers *lingers;
    struct hearth_tls *tls; /* NULL: no listener uses it */
    int epoll_fd;
    int wake_fd;  /* written once, by hearth_acceptor_stop */
    int spare_fd; /* see refuse_for_want_of_fds; -1: could not be opened again yet */
    bool runs;    /* the thread was started and not joined */
    pthread_t thread;
    _Atomic int64_t turned_ns; /* written by the thread; any may read it */

    /* All members below belong to the acceptor's thread. */
    struct pending *oldest, *newest; /* in order of arrival */
    size_t n_extra;                  /* pending connections that are extra */
    int64_t paused_until_ns;         /* listeners are not in the epoll set; 0: they are in it */
    int64_t swept_ns;                /* when gone connections were last removed from the peers */
    int64_t guarded_ns;              /* when hearth_peers_guard last ran */
    bool is_guard_wanted;            /* the CPU timer has ended since, or could not be armed */
    int64_t paced_ns;                /* when slow connections were last cut */
    int64_t no_room_until_ns;        /* do not search for room before this time */
    int64_t trim_ns;                 /* when to give memory back to the kernel; 0: not needed */
    bool has_grpc;                   /* there was a gRPC connection */
    struct hearth_cpu_timer cpu_timer;
    struct hearth_log_rate refused_rate, cut_rate, slow_rate, room_rate, tls_rate;
};

/* Values of epoll_data.ptr for events that are not of a pending connection. */
static char g_tag_listener, g_tag_wake, g_tag_lingers, g_tag_tls;

static void unlink_pending(struct hearth_acceptor *acceptor, struct pending *pending)
{
    assert(acceptor->oldest != NULL && (!pending->is_extra || acceptor->n_extra > 0));
    acceptor->n_extra -= pending->is_extra ? 1 : 0;
    *(pending->prev != NULL ? &pending->prev->next : &acceptor->oldest) = pending->next;
    *(pending->next != NULL ? &pending->next->prev : &acceptor->newest) = pending->prev;
}

static void drop_pending(struct hearth_acceptor *acceptor, struct pending *pending)
{
    unlink_pending(acceptor, pending);
    hearth_peers_remove(acceptor->peers, pending->fd);
    (void)close(pending->fd); /* also removes it from the epoll set */
    hearth_mem_free(pending);
}

/* What the first bytes of a connection say. */
enum verdict {
    IS_GRPC,
    IS_HTTP,
    IS_TLS,       /* a handshake, where plain bytes are expected */
    IS_UNDECIDED, /* more bytes are needed */
    IS_GONE,      /* the client has left, or may not enter */
};

/* "PRI " begins the preface of HTTP/2, and no HTTP/1.1 request that the server answers. */
static enum verdict peek_protocol(int fd)
{
    static const char preface[4] = {'P', 'R', 'I', ' '};
    char first[4];
    ssize_t n = recv(fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? IS_UNDECIDED : IS_GONE;
    }

    if (n == 0) {
        return IS_GONE;
    }
    if (memcmp(first, preface, (size_t)n) != 0) {
        return first[0] == HEARTH_TLS_FIRST_BYTE ? IS_TLS : IS_HTTP;
    }

    return n == (ssize_t)sizeof preface ? IS_GRPC : IS_UNDECIDED;
}

/* IS_HTTP for a health check, IS_GONE for any other request. */
static enum verdict peek_health_check(int fd)
{
    static const char *const wanted[] = {"GET /healthz ", "GET /ready ", "HEAD /healthz ",
                                         "HEAD /ready "};
    char first[16];
    ssize_t n = recv(fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? IS_UNDECIDED : IS_GONE;
    }

    for (size_t i = 0; n > 0 && i < HEARTH_ARRAY_LEN(wanted); i++) {
        size_t n_wanted = strlen(wanted[i]);
        if (memcmp(first, wanted[i], (size_t)n < n_wanted ? (size_t)n : n_wanted) == 0) {
            return (size_t)n < n_wanted ? IS_UNDECIDED : IS_HTTP;
        }
    }

    return IS_GONE;
}

static void hand_over(struct hearth_acceptor *acceptor, bool is_grpc, int fd,
                      const struct hearth_origin *origin)
{
    assert(fd >= 0);
    const struct sockaddr *address = (const struct sockaddr *)&origin->address;
    socklen_t address_bytes = origin->address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                    : sizeof(struct sockaddr_in);
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    hearth_metric_add_label(HEARTH_M_CONNECTIONS_TOTAL,
                            is_grpc ? HEARTH_STR("grpc") : HEARTH_STR("http"), 1);

    /* From now on the taker owns the descriptor. */
    const struct hearth_acceptor_options *options = &acceptor->options;
    if (is_grpc) {
        acceptor->has_grpc = true;
        hearth_peers_set_grpc(acceptor->peers, fd);
        options->take_grpc(options->grpc_context, fd, address, address_bytes);
    } else {
        options->take_http(options->http_context, fd, address, address_bytes);
    }
}

static void log_refused(struct hearth_acceptor *acceptor, const char *why)
{
    hearth_metric_add_label(HEARTH_M_CONNECTIONS_TOTAL, HEARTH_STR("refused"), 1);
    int missed;
    if (hearth_log_rate_take(&acceptor->refused_rate, 1, hearth_clock_mono_ns(), &missed)) {
        HEARTH_LOG(HEARTH_LOG_WARN, "front", "refusing connections", "reason", why, "open",
                   hearth_log_i64((int64_t)hearth_peers_count(acceptor->peers)), "missed",
                   hearth_log_i64(missed), NULL);
    }
}

/* A client that speaks TLS to a port without it would wait for an answer in vain. */
static void log_unexpected_tls(struct hearth_acceptor *acceptor, const struct hearth_origin *origin)
{
    char peer[HEARTH_PEER_TEXT_BYTES];
    int missed;

    hearth_metric_add_label(HEARTH_M_CONNECTIONS_TOTAL, HEARTH_STR("tls"), 1);
    if (hearth_log_rate_take(&acceptor->tls_rate, 1, hearth_clock_mono_ns(), &missed)) {
        hearth_address_text((const struct sockaddr *)&origin->address, peer);
        HEARTH_LOG(HEARTH_LOG_WARN, "front",
                   "closed a connection that began with TLS on a port without it; listen on "
                   "https://, or let the client use http",
                   "peer", peer, "addr", acceptor->listeners.all[origin->listener].text, "missed",
                   hearth_log_i64(missed), NULL);
    }
}

static void check_pending(struct hearth_acceptor *acceptor, struct pending *pending, bool hung_up)
{
    enum verdict verdict =
        pending->is_extra ? peek_health_check(pending->fd) : peek_protocol(pending->fd);

    if (verdict == IS_UNDECIDED && !hung_up) {
        return;
    }

    if (verdict == IS_TLS) {
        log_unexpected_tls(acceptor, &pending->origin);
    }

    if (verdict == IS_UNDECIDED || verdict == IS_GONE || verdict == IS_TLS) {
        if (pending->is_extra) {
            log_refused(acceptor, "max-connections");
        }
        drop_pending(acceptor, pending);
        return;
    }

    (void)epoll_ctl(acceptor->epoll_fd, EPOLL_CTL_DEL, pending->fd, NULL);
    unlink_pending(acceptor, pending);
    hand_over(acceptor, verdict == IS_GRPC, pending->fd, &pending->origin);
    hearth_mem_free(pending);
}

static void wait_for_bytes(struct hearth_acceptor *acceptor, int fd,
                           const struct hearth_origin *origin, bool is_extra)
{
    int64_t wait_ns = acceptor->options.first_bytes_timeout_ns;

    if (is_extra && wait_ns > HEALTH_FIRST_BYTES_NS) {
        wait_ns = HEALTH_FIRST_BYTES_NS;
    }

    struct pending *pending = hearth_mem_alloc(sizeof *pending);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = pending};
    if (pending == NULL || epoll_ctl(acceptor->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        hearth_mem_free(pending);
        hearth_peers_remove(acceptor->peers, fd);
        (void)close(fd);
        return;
    }

    *pending = (struct pending){
        .prev = acceptor->newest,
        .deadline_mono_ns = hearth_clock_mono_ns() + wait_ns,
        .fd = fd,
        .is_extra = is_extra,
        .origin = *origin,
    };
    *(pending->prev != NULL ? &pending->prev->next : &acceptor->oldest) = pending;
    acceptor->newest = pending;
    acceptor->n_extra += is_extra ? 1 : 0;
}

/* The open connections. TLS connections whose library has closed its end are not in the table. */
static size_t count_open(const struct hearth_acceptor *acceptor)
{
    return hearth_peers_count(acceptor->peers) +
           (acceptor->tls == NULL ? 0 : hearth_tls_count_draining(acceptor->tls));
}

static bool is_full(const struct hearth_acceptor *acceptor)
{
    return count_open(acceptor) >= acceptor->options.max_connections;
}

static bool is_tls_listener(const struct hearth_acceptor *acceptor,
                            const struct hearth_origin *origin)
{
    return acceptor->listeners.all[origin->listener].is_tls;
}

/*
 * At the limit: removes connections that have gone, then cuts some to make room. After a search
 * that found none to cut, the next search waits for FULL_SWEEP_NS.
 */
static void make_room(struct hearth_acceptor *acceptor)
{
    int64_t now = hearth_clock_mono_ns();
    if (now < acceptor->no_room_until_ns) {
        return;
    }

    /* First, connections that have gone. */
    acceptor->swept_ns = now;
    hearth_peers_sweep(acceptor->peers);
    if (!is_full(acceptor)) {
        return;
    }

    /* Then, connections that bring no request. */
    size_t n_cut = hearth_peers_make_room(acceptor->peers, &acceptor->options.pace);
    hearth_metric_add_label(HEARTH_M_CONNECTIONS_TOTAL, HEARTH_STR("displaced"), (int64_t)n_cut);
    if (n_cut == 0) {
        acceptor->no_room_until_ns = now + FULL_SWEEP_NS;
    }

    int missed;
    if (n_cut > 0 && hearth_log_rate_take(&acceptor->room_rate, 1, now, &missed)) {
        HEARTH_LOG(HEARTH_LOG_WARN, "front",
                   "max-connections reached: cut connections that brought no request or are idle",
                   "cut", hearth_log_i64((int64_t)n_cut), "open",
                   hearth_log_i64((int64_t)hearth_peers_count(acceptor->peers)), "missed",
                   hearth_log_i64(missed), NULL);
    }
}

/* Above the limit: it may be a health check. The oldest pending extra connections give way. */
static void take_extra_connection(struct hearth_acceptor *acceptor, int fd,
                                  const struct hearth_origin *origin)
{
    bool is_tls = is_tls_listener(acceptor, origin);

    if (count_open(acceptor) >= acceptor->options.max_connections + HEALTH_RESERVE ||
        (is_tls && hearth_tls_count_extra(acceptor->tls) >= HEALTH_MAX_PENDING)) {
        (void)close(fd);
        log_refused(acceptor, "max-connections");
        return;
    }

    for (struct pending *pending = acceptor->oldest; acceptor->n_extra >= HEALTH_MAX_PENDING;) {
        struct pending *next = pending->next;
        if (pending->is_extra) {
            log_refused(acceptor, "max-connections");
            drop_pending(acceptor, pending);
        }
        pending = next;
    }

    hearth_peers_add(acceptor->peers, fd, origin);
    if (is_tls) {
        hearth_tls_take(acceptor->tls, fd, origin, true);
    } else {
        wait_for_bytes(acceptor, fd, origin, true);
    }
}

static void take_connection(struct hearth_acceptor *acceptor, int fd,
                            const struct hearth_origin *origin)
{
    if (is_full(acceptor)) {
        make_room(acceptor);
    }

    if (is_full(acceptor)) {
        take_extra_connection(acceptor, fd, origin);
        return;
    }

    hearth_peers_add(acceptor->peers, fd, origin);
    if (is_tls_listener(acceptor, origin)) {
        hearth_tls_take(acceptor->tls, fd, origin, false);
        return;
    }

    enum verdict verdict = peek_protocol(fd);
    if (verdict == IS_TLS) {
        log_unexpected_tls(acceptor, origin);
    }
    if (verdict == IS_GONE || verdict == IS_TLS) {
        hearth_peers_remove(acceptor->peers, fd);
        (void)close(fd);
    } else if (verdict == IS_UNDECIDED) {
        wait_for_bytes(acceptor, fd, origin, false);
    } else {
        hand_over(acceptor, verdict == IS_GRPC, fd, origin);
    }
}

/* Connections whose handshake is complete. The client's socket leaves the table and the library's
 * end of the pair enters it. */
static void take_decrypted(struct hearth_acceptor *acceptor)
{
    for (struct hearth_tls_stream *stream; (stream = hearth_tls_next(acceptor->tls)) != NULL;) {
        struct hearth_origin origin = stream->origin;
        int fd = stream->lib_fd;
        bool is_extra = stream->is_extra;

        stream->lib_fd = -1;
        hearth_peers_remove(acceptor->peers, stream->client.fd);
        hearth_peers_add(acceptor->peers, fd, &origin);
        origin.tls = NULL; /* the table has the reference */
        wait_for_bytes(acceptor, fd, &origin, is_extra);
        hearth_tls_relay_on(acceptor->tls, stream);
    }
}

/* Resumes accepting, or pauses it for PAUSE_NS. */
static void set_listening(struct hearth_acceptor *acceptor, bool on)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &g_tag_listener};
    for (size_t i = 0; i < acceptor->listeners.n; i++) {
        (void)epoll_ctl(acceptor->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                        acceptor->listeners.all[i].fd, &event);
    }
    acceptor->paused_until_ns = on ? 0 : hearth_clock_mono_ns() + PAUSE_NS;
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * No descriptor is left. Connections in the backlog would keep the listener readable, so they are
 * accepted with the spare descriptor and closed. Without a spare, accepting pauses.
 */
static void refuse_for_want_of_fds(struct hearth_acceptor *acceptor, int listener)
{
    for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        if (acceptor->spare_fd < 0) {
            break;
        }
        (void)close(acceptor->spare_fd);
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)close(fd);
            log_refused(acceptor, "out of descriptors");
        }
        acceptor->spare_fd = open_spare();
        if (fd < 0) {
            return;
        }
    }

    set_listening(acceptor, false);
}

static void accept_some(struct hearth_acceptor *acceptor, uint8_t listener)
{
    int listener_fd = acceptor->listeners.all[listener].fd;

    for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        struct hearth_origin origin = {.listener = listener};
        socklen_t n = sizeof origin.address;
        int fd = accept4(listener_fd, (struct sockaddr *)&origin.address, &n,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take_connection(acceptor, fd, &origin);
        } else if (errno == EMFILE || errno == ENFILE) {
            refuse_for_want_of_fds(acceptor, listener_fd);
            return;
        } else if (errno == ENOBUFS || errno == ENOMEM) {
            set_listening(acceptor, false);
            return;
        } else if (errno == EAGAIN) {
            return;
        }

        /* All other errors (ECONNABORTED, EINTR, network errors) concern that one connection. */
    }
}

static void accept_all(struct hearth_acceptor *acceptor)
{
    for (size_t i = 0; i < acceptor->listeners.n && acceptor->paused_until_ns == 0; i++) {
        accept_some(acceptor, (uint8_t)i);
    }
}

/*
 * Cuts gRPC connections that flood; a second later, the memory of the flood is given back. A flood
 * costs gRPC's thread time of a processor. So the guard runs when the process has used GUARD_NS of
 * that since the last time, and at least with each sweep. While little is to do, this thread
 * sleeps.
 */
static void guard_memory(struct hearth_acceptor *acceptor, int64_t now)
{
    if (acceptor->has_grpc && now - acceptor->guarded_ns >= GUARD_NS) {
        acceptor->guarded_ns = now;
        acceptor->is_guard_wanted = !hearth_cpu_timer_arm(&acceptor->cpu_timer, GUARD_NS);
        size_t n_cut =
            hearth_peers_guard(acceptor->peers, GUARD_SLACK, acceptor->options.max_message_bytes,
                               acceptor->options.max_unread_bytes);
        int missed;
        if (n_cut > 0) {
            hearth_metric_add_label(HEARTH_M_CONNECTIONS_TOTAL, HEARTH_STR("cut"), (int64_t)n_cut);
            acceptor->trim_ns = now + TRIM_NS;
        }
        if (n_cut > 0 && hearth_log_rate_take(&acceptor->cut_rate, 1, now, &missed)) {
            HEARTH_LOG(HEARTH_LOG_WARN, "front",
                       "cut a gRPC connection that sent many bytes without a call or message",
                       "missed", hearth_log_i64(missed), NULL);
        }
    }

    if (acceptor->trim_ns != 0 && acceptor->trim_ns <= now) {
        acceptor->trim_ns = 0;
        (void)malloc_trim(0); /* otherwise the C library keeps the memory of a flood */
    }
}

static void cut_slow_connections(struct hearth_acceptor *acceptor, int64_t now)
{
    size_t n_cut = hearth_peers_cut_slow(acceptor->peers, &acceptor->options.pace);

    hearth_metric_add_label(HEARTH_M_CONNECTIONS_TOTAL, HEARTH_STR("slow"), (int64_t)n_cut);
    int missed;
    if (n_cut > 0 && hearth_log_rate_take(&acceptor->slow_rate, 1, now, &missed)) {
        HEARTH_LOG(HEARTH_LOG_WARN, "front",
                   "cut connections slower than head-timeout and min-body-rate allow", "cut",
                   hearth_log_i64((int64_t)n_cut), "missed", hearth_log_i64(missed), NULL);
    }
}

static void do_timed_work(struct hearth_acceptor *acceptor, int64_t now)
{
    /* Pending connections that are overdue. */
    while (acceptor->oldest != NULL && acceptor->oldest->deadline_mono_ns <= now) {
        hearth_metric_add_label(HEARTH_M_CONNECTIONS_TOTAL, HEARTH_STR("idle"), 1);
        drop_pending(acceptor, acceptor->oldest);
    }

    if (acceptor->paused_until_ns != 0 && acceptor->paused_until_ns <= now) {
        set_listening(acceptor, true);
    }

    if (acceptor->spare_fd < 0) {
        acceptor->spare_fd = open_spare();
    }

    hearth_lingers_work(acceptor->lingers, now);
    guard_memory(acceptor, now);
    if (now - acceptor->paced_ns >= SWEEP_NS) {
        acceptor->paced_ns = now;
        cut_slow_connections(acceptor, now);
    }

    if (now - acceptor->swept_ns >= SWEEP_NS) {
        acceptor->swept_ns = now;
        hearth_peers_sweep(acceptor->peers);
        hearth_metric_set(HEARTH_M_CONNECTIONS, (int64_t)count_open(acceptor));
        hearth_metric_set(HEARTH_M_TLS_CONNECTIONS,
                          acceptor->tls == NULL ? 0
                                                : (int64_t)hearth_tls_count_relayed(acceptor->tls));
    }
}

/* How long epoll_wait may sleep: until the earliest timed work. */
static int compute_timeout_ms(const struct hearth_acceptor *acceptor)
{
    int64_t until = acceptor->swept_ns + SWEEP_NS;

    if (acceptor->oldest != NULL && acceptor->oldest->deadline_mono_ns < until) {
        until = acceptor->oldest->deadline_mono_ns;
    }

    if (acceptor->paused_until_ns != 0 && acceptor->paused_until_ns < until) {
        until = acceptor->paused_until_ns;
    }

    if (acceptor->has_grpc && acceptor->is_guard_wanted &&
        acceptor->guarded_ns + GUARD_NS < until) {
        until = acceptor->guarded_ns + GUARD_NS;
    }

    int64_t ms = (until - hearth_clock_mono_ns()) / HEARTH_NS_PER_MS + 1;

    return ms < 1 ? 1 : (int)ms;
}

static void *run_acceptor(void *arg)
{
    struct hearth_acceptor *acceptor = arg;
    struct epoll_event events[MAX_EVENTS];

    hearth_cpu_timer_start(&acceptor->cpu_timer);
    acceptor->is_guard_wanted = true;
    for (;;) {
        atomic_store(&acceptor->turned_ns, hearth_clock_mono_ns());
        int n = epoll_pwait(acceptor->epoll_fd, events, MAX_EVENTS, compute_timeout_ms(acceptor),
                            &acceptor->cpu_timer.waiting);
        bool is_listening = false, is_ready = false;
        acceptor->is_guard_wanted = acceptor->is_guard_wanted || n < 0; /* by the signal */
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &g_tag_wake) {
                hearth_cpu_timer_stop(&acceptor->cpu_timer);
                return NULL;
            }
            if (events[i].data.ptr == &g_tag_listener) {
                is_listening = true;
            } else if (events[i].data.ptr == &g_tag_tls) {
                is_ready = true;
            } else if (events[i].data.ptr != &g_tag_lingers) { /* do_timed_work does those */
                check_pending(acceptor, events[i].data.ptr,
                              (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
            }
        }
        /* After the loop, because accepting may free pending connections that have events. */
        if (is_ready) {
            take_decrypted(acceptor);
        }
        if (is_listening) {
            accept_all(acceptor);
        }
        do_timed_work(acceptor, hearth_clock_mono_ns());
    }
}

/* Lowers max_connections so that some descriptors are left for the database and the libraries. */
static void fit_to_descriptors(struct hearth_acceptor *acceptor, size_t *ret_max_fds)
{
    struct rlimit limit;
    size_t max_fds = MAX_TABLE_FDS;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < max_fds) {
        max_fds = (size_t)limit.rlim_cur;
    }

    *ret_max_fds = max_fds;
    size_t kept = max_fds / 4 > 128 ? 128 : max_fds / 4;
    size_t max_connections =
        (max_fds - kept) / (acceptor->tls == NULL ? 1 : FDS_PER_TLS_CONNECTION);
    if (acceptor->options.max_connections <= max_connections) {
        return;
    }

    HEARTH_LOG(HEARTH_LOG_INFO, "front",
               "max-connections lowered to fit the limit of open files (RLIMIT_NOFILE)",
               "max_connections", hearth_log_i64((int64_t)max_connections), "descriptors",
               hearth_log_i64((int64_t)max_fds), NULL);
    acceptor->options.max_connections = max_connections;
}

/* Binds all addresses; starts TLS if one of them uses it. */
static enum hearth_status open_listeners(struct hearth_acceptor *acceptor,
                                         const struct hearth_acceptor_options *options,
                                         struct hearth_err *err)
{
    bool uses_tls = false;

    if (options->bound != NULL) {
        acceptor->listeners = *options->bound;
        options->bound->n = 0;
    }

    for (size_t i = 0; options->bound == NULL && options->listen[i] != NULL; i++) {
        HEARTH_TRY(hearth_listeners_add(&acceptor->listeners, options->listen[i], err));
    }

    if (acceptor->listeners.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "no address to listen on; set listen");
    }

    for (size_t i = 0; i < acceptor->listeners.n; i++) {
        uses_tls = uses_tls || acceptor->listeners.all[i].is_tls;
    }

    return uses_tls ? hearth_tls_start(options->tls, options->first_bytes_timeout_ns,
                                       options->pace.head_timeout_ns, &acceptor->tls, err)
                    : HEARTH_OK;
}

enum hearth_status hearth_acceptor_open(const struct hearth_acceptor_options *options,
                                        struct hearth_acceptor **ret_acceptor,
                                        struct hearth_err *err)
{
    struct hearth_acceptor *acceptor = hearth_mem_zalloc(sizeof *acceptor);
    if (acceptor == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the acceptor");
    }

    assert(options->take_grpc != NULL && options->take_http != NULL);
    acceptor->options = *options;
    acceptor->options.listen = NULL;
    acceptor->options.tls = NULL;
    acceptor->options.bound = NULL;
    acceptor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    acceptor->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    acceptor->spare_fd = open_spare();

    /* Later steps are skipped when one has failed. */
    enum hearth_status status = HEARTH_OK;
    if (acceptor->epoll_fd < 0 || acceptor->wake_fd < 0 || acceptor->spare_fd < 0) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "no descriptors left for the acceptor; raise the limit of open files");
    }

    if (status == HEARTH_OK) {
        status = open_listeners(acceptor, options, err);
    }

    if (status == HEARTH_OK) {
        size_t max_fds;
        fit_to_descriptors(acceptor, &max_fds);
        hearth_metric_set(HEARTH_M_CONNECTIONS_LIMIT, (int64_t)acceptor->options.max_connections);
        status = hearth_peers_new(max_fds, &acceptor->peers, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_lingers_new(&acceptor->lingers, err);
    }

    if (status == HEARTH_OK) {
        hearth_peers_set_quiet_rate(acceptor->peers, options->quiet_bytes_per_s);
    }

    if (status != HEARTH_OK) {
        hearth_acceptor_free(acceptor);
        return status;
    }

    *ret_acceptor = acceptor;

    return HEARTH_OK;
}

enum hearth_status hearth_acceptor_run(struct hearth_acceptor *acceptor, struct hearth_err *err)
{
    assert(!acceptor->runs && acceptor->listeners.n > 0);
    acceptor->swept_ns = hearth_clock_mono_ns();

    /* The events; pending connections are added as they come. */
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &g_tag_wake};
    (void)epoll_ctl(acceptor->epoll_fd, EPOLL_CTL_ADD, acceptor->wake_fd, &event);
    event.data.ptr = &g_tag_lingers;
    (void)epoll_ctl(acceptor->epoll_fd, EPOLL_CTL_ADD, hearth_lingers_fd(acceptor->lingers),
                    &event);
    if (acceptor->tls != NULL) {
        event.data.ptr = &g_tag_tls;
        (void)epoll_ctl(acceptor->epoll_fd, EPOLL_CTL_ADD, hearth_tls_ready_fd(acceptor->tls),
                        &event);
    }

    set_listening(acceptor, true);
    /* The thread leaves signals to the main thread. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&acceptor->thread, NULL, run_acceptor, acceptor);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the acceptor's thread");
    }

    (void)pthread_setname_np(acceptor->thread, "acceptor");
    acceptor->runs = true;

    return HEARTH_OK;
}

void hearth_acceptor_stop(struct hearth_acceptor *acceptor)
{
    if (acceptor->runs) {
        uint64_t one = 1;
        ssize_t n = write(acceptor->wake_fd, &one, sizeof one);
        HEARTH_ASSERT(n == (ssize_t)sizeof one);
        (void)pthread_join(acceptor->thread, NULL);
        acceptor->runs = false;
    }

    while (acceptor->oldest != NULL) {
        drop_pending(acceptor, acceptor->oldest);
    }

    if (acceptor->tls != NULL) {
        hearth_tls_close_new(acceptor->tls);
    }

    hearth_listeners_close(&acceptor->listeners);
}

static void close_if_open(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

void hearth_acceptor_free(struct hearth_acceptor *acceptor)
{
    if (acceptor == NULL) {
        return;
    }

    hearth_acceptor_stop(acceptor);
    hearth_tls_free(acceptor->tls);
    hearth_peers_free(acceptor->peers);
    hearth_lingers_free(acceptor->lingers);
    close_if_open(acceptor->epoll_fd);
    close_if_open(acceptor->wake_fd);
    close_if_open(acceptor->spare_fd);
    hearth_mem_free(acceptor);
}

const struct hearth_listener *hearth_acceptor_listener(const struct hearth_acceptor *acceptor,
                                                       size_t i)
{
    return i < acceptor->listeners.n ? &acceptor->listeners.all[i] : NULL;
}

int64_t hearth_acceptor_turned_ns(const struct hearth_acceptor *acceptor)
{
    return atomic_load(&acceptor->turned_ns);
}

struct hearth_tls *hearth_acceptor_tls(const struct hearth_acceptor *acceptor)
{
    return acceptor->tls;
}

struct hearth_peers *hearth_acceptor_peers(const struct hearth_acceptor *acceptor)
{
    return acceptor->peers;
}

void hearth_acceptor_linger(struct hearth_acceptor *acceptor, int fd)
{
    if (hearth_peers_is_relayed(acceptor->peers, fd)) {
        return; /* the relay lingers by itself */
    }
    hearth_lingers_add(acceptor->lingers, fd);
}
