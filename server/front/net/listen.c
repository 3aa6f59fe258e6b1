/* listen.c -- from addresses to listening sockets. */
#include "net/listen.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#define BACKLOG 4096

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
    struct hearth_listen_text address;

    HEARTH_TRY(hearth_listen_parse(text, &address, err));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int rc =
        getaddrinfo(address.host[0] == '\0' ? NULL : address.host, address.port, &hints, &list);
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
        struct hearth_listener *listener = &listeners->all[listeners->n++];
        *listener = (struct hearth_listener){
            .fd = fd, .is_tls = address.is_tls, .auth_modes = address.auth_modes};
        hearth_address_text((struct sockaddr *)&bound, listener->text);
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
        if (listeners->all[i].fd >= 0) {
            (void)close(listeners->all[i].fd);
            listeners->all[i].fd = -1;
        }
    }
}
