/* svc_push.c -- push.v1.PusherService/Push: from the message to a push of the engine. */
#include "hearth/pb/push/v1/push.pb-c.h"

#include "handlers.h"
#include "ingest/kept_originals.h"
#include "rpc/push_call.h"

#include <assert.h>

/* The sent bytes, which the message holds until the engine has read the push, as a file. */
static bool keep_raw_profile(struct hearth_arena *arena, struct hearth_push_sample *sample)
{
    sample->file = hearth_arena_zalloc(arena, sizeof *sample->file);
    if (sample->file == NULL) {
        return false;
    }

    sample->file->bytes = sample->profile;
    sample->file->name = hearth_original_name_of_bytes(arena, "profile.pb", sample->profile);

    return sample->file->name.p != NULL;
}

static bool fill_push_series(struct hearth_arena *arena, const Push__V1__RawProfileSeries *in,
                             bool keeps, struct hearth_push_series *out)
{
    assert(in != NULL && out != NULL);

    out->n_labels = in->n_labels;
    out->labels = hearth_arena_array(arena, in->n_labels, sizeof *out->labels);
    out->n_samples = in->n_samples;
    out->samples = hearth_arena_array(arena, in->n_samples, sizeof *out->samples);
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
        if (keeps && !keep_raw_profile(arena, &out->samples[i])) {
            return false;
        }
    }

    return true;
}

static bool fill_push_request(struct hearth_push_call *call, const Push__V1__PushRequest *in)
{
    struct hearth_push_request *out = &call->request;
    bool keeps = hearth_front_keeps(call->rpc->front, HEARTH_KEPT_PUSH);

    out->n_series = in->n_series;
    out->series = hearth_arena_array(&call->arena, in->n_series, sizeof *out->series);
    if (out->series == NULL) {
        return false;
    }

    for (size_t i = 0; i < in->n_series; i++) {
        if (!fill_push_series(&call->arena, in->series[i], keeps, &out->series[i])) {
            return false;
        }
    }

    return true;
}

void hearth_svc_push(struct hearth_rpc *rpc)
{
    struct hearth_push_call *call = hearth_push_call_new(rpc);
    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a push"));
        return;
    }

    /* The message lives in the request's arena: the push takes that arena. */
    const Push__V1__PushRequest *message = (const Push__V1__PushRequest *)rpc->request;
    assert(message != NULL);
    call->arena = rpc->arena;
    hearth_arena_init(&rpc->arena, 1u << 20);
    if (!fill_push_request(call, message)) {
        hearth_push_call_end(call, HEARTH_FAIL_ARENA(&rpc->err, &call->arena));
        return;
    }

    hearth_push_call_run(call);
}
