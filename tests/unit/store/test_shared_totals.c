/* Hours in which series have few profiles: they share rows of totals, which read like others. */
#include "hearth/base/log.h"
#include "hearth/store/background.h"

#include "rollup_fixture.h"
#include "step_fixture.h"
#include "store_scope.h"

static int64_t g_day_ns;

/* Below a mean of 8 profiles, a fifth of 40, series share rows. */
static void open_sharing(struct fixture *fix)
{
    open_fixture(fix);
    fix->store->options.rollup_min_profiles_1h = 40;
    fix->store->options.retain_raw_ns = fix->store->options.retain_10m_ns = 0;
    g_day_ns = the_day() * HEARTH_NS_PER_DAY;
}

static void push_some(struct fixture *fix, int service, int pod, int64_t from_ns, int n)
{
    for (int i = 0; i < n; i++) {
        push(fix->store, service, pod, from_ns + i * MINUTE_NS + pod);
    }
}

struct found {
    long long n, sum;
    const struct hearth_read_leg *leg;
};

static enum hearth_status add_found(void *context, const struct hearth_read_total *total,
                                    struct hearth_err *err)
{
    struct found *found = context;
    bool is_hit = false;
    (void)err;
    for (size_t i = 0; i < found->leg->n_hits; i++) {
        const struct hearth_series_hit *hit = &found->leg->hits[i];
        is_hit = is_hit || (hit->service_id == total->service_id &&
                            hit->series_id == total->series_id && hit->column == total->column);
    }
    assert_true(is_hit);
    assert_true(total->ts_ns >= found->leg->from_ns && total->ts_ns < found->leg->to_ns);
    found->n++;
    found->sum += total->total;
    return HEARTH_OK;
}

/* Totals of a selector, read packed, equal those of the profiles, which are not compacted. */
static void expect_same_totals(struct fixture *fix, const char *selector, int64_t from_ns,
                               int64_t to_ns)
{
    struct hearth_series_hit *hits = NULL;
    size_t n = select_hits(fix->store, TENANT, selector, from_ns, to_ns - 1, &fix->arena, &hits);
    struct hearth_read_leg leg = {HEARTH_SOURCE_TOTALS, from_ns, to_ns, hits, n};
    struct found found = {0, 0, &leg};
    struct hearth_read_state read;
    int32_t services[16];
    size_t n_services = 0;
    long long want[2] = {0, 0};
    assert_true(n > 0);

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || hits[i].service_id != hits[i - 1].service_id) {
            assert_true(n_services < HEARTH_ARRAY_LEN(services));
            services[n_services++] = hits[i].service_id;
        }
        char sql[512];
        for (int k = 0; k < 2; k++) {
            (void)snprintf(sql, sizeof sql,
                           "SELECT coalesce(sum(%s), 0)::int8 FROM hearth_data.profile WHERE"
                           " service_id = %d AND series_id = %d AND ts >= %lld AND ts < %lld",
                           k == 0                ? "1"
                           : hits[i].column == 0 ? "totals[1]"
                                                 : "totals[2]",
                           (int)hits[i].service_id, (int)hits[i].series_id, (long long)from_ns,
                           (long long)to_ns);
            want[k] += pg_cluster_int(fix->url, sql);
        }
    }

    const struct hearth_scope *scope = STORE_SCOPE(fix->store, TENANT, &fix->arena);
    assert_ok(hearth_store_read_state(scope, services, n_services, &read, &err));
    const struct hearth_read_plan plan = {.legs = &leg, .n_legs = 1, .state = &read};
    assert_ok(hearth_store_read_totals(scope, &plan, add_found, &found, &err));
    assert_true(want[0] > 0);
    assert_int_equal(found.n, want[0]);
    assert_int_equal(found.sum, want[1]);
}

/* Read the day's totals of a service. */
static enum hearth_status read_all(struct fixture *fix, const char *selector, struct found *found,
                                   struct hearth_err *ret_err)
{
    struct hearth_series_hit *hits = NULL;
    size_t n = select_hits(fix->store, TENANT, selector, 0, INT64_MAX, &fix->arena, &hits);
    struct hearth_read_leg leg = {HEARTH_SOURCE_TOTALS, g_day_ns, g_day_ns + HEARTH_NS_PER_DAY,
                                  hits, n};
    const struct hearth_scope *scope = STORE_SCOPE(fix->store, TENANT, &fix->arena);
    struct hearth_read_state read;
    assert_ok(hearth_store_read_state(scope, &hits[0].service_id, 1, &read, &err));
    const struct hearth_read_plan plan = {.legs = &leg, .n_legs = 1, .state = &read};
    found->leg = &leg;
    return hearth_store_read_totals(scope, &plan, add_found, found, ret_err);
}

static void expect_right(struct fixture *fix)
{
    long long wrong, all;
    assert_true(rollup_compare(fix->url, &wrong, &all));
    assert_true(all > 0);
    assert_int_equal(wrong, 0);

    /* One pod, some, all, and two services; whole hours, and a part of one. */
    expect_same_totals(fix, "{pod=\"pod-3\"}", g_day_ns, g_day_ns + HEARTH_NS_PER_DAY);
    expect_same_totals(fix, "{pod=~\"pod-[12]\"}", g_day_ns, g_day_ns + HEARTH_NS_PER_DAY);
    expect_same_totals(fix, "{service_name=\"svc-1\"}", g_day_ns, g_day_ns + HEARTH_NS_PER_DAY);
    expect_same_totals(fix, "{}", g_day_ns, g_day_ns + HEARTH_NS_PER_DAY);
    expect_same_totals(fix, "{}", g_day_ns + 2 * HOUR + MINUTE_NS, g_day_ns + 5 * HOUR);
}

