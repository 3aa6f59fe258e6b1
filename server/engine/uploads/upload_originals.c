/* upload_originals.c -- reading uploads and their originals (contract: hearth/engine/uploads.h). */
#include "hearth/engine/uploads.h"
#include "hearth/store/store_uploads.h"

#include "common/call_internal.h"
#include "uploads/upload_shown.h"

#include <assert.h>

static const char *const g_state_names[] = {"receiving", "queued", "parsing", "done", "failed"};

const char *hearth_upload_state_name(enum hearth_profile_upload_state state)
{
    return (size_t)state < HEARTH_ARRAY_LEN(g_state_names) ? g_state_names[state] : "unknown";
}

/* ---- visible uploads ---- */

struct hearth_str hearth_upload_service(const struct hearth_profile_upload *upload)
{
    assert(upload != NULL);

    for (size_t i = 0; i < upload->n_labels; i++) {
        if (hearth_str_eq_c(upload->labels[i].name, HEARTH_LABEL_SERVICE) &&
            upload->labels[i].value.n > 0) {
            return upload->labels[i].value;
        }
    }

    return HEARTH_STR(HEARTH_UPLOAD_SERVICE);
}

enum hearth_status hearth_upload_find(const struct hearth_call *call, struct hearth_str upload_id,
                                      struct hearth_profile_upload *ret, struct hearth_err *err)
{
    bool shows;

    HEARTH_TRY(hearth_store_upload_get(HEARTH_CALL_SCOPE(call), upload_id, ret, err));
    HEARTH_TRY(hearth_call_shows_service(call, NULL, hearth_upload_service(ret), &shows, err));

    return shows ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no upload \"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(upload_id));
}

/* ---- reading ---- */

enum hearth_status hearth_upload_get(const struct hearth_call *call, struct hearth_str upload_id,
                                     struct hearth_upload_details *ret, struct hearth_err *err)
{
    *ret = (struct hearth_upload_details){0};
    HEARTH_TRY(hearth_upload_find(call, upload_id, &ret->upload, err));
    if (ret->upload.state == HEARTH_PROFILE_UPLOAD_RECEIVING) {
        return hearth_store_upload_missing(HEARTH_CALL_SCOPE(call), &ret->upload,
                                           HEARTH_UPLOAD_MAX_MISSING, &ret->missing,
                                           &ret->n_missing, err);
    }

    return hearth_store_upload_results(HEARTH_CALL_SCOPE(call), ret->upload.upload_no,
                                       &ret->results, &ret->n_results, err);
}

enum hearth_status hearth_upload_list(const struct hearth_call *call,
                                      struct hearth_profile_upload **ret, size_t *ret_n,
                                      struct hearth_err *err)
{
    struct hearth_profile_upload *uploads;
    struct hearth_shown shown = {0};
    size_t n, n_shown = 0;

    HEARTH_TRY(
        hearth_store_uploads(HEARTH_CALL_SCOPE(call), HEARTH_UPLOAD_MAX_LIST, &uploads, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, hearth_upload_service(&uploads[i]),
                                             &shows, err));
        if (shows) {
            uploads[n_shown++] = uploads[i];
        }
    }

    *ret = uploads;
    *ret_n = n_shown;

    return HEARTH_OK;
}

/* A copy of parts into a buffer that may hold other bytes already. */
struct part_copy {
    struct hearth_buf *out;
    size_t n_before;
};

static enum hearth_status begin_copy(void *context, struct hearth_err *err)
{
    struct part_copy *copy = context;
    (void)err;
    copy->out->n = copy->n_before;
    return HEARTH_OK;
}

static enum hearth_status copy_part(void *context, struct hearth_str bytes, struct hearth_err *err)
{
    struct part_copy *copy = context;

    hearth_buf_str(copy->out, bytes);

    return hearth_buf_failed(copy->out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the file; read it in parts")
               : HEARTH_OK;
}

enum hearth_status hearth_upload_read(const struct hearth_call *call, struct hearth_str upload_id,
                                      int32_t part, struct hearth_profile_upload *ret,
                                      struct hearth_buf *out, struct hearth_err *err)
{
    HEARTH_TRY(hearth_upload_find(call, upload_id, ret, err));
    int32_t n = hearth_profile_upload_n_parts(ret);
    if (part < -1 || part >= n) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "there is no part %d; the upload has %d",
                           part, n);
    }

    /* Read them, and see whether they were there. */
    struct part_copy copy = {out, out->n};
    const struct hearth_upload_reader reader = {&copy, begin_copy, copy_part};
    HEARTH_TRY(hearth_store_upload_read(HEARTH_CALL_SCOPE(call), ret->upload_no,
                                        part < 0 ? 0 : part, part < 0 ? INT32_MAX : 1, &reader,
                                        err));
    int64_t expected = part < 0 ? ret->n_bytes : hearth_profile_upload_part_bytes(ret, part);
    if ((int64_t)(out->n - copy.n_before) != expected) {
        out->n = copy.n_before;
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "the upload is not complete");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_upload_delete(const struct hearth_call *call, struct hearth_str upload_id,
                                        struct hearth_err *err)
{
    struct hearth_profile_upload upload;

    if (hearth_call_is_narrow(call)) {
        HEARTH_TRY(hearth_upload_find(call, upload_id, &upload, err));
    }

    return hearth_store_upload_delete(HEARTH_CALL_SCOPE(call), upload_id, err);
}
