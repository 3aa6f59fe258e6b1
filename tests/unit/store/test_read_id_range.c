/* test_read_id_range.c -- totals of many series with few profiles, by a range of ids. */
#include "read/read_internal.h"
#include "read_plans.h"

#define N_IDS 9000 /* more than those of one array */

/* One id in 20 is of another service, and one in 11 has other types: neither is selected. */
static bool is_selected(int32_t id)
{
    return id % 20 != 0 && id % 11 != 3;
}

static int32_t service_of(int32_t id)
{
    return id % 20 == 0 ? 3 : 1 + id % 2;
}

/* A profile of each series in the hour and one after it; unselected ones have one column. */
static void fill_thin(struct hearth_store *store, const char *url)
{
    ensure_days(store, url, T0, T0);
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.profile SELECT CASE WHEN s %% 20 = 0 THEN 3 ELSE 1 + s %% 2 END,"
        " s, %lld + s + t * 7200000000000::int8, 0, 0, 1, 1, 1,"
        " CASE WHEN s %% 20 = 0 OR s %% 11 = 3 THEN array[1] ELSE array[1, 7 * s] END::int8[],"
        " '\\x01', array['\\x00', '\\x01']::bytea[], NULL"
        " FROM generate_series(0, 1) t, generate_series(1, %d) s",
        (long long)T0, N_IDS);
    pg_cluster_run(url, sql);
}

static size_t list_selected(struct hearth_series_hit hits[N_IDS])
{
    size_t n = 0;
    for (int32_t service = 1; service <= 2; service++) { /* sorted by service, then series */
        for (int32_t id = 1; id <= N_IDS; id++) {
            if (is_selected(id) && service_of(id) == service) {
                hits[n++] = (struct hearth_series_hit){
                    .series_id = id, .service_id = service, .column = 1, .n_types = 2};
            }
        }
    }
    return n;
}

static int64_t sum_of(size_t first_hit, const struct hearth_series_hit *hits, size_t n)
{
    int64_t sum = 0;
    for (size_t i = first_hit; i < n; i++) {
        sum += 7 * (int64_t)hits[i].series_id;
    }
    return sum;
}

/* Searches of the index since the statistics were reset; PostgreSQL counts one for each element. */
static long long count_searches(const char *url)
{
    return pg_cluster_int(url, "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE"
                               " relname LIKE 'profile_2%'");
}

