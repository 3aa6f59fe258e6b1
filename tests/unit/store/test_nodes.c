/* test_nodes.c -- which node owns a service. Reading the map needs Citus: tests/integration/test_citus.py. */
#include "hearth/base/mem.h"

#include "nodes/nodes.h"
#include "pg/pool.h"
#include "step_fixture.h"

#define N_RANGES   8
#define N_SERVICES 5000

static void a_service_is_placed_by_the_hash_that_postgresql_computes(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);

    /* Equal ranges of hashes, as Citus makes them. */
    struct hearth_node_range ranges[N_RANGES];
    for (unsigned i = 0; i < N_RANGES; i++) {
        ranges[i] =
            (struct hearth_node_range){(int32_t)(INT32_MIN + (int64_t)i * (1 << 29)), i + 1};
    }

    struct hearth_pg pg = {.url = fix.store->url};
    PGresult *result = NULL;
    assert_ok(hearth_pg_connect(&pg, 5000, &err));
    assert_ok(hearth_pg_exec(&pg,
                             "SELECT g::int4, ((hashint4(g)::int8 + 2147483648) >> 29)::int4 FROM"
                             " (SELECT generate_series(1, 4990) UNION ALL VALUES (-1), (0),"
                             " (2147483647), (-2147483648), (65536), (1000000), (123456789), (-7),"
                             " (99999), (-99999)) s (g)",
                             NULL, NULL, &result, NULL, &err));
    assert_int_equal(PQntuples(result), N_SERVICES);
    for (int row = 0; row < N_SERVICES; row++) {
        assert_int_equal(hearth_node_in_ranges(ranges, N_RANGES, hearth_pg_i32(result, row, 0)),
                         hearth_pg_i32(result, row, 1) + 1);
    }

    PQclear(result);
    hearth_pg_close(&pg);
    close_fixture(&fix);
}

static void without_a_map_the_database_of_the_url_owns_all_services(void **state)
{
    (void)state;
    struct hearth_store_options options;
    struct hearth_nodes *nodes = NULL;
    hearth_store_options_init(&options);
    assert_ok(hearth_nodes_new(&options, &nodes, &err));
    assert_int_equal(hearth_node_of(nodes, 1), 0);
    assert_true(hearth_nodes_are_due(nodes));
    hearth_nodes_free(nodes);
}

static void a_database_without_citus_has_no_map_and_the_error_says_why(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_nodes *nodes = NULL;
    struct hearth_pg pg = {.url = fix.store->url};
    struct hearth_err why = HEARTH_ERR_INIT;
    assert_ok(hearth_nodes_new(&fix.store->options, &nodes, &err));
    assert_ok(hearth_pg_connect(&pg, 5000, &err));
    assert_int_not_equal(hearth_nodes_refresh(nodes, &pg, &why), HEARTH_OK);
    assert_non_null(strstr(why.msg, "pg_dist_shard"));
    assert_int_equal(hearth_node_of(nodes, 1), 0);
    assert_false(hearth_nodes_are_due(nodes)); /* not before a second has passed */

    hearth_nodes_free(nodes);
    hearth_pg_close(&pg);
    close_fixture(&fix);
}

static void addresses_are_pairs_of_host_and_port(void **state)
{
    (void)state;
    static const char *const good[] = {"", "db-1:5432=10.0.0.7:6432", "a:1=b:2,[::1]:3=c:65535"};
    static const char *const bad[] = {"db-1",   "db-1:5432", "db-1:5432=",  "=b:1",
                                      ":1=b:2", "a:0=b:1",   "a:1=b:65536", "a:1=b:2,,c:3=d:4"};
    struct hearth_store_options options;
    struct hearth_nodes *nodes = NULL;
    hearth_store_options_init(&options);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(good); i++) {
        options.node_addresses = good[i];
        assert_ok(hearth_nodes_new(&options, &nodes, &err));
        hearth_nodes_free(nodes);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct hearth_err why = HEARTH_ERR_INIT;
        options.node_addresses = bad[i];
        assert_int_equal(hearth_nodes_new(&options, &nodes, &why), HEARTH_INVALID_ARGUMENT);
        assert_non_null(strstr(why.msg, "NAME:PORT=HOST:PORT"));
    }
}

