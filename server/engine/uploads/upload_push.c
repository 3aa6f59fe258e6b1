/*
 * upload_push.c -- pushes the profiles of a decoded file in groups, and writes what became of them
 * (contract: uploads/upload_parse.h).
 *
 * Before each group the upload notes since when it may be in doubt, and after it that it is
 * settled. Each profile has its number in the file as a part of its push id: a group that is pushed
 * again is stored once.
 */
#include "hearth/base/budget.h"
#include "hearth/base/clock.h"
#include "hearth/store/store_uploads.h"

#include "ingest/ingest_internal.h"
#include "ingest/push_wait.h"
#include "uploads/upload_parse.h"

enum hearth_status hearth_upload_fail_memory(const struct hearth_upload_parsing *p,
                                             struct hearth_err *err)
{
    const struct hearth_budget *budget = p->work->budget;

    return HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                       "the file needs more memory than a parser has (upload-memory-bytes, %zu)",
                       budget == NULL ? 0 : budget->limit_bytes);
}

bool hearth_upload_may_pass(enum hearth_status status)
{
    return status == HEARTH_UNAVAILABLE || status == HEARTH_CANCELLED ||
           status == HEARTH_RESOURCE_EXHAUSTED || status == HEARTH_DEADLINE_EXCEEDED;
}

/* ---- results ---- */

/* False for samples that ingest drops: negative or dangling ones. */
static bool is_sample_kept(const struct hearth_profile *profile, uint32_t sample)
{
    bool has_value = false;

    for (uint32_t t = 0; t < profile->n_types; t++) {
        int64_t value = profile->values[(size_t)sample * profile->n_types + t];
        if (value < 0) {
            return false;
        }
        has_value = has_value || value > 0;
    }
    for (uint32_t l = profile->stack_first[sample]; l < profile->stack_first[sample + 1]; l++) {
        if (profile->stack_locs[l] == HEARTH_NO_INDEX) {
            return false;
        }
    }

    return has_value;
}

static int64_t count_kept_samples(const struct hearth_profile *profile)
{
    int64_t n = 0;

    for (uint32_t s = 0; s < profile->n_samples; s++) {
        n += is_sample_kept(profile, s);
    }
    return n;
}

/* The sum of a type over the kept samples; INT64_MAX if it is larger. */
static int64_t sum_kept_values(const struct hearth_profile *profile, uint32_t type)
{
    int64_t total = 0;

    for (uint32_t s = 0; s < profile->n_samples; s++) {
        int64_t value = profile->values[(size_t)s * profile->n_types + type];
        if (is_sample_kept(profile, s) && __builtin_add_overflow(total, value, &total)) {
            return INT64_MAX;
        }
    }
    return total;
}

/* Appends the rows of a profile to `rows`, which has room for one per type. */
static enum hearth_status add_results(struct hearth_upload_parsing *p, size_t i,
                                      const struct hearth_push_receipt *receipt,
                                      struct hearth_profile_upload_result *rows, size_t *n,
                                      struct hearth_err *err)
{
    const struct hearth_push_series *series = &p->request.series[i];
    const struct hearth_profile *profile = series->samples[0].decoded;
    struct hearth_profile unread = *profile;
    const struct hearth_push_work work = {
        .limits = &p->limits, .arena = &p->arena, .profile = &unread};
    struct hearth_identity identity = {.name = HEARTH_STR("")};
    struct hearth_str *types;

    for (size_t l = 0; l < series->n_labels; l++) {
        if (hearth_str_eq_c(series->labels[l].name, HEARTH_LABEL_NAME)) {
            identity.name = series->labels[l].value;
        }
    }
    HEARTH_TRY(hearth_identity_types(&work, &identity, &types, err));

    int64_t n_samples = count_kept_samples(profile);
    for (uint32_t t = 0; t < profile->n_types; t++) {
        rows[(*n)++] = (struct hearth_profile_upload_result){
            .profile = (int32_t)i,
            .type = (int32_t)t,
            .profile_type = types[t],
            .writer_id = receipt->profile.writer_id,
            .profile_no = receipt->profile.profile_no,
            .n_samples = n_samples,
            .total = sum_kept_values(profile, t),
        };
    }

    return HEARTH_OK;
}

/* ---- pushing ---- */

/* Counts how the profiles of a group ended, and makes the rows of the stored ones. */
static enum hearth_status judge_group(struct hearth_upload_parsing *p, size_t first, size_t n,
                                      const struct hearth_push_receipt *receipts,
                                      struct hearth_profile_upload_result **ret_rows, size_t *ret_n,
                                      struct hearth_err *err)
{
    size_t n_rows = 0;
    for (size_t i = first; i < first + n; i++) {
        n_rows += p->request.series[i].samples[0].decoded->n_types;
    }
    *ret_rows = hearth_arena_array(&p->arena, n_rows, sizeof **ret_rows);
    *ret_n = 0;
    if (*ret_rows == NULL) {
        return hearth_upload_fail_memory(p, err);
    }

