/*
 * uploads.c -- receiving uploads (contract: hearth/engine/uploads.h).
 *
 * What can be checked before the bytes arrive is checked at the creation: labels, sizes, the name
 * of the format. All else is the parser's.
 */
#include "hearth/engine/uploads.h"

#include "hearth/base/clock.h"
#include "hearth/base/sha256.h"
#include "hearth/format/profile_file.h"
#include "hearth/model/labels.h"
#include "hearth/store/store_uploads.h"

#include "common/call_internal.h"
#include "ingest/ingest_internal.h"
#include "uploads/upload_shown.h"

#include <assert.h>
#include <stdio.h>
#include <sys/random.h>

#define MAX_NAME_BYTES 255u
#define DEFAULT_NAME   "upload"
#define ID_BYTES       (HEARTH_PROFILE_UPLOAD_ID_TEXT / 2)
/* Missing parts that an error names. */
#define NAMED_PARTS 3

/* ---- creating ---- */

/* The database stores UTF-8 without NUL. */
static bool is_storable(struct hearth_str text)
{
    return hearth_str_utf8_valid(text) && hearth_str_find(text, '\0', 0) == text.n;
}

static enum hearth_status check_file_name(struct hearth_profile_upload *upload,
                                          struct hearth_err *err)
{
    if (upload->file_name.n == 0) {
        upload->file_name = HEARTH_STR(DEFAULT_NAME);
    }
    if (upload->file_name.n > MAX_NAME_BYTES || !is_storable(upload->file_name)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "file_name must be at most %u bytes of UTF-8", MAX_NAME_BYTES);
    }

    return HEARTH_OK;
}

static enum hearth_status check_sizes(struct hearth_profile_upload *upload,
                                      const struct hearth_limits *limits, struct hearth_err *err)
{
    if (upload->part_bytes == 0) {
        upload->part_bytes = HEARTH_UPLOAD_DEFAULT_PART_BYTES;
    }
    if (upload->part_bytes < HEARTH_UPLOAD_MIN_PART_BYTES ||
        upload->part_bytes > HEARTH_UPLOAD_MAX_PART_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "part_bytes is %d; it must be %d to %d",
                           upload->part_bytes, HEARTH_UPLOAD_MIN_PART_BYTES,
                           HEARTH_UPLOAD_MAX_PART_BYTES);
    }
    if (upload->n_bytes <= 0 || upload->n_bytes / upload->part_bytes >= INT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "size_bytes is %lld",
                           (long long)upload->n_bytes);
    }
    if (limits->max_upload_bytes > 0 && upload->n_bytes > limits->max_upload_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the file has %lld bytes; max-upload-bytes allows %lld",
                           (long long)upload->n_bytes, (long long)limits->max_upload_bytes);
    }

    return HEARTH_OK;
}

static bool is_sha256(struct hearth_str text)
{
    if (text.n != HEARTH_SHA256_HEX) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        bool is_digit = (text.p[i] >= '0' && text.p[i] <= '9') ||
                        (text.p[i] >= 'a' && text.p[i] <= 'f') ||
                        (text.p[i] >= 'A' && text.p[i] <= 'F');
        if (!is_digit) {
            return false;
        }
    }
    return true;
}

static enum hearth_status check_sha256(struct hearth_str text, struct hearth_err *err)
{
    return text.n == 0 || is_sha256(text)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "sha256 must be %d hexadecimal digits",
                             HEARTH_SHA256_HEX);
}

/* The name is one of the list "pprof, JFR, ...", in any case, or empty. */
static enum hearth_status check_format_name(struct hearth_str format, struct hearth_err *err)
{
    struct hearth_str all = hearth_str_c(hearth_profile_file_formats());

    for (size_t from = 0; from < all.n && format.n > 0;) {
        size_t to = hearth_str_find(all, ',', from);
        struct hearth_str name = hearth_str_trim(hearth_str_n(all.p + from, to - from));
        if (hearth_str_eq_nocase(name, format)) {
            return HEARTH_OK;
        }
        from = to + 1;
    }

    return format.n == 0 ? HEARTH_OK
                         : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                       "unknown format \"" HEARTH_STR_FMT "\"; known are %s",
                                       HEARTH_STR_ARG(format), all.p);
}

