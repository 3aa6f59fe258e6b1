/*
 * cmd_uploads_create.c -- hearth uploads create: sends files in parts.
 *
 * A part whose answer is lost is sent again; if the command ends in between, --id continues the
 * upload with the parts that are missing.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/sha256.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_uploads.h"
#include "progress.h"
#include "side_by_side.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 10

/* A file that is being sent. */
struct sending {
    const char *path;
    int fd;
    int64_t n_bytes;
    char sha256[HEARTH_SHA256_HEX + 1];
    char *buffer; /* of one part */
    const Hearth__V1__UploadedFile *upload;
};

/* Whether an upload has exactly the labels of a request. */
static bool has_same_labels(const Hearth__V1__UploadedFile *upload,
                            const Hearth__V1__CreateUploadRequest *request)
{
    size_t n_same = 0;

    for (size_t i = 0; i < upload->n_labels; i++) {
        for (size_t k = 0; k < request->n_labels; k++) {
            n_same += strcmp(upload->labels[i]->name, request->labels[k]->name) == 0 &&
                      strcmp(upload->labels[i]->value, request->labels[k]->value) == 0;
        }
    }

    return n_same == request->n_labels && n_same == upload->n_labels;
}

/* The upload of the same file that was interrupted; NULL: none. */
static enum hearth_status find_interrupted(struct cli *cli,
                                           const Hearth__V1__CreateUploadRequest *request,
                                           const Hearth__V1__UploadedFile **ret)
{
    Hearth__V1__ListUploadedFilesRequest all = HEARTH__V1__LIST_UPLOADED_FILES_REQUEST__INIT;
    Hearth__V1__ListUploadedFilesResponse *answer;

    *ret = NULL;
    HEARTH_TRY(cli_call(cli, CLI_UPLOADS "ListUploads", &all,
                        &hearth__v1__list_uploaded_files_response__descriptor, &answer));
    for (size_t i = 0; i < answer->n_uploads && *ret == NULL; i++) {
        const Hearth__V1__UploadedFile *one = answer->uploads[i];
        bool is_same = one->state == HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_RECEIVING &&
                       strcmp(one->sha256, request->sha256) == 0 &&
                       (one->from_ms == 0) == (request->from_ms == 0) &&
                       has_same_labels(one, request);
        *ret = is_same ? one : NULL;
    }

    return HEARTH_OK;
}

/* Continues the upload of the same file, or creates one. */
static enum hearth_status announce_file(struct cli *cli, struct sending *s)
{
    Hearth__V1__CreateUploadRequest request = HEARTH__V1__CREATE_UPLOAD_REQUEST__INIT;
    const char *slash = strrchr(s->path, '/');

    request.file_name = cli_field(cli, slash == NULL ? s->path : slash + 1);
    request.size_bytes = s->n_bytes;
    request.sha256 = s->sha256;
    if (cli->time_mode != NULL && strcmp(cli->time_mode, "now") == 0) {
        request.from_ms = cli->now_ns / HEARTH_NS_PER_MS;
    }
    const char *name =
        cli->name == NULL ? NULL : hearth_arena_printf(&cli->arena, "__name__=%s", cli->name);
    HEARTH_TRY(cli_label_pairs(cli, &name, 1, &request.labels, &request.n_labels));

    HEARTH_TRY(find_interrupted(cli, &request, &s->upload));
    if (s->upload != NULL) {
        (void)fprintf(stderr, "%s: continues upload %s\n", s->path, s->upload->upload_id);
        return HEARTH_OK;
    }
    HEARTH_TRY(cli_call(cli, CLI_UPLOADS "CreateUpload", &request,
                        &hearth__v1__uploaded_file__descriptor, &s->upload));
    (void)fprintf(stderr, "%s: upload %s\n", s->path, s->upload->upload_id);

    return HEARTH_OK;
}

/* ---- sending ---- */

static enum hearth_status read_fully(struct cli *cli, const struct sending *s, int64_t at, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(s->fd, s->buffer + done, n - done, (off_t)(at + (int64_t)done));
        if (got < 0) {
            return cli_fail_file(cli, "read");
        }
        if (got == 0) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "the file became shorter");
        }
        done += (size_t)got;
    }

    return HEARTH_OK;
}

static enum hearth_status open_file(struct cli *cli, struct sending *s)
{
    struct stat stat;

