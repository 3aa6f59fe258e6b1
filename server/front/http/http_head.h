/*
 * http_head.h -- the header fields of an HTTP/1.1 request that anything here looks at.
 *
 * Ownership: texts are the library's, valid until the request is done.
 * Threads: the daemon's.
 */
#ifndef HEARTH_FRONT_HTTP_HEAD_H
#define HEARTH_FRONT_HTTP_HEAD_H

#include "http/http_framing.h"
#include "rpc/agent_methods.h"
#include "rpc/connect.h"

#include <microhttpd.h>

struct hearth_http_head {
    struct hearth_connect_head connect;
    struct hearth_front_caller caller;
    struct hearth_str accept, accept_encoding, user_agent;
    struct hearth_str grpc_encoding, grpc_accept_encoding, grpc_timeout;
    bool expects_continue;
    int64_t content_length; /* -1: none */
};

/*
 * The fields of a head that has come whole.
 *
 * method, version  as the library's callback gives them
 * framing          in: of the target; out: whether the head is in order, see http_framing.h
 */
void hearth_http_head_read(struct MHD_Connection *connection, const char *method,
                           const char *version, struct hearth_http_framing *framing,
                           struct hearth_http_head *ret_head);

#endif
