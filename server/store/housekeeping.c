/*
 * housekeeping.c -- what a store does once in a while: partitions ahead of time, and trimming its
 * bookkeeping.
 *
 * Each 5 s: is there disk for profiles, settings of tenants. Each 30 s: the database's clock, leaves for today and
 * tomorrow, the label indexes, forgetting what retention has dropped. Each minute:
 *   - writer.seen_at of this server
 *   - ingest_batch rows of this server that no committer will ask about again (below the oldest
 * unsettled)
 *   - ingest_batch rows of servers not seen for a day: a server gives a batch up after 12 hours
 * (committer.c), so nobody is left to ask about them
 *   - push_id rows past the hour, in slices of their time, so that no transaction is long and each
 * row's own `at` decides (a row refreshed meanwhile stays)
 *   - sampled requests and what was captured of them (network_expire.c); more often when that is kept for minutes only
 *   - thread snapshots past their time (snapshots_expire.c)
 *   - agents that nobody hears of any more (agents_expire.c); more often when they are kept for minutes only
 *   - lines of metrics without values (monitors.c)
 */
#include "housekeeping.h"

#include "hearth/base/clock.h"

#include "catalog/catalog.h"
#include "catalog/settings_cache.h"
#include "commit/committers.h"
#include "network/network_expire.h"
#include "pg/clocks.h"
#include "pg/disk.h"
#include "pg/partitions.h"
#include "pg/store_state.h"
#include "policies/store_monitors.h"
#include "spans/snapshots_expire.h"
#include "tasks/tasks_expire.h"

#define PARTITIONS_EACH_NS (30 * HEARTH_NS_PER_SEC)
#define TRIM_EACH_NS       (60 * HEARTH_NS_PER_SEC)
#define DISK_EACH_NS       (5 * HEARTH_NS_PER_SEC)
#define AGENTS_EACH_NS     (60 * HEARTH_NS_PER_SEC)
/* Beyond the hour: a margin for the clocks of other servers. */
#define PUSH_ID_KEEP_NS  (HEARTH_NS_PER_HOUR + 300 * HEARTH_NS_PER_SEC)
#define PUSH_ID_SLICE_NS (5 * HEARTH_NS_PER_SEC)
#define PUSH_ID_SLICES   200

/* A statement with up to two int8 parameters. */
static enum hearth_status run(struct hearth_pg *pg, const char *sql, int n_params, int64_t a,
                              int64_t b, PGresult **ret_result, struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    if (n_params > 0) {
        hearth_pg_param_i64(&params, a);
    }
    if (n_params > 1) {
        hearth_pg_param_i64(&params, b);
    }
    enum hearth_status status = hearth_pg_exec(pg, sql, &params, NULL, ret_result, NULL, err);
    hearth_arena_release(&arena);
    return status;
}

static enum hearth_status trim_batches(struct hearth_store *store, struct hearth_pg *pg,
                                       struct hearth_err *err)
{
    int64_t writer_id = store->batch_writer_id;
    int64_t below = hearth_committers_settled_below(store->committers);
    HEARTH_TRY(run(pg, "UPDATE hearth_data.writer SET seen_at = now() WHERE writer_id = $1", 1,
                   writer_id, 0, NULL, err));
    HEARTH_TRY(run(pg, "DELETE FROM hearth_data.ingest_batch WHERE writer_id = $1 AND seq < $2", 2,
                   writer_id, below, NULL, err));
    return run(pg,
               "DELETE FROM hearth_data.ingest_batch WHERE writer_id IN (SELECT writer_id FROM"
               " hearth_data.writer WHERE seen_at < now() - interval '1 day' AND writer_id <> $1)",
               1, writer_id, 0, NULL, err);
}

