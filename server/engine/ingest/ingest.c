/*
 * ingest.c -- requests: each profile runs inflate, decode, identity, split, resolve, encode, submit
 * on the calling thread; the committer's callback ends it. A request is answered when its last
 * profile ended.
 *
 * Memory: what decoding needs (several times the profile) is scratch and goes back to a free list
 * before the call returns; only the encoded rows, about a kilobyte a profile, wait for the commit.
 */
#include "hearth/base/budget.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/compress.h"

#include "ingest/ingest_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define MAX_SCRATCH_KEPT       32
#define MAX_SCRATCH_KEPT_BYTES (8u * 1024 * 1024) /* larger inflate buffers are not kept */
#define RATE_SLOTS             1024
#define MAX_QUOTED_ID          64

/* Warm memory of one profile's decoding. */
struct scratch {
    struct scratch *next;
    struct hearth_inflater *inflater;
    struct hearth_buf raw;
    struct hearth_arena arena;
};

/* Token bucket of one tenant; tenants share a slot when their hashes collide (then they share the
 * rate). */
struct rate {
    int64_t tokens, at_mono_ns;
};

struct hearth_ingest {
    struct hearth_ingest_options options;
    struct hearth_store *store;
    pthread_mutex_t lock; /* guards free_scratch, n_free, rates */
    struct scratch *free_scratch;
    unsigned n_free;
    struct rate rates[RATE_SLOTS];
};

/* One profile of a request. */
struct push_job {
    struct hearth_push_item item; /* first: the committer gives it back */
    struct hearth_push_state *state;
    struct hearth_arena keep; /* rows until the commit */
    uint32_t series_idx, n_samples;
    bool has_hints, is_read;
    struct hearth_str id;
    struct hearth_push_receipt *receipt; /* NULL: nobody wants it */
};

struct hearth_push_state {
    struct hearth_push_request *request;
    struct hearth_ingest *ingest;
    pthread_mutex_t lock; /* guards the request's outcome while profiles end on several threads */
    int64_t now_ns;
    struct hearth_ingest_options options; /* with the limits of the tenant */
    struct hearth_arena arena;            /* identities */
    uint64_t raw_bytes;
    struct push_job jobs[];
};

/* ---- scratch ---- */

static void scratch_free(struct scratch *scratch)
{
    hearth_inflater_free(scratch->inflater);
    hearth_buf_release(&scratch->raw);
    hearth_arena_release(&scratch->arena);
    hearth_mem_free(scratch);
}

/* Decoded arrays are up to about eight times the inflated bytes. */
static size_t scratch_limit(const struct hearth_limits *limits)
{
    size_t raw = limits->max_profile_bytes > 0 ? (size_t)limits->max_profile_bytes : 0, bytes;
    bool fits = raw > 0 && !__builtin_mul_overflow(raw, (size_t)12, &bytes) &&
                !__builtin_add_overflow(bytes, (size_t)1 << 20, &bytes);
    return fits ? bytes : 0;
}

