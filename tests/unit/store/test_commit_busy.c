/* Rows wait longer, for more of them, while the processors are busy with others that follow. */
#include "store_fixture.h"

#include <unistd.h>

#define MOMENT_US 100000 /* long enough for a commit that does not wait */

static struct store_push *submit_followed(struct hearth_store *store, bool others_follow)
{
    struct store_push *push = make_push(store, "api", hearth_clock_wall_ns(), 60, 0);
    push->item.others_follow = others_follow;
    store_push_submit(push);
    return push;
}

/* A store with one committer that has connected. It commits single rows unless others follow. */
static struct hearth_store *open_busy(char url[256], int64_t busy_linger_ns, size_t busy_rows)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = 0;
    options.commit_rows = 1;
    options.busy_linger_ns = busy_linger_ns;
    options.busy_rows = busy_rows;
    options.alone_ns = 0;
    struct hearth_store *store = open_fresh(url, &options);
    end_push(submit_followed(store, false));

    return store;
}

static void rows_wait_while_others_follow_until_one_has_no_followers(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_busy(url, HEARTH_NS_PER_HOUR, 1000);
    int64_t batches = hearth_metric_value(HEARTH_M_BATCHES);
    int64_t gathered = hearth_metric_value(HEARTH_M_BATCHES_GATHERED);
    struct store_push *first = submit_followed(store, true);
    struct store_push *second = submit_followed(store, true);
    (void)usleep(MOMENT_US);
    assert_false(atomic_load(&first->ended));
    assert_false(atomic_load(&second->ended));

    struct store_push *last = submit_followed(store, false);
    end_push(first);
    end_push(second);
    end_push(last);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES), batches + 1);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_GATHERED), gathered + 1);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 4);
    store_close_soon(store);
}

static void as_many_rows_as_commit_busy_rows_do_not_wait(void **state)
{
    (void)state;
    char url[256];
    enum {
        N = 8
    };
    struct hearth_store *store = open_busy(url, HEARTH_NS_PER_HOUR, N);
    int64_t batches = hearth_metric_value(HEARTH_M_BATCHES);
    struct store_push *pushes[N];
    for (int i = 0; i < N; i++) {
        pushes[i] = submit_followed(store, true);
    }
    for (int i = 0; i < N; i++) {
        end_push(pushes[i]);
    }

    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES), batches + 1);
    store_close_soon(store);
}

static void rows_whose_followers_do_not_come_wait_for_commit_busy_linger_only(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_busy(url, 200 * HEARTH_NS_PER_MS, 1000);
    int64_t began_ns = hearth_clock_mono_ns();
    end_push(submit_followed(store, true));
    assert_true(hearth_clock_mono_ns() - began_ns >= 200 * HEARTH_NS_PER_MS);
    store_close_soon(store);
}

static void followers_do_not_shorten_the_wait_for_commit_linger(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = HEARTH_NS_PER_HOUR;
    options.commit_rows = 2;
    options.busy_linger_ns = 1;
    options.busy_rows = 1;
    struct hearth_store *store = open_fresh(url, &options);
    struct store_push *first = submit_followed(store, true);
    (void)usleep(MOMENT_US);
    assert_false(atomic_load(&first->ended));
    end_push(submit_followed(store, true));
    end_push(first);
    store_close_soon(store);
}

static void without_commit_busy_linger_followers_change_nothing(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_busy(url, 0, 1000);
    int64_t gathered = hearth_metric_value(HEARTH_M_BATCHES_GATHERED);
    end_push(submit_followed(store, true));
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_GATHERED), gathered);
    store_close_soon(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_wait_while_others_follow_until_one_has_no_followers),
        cmocka_unit_test(as_many_rows_as_commit_busy_rows_do_not_wait),
        cmocka_unit_test(rows_whose_followers_do_not_come_wait_for_commit_busy_linger_only),
        cmocka_unit_test(followers_do_not_shorten_the_wait_for_commit_linger),
        cmocka_unit_test(without_commit_busy_linger_followers_change_nothing),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
