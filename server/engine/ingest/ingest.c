/*
 * ingest.c -- requests: each profile runs inflate, decode, identity, split, resolve, encode, submit
 * on the calling thread; the committer's callback ends it. A request is answered when its last
 * profile has ended.
 *
 * Memory: decoding needs several times the size of the profile. That scratch memory returns to a
 * free list before the call ends; only the encoded rows, about a kilobyte a profile, wait for the
 * commit.
 */
#include "hearth/base/budget.h"
#include "hearth/base/limit.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/tenant_use.h"
#include "hearth/format/demangle_names.h"
#include "hearth/store/store_applications.h"
#include "hearth/store/store_originals.h"

#include "common/call_internal.h"
#include "ingest/ingest_internal.h"
#include "ingest/push_view.h"
#include "ingest/shown_keys.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

#define MAX_SCRATCH_KEPT       32
#define MAX_SCRATCH_KEPT_BYTES (8u * 1024 * 1024) /* larger inflate buffers are not kept */
#define RATE_SLOTS             1024
#define MAX_QUOTED_ID          64

/* Memory of one profile's decoding, reused by later profiles. */
struct push_scratch {
    struct push_scratch *next; /* in the free list */
    struct hearth_inflater *inflater;
    struct hearth_buf raw; /* the inflated profile */
    struct hearth_arena arena;
};

/* Token bucket of one tenant. Tenants whose hashes collide share a slot, and so the rate. */
struct rate_bucket {
    int64_t tokens;     /* bytes that may be sent now */
    int64_t at_mono_ns; /* time of the last update; 0: unused */
};

struct hearth_ingest {
    struct hearth_ingest_options options;
    _Atomic(const struct hearth_limits *) limits; /* those of options until they are replaced */
    struct hearth_store *store;
    struct hearth_mutex lock; /* guards free_scratch, n_free, rates */
    struct push_scratch *free_scratch;
    unsigned n_free;
    struct rate_bucket rates[RATE_SLOTS];
    struct hearth_shown_keys *shown; /* series that narrowed senders may push */
};

/* One profile of a request. */
struct push_job {
    struct hearth_push_item item; /* first: the committer gives it back */
    struct hearth_push_state *state;
    struct hearth_arena keep; /* rows until the commit */
    uint32_t series_idx, n_samples;
    bool has_hints;
    bool is_read;                        /* false until the bytes are decoded */
    struct hearth_str id;                /* as sent */
    struct hearth_push_receipt *receipt; /* may be NULL */

    /* Valid only while hearth_ingest_push works on the profile. */
    const struct hearth_push_sample *sample;
    struct push_scratch *scratch;
    struct hearth_push_work work;
};

/* The state of a request between hearth_ingest_push and its `done`. */
struct hearth_push_state {
    struct hearth_push_request *request;
    struct hearth_ingest *ingest;
    struct hearth_mutex
        lock; /* guards the request's outcome while profiles end on several threads */
    int64_t now_ns;
    struct hearth_ingest_options options; /* with the limits of the tenant */
    struct hearth_tenant_use *use;        /* held; NULL: pushes are not counted */
    struct hearth_arena arena;            /* memory of identities */
    uint64_t raw_bytes;                   /* inflated so far */
    int64_t upload_count;                 /* of all profiles; 0: each has its own */
    struct hearth_push_view *view;        /* of the sender; valid while hearth_ingest_push runs */
    struct push_job jobs[];               /* [n_profiles of the request] */
};

/* ---- scratch ---- */

static void free_scratch_memory(struct push_scratch *scratch)
{
    hearth_inflater_free(scratch->inflater);
    hearth_buf_release(&scratch->raw);
    hearth_arena_release(&scratch->arena);
    hearth_mem_free(scratch);
}