    for (size_t i = 0; i < n; i++) {
        const struct hearth_push_receipt *receipt = &receipts[i];
        if (receipt->status != HEARTH_OK) {
            p->upload->n_refused++;
            continue;
        }
        p->upload->n_stored += receipt->is_repeated || receipt->profile.writer_id != 0;
        if (first + i < HEARTH_UPLOAD_MAX_RESULTS) {
            HEARTH_TRY(add_results(p, first + i, receipt, *ret_rows, ret_n, err));
        }
    }

    return HEARTH_OK;
}

/* Writes the progress of the upload with rows of results. */
static enum hearth_status write_progress(struct hearth_upload_parsing *p,
                                         const struct hearth_profile_upload_result *rows, size_t n,
                                         struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena scratch;
    hearth_arena_init(&scratch, 0);

    return hearth_store_upload_progress(HEARTH_PARSING_SCOPE(p, &scratch), p->upload, rows, n, err);
}

/* True if a later attempt may store profiles that were refused now. */
static bool may_group_pass(enum hearth_status status, const struct hearth_push_outcome *outcome,
                           size_t n, const struct hearth_err *err)
{
    if (status == HEARTH_RESOURCE_EXHAUSTED && !err->is_passing && outcome->n_profiles > 0) {
        return false; /* a limit of series, not the rate or the disk */
    }

    for (size_t i = 0; i < n; i++) {
        enum hearth_status of_profile = outcome->receipts[i].status;
        if (of_profile != HEARTH_RESOURCE_EXHAUSTED && hearth_upload_may_pass(of_profile)) {
            return true;
        }
    }

    return status == HEARTH_RESOURCE_EXHAUSTED;
}

/* True if the push ended, and each of its profiles failed. */
static bool is_nothing_stored(const struct hearth_push_outcome *outcome)
{
    return outcome->has_ended && outcome->n_failed == outcome->n_profiles;
}

/* Pushes n profiles from number `first` on, and settles them. */
static enum hearth_status push_group(struct hearth_upload_parsing *p, size_t first, size_t n,
                                     struct hearth_err *err)
{
    struct hearth_profile_upload *upload = p->upload;
    struct hearth_push_receipt receipts[HEARTH_UPLOAD_GROUP] = {0};
    struct hearth_push_outcome outcome = {.receipts = receipts};

    /* From now on the group may be in doubt. */
    bool was_in_doubt = upload->storing_ms != 0;
    if (!was_in_doubt) {
        upload->storing_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    }
    HEARTH_TRY(write_progress(p, NULL, 0, err));

    struct hearth_push_request request = p->request;
    request.series += first;
    request.n_series = n;
    enum hearth_status status =
        hearth_push_wait_outcome(p->work->ingest, &request, p->work->cancel, &outcome, err);
    if ((status != HEARTH_OK && outcome.n_profiles == 0) ||
        may_group_pass(status, &outcome, n, err)) {
        if (!was_in_doubt && is_nothing_stored(&outcome)) {
            upload->storing_ms = 0;
            (void)!write_progress(p, NULL, 0, NULL);
        }
        return status;
    }
    if (status != HEARTH_OK && p->upload->n_refused == 0) {
        p->refusal = *err;
    }

    /* The group is settled. */
    struct hearth_profile_upload_result *rows;
    size_t n_rows;
    HEARTH_TRY(judge_group(p, first, n, receipts, &rows, &n_rows, err));
    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        p->discards[i] += outcome.discards[i];
    }
    upload->dropped = hearth_upload_write_discards(p->discards, &p->arena);
    if (upload->dropped.p == NULL) {
        return hearth_upload_fail_memory(p, err);
    }
    upload->n_settled = (int64_t)(first + n);
    upload->storing_ms = 0;

    return write_progress(p, rows, n_rows, err);
}

enum hearth_status hearth_upload_push(struct hearth_upload_parsing *p, struct hearth_err *err)
{
    struct hearth_profile_upload *upload = p->upload;
    size_t n = p->request.n_series;

    upload->n_profiles = (int64_t)n;
    upload->n_samples = 0;
    for (size_t i = 0; i < n; i++) {
        upload->n_samples += count_kept_samples(p->request.series[i].samples[0].decoded);
    }
    if (n == 0) {
        upload->dropped = hearth_upload_write_discards(p->discards, &p->arena);
        return upload->dropped.p == NULL ? hearth_upload_fail_memory(p, err)
                                         : write_progress(p, NULL, 0, err);
    }

    for (size_t i = (size_t)upload->n_settled; i < n; i += HEARTH_UPLOAD_GROUP) {
        size_t n_left = n - i;
        HEARTH_TRY(
            push_group(p, i, n_left < HEARTH_UPLOAD_GROUP ? n_left : HEARTH_UPLOAD_GROUP, err));
    }
    if (upload->n_refused > 0 && err != NULL) {
        *err = p->refusal;
    }

    return HEARTH_OK;
}
