/* test_span_index.c -- a bare id finds its profiles and spans from the moment they are acknowledged, wherever the builder has put them. */
#include "hearth/store/store_span_index.h"
#include "hearth/store/store_spans.h"

#include "step_fixture.h"
#include "store_scope.h"

/* A profile of svc-<service> with these ids; 0: none. */
struct pushed {
    uint64_t id; /* of the push; 0: none */
    const struct hearth_association *all;
    size_t n;
};

static struct hearth_association of(uint64_t id, unsigned what)
{
    return (struct hearth_association){.key = hearth_span_key(id), .of = (uint8_t)what};
}

static struct hearth_association push_spans(struct fixture *fix, int service, int64_t ts_ns,
                                            struct pushed pushed)
{
    char name[16];
    (void)snprintf(name, sizeof name, "svc-%d", service);
    struct store_push *push =
        store_push_make(fix->store, &g_world, name, ts_ns, 10, pushed.id, NULL);
    assert_non_null(push);
    push->row.associations = pushed.all;
    push->row.n_associations = pushed.n;
    struct hearth_association at = {
        .service_id = push->item.service_id, .series_id = push->row.series_id, .ts_ns = ts_ns};
    store_push_submit(push);
    assert_true(store_push_wait(push));
    assert_int_equal(push->status, HEARTH_OK);
    store_push_free(push);
    return at;
}

static size_t find_in(struct hearth_store *store, struct fixture *fix, uint64_t id, unsigned what,
                      struct hearth_association **ret)
{
    struct hearth_span_lookup lookup = {hearth_span_key(id), (uint8_t)what};
    const struct hearth_span_search search = {&lookup, 1, INT64_MIN, INT64_MAX, 0};
    struct hearth_found_spans found = {.is_cut = true};
    assert_ok(
        hearth_store_find_spans(STORE_SCOPE(store, TENANT, &fix->arena), &search, &found, &err));
    assert_false(found.is_cut);
    *ret = found.associations;
    return found.n;
}

static size_t find(struct fixture *fix, uint64_t id, unsigned what)
{
    struct hearth_association *ignored;
    return find_in(fix->store, fix, id, what, &ignored);
}

static void assert_at(const struct hearth_association *got, struct hearth_association at, int what)
{
    assert_int_equal(got->service_id, at.service_id);
    assert_int_equal(got->series_id, at.series_id);
    assert_int_equal(got->ts_ns, at.ts_ns);
    assert_int_equal(got->of, what);
}

/* The builder's step until it has nothing to do. */
static void fold(struct fixture *fix)
{
    bool more = true;
    fix->builder.next_spans_mono_ns = 0;
    for (int i = 0; i < 1000 && more; i++) {
        more = false;
        assert_ok(hearth_step_spans(&fix->builder, &more, &err));
    }
    assert_false(more);
    assert_int_equal(count(fix, "span_fresh"), 0);
}

#define ANY 15u

static void acknowledged_spans_are_found_before_and_after_they_are_folded(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now = hearth_clock_wall_ns(), yesterday = now - HEARTH_NS_PER_DAY;
    struct hearth_association ids[] = {of(1, HEARTH_OF_SPAN | HEARTH_OF_LOCAL_ROOT),
                                       of(2, HEARTH_OF_SPAN), of(9, HEARTH_OF_TRACE)};
    struct hearth_association a = push_spans(&fix, 1, now, (struct pushed){0, ids, 3});
    struct hearth_association b = push_spans(&fix, 2, yesterday, (struct pushed){0, ids + 2, 1});
    (void)push_spans(&fix, 3, now, (struct pushed){0});
    assert_int_equal(count(&fix, "span_fresh"), 2);
    struct hearth_store *other = open_without_builder(fix.url);
    for (int folded = 0; folded < 2; folded++) {
        struct hearth_association *got;
        assert_int_equal(find_in(other, &fix, 1, ANY, &got), 1);
        assert_at(&got[0], a, HEARTH_OF_SPAN | HEARTH_OF_LOCAL_ROOT);
        assert_int_equal(got[0].key, hearth_span_key(1));
        assert_int_equal(find_in(fix.store, &fix, 1, HEARTH_OF_LOCAL_ROOT, &got), 1);
        assert_at(&got[0], a, HEARTH_OF_LOCAL_ROOT);
        assert_int_equal(find_in(fix.store, &fix, 9, HEARTH_OF_TRACE, &got), 2);
        assert_at(&got[0], a, HEARTH_OF_TRACE);
        assert_at(&got[1], b, HEARTH_OF_TRACE);
        assert_int_equal(find(&fix, 2, HEARTH_OF_TRACE | HEARTH_OF_LOCAL_ROOT), 0);
        assert_int_equal(find(&fix, 3, ANY), 0);
        fold(&fix);
    }
    assert_int_equal(count(&fix, "span_index"), 2); /* a row a day */
    close_store(other);
    close_fixture(&fix);
}

