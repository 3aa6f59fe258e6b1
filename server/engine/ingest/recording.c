/* recording.c -- a recording of Java's Flight Recorder to the series of a push. */
#include "hearth/engine/recordings.h"
#include "hearth/format/jfr.h"

#include "ingest/ingest_internal.h"

#include <assert.h>

#define OWN_LABELS 2u /* __name__ and jfr_event */

static enum hearth_status decode_recording(const struct hearth_recording_upload *upload,
                                           const struct hearth_limits *limits,
                                           struct hearth_arena *arena,
                                           struct hearth_jfr_recording *ret, struct hearth_err *err)
{
    const struct hearth_jfr_options options = {
        .limits = hearth_ingest_pprof_limits(limits),
        .sample_rate = upload->sample_rate,
        .labels = upload->context_labels,
    };

    if (limits->max_profile_bytes > 0 && upload->jfr.n > (size_t)limits->max_profile_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the recording has %zu bytes uncompressed; the limit "
                           "(max-profile-bytes) is %lld",
                           upload->jfr.n, (long long)limits->max_profile_bytes);
    }

    enum hearth_status status = hearth_jfr_decode(upload->jfr, &options, arena, ret, err);

    /* All other failures are faults of the bytes. */
    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}

/* The labels of the upload and those of one profile of the recording. */
static enum hearth_status make_labels(const struct hearth_recording_upload *upload,
                                      const struct hearth_jfr_profile *profile,
                                      struct hearth_str event, struct hearth_arena *arena,
                                      struct hearth_push_series *series, struct hearth_err *err)
{
    size_t n = upload->n_labels;

    series->labels = hearth_arena_array(arena, n + OWN_LABELS, sizeof *series->labels);
    if (series->labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    if (n > 0) {
        memcpy(series->labels, upload->labels, n * sizeof *series->labels);
    }

    series->labels[n++] =
        (struct hearth_label){HEARTH_STR("__name__"), hearth_str_c(profile->name)};
    if (event.n > 0) {
        series->labels[n++] = (struct hearth_label){HEARTH_STR("jfr_event"), event};
    }
    series->n_labels = n;

    return HEARTH_OK;
}

static void set_time(const struct hearth_recording_upload *upload, struct hearth_profile *profile)
{
    if (upload->from_ns > 0) {
        profile->time_ns = upload->from_ns;
    }
    if (upload->from_ns > 0 && upload->until_ns > upload->from_ns) {
        profile->duration_ns = upload->until_ns - upload->from_ns;
    }
}

enum hearth_status hearth_ingest_read_recording(const struct hearth_ingest *ingest,
                                                const struct hearth_recording_upload *upload,
                                                struct hearth_arena *arena, uint64_t *discards,
                                                struct hearth_push_request *request,
                                                struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(ingest != NULL && upload != NULL && discards != NULL);
    hearth_ingest_limits(ingest, upload->tenant, &limits);
    struct hearth_jfr_recording *recording = hearth_arena_alloc(arena, sizeof *recording);
    if (recording == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(decode_recording(upload, &limits, arena, recording, err));
    hearth_ingest_count_notes(&recording->notes, discards);

    /* One series with one sample for each profile. */
    size_t n = recording->n_profiles;
    struct hearth_push_series *series = hearth_arena_calloc(arena, n, sizeof *series);
    struct hearth_push_sample *samples = hearth_arena_calloc(arena, n, sizeof *samples);
    if (series == NULL || samples == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_jfr_profile *profile = &recording->profiles[i];
        set_time(upload, &profile->profile);
        samples[i].decoded = &profile->profile;
        samples[i].n_bytes = i == 0 ? upload->n_bytes : 0;
        series[i].samples = &samples[i];
        series[i].n_samples = 1;
        HEARTH_TRY(make_labels(upload, profile, recording->event, arena, &series[i], err));
    }

    request->series = series;
    request->n_series = n;

    return HEARTH_OK;
}
