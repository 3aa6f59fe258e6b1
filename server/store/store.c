/*
 * store.c -- the life of a store: opening, the boot thread, readiness, closing.
 *
 * The boot thread connects (backoff 10 ms doubling to 640 ms), checks the server, migrates,
 * registers the writer, loads the catalogue and starts the committers; then the same thread does
 * the housekeeping. A database that must not be used (altered history, wrong settings) is checked
 * again every 5 s, so that repairing it needs no restart.
 *
 * If a newer hearthd has migrated the database, the store only reads: it starts no writer and no
 * housekeeping, and all transactions are read-only.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"
#include "hearth/store/lost_nodes.h"

#include "build/builder.h"
#include "catalog/catalog.h"
#include "catalog/settings_cache.h"
#include "commit/committers.h"
#include "commit/ingest_dict.h"
#include "housekeeping.h"
#include "node_follow.h"
#include "nodes/layout.h"
#include "nodes/nodes.h"
#include "pg/clocks.h"
#include "pg/pg.h"
#include "pg/pool.h"
#include "pg/store_state.h"
#include "policies/store_monitors.h"
#include "read/read_cache.h"
#include "session/migrate.h"
#include "session/partitions.h"
#include "session/replica.h"
#include "session/session.h"
#include "session/wall.h"
#include "spans/trace_writer.h"
#include "tasks/poll_memo.h"
#include "tenants/known_applications.h"

#include <assert.h>
#include <stdio.h>

#define CONNECT_TIMEOUT_MS 5000
#define BACKOFF_FIRST_NS   (10 * HEARTH_NS_PER_MS)
#define BACKOFF_LAST_NS    (640 * HEARTH_NS_PER_MS)
#define RECHECK_NS         (5 * HEARTH_NS_PER_SEC)
/* An embedded database that is created or recovers may take this long without a warning. */
#define PATIENCE_NS        (60 * HEARTH_NS_PER_SEC)
#define TICK_NS            HEARTH_NS_PER_SEC
#define AWAY_TICK_NS       (200 * HEARTH_NS_PER_MS)
#define MIN_SERVER_VERSION 130000 /* autovacuum of insert-only tables */

void hearth_store_options_init(struct hearth_store_options *options)
{
    *options = (struct hearth_store_options){
        /* connections, queues, memory */
        .n_committers = 2,
        .max_readers = 8,
        .linger_ns = 6 * HEARTH_NS_PER_MS,
        .busy_linger_ns = 10 * HEARTH_NS_PER_MS,
        .alone_ns = 25 * HEARTH_NS_PER_MS,
        .commit_rows = 16,
        .commit_prepared_rows = 16,
        .max_batch_rows = 1000,
        .max_queue_rows = 20000,
        .max_queue_bytes = (size_t)64 << 20,
        .ingest_dict_bytes = (size_t)256 << 20,
        .read_dict_bytes = (size_t)128 << 20,
        .label_index_bytes = (size_t)160 << 20,
        .max_services = 10000,
        .max_series = 500000,
        .statement_timeout_ms = 60000,
        .read_wait_ns = 500 * HEARTH_NS_PER_MS,
        .node_connections = true,
        .partition_days_ahead = 3,
        .max_span_queue_bytes = (size_t)32 << 20,

        /* background work */
        .builder = true,
        .builder_interval_ns = 10 * HEARTH_NS_PER_SEC,
        .rollup_grace_ns = 60 * HEARTH_NS_PER_SEC,
        .rollup_min_profiles = 16,
        .rollup_min_profiles_1h = 40,
        .rule_window_ns = 8 * HEARTH_NS_PER_DAY,
        .compaction = true,
        .compact_after_ns = 6 * HEARTH_NS_PER_HOUR,

        /* retention and disk */
        .retain_raw_ns = 7 * HEARTH_NS_PER_DAY,
        .retain_monitors_ns = 7 * HEARTH_NS_PER_DAY,
        .retain_10m_ns = 7 * HEARTH_NS_PER_DAY,
        .retain_1h_ns = 31 * HEARTH_NS_PER_DAY,
        .retain_1d_ns = 366 * HEARTH_NS_PER_DAY,
        .retain_agents_ns = 7 * HEARTH_NS_PER_DAY,
        .retain_tasks_ns = 7 * HEARTH_NS_PER_DAY,
        .retain_uploads_ns = 7 * HEARTH_NS_PER_DAY,
        .upload_idle_ns = HEARTH_NS_PER_DAY,
        .max_originals_bytes = (int64_t)1 << 30,
        .retain_spans_ns = 3 * HEARTH_NS_PER_DAY,
        .retain_network_ns = 7 * HEARTH_NS_PER_DAY,
        .retain_captured_ns = HEARTH_NS_PER_DAY,
        .retain_ingest_errors_ns = 7 * HEARTH_NS_PER_DAY,
        .retain_audit_ns = 400 * HEARTH_NS_PER_DAY,
        .max_ingest_errors = 1000,
        .max_disk_sample_bytes = (int64_t)16 << 20,
        .min_free_disk_bytes = (int64_t)1 << 30,
    };
}

