/* peer_caller.c -- from a connection to what it says of its client. */
#include "net/peer_caller.h"

#include "net/acceptor.h"
#include "rpc/front_internal.h"

#define NAMES_MAX_BYTES ((size_t)64 << 10)

static void name_certificate(const struct hearth_certificate *certificate,
                             struct hearth_front_caller *caller, struct hearth_peer_names *names)
{
    static const char *const kinds[] = {
        [HEARTH_NAME_DNS] = "dns", [HEARTH_NAME_URI] = "uri", [HEARTH_NAME_EMAIL] = "email"};
    size_t n = certificate->n_names;

    hearth_arena_init(&names->arena, NAMES_MAX_BYTES);
    for (size_t i = 0; i < n; i++) {
        const struct hearth_certificate_name *name = &certificate->names[i];
        names->names[i] = hearth_str_c(
            hearth_arena_printf(&names->arena, "%s:%s", kinds[name->kind], name->text));
    }
    names->names[n] =
        hearth_str_c(hearth_arena_printf(&names->arena, "subject:%s", certificate->subject));

    if (!names->arena.refused) {
        caller->certificate_names = names->names;
        caller->n_certificate_names = n + 1;
    }
}

/*
 * The ways to authenticate on the connection's listener. The listener of a connection that has gone
 * is not known: then 0, unless no listener asks who calls.
 */
static unsigned find_modes(const struct hearth_front *front, const struct hearth_peer *peer)
{
    const struct hearth_listener *listener;
    unsigned of_all = 0;

    for (size_t i = 0; (listener = hearth_acceptor_listener(front->acceptor, i)) != NULL; i++) {
        unsigned modes =
            listener->auth_modes != 0 ? listener->auth_modes : front->options.auth_modes;
        if (peer->fd >= 0 && peer->listener == i) {
            return modes;
        }
        of_all |= modes;
    }

    return of_all == HEARTH_AUTH_NONE ? of_all : 0;
}

void hearth_peer_describe(struct hearth_front *front, const struct hearth_peer *peer,
                          struct hearth_front_caller *caller, struct hearth_peer_names *ret_names)
{
    char text[HEARTH_PEER_TEXT_BYTES];

    hearth_peer_text(peer, text);
    hearth_caller_set_address(caller, text);
    caller->is_tls = peer->is_tls;
    caller->modes = find_modes(front, peer);
    ret_names->arena = (struct hearth_arena){0};

    struct hearth_certificate *certificate =
        peer->is_tls ? hearth_peers_certificate(hearth_acceptor_peers(front->acceptor), peer)
                     : NULL;
    if (certificate != NULL && certificate->is_complete) {
        name_certificate(certificate, caller, ret_names);
    }
    hearth_certificate_unref(certificate);
}

void hearth_peer_names_release(struct hearth_peer_names *names)
{
    hearth_arena_release(&names->arena);
}