static void other_tenants_find_nothing(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_association ids[] = {of(1, HEARTH_OF_SPAN)};
    (void)push_spans(&fix, 1, hearth_clock_wall_ns(), (struct pushed){0, ids, 1});
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.tenant (name, version) VALUES"
                            " ('stranger', 0)");
    for (int folded = 0; folded < 2; folded++) {
        struct hearth_span_lookup lookup = {hearth_span_key(1), ANY};
        const struct hearth_span_search search = {&lookup, 1, INT64_MIN, INT64_MAX, 0};
        struct hearth_found_spans found = {.n = 1};
        assert_ok(hearth_store_find_spans(
            STORE_SCOPE(fix.store, HEARTH_STR("stranger"), &fix.arena), &search, &found, &err));
        assert_int_equal(found.n, 0);
        fold(&fix);
    }
    close_fixture(&fix);
}

static void a_repeated_push_stores_nothing(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_association ids[] = {of(1, HEARTH_OF_SPAN)};
    int64_t now = hearth_clock_wall_ns();
    (void)push_spans(&fix, 1, now - 1, (struct pushed){5, ids, 1});
    (void)push_spans(&fix, 1, now, (struct pushed){5, ids, 1});
    assert_int_equal(count(&fix, "span_fresh"), 1);
    assert_int_equal(find(&fix, 1, ANY), 1);
    close_fixture(&fix);
}

/* Each fold has some ids of its own and one that all have. */
static void parts_are_merged_without_loss(void **state)
{
    (void)state;
    enum {
        N_FOLDS = 34, /* two merges of 16 */
        N_IDS = 600,
        COMMON = 1000000,
    };
    struct fixture fix;
    open_fixture(&fix);
    int64_t day_ns = the_day() * HEARTH_NS_PER_DAY;
    struct hearth_association ids[N_IDS + 1];
    for (int k = 0; k < N_FOLDS; k++) {
        for (int i = 0; i < N_IDS; i++) {
            ids[i] = of((uint64_t)(1 + k * N_IDS + i), HEARTH_OF_SPAN);
        }
        ids[N_IDS] = of(COMMON, HEARTH_OF_TRACE);
        (void)push_spans(&fix, 1, day_ns + k, (struct pushed){0, ids, N_IDS + 1});
        fold(&fix);
    }
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT sum(n_associations) FROM hearth_data.span_index"),
        N_FOLDS * (N_IDS + 1));
    assert_true(pg_cluster_int(fix.url, "SELECT count(DISTINCT part) FROM hearth_data.span_index") <
                N_FOLDS);
    assert_true(pg_cluster_int(fix.url, "SELECT max(n) FROM (SELECT count(*) AS n FROM"
                                        " hearth_data.span_index GROUP BY bits, bucket) b") < 16);
    assert_true(pg_cluster_int(fix.url, "SELECT max(bits) FROM hearth_data.span_index") >= 4);
    struct hearth_association *got;
    assert_int_equal(find_in(fix.store, &fix, COMMON, HEARTH_OF_TRACE, &got), N_FOLDS);
    for (int k = 0; k < N_FOLDS; k++) {
        assert_int_equal(got[k].ts_ns, day_ns + k);
    }
    for (int id = 1; id <= N_FOLDS * N_IDS; id += 97) {
        assert_int_equal(find_in(fix.store, &fix, (uint64_t)id, HEARTH_OF_SPAN, &got), 1);
        assert_int_equal(got[0].ts_ns, day_ns + (id - 1) / N_IDS);
    }
    close_fixture(&fix);
}

