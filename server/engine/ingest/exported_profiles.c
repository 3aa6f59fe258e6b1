/* exported_profiles.c -- an export of OpenTelemetry's protocol to the series of a push. */
#include "hearth/engine/exported_profiles.h"

#include "hearth/base/metrics.h"
#include "hearth/format/otlp_profiles.h"

#include "ingest/ingest_internal.h"

#include <assert.h>

#define OWN_LABELS 2u /* __name__ and service_name */

/* All failures but refused memory are faults of the bytes: sent again, they would fail again. */
static enum hearth_status judge_export(enum hearth_status status)
{
    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}

static enum hearth_status decode_export(const struct hearth_profiles_export *in,
                                        const struct hearth_limits *limits,
                                        struct hearth_arena *arena, struct hearth_otlp_export *ret,
                                        struct hearth_err *err)
{
    const struct hearth_otlp_options options = {
        .limits = hearth_ingest_pprof_limits(limits),
        .max_label_name_bytes = hearth_ingest_clamp_limit(limits->max_label_name_bytes),
        .max_label_value_bytes = hearth_ingest_clamp_limit(limits->max_label_value_bytes),
    };

    return judge_export(hearth_otlp_decode(in->wire, &options, arena, ret, err));
}

/* Counts what the decoder changed and left out. */
static void count_left_out(const struct hearth_otlp_export *export, const char *client,
                           uint64_t *discards)
{
    hearth_ingest_count_notes(&export->notes, discards);
    discards[HEARTH_DISCARD_INVALID_SAMPLES] += export->n_bad_samples;
    discards[HEARTH_DISCARD_EMPTY_PROFILES] += export->n_empty;
    discards[HEARTH_DISCARD_LONG_LABELS] += export->n_long;
    discards[HEARTH_DISCARD_COMPLEX_LABELS] += export->n_complex;
    discards[HEARTH_DISCARD_RESERVED_LABELS] += export->n_reserved;

    /* The push counts its own discards; rejected profiles are not part of it. */
    if (export->n_rejected > 0) {
        hearth_metric_add(HEARTH_M_PROFILES_RECEIVED, (int64_t) export->n_rejected);
        hearth_metric_add_labels(HEARTH_M_REJECTED, hearth_status_name(HEARTH_INVALID_ARGUMENT),
                                 client, (int64_t) export->n_rejected);
    }
}

/* Builds a profile of an export; a hearth_push_read_fn. */
static enum hearth_status build_profile(const void *source, size_t i, struct hearth_arena *arena,
                                        struct hearth_profile *ret, uint64_t *discards,
                                        struct hearth_err *err)
{
    struct hearth_pprof_notes notes = {0};

    HEARTH_TRY(judge_export(hearth_otlp_build(source, i, arena, ret, &notes, err)));
    hearth_ingest_count_notes(&notes, discards);

    return HEARTH_OK;
}

static enum hearth_status make_export_labels(const struct hearth_otlp_profile *profile,
                                             struct hearth_arena *arena,
                                             struct hearth_push_series *series,
                                             struct hearth_err *err)
{
    size_t n = profile->n_labels;

    series->labels = hearth_arena_array(arena, n + OWN_LABELS, sizeof *series->labels);
    if (series->labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    if (n > 0) {
        memcpy(series->labels, profile->labels, n * sizeof *series->labels);
    }

    series->labels[n++] = (struct hearth_label){HEARTH_STR("__name__"), profile->name};
    series->labels[n++] = (struct hearth_label){HEARTH_STR("service_name"), profile->service};
    series->n_labels = n;

    return HEARTH_OK;
}

enum hearth_status hearth_ingest_read_export(const struct hearth_ingest *ingest,
                                             const struct hearth_profiles_export *in,
                                             struct hearth_arena *arena, uint64_t *discards,
                                             struct hearth_push_request *request,
                                             struct hearth_profiles_outcome *ret,
                                             struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(ingest != NULL && in != NULL && discards != NULL && ret != NULL);
    hearth_ingest_limits(ingest, in->tenant, &limits);
    struct hearth_otlp_export *export = hearth_arena_alloc(arena, sizeof *export);
    if (export == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(decode_export(in, &limits, arena, export, err));
    count_left_out(export, in->client, discards);

    /* One series with one sample for each profile, which is built when its turn comes. */
    size_t n = export->n_profiles;
    struct hearth_push_series *series = hearth_arena_calloc(arena, n, sizeof *series);
    struct hearth_push_sample *samples = hearth_arena_calloc(arena, n, sizeof *samples);
    if (series == NULL || samples == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        samples[i].read = build_profile;
        samples[i].source = export;
        samples[i].source_idx = i;
        samples[i].id = export->profiles[i].id;
        samples[i].n_bytes = i == 0 ? in->n_bytes : 0;
        series[i].samples = &samples[i];
        series[i].n_samples = 1;
        HEARTH_TRY(make_export_labels(&export->profiles[i], arena, &series[i], err));
    }

    request->series = series;
    request->n_series = n;
    *ret = (struct hearth_profiles_outcome){export->n_received, export->n_rejected,
                                            export->n_bad_samples, export->first};

    return HEARTH_OK;
}
