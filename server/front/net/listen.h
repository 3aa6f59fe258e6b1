/* listen.h -- the listening sockets: binds addresses. Threads: not thread-safe. */
#ifndef HEARTH_FRONT_LISTEN_H
#define HEARTH_FRONT_LISTEN_H

#include "hearth/front/listen_text.h"

#include "net/peers.h"

#define HEARTH_MAX_LISTENERS 16

struct hearth_listener {
    int fd;                            /* -1 after hearth_listeners_close */
    bool is_tls;                       /* its connections begin with a TLS handshake */
    char text[HEARTH_PEER_TEXT_BYTES]; /* the bound address */
    unsigned auth_modes;               /* mask of enum hearth_auth_mode; 0: none were given */
};

struct hearth_passed_socket {
    int fd;                            /* -1: taken */
    char text[HEARTH_PEER_TEXT_BYTES]; /* its address */
};

struct hearth_listeners {
    size_t n, n_passed;
    struct hearth_listener all[HEARTH_MAX_LISTENERS];
    struct hearth_passed_socket passed[HEARTH_MAX_LISTENERS];
};

/*
 * Takes a socket that listens already: hearth_listeners_add uses it for its address.
 *
 * Returns  OK; INVALID_ARGUMENT if it does not listen for IPv4 or IPv6 streams;
 *          RESOURCE_EXHAUSTED beyond HEARTH_MAX_LISTENERS.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listeners_pass(struct hearth_listeners *listeners, int fd,
                                         struct hearth_err *err);
/* INVALID_ARGUMENT if a passed socket was not used: its clients would wait for ever. */
HEARTH_MUST_CHECK
enum hearth_status hearth_listeners_check_passed(const struct hearth_listeners *listeners,
                                                 struct hearth_err *err);

/*
 * Binds all addresses that the text resolves to. Addresses that this machine does not have are
 * skipped, unless all are.
 *
 * Returns  OK; INVALID_ARGUMENT if the text is malformed or cannot be resolved; UNAVAILABLE with
 *          the system's reason if an address cannot be bound; RESOURCE_EXHAUSTED beyond
 *          HEARTH_MAX_LISTENERS.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listeners_add(struct hearth_listeners *listeners, const char *text,
                                        struct hearth_err *err);
/* Closes the sockets, also passed ones that were not used; n and the texts stay. */
void hearth_listeners_close(struct hearth_listeners *listeners);

#endif
