/* Days past their time are dropped, shorter tenants' rows deleted, series that ended swept; and
 * profiles are refused while there is no disk for them. */
#include "catalog/settings_cache.h"
#include "housekeeping.h"
#include "pg/store_state.h"
#include "session/disk.h"
#include "session/partitions.h"
#include "step_fixture.h"

#define DAY HEARTH_NS_PER_DAY

/* When the tests began: a day may end while they run. */
static int64_t g_began_ns;

/* Five o'clock, n days ago. */
static int64_t days_ago(int n)
{
    return hearth_day_of(g_began_ns) * DAY - n * DAY + 5 * HOUR;
}

/* To keep what it would be at noon: the same days go whatever the time is. 0: for ever. */
static int64_t for_days(int n)
{
    return n == 0 ? 0 : n * DAY + g_began_ns % DAY - DAY / 2;
}

/* As if due: the next call looks at everything. */
static void step(struct fixture *fix)
{
    struct hearth_retention_progress *at = &fix->store->retention;
    at->next_pass_mono_ns = at->next_rows_mono_ns = at->next_sweep_mono_ns = 0;
    bool more = true;
    for (int i = 0; i < 1000 && more; i++) {
        assert_ok(hearth_step_retention(&fix->builder, &more, &err));
    }
    assert_false(more);
}

static void set_built(const struct fixture *fix, int64_t built_to_ns)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.roll_state SELECT service_id, %lld, %lld, -1, 1 FROM"
                   " hearth_data.service ON CONFLICT (service_id) DO UPDATE SET built_to = %lld",
                   (long long)built_to_ns, (long long)built_to_ns, (long long)built_to_ns);
    pg_cluster_run(fix->url, sql);
}

/* Leaves of a day that neither a push nor a roll-up has made here. */
static void make_leaves(struct fixture *fix, int64_t ts_ns)
{
    assert_ok(hearth_partitions_ensure(fix->store, &fix->builder.pg, HEARTH_LEAVES_ALL,
                                       hearth_day_of(ts_ns), &err));
}

static bool has_leaf(const struct fixture *fix, const char *table, int64_t ts_ns)
{
    char leaf[64], sql[160];
    hearth_partition_name(table, hearth_day_of(ts_ns), leaf);
    (void)snprintf(sql, sizeof sql, "SELECT (to_regclass('%s') IS NOT NULL)::int", leaf);
    return pg_cluster_int(fix->url, sql) == 1;
}

static void set_defaults(struct fixture *fix, int raw, int m10, int h1, int d1)
{
    fix->store->options.retain_raw_ns = for_days(raw);
    fix->store->options.retain_10m_ns = for_days(m10);
    fix->store->options.retain_1h_ns = for_days(h1);
    fix->store->options.retain_1d_ns = for_days(d1);
}

static void expired_days_are_dropped_table_by_table(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    set_defaults(&fix, 2, 3, 4, 5);
    fix.store->options.retain_spans_ns = for_days(1);
    for (int n = 0; n <= 7; n++) {
        push(fix.store, 1, 1, days_ago(n));
        make_leaves(&fix, days_ago(n));
    }
    set_built(&fix, hearth_clock_wall_ns());
    step(&fix);
    static const struct {
        const char *table;
        int kept;
    } tables[] = {{"profile", 2},     {"segment", 2},   {"roll_10m", 3},   {"roll_1h", 4},
                  {"hour_totals", 4}, {"roll_1d", 5},   {"dict_chunk", 5}, {"series_hour", 5},
                  {"span_group", 1},  {"span_index", 2}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tables); i++) {
        for (int n = 0; n <= 7; n++) {
            assert_int_equal(has_leaf(&fix, tables[i].table, days_ago(n)), n <= tables[i].kept);
        }
    }
    close_fixture(&fix);
}

static void a_retention_of_0_keeps_profiles_forever(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    set_defaults(&fix, 0, 0, 0, 0);
    push(fix.store, 1, 1, days_ago(2000));
    set_built(&fix, hearth_clock_wall_ns());
    step(&fix);
    assert_true(has_leaf(&fix, "profile", days_ago(2000)));
    assert_int_equal(count(&fix, "profile"), 1);
    close_fixture(&fix);
}

