/* test_task_delivery.c -- who is told what: once, again while the answer may be lost, and never twice. */
#include "hearth/store/task_delivery.h"

#include "step_fixture.h"
#include "store_scope.h"

#define NOW    INT64_C(1763546400000)
#define MINUTE INT64_C(60000)

static int32_t service_of(struct fixture *fix, int number)
{
    return resolve_one(fix->store, TENANT, number, 1, T0).service_id;
}

static struct hearth_task make_task(int32_t service_id, const char *id, enum hearth_task_kind kind,
                                    int64_t start_ms)
{
    return (struct hearth_task){
        .task_id = hearth_str_c(id),
        .kind = kind,
        .origin = HEARTH_TASK_CREATED,
        .service_id = service_id,
        .instance = kind == HEARTH_TASK_NETWORK ? HEARTH_STR("i") : HEARTH_STR(""),
        .endpoint = kind == HEARTH_TASK_TRACE ? HEARTH_STR("/x") : HEARTH_STR(""),
        .start_ms = start_ms,
        .duration_ms = 10 * MINUTE,
        .created_ms = NOW,
    };
}

static void put(struct fixture *fix, struct hearth_task task)
{
    assert_ok(hearth_store_task_put(STORE_SCOPE(fix->store, TENANT, NULL), &task, 0, NULL, &err));
}

static void put_simple(struct fixture *fix, int service, const char *id, enum hearth_task_kind kind)
{
    put(fix, make_task(service_of(fix, service), id, kind, NOW));
}

/* Process number `digit` of instance i of svc-<service>, last reported by `agent` at `seen_ms`. */
static void report(struct fixture *fix, int service, int digit, const char *agent, int64_t seen_ms,
                   const char *labels)
{
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "WITH s AS (SELECT * FROM hearth_data.service WHERE name = 'svc-%d' LIMIT 1), i AS (INSERT "
        "INTO"
        " hearth_data.instance (service_id, name, layer, properties, first_seen, last_seen)"
        " SELECT service_id, 'i', '', '{}', 1, 1 FROM s ON CONFLICT (service_id, name) DO UPDATE "
        "SET"
        " layer = '' RETURNING *) INSERT INTO hearth_data.process SELECT service_id,"
        " repeat('%d', 64), instance_id, 'p%d', 1, '%s', '%s', '{}', true, 1, %lld FROM i"
        " ON CONFLICT (service_id, process_id) DO UPDATE SET agent_id = excluded.agent_id,"
        " last_seen = excluded.last_seen, labels = excluded.labels",
        service, digit, digit, agent, labels, (long long)seen_ms);
    pg_cluster_run(fix->url, sql);
}

static struct hearth_told_task *g_told;
static size_t g_n_told;

/* "id:first digits of processes@cursor " of what is told; cursors relative to NOW. */
static const char *text_of_told(void)
{
    static char text[512];
    text[0] = '\0';
    for (size_t i = 0; i < g_n_told; i++) {
        char processes[16] = "";
        for (size_t k = 0; k < g_told[i].n_process_ids; k++) {
            processes[k] = g_told[i].process_ids[k].p[0];
            processes[k + 1] = '\0';
        }
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s:%s@%lld ", g_told[i].task.task_id.p,
                       processes, (long long)(g_told[i].cursor_ms - NOW));
    }
    return text;
}

static const char *ask_on(struct hearth_store *store, struct hearth_arena *arena, const char *agent,
                          int64_t cursor_ms, int64_t now_ms)
{
    const struct hearth_task_poll poll = {.tenant = TENANT,
                                          .cursor_ms = cursor_ms,
                                          .now_ms = now_ms,
                                          .agent_id = hearth_str_c(agent),
                                          .seen_after_ms = now_ms - 5 * MINUTE};
    assert_ok(hearth_store_tell_agent(STORE_SCOPE(store, TENANT, arena), &poll, &g_told, &g_n_told,
                                      &err));
    return text_of_told();
}

static const char *ask(struct fixture *fix, const char *agent, int64_t cursor_ms, int64_t now_ms)
{
    return ask_on(fix->store, &fix->arena, agent, cursor_ms, now_ms);
}

