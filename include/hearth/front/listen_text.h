/*
 * listen_text.h -- the text of an address to listen on.
 *
 *   [http://|https://]HOST:PORT[?auth=MODE,MODE...]
 *
 * HOST may be empty (all addresses), a name, an IPv4 address, or an IPv6 address in brackets. The
 * modes are those of hearth/model/access.h.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_LISTEN_TEXT_H
#define HEARTH_FRONT_LISTEN_TEXT_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/model/access.h"

struct hearth_listen_text {
    bool is_tls; /* https:// */
    char host[256];
    char port[8];        /* 0 to 65535; 0 lets the kernel choose */
    unsigned auth_modes; /* mask of enum hearth_auth_mode; 0: no list was given */
};

/* INVALID_ARGUMENT, with the whole text in the message, if the text has another form, or for an
 * unknown mode. */
HEARTH_MUST_CHECK
enum hearth_status hearth_listen_parse(const char *text, struct hearth_listen_text *ret_listen,
                                       struct hearth_err *err);

/* True for a host that only this machine can reach: "localhost", "127.0.0.1", "::1". Other names
 * may resolve to any address, even if they begin with "127.". */
bool hearth_listen_is_loopback(const struct hearth_listen_text *listen);

/*
 * Undoes the splitting of one text at its commas: an item without a colon that follows an item with
 * "?auth=" is a further mode of it. `items` is NULL-terminated, and so is the result (in arena).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listen_join(const char *const *items, struct hearth_arena *arena,
                                      const char *const **ret_texts, struct hearth_err *err);

#endif
