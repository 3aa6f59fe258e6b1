/*
 * push_call.c -- pushes between their request and the engine.
 *
 * The memory of a push is freed as soon as the engine has read it: while the database is slow, the
 * encoded rows wait for a commit, not the pushed bytes. With a spool the bytes are kept until the
 * push is done, unless memory is scarce: if the database goes away, they are written to the disk.
 *
 * Giving up: abandon_push is called under the in-flight lock. on_push_done takes that lock before
 * it drops its reference, so the call is alive in abandon_push, which takes a reference for the job
 * that gives up.
 */
#include "rpc/push_call.h"

#include "hearth/base/mem.h"

static void free_input(struct hearth_push_call *call)
{
    hearth_arena_release(&call->arena);
    hearth_buf_release(&call->body);
    hearth_buf_release(&call->sent);
}

static void unref_push_call(struct hearth_push_call *call)
{
    if (atomic_fetch_sub(&call->refs, 1) == 1) {
        free_input(call);
        hearth_mem_free(call);
    }
}

/* Memory of pushes that this call holds in addition to the request. */
static size_t count_held_bytes(const struct hearth_push_call *call)
{
    return hearth_arena_held_bytes(&call->arena) + call->body.cap + call->sent.cap;
}

/* Adds a header like "hearth-dropped: merged_samples=12, zero_samples=3, repeated_profiles=1". */
static void add_dropped_header(struct hearth_rpc *rpc, const struct hearth_push_call *call)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);

    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        uint64_t n = call->request.discards[i] + call->dropped[i];
        if (n > 0) {
            hearth_buf_printf(&text, "%s%s=%llu", text.n > 0 ? ", " : "",
                              hearth_discard_name((enum hearth_discard)i), (unsigned long long)n);
        }
    }

    if (call->request.n_repeated > 0) {
        hearth_buf_printf(&text, "%srepeated_profiles=%u", text.n > 0 ? ", " : "",
                          call->request.n_repeated);
    }

    if (text.n > 0) {
        hearth_rpc_add_header(rpc, "hearth-dropped",
                              hearth_arena_strndup(&rpc->arena, text.p, text.n));
    }

    hearth_buf_release(&text);
}

/* "hearth-spooled: 3": so many profiles are on the disk of this server only. */
static void add_spooled_header(struct hearth_rpc *rpc, const struct hearth_push_call *call)
{
    if (call->request.n_spooled > 0) {
        hearth_rpc_add_header(rpc, "hearth-spooled",
                              hearth_arena_printf(&rpc->arena, "%u", call->request.n_spooled));
    }
}

/* Returns the status of the request. */
static enum hearth_status describe_outcome(struct hearth_push_call *call, enum hearth_status status)
{
    add_dropped_header(call->rpc, call);
    add_spooled_header(call->rpc, call);
    if (status != HEARTH_OK && call->explain != NULL) {
        call->explain(call, status);
    }

    return call->conclude == NULL ? status : call->conclude(call, status);
}

static void on_push_done(struct hearth_push_request *request)
{
    struct hearth_push_call *call = HEARTH_CONTAINER_OF(request, struct hearth_push_call, request);
    if (!atomic_exchange(&call->is_rpc_ended, true)) {
        struct hearth_rpc *rpc = call->rpc;
        hearth_rpc_set_abandon(rpc, NULL, NULL);
        rpc->err = request->err;
        hearth_rpc_end_later(rpc, describe_outcome(call, request->status));
    }

    unref_push_call(call);
}

/*
 * Withdraws the rows that still wait in the queue, which calls on_push_done for them. If all rows
 * of the push waited, on_push_done has then ended the request.
 */
static void give_up_push(struct hearth_job *job)
{
    struct hearth_push_call *call = HEARTH_CONTAINER_OF(job, struct hearth_push_call, give_up_job);
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_ingest_give_up(call->ingest, &call->request, call->why, &err);

    if (!atomic_exchange(&call->is_rpc_ended, true)) {
        call->rpc->err = err;
        hearth_rpc_end(call->rpc, status);
    }

    unref_push_call(call);
}

/*
 * The caller holds the in-flight lock. Withdrawing the push may end the request, which takes the
 * same lock: so a job does it. The engine's reference keeps the call alive until here.
 */
static void abandon_push(struct hearth_rpc *rpc, void *work, enum hearth_status why)
{
    struct hearth_push_call *call = work;
    hearth_mutex_assert_held(&rpc->front->in_flight_lock);

    atomic_fetch_add(&call->refs, 1);
    call->why = why;
    call->give_up_job.run = give_up_push;
    if (!hearth_workers_submit(rpc->front->finishers, &call->give_up_job)) {
        HEARTH_BUG("a push was given up after its front had stopped");
    }
}

struct hearth_push_call *hearth_push_call_new(struct hearth_rpc *rpc)
{
    struct hearth_push_call *call = hearth_mem_zalloc(sizeof *call);
    if (call == NULL) {
        return NULL;
    }

    call->rpc = rpc;
    call->request.done = on_push_done;
    atomic_init(&call->refs, 1);
    hearth_arena_init_like(&call->arena, &rpc->arena);
    hearth_buf_init(&call->body, 0);
    hearth_buf_init(&call->sent, 0);
    call->body.budget = call->arena.budget;

    return call;
}

void hearth_push_call_run(struct hearth_push_call *call)
{
    struct hearth_rpc *rpc = call->rpc;
    struct hearth_ingest *ingest = rpc->front->ingest;

    call->ingest = ingest;
    call->request.tenant = hearth_arena_str(&call->arena, hearth_rpc_tenant(rpc));
    call->request.view = hearth_view_copy(rpc->caller.tenants.v, &call->arena);
    if (call->request.tenant.p == NULL || call->request.view == NULL) {
        hearth_push_call_end(call, HEARTH_FAIL_ARENA(&rpc->err, &call->arena));
        return;
    }

    hearth_discards_count(call->dropped);
    call->request.client = rpc->client;
    call->request.may_spool = true;
    call->request.held_bytes = count_held_bytes(call) + rpc->body_held;
    rpc->counts_refusals = true;
    hearth_rpc_set_abandon(rpc, abandon_push, call);
    atomic_fetch_add(&call->refs, 1);
    hearth_ingest_push(ingest, &call->request); /* rpc may be freed after this */
    if (!call->request.needs_input) {
        free_input(call);
    }
    unref_push_call(call);
}

void hearth_push_call_end(struct hearth_push_call *call, enum hearth_status status)
{
    struct hearth_rpc *rpc = call->rpc;
    status = hearth_rpc_judge_memory(rpc, count_held_bytes(call), status);
    hearth_discards_count(call->dropped);
    status = describe_outcome(call, status);
    unref_push_call(call);
    hearth_rpc_end(rpc, status);
}