static void a_limit_keeps_the_latest_associations_of_the_range(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_association ids[] = {of(1, HEARTH_OF_SPAN)}, *got;
    int64_t now = hearth_clock_wall_ns(), at[6];
    for (int i = 0; i < 6; i++) { /* two days, some folded */
        at[i] = now - (5 - i) * HEARTH_NS_PER_DAY / 4;
        (void)push_spans(&fix, 1, at[i], (struct pushed){0, ids, 1});
        if (i == 3) {
            fold(&fix);
        }
    }
    struct hearth_span_lookup twice[] = {{hearth_span_key(1), HEARTH_OF_SPAN},
                                         {hearth_span_key(1), HEARTH_OF_TRACE}};
    struct hearth_span_search search = {twice, 2, at[1], at[4], 0};
    struct hearth_found_spans found;
    assert_ok(
        hearth_store_find_spans(STORE_SCOPE(fix.store, TENANT, &fix.arena), &search, &found, &err));
    assert_int_equal(found.n, 4);
    assert_false(found.is_cut);
    assert_int_equal(found.associations[0].ts_ns, at[1]);
    assert_int_equal(found.associations[3].ts_ns, at[4]);
    search.limit = 3;
    assert_ok(
        hearth_store_find_spans(STORE_SCOPE(fix.store, TENANT, &fix.arena), &search, &found, &err));
    assert_int_equal(found.n, 3);
    assert_true(found.is_cut);
    assert_int_equal(found.associations[0].ts_ns, at[2]);
    int64_t since_ns;
    assert_ok(hearth_store_span_index_since(STORE_SCOPE(fix.store, HEARTH_STR(""), NULL), &since_ns,
                                            &err));
    assert_true(since_ns == INT64_MIN); /* nothing was stored before there was an index */
    close_fixture(&fix);
}

/* More lookups than keys in the statement. */
static void many_ids_are_looked_up_at_once(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_association ids[40];
    struct hearth_span_lookup lookups[60];
    for (unsigned i = 0; i < 40; i++) {
        ids[i] = of(1 + i, HEARTH_OF_SPAN);
    }
    for (unsigned i = 0; i < 60; i++) {
        lookups[i] = (struct hearth_span_lookup){hearth_span_key(21 + i), ANY};
    }
    (void)push_spans(&fix, 1, hearth_clock_wall_ns(), (struct pushed){0, ids, 40});
    for (int folded = 0; folded < 2; folded++) {
        struct hearth_span_search search = {lookups, 60, INT64_MIN, INT64_MAX, 0};
        struct hearth_found_spans found;
        assert_ok(hearth_store_find_spans(STORE_SCOPE(fix.store, TENANT, &fix.arena), &search,
                                          &found, &err));
        assert_int_equal(found.n, 20);
        search.n_lookups = 0;
        assert_ok(hearth_store_find_spans(STORE_SCOPE(fix.store, TENANT, &fix.arena), &search,
                                          &found, &err));
        assert_int_equal(found.n, 0);
        fold(&fix);
    }
    close_fixture(&fix);
}

static void traces_done(struct hearth_trace_item *item, enum hearth_status status,
                        const struct hearth_err *reason)
{
    (void)item;
    (void)reason;
    assert_int_equal(status, HEARTH_OK);
}

static void stored_spans_are_found_by_their_ids(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now = hearth_clock_wall_ns();
    uint64_t some[] = {1, 2, 3};
    struct hearth_span_group groups[3];
    for (int i = 0; i < 3; i++) {
        groups[i] = (struct hearth_span_group){.service = HEARTH_STR("shop"),
                                               .trace_id = HEARTH_STR("0123456789abcdef"),
                                               .segment_id = hearth_str_n("abcdefgh" + i, 1),
                                               .is_raw = true,
                                               .start_ns = now + i,
                                               .end_ns = now + i,
                                               .kind = HEARTH_SPAN_ENTRY,
                                               .n_spans = 1,
                                               .spans = HEARTH_STR("\0packed"),
                                               .span_ids = &some[i],
                                               .n_span_ids = 1};
    }
    groups[1].service = HEARTH_STR("cart");
    struct hearth_trace_item item = {
        .tenant = TENANT, .groups = groups, .n_groups = 3, .done = traces_done};
    assert_ok(hearth_store_submit_traces(fix.store, &item, &err));
    wait_until_sql(fix.url, "SELECT (count(*) = 3)::int FROM hearth_data.span_group");
    assert_int_equal(count(&fix, "span_fresh"), 2); /* a row a service */
    for (int folded = 0; folded < 2; folded++) {
        struct hearth_association *got;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(
                find_in(fix.store, &fix, some[i], HEARTH_OF_STORED_SPAN | HEARTH_OF_SPAN, &got), 1);
            assert_int_equal(got[0].of, HEARTH_OF_STORED_SPAN);
            assert_int_equal(got[0].series_id, 0);
            assert_int_equal(got[0].ts_ns, now + i);
        }
        fold(&fix);
    }
    close_fixture(&fix);
}

static void associations_of_a_deleted_service_are_removed(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.span_fresh (service_id, n_associations,"
                            " associations) VALUES (12345, 1, '\\x0100000000000000000000000001')");
    fold(&fix);
    assert_int_equal(count(&fix, "span_index"), 0);
    close_fixture(&fix);
}

