/*
 * client.h -- the client library: blocking calls to a Hearth server (or any that speaks querier.v1
 * and push.v1) over gRPC.
 *
 * Ownership: answers live in the caller's arena as protobuf-c messages of the generated types
 *            (hearth/pb/...).
 * Threads:   a client may be used from several threads; each call blocks its caller.
 * Errors:    the server's status with its message; UNAVAILABLE if it cannot be reached,
 *            DEADLINE_EXCEEDED if it does not answer in time (the messages name the address).
 * Source:    gRPC over HTTP/2, without or with TLS, directly or through a proxy by HTTP's CONNECT.
 */
#ifndef HEARTH_CLIENT_H
#define HEARTH_CLIENT_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/codec/pb.h"

struct hearth_client;

#define HEARTH_CLIENT_MAX_HEADERS      32
#define HEARTH_CLIENT_MAX_HEADER_BYTES ((size_t)4 << 10) /* of a name with its value */

/* A header that is sent with each call, as gRPC metadata. */
struct hearth_client_header {
    struct hearth_str name, value;
};

struct hearth_client_options {
    const char *url;    /* http://HOST:PORT, https://HOST:PORT or HOST:PORT */
    const char *tenant; /* X-Scope-OrgID; NULL: not sent */
    /* Further headers, at most HEARTH_CLIENT_MAX_HEADERS; copied. */
    const struct hearth_client_header *headers;
    size_t n_headers;
    /* http://[USER:PASSWORD@]HOST:PORT of a proxy, which connects to the server; NULL: none. The
     * proxy resolves the server's name. Without TLS, the proxy can read the calls. */
    const char *proxy;
    int64_t timeout_ms;      /* time limit of one call; default 60,000 */
    size_t max_answer_bytes; /* largest answer; default 1 GiB */
    /* For https, PEM files; all are read by hearth_client_new. */
    const char *ca_file; /* authorities that the server is verified by; NULL: the system's */
    const char *cert_file, *key_file; /* the client's certificate and its key; NULL: none */
    bool skip_verify; /* accept any certificate of any server: anybody between can read and write */
    /* Called for each decoded note of an answer (hearth-note: what the answer lacks, or what was
     * changed) in the thread of the call, before it returns. The text is valid during the callback.
     * NULL: notes are ignored. */
    void (*note)(void *context, struct hearth_str text);
    void *note_context;
    /* Called each second, in the thread of the call, while a call that has lasted waiting_after_ms
     * has no answer; then once with HEARTH_CLIENT_WAITED. It may make calls of other clients.
     * NULL: not called. */
    void (*waiting)(void *context, int64_t waited_ms);
    void *waiting_context;
    int64_t waiting_after_ms;
};

#define HEARTH_CLIENT_WAITED (-1) /* in place of waited_ms: the call has ended */

void hearth_client_options_init(struct hearth_client_options *options);

/*
 * Reads "NAME: VALUE", which *ret borrows. INVALID_ARGUMENT, with the name, for names that are no
 * token, that HTTP, gRPC or this client set themselves, and for values of other bytes than visible
 * ASCII and spaces; the message does not contain the value.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_header_parse(struct hearth_str text,
                                              struct hearth_client_header *ret,
                                              struct hearth_err *err);

/* Does not connect. INVALID_ARGUMENT for a malformed URL of the server or the proxy, for a header
 * that hearth_client_header_parse refuses, or for a file of TLS that cannot be read or is given
 * without https; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_new(const struct hearth_client_options *options,
                                     struct hearth_client **ret_client, struct hearth_err *err);
void hearth_client_free(struct hearth_client *client);

/*
 * Sends the token with each later call, as "authorization: Bearer TOKEN". Keeps a copy. Not while
 * calls run. INVALID_ARGUMENT for an empty text and one with other bytes than visible ASCII, which
 * no header can carry, and if the client has this header already; the message does not contain the
 * text. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_set_token(struct hearth_client *client, struct hearth_str token,
                                           struct hearth_err *err);

/*
 * One unary call: method "querier.v1.QuerierService/Series". The answer is unpacked as
 * `answer_type` into arena. *ret_dropped (may be NULL) receives the response metadata
 * hearth-dropped, NULL if there is none.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_client_call(struct hearth_client *client, const char *method,
                                      const struct ProtobufCMessage *request,
                                      const struct ProtobufCMessageDescriptor *answer_type,
                                      struct hearth_arena *arena,
                                      struct ProtobufCMessage **ret_answer,
                                      const char **ret_dropped, struct hearth_err *err);

#endif
