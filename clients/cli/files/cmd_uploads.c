/* cmd_uploads.c -- hearth uploads list, show, download, delete. */
#include "cmd_uploads.h"

#include "hearth/base/sha256.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#define PAUSE_NS 500000000L
/* Room for a size and its unit. */
#define SIZE_TEXT 48

static const char *get_state_text(Hearth__V1__UploadState state)
{
    static const char *const texts[] = {"unknown", "receiving", "queued",
                                        "parsing", "done",      "failed"};
    return (size_t)state < HEARTH_ARRAY_LEN(texts) ? texts[state] : texts[0];
}

static void print_size(int64_t n_bytes, char out[SIZE_TEXT])
{
    cli_value((double)n_bytes, HEARTH_STR("bytes"), out);
}

/* ---- text ---- */

static void print_upload_line(const Hearth__V1__UploadedFile *upload, struct hearth_buf *out)
{
    char size[SIZE_TEXT], created[32];

    print_size(upload->size_bytes, size);
    cli_time(upload->created_ms, created);
    hearth_buf_printf(out, "%s  %-9s  %10s  %s  ", upload->upload_id, get_state_text(upload->state),
                      size, created);
    cli_fit(hearth_str_c(upload->file_name), INT_MAX, false, out);
    hearth_buf_byte(out, '\n');
}

/* Profiles keep their own time unless the upload says otherwise. */
static bool is_too_old(const Hearth__V1__UploadedFile *upload)
{
    return upload->refused_profiles > 0 && upload->from_ms == 0 &&
           strstr(upload->reason, "is outside of ingestion window") != NULL;
}

static void print_upload_progress(const Hearth__V1__UploadedFile *upload, struct hearth_buf *out)
{
    char received[SIZE_TEXT];

    if (upload->state == HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_RECEIVING) {
        print_size(upload->received_bytes, received);
        hearth_buf_printf(out, "  received %s, %zu%s %s missing\n", received,
                          upload->n_missing_parts, upload->n_missing_parts >= 1000 ? "+" : "",
                          upload->n_missing_parts == 1 ? "part is" : "parts are");
    } else if (upload->profiles > 0) {
        char stored[32], profiles[64], refused[32], samples[64];
        cli_count(upload->stored_profiles, stored);
        cli_number(upload->profiles, "profile", "profiles", profiles);
        cli_count(upload->refused_profiles, refused);
        cli_number(upload->samples, "sample", "samples", samples);
        hearth_buf_printf(out, "  %s of %s stored, %s refused; %s\n", stored, profiles, refused,
                          samples);
    }
    if (upload->reason[0] != '\0') {
        hearth_buf_cstr(out, "  ");
        cli_fit(hearth_str_c(upload->reason), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
    }
    if (is_too_old(upload)) {
        hearth_buf_cstr(out, "  hearth uploads create --time now stores them as of now\n");
    }
    if (upload->dropped[0] != '\0') {
        struct hearth_buf lost;
        hearth_buf_init(&lost, 0);
        cli_put_dropped(upload->dropped, &lost);
        if (lost.n > 0) {
            hearth_buf_printf(out, " %.*s\n", (int)lost.n - 1, lost.p + 1); /* no ";" */
        }
        hearth_buf_release(&lost);
    }
}

static void print_upload(const Hearth__V1__UploadedFile *upload, struct hearth_buf *out)
{
    print_upload_line(upload, out);
    print_upload_progress(upload, out);
    for (size_t i = 0; i < upload->n_results; i++) {
        const Hearth__V1__UploadResult *result = upload->results[i];
        char total[48];
        cli_value((double)result->total, cli_type_unit(result->profile_type), total);
        hearth_buf_printf(out, "  %-36s  %14s  ", result->profile_id, total);
        cli_fit(hearth_str_c(result->profile_type), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
    }
}

enum cli_exit cli_end_upload(struct cli *cli, const Hearth__V1__UploadedFile *upload)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    print_upload(upload, &out);
    enum cli_exit code = cli_print_answer(cli, &upload->base, &out);

    return code == CLI_OK && upload->state == HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_FAILED
               ? CLI_FAILED
               : code;
}

/* ---- calls ---- */

enum hearth_status cli_ask_upload(struct cli *cli, const char *id,
                                  const Hearth__V1__UploadedFile **ret)
{
    Hearth__V1__GetUploadedFileRequest request = HEARTH__V1__GET_UPLOADED_FILE_REQUEST__INIT;

    request.upload_id = cli_field(cli, id);

    return cli_call(cli, CLI_UPLOADS "GetUpload", &request, &hearth__v1__uploaded_file__descriptor,
                    ret);
}

void cli_pause_upload(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    (void)nanosleep(&pause, NULL);
}

enum hearth_status cli_wait_for_upload(struct cli *cli, const Hearth__V1__UploadedFile **upload)
{
    const char *id = (*upload)->upload_id;

    while ((*upload)->ended_ms == 0) {
        cli_pause_upload();
        HEARTH_TRY(cli_ask_upload(cli, id, upload));
    }

    return cli_ask_upload(cli, id, upload);
}

enum hearth_status cli_fail_file(struct cli *cli, const char *what)
{
    return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "cannot %s: %s", what,
                       strerrordesc_np(errno));
}

