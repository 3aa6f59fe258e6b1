/* test_tasks.c -- tasks as rows: what overlaps, whose they are, limits, pages, logs. */
#include "hearth/store/store_tasks.h"

#include "step_fixture.h"
#include "store_scope.h"
#include "tasks/tasks_expire.h"

#define NOW     INT64_C(1763546400000)
#define OVERLAP "another runs then"

static struct hearth_str g_texts[8];

/* "a b" as two texts. */
static size_t split(const char *words, struct hearth_str *out)
{
    size_t n = 0;
    for (const char *at = words; *at != '\0'; n++) {
        size_t length = strcspn(at, " ");
        out[n] = hearth_str_n(at, length);
        at += length + strspn(at + length, " ");
    }
    return n;
}

static struct hearth_task make_task(int32_t service_id, const char *id, enum hearth_task_kind kind,
                                    int64_t start_s, int64_t s)
{
    return (struct hearth_task){
        .task_id = hearth_str_c(id),
        .kind = kind,
        .origin = HEARTH_TASK_CREATED,
        .service_id = service_id,
        .instance = kind == HEARTH_TASK_NETWORK ? HEARTH_STR("i-1") : HEARTH_STR(""),
        .endpoint = kind == HEARTH_TASK_TRACE ? HEARTH_STR("/x") : HEARTH_STR(""),
        .start_ms = NOW + start_s * 1000,
        .duration_ms = s * 1000,
        .created_ms = NOW,
    };
}

static enum hearth_status put_as(struct fixture *fix, struct hearth_str tenant,
                                 struct hearth_task *task, int64_t max)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_store_task_put(STORE_SCOPE(fix->store, tenant, NULL), task, max, OVERLAP, &err);
    if (status == HEARTH_INTERNAL) {
        print_error("%s\n", err.msg);
    }
    return status;
}

static int32_t service_of(struct fixture *fix, struct hearth_str tenant, int number)
{
    return resolve_one(fix->store, tenant, number, 1, T0).service_id;
}

static enum hearth_status put_labelled(struct fixture *fix, int32_t service_id, const char *id,
                                       enum hearth_task_kind kind, int64_t start_s,
                                       const char *words)
{
    struct hearth_task task = make_task(service_id, id, kind, start_s, 60);
    size_t n = split(words, g_texts);
    if (kind == HEARTH_TASK_PPROF) {
        task.events = g_texts;
        task.n_events = n;
    } else {
        task.labels = g_texts;
        task.n_labels = n;
    }
    return put_as(fix, TENANT, &task, 0);
}

static void a_task_is_read_back_as_it_was_stored(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t service_id = service_of(&fix, TENANT, 1);
    struct hearth_str labels[2] = {HEARTH_STR("k8s"), HEARTH_STR("mesh, \"quoted\"")};
    struct hearth_task task = make_task(service_id, "t-1", HEARTH_TASK_NETWORK, 10, 600);
    task.labels = labels;
    task.n_labels = 2;
    task.sampling = HEARTH_STR("[{\"MinDuration\": 100}]");
    task.min_duration_ms = 7;
    assert_int_equal(put_as(&fix, TENANT, &task, 0), HEARTH_OK);
    struct hearth_task got;
    assert_ok(hearth_store_task_get(STORE_SCOPE(fix.store, TENANT, &fix.arena), HEARTH_STR("t-1"),
                                    &got, &err));
    assert_string_equal(got.task_id.p, "t-1");
    assert_int_equal(got.kind, HEARTH_TASK_NETWORK);
    assert_string_equal(got.service.p, "svc-1");
    assert_string_equal(got.instance.p, "i-1");
    assert_string_equal(got.process_id.p, "");
    assert_int_equal(got.n_labels, 2);
    assert_string_equal(got.labels[1].p, "mesh, \"quoted\"");
    assert_int_equal(got.n_instances, 0);
    assert_int_equal(got.start_ms, NOW + 10000);
    assert_int_equal(got.duration_ms, 600000);
    assert_int_equal(got.created_ms, NOW);
    assert_int_equal(got.updated_ms, NOW);
    assert_int_equal(got.cancelled_ms, 0);
    assert_int_equal(got.min_duration_ms, 7);
    assert_string_equal(got.sampling.p, "[{\"MinDuration\": 100}]");
    assert_string_equal(got.causes.p, "");
    assert_int_equal(put_as(&fix, TENANT, &task, 0), HEARTH_ALREADY_EXISTS);
    close_fixture(&fix);
}

