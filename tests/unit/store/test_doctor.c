/* What the doctor finds in a real PostgreSQL, sound and unsound. */
#include "hearth/store/background.h"

#include "doctor/doctor.h"
#include "pg/store_state.h"
#include "store_fixture.h"

#include <stdlib.h>
#include <time.h>

struct visit {
    struct hearth_arena arena;
    struct hearth_check *checks;
    size_t n;
};

static void examine(struct hearth_store *store, struct visit *visit)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&visit->arena, 0);
    if (hearth_store_doctor(store, &visit->arena, &visit->checks, &visit->n, &err) != HEARTH_OK) {
        fail_msg("doctor: %s", err.msg);
    }
    for (size_t i = 0; i < visit->n; i++) {
        const struct hearth_check *check = &visit->checks[i];
        assert_true(check->name.n > 0 && check->found.n > 0);
        assert_int_equal(check->advice.n > 0, check->verdict != HEARTH_VERDICT_OK);
    }
}

static const struct hearth_check *find(const struct visit *visit, const char *name)
{
    for (size_t i = 0; i < visit->n; i++) {
        if (hearth_str_eq_c(visit->checks[i].name, name)) {
            return &visit->checks[i];
        }
    }
    fail_msg("no check is called \"%s\"", name);
    return NULL;
}

static void expect(const struct visit *visit, const char *name, enum hearth_verdict verdict)
{
    const struct hearth_check *check = find(visit, name);
    if (check->verdict != verdict) {
        fail_msg("%s: verdict %d, not %d; found " HEARTH_STR_FMT, name, (int)check->verdict,
                 (int)verdict, HEARTH_STR_ARG(check->found));
    }
}

/* Three sound nodes, and what the doctor says of them after a change. */
static struct hearth_node nodes_of_layout[3];

static struct hearth_node_layout make_layout(void)
{
    for (size_t i = 0; i < 3; i++) {
        nodes_of_layout[i] = (struct hearth_node){
            .name = hearth_str_c((const char *[]){"db-0:5432", "db-1:5432", "db-2:5432"}[i]),
            .is_coordinator = i == 0,
            .holds_data = i > 0,
            .n_bytes = i > 0 ? 1000LL << 20 : 0,
            .postgres = HEARTH_STR("15.18"),
            .citus = HEARTH_STR("13.2-1"),
            .max_prepared = 200,
            .max_connections = 100,
            .recover_2pc_ms = 1000,
            .cached_connections = 8,
            .modify_mode = HEARTH_STR("sequential"),
            .wal_level = HEARTH_STR("logical"),
        };
    }

    return (struct hearth_node_layout){.citus = HEARTH_STR("13.2-1"),
                                       .nodes = nodes_of_layout,
                                       .n_nodes = 3,
                                       .n_tables = 13,
                                       .n_distributed = 13,
                                       .n_largest_bytes = 100LL << 20,
                                       .largest_node = HEARTH_STR("db-1:5432"),
                                       .largest_services = HEARTH_STR("shop")};
}

/* The only check with a complaint, as "name: verdict: found"; "" if there is none. */
static const char *complaint_with(bool node_connections, const struct hearth_node_layout *layout,
                                  bool expect_whole)
{
    static char text[512];
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_check checks[HEARTH_DOCTOR_MAX_CHECKS];
    struct hearth_store *store = calloc(1, sizeof *store);
    assert_non_null(store);
    store->options.node_connections = node_connections;
    struct hearth_doctor doctor = {.store = store, .arena = &arena, .checks = checks};

    assert_int_equal(hearth_doctor_check_nodes(&doctor, layout), expect_whole);
    text[0] = '\0';
    for (size_t i = 0; i < doctor.n_checks; i++) {
        if (checks[i].verdict != HEARTH_VERDICT_OK) {
            assert_true(text[0] == '\0' && checks[i].advice.n > 0);
            (void)snprintf(text, sizeof text, HEARTH_STR_FMT ": %s: " HEARTH_STR_FMT,
                           HEARTH_STR_ARG(checks[i].name),
                           checks[i].verdict == HEARTH_VERDICT_WRONG ? "wrong" : "advice",
                           HEARTH_STR_ARG(checks[i].found));
        }
    }
    hearth_arena_release(&arena);
    free(store);

    return text;
}

