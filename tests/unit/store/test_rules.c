/* test_rules.c -- counters of recording rules: every profile once, whatever comes in between. */
#include "build/builder.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "step_fixture.h"
#include "store_scope.h"
#include "tenants/rules_internal.h"

#include <time.h>

#define MINUTE (60 * HEARTH_NS_PER_SEC)
#define BUCKET (10 * MINUTE)

/* Sums are numbers of profiles by series, straight from the tables; and what happens while they are made. */
struct counting {
    struct fixture fix;
    int64_t times; /* each profile counts as so many */
    int n_sums;
    int64_t max_span_ns;
    void (*after)(struct counting *counting, const struct hearth_rule *rule); /* the next sum */
    enum hearth_status failing; /* what a sum ends with */
    const char *failing_rule;   /* of this rule only */
    bool fails_late;            /* when all the time of a step is over */
};

static enum hearth_status read_sums(struct counting *counting, int64_t from_ns, int64_t to_ns,
                                    struct hearth_arena *arena, struct hearth_rule_sum **ret,
                                    size_t *ret_n)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT series_id, count(*) FROM (SELECT series_id, ts FROM hearth_data.profile"
                   " UNION ALL SELECT series_id, ts FROM hearth_data.profile_late) p WHERE ts >="
                   " %lld AND ts < %lld GROUP BY 1 ORDER BY 1",
                   (long long)from_ns, (long long)to_ns);
    PGconn *conn = pg_cluster_connect(counting->fix.url);
    PGresult *rows = PQexec(conn, sql);
    assert_int_equal(PQresultStatus(rows), PGRES_TUPLES_OK);
    *ret_n = (size_t)PQntuples(rows);
    *ret = hearth_arena_array(arena, *ret_n, sizeof **ret);
    for (size_t i = 0; i < *ret_n; i++) {
        struct hearth_label *label = hearth_arena_array(arena, 1, sizeof *label);
        label->name = HEARTH_STR("series");
        label->value = hearth_arena_str(arena, hearth_str_c(PQgetvalue(rows, (int)i, 0)));
        (*ret)[i].labels = (struct hearth_labels){label, 1};
        (*ret)[i].sum = counting->times * strtoll(PQgetvalue(rows, (int)i, 1), NULL, 10);
    }
    PQclear(rows);
    PQfinish(conn);
    return HEARTH_OK;
}

static enum hearth_status evaluate(void *context, const struct hearth_rule *rule,
                                   struct hearth_rule_range range, struct hearth_cancel *cancel,
                                   struct hearth_arena *arena, struct hearth_rule_sum **ret,
                                   size_t *ret_n, struct hearth_err *err)
{
    struct counting *counting = context;
    (void)cancel;
    counting->n_sums++;
    int64_t span_ns = range.to_ns - range.from_ns;
    counting->max_span_ns = span_ns > counting->max_span_ns ? span_ns : counting->max_span_ns;
    if (counting->failing != HEARTH_OK &&
        (counting->failing_rule == NULL || hearth_str_eq_c(rule->id, counting->failing_rule))) {
        if (counting->fails_late) {
            (void)nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 1000000}, NULL);
        }
        return HEARTH_FAIL(err, counting->failing, "the test wants it so");
    }
    enum hearth_status status = read_sums(counting, range.from_ns, range.to_ns, arena, ret, ret_n);
    void (*after)(struct counting *, const struct hearth_rule *) = counting->after;
    counting->after = NULL;
    if (after != NULL) {
        after(counting, rule);
    }
    return status;
}

static void open_counting(struct counting *counting)
{
    *counting = (struct counting){.times = 1};
    hearth_clock_fake(T0 - 30 * HEARTH_NS_PER_SEC);
    open_fixture(&counting->fix);
    const struct hearth_rule_evaluator evaluator = {
        .evaluate = evaluate, .context = counting, .max_series = 100};
    hearth_store_set_rule_evaluator(counting->fix.store, &evaluator);
}

static void close_counting(struct counting *counting)
{
    close_fixture(&counting->fix);
    hearth_clock_fake(0);
}

/* Begins at T0 when the clock stands within the minute before. */
static struct hearth_rule put_rule(struct counting *counting, const char *id, int64_t generation)
{
    static struct hearth_str matcher = {"{}", 2};
    struct hearth_rule rule = {
        .tenant = TENANT,
        .id = hearth_str_c(id),
        .metric_name = HEARTH_STR("m"),
        .matchers = &matcher,
        .n_matchers = 1,
        .function = HEARTH_STR(""),
        .generation = generation,
    };
    assert_ok(hearth_store_rule_put(STORE_SCOPE(counting->fix.store, HEARTH_STR(""), NULL), &rule,
                                    0, &err));
    return rule;
}

