/* datadog_upload.c -- an attachment of a Datadog client to the series of a push. */
#include "hearth/base/limit.h"
#include "hearth/engine/datadog_uploads.h"
#include "hearth/engine/ingest_files.h"
#include "hearth/format/datadog_profile.h"

#include "ingest/ingest_internal.h"

#include <assert.h>

/* A profile of an attachment with its only sample. */
struct datadog_part {
    struct hearth_profile profile;
    struct hearth_push_sample sample;
};

/* Appends n series to those of the request. */
static enum hearth_status add_series(const struct hearth_push_series *series, size_t n,
                                     struct hearth_arena *arena,
                                     struct hearth_push_request *request, size_t *cap,
                                     struct hearth_err *err)
{
    if (n == 0) {
        return HEARTH_OK;
    }
    if (!hearth_arena_grow(arena, &request->series, cap, request->n_series + n,
                           sizeof request->series[0])) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    memcpy(request->series + request->n_series, series, n * sizeof series[0]);
    request->n_series += n;

    return HEARTH_OK;
}

/* ---- recordings ---- */

static enum hearth_status read_datadog_recording(const struct hearth_ingest *ingest,
                                                 const struct hearth_datadog_upload *upload,
                                                 struct hearth_arena *arena, uint64_t *discards,
                                                 struct hearth_push_request *ret_push,
                                                 struct hearth_err *err)
{
    const struct hearth_file_upload recording = {
        .tenant = upload->tenant,
        .bytes = upload->bytes,
        .format = "JFR",
        .n_bytes = upload->n_bytes,
        .from_ns = upload->from_ns,
        .until_ns = upload->until_ns,
        .labels = upload->labels,
        .n_labels = upload->n_labels,
        .file = upload->file,
    };

    return hearth_ingest_read_file(ingest, &recording, arena, discards, ret_push, err);
}

/* ---- pprof ---- */

static enum hearth_status decode_attachment(const struct hearth_ingest *ingest,
                                            const struct hearth_datadog_upload *upload,
                                            struct hearth_arena *arena, uint64_t *discards,
                                            struct hearth_profile *ret, struct hearth_err *err)
{
    struct hearth_pprof_notes notes = {0};
    struct hearth_limits limits;

    hearth_ingest_limits(ingest, upload->tenant, &limits);
    if (limits.max_profile_bytes > 0 && upload->bytes.n > (size_t)limits.max_profile_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the attachment has %zu bytes uncompressed; the limit is "
                           "%lld" HEARTH_RAISE_LIMIT("max-profile-bytes"),
                           upload->bytes.n, (long long)limits.max_profile_bytes);
    }

    struct hearth_pprof_limits bounds = hearth_ingest_pprof_limits(&limits);
    enum hearth_status status =
        hearth_pprof_decode(upload->bytes, &bounds, arena, ret, &notes, err);
    hearth_ingest_count_notes(&notes, discards);

    /* All other failures are faults of the bytes. */
    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}

/* The labels of the upload, and the family. NULL without memory. */
static struct hearth_label *make_family_labels(const struct hearth_datadog_upload *upload,
                                               const char *name, struct hearth_arena *arena)
{
    size_t n = upload->n_labels;
    struct hearth_label *labels = hearth_arena_array(arena, n + 1, sizeof *labels);

    if (labels != NULL && n > 0) {
        memcpy(labels, upload->labels, n * sizeof *labels);
    }
    if (labels != NULL) {
        labels[n] = (struct hearth_label){HEARTH_STR(HEARTH_LABEL_NAME), hearth_str_c(name)};
    }

    return labels;
}

static void set_family_time(const struct hearth_datadog_upload *upload,
                            struct hearth_profile *profile)
{
    if (upload->from_ns > 0) {
        profile->time_ns = upload->from_ns;
    }
    if (upload->from_ns > 0 && upload->until_ns > upload->from_ns) {
        profile->duration_ns = upload->until_ns - upload->from_ns;
    }
}

/* Makes series of the families; the first one bears the size of the attachment. */
static enum hearth_status make_family_series(const struct hearth_datadog_upload *upload,
                                             const struct hearth_datadog_profile *families,
                                             size_t n, struct hearth_arena *arena,
                                             struct hearth_push_series *ret, struct hearth_err *err)
{
    struct datadog_part *parts = hearth_arena_calloc(arena, n, sizeof *parts);

    for (size_t i = 0; i < n && parts != NULL; i++) {
        parts[i].profile = families[i].profile;
        set_family_time(upload, &parts[i].profile);
        parts[i].sample.decoded = &parts[i].profile;
        parts[i].sample.n_bytes = i == 0 ? upload->n_bytes : 0;
        parts[i].sample.file = upload->file;
        ret[i] = (struct hearth_push_series){
            .labels = make_family_labels(upload, families[i].name, arena),
            .n_labels = upload->n_labels + 1,
            .samples = &parts[i].sample,
            .n_samples = 1,
        };
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static void count_datadog_notes(const struct hearth_datadog_notes *notes, uint64_t *discards)
{
    discards[HEARTH_DISCARD_NUMERIC_LABELS] += notes->numeric_labels;
    discards[HEARTH_DISCARD_UNLISTED_LABELS] += notes->unlisted_labels;
    discards[HEARTH_DISCARD_ZERO_SAMPLES] += notes->zero_samples;
}

static enum hearth_status read_datadog_pprof(const struct hearth_ingest *ingest,
                                             const struct hearth_datadog_upload *upload,
                                             struct hearth_arena *arena, uint64_t *discards,
                                             struct hearth_push_request *request, size_t *cap,
                                             struct hearth_err *err)
{
    struct hearth_datadog_profile families[HEARTH_DATADOG_MAX_FAMILIES];
    struct hearth_push_series series[HEARTH_DATADOG_MAX_FAMILIES];
    struct hearth_datadog_notes notes;
    struct hearth_profile profile;
    size_t n;

    HEARTH_TRY(decode_attachment(ingest, upload, arena, discards, &profile, err));
    if (profile.n_samples == 0) {
        return HEARTH_OK;
    }

    if (hearth_datadog_profile_divide(&profile, upload->filename, upload->custom_keys,
                                      upload->n_custom_keys, arena, families, &n,
                                      &notes) != HEARTH_OK) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    count_datadog_notes(&notes, discards);
    HEARTH_TRY(make_family_series(upload, families, n, arena, series, err));

    return add_series(series, n, arena, request, cap, err);
}

enum hearth_status hearth_ingest_read_datadog(const struct hearth_ingest *ingest,
                                              const struct hearth_datadog_upload *upload,
                                              struct hearth_arena *arena, uint64_t *discards,
                                              struct hearth_push_request *request, size_t *cap,
                                              struct hearth_err *err)
{
    struct hearth_push_request recording = {0};

    assert(ingest != NULL && upload != NULL && discards != NULL && cap != NULL);
    if (!hearth_str_starts(upload->bytes, HEARTH_STR("FLR\0"))) {
        return read_datadog_pprof(ingest, upload, arena, discards, request, cap, err);
    }

    HEARTH_TRY(read_datadog_recording(ingest, upload, arena, discards, &recording, err));
    return add_series(recording.series, recording.n_series, arena, request, cap, err);
}
