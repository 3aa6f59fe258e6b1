/*
 * credential.h -- tokens as texts, and the stored form of tokens, users, sessions and the audit
 * log. Grants: access.h.
 *
 * The text of a token is "hearth_", its id, "_", its secret, and a checksum of both, for instance
 *
 *     hearth_k3Jf0aQz7B_4nB1...(32)...x9Pq0Zk2c
 *
 * so that scanners of source code recognise it and a mistyped token is refused without a look-up.
 * Its characters are digits of base 62: 0-9, A-Z, a-z. The checksum is made of the SHA-256 of the
 * text before it: its first 8 bytes, as a big-endian number, over 2^64, are a fraction; the
 * checksum is the first digits of this fraction in base 62. Only the SHA-256 of the secret is
 * stored: it has 190 random bits, so a slow hash would protect nothing.
 *
 * Threads: pure; plain data.
 */
#ifndef HEARTH_MODEL_CREDENTIAL_H
#define HEARTH_MODEL_CREDENTIAL_H

#include "hearth/base/sha256.h"
#include "hearth/base/str.h"
#include "hearth/model/access.h"

#define HEARTH_TOKEN_ID_CHARS     10
#define HEARTH_TOKEN_SECRET_CHARS 32
#define HEARTH_TOKEN_SUM_CHARS    6
/* "hearth_", the id, '_', secret and checksum; without the NUL. */
#define HEARTH_TOKEN_TEXT_CHARS \
    (7 + HEARTH_TOKEN_ID_CHARS + 1 + HEARTH_TOKEN_SECRET_CHARS + HEARTH_TOKEN_SUM_CHARS)
/* Random bytes that a token is made of: 8 for each character, so that all are equally likely. */
#define HEARTH_TOKEN_RANDOM_BYTES ((HEARTH_TOKEN_ID_CHARS + HEARTH_TOKEN_SECRET_CHARS) * 8)

#define HEARTH_MAX_SUBJECT_BYTES 256 /* of a subject, with its kind: "user:alice" */

/* Writes the text of a new token, with a NUL, made of random bytes. */
void hearth_token_make(const unsigned char random[HEARTH_TOKEN_RANDOM_BYTES],
                       char ret_text[HEARTH_TOKEN_TEXT_CHARS + 1]);
/*
 * The id of a token, a view of the text, and the hash of its secret. False for a text that is no
 * token or has a wrong checksum; takes the same time for all wrong texts of the right length.
 */
HEARTH_MUST_CHECK bool hearth_token_parse(struct hearth_str text, struct hearth_str *ret_id,
                                          unsigned char ret_hash[HEARTH_SHA256_BYTES]);

/* Times are milliseconds since the epoch; 0: never, or not known. */
struct hearth_token {
    struct hearth_str id, name;
    struct hearth_str hash; /* of the secret, HEARTH_SHA256_BYTES; not for answers */
    struct hearth_str created_by;
    int64_t created_ms, expires_ms, last_used_ms;
    struct hearth_str last_used_from; /* address */
};

struct hearth_user {
    struct hearth_str name;
    /* Encoded argon2id; empty: no log-in by password. Not for answers. */
    struct hearth_str password;
    struct hearth_str created_by;
    int64_t created_ms, password_ms, last_login_ms;
    bool is_disabled;
};

struct hearth_session {
    struct hearth_str hash; /* SHA-256 of the cookie's value */
    struct hearth_str subject;
    struct hearth_str *groups; /* subjects of groups, as the issuer named them */
    size_t n_groups;
    int64_t created_ms, last_used_ms, expires_ms;
    struct hearth_str address, agent; /* of the log-in */
    struct hearth_str password;       /* of the log-in, as hearth_user.password; not stored */
};

/* A grant and who gave it. */
struct hearth_stored_grant {
    int32_t id;
    struct hearth_grant grant;
    struct hearth_str created_by;
    int64_t created_ms;
};

/*
 * What happened to whose data, by whom. Stored texts are cut to HEARTH_MAX_AUDIT_TEXT_BYTES, and
 * bytes that are not UTF-8 become '?'.
 */
#define HEARTH_MAX_AUDIT_TEXT_BYTES 2048
struct hearth_audit_event {
    int64_t id; /* ascending; 0 for an event that is not stored yet */
    int64_t at_ms;
    struct hearth_str tenant;  /* empty: the server as a whole */
    struct hearth_str subject; /* who; "anonymous" where nobody has to log in */
    struct hearth_str address; /* of the client */
    struct hearth_str action;  /* an RPC, a route, or a word such as "login" */
    struct hearth_str object;  /* what it was about */
    struct hearth_str outcome; /* name of the status: "ok", "permission_denied" */
    struct hearth_str message; /* of a failure */
};

#endif
