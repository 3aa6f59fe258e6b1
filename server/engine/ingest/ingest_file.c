/* ingest_file.c -- a file of any profiler to the series of a push. */
#include "hearth/base/limit.h"
#include "hearth/engine/ingest_files.h"
#include "hearth/format/profile_file.h"

#include "ingest/ingest_internal.h"

#include <assert.h>

#define OWN_LABELS 2u /* __name__ and jfr_event */

static enum hearth_status decode_upload(const struct hearth_file_upload *upload,
                                        const struct hearth_limits *limits,
                                        struct hearth_arena *arena,
                                        struct hearth_file_profiles *ret, struct hearth_err *err)
{
    const struct hearth_file_options options = {
        .limits = hearth_ingest_pprof_limits(limits),
        .format = upload->format,
        .sample_rate = upload->sample_rate,
        .labels = upload->context_labels,
        .objects = upload->objects,
        .n_objects = upload->n_objects,
    };

    if (!upload->has_own_limit && limits->max_profile_bytes > 0 &&
        upload->bytes.n > (size_t)limits->max_profile_bytes) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "the file has %zu bytes uncompressed; the limit is %lld" HEARTH_RAISE_LIMIT(
                "max-profile-bytes"),
            upload->bytes.n, (long long)limits->max_profile_bytes);
    }

    enum hearth_status status =
        hearth_profile_file_decode(upload->bytes, &options, arena, ret, err);

    /* All other failures are faults of the bytes. */
    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}

/* The labels of the upload and those of one profile of the file. */
static enum hearth_status make_labels(const struct hearth_file_upload *upload,
                                      struct hearth_str name, struct hearth_str event,
                                      struct hearth_arena *arena, struct hearth_push_series *series,
                                      struct hearth_err *err)
{
    size_t n = upload->n_labels;

    series->labels = hearth_arena_array(arena, n + OWN_LABELS, sizeof *series->labels);
    if (series->labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    if (n > 0) {
        memcpy(series->labels, upload->labels, n * sizeof *series->labels);
    }

    series->labels[n++] = (struct hearth_label){HEARTH_STR("__name__"), name};
    if (event.n > 0) {
        series->labels[n++] = (struct hearth_label){HEARTH_STR("jfr_event"), event};
    }
    series->n_labels = n;

    return HEARTH_OK;
}

static void set_time(const struct hearth_file_upload *upload, struct hearth_profile *profile)
{
    if (upload->from_ns > 0) {
        profile->time_ns = upload->from_ns;
    }
    if (upload->from_ns > 0 && upload->until_ns > upload->from_ns) {
        profile->duration_ns = upload->until_ns - upload->from_ns;
    }
}

enum hearth_status hearth_ingest_read_file(const struct hearth_ingest *ingest,
                                           const struct hearth_file_upload *upload,
                                           struct hearth_arena *arena, uint64_t *discards,
                                           struct hearth_push_request *request,
                                           struct hearth_err *err)
{
    struct hearth_limits limits;
    struct hearth_file_profiles file;

    assert(ingest != NULL && upload != NULL && discards != NULL);
    hearth_ingest_limits(ingest, upload->tenant, &limits);
    HEARTH_TRY(decode_upload(upload, &limits, arena, &file, err));
    hearth_ingest_count_notes(&file.notes, discards);
    discards[HEARTH_DISCARD_SKIPPED_LINES] += file.skipped_lines;
    discards[HEARTH_DISCARD_LOST_SAMPLES] += file.n_lost;
    discards[HEARTH_DISCARD_UNKNOWN_EVENTS] += file.n_unknown;
    discards[HEARTH_DISCARD_COPIED_STACKS] += file.n_copied;

    /* One series with one sample for each profile. */
    size_t n = file.n_profiles;
    struct hearth_push_series *series = hearth_arena_calloc(arena, n, sizeof *series);
    struct hearth_push_sample *samples = hearth_arena_calloc(arena, n, sizeof *samples);
    if (series == NULL || samples == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_file_profile *part = &file.profiles[i];
        set_time(upload, &part->profile);
        samples[i].decoded = &part->profile;
        samples[i].n_bytes = i == 0 ? upload->n_bytes : 0;
        samples[i].file = upload->file;
        series[i].samples = &samples[i];
        series[i].n_samples = 1;
        HEARTH_TRY(make_labels(upload, part->name, file.event, arena, &series[i], err));
    }

    request->series = series;
    request->n_series = n;
    request->is_one_upload = true;

    return HEARTH_OK;
}
