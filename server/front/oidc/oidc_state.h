/*
 * oidc_state.h -- what a browser carries from the beginning of a log-in to its end: a cookie that
 * only a server of this client can read or make.
 *
 * The cookie is base64url of
 *
 *     offset  size  meaning
 *     0       12    nonce of AES-256-GCM
 *     12      8     the end of the log-in, milliseconds since the epoch, big-endian
 *     20      32    state, as the issuer returns it
 *     52      32    nonce of the ID token
 *     84      43    PKCE verifier
 *     127     0-1024 path to return to
 *     end     16    tag
 *
 * of which offset 12 to the tag is encrypted. The key is HKDF-SHA256 of the client's secret with
 * the salt "ISSUER CLIENT" and the label below, so that any server with the same options can finish
 * a log-in that another one began. Without a secret it is random and belongs to the process.
 *
 * Threads: pure.
 * Source:  RFC 5869 (HKDF), NIST SP 800-38D (GCM), RFC 7636 (PKCE).
 */
#ifndef HEARTH_FRONT_OIDC_STATE_H
#define HEARTH_FRONT_OIDC_STATE_H

#include "hearth/base/arena.h"

#define HEARTH_OIDC_KEY_BYTES      32
#define HEARTH_OIDC_STATE_CHARS    32
#define HEARTH_OIDC_VERIFIER_CHARS 43
#define HEARTH_OIDC_STATE_LABEL    "hearth oidc log-in 1"

struct hearth_oidc_state {
    int64_t expires_ms;
    struct hearth_str state, nonce; /* HEARTH_OIDC_STATE_CHARS */
    struct hearth_str verifier;     /* HEARTH_OIDC_VERIFIER_CHARS */
    struct hearth_str return_path;
};

/* INTERNAL if OpenSSL refuses. */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_key_derive(struct hearth_str secret, struct hearth_str salt,
                                          unsigned char ret[HEARTH_OIDC_KEY_BYTES],
                                          struct hearth_err *err);
/* A state with new random texts, in the arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_state_make(struct hearth_str return_path, int64_t expires_ms,
                                          struct hearth_arena *arena, struct hearth_oidc_state *ret,
                                          struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_state_seal(const unsigned char key[HEARTH_OIDC_KEY_BYTES],
                                          const struct hearth_oidc_state *state,
                                          struct hearth_arena *arena, struct hearth_str *ret,
                                          struct hearth_err *err);
/* False for a text that was not sealed with the key, or has expired. */
HEARTH_MUST_CHECK bool hearth_oidc_state_open(const unsigned char key[HEARTH_OIDC_KEY_BYTES],
                                              struct hearth_str text, int64_t now_ms,
                                              struct hearth_arena *arena,
                                              struct hearth_oidc_state *ret);

/* base64url without padding; p is NULL if memory is refused. */
struct hearth_str hearth_base64url(struct hearth_str bytes, struct hearth_arena *arena);

#endif
