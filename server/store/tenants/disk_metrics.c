/*
 * disk_metrics.c -- publishes bytes on disk by tenant and tier (contract: disk_metrics.h).
 *
 * A label value has its line for as long as the process lives, and a metric has at most
 * HEARTH_METRIC_MAX_VALUES of them. So the tenants with lines are those that were created first,
 * which remain the same, rather than the largest.
 */
#include "tenants/disk_metrics.h"

#include "hearth/base/arena.h"
#include "hearth/base/metrics.h"

#include "pg/queries.h"
#include "pg/store_state.h"
#include "tenants/disk_shares.h"

#include <assert.h>

#define MAX_TENANTS 25

/* Columns of the statement from its third on. */
static const char *const g_tiers[] = {"profiles", "segments",  "rollups", "dictionaries",
                                      "spans",    "originals", "other"};
#define N_TIERS HEARTH_ARRAY_LEN(g_tiers)

static_assert((MAX_TENANTS + 1) * N_TIERS <= HEARTH_METRIC_MAX_VALUES, "all pairs have lines");

static void publish_tiers(const char *tenant, const int64_t bytes[N_TIERS])
{
    for (size_t i = 0; i < N_TIERS; i++) {
        hearth_metric_set_labels(HEARTH_M_TENANT_DISK, g_tiers[i], tenant, bytes[i]);
    }
}

static void publish_tenants(const PGresult *result, int max_tenants)
{
    int64_t others[N_TIERS] = {0};
    int n = PQntuples(result);

    for (int row = 0; row < n; row++) {
        int64_t bytes[N_TIERS];
        for (size_t i = 0; i < N_TIERS; i++) {
            bytes[i] = hearth_pg_i64(result, row, (int)i + 2);
            others[i] += row < max_tenants ? 0 : bytes[i];
        }
        if (row < max_tenants) {
            publish_tiers(PQgetvalue(result, row, 0), bytes);
        }
    }

    if (n > max_tenants) {
        publish_tiers("other", others);
    }
}

enum hearth_status hearth_disk_metrics_publish(struct hearth_store *store, struct hearth_pg *pg,
                                               struct hearth_err *err)
{
    int64_t max_tenants = store->options.disk_metric_tenants;
    struct hearth_arena arena;
    struct hearth_pg_params params;
    PGresult *result = NULL;

    if (max_tenants <= 0) {
        return HEARTH_OK;
    }

    hearth_arena_init(&arena, 0);
    enum hearth_status status =
        hearth_disk_shares_read(store, pg, HEARTH_STR(""), NULL, &arena, &params, NULL, err);
    if (status == HEARTH_OK) {
        status =
            hearth_pg_exec(pg, hearth_sql_select_service_disk, &params, NULL, &result, NULL, err);
    }

    if (status == HEARTH_OK) {
        publish_tenants(result, max_tenants < MAX_TENANTS ? (int)max_tenants : MAX_TENANTS);
        PQclear(result);
    }
    hearth_arena_release(&arena);

    return status;
}
