/* A deletion: hidden and out of the catalogue at once, in all servers; physically gone when the
 * builder's step has run; and what is deleted may come back under another id. */
#include "hearth/store/background.h"

#include "step_fixture.h"

static int64_t erase(struct fixture *fix, const char *selector, int64_t from_ns, int64_t to_ns)
{
    struct hearth_series_hit *hits = NULL;
    int64_t id = 0;
    size_t n = select_hits(fix->store, TENANT, selector, from_ns, to_ns, &fix->arena, &hits);
    assert_true(n > 0);
    assert_ok(hearth_store_erase(fix->store, TENANT, hits, n, hearth_str_c(selector),
                                 HEARTH_STR("test"), from_ns, to_ns, &id, &err));
    return id;
}

static void run_step(struct fixture *fix)
{
    bool more = true;
    for (int i = 0; i < 1000 && more; i++) {
        assert_ok(hearth_step_erase(&fix->builder, &more, &err));
    }
    assert_false(more);
}

static void let_two_minutes_pass(const struct fixture *fix)
{
    pg_cluster_run(fix->url, "UPDATE hearth_data.erasure SET requested_at = requested_at -"
                             " interval '2 minutes'");
}

/* ---- tests ---- */

static void what_is_deleted_leaves_the_catalogue_of_all_servers_at_once(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 2, T0);
    push(fix.store, 2, 4, T0);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    int64_t id = erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    assert_true(id > 0);
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 0);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 0);
    assert_int_equal(count_hits(other, TENANT, "{}", 0, INT64_MAX), 4);
    assert_int_equal(count(&fix, "label_pair WHERE value = 'pod-1'"), 0);
    assert_int_equal(count(&fix, "label_pair WHERE value = 'pod-2'"), 1);
    /* The only series of its region, and the only one of its service. */
    assert_int_equal(count(&fix, "label_pair WHERE value = 'r-2'"), 1);
    (void)erase(&fix, "{service_name=\"svc-2\"}", 0, INT64_MAX);
    assert_int_equal(count(&fix, "service WHERE name = 'svc-2'"), 0);
    assert_int_equal(count(&fix, "shape"), 1); /* svc-1 still has it */
    assert_int_equal(count(&fix, "tombstone"), 2);
    assert_int_equal(count(&fix, "roll_state WHERE generation > 0"), 2);
    close_store(other);
    close_fixture(&fix);
}

static void a_series_with_hours_outside_the_range_stays(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    for (int hour = 0; hour < 4; hour++) {
        push(fix.store, 1, 1, T0 + hour * HOUR + 5);
    }
    /* Two whole hours, and half of the next. */
    (void)erase(&fix, "{}", T0 + HOUR, T0 + 3 * HOUR + HOUR / 2);
    assert_int_equal(count_hits(fix.store, TENANT, "{}", T0, T0 + HOUR - 1), 2);
    assert_int_equal(count_hits(fix.store, TENANT, "{}", T0 + HOUR, T0 + 3 * HOUR - 1), 0);
    assert_int_equal(count_hits(fix.store, TENANT, "{}", T0 + 3 * HOUR, T0 + 4 * HOUR), 2);
    assert_int_equal(count(&fix, "series_hour"), 2);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 1); /* the one of the last hour is before its middle */
    assert_int_equal(count(&fix, "tombstone"), 0);
    close_fixture(&fix);
}

static void nothing_is_removed_before_two_minutes_have_passed(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 2, T0);
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 2);
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NULL"), 1);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 1);
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NOT NULL AND n_rows = 1"), 1);
    struct hearth_erasure *erasures = NULL;
    size_t n = 0;
    assert_ok(hearth_store_erasures(fix.store, TENANT, &fix.arena, &erasures, &n, &err));
    assert_int_equal(n, 1);
    assert_true(hearth_str_eq_c(erasures[0].selector, "{pod=\"pod-1\"}"));
    assert_true(hearth_str_eq_c(erasures[0].requested_by, "test"));
    assert_int_equal(erasures[0].n_rows, 1);
    assert_int_equal(erasures[0].n_series, 1);
    assert_true(erasures[0].done_at_ns >= erasures[0].requested_at_ns);
    close_fixture(&fix);
}

/* A server that has not noticed yet: known hours cost it no transaction, new hours do. */
static void a_series_that_is_gone_comes_back_under_another_id(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    struct hearth_series_ref before = resolve_one(other, TENANT, 1, 1, T0);
    push(other, 1, 1, T0);
    push(other, 1, 2, T0);
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    /* `other` was not asked anything since: it finds out by the clock row. */
    struct hearth_series_ref after = resolve_one(other, TENANT, 1, 1, T0 + HOUR);
    assert_int_not_equal(before.series_id, after.series_id);
    push(other, 1, 1, T0 + HOUR);
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    /* The refresh has cleared what it believed of the first hour, too. */
    struct hearth_series_ref again = resolve_one(other, TENANT, 1, 1, T0);
    assert_int_equal(again.series_id, after.series_id);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    assert_int_equal(count(&fix, "profile"), 2);
    close_store(other);
    close_fixture(&fix);
}