static struct scratch *scratch_take(struct hearth_ingest *ingest)
{
    (void)pthread_mutex_lock(&ingest->lock);
    struct scratch *scratch = ingest->free_scratch;
    if (scratch != NULL) {
        ingest->free_scratch = scratch->next;
        ingest->n_free--;
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    if (scratch != NULL) {
        return scratch;
    }
    scratch = hearth_mem_zalloc(sizeof *scratch);
    if (scratch == NULL) {
        return NULL;
    }
    hearth_buf_init(&scratch->raw, 0);
    hearth_arena_init(&scratch->arena, 0);
    scratch->raw.budget = scratch->arena.budget = ingest->options.budget;
    scratch->inflater = hearth_inflater_new();
    if (scratch->inflater == NULL) {
        scratch_free(scratch);
        return NULL;
    }
    return scratch;
}

static void scratch_give(struct hearth_ingest *ingest, struct scratch *scratch)
{
    hearth_arena_reset(&scratch->arena);
    hearth_buf_reset(&scratch->raw);
    if (scratch->raw.cap > MAX_SCRATCH_KEPT_BYTES) {
        hearth_buf_release(&scratch->raw);
    }
    (void)pthread_mutex_lock(&ingest->lock);
    bool keep = ingest->n_free < MAX_SCRATCH_KEPT;
    if (keep) {
        scratch->next = ingest->free_scratch;
        ingest->free_scratch = scratch;
        ingest->n_free++;
    }
    (void)pthread_mutex_unlock(&ingest->lock);
    if (!keep) {
        scratch_free(scratch);
    }
}

void hearth_ingest_drop_idle(struct hearth_ingest *ingest)
{
    (void)pthread_mutex_lock(&ingest->lock);
    struct scratch *idle = ingest->free_scratch;
    ingest->free_scratch = NULL;
    ingest->n_free = 0;
    (void)pthread_mutex_unlock(&ingest->lock);
    while (idle != NULL) {
        struct scratch *next = idle->next;
        scratch_free(idle);
        idle = next;
    }
}

/* ---- engine ---- */

enum hearth_status hearth_ingest_new(const struct hearth_ingest_options *options,
                                     struct hearth_store *store, struct hearth_ingest **ret_ingest,
                                     struct hearth_err *err)
{
    struct hearth_ingest *ingest = hearth_mem_zalloc(sizeof *ingest);
    if (ingest == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the ingest engine");
    }
    ingest->options = *options;
    ingest->store = store;
    (void)pthread_mutex_init(&ingest->lock, NULL);
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
    (void)pthread_mutex_destroy(&ingest->lock);
    hearth_mem_free(ingest);
}

/* ---- ends of profiles and requests ---- */

static void finish_request(struct hearth_push_state *state)
{
    struct hearth_push_request *request = state->request;
    if (request->n_failed > 1) {
        size_t n = strlen(request->err.msg);
        (void)snprintf(request->err.msg + n, sizeof request->err.msg - n,
                       "; and %u more of %u profiles failed", request->n_failed - 1,
                       request->n_profiles);
    }
    hearth_discards_count(request->discards);
    hearth_arena_release(&state->arena);
    (void)pthread_mutex_destroy(&state->lock);
    hearth_mem_free(state);
    request->state = NULL;
    request->done(request);
}

static void release_pending(struct hearth_push_state *state)
{
    if (atomic_fetch_sub(&state->request->n_pending, 1) == 1) {
        finish_request(state);
    }
}

static void count_rejected(const struct hearth_push_request *request, enum hearth_status status)
{
    hearth_metric_add_labels(HEARTH_M_REJECTED, hearth_status_name(status),
                             request->client == NULL ? "task" : request->client, 1);
}

static void record_failure(struct hearth_push_state *state, const struct push_job *job,
                           enum hearth_status status, const struct hearth_err *err)
{
    struct hearth_push_request *request = state->request;
    if (job->receipt != NULL) {
        job->receipt->status = status;
    }
    count_rejected(request, status);
    (void)pthread_mutex_lock(&state->lock);
    if (request->n_failed++ == 0) {
        request->status = status;
        request->err = *err;
        request->is_unreadable = !job->is_read;
        /* The id is the client's and may be long: the reason must stay readable. */
        int n_id = job->id.n > MAX_QUOTED_ID ? MAX_QUOTED_ID : (int)job->id.n;
        if (!job->has_hints) { /* clients of /ingest know neither series nor ids */
            hearth_err_prefix(&request->err, "push series with index %u and id %.*s failed",
                              job->series_idx, n_id, n_id > 0 ? job->id.p : "");
        }
    }
    (void)pthread_mutex_unlock(&state->lock);
}

static void job_done(struct hearth_push_item *item, enum hearth_status status,
                     const struct hearth_err *err)
{
    struct push_job *job = HEARTH_CONTAINER_OF(item, struct push_job, item);
    struct hearth_push_state *state = job->state;
    if (status != HEARTH_OK) {
        record_failure(state, job, status, err);
    } else if (item->repeated) {
        if (job->receipt != NULL) {
            job->receipt->is_repeated = true;
        }
        hearth_metric_add(HEARTH_M_PROFILES_REPEATED, 1);
        (void)pthread_mutex_lock(&state->lock);
        state->request->n_repeated++;
        (void)pthread_mutex_unlock(&state->lock);
    } else {
        if (job->receipt != NULL) {
            job->receipt->profile = (struct hearth_profile_id){item->writer_id, item->profile_no};
        }
        hearth_metric_add(HEARTH_M_PROFILES_STORED, 1);
        hearth_metric_add(HEARTH_M_SAMPLES_STORED, job->n_samples);
        hearth_metric_add(HEARTH_M_ROWS_STORED, (int64_t)item->n_rows);
    }
    hearth_arena_release(&job->keep);
    release_pending(state);
}

/* ---- one profile ---- */

/* CPU of a stage since *mark; moves the mark. */
static void count_stage(const char *stage, int64_t *mark)
{
    int64_t now = hearth_clock_thread_cpu_ns();
    hearth_metric_add_label(HEARTH_M_INGEST_STAGE_NS, hearth_str_c(stage), now - *mark);
    *mark = now;
}

static enum hearth_status inflate_profile(struct push_job *job, struct hearth_str profile,
                                          struct scratch *scratch, struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    const struct hearth_limits *limits = &state->options.limits;
    size_t cap = limits->max_profile_bytes > 0 ? (size_t)limits->max_profile_bytes : SIZE_MAX / 16;
    const char *limit_name = "max-profile-bytes";
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
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "the profile exceeds the size limit (max_profile_size_byte, actual: more, limit: "
            "%zu): uncompressed profile payload size exceeds limit of %zu bytes; the option is %s",
            cap, cap, limit_name);
    }
    if (status == HEARTH_NO_MEMORY && scratch->raw.budget != NULL) {
        return HEARTH_FAIL_BUDGET(err, scratch->raw.budget);
    }
    state->raw_bytes += scratch->raw.n;
    hearth_metric_add(HEARTH_M_PROFILE_RAW_BYTES, (int64_t)scratch->raw.n);
    return status;
}

