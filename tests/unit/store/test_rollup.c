/* What the builder builds, when, and what is asked of it: lag, lease, rebuilding, parts. */
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/store/background.h"

#include "build/builder.h"
#include "pg/store_state.h"
#include "rollup_fixture.h"

/* 10:00 of some day. */
#define TEN_NS (INT64_C(20002) * HEARTH_NS_PER_DAY + 10 * HEARTH_NS_PER_HOUR)

struct rig {
    char url[256];
    struct hearth_store *store;
    struct hearth_arena arena;
    struct synth_world world;
};

static struct hearth_store *open_building(const char *url)
{
    struct hearth_store_options options = rolling_options(10 * HEARTH_NS_PER_MS);
    return expect_ready(store_open_building(url, &options));
}

static void open_rig(struct rig *rig)
{
    pg_cluster_database(&g_cluster, rig->url);
    hearth_clock_fake(TEN_NS);
    rig->store = open_building(rig->url);
    hearth_arena_init(&rig->arena, 0);
    synth_world_init(&rig->world, 17, 60, 90, 200, 6, &rig->arena);
}

static void close_rig(struct rig *rig)
{
    store_close_soon(rig->store);
    hearth_arena_release(&rig->arena);
    hearth_clock_fake(0);
}

static void push(struct rig *rig, const char *service, const char *pod, int64_t ts_ns)
{
    push_profile(rig->store, &rig->world, service, pod, ts_ns, 20);
}

static void move_clock(struct rig *rig, int64_t to_ns)
{
    hearth_clock_fake(to_ns);
    int64_t target_ns = to_ns - MINUTE_NS;
    target_ns -= target_ns % BUCKET_NS;
    if (!rollup_wait(rig->url, target_ns)) {
        fail_msg("not built");
    }
}

static void expect_right(const struct rig *rig)
{
    long long wrong, all;
    assert_true(rollup_compare(rig->url, &wrong, &all));
    assert_int_equal(wrong, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ROLLUP_TIERS); i++) {
        int n;
        assert_int_equal(rollup_compare_stacks(rig->url, &ROLLUP_TIERS[i], 1000, &n), 0);
    }
}

static long long count(const struct rig *rig, const char *what)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM hearth_data.%s", what);
    return pg_cluster_int(rig->url, sql);
}

static void builds_a_bucket_when_its_grace_has_passed(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    push(&rig, "api", "pod-1", TEN_NS + MINUTE_NS);
    push(&rig, "api", "pod-2", TEN_NS + 2 * MINUTE_NS);
    push(&rig, "api", "pod-1", TEN_NS + 11 * MINUTE_NS); /* of the next */
    move_clock(&rig, TEN_NS + 10 * MINUTE_NS + 59 * HEARTH_NS_PER_SEC);
    assert_int_equal(count(&rig, "roll_10m"), 0);
    move_clock(&rig, TEN_NS + 11 * MINUTE_NS);
    /* Two series and the whole service. */
    assert_int_equal(count(&rig, "roll_10m WHERE series_id > 0 AND n_profiles = 1"), 2);
    assert_int_equal(count(&rig, "roll_10m WHERE series_id < 0 AND n_profiles = 2"), 1);
    assert_int_equal(count(&rig, "roll_10m WHERE (series_id < 0) = (members IS NULL)"), 0);
    assert_int_equal(count(&rig, "hour_totals WHERE n_profiles = 1"), 2);
    assert_int_equal(count(&rig, "roll_1h"), 0);
    expect_right(&rig);
    close_rig(&rig);
}

static void sums_hours_and_days_even_if_no_profile_follows_them(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    for (int i = 0; i < 6; i++) {
        push(&rig, "api", i % 2 == 0 ? "pod-1" : "pod-2", TEN_NS + i * BUCKET_NS);
        push(&rig, "db", "pod-1", TEN_NS + i * BUCKET_NS + 1);
        move_clock(&rig, TEN_NS + (i + 1) * BUCKET_NS + MINUTE_NS);
    }
    assert_int_equal(count(&rig, "roll_10m"), 6 * 4);
    assert_int_equal(count(&rig, "roll_1h"), 3 + 2);
    assert_int_equal(count(&rig, "hour_totals"), 3); /* one part of each series */
    assert_int_equal(count(&rig, "roll_1d"), 0);
    move_clock(&rig, TEN_NS + HEARTH_NS_PER_DAY);
    assert_int_equal(count(&rig, "roll_1d"), 3 + 2);
    expect_right(&rig);
    close_rig(&rig);
}

