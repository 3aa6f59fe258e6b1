/*
 * http_server.h -- the HTTP/1.1 side: libmicrohttpd on one thread, connections handed in by
 * descriptor.
 *
 * Threads: start and stop from one thread; take from the acceptor's.
 * Source:  libmicrohttpd 0.9.75; RFC 9110, 9112.
 */
#ifndef HEARTH_FRONT_HTTP_SERVER_H
#define HEARTH_FRONT_HTTP_SERVER_H

#include "hearth/base/status.h"

#include <sys/socket.h>

struct hearth_front;
struct hearth_http;

HEARTH_MUST_CHECK
enum hearth_status hearth_http_start(struct hearth_front *front, struct hearth_http **ret_http,
                                     struct hearth_err *err);
/* A hearth_acceptor_take_fn; the context is the struct hearth_http. */
void hearth_http_take(void *context, int fd, const struct sockaddr *address,
                      socklen_t address_bytes);
/* The number of requests whose answer is not sent yet. */
size_t hearth_http_open_requests(const struct hearth_http *http);
/* From now on requests are refused instead of worked on: the pools may end when no request is in
 * work. Any thread. */
void hearth_http_shut(struct hearth_http *http);
/* The number of requests that are in work on a pool, or about to be. */
size_t hearth_http_working(const struct hearth_http *http);
/* Stops the daemon and frees. No request may be in work. NULL-safe. */
void hearth_http_free(struct hearth_http *http);

#endif