static const char *ask_instance(struct fixture *fix, const char *instance,
                                enum hearth_task_kind kind, int64_t cursor_ms, int64_t now_ms)
{
    const struct hearth_task_poll poll = {.tenant = TENANT,
                                          .cursor_ms = cursor_ms,
                                          .now_ms = now_ms,
                                          .service = HEARTH_STR("svc-1"),
                                          .instance = hearth_str_c(instance),
                                          .kind = kind,
                                          .ahead_ms = kind == HEARTH_TASK_TRACE ? MINUTE : 0,
                                          .limit = kind == HEARTH_TASK_TRACE ? 0 : 1};
    assert_ok(hearth_store_tell_instance(STORE_SCOPE(fix->store, TENANT, &fix->arena), &poll,
                                         &g_told, &g_n_told, &err));
    return text_of_told();
}

static void a_task_is_delivered_until_the_agents_cursor_has_passed_it(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    put_simple(&fix, 1, "t", HEARTH_TASK_ON_CPU);
    report(&fix, 1, 1, "a", NOW, "{}");
    report(&fix, 1, 2, "a", NOW, "{}");
    report(&fix, 1, 3, "b", NOW, "{}");
    assert_string_equal(ask(&fix, "a", 0, NOW + 5), "t:1@5 t:2@5 ");
    assert_string_equal(ask(&fix, "a", 0, NOW + 10), "t:1@5 t:2@5 "); /* its answer was lost */
    assert_string_equal(ask(&fix, "a", NOW + 5, NOW + 20), "");
    assert_string_equal(ask(&fix, "a", NOW + 5, NOW + 30), "");
    assert_string_equal(ask(&fix, "b", 0, NOW + 30), "t:3@30 ");
    assert_int_equal(pg_cluster_int(fix.url,
                                    "SELECT confirmed_at FROM hearth_data.task_delivery WHERE"
                                    " target LIKE '1%'"),
                     NOW + 20);
    close_fixture(&fix);
}

static void a_process_that_registers_late_gets_the_task_above_its_cursor(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    put_simple(&fix, 1, "t", HEARTH_TASK_ON_CPU);
    report(&fix, 1, 1, "a", NOW, "{}");
    assert_string_equal(ask(&fix, "a", NOW + 100, NOW + 5),
                        "t:1@101 "); /* the agent's clock is ahead */
    report(&fix, 1, 2, "a", NOW, "{}");
    assert_string_equal(ask(&fix, "a", NOW + 101, NOW + 6), "t:2@102 ");
    report(&fix, 1, 3, "a", NOW, "{}");
    assert_string_equal(ask(&fix, "a", NOW + 101, NOW + 7), "t:2@102 t:3@103 ");
    assert_string_equal(ask(&fix, "a", NOW + 103, NOW + 8), "");
    close_fixture(&fix);
}

static void only_matching_tasks_that_run_now_are_delivered(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t service_id = service_of(&fix, 1);
    struct hearth_str label = HEARTH_STR("x");
    struct hearth_task task = make_task(service_id, "labelled", HEARTH_TASK_ON_CPU, NOW);
    task.labels = &label;
    task.n_labels = 1;
    put(&fix, task);
    put(&fix, make_task(service_id, "later", HEARTH_TASK_ON_CPU, NOW + 10 * MINUTE + 1));
    put(&fix, make_task(service_id, "earlier", HEARTH_TASK_OFF_CPU, NOW - 10 * MINUTE - 1));
    task = make_task(service_id, "triggered", HEARTH_TASK_OFF_CPU, NOW);
    task.origin = HEARTH_TASK_BY_POLICY;
    put(&fix, task);
    put(&fix, make_task(service_id, "cancelled", HEARTH_TASK_OFF_CPU, NOW));
    put(&fix, make_task(service_id, "spans", HEARTH_TASK_TRACE, NOW));
    put_simple(&fix, 2, "other", HEARTH_TASK_ON_CPU);
    assert_ok(hearth_store_task_cancel(STORE_SCOPE(fix.store, TENANT, NULL),
                                       HEARTH_STR("cancelled"), NOW, &err));
    report(&fix, 1, 1, "a", NOW, "{x,y}");
    report(&fix, 1, 2, "a", NOW, "{y}");
    report(&fix, 1, 3, "a", NOW - 6 * MINUTE, "{x}");
    report(&fix, 1, 4, "a", NOW, "{x}");
    report(&fix, 1, 5, "a", NOW, "{x}");
    pg_cluster_run(fix.url,
                   "UPDATE hearth_data.process SET detect_type = 3 WHERE process_id LIKE '4%'");
    pg_cluster_run(
        fix.url,
        "UPDATE hearth_data.process SET can_be_profiled = false WHERE process_id LIKE '5%'");
    assert_string_equal(ask(&fix, "a", 0, NOW), "labelled:1@0 ");
    report(&fix, 1, 1, "a", NOW + 11 * MINUTE, "{x,y}");
    /* Its start has come: above the cursor, whenever it was created. */
    assert_string_equal(ask(&fix, "a", NOW, NOW + 10 * MINUTE + 1), "later:1@600001 ");
    close_fixture(&fix);
}

