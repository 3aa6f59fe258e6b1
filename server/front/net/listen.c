/* listen.c -- from addresses to listening sockets. */
#include "net/listen.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
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

/* The passed socket of that address, otherwise a new one. */
static int take_listener(struct hearth_listeners *listeners, const struct addrinfo *info)
{
    char text[HEARTH_PEER_TEXT_BYTES];

    hearth_address_text(info->ai_addr, text);
    for (size_t i = 0; i < listeners->n_passed; i++) {
        struct hearth_passed_socket *passed = &listeners->passed[i];
        if (passed->fd >= 0 && strcmp(passed->text, text) == 0) {
            int fd = passed->fd;
            passed->fd = -1;
            return fd;
        }
    }

    return open_listener(info);
}

enum hearth_status hearth_listeners_pass(struct hearth_listeners *listeners, int fd,
                                         struct hearth_err *err)
{
    struct sockaddr_storage bound;
    socklen_t n_bound = sizeof bound, n = sizeof(int);
    int listens = 0, type = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || listens == 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) != 0 || type != SOCK_STREAM ||
        getsockname(fd, (struct sockaddr *)&bound, &n_bound) != 0 ||
        (bound.ss_family != AF_INET && bound.ss_family != AF_INET6) ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the descriptor %d, passed by the service manager, is no listening TCP "
                           "socket; use ListenStream=HOST:PORT and Accept=no",
                           fd);
    }

    if (listeners->n_passed == HEARTH_MAX_LISTENERS) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the service manager passed more than %d sockets", HEARTH_MAX_LISTENERS);
    }

    struct hearth_passed_socket *passed = &listeners->passed[listeners->n_passed++];
    passed->fd = fd;
    hearth_address_text((struct sockaddr *)&bound, passed->text);

    return HEARTH_OK;
}

enum hearth_status hearth_listeners_check_passed(const struct hearth_listeners *listeners,
                                                 struct hearth_err *err)
{
    for (size_t i = 0; i < listeners->n_passed; i++) {
        if (listeners->passed[i].fd >= 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the service manager passed a socket of %s, which --listen does not "
                               "name; make both the same",
                               listeners->passed[i].text);
        }
    }

    return HEARTH_OK;
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
            freeaddrinfo(list);
            return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                               "cannot listen on \"%.200s\": the server listens on at most %d "
                               "addresses, and a name may stand for several",
                               text, HEARTH_MAX_LISTENERS);
        }
        int fd = take_listener(listeners, info);
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

    /* Skipped addresses are not an error if another one was bound. */
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
    for (size_t i = 0; i < listeners->n_passed; i++) {
        if (listeners->passed[i].fd >= 0) {
            (void)close(listeners->passed[i].fd);
            listeners->passed[i].fd = -1;
        }
    }
}
