/*
 * network_expire.c -- deletes sampled requests after `retain-network`, and captured events after
 * `retain-captured`. Every server may run it at any time: rows that another server is deleting are
 * skipped.
 */
#include "network/network_expire.h"

#include "hearth/base/clock.h"

#include "pg/pg_slices.h"
#include "pg/store_state.h"

#include <inttypes.h>
#include <stdio.h>

/* Larger slices would make long transactions. */
#define SLICE_ROWS 5000
#define MAX_SLICES 200
/* How long the counters of a day are kept; captured events mostly expire much sooner. */
#define KEPT_DAYS 31

/* Deletes up to $2 rows received before $1, in milliseconds. By the index on received_at. */
#define DELETE_SLICE(table)                                        \
    "DELETE FROM hearth_data." table                               \
    " WHERE ctid = ANY (ARRAY(SELECT ctid FROM hearth_data." table \
    " WHERE received_at < $1 ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED))"

/* Deletes the rows of one table that are older than keep_ns; 0: none. */
static enum hearth_status expire_network_rows(struct hearth_pg *pg, const char *sql,
                                              int64_t keep_ns, struct hearth_err *err)
{
    if (keep_ns <= 0) {
        return HEARTH_OK;
    }

    int64_t before_ms = (hearth_clock_wall_ns() - keep_ns) / HEARTH_NS_PER_MS;

    return hearth_pg_delete_slices(pg, sql, before_ms, SLICE_ROWS, MAX_SLICES, err);
}

enum hearth_status hearth_network_expire(struct hearth_store *store, struct hearth_pg *pg,
                                         struct hearth_err *err)
{
    /* Delete requests and events. */
    HEARTH_TRY(expire_network_rows(pg, DELETE_SLICE("network_request"),
                                   hearth_store_live(store)->retain_network_ns, err));
    HEARTH_TRY(expire_network_rows(pg, DELETE_SLICE("captured_event"),
                                   hearth_store_live(store)->retain_captured_ns, err));

    /* Delete the counters of old days. */
    char sql[128];
    (void)snprintf(sql, sizeof sql, "DELETE FROM hearth_data.captured_day WHERE day < %" PRId64,
                   hearth_clock_wall_ns() / HEARTH_NS_PER_DAY - KEPT_DAYS);

    return hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
}