    s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &stat) != 0) {
        return cli_fail_file(cli, "open");
    }
    if (!S_ISREG(stat.st_mode) || stat.st_size == 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "not a file with contents");
    }
    s->n_bytes = stat.st_size;

    /* Its checksum. */
    struct hearth_sha256 hash;
    const size_t step = (size_t)1 << 20;
    s->buffer = hearth_mem_alloc((size_t)8 << 20); /* the largest part */
    if (s->buffer == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "no memory for a part");
    }
    hearth_sha256_init(&hash);
    for (int64_t at = 0; at < s->n_bytes; at += (int64_t)step) {
        size_t n = s->n_bytes - at < (int64_t)step ? (size_t)(s->n_bytes - at) : step;
        HEARTH_TRY(read_fully(cli, s, at, n));
        hearth_sha256_add(&hash, hearth_str_n(s->buffer, n));
    }
    hearth_sha256_end_hex(&hash, s->sha256);

    return HEARTH_OK;
}

/* Sends a part; again after errors that may pass. */
static enum hearth_status send_part(struct cli *cli, const struct sending *s, int32_t part)
{
    int64_t at = (int64_t)part * s->upload->part_bytes;
    int64_t left = s->n_bytes - at;
    size_t n = left < s->upload->part_bytes ? (size_t)left : (size_t)s->upload->part_bytes;
    HEARTH_TRY(read_fully(cli, s, at, n));

    Hearth__V1__PutPartRequest request = HEARTH__V1__PUT_PART_REQUEST__INIT;
    Hearth__V1__PutPartResponse *answer;
    request.upload_id = s->upload->upload_id;
    request.part = part;
    request.data = (ProtobufCBinaryData){n, (uint8_t *)s->buffer};

    enum hearth_status status = HEARTH_UNAVAILABLE;
    for (int i = 0;
         i < ATTEMPTS && (status == HEARTH_UNAVAILABLE || status == HEARTH_DEADLINE_EXCEEDED);
         i++) {
        if (i > 0) {
            cli_pause_upload();
        }
        status = cli_call(cli, CLI_UPLOADS "PutPart", &request,
                          &hearth__v1__put_part_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "part %d of %s (continue with --id %s)", part, s->path,
                          s->upload->upload_id);
    }

    return status;
}

/* Sends the parts that the server lacks, then finishes the upload. */
static enum hearth_status send_missing(struct cli *cli, struct sending *s)
{
    HEARTH_TRY(cli_ask_upload(cli, s->upload->upload_id, &s->upload));
    while (s->upload->n_missing_parts > 0) {
        for (size_t i = 0; i < s->upload->n_missing_parts; i++) {
            HEARTH_TRY(send_part(cli, s, s->upload->missing_parts[i]));
            cli_progress(cli, "%s: part %d of %d", s->path, s->upload->missing_parts[i] + 1,
                         s->upload->parts);
        }
        HEARTH_TRY(cli_ask_upload(cli, s->upload->upload_id, &s->upload));
    }

    Hearth__V1__FinishUploadRequest request = HEARTH__V1__FINISH_UPLOAD_REQUEST__INIT;
    request.upload_id = s->upload->upload_id;
    request.sha256 = s->sha256;

    return cli_call(cli, CLI_UPLOADS "FinishUpload", &request,
                    &hearth__v1__uploaded_file__descriptor, &s->upload);
}

static enum hearth_status send_file(struct cli *cli, struct sending *s)
{
    HEARTH_TRY(open_file(cli, s));

    /* A new upload, or the one that is continued. */
    if (cli->id == NULL) {
        HEARTH_TRY(announce_file(cli, s));
    } else {
        HEARTH_TRY(cli_ask_upload(cli, cli->id, &s->upload));
    }
    if (s->upload->size_bytes != s->n_bytes || s->upload->part_bytes <= 0 ||
        s->upload->part_bytes > 8 << 20) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "the file has %lld bytes, upload %s has %lld", (long long)s->n_bytes,
                           s->upload->upload_id, (long long)s->upload->size_bytes);
    }

    return send_missing(cli, s);
}

static enum cli_exit upload_one(struct cli *cli, const char *path)
{
    struct sending s = {.path = path, .fd = -1};
    enum hearth_status status = send_file(cli, &s);

    cli_progress_end();
    if (status == HEARTH_OK && cli->wait) {
        status = cli_wait_for_upload(cli, &s.upload);
    }
    if (s.fd >= 0) {
        (void)close(s.fd);
    }
    hearth_mem_free(s.buffer);
    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "%s", path);
        return cli_fail(cli, status);
    }

    return cli_end_upload(cli, s.upload);
}

enum cli_exit cli_uploads_create(struct cli *cli)
{
    if (cli->id != NULL && cli->n_args > 1) {
        return cli_usage("--id requires exactly one file");
    }

    return cli_each_file(cli, upload_one);
}
