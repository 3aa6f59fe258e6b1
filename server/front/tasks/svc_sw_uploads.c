/*
 * svc_sw_uploads.c -- files of SkyWalking's agents: skywalking.v10.PprofTask and AsyncProfilerTask,
 * and skywalking.v3.ProfileTask/goProfileReport.
 *
 * In v10, the client first sends metadata, which are answered, and then the content in pieces until
 * it ends its stream. A complete file is stored, and an entry is added to the log of its task. A
 * failure that the agent reports is added to that log, too.
 */
#include "hearth/base/mem.h"
#include "hearth/engine/task_uploads.h"
#include "hearth/pb/skywalking/v10/async_profiler.pb-c.h"
#include "hearth/pb/skywalking/v10/pprof.pb-c.h"
#include "hearth/pb/skywalking/v3/profile.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

#include <assert.h>

#define MAX_NAME_BYTES  1024
#define MAX_ERROR_BYTES 1024 /* longest error text of an agent that is logged */
#define MAX_GO_TASKS    16   /* limit of incomplete files of one stream */

/* Numbers that both services use for the same status. */
enum {
    STATUS_SUCCESS,
    STATUS_ERROR,
    STATUS_OVERSIZE
};

/* The fields of a message of either service. */
struct piece {
    bool has_metadata;
    struct hearth_str service, instance, task_id;
    int type;
    int64_t content_size;
    struct hearth_str error, content; /* p is NULL if the message has no such field */
};

enum upload_state {
    UPLOAD_NEW,     /* no valid metadata yet */
    UPLOAD_CONTENT, /* metadata accepted; content is expected */
    UPLOAD_REFUSED, /* the file is too large */
    UPLOAD_FAILED   /* the agent reported an error */
};

struct upload {
    enum upload_state state;
    const char *format;
    struct hearth_arena names;
    struct hearth_str service, instance, task_id, error;
    int64_t content_size;
    struct hearth_buf content;
};

static void free_upload(void *session)
{
    struct upload *upload = session;

    hearth_arena_release(&upload->names);
    hearth_buf_release(&upload->content);
    hearth_mem_free(upload);
}

static enum hearth_status open_upload(struct hearth_rpc *rpc, const char *format)
{
    assert(rpc->session == NULL && format != NULL);
    struct upload *upload = hearth_mem_zalloc(sizeof *upload);
    if (upload == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for an upload");
    }

    upload->format = format;
    hearth_arena_init(&upload->names, 0);
    hearth_buf_init(&upload->content, 0);
    upload->content.budget = rpc->front->options.push_memory;
    rpc->session = upload;
    rpc->free_session = free_upload;
    rpc->max_wait_ns =
        rpc->front->options.default_deadline_ns; /* the session may hold a whole file */

    return HEARTH_OK;
}

static enum hearth_status check_upload_name(struct hearth_rpc *rpc, const char *what,
                                            struct hearth_str name)
{
    if (name.n == 0 || name.n > MAX_NAME_BYTES) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "%s of an upload has %zu bytes; it must have 1 to %d", what, name.n,
                           MAX_NAME_BYTES);
    }

    return HEARTH_OK;
}

/* ---- the log of the task ---- */

static enum hearth_status add_upload_log(struct hearth_rpc *rpc, const struct upload *upload,
                                         enum hearth_upload_event event, struct hearth_str message)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_task_upload_log(&call, upload->task_id, upload->instance, event, message,
                                  &rpc->err);
}

/* ---- pieces ---- */

static enum hearth_status take_metadata(struct hearth_rpc *rpc, const struct piece *piece)
{
    struct upload *upload = rpc->session;
    assert(upload != NULL && piece->has_metadata);

    if (upload->state != UPLOAD_NEW) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "an upload has metadata twice");
    }

    /* The names live as long as the stream. */
    HEARTH_TRY(check_upload_name(rpc, "service", piece->service));
    HEARTH_TRY(check_upload_name(rpc, "serviceInstance", piece->instance));
    HEARTH_TRY(check_upload_name(rpc, "taskId", piece->task_id));
    upload->service = hearth_arena_str(&upload->names, piece->service);
    upload->instance = hearth_arena_str(&upload->names, piece->instance);
    upload->task_id = hearth_arena_str(&upload->names, piece->task_id);
    upload->content_size = piece->content_size;

    return upload->names.refused ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &upload->names)
                                 : HEARTH_OK;
}

