/* listen.h -- the listening sockets: parses addresses, binds them. Threads: not thread-safe. */
#ifndef HEARTH_FRONT_LISTEN_H
#define HEARTH_FRONT_LISTEN_H

#include "net/peers.h"

#define HEARTH_MAX_LISTENERS 16

struct hearth_listeners {
    size_t n;
    int fd[HEARTH_MAX_LISTENERS];                            /* -1 after hearth_listeners_close */
    char text[HEARTH_MAX_LISTENERS][HEARTH_PEER_TEXT_BYTES]; /* the bound address */
};

/*
 * Binds all addresses that the text resolves to. Addresses that this machine does not have are
 * skipped, unless all are.
 *
 * Returns  OK; INVALID_ARGUMENT if the text is malformed or cannot be resolved; UNAVAILABLE with
 *          the system's reason if an address cannot be bound.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listeners_add(struct hearth_listeners *listeners, const char *text,
                                        struct hearth_err *err);
/* Closes the sockets; n and the texts stay. */
void hearth_listeners_close(struct hearth_listeners *listeners);

/* Splits "HOST:PORT", "[::1]:4040" or ":4040"; false for any other form. */
HEARTH_MUST_CHECK bool hearth_listen_parse(const char *text, char host[256], char port[8]);

#endif