static void an_address_of_a_node_that_the_map_does_not_have_is_named(void **state)
{
    (void)state;
    struct hearth_store_options options;
    struct hearth_nodes *nodes = NULL;
    char name[264];
    hearth_store_options_init(&options);
    options.url = test_secret("host=db");
    options.node_addresses = "db-1:5432=10.0.0.1:1,db-2:5432=10.0.0.2:1,db-3:5432=10.0.0.3:1";
    assert_ok(hearth_nodes_new(&options, &nodes, &err));
    assert_int_equal(hearth_nodes_unknown_addresses(nodes, name), 0); /* no map was read */

    struct hearth_node_shard shards[] = {
        {.first_hash = INT32_MIN,
         .group = 1,
         .host = HEARTH_STR("db-1"),
         .port = 5432,
         .is_usable = true,
         .n_copies = 1},
        {.first_hash = 0,
         .group = 2,
         .host = HEARTH_STR("db-3"),
         .port = 5433,
         .is_usable = true,
         .n_copies = 1},
    };
    assert_ok(hearth_nodes_take(nodes, shards, 2, &err));
    assert_int_equal(hearth_nodes_unknown_addresses(nodes, name), 2);
    assert_string_equal(name, "db-2:5432");

    /* The node of db-1 loses its shards. */
    shards[0].group = 2;
    shards[0].host = shards[1].host = HEARTH_STR("db-2");
    shards[0].port = shards[1].port = 5432;
    assert_ok(hearth_nodes_take(nodes, shards, 2, &err));
    assert_int_equal(hearth_nodes_unknown_addresses(nodes, name), 2);
    assert_string_equal(name, "db-1:5432");
    hearth_nodes_free(nodes);
}

static void a_url_with_hostaddr_is_refused(void **state)
{
    (void)state;
    struct hearth_store_options options;
    struct hearth_nodes *nodes = NULL;
    struct hearth_err why = HEARTH_ERR_INIT;
    hearth_store_options_init(&options);
    options.url = test_secret("host=db hostaddr=127.0.0.1");
    assert_int_equal(hearth_nodes_new(&options, &nodes, &why), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(why.msg, "hostaddr"));
}

static void a_connection_moves_to_another_address_with_the_rest_of_the_url(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    static const struct hearth_pg_address nowhere = {"127.0.0.1", "1"};
    struct hearth_pool *pool = NULL;
    struct hearth_pg *pg = NULL;
    struct hearth_err why = HEARTH_ERR_INIT;
    assert_ok(hearth_pool_new(fix.store->url, 1, &pool, &err));
    assert_ok(hearth_pool_take(pool, NULL, &pg, &err));
    hearth_pool_give(pool, pg);

    hearth_pool_set_address(pool, &nowhere);
    assert_int_equal(hearth_pool_take(pool, NULL, &pg, &why), HEARTH_UNAVAILABLE);
    assert_non_null(strstr(why.msg, "port 1 failed"));
    hearth_pool_set_address(pool, NULL);
    assert_ok(hearth_pool_take(pool, NULL, &pg, &err));
    hearth_pool_give(pool, pg);

    hearth_pool_free(pool);
    close_fixture(&fix);
}

static void one_thread_at_a_time_checks_the_nodes(void **state)
{
    (void)state;
    struct hearth_store_options options;
    struct hearth_nodes *nodes = NULL;
    struct hearth_cancel over;
    hearth_store_options_init(&options);
    hearth_cancel_init(&over, hearth_clock_mono_ns());
    assert_ok(hearth_nodes_new(&options, &nodes, &err));

    assert_true(hearth_nodes_begin_look(nodes, NULL));
    assert_false(hearth_nodes_begin_look(nodes, &over)); /* does not wait any longer */
    hearth_nodes_end_look(nodes);
    assert_true(hearth_nodes_begin_look(nodes, NULL));
    hearth_nodes_end_look(nodes);
    assert_false(hearth_nodes_have_lost(nodes));
    hearth_nodes_free(nodes);
}

static void a_database_without_nodes_has_no_lost_node(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_node_set set = {.has = {[1] = true, [HEARTH_MAX_NODES] = true}};
    char name[HEARTH_NODE_NAME_BYTES];

    assert_false(hearth_store_has_lost_nodes(fix.store));
    assert_int_equal(hearth_store_node_of(fix.store, 1), 0);
    hearth_store_node_name(fix.store, 1, name);
    assert_string_equal(name, "");
    hearth_store_find_lost(fix.store, NULL, &set);
    assert_false(set.has[1] || set.has[HEARTH_MAX_NODES]);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_is_placed_by_the_hash_that_postgresql_computes),
        cmocka_unit_test(without_a_map_the_database_of_the_url_owns_all_services),
        cmocka_unit_test(a_database_without_citus_has_no_map_and_the_error_says_why),
        cmocka_unit_test(addresses_are_pairs_of_host_and_port),
        cmocka_unit_test(an_address_of_a_node_that_the_map_does_not_have_is_named),
        cmocka_unit_test(a_url_with_hostaddr_is_refused),
        cmocka_unit_test(a_connection_moves_to_another_address_with_the_rest_of_the_url),
        cmocka_unit_test(one_thread_at_a_time_checks_the_nodes),
        cmocka_unit_test(a_database_without_nodes_has_no_lost_node),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