/* Refuses a file that is too large, by the agent's own status or by the announced size. */
static enum hearth_status refuse_size(struct hearth_rpc *rpc, int64_t max_bytes)
{
    struct upload *upload = rpc->session;
    assert(upload->state == UPLOAD_NEW);

    char *message = hearth_arena_printf(
        &rpc->arena, "the file has %lld bytes; max-task-upload-bytes allows %lld",
        (long long)upload->content_size, (long long)max_bytes);
    if (message == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    upload->state = UPLOAD_REFUSED;

    return add_upload_log(rpc, upload, HEARTH_UPLOAD_TOO_LARGE, hearth_str_c(message));
}

/* Takes metadata. *ret_status is the status to answer. */
static enum hearth_status begin_upload(struct hearth_rpc *rpc, const struct piece *piece,
                                       int *ret_status)
{
    struct upload *upload = rpc->session;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_limits limits;

    /* The task must wait for this file. */
    HEARTH_TRY(take_metadata(rpc, piece));
    HEARTH_TRY(hearth_task_upload_expected(&call, upload->task_id, upload->service,
                                           upload->instance, &rpc->err));
    hearth_query_tenant_limits(rpc->front->query, hearth_rpc_tenant(rpc), &limits);

    int64_t max_bytes = limits.max_task_upload_bytes;

    /* The agent says whether it has a file. */
    *ret_status = piece->type;

    switch (piece->type) {
    case STATUS_ERROR:
        upload->state = UPLOAD_FAILED;
        return HEARTH_OK;
    case STATUS_OVERSIZE:
        return refuse_size(rpc, max_bytes);
    case STATUS_SUCCESS:
        break;
    default:
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "type %d of an upload is not known",
                           piece->type);
    }

    /* It does; its size must be allowed. */
    if (max_bytes > 0 && piece->content_size > max_bytes) {
        *ret_status = STATUS_OVERSIZE;
        return refuse_size(rpc, max_bytes);
    }

    if (piece->content_size <= 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "contentSize of an upload is %lld",
                           (long long)piece->content_size);
    }

    upload->state = UPLOAD_CONTENT;

    return HEARTH_OK;
}

static enum hearth_status take_content(struct hearth_rpc *rpc, struct hearth_str content)
{
    struct upload *upload = rpc->session;

    if (upload->state != UPLOAD_CONTENT) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           upload->state == UPLOAD_NEW ? "an upload has content before its metadata"
                                                       : "an upload has content after its refusal");
    }

    assert(upload->content_size > 0 && upload->content.n <= (uint64_t)upload->content_size);
    if (content.n > (uint64_t)upload->content_size - upload->content.n) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "an upload has more bytes than its contentSize, %lld",
                           (long long)upload->content_size);
    }

    hearth_buf_str(&upload->content, content);

    return hearth_buf_failed(&upload->content)
               ? (enum hearth_status)HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE,
                                                 "no memory for an upload now; send it again later")
               : HEARTH_OK;
}

static enum hearth_status take_error(struct hearth_rpc *rpc, struct hearth_str error)
{
    struct upload *upload = rpc->session;
    size_t n = error.n < MAX_ERROR_BYTES ? error.n : MAX_ERROR_BYTES;

    while (n > 0 && n < error.n && ((unsigned char)error.p[n] & 0xc0) == 0x80) {
        n--; /* do not cut within a UTF-8 character */
    }

    upload->error = hearth_arena_str(&upload->names, hearth_str_n(error.p, n));

    return upload->error.p == NULL
               ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &upload->names)
               : HEARTH_OK;
}

