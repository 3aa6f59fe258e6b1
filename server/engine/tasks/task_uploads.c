/*
 * task_uploads.c -- files of agents: intake, storage, and their traced requests (contract:
 * hearth/engine/task_uploads.h).
 */
#include "hearth/engine/task_uploads.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/format/jfr.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_tasks.h"

#include "common/shown.h"
#include "common/task_refusals.h"
#include "ingest/ingest_internal.h"
#include "ingest/push_wait.h"
#include "select/query_internal.h"
#include "tasks/task_uploads_internal.h"
#include "tasks/tasks_internal.h"

#include <assert.h>

#define UNKNOWN_SERVICE "unknown_service"
/* The limit of segment ids in traces.c: longer ones cannot be queried. */
#define MAX_SEGMENT_BYTES 512

/* Names of the label that names a traced request; the first one present counts. */
static const char *const g_segment_keys[] = {"segment_id", "trace_segment_id", "segmentId",
                                             "traceSegmentId", "traceSegmentID"};
/* Other labels of such samples; they would not tell series apart. */
static const char *const g_request_keys[] = {"spanID", "spanId", "span_id", "minDurationThreshold"};

/* ---- traced requests ---- */

static bool is_key_of_list(struct hearth_str key, const char *const *keys, size_t n)
{
    assert(keys != NULL);

    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq_c(key, keys[i])) {
            return true;
        }
    }

    return false;
}

/* The traced request of a sample; empty if it has none. */
static struct hearth_str find_sample_segment(const struct hearth_profile *p, uint32_t sample)
{
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(g_segment_keys); k++) {
        for (uint32_t l = p->label_first[sample]; l < p->label_first[sample + 1]; l++) {
            const struct hearth_sample_label *label = &p->sample_labels[l];
            if (label->str != 0 && hearth_str_eq_c(p->strings[label->key], g_segment_keys[k])) {
                return p->strings[label->str];
            }
        }
    }

    return HEARTH_STR("");
}

/* List the traced requests of a profile, with their numbers of samples. */
static enum hearth_status find_upload_segments(const struct hearth_profile *p,
                                               struct hearth_arena *arena,
                                               struct hearth_go_segment **ret, size_t *ret_n,
                                               struct hearth_err *err)
{
    struct hearth_idmap ids;

    /* At most one request per sample. */
    hearth_idmap_init(&ids);
    enum hearth_status status = HEARTH_OK;
    size_t n = 0;
    *ret = hearth_arena_array(arena, p->n_samples, sizeof **ret);
    if (*ret == NULL) {
        status = HEARTH_FAIL_ARENA(err, arena);
    }

    /* Count the samples of each request. */
    for (uint32_t s = 0; s < p->n_samples && status == HEARTH_OK; s++) {
        struct hearth_str segment = find_sample_segment(p, s);
        if (segment.n == 0 || segment.n > MAX_SEGMENT_BYTES) {
            continue;
        }

        bool inserted;
        uint32_t id = hearth_idmap_intern(
            &ids, hearth_hash128(segment.p, segment.n, hearth_hash_process_seed()), (uint32_t)n,
            &inserted);
        if (id == HEARTH_IDMAP_NONE) {
            status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for traced requests");
            break;
        }

        if (inserted) {
            (*ret)[n++] = (struct hearth_go_segment){.segment_id = segment};
        }
        (*ret)[id].n_samples++;
    }

    hearth_idmap_release(&ids);
    *ret_n = n;

    return status;
}

enum hearth_status hearth_upload_segments(const struct hearth_call *call, struct hearth_str content,
                                          struct hearth_go_segment **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    struct hearth_profile profile;
    struct hearth_pprof_notes notes;

    HEARTH_TRY(hearth_upload_decode(call, content, &profile, &notes, err));
    return find_upload_segments(&profile, call->arena, ret, ret_n, err);
}

/*
 * Remove the labels of traced requests, each of which would make a series. The trace id stays, as
 * an attribute of the samples.
 */
static void strip_requests(struct hearth_profile *p)
{
    uint32_t n = 0;

    for (uint32_t s = 0, at = 0; s < p->n_samples; s++) {
        bool is_traced = find_sample_segment(p, s).n > 0;

        uint32_t end = p->label_first[s + 1], first = n;
        for (; at < end; at++) {
            struct hearth_str key = p->strings[p->sample_labels[at].key];
            bool drop = is_traced &&
                        (is_key_of_list(key, g_segment_keys, HEARTH_ARRAY_LEN(g_segment_keys)) ||
                         is_key_of_list(key, g_request_keys, HEARTH_ARRAY_LEN(g_request_keys)));
            if (!drop) {
                p->sample_labels[n++] = p->sample_labels[at];
            }
        }
        p->label_first[s] = first; /* the next sample's entry still holds this sample's old end */
    }

    /* The last entry is the end of all labels. */
    if (p->n_samples > 0) {
        p->label_first[p->n_samples] = n;
    }

    p->n_sample_labels = n;
}

