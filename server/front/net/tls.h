/*
 * tls.h -- TLS for the acceptor: it gives accepted sockets and gets decrypted streams back.
 *
 * Threads of two kinds: `tls-shake-N` carry out handshakes, `tls-N` relay. So a flood of handshakes
 * does not slow connections that are open.
 *
 * Threads: take, next and relay from the acceptor's thread; start, close_new and free from the
 *          thread that starts and stops the acceptor; counts from any.
 */
#ifndef HEARTH_FRONT_TLS_H
#define HEARTH_FRONT_TLS_H

#include "net/tls_context.h"
#include "net/tls_stream.h"

struct hearth_tls;

HEARTH_MUST_CHECK
enum hearth_status hearth_tls_start(const struct hearth_tls_options *options,
                                    int64_t first_bytes_timeout_ns, int64_t head_timeout_ns,
                                    struct hearth_tls **ret_tls, struct hearth_err *err);
/* Ends handshakes and connections that the acceptor has not got back. */
void hearth_tls_close_new(struct hearth_tls *tls);
/* Sends clients what is still to be sent, for two seconds at most. NULL-safe. */
void hearth_tls_free(struct hearth_tls *tls);

/* For loading certificates. */
struct hearth_tls_context *hearth_tls_get_context(struct hearth_tls *tls);

/* Takes a connected, non-blocking socket. Its handshake may fail, which closes it. */
void hearth_tls_take(struct hearth_tls *tls, int fd, const struct hearth_origin *origin,
                     bool is_extra);
/* Readable when there is a ready stream. */
int hearth_tls_ready_fd(const struct hearth_tls *tls);
/* The next stream whose handshake is complete; NULL if there is none. Take its lib_fd, then give it
 * to hearth_tls_relay_on. */
struct hearth_tls_stream *hearth_tls_next(struct hearth_tls *tls);
void hearth_tls_relay_on(struct hearth_tls *tls, struct hearth_tls_stream *stream);

/* Streams with is_extra whose handshake is not complete. */
size_t hearth_tls_count_extra(const struct hearth_tls *tls);
/* Open connections whose library has closed its end: the table of peers does not count them. */
size_t hearth_tls_count_draining(const struct hearth_tls *tls);
/* Open connections whose handshake is complete. */
size_t hearth_tls_count_relayed(const struct hearth_tls *tls);

#endif
