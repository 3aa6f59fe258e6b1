/* fuzz_jwks.c -- any bytes as a key set: keys that were kept can be used, and verify nothing by chance. */
#include "oidc/jwk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const algs[] = {"RS256", "PS512", "ES256", "ES384", "ES512", "EdDSA"};
    struct hearth_jwks *set;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str json = {(const char *)data, size};

    if (hearth_jwks_parse(json, &set, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0');
        return 0;
    }

    HEARTH_ASSERT(set->n > 0 && set->n <= HEARTH_JWKS_MAX_KEYS);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(algs); i++) {
        const struct hearth_jwt_alg *alg = hearth_jwt_alg_find(hearth_str_c(algs[i]));
        const struct hearth_jwk *key = hearth_jwks_find(set, hearth_str_c(set->keys[0].id), alg);
        HEARTH_ASSERT(key == NULL || (key->kind == alg->kind && key->key != NULL));
        if (key != NULL) {
            HEARTH_ASSERT(!hearth_jwk_verify(key, alg, HEARTH_STR("text"), json));
        }
    }
    hearth_jwks_release(set);

    return 0;
}