/* Labels must be such that a push accepts them. */
static enum hearth_status check_labels(const struct hearth_call *call,
                                       const struct hearth_limits *limits,
                                       const struct hearth_profile_upload *upload,
                                       struct hearth_err *err)
{
    static const char *const no_service_labels[] = {NULL};
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    size_t n = upload->n_labels;
    struct hearth_label *labels = hearth_arena_array(call->arena, n + 1, sizeof *labels);
    if (labels == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* As the parser will push them. */
    bool has_name = false;
    for (size_t i = 0; i < n; i++) {
        labels[i] = (struct hearth_label){upload->labels[i].name, upload->labels[i].value};
        if (!is_storable(labels[i].name) || !is_storable(labels[i].value)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "label %zu is not UTF-8 without NUL bytes", i + 1);
        }
        has_name = has_name || hearth_str_eq_c(labels[i].name, HEARTH_LABEL_NAME);
    }
    if (!has_name) {
        labels[n++] = (struct hearth_label){HEARTH_STR(HEARTH_LABEL_NAME), HEARTH_STR("x")};
    }

    const struct hearth_push_work work = {.limits = limits,
                                          .service_labels = no_service_labels,
                                          .app_name = HEARTH_STR(HEARTH_UPLOAD_SERVICE),
                                          .arena = call->arena,
                                          .discards = discards};
    const struct hearth_push_series series = {.labels = labels, .n_labels = n};
    struct hearth_identity identity;

    return hearth_identity_make(&work, &series, &identity, err);
}

static enum hearth_status make_upload_id(struct hearth_arena *arena, struct hearth_str *ret,
                                         struct hearth_err *err)
{
    unsigned char random[ID_BYTES];
    char text[2 * ID_BYTES + 1];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes for an id");
    }

    for (size_t i = 0; i < ID_BYTES; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", random[i]);
    }
    *ret = hearth_arena_str(arena, hearth_str_c(text));

    return ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_upload_create(const struct hearth_call *call,
                                        struct hearth_profile_upload *upload,
                                        struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(call->arena != NULL);
    hearth_call_limits(call, &limits);

    /* Check what the person said. */
    HEARTH_TRY(check_file_name(upload, err));
    HEARTH_TRY(check_sizes(upload, &limits, err));
    HEARTH_TRY(check_sha256(upload->sha256, err));
    HEARTH_TRY(check_format_name(upload->format, err));
    if (upload->from_ns < 0 || upload->until_ns < 0 || upload->sample_rate < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "times and sample_rate must not be negative");
    }
    if (upload->until_ns > 0 && upload->until_ns < upload->from_ns) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "until is before from: %lld and %lld ns",
                           (long long)upload->until_ns, (long long)upload->from_ns);
    }
    HEARTH_TRY(check_labels(call, &limits, upload, err));
    HEARTH_TRY(hearth_call_check_later(call, hearth_upload_service(upload), err));

    /* Create the upload. */
    HEARTH_TRY(make_upload_id(call->arena, &upload->upload_id, err));
    upload->tenant = call->tenant;
    upload->state = HEARTH_PROFILE_UPLOAD_RECEIVING;
    upload->created_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    const struct hearth_upload_quota quota = {limits.max_uploads, limits.max_uploads_bytes};

    return hearth_store_upload_create(HEARTH_CALL_SCOPE(call), upload, &quota, err);
}

/* ---- parts ---- */

static enum hearth_status compare_sums(struct hearth_str announced,
                                       const char received[HEARTH_SHA256_HEX + 1], const char *what,
                                       struct hearth_err *err)
{
    if (announced.n == 0 || hearth_str_eq_nocase(announced, hearth_str_c(received))) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "the checksum of %s is not the announced one: sha256 of the received bytes "
                       "is %s",
                       what, received);
}

static enum hearth_status put_part(const struct hearth_call *call,
                                   const struct hearth_profile_upload *upload, int32_t part,
                                   struct hearth_str bytes, struct hearth_err *err)
{
    int32_t n = hearth_profile_upload_n_parts(upload);

    if (part < 0 || part >= n) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "there is no part %d; the upload has %d",
                           part, n);
    }
    int64_t expected = hearth_profile_upload_part_bytes(upload, part);
    if ((int64_t)bytes.n != expected) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "part %d has %zu bytes instead of %lld",
                           part, bytes.n, (long long)expected);
    }

    return hearth_store_upload_part(HEARTH_CALL_SCOPE(call), upload, part, bytes, err);
}

enum hearth_status hearth_upload_put_part(const struct hearth_call *call,
                                          struct hearth_str upload_id, int32_t part,
                                          struct hearth_str bytes, struct hearth_str sha256,
                                          struct hearth_err *err)
{
    struct hearth_profile_upload upload;

