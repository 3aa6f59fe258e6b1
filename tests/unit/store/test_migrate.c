/* Migrations and readiness, on a real PostgreSQL. */
#include "hearth/base/embedded.h"

#include "store_fixture.h"

/* The store stays not ready and its reason becomes one that has `part` in it. */
static void expect_reason(struct hearth_store *store, const char *part)
{
    char reason[256] = "";
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    while (hearth_clock_mono_ns() < until_ns) {
        assert_false(hearth_store_ready(store, reason));
        if (strstr(reason, part) != NULL) {
            return;
        }
        (void)usleep(5000);
    }
    fail_msg("reason is \"%s\", not about \"%s\"", reason, part);
}

static int n_migrations(void)
{
    int n = 0;
    while (hearth_embedded_migrations[n].name != NULL) {
        n++;
    }
    return n;
}

static void makes_the_schema_in_an_empty_database(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.migration"),
                     n_migrations());
    assert_int_equal(
        pg_cluster_int(url, "SELECT length(checksum) FROM hearth_data.migration WHERE number = 1"),
        32);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.writer"), 1);
    /* Leaves for today and tomorrow, of every table that has leaves; they may share a month. */
    assert_int_equal(pg_cluster_int(url,
                                    "SELECT count(*) FROM pg_class p WHERE p.relkind = 'p' AND"
                                    " p.relnamespace = 'hearth_data'::regnamespace AND (SELECT"
                                    " count(*) FROM pg_inherits WHERE inhparent = p.oid) NOT IN"
                                    " (2, CASE WHEN p.relname = 'audit' THEN 1 ELSE 2 END)"),
                     0);
    store_close_soon(store);
}

static void servers_that_start_together_migrate_once(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_empty_database(&g_cluster, url);
    struct hearth_store *stores[6];
    for (int i = 0; i < 6; i++) {
        stores[i] = store_open_url(url, NULL);
    }
    for (int i = 0; i < 6; i++) {
        assert_true(store_wait_ready(stores[i]));
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.migration"),
                     n_migrations());
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(DISTINCT writer_id) FROM hearth_data.writer"), 6);
    for (int i = 0; i < 6; i++) {
        store_close_soon(stores[i]);
    }
}

static void refuses_an_altered_history_until_it_is_repaired(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    store_close_soon(store);
    pg_cluster_run(url, "UPDATE hearth_data.migration SET checksum = 'x' || checksum");
    store = store_open_url(url, NULL);
    expect_reason(store, "another text of \"0001_init.sql\"");
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_ingest_dict *dict = NULL;
    assert_int_equal(hearth_store_dict_acquire(store, 1, 0, &dict, &err), HEARTH_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "another text"));
    pg_cluster_run(url, "UPDATE hearth_data.migration SET checksum = substr(checksum, 2)");
    assert_true(store_wait_ready(store)); /* without a restart */
    store_close_soon(store);
}

static void reads_a_newer_history_and_writes_nothing(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    store_close_soon(store);
    pg_cluster_run(url, "INSERT INTO hearth_data.migration VALUES (9999, '9999_future.sql', 'c')");
    store = store_open_url(url, NULL);
    char reason[256];
    assert_true(store_wait_ready(store));
    assert_true(hearth_store_ready(store, reason));
    assert_non_null(strstr(reason, "9999_future.sql"));
    store_close_soon(store);
    /* It has not even registered itself as a writer. */
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.writer"), 1);
}

static void uses_schemas_that_another_role_created(void **state)
{
    (void)state;
    char url[256], role_url[300];
    pg_cluster_empty_database(&g_cluster, url);
    char db[64];
    pg_cluster_text(url, "SELECT current_database()", db, sizeof db);
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "CREATE ROLE plain LOGIN; REVOKE CREATE ON DATABASE %s FROM PUBLIC;"
                   " CREATE SCHEMA hearth_data AUTHORIZATION plain",
                   db);
    pg_cluster_run(url, sql);
    (void)snprintf(role_url, sizeof role_url, "host=%s dbname=%s user=plain", g_cluster.dir, db);
    struct hearth_store *store = store_open_url(role_url, NULL);
    expect_reason(store, "CREATE SCHEMA hearth AUTHORIZATION plain");
    pg_cluster_run(url, "CREATE SCHEMA hearth AUTHORIZATION plain");
    assert_true(store_wait_ready(store));
    store_close_soon(store);
}

static void refuses_a_database_whose_commits_are_not_durable(void **state)
{
    (void)state;
    char url[256], db[64], sql[128];
    pg_cluster_empty_database(&g_cluster, url);
    pg_cluster_text(url, "SELECT current_database()", db, sizeof db);
    (void)snprintf(sql, sizeof sql, "ALTER DATABASE %s SET synchronous_commit = off", db);
    pg_cluster_run(url, sql);
    struct hearth_store *store = store_open_url(url, NULL);
    expect_reason(store, "synchronous_commit is off");
    store_close_soon(store);
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'hearth_data'"), 0);
}

static void waits_for_a_database_that_is_not_there_yet(void **state)
{
    (void)state;
    char url[256], reason[256];
    pg_cluster_empty_database(&g_cluster, url);
    pg_cluster_halt(&g_cluster, SIGINT);
    struct hearth_store *store = store_open_url(url, NULL);
    expect_reason(store, "waiting for the database: ");
    assert_false(hearth_store_ready(store, reason));
    pg_cluster_resume(&g_cluster);
    assert_true(store_wait_ready(store));
    store_close_soon(store);
}

static void reports_that_a_ready_store_has_lost_its_database(void **state)
{
    (void)state;
    char url[256], reason[256] = "";
    struct hearth_store *store = open_fresh(url, NULL);
    pg_cluster_halt(&g_cluster, SIGINT);
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    while (hearth_store_ready(store, reason) && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(5000);
    }
    assert_non_null(strstr(reason, "waiting for the database"));
    pg_cluster_resume(&g_cluster);
    assert_true(store_wait_ready(store));
    store_close_soon(store);
}

static void refuses_urls_without_quoting_them(void **state)
{
    (void)state;
    static const char *const bad[] = {"postgresql://u:se%zzcret@h/db",
                                      "host=h password secret",
                                      "secret",
                                      "postgresql://u:se/cret@h/db",
                                      "postgresql://u:se@cret@h/db",
                                      "postgres://u:se?cret@h/db?sslmode=require",
                                      "postgresql://u:se#cret@h"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct hearth_store_options options;
        hearth_store_options_init(&options);
        options.url = test_secret(bad[i]);
        struct hearth_store *store = NULL;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_store_open(&options, &store, &err), HEARTH_INVALID_ARGUMENT);
        assert_null(strstr(err.msg, "cret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_the_schema_in_an_empty_database),
        cmocka_unit_test(servers_that_start_together_migrate_once),
        cmocka_unit_test(refuses_an_altered_history_until_it_is_repaired),
        cmocka_unit_test(reads_a_newer_history_and_writes_nothing),
        cmocka_unit_test(uses_schemas_that_another_role_created),
        cmocka_unit_test(refuses_a_database_whose_commits_are_not_durable),
        cmocka_unit_test(waits_for_a_database_that_is_not_there_yet),
        cmocka_unit_test(reports_that_a_ready_store_has_lost_its_database),
        cmocka_unit_test(refuses_urls_without_quoting_them),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
