/*
 * http_uploads.c -- /api/v1/uploads: uploads by plain HTTP.
 *
 * A file in one request is the body, or a file of a form. What the person says about it are
 * arguments of the URL, or fields of the form, which win. A large file is announced by a request
 * without a body and with its size; its parts are bodies of further requests.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/pb.h"
#include "hearth/format/ingest_name.h"
#include "hearth/format/ingest_types.h"
#include "hearth/format/multipart.h"
#include "hearth/pb/hearth/v1/uploads.pb-c.h"
#include "hearth/selector/timeexpr.h"

#include "handlers.h"
#include "http/http_call.h"
#include "rpc/audit_request.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"
#include "uploads/upload_messages.h"

#include <assert.h>

/* An upload as the request describes it. */
struct upload_request {
    struct hearth_rpc *rpc;
    struct hearth_multipart form; /* empty if the body is none */
    struct hearth_str file;       /* the bytes; empty: they follow in parts */
    struct hearth_profile_upload upload;
};

/* ---- answers ---- */

static enum hearth_status answer_json(struct hearth_rpc *rpc, const ProtobufCMessage *message)
{
    rpc->http->answer_type = "application/json";
    hearth_pb_to_json(message, &rpc->packed);
    hearth_buf_byte(&rpc->packed, '\n');

    return hearth_buf_failed(&rpc->packed) || rpc->arena.refused
               ? HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for the answer")
               : HEARTH_OK;
}

static enum hearth_status answer_upload(struct hearth_rpc *rpc,
                                        const struct hearth_profile_upload *upload)
{
    Hearth__V1__UploadedFile message = HEARTH__V1__UPLOADED_FILE__INIT;

    hearth_rpc_map_into(rpc, &hearth_upload_map, upload, &message);

    return answer_json(rpc, &message.base);
}

/* ---- arguments ---- */

/* The field of the form, or else the argument of the URL; .p is NULL if there is neither. */
static struct hearth_str find_value(const struct upload_request *u, const char *name)
{
    for (size_t i = 0; i < u->form.n_fields; i++) {
        if (hearth_str_eq_c(u->form.fields[i].name, name)) {
            return u->form.fields[i].value;
        }
    }
    return hearth_http_arg(u->rpc, name);
}

static struct hearth_str find_text(const struct upload_request *u, const char *name)
{
    struct hearth_str value = find_value(u, name);
    return value.p == NULL ? HEARTH_STR("") : value;
}

/* 0 if it is not given. */
static enum hearth_status read_number(const struct upload_request *u, const char *name,
                                      int64_t *ret)
{
    struct hearth_str text = find_text(u, name);

    *ret = 0;
    if (text.n > 0 && (!hearth_str_to_i64(text, ret) || *ret < 0)) {
        return HEARTH_FAIL(&u->rpc->err, HEARTH_INVALID_ARGUMENT,
                           "%s \"" HEARTH_STR_FMT "\" is not a number", name, HEARTH_STR_ARG(text));
    }

    return HEARTH_OK;
}

static enum hearth_status read_upload_time(const struct upload_request *u, const char *name,
                                           int64_t *ret)
{
    struct hearth_str text = find_text(u, name);
    bool understood = true;

    *ret = 0;
    if (text.n > 0) {
        *ret = hearth_attime_parse(text, hearth_clock_wall_ns(), &understood);
    }

    return understood
               ? HEARTH_OK
               : HEARTH_FAIL(&u->rpc->err, HEARTH_INVALID_ARGUMENT,
                             "%s \"" HEARTH_STR_FMT "\" is not a time", name, HEARTH_STR_ARG(text));
}

/* Adds NAME=VALUE. The array has room. */
static enum hearth_status add_label(struct upload_request *u, struct hearth_str text)
{
    struct hearth_profile_upload *upload = &u->upload;
    size_t eq = hearth_str_find(text, '=', 0);

    if (eq == 0 || eq >= text.n) {
        return HEARTH_FAIL(&u->rpc->err, HEARTH_INVALID_ARGUMENT,
                           "label \"" HEARTH_STR_FMT "\" is not NAME=VALUE", HEARTH_STR_ARG(text));
    }
    upload->labels[upload->n_labels++] = (struct hearth_property){
        hearth_str_n(text.p, eq), hearth_str_n(text.p + eq + 1, text.n - eq - 1)};

    return HEARTH_OK;
}

