/* What housekeeping trims, and what it must leave. */
#include "hearth/base/metrics.h"

#include "catalog/catalog.h"
#include "commit/committers.h"
#include "housekeeping.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/partitions.h"
#include "store_fixture.h"

static void keep_house(struct hearth_store *store, const char *url)
{
    struct hearth_pg pg = {.url = test_secret(url)};
    struct hearth_housekeeping times = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_pg_connect(&pg, CONNECT_MS, &err), HEARTH_OK);
    if (hearth_housekeeping_run(store, &pg, &times, &err) != HEARTH_OK) {
        fail_msg("%s", err.msg);
    }
    hearth_pg_close(&pg);
}

static void delays_all_jobs_but_the_check_of_the_disk_after_a_start(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_housekeeping times;
    int64_t now_ns = hearth_clock_mono_ns();

    hearth_housekeeping_begin(store, &times);
    const int64_t later[] = {times.next_partitions_ns,  times.next_trim_ns,
                             times.next_agents_ns,      times.next_network_ns,
                             times.next_uploads_ns,     times.next_originals_ns,
                             times.next_tenant_disk_ns, store->disk.next_sizes_mono_ns};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(later); i++) {
        assert_in_range(later[i] - now_ns, 5 * HEARTH_NS_PER_SEC, 60 * HEARTH_NS_PER_SEC);
    }
    assert_int_equal(times.next_disk_ns, 0);
    close_store(store);
}

static void measures_the_tables_at_once_where_their_size_is_limited(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.max_disk_bytes = INT64_MAX;
    struct hearth_store *store = open_fresh(url, &options);
    struct hearth_housekeeping times;

    hearth_housekeeping_begin(store, &times);
    assert_int_equal(store->disk.next_sizes_mono_ns, 0);
    close_store(store);
}

/* The number of leaves of `profile` after today. */
static void expect_days_ahead(const char *url, int n)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT (count(*) = %d)::int FROM pg_inherits WHERE inhparent ="
                   " 'hearth_data.profile'::regclass AND inhrelid::regclass::text >"
                   " to_char(now() AT TIME ZONE 'UTC', '\"hearth_data.profile_\"YYYYMMDD')",
                   n);
    PGconn *conn = pg_cluster_connect(url);
    PGresult *result = PQexec(conn, sql);
    assert_string_equal(PQgetvalue(result, 0, 0), "1");
    PQclear(result);
    PQfinish(conn);
}

/* A statement with one text in it. */
static void expect_text(const char *url, const char *sql, const char *want)
{
    PGconn *conn = pg_cluster_connect(url);
    PGresult *result = PQexec(conn, sql);
    assert_string_equal(PQgetvalue(result, 0, 0), want);
    PQclear(result);
    PQfinish(conn);
}

static void analyze_keeps_nothing_of_packed_columns(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    pg_cluster_run(url, "INSERT INTO hearth_data.profile SELECT 1, i, t, 1, 1, i, 1, 1, ARRAY[i],"
                        " int8send(i), ARRAY[int8send(i)], int8send(i)"
                        " FROM generate_series(1, 100) i, extract(epoch FROM now()) s,"
                        " LATERAL (SELECT (s * 1e9)::int8 AS t) u");
    pg_cluster_run(url, "ANALYZE");
    expect_text(url,
                "SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_stats"
                " WHERE tablename = 'profile_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')",
                "attrs duration_ns n_samples period profile_no series_id service_id ts writer_id");

    /* All columns of bytes, except those of a few bytes or of spans and requests. */
    expect_text(url,
                "SELECT string_agg(DISTINCT parent || '.' || attname, ' ') FROM pg_attribute a,"
                " pg_inherits, LATERAL (SELECT inhparent::regclass::text AS parent) p"
                " WHERE attrelid = inhrelid AND atttypid IN ('bytea'::regtype, 'bytea[]'::regtype)"
                " AND attstattarget <> 0 AND parent !~ 'span_|network_'",
                "hearth_data.profile.attrs");
    close_store(store);
}

static void partitions_are_made_as_many_days_ahead_as_the_option_says(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    expect_days_ahead(url, 1); /* a start makes those that it needs */
    keep_house(store, url);
    expect_days_ahead(url, 3);
    assert_int_equal(hearth_metric_value(HEARTH_M_PARTITION_DAYS), 3);

    struct hearth_store_options options = *hearth_store_live(store);
    options.partition_days_ahead = 5;
    hearth_store_set_options(store, &options);
    keep_house(store, url);
    expect_days_ahead(url, 5);
    assert_int_equal(hearth_metric_value(HEARTH_M_PARTITION_DAYS), 5);
    close_store(store);
}

