/* test_task_upload_origin.c -- which file of an instance came before another one of the same process. */
#include "hearth/store/store_tasks.h"
#include "hearth/store/task_results.h"

#include "step_fixture.h"
#include "store_scope.h"

#define NOW    INT64_C(1763546400000)
#define MINUTE INT64_C(60000)

/* A pprof task that instance `instance` was told of at `at_ms`, having said the cursor. */
static void tell(struct fixture *fix, const char *id, const char *event, const char *instance,
                 int64_t agent_cursor_ms, int64_t at_ms)
{
    struct hearth_str name = hearth_str_c(event);
    struct hearth_task task = {
        .task_id = hearth_str_c(id),
        .kind = HEARTH_TASK_PPROF,
        .origin = HEARTH_TASK_CREATED,
        .service_id = resolve_one(fix->store, TENANT, 1, 1, T0).service_id,
        .instance = HEARTH_STR(""),
        .endpoint = HEARTH_STR(""),
        .events = &name,
        .n_events = 1,
        .start_ms = at_ms,
        .duration_ms = MINUTE,
        .created_ms = at_ms,
    };
    assert_ok(hearth_store_task_put(STORE_SCOPE(fix->store, TENANT, NULL), &task, 0, NULL, &err));
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.task_delivery VALUES ('%s', '%s', '', %lld, 0, %lld,"
                   " NULL, %lld)",
                   id, instance, (long long)at_ms, (long long)at_ms, (long long)agent_cursor_ms);
    pg_cluster_run(fix->url, sql);
}

/* The instance uploads the file that its task brought a minute after it was told; its id is `digit` 32 times. */
static void upload(struct fixture *fix, const char *id, char digit)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.task_upload (tenant_id, service_id, upload_id, task_id,"
                   " instance, format, n_bytes, received_at, is_pushed) SELECT s.tenant_id,"
                   " s.service_id, repeat('%c', 32), t.task_id, d.target, 'pprof', 1,"
                   " d.delivered_at + 60000, true FROM hearth_data.task t JOIN hearth_data.service"
                   " s USING (service_id) JOIN hearth_data.task_delivery d USING (task_id) WHERE"
                   " t.task_id = '%s'",
                   digit, id);
    pg_cluster_run(fix->url, sql);
}

/* "event digit" of what came before an upload. */
static const char *origin_of(struct fixture *fix, char digit)
{
    static char text[64];
    char id[33];
    struct hearth_upload_origin origin;
    memset(id, digit, 32);
    id[32] = '\0';
    assert_ok(hearth_store_task_upload_origin(STORE_SCOPE(fix->store, TENANT, &fix->arena),
                                              hearth_str_c(id), &origin, &err));
    assert_true((origin.before_id.n > 0) == (origin.before_ms > 0));
    (void)snprintf(text, sizeof text, "%s %.1s", origin.event.p,
                   origin.before_id.n > 0 ? origin.before_id.p : "-");
    return text;
}

static void the_preceding_file_is_the_latest_of_its_event_and_instance(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    tell(&fix, "t1", "block", "i", 0, NOW);
    upload(&fix, "t1", '1');
    tell(&fix, "t2", "block", "i", NOW, NOW + MINUTE);
    upload(&fix, "t2", '2');
    tell(&fix, "t3", "mutex", "i", NOW + MINUTE, NOW + 2 * MINUTE);
    upload(&fix, "t3", '3');
    tell(&fix, "t4", "block", "j", 0, NOW + 3 * MINUTE);
    upload(&fix, "t4", '4');
    tell(&fix, "t5", "block", "i", NOW + 2 * MINUTE, NOW + 4 * MINUTE);
    upload(&fix, "t5", '5');
    assert_string_equal(origin_of(&fix, '1'), "block -");
    assert_string_equal(origin_of(&fix, '2'), "block 1");
    assert_string_equal(origin_of(&fix, '3'), "mutex -");
    assert_string_equal(origin_of(&fix, '4'), "block -");
    assert_string_equal(origin_of(&fix, '5'), "block 2");
    assert_string_equal(origin_of(&fix, '9'), " -"); /* not stored */
    close_fixture(&fix);
}

static void a_lower_cursor_of_the_agent_is_another_process(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    tell(&fix, "t1", "block", "i", 0, NOW);
    upload(&fix, "t1", '1');
    /* It restarts, and is told of a task of another event first: that one had the low cursor. */
    tell(&fix, "t2", "heap", "i", 0, NOW + 2 * MINUTE);
    tell(&fix, "t3", "block", "i", NOW + 2 * MINUTE, NOW + 3 * MINUTE);
    upload(&fix, "t3", '3');
    assert_string_equal(origin_of(&fix, '3'), "block -");
    tell(&fix, "t4", "block", "i", NOW + 3 * MINUTE, NOW + 5 * MINUTE);
    upload(&fix, "t4", '4');
    assert_string_equal(origin_of(&fix, '4'), "block 3");

    /* A restart afterwards changes nothing; nor does one of another instance. */
    tell(&fix, "t5", "block", "i", 0, NOW + 7 * MINUTE);
    tell(&fix, "t6", "block", "j", 0, NOW + 4 * MINUTE);
    assert_string_equal(origin_of(&fix, '4'), "block 3");

    /* An imported task was told to nobody. */
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.task_delivery WHERE task_id = 't4'");
    assert_string_equal(origin_of(&fix, '4'), "block -");
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_preceding_file_is_the_latest_of_its_event_and_instance),
        cmocka_unit_test(a_lower_cursor_of_the_agent_is_another_process),
    };
    return cmocka_run_group_tests(tests, start_cluster_at_t0, stop_cluster);
}
