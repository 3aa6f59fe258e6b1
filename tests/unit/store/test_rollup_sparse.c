/* Blocks that would sum few profiles: which are left out, and what becomes of them later. */
#include "hearth/base/log.h"
#include "hearth/store/background.h"

#include "rollup_fixture.h"
#include "step_fixture.h"
#include "store_scope.h"

#define TEN_MINUTES "600000000000"

static int64_t g_day_ns;

static void open_sparse(struct fixture *fix)
{
    open_fixture(fix);
    fix->store->options.rollup_min_profiles = 8;
    fix->store->options.retain_raw_ns = fix->store->options.retain_10m_ns = 0;
    g_day_ns = the_day() * HEARTH_NS_PER_DAY;
}

/* n profiles of a pod in the 10 minutes from t0 on. */
static void push_bucket(struct fixture *fix, int pod, int64_t t0_ns, int n)
{
    for (int i = 0; i < n; i++) {
        push(fix->store, 1, pod, t0_ns + (i + 1) * HEARTH_NS_PER_SEC);
    }
}

static void expect_right(const struct fixture *fix)
{
    long long wrong, all;
    assert_true(rollup_compare(fix->url, &wrong, &all));
    assert_true(all > 0);
    assert_int_equal(wrong, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ROLLUP_TIERS); i++) {
        int n;
        assert_int_equal(rollup_compare_stacks(fix->url, &ROLLUP_TIERS[i], 1000, &n), 0);
    }
}

/* The absent ranges of the only service, in 10 minutes of the day; *: of the whole service, too. */
static void expect_absent(const struct fixture *fix, const char *expected)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(string_agg((absent[i + 1] - %lld) / " TEN_MINUTES
                   " || '-' || (absent[i + 2] - %lld) / " TEN_MINUTES
                   " || CASE absent[i + 3] & 1 WHEN 1 THEN '*' ELSE '' END, ' ' ORDER BY i), '')"
                   " FROM hearth_data.roll_state, generate_series(1, cardinality(absent), 4) i"
                   " WHERE absent[i] = " TEN_MINUTES,
                   (long long)g_day_ns, (long long)g_day_ns);
    char found[256];
    pg_cluster_text(fix->url, sql, found, sizeof found);
    assert_string_equal(found, expected);
}

static long long count_series_blocks(const struct fixture *fix)
{
    return count(fix, "roll_10m WHERE series_id > 0");
}

static void rebuild(struct fixture *fix)
{
    assert_ok(hearth_store_rebuild(fix->store, TENANT, 0, g_day_ns, &err));
    build(fix);
}

static void only_minutes_with_few_profiles_lack_blocks(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    push_bucket(&fix, 1, g_day_ns + HOUR, 7);
    push_bucket(&fix, 2, g_day_ns + HOUR + 3 * BUCKET_NS, 8); /* a mean of 7.5 in this hour */
    push_bucket(&fix, 1, g_day_ns + 2 * HOUR, 7);
    push_bucket(&fix, 2, g_day_ns + 2 * HOUR, 9); /* a mean of 8 */
    push_bucket(&fix, 1, g_day_ns + 4 * HOUR, 1);
    push_bucket(&fix, 1, g_day_ns + 9 * HOUR, 1); /* nothing in between */
    for (int pod = 1; pod <= 10; pod++) {
        push_bucket(&fix, pod, g_day_ns + 10 * HOUR, 7); /* 70 of the whole service */
    }
    build(&fix);
    expect_absent(&fix, "6-12* 24-60* 60-66");
    assert_int_equal(count_series_blocks(&fix), 2);
    assert_int_equal(count(&fix, "roll_10m WHERE series_id < 0"), 2);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0"), 16);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id < 0"), 5);
    assert_int_equal(count(&fix, "roll_1d WHERE series_id > 0"), 10);
    assert_int_equal(count(&fix, "hour_totals"), 16);
    expect_right(&fix);

    /* It is decided again when they are built again. */
    fix.store->options.rollup_min_profiles = 7;
    rebuild(&fix);
    expect_absent(&fix, "24-60*");
    assert_int_equal(count_series_blocks(&fix), 14);
    expect_right(&fix);
    fix.store->options.rollup_min_profiles = 0;
    rebuild(&fix);
    expect_absent(&fix, "");
    assert_int_equal(count_series_blocks(&fix), 16);
    expect_right(&fix);
    close_fixture(&fix);
}

