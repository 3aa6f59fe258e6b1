/*
 * Committers of nodes: each stores the services of its node, waits alone for it, and hands them over
 * when they move. The nodes are one PostgreSQL here, known by several names.
 */
#include "node_map.h"
#include "whole_dictionaries.h"

enum {
    N_SERVICES = 10
};

/* One push of each of ten services, of which both nodes own some. */
struct round {
    struct store_push *pushes[N_SERVICES];
};

static struct round submit_round(struct hearth_store *store, int64_t ts_ns)
{
    struct round round;
    for (int i = 0; i < N_SERVICES; i++) {
        char service[16];
        (void)snprintf(service, sizeof service, "svc-%d", i);
        round.pushes[i] = make_push(store, service, ts_ns, 40, 0);
    }
    for (int i = 0; i < N_SERVICES; i++) {
        store_push_submit(round.pushes[i]);
    }
    return round;
}

static unsigned node_of_push(struct hearth_nodes *nodes, const struct store_push *push)
{
    return hearth_node_of(nodes, push->item.service_id);
}

/* End the pushes of a node, or those of all others; returns their number. */
static int end_pushes(struct round *round, struct hearth_nodes *nodes, unsigned node, bool others)
{
    int n = 0;
    for (int i = 0; i < N_SERVICES; i++) {
        struct store_push *push = round->pushes[i];
        if (push != NULL && (node_of_push(nodes, push) == node) != others) {
            end_push(push);
            round->pushes[i] = NULL;
            n++;
        }
    }
    return n;
}

static void expect_each_stored_once(const char *url, long long n)
{
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), n);
    assert_int_equal(
        pg_cluster_int(url,
                       "SELECT count(DISTINCT (writer_id, profile_no)) FROM hearth_data.profile"),
        n);
    expect_whole_dictionaries(url);
}

static void profiles_of_a_node_that_is_down_wait_and_those_of_others_are_stored(void **state)
{
    (void)state;
    char url[256], why[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_nodes *nodes = make_nodes(store);
    int64_t ts_ns = hearth_clock_wall_ns();
    struct test_node two[] = {{7, NOWHERE}, {9, g_cluster.dir}};
    divide(store, nodes, two, 2);

    struct round first = submit_round(store, ts_ns), second = submit_round(store, ts_ns + 1);
    int n_up = end_pushes(&first, nodes, 1, true);
    assert_int_equal(end_pushes(&second, nodes, 1, true), n_up);
    assert_in_range(n_up, 1, N_SERVICES - 1);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 2 * n_up);
    do {
        (void)usleep(2000);
        hearth_nodes_explain(nodes, why);
    } while (why[0] == '\0');
    assert_non_null(strstr(why, "profiles of services on node /nowhere:5432 wait"));
    assert_false(hearth_store_is_away(store));

    /* It is back, at another address. */
    two[0].host = g_cluster.dir;
    divide(store, nodes, two, 2);
    assert_int_equal(end_pushes(&first, nodes, 1, false), N_SERVICES - n_up);
    assert_int_equal(end_pushes(&second, nodes, 1, false), N_SERVICES - n_up);
    expect_each_stored_once(url, 2 * N_SERVICES);
    hearth_nodes_explain(nodes, why);
    assert_string_equal(why, "");
    close_store(store);
    hearth_nodes_free(nodes);
}

static void waiting_profiles_follow_their_services_to_another_node(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_nodes *nodes = make_nodes(store);
    int64_t ts_ns = hearth_clock_wall_ns();
    const struct test_node lost[] = {{7, NOWHERE}, {9, g_cluster.dir}},
                           other[] = {{9, g_cluster.dir}};
    divide(store, nodes, lost, 2);
    struct round first = submit_round(store, ts_ns);
    int n_up = end_pushes(&first, nodes, 1, true);
    struct round second = submit_round(store, ts_ns + 1); /* the committer holds the first */
    assert_int_equal(end_pushes(&second, nodes, 1, true), n_up);

    /* Node 1's committer sends its batch through the coordinator; queued items move to node 2. */
    divide(store, nodes, other, 1);
    assert_int_equal(end_pushes(&first, nodes, 2, false), N_SERVICES - n_up);
    assert_int_equal(end_pushes(&second, nodes, 2, false), N_SERVICES - n_up);
    expect_each_stored_once(url, 2 * N_SERVICES);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_ROWS), 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_BYTES), 0);
    close_store(store);
    hearth_nodes_free(nodes);
}

