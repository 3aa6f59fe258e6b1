/* svc_uploads.c -- hearth.v1.UploadService: files that people upload. */
#include "hearth/pb/hearth/v1/uploads.pb-c.h"

#include "handlers.h"
#include "rpc/unary.h"
#include "uploads/upload_messages.h"

/* Bytes that are not copied. The answer is only read, but protobuf-c has no const bytes. */
static ProtobufCBinaryData borrow_part(struct hearth_str bytes)
{
    ProtobufCBinaryData borrowed = {.len = bytes.n};
    memcpy(&borrowed.data, &bytes.p, sizeof borrowed.data);
    return borrowed;
}

/* ---- messages ---- */

HEARTH_MAP_TYPES(property, struct hearth_property, Types__V1__LabelPair);
static const struct hearth_message_member property_members[] = {
    HEARTH_MAP(property, name, name),
    HEARTH_MAP(property, value, value),
};
static const struct hearth_message_map property_map =
    HEARTH_MESSAGE_MAP(property, types__v1__label_pair__descriptor);

static void fill_computed(struct hearth_rpc *rpc, const void *from, void *message)
{
    static const Hearth__V1__UploadState states[] = {
        [HEARTH_PROFILE_UPLOAD_RECEIVING] = HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_RECEIVING,
        [HEARTH_PROFILE_UPLOAD_QUEUED] = HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_QUEUED,
        [HEARTH_PROFILE_UPLOAD_PARSING] = HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_PARSING,
        [HEARTH_PROFILE_UPLOAD_DONE] = HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_DONE,
        [HEARTH_PROFILE_UPLOAD_FAILED] = HEARTH__V1__UPLOAD_STATE__UPLOAD_STATE_FAILED,
    };
    const struct hearth_profile_upload *upload = from;
    Hearth__V1__UploadedFile *out = message;

    (void)rpc;
    assert((size_t)upload->state < HEARTH_ARRAY_LEN(states));
    out->state = states[upload->state];
    out->parts = hearth_profile_upload_n_parts(upload);
}

HEARTH_MAP_TYPES(upload, struct hearth_profile_upload, Hearth__V1__UploadedFile);
static const struct hearth_message_member upload_members[] = {
    HEARTH_MAP(upload, upload_id, upload_id),
    HEARTH_MAP(upload, file_name, file_name),
    HEARTH_MAP(upload, reason, reason),
    HEARTH_MAP(upload, n_bytes, size_bytes),
    HEARTH_MAP(upload, part_bytes, part_bytes),
    HEARTH_MAP(upload, n_received_bytes, received_bytes),
    HEARTH_MAP(upload, sha256, sha256),
    HEARTH_MAP(upload, format, format),
    HEARTH_MAP_LIST(upload, labels, n_labels, labels, &property_map),
    HEARTH_MAP_MS(upload, from_ns, from_ms),
    HEARTH_MAP_MS(upload, until_ns, until_ms),
    HEARTH_MAP(upload, sample_rate, sample_rate),
    HEARTH_MAP(upload, created_ms, created_ms),
    HEARTH_MAP(upload, queued_ms, queued_ms),
    HEARTH_MAP(upload, ended_ms, ended_ms),
    HEARTH_MAP(upload, n_profiles, profiles),
    HEARTH_MAP(upload, n_samples, samples),
    HEARTH_MAP(upload, n_settled, settled_profiles),
    HEARTH_MAP(upload, n_stored, stored_profiles),
    HEARTH_MAP(upload, n_refused, refused_profiles),
    HEARTH_MAP(upload, dropped, dropped),
};
const struct hearth_message_map hearth_upload_map =
    HEARTH_MESSAGE_MAP_AND(upload, hearth__v1__uploaded_file__descriptor, fill_computed);

static void fill_profile_id(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_profile_upload_result *result = from;
    char text[HEARTH_PROFILE_ID_TEXT + 1];

    if (result->writer_id == 0) {
        return;
    }
    hearth_profile_id_format((struct hearth_profile_id){result->writer_id, result->profile_no},
                             text);
    ((Hearth__V1__UploadResult *)message)->profile_id = hearth_rpc_text(rpc, hearth_str_c(text));
}

HEARTH_MAP_TYPES(result, struct hearth_profile_upload_result, Hearth__V1__UploadResult);
static const struct hearth_message_member result_members[] = {
    HEARTH_MAP(result, profile, profile),
    HEARTH_MAP(result, profile_type, profile_type),
    HEARTH_MAP(result, n_samples, samples),
    HEARTH_MAP(result, total, total),
};
static const struct hearth_message_map result_map =
    HEARTH_MESSAGE_MAP_AND(result, hearth__v1__upload_result__descriptor, fill_profile_id);

static void fill_upload(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_upload_details *details = from;
    hearth_rpc_map_into(rpc, &hearth_upload_map, &details->upload, message);
}