static const char *complaint_of(const struct hearth_node_layout *layout, bool expect_whole)
{
    return complaint_with(true, layout, expect_whole);
}

static void says_which_node_of_a_distributed_database_is_unsound_and_how(void **state)
{
    (void)state;
    struct hearth_node_layout layout = make_layout();
    struct hearth_node *nodes = nodes_of_layout;
    assert_string_equal(complaint_of(&layout, true), "");
    assert_string_equal(
        complaint_with(false, &layout, true),
        "nodes: reached by this hearthd: advice: not tried: node-connections is false");

    nodes[2].failure = HEARTH_STR("refused");
    assert_string_equal(complaint_of(&layout, false),
                        "nodes: wrong: db-2:5432: refused (1 of 3 nodes)");
    layout = make_layout();
    nodes[1].n_prepared = 2;
    nodes[1].oldest_prepared_s = 61;
    assert_string_equal(
        complaint_of(&layout, true),
        "nodes: prepared transactions: wrong: db-1:5432: 2 transactions, the oldest "
        "is 61 s old (1 of 3 nodes)");
    layout = make_layout();
    nodes[2].citus = HEARTH_STR("13.1-1");
    assert_string_equal(complaint_of(&layout, true),
                        "nodes: versions: advice: db-2:5432: PostgreSQL 15.18, Citus 13.1-1 (1 of "
                        "3 nodes)");
    layout = make_layout();
    nodes[0].modify_mode = nodes[1].modify_mode = HEARTH_STR("parallel");
    assert_string_equal(complaint_of(&layout, true),
                        "nodes: citus.multi_shard_modify_mode: advice: db-0:5432: parallel (2 of 3 "
                        "nodes)");
    layout = make_layout();
    nodes[1].max_prepared = 99;
    assert_string_equal(complaint_of(&layout, true),
                        "nodes: max_prepared_transactions: wrong: db-1:5432: 99, with 100 "
                        "connections (1 of 3 nodes)");
    layout = make_layout();
    nodes[1].n_bytes = 4000LL << 20;
    assert_string_equal(complaint_of(&layout, true),
                        "nodes: balance: advice: db-1:5432 holds 4000 MiB, 2500 MiB are the mean");
    layout = make_layout();
    layout.n_largest_bytes = 1001LL << 20;
    assert_string_equal(complaint_of(&layout, true),
                        "nodes: largest group of services: advice: 1001 MiB on db-1:5432, with "
                        "shop");
    layout = make_layout();
    layout.n_unidentified = 3;
    assert_string_equal(complaint_of(&layout, true),
                        "nodes: replica identity: advice: 3 distributed tables lack one");
}

static void
says_of_citus_that_a_distribution_was_interrupted_and_nothing_where_it_is_absent(void **state)
{
    (void)state;
    struct hearth_node_layout layout = make_layout();
    layout.n_distributed = 4;
    assert_string_equal(complaint_of(&layout, true),
                        "citus: wrong: version 13.2-1, 4 of 13 data tables are distributed");
    layout.n_distributed = 0;
    nodes_of_layout[1].modify_mode = HEARTH_STR("parallel"); /* nothing depends on it yet */
    assert_string_equal(complaint_of(&layout, true), "");
    layout.citus = (struct hearth_str){0};
    assert_string_equal(complaint_of(&layout, true), "");
}