static void catches_up_on_profiles_of_days_ago(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    for (int i = 0; i < 40; i++) {
        push(&rig, "api", "pod-1", TEN_NS - 3 * HEARTH_NS_PER_DAY + i * 50 * MINUTE_NS);
    }
    move_clock(&rig, TEN_NS + MINUTE_NS);
    assert_true(count(&rig, "roll_1h") >= 60);
    assert_true(count(&rig, "roll_1d") >= 4);
    expect_right(&rig);
    close_rig(&rig);
}

/* One that is never heard of again is due beside one of which nothing was ever built. */
static void a_new_service_is_built_beside_a_silent_one(void **state)
{
    struct rig rig;
    (void)state;
    open_rig(&rig);
    push(&rig, "silent", "a", TEN_NS + MINUTE_NS);
    move_clock(&rig, TEN_NS + 72 * MINUTE_NS);
    push(&rig, "new", "a", TEN_NS + 73 * MINUTE_NS);
    move_clock(&rig, TEN_NS + 84 * MINUTE_NS);
    expect_right(&rig);
    assert_int_equal(count(&rig, "roll_10m r JOIN hearth_data.service s USING (service_id)"
                                 " WHERE s.name = 'new' AND r.series_id > 0"),
                     1);
    close_rig(&rig);
}

static void folds_late_profiles_and_keeps_their_parts_few(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    push(&rig, "api", "pod-1", TEN_NS);
    move_clock(&rig, TEN_NS + HEARTH_NS_PER_DAY);
    int64_t folded = hearth_metric_value(HEARTH_M_ROLL_FOLDED);
    for (int i = 1; i <= 25; i++) {
        push(&rig, "api", i % 5 == 0 ? "pod-2" : "pod-1", TEN_NS + i);
        assert_true(rollup_wait(rig.url, 0));
    }
    assert_int_equal(count(&rig, "profile_late"), 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_ROLL_FOLDED) - folded, 25);
    expect_right(&rig);
    static const char *const TABLES[] = {"roll_10m", "roll_1h", "roll_1d"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(TABLES); i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql,
                       "SELECT max(n) FROM (SELECT count(*) AS n FROM hearth_data.%s GROUP BY"
                       " service_id, series_id, t0, writer_id) k",
                       TABLES[i]);
        assert_in_range(pg_cluster_int(rig.url, sql), 1, 8);
    }
    assert_in_range(count(&rig, "hour_totals"), 2, 16);
    close_rig(&rig);
}

static void a_rebuild_gives_the_same_blocks(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    for (int i = 0; i < 30; i++) {
        push(&rig, i % 3 == 0 ? "db" : "api", "pod-1", TEN_NS + i * 7 * MINUTE_NS);
    }
    move_clock(&rig, TEN_NS + HEARTH_NS_PER_DAY);
    long long n_hours = count(&rig, "roll_1h");
    pg_cluster_run(rig.url, "UPDATE hearth_data.roll_1h SET n_profiles = 77");
    long long wrong, all;
    assert_true(rollup_compare(rig.url, &wrong, &all));
    assert_int_equal(wrong, n_hours); /* so the comparison can fail */
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str tenant = HEARTH_STR("anonymous");
    assert_int_equal(hearth_store_rebuild(rig.store, tenant, 999, TEN_NS, &err), HEARTH_NOT_FOUND);
    /* From before all that was pushed: there is nothing that could not be built again. */
    assert_int_equal(
        hearth_store_rebuild(rig.store, tenant, 0, TEN_NS - 30 * HEARTH_NS_PER_DAY, &err),
        HEARTH_OK);
    assert_true(rollup_wait(rig.url, TEN_NS + HEARTH_NS_PER_DAY - BUCKET_NS));
    assert_int_equal(count(&rig, "roll_1h"), n_hours);
    expect_right(&rig);
    close_rig(&rig);
}

static void the_background_state_names_the_builder_and_its_work(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    push(&rig, "api", "pod-1", TEN_NS);
    move_clock(&rig, TEN_NS + 11 * MINUTE_NS);
    struct hearth_background_state now;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_background_state(rig.store, &rig.arena, &now, &err), HEARTH_OK);
    assert_true(now.has_builder && now.builder_host.n > 0);
    assert_int_equal(now.lease_token, 1);
    assert_int_equal(now.lag_ns, 0);
    assert_int_equal(now.oldest_profile_ns, TEN_NS);
    bool has_blocks = false;
    for (size_t i = 0; i < now.n_tables; i++) {
        has_blocks = has_blocks || (hearth_str_eq_c(now.tables[i].table, "roll_10m") &&
                                    now.tables[i].n_bytes > 8192);
    }
    assert_true(has_blocks);
    /* Nobody builds while an ingest transaction holds the lock: that is the lag. */
    push(&rig, "api", "pod-1", TEN_NS + 12 * MINUTE_NS);
    PGconn *ingest = pg_cluster_connect(rig.url);
    PQclear(PQexec(ingest, "BEGIN; SELECT pg_advisory_xact_lock_shared(" HEARTH_LOCK_INGEST ")"));
    hearth_clock_fake(TEN_NS + 50 * MINUTE_NS);
    (void)usleep(300000);
    assert_int_equal(hearth_store_background_state(rig.store, &rig.arena, &now, &err), HEARTH_OK);
    assert_int_equal(now.lag_ns, 29 * MINUTE_NS); /* it was due at 10:21 */
    PQfinish(ingest);
    move_clock(&rig, TEN_NS + 50 * MINUTE_NS);
    expect_right(&rig);
    close_rig(&rig);
}

