/*
 * task_archive.c -- export and import of tasks for bug reports (contract:
 * hearth/engine/task_archive.h).
 */
#include "hearth/engine/task_archive.h"

#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/task_uploads.h"
#include "hearth/format/task_archive_format.h"
#include "hearth/model/entity_id.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_tasks.h"
#include "hearth/store/task_results.h"

#include "common/shown.h"
#include "select/query_internal.h"
#include "tasks/task_archive_traces.h"
#include "tasks/task_uploads_internal.h"
#include "tasks/tasks_internal.h"

#include <assert.h>
#include <sys/random.h>

#define ZSTD_LEVEL     9
#define MAX_TEXT_BYTES 1024
#define MAX_JSON_BYTES (1 << 20)
#define MAX_TIME_MS    (INT64_MAX / HEARTH_NS_PER_MS / 2)
#define BATCH          200 /* chunks stored per transaction */

/* ---- export ---- */

static struct hearth_archive_list make_archive_list(struct hearth_str *v, size_t n)
{
    return (struct hearth_archive_list){v, n};
}

static void export_task_fields(const struct hearth_task *t, struct hearth_buf *out)
{
    const struct hearth_archive_task task = {
        .texts = {t->task_id, t->service, t->instance, t->process_id, t->process, t->endpoint,
                  t->exec_args, t->sampling, t->causes},
        .numbers = {(int64_t)t->kind, (int64_t)t->origin, t->start_ms, t->duration_ms,
                    t->created_ms, t->cancelled_ms, t->min_duration_ms, t->dump_period_ms,
                    t->max_samples},
        .lists = {make_archive_list(t->labels, t->n_labels),
                  make_archive_list(t->instances, t->n_instances),
                  make_archive_list(t->events, t->n_events)},
    };

    hearth_archive_put_task(&task, out);
}

