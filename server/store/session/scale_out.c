/*
 * scale_out.c -- distributes the data tables over the nodes of Citus, and the way back (contract:
 * store.h).
 *
 * A table is one transaction, so a run that was killed is continued by the next one; until then
 * hearthd does not start (layout.c). Policies with subqueries are not allowed on distributed
 * tables, and the role and settings of a transaction do not reach the nodes, so the policies go.
 * On the way back they are made again as migration 0021 makes them.
 */
#include "hearth/store/store.h"

#include "nodes/layout.h"
#include "pg/pg.h"
#include "session/migrate.h"
#include "session/node_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define CONNECT_MS 10000

static const char *const DATA_TABLES[] = {
#define OF_DATA(table) #table,
#define OF_CATALOGUE(table)
#define HEARTH_PLACED(table, set) OF_##set(table)
#include "placement.def"
#undef HEARTH_PLACED
};

/* A run of the command. */
struct scale_out {
    struct hearth_pg pg;
    enum hearth_scale_out what;
    hearth_store_scale_out_fn *on_line;
    void *arg;
};

HEARTH_PRINTF(2, 3) static void print_line(const struct scale_out *run, const char *format, ...)
{
    char line[256];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list);
    va_end(list);
    run->on_line(run->arg, line);
}

/* Run a statement that returns one int8. */
static enum hearth_status ask(struct scale_out *run, const char *sql, int64_t *ret,
                              struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&run->pg, sql, NULL, NULL, &result, NULL, err));
    *ret = PQntuples(result) > 0 ? hearth_pg_i64(result, 0, 0) : 0;
    PQclear(result);

    return HEARTH_OK;
}

/* ---- what must hold before ---- */

static void count_migration(void *arg, const char *name)
{
    (void)name;
    ++*(int *)arg;
}

/* The schema is this hearthd's. */
static enum hearth_status check_migrations(struct scale_out *run, struct hearth_err *err)
{
    int n_missing = 0;
    char newer[128];
    HEARTH_TRY(hearth_migrate_plan(&run->pg, count_migration, &n_missing, err));
    HEARTH_TRY(hearth_migrate_find_newer(&run->pg, newer, err));
    if (n_missing > 0 || newer[0] != '\0') {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "the schema is not that of this hearthd; run hearthd migrate first");
    }

    return HEARTH_OK;
}

static enum hearth_status check_nodes(struct scale_out *run, struct hearth_err *err)
{
    int64_t n;
    HEARTH_TRY(ask(run, "SELECT count(*) FROM pg_extension WHERE extname = 'citus'", &n, err));
    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "the database lacks the extension citus; an administrator has to run "
                           "CREATE EXTENSION citus");
    }

    HEARTH_TRY(ask(run,
                   "SELECT count(*) FROM pg_catalog.pg_dist_node WHERE isactive AND"
                   " shouldhaveshards",
                   &n, err));
    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "no node may hold rows; an administrator has to run SELECT "
                           "citus_add_node(host, port) for each worker");
    }

    print_line(run, "%" PRId64 " nodes may hold rows", n);

    return HEARTH_OK;
}

/* A server that runs would go on with statements for tables that are not distributed. */
static enum hearth_status check_servers(struct scale_out *run, struct hearth_err *err)
{
    int64_t n;
    HEARTH_TRY(ask(run,
                   "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname ="
                   " current_database() AND application_name = 'hearthd' AND pid <>"
                   " pg_backend_pid()) + (SELECT count(*) FROM hearth_data.lease WHERE expires_at >"
                   " clock_timestamp())",
                   &n, err));
    if (n > 0 && run->what != HEARTH_SCALE_OUT_PLAN) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "hearthd is running on this database; stop every server first");
    }

    return HEARTH_OK;
}