/* Handles a message. *ret_status is the status to answer, or -1 if no answer is sent. */
static enum hearth_status take_piece(struct hearth_rpc *rpc, const struct piece *piece,
                                     int *ret_status)
{
    *ret_status = -1;

    if (piece->has_metadata) {
        HEARTH_TRY(begin_upload(rpc, piece, ret_status));
    }

    if (piece->error.p != NULL) {
        HEARTH_TRY(take_error(rpc, piece->error));
    }

    return piece->content.n > 0 ? take_content(rpc, piece->content) : HEARTH_OK;
}

/* ---- the end ---- */

static enum hearth_status store_upload(struct hearth_rpc *rpc, struct upload *upload)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    const struct hearth_upload_spec spec = {
        .task_id = upload->task_id,
        .service = upload->service,
        .instance = upload->instance,
        .format = upload->format,
        .content = hearth_buf_view(&upload->content),
    };
    assert(upload->state == UPLOAD_CONTENT);

    if (upload->content.n != (uint64_t)upload->content_size) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "an upload ended after %zu of %lld bytes", upload->content.n,
                           (long long)upload->content_size);
    }

    HEARTH_TRY(hearth_task_upload(&call, rpc->front->ingest, &spec, &rpc->err));

    return add_upload_log(rpc, upload, HEARTH_UPLOAD_FINISHED, HEARTH_STR(""));
}

/* Logs the failure that the agent reported. */
static enum hearth_status log_failure(struct hearth_rpc *rpc, const struct upload *upload)
{
    assert(upload->state == UPLOAD_FAILED);
    const char *message =
        upload->error.n > 0 ? hearth_arena_printf(&rpc->arena, "the agent reported an error: %.*s",
                                                  (int)upload->error.n, upload->error.p)
                            : "the agent reported a failure without a reason";
    return message == NULL
               ? (enum hearth_status)HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
               : add_upload_log(rpc, upload, HEARTH_UPLOAD_FAILED, hearth_str_c(message));
}

static enum hearth_status end_upload(struct hearth_rpc *rpc)
{
    struct upload *upload = rpc->session;
    if (upload == NULL) {
        return HEARTH_OK; /* the stream had no message */
    }

    switch (upload->state) {
    case UPLOAD_CONTENT:
        return store_upload(rpc, upload);
    case UPLOAD_FAILED:
        return log_failure(rpc, upload);
    default:
        return HEARTH_OK;
    }
}

/* ---- pprof ---- */

static enum hearth_status answer_pprof_status(struct hearth_rpc *rpc, int status)
{
    Skywalking__V10__PprofCollectionResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    assert(status >= STATUS_SUCCESS && status <= STATUS_OVERSIZE);

    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    skywalking__v10__pprof_collection_response__init(out);
    out->status = (Skywalking__V10__PprofProfilingStatus)status;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

static enum hearth_status take_pprof(struct hearth_rpc *rpc)
{
    const Skywalking__V10__PprofData *in = (const Skywalking__V10__PprofData *)rpc->request;
    struct piece piece = {0};
    int status;

    if (in->metadata != NULL) {
        piece.has_metadata = true;
        piece.service = hearth_str_c(in->metadata->service);
        piece.instance = hearth_str_c(in->metadata->serviceinstance);
        piece.task_id = hearth_str_c(in->metadata->taskid);
        piece.type = (int)in->metadata->type;
        piece.content_size = in->metadata->contentsize;
    }

    if (in->result_case == SKYWALKING__V10__PPROF_DATA__RESULT_ERROR_MESSAGE) {
        piece.error = hearth_str_c(in->errormessage);
    } else if (in->result_case == SKYWALKING__V10__PPROF_DATA__RESULT_CONTENT) {
        piece.content = hearth_str_n((const char *)in->content.data, in->content.len);
    }

    HEARTH_TRY(rpc->session == NULL ? open_upload(rpc, HEARTH_UPLOAD_PPROF) : HEARTH_OK);
    HEARTH_TRY(take_piece(rpc, &piece, &status));