/* The bit form of ids begins with 0x00 (columns.h), after the 0x00 of bytes that are not packed. */
static long long count_in_bits(const struct fixture *fix, const char *where)
{
    char from[160];
    (void)snprintf(from, sizeof from, "%s AND length(ids) > 1 AND substr(ids, 1, 2) = '\\x0000'",
                   where);
    return count(fix, from);
}

static void blocks_with_few_of_all_stacks_are_written_in_bits(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    fix.store->options.rollup_min_profiles = 0;
    push_bucket(&fix, 1, g_day_ns + HOUR, 40); /* nearly all stacks */
    push_bucket(&fix, 2, g_day_ns + 2 * HOUR, 2);
    build(&fix);
    for (size_t i = 0; i < HEARTH_N_TIERS; i++) {
        char few[64], many[64];
        const char *table = hearth_tier_table((enum hearth_tier)i);
        (void)snprintf(few, sizeof few, "%s WHERE n_profiles = 2 AND series_id > 0", table);
        (void)snprintf(many, sizeof many, "%s WHERE n_profiles >= 40", table);
        assert_int_equal(count(&fix, few), 1);
        assert_int_equal(count_in_bits(&fix, few), 1);
        assert_true(count(&fix, many) > 0);
        assert_int_equal(count_in_bits(&fix, many), 0);
    }
    expect_right(&fix);

    /* Longer blocks, and one part of several, are sums of blocks in both forms. */
    push_bucket(&fix, 2, g_day_ns + 2 * HOUR, 1);
    push_bucket(&fix, 1, g_day_ns + 2 * HOUR, 9);
    fold_late(&fix);
    expect_right(&fix);
    rebuild(&fix);
    expect_right(&fix);
    close_fixture(&fix);
}

/* Where only blocks of series are absent, the hour of the whole service is the sum of its minutes. */
static void an_hour_in_pieces_keeps_the_blocks_of_a_large_service(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    int64_t hour_ns = g_day_ns + 5 * HOUR;
    for (int bucket = 0; bucket < 6; bucket++) {
        int64_t t0_ns = hour_ns + bucket * BUCKET_NS;
        for (int pod = 1; pod <= 10; pod++) {
            push_bucket(&fix, pod, t0_ns, 7);
        }
        hearth_clock_fake(t0_ns + BUCKET_NS + 2 * MINUTE_NS);
        build(&fix);
        expect_right(&fix);
    }
    expect_absent(&fix, "30-36");
    assert_int_equal(count_series_blocks(&fix), 0);
    assert_int_equal(count(&fix, "roll_10m WHERE series_id < 0 AND n_profiles = 70"), 6);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0 AND n_profiles = 42"), 10);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id < 0 AND n_profiles = 420"), 1);
    hearth_clock_fake(0);
    close_fixture(&fix);
}

