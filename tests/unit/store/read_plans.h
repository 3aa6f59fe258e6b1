/* read_plans.h -- plans made by hand, leaves to read from, and what came. */
#ifndef HEARTH_TESTS_READ_PLANS_H
#define HEARTH_TESTS_READ_PLANS_H

#include "hearth/store/read.h"

#include "pg/pg.h"
#include "pg/store_state.h"
#include "read_fixture.h"
#include "session/partitions.h"
#include "store_scope.h"

#define TENANT HEARTH_STR("anonymous")
#define DAY    HEARTH_NS_PER_DAY
#define HOUR   HEARTH_NS_PER_HOUR

/* ---- plans by hand ---- */

/* Services 1 to 400 of the tenant, for tests that insert rows by SQL. */
static inline struct hearth_store *open_with_services(char url[256],
                                                      const struct hearth_store_options *options)
{
    struct hearth_store *store = open_fresh(url, options);
    pg_cluster_run(url, "WITH t AS (INSERT INTO hearth_data.tenant (name, version) VALUES"
                        " ('anonymous', 0) RETURNING tenant_id) INSERT INTO hearth_data.service"
                        " (tenant_id, fingerprint, name, version) SELECT tenant_id,"
                        " md5(i::text)::uuid, i::text, 0 FROM t, generate_series(1, 400) i");
    return store;
}

struct hand_plan {
    struct hearth_arena arena;
    struct hearth_read_state state;
    struct hearth_read_leg legs[16];
    struct hearth_read_plan plan;
};

/* The state of the services of the legs. */
static inline const struct hearth_read_plan *finish_plan(struct hearth_store *store,
                                                         struct hand_plan *hand, size_t n_legs)
{
    int32_t services[64];
    size_t n = 0;
    for (int32_t id = 1; id < 400; id++) { /* ascending */
        bool named = false;
        for (size_t i = 0; i < n_legs; i++) {
            for (size_t h = 0; h < hand->legs[i].n_hits; h++) {
                named = named || hand->legs[i].hits[h].service_id == id;
            }
        }
        if (named) {
            assert_true(n < HEARTH_ARRAY_LEN(services));
            services[n++] = id;
        }
    }
    hearth_arena_init(&hand->arena, 0);
    assert_ok(hearth_store_read_state(STORE_SCOPE(store, TENANT, &hand->arena), services, n,
                                      &hand->state, &err));
    hand->plan = (struct hearth_read_plan){hand->legs, n_legs, &hand->state};
    return &hand->plan;
}

/* Profiles that are neither late nor compacted. */
static inline enum hearth_status read_rows(struct hearth_store *store,
                                           const struct hearth_series_hit *hits, size_t n_hits,
                                           int64_t from_ns, int64_t to_ns,
                                           struct hearth_cancel *cancel, hearth_read_row_fn *visit,
                                           void *context, struct hearth_err *err)
{
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, from_ns, to_ns, hits, n_hits};
    (void)finish_plan(store, &hand, 1);
    enum hearth_status status = hearth_store_read(
        &(const struct hearth_scope){.store = store, .tenant = TENANT, .cancel = cancel},
        &hand.plan, visit, context, err);
    hearth_arena_release(&hand.arena);
    return status;
}

static inline enum hearth_status read_totals(struct hearth_store *store,
                                             const struct hearth_series_hit *hits, size_t n_hits,
                                             int64_t from_ns, int64_t to_ns,
                                             hearth_read_total_fn *visit, void *context,
                                             struct hearth_err *err)
{
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, from_ns, to_ns, hits, n_hits};
    (void)finish_plan(store, &hand, 1);
    enum hearth_status status =
        hearth_store_read_totals(STORE_SCOPE(store, TENANT, NULL), &hand.plan, visit, context, err);
    hearth_arena_release(&hand.arena);
    return status;
}

static inline void ensure_days(struct hearth_store *store, const char *url, int64_t from_ns,
                               int64_t to_ns)
{
    struct hearth_pg pg = {.url = test_secret(url)};
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    for (int32_t day = hearth_day_of(from_ns); day <= hearth_day_of(to_ns); day++) {
        assert_ok(hearth_partitions_ensure(store, &pg, HEARTH_LEAVES_ALL, day, &err));
    }
    hearth_pg_close(&pg);
}

/* ---- sets of rows, whatever their order ---- */

struct seen {
    uint64_t hashes[32768];
    size_t n;
};

static inline void see(struct seen *seen, struct hearth_buf *bytes)
{
    assert_true(seen->n < HEARTH_ARRAY_LEN(seen->hashes));
    seen->hashes[seen->n++] = hearth_hash64(bytes->p, bytes->n, 0);
    hearth_buf_release(bytes);
}

static inline int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static inline void assert_same(struct seen *a, struct seen *b)
{
    assert_int_equal(a->n, b->n);
    qsort(a->hashes, a->n, sizeof a->hashes[0], by_value);
    qsort(b->hashes, b->n, sizeof b->hashes[0], by_value);
    assert_memory_equal(a->hashes, b->hashes, a->n * sizeof a->hashes[0]);
}

static inline void see_text(struct hearth_buf *bytes, struct hearth_str s)
{
    hearth_buf_printf(bytes, "%zu%s:", s.n, s.p == NULL ? "-" : "");
    hearth_buf_str(bytes, s);
}

static inline enum hearth_status see_row(void *context, const struct hearth_read_row *row,
                                         struct hearth_err *err)
{
    (void)err;
    struct hearth_buf bytes;
    hearth_buf_init(&bytes, 0);
    hearth_buf_printf(&bytes, "%d %d %d %lld %d %d %d %lld ", (int)row->service_id,
                      (int)row->series_id, (int)row->writer_id, (long long)row->ts_ns,
                      (int)row->column, (int)row->is_column0, row->source,
                      (long long)row->n_profiles);
    see_text(&bytes, row->ids);
    see_text(&bytes, row->val);
    see_text(&bytes, row->val0);
    see_text(&bytes, row->members);
    see(context, &bytes);
    return HEARTH_OK;
}

static inline enum hearth_status see_total(void *context, const struct hearth_read_total *total,
                                           struct hearth_err *err)
{
    (void)err;
    struct hearth_buf bytes;
    hearth_buf_init(&bytes, 0);
    hearth_buf_printf(&bytes, "%d %d %d %lld %lld", (int)total->service_id, (int)total->series_id,
                      (int)total->column, (long long)total->ts_ns, (long long)total->total);
    see(context, &bytes);
    return HEARTH_OK;
}

/* What reading a leg has to give. */
struct counter {
    const char *url; /* cut our own connection in the middle */
    int64_t n_rows, stop_after, sum;
    _Atomic bool *cancelled;
};

static inline enum hearth_status count_row(void *context, const struct hearth_read_row *row,
                                           struct hearth_err *err)
{
    struct counter *counter = context;
    counter->n_rows++;
    assert_true(row->is_column0 == (row->val0.p == NULL));
    if (counter->n_rows != counter->stop_after) {
        return HEARTH_OK;
    }
    if (counter->url != NULL) {
        pg_cluster_run(counter->url, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                                     " WHERE query LIKE 'SELECT * FROM (SELECT service_id%'");
        return HEARTH_OK;
    }
    if (counter->cancelled != NULL) {
        atomic_store(counter->cancelled, true);
        return HEARTH_OK;
    }
    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "enough");
}

static inline enum hearth_status add_total(void *context, const struct hearth_read_total *total,
                                           struct hearth_err *err)
{
    (void)err;
    struct counter *counter = context;
    counter->n_rows++;
    counter->sum += total->total;
    return HEARTH_OK;
}

#endif
