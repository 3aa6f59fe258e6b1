/* jwk.c -- reads key sets. */
#include "oidc/jwk.h"

#include "hearth/base/base64.h"
#include "hearth/base/mem.h"
#include "hearth/codec/json_reader.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#define PARSE_MAX_BYTES    ((size_t)2 << 20)
#define RSA_MIN_BYTES      256
#define RSA_MAX_BYTES      1024
#define EXPONENT_MAX_BYTES 8
#define COORDINATE_MAX     66
#define ED25519_BYTES      32

static const struct hearth_jwt_alg g_algs[] = {
    {"RS256", HEARTH_JWK_RSA, "SHA256", false},  {"RS384", HEARTH_JWK_RSA, "SHA384", false},
    {"RS512", HEARTH_JWK_RSA, "SHA512", false},  {"PS256", HEARTH_JWK_RSA, "SHA256", true},
    {"PS384", HEARTH_JWK_RSA, "SHA384", true},   {"PS512", HEARTH_JWK_RSA, "SHA512", true},
    {"ES256", HEARTH_JWK_P256, "SHA256", false}, {"ES384", HEARTH_JWK_P384, "SHA384", false},
    {"ES512", HEARTH_JWK_P521, "SHA512", false}, {"EdDSA", HEARTH_JWK_ED25519, NULL, false},
};

static const struct {
    const char *name; /* of the curve: in a JWK and for OpenSSL */
    size_t n_bytes;   /* of a coordinate */
    enum hearth_jwk_kind kind;
} g_curves[] = {
    {"P-256", 32, HEARTH_JWK_P256},
    {"P-384", 48, HEARTH_JWK_P384},
    {"P-521", 66, HEARTH_JWK_P521},
};

const struct hearth_jwt_alg *hearth_jwt_alg_find(struct hearth_str name)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_algs); i++) {
        if (hearth_str_eq_c(name, g_algs[i].name)) {
            return &g_algs[i];
        }
    }

    return NULL;
}

/* ---- keys of OpenSSL ---- */

/* A public key of the parameters, which are freed. NULL: they make none. */
static EVP_PKEY *build_public_key(const char *type, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);

    if (params == NULL || context == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1) {
        key = NULL;
    }

    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);

    return key;
}

static struct hearth_str skip_zeros(struct hearth_str number)
{
    while (number.n > 0 && number.p[0] == '\0') {
        number.p++;
        number.n--;
    }

    return number;
}

static EVP_PKEY *make_rsa_key(struct hearth_str modulus, struct hearth_str exponent)
{
    modulus = skip_zeros(modulus);
    exponent = skip_zeros(exponent);
    if (modulus.n < RSA_MIN_BYTES || modulus.n > RSA_MAX_BYTES || exponent.n == 0 ||
        exponent.n > EXPONENT_MAX_BYTES || ((unsigned char)exponent.p[exponent.n - 1] & 1) == 0 ||
        (exponent.n == 1 && exponent.p[0] == 1)) {
        return NULL;
    }

    EVP_PKEY *key = NULL;
    BIGNUM *n = BN_bin2bn((const unsigned char *)modulus.p, (int)modulus.n, NULL);
    BIGNUM *e = BN_bin2bn((const unsigned char *)exponent.p, (int)exponent.n, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (n != NULL && e != NULL && builder != NULL &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1) {
        key = build_public_key("RSA", builder);
    } else {
        OSSL_PARAM_BLD_free(builder);
    }

    BN_free(n);
    BN_free(e);

    return key;
}

/* True if the point is on the curve. */
static bool is_key_sound(EVP_PKEY *key)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    bool is_sound = context != NULL && EVP_PKEY_public_check(context) == 1;

    EVP_PKEY_CTX_free(context);

    return is_sound;
}

static EVP_PKEY *make_curve_key(struct hearth_str curve, struct hearth_str x, struct hearth_str y,
                                enum hearth_jwk_kind *ret_kind)
{
    unsigned char point[1 + 2 * COORDINATE_MAX] = {4}; /* not compressed */
    size_t i = 0;

