/* oidc_state.c -- seals and opens the cookie of a log-in; layout: oidc_state.h. */
#include "oidc/oidc_state.h"

#include "hearth/base/base64.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <sys/random.h>

#define IV_BYTES       12
#define TAG_BYTES      16
#define RETURN_MAX     1024
#define VERIFIER_BYTES 32
/* Offsets within the encrypted part. */
#define STATE_AT    8
#define NONCE_AT    (STATE_AT + HEARTH_OIDC_STATE_CHARS)
#define VERIFIER_AT (NONCE_AT + HEARTH_OIDC_STATE_CHARS)
#define RETURN_AT   (VERIFIER_AT + HEARTH_OIDC_VERIFIER_CHARS)
#define MAX_SEALED  (IV_BYTES + RETURN_AT + RETURN_MAX + TAG_BYTES)

struct hearth_str hearth_base64url(struct hearth_str bytes, struct hearth_arena *arena)
{
    struct hearth_str text = {NULL, 0};
    struct hearth_buf buf;

    hearth_buf_init(&buf, 0);
    hearth_base64_encode(bytes, &buf);
    while (buf.n > 0 && buf.p[buf.n - 1] == '=') {
        buf.n--;
    }
    for (size_t i = 0; i < buf.n; i++) {
        buf.p[i] = (char)(buf.p[i] == '+' ? '-' : buf.p[i] == '/' ? '_' : buf.p[i]);
    }

    if (!hearth_buf_failed(&buf)) {
        text = hearth_arena_str(arena, hearth_buf_view(&buf));
    }
    hearth_buf_release(&buf);

    return text;
}

enum hearth_status hearth_oidc_key_derive(struct hearth_str secret, struct hearth_str salt,
                                          unsigned char ret[HEARTH_OIDC_KEY_BYTES],
                                          struct hearth_err *err)
{
    char digest[] = "SHA256", label[] = HEARTH_OIDC_STATE_LABEL;
    unsigned char secret_bytes[1024], salt_bytes[2048];
    bool is_made = false;

    assert(secret.n > 0 && secret.n <= sizeof secret_bytes && salt.n <= sizeof salt_bytes);
    memcpy(secret_bytes, secret.p, secret.n);
    memcpy(salt_bytes, salt.p, salt.n);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret_bytes, secret.n),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt_bytes, salt.n),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, label, sizeof label - 1),
        OSSL_PARAM_construct_end(),
    };

    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
    if (context != NULL) {
        is_made = EVP_KDF_derive(context, ret, HEARTH_OIDC_KEY_BYTES, params) == 1;
    }
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    ERR_clear_error();
    explicit_bzero(secret_bytes, sizeof secret_bytes);

    return is_made ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INTERNAL, "the key of log-ins could not be derived");
}

enum hearth_status hearth_oidc_state_make(struct hearth_str return_path, int64_t expires_ms,
                                          struct hearth_arena *arena, struct hearth_oidc_state *ret,
                                          struct hearth_err *err)
{
    unsigned char random[HEARTH_OIDC_STATE_CHARS + VERIFIER_BYTES];
    char *hex = hearth_arena_alloc(arena, 2 * HEARTH_OIDC_STATE_CHARS + 1);

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes");
    }

    struct hearth_str verifier = hearth_base64url(
        hearth_str_n((const char *)random + HEARTH_OIDC_STATE_CHARS, VERIFIER_BYTES), arena);
    if (hex == NULL || verifier.p == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    assert(verifier.n == HEARTH_OIDC_VERIFIER_CHARS);

    for (size_t i = 0; i < HEARTH_OIDC_STATE_CHARS; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", random[i]);
    }
    *ret = (struct hearth_oidc_state){
        .expires_ms = expires_ms,
        .state = hearth_str_n(hex, HEARTH_OIDC_STATE_CHARS),
        .nonce = hearth_str_n(hex + HEARTH_OIDC_STATE_CHARS, HEARTH_OIDC_STATE_CHARS),
        .verifier = verifier,
        .return_path = return_path,
    };

    return HEARTH_OK;
}

