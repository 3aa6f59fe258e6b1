/*
 * disk.c -- measures how much disk the tables take, and refuses profiles when it is too much.
 *
 * Two limits: the size of all Hearth tables (max_disk_bytes), and the free bytes of the disk of the
 * embedded PostgreSQL (min_free_disk_bytes). Beyond either, submissions are refused; queries,
 * retention and roll-ups continue. Submissions are accepted again 2 % inside the limit, so that the
 * state does not flicker. PostgreSQL's own "disk full" (53100) fails only the batch that met it.
 */
#include "session/disk.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "nodes/layout.h"
#include "pg/pg_rows.h"
#include "pg/queries.h"
#include "pg/store_state.h"

#include <assert.h>
#include <sys/statvfs.h>

#define SIZES_EACH_NS      (300 * HEARTH_NS_PER_SEC)
#define LIMITED_EACH_NS    (60 * HEARTH_NS_PER_SEC) /* with a limit of their sum */
#define SIZES_EACH_FULL_NS (5 * HEARTH_NS_PER_SEC)  /* so that free space is noticed soon */

enum disk_state {
    DISK_OK,         /* profiles are accepted */
    DISK_OVER_QUOTA, /* the tables exceed max_disk_bytes */
    DISK_LOW         /* less than min_free_disk_bytes is free */
};

/* ---- measuring ---- */

/* A table whose rows lie on the nodes. */
struct remote_table {
    int64_t relation, n_bytes;
};

#define REMOTE(kind, member) HEARTH_COLUMN(kind, struct remote_table, member)
static const struct hearth_column remote_columns[] = {REMOTE(I64, relation), REMOTE(I64, n_bytes)};
static const struct hearth_row_type remote_rows =
    HEARTH_ROW_TYPE(remote_columns, struct remote_table);

enum hearth_status hearth_disk_add_nodes(const struct hearth_store *store, struct hearth_pg *pg,
                                         struct hearth_arena *arena,
                                         struct hearth_pg_params *params,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct remote_table *remote = NULL;
    size_t n = 0;
    if (hearth_layout_is_distributed(store)) {
        const struct hearth_pg_query query = {
            .sql = "SELECT d.logicalrelid::oid::int8, sum(s.size)::int8 FROM citus_shard_sizes() s"
                   " JOIN pg_catalog.pg_dist_shard d ON d.shardid = s.shard_id GROUP BY 1",
            .type = &remote_rows,
            .arena = arena};
        HEARTH_TRY(hearth_pg_select(pg, &query, &remote, &n, ret_fault, err));
    }

    hearth_pg_param_rows(params, &remote_rows, remote, n);

    return HEARTH_OK;
}

/* Sums the sizes of all tables, by tier. */
static enum hearth_status measure_tables(struct hearth_store *store, struct hearth_pg *pg,
                                         struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    PGresult *result = NULL;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    HEARTH_TRY(hearth_disk_add_nodes(store, pg, &arena, &params, NULL, err));
    HEARTH_TRY(hearth_pg_exec(pg, hearth_sql_measure_tiers, &params, NULL, &result, NULL, err));

    int64_t n_bytes = 0;
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t n_tier = hearth_pg_i64(result, row, 1);
        hearth_metric_set_label(HEARTH_M_TIER_BYTES, hearth_pg_str(result, row, 0), n_tier);
        n_bytes += n_tier;
    }

    PQclear(result);

    atomic_store(&store->disk.n_bytes, n_bytes);
    hearth_metric_set(HEARTH_M_DISK_BYTES, n_bytes);

    return HEARTH_OK;
}

/*
 * Return the free bytes for the embedded PostgreSQL; INT64_MAX with an external PostgreSQL or
 * without a limit.
 */
static int64_t measure_free(const struct hearth_store *store)
{
    struct statvfs fs;
    uint64_t n;

    if (store->options.data_dir == NULL || hearth_store_live(store)->min_free_disk_bytes <= 0 ||
        statvfs(store->options.data_dir, &fs) != 0 ||
        __builtin_mul_overflow((uint64_t)fs.f_bavail, (uint64_t)fs.f_frsize, &n) || n > INT64_MAX) {
        return INT64_MAX;
    }

    return (int64_t)n;
}