static enum hearth_status step(struct counting *counting)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_OK;
    counting->fix.builder.next_marks_mono_ns = 0;
    bool more = true;
    for (int i = 0; i < 1000 && more && status == HEARTH_OK; i++) {
        more = false;
        status = hearth_step_rules(&counting->fix.builder, &more, &err);
    }
    hearth_builder_rollback(&counting->fix.builder);
    return status;
}

static void expect_step(struct counting *counting)
{
    assert_int_equal(step(counting), HEARTH_OK);
}

/* Sum over all counters. */
static long long counted(struct counting *counting)
{
    return pg_cluster_int(counting->fix.url,
                          "SELECT coalesce(sum(value), 0) FROM hearth_data.rule_counter");
}

static void push_at(struct counting *counting, int pod, int64_t ts_ns)
{
    push(counting->fix.store, 1, pod, ts_ns);
}

/* The builder is as after its death: another process with the same lease. */
static void revive(struct counting *counting)
{
    hearth_pg_close(&counting->fix.builder.pg);
    assert_ok(hearth_pg_connect(&counting->fix.builder.pg, CONNECT_MS, &err));
    counting->fix.builder.token = 7;
    pg_cluster_run(counting->fix.url, "UPDATE hearth_data.lease SET token = 7, holder = 1");
}

static void a_minute_is_counted_once_when_its_grace_has_passed(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    struct hearth_rule rule = put_rule(&counting, "r", 0);
    assert_int_equal(rule.start_ns, T0);
    push_at(&counting, 1, T0 - 1); /* before its beginning */
    push_at(&counting, 1, T0);
    push_at(&counting, 2, T0 + MINUTE - 1);
    push_at(&counting, 1, T0 + MINUTE);
    hearth_clock_fake(T0 + 2 * MINUTE - 1);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 0);
    hearth_clock_fake(T0 + 2 * MINUTE);
    for (int i = 0; i < 3; i++) {
        expect_step(&counting);
        assert_int_equal(counted(&counting), 2);
    }
    assert_int_equal(counting.n_sums, 1);
    assert_int_equal(count(&counting.fix, "rule_counter"), 2);
    hearth_clock_fake(T0 + 3 * MINUTE);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 3);
    close_counting(&counting);
}

static void a_late_profile_is_counted_when_its_bucket_is_built(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "r", 0);
    push_at(&counting, 1, T0 + 1);
    hearth_clock_fake(T0 + 5 * MINUTE);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 1);
    push_at(&counting, 1, T0 + 2);          /* its minute is gone */
    push(counting.fix.store, 2, 1, T0 + 3); /* likewise, and a service nobody knew */
    hearth_clock_fake(T0 + 11 * MINUTE);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 1);
    build(&counting.fix);
    for (int i = 0; i < 3; i++) {
        expect_step(&counting);
        assert_int_equal(counted(&counting), 3);
    }
    assert_int_equal(count(&counting.fix, "rule_mark"), 0);
    close_counting(&counting);
}

static void a_late_profile_is_counted_when_it_is_folded_in(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "r", 0);
    push_at(&counting, 1, T0 + 1);
    hearth_clock_fake(T0 + 11 * MINUTE);
    build(&counting.fix);
    expect_step(&counting);
    push_at(&counting, 1, T0 + 2);
    push_at(&counting, 2, T0 + 3);
    assert_int_equal(count(&counting.fix, "profile_late"), 2);
    hearth_clock_fake(T0 + 12 * MINUTE);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 1);
    fold_late(&counting.fix);
    assert_int_equal(count(&counting.fix, "profile_late"), 0);
    for (int i = 0; i < 3; i++) {
        expect_step(&counting);
        assert_int_equal(counted(&counting), 3);
    }
    close_counting(&counting);
}

static void profiles_in_the_bucket_before_the_rule_began_never_count(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    hearth_clock_fake(T0 + 4 * MINUTE + 1);
    struct hearth_rule rule = put_rule(&counting, "r", 0);
    assert_int_equal(rule.start_ns, T0 + 5 * MINUTE);
    push_at(&counting, 1, T0 + 5 * MINUTE - 1);
    push_at(&counting, 1, T0 + 5 * MINUTE);
    hearth_clock_fake(T0 + 11 * MINUTE);
    expect_step(&counting);
    build(&counting.fix);
    expect_step(&counting);
    push_at(&counting, 1, T0 + 1);
    fold_late(&counting.fix);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 1);
    close_counting(&counting);
}