static void a_node_that_is_down_fills_half_of_the_queue_at_most(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.max_queue_rows = 2 * N_SERVICES;
    struct hearth_store *store = open_fresh(url, &options);
    struct hearth_nodes *nodes = make_nodes(store);
    int64_t ts_ns = hearth_clock_wall_ns();
    struct test_node two[] = {{7, NOWHERE}, {9, g_cluster.dir}};
    divide(store, nodes, two, 2);

    struct round rounds[6];
    int n_refused = 0, n_up = 0;
    for (int i = 0; i < 6; i++) {
        rounds[i] = submit_round(store, ts_ns + i);
        n_up += end_pushes(&rounds[i], nodes, 1, true);
        for (int k = 0; k < N_SERVICES; k++) {
            struct store_push *push = rounds[i].pushes[k];
            if (push != NULL && atomic_load(&push->ended)) {
                assert_int_equal(push->status, HEARTH_UNAVAILABLE);
                assert_non_null(strstr(push->err.msg, "half of the ingest queue (max-queue-rows 20"
                                                      ") waits for the PostgreSQL node"));
                store_push_free(push);
                rounds[i].pushes[k] = NULL;
                n_refused++;
            }
        }
    }
    assert_int_equal(n_up + n_refused + N_SERVICES, 6 * N_SERVICES);

    two[0].host = g_cluster.dir;
    divide(store, nodes, two, 2);
    for (int i = 0; i < 6; i++) {
        (void)end_pushes(&rounds[i], nodes, 1, false);
    }
    expect_each_stored_once(url, n_up + N_SERVICES);
    close_store(store);
    hearth_nodes_free(nodes);
}

static void a_repeated_profile_stores_its_file_once_beside_a_node(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_nodes *nodes = make_nodes(store);
    const struct test_node one[] = {{7, g_cluster.dir}};
    static const struct hearth_association span = {.key = 77, .of = HEARTH_OF_SPAN};
    divide(store, nodes, one, 1);
    for (int i = 0; i < 3; i++) {
        struct store_push *push = make_push(store, "api", hearth_clock_wall_ns(), 20, 5);
        push->item.original = (struct hearth_push_original){
            .name = HEARTH_STR("cpu.pprof"), .bytes = HEARTH_STR("bytes as sent"), .part = 3};
        push->row.associations = &span;
        push->row.n_associations = 1;
        store_push_submit(push);
        end_push(push);
    }
    expect_each_stored_once(url, 1);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.original"), 1);
    assert_int_equal(pg_cluster_int(url, "SELECT sum(n_associations) FROM hearth_data.span_fresh"),
                     1);
    close_store(store);
    hearth_nodes_free(nodes);
}

/* Another PostgreSQL, with a table of the same name in a database of the same name. */
static void start_stranger(struct pg_cluster *stranger, const char *url)
{
    char name[64], make[160], other[256];
    pg_cluster_text(url, "SELECT current_database()", name, sizeof name);
    pg_cluster_start(stranger, true); /* without fsync it would be a copy of the same cluster */
    pg_cluster_empty_database(stranger, other);
    (void)snprintf(make, sizeof make, "CREATE DATABASE %s", name);
    pg_cluster_run(other, make);
    (void)snprintf(other, sizeof other, "host=%s dbname=%s user=postgres", stranger->dir, name);
    pg_cluster_run(other, "CREATE SCHEMA hearth_data; CREATE TABLE hearth_data.roll_state ()");
}

static void a_node_that_is_replaced_by_another_one_gets_no_profile_and_is_reported(void **state)
{
    (void)state;
    char url[256], why[256] = "", told[256] = "";
    struct pg_cluster stranger;
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_nodes *nodes = make_nodes(store);
    struct test_node one[] = {{7, g_cluster.dir}};
    divide(store, nodes, one, 1);
    push_profile(store, &g_world, "api", "pod", hearth_clock_wall_ns(), 20);
    assert_false(hearth_nodes_find_loss(nodes, why));

    start_stranger(&stranger, url);
    one[0].host = stranger.dir;
    divide(store, nodes, one, 1);
    struct store_push *push = make_push(store, "api", hearth_clock_wall_ns(), 20, 0);
    store_push_submit(push);
    while (!hearth_nodes_find_loss(nodes, why)) {
        (void)usleep(2000);
    }
    assert_non_null(strstr(why, stranger.dir));
    assert_non_null(strstr(why, "the database is another one"));
    assert_false(atomic_load(&push->ended));
    hearth_lineage_lose(&store->lineage, why);
    assert_true(hearth_store_lost(store, told));
    assert_string_equal(told, why);
    hearth_store_close(store, hearth_clock_mono_ns() + HEARTH_NS_PER_SEC);
    assert_int_equal(push->status, HEARTH_UNAVAILABLE);
    store_push_free(push);
    expect_each_stored_once(url, 1);
    hearth_nodes_free(nodes);
    pg_cluster_stop(&stranger);
}

