/*
 * Roll-ups are exact: several writers on two servers with profiles around the watermark, buckets
 * closed all the time, builders cut off and robbed of their lease, strangers' transactions open all
 * along; and each block is the sum of its profiles, at every moment that somebody looks.
 *
 * The clock is faked: 10 minutes pass in 50 ms, or in the time that a slow machine needs to store as many profiles as
 * others do. HEARTH_ROLLUP_SECONDS makes it longer than CI wants.
 */
#include "hearth/base/log.h"

#include "rollup_fixture.h"

#define N_STORES      2
#define N_WRITERS     2 /* threads of each store */
#define N_SERVICES    3
#define N_PODS        3
#define BUCKET_REAL   (50 * HEARTH_NS_PER_MS)
#define EPOCH_NS      (INT64_C(20000) * HEARTH_NS_PER_DAY + 22 * HEARTH_NS_PER_HOUR)
#define MAX_IN_FLIGHT 32
/* The least profiles of 10 minutes: with fewer, all blocks might be left out. */
#define MIN_OF_BUCKET 150
#define MIN_STORED    3000

struct run {
    char url[256];
    struct hearth_store *stores[N_STORES];
    _Atomic bool stop, stop_clock;
    _Atomic long long n_stored, n_refused;
    long long n_looks, n_compared, n_wrong, n_cut, n_robbed;
    uint64_t rng;
};

struct writer {
    struct run *run;
    struct hearth_store *store;
    int number;
};

static void *run_clock(void *arg)
{
    struct run *run = arg;
    int64_t start_ns = hearth_clock_mono_ns();
    while (!atomic_load(&run->stop_clock)) {
        double buckets = (double)(hearth_clock_mono_ns() - start_ns) / (double)BUCKET_REAL;
        double most = (double)atomic_load(&run->n_stored) / MIN_OF_BUCKET;
        buckets = buckets < most ? buckets : most;
        hearth_clock_fake(EPOCH_NS + (int64_t)(buckets * (double)BUCKET_NS));
        (void)usleep(500);
    }
    return NULL;
}

static void settle(struct run *run, struct store_push **slot)
{
    if (*slot != NULL) {
        if (!store_push_wait(*slot)) {
            (void)fprintf(stderr, "a push did not end\n");
            abort();
        }
        atomic_fetch_add((*slot)->status == HEARTH_OK ? &run->n_stored : &run->n_refused, 1);
        store_push_free(*slot);
        *slot = NULL;
    }
}

/* 8 in 100 are up to three hours old; the others straddle the watermark. */
static int64_t draw_ts(uint64_t *rng)
{
    int64_t now_ns = hearth_clock_wall_ns();
    if (synth_below(rng, 100) < 8) {
        return now_ns - (int64_t)(synth_next(rng) % (uint64_t)(3 * HEARTH_NS_PER_HOUR));
    }
    return now_ns - (int64_t)(synth_next(rng) % (uint64_t)(4 * MINUTE_NS));
}

static void *run_writer(void *arg)
{
    struct writer *writer = arg;
    struct run *run = writer->run;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, (uint64_t)writer->number + 7, 60, 90, 120, 6, &arena);
    struct store_push *pushes[MAX_IN_FLIGHT] = {NULL};
    uint64_t rng = (uint64_t)writer->number + 99;
    for (size_t n = 0; !atomic_load(&run->stop); n++) {
        struct store_push **slot = &pushes[n % MAX_IN_FLIGHT];
        settle(run, slot);
        char service[16], pod[16];
        (void)snprintf(service, sizeof service, "svc-%u", (unsigned)synth_below(&rng, N_SERVICES));
        (void)snprintf(pod, sizeof pod, "pod-%u", (unsigned)synth_below(&rng, N_PODS));
        *slot = store_push_make_pod(writer->store, &world, service, pod, draw_ts(&rng), 4, 0, NULL);
        if (*slot != NULL) { /* else the catalogue is away */
            store_push_submit(*slot);
        }
        (void)usleep(synth_below(&rng, 1500));
    }
    for (size_t i = 0; i < MAX_IN_FLIGHT; i++) {
        settle(run, &pushes[i]);
    }
    hearth_arena_release(&arena);
    return NULL;
}

