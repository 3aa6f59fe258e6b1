/*
 * The builder's connection cut at every message of a close, a fold, and the end of hours and days:
 * no profile is lost or doubled, and no block is wrong. At every eighth only, unless
 * HEARTH_TEST_LONG is set: CI is to be quick.
 */
#include "hearth/base/log.h"

#include "build/builder.h"
#include "pg/store_state.h"
#include "pg_proxy.h"
#include "rollup_fixture.h"
#include "rounds.h"

/* Twenty minutes before midnight: the end of a day comes soon. */
#define EPOCH_NS (INT64_C(20001) * HEARTH_NS_PER_DAY - 2 * BUCKET_NS)

struct rig {
    struct pg_proxy proxy;
    char direct[256];
    struct hearth_store *store;
    struct synth_world world;
    int64_t now_ns;
    long long n_pushed;
    char types[1024]; /* of the messages that were cut */
};

static void push(struct rig *rig, const char *pod, int64_t ts_ns)
{
    push_profile(rig->store, &rig->world, "api", pod, ts_ns, 4);
    rig->n_pushed++;
}

/*
 * Profiles for the bucket that ends, and a late one of an hour ago; then its end comes while the
 * proxy is armed. How many cuts were made.
 */
static int close_through_cut(struct rig *rig, int cut_at, bool after)
{
    push(rig, "pod-1", rig->now_ns + MINUTE_NS);
    push(rig, "pod-2", rig->now_ns + 2 * MINUTE_NS);
    push(rig, "pod-1", rig->now_ns - HEARTH_NS_PER_HOUR);
    pg_proxy_arm(&rig->proxy, cut_at, after, 1);
    rig->now_ns += BUCKET_NS;
    hearth_clock_fake(rig->now_ns);
    hearth_builder_wake(rig->store->builder);
    char type = 0;
    if (!rollup_wait(rig->direct, rig->now_ns)) {
        fail_msg("cut %d (%s): not built", cut_at, after ? "after" : "before");
    }
    int made = pg_proxy_disarm(&rig->proxy, 1, &type);
    size_t n = strlen(rig->types);
    if (made > 0 && n < sizeof rig->types - 1) {
        rig->types[n] = type;
    }
    return made;
}

static void check(struct rig *rig)
{
    long long wrong, all;
    assert_true(rollup_compare(rig->direct, &wrong, &all));
    assert_int_equal(wrong, 0);
    assert_int_equal(pg_cluster_int(rig->direct, "SELECT count(*) FROM hearth_data.profile"),
                     rig->n_pushed);
    assert_int_equal(pg_cluster_int(rig->direct, "SELECT count(DISTINCT (writer_id, profile_no))"
                                                 " FROM hearth_data.profile"),
                     rig->n_pushed);
}

static void a_cut_at_any_message_of_a_close_leaves_every_block_right(void **state)
{
    (void)state;
    struct rig *rig = calloc(1, sizeof *rig);
    char url[300], db[64];
    pg_cluster_database(&g_cluster, rig->direct);
    pg_cluster_text(rig->direct, "SELECT current_database()", db, sizeof db);
    pg_proxy_start(&rig->proxy, g_cluster.dir);
    rig->proxy.marker = "hearth_data.lease WHERE name = 'builder' AND token";
    (void)snprintf(url, sizeof url, "host=%s dbname=%s user=postgres", rig->proxy.dir, db);
    rig->now_ns = EPOCH_NS;
    hearth_clock_fake(rig->now_ns);
    struct hearth_store_options options = rolling_options(3 * HEARTH_NS_PER_MS);
    options.rollup_grace_ns = 0;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    synth_world_init(&rig->world, 3, 40, 60, 60, 5, &arena);
    rig->store = expect_ready(store_open_building(url, &options));
    int n_cuts = 0, n_closes = 0, step, first = test_first_place(8, &step);
    for (int mode = 0; mode < 2; mode++) {
        int n_missed = 0; /* closes without so many messages; the end of a day has the most */
        for (int cut_at = first; n_missed < 7; cut_at += step) {
            int made = close_through_cut(rig, cut_at, mode == 1);
            n_cuts += made;
            n_missed = made == 0 ? n_missed + 1 : 0;
            if (n_closes++ % 4 == 0) {
                check(rig);
            }
        }
    }
    check(rig);
    print_message("%d cuts, at messages: %s\n", n_cuts, rig->types);
    assert_true(n_cuts >= 200 / step);
    store_close_soon(rig->store);
    pg_proxy_stop(&rig->proxy);
    hearth_arena_release(&arena);
    hearth_clock_fake(0);
    free(rig);
}

int main(void)
{
    hearth_log_set_level(HEARTH_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_at_any_message_of_a_close_leaves_every_block_right),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
