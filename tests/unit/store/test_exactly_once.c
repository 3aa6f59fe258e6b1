/*
 * Nothing acknowledged is lost, nothing is stored twice: connections cut at every message of an
 * ingest, backends and the whole server killed under load.
 */
#include "hearth/base/metrics.h"

#include "node_map.h"
#include "pg_proxy.h"
#include "rounds.h"
#include "store_fixture.h"
#include "whole_dictionaries.h"

/* Profiles carry the id of a span and the file that they were made of, which commit with them. */
static const struct hearth_association SPAN = {.key = 77, .of = HEARTH_OF_SPAN};

static void carry_more(struct store_push *push)
{
    push->item.original = (struct hearth_push_original){
        .name = HEARTH_STR("cpu.pprof"), .bytes = HEARTH_STR("bytes as sent"), .part = 3};
    push->row.associations = &SPAN;
    push->row.n_associations = 1;
}

static void expect_an_original_for_each_profile(const char *url)
{
    /* Without statistics the join below would compare all with all. */
    pg_cluster_run(url, "ANALYZE hearth_data.original, hearth_data.profile");
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(*) FROM (SELECT count(*) AS n FROM hearth_data.original o"
                            " JOIN (SELECT writer_id, profile_no, ts, service_id FROM"
                            " hearth_data.profile UNION ALL SELECT writer_id, profile_no, ts,"
                            " service_id FROM hearth_data.profile_late) p USING (writer_id,"
                            " profile_no, ts, service_id) WHERE o.name = 'cpu.pprof' AND"
                            " o.payload = 'bytes as sent' AND o.part = 3 AND o.n_bytes = 13"
                            " GROUP BY writer_id, profile_no, ts, service_id) c WHERE n = 1"),
        pg_cluster_int(url, "SELECT (SELECT count(*) FROM hearth_data.profile) + (SELECT count(*)"
                            " FROM hearth_data.profile_late)"));
}

static void expect_spans_and_originals(const char *url)
{
    expect_an_original_for_each_profile(url);
    assert_int_equal(
        pg_cluster_int(url, "SELECT sum(n_associations) FROM hearth_data.span_fresh"),
        pg_cluster_int(url, "SELECT (SELECT count(*) FROM hearth_data.profile) + (SELECT count(*)"
                            " FROM hearth_data.profile_late)"));
}

/*
 * Where the catalogue commits first: no file without its profile remains, and each has its ids of
 * spans once or, after a cut, more often.
 */
static void expect_catalogue_of_each_profile(const char *url)
{
    expect_an_original_for_each_profile(url);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.original"),
                     pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"));
    assert_true(pg_cluster_int(url, "SELECT sum(n_associations) FROM hearth_data.span_fresh") >=
                pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"));
}

/* One row with this (writer, number), and no other row with it. */
static long long count_rows(const char *url, int32_t writer_id, int64_t profile_no)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM (SELECT writer_id, profile_no FROM hearth_data.profile"
                   " UNION ALL SELECT writer_id, profile_no FROM hearth_data.profile_late) p"
                   " WHERE writer_id = %d AND profile_no = %lld",
                   writer_id, (long long)profile_no);
    return pg_cluster_int(url, sql);
}

/* Push three profiles (two with ids) of two services while armed; returns the number of cuts made.
 */
static int push_through_cut(struct hearth_store *store, struct pg_proxy *proxy,
                            struct synth_world *world, const char *url, int64_t ts_ns, int cut_at,
                            bool after, int n_cuts, char *ret_type)
{
    struct store_push *pushes[3];
    for (int i = 0; i < 3; i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        pushes[i] = store_push_make(store, world, i == 2 ? "web" : "api", ts_ns + i, 40,
                                    i == 0 ? 0 : (uint64_t)ts_ns + (uint64_t)i, &err);
        if (pushes[i] == NULL) {
            fail_msg("cannot make a push: %s", err.msg);
        }
        pushes[i]->writer_id = 1;
        carry_more(pushes[i]);
    }
    pg_proxy_arm(proxy, cut_at, after, n_cuts);
    for (int i = 0; i < 3; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(store_push_wait(pushes[i]));
    }
    int made = pg_proxy_disarm(proxy, n_cuts, ret_type);
    for (int i = 0; i < 3; i++) {
        if (pushes[i]->status != HEARTH_OK) {
            fail_msg("cut %d (%s): %s", cut_at, after ? "after" : "before", pushes[i]->err.msg);
        }
        assert_int_equal(atomic_load(&pushes[i]->n_done), 1);
        assert_false(pushes[i]->item.repeated);
        assert_int_equal(count_rows(url, 1, pushes[i]->item.profile_no), 1);
        store_push_free(pushes[i]);
    }
    return made;
}

/*
 * late: the profiles of one of the two services are, so that the batch goes to both tables. On a
 * node, the catalogue has a transaction of its own.
 */