static void
a_network_task_is_one_command_for_its_instance_and_comes_again_when_kept_alive(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    put_simple(&fix, 1, "n", HEARTH_TASK_NETWORK);
    report(&fix, 1, 2, "a", NOW, "{}");
    report(&fix, 1, 1, "a", NOW, "{}");
    assert_string_equal(ask(&fix, "a", 0, NOW), "n:12@0 ");
    assert_string_equal(ask(&fix, "a", NOW, NOW + 1), "");
    report(&fix, 1, 3, "a", NOW, "{}");
    assert_string_equal(ask(&fix, "a", NOW, NOW + 2), "n:123@2 ");
    struct hearth_task_extension extension = {NOW + 9 * MINUTE + 1, MINUTE, 10 * MINUTE};
    assert_ok(hearth_store_task_extend(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("n"),
                                       &extension, &err));
    report(&fix, 1, 1, "a", NOW + 9 * MINUTE, "{}");
    assert_string_equal(ask(&fix, "a", NOW + 2, NOW + 9 * MINUTE + 5), "n:1@540005 ");
    assert_int_equal(g_told[0].task.duration_ms, 20 * MINUTE);
    assert_string_equal(ask(&fix, "a", NOW + 2, NOW + 9 * MINUTE + 6), "n:1@540005 ");
    assert_string_equal(ask(&fix, "a", NOW + 9 * MINUTE + 5, NOW + 9 * MINUTE + 7), "");
    close_fixture(&fix);
}

static void a_new_agent_takes_over_once_the_old_one_is_silent(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    put_simple(&fix, 1, "t", HEARTH_TASK_ON_CPU);
    report(&fix, 1, 1, "old", NOW, "{}");
    assert_string_equal(ask(&fix, "old", 0, NOW), "t:1@0 ");
    assert_string_equal(ask(&fix, "old", NOW, NOW + MINUTE), ""); /* it was there then */
    report(&fix, 1, 1, "new", NOW + MINUTE, "{}");
    assert_string_equal(ask(&fix, "new", 0, NOW + MINUTE + 1000), "");
    assert_string_equal(ask(&fix, "new", 0, NOW + MINUTE + 119999), "");
    assert_string_equal(ask(&fix, "new", 0, NOW + MINUTE + 120000), "t:1@180000 ");
    assert_string_equal(ask(&fix, "old", NOW, NOW + MINUTE + 120000), "");
    report(&fix, 1, 1, "old", NOW + 4 * MINUTE, "{}");
    assert_string_equal(ask(&fix, "old", NOW, NOW + 4 * MINUTE), ""); /* it has it already */
    close_fixture(&fix);
}

