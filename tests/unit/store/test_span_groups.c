/* test_span_groups.c -- spans and thread snapshots are stored together, once, and found by what they are asked by. */
#include "hearth/store/store_agents.h"
#include "hearth/store/store_spans.h"
#include "hearth/store/store_tasks.h"

#include "node_map.h"
#include "pg/pg.h"
#include "spans/snapshots_expire.h"
#include "step_fixture.h"
#include "store_scope.h"

#define MS INT64_C(1000000)

struct waiting {
    struct hearth_trace_item item;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    enum hearth_status status;
};

static void on_done(struct hearth_trace_item *item, enum hearth_status status,
                    const struct hearth_err *reason)
{
    (void)reason;
    struct waiting *waiting = HEARTH_CONTAINER_OF(item, struct waiting, item);
    (void)pthread_mutex_lock(&waiting->lock);
    waiting->done = true;
    waiting->status = status;
    (void)pthread_cond_broadcast(&waiting->wake);
    (void)pthread_mutex_unlock(&waiting->lock);
}

static void submit_item(struct fixture *fix, struct hearth_trace_item item, struct waiting *ret)
{
    *ret = (struct waiting){
        .item = item, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    ret->item.done = on_done;
    assert_ok(hearth_store_submit_traces(fix->store, &ret->item, &err));
}

static enum hearth_status await_item(struct waiting *waiting)
{
    (void)pthread_mutex_lock(&waiting->lock);
    while (!waiting->done) {
        (void)pthread_cond_wait(&waiting->wake, &waiting->lock);
    }
    (void)pthread_mutex_unlock(&waiting->lock);
    return waiting->status;
}

static enum hearth_status store_item(struct fixture *fix, struct hearth_trace_item item)
{
    struct waiting waiting;
    submit_item(fix, item, &waiting);
    return await_item(&waiting);
}

static int64_t ask_count(struct fixture *fix, const char *sql)
{
    PGresult *rows = NULL;
    assert_ok(hearth_pg_exec(&fix->builder.pg, sql, NULL, NULL, &rows, NULL, &err));
    int64_t n = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);
    return n;
}

static int64_t now_ns(void)
{
    return hearth_clock_wall_ns() / MS * MS;
}

static struct hearth_span_group group(const char *service, const char *trace, const char *segment,
                                      const char *endpoint, int64_t at_ns)
{
    return (struct hearth_span_group){.service = hearth_str_c(service),
                                      .instance = HEARTH_STR("i-1"),
                                      .trace_id = hearth_str_c(trace),
                                      .segment_id = hearth_str_c(segment),
                                      .start_ns = at_ns,
                                      .end_ns = at_ns + 250 * MS,
                                      .endpoint = hearth_str_c(endpoint),
                                      .kind = HEARTH_SPAN_ENTRY,
                                      .n_spans = 1,
                                      .spans = HEARTH_STR("\0packed")};
}

static void put_groups(struct fixture *fix, const struct hearth_span_group *groups, size_t n)
{
    assert_int_equal(
        store_item(fix,
                   (struct hearth_trace_item){.tenant = TENANT, .groups = groups, .n_groups = n}),
        HEARTH_OK);
}

/* "segment@instance ": the latest first. */
static void expect_groups(struct fixture *fix, const struct hearth_span_query *query,
                          const char *want)
{
    struct hearth_span_group *groups;
    size_t n;
    char text[256] = "";
    assert_ok(hearth_store_span_groups(STORE_SCOPE(fix->store, TENANT, &fix->arena), query, &groups,
                                       &n, &err));
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%.*s@%.*s ", (int)groups[i].segment_id.n,
                       groups[i].segment_id.p, (int)groups[i].instance.n, groups[i].instance.p);
        assert_true(hearth_str_eq(groups[i].spans, HEARTH_STR("\0packed")));
        assert_int_equal(groups[i].end_ns - groups[i].start_ns, 250 * MS);
    }
    assert_string_equal(text, want);
}

