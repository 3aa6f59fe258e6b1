/*
 * step_fixture.h -- a store without a builder thread, and a builder that is the test: steps run when
 * the test says so.
 */
#ifndef HEARTH_TESTS_UNIT_STORE_STEP_FIXTURE_H
#define HEARTH_TESTS_UNIT_STORE_STEP_FIXTURE_H

#include "build/builder.h"
#include "build/retention.h"
#include "build/roll.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "read_fixture.h"
#include "store_push.h"

#define HOUR   HEARTH_NS_PER_HOUR
#define TENANT HEARTH_STR("anonymous")

struct fixture {
    char url[256];
    struct hearth_store *store;
    struct hearth_builder builder;
    struct hearth_arena arena;
};

static inline struct hearth_store *open_without_builder(const char *url)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.url = test_secret(url);
    options.builder = false;
    options.rollup_min_profiles = options.rollup_min_profiles_1h = 0;
    options.retain_agents_ns = 0; /* what tests report lies far back */
    return open_ready(url, &options);
}

/* A builder that is this thread, with the lease. */
static inline void open_builder(struct fixture *fix)
{
    fix->builder = (struct hearth_builder){
        .store = fix->store, .token = 7, .renewed_mono_ns = hearth_clock_mono_ns()};
    fix->builder.pg.url = fix->store->url;
    fix->builder.inflater = hearth_inflater_new();
    fix->builder.packer = hearth_packer_new(1);
    assert_ok(hearth_pg_connect(&fix->builder.pg, CONNECT_MS, &err));
    pg_cluster_run(fix->url, "INSERT INTO hearth_data.lease VALUES ('builder', 1, 7,"
                             " now() + interval '1 hour') ON CONFLICT (name) DO UPDATE SET"
                             " token = 7, expires_at = now() + interval '1 hour'");
}

static inline void open_fixture(struct fixture *fix)
{
    *fix = (struct fixture){0};
    pg_cluster_database(&g_cluster, fix->url);
    fix->store = open_without_builder(fix->url);
    hearth_arena_init(&fix->arena, 0);
    open_builder(fix);
}

static inline void close_fixture(struct fixture *fix)
{
    hearth_pg_close(&fix->builder.pg);
    hearth_inflater_free(fix->builder.inflater);
    hearth_packer_free(fix->builder.packer);
    hearth_arena_release(&fix->arena);
    close_store(fix->store);
}

/* One profile of svc-<service>, pod-<pod>. */
static inline void push(struct hearth_store *store, int service, int pod, int64_t ts_ns)
{
    struct made_series made;
    struct store_push *push = hearth_mem_zalloc(sizeof *push);
    struct hearth_series_ref ref;
    push->store = store;
    hearth_arena_init(&push->arena, 0);
    struct hearth_profile profile = synth_profile(&g_world, 10, 2, &push->arena, NULL);
    assert_ok(hearth_store_resolve_series(store, TENANT, make_series(&made, service, pod), 1, ts_ns,
                                          &ref, &err));
    assert_ok(hearth_store_dict_acquire(store, ref.service_id, ts_ns, &push->item.dict, &err));
    push->row.series_id = ref.series_id;
    push->item.service_id = ref.service_id;
    push->item.ts_ns = ts_ns;
    push->item.rows = &push->row;
    push->item.n_rows = 1;
    push->item.done = store_push_done;
    assert_int_equal(store_push_encode(push, &profile), HEARTH_OK);
    store_push_submit(push);
    assert_true(store_push_wait(push));
    assert_int_equal(push->status, HEARTH_OK);
    store_push_free(push);
}

/* Close and build all that is due. */
static inline void build(struct fixture *fix)
{
    bool more = true;
    fix->builder.close = hearth_close_new();
    for (int i = 0; i < 2000 && more; i++) {
        more = false;
        assert_ok(hearth_step_close(&fix->builder, &more, &err));
    }
    assert_false(more);
    hearth_close_free(fix->builder.close);
    fix->builder.close = NULL;
}

/* Fold all late profiles. */
static inline void fold_late(struct fixture *fix)
{
    bool more = true;
    for (int i = 0; i < 100 && more; i++) {
        more = false;
        fix->builder.next_fold_mono_ns = 0;
        assert_ok(hearth_step_fold(&fix->builder, &more, &err));
    }
    assert_false(more);
    assert_int_equal(pg_cluster_int(fix->url, "SELECT count(*) FROM hearth_data.profile_late"), 0);
}

/* Compact every closed hour, and drop the leaf of at most one day. */
static inline void compact_hours(struct fixture *fix)
{
    bool more = true;
    fix->store->options.compact_after_ns = 0;
    fix->builder.next_days_mono_ns = 0;
    for (int i = 0; i < 2000 && more; i++) {
        more = false;
        assert_ok(hearth_step_compact(&fix->builder, &more, &err));
    }
    assert_false(more);
}

/* Delete what is past its retention. */
static inline void retain(struct fixture *fix)
{
    struct hearth_retention_progress *at = &fix->store->retention;
    bool more = true;
    at->next_pass_mono_ns = at->next_rows_mono_ns = 0;
    at->next_sweep_mono_ns = INT64_MAX;
    for (int i = 0; i < 100 && more; i++) {
        assert_ok(hearth_step_retention(&fix->builder, &more, &err));
    }
}

/* A day that is over and closed, and the next one too, at any time of day; the same in all of a program. */
static inline int32_t the_day(void)
{
    static int32_t day;
    if (day == 0) {
        day = hearth_day_of(hearth_clock_wall_ns()) - 3;
    }
    return day;
}

/* Three pods, two profiles each in each hour from 2 to 5 o'clock: 24. */
static inline void push_a_day(struct fixture *fix, int64_t day_ns)
{
    for (int hour = 2; hour < 6; hour++) {
        for (int pod = 1; pod <= 3; pod++) {
            push(fix->store, 1, pod, day_ns + hour * HOUR + pod);
            push(fix->store, 1, pod, day_ns + hour * HOUR + HOUR / 2 + pod);
        }
    }
}

static inline long long count(const struct fixture *fix, const char *what)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM hearth_data.%s", what);
    return pg_cluster_int(fix->url, sql);
}

#endif
