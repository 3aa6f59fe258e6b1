/* trace_call.c -- when a stream of spans or snapshots may be answered (trace_call.h). */
#include "rpc/trace_call.h"

#include "hearth/base/mem.h"

struct hearth_trace_call {
    pthread_mutex_t lock; /* guards the rest */
    size_t n_refs;        /* the session, and what waits to be committed */
    size_t n_waits;
    struct hearth_rpc *ending; /* it waits for the last of them; NULL: not yet, or ended */
    bool is_settled;           /* somebody has ended the request, or is about to */
    enum hearth_status status; /* the first failure */
    struct hearth_err err;
};

static void unref(struct hearth_trace_call *call)
{
    (void)pthread_mutex_lock(&call->lock);
    bool is_last = --call->n_refs == 0;
    (void)pthread_mutex_unlock(&call->lock);
    if (is_last) {
        (void)pthread_mutex_destroy(&call->lock);
        hearth_mem_free(call);
    }
}

static void free_session(void *session)
{
    unref(session);
}

struct hearth_trace_call *hearth_trace_call_of(struct hearth_rpc *rpc)
{
    if (rpc->session == NULL) {
        struct hearth_trace_call *call = hearth_mem_zalloc(sizeof *call);
        if (call == NULL) {
            return NULL;
        }
        (void)pthread_mutex_init(&call->lock, NULL);
        call->n_refs = 1;
        rpc->session = call;
        rpc->free_session = free_session;
    }
    return rpc->session;
}

enum hearth_status hearth_trace_call_check(struct hearth_trace_call *call, struct hearth_err *err)
{
    (void)pthread_mutex_lock(&call->lock);
    enum hearth_status status = call->status;
    if (status != HEARTH_OK) {
        *err = call->err;
    }
    (void)pthread_mutex_unlock(&call->lock);
    return status;
}

void hearth_trace_call_expect(struct hearth_trace_call *call)
{
    (void)pthread_mutex_lock(&call->lock);
    call->n_refs++;
    call->n_waits++;
    (void)pthread_mutex_unlock(&call->lock);
}

/* The request that is to be ended now, if this was the last. Under the lock. */
static struct hearth_rpc *take_ending(struct hearth_trace_call *call)
{
    struct hearth_rpc *rpc = call->n_waits == 0 && !call->is_settled ? call->ending : NULL;
    call->is_settled = call->is_settled || rpc != NULL;
    return rpc;
}

void hearth_trace_call_forget(struct hearth_trace_call *call)
{
    (void)pthread_mutex_lock(&call->lock);
    call->n_waits--;
    (void)pthread_mutex_unlock(&call->lock);
    unref(call);
}

void hearth_trace_call_done(void *context, enum hearth_status status, const struct hearth_err *err)
{
    struct hearth_trace_call *call = context;
    (void)pthread_mutex_lock(&call->lock);
    call->n_waits--;
    if (status != HEARTH_OK && call->status == HEARTH_OK) {
        call->status = status;
        call->err = *err;
    }
    enum hearth_status result = call->status;
    struct hearth_rpc *rpc = take_ending(call);
    (void)pthread_mutex_unlock(&call->lock);
    if (rpc != NULL) {
        hearth_rpc_set_abandon(rpc, NULL, NULL);
        rpc->err = call->err;
        hearth_rpc_end_later(rpc, result);
    }
    unref(call);
}

static void abandon(struct hearth_rpc *rpc, void *work, enum hearth_status why)
{
    struct hearth_trace_call *call = work;
    (void)pthread_mutex_lock(&call->lock);
    bool is_ours = !call->is_settled;
    call->is_settled = true;
    (void)pthread_mutex_unlock(&call->lock);
    if (is_ours) {
        hearth_rpc_end_later(
            rpc,
            HEARTH_FAIL(&rpc->err, why == HEARTH_CANCELLED ? HEARTH_CANCELLED : HEARTH_UNAVAILABLE,
                        "%s before the database confirmed all of this stream; the rest may "
                        "still be stored",
                        hearth_give_up_cause(why)));
    }
}

void hearth_trace_call_end(struct hearth_rpc *rpc, struct hearth_trace_call *call)
{
    hearth_trace_call_expect(
        call); /* so that it outlives the request; and nothing ends it before */
    hearth_rpc_set_abandon(rpc, abandon, call);
    (void)pthread_mutex_lock(&call->lock);
    call->ending = rpc;
    (void)pthread_mutex_unlock(&call->lock);
    hearth_trace_call_done(call, HEARTH_OK, NULL);
}