/* Series ids of all groups: one catalogue call for the profile. */
static enum hearth_status
resolve_groups(struct push_job *job, const struct hearth_identity *identity,
               const struct hearth_profile *profile, const struct hearth_split *split,
               struct hearth_arena *arena, struct hearth_series_ref **ret_refs,
               struct hearth_err *err)
{
    struct hearth_series_key *keys;
    HEARTH_TRY(hearth_identity_keys(&job->state->options.limits, identity, profile, split, arena,
                                    &keys, err));
    struct hearth_series_ref *refs = hearth_arena_array(arena, split->n_groups, sizeof refs[0]);
    if (refs == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    *ret_refs = refs;
    return hearth_store_resolve_series(job->state->ingest->store, job->state->request->tenant, keys,
                                       split->n_groups, job->item.ts_ns, refs, err);
}

/* Rows of all groups into job->item; stack ids come from the service's dictionary of the day. */
static enum hearth_status encode_groups(struct push_job *job, const struct hearth_profile *profile,
                                        const struct hearth_split *split,
                                        const struct hearth_series_ref *refs,
                                        const uint32_t *stack_ids, struct hearth_arena *arena,
                                        struct hearth_err *err)
{
    struct hearth_push_item *item = &job->item;
    item->rows = hearth_arena_array(&job->keep, split->n_groups, sizeof item->rows[0]);
    if (item->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &job->keep);
    }
    item->n_rows = split->n_groups;
    for (size_t g = 0; g < split->n_groups; g++) {
        HEARTH_TRY(hearth_group_encode(profile, &split->groups[g], stack_ids, split->has_attrs,
                                       arena, &job->keep, job->state->request->discards,
                                       &item->rows[g], err));
        item->rows[g].series_id = refs[g].series_id;
        job->n_samples += item->rows[g].columns.n;
    }
    return HEARTH_OK;
}

