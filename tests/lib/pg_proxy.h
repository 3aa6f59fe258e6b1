/*
 * pg_proxy.h -- a proxy between a store and its PostgreSQL that cuts the connection at a chosen
 * message.
 *
 * It listens on a unix socket of its own and relays whole messages of the PostgreSQL protocol.
 * Armed, it counts the messages of both directions from the first query that contains its marker on
 * (the one of an ingest batch, unless set otherwise) until its transaction has ended, and at the n-th
 * closes both sides: before relaying it, or right after.
 *
 * Threads: one of its own; arm and disarm from any.
 * Source: PostgreSQL documentation, "Frontend/Backend Protocol", message formats.
 */
#ifndef HEARTH_TESTS_PG_PROXY_H
#define HEARTH_TESTS_PG_PROXY_H

#include "hearth/base/compiler.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PG_PROXY_LINKS 64
#define PG_PROXY_BYTES (1 << 20)

struct pg_proxy_side {
    int fd;
    bool started; /* the first message of the client has no type byte */
    size_t n;
    unsigned char *bytes; /* [PG_PROXY_BYTES] not relayed yet */
};

struct pg_proxy_link {
    struct pg_proxy_side client, server;
    bool in_batch;
};

struct pg_proxy {
    char dir[64], target[128];
    const char *marker; /* set before arming */
    int listener;
    pthread_t thread;
    _Atomic bool stopping;
    pthread_mutex_t lock; /* guards the rest */
    bool armed, after;
    int cut_at, n_seen, n_cuts; /* messages seen since armed; cuts still to make */
    char cut_type;              /* of the message at which it was cut last; 0: not cut */
    bool cut_from_client;
    struct pg_proxy_link links[PG_PROXY_LINKS];
};

