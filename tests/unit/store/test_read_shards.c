/*
 * test_read_shards.c -- reads of services on several nodes, which name the tables of shards. Views
 * stand for these tables, and a table for Citus' catalogue; Citus itself: test_citus.py.
 */
#include "nodes/nodes.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "read/stored_rows.h"
#include "read_plans.h"

#define N_SERVICES 6
#define N_SHARDS   4
#define N_GROUPS   2
#define MISSED     3 /* the tables of its shard miss the profile of this service */

static struct fixture {
    char url[256];
    struct hearth_store *store;
    struct hearth_series_hit hits[N_SERVICES];
    struct hearth_nodes *nodes; /* the store's */
} g_fix;

static void run(const char *sql)
{
    struct hearth_pg pg = {.url = test_secret(g_fix.url)};
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    assert_ok(hearth_pg_script(&pg, sql, NULL, &err));
    hearth_pg_close(&pg);
}

/* The number of a table of a shard; no two are the same. */
static int64_t id_of(int shard, unsigned table)
{
    return 100 * (shard + 1) + table;
}

/*
 * Make the views that stand for the tables of shards. calls: a function of node and kind (0: states
 * and tombstones, 1: the rest) that each of them calls once; NULL: none.
 */
static void make_views(const char *calls)
{
    struct hearth_buf sql;
    hearth_buf_init(&sql, 0);
    for (int s = 0; s < N_SHARDS; s++) {
        for (unsigned t = 0; t < HEARTH_N_SHARD_TABLES; t++) {
            const char *name = hearth_shard_table(t);
            hearth_buf_printf(&sql, "CREATE OR REPLACE VIEW hearth_data.%s_%lld AS SELECT r.* FROM",
                              name, (long long)id_of(s, t));
            if (calls != NULL) {
                hearth_buf_printf(&sql, " (SELECT hearth_data.%s(%d, %d) OFFSET 0) c CROSS JOIN",
                                  calls, s % N_GROUPS, t < HEARTH_N_SOURCES);
            }
            hearth_buf_printf(
                &sql, " LATERAL (SELECT * FROM hearth_data.%s WHERE service_id <> %d%s) r;", name,
                (int)g_fix.hits[MISSED].service_id, calls == NULL ? "" : " OFFSET 0");
        }
    }
    hearth_buf_byte(&sql, '\0');
    run(sql.p);
    hearth_buf_release(&sql);
}

static void make_shards(void)
{
    struct hearth_buf sql;
    hearth_buf_init(&sql, 0);
    hearth_buf_cstr(&sql,
                    "SET allow_system_table_mods = on;"
                    "CREATE TABLE pg_catalog.pg_dist_placement (shardid int8, groupid int4);");
    for (int s = 0; s < N_SHARDS; s++) {
        hearth_buf_printf(&sql, "INSERT INTO pg_dist_placement VALUES (%lld, %d);",
                          (long long)id_of(s, HEARTH_SHARD_ROLL_STATE), s % N_GROUPS + 1);
    }
    hearth_buf_byte(&sql, '\0');
    run(sql.p);
    hearth_buf_release(&sql);
    make_views(NULL);
}

/* Make a map, which is not suspected. */
static void map_services(size_t n_ids)
{
    struct hearth_node_shard shards[N_SHARDS];
    static int64_t ids[N_SHARDS][HEARTH_N_SHARD_TABLES];
    for (int s = 0; s < N_SHARDS; s++) {
        for (unsigned t = 0; t < HEARTH_N_SHARD_TABLES; t++) {
            ids[s][t] = id_of(s, t);
        }
        shards[s] = (struct hearth_node_shard){
            .first_hash = (int32_t)(INT32_MIN + ((int64_t)s << 32) / N_SHARDS),
            .group = s % N_GROUPS + 1,
            .host = hearth_str_c(g_cluster.dir),
            .port = 5432,
            .is_usable = true,
            .n_copies = 1,
            .ids = ids[s],
            .n_ids = n_ids,
        };
    }
    if (g_fix.nodes == NULL) {
        assert_ok(hearth_nodes_new(&g_fix.store->options, &g_fix.nodes, &err));
    }
    assert_ok(hearth_nodes_take(g_fix.nodes, shards, N_SHARDS, &err));
    g_fix.store->nodes = g_fix.nodes;
}

