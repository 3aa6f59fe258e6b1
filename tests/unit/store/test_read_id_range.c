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

static void thin_series_are_read_by_a_range_without_the_other_series(void **state)
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

static void other_profiles_in_a_leaf_make_lists_of_ids_cheaper(void **state)
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

static void profiles_of_large_leaves_are_read_one_by_one(void **state)
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

/* ---- short legs of few series ---- */

#define N_POD_IDS 40 /* of services 1 and 2 in turn: two rows of arrays of each */

/* Profiles of 20 minutes each of all series, a minute apart; totals are known by time and series. */
static struct hearth_store *open_pods(char url[256], struct hearth_series_hit hits[N_POD_IDS])
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.builder = false;
    options.row_level_security = HEARTH_ROW_LEVEL_SECURITY_OFF; /* otherwise rows come singly */
    struct hearth_store *store = open_with_services(url, &options);
    ensure_days(store, url, T0, T0);
    char sql[512];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.profile SELECT 1 + s %% 2, s, %lld + t * 60000000000 +"
        " s, 0, 0, 1, 1, 1, array[1, 1000 * t + s]::int8[], '\\x01', array['\\x00',"
        " '\\x01']::bytea[], NULL FROM generate_series(0, 39) t, generate_series(1, %d) s",
        (long long)T0, N_POD_IDS);
    pg_cluster_run(url, sql);
    for (int32_t i = 0; i < N_POD_IDS; i++) { /* sorted by service, then series */
        int32_t service = i < N_POD_IDS / 2 ? 1 : 2;
        hits[i] = (struct hearth_series_hit){.series_id = 2 * (i % (N_POD_IDS / 2)) + 3 - service,
                                             .service_id = service,
                                             .column = 1,
                                             .n_types = 2};
    }
    return store;
}

struct runs {
    size_t n_runs, n_totals, longest;
    struct seen seen;
};

static enum hearth_status see_run(void *context, const struct hearth_read_totals *totals,
                                  struct hearth_err *err)
{
    struct runs *runs = context;
    runs->n_runs++;
    runs->n_totals += totals->n;
    runs->longest = totals->n > runs->longest ? totals->n : runs->longest;
    for (size_t i = 0; i < totals->n; i++) {
        assert_true(i == 0 || totals->ts_ns[i] >= totals->ts_ns[i - 1]);
        const struct hearth_read_total total = {.service_id = totals->service_id,
                                                .series_id = totals->series_id,
                                                .column = totals->column,
                                                .ts_ns = totals->ts_ns[i],
                                                .total = totals->totals[i]};
        (void)see_total(&runs->seen, &total, err);
    }
    return HEARTH_OK;
}

static enum hearth_status see_alone(void *context, const struct hearth_read_total *total,
                                    struct hearth_err *err)
{
    struct runs *runs = context;
    runs->n_totals++;
    return see_total(&runs->seen, total, err);
}

/* Totals of a leg, those of a series together where they come so. */
static enum hearth_status read_runs(struct hearth_store *store,
                                    const struct hearth_series_hit *hits, int64_t from_ns,
                                    int64_t to_ns, struct runs *runs, struct hearth_err *ret_err)
{
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, from_ns, to_ns, hits, N_POD_IDS};
    (void)finish_plan(store, &hand, 1);
    *runs = (struct runs){0};
    const struct hearth_total_visitor visitor = {see_alone, see_run, runs};
    enum hearth_status status =
        hearth_store_visit_totals(STORE_SCOPE(store, TENANT, NULL), &hand.plan, &visitor, ret_err);
    hearth_arena_release(&hand.arena);
    return status;
}