static void a_segment_is_found_by_its_trace_its_id_and_its_service(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t at = now_ns();
    const struct hearth_span_group groups[] = {group("shop", "t-1", "a", "/buy", at),
                                               group("shop", "t-1", "b", "/pay", at + MS),
                                               group("cart", "t-1", "c", "/add", at + 2 * MS),
                                               group("shop", "t-2", "d", "/buy", at + 3 * MS)};
    put_groups(&fix, groups, 4);
    put_groups(&fix, groups, 2); /* again: nothing new */
    struct hearth_str trace = HEARTH_STR("t-1"), ids[] = {HEARTH_STR("d"), HEARTH_STR("a")};
    expect_groups(&fix, &(struct hearth_span_query){.trace_ids = &trace, .n_trace_ids = 1},
                  "c@i-1 b@i-1 a@i-1 ");
    expect_groups(&fix, &(struct hearth_span_query){.segment_ids = ids, .n_segment_ids = 2},
                  "d@i-1 a@i-1 ");
    struct hearth_span_query query = {
        .service = HEARTH_STR("shop"), .from_ns = at, .to_ns = at + 3 * MS};
    expect_groups(&fix, &query, "d@i-1 b@i-1 a@i-1 ");
    query.endpoint = HEARTH_STR("/buy");
    expect_groups(&fix, &query, "d@i-1 a@i-1 ");
    query.to_ns = at + 3 * MS - 1;
    expect_groups(&fix, &query, "a@i-1 ");
    query.instance = HEARTH_STR("other");
    expect_groups(&fix, &query, "");
    struct hearth_span_group *none;
    size_t n;
    assert_ok(hearth_store_span_groups(
        STORE_SCOPE(fix.store, HEARTH_STR("stranger"), &fix.arena),
        &(struct hearth_span_query){.trace_ids = &trace, .n_trace_ids = 1}, &none, &n, &err));
    assert_int_equal(n, 0);
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.instance"), 2);
    close_fixture(&fix);
}

static void bytes_and_their_hexadecimal_text_are_one_trace(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_span_group raw = group("shop", "0123456789abcdef", "a", "x", now_ns());
    raw.is_raw = true;
    put_groups(&fix, &raw, 1);
    struct hearth_str text = HEARTH_STR("30313233343536373839616263646566");
    expect_groups(&fix, &(struct hearth_span_query){.trace_ids = &text, .n_trace_ids = 1},
                  "a@i-1 ");
    struct hearth_str other = HEARTH_STR("0123456789abcdef0123456789abcdef");
    expect_groups(&fix, &(struct hearth_span_query){.trace_ids = &other, .n_trace_ids = 1}, "");
    close_fixture(&fix);
}

static int32_t make_task(struct fixture *fix, const char *id, int kind, int64_t start_ms)
{
    int32_t service_id = 0;
    assert_ok(hearth_store_service_id(STORE_SCOPE(fix->store, TENANT, NULL), HEARTH_STR("shop"),
                                      true, &service_id, &err));
    char sql[1024];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.task (task_id, service_id, kind, origin, labels,"
                   " instances, endpoint, events, exec_args, start_at, duration, created_at,"
                   " updated_at, min_duration, dump_period, max_samples) VALUES ('%s', %d, %d, 1,"
                   " '{}', '{}', '/buy', '{}', '', %lld, 60000, 1, 1, 0, 10, 5)",
                   id, (int)service_id, kind, (long long)start_ms);
    pg_cluster_run(fix->url, sql);
    return service_id;
}

static void only_services_with_a_trace_task_are_kept_if_requested(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t at = now_ns();
    const struct hearth_span_group groups[] = {group("shop", "1", "a", "/buy", at)};
    struct hearth_trace_item item = {
        .tenant = TENANT, .groups = groups, .n_groups = 1, .only_profiled = true};
    (void)make_task(&fix, "other-kind", 1, at / MS);
    (void)make_task(&fix, "over", 4, at / MS - 661000);
    assert_int_equal(store_item(&fix, item), HEARTH_OK);
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.span_group"), 0);
    (void)make_task(&fix, "ended-lately", 4, at / MS - 600000);
    assert_int_equal(store_item(&fix, item), HEARTH_OK);
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.span_group"), 1);
    close_fixture(&fix);
}

static struct hearth_task_snapshot snapshot(const char *task, const char *segment, int32_t sequence)
{
    static const struct hearth_str frames[] = {{"main", 4}, {"work", 4}};
    return (struct hearth_task_snapshot){
        hearth_str_c(task),
        hearth_str_c(segment),
        {.sequence = sequence, .at_ms = 1000 + sequence * 10, .frames = frames, .n_frames = 2}};
}