static int make_fixture(void **state)
{
    (void)start_cluster(state);
    pg_cluster_database(&g_cluster, g_fix.url);
    g_fix.store = open_store(g_fix.url);
    ensure_days(g_fix.store, g_fix.url, T0, T0 + DAY);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (int i = 0; i < N_SERVICES; i++) {
        struct hearth_series_ref ref = resolve_one(g_fix.store, TENANT, i + 1, 0, T0);
        int64_t total = i + 1;
        struct hearth_str val = hearth_str_n("\0\1", 2);
        const struct hearth_stored_row row = {.series_id = ref.series_id,
                                              .writer_id = 3,
                                              .ts_ns = T0 + i,
                                              .n_samples = 1,
                                              .n_types = 1,
                                              .totals = &total,
                                              .ids = hearth_str_n("\1", 1),
                                              .vals = &val};
        g_fix.hits[i] =
            (struct hearth_series_hit){.series_id = ref.series_id, .service_id = ref.service_id};
        hearth_copy_stored_row(&out, ref.service_id, &row);
    }
    struct hearth_pg pg = {.url = test_secret(g_fix.url)};
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    assert_ok(hearth_pg_copy(
        &pg, "COPY hearth_data.profile (" HEARTH_PROFILE_COLUMNS ") FROM STDIN (FORMAT binary)",
        hearth_buf_view(&out), NULL, &err));
    hearth_pg_close(&pg);
    hearth_buf_release(&out);
    return 0;
}

static int drop_fixture(void **state)
{
    close_store(g_fix.store);
    return stop_cluster(state);
}

static enum hearth_status sum_total(void *context, const struct hearth_read_total *total,
                                    struct hearth_err *err)
{
    (void)err;
    *(int64_t *)context += total->total;
    return HEARTH_OK;
}

/* Read the state, and plan to read all profiles. */
static void make_plan(struct hand_plan *hand)
{
    hand->legs[0] =
        (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0, T0 + HOUR, g_fix.hits, N_SERVICES};
    hand->legs[1] =
        (struct hearth_read_leg){HEARTH_SOURCE_LATE, T0, T0 + HOUR, g_fix.hits, N_SERVICES};
    (void)finish_plan(g_fix.store, hand, 2);
}

/* The sum of all profiles: 1 + 2 + .. `between` runs after the state was read. */
static int64_t sum_with(const char *between)
{
    struct hand_plan hand;
    int64_t n = 0;
    make_plan(&hand);
    if (between != NULL) {
        run(between);
    }
    assert_ok(hearth_store_read_totals(STORE_SCOPE(g_fix.store, TENANT, NULL), &hand.plan,
                                       sum_total, &n, &err));
    struct hearth_leg_cost costs[2];
    assert_ok(
        hearth_store_read_cost(STORE_SCOPE(g_fix.store, TENANT, NULL), &hand.plan, costs, &err));
    assert_true(costs[0].n_rows == N_SERVICES || costs[0].n_rows == N_SERVICES - 1);
    assert_int_equal(costs[1].n_rows, 0);
    hearth_arena_release(&hand.arena);
    return n;
}

static int64_t sum(void)
{
    return sum_with(NULL);
}

#define ALL (N_SERVICES * (N_SERVICES + 1) / 2)

static void without_tables_of_shards_the_data_tables_are_read(void **state)
{
    (void)state;
    assert_int_equal(sum(), ALL);
    map_services(0);
    assert_int_equal(sum(), ALL);
}

static void services_of_several_nodes_are_read_from_the_tables_of_their_shards(void **state)
{
    (void)state;
    make_shards();
    map_services(HEARTH_N_SHARD_TABLES);
    assert_int_equal(sum(), ALL - (MISSED + 1));
}

