/* http_server.c -- the daemon of libmicrohttpd and its settings. */
#include "http/http_server.h"

#include "hearth/base/mem.h"

#include "http/http_request.h"
#include "rpc/front_internal.h"

#include <assert.h>
#include <unistd.h>

/*
 * When libmicrohttpd 0.9.75 reaches its own connection limit in MHD_add_connection, it does not
 * release a mutex, and its thread blocks for ever. So its limit is higher than any number of
 * connections that the acceptor lets through.
 */
#define UNREACHED_CONNECTION_LIMIT 2000000u

enum hearth_status hearth_http_start(struct hearth_front *front, struct hearth_http **ret_http,
                                     struct hearth_err *err)
{
    struct hearth_http *http = hearth_mem_zalloc(sizeof *http);
    if (http == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the HTTP server");
    }

    http->front = front;
    const struct hearth_front_options *options = &front->options;
    int64_t idle_s = options->http_idle_timeout_ns / HEARTH_NS_PER_SEC;
    if (options->http_idle_timeout_ns > 0 && idle_s == 0) {
        idle_s = 1;
    }

    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
            MHD_USE_ITC,
        0, NULL, NULL, hearth_http_on_request, http, MHD_OPTION_NOTIFY_COMPLETED,
        hearth_http_on_completed, http, MHD_OPTION_URI_LOG_CALLBACK, hearth_http_on_uri, http,
        MHD_OPTION_CONNECTION_LIMIT, UNREACHED_CONNECTION_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)options->max_header_bytes, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)idle_s,
        /* In its strict mode the library answers errors with two heads. http_framing.c is stricter.
         * */
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_END);
    if (http->daemon == NULL) {
        hearth_mem_free(http);
        return HEARTH_FAIL(
            err, HEARTH_UNAVAILABLE,
            "cannot start the HTTP server; raise the limits of threads and open files");
    }

    *ret_http = http;

    return HEARTH_OK;
}

void hearth_http_take(void *context, int fd, const struct sockaddr *address,
                      socklen_t address_bytes)
{
    struct hearth_http *http = context;
    /* If it fails, it closes the descriptor. */
    (void)MHD_add_connection(http->daemon, fd, address, address_bytes);
}

size_t hearth_http_open_requests(const struct hearth_http *http)
{
    return (size_t)atomic_load(&http->n_open);
}

void hearth_http_shut(struct hearth_http *http)
{
    atomic_store(&http->is_shut, true);
}

size_t hearth_http_working(const struct hearth_http *http)
{
    return (size_t)atomic_load(&http->n_suspended);
}

void hearth_http_free(struct hearth_http *http)
{
    if (http == NULL) {
        return;
    }

    /* The daemon must not be stopped between the end of a request and the resumption of its
     * connection. */
    hearth_http_shut(http);
    while (hearth_http_working(http) > 0) {
        (void)usleep(1000);
    }

    MHD_stop_daemon(http->daemon);
    assert(atomic_load(&http->n_open) == 0);
    hearth_mem_free(http);
}