    return status >= 0 ? answer_pprof_status(rpc, status) : HEARTH_OK;
}

/* Finishes a run. The refusal of an upload is reported in its task. */
static void finish_upload_run(struct hearth_rpc *rpc, enum hearth_status status)
{
    const struct upload *upload = rpc->session;

    if (status == HEARTH_INVALID_ARGUMENT && upload != NULL && upload->state == UPLOAD_CONTENT) {
        struct hearth_call call = hearth_rpc_call(rpc);
        hearth_task_upload_refused(&call, upload->task_id, upload->instance, &rpc->err);
    }

    hearth_rpc_finish_run(rpc, status);
}

void hearth_svc_sw_collect_pprof(struct hearth_rpc *rpc)
{
    finish_upload_run(rpc, rpc->request == NULL ? end_upload(rpc) : take_pprof(rpc));
}

/* ---- async-profiler ---- */

static enum hearth_status answer_async_status(struct hearth_rpc *rpc, int type)
{
    Skywalking__V10__AsyncProfilerCollectionResponse *out =
        hearth_arena_alloc(&rpc->arena, sizeof *out);
    assert(type >= STATUS_SUCCESS && type <= STATUS_OVERSIZE);

    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    skywalking__v10__async_profiler_collection_response__init(out);
    out->type = (Skywalking__V10__AsyncProfilingStatus)type;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

static enum hearth_status take_async(struct hearth_rpc *rpc)
{
    const Skywalking__V10__AsyncProfilerData *in =
        (const Skywalking__V10__AsyncProfilerData *)rpc->request;
    struct piece piece = {0};
    int status;

    if (in->metadata != NULL) {
        piece.has_metadata = true;
        piece.service = hearth_str_c(in->metadata->service);
        piece.instance = hearth_str_c(in->metadata->serviceinstance);
        piece.task_id = hearth_str_c(in->metadata->taskid);
        piece.type = (int)in->metadata->type;
        piece.content_size = in->metadata->contentsize;
    }

    if (in->result_case == SKYWALKING__V10__ASYNC_PROFILER_DATA__RESULT_ERROR_MESSAGE) {
        piece.error = hearth_str_c(in->errormessage);
    } else if (in->result_case == SKYWALKING__V10__ASYNC_PROFILER_DATA__RESULT_CONTENT) {
        piece.content = hearth_str_n((const char *)in->content.data, in->content.len);
    }

    HEARTH_TRY(rpc->session == NULL ? open_upload(rpc, HEARTH_UPLOAD_JFR) : HEARTH_OK);
    HEARTH_TRY(take_piece(rpc, &piece, &status));

    /* An agent that reports an error does not wait for an answer. */
    return status >= 0 && status != STATUS_ERROR ? answer_async_status(rpc, status) : HEARTH_OK;
}

void hearth_svc_sw_collect_async_profiler(struct hearth_rpc *rpc)
{
    finish_upload_run(rpc, rpc->request == NULL ? end_upload(rpc) : take_async(rpc));
}

/* ---- Go profiles of trace tasks ---- */

/* Incomplete files, by task. */
struct go_session {
    struct {
        char *task_id; /* NULL if the slot is free; owned */
        struct hearth_buf payload;
    } tasks[MAX_GO_TASKS];
};

static void free_go_session(void *session)
{
    struct go_session *go = session;
    for (size_t i = 0; i < MAX_GO_TASKS; i++) {
        hearth_mem_free(go->tasks[i].task_id);
        hearth_buf_release(&go->tasks[i].payload);
    }

    hearth_mem_free(go);
}

/*
 * Finds the slot of a task, or takes a free slot. A task that takes a slot must have been sent to
 * an agent.
 */
static enum hearth_status find_go_slot(struct hearth_rpc *rpc, const char *task_id, size_t *ret)
{
    struct go_session *go = rpc->session;
    struct hearth_call call = hearth_rpc_call(rpc);
    size_t free_place = MAX_GO_TASKS;
    assert(go != NULL);

    /* The slot of the task, otherwise a free one. */
    for (size_t i = 0; i < MAX_GO_TASKS; i++) {
        if (go->tasks[i].task_id == NULL) {
            free_place = i;
        } else if (strcmp(go->tasks[i].task_id, task_id) == 0) {
            *ret = i;
            return HEARTH_OK;
        }
    }