static void the_old_tables_of_a_shard_that_has_moved_are_not_read(void **state)
{
    (void)state;
    run("UPDATE pg_dist_placement SET groupid = 7");
    map_services(HEARTH_N_SHARD_TABLES);
    assert_int_equal(sum(), ALL);
}

/* Again and again: then the nodes have prepared the statements. */
static void a_shard_that_moves_between_state_and_rows_is_noticed(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        run("UPDATE pg_dist_placement SET groupid = (shardid / 100 - 1) % 2 + 1");
        map_services(HEARTH_N_SHARD_TABLES);
        assert_int_equal(sum(), ALL - (MISSED + 1));
        assert_int_equal(sum_with("UPDATE pg_dist_placement SET groupid = 7"), ALL);
    }
}

static void a_generation_that_changes_between_state_and_rows_is_noticed(void **state)
{
    (void)state;
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.roll_state (service_id, watermark, built_to,"
                   " compacted_to, generation) VALUES (%d, 0, 0, 0, 1)",
                   (int)g_fix.hits[0].service_id);
    run("UPDATE pg_dist_placement SET groupid = (shardid / 100 - 1) % 2 + 1");
    run(sql);
    for (int i = 0; i < 4; i++) {
        struct hand_plan hand;
        struct hearth_err err = HEARTH_ERR_INIT;
        int64_t n = 0;
        map_services(HEARTH_N_SHARD_TABLES);
        make_plan(&hand);
        hearth_arena_release(&hand.arena);
        hand.legs[0].n_hits = hand.legs[1].n_hits = 1; /* other shards show the same row */
        (void)finish_plan(g_fix.store, &hand, 2);
        assert_ok(hearth_store_read_totals(STORE_SCOPE(g_fix.store, TENANT, NULL), &hand.plan,
                                           sum_total, &n, &err));
        assert_int_equal(n, 1);
        run("UPDATE hearth_data.roll_state SET generation = generation + 1");
        assert_int_equal(hearth_store_read_totals(STORE_SCOPE(g_fix.store, TENANT, NULL),
                                                  &hand.plan, sum_total, &n, &err),
                         HEARTH_ABORTED);
        hearth_arena_release(&hand.arena);
    }
    run("DELETE FROM hearth_data.roll_state");
}

static void rows_of_dropped_tables_are_read_from_the_data_tables(void **state)
{
    (void)state;
    run("UPDATE pg_dist_placement SET groupid = (shardid / 100 - 1) % 2 + 1");
    map_services(HEARTH_N_SHARD_TABLES);
    assert_int_equal(sum_with("DROP VIEW hearth_data.profile_100, hearth_data.profile_200,"
                              " hearth_data.profile_300, hearth_data.profile_400"),
                     ALL);
}

/* Let tables of shards call a function, which `sql` makes. */
static void call_function(const char *sql, const char *name)
{
    run("UPDATE pg_dist_placement SET groupid = (shardid / 100 - 1) % 2 + 1");
    run(sql);
    make_views(name);
}

/*
 * Read all totals from the tables of shards, until a deadline. The store's own thread, which finds
 * no Citus, may suspect the map: then the data tables are read, and it is tried again.
 */
static enum hearth_status read_all(int64_t timeout_ns, int64_t *ret_sum, struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;

    *ret_sum = ALL;
    for (int i = 0; i < 10 && status == HEARTH_OK && *ret_sum == ALL; i++) {
        struct hand_plan hand;
        struct hearth_cancel cancel;
        struct hearth_scope scope = *STORE_SCOPE(g_fix.store, TENANT, NULL);

        map_services(HEARTH_N_SHARD_TABLES);
        make_plan(&hand);
        hearth_cancel_init(&cancel, hearth_clock_mono_ns() + timeout_ns);
        scope.cancel = &cancel;
        *ret_sum = 0;
        status = hearth_store_read_totals(&scope, &hand.plan, sum_total, ret_sum, err);
        hearth_arena_release(&hand.arena);
    }

    return status;
}