/* Settings of PostgreSQL that decide what the nodes cost; they do not prevent anything. */
static enum hearth_status print_advice(struct scale_out *run, struct hearth_err *err)
{
    static const struct {
        const char *sql, *text;
    } advice[] = {
        {"SELECT (current_setting('citus.multi_shard_modify_mode') = 'sequential')::int4::int8",
         "advice: set citus.multi_shard_modify_mode to sequential; a commit opens a connection for "
         "each shard otherwise"},
        {"SELECT (current_setting('citus.max_cached_conns_per_worker')::int8 >= 8)::int4::int8",
         "advice: set citus.max_cached_conns_per_worker to 8 or more; commits open new connections "
         "otherwise"},
        {"SELECT (current_setting('max_prepared_transactions')::int8 >= 2 *"
         " current_setting('max_connections')::int8)::int4::int8",
         "advice: set max_prepared_transactions to twice max_connections on every node"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(advice); i++) {
        int64_t fits;
        HEARTH_TRY(ask(run, advice[i].sql, &fits, err));
        if (!fits) {
            print_line(run, "%s", advice[i].text);
        }
    }

    return HEARTH_OK;
}

/* ---- tables ---- */

static enum hearth_status is_distributed(struct scale_out *run, const char *table, bool *ret,
                                         struct hearth_err *err)
{
    char sql[192];
    int64_t n;
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM pg_catalog.pg_dist_partition WHERE logicalrelid ="
                   " 'hearth_data.%s'::regclass AND partmethod = 'h'",
                   table);
    HEARTH_TRY(ask(run, sql, &n, err));
    *ret = n > 0;

    return HEARTH_OK;
}

static enum hearth_status print_plan(struct scale_out *run, const char *table,
                                     struct hearth_err *err)
{
    char sql[320];
    int64_t n_bytes;
    (void)snprintf(sql, sizeof sql,
                   "SELECT sum(pg_total_relation_size(oid))::int8 FROM pg_class WHERE oid ="
                   " 'hearth_data.%s'::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE"
                   " inhparent = 'hearth_data.%s'::regclass)",
                   table, table);
    HEARTH_TRY(ask(run, sql, &n_bytes, err));
    print_line(run, "%s: %" PRId64 " MiB move to the nodes, in about %" PRId64 " s", table,
               n_bytes >> 20, n_bytes / HEARTH_MOVED_BYTES_PER_SECOND + 1);

    return HEARTH_OK;
}

/*
 * Let logical replication delete rows of a table without a key, and of its leaves: otherwise Citus
 * moves their shards only while writers wait. Nothing but logical replication reads this.
 */
static enum hearth_status identify_rows_of_table(struct scale_out *run, const char *table,
                                                 struct hearth_err *err)
{
    char sql[512];
    PGresult *result = NULL;
    (void)snprintf(sql, sizeof sql,
                   "SELECT oid::regclass::text FROM pg_class c WHERE relreplident <> 'f' AND (oid ="
                   " 'hearth_data.%s'::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE"
                   " inhparent = 'hearth_data.%s'::regclass)) AND NOT EXISTS (SELECT 1 FROM"
                   " pg_index i WHERE i.indrelid = c.oid AND indisprimary)",
                   table, table);
    HEARTH_TRY(hearth_pg_exec(&run->pg, sql, NULL, NULL, &result, NULL, err));

    enum hearth_status status = HEARTH_OK;
    for (int row = 0; row < PQntuples(result) && status == HEARTH_OK; row++) {
        struct hearth_str name = hearth_pg_str(result, row, 0);
        (void)snprintf(sql, sizeof sql, "ALTER TABLE " HEARTH_STR_FMT " REPLICA IDENTITY FULL",
                       HEARTH_STR_ARG(name));
        status = hearth_pg_exec(&run->pg, sql, NULL, NULL, NULL, NULL, err);
    }

    PQclear(result);

    return status;
}

/* Distribute a table, beside `near` if there is one, and compare its rows before and after. */
static enum hearth_status move_in_transaction(struct scale_out *run, const char *table,
                                              const char *near, int64_t *ret_rows,
                                              struct hearth_err *err)
{
    char sql[384], count[96], colocate[96] = "";
    int64_t n_after;
    (void)snprintf(count, sizeof count, "SELECT count(*) FROM hearth_data.%s", table);
    (void)snprintf(sql, sizeof sql,
                   "BEGIN; SET LOCAL citus.multi_shard_modify_mode = 'sequential'; LOCK TABLE"
                   " hearth_data.%s IN SHARE ROW EXCLUSIVE MODE; DROP POLICY IF EXISTS entered ON"
                   " hearth_data.%s; ALTER TABLE hearth_data.%s DISABLE ROW LEVEL SECURITY",
                   table, table, table);
    HEARTH_TRY(hearth_pg_script(&run->pg, sql, NULL, err));
    HEARTH_TRY(identify_rows_of_table(run, table, err));
    HEARTH_TRY(ask(run, count, ret_rows, err));