static void cut_everywhere(bool late, bool on_node)
{
    char direct[256], url[300], db[64], types[512] = "";
    pg_cluster_database(&g_cluster, direct);
    pg_cluster_text(direct, "SELECT current_database()", db, sizeof db);
    struct pg_proxy *proxy = calloc(1, sizeof *proxy);
    pg_proxy_start(proxy, g_cluster.dir);
    (void)snprintf(url, sizeof url, "host=%s dbname=%s user=postgres", proxy->dir, db);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = 15 * HEARTH_NS_PER_MS;
    struct hearth_store *store = open_ready(url, &options);
    struct hearth_nodes *nodes = NULL;
    if (on_node) {
        const struct test_node one[] = {{7, proxy->dir}};
        nodes = make_nodes(store);
        divide(store, nodes, one, 1);
        proxy->marker = "BEGIN;"; /* both transactions */
    }
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, 11, 4000, 20000, 20000, 12,
                     &arena); /* so large that every push has new stacks */
    int64_t ts_ns = hearth_clock_wall_ns();
    int64_t settled = hearth_metric_value(HEARTH_M_BATCH_SETTLED);
    long long n_pushed = 0;
    int n_messages = 0, step, first = test_first_place(2, &step);
    if (late) { /* services are numbered in the order of their first push: api, web */
        char sql[160];
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO hearth_data.roll_state VALUES (2, %lld, 0, 0, 1)",
                       (long long)(ts_ns + HEARTH_NS_PER_HOUR));
        pg_cluster_run(direct, sql);
    }
    for (int mode = 0; mode < 4; mode++) {
        bool after = mode % 2 == 1;
        int n_cuts = mode < 2 ? 1 : 2;
        int cut_at = (first + mode / 2) % step; /* one cut here, two there */
        for (;; cut_at += step) {
            char type = 0;
            int made = push_through_cut(store, proxy, &world, direct, ts_ns + n_pushed, cut_at,
                                        after, n_cuts, &type);
            n_pushed += 3;
            if (made == 0) {
                break; /* the batch has no such message */
            }
            if (mode == 0 && strlen(types) < sizeof types - 1) {
                types[strlen(types)] = type;
            }
        }
        n_messages = cut_at > n_messages ? cut_at : n_messages;
    }
    print_message("messages of a batch, in order: %s\n", types);
    /* Query; BEGIN, INSERT; two ids returned; COPY of chunks, of rows; COMMIT. */
    assert_true(n_messages >= 14);
    assert_int_equal(pg_cluster_int(direct, "SELECT count(*) FROM hearth_data.profile"),
                     late ? n_pushed / 3 * 2 : n_pushed);
    assert_int_equal(pg_cluster_int(direct, "SELECT count(*) FROM hearth_data.profile_late"),
                     late ? n_pushed / 3 : 0);
    assert_int_equal(pg_cluster_int(direct, "SELECT count(*) FROM hearth_data.push_id"),
                     n_pushed / 3 * 2);
    expect_whole_dictionaries(direct);
    if (on_node) {
        expect_catalogue_of_each_profile(direct);
    } else {
        expect_spans_and_originals(direct);
    }
    /* A lost answer of COMMIT was among them: of a single cut, of two, or of both. */
    assert_true(hearth_metric_value(HEARTH_M_BATCH_SETTLED) - settled >= (step == 1 ? 2 : 1));
    hearth_arena_release(&arena);
    store_close_soon(store);
    hearth_nodes_free(nodes);
    pg_proxy_stop(proxy);
    free(proxy);
}

static void a_cut_at_any_message_neither_loses_nor_doubles(void **state)
{
    (void)state;
    cut_everywhere(false, false);
}

static void a_cut_of_a_batch_with_late_profiles_neither_loses_nor_doubles(void **state)
{
    (void)state;
    cut_everywhere(true, false);
}

static void a_cut_of_a_batch_on_a_node_or_of_its_catalogue_neither_loses_nor_doubles(void **state)
{
    (void)state;
    cut_everywhere(false, true);
}

/* ---- load ---- */

struct load {
    struct hearth_store *store;
    int number;
    _Atomic bool *stop;
    struct store_push **pushes; /* all of them, for the accounts */
    _Atomic size_t n;
    size_t cap;
};

static void *run_load(void *arg)
{
    struct load *load = arg;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, (uint64_t)load->number + 1, 300, 900, 1500, 10, &arena);
    char service[16];
    (void)snprintf(service, sizeof service, "svc-%d", load->number);
    int64_t ts_ns = hearth_clock_wall_ns();
    while (!atomic_load(load->stop) && load->n < load->cap) {
        uint64_t id = load->n % 3 == 0 ? (uint64_t)load->n + 1 : 0;
        struct store_push *push =
            store_push_make(load->store, &world, service, ts_ns + (int64_t)load->n, 30, id, NULL);
        if (push == NULL) { /* the catalogue is away too */
            (void)usleep(2000);
            continue;
        }
        push->writer_id = 1;
        push->item.may_lead = load->n % 2 == 0;
        carry_more(push);
        store_push_submit(push);
        load->pushes[load->n++] = push;
        (void)usleep(3000);
    }
    hearth_arena_release(&arena);
    return NULL;
}

