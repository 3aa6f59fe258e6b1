/*
 * push_profile.c -- the steps of one profile, on the thread that pushes: inflate, decode, identity,
 * split, resolve, encode, submit (push_job.h).
 *
 * Series that are new, or have no profile in this hour yet, cost a transaction of the catalogue.
 * The profiles of a push that have such series wait, decoded, for those behind them, so that one
 * transaction makes the series of all.
 */
#include "hearth/base/budget.h"
#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/limit.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/format/demangle_names.h"
#include "hearth/store/store_applications.h"
#include "hearth/store/store_originals.h"

#include "ingest/push_spool.h"

#include <assert.h>

#define MAX_WAITING_BYTES ((size_t)16 << 20) /* of decoded profiles that wait for their series */

/*
 * One profile in so many has the CPU time of its stages read, and counts for all of them: reading
 * the clock of a thread is a system call of about a microsecond, six times a profile.
 */
#define PROFILES_PER_CPU_READING 8

#define CPU_NOT_READ INT64_C(-1)

/* The beginning of a stage. */
struct stage_mark {
    int64_t cpu_ns; /* CPU_NOT_READ: that of another profile counts */
    int64_t mono_ns;
};

/* A decoded profile, in the arena of its scratch memory. */
struct hearth_push_ready {
    struct hearth_profile profile;
    struct hearth_str name; /* that the profile gives itself; empty without hints */
    struct hearth_stack_keys keys;
    struct hearth_split split;
    struct hearth_series_key *series; /* [split.n_groups] */
    struct hearth_series_ref *refs;   /* [split.n_groups] */
    struct stage_mark mark;           /* when resolving began */
};

/* Decoded arrays take up to about eight times the inflated bytes; 0: no limit. */
static size_t find_scratch_limit(const struct hearth_limits *limits)
{
    size_t raw = limits->max_profile_bytes > 0 ? (size_t)limits->max_profile_bytes : 0;
    size_t bytes;
    bool fits = raw > 0 && !__builtin_mul_overflow(raw, (size_t)12, &bytes) &&
                !__builtin_add_overflow(bytes, (size_t)1 << 20, &bytes);
    return fits ? bytes : 0;
}

/*
 * Chooses by chance: the profiles of a push may differ by their place, and a client may send its
 * pushes in a cycle.
 */
static bool choose_cpu_reading(void)
{
    static _Thread_local uint64_t g_state;

    g_state += UINT64_C(0x9E3779B97F4A7C15);
    return hearth_hash_mix(g_state, hearth_hash_process_seed()) % PROFILES_PER_CPU_READING == 0;
}

static struct stage_mark mark_stage(const struct hearth_push_job *job)
{
    return (struct stage_mark){job->reads_cpu ? hearth_clock_thread_cpu_ns() : CPU_NOT_READ,
                               hearth_clock_mono_ns()};
}

/* Counts the CPU time since the mark, if it was read. */
static void count_stage_cpu(struct hearth_str stage, int64_t from_ns, int64_t now_ns)
{
    if (from_ns != CPU_NOT_READ) {
        hearth_metric_add_label(HEARTH_M_INGEST_STAGE_NS, stage,
                                PROFILES_PER_CPU_READING * (now_ns - from_ns));
    }
}

/* Counts the time of a stage since *mark, and moves the mark. */
static void count_ingest_stage(const struct hearth_push_job *job, const char *stage,
                               struct stage_mark *mark)
{
    struct stage_mark now = mark_stage(job);
    struct hearth_str name = hearth_str_c(stage);
    count_stage_cpu(name, mark->cpu_ns, now.cpu_ns);
    hearth_metric_observe_ns(HEARTH_M_INGEST_STAGE_SECONDS, name, now.mono_ns - mark->mono_ns);
    *mark = now;
}

/*
 * Inflates the profile's bytes into job->scratch, within the limits of a profile and of the
 * request.
 */