static void await_end_of_statements(void)
{
    run("DO $$ BEGIN FOR i IN 1 .. 1000 LOOP PERFORM pg_stat_clear_snapshot();"
        "IF NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid <>"
        " pg_backend_pid()) THEN RETURN; END IF;"
        "PERFORM pg_sleep(0.01); END LOOP; RAISE EXCEPTION 'a statement runs on'; END $$");
}

static void nodes_run_their_statements_at_the_same_time(void **state)
{
    (void)state;

    /* Each of two nodes waits for the other one, in the statements of states and of rows. */
    call_function(
        "CREATE FUNCTION hearth_data.meet(node int, kind int) RETURNS bool LANGUAGE plpgsql AS $$"
        "BEGIN PERFORM pg_advisory_lock_shared(kind, node);"
        "FOR i IN 1 .. 1000 LOOP"
        " IF EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = kind::oid AND"
        " objid = (1 - node)::oid AND objsubid = 2) THEN RETURN true; END IF;"
        " PERFORM pg_sleep(0.01);"
        "END LOOP; RAISE EXCEPTION 'node % was alone', node; END $$",
        "meet");
    int64_t sum_of_all;
    assert_ok(read_all(60 * HEARTH_NS_PER_SEC, &sum_of_all, &err));
    assert_int_equal(sum_of_all, ALL - (MISSED + 1));
}

static void a_read_that_fails_on_one_node_ends_on_the_others(void **state)
{
    (void)state;
    call_function(
        "CREATE FUNCTION hearth_data.fail(node int, kind int) RETURNS bool LANGUAGE plpgsql AS $$"
        "BEGIN IF kind = 1 AND node = 0 THEN PERFORM pg_sleep(0.3); RAISE EXCEPTION 'damaged';"
        " ELSIF kind = 1 THEN PERFORM pg_sleep(600); END IF; RETURN true; END $$",
        "fail");
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t sum_of_all, began_ns = hearth_clock_mono_ns();
    assert_int_equal(read_all(300 * HEARTH_NS_PER_SEC, &sum_of_all, &err), HEARTH_INTERNAL);
    assert_non_null(strstr(err.msg, "damaged"));
    assert_true(hearth_clock_mono_ns() - began_ns < 60 * HEARTH_NS_PER_SEC);
    await_end_of_statements();
}

static void a_deadline_ends_the_statements_of_all_nodes(void **state)
{
    (void)state;
    call_function(
        "CREATE FUNCTION hearth_data.wait(node int, kind int) RETURNS bool LANGUAGE plpgsql AS $$"
        "BEGIN IF kind = 1 THEN PERFORM pg_sleep(600); END IF; RETURN true; END $$",
        "wait");
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t sum_of_all;
    assert_int_equal(read_all(2 * HEARTH_NS_PER_SEC, &sum_of_all, &err), HEARTH_DEADLINE_EXCEEDED);
    await_end_of_statements();
    make_views(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_tables_of_shards_the_data_tables_are_read),
        cmocka_unit_test(services_of_several_nodes_are_read_from_the_tables_of_their_shards),
        cmocka_unit_test(the_old_tables_of_a_shard_that_has_moved_are_not_read),
        cmocka_unit_test(a_shard_that_moves_between_state_and_rows_is_noticed),
        cmocka_unit_test(a_generation_that_changes_between_state_and_rows_is_noticed),
        cmocka_unit_test(nodes_run_their_statements_at_the_same_time),
        cmocka_unit_test(a_read_that_fails_on_one_node_ends_on_the_others),
        cmocka_unit_test(a_deadline_ends_the_statements_of_all_nodes),
        cmocka_unit_test(rows_of_dropped_tables_are_read_from_the_data_tables),
    };
    return cmocka_run_group_tests(tests, make_fixture, drop_fixture);
}