/* What Citus answers on the coordinator while a node is down; each attempt here counts to 8. */
static void a_profile_is_not_blamed_for_a_node_that_the_server_cannot_reach(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    pg_cluster_run(url,
                   "CREATE SEQUENCE attempt; CREATE FUNCTION fail() RETURNS trigger LANGUAGE"
                   " plpgsql AS $$ BEGIN IF nextval('public.attempt') <= 8 THEN RAISE"
                   " connection_failure; END IF; RETURN NEW; END $$; CREATE TRIGGER fail BEFORE"
                   " INSERT ON hearth_data.ingest_batch FOR EACH ROW EXECUTE FUNCTION fail()");
    push_profile(store, &g_world, "api", "pod", hearth_clock_wall_ns(), 20);
    expect_each_stored_once(url, 1);
    assert_int_equal(pg_cluster_int(url, "SELECT last_value FROM attempt"), 9);
    close_store(store);
}

/* ---- services that move under load ---- */

struct load {
    struct hearth_store *store;
    int number;
    _Atomic bool *stop;
    _Atomic size_t n;
};

static size_t count_pushes(const struct load *loads, int n_loads)
{
    size_t n = 0;
    for (int i = 0; i < n_loads; i++) {
        n += atomic_load(&loads[i].n);
    }
    return n;
}

/* Each push has new stacks, so that each batch has chunks. */
static void *run_load(void *arg)
{
    enum {
        N_AT_ONCE = 8
    };
    struct load *load = arg;
    struct hearth_arena arena;
    struct synth_world world;
    hearth_arena_init(&arena, 0);
    synth_world_init(&world, (uint64_t)load->number + 1, 4000, 20000, 20000, 12, &arena);
    int64_t ts_ns = hearth_clock_wall_ns();
    while (!atomic_load(load->stop)) {
        struct store_push *pushes[N_AT_ONCE];
        for (int i = 0; i < N_AT_ONCE; i++) {
            char service[16];
            (void)snprintf(service, sizeof service, "svc-%d", (load->number + i) % 6);
            pushes[i] = store_push_make(load->store, &world, service, ts_ns + (int64_t)load->n, 20,
                                        0, NULL);
            assert_non_null(pushes[i]);
            store_push_submit(pushes[i]);
            load->n++;
        }
        for (int i = 0; i < N_AT_ONCE; i++) {
            end_push(pushes[i]);
        }
    }
    hearth_arena_release(&arena);
    return NULL;
}

static void chunks_of_a_dictionary_keep_their_order_while_services_move_between_nodes(void **state)
{
    (void)state;
    enum {
        N_LOADS = 3,
        N_MOVES = 400
    };
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 2;
    options.linger_ns = HEARTH_NS_PER_MS;
    struct hearth_store *store = open_fresh(url, &options);
    struct hearth_nodes *nodes = make_nodes(store);
    const char *here = g_cluster.dir;
    const struct test_node maps[][4] = {
        {{7, here}, {7, here}, {9, here}, {9, here}},
        {{9, here}, {7, here}, {7, here}, {9, here}},
        {{9, here}, {9, here}, {3, here}, {7, here}},
        {{0, ""}, {9, here}, {3, here}, {3, here}},
    };
    _Atomic bool stop = false;
    struct load loads[N_LOADS];
    pthread_t threads[N_LOADS];
    int64_t retries = hearth_metric_value(HEARTH_M_BATCH_RETRIES);
    for (int i = 0; i < N_LOADS; i++) {
        loads[i] = (struct load){store, i, &stop, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, run_load, &loads[i]), 0);
    }
    for (int i = 0; i < N_MOVES || count_pushes(loads, N_LOADS) < 200; i++) {
        divide(store, nodes, maps[i % 4], i % 3 == 0 ? 3 : 4);
        (void)usleep(3000);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < N_LOADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    size_t n = count_pushes(loads, N_LOADS);
    print_message("at least %d moves, %zu profiles\n", N_MOVES, n);
    expect_each_stored_once(url, (long long)n);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCH_RETRIES), retries);
    close_store(store);
    hearth_nodes_free(nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_of_a_node_that_is_down_wait_and_those_of_others_are_stored),
        cmocka_unit_test(waiting_profiles_follow_their_services_to_another_node),
        cmocka_unit_test(a_node_that_is_down_fills_half_of_the_queue_at_most),
        cmocka_unit_test(a_repeated_profile_stores_its_file_once_beside_a_node),
        cmocka_unit_test(a_node_that_is_replaced_by_another_one_gets_no_profile_and_is_reported),
        cmocka_unit_test(a_profile_is_not_blamed_for_a_node_that_the_server_cannot_reach),
        cmocka_unit_test(chunks_of_a_dictionary_keep_their_order_while_services_move_between_nodes),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