/* ---- boot ---- */

/* FAILED_PRECONDITION: acknowledged profiles would not be safe in this PostgreSQL. */
static enum hearth_status check_is_safe(struct hearth_pg *pg, struct hearth_err *err)
{
    int version = PQserverVersion(pg->conn);
    if (version < MIN_SERVER_VERSION) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "PostgreSQL %d is too old: 13 or newer is needed", version / 10000);
    }

    /* Its settings. */
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT current_setting('server_encoding'),"
                              " current_setting('synchronous_commit')",
                              NULL, NULL, &result, NULL, err));

    enum hearth_status status = HEARTH_OK;
    if (!hearth_str_eq_c(hearth_pg_str(result, 0, 0), "UTF8")) {
        status =
            HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                        "the database's encoding is %s: UTF8 is needed", PQgetvalue(result, 0, 0));
    } else if (hearth_str_eq_c(hearth_pg_str(result, 0, 1), "off")) {
        status = HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                             "synchronous_commit is off in the database: an acknowledged profile "
                             "would not be durable; set it to on or local");
    }

    PQclear(result);

    return status;
}

/* Start the threads that write, each only once. */
static enum hearth_status start_writers(struct hearth_store *store, struct hearth_err *err)
{
    if (store->committers == NULL) {
        HEARTH_TRY(hearth_committers_start(store, &store->committers, err));
    }

    if (store->nodes != NULL) {
        HEARTH_TRY(hearth_committers_follow(store->committers, store->nodes, err));
    }

    if (store->trace_writer == NULL) {
        HEARTH_TRY(hearth_trace_writer_start(store, &store->trace_writer, err));
    }

    if (store->builder == NULL && store->options.builder) {
        HEARTH_TRY(hearth_builder_start(store, &store->builder, err));
    }

    return HEARTH_OK;
}

/*
 * If a newer hearthd has changed the schema, what this one would write may break its rules. It only
 * reads then, as well as it can: that is more than nothing while an upgrade is undone or completed.
 */
static enum hearth_status find_newer_schema(struct hearth_store *store, struct hearth_pg *pg,
                                            struct hearth_err *err)
{
    char name[128];

    HEARTH_TRY(hearth_migrate_find_newer(pg, name, err));
    if (name[0] == '\0' || pg->read_only != NULL) {
        return HEARTH_OK;
    }

    (void)snprintf(
        store->read_only_text, sizeof store->read_only_text,
        "the database has migration \"%.80s\", which this hearthd does not know: a newer "
        "hearthd applied it. This one only reads; run that version",
        name);
    pg->read_only = store->read_only_text;
    hearth_pool_set_read_only(store->pool, store->read_only_text);
    atomic_store(&store->read_only, store->read_only_text);
    HEARTH_LOG(HEARTH_LOG_ERROR, "store", "nothing is written", "reason", store->read_only_text,
               NULL);

    return HEARTH_OK;
}

