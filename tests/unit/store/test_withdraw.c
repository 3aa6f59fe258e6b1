/*
 * Profiles that nobody waits for any more: what is in no transaction is not stored, and whoever withdraws is told the
 * truth about the rest, whatever happens to the database meanwhile. While the database is away, the queue gives back
 * what its callers can keep elsewhere: none of it is stored.
 */
#include "rounds.h"
#include "store_fixture.h"

/* A store on a new database, with one committer that lingers so long. */
static struct hearth_store *open_lingering(char url[256], int64_t linger_ms)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = linger_ms * HEARTH_NS_PER_MS;
    return open_fresh(url, &options);
}

static bool withdraw(struct store_push *push)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "nobody waits");
    return hearth_store_withdraw(push->store, &push->item, status, &err);
}

static void queued_items_end_at_once_and_items_being_sent_may_be_stored(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_lingering(url, 0);
    int64_t ts_ns = hearth_clock_wall_ns();
    struct store_push *sent = make_push(store, "api", ts_ns, 60, 0), *queued[3];
    PGconn *blocker = pg_cluster_connect(url);
    PQclear(PQexec(blocker, "BEGIN; LOCK hearth_data.ingest_batch IN EXCLUSIVE MODE"));
    store_push_submit(sent);
    wait_until_commit_blocked(url);

    /* First, middle and last of the queue. */
    for (int i = 0; i < 3; i++) {
        queued[i] = make_push(store, "api", ts_ns + 1 + i, 60, 0);
        store_push_submit(queued[i]);
    }
    for (int i = 0; i < 3; i++) {
        struct store_push *push = queued[(i + 1) % 3];
        assert_false(withdraw(push));
        assert_true(atomic_load(&push->ended));
        assert_int_equal(push->status, HEARTH_UNAVAILABLE);
        assert_string_equal(push->err.msg, "nobody waits");
        assert_false(withdraw(push)); /* again: nothing happens */
        assert_int_equal(atomic_load(&push->n_done), 1);
    }
    assert_true(withdraw(sent));
    assert_false(atomic_load(&sent->ended));

    /* The queue is sound: it takes and stores more. */
    struct store_push *next = make_push(store, "api", ts_ns + 4, 60, 0);
    store_push_submit(next);
    PQclear(PQexec(blocker, "ROLLBACK"));
    PQfinish(blocker);
    assert_true(store_push_wait(sent));
    assert_int_equal(sent->status, HEARTH_OK);
    assert_true(withdraw(sent)); /* it is stored */
    assert_true(store_push_wait(next));
    assert_int_equal(next->status, HEARTH_OK);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 2);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_ROWS), 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_BYTES), 0);
    for (int i = 0; i < 3; i++) {
        store_push_free(queued[i]);
    }
    store_push_free(sent);
    store_push_free(next);
    store_close_soon(store);
}

static void a_batch_that_could_not_be_sent_is_sent_again_without_withdrawn_items(void **state)
{
    (void)state;
    enum {
        N = 6
    };
    char url[256], reason[256];
    struct hearth_store *store = open_lingering(url, 50);
    struct store_push *pushes[N];
    int64_t ts_ns = hearth_clock_wall_ns();
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, "api", ts_ns + i, 60, 0);
    }
    int64_t retries = hearth_metric_value(HEARTH_M_BATCH_RETRIES);
    pg_cluster_halt(&g_cluster, SIGINT);
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
    }
    while (hearth_metric_value(HEARTH_M_BATCH_RETRIES) == retries) {
        (void)usleep(2000);
    }
    assert_false(hearth_store_ready(store, reason));

    /* Every second one; they end although the database is away, and the others go on waiting. */
    for (int i = 0; i < N; i += 2) {
        assert_false(withdraw(pushes[i]));
    }
    for (int i = 0; i < N; i += 2) {
        assert_true(store_push_wait(pushes[i]));
        assert_int_equal(pushes[i]->status, HEARTH_UNAVAILABLE);
    }
    assert_false(atomic_load(&pushes[1]->ended));
    pg_cluster_resume(&g_cluster);
    for (int i = 0; i < N; i++) {
        assert_true(store_push_wait(pushes[i]));
        assert_int_equal(pushes[i]->status, i % 2 == 0 ? HEARTH_UNAVAILABLE : HEARTH_OK);
        assert_int_equal(atomic_load(&pushes[i]->n_done), 1);
        store_push_free(pushes[i]);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N / 2);
    store_close_soon(store);
}

static void an_item_withdrawn_before_its_submission_is_refused(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_lingering(url, 0);
    struct store_push *push = make_push(store, "api", hearth_clock_wall_ns(), 60, 0);
    assert_false(withdraw(push));
    store_push_submit(push);
    assert_int_equal(push->status, HEARTH_UNAVAILABLE);
    assert_int_equal(atomic_load(&push->n_done), 0);
    store_push_free(push);
    store_close_soon(store);
}

/* ---- giving back ---- */

static struct store_push *submit_push(struct hearth_store *store, int64_t ts_ns, bool may_give_back)
{
    struct store_push *push = make_push(store, "api", ts_ns, 60, 0);
    push->item.may_give_back = may_give_back;
    store_push_submit(push);
    return push;
}

