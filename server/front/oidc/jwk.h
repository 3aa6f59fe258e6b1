/*
 * jwk.h -- JSON Web Keys of an issuer, and the algorithms that they verify.
 *
 * Only public keys for signatures are kept: RSA of 2048 to 8192 bits, P-256, P-384, P-521, Ed25519.
 * All others are ignored, as RFC 7517 section 5 requires; so symmetric keys never verify anything.
 *
 * Limits:    HEARTH_JWKS_MAX_KEYS keys, further ones are ignored; ids of 256 bytes.
 * Ownership: a set is counted by its holders and never changes.
 * Threads:   safe.
 * Source:    RFC 7517; RFC 7518 sections 3.3 to 3.5 and 6; RFC 8037.
 */
#ifndef HEARTH_FRONT_JWK_H
#define HEARTH_FRONT_JWK_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

#include <stdatomic.h>

#define HEARTH_JWKS_MAX_KEYS  32
#define HEARTH_JWKS_MAX_BYTES ((size_t)256 << 10) /* of the JSON */
#define HEARTH_JWK_MAX_ID     256

enum hearth_jwk_kind {
    HEARTH_JWK_RSA,
    HEARTH_JWK_P256,
    HEARTH_JWK_P384,
    HEARTH_JWK_P521,
    HEARTH_JWK_ED25519,
};

/* An algorithm of signatures. It fits one kind of key. */
struct hearth_jwt_alg {
    const char *name; /* "RS256" */
    enum hearth_jwk_kind kind;
    const char *digest; /* OpenSSL's name; NULL: the algorithm has its own */
    bool is_pss;
};

/* NULL for unknown names, "none" and all HMACs. */
const struct hearth_jwt_alg *hearth_jwt_alg_find(struct hearth_str name);

struct evp_pkey_st;

struct hearth_jwk {
    char id[HEARTH_JWK_MAX_ID + 1]; /* empty: none */
    enum hearth_jwk_kind kind;
    const struct hearth_jwt_alg
        *only; /* the one algorithm that the key is for; NULL: all fitting */
    struct evp_pkey_st *key;
};

struct hearth_jwks {
    atomic_size_t n_holders;
    size_t n, n_ignored;
    struct hearth_jwk keys[HEARTH_JWKS_MAX_KEYS];
};

/* INVALID_ARGUMENT: not a key set, or without a single key that can be used; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_jwks_parse(struct hearth_str json, struct hearth_jwks **ret,
                                     struct hearth_err *err);
/* Both are NULL-safe. */
struct hearth_jwks *hearth_jwks_hold(struct hearth_jwks *set);
void hearth_jwks_release(struct hearth_jwks *set);

/*
 * The key with the id that fits the algorithm; without an id (p is NULL) the only fitting one.
 * NULL: there is none.
 */
const struct hearth_jwk *hearth_jwks_find(const struct hearth_jwks *set, struct hearth_str id,
                                          const struct hearth_jwt_alg *alg);

/* True if the signature of the text is right. The algorithm fits the key. */
HEARTH_MUST_CHECK bool hearth_jwk_verify(const struct hearth_jwk *key,
                                         const struct hearth_jwt_alg *alg, struct hearth_str text,
                                         struct hearth_str signature);

#endif