static void tasks_of_processes_overlap_where_they_share_time_and_processes(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t service_id = service_of(&fix, TENANT, 1), other_id = service_of(&fix, TENANT, 2);
    enum hearth_task_kind cpu = HEARTH_TASK_ON_CPU;
    assert_int_equal(put_labelled(&fix, service_id, "a", cpu, 100, "x y"), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "b", cpu, 159, "y"), HEARTH_ALREADY_EXISTS);
    assert_int_equal(put_labelled(&fix, service_id, "b", cpu, 41, ""), HEARTH_ALREADY_EXISTS);
    assert_int_equal(put_labelled(&fix, service_id, "b", cpu, 160, ""), HEARTH_OK); /* touching */
    assert_int_equal(put_labelled(&fix, service_id, "c", cpu, 40, ""), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "d", cpu, 100, "z"), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "e", HEARTH_TASK_OFF_CPU, 100, "x"), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, other_id, "f", cpu, 100, "x"), HEARTH_OK);
    /* A process that has the labels of both. */
    pg_cluster_run(fix.url,
                   "WITH i AS (INSERT INTO hearth_data.instance (service_id, name, layer,"
                   " properties, first_seen, last_seen) SELECT service_id, 'i', '', '{}', 1,"
                   " 1 FROM hearth_data.service WHERE name = 'svc-2' RETURNING *)"
                   " INSERT INTO hearth_data.process SELECT service_id, repeat('0', 64),"
                   " instance_id, 'p', 1, '', '{q,x}', '{}', true, 1, 1 FROM i");
    assert_int_equal(put_labelled(&fix, other_id, "g", cpu, 100, "q"), HEARTH_ALREADY_EXISTS);
    assert_ok(hearth_store_task_cancel(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("f"),
                                       NOW + 5, &err));
    assert_int_equal(put_labelled(&fix, other_id, "g", cpu, 100, "q"), HEARTH_OK);
    close_fixture(&fix);
}

static void tasks_of_instances_overlap_where_they_touch(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t service_id = service_of(&fix, TENANT, 1);
    assert_int_equal(put_labelled(&fix, service_id, "a", HEARTH_TASK_TRACE, 100, ""), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "b", HEARTH_TASK_TRACE, 160, ""),
                     HEARTH_ALREADY_EXISTS);
    assert_int_equal(put_labelled(&fix, service_id, "b", HEARTH_TASK_TRACE, 161, ""), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "c", HEARTH_TASK_PPROF, 100, "cpu"), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "d", HEARTH_TASK_PPROF, 100, "heap"),
                     HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "e", HEARTH_TASK_PPROF, 130, "heap"),
                     HEARTH_ALREADY_EXISTS);
    close_fixture(&fix);
}

struct racer {
    struct fixture *fix;
    struct hearth_store *store;
    int32_t service_id;
    int number;
    int64_t start_s;
    enum hearth_status status;
    int64_t created_ms;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    struct hearth_err err = HEARTH_ERR_INIT;
    char id[16];
    (void)snprintf(id, sizeof id, "r-%d", racer->number);
    struct hearth_task task =
        make_task(racer->service_id, id, HEARTH_TASK_ON_CPU, racer->start_s, 60);
    racer->status =
        hearth_store_task_put(STORE_SCOPE(racer->store, TENANT, NULL), &task, 0, OVERLAP, &err);
    racer->created_ms = task.created_ms;
    return NULL;
}