    HEARTH_TRY(check_sha256(sha256, err));
    if (sha256.n > 0) {
        struct hearth_sha256 hash;
        char text[HEARTH_SHA256_HEX + 1];
        hearth_sha256_init(&hash);
        hearth_sha256_add(&hash, bytes);
        hearth_sha256_end_hex(&hash, text);
        HEARTH_TRY(compare_sums(sha256, text, "the part", err));
    }
    HEARTH_TRY(hearth_upload_find(call, upload_id, &upload, err));

    return put_part(call, &upload, part, bytes, err);
}

/* ---- finishing ---- */

static enum hearth_status check_complete(const struct hearth_call *call,
                                         const struct hearth_profile_upload *upload,
                                         struct hearth_err *err)
{
    int32_t *missing;
    size_t n;
    char text[NAMED_PARTS * 16] = "";

    HEARTH_TRY(hearth_store_upload_missing(HEARTH_CALL_SCOPE(call), upload, NAMED_PARTS + 1,
                                           &missing, &n, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    for (size_t i = 0; i < n && i < NAMED_PARTS; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s%d", i > 0 ? ", " : "", missing[i]);
    }

    return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                       "the upload is not complete: parts %s%s of %d are missing", text,
                       n > NAMED_PARTS ? " and more" : "", hearth_profile_upload_n_parts(upload));
}

static enum hearth_status begin_sum(void *context, struct hearth_err *err)
{
    (void)err;
    hearth_sha256_init(context);
    return HEARTH_OK;
}

static enum hearth_status sum_part(void *context, struct hearth_str bytes, struct hearth_err *err)
{
    (void)err;
    hearth_sha256_add(context, bytes);
    return HEARTH_OK;
}

enum hearth_status hearth_upload_finish(const struct hearth_call *call, struct hearth_str upload_id,
                                        struct hearth_str sha256, struct hearth_profile_upload *ret,
                                        struct hearth_err *err)
{
    HEARTH_TRY(check_sha256(sha256, err));
    HEARTH_TRY(hearth_upload_find(call, upload_id, ret, err));
    if (ret->state != HEARTH_PROFILE_UPLOAD_RECEIVING) {
        return hearth_store_upload_settle(HEARTH_CALL_SCOPE(call), err);
    }
    HEARTH_TRY(check_complete(call, ret, err));

    /* Compute the checksum of the stored bytes. */
    struct hearth_sha256 hash;
    char text[HEARTH_SHA256_HEX + 1];
    const struct hearth_upload_reader reader = {&hash, begin_sum, sum_part};
    HEARTH_TRY(hearth_store_upload_read(HEARTH_CALL_SCOPE(call), ret->upload_no, 0, INT32_MAX,
                                        &reader, err));
    hearth_sha256_end_hex(&hash, text);
    HEARTH_TRY(compare_sums(sha256, text, "the file", err));
    HEARTH_TRY(compare_sums(ret->sha256, text, "the file", err));

    /* Queue the upload. */
    HEARTH_TRY(
        hearth_store_upload_queue(HEARTH_CALL_SCOPE(call), upload_id, hearth_str_c(text), err));
    (void)atomic_fetch_add(&call->engine->n_uploads_queued, 1);

    return hearth_store_upload_get(HEARTH_CALL_SCOPE(call), upload_id, ret, err);
}

static enum hearth_status send_parts(const struct hearth_call *call,
                                     struct hearth_profile_upload *upload, struct hearth_str bytes,
                                     struct hearth_err *err)
{
    struct hearth_profile_upload created;
    HEARTH_TRY(hearth_store_upload_get(HEARTH_CALL_SCOPE(call), upload->upload_id, &created, err));

    size_t at = 0;
    for (int32_t part = 0; at < bytes.n; part++) {
        size_t n = (size_t)hearth_profile_upload_part_bytes(&created, part);
        HEARTH_TRY(put_part(call, &created, part, hearth_str_n(bytes.p + at, n), err));
        at += n;
    }

    return hearth_upload_finish(call, created.upload_id, HEARTH_STR(""), upload, err);
}

enum hearth_status hearth_upload_file(const struct hearth_call *call,
                                      struct hearth_profile_upload *upload, struct hearth_str bytes,
                                      struct hearth_err *err)
{
    upload->n_bytes = (int64_t)bytes.n;
    if (bytes.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file is empty");
    }
    HEARTH_TRY(hearth_upload_create(call, upload, err));

    struct hearth_str upload_id = upload->upload_id;
    enum hearth_status status = send_parts(call, upload, bytes, err);
    if (status != HEARTH_OK) {
        /* Without the database the upload stays, and expires. */
        (void)!hearth_store_upload_delete(HEARTH_CALL_SCOPE(call), upload_id, NULL);
    }

    return status;
}
