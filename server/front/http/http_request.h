/*
 * http_request.h -- one HTTP request: its head, its body, its answer.
 *
 *   NEW --head--> READING --complete--> WORKING --end--> ANSWERED --sent or cut--> (freed)
 *                    \--refused, or answered at once--> DISCARDING --complete--^
 *
 * While WORKING, the connection is suspended, unless the work runs on the daemon's thread.
 *
 * Threads: the daemon's thread, except for the end of a suspended request.
 */
#ifndef HEARTH_FRONT_HTTP_REQUEST_H
#define HEARTH_FRONT_HTTP_REQUEST_H

#include "hearth/base/buf.h"

#include "net/peers.h"
#include "rpc/rpc.h"

#include <microhttpd.h>

#include <stdatomic.h>

struct hearth_http {
    struct hearth_front *front;
    struct MHD_Daemon *daemon;
    _Atomic int64_t n_open;      /* requests whose head was read and whose answer is not sent yet */
    _Atomic int64_t n_suspended; /* requests whose connection is suspended until they end */
    _Atomic bool is_shut;        /* no request begins its work any more; see start_work */
};

/* The callbacks of the daemon; cls is the struct hearth_http. The first one returns the request,
 * which the others find in *slot. */
void *hearth_http_on_uri(void *cls, const char *uri, struct MHD_Connection *connection);
enum MHD_Result hearth_http_on_request(void *cls, struct MHD_Connection *connection,
                                       const char *url, const char *method, const char *version,
                                       const char *upload, size_t *upload_bytes, void **slot);
void hearth_http_on_completed(void *cls, struct MHD_Connection *connection, void **slot,
                              enum MHD_RequestTerminationCode how);

#endif
