/* oidc_verify.c -- from a JWT to the subjects that it names. */
#include "hearth/model/credential.h"

#include "oidc/oidc_cache.h"
#include "oidc/oidc_internal.h"

#include <assert.h>
#include <stdio.h>

#define VERIFY_MAX_BYTES ((size_t)256 << 10)

/* ---- subjects ---- */

/* "KIND:CLAIM", or "KIND:ISSUER:CLAIM" for an issuer with a name. p is NULL: not a subject. */
static struct hearth_str make_subject(const char *kind, const struct hearth_oidc_issuer *issuer,
                                      struct hearth_str claim, struct hearth_arena *arena)
{
    char text[HEARTH_MAX_SUBJECT_BYTES + 1];
    bool has_name = issuer->name[0] != '\0';

    for (size_t i = 0; i < claim.n; i++) {
        if ((unsigned char)claim.p[i] < ' ' || claim.p[i] == 0x7F) {
            return hearth_str_n(NULL, 0);
        }
    }

    int n = snprintf(text, sizeof text, "%s:%s%s%.*s", kind, issuer->name, has_name ? ":" : "",
                     claim.n < sizeof text ? (int)claim.n : (int)sizeof text, claim.p);
    if (claim.n == 0 || n < 0 || (size_t)n >= sizeof text) {
        return hearth_str_n(NULL, 0);
    }

    return hearth_arena_str(arena, hearth_str_n(text, (size_t)n));
}

static enum hearth_status make_identity(const struct hearth_oidc *oidc,
                                        const struct hearth_oidc_issuer *issuer,
                                        const struct hearth_jwt_claims *claims,
                                        struct hearth_arena *arena,
                                        struct hearth_oidc_identity *ret, struct hearth_err *err)
{
    struct hearth_str *subjects = hearth_arena_array(arena, claims->n_groups + 1, sizeof *subjects);
    size_t n = 0;

    if (subjects == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    subjects[n] = make_subject("oidc", issuer, claims->subject, arena);
    if (subjects[n++].p == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the claim \"%s\" (oidc-subject-claim) has control characters, or is "
                           "longer than a subject may be (%d bytes)",
                           oidc->names.subject, HEARTH_MAX_SUBJECT_BYTES);
    }
    for (size_t i = 0; i < claims->n_groups; i++) {
        subjects[n] = make_subject("group", issuer, claims->groups[i], arena);
        n += subjects[n].p != NULL ? 1 : 0;
    }

    int64_t skew_ms = oidc->options.clock_skew_ns / HEARTH_NS_PER_MS;
    *ret = (struct hearth_oidc_identity){.subjects = subjects, .n_subjects = n};
    if (__builtin_add_overflow(claims->expires_ms, skew_ms, &ret->expires_ms)) {
        ret->expires_ms = INT64_MAX;
    }

    return HEARTH_OK;
}

/* ---- keys ---- */

static struct hearth_oidc_issuer *find_issuer(struct hearth_oidc *oidc, struct hearth_str url)
{
    for (size_t i = 0; i < oidc->n_issuers; i++) {
        if (hearth_str_eq_c(url, oidc->issuers[i].url)) {
            return &oidc->issuers[i];
        }
    }

    return NULL;
}

/* The key of a JWT, with its set held. */
static enum hearth_status find_jwt_key(struct hearth_oidc *oidc, struct hearth_oidc_issuer *issuer,
                                       const struct hearth_jwt *jwt, struct hearth_jwks **ret_set,
                                       const struct hearth_jwk **ret_key, uint64_t *ret_generation,
                                       struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;

    hearth_mutex_lock(&oidc->lock);
    struct hearth_jwks *set = hearth_jwks_hold(issuer->keys);
    const struct hearth_jwk *key =
        set == NULL ? NULL : hearth_jwks_find(set, jwt->key_id, jwt->alg);
    *ret_generation = issuer->generation;
    if (set == NULL) {
        (void)hearth_oidc_want(oidc, issuer);
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "the keys of the issuer %.100s are not known yet: retry later%s%.200s",
                             issuer->url, issuer->failure.msg[0] != '\0' ? "; " : "",
                             issuer->failure.msg);
    } else if (key == NULL && hearth_oidc_want(oidc, issuer)) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "the JWT names a key that is not known yet, and is being looked for: "
                             "retry later");
    } else if (key == NULL) {
        status =
            HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                        "the JWT is refused: the issuer has no key \"" HEARTH_STR_FMT "\" for %s",
                        HEARTH_STR_ARG(jwt->key_id), jwt->alg->name);
    }
    hearth_mutex_unlock(&oidc->lock);

    if (status != HEARTH_OK) {
        hearth_jwks_release(set);
        return status;
    }
    *ret_set = set;
    *ret_key = key;

    return HEARTH_OK;
}