/* As the SQL that follows says, of a service that is there. */
static void insert_fresh(struct fixture *fix, const char *values)
{
    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.span_fresh (service_id, n_associations, associations)"
                   " SELECT service_id, %s",
                   values);
    pg_cluster_run(fix->url, sql);
}

/* More rows than a transaction takes, each of one association: 0x01 (one), series 0x01, time 0, key, a span. */
static void all_waiting_rows_are_folded_however_small_they_are(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    (void)push_spans(&fix, 1, hearth_clock_wall_ns(), (struct pushed){0});
    insert_fresh(&fix, "1, '\\x010100'::bytea || int8send(k) || '\\x01'::bytea FROM"
                       " hearth_data.service, generate_series(1::int8, 20000) k");
    fold(&fix);
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT sum(n_associations) FROM hearth_data.span_index"), 20000);
    close_fixture(&fix);
}

/* Ids that do not spread: half a million keys in one bucket, and bucket 0 says that there is next to nothing. */
static void unevenly_spread_ids_are_merged_without_loss(void **state)
{
    (void)state;
    enum {
        N_FOLDS = 16,
        N_KEYS = 30000,
    };
    struct fixture fix;
    open_fixture(&fix);
    (void)push_spans(&fix, 1, hearth_clock_wall_ns(), (struct pushed){0});
    for (int k = 0; k < N_FOLDS; k++) {
        char values[512];
        (void)snprintf(values, sizeof values,
                       "%d, '\\xB1EA010100'::bytea || (SELECT string_agg(int8send((CASE WHEN i = 0"
                       " THEN 0 ELSE 1::int8 << 62 END) | ((%d * 32768 + i) << 20)), ''::bytea)"
                       " FROM generate_series(0::int8, %d) i) || decode(repeat('01', %d), 'hex')"
                       " FROM hearth_data.service",
                       N_KEYS + 1, k, N_KEYS, N_KEYS + 1);
        insert_fresh(&fix, values);
        fold(&fix);
    }
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT sum(n_associations) FROM hearth_data.span_index"),
        N_FOLDS * (N_KEYS + 1));
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT max(n_associations) FROM hearth_data.span_index"), 32768);
    assert_int_equal(
        pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.span_index WHERE bucket = 0"), 1);
    struct hearth_span_lookup lookup = {1ull << 62 | 32769ull << 20, HEARTH_OF_SPAN};
    const struct hearth_span_search search = {&lookup, 1, INT64_MIN, INT64_MAX, 0};
    struct hearth_found_spans found;
    assert_ok(
        hearth_store_find_spans(STORE_SCOPE(fix.store, TENANT, &fix.arena), &search, &found, &err));
    assert_int_equal(found.n, 1);
    assert_int_equal(found.associations[0].ts_ns, 0);
    close_fixture(&fix);
}

/* Whatever statistics say of leaves that are new and small. */
static void leaves_are_searched_by_their_key_only(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_association ids[] = {of(1, HEARTH_OF_SPAN)};
    for (int i = 0; i < 3; i++) {
        (void)push_spans(&fix, 1, hearth_clock_wall_ns() - i * HEARTH_NS_PER_DAY,
                         (struct pushed){0, ids, 1});
    }
    fold(&fix);
    assert_int_equal(
        pg_cluster_int(fix.url,
                       "BEGIN; SELECT 1 / (count(*) = 3)::int FROM"
                       " hearth_data.find_in_span_index((SELECT tenant_id FROM hearth_data.tenant"
                       " WHERE name = 'anonymous'), '{0,2}', '{0,1}', -1000000, 1000000);"
                       " SELECT bool_and(idx_scan = 2 AND seq_scan = 0)::int FROM"
                       " pg_stat_xact_user_tables WHERE relname ~ '^span_index_[0-9]+$'"),
        1);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_spans_are_found_before_and_after_they_are_folded),
        cmocka_unit_test(other_tenants_find_nothing),
        cmocka_unit_test(a_repeated_push_stores_nothing),
        cmocka_unit_test(parts_are_merged_without_loss),
        cmocka_unit_test(a_limit_keeps_the_latest_associations_of_the_range),
        cmocka_unit_test(many_ids_are_looked_up_at_once),
        cmocka_unit_test(stored_spans_are_found_by_their_ids),
        cmocka_unit_test(associations_of_a_deleted_service_are_removed),
        cmocka_unit_test(all_waiting_rows_are_folded_however_small_they_are),
        cmocka_unit_test(unevenly_spread_ids_are_merged_without_loss),
        cmocka_unit_test(leaves_are_searched_by_their_key_only),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
