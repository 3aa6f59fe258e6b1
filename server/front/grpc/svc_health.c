/*
 * svc_health.c -- grpc.health.v1.Health: Check, and Watch as a stream that reports changes.
 *
 * A watch is a request in front->watchers. At most one of its messages is on its way; the next tick
 * sees a change that happened meanwhile. The watch ends when its client leaves or the server stops,
 * but only after the message on its way was sent.
 */
#include "grpc/svc_health.h"

#include "hearth/pb/grpc/health/v1/health.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/unary.h"

enum {
    UNKNOWN_SERVICE = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN,
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
};

#define STATUS_TAG 8u /* field 1, varint */

/* Leaves the reason empty if the server has nothing to report. */
static int get_serving_state(struct hearth_front *front, char reason[256])
{
    reason[0] = '\0';
    return hearth_front_is_ready(front, reason) ? SERVING : NOT_SERVING;
}

HEARTH_UNARY(hearth_svc_health_check, Grpc__Health__V1__HealthCheckRequest,
             Grpc__Health__V1__HealthCheckResponse)
{
    struct hearth_str service = hearth_str_c(in->service);
    if (!hearth_service_is_known(rpc->front->methods, service)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NOT_FOUND, "unknown service \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(service));
    }

    /* Clients that print notes say why, as /ready does. */
    char reason[256];
    out->status = get_serving_state(rpc->front, reason);
    hearth_buf_cstr(&rpc->notes, reason);

    return HEARTH_OK;
}

/* ---- watches ---- */

/*
 * Sends the state, if it was not the last one sent and no message is on its way. The caller holds
 * watch_lock.
 */
static void send_state(struct hearth_rpc *rpc, int state)
{
    const unsigned char message[2] = {STATUS_TAG, (unsigned char)state};
    hearth_mutex_assert_held(&rpc->front->watch_lock);

    if (state != rpc->stream_state && !rpc->is_sending && !rpc->is_ending) {
        rpc->stream_state = state;
        rpc->is_sending = true;
        if (!rpc->stream_send(rpc, message, sizeof message)) {
            HEARTH_BUG("two messages of a watch at once");
        }
    }
}

/* The caller holds watch_lock. */
static void unlink_watch(struct hearth_rpc *rpc)
{
    struct hearth_front *front = rpc->front;
    hearth_mutex_assert_held(&front->watch_lock);

    *(rpc->prev != NULL ? &rpc->prev->next : &front->watchers) = rpc->next;
    if (rpc->next != NULL) {
        rpc->next->prev = rpc->prev;
    }
    rpc->prev = rpc->next = NULL;
}

/*
 * Takes the watch off the list. Returns true if the caller, which holds watch_lock, must end it
 * after releasing the lock; false if hearth_health_sent will, or if it is ended already.
 */
static bool take_off_list(struct hearth_rpc *rpc, enum hearth_status status)
{
    hearth_mutex_assert_held(&rpc->front->watch_lock);

    if (rpc->is_ending || !rpc->is_watching) {
        rpc->is_ending = true; /* if it is not on the list yet, it will not be put there */
        return false;
    }
    rpc->is_ending = true;
    rpc->later = status;
    unlink_watch(rpc);
    return !rpc->is_sending;
}

/* The caller does not hold watch_lock. */
static void end_watch(struct hearth_rpc *rpc)
{
    enum hearth_status status = rpc->later;
    hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, status,
                                    status == HEARTH_UNAVAILABLE ? "the server is stopping"
                                                                 : "the client has left"));
}

void hearth_svc_health_watch(struct hearth_rpc *rpc)
{
    struct hearth_front *front = rpc->front;
    const Grpc__Health__V1__HealthCheckRequest *in =
        (const Grpc__Health__V1__HealthCheckRequest *)rpc->request;

    rpc->is_service_known = hearth_service_is_known(front->methods, hearth_str_c(in->service));
    char reason[256];
    int state = rpc->is_service_known ? get_serving_state(front, reason) : UNKNOWN_SERVICE;
    hearth_mutex_lock(&front->watch_lock);
    bool is_refused = rpc->is_ending || atomic_load(&front->is_stopping);
    if (!is_refused) {
        rpc->is_watching = true;
        rpc->stream_state = -1;
        rpc->prev = NULL;
        rpc->next = front->watchers;
        if (rpc->next != NULL) {
            rpc->next->prev = rpc;
        }
        front->watchers = rpc;
        send_state(rpc, state);
    }

    hearth_mutex_unlock(&front->watch_lock);
    if (is_refused) {
        rpc->later = HEARTH_UNAVAILABLE;
        end_watch(rpc);
    }
}

void hearth_health_tick(struct hearth_front *front)
{
    char reason[256];
    int state = get_serving_state(front, reason);

    hearth_mutex_lock(&front->watch_lock);
    for (struct hearth_rpc *rpc = front->watchers; rpc != NULL; rpc = rpc->next) {
        if (rpc->is_service_known) {
            send_state(rpc, state);
        }
    }
    hearth_mutex_unlock(&front->watch_lock);
}

void hearth_health_sent(struct hearth_rpc *rpc)
{
    struct hearth_front *front = rpc->front;

    hearth_mutex_lock(&front->watch_lock);
    assert(rpc->is_sending);
    rpc->is_sending = false;
    bool ends = rpc->is_ending;
    hearth_mutex_unlock(&front->watch_lock);
    if (ends) {
        end_watch(rpc);
    }
}

void hearth_health_gone(struct hearth_rpc *rpc)
{
    struct hearth_front *front = rpc->front;
    hearth_mutex_lock(&front->watch_lock);
    bool ends = take_off_list(rpc, HEARTH_CANCELLED);
    hearth_mutex_unlock(&front->watch_lock);
    if (ends) {
        end_watch(rpc);
    }
}

void hearth_health_end_watches(struct hearth_front *front)
{
    for (;;) {
        hearth_mutex_lock(&front->watch_lock);
        struct hearth_rpc *rpc = front->watchers;
        bool ends = rpc != NULL && take_off_list(rpc, HEARTH_UNAVAILABLE);
        hearth_mutex_unlock(&front->watch_lock);
        if (rpc == NULL) {
            return;
        }
        if (ends) {
            end_watch(rpc);
        }
    }
}
