/*
 * push_spool.c -- profiles of a push that go to the disk instead of the database (push_spool.h).
 *
 * Such a profile was decoded, checked and found to be accepted; only its series and its row are
 * missing. A pprof is kept as it was received. Profiles of other formats, which parameters of their
 * request describe, are encoded as pprof.
 */
#include "ingest/push_spool.h"

#include "hearth/base/metrics.h"
#include "hearth/codec/compress.h"

#include <assert.h>
#include <sys/random.h>

#define ZSTD_LEVEL 1

/* How long a push whose statement failed waits to be told whether the database is away. */
#define LOOK_NS (2 * HEARTH_NS_PER_SEC)

bool hearth_push_wants_spool(const struct hearth_push_state *state, bool has_failed)
{
    struct hearth_spool *spool = state->ingest->options.spool;
    struct hearth_store *store = state->ingest->store;

    if (spool == NULL || !state->request->may_spool ||
        !(has_failed ? hearth_store_look_whether_away(store, LOOK_NS)
                     : hearth_store_is_away(store))) {
        return false;
    }
    if (!hearth_spool_has_room(spool, state->spool.record.n)) {
        hearth_metric_add(HEARTH_M_SPOOL_FULL, 1);
        return false;
    }

    return true;
}

static bool begin_record(struct hearth_push_state *state)
{
    struct hearth_spool_head head = {
        .is_one_upload = state->request->is_one_upload,
        .tenant = state->request->tenant,
        .app_name = state->request->app_name,
    };

    if (getrandom(&head.key, sizeof head.key, 0) != (ssize_t)sizeof head.key) {
        return false;
    }

    hearth_buf_init(&state->spool.record, HEARTH_SPOOL_HEADER_BYTES + HEARTH_SPOOL_MAX_BODY);
    state->spool.record.budget = state->options.budget;
    hearth_spool_put_head(&head, &state->spool.record);

    return !hearth_buf_failed(&state->spool.record);
}

/* The number of the file in the record. Profiles of one file follow each other. */
static uint32_t put_file(struct hearth_push_state *state, const struct hearth_push_file *file)
{
    if (file == NULL) {
        return HEARTH_SPOOL_NO_FILE;
    }

    if (file != state->spooled_file) {
        const struct hearth_spool_file out = {file->name, file->bytes, file->client_tags,
                                              (uint32_t)file->part};
        hearth_spool_put_file(&out, &state->spool.record);
        state->spooled_file = file;
        state->n_spooled_files++;
    }

    return state->n_spooled_files - 1;
}

/* The profile without the samples that do not count, of which pprof cannot express all. */
static bool drop_skipped(const struct hearth_profile *in, const bool *skip,
                         struct hearth_arena *arena, struct hearth_profile *out)
{
    uint32_t n = 0, n_locs = 0, n_labels = 0;

    *out = *in;
    out->stack_first = hearth_arena_array(arena, in->n_samples + 1, sizeof *out->stack_first);
    out->label_first = hearth_arena_array(arena, in->n_samples + 1, sizeof *out->label_first);
    out->stack_locs = hearth_arena_array(arena, in->n_stack_locs, sizeof *out->stack_locs);
    out->sample_labels = hearth_arena_array(arena, in->n_sample_labels, sizeof *out->sample_labels);
    out->values =
        hearth_arena_array(arena, (size_t)in->n_samples * in->n_types, sizeof *out->values);
    if (arena->refused) {
        return false;
    }

    for (uint32_t i = 0; i < in->n_samples; i++) {
        if (skip[i]) {
            continue;
        }
        out->stack_first[n] = n_locs;
        out->label_first[n] = n_labels;
        for (uint32_t k = in->stack_first[i]; k < in->stack_first[i + 1]; k++) {
            out->stack_locs[n_locs++] = in->stack_locs[k];
        }
        for (uint32_t k = in->label_first[i]; k < in->label_first[i + 1]; k++) {
            out->sample_labels[n_labels++] = in->sample_labels[k];
        }
        memcpy(out->values + (size_t)n * in->n_types, in->values + (size_t)i * in->n_types,
               in->n_types * sizeof *out->values);
        n++;
    }