/* The profile and whose it is: *identity is that of the series, or its own in *named. */
static enum hearth_status read_profile(struct push_job *job,
                                       const struct hearth_push_sample *sample,
                                       struct scratch *scratch, struct hearth_profile *profile,
                                       const struct hearth_identity **identity,
                                       struct hearth_identity *named, struct hearth_err *err)
{
    const struct hearth_push_request *request = job->state->request;
    const struct hearth_ingest_options *options = &job->state->options;
    uint64_t *discards = job->state->request->discards;
    struct hearth_arena *arena = &scratch->arena;
    struct hearth_str name;
    int64_t mark = hearth_clock_thread_cpu_ns();
    if (sample->decoded != NULL) {
        *profile = *sample->decoded;
        job->is_read = true;
        return HEARTH_OK;
    }
    HEARTH_TRY(inflate_profile(job, sample->profile, scratch, err));
    count_stage("inflate", &mark);
    HEARTH_TRY(hearth_ingest_decode(&options->limits, sample->hints, hearth_buf_view(&scratch->raw),
                                    arena, discards, profile, &name, err));
    count_stage("scan", &mark);
    job->is_read = true;
    if (sample->hints == NULL) {
        return HEARTH_OK;
    }
    *identity = named;
    return hearth_identity_make_named(options, &request->series[job->series_idx], name,
                                      request->app_name, arena, discards, named, err);
}

/* Everything between inflated bytes and a row in the commit queue. *ret_submitted: `job_done` will
 * come. */
static enum hearth_status run_profile(struct push_job *job, const struct hearth_identity *identity,
                                      const struct hearth_push_sample *sample,
                                      struct scratch *scratch, bool *ret_submitted,
                                      struct hearth_err *err)
{
    struct hearth_push_state *state = job->state;
    struct hearth_ingest *ingest = state->ingest;
    const struct hearth_limits *limits = &state->options.limits;
    struct hearth_arena *arena = &scratch->arena;
    struct hearth_profile profile;
    struct hearth_identity named;
    HEARTH_TRY(read_profile(job, sample, scratch, &profile, &identity, &named, err));
    int64_t mark = hearth_clock_thread_cpu_ns();
    HEARTH_TRY(hearth_identity_time(limits, identity, profile.time_ns, state->now_ns,
                                    hearth_store_clock_ahead_ns(ingest->store), &job->item.ts_ns,
                                    err));
    struct hearth_stack_keys keys;
    HEARTH_TRY(hearth_stack_keys_make(&profile, arena, &keys, err));
    struct hearth_split split;
    HEARTH_TRY(hearth_split_samples(limits, &profile, &identity->labels, keys.skip, arena,
                                    state->request->discards, &split, err));
    if (split.n_groups == 0) {
        state->request->discards[HEARTH_DISCARD_EMPTY_PROFILES]++;
        return HEARTH_OK;
    }
    struct hearth_series_ref *refs;
    HEARTH_TRY(resolve_groups(job, identity, &profile, &split, arena, &refs, err));
    job->item.service_id = refs[0].service_id;
    uint32_t *stack_ids = hearth_arena_array(arena, profile.n_samples, sizeof stack_ids[0]);
    if (stack_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    HEARTH_TRY(hearth_store_dict_acquire(ingest->store, job->item.service_id, job->item.ts_ns,
                                         &job->item.dict, err));
    enum hearth_status status =
        hearth_store_dict_resolve(job->item.dict, &profile, &keys, stack_ids, err);
    count_stage("resolve", &mark);
    if (status == HEARTH_OK) {
        status = encode_groups(job, &profile, &split, refs, stack_ids, arena, err);
        count_stage("encode", &mark);
    }
    if (status == HEARTH_OK) {
        job->item.done = job_done;
        status = hearth_store_submit(ingest->store, &job->item, err);
        *ret_submitted = status == HEARTH_OK;
    }
    if (status != HEARTH_OK) {
        hearth_store_dict_release(ingest->store, job->item.dict);
    }
    return status;
}

/*
 * Decoding did not get the memory that it needs. What others hold will be free again, so that the client may come
 * again; a profile that does not fit even alone is refused for good.
 */
static enum hearth_status judge_memory(const struct push_job *job, const struct scratch *scratch,
                                       struct hearth_err *err)
{
    const struct hearth_budget *budget = job->state->ingest->options.budget;
    size_t refused = hearth_budget_refused_bytes();
    if (refused == 0 || budget == NULL) {
        return scratch->arena.over_limit
                   ? HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "the profile needs more than %zu bytes of memory to decode, which "
                                 "is due to max-profile-bytes",
                                 scratch->arena.limit_bytes)
                   : HEARTH_NO_MEMORY;
    }
    size_t alone = refused + job->state->request->held_bytes + scratch->raw.cap +
                   hearth_arena_held_bytes(&scratch->arena);
    if (alone > budget->limit_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile alone needs %zu bytes of memory or more to decode; the "
                           "limit (%s) is %zu",
                           alone, budget->option, budget->limit_bytes);
    }
    hearth_ingest_drop_idle(job->state->ingest);
    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                       "request bodies and pushes in work need more than %s (%zu)", budget->option,
                       budget->limit_bytes);
}

