/* client_tls.c -- see client_tls.h. */
#include "client_tls.h"

#include "hearth/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#define MAX_FILE_BYTES ((size_t)1 << 20)

/* The contents, ended with NUL, to be freed; NULL for no path. */
static enum hearth_status read_text(const char *what, const char *path, char **ret_text,
                                    struct hearth_err *err)
{
    *ret_text = NULL;
    if (path == NULL) {
        return HEARTH_OK;
    }

    FILE *file = fopen(path, "rbe");
    char reason[128];
    if (file == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %s: %s", what, path,
                           strerror_r(errno, reason, sizeof reason));
    }

    char *text = hearth_mem_alloc(MAX_FILE_BYTES + 1);
    size_t n = text == NULL ? 0 : fread(text, 1, MAX_FILE_BYTES + 1, file);
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (text == NULL || failed || n == 0 || n > MAX_FILE_BYTES) {
        hearth_mem_free(text);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s %s must be a file in PEM format of at most 1 MiB", what, path);
    }

    text[n] = '\0';
    *ret_text = text;

    return HEARTH_OK;
}

/* The texts of a client's files. */
struct texts {
    char *ca, *cert, *key;
};

static enum hearth_status read_texts(const struct hearth_client_options *options,
                                     struct texts *texts, struct hearth_err *err)
{
    if ((options->cert_file == NULL) != (options->key_file == NULL)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a certificate needs its key: give both files, or neither");
    }

    HEARTH_TRY(read_text("CA file", options->ca_file, &texts->ca, err));
    HEARTH_TRY(read_text("certificate file", options->cert_file, &texts->cert, err));

    return read_text("key file", options->key_file, &texts->key, err);
}

static grpc_channel_credentials *make_verifying(const struct texts *texts)
{
    grpc_ssl_pem_key_cert_pair pair = {.private_key = texts->key, .cert_chain = texts->cert};
    return grpc_ssl_credentials_create(texts->ca, texts->key == NULL ? NULL : &pair, NULL, NULL);
}

/* Any certificate of the server will do. */
static grpc_channel_credentials *make_trusting(const struct texts *texts)
{
    grpc_tls_credentials_options *options = grpc_tls_credentials_options_create();
    grpc_tls_certificate_verifier *verifier = grpc_tls_certificate_verifier_no_op_create();

    grpc_tls_credentials_options_set_certificate_verifier(options, verifier);
    grpc_tls_credentials_options_set_verify_server_cert(options, 0);
    grpc_tls_credentials_options_set_check_call_host(options, 0);
    if (texts->key != NULL) {
        grpc_tls_identity_pairs *pairs = grpc_tls_identity_pairs_create();
        grpc_tls_identity_pairs_add_pair(pairs, texts->key, texts->cert);
        grpc_tls_certificate_provider *provider =
            grpc_tls_certificate_provider_static_data_create(NULL, pairs);
        grpc_tls_credentials_options_set_certificate_provider(options, provider);
        grpc_tls_credentials_options_watch_identity_key_cert_pairs(options);
        grpc_tls_certificate_provider_release(provider);
    }

    grpc_channel_credentials *credentials = grpc_tls_credentials_create(options);
    grpc_tls_certificate_verifier_release(verifier);

    return credentials;
}

enum hearth_status hearth_tls_credentials(const struct hearth_client_options *options,
                                          grpc_channel_credentials **ret_credentials,
                                          struct hearth_err *err)
{
    struct texts texts = {0};
    enum hearth_status status = read_texts(options, &texts, err);

    if (status == HEARTH_OK) {
        *ret_credentials = options->skip_verify ? make_trusting(&texts) : make_verifying(&texts);
        status = *ret_credentials != NULL
                     ? HEARTH_OK
                     : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                   "the files of TLS are no certificates in PEM format");
    }

    hearth_mem_free(texts.ca);
    hearth_mem_free(texts.cert);
    hearth_mem_free(texts.key);

    return status;
}