/* Wait until the loads have submitted `n` pushes in all: a slow machine is disturbed at work, too. */
static void wait_for_pushes(struct load *loads, int n_loads, size_t n)
{
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    size_t n_now = 0;
    while (n_now < n && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(5000);
        n_now = 0;
        for (int i = 0; i < n_loads; i++) {
            n_now += atomic_load(&loads[i].n);
        }
    }
    assert_true(n_now >= n);
}

/* kill -9 a backend of the store's: PostgreSQL restarts all of them. */
static void kill_backend(const char *url)
{
    PGconn *conn = pg_cluster_connect(url);
    PGresult *result =
        conn == NULL
            ? NULL
            : PQexec(conn, "SELECT pid FROM pg_stat_activity WHERE application_name = 'hearthd'"
                           " ORDER BY state = 'active' DESC, random() LIMIT 1");
    if (PQntuples(result) == 1) {
        (void)kill((pid_t)strtol(PQgetvalue(result, 0, 0), NULL, 10), SIGKILL);
    }
    PQclear(result);
    PQfinish(conn);
}

static void terminate_backends(const char *url)
{
    PGconn *conn = pg_cluster_connect(url);
    PQclear(PQexec(conn,
                   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
                   " 'hearthd'"));
    PQfinish(conn);
}

static void kills_under_load_neither_lose_nor_double(void **state)
{
    (void)state;
    enum {
        N_LOADS = 4,
        MAX_PUSHES = 20000
    };
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.alone_ns = 1; /* items lead whenever their committer is idle */
    struct hearth_store *store = open_fresh(url, &options);
    _Atomic bool stop = false;
    struct load loads[N_LOADS];
    pthread_t threads[N_LOADS];
    for (int i = 0; i < N_LOADS; i++) {
        loads[i] =
            (struct load){store, i, &stop, calloc(MAX_PUSHES, sizeof(void *)), 0, MAX_PUSHES};
        assert_int_equal(pthread_create(&threads[i], NULL, run_load, &loads[i]), 0);
    }
    /* Each of the three kinds at least once. */
    for (int round = 0; round < test_rounds(9); round++) {
        (void)usleep(250000);
        wait_for_pushes(loads, N_LOADS, 120 * (size_t)(round + 1));
        if (round % 3 == 0) {
            terminate_backends(url);
        } else if (round % 3 == 1) {
            kill_backend(url);
        } else {
            pg_cluster_halt(&g_cluster, SIGKILL);
            pg_cluster_resume(&g_cluster);
        }
        assert_true(store_wait_ready(store));
    }
    atomic_store(&stop, true);
    size_t n_ok = 0, n_refused = 0;
    for (int i = 0; i < N_LOADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    pg_cluster_run(url, "CREATE TABLE acked (writer_id int4, profile_no int8)");
    PGconn *conn = pg_cluster_connect(url);
    PQclear(PQexec(conn, "COPY acked FROM STDIN"));
    for (int i = 0; i < N_LOADS; i++) {
        for (size_t k = 0; k < loads[i].n; k++) {
            struct store_push *push = loads[i].pushes[k];
            assert_true(store_push_wait(push));
            if (push->status == HEARTH_OK) {
                char line[64];
                int n = snprintf(line, sizeof line, "1\t%lld\n", (long long)push->item.profile_no);
                assert_int_equal(PQputCopyData(conn, line, n), 1);
                assert_false(push->item.repeated);
                n_ok++;
            } else {
                assert_int_equal(push->status, HEARTH_UNAVAILABLE);
                n_refused++;
            }
            store_push_free(push);
        }
        free(loads[i].pushes);
    }
    assert_int_equal(PQputCopyEnd(conn, NULL), 1);
    PQclear(PQgetResult(conn));
    PQfinish(conn);
    print_message("acknowledged %zu, refused %zu, settled %lld\n", n_ok, n_refused,
                  (long long)hearth_metric_value(HEARTH_M_BATCH_SETTLED));
    assert_true(n_ok > 200);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM acked"), n_ok);
    assert_int_equal(pg_cluster_int(url,
                                    "SELECT count(*) FROM acked WHERE NOT EXISTS (SELECT FROM"
                                    " hearth_data.profile p WHERE p.writer_id = acked.writer_id AND"
                                    " p.profile_no = acked.profile_no)"),
                     0);
    assert_int_equal(pg_cluster_int(url,
                                    "SELECT count(*) - count(DISTINCT (writer_id, profile_no)) FROM"
                                    " hearth_data.profile"),
                     0);
    expect_whole_dictionaries(url);
    expect_spans_and_originals(url);
    store_close_soon(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_at_any_message_neither_loses_nor_doubles),
        cmocka_unit_test(a_cut_of_a_batch_with_late_profiles_neither_loses_nor_doubles),
        cmocka_unit_test(a_cut_of_a_batch_on_a_node_or_of_its_catalogue_neither_loses_nor_doubles),
        cmocka_unit_test(kills_under_load_neither_lose_nor_double),
    };
    return cmocka_run_group_tests(tests, start_durable_cluster, stop_cluster);
}