static void push_profile(struct push_job *job, const struct hearth_identity *identity,
                         const struct hearth_push_sample *sample)
{
    struct hearth_push_state *state = job->state;
    struct hearth_err err = HEARTH_ERR_INIT;
    bool submitted = false;
    enum hearth_status status;
    bool is_given_up = atomic_load(&state->request->is_given_up);
    struct scratch *scratch = is_given_up ? NULL : scratch_take(state->ingest);
    if (is_given_up) {
        status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "nobody waits for the push any more");
    } else if (scratch == NULL) {
        status = HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate memory to decode a profile");
    } else {
        scratch->arena.limit_bytes = scratch_limit(&state->options.limits);
        (void)hearth_budget_refused_bytes(); /* of the profile before */
        status = run_profile(job, identity, sample, scratch, &submitted, &err);
        status = status == HEARTH_NO_MEMORY ? judge_memory(job, scratch, &err) : status;
        scratch_give(state->ingest, scratch);
    }
    if (submitted) {
        return;
    }
    if (status != HEARTH_OK) {
        record_failure(state, job, status, &err);
    }
    hearth_arena_release(&job->keep);
    release_pending(state);
}

/* ---- requests ---- */

/* One bucket per tenant; charged with the compressed size before, since the rest is known only
 * after the work. */
static enum hearth_status check_rate(struct hearth_ingest *ingest,
                                     const struct hearth_limits *limits, struct hearth_str tenant,
                                     int64_t n_bytes, struct hearth_err *err)
{
    int64_t rate = limits->ingest_rate_bytes;
    if (rate <= 0) {
        return HEARTH_OK;
    }
    int64_t burst = limits->ingest_burst_bytes;
    burst = burst > 0 ? burst : rate;
    struct rate *slot =
        &ingest->rates[hearth_hash64(tenant.p, tenant.n, hearth_hash_process_seed()) % RATE_SLOTS];
    int64_t now = hearth_clock_mono_ns();
    (void)pthread_mutex_lock(&ingest->lock);
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
    (void)pthread_mutex_unlock(&ingest->lock);
    if (allowed) {
        return HEARTH_OK;
    }
    return HEARTH_FAIL(
        err, HEARTH_RESOURCE_EXHAUSTED,
        "push rate limit (%lld bytes per second, burst %lld; limits ingest-rate-bytes, "
        "ingest-burst-bytes) exceeded while adding %lld bytes",
        (long long)rate, (long long)burst, (long long)n_bytes);
}

/* A profile that says itself that it is too large stays so: that it is beyond the rate, too, does not matter. */
static enum hearth_status check_sizes(const struct hearth_push_request *request,
                                      const struct hearth_limits *limits, struct hearth_err *err)
{
    for (size_t i = 0; i < request->n_series && limits->max_profile_bytes > 0; i++) {
        for (size_t k = 0; k < request->series[i].n_samples; k++) {
            struct hearth_str profile = request->series[i].samples[k].profile;
            uint64_t n = hearth_inflated_bytes(hearth_compression_detect(profile), profile);
            if (n > (uint64_t)limits->max_profile_bytes) {
                return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                   "the profile exceeds the size limit (max_profile_size_byte, "
                                   "actual: %llu, limit: %lld); the option is max-profile-bytes",
                                   (unsigned long long)n, (long long)limits->max_profile_bytes);
            }
        }
    }
    return HEARTH_OK;
}