static void one_of_two_overlapping_tasks_on_two_servers_is_taken(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *second = open_without_builder(fix.url);
    int32_t service_id = service_of(&fix, TENANT, 1);
    struct racer racers[8];
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        racers[i] = (struct racer){&fix, i % 2 ? second : fix.store, service_id,
                                   i,    i < 4 ? 0 : 100 + 60 * i,   HEARTH_OK,
                                   0};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    int n_taken = 0;
    for (int i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
        n_taken += racers[i].status == HEARTH_OK;
        assert_true(racers[i].status == HEARTH_OK ||
                    (i < 4 && racers[i].status == HEARTH_ALREADY_EXISTS));
        for (int k = 0; k < i; k++) {
            assert_true(racers[i].status != HEARTH_OK || racers[k].status != HEARTH_OK ||
                        racers[i].created_ms != racers[k].created_ms);
        }
    }
    assert_int_equal(n_taken, 1 + 4);
    close_store(second);
    close_fixture(&fix);
}

static void a_tenant_sees_changes_and_counts_its_own_tasks_only(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_str u = HEARTH_STR("u");
    int32_t mine = service_of(&fix, TENANT, 1), theirs = service_of(&fix, u, 1);
    int64_t ahead_s = (hearth_clock_wall_ns() / HEARTH_NS_PER_MS - NOW) / 1000 + 3600;
    struct hearth_task task = make_task(mine, "a", HEARTH_TASK_ON_CPU, ahead_s, 60);
    assert_int_equal(put_as(&fix, TENANT, &task, 2), HEARTH_OK);
    task = make_task(mine, "b", HEARTH_TASK_OFF_CPU, ahead_s, 60);
    assert_int_equal(put_as(&fix, TENANT, &task, 2), HEARTH_OK);
    task = make_task(mine, "c", HEARTH_TASK_TRACE, ahead_s, 60);
    assert_int_equal(put_as(&fix, TENANT, &task, 2), HEARTH_RESOURCE_EXHAUSTED);
    task = make_task(theirs, "c", HEARTH_TASK_ON_CPU, ahead_s, 60);
    assert_int_equal(put_as(&fix, u, &task, 2), HEARTH_OK);
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_task got;
    assert_int_equal(
        hearth_store_task_get(STORE_SCOPE(fix.store, u, &fix.arena), HEARTH_STR("a"), &got, &err),
        HEARTH_NOT_FOUND);
    assert_int_equal(
        hearth_store_task_cancel(STORE_SCOPE(fix.store, u, NULL), HEARTH_STR("a"), NOW, &err),
        HEARTH_NOT_FOUND);
    bool known = true;
    struct hearth_task_log entry = {
        .instance = HEARTH_STR("i"), .event = HEARTH_TASK_NOTIFIED, .at_ms = NOW};
    assert_ok(hearth_store_task_log_add(STORE_SCOPE(fix.store, u, NULL), HEARTH_STR("a"), &entry,
                                        &known, &err));
    assert_false(known);
    assert_ok(hearth_store_task_cancel(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("a"),
                                       NOW + 1, &err));
    assert_ok(hearth_store_task_cancel(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("a"),
                                       NOW + 9, &err));
    assert_ok(hearth_store_task_get(STORE_SCOPE(fix.store, TENANT, &fix.arena), HEARTH_STR("a"),
                                    &got, &err));
    assert_int_equal(got.cancelled_ms, NOW + 1);
    task = make_task(mine, "d", HEARTH_TASK_TRACE, ahead_s, 60);
    assert_int_equal(put_as(&fix, TENANT, &task, 2), HEARTH_OK);
    close_fixture(&fix);
}

/* "d c " of the page. */
static void expect_page(struct fixture *fix, const struct hearth_task_filter *filter,
                        const char *expected)
{
    struct hearth_task *tasks;
    size_t n;
    char text[64] = "";
    assert_ok(
        hearth_store_tasks(STORE_SCOPE(fix->store, TENANT, &fix->arena), filter, &tasks, &n, &err));
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s ", tasks[i].task_id.p);
    }
    assert_string_equal(text, expected);
}

