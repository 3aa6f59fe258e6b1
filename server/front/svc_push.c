/*
 * svc_push.c -- push.v1.PusherService/Push: the message to the engine's form, and back.
 *
 * The engine may finish a push long after the server has given up waiting for it (a database that
 * does not answer while the server stops). So a push owns its memory, and `settled` decides who
 * ends the request: the engine, or the stop. The other one only cleans up.
 *
 * The message goes as soon as the engine has read it: while the database is slow, what waits for a
 * commit is the encoded rows, not the pushed bytes.
 */
#include "hearth/base/mem.h"
#include "hearth/pb/push/v1/push.pb-c.h"

#include "front_internal.h"

struct push {
    struct hearth_push_request request;
    struct hearth_rpc *rpc;    /* not touched once settled by somebody else */
    struct hearth_arena arena; /* the message; gone once the engine has read it */
    _Atomic bool settled;
    _Atomic unsigned refs; /* the thread that reads the message, and the engine until `done` */
};

static void unref_push(struct push *push)
{
    if (atomic_fetch_sub(&push->refs, 1) == 1) {
        hearth_arena_release(&push->arena);
        hearth_mem_free(push);
    }
}

/* "merged_samples=12, zero_samples=3" */
static void add_dropped(struct hearth_rpc *rpc, const uint64_t discards[HEARTH_N_DISCARDS])
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        if (discards[i] > 0) {
            hearth_buf_printf(&text, "%s%s=%llu", text.n > 0 ? ", " : "",
                              hearth_discard_name((enum hearth_discard)i),
                              (unsigned long long)discards[i]);
        }
    }
    if (text.n > 0) {
        hearth_rpc_add_header(rpc, "hearth-dropped",
                              hearth_arena_strndup(&rpc->arena, text.p, text.n));
    }
    hearth_buf_release(&text);
}

static void on_done(struct hearth_push_request *request)
{
    struct push *push = HEARTH_CONTAINER_OF(request, struct push, request);
    if (!atomic_exchange(&push->settled, true)) {
        struct hearth_rpc *rpc = push->rpc;
        hearth_rpc_set_abandon(rpc, NULL, NULL);
        add_dropped(rpc, request->discards);
        rpc->err = request->err;
        hearth_rpc_end_later(rpc, request->status);
    }
    unref_push(push);
}

static void abandon(struct hearth_rpc *rpc, void *work)
{
    struct push *push = work;
    if (!atomic_exchange(&push->settled, true)) {
        hearth_rpc_end_later(rpc, HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE,
                                              "the server is stopping and does not know whether "
                                              "this push was stored"));
    }
}

static bool
fill_series(struct push *push, const Push__V1__RawProfileSeries *in, struct hearth_push_series *out)
{
    out->n_labels = in->n_labels;
    out->labels = hearth_arena_array(&push->arena, in->n_labels, sizeof *out->labels);
    out->n_samples = in->n_samples;
    out->samples = hearth_arena_array(&push->arena, in->n_samples, sizeof *out->samples);
    if (out->labels == NULL || out->samples == NULL) {
        return false;
    }
    for (size_t i = 0; i < in->n_labels; i++) {
        out->labels[i] = (struct hearth_label){hearth_str_c(in->labels[i]->name),
                                               hearth_str_c(in->labels[i]->value)};
    }
    for (size_t i = 0; i < in->n_samples; i++) {
        const Push__V1__RawSample *sample = in->samples[i];
        out->samples[i] = (struct hearth_push_sample){
            .profile = {(const char *)sample->raw_profile.data, sample->raw_profile.len},
            .id = hearth_str_c(sample->id),
        };
    }
    return true;
}

static bool fill_request(struct push *push, const Push__V1__PushRequest *in)
{
    struct hearth_push_request *out = &push->request;
    const struct hearth_tenant *tenant = &push->rpc->tenant;
    out->tenant = hearth_arena_str(&push->arena, hearth_str_n(tenant->text, tenant->n));
    out->n_series = in->n_series;
    out->series = hearth_arena_array(&push->arena, in->n_series, sizeof *out->series);
    if (out->tenant.p == NULL || out->series == NULL) {
        return false;
    }
    for (size_t i = 0; i < in->n_series; i++) {
        if (!fill_series(push, in->series[i], &out->series[i])) {
            return false;
        }
    }
    return true;
}

void hearth_svc_push(struct hearth_rpc *rpc)
{
    struct push *push = hearth_mem_zalloc(sizeof *push);
    if (push == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a push"));
        return;
    }
    push->rpc = rpc;
    push->request.done = on_done;
    atomic_init(&push->refs, 1);
    /* The message lives in the request's arena: take it over. */
    const Push__V1__PushRequest *message = (const Push__V1__PushRequest *)rpc->request;
    push->arena = rpc->arena;
    hearth_arena_init(&rpc->arena, 1u << 20);
    if (!fill_request(push, message)) {
        enum hearth_status status = HEARTH_FAIL_ARENA(&rpc->err, &push->arena);
        unref_push(push);
        hearth_rpc_end(rpc, status);
        return;
    }
    hearth_rpc_set_abandon(rpc, abandon, push);
    atomic_fetch_add(&push->refs, 1);
    hearth_ingest_push(rpc->front->ingest, &push->request); /* rpc may be gone after this */
    hearth_arena_release(&push->arena);
    unref_push(push);
}
