/* jwt_claims.c -- the claims of a token. */
#include "hearth/codec/json_reader.h"

#include "oidc/jwt.h"

#include <assert.h>

struct claim_reading {
    struct hearth_arena *arena;
    struct hearth_jwt_claims *claims;
};

/* ---- values ---- */

/* A text of a claim. A claim that is there twice is read differently by different programs. */
static void read_claim_text(struct hearth_json_reader *r, struct hearth_arena *arena,
                            struct hearth_str *ret)
{
    if (ret->p != NULL) {
        hearth_json_reader_fail(r, "a claim is there twice");
    }

    *ret = hearth_json_reader_text(r, arena);
    if (!hearth_json_reader_failed(r) && !hearth_str_utf8_valid(*ret)) {
        hearth_json_reader_fail(r, "a claim is not UTF-8");
    }
    if (ret->p == NULL) {
        ret->p = "";
    }
}

static void read_claim_time(struct hearth_json_reader *r, int64_t *ret_ms)
{
    if (*ret_ms != HEARTH_CLAIM_NO_TIME) {
        hearth_json_reader_fail(r, "a claim is there twice");
    }
    *ret_ms = hearth_json_reader_scaled(r, 1000);
}

/* A text, or an array of texts; other elements are ignored. Stops at `max` if they may be left. */
static void read_claim_list(struct hearth_json_reader *r, struct hearth_arena *arena,
                            struct hearth_str *list, size_t max, size_t *n)
{
    if (*n > 0) {
        hearth_json_reader_fail(r, "a claim is there twice");
    }
    if (hearth_json_reader_peek(r) == '"') {
        list[0].p = NULL;
        read_claim_text(r, arena, &list[0]);
        *n = 1;
        return;
    }
    if (hearth_json_reader_peek(r) != '[') {
        hearth_json_reader_skip(r);
        return;
    }

    hearth_json_reader_array(r);
    while (hearth_json_reader_element(r)) {
        if (hearth_json_reader_peek(r) != '"' || *n == max) {
            hearth_json_reader_skip(r);
            continue;
        }
        list[*n].p = NULL;
        read_claim_text(r, arena, &list[*n]);
        *n += 1;
    }
}

/* ---- claims with names of our choice ---- */

typedef void read_claim_fn(struct hearth_json_reader *r, const struct claim_reading *reading);

static void read_subject_claim(struct hearth_json_reader *r, const struct claim_reading *reading)
{
    read_claim_text(r, reading->arena, &reading->claims->subject);
}

static void read_group_claim(struct hearth_json_reader *r, const struct claim_reading *reading)
{
    read_claim_list(r, reading->arena, reading->claims->groups, HEARTH_JWT_MAX_GROUPS,
                    &reading->claims->n_groups);
}

/* The part of the path after the member's name and a full stop; p is NULL if there is none. */
static struct hearth_str after_member(struct hearth_str path, struct hearth_str name)
{
    bool begins = path.n > name.n + 1 && path.p[name.n] == '.' && hearth_str_starts(path, name);
    return begins ? hearth_str_n(path.p + name.n + 1, path.n - name.n - 1) : hearth_str_n(NULL, 0);
}

/*
 * If the member is on the path, reads the claim there. The reader is a copy at the member's value;
 * calls itself once for each full stop of the path at most.
 */
static void read_named_claim(struct hearth_json_reader *r, struct hearth_str name,
                             struct hearth_str path, read_claim_fn *read,
                             const struct claim_reading *reading)
{
    struct hearth_str rest = after_member(path, name), inner;

    if (path.n > 0 && hearth_str_eq(path, name)) {
        read(r, reading);
        return;
    }
    if (rest.p == NULL || hearth_json_reader_peek(r) != '{') {
        return;
    }

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &inner)) {
        struct hearth_json_reader copy = *r;
        read_named_claim(&copy, inner, rest, read, reading);
        if (hearth_json_reader_failed(&copy)) {
            *r = copy;
            return;
        }
        hearth_json_reader_skip(r);
    }
}

/* ---- registered claims ---- */

static void read_registered_claim(struct hearth_json_reader *r, struct hearth_str name,
                                  const struct claim_reading *reading)
{
    struct hearth_jwt_claims *claims = reading->claims;

    if (hearth_str_eq_c(name, "iss")) {
        read_claim_text(r, reading->arena, &claims->issuer);
    } else if (hearth_str_eq_c(name, "aud")) {
        read_claim_list(r, reading->arena, claims->audiences, HEARTH_JWT_MAX_AUDIENCES,
                        &claims->n_audiences);
    } else if (hearth_str_eq_c(name, "nonce")) {
        read_claim_text(r, reading->arena, &claims->nonce);
    } else if (hearth_str_eq_c(name, "azp")) {
        read_claim_text(r, reading->arena, &claims->authorized_party);
    } else if (hearth_str_eq_c(name, "exp")) {
        read_claim_time(r, &claims->expires_ms);
    } else if (hearth_str_eq_c(name, "nbf")) {
        read_claim_time(r, &claims->not_before_ms);
    } else if (hearth_str_eq_c(name, "iat")) {
        read_claim_time(r, &claims->issued_ms);
    } else {
        if (hearth_str_eq_c(name, "email_verified")) {
            bool is_true = hearth_json_reader_peek(r) == 'b' && r->text.p[r->at] == 't';
            claims->is_email_unverified = !is_true;
        }
        hearth_json_reader_skip(r);
    }
}