    if (near != NULL) {
        (void)snprintf(colocate, sizeof colocate, ", colocate_with => 'hearth_data.%s'", near);
    }
    (void)snprintf(sql, sizeof sql,
                   "SELECT create_distributed_table('hearth_data.%s', 'service_id'%s)", table,
                   colocate);
    HEARTH_TRY(hearth_pg_exec(&run->pg, sql, NULL, NULL, NULL, NULL, err));

    HEARTH_TRY(ask(run, count, &n_after, err));
    if (n_after != *ret_rows) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL,
                           "%s had %" PRId64 " rows and would have %" PRId64 " on the nodes", table,
                           *ret_rows, n_after);
    }

    return hearth_pg_script(&run->pg, "COMMIT", NULL, err);
}

/* Remove the rows that Citus leaves in tables of the coordinator, where no statement sees them. */
static enum hearth_status remove_local_rows(struct scale_out *run, const char *table,
                                            struct hearth_err *err)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "SELECT truncate_local_data_after_distributing_table('hearth_data.%s')", table);

    return hearth_pg_exec(&run->pg, sql, NULL, NULL, NULL, NULL, err);
}

static enum hearth_status move_tables(struct scale_out *run, size_t *ret_n, struct hearth_err *err)
{
    const char *near = NULL;
    bool is_done[HEARTH_ARRAY_LEN(DATA_TABLES)];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(DATA_TABLES); i++) {
        HEARTH_TRY(is_distributed(run, DATA_TABLES[i], &is_done[i], err));
        near = is_done[i] ? DATA_TABLES[i] : near;
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(DATA_TABLES); i++) {
        *ret_n += !is_done[i];
        if (run->what == HEARTH_SCALE_OUT_PLAN) {
            if (!is_done[i]) {
                HEARTH_TRY(print_plan(run, DATA_TABLES[i], err));
            }
            continue;
        }

        if (!is_done[i]) {
            int64_t n_rows = 0;
            enum hearth_status status =
                move_in_transaction(run, DATA_TABLES[i], near, &n_rows, err);
            hearth_pg_rollback(&run->pg); /* no effect after a commit */
            HEARTH_TRY(status);
            print_line(run, "%s: %" PRId64 " rows moved to the nodes", DATA_TABLES[i], n_rows);
            near = DATA_TABLES[i];
        }

        HEARTH_TRY(
            identify_rows_of_table(run, DATA_TABLES[i], err)); /* of a run of an older hearthd */
        HEARTH_TRY(remove_local_rows(run, DATA_TABLES[i], err));
    }

    return HEARTH_OK;
}

/* ---- the way back ---- */

/* The policy of a table, without its name. NULL: it has none. */
static const char *policy_of(const char *table)
{
    if (strcmp(table, "ingest_batch") == 0 || strcmp(table, "push_id") == 0) {
        return NULL;
    }

    return strcmp(table, "span_group") == 0
               ? "USING (EXISTS (SELECT 1 FROM hearth_data.service s WHERE s.service_id ="
                 " span_group.service_id))"
               : "USING (service_id = (SELECT nullif(current_setting('hearth.service_id', true),"
                 " '')::int4) OR service_id IN (SELECT unnest(nullif(current_setting("
                 "'hearth.service_ids', true), '')::int4[])))";
}

/* Rows of tables without a key need not be identified any more; it would only cost WAL. */
static enum hearth_status forget_identity(struct scale_out *run, const char *table,
                                          struct hearth_err *err)
{
    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT oid FROM pg_class WHERE"
                   " relreplident = 'f' AND (oid = 'hearth_data.%s'::regclass OR oid IN (SELECT"
                   " inhrelid FROM pg_inherits WHERE inhparent = 'hearth_data.%s'::regclass)) LOOP"
                   " EXECUTE format('ALTER TABLE %%s REPLICA IDENTITY DEFAULT', t); END LOOP; END"
                   " $$",
                   table, table);

    return hearth_pg_exec(&run->pg, sql, NULL, NULL, NULL, NULL, err);
}

