/* trace_call.c -- counts the commits that a stream of spans or snapshots waits for. */
#include "rpc/trace_call.h"

#include "hearth/base/mem.h"

#include "rpc/front_internal.h"

#include <assert.h>

struct hearth_trace_call {
    struct hearth_mutex lock;  /* guards all members below */
    size_t n_refs;             /* the session, and each commit that is waited for */
    size_t n_waits;            /* commits that are waited for */
    struct hearth_rpc *ending; /* set when the client said all: ends after the last commit */
    bool is_rpc_ended;         /* somebody has ended the request, or is about to */
    enum hearth_status status; /* the first failure, or OK */
    struct hearth_err err;     /* its message */
};

static void unref_trace_call(struct hearth_trace_call *call)
{
    hearth_mutex_lock(&call->lock);
    bool is_last = --call->n_refs == 0;
    hearth_mutex_unlock(&call->lock);
    if (is_last) {
        hearth_mutex_destroy(&call->lock);
        hearth_mem_free(call);
    }
}

static void free_trace_session(void *session)
{
    unref_trace_call(session);
}

struct hearth_trace_call *hearth_trace_call_of(struct hearth_rpc *rpc)
{
    if (rpc->session == NULL) {
        struct hearth_trace_call *call = hearth_mem_zalloc(sizeof *call);
        if (call == NULL) {
            return NULL;
        }
        hearth_mutex_init(&call->lock, HEARTH_RANK_TRACE_CALL, "trace_call.lock");
        call->n_refs = 1;
        rpc->session = call;
        rpc->free_session = free_trace_session;
    }

    return rpc->session;
}

enum hearth_status hearth_trace_call_check(struct hearth_trace_call *call, struct hearth_err *err)
{
    hearth_mutex_lock(&call->lock);
    enum hearth_status status = call->status;
    if (status != HEARTH_OK) {
        *err = call->err;
    }
    hearth_mutex_unlock(&call->lock);
    return status;
}

void hearth_trace_call_expect(struct hearth_trace_call *call)
{
    hearth_mutex_lock(&call->lock);
    call->n_refs++;
    call->n_waits++;
    hearth_mutex_unlock(&call->lock);
}

/*
 * The request, if the caller must end it now: the last commit is done. Otherwise NULL. The caller
 * holds the lock.
 */
static struct hearth_rpc *take_ending_rpc(struct hearth_trace_call *call)
{
    hearth_mutex_assert_held(&call->lock);

    struct hearth_rpc *rpc = call->n_waits == 0 && !call->is_rpc_ended ? call->ending : NULL;
    call->is_rpc_ended = call->is_rpc_ended || rpc != NULL;
    return rpc;
}

void hearth_trace_call_forget(struct hearth_trace_call *call)
{
    hearth_mutex_lock(&call->lock);
    assert(call->n_waits > 0);
    call->n_waits--;
    hearth_mutex_unlock(&call->lock);
    unref_trace_call(call);
}

void hearth_trace_call_done(void *context, enum hearth_status status, const struct hearth_err *err)
{
    struct hearth_trace_call *call = context;

    hearth_mutex_lock(&call->lock);
    assert(call->n_waits > 0);
    call->n_waits--;
    if (status != HEARTH_OK && call->status == HEARTH_OK) {
        call->status = status;
        call->err = *err;
    }

    enum hearth_status result = call->status;
    struct hearth_rpc *rpc = take_ending_rpc(call);
    hearth_mutex_unlock(&call->lock);
    if (rpc != NULL) {
        hearth_rpc_set_abandon(rpc, NULL, NULL);
        rpc->err = call->err;
        hearth_rpc_end_later(rpc, result);
    }

    unref_trace_call(call);
}

/* The caller holds the in-flight lock. */
static void abandon_stream(struct hearth_rpc *rpc, void *work, enum hearth_status why)
{
    struct hearth_trace_call *call = work;
    hearth_mutex_assert_held(&rpc->front->in_flight_lock);

    hearth_mutex_lock(&call->lock);
    bool is_ours = !call->is_rpc_ended;
    call->is_rpc_ended = true;
    hearth_mutex_unlock(&call->lock);
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
    /* One more wait: the call outlives the request, and the engine cannot end it before `ending` is
     * set. */
    hearth_trace_call_expect(call);
    hearth_rpc_set_abandon(rpc, abandon_stream, call);
    hearth_mutex_lock(&call->lock);
    assert(call->ending == NULL);
    call->ending = rpc;
    hearth_mutex_unlock(&call->lock);
    hearth_trace_call_done(call, HEARTH_OK, NULL);
}