static void read_claims(struct hearth_json_reader *r, const struct hearth_claim_names *names,
                        const struct claim_reading *reading)
{
    struct hearth_str name;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &name)) {
        struct hearth_json_reader copy = *r;
        read_named_claim(&copy, name, hearth_str_c(names->subject), read_subject_claim, reading);
        struct hearth_json_reader other = *r;
        read_named_claim(&other, name, hearth_str_c(names->groups), read_group_claim, reading);
        if (hearth_json_reader_failed(&copy) || hearth_json_reader_failed(&other)) {
            *r = hearth_json_reader_failed(&copy) ? copy : other;
            return;
        }
        read_registered_claim(r, name, reading);
    }
}

enum hearth_status hearth_jwt_claims_read(struct hearth_str payload,
                                          const struct hearth_claim_names *names,
                                          struct hearth_arena *arena, struct hearth_jwt_claims *ret,
                                          struct hearth_err *err)
{
    const struct claim_reading reading = {.arena = arena, .claims = ret};
    struct hearth_json_reader r;
    struct hearth_err why = HEARTH_ERR_INIT;

    *ret = (struct hearth_jwt_claims){.expires_ms = HEARTH_CLAIM_NO_TIME,
                                      .not_before_ms = HEARTH_CLAIM_NO_TIME,
                                      .issued_ms = HEARTH_CLAIM_NO_TIME};
    hearth_json_reader_init(&r, payload);
    read_claims(&r, names, &reading);
    enum hearth_status status = hearth_json_reader_end(&r, &why);
    if (status == HEARTH_NO_MEMORY) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return status == HEARTH_OK ? HEARTH_OK
                               : HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                                             "the JWT is refused: its claims: %s", why.msg);
}

/* ---- checks ---- */

static bool has_audience(const struct hearth_jwt_claims *claims, struct hearth_str audience)
{
    for (size_t i = 0; i < claims->n_audiences; i++) {
        if (hearth_str_eq(claims->audiences[i], audience)) {
            return true;
        }
    }

    return false;
}

static enum hearth_status check_claimed_times(const struct hearth_jwt_claims *claims,
                                              const struct hearth_jwt_rules *rules,
                                              struct hearth_err *err)
{
    int64_t earliest_ms = rules->now_ms - rules->skew_ms,
            latest_ms = rules->now_ms + rules->skew_ms;

    if (claims->expires_ms == HEARTH_CLAIM_NO_TIME) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the JWT is refused: it has no end (exp)");
    }
    if (claims->expires_ms <= earliest_ms) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the JWT has expired: get a new one");
    }
    if ((claims->not_before_ms != HEARTH_CLAIM_NO_TIME && claims->not_before_ms > latest_ms) ||
        (claims->issued_ms != HEARTH_CLAIM_NO_TIME && claims->issued_ms > latest_ms)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the JWT is not valid yet (nbf, iat); the clocks may differ by %lld s "
                           "(oidc-clock-skew)",
                           (long long)(rules->skew_ms / 1000));
    }

    return HEARTH_OK;
}

/* An ID token is the answer to our own request, and for our own client. */
static enum hearth_status check_id_token(const struct hearth_jwt_claims *claims,
                                         const struct hearth_jwt_rules *rules,
                                         struct hearth_err *err)
{
    if (!hearth_str_eq_secret(claims->nonce, rules->nonce)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the ID token belongs to another log-in (nonce)");
    }

    bool names_other = claims->authorized_party.p != NULL &&
                       !hearth_str_eq(claims->authorized_party, rules->audience);
    return names_other || (claims->n_audiences > 1 && claims->authorized_party.p == NULL)
               ? HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                             "the ID token was issued to another client (azp)")
               : HEARTH_OK;
}

enum hearth_status hearth_jwt_claims_check(const struct hearth_jwt_claims *claims,
                                           const struct hearth_jwt_rules *rules,
                                           struct hearth_err *err)
{
    assert(rules->audience.n > 0 && rules->skew_ms >= 0);

    HEARTH_TRY(check_claimed_times(claims, rules, err));
    if (!has_audience(claims, rules->audience)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the JWT is refused: it is for another audience; its aud must contain "
                           "\"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(rules->audience));
    }
    if (rules->nonce.p != NULL) {
        HEARTH_TRY(check_id_token(claims, rules, err));
    }

    if (claims->subject.n == 0) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the JWT is refused: it has no claim \"%s\" (oidc-subject-claim)",
                           rules->names->subject);
    }
    if (claims->is_email_unverified && strcmp(rules->names->subject, "email") == 0) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the JWT is refused: the issuer has not verified its address "
                           "(email_verified)");
    }

    return HEARTH_OK;
}