static void an_instance_gets_a_time_later_than_all_that_it_got_before(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t service_id = service_of(&fix, 1);
    put(&fix,
        make_task(service_id, "later", HEARTH_TASK_TRACE, NOW + 30 * MINUTE)); /* created at NOW */
    put(&fix, make_task(service_id, "now", HEARTH_TASK_TRACE, NOW));           /* at NOW + 1 */
    put(&fix, make_task(service_id, "too", HEARTH_TASK_TRACE, NOW + MINUTE));
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_TRACE, -1, NOW), "now:@1 too:@2 ");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_TRACE, -1, NOW + 9), "now:@1 too:@2 ");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_TRACE, NOW + 2, NOW + 9), "");
    assert_string_equal(ask_instance(&fix, "j", HEARTH_TASK_TRACE, 0, NOW + 9), "now:@1 too:@2 ");
    assert_string_equal(ask_instance(&fix, "j", HEARTH_TASK_PPROF, 0, NOW + 9), "");
    /* Told a minute ahead: agents wait for its start themselves. */
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_TRACE, NOW + 2, NOW + 29 * MINUTE - 1),
                        "");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_TRACE, NOW + 2, NOW + 29 * MINUTE),
                        "later:@3 ");
    close_fixture(&fix);
}

static void where_one_task_fits_an_answer_the_oldest_is_first_and_none_is_lost(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t service_id = service_of(&fix, 1);
    struct hearth_str instance = HEARTH_STR("i");
    struct hearth_task first = make_task(service_id, "first", HEARTH_TASK_PPROF, NOW);
    first.instances = &instance;
    first.n_instances = 1;
    put(&fix, first);
    put(&fix, make_task(service_id, "second", HEARTH_TASK_PPROF, NOW));
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_PPROF, 0, NOW), "first:@0 ");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_PPROF, 0, NOW + 1), "first:@0 ");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_PPROF, NOW, NOW + 2), "second:@1 ");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_PPROF, NOW + 1, NOW + 3), "");
    assert_string_equal(ask_instance(&fix, "j", HEARTH_TASK_PPROF, 0, NOW), "second:@1 ");
    /* It began anew and has no cursor, but had finished one. */
    const struct hearth_task_log entry = {
        .instance = instance, .event = HEARTH_TASK_FINISHED, .at_ms = NOW};
    assert_ok(hearth_store_task_log_add(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("first"),
                                        &entry, NULL, &err));
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_PPROF, 0, NOW + 4), "second:@1 ");
    close_fixture(&fix);
}

/* A task of ten seconds for any instance. */
static void put_short(struct fixture *fix, const char *id, enum hearth_task_kind kind,
                      const char *event)
{
    struct hearth_str name = hearth_str_c(event);
    struct hearth_task task = make_task(service_of(fix, 1), id, kind, NOW);
    task.duration_ms = 10000;
    task.events = &name;
    task.n_events = 1;
    put(fix, task);
}

static void a_short_task_of_instances_is_handed_out_for_five_minutes(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    put_short(&fix, "short", HEARTH_TASK_ASYNC_PROFILER, "cpu");
    put_short(&fix, "heap", HEARTH_TASK_PPROF, "heap");
    put(&fix, make_task(service_of(&fix, 1), "long", HEARTH_TASK_TRACE, NOW));
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_ASYNC_PROFILER, -1, NOW + 5 * MINUTE),
                        "short:@0 ");
    assert_string_equal(
        ask_instance(&fix, "j", HEARTH_TASK_ASYNC_PROFILER, -1, NOW + 5 * MINUTE + 1), "");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_PPROF, 0, NOW + 5 * MINUTE),
                        "heap:@1 ");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_PPROF, 0, NOW + 5 * MINUTE + 1), "");
    assert_string_equal(ask_instance(&fix, "i", HEARTH_TASK_TRACE, 0, NOW + 10 * MINUTE),
                        "long:@2 ");
    /* That the command arrived is noted when the agent asks next. */
    assert_string_equal(
        ask_instance(&fix, "i", HEARTH_TASK_ASYNC_PROFILER, NOW, NOW + 5 * MINUTE + 20000), "");
    assert_int_equal(pg_cluster_int(fix.url,
                                    "SELECT confirmed_at FROM hearth_data.task_delivery WHERE"
                                    " task_id = 'short'"),
                     NOW + 5 * MINUTE + 20000);
    close_fixture(&fix);
}