/* Decoded arrays take up to about eight times the inflated bytes; 0: no limit. */
static size_t find_scratch_limit(const struct hearth_limits *limits)
{
    size_t raw = limits->max_profile_bytes > 0 ? (size_t)limits->max_profile_bytes : 0;
    size_t bytes;
    bool fits = raw > 0 && !__builtin_mul_overflow(raw, (size_t)12, &bytes) &&
                !__builtin_add_overflow(bytes, (size_t)1 << 20, &bytes);
    return fits ? bytes : 0;
}

/* Takes scratch memory from the free list, or makes new; NULL: no memory. */
static struct push_scratch *take_scratch(struct hearth_ingest *ingest)
{
    hearth_mutex_lock(&ingest->lock);
    struct push_scratch *scratch = ingest->free_scratch;
    if (scratch != NULL) {
        ingest->free_scratch = scratch->next;
        ingest->n_free--;
    }
    hearth_mutex_unlock(&ingest->lock);

    if (scratch != NULL) {
        return scratch;
    }

    /* The free list is empty: new memory, on the same budget. */
    scratch = hearth_mem_zalloc(sizeof *scratch);
    if (scratch == NULL) {
        return NULL;
    }

    hearth_buf_init(&scratch->raw, 0);
    hearth_arena_init(&scratch->arena, 0);
    scratch->raw.budget = scratch->arena.budget = ingest->options.budget;
    scratch->inflater = hearth_inflater_new();
    if (scratch->inflater == NULL) {
        free_scratch_memory(scratch);
        return NULL;
    }

    return scratch;
}

/* Returns scratch memory to the free list, or frees it if the list is full. */
static void give_scratch(struct hearth_ingest *ingest, struct push_scratch *scratch)
{
    assert(scratch != NULL);

    hearth_arena_reset(&scratch->arena);
    hearth_buf_reset(&scratch->raw);
    if (scratch->raw.cap > MAX_SCRATCH_KEPT_BYTES) {
        hearth_buf_release(&scratch->raw);
    }

    hearth_mutex_lock(&ingest->lock);
    bool keep = ingest->n_free < MAX_SCRATCH_KEPT;
    if (keep) {
        scratch->next = ingest->free_scratch;
        ingest->free_scratch = scratch;
        ingest->n_free++;
    }
    hearth_mutex_unlock(&ingest->lock);

    if (!keep) {
        free_scratch_memory(scratch);
    }
}

void hearth_ingest_drop_idle(struct hearth_ingest *ingest)
{
    assert(ingest != NULL);

    hearth_mutex_lock(&ingest->lock);
    struct push_scratch *idle = ingest->free_scratch;
    ingest->free_scratch = NULL;
    ingest->n_free = 0;
    hearth_mutex_unlock(&ingest->lock);

    while (idle != NULL) {
        struct push_scratch *next = idle->next;
        free_scratch_memory(idle);
        idle = next;
    }
}

/* ---- engine ---- */

enum hearth_status hearth_ingest_new(const struct hearth_ingest_options *options,
                                     struct hearth_store *store, struct hearth_ingest **ret_ingest,
                                     struct hearth_err *err)
{
    assert(options != NULL && ret_ingest != NULL);

    struct hearth_ingest *ingest = hearth_mem_zalloc(sizeof *ingest);
    struct hearth_shown_keys *shown = hearth_shown_keys_new();
    if (ingest == NULL || shown == NULL) {
        hearth_shown_keys_free(shown);
        hearth_mem_free(ingest);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the ingest engine");
    }

    ingest->options = *options;
    atomic_init(&ingest->limits, &ingest->options.limits);
    ingest->store = store;
    ingest->shown = shown;
    hearth_mutex_init(&ingest->lock, HEARTH_RANK_INGEST, "ingest.lock");
    hearth_discards_declare();
    *ret_ingest = ingest;
    return HEARTH_OK;
}

void hearth_ingest_free(struct hearth_ingest *ingest)
{
    if (ingest == NULL) {
        return;
    }

    hearth_ingest_drop_idle(ingest);
    hearth_shown_keys_free(ingest->shown);
    hearth_mutex_destroy(&ingest->lock);
    hearth_mem_free(ingest);
}

