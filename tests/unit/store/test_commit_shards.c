/*
 * test_commit_shards.c -- commits on a node that name the tables of its shards. Tables of their own
 * stand for the shards, and for Citus' catalogues; Citus itself: test_citus_commits.py.
 */
#include "commit/commit_queue.h"
#include "node_map.h"
#include "whole_dictionaries.h"

#include <stdatomic.h>

#define GROUP      7
#define N_SHARDS   3
#define N_SERVICES 10

static struct fixture {
    char url[256];
    struct hearth_store *store;
    struct hearth_nodes *nodes;
} g_fix;

static void run(const char *sql)
{
    struct hearth_pg pg = {.url = test_secret(g_fix.url)};
    assert_ok(hearth_pg_connect(&pg, STORE_PATIENCE_NS / HEARTH_NS_PER_MS, &err));
    assert_ok(hearth_pg_script(&pg, sql, NULL, &err));
    hearth_pg_close(&pg);
}

/* The number of a table of a shard; no two are the same. */
static int64_t id_of(int shard, unsigned table)
{
    return 100 * (shard + 1) + table;
}

static void make_shards(void)
{
    struct hearth_buf sql;
    hearth_buf_init(&sql, 0);
    hearth_buf_cstr(&sql,
                    "SET allow_system_table_mods = on;"
                    "CREATE TABLE pg_catalog.pg_dist_local_group (groupid int4);"
                    "INSERT INTO pg_dist_local_group VALUES (7);"
                    "CREATE TABLE pg_catalog.pg_dist_placement (shardid int8, groupid int4);");
    for (int s = 0; s < N_SHARDS; s++) {
        hearth_buf_printf(&sql, "INSERT INTO pg_dist_placement VALUES (%lld, %d);",
                          (long long)id_of(s, HEARTH_SHARD_ROLL_STATE), GROUP);
        for (unsigned t = 0; t < HEARTH_N_SHARD_TABLES; t++) {
            hearth_buf_printf(&sql,
                              "CREATE TABLE hearth_data.%s_%lld (LIKE hearth_data.%s INCLUDING"
                              " ALL);",
                              hearth_shard_table(t), (long long)id_of(s, t), hearth_shard_table(t));
        }
    }
    hearth_buf_byte(&sql, '\0');
    run(sql.p);
    hearth_buf_release(&sql);
}

/* Locks as of Citus: of its function for moves, and of an INSERT, with `more` locks beside. */
static void make_locks(int more)
{
    char sql[1024];
    (void)snprintf(sql, sizeof sql,
                   "SET allow_system_table_mods = on;"
                   "CREATE FUNCTION pg_catalog.lock_shard_metadata(mode int4, ids int8[]) RETURNS"
                   " void LANGUAGE sql AS 'SELECT pg_advisory_xact_lock_shared(id) FROM"
                   " unnest(ids) id';"
                   "CREATE FUNCTION hearth_data.lock_inserted() RETURNS trigger LANGUAGE plpgsql AS"
                   " 'BEGIN PERFORM pg_advisory_xact_lock_shared(shardid) FROM pg_dist_placement;"
                   " PERFORM pg_advisory_xact_lock_shared(-i) FROM generate_series(1, %d) i;"
                   " RETURN NEW; END';"
                   "CREATE TRIGGER locks BEFORE INSERT ON hearth_data.ingest_batch FOR EACH ROW"
                   " EXECUTE FUNCTION hearth_data.lock_inserted()",
                   more);
    run(sql);
}

/* Give all services to one node, which has N_SHARDS shards. */
static void map_services(void)
{
    struct hearth_node_shard shards[N_SHARDS];
    static int64_t ids[N_SHARDS][HEARTH_N_SHARD_TABLES];
    for (int s = 0; s < N_SHARDS; s++) {
        for (unsigned t = 0; t < HEARTH_N_SHARD_TABLES; t++) {
            ids[s][t] = id_of(s, t);
        }
        shards[s] = (struct hearth_node_shard){
            .first_hash = (int32_t)(INT32_MIN + ((int64_t)s << 32) / N_SHARDS),
            .group = GROUP,
            .host = hearth_str_c(g_cluster.dir),
            .port = 5432,
            .is_usable = true,
            .n_copies = 1,
            .ids = ids[s],
            .n_ids = HEARTH_N_SHARD_TABLES,
        };
    }
    assert_ok(hearth_nodes_take(g_fix.nodes, shards, N_SHARDS, &err));
    assert_ok(hearth_committers_follow(g_fix.store->committers, g_fix.nodes, &err));
}

