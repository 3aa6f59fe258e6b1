/* access_expire.c -- ended sessions and tokens, old months (contract: access/access_expire.h). */
#include "access/access_expire.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "access/access_write.h"
#include "pg/pg_slices.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>

#define SLICE_ROWS 1000
#define MAX_SLICES 20
/* The clocks of other servers may be late. */
#define MARGIN_MS     INT64_C(300000)
#define KEEP_TOKEN_MS (30 * HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS)
#define MAX_MONTHS    12 /* that one call drops */

/* ---- tokens ---- */

struct token_slice {
    int64_t before_ms;
    size_t n; /* deleted tokens */
};

static enum hearth_status delete_ended_tokens(void *context, struct hearth_transaction *transaction,
                                              bool *ret_changed, struct hearth_err *err)
{
    struct token_slice *slice = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i64(&params, slice->before_ms);
    hearth_pg_param_i64(&params, SLICE_ROWS);

    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "WITH ended AS (DELETE FROM hearth_data.access_token WHERE token_id IN (SELECT token_id"
        " FROM hearth_data.access_token WHERE expires_at BETWEEN 1 AND $1 LIMIT $2)"
        " RETURNING token_id), g AS (DELETE FROM hearth_data.access_grant g USING ended"
        " WHERE g.subject = 'token:' || ended.token_id) SELECT 1 FROM ended",
        &params, &slice->n, err));
    *ret_changed = slice->n > 0;

    return HEARTH_OK;
}

/* Looks first without the lock of the clock: there is rarely something to delete. */
static enum hearth_status has_ended_tokens(struct hearth_pg *pg, int64_t before_ms, bool *ret_has,
                                           struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i64(&params, before_ms);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT 1 FROM hearth_data.access_token"
                              " WHERE expires_at BETWEEN 1 AND $1 LIMIT 1",
                              &params, NULL, &result, NULL, err));
    *ret_has = PQntuples(result) > 0;
    PQclear(result);

    return HEARTH_OK;
}

static enum hearth_status expire_tokens(struct hearth_store *store, struct hearth_pg *pg,
                                        int64_t now_ms, struct hearth_err *err)
{
    const struct hearth_scope scope = {.store = store, .cancel = &store->boot_cancel};
    struct token_slice slice = {.before_ms = now_ms - KEEP_TOKEN_MS};

    bool has_ended;
    HEARTH_TRY(has_ended_tokens(pg, slice.before_ms, &has_ended, err));
    for (int i = 0; has_ended && i < MAX_SLICES; i++) {
        HEARTH_TRY(hearth_access_write(&scope, delete_ended_tokens, &slice, err));
        has_ended = slice.n == SLICE_ROWS;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_access_expire(struct hearth_store *store, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;

    /* Servers ignore sessions that have ended, so the version stays. */
    HEARTH_TRY(hearth_pg_delete_slices(
        pg,
        "DELETE FROM hearth_data.access_session WHERE ctid = ANY (ARRAY(SELECT ctid"
        " FROM hearth_data.access_session WHERE expires_at BETWEEN 1 AND $1 LIMIT $2"
        " FOR UPDATE SKIP LOCKED))",
        now_ms - MARGIN_MS, SLICE_ROWS, MAX_SLICES, err));

    return expire_tokens(store, pg, now_ms, err);
}

/* ---- the audit log ---- */

/* *ret_due: the first day of a month to drop. */
static enum hearth_status find_due_month(struct hearth_store *store, struct hearth_pg *pg,
                                         int32_t *ret_day, bool *ret_due, struct hearth_err *err)
{
    /* A drop that has begun. */
    HEARTH_TRY(hearth_partitions_leaving(pg, "audit", ret_day, ret_due, err));
    if (*ret_due || hearth_store_live(store)->retain_audit_ns <= 0) {
        return HEARTH_OK;
    }

    /* The oldest month. */
    HEARTH_TRY(hearth_partitions_next_day(pg, "'audit'", INT32_MIN, ret_day, ret_due, err));
    if (*ret_due) {
        int32_t next;
        (void)hearth_partition_month(*ret_day, &next);
        int64_t keep_from_ns = hearth_clock_wall_ns() - hearth_store_live(store)->retain_audit_ns;
        *ret_due = next <= hearth_day_of(keep_from_ns);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_audit_expire(struct hearth_store *store, struct hearth_pg *pg,
                                       struct hearth_err *err)
{
    assert(PQtransactionStatus(pg->conn) != PQTRANS_INTRANS);

    for (int i = 0; i < MAX_MONTHS; i++) {
        int32_t day = 0;
        bool is_due = false;
        HEARTH_TRY(find_due_month(store, pg, &day, &is_due, err));
        if (!is_due) {
            break;
        }

        /* A reader or another server may be in the way: the next call continues. */
        struct hearth_err reason = HEARTH_ERR_INIT;
        enum hearth_status status = hearth_partitions_drop(store, pg, "audit", day, &reason);
        if (status != HEARTH_OK && hearth_pg_usable(pg)) {
            HEARTH_LOG(status == HEARTH_UNAVAILABLE ? HEARTH_LOG_DEBUG : HEARTH_LOG_INFO, "store",
                       "a month of the audit log cannot be dropped yet", "reason", reason.msg,
                       NULL);
            break;
        }

        if (status != HEARTH_OK) {
            *err = reason;
            return status;
        }

        char leaf[64];
        hearth_partition_name("audit", day, leaf);
        hearth_metric_add_label(HEARTH_M_RETENTION_DAYS, HEARTH_STR("audit"), 1);
        HEARTH_LOG(HEARTH_LOG_INFO, "store", "dropped a month of the audit log", "partition", leaf,
                   NULL);
    }

    return HEARTH_OK;
}
