/* oidc_internal.h -- the issuers and what is known of them (private to front/oidc). */
#ifndef HEARTH_FRONT_OIDC_INTERNAL_H
#define HEARTH_FRONT_OIDC_INTERNAL_H

#include "hearth/base/arena.h"
#include "hearth/base/sha256.h"
#include "hearth/base/sync.h"

#include "oidc/jwt.h"
#include "oidc/oidc.h"
#include "oidc/oidc_fetch.h"
#include "oidc/oidc_state.h"

#define HEARTH_OIDC_MAX_ISSUERS 16
#define HEARTH_OIDC_MAX_NAME    32
#define HEARTH_OIDC_DOC_BYTES \
    ((size_t)64 << 10) /* of a discovery document and of an ID token's answer */

/* What the discovery document says. Never changes; freed as a whole. */
struct hearth_oidc_endpoints {
    atomic_size_t n_holders;
    struct hearth_arena arena;
    const char *jwks;
    const char *authorization, *token; /* NULL: not offered */
    bool posts_secret;                 /* the secret is sent in the form, not as HTTP Basic */
};

struct hearth_oidc_issuer {
    char name[HEARTH_OIDC_MAX_NAME + 1]; /* empty: the only one, without a name */
    const char *url;
    /* The rest is guarded by oidc.lock. */
    struct hearth_oidc_endpoints *endpoints; /* NULL: not known */
    struct hearth_jwks *keys;                /* NULL: not known */
    unsigned char keys_hash[HEARTH_SHA256_BYTES];
    uint64_t generation; /* changes with the keys */
    int64_t fetched_mono_ns, tried_mono_ns, due_mono_ns;
    uint64_t n_tries;    /* that have ended */
    unsigned n_failures; /* in a row */
    bool is_fetching;
    struct hearth_err failure; /* of the last try; its message is empty: none */
};

struct hearth_oidc_cache;

struct hearth_oidc {
    struct hearth_oidc_options options;
    atomic_size_t n_holders; /* the slot, and calls */
    struct hearth_claim_names names;
    const char *audience;
    struct hearth_oidc_issuer issuers[HEARTH_OIDC_MAX_ISSUERS];
    size_t n_issuers;
    unsigned char login_key[HEARTH_OIDC_KEY_BYTES]; /* of the cookies of log-ins */
    atomic_int n_logins;                            /* that are being finished */
    struct hearth_oidc_cache *cache;                /* guarded by lock */
    struct hearth_cancel cancel;                    /* of the thread's requests */
    pthread_t thread;
    bool has_thread;
    struct hearth_mutex lock;
    pthread_cond_t wake;  /* the thread: something is due, or stopping */
    pthread_cond_t tried; /* log-ins: a try has ended */
    bool stopping;
};

/* ---- oidc_fetcher.c ---- */

void *hearth_oidc_run_fetcher(void *oidc);
void hearth_oidc_endpoints_release(struct hearth_oidc_endpoints *endpoints); /* NULL-safe */
/*
 * Asks the thread to fetch the documents of an issuer soon. Returns false if that was done within
 * HEARTH_OIDC_PAUSE_NS. The caller holds the lock.
 */
bool hearth_oidc_want(struct hearth_oidc *oidc, struct hearth_oidc_issuer *issuer);

/* ---- oidc_verify.c ---- */

/* A JWT that was found right. */
struct hearth_checked_jwt {
    struct hearth_oidc_identity identity; /* in the caller's arena */
    struct hearth_oidc_issuer *issuer;
    uint64_t generation; /* of the keys that verified it */
};

/*
 * Verifies a JWT, without the table of known ones.
 *
 * nonce         of an ID token, whose audience is the client; p is NULL: the JWT of a request
 * ret_is_wrong  as hearth_oidc_verify
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_check_jwt(struct hearth_oidc *oidc, struct hearth_str text,
                                         struct hearth_str nonce, struct hearth_arena *arena,
                                         struct hearth_checked_jwt *ret, bool *ret_is_wrong,
                                         struct hearth_err *err);

static inline int64_t hearth_oidc_now_ms(void)
{
    return hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
}

#endif
