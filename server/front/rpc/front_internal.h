/*
 * front_internal.h -- what the files of this layer share: the front and its parts.
 *
 * Locks: `in_flight_lock` guards `in_flight`; `watch_lock` guards `watchers`. Neither is held while
 * the other is taken, nor while anything blocks.
 */
#ifndef HEARTH_FRONT_FRONT_INTERNAL_H
#define HEARTH_FRONT_FRONT_INTERNAL_H

#include "hearth/front/front.h"

#include "rpc/method.h"
#include "rpc/rpc.h"

#include <pthread.h>
#include <stdatomic.h>

struct hearth_acceptor;
struct hearth_admin;
struct hearth_grpc;
struct hearth_http;
struct hearth_http_route_table;

struct hearth_front {
    struct hearth_front_options options; /* `listen` is not kept */
    char version[64];
    struct hearth_ingest *ingest;
    struct hearth_query_engine *query;
    struct hearth_admin *admin;
    hearth_front_ready_fn *ready;
    void *ready_context;

    /* Set by front.c before the transports start. */
    const struct hearth_method_table *methods;
    const struct hearth_http_route_table *routes;

    struct hearth_acceptor *acceptor;
    struct hearth_grpc *grpc;
    struct hearth_http *http;
    struct hearth_workers *ingest_pool, *query_pool;
    struct hearth_workers
        *finishers; /* ends requests for threads that must not (hearth_rpc_end_later) */

    pthread_mutex_t in_flight_lock;
    struct hearth_rpc_list in_flight;
    pthread_mutex_t watch_lock;
    struct hearth_rpc *watchers;

    pthread_mutex_t drain_lock; /* guards drain_reason */
    char drain_reason[256];
    _Atomic bool is_draining, is_stopping;
    _Atomic bool has_garbage; /* a large query has ended */

    pthread_t ticker;
    bool has_ticker;
    pthread_mutex_t tick_lock; /* guards ticker_ends */
    pthread_cond_t tick_wake;
    bool ticker_ends;
};

/* True if the server can work and does not drain. Otherwise false, with the reason. Safe. */
bool hearth_front_is_ready(struct hearth_front *front, char reason[256]);

#endif