HEARTH_MAP_TYPES(details, struct hearth_upload_details, Hearth__V1__UploadedFile);
static const struct hearth_message_member details_members[] = {
    HEARTH_MAP_NUMBERS(details, missing, n_missing, missing_parts),
    HEARTH_MAP_LIST(details, results, n_results, results, &result_map),
};
const struct hearth_message_map hearth_upload_details_map =
    HEARTH_MESSAGE_MAP_AND(details, hearth__v1__uploaded_file__descriptor, fill_upload);

/* ---- uploading ---- */

/* Milliseconds as nanoseconds; the nearest value if there is none. */
static int64_t read_ms(int64_t ms)
{
    int64_t ns;
    return __builtin_mul_overflow(ms, HEARTH_NS_PER_MS, &ns) ? INT64_MAX : ns;
}

static enum hearth_status read_upload_labels(struct hearth_rpc *rpc,
                                             const Hearth__V1__CreateUploadRequest *in,
                                             struct hearth_profile_upload *upload)
{
    upload->labels = hearth_arena_array(&rpc->arena, in->n_labels, sizeof *upload->labels);
    if (upload->labels == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_labels; i++) {
        upload->labels[i] = (struct hearth_property){hearth_str_c(in->labels[i]->name),
                                                     hearth_str_c(in->labels[i]->value)};
    }
    upload->n_labels = in->n_labels;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_upload_create, Hearth__V1__CreateUploadRequest, Hearth__V1__UploadedFile)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_upload upload = {
        .file_name = hearth_str_c(in->file_name),
        .format = hearth_str_c(in->format),
        .from_ns = read_ms(in->from_ms),
        .until_ns = read_ms(in->until_ms),
        .sample_rate = in->sample_rate,
        .n_bytes = in->size_bytes,
        .part_bytes = in->part_bytes,
        .sha256 = hearth_str_c(in->sha256),
        .dropped = HEARTH_STR(""),
        .reason = HEARTH_STR(""),
    };

    HEARTH_TRY(read_upload_labels(rpc, in, &upload));
    HEARTH_TRY(hearth_upload_create(&call, &upload, &rpc->err));
    hearth_rpc_map_into(rpc, &hearth_upload_map, &upload, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_upload_put_part, Hearth__V1__PutPartRequest, Hearth__V1__PutPartResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);

    return hearth_upload_put_part(&call, hearth_str_c(in->upload_id), in->part,
                                  hearth_str_n((const char *)in->data.data, in->data.len),
                                  hearth_str_c(in->sha256), &rpc->err);
}

HEARTH_UNARY(hearth_svc_upload_finish, Hearth__V1__FinishUploadRequest, Hearth__V1__UploadedFile)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_upload upload;

    HEARTH_TRY(hearth_upload_finish(&call, hearth_str_c(in->upload_id), hearth_str_c(in->sha256),
                                    &upload, &rpc->err));
    hearth_rpc_map_into(rpc, &hearth_upload_map, &upload, out);

    return HEARTH_OK;
}

/* ---- reading ---- */

HEARTH_UNARY(hearth_svc_upload_get, Hearth__V1__GetUploadedFileRequest, Hearth__V1__UploadedFile)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_upload_details details;

    HEARTH_TRY(hearth_upload_get(&call, hearth_str_c(in->upload_id), &details, &rpc->err));
    hearth_rpc_map_into(rpc, &hearth_upload_details_map, &details, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_upload_list, Hearth__V1__ListUploadedFilesRequest,
             Hearth__V1__ListUploadedFilesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_upload *uploads;
    size_t n;

    HEARTH_TRY(hearth_upload_list(&call, &uploads, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &hearth_upload_map, uploads, n, out, uploads);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_upload_read_part, Hearth__V1__ReadPartRequest, Hearth__V1__ReadPartResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_upload upload;
    struct hearth_buf bytes;

    if (in->part < 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "part is %d", in->part);
    }

    /* The bytes live in the arena until the answer is encoded. */
    hearth_buf_init(&bytes, 0);
    bytes.budget = rpc->arena.budget;
    enum hearth_status status = hearth_upload_read(&call, hearth_str_c(in->upload_id), in->part,
                                                   &upload, &bytes, &rpc->err);
    if (status == HEARTH_OK) {
        struct hearth_str copy = hearth_arena_str(&rpc->arena, hearth_buf_view(&bytes));
        out->data = borrow_part(copy);
        status = copy.p == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
    }
    hearth_buf_release(&bytes);

    return status;
}

HEARTH_UNARY(hearth_svc_upload_delete, Hearth__V1__DeleteUploadRequest,
             Hearth__V1__DeleteUploadResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);

    return hearth_upload_delete(&call, hearth_str_c(in->upload_id), &rpc->err);
}