/* A write transaction that stays open; PQfinish ends it. */
static PGconn *open_foreign(const char *url, const char *table)
{
    char sql[128];
    PGconn *conn = pg_cluster_connect(url);
    (void)snprintf(sql, sizeof sql, "BEGIN; CREATE TABLE %s (a int); INSERT INTO %s VALUES (1)",
                   table, table);
    PGresult *result = PQexec(conn, sql);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    return conn;
}

static void run_sql(const char *url, const char *sql, long long *ret_count)
{
    PGconn *conn = pg_cluster_connect(url);
    PGresult *result = conn == NULL ? NULL : PQexec(conn, sql);
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        *ret_count += PQntuples(result);
    }
    PQclear(result);
    PQfinish(conn);
}

/* Cut a builder off, rob the holder of the lease, cut any connection, or compare. */
static void disturb(struct run *run)
{
    switch (synth_below(&run->rng, 5)) {
    case 0:
    case 1:
        run_sql(run->url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
                " 'hearthd' AND query ~ 'lease|roll_|hour_totals|pg_locks|profile_late WHERE'",
                &run->n_cut);
        break;
    case 2:
        run_sql(run->url,
                "UPDATE hearth_data.lease SET holder = 3 - holder, token = token + 1, expires_at ="
                " now() + interval '30 s' RETURNING holder", /* writers 1 and 2 */
                &run->n_robbed);
        break;
    case 3:
        run_sql(run->url,
                "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE"
                " application_name = 'hearthd' ORDER BY random() LIMIT 1) p",
                &run->n_cut);
        break;
    default: {
        long long wrong, all;
        if (rollup_compare(run->url, &wrong, &all)) {
            run->n_looks++;
            run->n_compared += all;
            run->n_wrong += wrong;
        }
    }
    }
}

static struct hearth_store *open_building(const char *url, int64_t min_profiles)
{
    struct hearth_store_options options = rolling_options(10 * HEARTH_NS_PER_MS);
    options.rollup_min_profiles = min_profiles;
    options.rollup_min_profiles_1h = 4 * min_profiles;
    options.linger_ns = HEARTH_NS_PER_MS;
    options.rollup_grace_ns = MINUTE_NS;
    return expect_ready(store_open_building(url, &options));
}

/* About the mean of the blocks, so that some are left out. */
#define MIXED_MEAN 14

/* For so long, and on a slow machine until enough is stored, and each kind of disturbance has happened. */
static void disturb_for(struct run *run, int seconds)
{
    int64_t from_ns = hearth_clock_mono_ns(), until_ns = from_ns + seconds * HEARTH_NS_PER_SEC;
    while (hearth_clock_mono_ns() < until_ns ||
           ((run->n_looks == 0 || run->n_cut == 0 || run->n_robbed == 0 ||
             atomic_load(&run->n_stored) < MIN_STORED) &&
            hearth_clock_mono_ns() < from_ns + STORE_PATIENCE_NS)) {
        (void)usleep(50000 + synth_below(&run->rng, 300000));
        disturb(run);
    }
}

static void compare_all_stacks(const char *url)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ROLLUP_TIERS); i++) {
        int n = 0;
        int wrong = rollup_compare_stacks(url, &ROLLUP_TIERS[i], 200, &n);
        print_message("%s: %d keys compared stack by stack, %d wrong\n", ROLLUP_TIERS[i].table, n,
                      wrong);
        assert_int_equal(wrong, 0);
        assert_true(n > 0);
    }
}

