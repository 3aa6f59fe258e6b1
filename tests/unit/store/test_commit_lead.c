/* Lone items are stored by the threads that submit them, and a leader that fails leaves its batch
 * to the committer. */
#include "store_fixture.h"

#define ENOUGH 16 /* commit-rows by default */

/* A store with one committer. */
static struct hearth_store *open_leading(char url[256], int64_t alone_ns, int64_t linger_ns)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = linger_ns;
    options.alone_ns = alone_ns;

    return open_fresh(url, &options);
}

static struct store_push *submit_push(struct hearth_store *store, bool may_lead)
{
    struct store_push *push = make_push(store, "api", hearth_clock_wall_ns(), 60, 0);
    push->item.may_lead = may_lead;
    store_push_submit(push);
    return push;
}

/* With as many as commit-rows, the committer connects and stores them without waiting. */
static void store_without_leader(struct hearth_store *store, size_t n)
{
    struct store_push *pushes[ENOUGH];
    assert_true(n <= ENOUGH);
    for (size_t i = 0; i < n; i++) {
        pushes[i] = submit_push(store, false);
    }
    for (size_t i = 0; i < n; i++) {
        end_push(pushes[i]);
    }
}

/*
 * Submit items, one after another, until one was led; returns their number. A committer that has
 * ended its items may be busy for a moment.
 */
static int submit_until_led(struct hearth_store *store)
{
    int64_t led = hearth_metric_value(HEARTH_M_BATCHES_LED);
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    int n = 0;
    bool was_led = false;

    while (!was_led) {
        struct store_push *push = submit_push(store, true);
        bool has_ended = atomic_load(&push->ended);
        was_led = hearth_metric_value(HEARTH_M_BATCHES_LED) > led;
        assert_true(has_ended || !was_led);
        end_push(push);
        n++;
        assert_true(hearth_clock_mono_ns() < until_ns);
    }

    return n;
}

/* End the connection whose last statement stored a profile. */
static void terminate_committer(const char *url)
{
    PGconn *conn = pg_cluster_connect(url);
    PGresult *result = PQexec(
        conn, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE"
              " application_name = 'hearthd' AND query LIKE 'INSERT INTO hearth_data.profile%'");
    assert_int_equal(PQntuples(result), 1);
    PQclear(result);
    PQfinish(conn);
}

static void a_lone_item_is_stored_before_its_submission_returns(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_leading(url, 1, HEARTH_NS_PER_MS);
    int n = 0;

    for (int i = 0; i < 5; i++) {
        n += submit_until_led(store);
    }

    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), n);
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(DISTINCT profile_no) FROM hearth_data.profile"), n);
    store_close_soon(store);
}

static void an_item_soon_after_another_waits_for_more(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_leading(url, HEARTH_NS_PER_HOUR, HEARTH_NS_PER_HOUR);
    store_without_leader(store, ENOUGH);

    /* All but the last do not end the wait, whose end is an hour away. */
    struct store_push *pushes[ENOUGH];
    for (int i = 0; i < ENOUGH; i++) {
        pushes[i] = submit_push(store, true);
        assert_true(i == ENOUGH - 1 || !atomic_load(&pushes[i]->ended));
    }
    for (int i = 0; i < ENOUGH; i++) {
        end_push(pushes[i]);
    }

    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 2 * ENOUGH);
    store_close_soon(store);
}

static void an_item_without_leave_to_lead_waits_for_more(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_leading(url, 1, HEARTH_NS_PER_HOUR);
    store_without_leader(store, ENOUGH);

    struct store_push *waits = submit_push(store, false);
    struct store_push *also = submit_push(store, true); /* it is not alone */
    assert_false(atomic_load(&waits->ended));
    assert_false(atomic_load(&also->ended));
    store_without_leader(store, ENOUGH - 2);
    end_push(waits);
    end_push(also);

    store_close_soon(store);
}

/*
 * Submit two items, the second one `gap_ns` after the first, to a committer that waits a second, or
 * an hour while items keep coming. Again if the second one came too late to be sure of the gap.
 */
