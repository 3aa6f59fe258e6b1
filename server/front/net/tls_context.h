/*
 * tls_context.h -- certificate, key and rules of TLS, and their renewal while the server runs.
 *
 *   protocols   1.2 and 1.3, or only 1.3; no renegotiation, no compression, no early data
 *   suites      of 1.2: ECDHE with AES-GCM or ChaCha20; of 1.3: all of OpenSSL's
 *   ALPN        "h2" for clients that offer it and not "http/1.1", which are gRPC clients;
 *               otherwise "http/1.1". Browsers and curl offer both, and the HTTP/2 side of this
 *               server speaks only gRPC.
 *   tickets     with keys that last until the next load; none if clients are asked for
 *               certificates, so that each of their connections is verified
 *
 * Threads: new, free and try from one thread; hearth_tls_context_open from any; load and check from
 *          one at a time.
 * Source:  OpenSSL 3.0; Mozilla's "intermediate" configuration, guidelines 5.7, without DHE.
 */
#ifndef HEARTH_FRONT_TLS_CONTEXT_H
#define HEARTH_FRONT_TLS_CONTEXT_H

#include "hearth/base/status.h"
#include "hearth/front/front.h"

#include <openssl/ssl.h>

struct hearth_tls_context;

/*
 * Loads the files that the options name (texts are copied).
 *
 * Returns  OK; INVALID_ARGUMENT for a missing or malformed option or file; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tls_context_new(const struct hearth_tls_options *options,
                                          struct hearth_tls_context **ret_context,
                                          struct hearth_err *err);
void hearth_tls_context_free(struct hearth_tls_context *context); /* NULL-safe */
/* Loads the files like hearth_tls_context_new, with its errors, and drops them. */
HEARTH_MUST_CHECK
enum hearth_status hearth_tls_context_try(const struct hearth_tls_options *options,
                                          struct hearth_err *err);

/* Loads the files again, logs the result, and counts it. After a failure the old ones stay. */
void hearth_tls_context_load(struct hearth_tls_context *context);
/* At most once a minute: loads the files if one has changed; warns once a day if the certificate
 * ends within a week. */
void hearth_tls_context_check(struct hearth_tls_context *context, int64_t now_mono_ns);

/* The server's end of a new connection, without a transport; NULL if there is no memory. */
SSL *hearth_tls_context_open(struct hearth_tls_context *context);
/* The last error of OpenSSL in this thread as a static text: "certificate verify failed". */
const char *hearth_tls_reason(void);

#endif