/* Say which node-addresses have no effect. */
static void log_unused_addresses(struct hearth_store *store)
{
    char name[264] = "";
    const char *given = store->options.node_addresses;

    if (store->nodes != NULL && hearth_nodes_unknown_addresses(store->nodes, name) > 0) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "node-addresses names a node that has no shards",
                   "name", name, NULL);
    } else if (store->nodes == NULL && given != NULL && given[0] != '\0') {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "node-addresses is not used", "reason",
                   hearth_layout_is_distributed(store) ? "node-connections is false"
                                                       : "no table is distributed",
                   NULL);
    }
}

/*
 * Find the nodes of distributed tables. Without them, all statements go through the coordinator,
 * which is slower, but right.
 */
static enum hearth_status find_nodes(struct hearth_store *store, struct hearth_pg *pg,
                                     struct hearth_err *err)
{
    if (!hearth_layout_is_distributed(store) || !store->options.node_connections ||
        store->nodes != NULL) {
        log_unused_addresses(store);
        return HEARTH_OK;
    }

    struct hearth_err why = HEARTH_ERR_INIT;
    HEARTH_TRY(hearth_nodes_new(&store->options, &store->nodes, err));
    if (hearth_nodes_refresh(store->nodes, pg, &why) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "the nodes of distributed tables are not known",
                   "reason", why.msg, NULL);
    }
    log_unused_addresses(store);

    return HEARTH_OK;
}

/*
 * Without the leaves, a server starts only if a lost node is the reason: profiles of days that have
 * leaves, and queries, need not wait for it.
 */
static enum hearth_status make_first_leaves(struct hearth_store *store, struct hearth_pg *pg,
                                            struct hearth_err *err)
{
    enum hearth_status status = hearth_housekeeping_make_leaves(store, pg, 1, err);
    if (status != HEARTH_UNAVAILABLE || !hearth_store_has_lost_nodes(store)) {
        return status;
    }

    return hearth_pg_alive(pg) ? HEARTH_OK : hearth_pg_connect(pg, CONNECT_TIMEOUT_MS, err);
}

/* Start the thread that follows the nodes, which the boot has found. */
static enum hearth_status start_follower(struct hearth_store *store, struct hearth_err *err)
{
    return store->nodes == NULL || store->node_follower != NULL
               ? HEARTH_OK
               : hearth_node_follower_start(store, &store->node_follower, err);
}

/*
 * Run the steps that lead to a ready store, up to the first that fails. Call it again after a
 * failure: it repeats harmless steps, and starts each part only once.
 */
static enum hearth_status boot_once(struct hearth_store *store, struct hearth_pg *pg,
                                    struct hearth_err *err)
{
    /* Connect, and bring the schema up to date. */
    if (!hearth_pg_alive(pg)) {
        HEARTH_TRY(hearth_pg_connect(pg, CONNECT_TIMEOUT_MS, err));
    }

    HEARTH_TRY(check_is_safe(pg, err));
    HEARTH_TRY(hearth_clocks_compare(store, pg, err));
    HEARTH_TRY(find_newer_schema(store, pg, err));
    if (pg->read_only == NULL) {
        HEARTH_TRY(hearth_migrate(pg, NULL, NULL, err));
    }
    HEARTH_TRY(hearth_lineage_check(&store->lineage, pg, err)); /* it has tables now */
    bool is_distributed = false;
    HEARTH_TRY(hearth_layout_read(pg, &is_distributed, err));
    atomic_store(&store->is_distributed, is_distributed);
    HEARTH_TRY(find_nodes(store, pg, err));
    HEARTH_TRY(hearth_wall_raise(store, pg, err));
    if (pg->read_only != NULL) {
        HEARTH_TRY(hearth_catalog_refresh(store->catalog, &store->boot_cancel, err));
        HEARTH_TRY(hearth_known_applications_step(store, pg, err));
        return start_follower(store, err);
    }

    /* Prepare the rows and leaves that writers need, and the catalogue in memory. */
    if (store->batch_writer_id == 0) {
        int32_t writer_id = 0;
        HEARTH_TRY(hearth_writer_register(pg, NULL, &writer_id, err));
        store->batch_writer_id = writer_id;
        atomic_store(&store->writer_id, writer_id);
    }