static void snapshots_of_a_segment_are_one_row_even_if_they_arrive_twice(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    (void)make_task(&fix, "task", 4, now_ns() / MS);
    struct hearth_span_group groups[] = {group("shop", "1", "s-2", "/buy", now_ns())};
    put_groups(&fix, groups, 1);
    const struct hearth_task_snapshot snapshots[] = {
        snapshot("task", "s-1", 1), snapshot("task", "s-2", 0),    snapshot("task", "s-1", 0),
        snapshot("task", "s-1", 1), snapshot("unknown", "s-1", 7),
    };
    struct hearth_trace_item item = {.tenant = TENANT, .snapshots = snapshots, .n_snapshots = 5};
    assert_int_equal(store_item(&fix, item), HEARTH_OK);
    assert_int_equal(store_item(&fix, item), HEARTH_OK);
    item.tenant = HEARTH_STR("stranger"); /* whose task it is not */
    assert_int_equal(store_item(&fix, item), HEARTH_OK);
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.task_snapshot"), 2);
    struct hearth_segment_snapshots *segments;
    struct hearth_str task = HEARTH_STR("task");
    size_t n;
    assert_ok(hearth_store_segment_snapshots(STORE_SCOPE(fix.store, TENANT, &fix.arena), &task, 1,
                                             &segments, &n, &err));
    assert_int_equal(n, 2);
    assert_true(hearth_str_eq_c(segments[0].segment_id, "s-1"));
    assert_int_equal(segments[0].n_snapshots, 2);
    assert_int_equal(segments[0].last_ms, 1010);
    assert_int_equal(segments[0].instance.n, 0);
    assert_true(hearth_str_eq_c(segments[1].instance, "i-1"));
    struct hearth_snapshot_run *runs;
    struct hearth_str id = HEARTH_STR("s-1");
    assert_ok(hearth_store_snapshot_runs(STORE_SCOPE(fix.store, TENANT, &fix.arena), &id, 1, &runs,
                                         &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(runs[0].last_sequence, 1);
    struct hearth_snapshot *decoded;
    assert_ok(
        hearth_snapshots_decode(hearth_str_n(runs[0].snapshots.p + 1, runs[0].snapshots.n - 1), 0,
                                &fix.arena, &decoded, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(decoded[1].n_frames, 2);
    close_fixture(&fix);
}

static void a_segment_that_has_its_snapshots_gets_no_more(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    (void)make_task(&fix, "task", 4, now_ns() / MS);
    for (int32_t i = 0; i < 6; i++) {
        const struct hearth_task_snapshot one = snapshot("task", "s", i);
        assert_int_equal(store_item(&fix, (struct hearth_trace_item){.tenant = TENANT,
                                                                     .snapshots = &one,
                                                                     .n_snapshots = 1,
                                                                     .max_snapshots = 4}),
                         HEARTH_OK);
    }
    assert_int_equal(
        ask_count(&fix, "SELECT coalesce(sum(n_snapshots), 0) FROM hearth_data.task_snapshot"), 4);
    close_fixture(&fix);
}

static void an_item_that_cannot_be_stored_fails_alone(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_span_group good = group("shop", "1", "a", "/buy", now_ns());
    struct hearth_span_group bad = group("shop", "1", "b", "\xff", now_ns());
    struct waiting waiting[3];
    for (int i = 0; i < 3; i++) {
        waiting[i] = (struct waiting){.item = {.tenant = TENANT,
                                               .groups = i == 1 ? &bad : &good,
                                               .n_groups = 1,
                                               .done = on_done},
                                      .lock = PTHREAD_MUTEX_INITIALIZER,
                                      .wake = PTHREAD_COND_INITIALIZER};
        assert_ok(hearth_store_submit_traces(fix.store, &waiting[i].item, &err));
    }
    for (int i = 0; i < 3; i++) {
        (void)pthread_mutex_lock(&waiting[i].lock);
        while (!waiting[i].done) {
            (void)pthread_cond_wait(&waiting[i].wake, &waiting[i].lock);
        }
        (void)pthread_mutex_unlock(&waiting[i].lock);
        assert_int_equal(waiting[i].status, i == 1 ? HEARTH_INTERNAL : HEARTH_OK);
    }
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.span_group"), 1);
    close_fixture(&fix);
}

static void a_day_past_its_retention_is_dropped(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t at = now_ns();
    struct hearth_span_group old = group("shop", "1", "old", "/buy", at - 5 * HEARTH_NS_PER_DAY);
    struct hearth_span_group young = group("shop", "1", "young", "/buy", at);
    put_groups(&fix, &old, 1);
    put_groups(&fix, &young, 1);
    bool more = true;
    for (int i = 0; i < 200 && more; i++) {
        more = false;
        assert_ok(hearth_step_retention(&fix.builder, &more, &err));
    }
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.span_group"), 1);
    close_fixture(&fix);
}

static void snapshots_of_an_expired_task_are_deleted(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now_ms = now_ns() / MS;
    (void)make_task(&fix, "old", 4, now_ms - 120000);
    (void)make_task(&fix, "young", 4, now_ms);
    (void)make_task(&fix, "gone", 4, now_ms);
    const struct hearth_task_snapshot snapshots[] = {
        snapshot("old", "s", 0), snapshot("young", "s", 0), snapshot("gone", "s", 0)};
    struct hearth_trace_item item = {.tenant = TENANT, .snapshots = snapshots, .n_snapshots = 3};
    assert_int_equal(store_item(&fix, item), HEARTH_OK);
    pg_cluster_run(fix.url,
                   "UPDATE hearth_data.task_snapshot SET received_at = received_at - 100000;"
                   " DELETE FROM hearth_data.task WHERE task_id = 'gone'");
    assert_ok(hearth_snapshots_expire(&fix.builder.pg, 0, &err));
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.task_snapshot"), 3);
    assert_ok(hearth_snapshots_expire(&fix.builder.pg, 30 * HEARTH_NS_PER_SEC, &err));
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.task_snapshot"), 1);
    assert_ok(hearth_snapshots_expire(&fix.builder.pg, 500 * HEARTH_NS_PER_SEC, &err));
    assert_int_equal(ask_count(&fix,
                               "SELECT count(*) FROM hearth_data.task_snapshot WHERE task_id ="
                               " 'young'"),
                     1);
    close_fixture(&fix);
}

static void a_service_that_was_removed_is_made_again(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_span_group first = group("shop", "1", "a", "/buy", now_ns());
    struct hearth_span_group second = group("shop", "1", "b", "/buy", now_ns() + MS);
    put_groups(&fix, &first, 1);
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.instance; DELETE FROM hearth_data.service");
    put_groups(&fix, &second, 1);
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.span_group JOIN"
                                     " hearth_data.service USING (service_id)"),
                     1);
    close_fixture(&fix);
}

static bool is_done(struct waiting *waiting)
{
    (void)pthread_mutex_lock(&waiting->lock);
    bool done = waiting->done;
    (void)pthread_mutex_unlock(&waiting->lock);
    return done;
}

static void spans_of_a_node_that_is_down_wait_and_those_of_others_are_stored(void **state)
{
    (void)state;
    enum {
        N = 10
    };
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_nodes *nodes = make_nodes(fix.store);
    struct test_node two[] = {{7, NOWHERE}, {9, g_cluster.dir}};
    divide(fix.store, nodes, two, 2);
    fix.store->nodes = nodes; /* the store's from now on */

    /* One item of each service, and one of all. */
    struct waiting waiting[N + 1];
    struct hearth_span_group groups[N + 1];
    char names[N][16];
    for (int i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "svc-%d", i);
        groups[i] = group(names[i], "t-1", names[i], "/buy", now_ns());
        submit_item(
            &fix, (struct hearth_trace_item){.tenant = TENANT, .groups = &groups[i], .n_groups = 1},
            &waiting[i]);
    }
    submit_item(&fix, (struct hearth_trace_item){.tenant = TENANT, .groups = groups, .n_groups = N},
                &waiting[N]);

    int n_up = 0;
    for (int i = 0; i < N; i++) {
        int32_t id;
        assert_ok(hearth_store_service_id(STORE_SCOPE(fix.store, TENANT, &fix.arena),
                                          hearth_str_c(names[i]), true, &id, &err));
        if (hearth_node_of(nodes, id) == 2) {
            assert_int_equal(await_item(&waiting[i]), HEARTH_OK);
            n_up++;
        }
    }
    assert_in_range(n_up, 1, N - 1);
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.span_group"), n_up);
    assert_false(is_done(&waiting[N]));

    /* It is back, at another address. */
    two[0].host = g_cluster.dir;
    divide(fix.store, nodes, two, 2);
    for (int i = 0; i <= N; i++) {
        assert_int_equal(await_item(&waiting[i]), HEARTH_OK);
    }
    assert_int_equal(ask_count(&fix, "SELECT count(*) FROM hearth_data.span_group"), N);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_of_a_node_that_is_down_wait_and_those_of_others_are_stored),
        cmocka_unit_test(a_segment_is_found_by_its_trace_its_id_and_its_service),
        cmocka_unit_test(bytes_and_their_hexadecimal_text_are_one_trace),
        cmocka_unit_test(only_services_with_a_trace_task_are_kept_if_requested),
        cmocka_unit_test(snapshots_of_a_segment_are_one_row_even_if_they_arrive_twice),
        cmocka_unit_test(a_segment_that_has_its_snapshots_gets_no_more),
        cmocka_unit_test(an_item_that_cannot_be_stored_fails_alone),
        cmocka_unit_test(snapshots_of_an_expired_task_are_deleted),
        cmocka_unit_test(a_service_that_was_removed_is_made_again),
        cmocka_unit_test(a_day_past_its_retention_is_dropped),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