static long long count_absent_ranges(const char *url)
{
    return pg_cluster_int(url, "SELECT sum(cardinality(absent)) / 4 FROM hearth_data.roll_state");
}

static void disturb_and_compare(int64_t min_profiles)
{
    const char *text = getenv("HEARTH_ROLLUP_SECONDS");
    int seconds = text == NULL ? 8 : (int)strtol(text, NULL, 10);
    struct run *run = calloc(1, sizeof *run);
    run->rng = 5;
    pg_cluster_database(&g_cluster, run->url);
    char other[256];
    pg_cluster_url(&g_cluster, "postgres", other);
    hearth_clock_fake(EPOCH_NS);
    pthread_t clock, threads[N_STORES * N_WRITERS];
    struct writer writers[N_STORES * N_WRITERS];
    for (int i = 0; i < N_STORES; i++) {
        run->stores[i] = open_building(run->url, min_profiles);
    }
    PGconn *elsewhere = open_foreign(other, "stranger"),
           *beside = open_foreign(run->url, "stranger");
    assert_int_equal(pthread_create(&clock, NULL, run_clock, run), 0);
    for (int i = 0; i < N_STORES * N_WRITERS; i++) {
        writers[i] = (struct writer){run, run->stores[i % N_STORES], i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_writer, &writers[i]), 0);
    }
    disturb_for(run, seconds);
    atomic_store(&run->stop, true);
    for (int i = 0; i < N_STORES * N_WRITERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    atomic_store(&run->stop_clock, true);
    (void)pthread_join(clock, NULL);
    /* The end of the day after: every hour and day that was begun is over. */
    int64_t last_ns = hearth_clock_wall_ns();
    hearth_clock_fake(last_ns + 2 * HEARTH_NS_PER_DAY);
    assert_true(rollup_wait(run->url, last_ns + HEARTH_NS_PER_DAY));
    long long wrong, all;
    assert_true(rollup_compare(run->url, &wrong, &all));
    print_message("%lld stored, %lld refused; %lld buckets closed; %lld looks at %lld keys, %lld"
                  " wrong; at the end %lld keys, %lld wrong; %lld connections cut, lease taken"
                  " away %lld times\n",
                  atomic_load(&run->n_stored), atomic_load(&run->n_refused),
                  (long long)((last_ns - EPOCH_NS) / BUCKET_NS), run->n_looks, run->n_compared,
                  run->n_wrong, all, wrong, run->n_cut, run->n_robbed);
    assert_int_equal(run->n_wrong + wrong, 0);
    assert_true(all > 100 && run->n_looks > 0 && run->n_cut > 0);
    assert_int_equal(pg_cluster_int(run->url, "SELECT count(*) FROM hearth_data.profile"),
                     atomic_load(&run->n_stored));
    assert_int_equal(pg_cluster_int(run->url, "SELECT count(DISTINCT (writer_id, profile_no)) FROM"
                                              " hearth_data.profile"),
                     atomic_load(&run->n_stored));
    assert_true(run->n_robbed > 0);
    compare_all_stacks(run->url);
    print_message("%lld ranges without blocks of series\n", count_absent_ranges(run->url));
    assert_int_equal(count_absent_ranges(run->url) > 0, min_profiles > 0);
    PQfinish(elsewhere);
    PQfinish(beside);
    for (int i = 0; i < N_STORES; i++) {
        store_close_soon(run->stores[i]);
    }
    hearth_clock_fake(0);
    free(run);
}

static void every_block_is_the_sum_of_its_profiles_after_any_event(void **state)
{
    (void)state;
    disturb_and_compare(0);
}

static void answers_are_equal_where_some_blocks_are_left_out(void **state)
{
    (void)state;
    disturb_and_compare(MIXED_MEAN);
}

int main(void)
{
    hearth_log_set_level(HEARTH_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_is_the_sum_of_its_profiles_after_any_event),
        cmocka_unit_test(answers_are_equal_where_some_blocks_are_left_out),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