static enum hearth_status inflate_pushed_profile(struct hearth_push_job *job,
                                                 struct hearth_str profile, struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    struct hearth_push_scratch *scratch = job->scratch;
    const struct hearth_limits *limits = &state->options.limits;
    size_t cap = limits->max_profile_bytes > 0 ? (size_t)limits->max_profile_bytes : SIZE_MAX / 16;
    const char *limit_name = "max-profile-bytes";

    /* The rest of the request may be smaller than the limit of a profile. */
    if (limits->max_request_bytes > 0) {
        uint64_t left = (uint64_t)limits->max_request_bytes > state->raw_bytes
                            ? (uint64_t)limits->max_request_bytes - state->raw_bytes
                            : 0;
        if (left < cap) {
            cap = (size_t)left;
            limit_name = "max-request-bytes";
        }
    }

    hearth_metric_add(HEARTH_M_PROFILE_BYTES, job->is_given_back ? 0 : (int64_t)profile.n);
    enum hearth_status status = hearth_inflate(
        scratch->inflater, hearth_compression_detect(profile), profile, cap, &scratch->raw, err);
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile exceeds the size limit (%s, actual: more, limit: %zu): "
                           "uncompressed profile "
                           "payload size exceeds limit of %zu bytes" HEARTH_RAISE_OPTION("%s"),
                           limit_name, cap, cap, limit_name);
    }

    if (status == HEARTH_NO_MEMORY && scratch->raw.budget != NULL) {
        return HEARTH_FAIL_BUDGET(err, scratch->raw.budget);
    }

    state->raw_bytes += scratch->raw.n;
    hearth_metric_add(HEARTH_M_PROFILE_RAW_BYTES, job->is_given_back ? 0 : (int64_t)scratch->raw.n);

    return status;
}

/* Names the series of all groups, which the sender's view must match. */
static enum hearth_status name_group_series(struct hearth_push_job *job,
                                            const struct hearth_identity *identity,
                                            struct hearth_push_ready *ready, struct hearth_err *err)
{
    const struct hearth_split *split = &ready->split;

    size_t n_hidden;
    HEARTH_TRY(hearth_identity_keys(&job->work, identity, split, &ready->series, err));
    enum hearth_status status =
        hearth_push_view_check(job->state->view, ready->series, split->n_groups, &n_hidden, err);
    if (status != HEARTH_OK) {
        job->work.discards[HEARTH_DISCARD_HIDDEN_SERIES] += n_hidden;
        return status;
    }

    ready->refs = hearth_arena_array(job->work.arena, split->n_groups, sizeof ready->refs[0]);
    return ready->refs == NULL ? HEARTH_FAIL_ARENA(err, job->work.arena) : HEARTH_OK;
}

/* Finds or makes the series of one profile, with one catalogue call. */
static enum hearth_status resolve_group_series(struct hearth_push_job *job, struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    enum hearth_status status = hearth_store_resolve_series(
        state->ingest->store, state->request->tenant, job->ready->series,
        job->ready->split.n_groups, job->item.ts_ns, job->ready->refs, err);

    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        bool is_service = err->limit != NULL && strcmp(err->limit, "max-services") == 0;
        state->request->discards[HEARTH_DISCARD_MAX_SERVICES] += is_service;
        hearth_tenant_use_add(state->options.uses, state->use,
                              is_service ? HEARTH_USE_REFUSED_SERVICES : HEARTH_USE_REFUSED_SERIES,
                              1);
    }
    return status;
}

/*
 * Encodes all groups into rows of job->item; stack_ids are of the service's dictionary of the day.
 */
static enum hearth_status encode_group_rows(struct hearth_push_job *job,
                                            const struct hearth_split *split,
                                            const struct hearth_series_ref *refs,
                                            const uint32_t *stack_ids, struct hearth_err *err)
{
    struct hearth_push_item *item = &job->item;

    item->rows = hearth_arena_array(&job->keep, split->n_groups, sizeof item->rows[0]);
    if (item->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &job->keep);
    }

    item->n_rows = split->n_groups;
    for (size_t g = 0; g < split->n_groups; g++) {
        HEARTH_TRY(hearth_group_encode(&job->work, &split->groups[g], stack_ids, split->has_attrs,
                                       &item->rows[g], err));
        item->rows[g].series_id = refs[g].series_id;
        job->n_samples += item->rows[g].columns.n;
    }

    return HEARTH_OK;
}

/*
 * Reads the profile. If it names itself (it has hints), *identity becomes its own identity, in
 * *named.
 */
static enum hearth_status read_pushed_profile(struct hearth_push_job *job,
                                              const struct hearth_identity **identity,
                                              struct hearth_identity *named, struct hearth_err *err)
{
    const struct hearth_push_sample *sample = job->sample;
    struct hearth_str name;
    struct stage_mark mark = mark_stage(job);

    if (sample->decoded != NULL) {
        *job->work.profile = *sample->decoded;
        job->is_read = true;
        return HEARTH_OK;
    }

