/* test_read_streams.c -- many rows through one statement: what comes, how PostgreSQL runs it, giving up. */
#include "read_plans.h"

/* ---- many rows ---- */

#define MANY_SERIES 200
#define MANY_ROWS   60000

/* One hour of MANY_SERIES series of service 1 and as many of others, interleaved in time; two
 * minutes of a second day beside it. */
static void fill_many(struct hearth_store *store, const char *url)
{
    ensure_days(store, url, T0, T0 + DAY);
    char sql[1024];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.profile SELECT CASE WHEN s <= 200 THEN 1 ELSE s END, s,"
                   " %lld + t * 12000000000::int8 + d * 86400000000000::int8, 0, 0, 1, 1, 1,"
                   " array[t, 7]::int8[], decode(repeat(md5((s * t)::text), 10), 'hex'),"
                   " array[decode('00' || repeat(md5(s::text), 8), 'hex'), '\\x0107'], NULL"
                   " FROM generate_series(0, 1) d, generate_series(0, 149 - d * 140) t,"
                   " generate_series(1, 400) s",
                   (long long)T0);
    pg_cluster_run(url, sql);
}

static void many_hits(struct hearth_series_hit hits[MANY_SERIES], uint16_t column)
{
    for (int i = 0; i < MANY_SERIES; i++) {
        hits[i] = (struct hearth_series_hit){
            .series_id = i + 1, .service_id = 1, .column = column, .n_types = 2};
    }
}

static long long running(const char *url)
{
    return pg_cluster_int(url, "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle'"
                               " AND query LIKE 'SELECT * FROM (SELECT service_id%'");
}

/* Sooner than a statement that nobody cancelled would end: it waits for a lock, or to send rows. */
static void assert_nothing_runs(const char *url)
{
    int64_t until_ns = hearth_clock_mono_ns() + 30 * HEARTH_NS_PER_SEC;
    while (running(url) != 0 && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(5000);
    }
    assert_int_equal(running(url), 0);
}

static void new_leaves_are_read_by_their_index_and_other_days_not_at_all(void **state)
{
    (void)state;
    char url[256], text[128];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url); /* and nobody analyzes it */
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    static struct hearth_series_hit hits[MANY_SERIES];
    for (uint16_t column = 0; column < 2; column++) {
        struct counter counter = {0};
        many_hits(hits, column);
        assert_ok(read_rows(store, hits, MANY_SERIES, T0, T0 + HEARTH_NS_PER_HOUR, NULL, count_row,
                            &counter, &err));
        assert_int_equal(counter.n_rows, MANY_SERIES * 150);
        assert_ok(read_rows(store, hits, 10, T0, T0 + 601 * HEARTH_NS_PER_SEC, NULL, count_row,
                            &counter, &err));
        assert_int_equal(counter.n_rows, MANY_SERIES * 150 + 10 * 51);
    }
    close_store(store);
    wait_until_disconnected(url);
    pg_cluster_text(
        url,
        "SELECT string_agg(format('%s %s', seq_scan, idx_scan > 0), ',' ORDER BY relname)"
        " FROM pg_stat_user_tables WHERE schemaname = 'hearth_data'"
        " AND relid IN (SELECT tableoid FROM hearth_data.profile)",
        text, sizeof text);
    assert_string_equal(text, "0 t,0 f");
}

/* A vacuum leaves out what some transaction that runs at the moment might not see yet. */
static void vacuum_until_all_is_visible(const char *url)
{
    static const char left[] = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relpages > 0"
                               " AND relname LIKE 'profile_2%' AND relallvisible < relpages";
    for (int i = 0; i < 100; i++) {
        pg_cluster_run(url, "VACUUM");
        if (pg_cluster_int(url, left) == 0) {
            return;
        }
        (void)usleep(100000);
    }
    fail_msg("rows stay invisible to somebody");
}

static void totals_are_read_without_the_heap(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url);
    vacuum_until_all_is_visible(url);
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct counter counter = {0};
    assert_ok(read_totals(store, hits, MANY_SERIES, T0, T0 + HEARTH_NS_PER_HOUR, add_total,
                          &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 150);
    assert_int_equal(counter.sum, MANY_SERIES * (149 * 150 / 2));
    close_store(store);
    wait_until_disconnected(url);
    /* What is left are looks at the visibility map. */
    assert_in_range(pg_cluster_int(url,
                                   "SELECT sum(heap_blks_read + heap_blks_hit)"
                                   " FROM pg_statio_user_tables WHERE relname LIKE 'profile_%'"),
                    0, 300);
}