/* ---- intake ---- */

/*
 * The instance that a task was delivered to, if it was delivered to exactly one; otherwise empty.
 */
static enum hearth_status find_only_instance(const struct hearth_call *call,
                                             struct hearth_str task_id, struct hearth_str *ret,
                                             struct hearth_err *err)
{
    struct hearth_task_log *log;
    struct hearth_str instance = HEARTH_STR("");
    size_t n, n_told = 0;

    HEARTH_TRY(hearth_store_task_logs(HEARTH_CALL_SCOPE(call), &task_id, 1, &log, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (log[i].event == HEARTH_TASK_NOTIFIED) {
            instance = log[i].instance;
            n_told++;
        }
    }

    *ret = n_told == 1 ? instance : HEARTH_STR("");

    return HEARTH_OK;
}

/* Complete service and instance from the task, if the agent did not send them. */
static enum hearth_status complete_owner(const struct hearth_call *call,
                                         struct hearth_task_upload *upload, struct hearth_err *err)
{
    if (upload->service.n == 0) {
        struct hearth_task task;
        enum hearth_status status = hearth_call_find_task(call, upload->task_id, &task, err);
        if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
            return status;
        }

        upload->service = status == HEARTH_OK ? task.service : HEARTH_STR(UNKNOWN_SERVICE);
    }

    if (upload->instance.n == 0) {
        HEARTH_TRY(find_only_instance(call, upload->task_id, &upload->instance, err));
    }

    return hearth_store_service_id(HEARTH_CALL_SCOPE(call), upload->service, true,
                                   &upload->service_id, err);
}

/*
 * The id of a push, so that a repeated push stores nothing; NULL: no memory. Profiles of a
 * recording may have the same labels (allocations, live objects), so each has an id of its own.
 */
static char *make_push_id(const struct hearth_call *call, const struct hearth_task_upload *upload,
                          size_t profile)
{
    return profile == 0 ? hearth_arena_printf(call->arena, "upload " HEARTH_STR_FMT,
                                              HEARTH_STR_ARG(upload->upload_id))
                        : hearth_arena_printf(call->arena, "upload " HEARTH_STR_FMT " %zu",
                                              HEARTH_STR_ARG(upload->upload_id), profile);
}

/*
 * The id that clients see of the first profile of a file with something to store; {0, 0}: there is
 * none, or the profiles are stored already.
 */
static struct hearth_profile_id find_upload_profile(const struct hearth_push_receipt *receipts,
                                                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (receipts[i].profile.profile_no != 0) {
            return receipts[i].profile;
        }
    }

    return (struct hearth_profile_id){0, 0};
}

/* Push the profiles of a recording, then mark the upload. */
static enum hearth_status push_upload_recording(const struct hearth_call *call,
                                                struct hearth_ingest *ingest,
                                                const struct hearth_task_upload *upload,
                                                const struct hearth_jfr_recording *recording,
                                                struct hearth_err *err)
{
    struct hearth_push_series series[HEARTH_JFR_MAX_PROFILES] = {0};
    struct hearth_push_sample samples[HEARTH_JFR_MAX_PROFILES] = {0};
    struct hearth_push_receipt receipts[HEARTH_JFR_MAX_PROFILES] = {0};
    struct hearth_label labels[HEARTH_JFR_MAX_PROFILES][3];

    for (size_t i = 0; i < recording->n_profiles; i++) {
        char *id = make_push_id(call, upload, i);
        if (id == NULL) {
            return HEARTH_FAIL_ARENA(err, call->arena);
        }

        labels[i][0] = (struct hearth_label){HEARTH_STR(HEARTH_LABEL_NAME),
                                             hearth_str_c(recording->profiles[i].name)};
        labels[i][1] = (struct hearth_label){HEARTH_STR(HEARTH_LABEL_SERVICE), upload->service};
        labels[i][2] = (struct hearth_label){HEARTH_STR("instance"), upload->instance};
        samples[i] = (struct hearth_push_sample){.id = hearth_str_c(id),
                                                 .decoded = &recording->profiles[i].profile,
                                                 .n_bytes = i == 0 ? upload->content.n : 0};
        series[i] = (struct hearth_push_series){.labels = labels[i],
                                                .n_labels = upload->instance.n > 0 ? 3 : 2,
                                                .samples = &samples[i],
                                                .n_samples = 1};
    }