static void tasks_are_listed_the_latest_first_in_pages(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t one = service_of(&fix, TENANT, 1), two = service_of(&fix, TENANT, 2);
    assert_int_equal(put_labelled(&fix, one, "a", HEARTH_TASK_ON_CPU, 0, ""), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, one, "b", HEARTH_TASK_TRACE, 0, ""), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, two, "c", HEARTH_TASK_NETWORK, 0, ""), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, two, "d", HEARTH_TASK_ON_CPU, 70, ""), HEARTH_OK);
    expect_page(&fix, &(struct hearth_task_filter){0}, "d c b a ");
    expect_page(&fix, &(struct hearth_task_filter){.limit = 2}, "d c ");
    expect_page(&fix,
                &(struct hearth_task_filter){
                    .limit = 2, .before_start_ms = NOW, .before_task_id = HEARTH_STR("c")},
                "b a ");
    expect_page(&fix, &(struct hearth_task_filter){.service = HEARTH_STR("svc-1")}, "b a ");
    expect_page(&fix, &(struct hearth_task_filter){.service = HEARTH_STR("svc-9")}, "");
    expect_page(&fix, &(struct hearth_task_filter){.instance = HEARTH_STR("i-1")}, "c ");
    expect_page(&fix, &(struct hearth_task_filter){.endpoint = HEARTH_STR("/x")}, "b ");
    expect_page(&fix, &(struct hearth_task_filter){.kinds = 1u << HEARTH_TASK_ON_CPU}, "d a ");
    expect_page(&fix, &(struct hearth_task_filter){.origin = HEARTH_TASK_BY_POLICY}, "");
    expect_page(&fix, &(struct hearth_task_filter){.start_from_ms = NOW + 1}, "d ");
    expect_page(&fix, &(struct hearth_task_filter){.start_to_ms = NOW}, "c b a ");
    close_fixture(&fix);
}

static void an_event_keeps_its_first_time_and_its_last_message(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    assert_int_equal(put_labelled(&fix, service_of(&fix, TENANT, 1), "a", HEARTH_TASK_TRACE, 0, ""),
                     HEARTH_OK);
    static char text[HEARTH_TASK_MESSAGE_BYTES + 2];
    for (size_t i = 0; i < sizeof text; i += 2) {
        text[i] = (char)0xC3; /* e acute */
        text[i + 1] = (char)0xA9;
    }
    const struct hearth_task_log entries[] = {
        {.instance = HEARTH_STR("i"),
         .event = HEARTH_TASK_FAILED,
         .at_ms = NOW + 3,
         .message = hearth_str_n(text, sizeof text)},
        {.instance = HEARTH_STR("i"),
         .event = HEARTH_TASK_NOTIFIED,
         .at_ms = NOW + 2,
         .message = HEARTH_STR("first")},
        {.instance = HEARTH_STR("i"),
         .event = HEARTH_TASK_NOTIFIED,
         .at_ms = NOW + 9,
         .message = HEARTH_STR("again")},
        {.instance = HEARTH_STR("h"), .event = HEARTH_TASK_NOTIFIED, .at_ms = NOW + 1},
    };
    for (size_t i = 0; i < 4; i++) {
        bool known = false;
        assert_ok(hearth_store_task_log_add(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("a"),
                                            &entries[i], &known, &err));
        assert_true(known);
    }
    assert_int_equal(put_labelled(&fix, service_of(&fix, TENANT, 2), "b", HEARTH_TASK_TRACE, 0, ""),
                     HEARTH_OK);
    const struct hearth_task_log of_b = {.instance = HEARTH_STR("g"), .event = HEARTH_TASK_FAILED};
    assert_ok(hearth_store_task_log_add(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("b"),
                                        &of_b, NULL, &err));
    struct hearth_task_log *logs;
    size_t n;
    const struct hearth_str ids[] = {HEARTH_STR("b"), HEARTH_STR("none"), HEARTH_STR("a")};
    assert_ok(hearth_store_task_logs(STORE_SCOPE(fix.store, TENANT, &fix.arena), ids, 3, &logs, &n,
                                     &err));
    assert_int_equal(n, 4);
    assert_string_equal(logs[2].task_id.p, "a");
    assert_string_equal(logs[3].task_id.p, "b");
    assert_string_equal(logs[3].instance.p, "g");
    assert_ok(hearth_store_task_logs(STORE_SCOPE(fix.store, TENANT, &fix.arena), &ids[2], 1, &logs,
                                     &n, &err));
    assert_int_equal(n, 3);
    assert_string_equal(logs[0].instance.p, "h");
    assert_int_equal(logs[1].at_ms, NOW + 2);
    assert_int_equal(logs[1].last_at_ms, NOW + 9);
    assert_string_equal(logs[1].message.p, "again");
    assert_int_equal(logs[2].message.n, HEARTH_TASK_MESSAGE_BYTES);
    assert_ok(hearth_store_task_logs(STORE_SCOPE(fix.store, HEARTH_STR("u"), &fix.arena), ids, 3,
                                     &logs, &n, &err));
    assert_int_equal(n, 0);
    close_fixture(&fix);
}

