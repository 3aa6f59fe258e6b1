/* jwk_verify.c -- verifies signatures by OpenSSL. */
#include "oidc/jwk.h"

#include <assert.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#define DER_MAX_BYTES 160 /* of a signature with P-521: 2 numbers of 66 bytes, and their heads */

/* Bytes of each of the two numbers in a signature; 0: the signature is no such pair. */
static size_t get_half_bytes(enum hearth_jwk_kind kind)
{
    switch (kind) {
    case HEARTH_JWK_P256:
        return 32;
    case HEARTH_JWK_P384:
        return 48;
    case HEARTH_JWK_P521:
        return 66;
    case HEARTH_JWK_RSA:
    case HEARTH_JWK_ED25519:
        break;
    }

    return 0;
}

/* The two numbers of a JWT's signature as the DER that OpenSSL reads. False: not two numbers. */
static bool encode_pair(struct hearth_str pair, size_t half_bytes, unsigned char ret[DER_MAX_BYTES],
                        size_t *ret_n)
{
    const unsigned char *bytes = (const unsigned char *)pair.p;

    if (pair.n != 2 * half_bytes) {
        return false;
    }

    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, (int)half_bytes, NULL);
    BIGNUM *s = BN_bin2bn(bytes + half_bytes, (int)half_bytes, NULL);
    if (signature == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(signature, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(signature);
        return false;
    }

    int n = i2d_ECDSA_SIG(signature, NULL);
    bool fits = n > 0 && n <= DER_MAX_BYTES;
    if (fits) {
        unsigned char *to = ret;
        *ret_n = (size_t)i2d_ECDSA_SIG(signature, &to);
    }
    ECDSA_SIG_free(signature);

    return fits;
}

bool hearth_jwk_verify(const struct hearth_jwk *key, const struct hearth_jwt_alg *alg,
                       struct hearth_str text, struct hearth_str signature)
{
    unsigned char der[DER_MAX_BYTES];
    size_t half_bytes = get_half_bytes(key->kind), n = signature.n;
    const unsigned char *bytes = (const unsigned char *)signature.p;
    EVP_PKEY_CTX *context = NULL;

    assert(alg->kind == key->kind);
    if (half_bytes > 0) {
        if (!encode_pair(signature, half_bytes, der, &n)) {
            ERR_clear_error();
            return false;
        }
        bytes = der;
    }

    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool is_right = digest != NULL && EVP_DigestVerifyInit_ex(digest, &context, alg->digest, NULL,
                                                              NULL, key->key, NULL) == 1;
    if (is_right && alg->is_pss) {
        is_right = EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
                   EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1;
    }
    is_right =
        is_right && EVP_DigestVerify(digest, bytes, n, (const unsigned char *)text.p, text.n) == 1;

    EVP_MD_CTX_free(digest);
    ERR_clear_error();

    return is_right;
}
