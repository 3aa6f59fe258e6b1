/* ranks.h -- the order of the front's locks, for all rooms of this layer. */
#ifndef HEARTH_FRONT_RANKS_H
#define HEARTH_FRONT_RANKS_H

#include "hearth/base/sync.h"

/*
 * Ranks of the front's locks (hearth/base/sync.h), outermost first. The four of HEARTH_RANK_FRONT
 * are never held together.
 */
enum hearth_front_rank {
    HEARTH_RANK_FRONT = HEARTH_RANKS_FRONT, /* in_flight_lock, watch_lock, drain_lock, tick_lock */
    HEARTH_RANK_TRACE_CALL,                 /* trace_call.lock; also under in_flight_lock */
    HEARTH_RANK_GRPC,    /* grpc.lock: open calls, and what they have read ahead */
    HEARTH_RANK_SCRAPER, /* scraper.lock: scrapes that have ended, addresses of names, the stop */
    HEARTH_RANK_OIDC, /* oidc.lock: keys of issuers, verified JWTs; oidc_slot.lock; one at a time */
    HEARTH_RANK_OWN_TRACES, /* own_traces.lock: spans that wait to be sent */
    HEARTH_RANK_LINGERS,    /* lingers.lock: connections that are being closed */
    HEARTH_RANK_PEERS,      /* peers.tls_lock: certificates of open connections */
    HEARTH_RANK_TLS, /* tls_context.lock, tls_loop.lock, tls.lock; none is held with another */
};

#endif