static enum hearth_status trim_push_ids(struct hearth_pg *pg, struct hearth_err *err)
{
    int64_t keep_from_ns = hearth_clock_wall_ns() - PUSH_ID_KEEP_NS;
    for (int i = 0; i < PUSH_ID_SLICES; i++) {
        PGresult *result = NULL;
        HEARTH_TRY(run(pg, "SELECT min(at) FROM hearth_data.push_id", 0, 0, 0, &result, err));
        int64_t oldest_ns =
            hearth_pg_is_null(result, 0, 0) ? INT64_MAX : hearth_pg_i64(result, 0, 0);
        PQclear(result);
        if (oldest_ns >= keep_from_ns) {
            break;
        }
        int64_t below_ns = keep_from_ns - oldest_ns < PUSH_ID_SLICE_NS
                               ? keep_from_ns
                               : oldest_ns + PUSH_ID_SLICE_NS;
        HEARTH_TRY(
            run(pg, "DELETE FROM hearth_data.push_id WHERE at < $1", 1, below_ns, 0, NULL, err));
    }
    return HEARTH_OK;
}

/* Another server may have dropped leaves: hours before the oldest one are forgotten. */
static enum hearth_status trim_indexes(struct hearth_store *store, struct hearth_pg *pg,
                                       struct hearth_err *err)
{
    int32_t day = 0;
    bool found = false;
    HEARTH_TRY(hearth_partitions_next_day(pg, "'series_hour'", INT32_MIN, &day, &found, err));
    return found ? hearth_catalog_trim(store->catalog, day * 24, err) : HEARTH_OK;
}

enum hearth_status hearth_housekeeping_run(struct hearth_store *store, struct hearth_pg *pg,
                                           struct hearth_housekeeping *times,
                                           struct hearth_err *err)
{
    int64_t now_ns = hearth_clock_mono_ns();
    if (now_ns >= times->next_partitions_ns) {
        times->next_partitions_ns = now_ns + PARTITIONS_EACH_NS;
        HEARTH_TRY(hearth_clocks_compare(store, pg, err));
        int32_t today = hearth_day_of(hearth_clock_wall_ns());
        HEARTH_TRY(hearth_partitions_ensure(store, pg, HEARTH_LEAVES_ALL, today, err));
        HEARTH_TRY(hearth_partitions_ensure(store, pg, HEARTH_LEAVES_ALL, today + 1, err));
        /* So that the limit of series is known where nobody asks, and the first question is quick. */
        HEARTH_TRY(hearth_catalog_refresh(store->catalog, NULL, err));
        HEARTH_TRY(trim_indexes(store, pg, err));
    }
    if (now_ns >= times->next_disk_ns) {
        times->next_disk_ns = now_ns + DISK_EACH_NS;
        HEARTH_TRY(hearth_disk_look(store, pg, err));
        HEARTH_TRY(hearth_settings_refresh(store, pg, err));
    }
    if (now_ns >= times->next_trim_ns) {
        times->next_trim_ns = now_ns + TRIM_EACH_NS;
        HEARTH_TRY(trim_batches(store, pg, err));
        HEARTH_TRY(trim_push_ids(pg, err));
        HEARTH_TRY(hearth_snapshots_expire(pg, store->options.retain_tasks_ns, err));
        HEARTH_TRY(hearth_tasks_expire(pg, store->options.retain_tasks_ns, err));
        HEARTH_TRY(hearth_monitors_trim(store, pg, err));
        HEARTH_TRY(hearth_task_results_expire(pg, store->options.retain_tasks_ns, err));
    }
    if (now_ns >= times->next_agents_ns) {
        int64_t retain_ns = store->options.retain_agents_ns;
        int64_t each_ns = retain_ns / 4 < AGENTS_EACH_NS ? retain_ns / 4 : AGENTS_EACH_NS;
        times->next_agents_ns = now_ns + each_ns;
        HEARTH_TRY(hearth_agents_expire(pg, retain_ns, err));
    }
    if (now_ns >= times->next_network_ns) {
        int64_t each_ns = store->options.retain_captured_ns / 4;
        times->next_network_ns =
            now_ns + (each_ns > 0 && each_ns < TRIM_EACH_NS ? each_ns : TRIM_EACH_NS);
        HEARTH_TRY(hearth_network_expire(store, pg, err));
    }
    return HEARTH_OK;
}