/* Sets ret_is_wrong if the signature is. An unknown key does not count as a guess. */
static enum hearth_status check_signature(struct hearth_oidc *oidc, const struct hearth_jwt *jwt,
                                          struct hearth_checked_jwt *checked, bool *ret_is_wrong,
                                          struct hearth_err *err)
{
    struct hearth_jwks *set;
    const struct hearth_jwk *key;

    *ret_is_wrong = false;
    HEARTH_TRY(find_jwt_key(oidc, checked->issuer, jwt, &set, &key, &checked->generation, err));
    *ret_is_wrong = !hearth_jwk_verify(key, jwt->alg, jwt->signed_part, jwt->signature);
    hearth_jwks_release(set);

    return *ret_is_wrong ? HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                                       "the JWT is refused: its signature is wrong")
                         : HEARTH_OK;
}

/* ---- JWTs ---- */

enum hearth_status hearth_oidc_check_jwt(struct hearth_oidc *oidc, struct hearth_str text,
                                         struct hearth_str nonce, struct hearth_arena *arena,
                                         struct hearth_checked_jwt *ret, bool *ret_is_wrong,
                                         struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena scratch;
    struct hearth_jwt jwt;
    struct hearth_jwt_claims claims;

    *ret_is_wrong = true;
    hearth_arena_init(&scratch, VERIFY_MAX_BYTES);
    HEARTH_TRY(hearth_jwt_parse(text, &scratch, &jwt, err));
    HEARTH_TRY(hearth_jwt_claims_read(jwt.payload, &oidc->names, &scratch, &claims, err));

    /* Nothing of it is believed before the signature was checked by a key of this issuer. */
    ret->issuer = find_issuer(oidc, claims.issuer);
    if (ret->issuer == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the JWT is refused: its issuer \"" HEARTH_STR_FMT
                           "\" is not listed (oidc-issuer)",
                           HEARTH_STR_ARG(claims.issuer));
    }
    HEARTH_TRY(check_signature(oidc, &jwt, ret, ret_is_wrong, err));

    const struct hearth_jwt_rules rules = {
        .audience = hearth_str_c(nonce.p != NULL ? oidc->options.client_id : oidc->audience),
        .nonce = nonce,
        .names = &oidc->names,
        .now_ms = hearth_oidc_now_ms(),
        .skew_ms = oidc->options.clock_skew_ns / HEARTH_NS_PER_MS,
    };
    HEARTH_TRY(hearth_jwt_claims_check(&claims, &rules, err));

    return make_identity(oidc, ret->issuer, &claims, arena, &ret->identity, err);
}

enum hearth_status hearth_oidc_verify(struct hearth_oidc *oidc, struct hearth_str jwt,
                                      struct hearth_arena *arena, struct hearth_oidc_identity *ret,
                                      bool *ret_is_wrong, struct hearth_err *err)
{
    struct hearth_sha256 hash;
    struct hearth_oidc_key key;
    struct hearth_checked_jwt checked;

    /* The same JWT again. Too long ones are refused below. */
    *ret_is_wrong = false;
    hearth_sha256_init(&hash);
    hearth_sha256_add(&hash, hearth_str_n(jwt.p, jwt.n <= HEARTH_JWT_MAX_BYTES ? jwt.n : 0));
    hearth_sha256_end(&hash, key.hash);
    hearth_mutex_lock(&oidc->lock);
    bool is_known = hearth_oidc_cache_find(oidc->cache, &key, hearth_oidc_now_ms(), arena, ret);
    hearth_mutex_unlock(&oidc->lock);
    if (is_known) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_oidc_check_jwt(oidc, jwt, hearth_str_n(NULL, 0), arena, &checked,
                                     ret_is_wrong, err));
    *ret = checked.identity;

    /* Unless the keys have changed meanwhile. */
    hearth_mutex_lock(&oidc->lock);
    if (checked.issuer->generation == checked.generation) {
        hearth_oidc_cache_add(oidc->cache, &key, ret, checked.issuer);
    }
    hearth_mutex_unlock(&oidc->lock);

    return HEARTH_OK;
}