    out->stack_first[n] = out->n_stack_locs = n_locs;
    out->label_first[n] = out->n_sample_labels = n_labels;
    out->n_samples = n;

    return true;
}

/* Encode a decoded profile; *ret borrows from the arena. */
static bool encode_profile(const struct hearth_profile *profile, const bool *skip,
                           struct hearth_arena *arena, struct hearth_str *ret)
{
    struct hearth_profile kept;
    struct hearth_buf plain, packed;

    if (!drop_skipped(profile, skip, arena, &kept)) {
        return false;
    }

    hearth_buf_init(&plain, 0);
    hearth_buf_init(&packed, 0);
    plain.budget = packed.budget = arena->budget;
    hearth_pprof_encode(&kept, &plain);
    bool ok = !hearth_buf_failed(&plain) &&
              hearth_zstd(hearth_buf_view(&plain), ZSTD_LEVEL, &packed, NULL) == HEARTH_OK;
    *ret = ok ? hearth_arena_str(arena, hearth_buf_view(&packed)) : hearth_str_n(NULL, 0);
    hearth_buf_release(&plain);
    hearth_buf_release(&packed);

    return ret->p != NULL;
}

/* The labels of the series as sent, and the name that the profile gave itself, if any. */
static bool fill_labels(const struct hearth_push_job *job, struct hearth_str name,
                        struct hearth_spool_profile *ret)
{
    const struct hearth_push_series *series = &job->state->request->series[job->series_idx];
    size_t n = series->n_labels;

    ret->labels = series->labels;
    ret->n_labels = n;
    if (!job->has_hints) {
        return true;
    }

    ret->labels = hearth_arena_array(job->work.arena, n + 1, sizeof *ret->labels);
    if (ret->labels == NULL) {
        return false;
    }
    if (n > 0) {
        memcpy(ret->labels, series->labels, n * sizeof *ret->labels);
    }
    ret->labels[n] = (struct hearth_label){HEARTH_STR("__name__"), name};
    ret->n_labels = n + 1;

    return true;
}

bool hearth_push_is_pprof(const struct hearth_push_job *job)
{
    return !job->has_hints && job->sample->decoded == NULL && job->sample->read == NULL;
}

static bool put_job(struct hearth_push_job *job, const struct hearth_profile *profile,
                    const struct hearth_stack_keys *keys, struct hearth_str name)
{
    struct hearth_push_state *state = job->state;
    const struct hearth_push_sample *sample = job->sample;
    bool is_pprof = hearth_push_is_pprof(job);
    struct hearth_spool_profile out = {
        .id = job->has_hints ? HEARTH_STR("") : job->id,
        .n_sent = sample->profile.n + sample->n_bytes,
        .profile = sample->profile,
    };

    if (!fill_labels(job, name, &out)) {
        return false;
    }
    if (!is_pprof && !encode_profile(profile, keys->skip, job->work.arena, &out.profile)) {
        return false;
    }

    out.file = put_file(state, sample->file);
    out.is_file = is_pprof && sample->file != NULL && sample->file->bytes.p == sample->profile.p &&
                  sample->file->bytes.n == sample->profile.n;
    hearth_spool_put_profile(&out, &state->spool.record);

    return !hearth_buf_failed(&state->spool.record);
}

bool hearth_push_spool_job(struct hearth_push_job *job, const struct hearth_profile *profile,
                           const struct hearth_stack_keys *keys, struct hearth_str name)
{
    struct hearth_push_state *state = job->state;
    struct hearth_buf *record = &state->spool.record;

    if (record->n == 0 && !begin_record(state)) {
        hearth_buf_release(record);
        return false;
    }

    size_t before = record->n;
    const struct hearth_push_file *file = state->spooled_file;
    uint32_t n_files = state->n_spooled_files;
    bool is_put = put_job(job, profile, keys, name);
    if (is_put && hearth_spool_has_room(state->ingest->options.spool, record->n)) {
        state->n_spooled++;
        return true;
    }

    /* The profiles before it stay. */
    hearth_metric_add(HEARTH_M_SPOOL_FULL, is_put);
    record->n = before;
    record->failed = false;
    state->spooled_file = file;
    state->n_spooled_files = n_files;

    return false;
}