/* The hour is old and its first profile is not: there is nothing to be behind with. */
static void a_service_that_just_began_is_not_behind(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    PGconn *ingest = pg_cluster_connect(rig.url);
    PQclear(PQexec(ingest, "BEGIN; SELECT pg_advisory_xact_lock_shared(" HEARTH_LOCK_INGEST ")"));
    hearth_clock_fake(TEN_NS + 44 * MINUTE_NS);
    push(&rig, "young", "pod-1", TEN_NS + 43 * MINUTE_NS);
    struct hearth_background_state now;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_background_state(rig.store, &rig.arena, &now, &err), HEARTH_OK);
    assert_int_equal(now.lag_ns, 0);

    /* A bucket of the first hour that waits is behind from its own end on. Of another service: the builder may have
     * raised the watermark of this one, and its profile would be late. */
    push(&rig, "older", "pod-1", TEN_NS + 27 * MINUTE_NS);
    assert_int_equal(hearth_store_background_state(rig.store, &rig.arena, &now, &err), HEARTH_OK);
    assert_int_equal(now.lag_ns, 13 * MINUTE_NS); /* it was due at 10:31 */
    PQfinish(ingest);
    close_rig(&rig);
}

static void another_server_takes_over_at_once_when_one_closes(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    push(&rig, "api", "pod-1", TEN_NS);
    move_clock(&rig, TEN_NS + 11 * MINUTE_NS);
    struct hearth_store *second = open_building(rig.url);
    push(&rig, "api", "pod-1", TEN_NS + 12 * MINUTE_NS);
    store_close_soon(rig.store);
    rig.store = second;
    int64_t from_ns = hearth_clock_mono_ns();
    move_clock(&rig, TEN_NS + 21 * MINUTE_NS);
    assert_true(hearth_clock_mono_ns() - from_ns <
                18 * HEARTH_NS_PER_SEC); /* it expires after 30, renewed each 10 */
    assert_int_equal(pg_cluster_int(rig.url, "SELECT token FROM hearth_data.lease"), 2);
    expect_right(&rig);
    close_rig(&rig);
}

static void sums_beyond_64_bits_are_split_into_parts(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    for (int i = 0; i < 3; i++) {
        push(&rig, "api", "pod-1", TEN_NS + i);
    }
    /* Columns of one sample: id 0, value 2^62; twice that does not fit. */
    pg_cluster_run(rig.url,
                   "UPDATE hearth_data.profile SET n_samples = 1, ids = '\\x0100', totals ="
                   " '{4611686018427387904,4611686018427387904}', vals ="
                   " '{\"\\\\x00808080808080808040\",\"\\\\x0101\"}'");
    move_clock(&rig, TEN_NS + 2 * HEARTH_NS_PER_HOUR);
    assert_int_equal(count(&rig, "roll_10m"),
                     6); /* three parts of the series, three of the service */
    assert_int_equal(count(&rig, "roll_1h"), 6);
    long long wrong, all;
    assert_true(rollup_compare(rig.url, &wrong, &all));
    assert_int_equal(wrong, 0);
    close_rig(&rig);
}

int main(void)
{
    hearth_log_set_level(HEARTH_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_a_bucket_when_its_grace_has_passed),
        cmocka_unit_test(sums_hours_and_days_even_if_no_profile_follows_them),
        cmocka_unit_test(catches_up_on_profiles_of_days_ago),
        cmocka_unit_test(a_new_service_is_built_beside_a_silent_one),
        cmocka_unit_test(folds_late_profiles_and_keeps_their_parts_few),
        cmocka_unit_test(a_rebuild_gives_the_same_blocks),
        cmocka_unit_test(the_background_state_names_the_builder_and_its_work),
        cmocka_unit_test(a_service_that_just_began_is_not_behind),
        cmocka_unit_test(another_server_takes_over_at_once_when_one_closes),
        cmocka_unit_test(sums_beyond_64_bits_are_split_into_parts),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