    if (sample->read != NULL) {
        HEARTH_TRY(sample->read(sample->source, sample->source_idx, job->work.arena,
                                job->work.profile, job->work.discards, err));
        count_ingest_stage(job, "scan", &mark);
        job->is_read = true;
        return HEARTH_OK;
    }

    HEARTH_TRY(inflate_pushed_profile(job, sample->profile, err));
    count_ingest_stage(job, "inflate", &mark);
    HEARTH_TRY(hearth_ingest_decode(&job->work, sample->hints, hearth_buf_view(&job->scratch->raw),
                                    &name, err));
    count_ingest_stage(job, "scan", &mark);
    job->is_read = true;
    if (sample->hints == NULL) {
        return HEARTH_OK;
    }

    *identity = named;
    job->ready->name = name;
    return hearth_identity_make_named(&job->work, &job->state->request->series[job->series_idx],
                                      name, named, err);
}

/* Copies the file that the profile was made of, unless another profile has taken it. */
static enum hearth_status keep_pushed_file(struct hearth_push_job *job, struct hearth_err *err)
{
    struct hearth_push_file *file = job->sample->file;
    struct hearth_push_original *original = &job->item.original;

    if (file == NULL || file->is_taken) {
        return HEARTH_OK;
    }

    file->is_taken = true;
    if (!hearth_store_original_fits(job->state->ingest->store, file->bytes.n)) {
        job->work.discards[HEARTH_DISCARD_LARGE_ORIGINALS]++;
        return HEARTH_OK;
    }

    original->name = hearth_arena_str(&job->keep, file->name);
    original->bytes = hearth_arena_str(&job->keep, file->bytes);
    original->part = file->part;
    original->client_tags = hearth_arena_str(&job->keep, file->client_tags);

    return job->keep.refused ? HEARTH_FAIL_ARENA(err, &job->keep) : HEARTH_OK;
}

/* Submits the encoded rows, and the file if it is to be kept. */
static enum hearth_status submit_push_job(struct hearth_push_job *job, bool *ret_submitted,
                                          struct hearth_err *err)
{
    struct hearth_push_file *file = job->sample->file;

    HEARTH_TRY(keep_pushed_file(job, err));
    bool has_file = job->item.original.bytes.n > 0;
    job->item.done = hearth_push_end_job;
    job->item.upload_count = job->state->upload_count;
    job->item.may_give_back = job->state->request->needs_input;
    job->item.may_lead = job->state->request->n_profiles == 1;
    enum hearth_status status = hearth_store_submit(job->state->ingest->store, &job->item, err);
    *ret_submitted = status == HEARTH_OK;

    /* A profile that is not stored leaves the file to the next one. */
    if (status != HEARTH_OK && has_file) {
        file->is_taken = false;
    }

    return status;
}

/*
 * Refuses profiles of services that are switched off or wait for approval. The error is final: a
 * client that repeats the upload would be refused again.
 */
static enum hearth_status check_application(const struct hearth_push_job *job,
                                            const struct hearth_identity *identity,
                                            struct hearth_err *err)
{
    const struct hearth_push_state *state = job->state;
    uint64_t *discards = job->work.discards;

    switch (hearth_store_accepts(state->ingest->store, state->request->tenant,
                                 identity->service_name, &identity->labels,
                                 state->options.limits.require_approval)) {
    case HEARTH_APPLICATION_OFF:
        discards[HEARTH_DISCARD_APPLICATION_OFF]++;
        return HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                           "profiling of \"" HEARTH_STR_FMT "\" is switched off (hearth admin "
                           "applications)",
                           HEARTH_STR_ARG(identity->service_name));
    case HEARTH_NOT_APPROVED:
        discards[HEARTH_DISCARD_NOT_APPROVED]++;
        return HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                           "\"" HEARTH_STR_FMT "\" waits for approval (require-approval); approve "
                           "it with hearth admin applications",
                           HEARTH_STR_ARG(identity->service_name));
    case HEARTH_ACCEPTED:
        break;
    }

    return HEARTH_OK;
}

/*
 * Runs the steps from the sent bytes to named series: job->ready, which has no groups if nothing of
 * the profile is to be stored.
 */
