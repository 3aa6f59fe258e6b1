/* listen.c -- from addresses to listening sockets. */
#include "net/listen.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#define BACKLOG 4096

bool hearth_listen_parse(const char *text, char host[256], char port[8])
{
    /* The port stands after the last colon. */
    struct hearth_str s = hearth_str_c(text);
    size_t colon = s.n;
    while (colon > 0 && s.p[colon - 1] != ':') {
        colon--;
    }

    if (colon == 0) {
        return false;
    }

    /* The host, without the brackets of an IPv6 address. */
    struct hearth_str h = hearth_str_n(s.p, colon - 1);
    struct hearth_str p = hearth_str_n(s.p + colon, s.n - colon);
    if (h.n > 0 && h.p[0] == '[') {
        if (h.n < 3 || h.p[h.n - 1] != ']') {
            return false;
        }
        h = hearth_str_n(h.p + 1, h.n - 2);
    } else if (hearth_str_find(h, ':', 0) < h.n) {
        return false; /* an IPv6 address without brackets */
    }

    uint64_t number;
    if (p.n == 0 || p.n > 5 || !hearth_str_to_u64(p, &number) || number > 65535 || h.n > 255) {
        return false;
    }

    memcpy(host, h.p, h.n);
    host[h.n] = '\0';
    memcpy(port, p.p, p.n);
    port[p.n] = '\0';

    return true;
}

static int open_listener(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }

    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }

    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int saved = errno;
        (void)close(fd);
        errno = saved;
        return -1;
    }

    return fd;
}

enum hearth_status hearth_listeners_add(struct hearth_listeners *listeners, const char *text,
                                        struct hearth_err *err)
{
    char host[256], port[8];

    if (!hearth_listen_parse(text, host, port)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "listen address \"%.200s\" is not HOST:PORT or [IPV6]:PORT", text);
    }

    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(host[0] == '\0' ? NULL : host, port, &hints, &list);
    if (rc != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "listen address \"%.200s\": %s", text,
                           gai_strerror(rc));
    }

    /* Bind each address; stop at the first failure that is not about a missing address. */
    assert(listeners->n <= HEARTH_MAX_LISTENERS);
    size_t n_before = listeners->n;
    int last_errno = 0;
    for (const struct addrinfo *info = list; info != NULL; info = info->ai_next) {
        if (listeners->n == HEARTH_MAX_LISTENERS) {
            last_errno = ENOBUFS;
            break;
        }
        int fd = open_listener(info);
        if (fd < 0) {
            last_errno = errno;
            /* A name may resolve to addresses that this machine does not have, such as IPv6. */
            if (last_errno == EADDRNOTAVAIL || last_errno == EAFNOSUPPORT) {
                continue;
            }
            break;
        }
        struct sockaddr_storage bound;
        socklen_t n = sizeof bound;
        (void)getsockname(fd, (struct sockaddr *)&bound, &n);
        hearth_address_text((struct sockaddr *)&bound, listeners->text[listeners->n]);
        listeners->fd[listeners->n++] = fd;
        last_errno = 0;
    }

    /* Skipped addresses are no error if another one was bound. */
    freeaddrinfo(list);
    if (last_errno != 0 &&
        (listeners->n == n_before || (last_errno != EADDRNOTAVAIL && last_errno != EAFNOSUPPORT))) {
        char reason[128];
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot listen on \"%.200s\": %s", text,
                           strerror_r(last_errno, reason, sizeof reason));
    }

    return HEARTH_OK;
}

void hearth_listeners_close(struct hearth_listeners *listeners)
{
    for (size_t i = 0; i < listeners->n; i++) {
        if (listeners->fd[i] >= 0) {
            (void)close(listeners->fd[i]);
            listeners->fd[i] = -1;
        }
    }
}
