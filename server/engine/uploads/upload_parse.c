/*
 * upload_parse.c -- from the stored bytes of an upload to profiles (contract:
 * uploads/upload_parse.h).
 *
 * The file is read, checked, decompressed and decoded before the first profile is pushed, so that a
 * damaged file stores nothing.
 */
#include "uploads/upload_parse.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/sha256.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/ingest_errors.h"
#include "hearth/engine/ingest_files.h"
#include "hearth/store/store_uploads.h"

#include "common/call_internal.h"
#include "ingest/ingest_internal.h"

#include <assert.h>

/* A file may be compressed as a whole, and again by a transport. */
#define MAX_INFLATIONS 3
#define CLIENT         "upload"

/* ---- memory ---- */

/* ---- the bytes ---- */

static enum hearth_status begin_bytes(void *context, struct hearth_err *err)
{
    struct hearth_upload_parsing *p = context;
    (void)err;
    p->bytes.n = 0;
    return HEARTH_OK;
}

static enum hearth_status add_bytes(void *context, struct hearth_str bytes, struct hearth_err *err)
{
    struct hearth_upload_parsing *p = context;

    /* Memory was reserved for the announced size. */
    if (bytes.n > p->bytes.cap - p->bytes.n) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "the stored parts have more bytes than the file");
    }
    hearth_buf_str(&p->bytes, bytes);

    return HEARTH_OK;
}

static enum hearth_status read_original(struct hearth_upload_parsing *p, struct hearth_err *err)
{
    if (hearth_buf_reserve(&p->bytes, (size_t)p->upload->n_bytes) == NULL) {
        return hearth_upload_fail_memory(p, err);
    }

    /* Parameters are freed at once. */
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena scratch;
    hearth_arena_init(&scratch, 0);
    const struct hearth_upload_reader reader = {p, begin_bytes, add_bytes};
    HEARTH_TRY(hearth_store_upload_read(HEARTH_PARSING_SCOPE(p, &scratch), p->upload->upload_no, 0,
                                        INT32_MAX, &reader, err));

    size_t n =
        p->bytes.n < HEARTH_INGEST_ERROR_BODY_BYTES ? p->bytes.n : HEARTH_INGEST_ERROR_BODY_BYTES;
    *p->work->body_hash = (int64_t)hearth_hash64(p->bytes.p, n, 0);

    /* They are what the client has sent. */
    struct hearth_sha256 hash;
    char text[HEARTH_SHA256_HEX + 1];
    hearth_sha256_init(&hash);
    hearth_sha256_add(&hash, hearth_buf_view(&p->bytes));
    hearth_sha256_end_hex(&hash, text);

    return hearth_str_eq_nocase(hearth_str_c(text), p->upload->sha256)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_CORRUPT,
                             "the stored bytes have another checksum than the received ones: "
                             "sha256 is %s",
                             text);
}

static enum hearth_status inflate_once(struct hearth_upload_parsing *p,
                                       struct hearth_inflater *inflater, struct hearth_err *err)
{
    int64_t max_bytes = p->limits.max_upload_bytes;
    struct hearth_buf plain;

    hearth_buf_init(&plain, 0);
    plain.budget = p->work->budget;
    enum hearth_status status = hearth_inflate(
        inflater, hearth_compression_detect(hearth_buf_view(&p->bytes)), hearth_buf_view(&p->bytes),
        max_bytes > 0 ? (size_t)max_bytes : SIZE_MAX / 16, &plain, err);
    if (status == HEARTH_OK) {
        hearth_buf_release(&p->bytes);
        p->bytes = plain;
        return HEARTH_OK;
    }

    hearth_buf_release(&plain);
    if (status == HEARTH_NO_MEMORY) {
        return hearth_upload_fail_memory(p, err);
    }
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the file decompresses to more than max-upload-bytes (%lld)",
                           (long long)max_bytes);
    }

    return status;
}

