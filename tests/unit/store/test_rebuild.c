/* Asking for a rebuild throws away what can be built again from profiles, and nothing else. */
#include "hearth/store/background.h"

#include "pg/store_state.h"
#include "session/partitions.h"
#include "step_fixture.h"

static void open_built(struct fixture *fix)
{
    open_fixture(fix);
    push_a_day(fix, the_day() * HEARTH_NS_PER_DAY);
    push(fix->store, 1, 1, (the_day() + 1) * HEARTH_NS_PER_DAY + HOUR);
    build(fix);
    assert_int_equal(count(fix, "roll_1d"), 6);
    assert_int_equal(count(fix, "hour_totals"), 13);
}

static void lose_profiles(struct fixture *fix)
{
    assert_ok(hearth_partitions_drop(fix->store, &fix->builder.pg, "profile", the_day(), &err));
    assert_ok(hearth_partitions_drop(fix->store, &fix->builder.pg, "segment", the_day(), &err));
}

static void expect_refused(struct fixture *fix)
{
    struct hearth_err refusal = HEARTH_ERR_INIT;
    char reach[32];
    long long n_days = count(fix, "roll_1d"), n_hours = count(fix, "hour_totals");
    assert_int_equal(hearth_store_rebuild(fix->store, TENANT, 0,
                                          the_day() * HEARTH_NS_PER_DAY + 7 * HOUR, &refusal),
                     HEARTH_FAILED_PRECONDITION);
    hearth_clock_format((the_day() + 1) * HEARTH_NS_PER_DAY, reach);
    assert_non_null(strstr(refusal.msg, "profiles reach back to"));
    assert_non_null(strstr(refusal.msg, reach));
    assert_int_equal(count(fix, "roll_1d"), n_days);
    assert_int_equal(count(fix, "hour_totals"), n_hours);
    /* The next day has its profiles. */
    assert_ok(
        hearth_store_rebuild(fix->store, TENANT, 0, (the_day() + 1) * HEARTH_NS_PER_DAY, &err));
    assert_int_equal(count(fix, "roll_1d"), n_days - 2);
    build(fix);
    assert_int_equal(count(fix, "roll_1d"), n_days);
}

static void a_leaf_that_a_late_profile_made_again_does_not_discard_roll_ups(void **state)
{
    (void)state;
    struct fixture fix;
    open_built(&fix);
    lose_profiles(&fix);
    hearth_partitions_forget(fix.store, the_day());
    push(fix.store, 1, 2, the_day() * HEARTH_NS_PER_DAY + 4 * HOUR + 9);
    fold_late(&fix);
    assert_int_equal(count(&fix, "profile"), 2);
    expect_refused(&fix);
    close_fixture(&fix);
}

/* The leaves of the day before are there, so of days alone nothing would be noticed. */
static void a_rebuild_keeps_blocks_whose_profiles_are_dropped(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 2, 1, (the_day() - 1) * HEARTH_NS_PER_DAY + HOUR);
    push_a_day(&fix, the_day() * HEARTH_NS_PER_DAY);
    push(fix.store, 1, 1, (the_day() + 1) * HEARTH_NS_PER_DAY + HOUR);
    build(&fix);
    assert_int_equal(count(&fix, "roll_1d"), 8);
    lose_profiles(&fix);
    struct hearth_err refusal = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_store_rebuild(fix.store, TENANT, 0, the_day() * HEARTH_NS_PER_DAY, &refusal),
        HEARTH_FAILED_PRECONDITION);
    assert_int_equal(count(&fix, "roll_1d"), 8);
    /* The other service had nothing on that day. */
    int service_id = (int)pg_cluster_int(fix.url, "SELECT service_id FROM hearth_data.service WHERE"
                                                  " name = 'svc-2'");
    assert_ok(hearth_store_rebuild(fix.store, TENANT, service_id,
                                   (the_day() - 1) * HEARTH_NS_PER_DAY, &err));
    assert_int_equal(count(&fix, "roll_1d"), 6);
    close_fixture(&fix);
}

static void days_stored_only_in_segments_are_built_again(void **state)
{
    (void)state;
    struct fixture fix;
    open_built(&fix);
    compact_hours(&fix);
    fix.builder.next_days_mono_ns = 0;
    assert_int_equal(pg_cluster_int(fix.url, "SELECT sum(n_rows) FROM hearth_data.segment"), 25);
    assert_int_equal(count(&fix, "profile"), 1); /* one leaf a round */
    assert_ok(hearth_store_rebuild(fix.store, TENANT, 0, the_day() * HEARTH_NS_PER_DAY, &err));
    assert_int_equal(count(&fix, "roll_1d") + count(&fix, "hour_totals"), 0);
    build(&fix);
    assert_int_equal(count(&fix, "roll_1d"), 6);
    assert_int_equal(count(&fix, "hour_totals"), 13);
    /* And not when those segments are gone, whatever was written into one since. */
    lose_profiles(&fix);
    hearth_partitions_forget(fix.store, the_day());
    push(fix.store, 1, 2, the_day() * HEARTH_NS_PER_DAY + 4 * HOUR + 9);
    fold_late(&fix);
    expect_refused(&fix);
    close_fixture(&fix);
}