static int open_nodes_with(size_t prepared_rows)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.commit_prepared_rows = prepared_rows;
    options.n_committers = 1;
    options.linger_ns = 5 * HEARTH_NS_PER_SEC; /* a round is one batch */
    options.commit_rows = N_SERVICES;
    g_fix.store = open_fresh(g_fix.url, &options);
    atomic_store(&g_fix.store->is_distributed, true);
    make_shards();
    g_fix.nodes = make_nodes(g_fix.store);
    map_services();
    return 0;
}

static int open_nodes(void **state)
{
    (void)state;
    return open_nodes_with(16);
}

static int open_nodes_without_statements(void **state)
{
    (void)state;
    return open_nodes_with(0);
}

static int open_nodes_with_locks(void **state)
{
    (void)state;
    int failed = open_nodes_with(16);
    make_locks(0);
    return failed;
}

static int open_nodes_with_more_locks(void **state)
{
    (void)state;
    int failed = open_nodes_with(16);
    make_locks(1);
    return failed;
}

static int close_nodes(void **state)
{
    (void)state;
    close_store(g_fix.store);
    hearth_nodes_free(g_fix.nodes);
    return 0;
}

/* Store a profile of each service, which together are one batch; `id`: 0, or that of the round. */
static void push_round(int64_t ts_ns, uint64_t id)
{
    struct store_push *pushes[N_SERVICES];
    for (int i = 0; i < N_SERVICES; i++) {
        char service[16];
        (void)snprintf(service, sizeof service, "svc-%d", i);
        pushes[i] = make_push(g_fix.store, service, ts_ns, 40, id);
    }
    for (int i = 0; i < N_SERVICES; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < N_SERVICES; i++) {
        end_push(pushes[i]);
    }
}

static long long count_of_shard(int shard, unsigned table)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM hearth_data.%s_%lld",
                   hearth_shard_table(table), (long long)id_of(shard, table));
    return pg_cluster_int(g_fix.url, sql);
}

static long long count_of_shards(unsigned table)
{
    long long n = 0;
    for (int s = 0; s < N_SHARDS; s++) {
        n += count_of_shard(s, table);
    }
    return n;
}

static long long count_rows(const char *table)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM hearth_data.%s", table);
    return pg_cluster_int(g_fix.url, sql);
}

/*
 * The sessions whose last batch ran prepared statements of shards; `what` is selected from them. The
 * pattern is in two pieces, so that it does not match the session of an earlier call that has not
 * ended yet.
 */
static long long of_prepared_sessions(const char *what)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT %s FROM pg_stat_activity WHERE datname = current_database() AND pid <>"
                   " pg_backend_pid() AND query LIKE '%%EXECUTE ' || 'hearth_shard_%%'",
                   what);
    return pg_cluster_int(g_fix.url, sql);
}

/* Those of the committer of the node, which does nothing between rounds. */
static struct hearth_commit_statements *get_statements(void)
{
    return &g_fix.store->committers->committers[1]->statements;
}

static void a_batch_goes_to_the_tables_of_its_shards_and_locks_each_of_them(void **state)
{
    (void)state;
    int64_t before = hearth_metric_value(HEARTH_M_BATCHES_SHARDS), ts_ns = hearth_clock_wall_ns();
    push_round(ts_ns, 0);
    push_round(ts_ns + 1, 0);
    assert_in_range(hearth_metric_value(HEARTH_M_BATCHES_SHARDS) - before, 2, 2 * N_SERVICES);
    for (int s = 0; s < N_SHARDS; s++) { /* a service in the wrong one would be lost */
        assert_in_range(count_of_shard(s, HEARTH_SOURCE_PROFILE), 2, 2 * N_SERVICES - 4);
        assert_in_range(count_of_shard(s, HEARTH_SHARD_DICT_CHUNK), 1, 2 * N_SERVICES);
    }
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), 2 * N_SERVICES);
    assert_int_equal(count_rows("profile"), 0);
    assert_int_equal(count_rows("dict_chunk"), 0);
    assert_int_equal(pg_cluster_int(g_fix.url,
                                    "SELECT min(n) FROM (SELECT count(*) AS n FROM"
                                    " hearth_data.ingest_batch GROUP BY writer_id, seq) q"),
                     N_SHARDS);
}