/* Whatever a stale server pushes under an id that is gone is removed with the rest. */
static void what_a_stale_server_pushes_into_the_range_goes_too(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    push(other, 1, 1, T0);
    push(other, 1, 2, T0);
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    push(other, 1, 1, T0 + 1); /* a known series in a known hour: from memory */
    assert_int_equal(count(&fix, "profile p WHERE NOT EXISTS (SELECT FROM hearth_data.series s"
                                 " WHERE s.series_id = p.series_id)"),
                     2);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile p WHERE NOT EXISTS (SELECT FROM hearth_data.series s"
                                 " WHERE s.series_id = p.series_id)"),
                     0);
    assert_int_equal(count(&fix, "profile"), 1);
    close_store(other);
    close_fixture(&fix);
}

/* The label's text is not in the files of the catalogue any more, deleted rows included. */
static void a_leaked_label_value_is_not_in_the_files_any_more(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 77123, T0);
    char sql[512], command[768], data[320];
    pg_cluster_run(fix.url, "CHECKPOINT");
    (void)snprintf(
        sql, sizeof sql,
        "SELECT string_agg(current_setting('data_directory') || '/' ||"
        " pg_relation_filepath(oid), ' ') FROM pg_class WHERE relnamespace ="
        " 'hearth_data'::regnamespace AND relname IN ('label_pair', 'series', 'service')");
    pg_cluster_text(fix.url, sql, data, sizeof data);
    (void)snprintf(command, sizeof command, "grep -q -a pod-77123 %s", data);
    assert_int_equal(system(command), 0);
    (void)erase(&fix, "{pod=\"pod-77123\"}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    pg_cluster_run(fix.url, "CHECKPOINT");
    pg_cluster_text(fix.url, sql, data, sizeof data);
    (void)snprintf(command, sizeof command, "grep -q -a pod-77123 %s", data);
    assert_int_not_equal(system(command), 0);
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    close_fixture(&fix);
}

static void of_a_departed_service_not_even_symbols_are_left(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 2, 1, T0);
    (void)erase(&fix, "{service_name=\"svc-1\"}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "dict_chunk d WHERE NOT EXISTS (SELECT FROM hearth_data.service s"
                                 " WHERE s.service_id = d.service_id)"),
                     0);
    assert_true(count(&fix, "dict_chunk") > 0);
    assert_int_equal(count(&fix, "roll_state"), 0);
    assert_int_equal(count(&fix, "profile"), 1);
    close_fixture(&fix);
}

static void late_rows_go_and_a_restart_in_between_does_no_harm(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 2, T0);
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.profile_late SELECT * FROM"
                            " hearth_data.profile");
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    /* As after a restart: somebody did a part, and the progress is forgotten. */
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.profile p USING hearth_data.tombstone t WHERE"
                            " p.series_id = ANY (t.series_ids)");
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 1);
    assert_int_equal(count(&fix, "profile_late"), 1);
    run_step(&fix);
    close_fixture(&fix);
}

static void only_the_holder_of_the_lease_removes(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    (void)erase(&fix, "{}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    pg_cluster_run(fix.url, "UPDATE hearth_data.lease SET token = 8");
    bool more = false;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_step_erase(&fix.builder, &more, &err), HEARTH_FAILED_PRECONDITION);
    assert_int_equal(count(&fix, "profile"), 1);
    close_fixture(&fix);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t id = 0;
    assert_int_equal(hearth_store_erase(fix.store, TENANT, NULL, 0, HEARTH_STR("{}"),
                                        HEARTH_STR("test"), 5, 4, &id, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_int_equal(hearth_store_erase(fix.store, HEARTH_STR("nobody"), NULL, 0, HEARTH_STR("{}"),
                                        HEARTH_STR("test"), 0, 4, &id, &err),
                     HEARTH_NOT_FOUND);
    assert_ok(hearth_store_erase(fix.store, TENANT, NULL, 0, HEARTH_STR("{}"), HEARTH_STR("test"),
                                 0, 4, &id, &err));
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NOT NULL"), 1);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_deleted_leaves_the_catalogue_of_all_servers_at_once),
        cmocka_unit_test(a_series_with_hours_outside_the_range_stays),
        cmocka_unit_test(nothing_is_removed_before_two_minutes_have_passed),
        cmocka_unit_test(a_series_that_is_gone_comes_back_under_another_id),
        cmocka_unit_test(what_a_stale_server_pushes_into_the_range_goes_too),
        cmocka_unit_test(a_leaked_label_value_is_not_in_the_files_any_more),
        cmocka_unit_test(of_a_departed_service_not_even_symbols_are_left),
        cmocka_unit_test(late_rows_go_and_a_restart_in_between_does_no_harm),
        cmocka_unit_test(only_the_holder_of_the_lease_removes),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