static void assert_given_back(struct store_push *push)
{
    assert_true(store_push_wait(push));
    assert_int_equal(push->status, HEARTH_UNAVAILABLE);
    assert_true(push->item.is_given_back);
    assert_int_equal(atomic_load(&push->n_done), 1);
    assert_false(withdraw(push)); /* it is not stored */
    store_push_free(push);
}

static void assert_stored_once(struct store_push *push)
{
    assert_true(store_push_wait(push));
    assert_int_equal(push->status, HEARTH_OK);
    assert_false(push->item.is_given_back);
    assert_int_equal(atomic_load(&push->n_done), 1);
    store_push_free(push);
}

static void
while_the_database_is_away_what_callers_can_keep_is_given_back_and_the_rest_waits(void **state)
{
    (void)state;
    enum {
        N = 6
    };
    char url[256];
    struct hearth_store *store = open_lingering(url, 50);
    struct store_push *pushes[N];
    int64_t ts_ns = hearth_clock_wall_ns();
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, "api", ts_ns + i, 60, 0);
        pushes[i]->item.may_give_back = i % 2 == 0;
    }
    pg_cluster_halt(&g_cluster, SIGINT);
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < N; i += 2) {
        assert_given_back(pushes[i]);
    }
    for (int i = 1; i < N; i += 2) {
        assert_false(atomic_load(&pushes[i]->ended));
    }
    pg_cluster_resume(&g_cluster);
    for (int i = 1; i < N; i += 2) {
        assert_stored_once(pushes[i]);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N / 2);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_ROWS), 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_BYTES), 0);
    store_close_soon(store);
}

static void a_batch_in_doubt_is_kept_and_items_queued_behind_it_are_given_back(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_lingering(url, 0);
    int64_t ts_ns = hearth_clock_wall_ns();

    /* Its COMMIT waits for a lock of ours. */
    pg_cluster_run(url, "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
                        " 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'");
    pg_cluster_run(url, "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON hearth_data.ingest_batch"
                        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()");
    PGconn *blocker = pg_cluster_connect(url);
    PQclear(PQexec(blocker, "SELECT pg_advisory_lock(1)"));
    struct store_push *sent = submit_push(store, ts_ns, true);
    wait_until_sql(url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                        " AND objid = 1");
    struct store_push *queued = submit_push(store, ts_ns + 1, true);
    struct store_push *kept = submit_push(store, ts_ns + 2, false);

    pg_cluster_halt(&g_cluster, SIGQUIT);
    PQfinish(blocker);
    assert_given_back(queued);
    assert_false(atomic_load(&sent->ended));
    assert_true(withdraw(sent)); /* it may be stored */
    assert_false(atomic_load(&kept->ended));
    pg_cluster_resume(&g_cluster);
    assert_stored_once(sent);
    assert_stored_once(kept);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 2);
    store_close_soon(store);
}

static void one_lost_connection_gives_nothing_back(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_lingering(url, 0);
    int64_t ts_ns = hearth_clock_wall_ns(), retries = hearth_metric_value(HEARTH_M_BATCH_RETRIES);
    PGconn *blocker = pg_cluster_connect(url);
    PQclear(PQexec(blocker, "BEGIN; LOCK hearth_data.ingest_batch IN EXCLUSIVE MODE"));
    struct store_push *sent = submit_push(store, ts_ns, true);
    wait_until_commit_blocked(url);
    struct store_push *queued = submit_push(store, ts_ns + 1, true);
    pg_cluster_run(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                        " wait_event_type = 'Lock' AND application_name = 'hearthd'");
    while (hearth_metric_value(HEARTH_M_BATCH_RETRIES) == retries) {
        (void)usleep(2000);
    }
    PQclear(PQexec(blocker, "ROLLBACK"));
    PQfinish(blocker);
    assert_stored_once(sent);
    assert_stored_once(queued);
    store_close_soon(store);
}

/* ---- under kills ---- */

enum {
    N_LOADS = 4,
    MAX_PUSHES = 10000
};

struct load {
    struct hearth_store *store;
    int number;
    _Atomic bool *stop;
    struct store_push *pushes[MAX_PUSHES];
    bool is_promised[MAX_PUSHES]; /* that it is not stored */
    _Atomic size_t n;
};

/* Two of three are withdrawn, each a little later than it was submitted: at any stage of its way. */
static void *run_load(void *arg)
{
    struct load *load = arg;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, (uint64_t)load->number + 1, 300, 900, 1500, 10, &arena);
    char service[16];
    (void)snprintf(service, sizeof service, "svc-%d", load->number);
    int64_t ts_ns = hearth_clock_wall_ns();
    while (!atomic_load(load->stop) && load->n < MAX_PUSHES) {
        size_t k = load->n;
        struct store_push *push =
            store_push_make(load->store, &world, service, ts_ns + (int64_t)k, 30, 0, NULL);
        if (push == NULL) { /* the catalogue is away too */
            (void)usleep(2000);
            continue;
        }
        push->item.may_give_back = k % 2 == 0;
        store_push_submit(push);
        load->pushes[k] = push;
        load->n++;
        (void)usleep((useconds_t)(k % 7) * 500);
        if (k % 3 != 0) {
            load->is_promised[k] = !withdraw(push);
        }
    }
    hearth_arena_release(&arena);
    return NULL;
}

