/*
 * front_internal.h -- the front and its parts, for all rooms of this layer.
 *
 * Locks: the order is that of ranks.h. No lock is held while the thread blocks.
 */
#ifndef HEARTH_FRONT_FRONT_INTERNAL_H
#define HEARTH_FRONT_FRONT_INTERNAL_H

#include "hearth/base/sync.h"
#include "hearth/front/front.h"

#include "ranks.h"
#include "rpc/method.h"
#include "rpc/rpc.h"

#include <stdatomic.h>

struct hearth_acceptor;
struct hearth_admin;
struct hearth_grpc;
struct hearth_http;
struct hearth_http_route_table;
struct hearth_oidc_slot;
struct hearth_own_traces;
struct hearth_recent_queries;

struct hearth_front {
    struct hearth_front_options options; /* `listen` and `version` are NULL: not kept */
    char version[64];
    struct hearth_ingest *ingest;
    struct hearth_query_engine *query;
    struct hearth_admin *admin;
    hearth_front_ready_fn *ready;
    void *ready_context;

    /* Set by front.c before the transports start. */
    const struct hearth_method_table *methods;
    const struct hearth_http_route_table *routes;

    struct hearth_oidc_slot *oidc;        /* NULL: no issuer is listed */
    struct hearth_own_traces *own_traces; /* NULL: trace-otlp-url is empty */
    struct hearth_acceptor *acceptor;
    struct hearth_grpc *grpc;
    struct hearth_http *http;
    struct hearth_workers *ingest_pool, *query_pool;
    struct hearth_recent_queries *recent_queries;
    size_t ingest_share, query_share; /* jobs of one tenant that run at a time; 0: no limit */
    struct hearth_workers *finishers; /* one thread, for hearth_rpc_end_later */

    struct hearth_mutex in_flight_lock; /* guards in_flight, and `abandon` and `work` of requests */
    struct hearth_rpc_list in_flight;
    struct hearth_mutex watch_lock; /* guards watchers and the state of their watches */
    struct hearth_rpc *watchers;

    struct hearth_mutex drain_lock; /* guards drain_reason */
    char drain_reason[256];
    _Atomic bool is_draining; /* /ready answers 503 from now on */
    _Atomic bool is_stopping; /* new requests are refused; set after is_draining */
    _Atomic bool has_garbage; /* a large query has ended: its memory can go back to the kernel */

    pthread_t ticker;
    bool has_ticker;
    struct hearth_mutex tick_lock; /* guards ticker_ends */
    pthread_cond_t tick_wake;
    bool ticker_ends;
    _Atomic int64_t ticked_ns; /* when the ticker last worked; any thread may read it */
};

/* True if the server can work and does not drain. Otherwise false, with the reason. Safe. */
bool hearth_front_is_ready(struct hearth_front *front, char reason[256]);

#endif