/* ---- list, show, delete ---- */

enum cli_exit cli_uploads_list(struct cli *cli)
{
    Hearth__V1__ListUploadedFilesRequest request = HEARTH__V1__LIST_UPLOADED_FILES_REQUEST__INIT;
    Hearth__V1__ListUploadedFilesResponse *answer = NULL;
    struct cli_listing list;
    enum hearth_status status =
        cli_call(cli, CLI_UPLOADS "ListUploads", &request,
                 &hearth__v1__list_uploaded_files_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    cli_list_begin(cli, &list);
    list.empty = "there are no uploads";
    for (size_t i = 0; i < answer->n_uploads; i++) {
        const Hearth__V1__UploadedFile *upload = answer->uploads[i];
        cli_list_text(&list, upload->upload_id);
        cli_list_text(&list, get_state_text(upload->state));
        cli_list_number(&list, upload->size_bytes);
        cli_list_time(&list, upload->created_ms);
        cli_list_number(&list, upload->profiles);
        cli_list_number(&list, upload->stored_profiles);
        cli_list_number(&list, upload->refused_profiles);
        cli_list_text(&list, upload->reason);
        cli_list_text(&list, upload->file_name);
    }

    return cli_list_end(&list, &answer->base);
}

enum cli_exit cli_uploads_show(struct cli *cli)
{
    const Hearth__V1__UploadedFile *upload = NULL;

    enum hearth_status status = cli_ask_upload(cli, cli->args[0], &upload);
    if (status == HEARTH_OK && cli->wait) {
        status = cli_wait_for_upload(cli, &upload);
    }

    return status == HEARTH_OK ? cli_end_upload(cli, upload) : cli_fail(cli, status);
}

enum cli_exit cli_uploads_delete(struct cli *cli)
{
    for (size_t i = 0; i < cli->n_args; i++) {
        Hearth__V1__DeleteUploadRequest request = HEARTH__V1__DELETE_UPLOAD_REQUEST__INIT;
        Hearth__V1__DeleteUploadResponse *answer;
        request.upload_id = cli_field(cli, cli->args[i]);
        enum hearth_status status =
            cli_call(cli, CLI_UPLOADS "DeleteUpload", &request,
                     &hearth__v1__delete_upload_response__descriptor, &answer);
        if (status != HEARTH_OK) {
            return cli_fail(cli, status);
        }
    }

    return CLI_OK;
}

/* ---- download ---- */

static enum hearth_status write_parts(struct cli *cli, const Hearth__V1__UploadedFile *upload,
                                      FILE *to)
{
    struct hearth_sha256 hash;
    char text[HEARTH_SHA256_HEX + 1];

    hearth_sha256_init(&hash);
    for (int32_t part = 0; part < upload->parts; part++) {
        Hearth__V1__ReadPartRequest request = HEARTH__V1__READ_PART_REQUEST__INIT;
        Hearth__V1__ReadPartResponse *answer;
        HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
        hearth_arena_init(&arena, 0);
        struct ProtobufCMessage *message;
        request.upload_id = upload->upload_id;
        request.part = part;
        struct hearth_call call = {.method = CLI_UPLOADS "ReadPart"};
        HEARTH_TRY(hearth_call_message(cli->client, &call, &request.base,
                                       &hearth__v1__read_part_response__descriptor, &arena,
                                       &message, &cli->err));
        answer = (Hearth__V1__ReadPartResponse *)message;
        hearth_sha256_add(&hash, hearth_str_n((const char *)answer->data.data, answer->data.len));
        if (fwrite(answer->data.data, 1, answer->data.len, to) != answer->data.len) {
            return cli_fail_file(cli, "write");
        }
    }

    hearth_sha256_end_hex(&hash, text);

    return strcmp(text, upload->sha256) == 0 || upload->sha256[0] == '\0'
               ? HEARTH_OK
               : HEARTH_FAIL(&cli->err, HEARTH_CORRUPT, "the bytes have another checksum: %s",
                             text);
}

enum cli_exit cli_uploads_download(struct cli *cli)
{
    const Hearth__V1__UploadedFile *upload = NULL;

    enum hearth_status status = cli_ask_upload(cli, cli->args[0], &upload);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    bool is_stdout = strcmp(cli->args[1], "-") == 0;
    FILE *to = is_stdout ? stdout : fopen(cli->args[1], "wbxe"); /* never overwrites */
    if (to == NULL) {
        (void)cli_fail_file(cli, "create the file");
        return cli_fail(cli, HEARTH_INVALID_ARGUMENT);
    }
    status = write_parts(cli, upload, to);
    bool failed = is_stdout ? fflush(to) != 0 : fclose(to) != 0;
    if (status == HEARTH_OK && failed) {
        status = cli_fail_file(cli, "write");
    }

    return status == HEARTH_OK ? CLI_OK : cli_fail(cli, status);
}
