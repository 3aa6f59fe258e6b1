/* Hours and days that were left out are written before their profiles are dropped. */
#include "hearth/base/log.h"
#include "hearth/store/background.h"

#include "rollup_fixture.h"
#include "session/partitions.h"
#include "step_fixture.h"

#define DAY HEARTH_NS_PER_DAY

static int64_t g_day_ns;

static void set_absent(const struct fixture *fix, const char *ranges)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "UPDATE hearth_data.roll_state SET absent = ARRAY[%s]::int8[]",
                   ranges);
    pg_cluster_run(fix->url, sql);
}

/* As if all hours of the day had been left out, and the day; flags: 3 with the whole service. */
static void leave_out_the_day(const struct fixture *fix, int flags)
{
    char sql[512];
    const char *series = (flags & 1) != 0 ? "" : " AND series_id > 0";
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.roll_1h WHERE t0 < %lld%s;"
                   " DELETE FROM hearth_data.roll_1d WHERE t0 < %lld%s",
                   (long long)(g_day_ns + DAY), series, (long long)(g_day_ns + DAY), series);
    pg_cluster_run(fix->url, sql);
    (void)snprintf(sql, sizeof sql, "3600000000000, %lld, %lld, %d, 86400000000000, %lld, %lld, %d",
                   (long long)g_day_ns, (long long)(g_day_ns + DAY), flags, (long long)g_day_ns,
                   (long long)(g_day_ns + DAY), flags);
    set_absent(fix, sql);
}

static void open_day(struct fixture *fix)
{
    open_fixture(fix);
    g_day_ns = the_day() * DAY;
    push_a_day(fix, g_day_ns);
    push_a_day(fix, g_day_ns + DAY);
    build(fix);
    fix->store->options.retain_raw_ns = DAY;
    pg_cluster_run(fix->url, "CREATE TABLE hours AS SELECT * FROM hearth_data.roll_1h;"
                             "CREATE TABLE days AS SELECT * FROM hearth_data.roll_1d");
}

static void fill(struct fixture *fix)
{
    bool more = true;
    for (int i = 0; i < 100 && more; i++) {
        more = false;
        fix->builder.next_fill_mono_ns = 0;
        assert_ok(hearth_step_fill(&fix->builder, &more, &err));
    }
    assert_false(more);
}

static bool has_profiles(const struct fixture *fix)
{
    char leaf[64], sql[160];
    hearth_partition_name("profile", hearth_day_of(g_day_ns), leaf);
    (void)snprintf(sql, sizeof sql, "SELECT (to_regclass('%s') IS NOT NULL)::int", leaf);
    return pg_cluster_int(fix->url, sql) == 1;
}

/* Blocks that are not as they were when everything had been built; parts may differ. */
static long long count_changed(const struct fixture *fix, const char *table, const char *kept)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM hearth_data.%s a FULL JOIN %s b USING (service_id,"
                   " series_id, t0, writer_id) WHERE (a.n_profiles, a.totals, a.members, a.ids,"
                   " a.vals) IS DISTINCT FROM (b.n_profiles, b.totals, b.members, b.ids, b.vals)",
                   table, kept);
    return pg_cluster_int(fix->url, sql);
}

static void expect_all_blocks(const struct fixture *fix)
{
    assert_int_equal(count_changed(fix, "roll_1h", "hours"), 0);
    assert_int_equal(count_changed(fix, "roll_1d", "days"), 0);
    assert_int_equal(count(fix, "roll_state WHERE absent <> '{}'"), 0);
}

static void profiles_are_dropped_only_after_absent_hours_and_days_are_written(void **state)
{
    (void)state;
    for (int flags = 2; flags <= 3; flags++) {
        for (int compacted = 0; compacted < 2; compacted++) {
            struct fixture fix;
            open_day(&fix);
            leave_out_the_day(&fix, flags);
            if (compacted) {
                compact_hours(&fix);
            }
            assert_true(count_changed(&fix, "roll_1h", "hours") >= 12);
            long long generation =
                pg_cluster_int(fix.url, "SELECT generation FROM hearth_data.roll_state");
            retain(&fix);
            assert_true(compacted || has_profiles(&fix));
            fill(&fix);
            expect_all_blocks(&fix);
            assert_true(pg_cluster_int(fix.url, "SELECT generation FROM hearth_data.roll_state") >
                        generation);
            retain(&fix);
            assert_false(has_profiles(&fix));
            expect_all_blocks(&fix);
            close_fixture(&fix);
        }
    }
}

static void days_that_do_not_expire_yet_stay_absent(void **state)
{
    (void)state;
    struct fixture fix;
    open_day(&fix);
    leave_out_the_day(&fix, 3);
    fix.store->options.retain_raw_ns = 7 * DAY;
    fill(&fix);
    assert_int_equal(count(&fix, "roll_state WHERE absent <> '{}'"), 1);
    fix.store->options.retain_raw_ns = 0; /* for ever */
    fill(&fix);
    assert_int_equal(count(&fix, "roll_state WHERE absent <> '{}'"), 1);
    assert_true(count_changed(&fix, "roll_1h", "hours") > 0);

    /* Nor does a day that is to be built again. */
    fix.store->options.retain_raw_ns = DAY;
    char sql[128];
    (void)snprintf(sql, sizeof sql, "UPDATE hearth_data.roll_state SET built_to = %lld",
                   (long long)(g_day_ns + DAY / 2));
    pg_cluster_run(fix.url, sql);
    fill(&fix);
    assert_int_equal(count(&fix, "roll_state WHERE absent <> '{}'"), 1);
    close_fixture(&fix);
}

