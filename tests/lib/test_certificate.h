/* test_certificate.h -- a self-signed certificate and its key, made by OpenSSL, as PEM files. */
#ifndef HEARTH_TESTS_TEST_CERTIFICATE_H
#define HEARTH_TESTS_TEST_CERTIFICATE_H

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>

/* CN=localhost, for a day; `names` is the text of subjectAltName, or NULL. */
static inline X509 *make_certificate(EVP_PKEY *key, const char *names)
{
    X509 *x509 = X509_new();
    X509_NAME *name = X509_get_subject_name(x509);
    (void)X509_set_version(x509, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(x509), -60);
    (void)X509_gmtime_adj(X509_getm_notAfter(x509), 24 * 3600);
    (void)X509_set_pubkey(x509, key);
    (void)X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
                                     (const unsigned char *)"Shop, \xc3\xa4", -1, -1, 0);
    (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)"localhost",
                                     -1, -1, 0);
    (void)X509_set_issuer_name(x509, name);
    if (names != NULL) {
        X509V3_CTX context;
        X509V3_set_ctx_nodb(&context);
        X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
        X509_EXTENSION *extension =
            X509V3_EXT_conf_nid(NULL, &context, NID_subject_alt_name, names);
        (void)X509_add_ext(x509, extension, -1);
        X509_EXTENSION_free(extension);
    }
    (void)X509_sign(x509, key, EVP_sha256());
    return x509;
}

static inline bool write_certificate(const char *cert_path, const char *key_path, const char *names)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = make_certificate(key, names);
    FILE *cert_file = fopen(cert_path, "w"), *key_file = fopen(key_path, "w");
    bool ok = cert_file != NULL && key_file != NULL && PEM_write_X509(cert_file, x509) == 1 &&
              PEM_write_PrivateKey(key_file, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (cert_file != NULL) {
        (void)fclose(cert_file);
    }
    if (key_file != NULL) {
        (void)fclose(key_file);
    }
    X509_free(x509);
    EVP_PKEY_free(key);
    return ok;
}

#endif