/* As on a server that runs: the hour is built in pieces of 10 minutes, as they are closed. */
static void an_hour_that_is_built_in_pieces_is_the_sum_of_all_its_profiles(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    int64_t hour_ns = g_day_ns + 5 * HOUR;
    for (int bucket = 0; bucket < 8; bucket++) {
        int64_t t0_ns = hour_ns + bucket * BUCKET_NS;
        if (bucket != 3) {
            push_bucket(&fix, 1, t0_ns, bucket == 1 ? 10 : 2);
        }
        hearth_clock_fake(t0_ns + BUCKET_NS + 2 * MINUTE_NS);
        build(&fix);
        expect_right(&fix);
    }
    expect_absent(&fix, "30-31* 32-38*");
    assert_int_equal(count_series_blocks(&fix), 1);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0 AND n_profiles = 18"), 1);

    /* An hour that ends in silence, and the day. */
    hearth_clock_fake(g_day_ns + 2 * HEARTH_NS_PER_DAY);
    build(&fix);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0 AND n_profiles = 4"), 1);
    assert_int_equal(count(&fix, "roll_1d WHERE series_id > 0 AND n_profiles = 22"), 1);
    expect_right(&fix);
    hearth_clock_fake(0);
    close_fixture(&fix);
}

static void late_profiles_add_no_block_where_blocks_are_absent(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    push_bucket(&fix, 1, g_day_ns + HOUR, 2);
    push_bucket(&fix, 1, g_day_ns + 2 * HOUR, 8);
    build(&fix);
    expect_absent(&fix, "6-12*");
    push_bucket(&fix, 1, g_day_ns + HOUR + MINUTE_NS, 9);
    push_bucket(&fix, 2, g_day_ns + 2 * HOUR + MINUTE_NS, 1);
    fold_late(&fix);
    expect_absent(&fix, "6-12*");
    assert_int_equal(count(&fix, "roll_10m WHERE series_id > 0 AND n_profiles = 8"), 1);
    assert_int_equal(count(&fix, "roll_10m WHERE series_id > 0 AND n_profiles = 1"), 1);
    assert_int_equal(count_series_blocks(&fix), 2);
    expect_right(&fix);

    /* The rate is another now. */
    rebuild(&fix);
    expect_absent(&fix, "12-18*");
    expect_right(&fix);
    close_fixture(&fix);
}

static void compacted_hours_are_decided_by_their_segments(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    push_bucket(&fix, 1, g_day_ns + HOUR, 2);
    push_bucket(&fix, 1, g_day_ns + 2 * HOUR, 50); /* a segment does not say in which minutes */
    push_bucket(&fix, 2, g_day_ns + 2 * HOUR, 50);
    build(&fix);
    pg_cluster_run(fix.url, "CREATE TABLE before AS SELECT service_id, series_id, t0, writer_id,"
                            " n_profiles, totals, ids, vals FROM hearth_data.roll_1h");
    compact_hours(&fix);
    rebuild(&fix);
    expect_absent(&fix, "6-12*");
    assert_int_equal(count_series_blocks(&fix), 2);
    assert_int_equal(count(&fix, "roll_1h r LEFT JOIN before b USING (service_id, series_id, t0,"
                                 " writer_id, n_profiles, totals, ids, vals)"
                                 " WHERE b.t0 IS NULL"),
                     0);
    assert_int_equal(count(&fix, "roll_1h"),
                     pg_cluster_int(fix.url, "SELECT count(*) FROM before"));
    close_fixture(&fix);
}

static void nothing_is_left_out_where_blocks_outlive_profiles(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    push_bucket(&fix, 1, g_day_ns + HOUR, 2);
    fix.store->options.retain_raw_ns = 7 * HEARTH_NS_PER_DAY;
    fix.store->options.retain_10m_ns = 8 * HEARTH_NS_PER_DAY;
    build(&fix);
    expect_absent(&fix, "");
    assert_int_equal(count_series_blocks(&fix), 1);

    fix.store->options.retain_10m_ns = 7 * HEARTH_NS_PER_DAY;
    rebuild(&fix);
    expect_absent(&fix, "6-12*");

    /* Ranges that retention has passed are forgotten. */
    fix.store->options.retain_10m_ns = HEARTH_NS_PER_DAY;
    int64_t later_ns = g_day_ns + 2 * HEARTH_NS_PER_DAY;
    push_bucket(&fix, 1, later_ns, 2);
    fold_late(&fix);
    assert_ok(hearth_store_rebuild(fix.store, TENANT, 0, later_ns, &err));
    build(&fix);
    expect_absent(&fix, "288-294*");
    close_fixture(&fix);
}

