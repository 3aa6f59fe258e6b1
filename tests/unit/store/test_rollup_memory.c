/* A builder that may keep next to nothing in memory writes more parts, and the same sums. */
#include "rollup_fixture.h"
#include "step_fixture.h"

static void expect_right(const struct fixture *fix)
{
    long long wrong, all;
    assert_true(rollup_compare(fix->url, &wrong, &all));
    assert_true(all > 50);
    assert_int_equal(wrong, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ROLLUP_TIERS); i++) {
        int n;
        assert_int_equal(rollup_compare_stacks(fix->url, &ROLLUP_TIERS[i], 1000, &n), 0);
    }
}

/* The most parts of a whole-service block. */
static long long most_parts(const struct fixture *fix, const char *table)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT max(n) FROM (SELECT count(*) n FROM hearth_data.%s WHERE series_id < 0"
                   " GROUP BY service_id, series_id, t0, writer_id) k",
                   table);
    return pg_cluster_int(fix->url, sql);
}

static void fill(struct fixture *fix, struct hearth_store *other)
{
    int64_t day_ns = the_day() * HEARTH_NS_PER_DAY;
    push_a_day(fix, day_ns);
    for (int i = 0; i < 8; i++) { /* a second dictionary */
        push(other, 1, 1 + i % 4, day_ns + 2 * HOUR + i * 7 * MINUTE_NS);
    }
}

static void sums_that_do_not_fit_are_written_as_parts(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    fill(&fix, other);
    fix.builder.max_sum_bytes = 1;
    build(&fix);
    /* One series at a time, so what a block is in as many parts as series. */
    assert_int_equal(most_parts(&fix, "roll_10m"), 3);
    expect_right(&fix);
    /* Late ones of several series in one fold, likewise. */
    fill(&fix, other);
    fold_late(&fix);
    expect_right(&fix);
    close_store(other);
    close_fixture(&fix);
}

static void rows_that_do_not_fit_are_sent_in_several_passes(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    fill(&fix, other);
    fix.builder.max_send_bytes = 1;
    build(&fix);
    assert_int_equal(most_parts(&fix, "roll_10m"), 1);
    expect_right(&fix);
    close_store(other);
    close_fixture(&fix);
}

static void both_limits_apply_together(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    fill(&fix, other);
    fix.builder.max_sum_bytes = 20000;
    fix.builder.max_send_bytes = 1;
    build(&fix);
    assert_true(most_parts(&fix, "roll_10m") > 1);
    expect_right(&fix);
    close_store(other);
    close_fixture(&fix);
}

/* Attributes of samples may be most of a profile: 16 times 5 MiB are more than a fold may take. */
static void late_profiles_with_large_attributes_are_folded_a_piece_at_a_time(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t day_ns = the_day() * HEARTH_NS_PER_DAY;
    push_a_day(&fix, day_ns);
    build(&fix);
    for (int i = 0; i < 16; i++) {
        push(fix.store, 1, 1, day_ns + 3 * HOUR + i);
    }
    pg_cluster_run(fix.url,
                   "UPDATE hearth_data.profile_late SET attrs = decode(repeat('61', 5 << 20), "
                   "'hex')");
    fold_late(&fix); /* without pauses */
    assert_int_equal(count(&fix, "profile WHERE attrs IS NOT NULL"), 16);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(DISTINCT xmin::text) FROM"
                                             " hearth_data.profile WHERE attrs IS NOT NULL"),
                     2);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_that_do_not_fit_are_written_as_parts),
        cmocka_unit_test(rows_that_do_not_fit_are_sent_in_several_passes),
        cmocka_unit_test(both_limits_apply_together),
        cmocka_unit_test(late_profiles_with_large_attributes_are_folded_a_piece_at_a_time),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