static void push_in_between(struct counting *counting, const struct hearth_rule *rule)
{
    (void)rule;
    push_at(counting, 3, T0 + 7);
}

static void profiles_between_sum_and_transaction_are_counted_later(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "r", 0);
    push_at(&counting, 1, T0 + 1);
    counting.after = push_in_between;
    hearth_clock_fake(T0 + 2 * MINUTE);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 1);
    hearth_clock_fake(T0 + 11 * MINUTE);
    expect_step(&counting);
    build(&counting.fix);
    counting.after = push_in_between; /* late now */
    expect_step(&counting);
    assert_int_equal(counted(&counting), 2);
    fold_late(&counting.fix);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 3);
    close_counting(&counting);
}

/* Another server had the lease, and did what there was to do; we have it again. */
static void lose_and_win_the_lease(struct counting *counting, const struct hearth_rule *rule)
{
    (void)rule;
    pg_cluster_run(counting->fix.url, "UPDATE hearth_data.lease SET token = 9");
    counting->fix.builder.token = 9;
}

static void lose_the_lease(struct counting *counting, const struct hearth_rule *rule)
{
    (void)rule;
    pg_cluster_run(counting->fix.url, "UPDATE hearth_data.lease SET token = 8, holder = 2");
}

static void lose_the_connection(struct counting *counting, const struct hearth_rule *rule)
{
    (void)rule;
    hearth_pg_close(&counting->fix.builder.pg);
}

static void a_server_that_dies_or_loses_the_lease_after_the_sum_has_changed_nothing(void **state)
{
    (void)state;
    static void (*const accidents[])(struct counting *, const struct hearth_rule *) = {
        lose_the_lease, lose_and_win_the_lease, lose_the_connection};
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "r", 0);
    for (int i = 0; i < 3; i++) {
        push_at(&counting, 1, T0 + i * MINUTE + 1);
        hearth_clock_fake(T0 + (i + 2) * MINUTE);
        counting.after = accidents[i];
        assert_int_not_equal(step(&counting), HEARTH_OK);
        assert_int_equal(counted(&counting), i);
        revive(&counting);
        expect_step(&counting);
        assert_int_equal(counted(&counting), i + 1);
    }
    /* The same for a bucket that is counted again. */
    push_at(&counting, 1, T0 + 5);
    hearth_clock_fake(T0 + 11 * MINUTE);
    expect_step(&counting);
    build(&counting.fix);
    for (int i = 0; i < 3; i++) {
        counting.after = accidents[i];
        assert_int_not_equal(step(&counting), HEARTH_OK);
        assert_int_equal(counted(&counting), 3);
        revive(&counting);
    }
    expect_step(&counting);
    assert_int_equal(counted(&counting), 4);
    close_counting(&counting);
}

static void remove_the_rule(struct counting *counting, const struct hearth_rule *rule)
{
    assert_ok(hearth_store_rule_delete(STORE_SCOPE(counting->fix.store, rule->tenant, NULL),
                                       rule->id, &err));
}

static void count_something_else(struct counting *counting, const struct hearth_rule *rule)
{
    struct hearth_rule other = *rule;
    struct hearth_str label = HEARTH_STR("pod");
    other.group_by = &label;
    other.n_group_by = 1;
    assert_ok(hearth_store_rule_put(STORE_SCOPE(counting->fix.store, HEARTH_STR(""), NULL), &other,
                                    0, &err));
}

static void a_rule_that_changes_while_it_is_summed_begins_again(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    struct hearth_rule rule = put_rule(&counting, "r", 0);
    push_at(&counting, 1, T0 + 1);
    hearth_clock_fake(T0 + 2 * MINUTE);
    counting.after = count_something_else;
    expect_step(&counting);
    assert_int_equal(counted(&counting), 0);
    assert_int_equal(count(&counting.fix, "rule_state"), 1);
    assert_int_equal(count(&counting.fix, "recording_rule WHERE generation = 2"), 1);
    assert_int_equal(
        pg_cluster_int(counting.fix.url, "SELECT start_ns FROM hearth_data.recording_rule"),
        T0 + 3 * MINUTE);
    push_at(&counting, 1, T0 + 3 * MINUTE);
    hearth_clock_fake(T0 + 5 * MINUTE);
    counting.after = remove_the_rule;
    expect_step(&counting);
    for (size_t i = 0; i < 4; i++) {
        static const char *const tables[] = {"recording_rule", "rule_state", "rule_counter",
                                             "rule_bucket"};
        assert_int_equal(count(&counting.fix, tables[i]), 0);
    }
    (void)rule;
    close_counting(&counting);
}