static void a_cut_connection_fails_the_read_and_doubles_no_row(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 1);
    struct counter counter = {.url = url, .stop_after = 100};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY + 1, NULL, count_row, &counter, &err),
        HEARTH_UNAVAILABLE);
    assert_in_range(counter.n_rows, 100, MANY_SERIES * 150);
    counter = (struct counter){0};
    assert_ok(
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY + 1, NULL, count_row, &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 151);
    close_store(store);
}

/* ---- giving up ---- */

/* A row of series 1 at a time. */
static void insert_one(const char *url, int64_t ts_ns)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.profile VALUES (1, 1, %lld, 0, 0, 1, 1, 1, '{5,7}',"
                   " '\\x', '{\"\\\\x0001\",\"\\\\x0107\"}', NULL)",
                   (long long)ts_ns);
    pg_cluster_run(url, sql);
}

/* It is prepared after two runs, and PostgreSQL keeps its plan. */
static void a_read_that_is_run_again_finds_new_rows_times_and_days(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.row_level_security = HEARTH_ROW_LEVEL_SECURITY_OFF;
    struct hearth_store *store = open_with_services(url, &options);
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1};
    for (int64_t day = 0; day < 3; day++) {
        ensure_days(store, url, T0, T0 + day * DAY);
        for (int64_t i = 1; i <= 4; i++) {
            struct counter rows = {0}, totals = {0};
            int64_t to_ns = T0 + day * DAY + i * HEARTH_NS_PER_SEC;
            insert_one(url, to_ns - 1);
            assert_ok(
                read_rows(store, &hit, 1, T0 + day * DAY, to_ns, NULL, count_row, &rows, &err));
            assert_int_equal(rows.n_rows, i);
            assert_ok(read_rows(store, &hit, 1, T0, to_ns, NULL, count_row, &rows, &err));
            assert_int_equal(rows.n_rows, i + 4 * day + i);
            assert_ok(read_totals(store, &hit, 1, T0, to_ns, add_total, &totals, &err));
            assert_int_equal(totals.n_rows, 4 * day + i);
            assert_int_equal(totals.sum, 5 * totals.n_rows);
        }
    }

    /* The last one was prepared: what follows it resets the choice of plans. */
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM pg_stat_activity WHERE query ="
                                         " 'RESET plan_cache_mode'"),
                     1);
    close_store(store);
}

static void a_visitor_that_has_enough_ends_the_query(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct counter counter = {.stop_after = 10};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY, NULL, count_row, &counter, &err),
        HEARTH_RESOURCE_EXHAUSTED);
    assert_string_equal(err.msg, "enough");
    assert_int_equal(counter.n_rows, 10);
    assert_nothing_runs(url);

    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, INT64_MAX);
    counter = (struct counter){.stop_after = 10, .cancelled = &cancel.cancelled};
    assert_int_equal(
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY, &cancel, count_row, &counter, &err),
        HEARTH_CANCELLED);
    assert_in_range(counter.n_rows, 10, 2000);
    assert_nothing_runs(url);
    close_store(store);
}

struct blocked {
    struct hearth_store *store;
    struct hearth_cancel *cancel;
    enum hearth_status status;
};

static void *run_blocked(void *arg)
{
    struct blocked *b = arg;
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1};
    struct counter counter = {0};
    b->status = read_rows(b->store, &hit, 1, T0, T0 + DAY, b->cancel, count_row, &counter, NULL);
    return NULL;
}