static void only_roll_ups_that_outlive_their_profiles_are_written(void **state)
{
    (void)state;
    struct fixture fix;
    open_day(&fix);
    leave_out_the_day(&fix, 3);
    fix.store->options.retain_1h_ns = DAY;
    fix.builder.max_sum_bytes = 1; /* each sum is written in parts, which are merged */
    fill(&fix);
    assert_int_equal(count_changed(&fix, "roll_1d", "days"), 0);
    assert_true(count_changed(&fix, "roll_1h", "hours") > 0);
    assert_int_equal(count(&fix, "roll_state WHERE absent <> '{}'"), 0);
    close_fixture(&fix);

    open_day(&fix);
    leave_out_the_day(&fix, 3);
    fix.store->options.retain_1h_ns = fix.store->options.retain_1d_ns = DAY;
    fill(&fix);
    assert_true(count_changed(&fix, "roll_1d", "days") > 0);
    assert_int_equal(count(&fix, "roll_state WHERE absent <> '{}'"), 0);
    retain(&fix);
    assert_false(has_profiles(&fix));
    close_fixture(&fix);
}

/* The totals of hours end with the hours, so they may be gone when the day is written. */
static void a_day_is_written_after_its_hours_have_expired(void **state)
{
    (void)state;
    struct fixture fix;
    open_day(&fix);
    leave_out_the_day(&fix, 3);
    fix.store->options.retain_1h_ns = DAY;
    char of_day[64];
    (void)snprintf(of_day, sizeof of_day, "hour_totals WHERE t0 < %lld",
                   (long long)(g_day_ns + DAY));
    retain(&fix);
    assert_int_equal(count(&fix, of_day), 0);
    assert_true(has_profiles(&fix));
    fill(&fix);
    retain(&fix);
    assert_false(has_profiles(&fix));
    assert_int_equal(count_changed(&fix, "roll_1d", "days"), 0);
    close_fixture(&fix);
}

/* A deletion builds the day again; until then it must not find other days than when it began. */
static void a_day_waits_for_deletions_of_its_service(void **state)
{
    (void)state;
    struct fixture fix;
    open_day(&fix);
    leave_out_the_day(&fix, 3);
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.tombstone (service_id, erasure_id, from_ts,"
                            " to_ts, series_ids) SELECT service_id, 5, 0, 1, '{1}' FROM"
                            " hearth_data.roll_state");
    fill(&fix);
    assert_int_equal(count(&fix, "roll_state WHERE absent <> '{}'"), 1);
    retain(&fix);
    assert_true(has_profiles(&fix));
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.tombstone");
    fill(&fix);
    expect_all_blocks(&fix);
    close_fixture(&fix);
}

/* Compaction leaves expired profiles out of segments, unless they are still needed. */
static void expired_hours_that_are_absent_are_compacted(void **state)
{
    (void)state;
    struct fixture fix;
    open_day(&fix);
    leave_out_the_day(&fix, 3);
    fix.store->options.retain_raw_ns = HOUR;
    compact_hours(&fix);
    fill(&fix);
    expect_all_blocks(&fix);
    close_fixture(&fix);
}

/* The profiles of a tenant with a shorter retention are deleted as rows, not with a leaf. */
static void a_tenant_with_a_shorter_retention_keeps_its_segments_until_then(void **state)
{
    (void)state;
    struct fixture fix;
    open_day(&fix);
    leave_out_the_day(&fix, 3);
    compact_hours(&fix);
    fix.store->options.retain_raw_ns = 0;
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.tenant (tenant_id, name, version) OVERRIDING"
                            " SYSTEM VALUE VALUES (77, 'other', 1);"
                            " INSERT INTO hearth_data.tenant_setting (tenant_id, name, value)"
                            " SELECT tenant_id, 'retain-raw', 86400000000000 FROM"
                            " hearth_data.tenant WHERE tenant_id <> 77");
    char of_day[64];
    (void)snprintf(of_day, sizeof of_day, "segment WHERE t0 < %lld", (long long)(g_day_ns + DAY));
    long long n = count(&fix, of_day);
    assert_true(n > 0);
    retain(&fix);
    assert_int_equal(count(&fix, of_day), n);
    set_absent(&fix, "");
    retain(&fix);
    assert_int_equal(count(&fix, of_day), 0);
    close_fixture(&fix);
}

int main(void)
{
    hearth_log_set_level(HEARTH_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_dropped_only_after_absent_hours_and_days_are_written),
        cmocka_unit_test(days_that_do_not_expire_yet_stay_absent),
        cmocka_unit_test(only_roll_ups_that_outlive_their_profiles_are_written),
        cmocka_unit_test(a_day_is_written_after_its_hours_have_expired),
        cmocka_unit_test(a_day_waits_for_deletions_of_its_service),
        cmocka_unit_test(expired_hours_that_are_absent_are_compacted),
        cmocka_unit_test(a_tenant_with_a_shorter_retention_keeps_its_segments_until_then),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
