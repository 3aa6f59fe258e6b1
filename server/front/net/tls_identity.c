/* tls_identity.c -- see tls_identity.h. */
#include "net/tls_identity.h"

#include "hearth/base/buf.h"

#include <openssl/bio.h>
#include <openssl/x509v3.h>

/* The subject, ended with NUL; false if it is too long or there is no memory. */
static bool append_subject(const X509 *x509, struct hearth_buf *text)
{
    BIO *memory = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    /* RFC 2253 escapes what has a meaning in it; bytes beyond ASCII are written as UTF-8. */
    unsigned long flags = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
    bool ok =
        memory != NULL && X509_NAME_print_ex(memory, X509_get_subject_name(x509), 0, flags) >= 0;
    long n = ok ? BIO_get_mem_data(memory, &bytes) : -1;

    if (n >= 0) {
        hearth_buf_append(text, bytes, (size_t)n);
        hearth_buf_byte(text, '\0');
    }

    (void)BIO_free(memory);

    return n >= 0 && text->n <= HEARTH_CERTIFICATE_MAX_BYTES;
}

static bool is_plain_name(const unsigned char *p, int n)
{
    for (int i = 0; i < n; i++) {
        if (p[i] <= ' ' || p[i] == 0x7f) {
            return false;
        }
    }
    return n > 0;
}

/* A name that may be shown, with its kind; NULL for any other. */
static const ASN1_IA5STRING *read_name(const GENERAL_NAME *name, enum hearth_name_kind *ret_kind)
{
    int type;
    const ASN1_IA5STRING *value = GENERAL_NAME_get0_value(name, &type);

    if (type != GEN_DNS && type != GEN_URI && type != GEN_EMAIL) {
        return NULL;
    }

    *ret_kind = type == GEN_DNS   ? HEARTH_NAME_DNS
                : type == GEN_URI ? HEARTH_NAME_URI
                                  : HEARTH_NAME_EMAIL;

    return is_plain_name(ASN1_STRING_get0_data(value), ASN1_STRING_length(value)) ? value : NULL;
}

/* Appends the names; false if there are too many. */
static bool append_names(const X509 *x509, struct hearth_buf *text, size_t *ret_n,
                         enum hearth_name_kind kinds[HEARTH_CERTIFICATE_MAX_NAMES])
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    bool fits = true;
    size_t n = 0;

    for (int i = 0; fits && i < sk_GENERAL_NAME_num(names); i++) {
        enum hearth_name_kind kind;
        const ASN1_IA5STRING *value = read_name(sk_GENERAL_NAME_value(names, i), &kind);
        if (value == NULL) {
            continue;
        }
        fits = n < HEARTH_CERTIFICATE_MAX_NAMES &&
               text->n + (size_t)ASN1_STRING_length(value) < HEARTH_CERTIFICATE_MAX_BYTES;
        if (fits) {
            kinds[n++] = kind;
            hearth_buf_append(text, ASN1_STRING_get0_data(value),
                              (size_t)ASN1_STRING_length(value));
            hearth_buf_byte(text, '\0');
        }
    }

    GENERAL_NAMES_free(names);
    *ret_n = n;

    return fits;
}

struct hearth_certificate *hearth_tls_identity(const X509 *x509)
{
    enum hearth_name_kind kinds[HEARTH_CERTIFICATE_MAX_NAMES];
    struct hearth_buf text;
    size_t n_names = 0;

    /* All texts, one after the other. */
    hearth_buf_init(&text, 0);
    bool fits = append_subject(x509, &text) && append_names(x509, &text, &n_names, kinds) &&
                !hearth_buf_failed(&text);

    /* The certificate points into its own copy of them. */
    struct hearth_certificate *certificate = hearth_certificate_new(fits ? text.n : 0);
    if (certificate != NULL && fits) {
        memcpy(certificate->text, text.p, text.n);
        certificate->is_complete = true;
        const char *at = certificate->text + strlen(certificate->text) + 1;
        for (size_t i = 0; i < n_names; i++) {
            certificate->names[i] = (struct hearth_certificate_name){kinds[i], at};
            at += strlen(at) + 1;
        }
        certificate->n_names = n_names;
    }

    hearth_buf_release(&text);

    return certificate;
}
