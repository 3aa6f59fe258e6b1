/*
 * oidc_cache.h -- JWTs that were found right, by their SHA-256.
 *
 * A table of sets of HEARTH_OIDC_CACHE_WAYS places; a new entry takes the place in its set that
 * ends first. An entry holds until its JWT ends, or the keys of its issuer change.
 *
 * Threads: not thread-safe; guarded by oidc.lock.
 */
#ifndef HEARTH_FRONT_OIDC_CACHE_H
#define HEARTH_FRONT_OIDC_CACHE_H

#include "hearth/base/sha256.h"

#include "oidc/oidc.h"

#define HEARTH_OIDC_CACHE_WAYS 8

struct hearth_oidc_cache;
struct hearth_oidc_issuer;

/* What an entry is found by. */
struct hearth_oidc_key {
    unsigned char hash[HEARTH_SHA256_BYTES]; /* of the JWT */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_oidc_cache_new(int64_t max_entries, struct hearth_oidc_cache **ret,
                                         struct hearth_err *err);
void hearth_oidc_cache_free(struct hearth_oidc_cache *cache); /* NULL-safe */
/*
 * True if the JWT is known and still holds; its identity is copied into the arena. Without memory
 * false.
 */
HEARTH_MUST_CHECK bool hearth_oidc_cache_find(struct hearth_oidc_cache *cache,
                                              const struct hearth_oidc_key *key, int64_t now_ms,
                                              struct hearth_arena *arena,
                                              struct hearth_oidc_identity *ret);
/* Adds a copy. Without memory nothing is added. */
void hearth_oidc_cache_add(struct hearth_oidc_cache *cache, const struct hearth_oidc_key *key,
                           const struct hearth_oidc_identity *identity,
                           const struct hearth_oidc_issuer *issuer);
/* Removes all entries of an issuer. */
void hearth_oidc_cache_drop(struct hearth_oidc_cache *cache,
                            const struct hearth_oidc_issuer *issuer);

#endif