static void finish(struct fixture *fix, const char *id, int64_t at_ms)
{
    const struct hearth_task_log entry = {
        .instance = HEARTH_STR("i"), .event = HEARTH_TASK_FINISHED, .at_ms = at_ms};
    assert_ok(hearth_store_task_log_add(STORE_SCOPE(fix->store, TENANT, NULL), hearth_str_c(id),
                                        &entry, NULL, &err));
}

static void an_instance_gets_no_task_that_would_disturb_its_running_one(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    const enum hearth_task_kind async = HEARTH_TASK_ASYNC_PROFILER, pprof = HEARTH_TASK_PPROF;
    put_short(&fix, "a1", async, "cpu");
    put_short(&fix, "a2", async, "alloc");
    put_short(&fix, "a3", async, "lock");
    assert_string_equal(ask_instance(&fix, "i", async, -1, NOW), "a1:@0 ");
    assert_string_equal(ask_instance(&fix, "i", async, NOW, NOW + 20000), "");
    assert_string_equal(ask_instance(&fix, "j", async, -1, NOW + 20000), "a1:@0 ");
    assert_string_equal(ask_instance(&fix, "i", async, NOW, NOW + 20001), "a2:@1 ");
    finish(&fix, "a2", NOW + 20002);
    assert_string_equal(ask_instance(&fix, "i", async, NOW + 1, NOW + 20003), "a3:@2 ");

    /* Of pprof tasks only one of the same event waits. */
    put_short(&fix, "p1", pprof, "block");
    put_short(&fix, "p2", pprof, "block");
    put_short(&fix, "p3", pprof, "mutex");
    assert_string_equal(ask_instance(&fix, "i", pprof, 0, NOW), "p1:@3 ");
    assert_string_equal(ask_instance(&fix, "i", pprof, NOW + 3, NOW + 1), "p3:@5 ");
    assert_string_equal(ask_instance(&fix, "i", pprof, NOW + 5, NOW + 2), "");
    finish(&fix, "p1", NOW + 3);
    assert_string_equal(ask_instance(&fix, "i", pprof, NOW + 5, NOW + 4), "p2:@6 ");
    close_fixture(&fix);
}

static void a_repeated_delivery_counts_from_its_own_time(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    const enum hearth_task_kind async = HEARTH_TASK_ASYNC_PROFILER;
    const char *delivered =
        "SELECT delivered_at FROM hearth_data.task_delivery WHERE task_id = 'a1'";
    put_short(&fix, "a1", async, "cpu");
    put_short(&fix, "a2", async, "cpu");
    assert_string_equal(ask_instance(&fix, "i", async, -1, NOW), "a1:@0 ");
    assert_string_equal(ask_instance(&fix, "i", async, -1, NOW + 15000), "a1:@0 "); /* was lost */
    assert_int_equal(pg_cluster_int(fix.url, delivered), NOW + 15000);
    assert_string_equal(ask_instance(&fix, "i", async, NOW, NOW + 35000), ""); /* it runs */
    assert_string_equal(ask_instance(&fix, "i", async, NOW, NOW + 35001), "a2:@1 ");

    /* The instance restarts: it runs them again, one after the other. */
    assert_string_equal(ask_instance(&fix, "i", async, -1, NOW + 40000), "a1:@0 ");
    assert_string_equal(ask_instance(&fix, "i", async, NOW, NOW + 60000), "");
    assert_string_equal(ask_instance(&fix, "i", async, NOW, NOW + 60001), "a2:@1 ");
    close_fixture(&fix);
}

static void polls_are_recorded_once_a_minute_and_pauses_are_detected(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    put_simple(&fix, 1, "t", HEARTH_TASK_TRACE);
    const int64_t times[] = {0, 30000, 59999, 60000, 660000, 1260001, 1260002};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        (void)ask_instance(&fix, "i", HEARTH_TASK_TRACE, NOW, NOW + times[i]);
        (void)ask(&fix, "a", 0, NOW + times[i]);
        if (i == 2) {
            assert_int_equal(
                pg_cluster_int(fix.url, "SELECT sum(at - since) FROM hearth_data.agent_poll"), 0);
        }
    }
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.agent_poll"), 4);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT sum(at - since) FROM hearth_data.agent_poll"),
                     2 * 660000);
    close_fixture(&fix);
}