/* Its first hours are deleted while it is built. */
static void a_day_whose_hours_have_expired_is_the_sum_of_all_its_profiles(void **state)
{
    (void)state;
    struct fixture fix;
    open_built(&fix);
    pg_cluster_run(fix.url, "CREATE TABLE days AS SELECT * FROM hearth_data.roll_1d");
    fix.store->options.retain_1h_ns = HEARTH_NS_PER_DAY;
    assert_ok(hearth_store_rebuild(fix.store, TENANT, 0, the_day() * HEARTH_NS_PER_DAY, &err));
    fix.builder.close = hearth_close_new();
    bool more = true;
    for (int i = 0; i < 20 && count(&fix, "roll_1h") == 0; i++) {
        assert_ok(hearth_step_close(&fix.builder, &more, &err));
    }
    hearth_close_free(fix.builder.close);
    assert_int_equal(count(&fix, "roll_1d"), 0);
    assert_true(count(&fix, "roll_1h") > 0);
    retain(&fix);
    assert_int_equal(count(&fix, "roll_1h"), 0);
    build(&fix);
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.roll_1d a FULL JOIN days b USING"
                                " (service_id, series_id, t0, writer_id) WHERE (a.n_profiles,"
                                " a.totals, a.members, a.ids, a.vals) IS DISTINCT FROM"
                                " (b.n_profiles, b.totals, b.members, b.ids, b.vals)"),
        0);
    close_fixture(&fix);
}

/* Its first blocks of 10 minutes are deleted before the others are built. */
static void an_hour_whose_blocks_have_expired_is_the_sum_of_all_its_profiles(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t hour_ns = the_day() * HEARTH_NS_PER_DAY + 5 * HOUR;
    hearth_clock_fake(hour_ns + HOUR / 2);
    push(fix.store, 1, 1, hour_ns);
    build(&fix);
    push(fix.store, 1, 1, hour_ns + HOUR / 2);
    hearth_clock_fake(0);
    assert_true(count(&fix, "roll_10m") > 0);
    assert_int_equal(count(&fix, "roll_1h"), 0);
    fix.store->options.retain_10m_ns = HEARTH_NS_PER_DAY;
    retain(&fix);
    assert_int_equal(count(&fix, "roll_10m"), 0);
    build(&fix);
    assert_int_equal(count(&fix, "roll_1h WHERE n_profiles = 2"), count(&fix, "roll_1h"));
    assert_int_equal(count(&fix, "roll_1h"), 2); /* of the series, of the service */
    assert_int_equal(count(&fix, "roll_1d WHERE n_profiles = 2"), 2);
    close_fixture(&fix);
}

/* Deletion takes profiles away before it takes blocks: that is no loss. */
static void a_deletion_in_the_middle_does_not_stop_a_rebuild(void **state)
{
    (void)state;
    struct fixture fix;
    open_built(&fix);
    struct hearth_series_hit *hits = NULL;
    int64_t id;
    size_t n = select_hits(fix.store, TENANT, "{pod=\"pod-2\"}", 0, INT64_MAX, &fix.arena, &hits);
    const struct hearth_erase_request request = {
        hits, n, 0, INT64_MAX, HEARTH_STR("{}"), HEARTH_STR("test")};
    assert_ok(hearth_store_erase(fix.store, TENANT, &request, &id, &err));
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.profile p USING hearth_data.tombstone t WHERE"
                            " p.series_id = ANY (t.series_ids)");
    assert_int_equal(count(&fix, "profile"), 17);
    assert_ok(hearth_store_rebuild(fix.store, TENANT, 0, the_day() * HEARTH_NS_PER_DAY, &err));
    assert_int_equal(count(&fix, "roll_1d"), 0);
    close_fixture(&fix);
}

/* ---- beside a builder ---- */

static void *ask_for_rebuild(void *context)
{
    struct fixture *fix = context;
    static struct hearth_err failure;
    failure = (struct hearth_err)HEARTH_ERR_INIT;
    return hearth_store_rebuild(fix->store, TENANT, 0, the_day() * HEARTH_NS_PER_DAY, &failure) ==
                   HEARTH_OK
               ? NULL
               : failure.msg;
}

/* A builder's transaction, held open between what it wrote and its end. */
static void a_rebuild_waits_for_blocks_that_are_being_built(void **state)
{
    (void)state;
    struct fixture fix;
    open_built(&fix);
    long long built_to =
        pg_cluster_int(fix.url, "SELECT max(built_to) FROM hearth_data.roll_state");
    pg_cluster_run(fix.url, "CREATE TABLE kept AS SELECT * FROM hearth_data.roll_1h");
    assert_ok(hearth_store_rebuild(fix.store, TENANT, 0, the_day() * HEARTH_NS_PER_DAY, &err));
    PGconn *builder = pg_cluster_connect(fix.url);
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "BEGIN; UPDATE hearth_data.roll_state SET built_to = %lld; LOCK TABLE"
                   " hearth_data.roll_10m IN SHARE MODE; INSERT INTO hearth_data.roll_1h SELECT *"
                   " FROM kept",
                   built_to);
    PGresult *result = PQexec(builder, sql);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_for_rebuild, &fix), 0);
    wait_until_blocked(fix.url, "%", 1);
    PQclear(PQexec(builder, "COMMIT"));
    PQfinish(builder);
    void *failure = NULL;
    (void)pthread_join(thread, &failure);
    assert_null(failure);
    assert_int_equal(count(&fix, "roll_1h"), 0);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT max(built_to) FROM hearth_data.roll_state"),
                     the_day() * HEARTH_NS_PER_DAY);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_that_a_late_profile_made_again_does_not_discard_roll_ups),
        cmocka_unit_test(a_rebuild_keeps_blocks_whose_profiles_are_dropped),
        cmocka_unit_test(days_stored_only_in_segments_are_built_again),
        cmocka_unit_test(a_day_whose_hours_have_expired_is_the_sum_of_all_its_profiles),
        cmocka_unit_test(an_hour_whose_blocks_have_expired_is_the_sum_of_all_its_profiles),
        cmocka_unit_test(a_deletion_in_the_middle_does_not_stop_a_rebuild),
        cmocka_unit_test(a_rebuild_waits_for_blocks_that_are_being_built),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