static void with_too_many_ranges_blocks_are_written_as_before(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse(&fix);
    for (int hour = 0; hour < 24; hour++) {
        push_bucket(&fix, 1, g_day_ns + hour * HOUR, hour % 2 == 0 ? 1 : 8);
    }
    pg_cluster_run(fix.url,
                   "CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$ UPDATE"
                   " hearth_data.roll_state SET built_to = 0, absent ="
                   " ARRAY(SELECT unnest(ARRAY[" TEN_MINUTES ", -2 * i * " TEN_MINUTES
                   ", (1 - 2 * i) * " TEN_MINUTES ", 1]) FROM generate_series(60, 1, -1) i)"
                   " $$");
    build(&fix);
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.roll_10m; DELETE FROM hearth_data.roll_1h;"
                            " DELETE FROM hearth_data.roll_1d; DELETE FROM hearth_data.hour_totals;"
                            " SELECT fill()");
    build(&fix);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT cardinality(absent) FROM"
                                             " hearth_data.roll_state"),
                     4 * HEARTH_MAX_ABSENT);
    assert_int_equal(count(&fix, "roll_10m WHERE series_id > 0 AND n_profiles = 8"), 12);
    /* One hour continues the last range, four begin another. */
    assert_int_equal(count(&fix, "roll_10m WHERE series_id > 0 AND n_profiles = 1"), 7);
    expect_right(&fix);
    close_fixture(&fix);
}

/* ---- hours and days ---- */

static void open_sparse_hours(struct fixture *fix, int64_t min_profiles)
{
    open_sparse(fix);
    fix->store->options.rollup_min_profiles = 0;
    fix->store->options.rollup_min_profiles_1h = min_profiles;
}

/* The absent hours and days, in hours; *: of the whole service, too. */
static void expect_absent_long(const struct fixture *fix, const char *expected)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(string_agg((absent[i + 1] - %lld) / 3600000000000 || '-' ||"
                   " (absent[i + 2] - %lld) / 3600000000000 || CASE absent[i + 3] WHEN 3 THEN '*'"
                   " ELSE '' END, ' ' ORDER BY i), '') FROM hearth_data.roll_state,"
                   " generate_series(1, cardinality(absent), 4) i WHERE absent[i] > " TEN_MINUTES,
                   (long long)g_day_ns, (long long)g_day_ns);
    char found[256];
    pg_cluster_text(fix->url, sql, found, sizeof found);
    assert_string_equal(found, expected);
}

static void push_thin_hours(struct fixture *fix)
{
    push_bucket(fix, 1, g_day_ns + HOUR, 7);
    push_bucket(fix, 1, g_day_ns + 2 * HOUR, 25);
    for (int pod = 1; pod <= 10; pod++) {
        push_bucket(fix, pod, g_day_ns + 4 * HOUR, 3); /* 30 of the whole service */
    }
}