void hearth_ingest_limits(const struct hearth_ingest *ingest, struct hearth_str tenant,
                          struct hearth_limits *ret)
{
    hearth_limits_of_tenant(atomic_load_explicit(&ingest->limits, memory_order_acquire),
                            ingest->store, tenant, ret);
}

void hearth_ingest_set_limits(struct hearth_ingest *ingest, const struct hearth_limits *limits)
{
    atomic_store_explicit(&ingest->limits, limits, memory_order_release);
}

/* ---- end of profiles and requests ---- */

/* Ends a request whose profiles have all ended. */
static void finish_push(struct hearth_push_state *state)
{
    struct hearth_push_request *request = state->request;

    assert(atomic_load(&request->n_pending) == 0);

    if (request->n_failed > 1) {
        size_t n = strlen(request->err.msg);
        (void)snprintf(request->err.msg + n, sizeof request->err.msg - n,
                       "; and %u more of %u profiles failed", request->n_failed - 1,
                       request->n_profiles);
    }

    hearth_discards_count(request->discards);
    hearth_tenant_use_give(state->options.uses, state->use);
    hearth_arena_release(&state->arena);
    hearth_mutex_destroy(&state->lock);
    hearth_mem_free(state);
    request->state = NULL;

    request->done(request);
}

/* Ends the request if this was the last of its profiles. */
static void release_pending_profile(struct hearth_push_state *state)
{
    assert(atomic_load(&state->request->n_pending) > 0);

    if (atomic_fetch_sub(&state->request->n_pending, 1) == 1) {
        finish_push(state);
    }
}

static void count_rejected_profile(const struct hearth_push_request *request,
                                   enum hearth_status status)
{
    hearth_metric_add_labels(HEARTH_M_REJECTED, hearth_status_name(status),
                             request->client == NULL ? "task" : request->client, 1);
}

static void record_push_failure(struct hearth_push_state *state, const struct push_job *job,
                                enum hearth_status status, const struct hearth_err *err)
{
    struct hearth_push_request *request = state->request;

    if (job->receipt != NULL) {
        job->receipt->status = status;
    }

    count_rejected_profile(request, status);

    /* The status and message of a request are those of its first failure. */
    hearth_mutex_lock(&state->lock);
    request->n_refused += status == HEARTH_INVALID_ARGUMENT || status == HEARTH_OUT_OF_RANGE ||
                          status == HEARTH_PERMISSION_DENIED;
    if (request->n_failed++ == 0) {
        request->status = status;
        request->err = *err;
        request->is_unreadable = !job->is_read;
        /* The id is the client's and may be long: the reason must remain readable. */
        int n_id = job->id.n > MAX_QUOTED_ID ? MAX_QUOTED_ID : (int)job->id.n;
        if (!job->has_hints) { /* clients of /ingest know neither series nor ids */
            hearth_err_prefix(&request->err, "push series with index %u and id %.*s failed",
                              job->series_idx, n_id, n_id > 0 ? job->id.p : "");
        }
    }
    hearth_mutex_unlock(&state->lock);
}

/* Called when the item has its outcome, by a committer or by hearth_store_withdraw. */

static void end_push_job(struct hearth_push_item *item, enum hearth_status status,
                         const struct hearth_err *err)
{
    struct push_job *job = HEARTH_CONTAINER_OF(item, struct push_job, item);
    struct hearth_push_state *state = job->state;

    if (status != HEARTH_OK) {
        record_push_failure(state, job, status, err);
    } else if (item->repeated) {
        if (job->receipt != NULL) {
            job->receipt->is_repeated = true;
        }
        hearth_metric_add(HEARTH_M_PROFILES_REPEATED, 1);
        hearth_mutex_lock(&state->lock);
        state->request->n_repeated++;
        hearth_mutex_unlock(&state->lock);
    } else {
        if (job->receipt != NULL) {
            job->receipt->profile = (struct hearth_profile_id){item->writer_id, item->profile_no};
        }
        hearth_tenant_use_add(state->options.uses, state->use, HEARTH_USE_PROFILES, 1);
        hearth_metric_add(HEARTH_M_PROFILES_STORED, 1);
        hearth_metric_add(HEARTH_M_SAMPLES_STORED, job->n_samples);
        hearth_metric_add(HEARTH_M_ROWS_STORED, (int64_t)item->n_rows);
    }

    hearth_arena_release(&job->keep);
    release_pending_profile(state);
}