static void a_cursor_out_of_range_is_refused(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_task_poll poll = {
        .tenant = TENANT, .cursor_ms = INT64_MAX, .now_ms = NOW, .agent_id = HEARTH_STR("a")};
    assert_int_equal(hearth_store_tell_agent(STORE_SCOPE(fix.store, TENANT, &fix.arena), &poll,
                                             &g_told, &g_n_told, &err),
                     HEARTH_INVALID_ARGUMENT);
    close_fixture(&fix);
}

struct poller {
    struct hearth_store *store;
    struct hearth_arena arena;
    int64_t cursor_ms;
    int n_seen[10]; /* by process */
};

static void *poll_often(void *arg)
{
    struct poller *poller = arg;
    for (int i = 0; i < 12; i++) {
        struct hearth_told_task *told;
        size_t n;
        const struct hearth_task_poll poll = {
            .tenant = TENANT, .cursor_ms = 0, .now_ms = NOW + i, .agent_id = HEARTH_STR("a")};
        assert_ok(hearth_store_tell_agent(STORE_SCOPE(poller->store, TENANT, &poller->arena), &poll,
                                          &told, &n, &err));
        for (size_t k = 0; k < n; k++) {
            poller->n_seen[told[k].process_ids[0].p[0] - '0']++;
        }
    }
    return NULL;
}

/* While processes appear, both servers say the same agent each of them, under one time each. */
static void two_servers_give_one_agent_no_time_twice(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    put_simple(&fix, 1, "t", HEARTH_TASK_ON_CPU);
    struct poller pollers[2] = {{.store = fix.store}, {.store = open_without_builder(fix.url)}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        hearth_arena_init(&pollers[i].arena, 0);
        assert_int_equal(pthread_create(&threads[i], NULL, poll_often, &pollers[i]), 0);
    }
    for (int i = 1; i < 10; i++) {
        report(&fix, 1, i, "a", NOW, "{}");
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
        hearth_arena_release(&pollers[i].arena);
    }
    (void)ask(&fix, "a", 0, NOW + 60);
    assert_int_equal(g_n_told, 9);
    /* A row was committed after those with higher times: none. */
    assert_int_equal(pg_cluster_int(fix.url,
                                    "SELECT count(*) FROM hearth_data.task_delivery a,"
                                    " hearth_data.task_delivery b WHERE a.xmin::text::int8 <"
                                    " b.xmin::text::int8 AND a.cursor_at >= b.cursor_at"),
                     0);
    close_store(pollers[1].store);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_delivered_until_the_agents_cursor_has_passed_it),
        cmocka_unit_test(a_process_that_registers_late_gets_the_task_above_its_cursor),
        cmocka_unit_test(only_matching_tasks_that_run_now_are_delivered),
        cmocka_unit_test(
            a_network_task_is_one_command_for_its_instance_and_comes_again_when_kept_alive),
        cmocka_unit_test(a_new_agent_takes_over_once_the_old_one_is_silent),
        cmocka_unit_test(an_instance_gets_a_time_later_than_all_that_it_got_before),
        cmocka_unit_test(where_one_task_fits_an_answer_the_oldest_is_first_and_none_is_lost),
        cmocka_unit_test(a_short_task_of_instances_is_handed_out_for_five_minutes),
        cmocka_unit_test(an_instance_gets_no_task_that_would_disturb_its_running_one),
        cmocka_unit_test(a_repeated_delivery_counts_from_its_own_time),
        cmocka_unit_test(polls_are_recorded_once_a_minute_and_pauses_are_detected),
        cmocka_unit_test(a_cursor_out_of_range_is_refused),
        cmocka_unit_test(two_servers_give_one_agent_no_time_twice),
    };
    return cmocka_run_group_tests(tests, start_cluster_at_t0, stop_cluster);
}