static void submit_two(struct hearth_store *store, int64_t gap_ns, struct store_push *ret_pushes[2])
{
    const int64_t slack_ns = 400 * HEARTH_NS_PER_MS;

    for (int64_t took_ns = INT64_MAX; took_ns > gap_ns + slack_ns;) {
        ret_pushes[0] = submit_push(store, false);
        int64_t from_ns = hearth_clock_mono_ns();
        (void)usleep((useconds_t)(gap_ns / 1000));
        ret_pushes[1] = submit_push(store, false);
        took_ns = hearth_clock_mono_ns() - from_ns;
        if (took_ns > gap_ns + slack_ns) {
            store_without_leader(store, ENOUGH - 1); /* ends a wait, if there is one */
            end_push(ret_pushes[0]);
            end_push(ret_pushes[1]);
        }
    }
}

static void items_wait_longer_only_while_they_keep_coming(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = HEARTH_NS_PER_SEC;
    options.busy_linger_ns = HEARTH_NS_PER_HOUR;
    struct hearth_store *store = open_fresh(url, &options);
    store_without_leader(store, ENOUGH);

    /* Nothing comes in the second half of the second. */
    struct store_push *pushes[2];
    submit_two(store, 0, pushes);
    end_push(pushes[0]);
    end_push(pushes[1]);

    /* The second item comes there, so both wait until there are enough. */
    submit_two(store, 550 * HEARTH_NS_PER_MS, pushes);
    (void)usleep(2000000);
    assert_false(atomic_load(&pushes[0]->ended));
    assert_false(atomic_load(&pushes[1]->ended));
    store_without_leader(store, ENOUGH - 2);
    end_push(pushes[0]);
    end_push(pushes[1]);

    store_close_soon(store);
}

static void *submit_leading(void *arg)
{
    store_push_submit(arg);
    return NULL;
}

static void a_leader_that_loses_its_connection_leaves_its_batch_to_the_committer(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_leading(url, 1, HEARTH_NS_PER_MS);
    int n = submit_until_led(store);
    int64_t led = hearth_metric_value(HEARTH_M_BATCHES_LED);
    struct store_push *push = make_push(store, "api", hearth_clock_wall_ns(), 60, 0);
    push->item.may_lead = true;

    /* Its statements are sent, and wait for a lock, when the connection ends. */
    PGconn *blocker = pg_cluster_connect(url);
    PQclear(PQexec(blocker, "BEGIN; LOCK hearth_data.ingest_batch IN EXCLUSIVE MODE"));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, submit_leading, push), 0);
    wait_until_commit_blocked(url);
    pg_cluster_run(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                        " application_name = 'hearthd' AND wait_event_type = 'Lock'");
    (void)pthread_join(thread, NULL);
    assert_false(atomic_load(&push->ended));
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_LED), led);

    PQfinish(blocker);
    end_push(push);
    n += 1 + submit_until_led(store);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), n);
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(DISTINCT profile_no) FROM hearth_data.profile"), n);
    store_close_soon(store);
}

static void a_leader_does_not_wait_for_a_connection(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_leading(url, 1, HEARTH_NS_PER_MS);
    int n = submit_until_led(store);
    int64_t led = hearth_metric_value(HEARTH_M_BATCHES_LED);
    terminate_committer(url);
    end_push(submit_push(store, true));
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_LED), led);

    /* The committer has connected again, and gives the lead back. */
    n += 1 + submit_until_led(store);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), n);
    store_close_soon(store);
}

static void closing_ends_an_item_whose_leader_found_no_database(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_leading(url, 1, HEARTH_NS_PER_MS);
    (void)submit_until_led(store);

    pg_cluster_halt(&g_cluster, SIGINT);
    struct store_push *push = submit_push(store, true);
    assert_false(atomic_load(&push->ended));
    hearth_store_close(store, hearth_clock_mono_ns() + HEARTH_NS_PER_SEC);
    assert_true(atomic_load(&push->ended));
    assert_int_equal(push->status, HEARTH_UNAVAILABLE);
    assert_int_equal(atomic_load(&push->n_done), 1);
    store_push_free(push);
    pg_cluster_resume(&g_cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_item_is_stored_before_its_submission_returns),
        cmocka_unit_test(an_item_soon_after_another_waits_for_more),
        cmocka_unit_test(an_item_without_leave_to_lead_waits_for_more),
        cmocka_unit_test(items_wait_longer_only_while_they_keep_coming),
        cmocka_unit_test(a_leader_that_loses_its_connection_leaves_its_batch_to_the_committer),
        cmocka_unit_test(a_leader_does_not_wait_for_a_connection),
        cmocka_unit_test(closing_ends_an_item_whose_leader_found_no_database),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
