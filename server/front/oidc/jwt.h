/*
 * jwt.h -- JSON Web Tokens: reads them, and checks their claims.
 *
 * A token is HEADER.PAYLOAD.SIGNATURE, each in base64url without padding; header and payload are
 * JSON objects. Encrypted tokens (five parts) are refused, and so is any algorithm but those of
 * jwk.h, a header "crit", and a "typ" that names another kind of token.
 *
 * Limits:    HEARTH_JWT_MAX_BYTES; levels of JSON as json_reader.h.
 * Ownership: texts are in the arena, or borrow from the token.
 * Threads:   pure.
 * Errors:    UNAUTHENTICATED; NO_MEMORY.
 * Source:    RFC 7515, RFC 7519; RFC 8725 (typ, algorithms); OpenID Connect Core 1.0, 3.1.3.7.
 */
#ifndef HEARTH_FRONT_JWT_H
#define HEARTH_FRONT_JWT_H

#include "hearth/base/arena.h"

#include "oidc/jwk.h"

#define HEARTH_JWT_MAX_BYTES     ((size_t)16 << 10)
#define HEARTH_JWT_MAX_AUDIENCES 32
#define HEARTH_JWT_MAX_GROUPS    64

struct hearth_jwt {
    const struct hearth_jwt_alg *alg;
    struct hearth_str key_id;      /* p is NULL: not sent */
    struct hearth_str signed_part; /* header and payload as sent */
    struct hearth_str payload, signature;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_jwt_parse(struct hearth_str text, struct hearth_arena *arena,
                                    struct hearth_jwt *ret, struct hearth_err *err);

/*
 * Which claims name the caller and its groups. A name is that of a member; if there is none, its
 * parts between full stops are names of nested members ("realm_access.roles").
 */
struct hearth_claim_names {
    const char *subject, *groups; /* groups may be empty: none */
};

#define HEARTH_CLAIM_NO_TIME INT64_MIN

struct hearth_jwt_claims {
    struct hearth_str issuer, subject, nonce, authorized_party; /* p is NULL: missing */
    struct hearth_str audiences[HEARTH_JWT_MAX_AUDIENCES];
    struct hearth_str groups[HEARTH_JWT_MAX_GROUPS]; /* further ones are ignored */
    size_t n_audiences, n_groups;
    int64_t expires_ms, not_before_ms, issued_ms; /* HEARTH_CLAIM_NO_TIME: missing */
    bool is_email_unverified;                     /* email_verified is there, and not true */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_jwt_claims_read(struct hearth_str payload,
                                          const struct hearth_claim_names *names,
                                          struct hearth_arena *arena, struct hearth_jwt_claims *ret,
                                          struct hearth_err *err);

/* What the claims must say. */
struct hearth_jwt_rules {
    struct hearth_str audience;
    struct hearth_str nonce; /* p is NULL: not an ID token, any nonce */
    const struct hearth_claim_names *names;
    int64_t now_ms, skew_ms;
};

/*
 * Checks times, audience and nonce, and that the caller is named. The issuer is the task of the
 * calling function.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_jwt_claims_check(const struct hearth_jwt_claims *claims,
                                           const struct hearth_jwt_rules *rules,
                                           struct hearth_err *err);

#endif