static void counters_keep_their_values_when_only_names_change(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    struct hearth_rule rule = put_rule(&counting, "r", 0);
    push_at(&counting, 1, T0 + 1);
    hearth_clock_fake(T0 + 2 * MINUTE);
    expect_step(&counting);
    int64_t rule_no = rule.rule_no;
    rule.metric_name = HEARTH_STR("another");
    assert_ok(hearth_store_rule_put(STORE_SCOPE(counting.fix.store, HEARTH_STR(""), NULL), &rule, 0,
                                    &err));
    assert_int_equal(rule.rule_no, rule_no);
    assert_int_equal(rule.generation, 2);
    assert_int_equal(counted(&counting), 1);
    struct hearth_err err = HEARTH_ERR_INIT;
    rule.generation = 1;
    assert_int_equal(hearth_store_rule_put(STORE_SCOPE(counting.fix.store, HEARTH_STR(""), NULL),
                                           &rule, 0, &err),
                     HEARTH_ABORTED);
    struct hearth_rule_counter *counters;
    size_t n;
    assert_ok(hearth_store_rule_counters(
        STORE_SCOPE(counting.fix.store, TENANT, &counting.fix.arena), &counters, &n, &err));
    assert_int_equal(n, 1);
    assert_true(hearth_str_eq_c(counters[0].value, "1"));
    assert_ok(hearth_store_rule_counters(
        STORE_SCOPE(counting.fix.store, HEARTH_STR("other"), &counting.fix.arena), &counters, &n,
        &err));
    assert_int_equal(n, 0);
    close_counting(&counting);
}

static void deletions_do_not_decrease_counters(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "r", 0);
    push_at(&counting, 1, T0 + 1);
    push_at(&counting, 1, T0 + 2);
    hearth_clock_fake(T0 + 11 * MINUTE);
    expect_step(&counting);
    pg_cluster_run(counting.fix.url, "DELETE FROM hearth_data.profile");
    build(&counting.fix);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 2);
    for (int i = 0; i < 3; i++) { /* until what is there exceeds what was */
        push_at(&counting, 1, T0 + 3 + i);
        fold_late(&counting.fix);
        expect_step(&counting);
        assert_int_equal(counted(&counting), i == 2 ? 3 : 2);
    }
    close_counting(&counting);
}

static void a_rule_catches_up_ten_minutes_at_a_time_after_an_outage(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "r", 0);
    for (int i = 0; i < 60; i++) {
        push_at(&counting, i % 3, T0 + i * 3 * MINUTE + 1);
    }
    hearth_clock_fake(T0 + 3 * HOUR + MINUTE);
    build(&counting.fix); /* all of it stands in blocks before the first sum */
    expect_step(&counting);
    assert_int_equal(counted(&counting), 60);
    assert_int_equal(counting.max_span_ns, BUCKET);
    assert_int_equal(count(&counting.fix, "rule_mark"), 0);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 60);
    close_counting(&counting);
}

static void one_rule_that_cannot_be_summed_does_not_hold_up_the_others(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "bad", 0);
    (void)put_rule(&counting, "good", 0);
    push_at(&counting, 1, T0 + 1);
    hearth_clock_fake(T0 + 11 * MINUTE);
    counting.failing = HEARTH_OUT_OF_RANGE;
    counting.failing_rule = "bad";
    build(&counting.fix);
    assert_int_equal(step(&counting), HEARTH_OUT_OF_RANGE);
    assert_int_equal(counted(&counting), 1);
    assert_int_equal(count(&counting.fix, "rule_mark"), 1); /* it waits for the bad one */
    push_at(&counting, 1, T0 + 2);
    fold_late(&counting.fix);
    assert_int_equal(step(&counting), HEARTH_OUT_OF_RANGE);
    assert_int_equal(counted(&counting), 2);
    counting.failing = HEARTH_OK;
    expect_step(&counting);
    assert_int_equal(counted(&counting), 4);
    assert_int_equal(count(&counting.fix, "rule_mark"), 0);
    close_counting(&counting);
}

static void
a_rule_that_takes_all_the_time_of_its_turn_does_not_keep_the_others_from_theirs(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "bad", 0);
    (void)put_rule(&counting, "good", 0);
    push_at(&counting, 1, T0 + 1);
    hearth_clock_fake(T0 + 2 * MINUTE);
    counting.failing = HEARTH_OUT_OF_RANGE;
    counting.failing_rule = "bad";
    counting.fails_late = true;
    assert_int_equal(step(&counting), HEARTH_OUT_OF_RANGE);
    assert_int_equal(counted(&counting), 0);
    (void)step(&counting);
    assert_int_equal(counted(&counting), 1);
    close_counting(&counting);
}