static void totals_of_a_short_leg_equal_those_of_single_rows(void **state)
{
    (void)state;
    char url[256];
    struct hearth_series_hit hits[N_POD_IDS];
    static struct runs arrays, rows;
    struct hearth_store *store = open_pods(url, hits);
    int64_t minute = 60 * HEARTH_NS_PER_SEC, half = 30 * minute;

    /* A leg of half an hour, and one that is longer by what has no profiles. */
    assert_ok(read_runs(store, hits, T0 - 10 * minute, T0 + 20 * minute, &arrays, &err));
    assert_int_equal(arrays.n_runs, N_POD_IDS);
    assert_int_equal(arrays.n_totals, 20 * N_POD_IDS);
    assert_ok(read_runs(store, hits, T0 - 10 * minute - 1, T0 + 20 * minute, &rows, &err));
    assert_int_equal(rows.n_runs, 0);
    assert_same(&arrays.seen, &rows.seen);

    /* Compacted profiles and deleted ones do not count. */
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.roll_state VALUES (1, 0, 0, %lld, 1), (2, 0, 0, 0, 1);"
                   " INSERT INTO hearth_data.tombstone VALUES (2, 1, %lld, %lld, '{3,5}')",
                   (long long)(T0 + 5 * minute), (long long)(T0 + 7 * minute),
                   (long long)(T0 + 9 * minute));
    pg_cluster_run(url, sql);
    assert_ok(read_runs(store, hits, T0, T0 + half, &arrays, &err));
    assert_int_equal(arrays.n_runs, N_POD_IDS + 2); /* before and after what is deleted */
    assert_int_equal(arrays.n_totals, (25 + 30) * N_POD_IDS / 2 - 2 * 2);
    assert_ok(read_runs(store, hits, T0, T0 + half + 1, &rows, &err));
    assert_int_equal(rows.n_runs, 0);
    assert_same(&arrays.seen, &rows.seen);

    /* Two columns of one series. */
    struct hearth_series_hit both[2] = {hits[0], hits[0]};
    struct counter counter = {0};
    both[0].column = 0;
    assert_ok(
        read_totals(store, both, 2, T0 + 10 * minute, T0 + 12 * minute, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, 2 * 2);
    assert_int_equal(counter.sum, 1 + 1 + 10002 + 11002);

    /* One without the column is damaged. */
    struct hearth_err failure = HEARTH_ERR_INIT;
    pg_cluster_run(url, "UPDATE hearth_data.profile SET totals = '{1}' WHERE series_id = 8");
    assert_int_equal(read_runs(store, hits, T0, T0 + half, &arrays, &failure), HEARTH_CORRUPT);
    assert_non_null(strstr(failure.msg, "series 8 at"));
    close_store(store);
}

static void many_profiles_of_a_short_leg_come_in_several_rows(void **state)
{
    (void)state;
    char url[256], sql[512];
    struct hearth_series_hit hits[N_POD_IDS];
    static struct runs arrays, rows;
    struct hearth_store *store = open_pods(url, hits);
    int64_t minute = 60 * HEARTH_NS_PER_SEC;

    /* 9,000 more of one series, in the minutes before those of the others. */
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.profile SELECT 1, 2, %lld + t * 60000000::int8, 0, 0,"
                   " 1, 1, 1, array[1, t]::int8[], '\\x01', array['\\x00', '\\x01']::bytea[],"
                   " NULL FROM generate_series(1, 9000) t",
                   (long long)(T0 - 10 * minute));
    pg_cluster_run(url, sql);

    /* A row has 4,096 at most, because libpq keeps the room of the largest. */
    assert_ok(read_runs(store, hits, T0 - 10 * minute, T0 + 20 * minute, &arrays, &err));
    assert_int_equal(arrays.longest, 4096);
    assert_int_equal(arrays.n_totals, 9000 + 20 * N_POD_IDS);
    assert_ok(read_runs(store, hits, T0 - 10 * minute - 1, T0 + 20 * minute, &rows, &err));
    assert_int_equal(rows.n_runs, 0);
    assert_same(&arrays.seen, &rows.seen);
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thin_series_are_read_by_a_range_without_the_other_series),
        cmocka_unit_test(other_profiles_in_a_leaf_make_lists_of_ids_cheaper),
        cmocka_unit_test(a_range_pays_for_many_ids_that_are_dense_in_a_small_leaf),
        cmocka_unit_test(profiles_of_large_leaves_are_read_one_by_one),
        cmocka_unit_test(totals_of_a_short_leg_equal_those_of_single_rows),
        cmocka_unit_test(many_profiles_of_a_short_leg_come_in_several_rows),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
