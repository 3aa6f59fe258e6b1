/*
 * peer_caller.h -- what a connection says of its client: address, the ways of its listener to
 * authenticate, the names of its certificate.
 *
 * Threads: any, a caller's own structs.
 */
#ifndef HEARTH_FRONT_PEER_CALLER_H
#define HEARTH_FRONT_PEER_CALLER_H

#include "net/peers.h"
#include "rpc/caller.h"

struct hearth_front;

/* Owns the names of a certificate while a request is admitted. */
struct hearth_peer_names {
    struct hearth_arena arena;
    struct hearth_str names[HEARTH_CERTIFICATE_MAX_NAMES + 1];
};

/*
 * Sets modes, is_tls, address and the certificate's names of the caller. Each name has its kind in
 * front: "uri:spiffe://shop/web", "dns:web", "email:a@b", "subject:CN=web". The alternative names
 * stand before the subject. Without memory for them there are no names.
 *
 * ret_names  zeroed if there is no certificate; released with hearth_peer_names_release
 */
void hearth_peer_describe(struct hearth_front *front, const struct hearth_peer *peer,
                          struct hearth_front_caller *caller, struct hearth_peer_names *ret_names);
void hearth_peer_names_release(struct hearth_peer_names *names);

#endif