static enum hearth_status prepare_profile(struct hearth_push_job *job,
                                          const struct hearth_identity *identity,
                                          struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    struct hearth_arena *arena = job->work.arena;
    struct hearth_identity named;
    struct hearth_push_ready *ready = hearth_arena_calloc(arena, 1, sizeof *ready);

    if (ready == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* With hints, only the profile names the service. */
    job->ready = ready;
    job->work.profile = &ready->profile;
    if (!job->has_hints) {
        HEARTH_TRY(check_application(job, identity, err));
    }
    HEARTH_TRY(read_pushed_profile(job, &identity, &named, err));
    if (job->has_hints) {
        HEARTH_TRY(check_application(job, identity, err));
    }
    HEARTH_TRY(hearth_profile_demangle(&ready->profile, job->work.limits->demangle, arena, err));

    /* Check its time, normalise and group its samples. */
    ready->mark = mark_stage(job);
    HEARTH_TRY(hearth_identity_time(
        job->work.limits, identity, ready->profile.time_ns, state->now_ns,
        hearth_store_clock_ahead_ns(state->ingest->store), &job->item.ts_ns, err));
    HEARTH_TRY(hearth_stack_keys_make(&ready->profile, arena, &ready->keys, err));
    HEARTH_TRY(
        hearth_split_samples(&job->work, &identity->labels, ready->keys.skip, &ready->split, err));
    if (ready->split.n_groups == 0) {
        job->work.discards[HEARTH_DISCARD_EMPTY_PROFILES]++;
        return HEARTH_OK;
    }

    return state->view == NULL ? HEARTH_OK : name_group_series(job, identity, ready, err);
}

/*
 * Runs the steps from known series to rows in the commit queue. *ret_submitted: hearth_push_end_job
 * will be called, or was; otherwise the caller ends the profile.
 */
static enum hearth_status submit_prepared(struct hearth_push_job *job, bool *ret_submitted,
                                          struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    struct hearth_ingest *ingest = state->ingest;
    struct hearth_arena *arena = job->work.arena;
    struct hearth_push_ready *ready = job->ready;

    job->item.service_id = ready->refs[0].service_id;
    job->item.tenant = state->request->tenant;

    uint32_t *stack_ids = hearth_arena_array(arena, ready->profile.n_samples, sizeof stack_ids[0]);
    if (stack_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Resolve stacks in the service's dictionary of the day. */
    HEARTH_TRY(hearth_store_dict_acquire(ingest->store, job->item.service_id, job->item.ts_ns,
                                         &job->item.dict, err));

    enum hearth_status status =
        hearth_store_dict_resolve(job->item.dict, &ready->profile, &ready->keys, stack_ids, err);
    count_ingest_stage(job, "resolve", &ready->mark);

    /* Encode and submit. The dictionary is held until the item ends, or released here. */
    if (status == HEARTH_OK) {
        status = encode_group_rows(job, &ready->split, ready->refs, stack_ids, err);
        count_ingest_stage(job, "encode", &ready->mark);
    }

    if (status == HEARTH_OK) {
        status = submit_push_job(job, ret_submitted, err);
    }

    if (status != HEARTH_OK) {
        hearth_store_dict_release(ingest->store, job->item.dict);
    }

    return status;
}

/*
 * Decides what a client is told if decoding did not get its memory. Memory that others hold becomes
 * free again, so the client may retry; a profile that does not fit even alone is refused for good.
 */
static enum hearth_status judge_refused_memory(const struct hearth_push_job *job,
                                               struct hearth_err *err)
{
    const struct hearth_push_scratch *scratch = job->scratch;
    const struct hearth_budget *budget = job->state->ingest->options.budget;
    size_t refused = hearth_budget_refused_bytes();

    if (refused == 0 || budget == NULL) {
        return scratch->arena.over_limit
                   ? HEARTH_FAIL(
                         err, HEARTH_INVALID_ARGUMENT,
                         "decoding the profile needs more than %zu bytes of memory, the "
                         "most that max-profile-bytes allows; send a smaller profile, or raise it",
                         scratch->arena.limit_bytes)
                   : HEARTH_NO_MEMORY;
    }

    /* All that this request holds already is part of the need. */
    size_t alone = refused + job->state->request->held_bytes + scratch->raw.cap +
                   hearth_arena_held_bytes(&scratch->arena);
    if (alone > budget->limit_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "decoding the profile alone needs %zu bytes of memory or more; the "
                           "limit (%s) is %zu",
                           alone, budget->option, budget->limit_bytes);
    }

    hearth_ingest_drop_idle(job->state->ingest);
    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                       "request bodies and pushes being decoded need more than %s (%zu); retry",
                       budget->option, budget->limit_bytes);
}