static void profiles_stay_until_their_roll_ups_are_built(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    set_defaults(&fix, 1, 10, 10, 10);
    push(fix.store, 1, 1, days_ago(3));
    make_leaves(&fix, days_ago(3));
    step(&fix); /* no row of roll_state: nothing is built */
    assert_true(has_leaf(&fix, "profile", days_ago(3)));
    set_built(&fix, days_ago(3) - HOUR);
    step(&fix);
    assert_true(has_leaf(&fix, "profile", days_ago(3)));
    set_built(&fix, days_ago(3) + 2 * HOUR);
    step(&fix);
    assert_false(has_leaf(&fix, "profile", days_ago(3)));
    assert_true(has_leaf(&fix, "roll_1h", days_ago(3)));
    close_fixture(&fix);
}

static void a_drop_that_was_begun_is_finished(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, days_ago(3));
    make_leaves(&fix, days_ago(3));
    char leaf[64], sql[256];
    hearth_partition_name("roll_1d", hearth_day_of(days_ago(3)), leaf);
    (void)snprintf(sql, sizeof sql, "ALTER TABLE %s RENAME TO drop_%s", leaf,
                   leaf + strlen("hearth_data."));
    pg_cluster_run(fix.url, sql);
    step(&fix);
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT count(*) FROM pg_class WHERE relname LIKE 'drop%'"), 0);
    close_fixture(&fix);
}

static void push_of_tenant(struct hearth_store *store, struct hearth_str tenant, int64_t ts_ns)
{
    struct made_series made;
    struct hearth_series_ref ref;
    assert_ok(
        hearth_store_resolve_series(store, tenant, make_series(&made, 1, 1), 1, ts_ns, &ref, &err));
}

static void tenants_keep_their_settings(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_str brief = HEARTH_STR("brief");
    set_defaults(&fix, 6, 6, 6, 6);
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_store_retention_set(fix.store, brief, HEARTH_STR("retain-raw"), DAY, &err),
        HEARTH_NOT_FOUND);
    for (int n = 0; n <= 4; n++) {
        push(fix.store, 1, 1, days_ago(n));
        push_of_tenant(fix.store, brief, days_ago(n));
        make_leaves(&fix, days_ago(n));
    }
    assert_int_equal(
        hearth_store_retention_set(fix.store, brief, HEARTH_STR("retain-all"), DAY, &err),
        HEARTH_INVALID_ARGUMENT);
    static const char *const names[] = {"retain-raw", "retain-10m", "retain-1h", "retain-1d"};
    for (size_t i = 0; i < 4; i++) {
        assert_ok(hearth_store_retention_set(fix.store, brief, hearth_str_c(names[i]), for_days(2),
                                             &err));
    }
    struct hearth_retention kept;
    hearth_store_retention(fix.store, brief, &kept);
    assert_int_equal(kept.profiles_ns, for_days(2));
    assert_int_equal(kept.roll_1d_ns, for_days(2));
    hearth_store_retention(fix.store, TENANT, &kept);
    assert_int_equal(kept.profiles_ns, for_days(6));
    pg_cluster_run(fix.url,
                   "INSERT INTO hearth_data.roll_1h SELECT h.service_id, h.series_id, h.hour *"
                   " 3600000000000, 1, 1, 1, '{1}', NULL, '', '{}' FROM hearth_data.series_hour h");
    set_built(&fix, hearth_clock_wall_ns());
    step(&fix);
    assert_int_equal(count(&fix, "roll_1h JOIN hearth_data.service USING (service_id) JOIN"
                                 " hearth_data.tenant t USING (tenant_id) WHERE t.name = 'brief'"),
                     2);
    assert_int_equal(count(&fix, "roll_1h JOIN hearth_data.service USING (service_id) JOIN"
                                 " hearth_data.tenant t USING (tenant_id) WHERE t.name <> 'brief'"),
                     5);
    assert_true(has_leaf(&fix, "roll_1h", days_ago(4)));
    /* And the server's again. */
    assert_ok(hearth_store_retention_set(fix.store, brief, HEARTH_STR("retain-raw"), -1, &err));
    hearth_store_retention(fix.store, brief, &kept);
    assert_int_equal(kept.profiles_ns, for_days(6));
    close_fixture(&fix);
}