static void a_function_locks_the_shards_where_it_takes_all_locks_of_an_insert(void **state)
{
    (void)state;
    int64_t before = hearth_metric_value(HEARTH_M_BATCHES_SHARDS), ts_ns = hearth_clock_wall_ns();
    push_round(ts_ns, 0);
    push_round(ts_ns + 1, 0);
    assert_int_equal(count_of_shards(HEARTH_SHARD_INGEST_BATCH),
                     hearth_metric_value(HEARTH_M_BATCHES_SHARDS) - before);
    assert_int_equal(count_rows("ingest_batch"), 0);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), 2 * N_SERVICES);
}

static void an_insert_locks_the_shards_where_it_takes_more_locks_than_the_function(void **state)
{
    (void)state;
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(count_of_shards(HEARTH_SHARD_INGEST_BATCH), 0);
    assert_true(count_rows("ingest_batch") >= N_SHARDS);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), N_SERVICES);
}

/*
 * The first attempt ends without an answer. As if it had been committed, its batch row is there, on
 * the node to which a shard has moved meanwhile. The next attempt, which learns of the move after
 * it has inserted its row, loses its connection, too.
 */
static void a_row_in_the_table_of_a_shard_that_has_moved_settles_no_attempt(void **state)
{
    (void)state;
    push_round(hearth_clock_wall_ns(), 0);
    int64_t settled = hearth_metric_value(HEARTH_M_BATCH_SETTLED);
    char sql[2048];
    (void)snprintf(
        sql, sizeof sql,
        "SET allow_system_table_mods = on; CREATE SEQUENCE hearth_data.n_ended;"
        "DROP TABLE pg_catalog.pg_dist_placement;"
        "CREATE VIEW pg_catalog.pg_dist_placement AS SELECT shardid, CASE WHEN is_called AND"
        " shardid = %lld THEN 8 ELSE 7 END AS groupid FROM hearth_data.n_ended, (VALUES (%lld),"
        " (%lld), (%lld)) v (shardid);"
        "CREATE FUNCTION hearth_data.end_session() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
        " PERFORM pg_terminate_backend(pg_backend_pid()) WHERE nextval(''hearth_data.n_ended'') <"
        " 3; RETURN NEW; END';"
        "CREATE TRIGGER ends AFTER INSERT ON hearth_data.profile_%lld FOR EACH STATEMENT EXECUTE"
        " FUNCTION hearth_data.end_session();"
        "INSERT INTO hearth_data.ingest_batch SELECT min(service_id), %d, %lld FROM"
        " hearth_data.service;"
        "CREATE TRIGGER ends BEFORE INSERT ON hearth_data.ingest_batch FOR EACH ROW WHEN (NEW.seq"
        " >= 0) EXECUTE FUNCTION hearth_data.end_session()",
        (long long)id_of(2, HEARTH_SHARD_ROLL_STATE), (long long)id_of(0, HEARTH_SHARD_ROLL_STATE),
        (long long)id_of(1, HEARTH_SHARD_ROLL_STATE), (long long)id_of(2, HEARTH_SHARD_ROLL_STATE),
        (long long)id_of(2, HEARTH_SOURCE_PROFILE), (int)g_fix.store->batch_writer_id,
        (long long)g_fix.store->committers->next_seq);
    run(sql);
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCH_SETTLED) - settled, 1);
    assert_int_equal(pg_cluster_int(g_fix.url, "SELECT last_value FROM hearth_data.n_ended"), 3);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE) + count_rows("profile"), N_SERVICES);
}

static void late_and_repeated_profiles_are_found_in_the_tables_of_the_shards(void **state)
{
    (void)state;
    int64_t ts_ns = hearth_clock_wall_ns();
    push_round(ts_ns, 5);
    push_round(ts_ns + 1, 5); /* the same ids */
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), N_SERVICES);
    assert_int_equal(count_of_shards(HEARTH_SHARD_PUSH_ID), N_SERVICES);

    struct hearth_buf sql;
    hearth_buf_init(&sql, 0);
    for (int s = 0; s < N_SHARDS; s++) {
        hearth_buf_printf(&sql,
                          "INSERT INTO hearth_data.roll_state_%lld (service_id, watermark, "
                          "built_to, compacted_to, generation) SELECT"
                          " DISTINCT service_id, %lld, 0, 0, 0 FROM hearth_data.profile_%lld;",
                          (long long)id_of(s, HEARTH_SHARD_ROLL_STATE), (long long)ts_ns + 10,
                          (long long)id_of(s, HEARTH_SOURCE_PROFILE));
    }
    hearth_buf_byte(&sql, '\0');
    run(sql.p);
    hearth_buf_release(&sql);
    push_round(ts_ns + 9, 0);
    push_round(ts_ns + 10, 0);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_LATE), N_SERVICES);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), 2 * N_SERVICES);
    assert_int_equal(count_rows("profile_late"), 0);
}