    if (recording->n_profiles > 0) {
        const struct hearth_push_request push = {
            .tenant = call->tenant,
            .view = call->view,
            .series = series,
            .n_series = recording->n_profiles,
            .is_one_upload = true,
        };
        HEARTH_TRY(hearth_push_wait(ingest, &push, call->cancel, receipts, err));
    }

    return hearth_store_task_upload_pushed(HEARTH_CALL_SCOPE(call), upload->upload_id,
                                           find_upload_profile(receipts, recording->n_profiles),
                                           err);
}

static enum hearth_status push_upload_profile(const struct hearth_call *call,
                                              struct hearth_ingest *ingest,
                                              const struct hearth_task_upload *upload,
                                              struct hearth_profile *profile,
                                              struct hearth_err *err)
{
    struct hearth_upload_values values;

    /* Keep the values of the task's event, without those of an earlier file. */
    HEARTH_TRY(hearth_upload_values(call, upload->upload_id, profile, &values, err));
    hearth_upload_keep_types(profile, values.event);
    struct hearth_label labels[3] = {
        {HEARTH_STR(HEARTH_LABEL_NAME), hearth_upload_name(profile, values.event)},
        {HEARTH_STR(HEARTH_LABEL_SERVICE), upload->service},
        {HEARTH_STR("instance"), upload->instance},
    };

    char *id = make_push_id(call, upload, 0);
    if (id == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Push the profile, then mark the upload. */
    strip_requests(profile);
    struct hearth_push_sample sample = {
        .id = hearth_str_c(id), .decoded = profile, .n_bytes = upload->content.n};
    struct hearth_push_series series = {
        .labels = labels,
        .n_labels = upload->instance.n > 0 ? 3 : 2,
        .samples = &sample,
        .n_samples = 1,
    };

    const struct hearth_push_request push = {
        .tenant = call->tenant, .view = call->view, .series = &series, .n_series = 1};
    struct hearth_push_receipt receipt = {0};
    HEARTH_TRY(hearth_push_wait(ingest, &push, call->cancel, &receipt, err));

    return hearth_store_task_upload_pushed(HEARTH_CALL_SCOPE(call), upload->upload_id,
                                           receipt.profile, err);
}

enum hearth_status hearth_upload_push_left(const struct hearth_call *call,
                                           struct hearth_ingest *ingest,
                                           struct hearth_str upload_id, struct hearth_err *err)
{
    struct hearth_task_upload upload;
    struct hearth_profile profile;
    struct hearth_pprof_notes notes;

    HEARTH_TRY(hearth_store_task_upload_get(HEARTH_CALL_SCOPE(call), upload_id, &upload, err));
    if (upload.is_pushed) {
        return HEARTH_OK;
    }
    if (hearth_str_eq_c(upload.format, HEARTH_UPLOAD_JFR)) {
        struct hearth_jfr_recording recording;
        HEARTH_TRY(hearth_upload_decode_recording(call, upload.content, &recording, err));
        return push_upload_recording(call, ingest, &upload, &recording, err);
    }
    HEARTH_TRY(hearth_upload_decode(call, upload.content, &profile, &notes, err));

    return push_upload_profile(call, ingest, &upload, &profile, err);
}

/*
 * The time of a file's profile must be within the ingestion window. A file of a task was made just
 * now: otherwise a clock is wrong, and the error says so.
 */
static enum hearth_status check_upload_time(const struct hearth_call *call,
                                            const struct hearth_limits *limits,
                                            const struct hearth_task_upload *upload,
                                            int64_t time_ns, struct hearth_err *err)
{
    const struct hearth_identity identity = {.service_name = upload->service};
    int64_t ts_ns, now_ns = hearth_clock_wall_ns();
    char clock[96];

    if (hearth_identity_time(limits, &identity, time_ns, now_ns,
                             hearth_store_clock_ahead_ns(call->engine->store), &ts_ns,
                             err) == HEARTH_OK) {
        return HEARTH_OK;
    }

    hearth_task_clock_text((double)time_ns - (double)now_ns, clock);
    hearth_err_prefix(err, "%s", clock);

    return HEARTH_INVALID_ARGUMENT;
}

static void count_upload_notes(const struct hearth_pprof_notes *notes)
{
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    hearth_ingest_count_notes(notes, discards);
    hearth_discards_count(discards);
}

/* Decode a recording and check its time, for the same reason as a pprof. */
static enum hearth_status check_jfr_upload(const struct hearth_call *call,
                                           const struct hearth_limits *limits,
                                           const struct hearth_task_upload *upload,
                                           struct hearth_jfr_recording *ret, struct hearth_err *err)
{
    HEARTH_TRY(hearth_upload_decode_recording(call, upload->content, ret, err));
    if (ret->n_profiles > 0) {
        HEARTH_TRY(check_upload_time(call, limits, upload, ret->profiles[0].profile.time_ns, err));
    }
    count_upload_notes(&ret->notes);

