/*
 * certificate.h -- the identity that a client has proved by a certificate, and what the kernel
 * does not count for a TLS connection.
 *
 * Both are shared by reference: a connection's relay, the table of peers and requests hold them,
 * and each may end first.
 *
 * Threads: safe; a certificate is immutable, the members of a side are atomic or immutable.
 */
#ifndef HEARTH_FRONT_CERTIFICATE_H
#define HEARTH_FRONT_CERTIFICATE_H

#include "hearth/base/status.h"

#include <stdatomic.h>

/* Larger certificates have is_complete false and no names: a part of a name is never shown. */
#define HEARTH_CERTIFICATE_MAX_BYTES 8192
#define HEARTH_CERTIFICATE_MAX_NAMES 64

enum hearth_name_kind {
    HEARTH_NAME_DNS,
    HEARTH_NAME_URI,
    HEARTH_NAME_EMAIL,
};

/* A subject alternative name. */
struct hearth_certificate_name {
    enum hearth_name_kind kind;
    const char *text;
};

struct hearth_certificate {
    _Atomic unsigned refs;
    bool is_complete;
    size_t n_names;
    const char *subject; /* as in RFC 2253: "CN=agent,O=Shop" */
    struct hearth_certificate_name names[HEARTH_CERTIFICATE_MAX_NAMES];
    size_t n_text;
    char text[]; /* the bytes of subject and names */
};

/* An empty certificate with place for n_text bytes; one reference. NULL if there is no memory. */
struct hearth_certificate *hearth_certificate_new(size_t n_text);
struct hearth_certificate *hearth_certificate_ref(struct hearth_certificate *certificate);
void hearth_certificate_unref(struct hearth_certificate *certificate); /* NULL-safe */

/* The decrypted stream of a connection; see relay.h. */
struct hearth_tls_side {
    _Atomic unsigned refs;
    _Atomic uint64_t bytes;   /* received from the client, decrypted */
    _Atomic uint32_t records; /* TLS records with data received from the client */
    _Atomic bool is_cut;      /* by the server: the client's connection is to be reset */
    struct hearth_certificate *certificate; /* verified; NULL if the client sent none */
};

/* Takes a reference to the certificate (may be NULL). NULL if there is no memory. */
struct hearth_tls_side *hearth_tls_side_new(struct hearth_certificate *certificate);
struct hearth_tls_side *hearth_tls_side_ref(struct hearth_tls_side *side);
void hearth_tls_side_unref(struct hearth_tls_side *side); /* NULL-safe */

#endif