    HEARTH_TRY(make_first_leaves(store, pg, err));
    HEARTH_TRY(hearth_catalog_refresh(store->catalog, &store->boot_cancel, err));

    HEARTH_TRY(hearth_known_applications_step(store, pg, err));
    HEARTH_TRY(start_writers(store, err));

    return start_follower(store, err);
}

/* Sleep until the time has passed, somebody wants a look at the database, or the store closes. */
static void sleep_unless_closing(struct hearth_store *store, int64_t duration_ns)
{
    assert(duration_ns > 0);

    int64_t until_ns = hearth_clock_mono_ns() + duration_ns;
    bool has_time = true;
    hearth_mutex_lock(&store->reason_lock);
    while (has_time && store->n_looks_wanted == store->n_looked && !atomic_load(&store->closing)) {
        has_time = hearth_mutex_wait_until(&store->reason_lock, &store->boot_wake, until_ns);
    }
    hearth_mutex_unlock(&store->reason_lock);
}

/*
 * Log why the store is not ready, if the reason is new. An embedded database starts at the same
 * time as the store: while it starts, one line of INFO says so instead of a warning.
 */
static void log_not_ready(const struct hearth_store *store, const char *reason, bool is_starting,
                          bool is_new, bool *was_starting)
{
    if (atomic_load(&store->closing)) {
        return;
    }

    if (is_starting) {
        if (!*was_starting) {
            HEARTH_LOG(HEARTH_LOG_INFO, "store", "waiting for the database to start", NULL);
        }
    } else if (is_new || *was_starting) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "not ready", "reason", reason, NULL);
    }

    *was_starting = is_starting;
}

/* Try until the store is ready or closes. */
static void boot_until_ready(struct hearth_store *store, struct hearth_pg *pg)
{
    int64_t backoff_ns = BACKOFF_FIRST_NS, patient_until_ns = hearth_clock_mono_ns();
    bool was_starting = false;

    patient_until_ns += store->options.data_dir != NULL ? PATIENCE_NS : 0;
    while (!atomic_load(&store->closing)) {
        struct hearth_err err = HEARTH_ERR_INIT;
        enum hearth_status status = boot_once(store, pg, &err);
        if (status == HEARTH_OK) {
            HEARTH_LOG(HEARTH_LOG_INFO, "store", "database is ready", "writer",
                       hearth_log_i64(store->batch_writer_id), NULL);
            atomic_store(&store->ready, true);
            return;
        }

        /* Publish and log the reason. */
        bool waiting = status == HEARTH_UNAVAILABLE || status == HEARTH_DEADLINE_EXCEEDED;
        char text[256];
        (void)snprintf(text, sizeof text, "%s%.220s", waiting ? "waiting for the database: " : "",
                       err.msg);
        bool is_new = hearth_store_set_reason(store, text);
        bool is_starting = waiting && hearth_clock_mono_ns() < patient_until_ns;
        log_not_ready(store, text, is_starting, is_new, &was_starting);

        /* Pause: longer each time while the database cannot be reached. */
        sleep_unless_closing(store, waiting ? backoff_ns : RECHECK_NS);
        backoff_ns = waiting ? backoff_ns * 2 : BACKOFF_FIRST_NS;
        backoff_ns = backoff_ns > BACKOFF_LAST_NS ? BACKOFF_LAST_NS : backoff_ns;
    }
}

/*
 * Connect if needed, and record whether the database can be reached. An open connection is checked,
 * too: behind a pooler, or after a dump was restored, the database may be another one.
 */
static enum hearth_status check_connection(struct hearth_store *store, struct hearth_pg *pg,
                                           struct hearth_lineage_seen *seen, struct hearth_err *err)
{
    hearth_mutex_lock(&store->reason_lock);
    uint64_t n_looks = store->n_looks_wanted;
    hearth_mutex_unlock(&store->reason_lock);

    enum hearth_status status = hearth_pg_alive(pg)
                                    ? hearth_lineage_recheck(&store->lineage, pg, seen, err)
                                    : hearth_pg_connect(pg, CONNECT_TIMEOUT_MS, err);