enum hearth_status hearth_oidc_state_seal(const unsigned char key[HEARTH_OIDC_KEY_BYTES],
                                          const struct hearth_oidc_state *state,
                                          struct hearth_arena *arena, struct hearth_str *ret,
                                          struct hearth_err *err)
{
    unsigned char plain[RETURN_AT + RETURN_MAX], sealed[MAX_SEALED];
    size_t n = RETURN_AT + state->return_path.n;
    int n_out = 0, n_end = 0;

    assert(state->return_path.n <= RETURN_MAX && state->expires_ms >= 0);
    for (size_t i = 0; i < STATE_AT; i++) {
        plain[i] = (unsigned char)((uint64_t)state->expires_ms >> (8 * (STATE_AT - 1 - i)));
    }
    memcpy(plain + STATE_AT, state->state.p, HEARTH_OIDC_STATE_CHARS);
    memcpy(plain + NONCE_AT, state->nonce.p, HEARTH_OIDC_STATE_CHARS);
    memcpy(plain + VERIFIER_AT, state->verifier.p, HEARTH_OIDC_VERIFIER_CHARS);
    memcpy(plain + RETURN_AT, state->return_path.p, state->return_path.n);
    if (getrandom(sealed, IV_BYTES, 0) != IV_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes");
    }

    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool is_sealed =
        context != NULL && EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, sealed) == 1 &&
        EVP_EncryptUpdate(context, sealed + IV_BYTES, &n_out, plain, (int)n) == 1 &&
        EVP_EncryptFinal_ex(context, sealed + IV_BYTES + n_out, &n_end) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, sealed + IV_BYTES + n) == 1;
    EVP_CIPHER_CTX_free(context);
    explicit_bzero(plain, sizeof plain);
    ERR_clear_error();
    if (!is_sealed) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the cookie of a log-in could not be encrypted");
    }

    *ret = hearth_base64url(hearth_str_n((const char *)sealed, IV_BYTES + n + TAG_BYTES), arena);

    return ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* Decrypts n bytes, which the tag follows. */
static bool decrypt_state(const unsigned char key[HEARTH_OIDC_KEY_BYTES],
                          const unsigned char *sealed, size_t n, unsigned char *ret)
{
    unsigned char tag[TAG_BYTES];
    int n_out = 0, n_end = 0;

    memcpy(tag, sealed + IV_BYTES + n, sizeof tag);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool is_right = context != NULL &&
                    EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, sealed) == 1 &&
                    EVP_DecryptUpdate(context, ret, &n_out, sealed + IV_BYTES, (int)n) == 1 &&
                    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1 &&
                    EVP_DecryptFinal_ex(context, ret + n_out, &n_end) == 1;
    EVP_CIPHER_CTX_free(context);
    ERR_clear_error();

    return is_right;
}

bool hearth_oidc_state_open(const unsigned char key[HEARTH_OIDC_KEY_BYTES], struct hearth_str text,
                            int64_t now_ms, struct hearth_arena *arena,
                            struct hearth_oidc_state *ret)
{
    struct hearth_str sealed;
    uint64_t expires_ms = 0;

    if (text.n > MAX_SEALED * 4 / 3 + 4 || !hearth_base64_decode(text, arena, &sealed) ||
        sealed.n < IV_BYTES + RETURN_AT + TAG_BYTES || sealed.n > MAX_SEALED) {
        return false;
    }

    size_t n = sealed.n - IV_BYTES - TAG_BYTES;
    unsigned char *plain = hearth_arena_alloc(arena, n);
    if (plain == NULL || !decrypt_state(key, (const unsigned char *)sealed.p, n, plain)) {
        return false;
    }

    const char *bytes = (const char *)plain;
    for (size_t i = 0; i < STATE_AT; i++) {
        expires_ms = expires_ms << 8 | plain[i];
    }
    *ret = (struct hearth_oidc_state){
        .expires_ms = (int64_t)expires_ms,
        .state = hearth_str_n(bytes + STATE_AT, HEARTH_OIDC_STATE_CHARS),
        .nonce = hearth_str_n(bytes + NONCE_AT, HEARTH_OIDC_STATE_CHARS),
        .verifier = hearth_str_n(bytes + VERIFIER_AT, HEARTH_OIDC_VERIFIER_CHARS),
        .return_path = hearth_str_n(bytes + RETURN_AT, n - RETURN_AT),
    };

    return ret->expires_ms > now_ms;
}
