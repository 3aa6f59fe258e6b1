/*
 * housekeeping.c -- the periodic work of every server: partitions ahead of time, disk, settings,
 * and trimming rows that are no longer needed.
 *
 * Most of it begins 15 s after the start (hearth_housekeeping_begin).
 *
 * Every 5 s: the size of the tables and the free space (disk.c); the settings of tenants.
 * Every 30 s: the database's clock; leaves of today and of some days ahead; the label indexes,
 * without the hours that retention has dropped.
 * Every minute:
 *   - writer.seen_at of this server
 *   - ingest_batch rows of this server that no committer will read again: all but those of batches
 *     that are under way
 *   - ingest_batch rows of servers that were not seen for a day: a server gives up a batch after 12
 *     hours (committer.c), so these rows are not read again
 *   - push_id rows older than an hour, in slices of their time: so no transaction is long, and each
 *     row is judged by its present `at` (a row that was refreshed meanwhile stays)
 *   - sampled requests and captured events (network_expire.c); more often if they are kept for a
 *     few minutes only
 *   - thread snapshots past their time (snapshots_expire.c)
 *   - agents that have not reported for long (agents_expire.c); more often if they are kept for a
 *     few minutes only
 *   - lines of metrics without values (store_monitors.c)
 *   - targets that are not scraped any more (store_scrape.c)
 *   - refused uploads past their time (store_ingest_errors.c)
 *   - sessions and tokens that have ended; months of the audit log past their time
 *     (access_expire.c)
 *   - tasks and their results past their time (tasks_expire.c, task_results_expire.c)
 *   - uploads past their time (uploads_expire.c); more often if they are kept for a few minutes
 *   - originals past their time or beyond their budget (originals_expire.c)
 */
#include "housekeeping.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/store/lost_nodes.h"

#include "access/access_expire.h"
#include "catalog/catalog.h"
#include "catalog/settings_cache.h"
#include "commit/committers.h"
#include "network/network_expire.h"
#include "originals/originals_expire.h"
#include "pg/clocks.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "policies/store_monitors.h"
#include "session/disk.h"
#include "session/partitions.h"
#include "spans/snapshots_expire.h"
#include "tasks/tasks_expire.h"
#include "tenants/disk_metrics.h"
#include "tenants/known_applications.h"
#include "tenants/tenants_expire.h"
#include "uploads/uploads_expire.h"

#include <assert.h>

#define PARTITIONS_EACH_NS  (30 * HEARTH_NS_PER_SEC)
#define TRIM_EACH_NS        (60 * HEARTH_NS_PER_SEC)
#define DISK_EACH_NS        (5 * HEARTH_NS_PER_SEC)
#define ORIGINALS_EACH_NS   (10 * HEARTH_NS_PER_SEC)
#define TENANT_DISK_EACH_NS (600 * HEARTH_NS_PER_SEC)
#define AGENTS_EACH_NS      (60 * HEARTH_NS_PER_SEC)
/* Beyond the hour: a margin for the clocks of other servers. */
#define PUSH_ID_KEEP_NS  (HEARTH_NS_PER_HOUR + 300 * HEARTH_NS_PER_SEC)
#define PUSH_ID_SLICE_NS (5 * HEARTH_NS_PER_SEC)
#define PUSH_ID_SLICES   200

/* ---- trimming ---- */

/* Run a statement whose parameters $1 to $n are int8, and ignore its rows. */
static enum hearth_status run_with_numbers(struct hearth_pg *pg, const char *sql,
                                           const int64_t *numbers, size_t n, struct hearth_err *err)
{
    assert(numbers != NULL && n > 0);

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    for (size_t i = 0; i < n; i++) {
        hearth_pg_param_i64(&params, numbers[i]);
    }

    enum hearth_status status = hearth_pg_exec(pg, sql, &params, NULL, NULL, NULL, err);
    hearth_arena_release(&arena);

    return status;
}

