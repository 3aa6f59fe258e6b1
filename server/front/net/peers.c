/* peers.c -- a table indexed by descriptor, and a dense list of the used entries for loops. */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "net/peers_internal.h"
#include "rpc/front_internal.h"

#include <assert.h>
#include <linux/tcp.h>
#include <netinet/in.h>

struct address {
    unsigned char ip[16];
    uint16_t port; /* host byte order */
    bool is_ipv6, is_tls;
    uint8_t listener;
    unsigned char unused[3];
};

_Static_assert(sizeof(struct address) == sizeof(((struct peer *)NULL)->address), "whole words");

enum hearth_status hearth_peers_new(size_t max_fds, struct hearth_peers **ret_peers,
                                    struct hearth_err *err)
{
    struct hearth_peers *peers =
        hearth_mem_zalloc(sizeof *peers + max_fds * sizeof peers->by_fd[0]);
    uint32_t *fds = hearth_mem_calloc(max_fds, sizeof *fds);
    int64_t *times = hearth_mem_calloc(max_fds, sizeof *times);
    if (peers == NULL || fds == NULL || times == NULL) {
        hearth_mem_free(times);
        hearth_mem_free(peers);
        hearth_mem_free(fds);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a table of %zu peers", max_fds);
    }

    peers->max_fds = max_fds;
    peers->fds = fds;
    peers->times = times;
    hearth_mutex_init(&peers->tls_lock, HEARTH_RANK_PEERS, "peers.tls_lock");
    *ret_peers = peers;

    return HEARTH_OK;
}

void hearth_peers_free(struct hearth_peers *peers)
{
    if (peers == NULL) {
        return;
    }

    for (size_t i = 0; i < peers->n; i++) {
        hearth_tls_side_unref(peers->by_fd[peers->fds[i]].tls);
    }

    hearth_mutex_destroy(&peers->tls_lock);
    hearth_mem_free(peers->fds);
    hearth_mem_free(peers->times);
    hearth_mem_free(peers);
}

/* The kernel's cookie of a socket; 0 if the descriptor is not a socket. */
static uint64_t read_socket_cookie(int fd)
{
    uint64_t cookie = 0;
    socklen_t n = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &n) == 0 ? cookie : 0;
}

/* Sets the TLS side of an entry. */
static void set_tls_side(struct hearth_peers *peers, struct peer *peer,
                         struct hearth_tls_side *side)
{
    if (peer->tls == NULL && side == NULL) {
        return;
    }

    hearth_mutex_lock(&peers->tls_lock);
    struct hearth_tls_side *old = peer->tls;
    peer->tls = side == NULL ? NULL : hearth_tls_side_ref(side);
    hearth_mutex_unlock(&peers->tls_lock);
    hearth_tls_side_unref(old);
}

void hearth_peers_remove(struct hearth_peers *peers, int fd)
{
    if (fd < 0 || (size_t)fd >= peers->max_fds || peers->by_fd[fd].listed == 0) {
        return;
    }

    peers->n_cut -= peers->by_fd[fd].is_cut ? 1 : 0;
    peers->by_fd[fd].is_cut = false;
    set_tls_side(peers, &peers->by_fd[fd], NULL);
    /* The last one of the dense list takes its place. */
    uint32_t at = peers->by_fd[fd].listed;
    assert(at >= 1 && at <= peers->n);
    uint32_t last = peers->fds[--peers->n];
    peers->fds[at - 1] = last;
    peers->by_fd[last].listed = at;
    peers->by_fd[fd].listed = 0;
}

static struct address read_address(const struct hearth_origin *origin)
{
    const struct sockaddr_storage *from = &origin->address;
    struct address address = {.is_ipv6 = from->ss_family == AF_INET6,
                              .is_tls = origin->tls != NULL,
                              .listener = origin->listener};

    if (address.is_ipv6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
        memcpy(address.ip, &in6->sin6_addr, sizeof in6->sin6_addr);
        address.port = ntohs(in6->sin6_port);
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        memcpy(address.ip, &in->sin_addr, sizeof in->sin_addr);
        address.port = ntohs(in->sin_port);
    }

    return address;
}

static void set_address(struct peer *peer, const struct hearth_origin *origin)
{
    struct address address = read_address(origin);
    uint64_t words[3];

    memcpy(words, &address, sizeof words);
    uint64_t generation = atomic_load_explicit(&peer->reading, memory_order_relaxed) >> 32;
    atomic_store_explicit(&peer->reading, (generation + 1) << 32, memory_order_relaxed);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(words); i++) {
        atomic_store_explicit(&peer->address[i], words[i], memory_order_release);
    }

    atomic_store_explicit(&peer->reading, (generation + 2) << 32, memory_order_release);
}

