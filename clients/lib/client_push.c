/* client_push.c -- profiles of the caller as one push. */
#include "hearth/pb/push/v1/push.pb-c.h"

#include "client_call.h"

#include <assert.h>
#include <stdio.h>
#include <sys/random.h>

/* A copy as the generated structs want texts, which they never write. */
static char *copy_text(struct hearth_arena *arena, const char *text)
{
    return hearth_arena_strndup(arena, text, strlen(text));
}

static char *make_id(struct hearth_arena *arena)
{
    uint64_t random[2];

    return getrandom(random, sizeof random, 0) != (ssize_t)sizeof random
               ? NULL
               : hearth_arena_printf(arena, "%016llx%016llx", (unsigned long long)random[0],
                                     (unsigned long long)random[1]);
}

static Push__V1__RawProfileSeries *make_series(const struct hearth_client_profile *profile,
                                               struct hearth_arena *arena)
{
    Push__V1__RawProfileSeries *series = hearth_arena_alloc(arena, sizeof *series);
    Push__V1__RawSample *sample = hearth_arena_alloc(arena, sizeof *sample);
    Push__V1__RawSample **samples = hearth_arena_alloc(arena, sizeof sample);
    Types__V1__LabelPair *pairs = hearth_arena_array(arena, profile->n_labels, sizeof *pairs);
    Types__V1__LabelPair **labels = hearth_arena_array(arena, profile->n_labels, sizeof *labels);

    if (arena->refused) {
        return NULL;
    }
    for (size_t i = 0; i < profile->n_labels; i++) {
        types__v1__label_pair__init(&pairs[i]);
        pairs[i].name = copy_text(arena, profile->labels[i].name);
        pairs[i].value = copy_text(arena, profile->labels[i].value);
        labels[i] = &pairs[i];
    }
    push__v1__raw_sample__init(sample);
    sample->id = profile->id == NULL ? make_id(arena) : copy_text(arena, profile->id);
    sample->raw_profile.data = hearth_arena_alloc(arena, profile->n_bytes);
    if (arena->refused || sample->id == NULL) {
        return NULL;
    }
    memcpy(sample->raw_profile.data, profile->pprof, profile->n_bytes);
    sample->raw_profile.len = profile->n_bytes;
    samples[0] = sample;
    push__v1__raw_profile_series__init(series);
    series->labels = labels;
    series->n_labels = profile->n_labels;
    series->samples = samples;
    series->n_samples = 1;

    return series;
}

static enum hearth_status push_all(struct hearth_client *client,
                                   const struct hearth_client_profile *profiles, size_t n,
                                   struct hearth_arena *arena, struct hearth_call *call,
                                   struct hearth_err *err)
{
    Push__V1__PushRequest request;
    struct ProtobufCMessage *answer;

    push__v1__push_request__init(&request);
    request.series = hearth_arena_array(arena, n, sizeof request.series[0]);
    if (request.series == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (request.n_series = 0; request.n_series < n; request.n_series++) {
        Push__V1__RawProfileSeries *series = make_series(&profiles[request.n_series], arena);
        if (series == NULL) {
            return arena->refused ? HEARTH_FAIL_ARENA(err, arena)
                                  : HEARTH_FAIL(err, HEARTH_INTERNAL, "no random number for an id");
        }
        request.series[request.n_series] = series;
    }

    return hearth_call_message(client, call, &request.base, &push__v1__push_response__descriptor,
                               arena, &answer, err);
}

enum hearth_client_status hearth_client_push(struct hearth_client *client,
                                             const struct hearth_client_profile *profiles, size_t n,
                                             struct hearth_client_pushed *ret,
                                             struct hearth_client_error *error)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_call call = {.method = "push.v1.PusherService/Push"};

    assert(client != NULL && profiles != NULL && n > 0);
    hearth_arena_init(&arena, 0);
    enum hearth_status status = push_all(client, profiles, n, &arena, &call, &err);
    if (status == HEARTH_OK && ret != NULL) {
        (void)snprintf(ret->dropped, sizeof ret->dropped, "%s",
                       call.dropped == NULL ? "" : call.dropped);
    }
    hearth_arena_release(&arena);

    return hearth_call_error_out(&err, status, call.is_open, error);
}