static void a_changed_setting_is_applied_after_all_servers_have_read_it(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    set_defaults(&fix, 6, 6, 6, 6);
    push(fix.store, 1, 1, days_ago(4));
    set_built(&fix, hearth_clock_wall_ns());
    step(&fix);
    struct hearth_str name = HEARTH_STR("retain-raw");
    assert_ok(hearth_store_retention_set(fix.store, TENANT, name, DAY, &err));
    step(&fix);
    assert_true(has_leaf(&fix, "profile", days_ago(4)));
    fix.store->retention.settled_mono_ns = 0; /* a minute later */
    step(&fix);
    assert_false(has_leaf(&fix, "profile", days_ago(4)));
    close_fixture(&fix);
}

static void raised_retention_begins_where_the_shorter_one_has_deleted(void **state)
{
    (void)state;
    struct fixture fix;
    struct hearth_retention kept;
    struct hearth_str name = HEARTH_STR("retain-10m"), other = HEARTH_STR("other");
    open_fixture(&fix);
    set_defaults(&fix, 2, 2, 4, 6);
    push(fix.store, 1, 1, days_ago(0));
    push_of_tenant(fix.store, other, days_ago(0));
    step(&fix);
    hearth_store_retention(fix.store, TENANT, &kept);
    assert_int_equal(kept.roll_10m_from_ns, 0);

    /* At once, before the builder has noticed it, and of one tenant only. */
    assert_ok(hearth_store_retention_set(fix.store, TENANT, name, 5 * DAY, &err));
    int64_t deleted_ns = hearth_clock_wall_ns() - for_days(2);
    for (int i = 0; i < 2; i++) {
        hearth_store_retention(fix.store, TENANT, &kept);
        assert_in_range(kept.roll_10m_from_ns, deleted_ns - 60 * HEARTH_NS_PER_SEC,
                        deleted_ns + 60 * HEARTH_NS_PER_SEC);
        assert_int_equal(kept.roll_1h_from_ns, 0);
        hearth_store_retention(fix.store, other, &kept);
        assert_int_equal(kept.roll_10m_from_ns, 0);
        fix.store->retention.settled_mono_ns = 0;
        step(&fix);
        assert_ok(hearth_settings_refresh(fix.store, &fix.builder.pg, &err));
    }
    assert_int_equal(count(&fix, "tenant_setting WHERE name = 'emptied-10m'"), 1);

    /* The server's, for those without settings. */
    set_defaults(&fix, 2, 2, 0, 6);
    hearth_store_retention(fix.store, other, &kept);
    assert_in_range(kept.roll_1h_from_ns, 1, hearth_clock_wall_ns() - 3 * DAY);
    hearth_store_retention(fix.store, TENANT, &kept);
    assert_in_range(kept.roll_1h_from_ns, 1, hearth_clock_wall_ns() - 3 * DAY);

    /* A retention that deletes as much again needs no record. */
    assert_ok(hearth_store_retention_set(fix.store, TENANT, name, DAY, &err));
    hearth_store_retention(fix.store, TENANT, &kept);
    assert_int_equal(kept.roll_10m_from_ns, 0);
    step(&fix);
    fix.store->retention.settled_mono_ns = 0;
    step(&fix);
    assert_int_equal(count(&fix, "tenant_setting WHERE name = 'emptied-10m'"), 0);
    close_fixture(&fix);
}

/* ---- sweep ---- */