    while (i < HEARTH_ARRAY_LEN(g_curves) && !hearth_str_eq_c(curve, g_curves[i].name)) {
        i++;
    }
    if (i == HEARTH_ARRAY_LEN(g_curves) || x.n != g_curves[i].n_bytes ||
        y.n != g_curves[i].n_bytes) {
        return NULL;
    }

    memcpy(point + 1, x.p, x.n);
    memcpy(point + 1 + x.n, y.p, y.n);
    *ret_kind = g_curves[i].kind;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder == NULL ||
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, g_curves[i].name, 0) !=
            1 ||
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + x.n + y.n) !=
            1) {
        OSSL_PARAM_BLD_free(builder);
        return NULL;
    }

    EVP_PKEY *key = build_public_key("EC", builder);
    if (key != NULL && !is_key_sound(key)) {
        EVP_PKEY_free(key);
        key = NULL;
    }

    return key;
}

/* ---- the JSON of a key ---- */

/* Members of a key; p is NULL for missing ones. */
struct key_texts {
    struct hearth_str kty, kid, use, alg, crv, n, e, x, y;
    bool is_for_verifying; /* key_ops allows it, or is missing */
};

static void read_key_ops(struct hearth_json_reader *r, struct key_texts *texts,
                         struct hearth_arena *arena)
{
    texts->is_for_verifying = false;
    if (hearth_json_reader_peek(r) != '[') {
        hearth_json_reader_skip(r);
        return;
    }

    hearth_json_reader_array(r);
    while (hearth_json_reader_element(r)) {
        if (hearth_json_reader_peek(r) != '"') {
            hearth_json_reader_skip(r);
        } else if (hearth_str_eq_c(hearth_json_reader_text(r, arena), "verify")) {
            texts->is_for_verifying = true;
        }
    }
}

static void read_key_member(struct hearth_json_reader *r, struct hearth_str name,
                            struct key_texts *texts, struct hearth_arena *arena)
{
    const struct {
        const char *name;
        struct hearth_str *text;
    } members[] = {
        {"kty", &texts->kty}, {"kid", &texts->kid}, {"use", &texts->use},
        {"alg", &texts->alg}, {"crv", &texts->crv}, {"n", &texts->n},
        {"e", &texts->e},     {"x", &texts->x},     {"y", &texts->y},
    };

    if (hearth_str_eq_c(name, "key_ops")) {
        read_key_ops(r, texts, arena);
        return;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(members); i++) {
        if (hearth_str_eq_c(name, members[i].name) && hearth_json_reader_peek(r) == '"') {
            *members[i].text = hearth_json_reader_text(r, arena);
            return;
        }
    }

    hearth_json_reader_skip(r);
}

/* Makes a key of its texts. False for keys that are not for us. */
static bool make_jwk(const struct key_texts *texts, struct hearth_arena *arena,
                     struct hearth_jwk *ret)
{
    struct hearth_str n, e, x, y;

    if (!texts->is_for_verifying || (texts->use.p != NULL && !hearth_str_eq_c(texts->use, "sig")) ||
        texts->kid.n > HEARTH_JWK_MAX_ID || !hearth_base64_decode(texts->n, arena, &n) ||
        !hearth_base64_decode(texts->e, arena, &e) || !hearth_base64_decode(texts->x, arena, &x) ||
        !hearth_base64_decode(texts->y, arena, &y)) {
        return false;
    }

    *ret = (struct hearth_jwk){.only = NULL};
    if (hearth_str_eq_c(texts->kty, "RSA")) {
        ret->kind = HEARTH_JWK_RSA;
        ret->key = make_rsa_key(n, e);
    } else if (hearth_str_eq_c(texts->kty, "EC")) {
        ret->key = make_curve_key(texts->crv, x, y, &ret->kind);
    } else if (hearth_str_eq_c(texts->kty, "OKP") && hearth_str_eq_c(texts->crv, "Ed25519") &&
               x.n == ED25519_BYTES) {
        ret->kind = HEARTH_JWK_ED25519;
        ret->key =
            EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)x.p, x.n);
    }
    ERR_clear_error();
    if (ret->key == NULL) {
        return false;
    }

    memcpy(ret->id, texts->kid.n > 0 ? texts->kid.p : "", texts->kid.n);
    if (texts->alg.p != NULL) {
        ret->only = hearth_jwt_alg_find(texts->alg);
        if (ret->only == NULL || ret->only->kind != ret->kind) {
            EVP_PKEY_free(ret->key);
            return false;
        }
    }

    return true;
}

