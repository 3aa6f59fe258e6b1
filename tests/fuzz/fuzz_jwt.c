/* fuzz_jwt.c -- any bytes as a JWT: it is refused with a reason, or its parts and claims keep what jwt.h promises. */
#include "oidc/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct hearth_str text)
{
    HEARTH_ASSERT(text.p == NULL ? text.n == 0 : hearth_str_utf8_valid(text));
}

static void check_claims(struct hearth_str payload, struct hearth_arena *arena)
{
    static const struct hearth_claim_names names = {"sub", "realm_access.roles"};
    struct hearth_jwt_claims claims;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (hearth_jwt_claims_read(payload, &names, arena, &claims, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0');
        return;
    }

    check_text(claims.issuer);
    check_text(claims.subject);
    check_text(claims.nonce);
    HEARTH_ASSERT(claims.n_audiences <= HEARTH_JWT_MAX_AUDIENCES &&
                  claims.n_groups <= HEARTH_JWT_MAX_GROUPS);
    for (size_t i = 0; i < claims.n_audiences; i++) {
        check_text(claims.audiences[i]);
    }
    for (size_t i = 0; i < claims.n_groups; i++) {
        check_text(claims.groups[i]);
    }

    const struct hearth_jwt_rules rules = {.audience = HEARTH_STR("hearth"),
                                           .names = &names,
                                           .now_ms = INT64_C(1700000000000),
                                           .skew_ms = 60000};
    if (hearth_jwt_claims_check(&claims, &rules, &err) == HEARTH_OK) {
        HEARTH_ASSERT(claims.subject.n > 0 && claims.expires_ms > rules.now_ms - rules.skew_ms);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_jwt jwt;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str text = {(const char *)data, size};

    hearth_arena_init(&arena, 1u << 20);
    if (hearth_jwt_parse(text, &arena, &jwt, &err) == HEARTH_OK) {
        HEARTH_ASSERT(jwt.alg != NULL && size <= HEARTH_JWT_MAX_BYTES);
        HEARTH_ASSERT(jwt.signed_part.p == text.p && jwt.signed_part.n < size);
        check_claims(jwt.payload, &arena);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    check_claims(text, &arena); /* JSON without its wrapping, which mutates better */
    hearth_arena_release(&arena);

    return 0;
}