static void hours_and_days_with_few_profiles_lack_blocks(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse_hours(&fix, 20);
    push_thin_hours(&fix);
    build(&fix);
    expect_absent_long(&fix, "1-2* 4-5 0-24"); /* 6.2 profiles of a series in the day */
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0"), 1);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id < 0"), 2);
    assert_int_equal(count(&fix, "roll_1d WHERE series_id > 0"), 0);
    assert_int_equal(count(&fix, "roll_1d WHERE series_id < 0 AND n_profiles = 62"), 1);
    assert_int_equal(count(&fix, "hour_totals WHERE totals IS NOT NULL"), 3); /* 10 share a row */
    expect_right(&fix);

    /* A day is the sum of hours that are there and of profiles. */
    fix.store->options.rollup_min_profiles_1h = 5;
    fix.builder.max_sum_bytes = 1;
    rebuild(&fix);
    expect_absent_long(&fix, "4-5");
    assert_int_equal(count(&fix, "roll_1d WHERE series_id > 0"), 10);
    expect_right(&fix);
    fix.store->options.rollup_min_profiles_1h = 35;
    fix.builder.max_sum_bytes = 0;
    rebuild(&fix);
    expect_absent_long(&fix, "1-5* 0-24");
    expect_right(&fix);

    /* Late profiles add nothing to absent blocks, and all to others. */
    push_bucket(&fix, 1, g_day_ns + HOUR + MINUTE_NS, 2);
    push_bucket(&fix, 2, g_day_ns + 7 * HOUR, 1);
    fold_late(&fix);
    expect_absent_long(&fix, "1-5* 0-24");
    assert_int_equal(count(&fix, "roll_1h"), 2);
    expect_right(&fix);

    /* Segments decide like profiles. */
    compact_hours(&fix);
    fix.store->options.rollup_min_profiles_1h = 20;
    rebuild(&fix);
    expect_absent_long(&fix, "1-2* 4-5 7-8* 0-24");
    assert_int_equal(count(&fix, "roll_1d WHERE series_id < 0 AND n_profiles = 65"), 1);
    close_fixture(&fix);
}

/* With blocks of 10 minutes and without: the hour is decided when it ends. */
static void an_hour_in_pieces_is_left_out_when_it_ends(void **state)
{
    (void)state;
    for (int few = 0; few < 3; few++) {
        struct fixture fix;
        open_sparse_hours(&fix, 13);
        fix.store->options.rollup_min_profiles = few == 0 ? 0 : few == 1 ? 2 : 8;
        for (int bucket = 0; bucket < 12; bucket++) {
            int64_t t0_ns = g_day_ns + 5 * HOUR + bucket * BUCKET_NS;
            push_bucket(&fix, 1, t0_ns, bucket < 6 ? 2 : 3);
            push_bucket(&fix, 2, t0_ns, bucket < 6 ? 1 : 3);
            hearth_clock_fake(t0_ns + BUCKET_NS + 2 * MINUTE_NS);
            build(&fix);
            expect_right(&fix);
        }
        expect_absent_long(&fix, "5-6");
        assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0 AND n_profiles = 18"), 2);
        assert_int_equal(count(&fix, "roll_1h WHERE series_id < 0"), 2);
        hearth_clock_fake(g_day_ns + 2 * HEARTH_NS_PER_DAY);
        build(&fix);
        expect_absent_long(&fix, "5-6");
        assert_int_equal(count(&fix, "roll_1d"), 3);
        expect_right(&fix);
        hearth_clock_fake(0);
        close_fixture(&fix);
    }
}

/* Totals may expire before profiles do; blocks that are there must not seem to be absent then. */
static void absent_hours_do_not_go_on_over_others_whose_totals_have_expired(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse_hours(&fix, 20);
    push_bucket(&fix, 1, g_day_ns + HOUR, 7);
    push_bucket(&fix, 1, g_day_ns + 2 * HOUR, 25);
    hearth_clock_fake(g_day_ns + 4 * HOUR);
    build(&fix);
    expect_absent_long(&fix, "1-2*");
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.hour_totals");
    push_bucket(&fix, 1, g_day_ns + 4 * HOUR, 7);
    hearth_clock_fake(g_day_ns + 6 * HOUR);
    build(&fix);
    expect_absent_long(&fix, "1-2* 4-5*");
    hearth_clock_fake(0);
    close_fixture(&fix);
}

static void hours_are_written_where_profiles_are_kept_for_less_than_two_days(void **state)
{
    (void)state;
    struct fixture fix;
    open_sparse_hours(&fix, 20);
    push_thin_hours(&fix);
    fix.store->options.retain_raw_ns = 2 * HEARTH_NS_PER_DAY - 1;
    build(&fix);
    expect_absent_long(&fix, "");
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0"), 12);
    fix.store->options.retain_raw_ns = 7 * HEARTH_NS_PER_DAY;
    rebuild(&fix);
    expect_absent_long(&fix, "1-2* 4-5 0-24");
    close_fixture(&fix);
}