static void finds_nothing_wrong_in_a_fresh_database(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct visit visit;
    examine(store, &visit);
    for (size_t i = 0; i < visit.n; i++) {
        if (visit.checks[i].verdict == HEARTH_VERDICT_WRONG) {
            fail_msg(HEARTH_STR_FMT " is wrong: " HEARTH_STR_FMT,
                     HEARTH_STR_ARG(visit.checks[i].name), HEARTH_STR_ARG(visit.checks[i].found));
        }
    }
    static const char *const sound[] = {"version", "encoding", "fsync",  "jit",        "clock",
                                        "pooler",  "role",     "schema", "partitions", "vacuum"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sound); i++) {
        expect(&visit, sound[i], HEARTH_VERDICT_OK);
    }
    expect(&visit, "shared_buffers", HEARTH_VERDICT_ADVICE); /* 64 MB in tests */
    expect(&visit, "builder", HEARTH_VERDICT_ADVICE);        /* this store has none */
    hearth_arena_release(&visit.arena);
    store_close_soon(store);
}

/* A setting of the database that changes one verdict. */
static void finds_settings_that_harm(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        enum hearth_verdict verdict;
    } cases[] = {
        {"jit", "on", HEARTH_VERDICT_ADVICE},
        {"random_page_cost", "4", HEARTH_VERDICT_ADVICE},
        {"effective_io_concurrency", "1", HEARTH_VERDICT_ADVICE},
        {"default_transaction_isolation", "'serializable'", HEARTH_VERDICT_WRONG},
        {"statement_timeout", "'5s'", HEARTH_VERDICT_WRONG},
        {"statement_timeout", "'10min'", HEARTH_VERDICT_OK},
        {"idle_in_transaction_session_timeout", "'1s'", HEARTH_VERDICT_WRONG},
        {"idle_in_transaction_session_timeout", "'5min'", HEARTH_VERDICT_OK},
        {"lock_timeout", "'1s'", HEARTH_VERDICT_ADVICE},
        {"default_toast_compression", "'pglz'", HEARTH_VERDICT_ADVICE},
    };
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    store_close_soon(store);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "ALTER DATABASE test_%d SET %s = %s", g_cluster.n_databases,
                       cases[i].name, cases[i].value);
        pg_cluster_run(url, sql);
        store = open_ready(url, NULL);
        struct visit visit;
        examine(store, &visit);
        expect(&visit, cases[i].name, cases[i].verdict);
        hearth_arena_release(&visit.arena);
        store_close_soon(store);
        (void)snprintf(sql, sizeof sql, "ALTER DATABASE test_%d RESET ALL", g_cluster.n_databases);
        pg_cluster_run(url, sql);
    }
}

