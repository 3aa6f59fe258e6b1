/*
 * svc_health.h -- watches of grpc.health.v1.Health: what the ticker, the stop and the transport
 * tell them.
 *
 * Threads: safe.
 */
#ifndef HEARTH_FRONT_SVC_HEALTH_H
#define HEARTH_FRONT_SVC_HEALTH_H

struct hearth_front;
struct hearth_rpc;

/* Sends the state to watchers that were sent another one. */
void hearth_health_tick(struct hearth_front *front);
/* Ends all watches with UNAVAILABLE: the server stops. */
void hearth_health_end_watches(struct hearth_front *front);
/* The transport has sent the message of a watch. */
void hearth_health_sent(struct hearth_rpc *rpc);
/* The client of a watch has left. */
void hearth_health_gone(struct hearth_rpc *rpc);

#endif
