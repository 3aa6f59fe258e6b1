/*
 * store_fixture.h -- what tests of the store share: one PostgreSQL for a test program, stores on
 * databases of it, pushes that must succeed, and waiting for what statements see.
 *
 * A step that fails here fails the test that runs.
 */
#ifndef HEARTH_TESTS_STORE_FIXTURE_H
#define HEARTH_TESTS_STORE_FIXTURE_H

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/store/store.h"

#include "pg_cluster.h"
#include "store_push.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Expects HEARTH_OK of an expression that may use `err`; prints the message otherwise. */
#define assert_ok(expr)                                                                  \
    do {                                                                                 \
        struct hearth_err err = HEARTH_ERR_INIT;                                         \
        enum hearth_status ok_status_ = (expr);                                          \
        if (ok_status_ != HEARTH_OK) {                                                   \
            print_error("%s: %s: %s\n", #expr, hearth_status_name(ok_status_), err.msg); \
        }                                                                                \
        assert_int_equal(ok_status_, HEARTH_OK);                                         \
    } while (0)

/* How long a connection of a test may take to be made, in milliseconds. */
#define CONNECT_MS 60000

/* Of one test program: the PostgreSQL, memory until its end, and a world to draw profiles from. */
static struct pg_cluster g_cluster;
static struct hearth_arena g_arena;
static struct synth_world g_world;

/* Group set-up: PostgreSQL without fsync. */
static inline int start_cluster(void **state)
{
    (void)state;
    pg_cluster_start(&g_cluster, false);
    hearth_arena_init(&g_arena, 0);
    synth_world_init(&g_world, 5, 100, 200, 100, 8, &g_arena);
    return 0;
}

/* Group set-up: PostgreSQL with fsync, on disk; larger profiles. */
static inline int start_durable_cluster(void **state)
{
    (void)state;
    pg_cluster_start(&g_cluster, true);
    hearth_arena_init(&g_arena, 0);
    synth_world_init(&g_world, 7, 400, 900, 600, 12, &g_arena);
    return 0;
}

/* Group tear-down; the clock is the real one again. */
static inline int stop_cluster(void **state)
{
    (void)state;
    hearth_clock_fake(0);
    hearth_arena_release(&g_arena);
    pg_cluster_stop(&g_cluster);
    return 0;
}

/* ---- stores ---- */

static inline struct hearth_store *expect_ready(struct hearth_store *store)
{
    assert_true(store_wait_ready(store));
    return store;
}

/* A ready store without a builder. options: NULL for defaults; its URL is ignored. */
static inline struct hearth_store *open_ready(const char *url,
                                              const struct hearth_store_options *options)
{
    return expect_ready(store_open_url(url, options));
}

/* The same on a new database, whose URL is written to `url`. */
static inline struct hearth_store *open_fresh(char url[256],
                                              const struct hearth_store_options *options)
{
    pg_cluster_database(&g_cluster, url);
    return open_ready(url, options);
}

static inline struct hearth_store *open_store(const char *url)
{
    return open_ready(url, NULL);
}

static inline void close_store(struct hearth_store *store)
{
    store_close_soon(store);
}

/* Options of a store whose builder only rolls up, and often: nothing is compacted or expires. */
static inline struct hearth_store_options rolling_options(int64_t interval_ns)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.linger_ns = 0;
    options.builder_interval_ns = interval_ns;
    options.compaction = false;
    options.rollup_min_profiles = options.rollup_min_profiles_1h = 0;
    options.retain_raw_ns = options.retain_10m_ns = options.retain_1h_ns = options.retain_1d_ns = 0;
    return options;
}

/* ---- pushes ---- */

/* A push of `n_samples` samples, not submitted. */
static inline struct store_push *make_push(struct hearth_store *store, const char *service,
                                           int64_t ts_ns, uint32_t n_samples, uint64_t id)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct store_push *push = store_push_make(store, &g_world, service, ts_ns, n_samples, id, &err);
    if (push == NULL) {
        fail_msg("cannot make a push: %s", err.msg);
    }
    return push;
}

/* Wait for a submitted push that must succeed, and free it. */
static inline void end_push(struct store_push *push)
{
    assert_true(store_push_wait(push));
    if (push->status != HEARTH_OK) {
        fail_msg("push failed: %s", push->err.msg);
    }
    store_push_free(push);
}

/* Store one profile of a service and a pod. */
static inline void push_profile(struct hearth_store *store, struct synth_world *world,
                                const char *service, const char *pod, int64_t ts_ns,
                                uint32_t n_samples)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct store_push *push =
        store_push_make_pod(store, world, service, pod, ts_ns, n_samples, 0, &err);
    if (push == NULL) {
        fail_msg("cannot make a push: %s", err.msg);
    }
    store_push_submit(push);
    end_push(push);
}

/* ---- waiting ---- */

/* Wait until the first number of a query is not 0. By one connection: a new one costs milliseconds. */
static inline void wait_until_sql(const char *url, const char *sql)
{
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    PGconn *conn = pg_cluster_connect(url);
    char text[64];
    pg_cluster_ask(conn, sql, text, sizeof text);
    while (strtoll(text, NULL, 10) == 0) {
        if (hearth_clock_mono_ns() > until_ns) {
            fail_msg("still 0: %s", sql);
        }
        (void)usleep(2000);
        pg_cluster_ask(conn, sql, text, sizeof text);
    }
    PQfinish(conn);
}

/*
 * Wait until `n` statements LIKE `pattern` wait for locks in the database of `url`. The pattern keeps
 * housekeeping apart, which begins when the store is ready and may wait for the same lock.
 */
static inline void wait_until_blocked(const char *url, const char *pattern, int n)
{
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "SELECT (count(*) >= %d)::int FROM pg_stat_activity WHERE wait_event_type ="
                   " 'Lock' AND datname = current_database() AND query LIKE '%s'",
                   n, pattern);
    wait_until_sql(url, sql);
}

/* Wait until a commit of the store waits for a lock: a script, or one of its prepared statements. */
static inline void wait_until_commit_blocked(const char *url)
{
    wait_until_blocked(url, "%INSERT INTO hearth_data.%", 1);
}

/* Wait until the connections of closed stores have ended, which reports their statistics. */
static inline void wait_until_disconnected(const char *url)
{
    wait_until_sql(url, "SELECT (count(*) = 0)::int FROM pg_stat_activity WHERE application_name ="
                        " 'hearthd' AND datname = current_database()");
}

#endif