/* Citus makes a new table with the rows of all nodes in the place of the old one. */
static enum hearth_status return_in_transaction(struct scale_out *run, const char *table,
                                                int64_t *ret_rows, struct hearth_err *err)
{
    char sql[640], count[96];
    int64_t n_after;
    (void)snprintf(count, sizeof count, "SELECT count(*) FROM hearth_data.%s", table);
    HEARTH_TRY(hearth_pg_script(
        &run->pg, "BEGIN; SET LOCAL citus.multi_shard_modify_mode = 'sequential'", NULL, err));
    HEARTH_TRY(ask(run, count, ret_rows, err));
    (void)snprintf(sql, sizeof sql, "SELECT undistribute_table('hearth_data.%s')", table);
    HEARTH_TRY(hearth_pg_exec(&run->pg, sql, NULL, NULL, NULL, NULL, err));
    HEARTH_TRY(ask(run, count, &n_after, err));
    if (n_after != *ret_rows) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL,
                           "%s had %" PRId64 " rows and would have %" PRId64 " on the coordinator",
                           table, *ret_rows, n_after);
    }

    HEARTH_TRY(forget_identity(run, table, err));
    const char *policy = policy_of(table);
    if (policy != NULL) {
        (void)snprintf(sql, sizeof sql,
                       "DROP POLICY IF EXISTS entered ON hearth_data.%s; CREATE POLICY entered ON"
                       " hearth_data.%s %s; ALTER TABLE hearth_data.%s ENABLE ROW LEVEL SECURITY",
                       table, table, policy, table);
        HEARTH_TRY(hearth_pg_script(&run->pg, sql, NULL, err));
    }

    return hearth_pg_script(&run->pg, "COMMIT", NULL, err);
}

static enum hearth_status return_tables(struct scale_out *run, size_t *ret_n,
                                        struct hearth_err *err)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(DATA_TABLES); i++) {
        bool is_there = false;
        HEARTH_TRY(is_distributed(run, DATA_TABLES[i], &is_there, err));
        if (!is_there) {
            continue;
        }

        int64_t n_rows = 0;
        enum hearth_status status = return_in_transaction(run, DATA_TABLES[i], &n_rows, err);
        hearth_pg_rollback(&run->pg); /* no effect after a commit */
        HEARTH_TRY(status);
        print_line(run, "%s: %" PRId64 " rows moved to the coordinator", DATA_TABLES[i], n_rows);
        ++*ret_n;
    }

    return HEARTH_OK;
}

static enum hearth_status run_steps(struct scale_out *run, size_t *ret_n, struct hearth_err *err)
{
    HEARTH_TRY(check_migrations(run, err));
    HEARTH_TRY(check_nodes(run, err));
    HEARTH_TRY(check_servers(run, err));
    if (run->what == HEARTH_SCALE_OUT_UNDO) {
        HEARTH_TRY(return_tables(run, ret_n, err));
    } else {
        HEARTH_TRY(print_advice(run, err));
        HEARTH_TRY(move_tables(run, ret_n, err));
    }

    bool ignored;

    return run->what == HEARTH_SCALE_OUT_PLAN ? HEARTH_OK
                                              : hearth_layout_read(&run->pg, &ignored, err);
}

enum hearth_status hearth_store_scale_out(const struct hearth_secret *url,
                                          enum hearth_scale_out what,
                                          hearth_store_scale_out_fn *on_line, void *arg,
                                          size_t *ret_n_tables, struct hearth_err *err)
{
    struct scale_out run = {.pg = {.url = url}, .what = what, .on_line = on_line, .arg = arg};
    assert(on_line != NULL);

    *ret_n_tables = 0;
    HEARTH_TRY(hearth_pg_connect(&run.pg, CONNECT_MS, err));
    enum hearth_status status = run_steps(&run, ret_n_tables, err);
    hearth_pg_close(&run.pg);

    return status;
}
