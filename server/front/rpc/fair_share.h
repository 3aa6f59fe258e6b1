/*
 * fair_share.h -- the part of the server that the requests of one tenant may use: threads, places
 * in the queues of the pools, memory of queries.
 *
 * With multitenancy, a tenant keeps at most three quarters of a pool's threads, so that a request
 * of another tenant finds one. Without it, everything is the one tenant's. A query of several
 * tenants uses the share of the first that it names, within the strictest limits of all.
 *
 * Threads: as rpc.h.
 */
#ifndef HEARTH_FRONT_FAIR_SHARE_H
#define HEARTH_FRONT_FAIR_SHARE_H

#include "hearth/base/lanes.h"
#include "hearth/base/status.h"

struct hearth_rpc;

/* Jobs of one tenant that may run at a time in a pool of n_threads; 0: no limit. */
size_t hearth_fair_share(bool multitenancy, unsigned n_threads);

/*
 * Before a request is submitted to its pool: find its lane, and apply the limits of its tenant to a
 * query's memory. May be called again for each message of a stream.
 */
void hearth_fair_share_begin(struct hearth_rpc *rpc, struct hearth_lane_key *ret_key);
/* The pool did not take the request, or dropped it. Returns the status and sets rpc->err. */
enum hearth_status hearth_fair_share_refuse(struct hearth_rpc *rpc, enum hearth_queued why);
/* The request has ended: count what it used. */
void hearth_fair_share_count(struct hearth_rpc *rpc);
/* The request is released; its memory was given back. */
void hearth_fair_share_release(struct hearth_rpc *rpc);

#endif