static void a_task_that_ends_soon_is_extended_once(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    assert_int_equal(
        put_labelled(&fix, service_of(&fix, TENANT, 1), "a", HEARTH_TASK_NETWORK, 0, ""),
        HEARTH_OK);
    const struct {
        int64_t at_ms;
        int64_t duration_ms; /* afterwards */
    } calls[] = {{NOW - 1, 60000}, {NOW + 60001, 60000}, {NOW, 660000}, {NOW, 660000}};
    struct hearth_task got;
    for (size_t i = 0; i < 4; i++) {
        struct hearth_task_extension extension = {calls[i].at_ms, 60000, 600000};
        assert_ok(hearth_store_task_extend(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("a"),
                                           &extension, &err));
        assert_ok(hearth_store_task_get(STORE_SCOPE(fix.store, TENANT, &fix.arena), HEARTH_STR("a"),
                                        &got, &err));
        assert_int_equal(got.duration_ms, calls[i].duration_ms);
    }
    assert_int_equal(got.start_ms, NOW);
    assert_int_equal(got.extended_ms, NOW);
    assert_int_equal(got.updated_ms, NOW + 1); /* above what it was, whatever the clock says */
    close_fixture(&fix);
}

static void ended_tasks_are_deleted_with_their_log_after_their_retention(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t service_id = service_of(&fix, TENANT, 1);
    assert_int_equal(put_labelled(&fix, service_id, "a", HEARTH_TASK_TRACE, -3660, ""), HEARTH_OK);
    assert_int_equal(put_labelled(&fix, service_id, "b", HEARTH_TASK_TRACE, -3599, ""), HEARTH_OK);
    const struct hearth_task_log entry = {.event = HEARTH_TASK_FINISHED, .at_ms = NOW};
    assert_ok(hearth_store_task_log_add(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("a"),
                                        &entry, NULL, &err));
    assert_ok(hearth_tasks_expire(&fix.builder.pg, 1, &err)); /* made just now */
    expect_page(&fix, &(struct hearth_task_filter){0}, "b a ");
    pg_cluster_run(fix.url,
                   "UPDATE hearth_data.task SET created_at = start_at, updated_at = start_at");
    assert_ok(hearth_tasks_expire(&fix.builder.pg, 0, &err));
    assert_ok(hearth_tasks_expire(&fix.builder.pg, HOUR, &err)); /* a ended right then: it stays */
    expect_page(&fix, &(struct hearth_task_filter){0}, "b a ");
    assert_ok(hearth_tasks_expire(&fix.builder.pg, HOUR - HEARTH_NS_PER_MS, &err));
    expect_page(&fix, &(struct hearth_task_filter){0}, "b ");
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.task_log"), 0);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_read_back_as_it_was_stored),
        cmocka_unit_test(tasks_of_processes_overlap_where_they_share_time_and_processes),
        cmocka_unit_test(tasks_of_instances_overlap_where_they_touch),
        cmocka_unit_test(one_of_two_overlapping_tasks_on_two_servers_is_taken),
        cmocka_unit_test(a_tenant_sees_changes_and_counts_its_own_tasks_only),
        cmocka_unit_test(tasks_are_listed_the_latest_first_in_pages),
        cmocka_unit_test(an_event_keeps_its_first_time_and_its_last_message),
        cmocka_unit_test(a_task_that_ends_soon_is_extended_once),
        cmocka_unit_test(ended_tasks_are_deleted_with_their_log_after_their_retention),
    };
    return cmocka_run_group_tests(tests, start_cluster_at_t0, stop_cluster);
}
