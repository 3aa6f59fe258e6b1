/* certificate.c -- two structs with counted references. */
#include "net/certificate.h"

#include "hearth/base/mem.h"

#include <assert.h>

struct hearth_certificate *hearth_certificate_new(size_t n_text)
{
    assert(n_text <= HEARTH_CERTIFICATE_MAX_BYTES);
    struct hearth_certificate *certificate = hearth_mem_zalloc(sizeof *certificate + n_text + 1);

    if (certificate != NULL) {
        atomic_init(&certificate->refs, 1);
        certificate->subject = certificate->text;
        certificate->n_text = n_text;
    }

    return certificate;
}

struct hearth_certificate *hearth_certificate_ref(struct hearth_certificate *certificate)
{
    (void)atomic_fetch_add_explicit(&certificate->refs, 1, memory_order_relaxed);
    return certificate;
}

void hearth_certificate_unref(struct hearth_certificate *certificate)
{
    if (certificate != NULL &&
        atomic_fetch_sub_explicit(&certificate->refs, 1, memory_order_acq_rel) == 1) {
        hearth_mem_free(certificate);
    }
}

struct hearth_tls_side *hearth_tls_side_new(struct hearth_certificate *certificate)
{
    struct hearth_tls_side *side = hearth_mem_zalloc(sizeof *side);

    if (side != NULL) {
        atomic_init(&side->refs, 1);
        side->certificate = certificate == NULL ? NULL : hearth_certificate_ref(certificate);
    }

    return side;
}

struct hearth_tls_side *hearth_tls_side_ref(struct hearth_tls_side *side)
{
    (void)atomic_fetch_add_explicit(&side->refs, 1, memory_order_relaxed);
    return side;
}

void hearth_tls_side_unref(struct hearth_tls_side *side)
{
    if (side != NULL && atomic_fetch_sub_explicit(&side->refs, 1, memory_order_acq_rel) == 1) {
        hearth_certificate_unref(side->certificate);
        hearth_mem_free(side);
    }
}
