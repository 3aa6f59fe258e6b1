/*
 * lease.c -- the lease of the background work, and the transactions of its holder (contract:
 * builder.h).
 *
 * The lease is a row. Its holder renews it between transactions; the other servers try each second
 * whether it has expired. To take it over raises the token, and every transaction of the builder
 * begins by share-locking the row and comparing the token: so the old holder cannot write any more,
 * and no other server can take the lease over in the middle of a transaction. Only the clock of the
 * database decides when it expires.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "build/builder.h"
#include "pg/store_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define RELEASE_TIMEOUT_MS 2000
#define LEASE_EXPIRY       "interval '30 s'"
#define RENEW_EACH_NS      (8 * HEARTH_NS_PER_SEC)

/* Runs a statement that returns at most one int8; *ret_value is 0 if it returns no row. */
static enum hearth_status exec_for_i64(struct hearth_pg *pg, const char *sql, int64_t *ret_value,
                                       struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    *ret_value = PQntuples(result) > 0 ? hearth_pg_i64(result, 0, 0) : 0;
    PQclear(result);

    return HEARTH_OK;
}

/* Keeps the token of the lease, 0 if another server has it, and publishes a change. */
static void set_token(struct hearth_builder *builder, int64_t token)
{
    if (token != builder->token) {
        HEARTH_LOG(HEARTH_LOG_INFO, "builder",
                   token != 0 ? "took the lease of background work"
                              : "another server has the lease",
                   "token", hearth_log_i64(token != 0 ? token : builder->token), NULL);
    }

    /* The lags are published by the new holder. */
    if (token == 0 && builder->token != 0) {
        hearth_metric_set(HEARTH_M_ROLL_LAG, 0);
        hearth_metric_set(HEARTH_M_FILL_LAG, 0);
        hearth_metric_set(HEARTH_M_RULE_LAG, 0);
    }

    hearth_metric_set(HEARTH_M_BUILDER_LEASE, token != 0);
    builder->token = token;
}

enum hearth_status hearth_lease_take(struct hearth_builder *builder, struct hearth_err *err)
{
    char sql[512];
    int32_t holder = builder->store->batch_writer_id;
    int64_t token = 0;

    /* UPDATE reads the row before it locks it: servers that wait do not disturb the holder. */
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.lease SET holder = %" PRId32
                   ", token = token + (holder <> %" PRId32 ")::int,"
                   " expires_at = clock_timestamp() + " LEASE_EXPIRY
                   " WHERE name = '" HEARTH_LEASE_BUILDER "' AND (holder = %" PRId32
                   " OR expires_at < clock_timestamp()) RETURNING token",
                   holder, holder, holder);
    HEARTH_TRY(exec_for_i64(&builder->pg, sql, &token, err));

    /* A new database has no row yet. */
    if (token == 0) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO hearth_data.lease (name, holder, token, expires_at) VALUES"
                       " ('" HEARTH_LEASE_BUILDER "', %" PRId32
                       ", 1, clock_timestamp() + " LEASE_EXPIRY
                       ") ON CONFLICT (name) DO NOTHING RETURNING token",
                       holder);
        HEARTH_TRY(exec_for_i64(&builder->pg, sql, &token, err));
    }

    set_token(builder, token);
    builder->renewed_mono_ns = hearth_clock_mono_ns();

    return HEARTH_OK;
}

void hearth_lease_release(struct hearth_builder *builder)
{
    if (builder->token == 0) {
        return;
    }

    /* The cancellation has ended the running statement; it must not prevent this one. */
    builder->pg.cancel = NULL;
    builder->pg.timeout_ms = RELEASE_TIMEOUT_MS;

    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE hearth_data.lease SET expires_at = '-infinity' WHERE name = '" HEARTH_LEASE_BUILDER
        "' AND holder = %" PRId32 " AND token = %" PRId64,
        builder->store->batch_writer_id, builder->token);

    /* The cancelled statement may have left a transaction, or no connection. */
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_OK;
    if (!hearth_pg_alive(&builder->pg)) {
        status = hearth_pg_connect(&builder->pg, RELEASE_TIMEOUT_MS, &err);
    }

    if (status == HEARTH_OK) {
        hearth_pg_rollback(&builder->pg);
        status = hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, &err);
    }

    if (status != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "builder", "the lease was not released, it will expire",
                   "reason", err.msg, NULL);
    }
    hearth_metric_set(HEARTH_M_BUILDER_LEASE, 0);
}

/* ---- transactions ---- */

enum hearth_status hearth_builder_begin(struct hearth_builder *builder, struct hearth_err *err)
{
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_INTRANS);
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_INERROR);

    if (hearth_clock_mono_ns() - builder->renewed_mono_ns > RENEW_EACH_NS) {
        HEARTH_TRY(hearth_lease_take(builder, err));
    }

    /* Begin, and lock the row of the lease if it has our token. */
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "BEGIN; SELECT FROM hearth_data.lease WHERE name = '" HEARTH_LEASE_BUILDER
                   "' AND token = %" PRId64 " FOR SHARE",
                   builder->token);
    HEARTH_TRY(hearth_pg_script_send(&builder->pg, sql, NULL, err));

    int n_rows = 0;
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(&builder->pg, &result, NULL, err));
        if (result == NULL) {
            break;
        }

        n_rows = PQntuples(result);
        PQclear(result);
    }

    /* It has not: another server is the holder. */
    if (n_rows == 0) {
        hearth_builder_rollback(builder);
        set_token(builder, 0);
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "another server has taken over the background work");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_builder_commit(struct hearth_builder *builder, struct hearth_err *err)
{
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_IDLE);

    return hearth_pg_script(&builder->pg, "COMMIT", NULL, err);
}

void hearth_builder_rollback(struct hearth_builder *builder)
{
    hearth_pg_rollback(&builder->pg);
}

enum hearth_status hearth_builder_next_generation(struct hearth_builder *builder,
                                                  int32_t service_id, int64_t *ret_generation,
                                                  struct hearth_err *err)
{
    assert(PQtransactionStatus(builder->pg.conn) != PQTRANS_IDLE);

    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.roll_state SET generation = generation + 1"
                   " WHERE service_id = %" PRId32 " RETURNING generation",
                   service_id);
    HEARTH_TRY(exec_for_i64(&builder->pg, sql, ret_generation, err));
    if (*ret_generation == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "service %" PRId32 " has no row in roll_state",
                           service_id);
    }

    return HEARTH_OK;
}