/* Gives the scratch memory back, and ends the profile unless it was submitted. */
static void leave_profile(struct hearth_push_job *job, enum hearth_status status, bool submitted,
                          struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;

    if (job->scratch != NULL) {
        status = status == HEARTH_NO_MEMORY ? judge_refused_memory(job, err) : status;
        hearth_push_give_scratch(state->ingest, job->scratch);
    }

    /* A submitted profile ends in hearth_push_end_job, and may have ended; others end here. */
    if (submitted) {
        return;
    }
    if (status != HEARTH_OK) {
        hearth_push_record_failure(state, job, status, err);
    }

    hearth_arena_release(&job->keep);
    hearth_push_release_pending(state);
}

/*
 * Spools a prepared profile if the database is away. has_failed: a statement of it has just failed.
 */
static bool spool_prepared(struct hearth_push_job *job, bool has_failed)
{
    struct hearth_push_ready *ready = job->ready;

    return hearth_push_wants_spool(job->state, has_failed) &&
           hearth_push_spool_job(job, &ready->profile, &ready->keys, ready->name);
}

/* Stores a prepared profile; resolved is the outcome of resolving its series. */
static void finish_prepared(struct hearth_push_job *job, enum hearth_status resolved,
                            struct hearth_err *err)
{
    bool submitted = false;
    enum hearth_status status =
        resolved == HEARTH_OK ? submit_prepared(job, &submitted, err) : resolved;

    /* The database may have gone away before anybody noticed. An exceeded limit says so in err. */
    if (status == HEARTH_UNAVAILABLE && !submitted && err->limit == NULL &&
        spool_prepared(job, true)) {
        status = HEARTH_OK;
    }

    leave_profile(job, status, submitted, err);
}

/* ---- profiles whose series are not known ---- */

static bool knows_series(const struct hearth_push_job *job)
{
    return hearth_store_knows_series(job->state->ingest->store, job->state->request->tenant,
                                     job->ready->series, job->ready->split.n_groups,
                                     job->item.ts_ns, job->ready->refs);
}

/* Resolves the series of all n jobs, which have n_series, with one catalogue call. */
static enum hearth_status resolve_together(struct hearth_push_job *const *jobs, size_t n,
                                           size_t n_series, struct hearth_err *err)
{
    struct hearth_push_state *state = jobs[0]->state;
    HEARTH_CLEANUP(hearth_mem_freep)
    struct hearth_series_key *series = hearth_mem_calloc(n_series, sizeof *series);
    HEARTH_CLEANUP(hearth_mem_freep)
    struct hearth_series_ref *refs = hearth_mem_calloc(n_series, sizeof *refs);
    if (series == NULL || refs == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to write new series");
    }

    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_push_ready *ready = jobs[i]->ready;
        memcpy(series + at, ready->series, ready->split.n_groups * sizeof series[0]);
        at += ready->split.n_groups;
    }

    HEARTH_TRY(hearth_store_resolve_series(state->ingest->store, state->request->tenant, series, at,
                                           jobs[0]->item.ts_ns, refs, err));
    at = 0;
    for (size_t i = 0; i < n; i++) {
        struct hearth_push_ready *ready = jobs[i]->ready;
        memcpy(ready->refs, refs + at, ready->split.n_groups * sizeof refs[0]);
        at += ready->split.n_groups;
    }

    return HEARTH_OK;
}

void hearth_push_finish_waiting(struct hearth_push_state *state)
{
    size_t n = state->n_waiting;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (n == 0) {
        return;
    }

    /* What refuses one of several profiles must not refuse the others. */
    struct stage_mark mark = mark_stage(state->waiting[0]);
    enum hearth_status together =
        resolve_together(state->waiting, n, state->n_waiting_series, &err);
    bool alone = together != HEARTH_OK && together != HEARTH_UNAVAILABLE;
    state->n_waiting = state->n_waiting_series = state->n_waiting_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        struct hearth_err own = err;
        state->waiting[i]->ready->mark = i == 0 ? mark : mark_stage(state->waiting[i]);
        if (alone) {
            own = (struct hearth_err)HEARTH_ERR_INIT;
        }
        (void)hearth_budget_refused_bytes(); /* forget refusals of the profile before */
        finish_prepared(state->waiting[i],
                        alone ? resolve_group_series(state->waiting[i], &own) : together, &own);
    }
}