    if (status == HEARTH_OK) {
        hearth_store_note_back(store);
    } else if (!atomic_load(&store->closing)) {
        hearth_store_note_away(store, err->msg);
    }

    /* Callers that wanted it before it began know the outcome now. */
    hearth_mutex_lock(&store->reason_lock);
    if (store->n_looked != n_looks) {
        store->n_looked = n_looks;
        (void)pthread_cond_broadcast(&store->looked);
    }
    hearth_mutex_unlock(&store->reason_lock);

    return status;
}

/* Watch the connection and do the housekeeping until the store closes. */
static void keep_house(struct hearth_store *store, struct hearth_pg *pg)
{
    struct hearth_housekeeping times;
    struct hearth_lineage_seen seen = {0};

    hearth_housekeeping_begin(store, &times);
    while (!atomic_load(&store->closing)) {
        struct hearth_err err = HEARTH_ERR_INIT;
        enum hearth_status status = check_connection(store, pg, &seen, &err);
        if (status == HEARTH_OK && atomic_load(&store->read_only) == NULL &&
            hearth_housekeeping_run(store, pg, &times, &err) != HEARTH_OK) {
            HEARTH_LOG(HEARTH_LOG_DEBUG, "store", "housekeeping failed", "reason", err.msg, NULL);
        }

        sleep_unless_closing(store, atomic_load(&store->away) ? AWAY_TICK_NS : TICK_NS);
    }
}

static void *run_boot(void *arg)
{
    struct hearth_store *store = arg;
    struct hearth_pg pg = {
        .url = store->url, .lineage = &store->lineage, .cancel = &store->boot_cancel};

    /* Migrations have no time limit: they may take long. */
    boot_until_ready(store, &pg);
    pg.timeout_ms = store->options.statement_timeout_ms;
    keep_house(store, &pg);
    hearth_pg_close(&pg);

    return NULL;
}

/* ---- opening and closing ---- */

/* what: whose URL it is. */
static enum hearth_status check_database_url(const char *what, const struct hearth_secret *url,
                                             struct hearth_err *err)
{
    return url == NULL || hearth_pg_url_valid(url)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "%s cannot be parsed; it looks like "
                             "postgresql://user@host:5432/database, and characters such as @ / ? # "
                             "in a password are written %%40 %%2F %%3F %%23",
                             what);
}

enum hearth_status hearth_store_check_options(const struct hearth_store_options *options,
                                              struct hearth_err *err)
{
    HEARTH_TRY(check_database_url("the database URL", options->url, err));
    HEARTH_TRY(check_database_url("the URL of the read replica", options->read_url, err));

    if (options->n_committers == 0 || options->n_committers > 64 || options->max_readers == 0 ||
        options->max_readers > 1000 || options->max_batch_rows == 0 || options->linger_ns < 0 ||
        options->busy_linger_ns < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "store options out of range: committers 1 to 64, readers 1 to 1000, "
                           "batch rows above 0, linger not negative");
    }

    return HEARTH_OK;
}

static enum hearth_status start_boot(struct hearth_store *store, struct hearth_err *err)
{
    assert(!store->boot_started);

    /* The new thread inherits the mask: signals are for the main thread. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&store->boot_thread, NULL, run_boot, store);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the store's thread (error %d)",
                           rc);
    }

    (void)pthread_setname_np(store->boot_thread, "store");
    store->boot_started = true;

    return HEARTH_OK;
}

/* Create all parts that need no connection, then start the boot thread, which uses them. */
static enum hearth_status make_parts(struct hearth_store *store, struct hearth_err *err)
{
    /* Connections. */
    HEARTH_TRY(hearth_pool_new(store->url, store->options.max_readers, &store->pool, err));
    hearth_pool_set_timeout(store->pool, store->options.statement_timeout_ms);
    hearth_pool_set_lineage(store->pool, &store->lineage);
    if (store->options.read_url != NULL) {
        HEARTH_TRY(hearth_replica_new(&store->options, &store->replica, err));
    }

    /* State in memory. */
    HEARTH_TRY(hearth_partitions_new(&store->partitions, err));
    HEARTH_TRY(hearth_settings_new(&store->settings, err));
    HEARTH_TRY(hearth_known_applications_new(&store->known_applications, err));
    store->poll_memo = hearth_poll_memo_new();
    if (store->poll_memo == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the memory of polls");
    }