    return HEARTH_OK;
}

/* Decode a pprof and check its time, so that only files that can be shown and pushed are stored. */
static enum hearth_status check_pprof_upload(const struct hearth_call *call,
                                             const struct hearth_limits *limits,
                                             const struct hearth_task_upload *upload,
                                             struct hearth_profile *profile, struct hearth_err *err)
{
    struct hearth_pprof_notes notes;

    HEARTH_TRY(hearth_upload_decode(call, upload->content, profile, &notes, err));
    HEARTH_TRY(check_upload_time(call, limits, upload, profile->time_ns, err));
    count_upload_notes(&notes);

    return HEARTH_OK;
}

static enum hearth_status take_upload(const struct hearth_call *call, struct hearth_ingest *ingest,
                                      const struct hearth_upload_spec *spec, struct hearth_err *err)
{
    struct hearth_limits limits;

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);

    /* Check the size. */
    if (spec->content.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the upload is empty");
    }

    if (limits.max_task_upload_bytes > 0 &&
        spec->content.n > (uint64_t)limits.max_task_upload_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the upload has %zu bytes; max-task-upload-bytes allows %lld",
                           spec->content.n, (long long)limits.max_task_upload_bytes);
    }

    /* Check the content. */
    bool is_pprof = strcmp(spec->format, HEARTH_UPLOAD_PPROF) == 0;
    struct hearth_task_upload upload = {
        .task_id = spec->task_id,
        .service = spec->service,
        .instance = hearth_str_n(spec->instance.n > 0 ? spec->instance.p : "", spec->instance.n),
        .format = hearth_str_c(spec->format),
        .content = spec->content,
        .received_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
    };
    struct hearth_profile profile;
    struct hearth_jfr_recording recording;
    struct hearth_go_segment *segments = NULL;
    size_t n_segments = 0;

    if (is_pprof) {
        HEARTH_TRY(check_pprof_upload(call, &limits, &upload, &profile, err));
        HEARTH_TRY(find_upload_segments(&profile, call->arena, &segments, &n_segments, err));
    } else {
        HEARTH_TRY(check_jfr_upload(call, &limits, &upload, &recording, err));
    }

    /* Store the file, then push its profiles. */
    HEARTH_TRY(complete_owner(call, &upload, err));
    HEARTH_TRY(hearth_call_check_later(call, upload.service, err));
    HEARTH_TRY(
        hearth_store_task_upload_put(HEARTH_CALL_SCOPE(call), &upload, segments, n_segments, err));
    if (upload.is_pushed) {
        return HEARTH_OK; /* the agent has sent the file again */
    }

    return is_pprof ? push_upload_profile(call, ingest, &upload, &profile, err)
                    : push_upload_recording(call, ingest, &upload, &recording, err);
}

static void count_upload_outcome(const char *outcome)
{
    hearth_metric_add_label(HEARTH_M_TASK_UPLOADS, hearth_str_c(outcome), 1);
}

enum hearth_status hearth_task_upload(const struct hearth_call *call, struct hearth_ingest *ingest,
                                      const struct hearth_upload_spec *spec, struct hearth_err *err)
{
    enum hearth_status status = take_upload(call, ingest, spec, err);

    if (status != HEARTH_INVALID_ARGUMENT) { /* counted by hearth_task_upload_refused */
        count_upload_outcome(status == HEARTH_OK ? "stored" : "refused");
    }
    return status;
}

static struct hearth_task_log make_upload_log(struct hearth_str instance,
                                              enum hearth_upload_event event,
                                              struct hearth_str message)
{
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;

    return (struct hearth_task_log){
        .instance = instance,
        .process_id = HEARTH_STR(""),
        .event = (enum hearth_task_event)event,
        .at_ms = now_ms,
        .last_at_ms = now_ms,
        .message = message,
    };
}

enum hearth_status hearth_task_upload_log(const struct hearth_call *call, struct hearth_str task_id,
                                          struct hearth_str instance,
                                          enum hearth_upload_event event, struct hearth_str message,
                                          struct hearth_err *err)
{
    bool shows;

