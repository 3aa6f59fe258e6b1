/*
 * ingest.c -- requests: their state, the rate of a tenant, and the end of their profiles. The
 * calling thread runs the steps of each profile (push_profile.c); the committer's callback ends it.
 * A request is answered when its last profile has ended.
 *
 * Memory: decoding needs several times the size of the profile. That scratch memory returns to a
 * free list before the call ends; only the encoded rows, about a kilobyte a profile, wait for the
 * commit.
 */
#include "hearth/base/limit.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "ingest/push_spool.h"

#include <assert.h>
#include <stdio.h>

#define MAX_QUOTED_ID 64

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

/* Ends a request: all of its profiles are stored, on the disk, or have failed. */
void hearth_push_end_spooled(struct hearth_push_state *state)
{
    struct hearth_push_request *request = state->request;

    assert(atomic_load(&request->n_pending) == 0);

    if (request->n_failed > 1) {
        size_t n = strlen(request->err.msg);
        (void)snprintf(request->err.msg + n, sizeof request->err.msg - n,
                       "; and %u more of %u profiles failed", request->n_failed - 1,
                       request->n_profiles);
    }

    if (request->replay == NULL) {
        hearth_discards_count(request->discards);
    }
    hearth_buf_release(&state->spool.record);
    hearth_tenant_use_give(state->options.uses, state->use);
    hearth_arena_release(&state->arena);
    hearth_mutex_destroy(&state->lock);
    hearth_mem_free(state);
    request->state = NULL;

    request->done(request);
}

void hearth_push_release_pending(struct hearth_push_state *state)
{
    assert(atomic_load(&state->request->n_pending) > 0);

    if (atomic_fetch_sub(&state->request->n_pending, 1) == 1) {
        if (!hearth_push_keep_given_back(state) && !hearth_push_hand_to_spool(state)) {
            hearth_push_end_spooled(state);
        }
    }
}

static void count_rejected_profile(const struct hearth_push_request *request,
                                   enum hearth_status status)
{
    hearth_metric_add_labels(HEARTH_M_REJECTED, hearth_status_name(status),
                             request->client == NULL ? "task" : request->client, 1);
}

void hearth_push_record_failure(struct hearth_push_state *state, const struct hearth_push_job *job,
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

void hearth_push_end_job(struct hearth_push_item *item, enum hearth_status status,
                         const struct hearth_err *err)
{
    struct hearth_push_job *job = HEARTH_CONTAINER_OF(item, struct hearth_push_job, item);
    struct hearth_push_state *state = job->state;

    if (item->is_given_back) {
        hearth_push_note_given_back(job, err);
    } else if (status != HEARTH_OK) {
        hearth_push_record_failure(state, job, status, err);
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
    hearth_push_release_pending(state);
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
        &ingest->rates[hearth_hash64(tenant.p, tenant.n, hearth_hash_process_seed()) %
                       HEARTH_PUSH_RATE_SLOTS];
    int64_t now = hearth_clock_mono_ns();

    /* Earn tokens for the time since the last push, then spend them. */
    hearth_mutex_lock(&ingest->lock);
    double earned = (double)(now - slot->at_mono_ns) * (double)rate / 1e9;
    bool is_full = slot->at_mono_ns == 0 || slot->tokens + earned > (double)burst;
    slot->tokens = is_full ? (double)burst : slot->tokens + earned;
    slot->at_mono_ns = now;
    bool allowed = (double)n_bytes <= slot->tokens;
    slot->tokens -= allowed ? (double)n_bytes : 0;
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
 * profile. A spooled profile without an id has its record's key and its place in it.
 */
static void bind_push_id(struct hearth_push_job *job, const struct hearth_identity *identity,
                         struct hearth_str id)
{
    const struct hearth_push_replay *replay = job->state->request->replay;
    if (id.n == 0 && replay != NULL) {
        const uint64_t numbers[] = {replay->key.lo, replay->key.hi, job->series_idx};
        job->item.has_id = true;
        job->item.id_hash = hearth_hash128(numbers, sizeof numbers, 0);
        return;
    }
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
                            struct hearth_push_job *jobs)
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
        struct hearth_push_job *job = &jobs[i];
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
        hearth_metric_add(HEARTH_M_PROFILES_RECEIVED, request->replay == NULL);

        /* It ends here, or in push_one_profile, or when its commit ends. */
        if (status != HEARTH_OK) {
            hearth_push_record_failure(state, job, status, &err);
            hearth_push_release_pending(state);
            continue;
        }

        if (is_named) {
            bind_push_id(job, &identity, series->samples[i].id);
        }
        hearth_push_profile(job, &identity);
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
    bool is_charged = request->replay != NULL;
    enum hearth_status rate =
        is_charged ? HEARTH_OK
                   : check_push_rate(ingest, &limits, request->tenant, (int64_t)n_bytes, err);
    if (rate != HEARTH_OK) {
        HEARTH_TRY(check_push_sizes(request, &limits, err));
        hearth_tenant_use_count(ingest->options.uses, request->tenant, HEARTH_USE_REFUSED_RATE, 1);
        return rate;
    }

    if (!is_charged) {
        hearth_tenant_use_count(ingest->options.uses, request->tenant, HEARTH_USE_INGEST_BYTES,
                                (int64_t)n_bytes);
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
    if (is_charged) { /* encoded as pprof, a profile may be larger than it was when it was sent */
        state->options.limits.max_profile_bytes = state->options.limits.max_request_bytes = 0;
    }
    hearth_buf_init(&state->spool.record, 0);
    state->use = hearth_tenant_use_take(ingest->options.uses, request->tenant);
    state->now_ns = is_charged ? request->replay->received_ns : hearth_clock_wall_ns();
    state->upload_count = request->is_one_upload ? hearth_store_count_upload(ingest->store) : 0;
    hearth_mutex_init(&state->lock, HEARTH_RANK_PUSH, "push.lock");
    hearth_arena_init(&state->arena, 64u << 20);
    request->n_profiles = (uint32_t)n_jobs;
    request->needs_input = request->may_spool && ingest->options.spool != NULL &&
                           !hearth_push_memory_is_scarce(ingest->options.budget);
    request->state = state;
    /* From now on hearth_ingest_give_up may use the state. */
    atomic_store(&request->n_pending, (uint32_t)n_jobs + 1);

    return HEARTH_OK;
}

void hearth_ingest_push(struct hearth_ingest *ingest, struct hearth_push_request *request)
{
    assert(request->done != NULL && request->state == NULL);
    request->status = HEARTH_OK;
    request->n_profiles = request->n_failed = request->n_repeated = request->n_refused =
        request->n_spooled = 0;
    request->needs_input = false;
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
    struct hearth_push_job *jobs = state->jobs;
    for (size_t i = 0; i < request->n_series; i++) {
        push_one_series(state, (uint32_t)i, jobs);
        jobs += request->series[i].n_samples;
    }

    hearth_push_finish_waiting(state);
    state->view = NULL;
    hearth_push_view_release(&view);

    /* Release the hold that kept the request open while its profiles were submitted. */
    hearth_push_release_pending(state);
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

    hearth_push_release_pending(state);
    return may_be_stored;
}