static void counters_go_beyond_64_bits(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    (void)put_rule(&counting, "r", 0);
    counting.times = INT64_C(6000000000000000000);
    for (int i = 0; i < 3; i++) {
        push_at(&counting, 1, T0 + i * BUCKET);
    }
    hearth_clock_fake(T0 + HOUR);
    expect_step(&counting);
    char text[64];
    pg_cluster_text(counting.fix.url, "SELECT value FROM hearth_data.rule_counter", text,
                    sizeof text);
    assert_string_equal(text, "18000000000000000000");
    /* Within one bucket it is an error, and counts nothing. */
    push_at(&counting, 1, T0 + HOUR);
    push_at(&counting, 1, T0 + HOUR + MINUTE);
    hearth_clock_fake(T0 + HOUR + 2 * MINUTE);
    expect_step(&counting);
    hearth_clock_fake(T0 + HOUR + 3 * MINUTE);
    assert_int_equal(step(&counting), HEARTH_OUT_OF_RANGE);
    pg_cluster_text(counting.fix.url, "SELECT value FROM hearth_data.rule_counter", text,
                    sizeof text);
    assert_string_equal(text, "24000000000000000000");
    close_counting(&counting);
}

static void profiles_later_than_the_window_are_not_counted(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    counting.fix.store->options.rule_window_ns = 2 * HOUR;
    (void)put_rule(&counting, "r", 0);
    push_at(&counting, 1, T0 + 1);
    push_at(&counting, 1, T0 + HOUR);
    hearth_clock_fake(T0 + 3 * HOUR);
    build(&counting.fix);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 2);
    assert_int_equal(count(&counting.fix, "rule_bucket"), 1); /* the older one is gone */
    push_at(&counting, 1, T0 + 2);
    push_at(&counting, 1, T0 + HOUR + 1);
    fold_late(&counting.fix);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 3);
    close_counting(&counting);
}

static void marks_are_left_for_tenants_with_rules_only(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    push_at(&counting, 1, T0 + 1);
    hearth_clock_fake(T0 + 11 * MINUTE);
    build(&counting.fix);
    push_at(&counting, 1, T0 + 2);
    fold_late(&counting.fix);
    assert_int_equal(count(&counting.fix, "rule_mark"), 0);
    close_counting(&counting);
}

static void series_beyond_the_limit_are_left_out(void **state)
{
    (void)state;
    struct counting counting;
    open_counting(&counting);
    counting.fix.store->rule_evaluator.max_series = 2;
    (void)put_rule(&counting, "r", 0);
    for (int pod = 1; pod <= 3; pod++) {
        push_at(&counting, pod, T0 + pod);
    }
    hearth_clock_fake(T0 + 2 * MINUTE);
    expect_step(&counting);
    assert_int_equal(counted(&counting), 2);
    assert_int_equal(
        pg_cluster_int(counting.fix.url, "SELECT n_series_dropped FROM hearth_data.rule_state"), 1);
    close_counting(&counting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_is_counted_once_when_its_grace_has_passed),
        cmocka_unit_test(a_late_profile_is_counted_when_its_bucket_is_built),
        cmocka_unit_test(a_late_profile_is_counted_when_it_is_folded_in),
        cmocka_unit_test(profiles_in_the_bucket_before_the_rule_began_never_count),
        cmocka_unit_test(profiles_between_sum_and_transaction_are_counted_later),
        cmocka_unit_test(a_server_that_dies_or_loses_the_lease_after_the_sum_has_changed_nothing),
        cmocka_unit_test(a_rule_that_changes_while_it_is_summed_begins_again),
        cmocka_unit_test(counters_keep_their_values_when_only_names_change),
        cmocka_unit_test(deletions_do_not_decrease_counters),
        cmocka_unit_test(a_rule_catches_up_ten_minutes_at_a_time_after_an_outage),
        cmocka_unit_test(one_rule_that_cannot_be_summed_does_not_hold_up_the_others),
        cmocka_unit_test(
            a_rule_that_takes_all_the_time_of_its_turn_does_not_keep_the_others_from_theirs),
        cmocka_unit_test(counters_go_beyond_64_bits),
        cmocka_unit_test(profiles_later_than_the_window_are_not_counted),
        cmocka_unit_test(marks_are_left_for_tenants_with_rules_only),
        cmocka_unit_test(series_beyond_the_limit_are_left_out),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