static void cancellation_and_deadlines_reach_postgres(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.url = test_secret(url);
    options.statement_timeout_ms = 2000; /* also of what must succeed, on a busy machine */
    options.builder = false;
    struct hearth_store *store = open_ready(url, &options);
    ensure_days(store, url, T0, T0);
    PGconn *locker = pg_cluster_connect(url); /* a query that does not end by itself */
    PQclear(PQexec(locker, "BEGIN; LOCK TABLE hearth_data.profile IN ACCESS EXCLUSIVE MODE"));

    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 60 * HEARTH_NS_PER_SEC);
    struct blocked blocked = {store, &cancel, HEARTH_OK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_blocked, &blocked), 0);
    while (running(url) == 0) {
        (void)usleep(1000);
    }
    int64_t at_ns = hearth_clock_mono_ns();
    atomic_store(&cancel.cancelled, true);
    (void)pthread_join(thread, NULL);
    assert_int_equal(blocked.status, HEARTH_CANCELLED);
    assert_in_range(hearth_clock_mono_ns() - at_ns, 0, 30 * HEARTH_NS_PER_SEC); /* not 60 */
    assert_nothing_runs(url);

    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 100 * HEARTH_NS_PER_MS);
    (void)run_blocked(&blocked);
    assert_int_equal(blocked.status, HEARTH_DEADLINE_EXCEEDED);
    assert_nothing_runs(url);

    blocked.cancel = NULL; /* the store's own timeout */
    (void)run_blocked(&blocked);
    assert_int_equal(blocked.status, HEARTH_DEADLINE_EXCEEDED);
    assert_nothing_runs(url);
    PQfinish(locker);
    (void)run_blocked(&blocked);
    assert_int_equal(blocked.status, HEARTH_OK);
    close_store(store);
}

static void a_row_without_the_column_is_corrupt(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url);
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1, .column = 2, .n_types = 3};
    struct counter counter = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(read_rows(store, &hit, 1, T0, T0 + DAY, NULL, count_row, &counter, &err),
                     HEARTH_CORRUPT);
    assert_non_null(strstr(err.msg, "series 1"));
    assert_int_equal(read_totals(store, &hit, 1, T0, T0 + DAY, add_total, &counter, &err),
                     HEARTH_CORRUPT);
    hit.column = 64;
    assert_int_equal(read_rows(store, &hit, 1, T0, T0 + DAY, NULL, count_row, &counter, &err),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(counter.n_rows, 0);
    close_store(store);
}

static void sixty_four_columns_are_one_statement(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    ensure_days(store, url, T0, T0);
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.profile SELECT 1, 1, %lld, 0, 0, 1, 1, 1,"
                   " array_agg(i::int8), '\\x', array_agg(decode('00' || lpad(to_hex(i), 2, '0'),"
                   " 'hex')), NULL FROM generate_series(1, 64) i",
                   (long long)T0);
    pg_cluster_run(url, sql);
    struct hearth_series_hit hits[64];
    for (uint16_t k = 0; k < 64; k++) {
        hits[k] =
            (struct hearth_series_hit){.series_id = 1, .service_id = 1, .column = k, .n_types = 64};
    }
    static struct seen rows;
    struct counter counter = {0};
    assert_ok(read_rows(store, hits, 64, T0, T0 + 1, NULL, see_row, &rows, &err));
    assert_int_equal(rows.n, 64);
    assert_ok(read_totals(store, hits, 64, T0, T0 + 1, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, 64);
    assert_int_equal(counter.sum, 64 * 65 / 2);
    close_store(store);
}

/* ---- what the database does not leave out ---- */

static size_t count_rows(struct hearth_store *store, const struct hearth_read_plan *plan)
{
    struct counter counter = {0};
    assert_ok(hearth_store_read(STORE_SCOPE(store, TENANT, NULL), plan, count_row, &counter, &err));
    return (size_t)counter.n_rows;
}

static void days_without_a_leaf_are_empty(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1};
    struct hand_plan hand;
    for (size_t i = 0; i < HEARTH_N_SOURCES; i++) {
        hand.legs[i] = (struct hearth_read_leg){i == HEARTH_SOURCE_TOTALS ? HEARTH_SOURCE_PROFILE
                                                                          : (enum hearth_source)i,
                                                0, 90 * DAY, &hit, 1};
    }
    assert_int_equal(count_rows(store, finish_plan(store, &hand, HEARTH_N_SOURCES)), 0);
    hand.plan.n_legs = 0;
    assert_int_equal(count_rows(store, &hand.plan), 0);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