static void ended_series_are_swept_with_the_rows_that_only_they_used(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    set_defaults(&fix, 2, 2, 2, 2);
    push(fix.store, 1, 1, days_ago(5)); /* ended */
    push(fix.store, 1, 2, days_ago(1)); /* went on */
    push(fix.store, 2, 5, days_ago(6)); /* the only one of its service */
    set_built(&fix, hearth_clock_wall_ns());
    step(&fix);
    assert_int_equal(count(&fix, "series"), 1);
    assert_int_equal(count(&fix, "service"), 1);
    assert_int_equal(count(&fix, "label_pair WHERE value IN ('pod-1', 'pod-5', 'r-1')"), 0);
    assert_int_equal(count(&fix, "label_pair WHERE value IN ('pod-2', 'r-2')"), 2);
    assert_int_equal(count(&fix, "roll_state"), 1);
    long long epoch = pg_cluster_int(fix.url, "SELECT epoch FROM hearth_data.catalog_clock");
    assert_true(epoch > 0);
    step(&fix); /* nothing ended since */
    assert_int_equal(pg_cluster_int(fix.url, "SELECT epoch FROM hearth_data.catalog_clock"), epoch);
    /* It comes back under another id, and is found. */
    push(fix.store, 1, 1, days_ago(0));
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    close_fixture(&fix);
}

struct pusher {
    pthread_t thread;
    struct hearth_store *store;
    int64_t ts_ns;
};

static void *push_again(void *arg)
{
    struct pusher *pusher = arg;
    push(pusher->store, 1, 1, pusher->ts_ns);
    return NULL;
}

static void *sweep_now(void *arg)
{
    struct fixture *fix = arg;
    bool done = false;
    fix->store->retention.sweep_service = 0;
    assert_ok(hearth_sweep(&fix->builder, &done, &err));
    return NULL;
}

/*
 * The sweep has seen that the series has no hour; before it gets the clock's lock, the series gets
 * one (from a server that has its ids by heart). Or the other way round. Either way the profile is
 * found.
 */
static void race_with_sweep(bool push_first)
{
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    push(other, 1, 1, days_ago(1));
    push(other, 1, 2, days_ago(0));
    int64_t before = resolve_one(other, TENANT, 1, 1, days_ago(1)).series_id;
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.series_hour h USING hearth_data.series s WHERE"
                            " h.series_id = s.series_id AND EXISTS (SELECT FROM"
                            " hearth_data.label_pair p WHERE p.value = 'pod-1' AND p.pair_id ="
                            " ANY (s.pair_ids))");
    PGconn *holder = pg_cluster_connect(fix.url);
    PQclear(PQexec(holder, "BEGIN; SELECT FROM hearth_data.catalog_clock FOR UPDATE"));
    struct pusher pusher = {.store = other, .ts_ns = days_ago(0)};
    pthread_t sweeper;
    for (int i = 0; i < 2; i++) {
        if ((i == 0) == push_first) {
            assert_int_equal(pthread_create(&pusher.thread, NULL, push_again, &pusher), 0);
        } else {
            assert_int_equal(pthread_create(&sweeper, NULL, sweep_now, &fix), 0);
        }
        wait_until_blocked(fix.url, "%", i + 1);
    }
    PQclear(PQexec(holder, "ROLLBACK"));
    PQfinish(holder);
    (void)pthread_join(pusher.thread, NULL);
    (void)pthread_join(sweeper, NULL);
    int64_t after = resolve_one(other, TENANT, 1, 1, days_ago(0)).series_id;
    assert_int_equal(after == before, push_first);
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    assert_int_equal(count(&fix, "profile p LEFT JOIN hearth_data.series s USING (service_id,"
                                 " series_id) WHERE s.series_id IS NULL"),
                     push_first ? 0 : 1); /* the old one of the day before, whose hour was gone */
    close_store(other);
    close_fixture(&fix);
}

static void a_series_that_gets_an_hour_before_the_sweep_has_the_lock_stays(void **state)
{
    (void)state;
    race_with_sweep(true);
}

static void a_series_that_gets_an_hour_after_the_sweep_gets_another_id(void **state)
{
    (void)state;
    race_with_sweep(false);
}

/* A server that dropped nothing itself: its index forgets the hours, and a series that returns after
 * that is found again. */