static void read_keys(struct hearth_json_reader *r, struct hearth_jwks *set,
                      struct hearth_arena *arena)
{
    hearth_json_reader_array(r);
    while (hearth_json_reader_element(r)) {
        struct key_texts texts = {.is_for_verifying = true};
        struct hearth_str name;

        if (hearth_json_reader_peek(r) != '{') {
            hearth_json_reader_skip(r);
            continue;
        }
        hearth_json_reader_object(r);
        while (hearth_json_reader_member(r, &name)) {
            read_key_member(r, name, &texts, arena);
        }

        if (!hearth_json_reader_failed(r) && set->n < HEARTH_JWKS_MAX_KEYS &&
            make_jwk(&texts, arena, &set->keys[set->n])) {
            set->n++;
        } else {
            set->n_ignored++;
        }
    }
}

static enum hearth_status read_key_set(struct hearth_str json, struct hearth_jwks *set,
                                       struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_json_reader r;
    struct hearth_str name;
    bool has_keys = false;

    hearth_json_reader_init(&r, json);
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &name)) {
        if (hearth_str_eq_c(name, "keys") && !has_keys) {
            has_keys = true;
            read_keys(&r, set, arena);
        } else {
            hearth_json_reader_skip(&r);
        }
    }
    HEARTH_TRY(hearth_json_reader_end(&r, err));

    return set->n > 0 ? HEARTH_OK
                      : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                    "the key set has no key that can verify signatures (%zu "
                                    "others)",
                                    set->n_ignored);
}

enum hearth_status hearth_jwks_parse(struct hearth_str json, struct hearth_jwks **ret,
                                     struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    struct hearth_jwks *set = NULL;

    hearth_arena_init(&arena, PARSE_MAX_BYTES);
    if (json.n > HEARTH_JWKS_MAX_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the key set has %zu bytes; at most %zu are read", json.n,
                           HEARTH_JWKS_MAX_BYTES);
    }
    set = hearth_mem_zalloc(sizeof *set);
    if (set == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a key set");
    }

    atomic_init(&set->n_holders, 1);
    enum hearth_status status = read_key_set(json, set, &arena, err);
    if (status != HEARTH_OK) {
        hearth_jwks_release(set);
        return status;
    }

    *ret = set;

    return HEARTH_OK;
}

struct hearth_jwks *hearth_jwks_hold(struct hearth_jwks *set)
{
    if (set != NULL) {
        (void)atomic_fetch_add(&set->n_holders, 1);
    }

    return set;
}

void hearth_jwks_release(struct hearth_jwks *set)
{
    if (set == NULL || atomic_fetch_sub(&set->n_holders, 1) > 1) {
        return;
    }

    for (size_t i = 0; i < set->n; i++) {
        EVP_PKEY_free(set->keys[i].key);
    }
    hearth_mem_free(set);
}

const struct hearth_jwk *hearth_jwks_find(const struct hearth_jwks *set, struct hearth_str id,
                                          const struct hearth_jwt_alg *alg)
{
    const struct hearth_jwk *found = NULL;

    for (size_t i = 0; i < set->n; i++) {
        const struct hearth_jwk *key = &set->keys[i];
        if (key->kind != alg->kind || (key->only != NULL && key->only != alg) ||
            (id.p != NULL && !hearth_str_eq_c(id, key->id))) {
            continue;
        }
        if (id.p != NULL) {
            return key;
        }
        if (found != NULL) {
            return NULL;
        }
        found = key;
    }

    return found;
}