static void leftover_rows_of_compacted_hours_are_not_read(void **state)
{
    (void)state;
    char url[256], sql[512];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.roll_state VALUES (1, %lld, %lld, %lld, 5)",
                   (long long)(T0 + DAY), (long long)(T0 + DAY),
                   (long long)(T0 + 75 * 12 * HEARTH_NS_PER_SEC));
    pg_cluster_run(url, sql);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct hand_plan hand;
    hand.legs[0] =
        (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0, T0 + HOUR, hits, MANY_SERIES};
    assert_int_equal(count_rows(store, finish_plan(store, &hand, 1)), MANY_SERIES * 75);
    struct counter counter = {0};
    assert_ok(hearth_store_read_totals(STORE_SCOPE(store, TENANT, NULL), &hand.plan, add_total,
                                       &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 75);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

static void deleted_profiles_are_not_read(void **state)
{
    (void)state;
    char url[256], sql[512];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.tombstone VALUES (1, 1, %lld, %lld, '{3,5}'),"
                   " (1, 2, %lld, %lld, '{5}'), (2, 3, 0, %lld, '{4}')",
                   (long long)T0, (long long)(T0 + 120 * HEARTH_NS_PER_SEC),
                   (long long)(T0 + 60 * HEARTH_NS_PER_SEC),
                   (long long)(T0 + 240 * HEARTH_NS_PER_SEC), (long long)(T0 + DAY));
    pg_cluster_run(url, sql);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct hand_plan hand;
    hand.legs[0] =
        (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0, T0 + HOUR, hits, MANY_SERIES};
    (void)finish_plan(store, &hand, 1);
    assert_int_equal(hand.state.n_tombstones, 2);
    assert_int_equal(count_rows(store, &hand.plan), MANY_SERIES * 150 - 11 - 21);
    struct counter counter = {0};
    assert_ok(hearth_store_read_totals(STORE_SCOPE(store, TENANT, NULL), &hand.plan, add_total,
                                       &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 150 - 11 - 21);
    hearth_arena_release(&hand.arena);
    pg_cluster_run(url, "UPDATE hearth_data.tombstone SET series_ids = '{5,3}'");
    struct hearth_err err = HEARTH_ERR_INIT;
    int32_t service = 1;
    hearth_arena_init(&hand.arena, 0);
    assert_int_equal(hearth_store_read_state(STORE_SCOPE(store, TENANT, &hand.arena), &service, 1,
                                             &hand.state, &err),
                     HEARTH_CORRUPT);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

static void a_plan_of_another_generation_is_aborted(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    fill_many(store, url);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct hand_plan hand;
    struct hearth_leg_cost cost;
    struct counter counter = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    hand.legs[0] =
        (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0, T0 + HOUR, hits, MANY_SERIES};
    static const char *const changes[] = {
        "INSERT INTO hearth_data.roll_state VALUES (1, 0, 0, 0, 1), (2, 0, 0, 0, 1)",
        "UPDATE hearth_data.roll_state SET generation = 2 WHERE service_id = 1",
        "DELETE FROM hearth_data.roll_state WHERE service_id = 1",
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(changes); i++) {
        assert_int_equal(count_rows(store, finish_plan(store, &hand, 1)), MANY_SERIES * 150);
        pg_cluster_run(url, changes[i]);
        assert_int_equal(hearth_store_read(STORE_SCOPE(store, TENANT, NULL), &hand.plan, count_row,
                                           &counter, &err),
                         HEARTH_ABORTED);
        assert_int_equal(hearth_store_read_totals(STORE_SCOPE(store, TENANT, NULL), &hand.plan,
                                                  add_total, &counter, &err),
                         HEARTH_ABORTED);
        assert_int_equal(
            hearth_store_read_cost(STORE_SCOPE(store, TENANT, NULL), &hand.plan, &cost, &err),
            HEARTH_ABORTED);
        hearth_arena_release(&hand.arena);
    }
    /* Of another service: no matter. */
    (void)finish_plan(store, &hand, 1);
    pg_cluster_run(url, "UPDATE hearth_data.roll_state SET generation = 9 WHERE service_id = 2");
    assert_int_equal(count_rows(store, &hand.plan), MANY_SERIES * 150);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

/* ---- how PostgreSQL runs it ---- */

static void every_table_is_read_by_its_index_without_statistics(void **state)
{
    (void)state;
    char url[256], text[512], sql[1024];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.builder = false; /* it would count the late profiles by a scan */
    struct hearth_store *store = open_with_services(url, &options);
    ensure_days(store, url, T0 - 6 * DAY, T0 + DAY);
    static const char *const tables[] = {"roll_10m", "roll_1h", "roll_1d"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tables); i++) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO hearth_data.%s SELECT 1 + s %% 40, s, %lld + t * %lld, 1, 1, 1,"
                       " '{7}', NULL, decode('00' || repeat(md5((s * t)::text), 10), 'hex'),"
                       " array[decode('0000' || repeat(md5(s::text), 8), 'hex')]"
                       " FROM generate_series(0, 23) t, generate_series(1, 400) s",
                       tables[i], (long long)T0, i == 2 ? 0LL : (long long)HOUR);
        if (i == 2) {
            (void)snprintf(sql, sizeof sql,
                           "INSERT INTO hearth_data.roll_1d SELECT 1 + s %% 40, s, %lld - t * %lld,"
                           " 1, 1, 1, '{7}', NULL, '\\x00', array['\\x0000'::bytea]"
                           " FROM generate_series(0, 4) t, generate_series(1, 4000) s",
                           (long long)T0, (long long)DAY);
        }
        pg_cluster_run(url, sql);
    }
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.profile_late SELECT 1 + s %% 40, s, %lld + t, 0, 0, 1,"
        " 1, 1, '{7}', decode(repeat(md5((s * t)::text), 10), 'hex'),"
        " array['\\x00'::bytea] FROM generate_series(0, 99) t, generate_series(1, 400) s",
        (long long)T0);
    pg_cluster_run(url, sql);
    static struct hearth_series_hit hits[20];
    size_t n = 0; /* five series of each of four services */
    for (int32_t service = 1; service <= 4; service++) {
        for (int32_t s = 0; s < 5; s++) {
            hits[n++] = (struct hearth_series_hit){
                .series_id = service - 1 + 40 * (s + 1), .service_id = service, .n_types = 1};
        }
    }
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_LATE, T0, T0 + 10, hits, n};
    hand.legs[1] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_10M, T0, T0 + 10 * HOUR, hits, n};
    hand.legs[2] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_1H, T0, T0 + 10 * HOUR, hits, n};
    hand.legs[3] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_1D, T0 - 2 * DAY, T0 + DAY, hits, n};
    hand.legs[4] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_1H, T0, T0 + 2 * HOUR, hits, 5};
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    (void)finish_plan(store, &hand, 5);
    struct counter counter = {0};
    assert_ok(
        hearth_store_read(STORE_SCOPE(store, TENANT, NULL), &hand.plan, count_row, &counter, &err));
    assert_int_equal(counter.n_rows, 20 * (10 + 10 + 10 + 3) + 5 * 2);
    struct hearth_leg_cost costs[5];
    assert_ok(hearth_store_read_cost(STORE_SCOPE(store, TENANT, NULL), &hand.plan, costs, &err));
    assert_int_equal(costs[0].n_rows, 200);
    assert_int_equal(costs[3].n_rows, 60);
    assert_int_equal(costs[4].n_rows, 10);
    assert_true(costs[1].n_bytes > 200 * 200 && costs[1].n_bytes < 200 * 1000);
    hearth_arena_release(&hand.arena);
    close_store(store);
    wait_until_disconnected(url);
    pg_cluster_text(url,
                    "SELECT coalesce(string_agg(relname, ','), '') FROM pg_stat_user_tables"
                    " WHERE schemaname = 'hearth_data' AND seq_scan > 0 AND"
                    " relname ~ '^(roll_1|profile_late|profile_2|segment)'"
                    " AND n_live_tup + n_tup_ins > 0",
                    text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_without_a_leaf_are_empty),
        cmocka_unit_test(leftover_rows_of_compacted_hours_are_not_read),
        cmocka_unit_test(deleted_profiles_are_not_read),
        cmocka_unit_test(a_plan_of_another_generation_is_aborted),
        cmocka_unit_test(new_leaves_are_read_by_their_index_and_other_days_not_at_all),
        cmocka_unit_test(totals_are_read_without_the_heap),
        cmocka_unit_test(a_cut_connection_fails_the_read_and_doubles_no_row),
        cmocka_unit_test(a_read_that_is_run_again_finds_new_rows_times_and_days),
        cmocka_unit_test(a_visitor_that_has_enough_ends_the_query),
        cmocka_unit_test(cancellation_and_deadlines_reach_postgres),
        cmocka_unit_test(a_row_without_the_column_is_corrupt),
        cmocka_unit_test(sixty_four_columns_are_one_statement),
        cmocka_unit_test(every_table_is_read_by_its_index_without_statistics),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