static void a_connection_prepares_statements_of_shards_and_a_new_one_does_so_again(void **state)
{
    (void)state;
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(of_prepared_sessions("count(*)"), 1);
    long long pid = of_prepared_sessions("min(pid)");
    of_prepared_sessions("count(pg_terminate_backend(pid, 10000))");
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(of_prepared_sessions("count(*)"), 1);
    assert_int_not_equal(of_prepared_sessions("min(pid)"), pid);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), 2 * N_SERVICES);
}

static void without_prepared_statements_no_session_runs_any(void **state)
{
    (void)state;
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(of_prepared_sessions("count(*)"), 0);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), N_SERVICES);
}

/* A shard moves away and back: its table has the same name, and is another one. */
static void a_prepared_statement_reads_the_table_that_has_the_name_now(void **state)
{
    (void)state;
    char sql[512];
    int64_t ts_ns = hearth_clock_wall_ns();
    long long id = (long long)id_of(1, HEARTH_SHARD_ROLL_STATE);
    push_round(ts_ns, 0);
    (void)snprintf(
        sql, sizeof sql,
        "DROP TABLE hearth_data.roll_state_%lld; CREATE TABLE hearth_data.roll_state_%lld"
        " (LIKE hearth_data.roll_state INCLUDING ALL); INSERT INTO"
        " hearth_data.roll_state_%lld (service_id, watermark, built_to, compacted_to,"
        " generation) SELECT DISTINCT service_id, %lld, 0, 0, 0 FROM"
        " hearth_data.profile_%lld",
        id, id, id, (long long)ts_ns + 10, (long long)id_of(1, HEARTH_SOURCE_PROFILE));
    run(sql);
    long long n = count_of_shard(1, HEARTH_SOURCE_PROFILE);
    push_round(ts_ns + 9, 0);
    assert_int_equal(of_prepared_sessions("count(*)"), 1);
    assert_true(n > 0);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_LATE), n);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), 2 * N_SERVICES - n);
}

static void a_session_keeps_statements_of_a_limited_number_of_shards(void **state)
{
    (void)state;
    push_round(hearth_clock_wall_ns(), 0);
    struct hearth_commit_statements *statements = get_statements();
    assert_int_equal(statements->n_shards, N_SHARDS);
    for (size_t i = 0; i < HEARTH_MAX_PREPARED_SHARDS - 1; i++) { /* of others, by now */
        statements->shards[i] = 1000000 + (int64_t)i;
    }
    statements->n_shards = HEARTH_MAX_PREPARED_SHARDS - 1;
    push_round(hearth_clock_wall_ns(), 0); /* the names of its statements are taken */
    assert_int_equal(statements->n_shards, N_SHARDS);
    assert_int_equal(of_prepared_sessions("count(*)"), 1);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), 2 * N_SERVICES);
}

static void statements_whose_names_are_taken_are_prepared_again(void **state)
{
    (void)state;
    int64_t left = hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT);
    push_round(hearth_clock_wall_ns(), 0);
    struct hearth_commit_statements *statements = get_statements();
    statements->shards[0] = 1000000; /* so the statement of that shard is prepared twice */
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(of_prepared_sessions("count(*)"), 0);
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(statements->n_shards, N_SHARDS);
    assert_int_equal(of_prepared_sessions("count(*)"), 1);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT), left);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), 3 * N_SERVICES);
}

static void
a_batch_whose_statements_are_gone_is_stored_by_the_names_of_the_data_tables(void **state)
{
    (void)state;
    int64_t left = hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT);
    push_round(hearth_clock_wall_ns(), 0);
    of_prepared_sessions("count(pg_terminate_backend(pid, 10000))");
    get_statements()->n_connects++; /* as if the next connection had them */
    push_round(hearth_clock_wall_ns(), 0);
    assert_int_equal(get_statements()->n_shards, 0);
    assert_in_range(hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT) - left, 1, N_SERVICES);
    assert_int_equal(count_rows("profile"), N_SERVICES);
    assert_int_equal(count_of_shards(HEARTH_SOURCE_PROFILE), N_SERVICES);
}

