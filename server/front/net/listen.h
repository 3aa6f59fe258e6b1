/* listen.h -- the listening sockets of the acceptor. Threads: not thread-safe. */
#ifndef HEARTH_FRONT_LISTEN_H
#define HEARTH_FRONT_LISTEN_H

#include "net/peers.h"

#define HEARTH_MAX_LISTENERS 16

struct hearth_listeners {
    size_t n;
    int fd[HEARTH_MAX_LISTENERS];
    char text[HEARTH_MAX_LISTENERS][HEARTH_PEER_TEXT_BYTES]; /* as bound */
};

/* Bind every address that the text stands for. INVALID_ARGUMENT, or UNAVAILABLE with the system's
 * reason. */
HEARTH_MUST_CHECK
enum hearth_status hearth_listeners_add(struct hearth_listeners *listeners, const char *text,
                                        struct hearth_err *err);
/* The texts stay. */
void hearth_listeners_close(struct hearth_listeners *listeners);

/* "HOST:PORT", "[::1]:4040", ":4040"; false when it is not of this form. */
HEARTH_MUST_CHECK bool hearth_listen_parse(const char *text, char host[256], char port[8]);

#endif