/* `label`, repeated, and `service`. */
static enum hearth_status read_labels(struct upload_request *u)
{
    const struct hearth_http_call *http = u->rpc->http;
    struct hearth_profile_upload *upload = &u->upload;
    size_t n = u->form.n_fields + http->n_args + 1;

    upload->labels = hearth_arena_array(&u->rpc->arena, n, sizeof *upload->labels);
    if (upload->labels == NULL) {
        return HEARTH_FAIL_ARENA(&u->rpc->err, &u->rpc->arena);
    }

    for (size_t i = 0; i < u->form.n_fields; i++) {
        if (hearth_str_eq_c(u->form.fields[i].name, "label")) {
            HEARTH_TRY(add_label(u, u->form.fields[i].value));
        }
    }
    for (size_t i = 0; i < http->n_args; i++) {
        if (hearth_str_eq_c(http->args[i].name, "label")) {
            HEARTH_TRY(add_label(u, http->args[i].value));
        }
    }

    struct hearth_str service = find_text(u, "service");
    if (service.n > 0) {
        upload->labels[upload->n_labels++] =
            (struct hearth_property){HEARTH_STR("service_name"), service};
    }
    assert(upload->n_labels <= n);

    return HEARTH_OK;
}

static enum hearth_status read_description(struct upload_request *u)
{
    struct hearth_profile_upload *upload = &u->upload;
    int64_t part_bytes;

    HEARTH_TRY(read_labels(u));
    HEARTH_TRY(read_upload_time(u, "from", &upload->from_ns));
    HEARTH_TRY(read_upload_time(u, "until", &upload->until_ns));
    HEARTH_TRY(read_number(u, "sample_rate", &upload->sample_rate));
    HEARTH_TRY(read_number(u, "size", &upload->n_bytes));
    HEARTH_TRY(read_number(u, "part_bytes", &part_bytes));
    upload->part_bytes = part_bytes > INT32_MAX ? INT32_MAX : (int32_t)part_bytes;
    upload->format = find_text(u, "format");
    upload->sha256 = find_text(u, "sha256");
    struct hearth_str name = find_text(u, "name");
    upload->file_name = name.n > 0 ? name : upload->file_name;

    return HEARTH_OK;
}

/* The file of a form, or the body. */
static enum hearth_status read_file(struct upload_request *u)
{
    struct hearth_rpc *rpc = u->rpc;

    u->upload.file_name = u->upload.dropped = u->upload.reason = HEARTH_STR("");
    if (rpc->http->content_encoding.n > 0 &&
        !hearth_str_eq_nocase(rpc->http->content_encoding, HEARTH_STR("identity"))) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "uploads take no Content-Encoding: the stored bytes are those of the "
                           "body");
    }
    if (hearth_ingest_format_of(HEARTH_STR(""), rpc->http->content_type) !=
        HEARTH_INGEST_MULTIPART) {
        u->file = rpc->body;
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_multipart_parse(rpc->http->content_type, rpc->body, &u->form, &rpc->err));
    if (u->form.n_files > 1) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "the form has %zu files; upload one at a time", u->form.n_files);
    }
    if (u->form.n_files == 1) {
        u->file = u->form.files[0].body;
        u->upload.file_name = u->form.files[0].filename;
        if (u->file.n == 0) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "the file is empty");
        }
    }

    return HEARTH_OK;
}

/* ---- routes ---- */

static enum hearth_status create_upload(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct upload_request *u = hearth_arena_zalloc(&rpc->arena, sizeof *u);
    if (u == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    u->rpc = rpc;
    HEARTH_TRY(read_file(u));
    HEARTH_TRY(read_description(u));
    if (u->file.n == 0 && u->upload.n_bytes == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "there is no file; send it as the body or in a form, or announce its "
                           "size (size=BYTES) and send it in parts");
    }
    HEARTH_TRY(u->file.n > 0 ? hearth_upload_file(&call, &u->upload, u->file, &rpc->err)
                             : hearth_upload_create(&call, &u->upload, &rpc->err));

    return answer_upload(rpc, &u->upload);
}

