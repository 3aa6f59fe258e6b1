/*
 * upload_queue.c -- the queue of uploads: claims with a lease, progress, outcomes (contract:
 * hearth/store/store_uploads.h).
 *
 * A claim is one UPDATE of one row, chosen by FOR UPDATE SKIP LOCKED: servers that look at the same
 * time choose different rows. Its number fences later writes of a server whose lease has expired.
 * Leases are times of the database's clock.
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_uploads.h"

#include "uploads/upload_rows.h"

#include <assert.h>

/* The row of a claim that still holds: $1 upload, $2 claim. */
#define OF_CLAIM " WHERE upload_no = $1 AND claim = $2 AND state = 2"

static void make_claim_params(const struct hearth_profile_upload *upload,
                              struct hearth_arena *arena, struct hearth_pg_params *params)
{
    assert(upload->claim > 0);

    hearth_pg_params_init(params, arena);
    hearth_pg_param_i64(params, upload->upload_no);
    hearth_pg_param_i32(params, upload->claim);
}

static enum hearth_status check_claim(const struct hearth_profile_upload *upload, size_t n_rows,
                                      struct hearth_err *err)
{
    return n_rows > 0 ? HEARTH_OK
                      : HEARTH_FAIL(err, HEARTH_ABORTED,
                                    "upload \"" HEARTH_STR_FMT
                                    "\" was deleted, or another server parses it",
                                    HEARTH_STR_ARG(upload->upload_id));
}

enum hearth_status hearth_store_upload_claim(const struct hearth_scope *scope, int64_t lease_ms,
                                             struct hearth_profile_upload *ret, bool *ret_found,
                                             struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i64(&params, lease_ms);
    const struct hearth_scope own = hearth_scope_of_owner(scope); /* uploads of any tenant */

    /* By the index on due_at. An expired lease means that its server was lost. */
    return hearth_store_select_one(
        &own,
        "WITH d AS MATERIALIZED (SELECT upload_no FROM hearth_data.profile_upload"
        " WHERE state IN (1, 2) AND due_at <= now() ORDER BY due_at, upload_no LIMIT 1"
        " FOR UPDATE SKIP LOCKED)"
        " UPDATE hearth_data.profile_upload u SET state = 2, claim = u.claim + 1,"
        " n_lost = u.n_lost + (u.state = 2)::int4,"
        " due_at = now() + $1 * interval '1 millisecond'"
        " FROM d WHERE u.upload_no = d.upload_no RETURNING " HEARTH_UPLOAD_COLUMNS,
        &params, &hearth_upload_rows, ret, ret_found, err);
}

enum hearth_status hearth_store_upload_extend(const struct hearth_scope *scope,
                                              const struct hearth_profile_upload *upload,
                                              int64_t lease_ms, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_claim_params(upload, &arena, &params);
    hearth_pg_param_i64(&params, lease_ms);
    const struct hearth_scope own = hearth_scope_of_owner(scope); /* it may name no tenant */

    size_t n;
    HEARTH_TRY(hearth_store_run(&own,
                                "UPDATE hearth_data.profile_upload SET"
                                " due_at = now() + $3 * interval '1 millisecond'" OF_CLAIM
                                " RETURNING 1",
                                &params, &n, err));

    return check_claim(upload, n, err);
}

/* ---- progress ---- */

/* Progress to be written. */
struct progress_put {
    const struct hearth_profile_upload *upload;
    const struct hearth_profile_upload_result *results;
    size_t n_results;
};

static enum hearth_status insert_results(const struct progress_put *put,
                                         struct hearth_transaction *transaction,
                                         struct hearth_err *err)
{
    if (put->n_results == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i64(&params, put->upload->upload_no);
    hearth_pg_param_rows(&params, &hearth_upload_result_rows, put->results, put->n_results);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.profile_upload_result (upload_no, profile, type, profile_type,"
        " writer_id, profile_no, n_samples, total) SELECT $1, r.* FROM"
        " unnest($2, $3, $4, $5, $6, $7, $8) AS r ON CONFLICT (upload_no, profile, type) DO"
        " NOTHING",
        &params, NULL, err);
}

/* Writes the same values when it runs again. */
static enum hearth_status put_progress(void *context, struct hearth_transaction *transaction,
                                       struct hearth_err *err)
{
    const struct progress_put *put = context;
    const struct hearth_profile_upload *upload = put->upload;
    struct hearth_pg_params params;
    make_claim_params(upload, transaction->arena, &params);
    hearth_pg_param_i64(&params, upload->storing_ms);
    hearth_pg_param_i64(&params, upload->n_profiles);
    hearth_pg_param_i64(&params, upload->n_samples);
    hearth_pg_param_i64(&params, upload->n_settled);
    hearth_pg_param_i64(&params, upload->n_stored);
    hearth_pg_param_i64(&params, upload->n_refused);
    hearth_pg_param_text(&params, upload->dropped);

    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "UPDATE hearth_data.profile_upload SET storing_at = $3, n_profiles = $4, n_samples = $5,"
        " n_settled = $6, n_stored = $7, n_refused = $8, dropped = $9" OF_CLAIM " RETURNING 1",
        &params, &n, err));
    HEARTH_TRY(check_claim(upload, n, err));

    return insert_results(put, transaction, err);
}

enum hearth_status hearth_store_upload_progress(const struct hearth_scope *scope,
                                                const struct hearth_profile_upload *upload,
                                                const struct hearth_profile_upload_result *results,
                                                size_t n_results, struct hearth_err *err)
{
    struct progress_put put = {upload, results, n_results};

    return hearth_store_in_transaction(scope, put_progress, &put, err);
}

/* ---- the end of a claim ---- */

enum hearth_status hearth_store_upload_again(const struct hearth_scope *scope,
                                             const struct hearth_profile_upload *upload,
                                             int64_t delay_ms, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_claim_params(upload, &arena, &params);
    hearth_pg_param_i64(&params, delay_ms);
    hearth_pg_param_text(&params, upload->reason);

    size_t n;
    HEARTH_TRY(hearth_store_run(scope,
                                "UPDATE hearth_data.profile_upload SET state = 1, reason = $4,"
                                " due_at = now() + $3 * interval '1 millisecond'" OF_CLAIM
                                " RETURNING 1",
                                &params, &n, err));

    return check_claim(upload, n, err);
}

enum hearth_status hearth_store_upload_end(const struct hearth_scope *scope,
                                           const struct hearth_profile_upload *upload,
                                           struct hearth_err *err)
{
    assert(upload->state == HEARTH_PROFILE_UPLOAD_DONE ||
           upload->state == HEARTH_PROFILE_UPLOAD_FAILED);
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_claim_params(upload, &arena, &params);
    hearth_pg_param_i32(&params, (int32_t)upload->state);
    hearth_pg_param_text(&params, upload->reason);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);

    size_t n;
    HEARTH_TRY(hearth_store_run(scope,
                                "UPDATE hearth_data.profile_upload SET state = $3, reason = $4,"
                                " ended_at = $5, storing_at = 0" OF_CLAIM " RETURNING 1",
                                &params, &n, err));

    return check_claim(upload, n, err);
}