/* The idempotency key of a profile: the client's id, bound to the series it was sent for. */
static void bind_id(struct push_job *job, const struct hearth_identity *identity,
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

static void push_series(struct hearth_push_state *state, uint32_t series_idx, struct push_job *jobs)
{
    struct hearth_push_request *request = state->request;
    const struct hearth_push_series *series = &request->series[series_idx];
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_identity identity = {0};
    /* With hints, profiles name themselves. */
    bool is_named = series->n_samples > 0 && series->samples[0].hints == NULL;
    enum hearth_status status =
        is_named ? hearth_identity_make(&state->options, series, request->app_name, &state->arena,
                                        request->discards, &identity, &err)
                 : HEARTH_OK;
    for (size_t i = 0; i < series->n_samples; i++) {
        struct push_job *job = &jobs[i];
        job->state = state;
        job->series_idx = series_idx;
        job->has_hints = !is_named;
        job->receipt = series->samples[i].receipt;
        if (job->receipt != NULL) {
            *job->receipt = (struct hearth_push_receipt){.status = HEARTH_OK};
        }
        /* A copy: the end may come after the caller has let go of its texts. */
        job->id = hearth_arena_str(&state->arena, series->samples[i].id);
        hearth_arena_init(&job->keep, 0);
        hearth_metric_add(HEARTH_M_PROFILES_RECEIVED, 1);
        if (status != HEARTH_OK) {
            record_failure(state, job, status, &err);
            release_pending(state);
            continue;
        }
        if (is_named) {
            bind_id(job, &identity, series->samples[i].id);
        }
        push_profile(job, &identity, &series->samples[i]);
    }
}

static enum hearth_status make_state(struct hearth_ingest *ingest,
                                     struct hearth_push_request *request, struct hearth_err *err)
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
    struct hearth_limits limits;
    hearth_limits_of_tenant(&ingest->options.limits, ingest->store, request->tenant, &limits);
    enum hearth_status rate = check_rate(ingest, &limits, request->tenant, (int64_t)n_bytes, err);
    if (rate != HEARTH_OK) {
        HEARTH_TRY(check_sizes(request, &limits, err));
        return rate;
    }
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
    state->now_ns = hearth_clock_wall_ns();
    (void)pthread_mutex_init(&state->lock, NULL);
    hearth_arena_init(&state->arena, 64u << 20);
    request->n_profiles = (uint32_t)n_jobs;
    request->state = state;
    atomic_store(&request->n_pending, (uint32_t)n_jobs + 1); /* hearth_ingest_give_up may use it */
    return HEARTH_OK;
}

void hearth_ingest_push(struct hearth_ingest *ingest, struct hearth_push_request *request)
{
    request->status = HEARTH_OK;
    request->n_profiles = request->n_failed = request->n_repeated = 0;
    memset(request->discards, 0, sizeof request->discards);
    request->status = make_state(ingest, request, &request->err);
    if (request->status != HEARTH_OK) {
        count_rejected(request, request->status);
        request->done(request);
        return;
    }
    struct hearth_push_state *state = request->state;
    struct push_job *jobs = state->jobs;
    for (size_t i = 0; i < request->n_series; i++) {
        push_series(state, (uint32_t)i, jobs);
        jobs += request->series[i].n_samples;
    }
    release_pending(
        state); /* the one that kept the request open while its profiles were submitted */
}

/* False: the push has not begun, or all of it has ended. */
static bool hold_pending(struct hearth_push_request *request)
{
    uint32_t n = atomic_load(&request->n_pending);
    while (n > 0 && !atomic_compare_exchange_weak(&request->n_pending, &n, n + 1)) {
    }
    return n > 0;
}

bool hearth_push_withdraw(struct hearth_ingest *ingest, struct hearth_push_request *request,
                          enum hearth_status status, const struct hearth_err *err)
{
    atomic_store(&request->is_given_up, true);
    if (!hold_pending(request)) {
        return true;
    }
    struct hearth_push_state *state = request->state;
    bool may_be_stored = false;
    for (uint32_t i = 0; i < request->n_profiles; i++) {
        may_be_stored = hearth_store_withdraw(ingest->store, &state->jobs[i].item, status, err) ||
                        may_be_stored;
    }
    release_pending(state);
    return may_be_stored;
}
