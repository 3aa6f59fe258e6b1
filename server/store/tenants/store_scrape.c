/* store_scrape.c -- claims of targets and their state (contract: hearth/store/store_scrape.h). */
#include "hearth/store/store_scrape.h"

#include "hearth/base/clock.h"

#include "pg/pg_slices.h"
#include "session/statements.h"
#include "tenants/tenants_expire.h"

#include <assert.h>

#define EXPIRE_MS  INT64_C(3600000)
#define SLICE_ROWS 1000
#define MAX_SLICES 20

#define TARGET(kind, member) HEARTH_COLUMN(kind, struct hearth_scrape_target, member)
static const struct hearth_column claimed_columns[] = {
    TARGET(UUID, key),     TARGET(TEXT, tenant), TARGET(TEXT, job),
    TARGET(TEXT, address), TARGET(TEXT, path),   TARGET(I64, scraped_ms),
    TARGET(I64, took_ms),  TARGET(I64, n_bytes), TARGET(TEXT, failure),
};
static const struct hearth_row_type claimed_rows =
    HEARTH_ROW_TYPE(claimed_columns, struct hearth_scrape_target);

static const struct hearth_column listed_columns[] = {
    TARGET(TEXT, tenant), TARGET(TEXT, job),       TARGET(TEXT, address),
    TARGET(TEXT, path),   TARGET(I64, scraped_ms), TARGET(I64, took_ms),
    TARGET(I64, n_bytes), TARGET(TEXT, failure),   TARGET(BOOL, is_claimed),
};
static const struct hearth_row_type listed_rows =
    HEARTH_ROW_TYPE(listed_columns, struct hearth_scrape_target);

/* ---- claiming ---- */

/* Claims the targets in the order of their keys, so that servers never wait in a circle. */
#define CLAIM                                                                                    \
    "WITH asked AS (SELECT * FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[],"        \
    " $7::text[], $8::int8[], $9::int8[], $10::int8[], $11::text[]) WITH ORDINALITY"             \
    " AS a (target_key, tenant, job, address, path, scraped_at, took_ms, n_bytes, failure, nth)" \
    " ORDER BY target_key), held AS (INSERT INTO hearth_data.scrape_target AS t (target_key,"    \
    " tenant, job, address, path, holder, claimed_until, scraped_at, took_ms, n_bytes, failure)" \
    " SELECT target_key, tenant, job, address, path, $1, now() + $2 * interval '1 millisecond'," \
    " scraped_at, took_ms, n_bytes, failure FROM asked ON CONFLICT (target_key) DO UPDATE SET"   \
    " holder = excluded.holder, claimed_until = excluded.claimed_until,"                         \
    " scraped_at = greatest(t.scraped_at, excluded.scraped_at),"                                 \
    " took_ms = CASE WHEN excluded.scraped_at >= t.scraped_at THEN excluded.took_ms"             \
    " ELSE t.took_ms END,"                                                                       \
    " n_bytes = CASE WHEN excluded.scraped_at >= t.scraped_at THEN excluded.n_bytes"             \
    " ELSE t.n_bytes END,"                                                                       \
    " failure = CASE WHEN excluded.scraped_at >= t.scraped_at THEN excluded.failure"             \
    " ELSE t.failure END"                                                                        \
    " WHERE t.holder = excluded.holder OR t.claimed_until < now() RETURNING target_key)"         \
    " SELECT nth FROM asked JOIN held USING (target_key)"

enum hearth_status hearth_store_scrape_claim(const struct hearth_scope *scope,
                                             const struct hearth_scrape_claims *claims,
                                             bool *ret_claimed, struct hearth_err *err)
{
    assert(claims != NULL && claims->n > 0 && scope->arena != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_uuid(&params, claims->holder);
    hearth_pg_param_i64(&params, claims->hold_ns / HEARTH_NS_PER_MS);
    hearth_pg_param_rows(&params, &claimed_rows, claims->targets, claims->n);

    int64_t *held;
    size_t n_held;
    const struct hearth_scope own = hearth_scope_of_owner(scope); /* targets of several tenants */
    HEARTH_TRY(hearth_store_select(&own, CLAIM, &params, &hearth_i64_rows, &held, &n_held, err));

    for (size_t i = 0; i < claims->n; i++) {
        ret_claimed[i] = false;
    }
    for (size_t i = 0; i < n_held; i++) {
        assert(held[i] >= 1 && (size_t)held[i] <= claims->n);
        ret_claimed[held[i] - 1] = true;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_scrape_release(const struct hearth_scope *scope,
                                               struct hearth_hash128 holder, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_uuid(&params, holder);
    const struct hearth_scope own = hearth_scope_of_owner(scope); /* targets of several tenants */

    return hearth_store_run(
        &own, "UPDATE hearth_data.scrape_target SET claimed_until = '-infinity' WHERE holder = $1",
        &params, NULL, err);
}

/* ---- reading ---- */

enum hearth_status hearth_store_scrape_targets(const struct hearth_scope *scope,
                                               struct hearth_scrape_target **ret, size_t *ret_n,
                                               struct hearth_err *err)
{
    assert(scope->arena != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);

    return hearth_store_select(
        scope,
        "SELECT tenant, job, address, path, scraped_at, took_ms, n_bytes, failure,"
        " (claimed_until >= now())::int4 FROM hearth_data.scrape_target WHERE tenant = $1"
        " ORDER BY job COLLATE \"C\", address COLLATE \"C\", path COLLATE \"C\"",
        &params, &listed_rows, ret, ret_n, err);
}

/* ---- expiring ---- */

enum hearth_status hearth_scrape_targets_expire(struct hearth_pg *pg, struct hearth_err *err)
{
    /* $1: the time an hour ago, in milliseconds. The table is small. */
    return hearth_pg_delete_slices(
        pg,
        "DELETE FROM hearth_data.scrape_target WHERE ctid = ANY (ARRAY(SELECT ctid"
        " FROM hearth_data.scrape_target WHERE scraped_at < $1"
        " AND claimed_until < 'epoch'::timestamptz + $1 * interval '1 millisecond'"
        " LIMIT $2 FOR UPDATE SKIP LOCKED))",
        hearth_clock_wall_ns() / HEARTH_NS_PER_MS - EXPIRE_MS, SLICE_ROWS, MAX_SLICES, err);
}
