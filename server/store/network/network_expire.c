/*
 * network_expire.c -- sampled requests past `retain-network`, captured events past `retain-captured`. Each server may run
 * it at any time: rows that somebody else is just removing are left to them.
 */
#include "network/network_expire.h"

#include "hearth/base/clock.h"

#include "pg/store_state.h"

#include <inttypes.h>
#include <stdio.h>

/* At once: a transaction that removes more would be long. */
#define SLICE_ROWS 5000
#define MAX_SLICES 200
/* Of what a day had; captured events are mostly gone much sooner. */
#define KEPT_DAYS 31

static enum hearth_status expire(struct hearth_pg *pg, const char *table, int64_t keep_ns,
                                 struct hearth_err *err)
{
    char sql[320];
    for (int i = 0; keep_ns > 0 && i < MAX_SLICES; i++) {
        (void)snprintf(sql, sizeof sql,
                       "DELETE FROM hearth_data.%s WHERE ctid = ANY (ARRAY(SELECT ctid FROM"
                       " hearth_data.%s WHERE received_at < %" PRId64
                       " ORDER BY received_at LIMIT %d FOR UPDATE SKIP LOCKED))",
                       table, table, (hearth_clock_wall_ns() - keep_ns) / HEARTH_NS_PER_MS,
                       SLICE_ROWS);
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
        int64_t n = 0;
        bool is_number = hearth_str_to_i64(hearth_str_c(PQcmdTuples(result)), &n);
        PQclear(result);
        if (!is_number || n < SLICE_ROWS) {
            break;
        }
    }
    return HEARTH_OK;
}

enum hearth_status hearth_network_expire(struct hearth_store *store, struct hearth_pg *pg,
                                         struct hearth_err *err)
{
    HEARTH_TRY(expire(pg, "network_request", store->options.retain_network_ns, err));
    HEARTH_TRY(expire(pg, "captured_event", store->options.retain_captured_ns, err));
    char sql[128];
    (void)snprintf(sql, sizeof sql, "DELETE FROM hearth_data.captured_day WHERE day < %" PRId64,
                   hearth_clock_wall_ns() / HEARTH_NS_PER_DAY - KEPT_DAYS);
    return hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
}