static void a_trimmed_series_that_returns_is_found(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, days_ago(5));
    push(fix.store, 1, 2, days_ago(0));
    assert_int_equal(count_hits(fix.store, TENANT, "{}", 0, INT64_MAX), 4);
    assert_ok(hearth_partitions_drop(fix.store, &fix.builder.pg, "series_hour",
                                     hearth_day_of(days_ago(5)), &err));
    struct hearth_housekeeping times = {0};
    assert_ok(hearth_housekeeping_run(fix.store, &fix.builder.pg, &times, &err));
    assert_int_equal(count_hits(fix.store, TENANT, "{}", 0, INT64_MAX), 2);
    push(fix.store, 1, 1, days_ago(0));
    assert_int_equal(count_hits(fix.store, TENANT, "{}", 0, INT64_MAX), 4);
    close_fixture(&fix);
}

/* ---- disk ---- */

static enum hearth_status try_push(struct hearth_store *store, struct hearth_err *err)
{
    struct store_push *push =
        store_push_make(store, &g_world, "api", hearth_clock_wall_ns(), 10, 0, err);
    assert_non_null(push);
    store_push_submit(push);
    assert_true(store_push_wait(push));
    enum hearth_status status = push->status;
    *err = push->err;
    store_push_free(push);
    return status;
}

static void look_at_disk(struct fixture *fix)
{
    fix->store->disk.next_sizes_mono_ns = 0;
    assert_ok(hearth_disk_look(fix->store, &fix->builder.pg, &err));
}

static void over_quota_profiles_are_refused_and_queries_are_still_answered(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(try_push(fix.store, &err), HEARTH_OK);
    look_at_disk(&fix);
    int64_t n = hearth_metric_value(HEARTH_M_DISK_BYTES);
    assert_true(n > 100000);
    fix.store->options.max_disk_bytes = n - 1;
    look_at_disk(&fix);
    assert_int_equal(try_push(fix.store, &err), HEARTH_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.msg, "max-disk-bytes"));
    assert_int_equal(count_hits(fix.store, TENANT, "{}", 0, INT64_MAX), 2);
    fix.store->options.max_disk_bytes = n + n / 100; /* under it, but barely */
    look_at_disk(&fix);
    assert_int_equal(try_push(fix.store, &err), HEARTH_RESOURCE_EXHAUSTED);
    fix.store->options.max_disk_bytes = n * 2;
    look_at_disk(&fix);
    assert_int_equal(try_push(fix.store, &err), HEARTH_OK);
    close_fixture(&fix);
}

static void with_little_disk_left_profiles_are_refused(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_err err = HEARTH_ERR_INIT;
    fix.store->options.min_free_disk_bytes = INT64_MAX / 2;
    look_at_disk(&fix); /* an external database: its disk is not ours to see */
    assert_int_equal(try_push(fix.store, &err), HEARTH_OK);
    fix.store->options.data_dir = "/tmp";
    look_at_disk(&fix);
    assert_int_equal(try_push(fix.store, &err), HEARTH_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.msg, "min-free-disk-bytes"));
    fix.store->options.min_free_disk_bytes = 1;
    look_at_disk(&fix);
    assert_int_equal(try_push(fix.store, &err), HEARTH_OK);
    close_fixture(&fix);
}

int main(void)
{
    g_began_ns = hearth_clock_wall_ns();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expired_days_are_dropped_table_by_table),
        cmocka_unit_test(a_retention_of_0_keeps_profiles_forever),
        cmocka_unit_test(profiles_stay_until_their_roll_ups_are_built),
        cmocka_unit_test(a_drop_that_was_begun_is_finished),
        cmocka_unit_test(tenants_keep_their_settings),
        cmocka_unit_test(a_changed_setting_is_applied_after_all_servers_have_read_it),
        cmocka_unit_test(raised_retention_begins_where_the_shorter_one_has_deleted),
        cmocka_unit_test(ended_series_are_swept_with_the_rows_that_only_they_used),
        cmocka_unit_test(a_series_that_gets_an_hour_before_the_sweep_has_the_lock_stays),
        cmocka_unit_test(a_series_that_gets_an_hour_after_the_sweep_gets_another_id),
        cmocka_unit_test(a_trimmed_series_that_returns_is_found),
        cmocka_unit_test(over_quota_profiles_are_refused_and_queries_are_still_answered),
        cmocka_unit_test(with_little_disk_left_profiles_are_refused),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