/* Wait until the loads have submitted `n` pushes in all: a slow machine is disturbed at work, too. */
static void wait_for_pushes(struct load *loads, size_t n)
{
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    size_t n_now = 0;
    while (n_now < n && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(5000);
        n_now = 0;
        for (int i = 0; i < N_LOADS; i++) {
            n_now += atomic_load(&loads[i].n);
        }
    }
    assert_true(n_now >= n);
}

static void check_load(PGconn *acked, PGconn *promised, struct load *load, size_t counts[4])
{
    for (size_t k = 0; k < load->n; k++) {
        struct store_push *push = load->pushes[k];
        assert_true(store_push_wait(push));
        char line[64];
        int n = snprintf(line, sizeof line, "%d\t%lld\n", push->item.writer_id,
                         (long long)push->item.profile_no);
        if (push->status == HEARTH_OK) {
            assert_false(load->is_promised[k]);
            assert_int_equal(PQputCopyData(acked, line, n), 1);
        } else if (push->item.profile_no != 0) {
            assert_int_equal(push->status, HEARTH_UNAVAILABLE);
            assert_int_equal(PQputCopyData(promised, line, n), 1);
        }
        counts[3] += push->item.is_given_back;
        counts[load->is_promised[k] ? 0 : push->status == HEARTH_OK ? 1 : 2]++;
        store_push_free(push);
    }
}

static PGconn *begin_copy(const char *url, const char *table)
{
    char sql[128];
    PGconn *conn = pg_cluster_connect(url);
    (void)snprintf(sql, sizeof sql, "CREATE TABLE %s (writer_id int4, profile_no int8)", table);
    pg_cluster_run(url, sql);
    (void)snprintf(sql, sizeof sql, "COPY %s FROM STDIN", table);
    PQclear(PQexec(conn, sql));
    return conn;
}

static void end_copy(PGconn *conn)
{
    assert_int_equal(PQputCopyEnd(conn, NULL), 1);
    PQclear(PQgetResult(conn));
    PQfinish(conn);
}

static void a_withdrawn_push_is_not_stored_although_the_database_is_killed(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_lingering(url, 3);
    _Atomic bool stop = false;
    struct load *loads = calloc(N_LOADS, sizeof loads[0]);
    pthread_t threads[N_LOADS];
    for (int i = 0; i < N_LOADS; i++) {
        loads[i].store = store;
        loads[i].number = i;
        loads[i].stop = &stop;
        assert_int_equal(pthread_create(&threads[i], NULL, run_load, &loads[i]), 0);
    }
    /* Each of the two kinds at least once. */
    for (int round = 0; round < test_rounds(6); round++) {
        (void)usleep(250000);
        wait_for_pushes(loads, 150 * (size_t)(round + 1));
        if (round % 2 == 0) {
            pg_cluster_run(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                                " application_name = 'hearthd'");
        } else {
            pg_cluster_halt(&g_cluster, SIGKILL);
            pg_cluster_resume(&g_cluster);
        }
        assert_true(store_wait_ready(store));
    }
    atomic_store(&stop, true);
    size_t counts[4] = {0};
    for (int i = 0; i < N_LOADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    PGconn *acked = begin_copy(url, "acked"), *refused = begin_copy(url, "refused");
    for (int i = 0; i < N_LOADS; i++) {
        check_load(acked, refused, &loads[i], counts);
    }
    end_copy(acked);
    end_copy(refused);
    free(loads);
    print_message("promised not to be stored %zu, acknowledged %zu, refused %zu, given back %zu\n",
                  counts[0], counts[1], counts[2], counts[3]);
    assert_true(counts[0] > 50 && counts[1] > 50);

    /* Every acknowledged one is there, no refused one is, and nothing else. */
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM acked a WHERE (SELECT count(*) FROM"
                                         " hearth_data.profile p WHERE p.writer_id = a.writer_id"
                                         " AND p.profile_no = a.profile_no) <> 1"),
                     0);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM refused JOIN hearth_data.profile"
                                         " USING (writer_id, profile_no)"),
                     0);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), counts[1]);
    store_close_soon(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queued_items_end_at_once_and_items_being_sent_may_be_stored),
        cmocka_unit_test(a_batch_that_could_not_be_sent_is_sent_again_without_withdrawn_items),
        cmocka_unit_test(an_item_withdrawn_before_its_submission_is_refused),
        cmocka_unit_test(
            while_the_database_is_away_what_callers_can_keep_is_given_back_and_the_rest_waits),
        cmocka_unit_test(a_batch_in_doubt_is_kept_and_items_queued_behind_it_are_given_back),
        cmocka_unit_test(one_lost_connection_gives_nothing_back),
        cmocka_unit_test(a_withdrawn_push_is_not_stored_although_the_database_is_killed),
    };
    return cmocka_run_group_tests(tests, start_durable_cluster, stop_cluster);
}