/* Two services; five and three pods; at 2 o'clock a profile or two each, at 4 many of pod 1. */
static void push_services(struct fixture *fix)
{
    for (int pod = 1; pod <= 5; pod++) {
        push_some(fix, 1, pod, g_day_ns + 2 * HOUR, 1 + pod % 2);
        push_some(fix, 1, pod, g_day_ns + 4 * HOUR, pod == 1 ? 50 : 2);
    }
    for (int pod = 1; pod <= 3; pod++) {
        push_some(fix, 2, pod, g_day_ns + 2 * HOUR, 7);
    }
}

static void rebuild(struct fixture *fix)
{
    assert_ok(hearth_store_rebuild(fix->store, TENANT, 0, g_day_ns, &err));
    build(fix);
}

static void series_with_few_profiles_share_rows(void **state)
{
    (void)state;
    struct fixture fix;
    open_sharing(&fix);
    push_services(&fix);
    build(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 8"), 1);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 21"), 1);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id > 0"), 5); /* a mean of 11.6 */
    expect_right(&fix);

    /* Late profiles have rows of their own; a day is decided by both kinds. */
    push_some(&fix, 1, 3, g_day_ns + 2 * HOUR + 30 * MINUTE_NS, 2);
    fold_late(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id > 0"), 6);
    expect_right(&fix);
    rebuild(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 10"), 1);
    expect_right(&fix);

    /* The option turns it off. */
    fix.store->options.rollup_min_profiles_1h = 0;
    rebuild(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0"), 0);
    assert_int_equal(count(&fix, "hour_totals"), 13);
    expect_right(&fix);
    close_fixture(&fix);
}

/* The last profile of the hour is some time before its end. */
static void an_hour_in_pieces_shares_rows_when_it_ends(void **state)
{
    (void)state;
    struct fixture fix;
    open_sharing(&fix);
    for (int bucket = 0; bucket < 3; bucket++) {
        int64_t t0_ns = g_day_ns + 2 * HOUR + bucket * BUCKET_NS;
        for (int pod = 1; pod <= 3; pod++) {
            push_some(&fix, 1, pod, t0_ns, 2);
        }
        hearth_clock_fake(t0_ns + BUCKET_NS + 2 * MINUTE_NS);
        build(&fix);
        assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0"), 0);
        expect_right(&fix);
    }
    push_some(&fix, 1, 1, g_day_ns + 9 * HOUR, 1);
    hearth_clock_fake(g_day_ns + 12 * HOUR);
    build(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 18"), 1);
    assert_int_equal(count(&fix, "hour_totals"), 2); /* one series shares with no other */
    expect_right(&fix);
    hearth_clock_fake(0);
    close_fixture(&fix);
}

static void sums_of_series_with_one_profile_each_are_their_values(void **state)
{
    (void)state;
    struct fixture fix;
    open_sharing(&fix);
    for (int pod = 1; pod <= 7; pod++) {
        push_some(&fix, 1, pod, g_day_ns + 2 * HOUR + MINUTE_NS, 1);
        push_some(&fix, 1, pod, g_day_ns + 4 * HOUR, pod == 3 ? 2 : 1);
    }
    build(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 7 AND vals ="
                                 " '{\"\",\"\"}'"),
                     1);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 8 AND"
                                 " length(vals[2]) > 0"),
                     1);
    expect_right(&fix);

    /* Fewer numbers than series. */
    pg_cluster_run(fix.url, "UPDATE hearth_data.hour_totals SET totals = totals[1:5] ||"
                            " totals[19:21] WHERE n_profiles = 7");
    struct found found = {0, 0, NULL};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(read_all(&fix, "{service_name=\"svc-1\"}", &found, &err), HEARTH_CORRUPT);
    close_fixture(&fix);
}

/* With one row for each 256 profiles, a query of few series reads some of the rows. */
static void many_series_have_several_rows(void **state)
{
    (void)state;
    struct fixture fix;
    open_sharing(&fix);
    for (int pod = 1; pod <= 90; pod++) {
        push_some(&fix, 1, pod, g_day_ns + 2 * HOUR, 6);
    }
    build(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 252"), 2);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 36"), 1);
    expect_right(&fix);
    expect_same_totals(&fix, "{pod=~\"pod-(42|43|84|85)\"}", g_day_ns,
                       g_day_ns + HEARTH_NS_PER_DAY);
    expect_same_totals(&fix, "{pod=\"pod-90\"}", g_day_ns, g_day_ns + HEARTH_NS_PER_DAY);
    close_fixture(&fix);
}

static void damaged_shared_rows_are_refused(void **state)
{
    (void)state;
    struct fixture fix;
    open_sharing(&fix);
    push_services(&fix);
    build(&fix);
    pg_cluster_run(fix.url, "UPDATE hearth_data.hour_totals SET ts = substr(ts, 1, length(ts) - 1)"
                            " WHERE series_id = 0");
    struct found found = {0, 0, NULL};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(read_all(&fix, "{service_name=\"svc-2\"}", &found, &err), HEARTH_CORRUPT);
    close_fixture(&fix);
}

int main(void)
{
    hearth_log_set_level(HEARTH_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_with_few_profiles_share_rows),
        cmocka_unit_test(an_hour_in_pieces_shares_rows_when_it_ends),
        cmocka_unit_test(sums_of_series_with_one_profile_each_are_their_values),
        cmocka_unit_test(many_series_have_several_rows),
        cmocka_unit_test(damaged_shared_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