static enum hearth_status export_logs(const struct hearth_call *call, struct hearth_str task_id,
                                      struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_task_log *logs;
    size_t n;

    HEARTH_TRY(hearth_store_task_logs(HEARTH_CALL_SCOPE(call), &task_id, 1, &logs, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct hearth_archive_log log = {
            .instance = logs[i].instance,
            .process_id = logs[i].process_id,
            .message = logs[i].message,
            .event = (int64_t)logs[i].event,
            .at_ms = logs[i].at_ms,
            .last_at_ms = logs[i].last_at_ms,
        };
        hearth_archive_put_log(&log, out);
    }

    return HEARTH_OK;
}

struct chunk_export {
    const struct hearth_task_schedule *runs;
    struct hearth_buf *out;
    size_t begin; /* position of the first chunk */
    struct hearth_buf chunk;
};

static enum hearth_status restart_chunks(void *context, struct hearth_err *err)
{
    (void)err;
    struct chunk_export *p = context;
    p->out->n = p->begin;
    return HEARTH_OK;
}

static enum hearth_status export_chunk(void *context, const struct hearth_task_schedule *run,
                                       int64_t at_ms, const struct hearth_task_chunk *chunk,
                                       struct hearth_err *err)
{
    struct chunk_export *p = context;

    hearth_buf_reset(&p->chunk);
    hearth_task_chunk_encode(chunk, &p->chunk);
    const struct hearth_archive_chunk archived = {
        .run = (uint64_t)(run - p->runs), .at_ms = at_ms, .bytes = hearth_buf_view(&p->chunk)};
    hearth_archive_put_chunk(&archived, p->out);

    return hearth_buf_failed(&p->chunk) ? (enum hearth_status)HEARTH_FAIL(
                                              err, HEARTH_NO_MEMORY, "no memory to export a task")
                                        : HEARTH_OK;
}

static enum hearth_status export_runs(const struct hearth_call *call, struct hearth_str task_id,
                                      struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_task_schedule *runs;
    size_t n;

    /* Read the runs. */
    const struct hearth_task_schedule_filter of_task = {.task_id = task_id};
    HEARTH_TRY(hearth_store_task_schedules(HEARTH_CALL_SCOPE(call), &of_task, &runs, &n, err));

    /* Write the runs. */
    for (size_t i = 0; i < n; i++) {
        const struct hearth_archive_run run = {
            .process_id = runs[i].process_id,
            .process = runs[i].process,
            .instance = runs[i].instance,
            .start_ms = runs[i].start_ms,
            .end_ms = runs[i].end_ms,
        };
        hearth_archive_put_run(&run, out);
    }

    /* Write their chunks, which refer to runs by index. */
    struct chunk_export p = {.runs = runs, .out = out, .begin = out->n};
    hearth_buf_init(&p.chunk, 0);
    const struct hearth_task_chunk_reader reader = {&p, restart_chunks, export_chunk};
    const struct hearth_task_chunk_filter filter = {.schedules = runs, .n_schedules = n};
    enum hearth_status status =
        hearth_store_task_chunks(HEARTH_CALL_SCOPE(call), &filter, &reader, err);
    hearth_buf_release(&p.chunk);

    return status;
}

static enum hearth_status export_uploads(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_task_upload *uploads;
    size_t n;

    HEARTH_TRY(hearth_task_uploads(call, task_id, &uploads, &n, err));
    for (size_t i = 0; i < n && !hearth_buf_failed(out); i++) {
        struct hearth_task_upload upload;
        HEARTH_TRY(hearth_task_upload_get(call, uploads[i].upload_id, &upload, err));
        const struct hearth_archive_upload archived = {
            .service = upload.service,
            .instance = upload.instance,
            .format = upload.format,
            .received_ms = upload.received_ms,
            .content = upload.content,
        };
        hearth_archive_put_upload(&archived, out);
    }

    return HEARTH_OK;
}

static enum hearth_status pack_archive(const struct hearth_call *call,
                                       const struct hearth_buf *plain, struct hearth_str *ret,
                                       struct hearth_err *err)
{
    struct hearth_buf packed;

    hearth_buf_init(&packed, 0);
    packed.budget = call->arena->budget;
    enum hearth_status status = hearth_zstd(hearth_buf_view(plain), ZSTD_LEVEL, &packed, err);
    if (status == HEARTH_OK) {
        *ret = hearth_arena_str(call->arena, hearth_buf_view(&packed));
        status =
            ret->p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
    }

    hearth_buf_release(&packed);

    return status;
}

static int64_t limit_export_bytes(const struct hearth_call *call, int64_t wanted)
{
    struct hearth_limits limits;
    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    int64_t max = limits.max_task_export_bytes;
    return wanted > 0 && (max <= 0 || wanted < max) ? wanted : max;
}

enum hearth_status hearth_task_export(const struct hearth_call *call, struct hearth_str task_id,
                                      int64_t max_bytes, struct hearth_str *ret,
                                      struct hearth_err *err)
{
    struct hearth_task task;

    assert(call != NULL && ret != NULL);

    /* Find the task and the limit. */
    HEARTH_TRY(hearth_call_find_task(call, task_id, &task, err));
    int64_t max = limit_export_bytes(call, max_bytes);
    struct hearth_buf plain;
    hearth_buf_init(&plain, max > 0 ? (size_t)max : 0);
    plain.budget = call->arena->budget;
    export_task_fields(&task, &plain);
    enum hearth_status status = export_logs(call, task_id, &plain, err);
    if (status == HEARTH_OK) {
        status = export_runs(call, task_id, &plain, err);
    }

    if (status == HEARTH_OK) {
        status = export_uploads(call, task_id, &plain, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_archive_export_traces(call, &task, &plain, err);
    }

    hearth_archive_end(&plain);
    if (status == HEARTH_OK && hearth_buf_failed(&plain)) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the task has more than %lld bytes (max_bytes, "
                             "max-task-export-bytes), or there is no memory for them now",
                             (long long)max);
    }

    if (status == HEARTH_OK) {
        status = pack_archive(call, &plain, ret, err);
    }

    hearth_buf_release(&plain);

    return status;
}

/* ---- import: everything is checked before anything is stored ---- */

static bool is_archive_time(int64_t ms)
{
    return ms >= 0 && ms < MAX_TIME_MS;
}

static bool is_archive_count(int64_t n)
{
    return n >= 0 && n <= INT32_MAX;
}

/*
 * Whether p starts with four hexadecimal digits of a character that the database can store: not
 * NUL, not half of a surrogate pair.
 */
static bool is_text_escape(const char *p, const char *end)
{
    uint64_t code = 0;
    return end - p >= 4 && hearth_str_hex_to_u64(hearth_str_n(p, 4), &code) && code != 0 &&
           (code < 0xd800 || code > 0xdfff);
}

/* Whether the text is empty or one array in brackets. The contents are checked elsewhere. */
static bool is_one_array(struct hearth_str json)
{
    bool in_text = false;
    int64_t depth = 0;
    const char *end = json.p + json.n;

    for (const char *p = json.p; p < end; p++) {
        if (in_text && *p == '\\') {
            if (++p < end && *p == 'u' && !is_text_escape(p + 1, end)) {
                return false;
            }
        } else if (*p == '"') {
            in_text = !in_text;
        } else if (!in_text && (*p == '[' || *p == '{')) {
            depth++;
        } else if (!in_text && (*p == ']' || *p == '}') && --depth == 0 && p + 1 < end) {
            return false;
        }
    }

    return json.n == 0 || (json.n <= MAX_JSON_BYTES && json.p[0] == '[' && end[-1] == ']' &&
                           depth == 0 && !in_text);
}

static enum hearth_status check_archive_json(const struct hearth_archive_task *t,
                                             const struct hearth_task_json_check *check,
                                             struct hearth_err *err)
{
    struct hearth_str sampling = t->texts[HEARTH_ARCHIVE_SAMPLING];
    struct hearth_str causes = t->texts[HEARTH_ARCHIVE_CAUSES];

    if (!is_one_array(sampling) || !is_one_array(causes) ||
        !check->is_shown(check->context, sampling, causes)) {
        return hearth_archive_refuse(err,
                                     "sampling rules or causes of its task are not a valid array");
    }

    return HEARTH_OK;
}

static enum hearth_status check_archive_task(const struct hearth_archive_task *t,
                                             struct hearth_err *err)
{
    const int64_t *n = t->numbers;

    /* Texts have limits of their own. */
    for (size_t i = 0; i < HEARTH_ARCHIVE_SAMPLING; i++) {
        size_t max = i == HEARTH_ARCHIVE_EXEC_ARGS ? HEARTH_TASK_EXEC_ARGS_BYTES : MAX_TEXT_BYTES;
        if (t->texts[i].n > max) {
            return hearth_archive_refuse(err, "a text of the task is too long");
        }
    }

    /* Required texts depend on the kind. */
    if (t->texts[HEARTH_ARCHIVE_SERVICE].n == 0 || n[HEARTH_ARCHIVE_KIND] < HEARTH_TASK_ON_CPU ||
        n[HEARTH_ARCHIVE_KIND] > HEARTH_TASK_PPROF) {
        return hearth_archive_refuse(err, "its task has no service, or is of an unknown kind");
    }

    if (n[HEARTH_ARCHIVE_KIND] == HEARTH_TASK_NETWORK && t->texts[HEARTH_ARCHIVE_INSTANCE].n == 0) {
        return hearth_archive_refuse(err, "its network task has no instance");
    }

    if (n[HEARTH_ARCHIVE_KIND] == HEARTH_TASK_TRACE && t->texts[HEARTH_ARCHIVE_ENDPOINT].n == 0) {
        return hearth_archive_refuse(err, "its trace task has no endpoint");
    }

    /* Numbers must fit their columns. */
    if (!is_archive_time(n[HEARTH_ARCHIVE_START_MS]) || n[HEARTH_ARCHIVE_START_MS] == 0 ||
        !is_archive_time(n[HEARTH_ARCHIVE_DURATION_MS]) || n[HEARTH_ARCHIVE_DURATION_MS] == 0 ||
        !is_archive_count(n[HEARTH_ARCHIVE_MIN_DURATION_MS]) ||
        !is_archive_count(n[HEARTH_ARCHIVE_DUMP_PERIOD_MS]) ||
        !is_archive_count(n[HEARTH_ARCHIVE_MAX_SAMPLES])) {
        return hearth_archive_refuse(err, "a number of its task is out of range");
    }

    return HEARTH_OK;
}

/* Decode a chunk, for the check and for the store. */
static enum hearth_status decode_archive_chunk(const struct hearth_archive_chunk *archived,
                                               struct hearth_arena *arena,
                                               struct hearth_task_chunk *chunk,
                                               struct hearth_err *err)
{
    enum hearth_status status = hearth_task_chunk_decode(archived->bytes, arena, chunk, err);

    if (status != HEARTH_OK) {
        return status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
    }

    if (!is_archive_time(archived->at_ms) || archived->at_ms == 0 || chunk->n_records == 0) {
        return hearth_archive_refuse(err, "a chunk of stack traces is empty or has no time");
    }

    for (uint32_t i = 0; i < chunk->n_strings; i++) {
        if (!hearth_str_utf8_valid(chunk->strings[i])) {
            return hearth_archive_refuse(err, "a symbol is not UTF-8");
        }
    }

    return HEARTH_OK;
}

static enum hearth_status check_archive_parts(const struct hearth_call *call,
                                              const struct hearth_task_archive *a,
                                              struct hearth_err *err)
{
    /* Entries of the log. */
    for (size_t i = 0; i < a->n_logs; i++) {
        const struct hearth_archive_log *log = &a->logs[i];
        if (log->event < HEARTH_TASK_NOTIFIED || log->event > HEARTH_TASK_FAILED ||
            !is_archive_time(log->at_ms) || log->last_at_ms < log->at_ms ||
            !is_archive_time(log->last_at_ms) || log->instance.n > MAX_TEXT_BYTES ||
            log->process_id.n > MAX_TEXT_BYTES) {
            return hearth_archive_refuse(err, "an entry of the log is out of range");
        }
    }

    /* Runs. */
    for (size_t i = 0; i < a->n_runs; i++) {
        const struct hearth_archive_run *run = &a->runs[i];
        if (!is_archive_time(run->start_ms) || run->process_id.n == 0 ||
            run->process_id.n > MAX_TEXT_BYTES) {
            return hearth_archive_refuse(err, "a run has no process, or its start is out of range");
        }
    }

    /* Files; a pprof must decode. */
    for (size_t i = 0; i < a->n_uploads; i++) {
        const struct hearth_archive_upload *upload = &a->uploads[i];
        bool is_pprof = hearth_str_eq_c(upload->format, HEARTH_UPLOAD_PPROF);
        if ((!is_pprof && !hearth_str_eq_c(upload->format, HEARTH_UPLOAD_JFR)) ||
            upload->content.n == 0 || upload->instance.n > MAX_TEXT_BYTES ||
            !is_archive_time(upload->received_ms)) {
            return hearth_archive_refuse(err, "a file is empty, or of an unknown format");
        }
        struct hearth_profile profile;
        struct hearth_pprof_notes notes;
        if (is_pprof) {
            HEARTH_TRY(hearth_upload_decode(call, upload->content, &profile, &notes, err));
        }
    }

    return HEARTH_OK;
}

/* ---- import: storing ---- */

static enum hearth_status make_import_id(struct hearth_arena *arena, int64_t now_ms,
                                         struct hearth_str *ret, struct hearth_err *err)
{
    uint64_t random;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes for an id");
    }

    *ret = hearth_str_c(hearth_arena_printf(arena, "%lld-import-%016llx", (long long)now_ms,
                                            (unsigned long long)random));

    return ret->p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* Store the chunks as flushes of the new task, BATCH per transaction. */
static enum hearth_status store_archive_chunks(const struct hearth_call *call,
                                               const struct hearth_task_archive *a,
                                               const struct hearth_task_chunk *chunks,
                                               const struct hearth_task *task,
                                               struct hearth_err *err)
{
    struct hearth_task_flush flushes[BATCH] = {0};
    struct hearth_entity_hash hash;

    for (size_t from = 0; from < a->n_chunks; from += BATCH) {
        size_t n = a->n_chunks - from < BATCH ? a->n_chunks - from : BATCH;

        /* Make the flushes of a batch. */
        for (size_t i = 0; i < n; i++) {
            const struct hearth_archive_chunk *chunk = &a->chunks[from + i];
            const struct hearth_archive_run *run = &a->runs[chunk->run];
            if (!hearth_schedule_public_id(task->task_id, run->process_id, run->start_ms, &hash)) {
                return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the id of a schedule");
            }

            flushes[i] = (struct hearth_task_flush){
                .task_id = task->task_id,
                .process_id = run->process_id,
                .schedule_id = hearth_arena_str(call->arena, hearth_str_c(hash.text)),
                .start_ms = run->start_ms,
                .at_ms = chunk->at_ms,
                .chunk = &chunks[from + i],
            };
        }

        if (call->arena->refused) {
            return HEARTH_FAIL_ARENA(err, call->arena);
        }

        /* Store them. */
        HEARTH_TRY(hearth_store_task_flushes_put(HEARTH_CALL_SCOPE(call), flushes, n,
                                                 task->service_id, true, err));
    }

    return HEARTH_OK;
}

static enum hearth_status store_archive_uploads(const struct hearth_call *call,
                                                const struct hearth_task_archive *a,
                                                const struct hearth_task *task,
                                                struct hearth_err *err)
{
    for (size_t i = 0; i < a->n_uploads; i++) {
        struct hearth_go_segment *segments = NULL;
        size_t n_segments = 0;
        struct hearth_task_upload upload = {
            .task_id = task->task_id,
            .instance = a->uploads[i].instance,
            .format = a->uploads[i].format,
            .service_id = task->service_id,
            .received_ms = a->uploads[i].received_ms,
            .content = a->uploads[i].content,
            .is_pushed = true,
        };

        if (hearth_str_eq_c(upload.format, HEARTH_UPLOAD_PPROF)) {
            HEARTH_TRY(hearth_upload_segments(call, upload.content, &segments, &n_segments, err));
        }
        HEARTH_TRY(hearth_store_task_upload_put(HEARTH_CALL_SCOPE(call), &upload, segments,
                                                n_segments, err));
    }

    return HEARTH_OK;
}

/* Store the task last: the data that a failed import leaves behind have no task, and expire. */
static enum hearth_status store_archive_task(const struct hearth_call *call,
                                             const struct hearth_task_archive *a,
                                             struct hearth_task *task, struct hearth_err *err)
{
    struct hearth_limits limits;

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    HEARTH_TRY(hearth_store_task_put(HEARTH_CALL_SCOPE(call), task, limits.max_tasks, NULL, err));
    for (size_t i = 0; i < a->n_logs; i++) {
        const struct hearth_task_log log = {
            .instance = a->logs[i].instance,
            .process_id = a->logs[i].process_id,
            .event = (enum hearth_task_event)a->logs[i].event,
            .at_ms = a->logs[i].at_ms,
            .last_at_ms = a->logs[i].last_at_ms,
            .message = a->logs[i].message,
        };
        HEARTH_TRY(
            hearth_store_task_log_add(HEARTH_CALL_SCOPE(call), task->task_id, &log, NULL, err));
    }

    return HEARTH_OK;
}

static void fill_imported_task(const struct hearth_archive_task *t, int64_t now_ms,
                               struct hearth_task *ret)
{
    const int64_t *n = t->numbers;

    *ret = (struct hearth_task){
        .kind = (enum hearth_task_kind)n[HEARTH_ARCHIVE_KIND],
        .origin = HEARTH_TASK_IMPORTED,
        .service = t->texts[HEARTH_ARCHIVE_SERVICE],
        .instance = t->texts[HEARTH_ARCHIVE_INSTANCE],
        .process_id = t->texts[HEARTH_ARCHIVE_PROCESS_ID],
        .process = t->texts[HEARTH_ARCHIVE_PROCESS],
        .labels = t->lists[HEARTH_ARCHIVE_LABELS].v,
        .n_labels = t->lists[HEARTH_ARCHIVE_LABELS].n,
        .instances = t->lists[HEARTH_ARCHIVE_INSTANCES].v,
        .n_instances = t->lists[HEARTH_ARCHIVE_INSTANCES].n,
        .events = t->lists[HEARTH_ARCHIVE_EVENTS].v,
        .n_events = t->lists[HEARTH_ARCHIVE_EVENTS].n,
        .endpoint = t->texts[HEARTH_ARCHIVE_ENDPOINT],
        .exec_args = t->texts[HEARTH_ARCHIVE_EXEC_ARGS],
        .start_ms = n[HEARTH_ARCHIVE_START_MS],
        .duration_ms = n[HEARTH_ARCHIVE_DURATION_MS],
        .created_ms = now_ms,
        .updated_ms = now_ms,
        .min_duration_ms = (int32_t)n[HEARTH_ARCHIVE_MIN_DURATION_MS],
        .dump_period_ms = (int32_t)n[HEARTH_ARCHIVE_DUMP_PERIOD_MS],
        .max_samples = (int32_t)n[HEARTH_ARCHIVE_MAX_SAMPLES],
        .sampling = t->texts[HEARTH_ARCHIVE_SAMPLING],
        .causes = t->texts[HEARTH_ARCHIVE_CAUSES],
    };
}

static enum hearth_status store_archive(const struct hearth_call *call,
                                        const struct hearth_task_archive *a,
                                        const struct hearth_task_json_check *check,
                                        struct hearth_str *ret_task_id, int64_t *ret_n_records,
                                        struct hearth_err *err)
{
    struct hearth_task task;
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    struct hearth_task_chunk *chunks = hearth_arena_array(call->arena, a->n_chunks, sizeof *chunks);

    if (chunks == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Check and decode everything. */
    HEARTH_TRY(check_archive_task(&a->task, err));
    HEARTH_TRY(check_archive_json(&a->task, check, err));
    HEARTH_TRY(check_archive_parts(call, a, err));
    struct hearth_archive_traces traces;
    HEARTH_TRY(hearth_archive_read_traces(call, a, &traces, err));
    *ret_n_records =
        (int64_t)(a->n_logs + a->n_runs + a->n_uploads + a->n_segments) + traces.n_snapshots;
    for (size_t i = 0; i < a->n_chunks; i++) {
        HEARTH_TRY(decode_archive_chunk(&a->chunks[i], call->arena, &chunks[i], err));
        *ret_n_records += chunks[i].n_records;
    }

    /* Make the task. */
    fill_imported_task(&a->task, now_ms, &task);
    HEARTH_TRY(hearth_call_check_later(call, task.service, err));
    HEARTH_TRY(make_import_id(call->arena, now_ms, &task.task_id, err));
    HEARTH_TRY(hearth_store_service_id(HEARTH_CALL_SCOPE(call), task.service, true,
                                       &task.service_id, err));

    /* Store its data, then the task. */
    HEARTH_TRY(store_archive_chunks(call, a, chunks, &task, err));
    HEARTH_TRY(store_archive_uploads(call, a, &task, err));
    HEARTH_TRY(hearth_archive_store_traces(call, &traces, &task, err));
    *ret_task_id = task.task_id;

    return store_archive_task(call, a, &task, err);
}

enum hearth_status hearth_task_import(const struct hearth_call *call, struct hearth_str archive,
                                      const struct hearth_task_json_check *check,
                                      struct hearth_str *ret_task_id, int64_t *ret_n_records,
                                      struct hearth_err *err)
{
    int64_t max = limit_export_bytes(call, 0);
    struct hearth_task_archive decoded;
    struct hearth_buf plain;

    assert(call != NULL && ret_task_id != NULL && ret_n_records != NULL);

    /* Decompress the archive. */
    hearth_buf_init(&plain, 0);
    plain.budget = call->arena->budget;
    struct hearth_inflater *inflater = hearth_inflater_new();
    enum hearth_status status;
    if (inflater == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to inflate an archive");
    } else if (hearth_compression_detect(archive) != HEARTH_COMPRESSION_ZSTD) {
        status = hearth_archive_refuse(err, "it is not compressed with zstd");
    } else {
        status = hearth_inflate(inflater, HEARTH_COMPRESSION_ZSTD, archive,
                                max > 0 ? (size_t)max : SIZE_MAX, &plain, err);
    }

    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the archive inflates to more than %lld bytes (max-task-export-bytes)",
                             (long long)max);
    }

    hearth_inflater_free(inflater);

    /* Decode and store it. */
    if (status == HEARTH_OK) {
        status = hearth_archive_decode(hearth_buf_view(&plain), call->arena, &decoded, err);
    }

    if (status == HEARTH_OK) {
        status = store_archive(call, &decoded, check, ret_task_id, ret_n_records, err);
    }

    hearth_buf_release(&plain);

    return status;
}