/* Delete the batches of servers that have ended. Usually no other server has any. */
static enum hearth_status trim_ended_batches(const struct hearth_store *store, struct hearth_pg *pg,
                                             struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32(&params, store->batch_writer_id);

    struct hearth_pg_query query = {.sql = "SELECT DISTINCT writer_id FROM hearth_data.ingest_batch"
                                           " WHERE writer_id <> $1",
                                    .params = &params,
                                    .type = &hearth_i32_rows,
                                    .arena = arena};
    int32_t *writers = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(pg, &query, &writers, &n, NULL, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    /* Those of them that have ended. */
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32_array(&params, writers, n);
    query.sql = "SELECT writer_id FROM hearth_data.writer WHERE writer_id = ANY ($1)"
                " AND seen_at < now() - interval '1 day'";
    HEARTH_TRY(hearth_pg_select(pg, &query, &writers, &n, NULL, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32_array(&params, writers, n);

    return hearth_pg_exec(pg, "DELETE FROM hearth_data.ingest_batch WHERE writer_id = ANY ($1)",
                          &params, NULL, NULL, NULL, err);
}

/* Delete the settled batches of this server, also while another one waits for its node. */
static enum hearth_status trim_own_batches(const struct hearth_store *store, struct hearth_pg *pg,
                                           struct hearth_arena *arena, struct hearth_err *err)
{
    int64_t *unsettled = NULL, next = 0;
    size_t n = 0;
    struct hearth_pg_params params;

    HEARTH_TRY(
        hearth_committers_list_unsettled(store->committers, arena, &unsettled, &n, &next, err));
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32(&params, store->batch_writer_id);
    hearth_pg_param_i64(&params, next);
    hearth_pg_param_i64_array(&params, unsettled, n);

    return hearth_pg_exec(pg,
                          "DELETE FROM hearth_data.ingest_batch WHERE writer_id = $1 AND"
                          " seq < $2 AND seq <> ALL ($3)",
                          &params, NULL, NULL, NULL, err);
}

static enum hearth_status trim_batches(struct hearth_store *store, struct hearth_pg *pg,
                                       struct hearth_err *err)
{
    assert(store->batch_writer_id != 0 && store->committers != NULL);

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    enum hearth_status status = trim_own_batches(store, pg, &arena, err);
    if (status == HEARTH_OK) {
        status = trim_ended_batches(store, pg, &arena, err);
    }
    hearth_arena_release(&arena);

    return status;
}

/* Say that this server lives. */
static enum hearth_status touch_writer(const struct hearth_store *store, struct hearth_pg *pg,
                                       struct hearth_err *err)
{
    const int64_t writer_id = store->batch_writer_id;

    return run_with_numbers(pg,
                            "UPDATE hearth_data.writer SET seen_at = now() WHERE writer_id = $1",
                            &writer_id, 1, err);
}

static enum hearth_status trim_push_ids(struct hearth_pg *pg, struct hearth_err *err)
{
    int64_t keep_from_ns = hearth_clock_wall_ns() - PUSH_ID_KEEP_NS;

    for (int i = 0; i < PUSH_ID_SLICES; i++) {
        /* Find the oldest row. */
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_exec(pg, "SELECT min(at) FROM hearth_data.push_id", NULL, NULL,
                                  &result, NULL, err));
        int64_t oldest_ns =
            hearth_pg_is_null(result, 0, 0) ? INT64_MAX : hearth_pg_i64(result, 0, 0);
        PQclear(result);
        if (oldest_ns >= keep_from_ns) {
            break;
        }

        /* Delete a slice of time from there on. */
        int64_t below_ns = keep_from_ns - oldest_ns < PUSH_ID_SLICE_NS
                               ? keep_from_ns
                               : oldest_ns + PUSH_ID_SLICE_NS;
        HEARTH_TRY(run_with_numbers(pg, "DELETE FROM hearth_data.push_id WHERE at < $1", &below_ns,
                                    1, err));
    }

    return HEARTH_OK;
}

/* Forget the hours before the oldest leaf: another server may have dropped leaves. */
static enum hearth_status trim_indexes(struct hearth_store *store, struct hearth_pg *pg,
                                       struct hearth_err *err)
{
    int32_t day = 0;
    bool found = false;

    HEARTH_TRY(hearth_partitions_next_day(pg, "'series_hour'", INT32_MIN, &day, &found, err));

    return found ? hearth_catalog_trim(store->catalog, day * 24, err) : HEARTH_OK;
}

/* ---- kinds of work ---- */

static void log_missing_leaves(int32_t days_ahead, const struct hearth_err *err)
{
    char day[12];
    (void)snprintf(day, sizeof day, "%d", (int)days_ahead);

    HEARTH_LOG(days_ahead == 0 ? HEARTH_LOG_ERROR : HEARTH_LOG_WARN, "store",
               days_ahead == 0   ? "today's partitions were not made: its profiles cannot be stored"
               : days_ahead == 1 ? "tomorrow's partitions were not made; this is tried again"
                                 : "partitions of a later day were not made; this is tried again",
               "days_ahead", day, "reason", err->msg, NULL);
}

enum hearth_status hearth_housekeeping_make_leaves(struct hearth_store *store, struct hearth_pg *pg,
                                                   int64_t n_days, struct hearth_err *err)
{
    int32_t today = hearth_day_of(hearth_clock_wall_ns()), ahead = 0;
    enum hearth_status status = HEARTH_OK;

    while (status == HEARTH_OK && ahead <= n_days) {
        status = hearth_partitions_ensure(store, pg, HEARTH_LEAVES_ALL, today + ahead, err);
        ahead += status == HEARTH_OK;
    }

    hearth_metric_set(HEARTH_M_PARTITION_DAYS, ahead > 0 ? ahead - 1 : 0);
    if (status != HEARTH_OK && !atomic_load(&store->closing)) {
        log_missing_leaves(ahead, err);
    }

    return status;
}

/* Also without queries: the limit of series needs the indexes, and the first query is quick. */
static enum hearth_status refresh_indexes(struct hearth_store *store, struct hearth_pg *pg,
                                          struct hearth_err *err)
{
    HEARTH_TRY(hearth_catalog_refresh(store->catalog, NULL, err));

    return trim_indexes(store, pg, err);
}

/*
 * Run each step, whether or not another one has failed; return the first failure. While a node of
 * distributed tables is lost, leaves cannot be made, but queries of the others need the indexes.
 */
static enum hearth_status look_ahead(struct hearth_store *store, struct hearth_pg *pg,
                                     struct hearth_err *err)
{
    int64_t n_days = hearth_store_live(store)->partition_days_ahead;
    struct hearth_err failure = HEARTH_ERR_INIT;

    enum hearth_status clocks = hearth_clocks_compare(store, pg, err);
    enum hearth_status leaves = hearth_housekeeping_make_leaves(store, pg, n_days, &failure);
    enum hearth_status indexes = refresh_indexes(store, pg, leaves == HEARTH_OK ? &failure : NULL);
    if (clocks != HEARTH_OK) {
        return clocks;
    }

    if (err != NULL) {
        *err = failure;
    }

    return leaves != HEARTH_OK ? leaves : indexes;
}

/* Four times within the shorter retention, but at least each minute. */
static int64_t find_upload_pause(const struct hearth_store *store)
{
    int64_t retain_ns = hearth_store_live(store)->retain_uploads_ns,
            idle_ns = hearth_store_live(store)->upload_idle_ns;
    int64_t pause_ns = TRIM_EACH_NS;

    if (retain_ns > 0 && retain_ns / 4 < pause_ns) {
        pause_ns = retain_ns / 4;
    }
    if (idle_ns > 0 && idle_ns / 4 < pause_ns) {
        pause_ns = idle_ns / 4;
    }

    return pause_ns;
}

static enum hearth_status trim_tables(struct hearth_store *store, struct hearth_pg *pg,
                                      struct hearth_err *err)
{
    HEARTH_TRY(touch_writer(store, pg, err));

    /* While a node is lost, Citus deletes nothing from distributed tables; other tables go on. */
    if (!hearth_store_has_lost_nodes(store)) {
        HEARTH_TRY(trim_batches(store, pg, err));
        HEARTH_TRY(trim_push_ids(pg, err));
    }
    HEARTH_TRY(hearth_snapshots_expire(pg, hearth_store_live(store)->retain_tasks_ns, err));
    HEARTH_TRY(hearth_tasks_expire(pg, hearth_store_live(store)->retain_tasks_ns, err));
    HEARTH_TRY(hearth_monitors_trim(store, pg, err));
    HEARTH_TRY(hearth_scrape_targets_expire(pg, err));
    HEARTH_TRY(
        hearth_ingest_errors_expire(pg, hearth_store_live(store)->retain_ingest_errors_ns, err));
    HEARTH_TRY(hearth_access_expire(store, pg, err));
    HEARTH_TRY(hearth_audit_expire(store, pg, err));

    return hearth_task_results_expire(pg, hearth_store_live(store)->retain_tasks_ns, err);
}

void hearth_housekeeping_begin(struct hearth_store *store, struct hearth_housekeeping *ret_times)
{
    int64_t now_ns = hearth_clock_mono_ns(), quiet_ns = now_ns + HEARTH_QUIET_START_NS;

    /* Not the free space and the settings: they decide what is accepted. */
    *ret_times = (struct hearth_housekeeping){
        .next_partitions_ns = now_ns + PARTITIONS_EACH_NS,
        .next_trim_ns = quiet_ns,
        .next_agents_ns = quiet_ns,
        .next_network_ns = quiet_ns,
        .next_uploads_ns = quiet_ns,
        .next_originals_ns = quiet_ns,
        .next_tenant_disk_ns = quiet_ns,
    };
    hearth_disk_begin(store, quiet_ns);
}

enum hearth_status hearth_housekeeping_run(struct hearth_store *store, struct hearth_pg *pg,
                                           struct hearth_housekeeping *times,
                                           struct hearth_err *err)
{
    int64_t now_ns = hearth_clock_mono_ns();

    if (now_ns >= times->next_partitions_ns) {
        times->next_partitions_ns = now_ns + PARTITIONS_EACH_NS;
        HEARTH_TRY(look_ahead(store, pg, err));
    }

    if (now_ns >= times->next_disk_ns) {
        times->next_disk_ns = now_ns + DISK_EACH_NS;
        HEARTH_TRY(hearth_disk_look(store, pg, err));
        HEARTH_TRY(hearth_settings_refresh(store, pg, err));
        HEARTH_TRY(hearth_known_applications_step(store, pg, err));
    }

    if (now_ns >= times->next_trim_ns) {
        times->next_trim_ns = now_ns + TRIM_EACH_NS;
        HEARTH_TRY(trim_tables(store, pg, err));
    }

    /* Agents and captured events: four times within their retention, if that is more often. */
    if (now_ns >= times->next_agents_ns) {
        int64_t retain_ns = hearth_store_live(store)->retain_agents_ns;
        int64_t each_ns = retain_ns / 4 < AGENTS_EACH_NS ? retain_ns / 4 : AGENTS_EACH_NS;
        times->next_agents_ns = now_ns + each_ns;
        HEARTH_TRY(hearth_agents_expire(pg, retain_ns, err));
    }

    if (now_ns >= times->next_network_ns) {
        int64_t each_ns = hearth_store_live(store)->retain_captured_ns / 4;
        each_ns = each_ns > 0 && each_ns < TRIM_EACH_NS ? each_ns : TRIM_EACH_NS;
        times->next_network_ns = now_ns + each_ns;
        HEARTH_TRY(hearth_network_expire(store, pg, err));
    }

    if (now_ns >= times->next_uploads_ns) {
        times->next_uploads_ns = now_ns + find_upload_pause(store);
        HEARTH_TRY(hearth_uploads_expire(pg, hearth_store_live(store)->retain_uploads_ns,
                                         hearth_store_live(store)->upload_idle_ns, err));
    }

    if (now_ns >= times->next_originals_ns) {
        times->next_originals_ns = now_ns + ORIGINALS_EACH_NS;
        HEARTH_TRY(hearth_originals_expire(pg, hearth_store_live(store)->retain_raw_ns,
                                           hearth_store_live(store)->max_originals_bytes, err));
    }

    /* The last kind, since it may read for seconds. */
    if (now_ns >= times->next_tenant_disk_ns) {
        times->next_tenant_disk_ns = now_ns + TENANT_DISK_EACH_NS;
        HEARTH_TRY(hearth_disk_metrics_publish(store, pg, err));
    }

    return HEARTH_OK;
}