    if (free_place == MAX_GO_TASKS) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "a stream has incomplete profiles of more than %d tasks", MAX_GO_TASKS);
    }

    HEARTH_TRY(hearth_task_upload_expected(&call, hearth_str_c(task_id), HEARTH_STR(""),
                                           HEARTH_STR(""), &rpc->err));

    /* Take the free slot. */
    size_t n = strlen(task_id) + 1;
    go->tasks[free_place].task_id = hearth_mem_alloc(n);
    if (go->tasks[free_place].task_id == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a profile");
    }

    memcpy(go->tasks[free_place].task_id, task_id, n);
    hearth_buf_init(&go->tasks[free_place].payload, 0);
    go->tasks[free_place].payload.budget = rpc->front->options.push_memory;
    *ret = free_place;

    return HEARTH_OK;
}

static enum hearth_status store_go_profile(struct hearth_rpc *rpc, size_t place)
{
    struct go_session *go = rpc->session;
    struct hearth_call call = hearth_rpc_call(rpc);
    assert(place < MAX_GO_TASKS && go->tasks[place].task_id != NULL);

    const struct hearth_upload_spec spec = {
        .task_id = hearth_str_c(go->tasks[place].task_id),
        .format = HEARTH_UPLOAD_PPROF,
        .content = hearth_buf_view(&go->tasks[place].payload),
    };
    enum hearth_status status = hearth_task_upload(&call, rpc->front->ingest, &spec, &rpc->err);

    hearth_mem_free(go->tasks[place].task_id);
    go->tasks[place].task_id = NULL;
    hearth_buf_release(&go->tasks[place].payload);

    return status;
}

static enum hearth_status take_go_piece(struct hearth_rpc *rpc)
{
    const Skywalking__V3__GoProfileData *in = (const Skywalking__V3__GoProfileData *)rpc->request;
    struct hearth_limits limits;
    size_t place;

    /* The name of the task. */
    if (in->taskid[0] == '\0') {
        return HEARTH_OK; /* the task of this profile is unknown, so it is ignored */
    }

    HEARTH_TRY(check_upload_name(rpc, "taskId", hearth_str_c(in->taskid)));

    /* The session, from the first piece on. */
    if (rpc->session == NULL) {
        rpc->session = hearth_mem_zalloc(sizeof(struct go_session));
        rpc->free_session = free_go_session;
        if (rpc->session == NULL) {
            return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a profile");
        }
    }

    /* Add the piece to the others of its file. */
    HEARTH_TRY(find_go_slot(rpc, in->taskid, &place));

    struct hearth_buf *payload = &((struct go_session *)rpc->session)->tasks[place].payload;

    hearth_query_tenant_limits(rpc->front->query, hearth_rpc_tenant(rpc), &limits);
    if (limits.max_task_upload_bytes > 0 &&
        payload->n + in->payload.len > (uint64_t)limits.max_task_upload_bytes) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "a profile of task %.128s has more than %lld bytes "
                           "(max-task-upload-bytes)",
                           in->taskid, (long long)limits.max_task_upload_bytes);
    }

    hearth_buf_append(payload, in->payload.data, in->payload.len);
    if (hearth_buf_failed(payload)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE,
                           "no memory for a profile now; send it again later");
    }

    return in->islast ? store_go_profile(rpc, place) : HEARTH_OK;
}

/* The stream lasts as long as its agent, so a file is stored when its last piece has arrived. */
void hearth_svc_sw_go_profile(struct hearth_rpc *rpc)
{
    enum hearth_status status = rpc->request == NULL ? HEARTH_OK : take_go_piece(rpc);
    if (status == HEARTH_INVALID_ARGUMENT) {
        const Skywalking__V3__GoProfileData *in =
            (const Skywalking__V3__GoProfileData *)rpc->request;
        struct hearth_call call = hearth_rpc_call(rpc);
        hearth_task_upload_refused(&call, hearth_str_c(in->taskid), HEARTH_STR(""), &rpc->err);
    }

    hearth_rpc_finish_run(rpc, status);
}