static enum hearth_status inflate_original(struct hearth_upload_parsing *p, struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;
    struct hearth_inflater *inflater = hearth_inflater_new();
    if (inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    for (int i = 0; i < MAX_INFLATIONS && status == HEARTH_OK; i++) {
        if (hearth_compression_detect(hearth_buf_view(&p->bytes)) == HEARTH_COMPRESSION_NONE) {
            break;
        }
        status = inflate_once(p, inflater, err);
    }
    hearth_inflater_free(inflater);

    return status;
}

/* ---- decoding ---- */

/* The labels of the series; __name__ is kept apart. */
static enum hearth_status take_labels(struct hearth_upload_parsing *p, struct hearth_err *err)
{
    const struct hearth_profile_upload *upload = p->upload;

    p->labels = hearth_arena_array(&p->arena, upload->n_labels, sizeof *p->labels);
    if (p->labels == NULL) {
        return hearth_upload_fail_memory(p, err);
    }

    for (size_t i = 0; i < upload->n_labels; i++) {
        const struct hearth_property *label = &upload->labels[i];
        if (hearth_str_eq_c(label->name, HEARTH_LABEL_NAME)) {
            p->name = label->value;
        } else {
            p->labels[p->n_labels++] = (struct hearth_label){label->name, label->value};
        }
    }

    return HEARTH_OK;
}

/* Gives a profile its push id, its name, and the time of the upload if it has none. */
static enum hearth_status complete_series(struct hearth_upload_parsing *p, size_t i,
                                          struct hearth_err *err)
{
    struct hearth_push_series *series = &p->request.series[i];
    struct hearth_push_sample *sample = &series->samples[0];

    assert(series->n_samples == 1 && sample->decoded != NULL);
    sample->id = hearth_str_c(hearth_arena_printf(&p->arena, "file " HEARTH_STR_FMT " %zu",
                                                  HEARTH_STR_ARG(p->upload->upload_id), i));
    if (sample->id.p == NULL) {
        return hearth_upload_fail_memory(p, err);
    }

    for (size_t l = 0; l < series->n_labels && p->name.n > 0; l++) {
        if (hearth_str_eq_c(series->labels[l].name, HEARTH_LABEL_NAME)) {
            series->labels[l].value = p->name;
        }
    }

    /* Without a time, a second attempt would give the profile another one. */
    if (sample->decoded->time_ns <= 0) {
        struct hearth_profile *timed = hearth_arena_alloc(&p->arena, sizeof *timed);
        if (timed == NULL) {
            return hearth_upload_fail_memory(p, err);
        }
        *timed = *sample->decoded;
        timed->time_ns = p->upload->created_ms * HEARTH_NS_PER_MS;
        sample->decoded = timed;
    }

    return HEARTH_OK;
}

/* The bytes that count against the tenant's rate: at most as many as it may send at once. */
static size_t count_rated_bytes(const struct hearth_upload_parsing *p)
{
    int64_t burst = p->limits.ingest_burst_bytes > 0 ? p->limits.ingest_burst_bytes
                                                     : p->limits.ingest_rate_bytes;

    return (size_t)(burst > 0 && burst < p->upload->n_bytes ? burst : p->upload->n_bytes);
}

static enum hearth_status decode_original(struct hearth_upload_parsing *p, struct hearth_err *err)
{
    struct hearth_profile_upload *upload = p->upload;
    HEARTH_TRY(take_labels(p, err));
    const struct hearth_file_upload file = {
        .tenant = upload->tenant,
        .bytes = hearth_buf_view(&p->bytes),
        .format = upload->format.n > 0 ? upload->format.p : NULL,
        .has_own_limit = true,
        .n_bytes = count_rated_bytes(p),
        .sample_rate = upload->sample_rate,
        .from_ns = upload->from_ns,
        .until_ns = upload->until_ns,
        .labels = p->labels,
        .n_labels = p->n_labels,
    };

    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    enum hearth_status status =
        hearth_ingest_read_file(p->work->ingest, &file, &p->arena, discards, &p->request, err);
    if (status == HEARTH_NO_MEMORY) {
        return hearth_upload_fail_memory(p, err);
    }
    HEARTH_TRY(status);

    for (size_t i = 0; i < p->request.n_series; i++) {
        HEARTH_TRY(complete_series(p, i, err));
    }

    /* An earlier attempt that settled some profiles has counted them. */
    if (upload->n_settled > 0) {
        hearth_upload_read_discards(upload->dropped, p->discards);
        return HEARTH_OK;
    }

    discards[HEARTH_DISCARD_EMPTY_PROFILES] += p->request.n_series == 0;
    hearth_discards_count(discards);
    memcpy(p->discards, discards, sizeof discards);

    return HEARTH_OK;
}

/* ---- all steps ---- */

/* Refuses files that should not, or cannot, be parsed again. */
static enum hearth_status check_history(const struct hearth_profile_upload *upload,
                                        struct hearth_err *err)
{
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;

    if (upload->n_lost >= HEARTH_UPLOAD_MAX_LOST) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "the file was being parsed each time when %d servers were lost; "
                           "%lld of its profiles are stored",
                           upload->n_lost, (long long)upload->n_stored);
    }
    if (upload->storing_ms != 0 && now_ms - upload->storing_ms > HEARTH_UPLOAD_DOUBT_MS) {
        return HEARTH_FAIL(
            err, HEARTH_FAILED_PRECONDITION,
            "the server was lost while it stored the %d profiles after the first "
            "%lld, and they could not be repeated within 50 minutes: whether these are "
            "stored is not known; those before are, those after are not",
            HEARTH_UPLOAD_GROUP, (long long)upload->n_settled);
    }

    return HEARTH_OK;
}

static enum hearth_status run_steps(struct hearth_upload_parsing *p, struct hearth_err *err)
{
    HEARTH_TRY(check_history(p->upload, err));
    HEARTH_TRY(read_original(p, err));
    HEARTH_TRY(inflate_original(p, err));
    HEARTH_TRY(hearth_cancel_check(p->work->cancel, err)); /* decoding does not look */
    HEARTH_TRY(decode_original(p, err));

    return hearth_upload_push(p, err);
}

enum hearth_status hearth_upload_parse(const struct hearth_upload_work *work,
                                       struct hearth_err *err)
{
    struct hearth_profile_upload *upload = work->upload;
    struct hearth_upload_parsing p = {.work = work, .upload = upload, .refusal = HEARTH_ERR_INIT};

    assert(upload->claim > 0 && work->engine != NULL && work->ingest != NULL);
    *work->body_hash = 0;

    /* All memory of the file is of the parser's budget. */
    hearth_arena_init(&p.arena, 0);
    p.arena.budget = work->budget;
    hearth_buf_init(&p.bytes, 0);
    p.bytes.budget = work->budget;

    /* Who pushes. */
    hearth_limits_of_tenant(hearth_engine_limits(work->engine), work->engine->store, upload->tenant,
                            &p.limits);
    p.request.tenant = upload->tenant;
    p.request.client = CLIENT;
    p.request.app_name = HEARTH_STR(HEARTH_UPLOAD_SERVICE);
    enum hearth_status status = run_steps(&p, err);

    upload->dropped = HEARTH_STR(""); /* it lived in the arena */
    hearth_buf_release(&p.bytes);
    hearth_arena_release(&p.arena);

    return status;
}
