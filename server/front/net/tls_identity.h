/*
 * tls_identity.h -- from a verified certificate of a client to texts. Threads: pure.
 * Source: RFC 2253 (subject), RFC 5280 4.2.1.6 (alternative names).
 */
#ifndef HEARTH_FRONT_TLS_IDENTITY_H
#define HEARTH_FRONT_TLS_IDENTITY_H

#include "net/certificate.h"

#include <openssl/x509.h>

/*
 * Names with a NUL or a control character are left out: they would read as another name. A
 * certificate with too many or too long names has is_complete false and neither subject nor names.
 * Returns NULL if there is no memory.
 */
struct hearth_certificate *hearth_tls_identity(const X509 *x509);

#endif