/* Until the sizes are measured again: about 30 ms of PostgreSQL's CPU. */
static int64_t choose_pause_ns(const struct hearth_store *store, int state)
{
    if (hearth_store_live(store)->max_disk_bytes <= 0) {
        return SIZES_EACH_NS;
    }

    return state == DISK_OVER_QUOTA ? SIZES_EACH_FULL_NS : LIMITED_EACH_NS;
}

/* Compare with the limits. After a limit was exceeded, it counts as 2 % stricter. */
static int find_state(const struct hearth_store *store, int before)
{
    int64_t quota = hearth_store_live(store)->max_disk_bytes,
            least = hearth_store_live(store)->min_free_disk_bytes;
    assert(quota >= 0 && least >= 0);

    quota -= before == DISK_OVER_QUOTA ? quota / 50 : 0;
    least += before == DISK_LOW ? least / 50 : 0;

    if (hearth_store_live(store)->max_disk_bytes > 0 && atomic_load(&store->disk.n_bytes) > quota) {
        return DISK_OVER_QUOTA;
    }

    return atomic_load(&store->disk.n_free) < least ? DISK_LOW : DISK_OK;
}

/* ---- refusing ---- */

static enum hearth_status check_state(struct hearth_store *store, struct hearth_err *err)
{
    switch (atomic_load(&store->disk.state)) {
    case DISK_OVER_QUOTA:
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tables take %lld MiB of disk, more than max-disk-bytes (%lld MiB); "
                           "no profiles are accepted until retention or a deletion has made room",
                           (long long)(atomic_load(&store->disk.n_bytes) >> 20),
                           (long long)(hearth_store_live(store)->max_disk_bytes >> 20));

    case DISK_LOW:
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the disk has %lld MiB left, less than min-free-disk-bytes (%lld MiB); "
                           "no profiles are accepted until there is room",
                           (long long)(atomic_load(&store->disk.n_free) >> 20),
                           (long long)(hearth_store_live(store)->min_free_disk_bytes >> 20));

    default:
        return HEARTH_OK;
    }
}

enum hearth_status hearth_disk_check(struct hearth_store *store, struct hearth_err *err)
{
    enum hearth_status status = check_state(store, err);
    if (status != HEARTH_OK && err != NULL) {
        err->is_passing = true;
    }

    return status;
}

void hearth_disk_begin(struct hearth_store *store, int64_t sizes_mono_ns)
{
    bool is_limited = hearth_store_live(store)->max_disk_bytes > 0;

    store->disk.next_sizes_mono_ns = is_limited ? 0 : sizes_mono_ns;
}

enum hearth_status hearth_disk_look(struct hearth_store *store, struct hearth_pg *pg,
                                    struct hearth_err *err)
{
    int64_t now_ns = hearth_clock_mono_ns();
    int before = atomic_load(&store->disk.state);

    /* Measure. */
    atomic_store(&store->disk.n_free, measure_free(store));
    int64_t pause_ns = choose_pause_ns(store, before);
    if (store->disk.next_sizes_mono_ns > now_ns + pause_ns) { /* a limit was set meanwhile */
        store->disk.next_sizes_mono_ns = now_ns + pause_ns;
    }
    if (now_ns >= store->disk.next_sizes_mono_ns) {
        HEARTH_TRY(measure_tables(store, pg, err));
        store->disk.next_sizes_mono_ns = now_ns + pause_ns;
    }

    /* Compare with the limits. */
    int state = find_state(store, before);
    atomic_store(&store->disk.state, state);
    if (state != before) {
        struct hearth_err why = HEARTH_ERR_INIT;
        bool refuses = hearth_disk_check(store, &why) != HEARTH_OK;
        HEARTH_LOG(refuses ? HEARTH_LOG_WARN : HEARTH_LOG_INFO, "store",
                   refuses ? "profiles are refused" : "there is room again: profiles are accepted",
                   "reason", refuses ? why.msg : "", NULL);
    }

    return HEARTH_OK;
}