static enum hearth_status show_uploads(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_str id = hearth_http_arg(rpc, "id");

    if (id.n > 0) {
        Hearth__V1__UploadedFile message = HEARTH__V1__UPLOADED_FILE__INIT;
        struct hearth_upload_details details;
        HEARTH_TRY(hearth_upload_get(&call, id, &details, &rpc->err));
        hearth_rpc_map_into(rpc, &hearth_upload_details_map, &details, &message);
        return answer_json(rpc, &message.base);
    }

    Hearth__V1__ListUploadedFilesResponse message = HEARTH__V1__LIST_UPLOADED_FILES_RESPONSE__INIT;
    struct hearth_profile_upload *uploads;
    size_t n;
    HEARTH_TRY(hearth_upload_list(&call, &uploads, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &hearth_upload_map, uploads, n, &message, uploads);

    return answer_json(rpc, &message.base);
}

void hearth_http_uploads(struct hearth_rpc *rpc)
{
    bool is_post = hearth_str_eq_c(rpc->http->method, "POST");
    hearth_rpc_end(rpc, is_post ? create_upload(rpc) : show_uploads(rpc));
}

/* The argument `part`; -1 if there is none. */
static enum hearth_status read_part_number(struct hearth_rpc *rpc, int32_t *ret)
{
    struct hearth_str text = hearth_http_arg(rpc, "part");
    int64_t part = -1;

    if (text.p != NULL && (!hearth_str_to_i64(text, &part) || part < 0 || part > INT32_MAX)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "part \"" HEARTH_STR_FMT "\" is not the number of a part",
                           HEARTH_STR_ARG(text));
    }
    *ret = (int32_t)part;

    return HEARTH_OK;
}

static enum hearth_status put_upload_part(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_str sha256 = hearth_http_arg(rpc, "sha256");
    int32_t part;

    HEARTH_TRY(read_part_number(rpc, &part));
    HEARTH_TRY(hearth_upload_put_part(&call, hearth_http_arg(rpc, "id"), part, rpc->body, sha256,
                                      &rpc->err));
    rpc->http->answer_type = "application/json";
    hearth_buf_cstr(&rpc->packed, "{}\n");

    return HEARTH_OK;
}

void hearth_http_upload_part(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, put_upload_part(rpc));
}

static enum hearth_status finish_upload(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_upload upload;

    HEARTH_TRY(hearth_upload_finish(&call, hearth_http_arg(rpc, "id"),
                                    hearth_http_arg(rpc, "sha256"), &upload, &rpc->err));

    return answer_upload(rpc, &upload);
}

void hearth_http_upload_finish(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, finish_upload(rpc));
}

static enum hearth_status delete_upload(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);

    HEARTH_TRY(hearth_upload_delete(&call, hearth_http_arg(rpc, "id"), &rpc->err));
    rpc->http->answer_type = "application/json";
    hearth_buf_cstr(&rpc->packed, "{}\n");

    return HEARTH_OK;
}

/* For the audit log. */
static void name_upload(struct hearth_rpc *rpc)
{
    struct hearth_str id = hearth_http_arg(rpc, "id");
    hearth_rpc_set_object(rpc, "upload " HEARTH_STR_FMT, HEARTH_STR_ARG(id));
}

void hearth_http_upload_delete(struct hearth_rpc *rpc)
{
    name_upload(rpc);
    hearth_rpc_end(rpc, delete_upload(rpc));
}

/* The header that makes browsers save the file; bytes that quoting would need become '_'. */
static void name_download(struct hearth_rpc *rpc, struct hearth_str file_name)
{
    char *value = hearth_arena_printf(&rpc->arena, "attachment; filename=\"" HEARTH_STR_FMT "\"",
                                      HEARTH_STR_ARG(file_name));
    if (value == NULL) {
        return;
    }

    size_t end = strlen(value) - 1;
    for (size_t i = strlen("attachment; filename=\""); i < end; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\' || c == '/') {
            value[i] = '_';
        }
    }
    hearth_rpc_add_header(rpc, "Content-Disposition", value);
}

static enum hearth_status send_original(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_upload upload;
    int32_t part;

    HEARTH_TRY(read_part_number(rpc, &part));
    HEARTH_TRY(hearth_upload_read(&call, hearth_http_arg(rpc, "id"), part, &upload, &rpc->packed,
                                  &rpc->err));
    rpc->http->answer_type = "application/octet-stream";
    name_download(rpc, upload.file_name);

    return HEARTH_OK;
}

void hearth_http_upload_original(struct hearth_rpc *rpc)
{
    name_upload(rpc);
    hearth_rpc_end(rpc, send_original(rpc));
}