    HEARTH_TRY(hearth_monitors_new(&store->monitors, err));
    HEARTH_TRY(hearth_catalog_new(store, &store->catalog, err));
    HEARTH_TRY(hearth_ingest_dicts_new(store, &store->dicts, err));
    HEARTH_TRY(hearth_read_cache_new(store, &store->cache, err));

    return start_boot(store, err);
}

enum hearth_status hearth_store_open(const struct hearth_store_options *options,
                                     struct hearth_store **ret_store, struct hearth_err *err)
{
    assert(options->url != NULL);
    HEARTH_TRY(hearth_store_check_options(options, err));

    /* Allocate and fill the root. */
    struct hearth_store *store = hearth_mem_zalloc(sizeof *store);
    struct hearth_secret *url = NULL;
    if (store == NULL || hearth_secret_copy(options->url, &url, err) != HEARTH_OK) {
        hearth_mem_free(store);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the store");
    }

    store->options = *options;
    store->options.url = url;
    atomic_init(&store->live, &store->options);
    store->url = url;
    atomic_init(&store->next_upload, 1);
    hearth_cancel_init(&store->boot_cancel, INT64_MAX);
    hearth_mutex_init(&store->reason_lock, HEARTH_RANK_REASON, "store.reason_lock");
    hearth_lineage_init(&store->lineage, "hearth_data.writer");
    hearth_cond_init(&store->boot_wake);
    hearth_cond_init(&store->looked);
    (void)snprintf(store->reason, sizeof store->reason,
                   "waiting for the database: not connected yet");

    /* From here on, closing the store frees all of it. */
    enum hearth_status status = make_parts(store, err);
    if (status != HEARTH_OK) {
        hearth_store_close(store, 0);
        return status;
    }

    *ret_store = store;

    return HEARTH_OK;
}

void hearth_store_set_options(struct hearth_store *store,
                              const struct hearth_store_options *options)
{
    assert(store != NULL && options != NULL);

    atomic_store_explicit(&store->live, options, memory_order_release);
}

void hearth_store_close(struct hearth_store *store, int64_t deadline_mono_ns)
{
    if (store == NULL) {
        return;
    }

    /* Stop the boot thread, which may be starting the other threads. */
    (void)hearth_store_set_reason(store, "the server is stopping");
    atomic_store(&store->closing, true);
    atomic_store(&store->boot_cancel.cancelled, true);
    if (store->boot_started) {
        hearth_mutex_lock(&store->reason_lock);
        (void)pthread_cond_broadcast(&store->boot_wake);
        (void)pthread_cond_broadcast(&store->looked);
        hearth_mutex_unlock(&store->reason_lock);
        (void)pthread_join(store->boot_thread, NULL);
    }

    /* Stop the other threads; the writers commit the queued rows. */
    hearth_node_follower_stop(store->node_follower);
    hearth_builder_stop(store->builder);
    hearth_trace_writer_stop(store->trace_writer, deadline_mono_ns);
    hearth_committers_stop(store->committers, deadline_mono_ns);

    /* Free the parts; the pools last, because other parts take connections from them. */
    hearth_read_cache_free(store->cache);
    hearth_ingest_dicts_free(store->dicts);
    hearth_catalog_free(store->catalog);
    hearth_partitions_free(store->partitions);
    hearth_settings_free(store->settings);
    hearth_known_applications_free(store->known_applications);
    hearth_poll_memo_free(store->poll_memo);
    hearth_monitors_free(store->monitors);
    hearth_replica_free(store->replica);
    hearth_nodes_free(store->nodes);
    hearth_pool_free(store->pool);

    /* Free the root. */
    (void)pthread_cond_destroy(&store->boot_wake);
    (void)pthread_cond_destroy(&store->looked);
    hearth_mutex_destroy(&store->reason_lock);
    hearth_lineage_release(&store->lineage);
    hearth_secret_free(store->url);
    hearth_mem_free(store);
}