static void
a_day_whose_partitions_cannot_be_made_is_counted_as_missing_and_delays_nothing_else(void **state)
{
    (void)state;
    char url[256], sql[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_pg pg = {.url = test_secret(url)};
    struct hearth_err err = HEARTH_ERR_INIT;

    /* A table without the columns of a leaf has the name of the leaf of the day after tomorrow. */
    char leaf[64];
    int32_t today = hearth_day_of(hearth_clock_wall_ns());
    hearth_partition_name("profile", today + 2, leaf);
    (void)snprintf(sql, sizeof sql, "CREATE TABLE %s (a int)", leaf);
    pg_cluster_run(url, sql);
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    assert_int_equal(hearth_housekeeping_make_leaves(store, &pg, 3, &err), HEARTH_INTERNAL);
    assert_int_equal(hearth_metric_value(HEARTH_M_PARTITION_DAYS), 1);

    /* The label indexes are refreshed all the same, and the failure is told. */
    struct hearth_housekeeping times = {0};
    uint64_t n_refreshed = store->catalog->n_done;
    assert_int_equal(hearth_housekeeping_run(store, &pg, &times, &err), HEARTH_INTERNAL);
    assert_non_null(strstr(err.msg, "partitions of day"));
    assert_int_equal(store->catalog->n_done, n_refreshed + 1);

    (void)snprintf(sql, sizeof sql, "DROP TABLE %s", leaf);
    pg_cluster_run(url, sql);
    assert_ok(hearth_housekeeping_make_leaves(store, &pg, 3, &err));
    assert_int_equal(hearth_metric_value(HEARTH_M_PARTITION_DAYS), 3);
    hearth_pg_close(&pg);
    close_store(store);
}

static struct store_push *submit_one(struct hearth_store *store, const char *service, int64_t ts_ns)
{
    struct store_push *push = make_push(store, service, ts_ns, 10, 0);
    store_push_submit(push);
    return push;
}

static struct store_push *push_one(struct hearth_store *store, int64_t ts_ns)
{
    return submit_one(store, "api", ts_ns);
}

/* The number of batches under way; *ret_seq: that of one of them, if there is any. */
static size_t count_unsettled(struct hearth_store *store, int64_t *ret_seq)
{
    struct hearth_arena arena;
    int64_t *seqs, next;
    size_t n;

    hearth_arena_init(&arena, 0);
    assert_ok(hearth_committers_list_unsettled(store->committers, &arena, &seqs, &n, &next, &err));
    for (size_t i = 0; i < n; i++) {
        assert_true(seqs[i] < next);
        *ret_seq = seqs[i];
    }
    hearth_arena_release(&arena);

    return n;
}

static void await_settled(struct hearth_store *store, size_t n_unsettled)
{
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS, seq;
    while (count_unsettled(store, &seq) != n_unsettled && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(1000);
    }
    assert_int_equal(count_unsettled(store, &seq), n_unsettled);
}

static void settled_batches_are_trimmed_while_another_one_waits(void **state)
{
    (void)state;
    char url[256], leaf[64], sql[160];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 2;
    struct hearth_store *store = open_fresh(url, &options);
    int64_t now_ns = hearth_clock_wall_ns(), before_ns = now_ns - HEARTH_NS_PER_DAY;

    /* Two services, each with a committer of its own. */
    end_push(submit_one(store, "one", before_ns));
    end_push(submit_one(store, "two", now_ns));
    await_settled(store, 0);

    /* A batch of yesterday waits for a lock; one of today, of the other service, does not. */
    PGconn *blocker = pg_cluster_connect(url);
    hearth_partition_name("profile", hearth_day_of(before_ns), leaf);
    (void)snprintf(sql, sizeof sql, "BEGIN; LOCK %s IN EXCLUSIVE MODE", leaf);
    PQclear(PQexec(blocker, sql));
    struct store_push *waiting = submit_one(store, "one", before_ns + 1);
    wait_until_commit_blocked(url);
    end_push(submit_one(store, "two", now_ns + 1));
    await_settled(store, 1);

    /* Its row is needed: an attempt before, whose answer was lost, may have been committed. */
    int64_t seq = 0;
    assert_int_equal(count_unsettled(store, &seq), 1);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.ingest_batch SELECT 77, max(writer_id), %lld FROM"
                   " hearth_data.writer",
                   (long long)seq);
    pg_cluster_run(url, sql);
    assert_true(pg_cluster_int(url, "SELECT max(seq) FROM hearth_data.ingest_batch") > seq);
    keep_house(store, url);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.ingest_batch"), 1);
    assert_int_equal(pg_cluster_int(url, "SELECT seq FROM hearth_data.ingest_batch"), seq);

    PQclear(PQexec(blocker, "ROLLBACK"));
    PQfinish(blocker);
    end_push(waiting);
    await_settled(store, 0);
    close_store(store);
}