void hearth_peers_find(const struct hearth_peers *peers, int fd, struct hearth_peer *ret_peer)
{
    *ret_peer = (struct hearth_peer){.fd = -1};
    if (fd < 0 || (size_t)fd >= peers->max_fds) {
        return;
    }

    const struct peer *peer = &peers->by_fd[fd];
    uint64_t before = atomic_load_explicit(&peer->reading, memory_order_acquire) >> 32;
    uint64_t words[3];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(words); i++) {
        words[i] = atomic_load_explicit(&peer->address[i], memory_order_acquire);
    }

    uint64_t after = atomic_load_explicit(&peer->reading, memory_order_relaxed) >> 32;
    if (before != after || before == 0 || before % 2 != 0) {
        return;
    }

    struct address address;
    memcpy(&address, words, sizeof address);
    *ret_peer = (struct hearth_peer){.fd = fd,
                                     .generation = (uint32_t)before,
                                     .port = address.port,
                                     .is_ipv6 = address.is_ipv6,
                                     .is_tls = address.is_tls,
                                     .listener = address.listener};
    memcpy(ret_peer->ip, address.ip, sizeof ret_peer->ip);
}

static void begin_pace(struct peer *peer)
{
    peer->added_mono_ns = hearth_clock_mono_ns();
    peer->pace =
        (struct pace){.mono_ns = peer->added_mono_ns, .progress_mono_ns = peer->added_mono_ns};
    atomic_store_explicit(&peer->stage, HEARTH_PEER_HEAD, memory_order_relaxed);
    atomic_store_explicit(&peer->is_proven, false, memory_order_relaxed);
}

void hearth_peers_add(struct hearth_peers *peers, int fd, const struct hearth_origin *origin)
{
    if (fd < 0 || (size_t)fd >= peers->max_fds) {
        return;
    }

    /* If the number has an entry, its connection has gone: the kernel has reused the number. */
    hearth_peers_remove(peers, fd);
    struct peer *peer = &peers->by_fd[fd];
    peer->cookie = read_socket_cookie(fd);
    peer->is_grpc = false;
    set_address(peer, origin);
    set_tls_side(peers, peer, origin->tls); /* after the generation: see the certificate */
    atomic_store_explicit(&peer->n_progress, 0, memory_order_relaxed);
    peer->seen_progress = 0;
    peer->base_bytes = peer->since_bytes = 0;
    peer->base_mono_ns = hearth_clock_mono_ns();
    begin_pace(peer);
    assert(peers->n < peers->max_fds);
    peers->fds[peers->n++] = (uint32_t)fd;
    peer->listed = (uint32_t)peers->n;
}

void hearth_peers_sweep(struct hearth_peers *peers)
{
    for (size_t i = 0; i < peers->n;) {
        int fd = (int)peers->fds[i];
        if (read_socket_cookie(fd) == peers->by_fd[fd].cookie) {
            i++;
        } else {
            hearth_peers_remove(peers, fd); /* the last one is at i now */
        }
    }
}

void hearth_peers_set_grpc(struct hearth_peers *peers, int fd)
{
    if (fd >= 0 && (size_t)fd < peers->max_fds) {
        peers->by_fd[fd].is_grpc = true;
    }
}

struct hearth_certificate *hearth_peers_certificate(struct hearth_peers *peers,
                                                    const struct hearth_peer *peer)
{
    struct hearth_certificate *found = NULL;

    if (peer->fd < 0 || !peer->is_tls) {
        return NULL;
    }

    /* The acceptor changes the generation first and the side afterwards, under the lock. So if the
     * generation is still the peer's, the side is that of the peer or not set yet. */
    hearth_mutex_lock(&peers->tls_lock);
    const struct peer *entry = &peers->by_fd[peer->fd];
    uint64_t reading = atomic_load_explicit(&entry->reading, memory_order_acquire);
    if (reading >> 32 == peer->generation && entry->tls != NULL &&
        entry->tls->certificate != NULL) {
        found = hearth_certificate_ref(entry->tls->certificate);
    }
    hearth_mutex_unlock(&peers->tls_lock);

    return found;
}

bool hearth_peers_is_relayed(const struct hearth_peers *peers, int fd)
{
    struct hearth_peer peer;
    hearth_peers_find(peers, fd, &peer);
    return peer.fd >= 0 && peer.is_tls;
}

void hearth_peers_progress(struct hearth_peers *peers, const struct hearth_peer *peer)
{
    /* If the number belongs to another connection by now, its measuring begins again: no harm. */
    if (peer->fd >= 0) {
        (void)atomic_fetch_add_explicit(&peers->by_fd[peer->fd].n_progress, 1,
                                        memory_order_relaxed);
    }
}