    if (event != HEARTH_UPLOAD_FINISHED) {
        count_upload_outcome("failed");
    }

    HEARTH_TRY(hearth_call_shows_task(call, task_id, &shows, err));
    if (!shows) { /* as one that does not exist */
        return HEARTH_OK;
    }

    const struct hearth_task_log entry = make_upload_log(instance, event, message);
    return hearth_store_task_log_add(HEARTH_CALL_SCOPE(call), task_id, &entry, NULL, err);
}

static enum hearth_status check_delivered(const struct hearth_call *call, struct hearth_str task_id,
                                          struct hearth_str service, struct hearth_str instance,
                                          struct hearth_err *err)
{
    struct hearth_task task;
    struct hearth_task_log *log;
    size_t n;

    /* The task must exist and have been delivered. */
    HEARTH_TRY(hearth_call_find_task(call, task_id, &task, err));
    HEARTH_TRY(hearth_store_task_logs(HEARTH_CALL_SCOPE(call), &task_id, 1, &log, &n, err));
    bool is_of_service = service.n == 0 || hearth_str_eq(service, task.service);

    /* Look for a delivery to the instance. */
    for (size_t i = 0; i < n && is_of_service && task.origin != HEARTH_TASK_IMPORTED; i++) {
        if (log[i].event == HEARTH_TASK_NOTIFIED &&
            (instance.n == 0 || hearth_str_eq(instance, log[i].instance))) {
            return HEARTH_OK;
        }
    }

    return instance.n == 0
               ? HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                             "task \"" HEARTH_STR_FMT
                             "\" was handed out to nobody: its file is not "
                             "taken",
                             HEARTH_STR_ARG(task_id))
               : HEARTH_FAIL(
                     err, HEARTH_FAILED_PRECONDITION,
                     "task \"" HEARTH_STR_FMT "\" was not handed out to instance \"" HEARTH_STR_FMT
                     "\" of service \"" HEARTH_STR_FMT "\": its file is not taken",
                     HEARTH_STR_ARG(task_id), HEARTH_STR_ARG(instance), HEARTH_STR_ARG(service));
}

enum hearth_status hearth_task_upload_expected(const struct hearth_call *call,
                                               struct hearth_str task_id, struct hearth_str service,
                                               struct hearth_str instance, struct hearth_err *err)
{
    enum hearth_status status = check_delivered(call, task_id, service, instance, err);

    if (status != HEARTH_OK) {
        count_upload_outcome("refused");
    }
    return status;
}

void hearth_task_upload_refused(const struct hearth_call *call, struct hearth_str task_id,
                                struct hearth_str instance, const struct hearth_err *why)
{
    assert(why != NULL);

    count_upload_outcome("refused");
    struct hearth_err err = {0};
    struct hearth_str message = hearth_task_refusal_text(why, call->arena);
    bool shows = false;
    enum hearth_status status = hearth_call_shows_task(call, task_id, &shows, &err);
    if (status == HEARTH_OK && shows && instance.n == 0) {
        status = find_only_instance(call, task_id, &instance, &err);
    }
    if (status == HEARTH_OK && shows && message.p != NULL) {
        const struct hearth_task_log entry =
            make_upload_log(instance, HEARTH_UPLOAD_FAILED, message);
        status = hearth_store_task_log_add(HEARTH_CALL_SCOPE(call), task_id, &entry, NULL, &err);
    }

    if (status != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "tasks", "could not log a refusal with its task", "error",
                   err.msg, NULL);
    }
}

/* ---- reading ---- */

enum hearth_status hearth_task_uploads(const struct hearth_call *call, struct hearth_str task_id,
                                       struct hearth_task_upload **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    if (task_id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "task_id is empty");
    }

    bool shows;
    HEARTH_TRY(hearth_call_shows_task(call, task_id, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_task_uploads(HEARTH_CALL_SCOPE(call), task_id, ret, ret_n, err);
}

enum hearth_status hearth_task_upload_get(const struct hearth_call *call,
                                          struct hearth_str upload_id,
                                          struct hearth_task_upload *ret, struct hearth_err *err)
{
    if (upload_id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "upload_id is empty");
    }

    bool shows;
    HEARTH_TRY(hearth_store_task_upload_get(HEARTH_CALL_SCOPE(call), upload_id, ret, err));
    HEARTH_TRY(hearth_call_shows_service(call, NULL, ret->service, &shows, err));

    return shows ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no upload \"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(upload_id));
}