static inline int pg_proxy_dial(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static inline void pg_proxy_close_link(struct pg_proxy_link *link)
{
    if (link->client.fd >= 0) {
        (void)close(link->client.fd);
        (void)close(link->server.fd);
        free(link->client.bytes);
        free(link->server.bytes);
    }
    link->client.fd = link->server.fd = -1;
}

static inline bool pg_proxy_write(int fd, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Size of the whole message at the front, or 0 when it is not there yet. */
static inline size_t pg_proxy_message(const struct pg_proxy_side *side)
{
    size_t head = side->started ? 1 : 0;
    if (side->n < head + 4) {
        return 0;
    }
    const unsigned char *p = side->bytes + head;
    size_t n = head + ((size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3]);
    return n <= side->n ? n : 0;
}

/* Count the message. -1: cut before it; 1: cut after it; 0: go on. */
static inline int pg_proxy_judge(struct pg_proxy *proxy, struct pg_proxy_link *link,
                                 bool from_client, size_t n)
{
    const unsigned char *bytes = from_client ? link->client.bytes : link->server.bytes;
    int verdict = 0;
    (void)pthread_mutex_lock(&proxy->lock);
    if (proxy->armed && from_client && link->client.started &&
        (bytes[0] == 'Q' || bytes[0] == 'P') && /* a query, or one with parameters */
        memmem(bytes, n, proxy->marker, strlen(proxy->marker)) != NULL) {
        link->in_batch = true;
    }
    if (proxy->armed && link->in_batch && proxy->n_cuts > 0 && proxy->n_seen++ == proxy->cut_at) {
        verdict = proxy->after ? 1 : -1;
        proxy->n_cuts--;
        proxy->n_seen = 0; /* a second cut hits the retry at the same place */
        proxy->cut_type = (char)bytes[0];
        proxy->cut_from_client = from_client;
    }
    if (!from_client && n == 6 && bytes[0] == 'Z' && bytes[5] == 'I') {
        link->in_batch = false; /* no transaction is open any more */
    }
    (void)pthread_mutex_unlock(&proxy->lock);
    return verdict;
}

/* Relay what has arrived from one side; false when the link is to be closed. */
static inline bool pg_proxy_relay(struct pg_proxy *proxy, struct pg_proxy_link *link,
                                  bool from_client)
{
    struct pg_proxy_side *from = from_client ? &link->client : &link->server;
    struct pg_proxy_side *to = from_client ? &link->server : &link->client;
    ssize_t got = recv(from->fd, from->bytes + from->n, PG_PROXY_BYTES - from->n, MSG_DONTWAIT);
    if (got <= 0) {
        return false;
    }
    from->n += (size_t)got;
    size_t n;
    while ((n = pg_proxy_message(from)) > 0) {
        int verdict = pg_proxy_judge(proxy, link, from_client, n);
        if (verdict < 0 || !pg_proxy_write(to->fd, from->bytes, n) || verdict > 0) {
            return false;
        }
        from->started = true;
        from->n -= n;
        memmove(from->bytes, from->bytes + n, from->n);
    }
    return from->n < PG_PROXY_BYTES;
}

static inline void pg_proxy_accept(struct pg_proxy *proxy)
{
    int client = accept(proxy->listener, NULL, NULL);
    int server = pg_proxy_dial(proxy->target);
    for (int i = 0; client >= 0 && server >= 0 && i < PG_PROXY_LINKS; i++) {
        struct pg_proxy_link *link = &proxy->links[i];
        if (link->client.fd < 0) {
            *link = (struct pg_proxy_link){
                .client = {.fd = client, .bytes = malloc(PG_PROXY_BYTES)},
                .server = {.fd = server, .started = true, .bytes = malloc(PG_PROXY_BYTES)},
            };
            return;
        }
    }
    (void)close(client);
    (void)close(server);
}

static inline void *pg_proxy_run(void *arg)
{
    struct pg_proxy *proxy = arg;
    while (!atomic_load(&proxy->stopping)) {
        struct pollfd polls[1 + 2 * PG_PROXY_LINKS];
        polls[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
        for (int i = 0; i < PG_PROXY_LINKS; i++) {
            polls[1 + 2 * i] = (struct pollfd){.fd = proxy->links[i].client.fd, .events = POLLIN};
            polls[2 + 2 * i] = (struct pollfd){.fd = proxy->links[i].server.fd, .events = POLLIN};
        }
        if (poll(polls, HEARTH_ARRAY_LEN(polls), 50) <= 0) {
            continue;
        }
        for (int i = 0; i < PG_PROXY_LINKS; i++) {
            struct pg_proxy_link *link = &proxy->links[i];
            bool alive = true;
            if (link->client.fd >= 0 && polls[1 + 2 * i].revents != 0) {
                alive = pg_proxy_relay(proxy, link, true);
            }
            if (alive && link->client.fd >= 0 && polls[2 + 2 * i].revents != 0) {
                alive = pg_proxy_relay(proxy, link, false);
            }
            if (!alive) {
                pg_proxy_close_link(link);
            }
        }
        if (polls[0].revents != 0) {
            pg_proxy_accept(proxy);
        }
    }
    return NULL;
}

static inline void pg_proxy_start(struct pg_proxy *proxy, const char *target_dir)
{
    *proxy = (struct pg_proxy){.dir = "/tmp/hearth-proxy-XXXXXX",
                               .marker = "INTO hearth_data.ingest_batch"};
    for (int i = 0; i < PG_PROXY_LINKS; i++) {
        proxy->links[i].client.fd = proxy->links[i].server.fd = -1;
    }
    (void)pthread_mutex_init(&proxy->lock, NULL);
    (void)snprintf(proxy->target, sizeof proxy->target, "%s/.s.PGSQL.5432", target_dir);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (mkdtemp(proxy->dir) == NULL) {
        abort();
    }
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s/.s.PGSQL.5432", proxy->dir);
    if (bind(proxy->listener, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        listen(proxy->listener, 64) != 0 ||
        pthread_create(&proxy->thread, NULL, pg_proxy_run, proxy) != 0) {
        abort();
    }
}

static inline void pg_proxy_stop(struct pg_proxy *proxy)
{
    atomic_store(&proxy->stopping, true);
    (void)pthread_join(proxy->thread, NULL);
    for (int i = 0; i < PG_PROXY_LINKS; i++) {
        pg_proxy_close_link(&proxy->links[i]);
    }
    (void)close(proxy->listener);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/.s.PGSQL.5432", proxy->dir);
    (void)unlink(path);
    (void)rmdir(proxy->dir);
    (void)pthread_mutex_destroy(&proxy->lock);
}

static inline void pg_proxy_arm(struct pg_proxy *proxy, int cut_at, bool after, int n_cuts)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->armed = true;
    proxy->cut_at = cut_at;
    proxy->after = after;
    proxy->n_cuts = n_cuts;
    proxy->n_seen = 0;
    proxy->cut_type = 0;
    (void)pthread_mutex_unlock(&proxy->lock);
}

/* How many of the cuts were made. */
static inline int pg_proxy_disarm(struct pg_proxy *proxy, int n_cuts, char *ret_type)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->armed = false;
    int made = n_cuts - proxy->n_cuts;
    *ret_type = proxy->cut_type;
    for (int i = 0; i < PG_PROXY_LINKS; i++) {
        proxy->links[i].in_batch = false;
    }
    (void)pthread_mutex_unlock(&proxy->lock);
    return made;
}

#endif
