/*
 * http_head.h -- the header fields of an HTTP/1.1 request that the server uses.
 *
 * Ownership: texts are borrowed from the library until the request is done.
 * Threads:   the daemon's thread.
 */
#ifndef HEARTH_FRONT_HTTP_HEAD_H
#define HEARTH_FRONT_HTTP_HEAD_H

#include "http/http_framing.h"
#include "rpc/caller.h"
#include "rpc/connect.h"

#include <microhttpd.h>

struct hearth_http_head {
    struct hearth_connect_head connect;
    struct hearth_front_caller caller;
    struct hearth_str accept, accept_encoding, if_none_match, user_agent, trace_count;
    struct hearth_str request_id, traceparent;
    struct hearth_str grpc_encoding, grpc_accept_encoding, grpc_timeout;
    bool expects_continue;
    int64_t content_length; /* -1: not sent; INT64_MAX: not a number */
};

/*
 * Reads the fields of a complete head.
 *
 * proxy            the headers of an authenticating proxy
 * method, version  pointers of the library's callback, into its buffer
 * framing          after hearth_http_framing_uri; out: whether the head may be accepted
 */
void hearth_http_head_read(struct MHD_Connection *connection,
                           const struct hearth_proxy_headers *proxy, const char *method,
                           const char *version, struct hearth_http_framing *framing,
                           struct hearth_http_head *ret_head);

#endif