/* Makes the profile wait for those behind it, as many as fit into one catalogue call. */
static void add_waiting(struct hearth_push_job *job)
{
    struct hearth_push_state *state = job->state;
    struct hearth_budget *budget = state->ingest->options.budget;

    /* One call is for one hour. */
    if (state->n_waiting > 0 &&
        hearth_hour_of(state->waiting[0]->item.ts_ns) != hearth_hour_of(job->item.ts_ns)) {
        hearth_push_finish_waiting(state);
    }

    /* CPU only: the stage goes on when the series are known. */
    count_stage_cpu(HEARTH_STR("resolve"), job->ready->mark.cpu_ns, mark_stage(job).cpu_ns);
    state->waiting[state->n_waiting++] = job;
    state->n_waiting_series += job->ready->split.n_groups;
    state->n_waiting_bytes += job->scratch->raw.cap + hearth_arena_held_bytes(&job->scratch->arena);

    /* They must not hold memory that other pushes need to decode. */
    if (state->n_waiting == HEARTH_PUSH_MAX_WAITING ||
        state->n_waiting_bytes >= MAX_WAITING_BYTES || hearth_push_memory_is_scarce(budget)) {
        hearth_push_finish_waiting(state);
    }
}

/* Gets the memory for the work on a profile. The scratch memory of the job is given back later. */
static bool begin_work(struct hearth_push_job *job, uint64_t *discards)
{
    struct hearth_push_state *state = job->state;

    job->scratch = hearth_push_take_scratch(state->ingest);
    if (job->scratch == NULL) {
        return false;
    }

    job->work = (struct hearth_push_work){
        .limits = &state->options.limits,
        .service_labels = state->options.service_labels,
        .app_name = state->request->app_name,
        .arena = &job->scratch->arena,
        .keep = &job->keep,
        .discards = discards,
    };
    job->scratch->arena.limit_bytes = find_scratch_limit(&state->options.limits);
    (void)hearth_budget_refused_bytes(); /* forget refusals of the profile before */

    return true;
}

/* Decodes a profile again; what it drops was counted before. */
static enum hearth_status prepare_again(struct hearth_push_job *job, struct hearth_err *err)
{
    struct hearth_identity identity = {0};

    if (!job->has_hints) {
        HEARTH_TRY(hearth_identity_make(&job->work, &job->state->request->series[job->series_idx],
                                        &identity, err));
    }

    return prepare_profile(job, &identity, err);
}

enum hearth_status hearth_push_spool_again(struct hearth_push_job *job, struct hearth_err *err)
{
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    struct hearth_push_state *state = job->state;
    enum hearth_status status = HEARTH_OK;
    struct hearth_push_ready as_sent = {0};

    assert(job->is_given_back && state->view == NULL);

    if (!begin_work(job, discards)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate memory to spool a profile");
    }

    job->ready = &as_sent;
    if (!hearth_push_is_pprof(job)) {
        status = prepare_again(job, err);
    }
    if (status == HEARTH_OK &&
        !hearth_push_spool_job(job, &job->ready->profile, &job->ready->keys, job->ready->name)) {
        *err = state->give_back_err;
        status = HEARTH_UNAVAILABLE;
    }
    status = status == HEARTH_NO_MEMORY ? judge_refused_memory(job, err) : status;
    hearth_push_give_scratch(state->ingest, job->scratch);
    job->ready = NULL;

    return status;
}

void hearth_push_profile(struct hearth_push_job *job, const struct hearth_identity *identity)
{
    struct hearth_push_state *state = job->state;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (atomic_load(&state->request->is_given_up)) {
        enum hearth_status status =
            HEARTH_FAIL(&err, HEARTH_UNAVAILABLE,
                        "the push was given up: its client left, or the server is stopping");
        leave_profile(job, status, false, &err);
        return;
    }

    if (!begin_work(job, state->request->discards)) {
        enum hearth_status status =
            HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate memory to decode a profile");
        leave_profile(job, status, false, &err);
        return;
    }

    /* Decode it. */
    job->reads_cpu = choose_cpu_reading();
    enum hearth_status status = prepare_profile(job, identity, &err);
    if (status != HEARTH_OK || job->ready->split.n_groups == 0) {
        leave_profile(job, status, false, &err);
        return;
    }

    /* While the database is away, the disk is all there is. */
    if (spool_prepared(job, false)) {
        leave_profile(job, HEARTH_OK, false, &err);
        return;
    }

    /* Store it, or gather it if its series are new and others follow. */
    if (state->request->n_profiles == 1) {
        finish_prepared(job, resolve_group_series(job, &err), &err);
    } else if (knows_series(job)) {
        finish_prepared(job, HEARTH_OK, &err);
    } else {
        add_waiting(job);
    }
}