/* ---- one profile ---- */

/* Adds the CPU time of a stage since *mark, and moves the mark. */
static void count_ingest_stage(const char *stage, int64_t *mark)
{
    int64_t now = hearth_clock_thread_cpu_ns();
    hearth_metric_add_label(HEARTH_M_INGEST_STAGE_NS, hearth_str_c(stage), now - *mark);
    *mark = now;
}

/*
 * Inflates the profile's bytes into job->scratch, within the limits of a profile and of the
 * request.
 */
static enum hearth_status inflate_pushed_profile(struct push_job *job, struct hearth_str profile,
                                                 struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    struct push_scratch *scratch = job->scratch;
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

    hearth_metric_add(HEARTH_M_PROFILE_BYTES, (int64_t)profile.n);
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
    hearth_metric_add(HEARTH_M_PROFILE_RAW_BYTES, (int64_t)scratch->raw.n);

    return status;
}

/* Finds or makes the series of all groups, with one catalogue call for the profile. */
static enum hearth_status resolve_group_series(struct push_job *job,
                                               const struct hearth_identity *identity,
                                               const struct hearth_split *split,
                                               struct hearth_series_ref **ret_refs,
                                               struct hearth_err *err)
{
    struct hearth_arena *arena = job->work.arena;
    struct hearth_series_key *keys;

    size_t n_hidden;
    HEARTH_TRY(hearth_identity_keys(&job->work, identity, split, &keys, err));
    enum hearth_status status =
        hearth_push_view_check(job->state->view, keys, split->n_groups, &n_hidden, err);
    if (status != HEARTH_OK) {
        job->work.discards[HEARTH_DISCARD_HIDDEN_SERIES] += n_hidden;
        return status;
    }