static void finds_missing_entries_in_the_tables(void **state)
{
    (void)state;
    char url[256], leaf[64], sql[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct visit visit;

    (void)snprintf(leaf, sizeof leaf, "hearth_data.profile_");
    time_t now = time(NULL);
    struct tm day;
    assert_non_null(gmtime_r(&now, &day));
    (void)strftime(leaf + strlen(leaf), sizeof leaf - strlen(leaf), "%Y%m%d", &day);
    (void)snprintf(sql, sizeof sql, "ALTER TABLE hearth_data.profile DETACH PARTITION %s", leaf);
    pg_cluster_run(url, sql);
    pg_cluster_run(url, "INSERT INTO hearth_data.migration VALUES (9999, '9999_later.sql', '')");
    pg_cluster_run(url, "UPDATE hearth_data.writer SET seen_at = now();"
                        "INSERT INTO hearth_data.writer (host)"
                        " SELECT 'other' FROM generate_series(1, 20)");
    pg_cluster_run(url, "INSERT INTO hearth_data.lease SELECT 'builder', max(writer_id), 1,"
                        " now() + interval '1 hour' FROM hearth_data.writer");
    examine(store, &visit);
    expect(&visit, "partitions", HEARTH_VERDICT_ADVICE);
    assert_non_null(strstr(find(&visit, "partitions")->found.p, leaf));
    expect(&visit, "schema", HEARTH_VERDICT_WRONG);
    expect(&visit, "connections", HEARTH_VERDICT_WRONG); /* 21 servers, 60 connections */
    expect(&visit, "builder", HEARTH_VERDICT_OK);
    assert_non_null(strstr(find(&visit, "builder")->found.p, "other"));
    hearth_arena_release(&visit.arena);
    store_close_soon(store);
}

static void finds_services_that_are_not_rolled_up(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct visit visit;
    static const char add[] = "INSERT INTO hearth_data.series_hour SELECT 7, h, 1, 1, 1 FROM"
                              " (SELECT (extract(epoch FROM now()) / 3600)::int - %d AS h) x"
                              " WHERE EXISTS (SELECT FROM pg_class) ";
    char sql[512];
    for (int hours = 0; hours <= 3; hours += 3) {
        /* Yesterday has no leaf when it is early: then there is nothing to be behind with. */
        (void)snprintf(sql, sizeof sql, add, hours);
        PGconn *conn = pg_cluster_connect(url);
        PGresult *result = PQexec(conn, sql);
        bool inserted = PQresultStatus(result) == PGRES_COMMAND_OK;
        PQclear(result);
        PQfinish(conn);
        examine(store, &visit);
        expect(&visit, "roll-up lag",
               hours == 3 && inserted ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK);
        hearth_arena_release(&visit.arena);
    }
    pg_cluster_run(url, "INSERT INTO hearth_data.roll_state SELECT 7, n, n, 0, 1 FROM"
                        " (SELECT (extract(epoch FROM now()))::int8 * 1000000000 AS n) x");
    examine(store, &visit);
    expect(&visit, "roll-up lag", HEARTH_VERDICT_OK);
    hearth_arena_release(&visit.arena);
    store_close_soon(store);
}

static void finds_missing_rights(void **state)
{
    (void)state;
    char url[256], plain[300];
    struct hearth_store *store = open_fresh(url, NULL);
    store_close_soon(store);
    /* Somebody else's tables: everything can be read and written, nothing can be made. */
    pg_cluster_run(url, "CREATE ROLE plain LOGIN;"
                        "GRANT USAGE ON SCHEMA hearth_data TO plain;"
                        "GRANT ALL ON ALL TABLES IN SCHEMA hearth_data TO plain;"
                        "REVOKE SELECT ON pg_catalog.pg_locks FROM PUBLIC");
    (void)snprintf(plain, sizeof plain, "host=%s dbname=test_%d user=plain", g_cluster.dir,
                   g_cluster.n_databases);
    store = open_ready(plain, NULL);
    struct visit visit;
    examine(store, &visit);
    expect(&visit, "rights: create tables", HEARTH_VERDICT_WRONG);
    expect(&visit, "rights: locks", HEARTH_VERDICT_WRONG);
    expect(&visit, "rights: ownership", HEARTH_VERDICT_WRONG);
    hearth_arena_release(&visit.arena);
    store_close_soon(store);
    pg_cluster_run(url, "GRANT SELECT ON pg_catalog.pg_locks TO PUBLIC");
}

static void says_that_a_given_replica_is_not_a_replica(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.read_url = test_secret(url);
    struct hearth_store *store = open_ready(url, &options);
    struct visit visit;
    examine(store, &visit);
    expect(&visit, "replica", HEARTH_VERDICT_WRONG);
    expect(&visit, "wal_level", HEARTH_VERDICT_OK);
    hearth_arena_release(&visit.arena);
    store_close_soon(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_which_node_of_a_distributed_database_is_unsound_and_how),
        cmocka_unit_test(
            says_of_citus_that_a_distribution_was_interrupted_and_nothing_where_it_is_absent),
        cmocka_unit_test(finds_nothing_wrong_in_a_fresh_database),
        cmocka_unit_test(finds_settings_that_harm),
        cmocka_unit_test(finds_missing_entries_in_the_tables),
        cmocka_unit_test(finds_services_that_are_not_rolled_up),
        cmocka_unit_test(finds_missing_rights),
        cmocka_unit_test(says_that_a_given_replica_is_not_a_replica),
    };
    return cmocka_run_group_tests(tests, start_durable_cluster, stop_cluster);
}