static void thin_series_are_read_by_a_range_without_others(void **state)
{
    (void)state;
    char url[256];
    static struct hearth_series_hit hits[N_IDS];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.builder = false;
    struct hearth_store *store = open_with_services(url, &options);
    fill_thin(store, url);
    pg_cluster_run(url, "INSERT INTO hearth_data.tombstone VALUES (1, 1, 0, 9e18::int8, '{2}')");
    size_t n = list_selected(hits);
    assert_int_equal(hits[0].series_id, 2); /* it is deleted */
    struct counter rows = {0}, counter = {0};
    assert_ok(read_rows(store, hits, n, T0, T0 + HOUR, NULL, count_row, &rows, &err));
    assert_int_equal(rows.n_rows, n - 1);
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    assert_ok(read_totals(store, hits, n, T0, T0 + HOUR, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, n - 1);
    assert_int_equal(counter.sum, sum_of(1, hits, n));

    /* A selected series without the column is damaged. */
    struct hearth_err err = HEARTH_ERR_INIT;
    pg_cluster_run(url, "UPDATE hearth_data.profile SET totals = '{1}' WHERE series_id = 4");
    assert_int_equal(read_totals(store, hits, n, T0, T0 + HOUR, add_total, &counter, &err),
                     HEARTH_CORRUPT);
    assert_non_null(strstr(err.msg, "series 4 at"));
    close_store(store);
    wait_until_disconnected(url);
    assert_in_range(count_searches(url), 1, 8);
}

static void what_makes_a_leaf_large_makes_lists_cheaper(void **state)
{
    (void)state;
    char url[256];
    static struct hearth_series_hit hits[N_IDS];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.builder = false;
    struct hearth_store *store = open_with_services(url, &options);
    fill_thin(store, url);
    char sql[512]; /* as many bytes of others as make the leaf large */
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.profile SELECT 4, 10000 + s, %lld, 0, 0, 1, 1, 1,"
                   " '{1,1}', decode(repeat(md5(s::text), 200), 'hex'), array['\\x00'::bytea], NULL"
                   " FROM generate_series(1, 12000) s",
                   (long long)T0);
    pg_cluster_run(url, sql);
    size_t n = list_selected(hits);
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    struct counter counter = {0};
    assert_ok(read_totals(store, hits, n, T0, T0 + HOUR, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, n);
    assert_int_equal(counter.sum, sum_of(0, hits, n));
    close_store(store);
    wait_until_disconnected(url);
    assert_true(count_searches(url) >= (long long)n);
}

static void the_profiles_of_large_leaves_come_one_by_one(void **state)
{
    (void)state;
    enum {
        N = 140000
    };
    static struct hearth_series_hit hits[N];
    struct hearth_arena arena;
    struct hearth_read_leg leg = {
        .source = HEARTH_SOURCE_PROFILE, .to_ns = 1, .hits = hits, .n_hits = N};
    struct read_branch branch = {.leg = &leg};
    hearth_arena_init(&arena, 0);
    for (int32_t i = 0; i < N; i++) {
        hits[i] = (struct hearth_series_hit){.service_id = 1, .series_id = i + 1};
    }
    assert_true(hearth_read_by_id_range(&branch, 512 << 20, &arena));
    assert_true(branch.in_arrays);
    assert_true(hearth_read_by_id_range(&branch, (512 << 20) + 1, &arena));
    assert_false(branch.in_arrays);

    /* Leaves of two days have twice as much. */
    leg.to_ns = HEARTH_NS_PER_DAY + 1;
    assert_true(hearth_read_by_id_range(&branch, 256 << 20, &arena));
    assert_true(branch.in_arrays);
    assert_true(hearth_read_by_id_range(&branch, (256 << 20) + 1, &arena));
    assert_false(branch.in_arrays);
    hearth_arena_release(&arena);
}

static void a_range_pays_for_many_ids_that_are_dense_in_a_small_leaf(void **state)
{
    (void)state;
    enum {
        N = 5000,
        LEAF = 4096 * (N - 1)
    };
    static struct hearth_series_hit hits[N + 1]; /* the last one is of another column */
    struct hearth_arena arena;
    struct hearth_read_leg leg = {
        .source = HEARTH_SOURCE_PROFILE, .to_ns = 1, .hits = hits, .n_hits = N + 1};
    struct hearth_read_leg late = {.source = HEARTH_SOURCE_LATE, .hits = hits, .n_hits = N + 1};
    struct read_branch branch = {.leg = &leg, .column = 1}, other = {.leg = &late, .column = 1};
    hearth_arena_init(&arena, 0);

    for (int32_t i = 0; i < N; i++) {
        hits[i] = (struct hearth_series_hit){
            .service_id = 7 + i % 2, .series_id = INT32_MAX - N - N / 4 - 2 + i, .column = 1};
    }
    hits[N] = (struct hearth_series_hit){.service_id = 9, .series_id = 1};
    assert_false(hearth_read_by_id_range(&branch, INT64_MAX, &arena));
    assert_false(hearth_read_by_id_range(&branch, (int64_t)4096 * N, &arena));
    leg.n_hits = 4095;
    assert_false(hearth_read_by_id_range(&branch, LEAF, &arena));
    leg.n_hits = N + 1;
    assert_false(hearth_read_by_id_range(&other, LEAF, &arena));
    assert_true(hearth_branch_wants(&branch, 0));

    /* A fifth of the ids may be of others, and no more. */
    int32_t first = hits[0].series_id;
    hits[0].series_id = first + N + N / 4;
    assert_true(hearth_read_by_id_range(&branch, LEAF, &arena));
    assert_true(branch.in_arrays);
    for (int32_t i = 0; i < N; i++) {
        assert_true(hearth_branch_wants(&branch, hits[i].series_id));
        assert_int_equal(hearth_branch_service(&branch, hits[i].series_id), 7 + i % 2);
    }
    assert_false(hearth_branch_wants(&branch, first));
    assert_false(hearth_branch_wants(&branch, hits[N - 1].series_id + 1));
    assert_false(hearth_branch_wants(&branch, INT32_MIN));
    hits[0].series_id++;
    branch = (struct read_branch){.leg = &leg, .column = 1};
    assert_false(hearth_read_by_id_range(&branch, LEAF, &arena));
    assert_null(branch.services);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thin_series_are_read_by_a_range_without_others),
        cmocka_unit_test(what_makes_a_leaf_large_makes_lists_cheaper),
        cmocka_unit_test(a_range_pays_for_many_ids_that_are_dense_in_a_small_leaf),
        cmocka_unit_test(the_profiles_of_large_leaves_come_one_by_one),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