    struct hearth_series_ref *refs = hearth_arena_array(arena, split->n_groups, sizeof refs[0]);
    if (refs == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    *ret_refs = refs;
    return hearth_store_resolve_series(job->state->ingest->store, job->state->request->tenant, keys,
                                       split->n_groups, job->item.ts_ns, refs, err);
}

/*
 * Encodes all groups into rows of job->item; stack_ids are of the service's dictionary of the day.
 */
static enum hearth_status encode_group_rows(struct push_job *job, const struct hearth_split *split,
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
static enum hearth_status read_pushed_profile(struct push_job *job,
                                              const struct hearth_identity **identity,
                                              struct hearth_identity *named, struct hearth_err *err)
{
    const struct hearth_push_sample *sample = job->sample;
    struct hearth_str name;
    int64_t mark = hearth_clock_thread_cpu_ns();

    if (sample->decoded != NULL) {
        *job->work.profile = *sample->decoded;
        job->is_read = true;
        return HEARTH_OK;
    }

    if (sample->read != NULL) {
        HEARTH_TRY(sample->read(sample->source, sample->source_idx, job->work.arena,
                                job->work.profile, job->work.discards, err));
        count_ingest_stage("scan", &mark);
        job->is_read = true;
        return HEARTH_OK;
    }

    HEARTH_TRY(inflate_pushed_profile(job, sample->profile, err));
    count_ingest_stage("inflate", &mark);
    HEARTH_TRY(hearth_ingest_decode(&job->work, sample->hints, hearth_buf_view(&job->scratch->raw),
                                    &name, err));
    count_ingest_stage("scan", &mark);
    job->is_read = true;
    if (sample->hints == NULL) {
        return HEARTH_OK;
    }

    *identity = named;
    return hearth_identity_make_named(&job->work, &job->state->request->series[job->series_idx],
                                      name, named, err);
}

/* Copies the file that the profile was made of, unless another profile has taken it. */
static enum hearth_status keep_pushed_file(struct push_job *job, struct hearth_err *err)
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
static enum hearth_status submit_push_job(struct push_job *job, bool *ret_submitted,
                                          struct hearth_err *err)
{
    struct hearth_push_file *file = job->sample->file;

    HEARTH_TRY(keep_pushed_file(job, err));
    bool has_file = job->item.original.bytes.n > 0;
    job->item.done = end_push_job;
    job->item.upload_count = job->state->upload_count;
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
static enum hearth_status check_application(const struct push_job *job,
                                            const struct hearth_identity *identity,
                                            struct hearth_err *err)
{
    const struct hearth_push_state *state = job->state;
    uint64_t *discards = state->request->discards;

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
 * Runs all steps between the sent bytes and rows in the commit queue. *ret_submitted: end_push_job
 * will be called, or was; otherwise the caller ends the profile.
 */
static enum hearth_status run_push_job(struct push_job *job, const struct hearth_identity *identity,
                                       bool *ret_submitted, struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    struct hearth_ingest *ingest = state->ingest;
    struct hearth_arena *arena = job->work.arena;
    struct hearth_profile profile;
    struct hearth_identity named;

    /* With hints, only the profile names the service. */
    job->work.profile = &profile;
    if (!job->has_hints) {
        HEARTH_TRY(check_application(job, identity, err));
    }
    HEARTH_TRY(read_pushed_profile(job, &identity, &named, err));
    if (job->has_hints) {
        HEARTH_TRY(check_application(job, identity, err));
    }
    HEARTH_TRY(hearth_profile_demangle(&profile, job->work.limits->demangle, arena, err));

    /* Check its time, normalise and group its samples. */
    int64_t mark = hearth_clock_thread_cpu_ns();
    HEARTH_TRY(hearth_identity_time(job->work.limits, identity, profile.time_ns, state->now_ns,
                                    hearth_store_clock_ahead_ns(ingest->store), &job->item.ts_ns,
                                    err));

    struct hearth_stack_keys keys;
    HEARTH_TRY(hearth_stack_keys_make(&profile, arena, &keys, err));
    struct hearth_split split;
    HEARTH_TRY(hearth_split_samples(&job->work, &identity->labels, keys.skip, &split, err));
    if (split.n_groups == 0) {
        state->request->discards[HEARTH_DISCARD_EMPTY_PROFILES]++;
        return HEARTH_OK;
    }

    /* Resolve series, and stacks in the service's dictionary of the day. */
    struct hearth_series_ref *refs;
    enum hearth_status resolved = resolve_group_series(job, identity, &split, &refs, err);
    if (resolved == HEARTH_RESOURCE_EXHAUSTED) {
        bool is_service = err->limit != NULL && strcmp(err->limit, "max-services") == 0;
        state->request->discards[HEARTH_DISCARD_MAX_SERVICES] += is_service;
        hearth_tenant_use_add(state->options.uses, state->use,
                              is_service ? HEARTH_USE_REFUSED_SERVICES : HEARTH_USE_REFUSED_SERIES,
                              1);
    }
    HEARTH_TRY(resolved);
    job->item.service_id = refs[0].service_id;
    job->item.tenant = state->request->tenant;

    uint32_t *stack_ids = hearth_arena_array(arena, profile.n_samples, sizeof stack_ids[0]);
    if (stack_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(hearth_store_dict_acquire(ingest->store, job->item.service_id, job->item.ts_ns,
                                         &job->item.dict, err));

    enum hearth_status status =
        hearth_store_dict_resolve(job->item.dict, &profile, &keys, stack_ids, err);
    count_ingest_stage("resolve", &mark);

    /* Encode and submit. The dictionary is held until the item ends, or released here. */
    if (status == HEARTH_OK) {
        status = encode_group_rows(job, &split, refs, stack_ids, err);
        count_ingest_stage("encode", &mark);
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
static enum hearth_status judge_refused_memory(const struct push_job *job, struct hearth_err *err)
{
    const struct push_scratch *scratch = job->scratch;
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

/* Runs the steps of one profile, and ends it unless it was submitted. */
static void push_one_profile(struct push_job *job, const struct hearth_identity *identity)
{
    struct hearth_push_state *state = job->state;
    struct hearth_err err = HEARTH_ERR_INIT;
    bool submitted = false;
    enum hearth_status status;
    bool is_given_up = atomic_load(&state->request->is_given_up);
    struct push_scratch *scratch = is_given_up ? NULL : take_scratch(state->ingest);

    if (is_given_up) {
        status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE,
                             "the push was given up: its client left, or the server is stopping");
    } else if (scratch == NULL) {
        status = HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate memory to decode a profile");
    } else {
        job->scratch = scratch;
        job->work = (struct hearth_push_work){
            .limits = &state->options.limits,
            .service_labels = state->options.service_labels,
            .app_name = state->request->app_name,
            .arena = &scratch->arena,
            .keep = &job->keep,
            .discards = state->request->discards,
        };
        scratch->arena.limit_bytes = find_scratch_limit(&state->options.limits);
        (void)hearth_budget_refused_bytes(); /* forget refusals of the profile before */
        status = run_push_job(job, identity, &submitted, &err);
        status = status == HEARTH_NO_MEMORY ? judge_refused_memory(job, &err) : status;
        give_scratch(state->ingest, scratch);
    }

    /* A submitted profile ends in end_push_job; others end here. */
    if (submitted) {
        return;
    }
    if (status != HEARTH_OK) {
        record_push_failure(state, job, status, &err);
    }

    hearth_arena_release(&job->keep);
    release_pending_profile(state);
}

/* ---- requests ---- */

/*
 * Charges the tenant's token bucket with the bytes as sent, before the work, since inflated sizes
 * are known only after it. Errors: RESOURCE_EXHAUSTED.
 */
static enum hearth_status check_push_rate(struct hearth_ingest *ingest,
                                          const struct hearth_limits *limits,
                                          struct hearth_str tenant, int64_t n_bytes,
                                          struct hearth_err *err)
{
    int64_t rate = limits->ingest_rate_bytes;
    if (rate <= 0) {
        return HEARTH_OK;
    }

    int64_t burst = limits->ingest_burst_bytes;
    burst = burst > 0 ? burst : rate;

    struct rate_bucket *slot =
        &ingest->rates[hearth_hash64(tenant.p, tenant.n, hearth_hash_process_seed()) % RATE_SLOTS];
    int64_t now = hearth_clock_mono_ns();

    /* Earn tokens for the time since the last push, then spend them. */
    hearth_mutex_lock(&ingest->lock);
    if (slot->at_mono_ns == 0) {
        slot->tokens = burst;
    } else {
        double earned = (double)(now - slot->at_mono_ns) * (double)rate / 1e9;
        slot->tokens =
            earned > (double)(burst - slot->tokens) ? burst : slot->tokens + (int64_t)earned;
    }

    slot->at_mono_ns = now;
    bool allowed = n_bytes <= slot->tokens;
    if (allowed) {
        slot->tokens -= n_bytes;
    }
    hearth_mutex_unlock(&ingest->lock);
    if (allowed) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(
        err, HEARTH_RESOURCE_EXHAUSTED,
        "push rate limit (%lld bytes per second, burst %lld) exceeded while adding %lld "
        "bytes" HEARTH_RAISE_LIMIT("ingest-rate-bytes or --ingest-burst-bytes"),
        (long long)rate, (long long)burst, (long long)n_bytes);
}

/*
 * Refuses profiles whose own header says that they are too large. Checked when the rate is
 * exceeded: such a profile would be refused at any rate, so the client must not retry.
 */
static enum hearth_status check_push_sizes(const struct hearth_push_request *request,
                                           const struct hearth_limits *limits,
                                           struct hearth_err *err)
{
    for (size_t i = 0; i < request->n_series && limits->max_profile_bytes > 0; i++) {
        for (size_t k = 0; k < request->series[i].n_samples; k++) {
            struct hearth_str profile = request->series[i].samples[k].profile;
            uint64_t n = hearth_inflated_bytes(hearth_compression_detect(profile), profile);
            if (n > (uint64_t)limits->max_profile_bytes) {
                return HEARTH_FAIL(
                    err, HEARTH_INVALID_ARGUMENT,
                    "the profile exceeds the size limit (max-profile-bytes, "
                    "actual: %llu, limit: %lld)" HEARTH_RAISE_LIMIT("max-profile-bytes"),
                    (unsigned long long)n, (long long)limits->max_profile_bytes);
            }
        }
    }

    return HEARTH_OK;
}

/*
 * Binds the client's id to the series it was sent for: together they are the idempotency key of the
 * profile.
 */
static void bind_push_id(struct push_job *job, const struct hearth_identity *identity,
                         struct hearth_str id)
{
    if (id.n == 0) {
        return;
    }

    struct {
        struct hearth_hash128 id, labels, name;
    } parts = {
        .id = hearth_hash128(id.p, id.n, 0),
        .labels = hearth_labels_fingerprint(&identity->labels),
        .name = hearth_hash128(identity->name.p, identity->name.n, 0),
    };

    job->item.has_id = true;
    job->item.id_hash = hearth_hash128(&parts, sizeof parts, 0);
}

/* Pushes the profiles of one series; an invalid identity fails all of them. */
static void push_one_series(struct hearth_push_state *state, uint32_t series_idx,
                            struct push_job *jobs)
{
    struct hearth_push_request *request = state->request;
    const struct hearth_push_series *series = &request->series[series_idx];
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_identity identity = {0};
    /* With hints, each profile names itself: identities are made later. */
    bool is_named = series->n_samples > 0 && series->samples[0].hints == NULL;
    enum hearth_status status = HEARTH_OK;

    if (is_named) {
        const struct hearth_push_work work = {
            .limits = &state->options.limits,
            .service_labels = state->options.service_labels,
            .app_name = request->app_name,
            .arena = &state->arena,
            .discards = request->discards,
        };
        status = hearth_identity_make(&work, series, &identity, &err);
    }

    for (size_t i = 0; i < series->n_samples; i++) {
        struct push_job *job = &jobs[i];
        job->state = state;
        job->series_idx = series_idx;
        job->sample = &series->samples[i];
        job->has_hints = !is_named;
        job->receipt = series->samples[i].receipt;
        if (job->receipt != NULL) {
            *job->receipt = (struct hearth_push_receipt){.status = HEARTH_OK};
        }
        /* A copy: the profile may end after the caller has freed its texts. */
        job->id = hearth_arena_str(&state->arena, series->samples[i].id);
        hearth_arena_init(&job->keep, 0);
        hearth_metric_add(HEARTH_M_PROFILES_RECEIVED, 1);

        /* It ends here, or in push_one_profile, or when its commit ends. */
        if (status != HEARTH_OK) {
            record_push_failure(state, job, status, &err);
            release_pending_profile(state);
            continue;
        }

        if (is_named) {
            bind_push_id(job, &identity, series->samples[i].id);
        }
        push_one_profile(job, &identity);
    }
}

/* Checks the request and makes its state, with n_pending one above the number of profiles. */
static enum hearth_status make_push_state(struct hearth_ingest *ingest,
                                          struct hearth_push_request *request,
                                          struct hearth_err *err)
{
    size_t n_jobs = 0, n_bytes = 0;
    for (size_t i = 0; i < request->n_series; i++) {
        n_jobs += request->series[i].n_samples;
        for (size_t j = 0; j < request->series[i].n_samples; j++) {
            n_bytes +=
                request->series[i].samples[j].profile.n + request->series[i].samples[j].n_bytes;
        }
    }

    if (n_jobs == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "no profiles received");
    }

    /* The rate is per tenant. Beyond it, a profile that can never be accepted is told so first. */
    struct hearth_limits limits;
    hearth_ingest_limits(ingest, request->tenant, &limits);
    enum hearth_status rate =
        check_push_rate(ingest, &limits, request->tenant, (int64_t)n_bytes, err);
    if (rate != HEARTH_OK) {
        HEARTH_TRY(check_push_sizes(request, &limits, err));
        hearth_tenant_use_count(ingest->options.uses, request->tenant, HEARTH_USE_REFUSED_RATE, 1);
        return rate;
    }

    hearth_tenant_use_count(ingest->options.uses, request->tenant, HEARTH_USE_INGEST_BYTES,
                            (int64_t)n_bytes);

    struct hearth_push_state *state = NULL;
    if (n_jobs < UINT32_MAX) {
        state = hearth_mem_zalloc(sizeof *state + n_jobs * sizeof state->jobs[0]);
    }

    if (state == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a request of %zu profiles",
                           n_jobs);
    }

    state->request = request;
    state->ingest = ingest;
    state->options = ingest->options;
    state->options.limits = limits;
    state->use = hearth_tenant_use_take(ingest->options.uses, request->tenant);
    state->now_ns = hearth_clock_wall_ns();
    state->upload_count = request->is_one_upload ? hearth_store_count_upload(ingest->store) : 0;
    hearth_mutex_init(&state->lock, HEARTH_RANK_PUSH, "push.lock");
    hearth_arena_init(&state->arena, 64u << 20);
    request->n_profiles = (uint32_t)n_jobs;
    request->state = state;
    /* From now on hearth_ingest_give_up may use the state. */
    atomic_store(&request->n_pending, (uint32_t)n_jobs + 1);

    return HEARTH_OK;
}

void hearth_ingest_push(struct hearth_ingest *ingest, struct hearth_push_request *request)
{
    assert(request->done != NULL && request->state == NULL);
    request->status = HEARTH_OK;
    request->n_profiles = request->n_failed = request->n_repeated = request->n_refused = 0;
    memset(request->discards, 0, sizeof request->discards);

    struct hearth_push_view view;
    hearth_push_view_init(&view, request->view, ingest->shown);
    request->status = make_push_state(ingest, request, &request->err);
    if (request->status != HEARTH_OK) {
        hearth_push_view_release(&view);
        count_rejected_profile(request, request->status);
        request->done(request);
        return;
    }

    struct hearth_push_state *state = request->state;
    state->view = &view;
    struct push_job *jobs = state->jobs;
    for (size_t i = 0; i < request->n_series; i++) {
        push_one_series(state, (uint32_t)i, jobs);
        jobs += request->series[i].n_samples;
    }

    state->view = NULL;
    hearth_push_view_release(&view);

    /* Release the hold that kept the request open while its profiles were submitted. */
    release_pending_profile(state);
}

/* Keeps a running push open. False: it has not begun, or all of its profiles have ended. */
static bool hold_pending_profile(struct hearth_push_request *request)
{
    uint32_t n = atomic_load(&request->n_pending);
    while (n > 0 && !atomic_compare_exchange_weak(&request->n_pending, &n, n + 1)) {
    }
    return n > 0;
}

bool hearth_push_withdraw(struct hearth_ingest *ingest, struct hearth_push_request *request,
                          enum hearth_status status, const struct hearth_err *err)
{
    assert(ingest != NULL && request != NULL);

    atomic_store(&request->is_given_up, true);
    if (!hold_pending_profile(request)) {
        return true;
    }

    struct hearth_push_state *state = request->state;
    bool may_be_stored = false;
    for (uint32_t i = 0; i < request->n_profiles; i++) {
        may_be_stored = hearth_store_withdraw(ingest->store, &state->jobs[i].item, status, err) ||
                        may_be_stored;
    }

    release_pending_profile(state);
    return may_be_stored;
}