/* ---- the end of a push ---- */

/* What is not on the disk has failed as it would have without a spool. */
static void fail_spooled(struct hearth_push_state *state, enum hearth_status status,
                         const struct hearth_err *err)
{
    struct hearth_push_request *request = state->request;

    hearth_metric_add_labels(HEARTH_M_REJECTED, hearth_status_name(status),
                             request->client == NULL ? "task" : request->client, state->n_spooled);
    if (request->n_failed == 0) {
        request->status = status;
        request->err = *err;
    }
    request->n_failed += state->n_spooled;
}

/* The `done` of a write. */
static void end_write(struct hearth_spool_write *write, enum hearth_status status,
                      const struct hearth_err *err)
{
    struct hearth_push_state *state = HEARTH_CONTAINER_OF(write, struct hearth_push_state, spool);

    if (status == HEARTH_OK) {
        state->request->n_spooled = state->n_spooled;
        hearth_metric_add(HEARTH_M_SPOOLED_PROFILES, state->n_spooled);
    } else {
        fail_spooled(state, status, err);
    }

    hearth_push_end_spooled(state);
}

/* ---- profiles that the commit queue gave back ---- */

void hearth_push_note_given_back(struct hearth_push_job *job, const struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;

    hearth_mutex_lock(&state->lock);
    job->is_given_back = true;
    if (state->n_given_back++ == 0) {
        state->give_back_err = *err;
    }
    hearth_mutex_unlock(&state->lock);
}

/* Runs on the writer's thread: a committer must not decode. */
static void spool_given_back(struct hearth_spool_job *work)
{
    struct hearth_push_state *state =
        HEARTH_CONTAINER_OF(work, struct hearth_push_state, spool_job);

    state->raw_bytes = 0;
    for (uint32_t i = 0; i < state->request->n_profiles; i++) {
        struct hearth_push_job *job = &state->jobs[i];
        struct hearth_err err = HEARTH_ERR_INIT;
        enum hearth_status status =
            job->is_given_back ? hearth_push_spool_again(job, &err) : HEARTH_OK;
        if (status != HEARTH_OK) {
            hearth_push_record_failure(state, job, status, &err);
        }
    }

    if (!hearth_push_hand_to_spool(state)) {
        hearth_push_end_spooled(state);
    }
}

bool hearth_push_keep_given_back(struct hearth_push_state *state)
{
    struct hearth_push_request *request = state->request;

    if (state->n_given_back == 0) {
        return false;
    }

    state->spool_job.run = spool_given_back;
    if (!atomic_load(&request->is_given_up) &&
        hearth_spool_run(state->ingest->options.spool, &state->spool_job)) {
        return true;
    }

    for (uint32_t i = 0; i < request->n_profiles; i++) {
        if (state->jobs[i].is_given_back) {
            hearth_push_record_failure(state, &state->jobs[i], HEARTH_UNAVAILABLE,
                                       &state->give_back_err);
        }
    }

    return false;
}

/* ---- the record ---- */

bool hearth_push_hand_to_spool(struct hearth_push_state *state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status;

    if (state->n_spooled == 0) {
        return false;
    }

    struct hearth_spool *spool = state->ingest->options.spool;
    state->spool.done = end_write;
    state->spool.received_ns = state->now_ns;
    if (atomic_load(
            &state->request->is_given_up)) { /* its client may have been told "not stored" */
        status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "the push was given up: it is not spooled");
    } else if (!hearth_spool_end(&spool->key, state->now_ns, &state->spool.record)) {
        status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "the push is too large to be spooled");
    } else {
        status = hearth_spool_submit(spool, &state->spool, &err);
    }
    if (status != HEARTH_OK) {
        fail_spooled(state, status, &err);
    }

    return status == HEARTH_OK;
}