static void a_batch_whose_shard_has_moved_is_stored_by_the_names_of_the_data_tables(void **state)
{
    (void)state;
    int64_t left = hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT),
            ts_ns = hearth_clock_wall_ns();
    run("UPDATE pg_dist_placement SET groupid = 8 WHERE shardid = (SELECT max(shardid) FROM"
        " pg_dist_placement)");
    push_round(ts_ns, 0);
    assert_in_range(hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT) - left, 1, N_SERVICES);
    assert_int_equal(count_of_shard(N_SHARDS - 1, HEARTH_SOURCE_PROFILE), 0);

    /* While the map may be wrong, no batch names shards. */
    left = hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT);
    push_round(ts_ns + 1, 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT), left);
    assert_int_equal(count_rows("profile") + count_of_shards(HEARTH_SOURCE_PROFILE),
                     2 * N_SERVICES);
}

static void a_batch_that_is_refused_the_table_of_a_shard_is_stored_by_the_data_tables(void **state)
{
    (void)state;
    char sql[128];
    int64_t left = hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT);
    (void)snprintf(sql, sizeof sql, "DROP TABLE hearth_data.profile_%lld",
                   (long long)id_of(0, HEARTH_SOURCE_PROFILE));
    run(sql);
    push_round(hearth_clock_wall_ns(), 0);
    assert_in_range(hearth_metric_value(HEARTH_M_BATCHES_SHARDS_LEFT) - left, 1, N_SERVICES);
    assert_true(count_rows("profile") > 0);
    assert_int_equal(count_rows("profile") + count_of_shard(1, HEARTH_SOURCE_PROFILE) +
                         count_of_shard(2, HEARTH_SOURCE_PROFILE),
                     N_SERVICES);
}

#define NODE_TEST(name) cmocka_unit_test_setup_teardown(name, open_nodes, close_nodes)
/* With the function of Citus that locks shards. */
#define LOCK_TEST(name) cmocka_unit_test_setup_teardown(name, open_nodes_with_locks, close_nodes)
/* The same without prepared statements, as through a pooler. */
#define TEXT_TEST(name) \
    cmocka_unit_test_setup_teardown(name, open_nodes_without_statements, close_nodes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODE_TEST(a_batch_goes_to_the_tables_of_its_shards_and_locks_each_of_them),
        NODE_TEST(late_and_repeated_profiles_are_found_in_the_tables_of_the_shards),
        NODE_TEST(a_batch_whose_shard_has_moved_is_stored_by_the_names_of_the_data_tables),
        NODE_TEST(a_batch_that_is_refused_the_table_of_a_shard_is_stored_by_the_data_tables),
        NODE_TEST(a_connection_prepares_statements_of_shards_and_a_new_one_does_so_again),
        NODE_TEST(a_prepared_statement_reads_the_table_that_has_the_name_now),
        NODE_TEST(a_session_keeps_statements_of_a_limited_number_of_shards),
        NODE_TEST(statements_whose_names_are_taken_are_prepared_again),
        NODE_TEST(a_batch_whose_statements_are_gone_is_stored_by_the_names_of_the_data_tables),
        LOCK_TEST(a_function_locks_the_shards_where_it_takes_all_locks_of_an_insert),
        LOCK_TEST(late_and_repeated_profiles_are_found_in_the_tables_of_the_shards),
        LOCK_TEST(a_batch_whose_shard_has_moved_is_stored_by_the_names_of_the_data_tables),
        LOCK_TEST(a_batch_that_is_refused_the_table_of_a_shard_is_stored_by_the_data_tables),
        LOCK_TEST(a_row_in_the_table_of_a_shard_that_has_moved_settles_no_attempt),
        cmocka_unit_test_setup_teardown(
            an_insert_locks_the_shards_where_it_takes_more_locks_than_the_function,
            open_nodes_with_more_locks, close_nodes),
        TEXT_TEST(without_prepared_statements_no_session_runs_any),
        TEXT_TEST(late_and_repeated_profiles_are_found_in_the_tables_of_the_shards),
        TEXT_TEST(a_batch_whose_shard_has_moved_is_stored_by_the_names_of_the_data_tables),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