static void trims_settled_batches_and_those_of_the_dead(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct store_push *push = push_one(store, hearth_clock_wall_ns());
    end_push(push);
    pg_cluster_run(
        url, "INSERT INTO hearth_data.writer (host, seen_at) VALUES"
             " ('dead', now() - interval '25 hours'), ('away', now() - interval '23 hours');"
             "INSERT INTO hearth_data.ingest_batch SELECT 1, writer_id, 77 FROM hearth_data.writer"
             " WHERE host IN ('dead', 'away')");
    /* One batch of ours is still in flight: its row is not there yet, and must not be swept when it
     * comes. */
    PGconn *blocker = pg_cluster_connect(url);
    PQclear(PQexec(blocker, "BEGIN; LOCK hearth_data.profile IN EXCLUSIVE MODE"));
    push = push_one(store, hearth_clock_wall_ns());
    wait_until_commit_blocked(url);
    int64_t seq = 0;
    assert_int_equal(count_unsettled(store, &seq), 1);
    assert_int_equal(seq, 2);
    PQclear(PQexec(blocker, "ROLLBACK"));
    PQfinish(blocker);
    assert_true(store_push_wait(push));
    store_push_free(push);
    await_settled(store, 0);
    keep_house(store, url);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.ingest_batch"), 1);
    assert_int_equal(pg_cluster_int(url,
                                    "SELECT count(*) FROM hearth_data.ingest_batch JOIN"
                                    " hearth_data.writer USING (writer_id) WHERE host = 'away'"),
                     1);
    store_close_soon(store);
}

static void trims_push_ids_past_the_hour_in_slices(void **state)
{
    (void)state;
    char url[256], sql[256];
    struct hearth_store *store = open_fresh(url, NULL);
    /* One each 30 s, from two hours ago to now. */
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.push_id SELECT 1, gen_random_uuid(), %lld - i * 30000000000"
        " FROM generate_series(1, 240) i",
        (long long)hearth_clock_wall_ns());
    pg_cluster_run(url, sql);
    keep_house(store, url);
    /* An hour and five minutes are 130 steps; the last may be on either side. */
    long long left = pg_cluster_int(url, "SELECT count(*) FROM hearth_data.push_id");
    assert_in_range(left, 129, 130);
    store_close_soon(store);
}

static void a_running_server_updates_the_time_it_was_last_seen(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    pg_cluster_run(url, "UPDATE hearth_data.writer SET seen_at = now() - interval '3 days'");
    keep_house(store, url);
    assert_int_equal(
        pg_cluster_int(
            url,
            "SELECT count(*) FROM hearth_data.writer WHERE seen_at > now() - interval '1 minute'"),
        1);
    store_close_soon(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(analyze_keeps_nothing_of_packed_columns),
        cmocka_unit_test(partitions_are_made_as_many_days_ahead_as_the_option_says),
        cmocka_unit_test(
            a_day_whose_partitions_cannot_be_made_is_counted_as_missing_and_delays_nothing_else),
        cmocka_unit_test(delays_all_jobs_but_the_check_of_the_disk_after_a_start),
        cmocka_unit_test(measures_the_tables_at_once_where_their_size_is_limited),
        cmocka_unit_test(settled_batches_are_trimmed_while_another_one_waits),
        cmocka_unit_test(trims_settled_batches_and_those_of_the_dead),
        cmocka_unit_test(trims_push_ids_past_the_hour_in_slices),
        cmocka_unit_test(a_running_server_updates_the_time_it_was_last_seen),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