static void damaged_ranges_are_refused(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "{1}",
        "{600000000000,0,600000000000}",
        "{600000000000,0,600000000000,2}",
        "{3600000000000,0,3600000000000,1}",
        "{86400000000000,0,86400000000000,4}",
        "{600000000000,0,600000000001,0}",
        "{600000000000,600000000000,600000000000,0}",
        "{86400000000000,0,3600000000000,2}",
        "{7200000000000,0,7200000000000,2}",
        "{600000000000,0,1200000000000,0,600000000000,600000000000,1800000000000,0}",
        "{600000000000,0,600000000000,1,600000000000,600000000000,1200000000000,1}",
        "{3600000000000,0,3600000000000,2,600000000000,0,600000000000,0}",
    };
    struct fixture fix;
    open_sparse(&fix);
    push_bucket(&fix, 1, g_day_ns + HOUR, 1);
    build(&fix);
    int32_t service_id =
        (int32_t)pg_cluster_int(fix.url, "SELECT service_id FROM hearth_data.roll_state");
    const struct hearth_scope *scope = STORE_SCOPE(fix.store, TENANT, &fix.arena);
    struct hearth_read_state read;
    assert_ok(hearth_store_read_state(scope, &service_id, 1, &read, &err));
    assert_int_equal(read.services[0].n_absent, 1);
    assert_int_equal(read.services[0].absent[0].length_ns, BUCKET_NS);
    assert_int_equal(read.services[0].absent[0].from_ns, g_day_ns + HOUR);
    assert_int_equal(read.services[0].absent[0].to_ns, g_day_ns + 2 * HOUR);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(damaged); i++) {
        char sql[256];
        struct hearth_err err = HEARTH_ERR_INIT;
        (void)snprintf(sql, sizeof sql, "UPDATE hearth_data.roll_state SET absent = '%s'",
                       damaged[i]);
        pg_cluster_run(fix.url, sql);
        assert_int_equal(hearth_store_read_state(scope, &service_id, 1, &read, &err),
                         HEARTH_CORRUPT);
    }
    pg_cluster_run(fix.url, "UPDATE hearth_data.roll_state SET absent = ARRAY(SELECT"
                            " unnest(ARRAY[600000000000, 2 * i * 600000000000,"
                            " (2 * i + 1) * 600000000000, 0]) FROM generate_series(1, 65) i)");
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_read_state(scope, &service_id, 1, &read, &err), HEARTH_CORRUPT);
    close_fixture(&fix);
}

int main(void)
{
    hearth_log_set_level(HEARTH_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_minutes_with_few_profiles_lack_blocks),
        cmocka_unit_test(blocks_with_few_of_all_stacks_are_written_in_bits),
        cmocka_unit_test(an_hour_that_is_built_in_pieces_is_the_sum_of_all_its_profiles),
        cmocka_unit_test(an_hour_in_pieces_keeps_the_blocks_of_a_large_service),
        cmocka_unit_test(late_profiles_add_no_block_where_blocks_are_absent),
        cmocka_unit_test(compacted_hours_are_decided_by_their_segments),
        cmocka_unit_test(nothing_is_left_out_where_blocks_outlive_profiles),
        cmocka_unit_test(with_too_many_ranges_blocks_are_written_as_before),
        cmocka_unit_test(hours_and_days_with_few_profiles_lack_blocks),
        cmocka_unit_test(an_hour_in_pieces_is_left_out_when_it_ends),
        cmocka_unit_test(absent_hours_do_not_go_on_over_others_whose_totals_have_expired),
        cmocka_unit_test(hours_are_written_where_profiles_are_kept_for_less_than_two_days),
        cmocka_unit_test(damaged_ranges_are_refused),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