void hearth_peers_reading(struct hearth_peers *peers, const struct hearth_peer *peer, int n)
{
    if (peer->fd < 0) {
        return;
    }

    _Atomic uint64_t *reading = &peers->by_fd[peer->fd].reading;
    uint64_t now = atomic_load_explicit(reading, memory_order_relaxed), then;
    do {
        if (now >> 32 != peer->generation) {
            return;
        }
        then = (uint64_t)peer->generation << 32 | (uint32_t)((int32_t)(uint32_t)now + n);
    } while (!atomic_compare_exchange_weak_explicit(reading, &now, then, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void hearth_peers_set_quiet_rate(struct hearth_peers *peers, uint64_t bytes_per_s)
{
    peers->quiet_bytes_per_s = bytes_per_s;
}

bool hearth_peers_measure(const struct hearth_peers *peers, int fd,
                          struct hearth_traffic *ret_traffic)
{
    const struct hearth_tls_side *side = peers->by_fd[fd].tls;
    struct tcp_info info = {0};
    socklen_t n = sizeof info;

    assert(ret_traffic != NULL);
    if (side != NULL) {
        *ret_traffic = (struct hearth_traffic){
            .bytes = atomic_load_explicit(&side->bytes, memory_order_relaxed),
            .segments = atomic_load_explicit(&side->records, memory_order_relaxed),
        };
        return read_socket_cookie(fd) != 0;
    }

    bool is_open = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0;
    *ret_traffic = (struct hearth_traffic){.bytes = info.tcpi_bytes_received,
                                           .segments = info.tcpi_data_segs_in};

    return is_open;
}

/* The bytes that pings may have brought since the last progress. */
static uint64_t count_quiet_bytes(const struct peer *peer, uint64_t bytes_per_s,
                                  int64_t now_mono_ns)
{
    uint64_t ms = (uint64_t)(now_mono_ns - peer->base_mono_ns) / HEARTH_NS_PER_MS;
    return ms * bytes_per_s / 1000;
}

/* Sets since_bytes. */
static void measure_unread(struct hearth_peers *peers, int fd, int64_t now_mono_ns)
{
    struct peer *peer = &peers->by_fd[fd];
    struct hearth_traffic traffic;

    if (!hearth_peers_measure(peers, fd, &traffic)) {
        peer->since_bytes = 0;
        return;
    }

    uint32_t progress = atomic_load_explicit(&peer->n_progress, memory_order_relaxed);
    if (progress != peer->seen_progress) {
        peer->seen_progress = progress;
        peer->base_bytes = traffic.bytes;
        peer->base_mono_ns = now_mono_ns;
    }

    uint64_t since = traffic.bytes - peer->base_bytes;
    uint64_t quiet = count_quiet_bytes(peer, peers->quiet_bytes_per_s, now_mono_ns);
    peer->since_bytes = since > quiet ? since - quiet : 0;
}

bool hearth_peers_cut(struct hearth_peers *peers, int fd)
{
    struct peer *peer = &peers->by_fd[fd];
    bool is_same = read_socket_cookie(fd) == peer->cookie;

    if (is_same && peer->tls != NULL) { /* the relay resets the client's connection */
        atomic_store_explicit(&peer->tls->is_cut, true, memory_order_release);
        (void)shutdown(fd, SHUT_RDWR);
    } else if (is_same) { /* connecting to nothing resets it and keeps the descriptor */
        static const struct sockaddr nothing = {.sa_family = AF_UNSPEC};
        (void)connect(fd, &nothing, sizeof nothing);
    }

    peer->is_grpc = false;
    peer->since_bytes = 0;
    if (!peer->is_cut) {
        peer->is_cut = true;
        peers->n_cut++;
    }

    return is_same;
}

void hearth_peers_end_grpc(struct hearth_peers *peers)
{
    for (size_t i = 0; i < peers->n; i++) {
        int fd = (int)peers->fds[i];
        const struct peer *peer = &peers->by_fd[fd];
        if (peer->is_grpc && read_socket_cookie(fd) == peer->cookie) {
            (void)shutdown(fd, SHUT_WR);
        }
    }
}

size_t hearth_peers_guard(struct hearth_peers *peers, uint64_t slack_bytes, uint64_t message_bytes,
                          uint64_t total_bytes)
{
    size_t n_cut = 0;
    uint64_t sum = 0;
    int64_t now = hearth_clock_mono_ns();
    int worst = -1;

    for (size_t i = 0; i < peers->n; i++) {
        int fd = (int)peers->fds[i];
        struct peer *peer = &peers->by_fd[fd];
        if (!peer->is_grpc) {
            continue;
        }
        measure_unread(peers, fd, now);
        int32_t n_reading =
            (int32_t)(uint32_t)atomic_load_explicit(&peer->reading, memory_order_relaxed);
        uint64_t allowed = slack_bytes + message_bytes * (n_reading > 0 ? (uint64_t)n_reading : 0);
        if (peer->since_bytes > allowed) {
            n_cut += hearth_peers_cut(peers, fd) ? 1 : 0;
            continue;
        }
        sum += peer->since_bytes;
        if (worst < 0 || peer->since_bytes > peers->by_fd[worst].since_bytes) {
            worst = fd;
        }
    }

    if (sum > total_bytes && worst >= 0) {
        n_cut += hearth_peers_cut(peers, worst) ? 1 : 0;
    }

    return n_cut;
}

size_t hearth_peers_count(const struct hearth_peers *peers)
{
    assert(peers->n_cut <= peers->n);
    return peers->n - peers->n_cut;
}

void hearth_peer_text(const struct hearth_peer *peer, char out[HEARTH_PEER_TEXT_BYTES])
{
    if (peer->fd < 0) {
        hearth_address_text(&(struct sockaddr){.sa_family = AF_UNSPEC}, out);
        return;
    }
    hearth_ip_text(peer->is_ipv6, peer->ip, peer->port, out);
}
