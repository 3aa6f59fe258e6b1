/* Group commit on a real PostgreSQL: what is stored, what is refused, and that one item's fault
 * stays its own. */
#include "store_fixture.h"

/* Housekeeping deletes the ingest_batch rows of settled batches, for the first time soon after the
 * store is ready. What that round deletes is decided before it refreshes seen_at, so a batch
 * submitted after this wait keeps its rows for a minute. */
static void wait_for_first_trim(const char *url)
{
    wait_until_sql(url, "SELECT count(*) FROM hearth_data.writer WHERE seen_at > started_at");
}

static enum hearth_status end_status(struct store_push *push)
{
    assert_true(store_push_wait(push));
    return push->status;
}

static void commits_a_profile_with_everything_it_needs(void **state)
{
    (void)state;
    char url[256], sql[512];
    struct hearth_store *store = open_fresh(url, NULL);
    wait_for_first_trim(url);
    int64_t ts_ns = hearth_clock_wall_ns();
    struct store_push *push = make_push(store, "api", ts_ns, 60, 0);
    store_push_submit(push);
    assert_int_equal(end_status(push), HEARTH_OK);
    assert_false(push->item.repeated);
    assert_int_equal(atomic_load(&push->n_done), 1);
    (void)snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM hearth_data.profile WHERE service_id = %d AND series_id = %d"
        " AND ts = %lld AND duration_ns = 10000000000 AND period = 10000000 AND"
        " profile_no = %lld AND n_samples = %u AND totals = '{%lld,%lld}' AND"
        " length(ids) = %zu AND array_length(vals, 1) = 2 AND length(vals[1]) = %zu AND"
        " attrs IS NULL",
        push->item.service_id, push->row.series_id, (long long)ts_ns,
        (long long)push->item.profile_no, push->row.columns.n, (long long)push->total,
        (long long)push->row.columns.totals[1], push->row.columns.ids.n,
        push->row.columns.vals[0].n);
    assert_int_equal(pg_cluster_int(url, sql), 1);
    assert_int_equal(pg_cluster_int(url, "SELECT sum(n_stacks) FROM hearth_data.dict_chunk"),
                     push->row.columns.n);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.ingest_batch"), 1);
    /* The second one brings new stacks only. */
    struct store_push *second = make_push(store, "api", ts_ns + 1, 60, 0);
    store_push_submit(second);
    assert_int_equal(end_status(second), HEARTH_OK);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 2);
    assert_int_equal(
        pg_cluster_int(url,
                       "SELECT count(*) FROM (SELECT first_stack, lag(first_stack + n_stacks, 1, 0)"
                       " OVER (ORDER BY first_stack) AS want FROM hearth_data.dict_chunk) c"
                       " WHERE first_stack <> want"),
        0);
    store_push_free(push);
    store_push_free(second);
    store_close_soon(store);
}

/* Close everything before watermark_ns for ingest, as the builder does. */
static void raise_watermark(const char *url, int32_t service_id, int64_t watermark_ns)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.roll_state VALUES (%d, %lld, 0, 0, 1) ON CONFLICT"
                   " (service_id) DO UPDATE SET watermark = excluded.watermark",
                   service_id, (long long)watermark_ns);
    pg_cluster_run(url, sql);
}

static void puts_profiles_before_the_watermark_aside(void **state)
{
    (void)state;
    enum {
        N = 6
    };
    char url[256], sql[256];
    struct hearth_store *store = open_fresh(url, NULL);
    int64_t now_ns = hearth_clock_wall_ns();
    int64_t late = hearth_metric_value(HEARTH_M_ROLL_LATE);
    struct store_push *pushes[N];
    /* Rounds: no watermark; one that the committer has not seen; one that it knows. */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            /* Half before the minute, of two services; only "api" has a watermark. */
            pushes[i] = make_push(store, i % 3 == 2 ? "web" : "api",
                                  now_ns - (i % 2) * 60 * HEARTH_NS_PER_SEC - round * 8 - i, 60,
                                  round * 100u + (unsigned)i % 5); /* the first has no id */
        }
        if (round == 1) {
            raise_watermark(url, pushes[0]->item.service_id, now_ns - 30 * HEARTH_NS_PER_SEC);
        }
        for (int i = 0; i < N; i++) {
            store_push_submit(pushes[i]);
        }
        for (int i = 0; i < N; i++) {
            assert_int_equal(end_status(pushes[i]), HEARTH_OK);
            bool is_late = round > 0 && i % 3 != 2 && i % 2 == 1;
            (void)snprintf(
                sql, sizeof sql, "SELECT count(*) FROM hearth_data.%s WHERE profile_no = %lld",
                is_late ? "profile_late" : "profile", (long long)pushes[i]->item.profile_no);
            assert_int_equal(pg_cluster_int(url, sql), 1);
        }
        for (int i = 0; i < N; i++) {
            store_push_free(pushes[i]);
        }
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile_late"), 4);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 3 * N - 4);
    assert_int_equal(hearth_metric_value(HEARTH_M_ROLL_LATE) - late, 4);
    /* Nobody is left who holds the ingest lock. */
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0);
    store_close_soon(store);
}

/* Store n profiles, which are submitted together, step_ns apart; ids from first_id on, 0: none. */
static void store_batch(struct hearth_store *store, int n, int64_t ts_ns, int64_t step_ns,
                        uint64_t first_id)
{
    static const char *const services[] = {"a", "b", "c"};
    struct store_push *pushes[32];

    for (int i = 0; i < n; i++) {
        pushes[i] = make_push(store, services[i % 3], ts_ns + i * step_ns, 60,
                              first_id == 0 ? 0 : first_id + (unsigned)i);
    }
    for (int i = 0; i < n; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < n; i++) {
        end_push(pushes[i]);
    }
}

/* A digest of all that is stored but the numbers of writers and uploads. */
static int64_t digest_stored(const char *url)
{
    return pg_cluster_int(
        url, "SELECT sum(hashtextextended(t, 0) % 1000000007)::int8 FROM ("
             "SELECT (service_id, series_id, ts, duration_ns, period, n_samples, totals, ids, vals,"
             " attrs)::text t FROM hearth_data.profile UNION ALL"
             " SELECT (service_id, day, first_stack, first_string, n_stacks, payload)::text"
             " FROM hearth_data.dict_chunk UNION ALL"
             " SELECT (service_id, id_hash)::text FROM hearth_data.push_id) x");
}

/* Batches of 1 to 20 rows of three services, with and without ids. */
static int64_t store_small_batches(size_t prepared_rows, int64_t ts_ns, int64_t *ret_prepared)
{
    char url[256];
    struct hearth_store_options options;
    int64_t before = hearth_metric_value(HEARTH_M_BATCHES_PREPARED);
    int64_t batches = hearth_metric_value(HEARTH_M_BATCHES), n_rows = 0;

    synth_world_init(&g_world, 5, 100, 200, 100, 8, &g_arena); /* the same profiles each time */
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = 300 * HEARTH_NS_PER_MS; /* all of a batch are submitted meanwhile */
    options.commit_rows = 32;
    options.commit_prepared_rows = prepared_rows;
    struct hearth_store *store = open_fresh(url, &options);
    static const int sizes[] = {1, 3, 7, 15, 16, 17, 2};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sizes); i++) {
        store_batch(store, sizes[i], ts_ns + (int64_t)i * 100, 1, i % 2 * (1 + i * 100));
        n_rows += sizes[i];
    }

    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES) - batches, HEARTH_ARRAY_LEN(sizes));
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), n_rows);
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0);
    *ret_prepared = hearth_metric_value(HEARTH_M_BATCHES_PREPARED) - before;
    int64_t digest = digest_stored(url);
    store_close_soon(store);

    return digest;
}

static void prepared_statements_store_what_scripts_store(void **state)
{
    (void)state;
    int64_t ts_ns = hearth_clock_wall_ns(), n_prepared, n_without;
    int64_t refused = hearth_metric_value(HEARTH_M_BATCHES_REFUSED);
    int64_t prepared = store_small_batches(16, ts_ns, &n_prepared);
    int64_t scripts = store_small_batches(0, ts_ns, &n_without);

    assert_int_equal(prepared, scripts);
    assert_int_equal(n_prepared, 6); /* 17 rows are too many */
    assert_int_equal(n_without, 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_REFUSED), refused);
}

static void prepared_statements_follow_the_days(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    struct hearth_store *store = open_fresh(url, &options);
    int64_t ts_ns = hearth_clock_wall_ns() - 5 * HEARTH_NS_PER_DAY;
    int64_t before = hearth_metric_value(HEARTH_M_BATCHES_PREPARED);

    /* Days 0 to 3 are each the latest; then an earlier one, which gets no statements; then two. */
    static const int days[] = {0, 1, 1, 0, 2, 3, 0, 2, 3};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(days); i++) {
        store_batch(store, 1, ts_ns + days[i] * HEARTH_NS_PER_DAY + (int64_t)i, 0, 0);
    }
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_PREPARED) - before, 8);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 9);

    /* A batch of two days is a script. */
    store_batch(store, 2, ts_ns, HEARTH_NS_PER_DAY, 0);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 11);
    store_close_soon(store);
}

static void scripts_follow_a_refusal_of_prepared_statements(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = 0;
    struct hearth_store *store = open_fresh(url, &options);
    int64_t ts_ns = hearth_clock_wall_ns();
    int64_t refused = hearth_metric_value(HEARTH_M_BATCHES_REFUSED);
    int64_t prepared = hearth_metric_value(HEARTH_M_BATCHES_PREPARED);

    /* An id that is known is refused once; then 100 batches are scripts. */
    store_batch(store, 1, ts_ns, 0, 7);
    store_batch(store, 1, ts_ns + 1, 0, 7);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_REFUSED) - refused, 1);
    for (int i = 0; i < 102; i++) {
        store_batch(store, 1, ts_ns + 2 + i, 0, i == 50 ? 7 : 0);
    }
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_REFUSED) - refused, 1);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES_PREPARED) - prepared, 3);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 102);
    store_close_soon(store);
}

static void commits_all_queued_items_in_one_transaction(void **state)
{
    (void)state;
    enum {
        N = 40
    };
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = HEARTH_NS_PER_SEC; /* all are submitted meanwhile */
    options.commit_rows = N;
    struct hearth_store *store = open_fresh(url, &options);
    wait_for_first_trim(url);
    int64_t batches = hearth_metric_value(HEARTH_M_BATCHES);
    int64_t day_ns = hearth_clock_wall_ns() - HEARTH_NS_PER_DAY;
    struct store_push *pushes[N];
    for (int i = 0; i < N; i++) { /* two days, four services */
        static const char *const services[] = {"a", "b", "c", "d"};
        pushes[i] =
            make_push(store, services[i % 4], day_ns + (i % 2) * HEARTH_NS_PER_DAY + i, 60, 0);
    }
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < N; i++) {
        end_push(pushes[i]);
    }
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES) - batches, 1);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N);
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(DISTINCT xmin::text) FROM hearth_data.profile"), 1);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.ingest_batch"), 4);
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(DISTINCT profile_no) FROM hearth_data.profile"), N);
    store_close_soon(store);
}

static void commits_enough_rows_without_waiting(void **state)
{
    (void)state;
    enum {
        N = 4
    };
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = HEARTH_NS_PER_HOUR;
    options.commit_rows = N;
    struct hearth_store *store = open_fresh(url, &options);

    struct store_push *pushes[N];
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, "api", hearth_clock_wall_ns() + i, 60, 0);
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < N; i++) {
        end_push(pushes[i]);
    }

    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N);
    store_close_soon(store);
}

static void stores_a_repeated_id_once(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.linger_ns = 100 * HEARTH_NS_PER_MS;
    struct hearth_store *store = open_fresh(url, &options);
    struct hearth_store *other = open_ready(url, NULL);
    int64_t ts_ns = hearth_clock_wall_ns();
    struct store_push *pushes[8];
    /* Within a batch: 0 is first, 1 and 2 repeat it, 3 is another. */
    static const uint64_t ids[] = {100, 100, 100, 101};
    for (int i = 0; i < 4; i++) {
        pushes[i] = make_push(store, "api", ts_ns + i, 60, ids[i]);
    }
    for (int i = 0; i < 4; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(end_status(pushes[i]), HEARTH_OK);
        assert_int_equal(pushes[i]->item.repeated, i == 1 || i == 2);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 2);
    /* Across batches (with a new one beside it), across stores; another service has ids of its own.
     */
    pushes[4] = make_push(store, "api", ts_ns + 4, 60, 100);
    pushes[5] = make_push(store, "api", ts_ns + 5, 60, 102);
    pushes[6] = make_push(other, "api", ts_ns + 6, 60, 101);
    pushes[7] = make_push(store, "web", ts_ns + 7, 60, 100);
    for (int i = 4; i < 8; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 4; i < 8; i++) {
        assert_int_equal(end_status(pushes[i]), HEARTH_OK);
        assert_int_equal(pushes[i]->item.repeated, i == 4 || i == 6);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 4);
    for (int i = 0; i < 8; i++) {
        store_push_free(pushes[i]);
    }
    store_close_soon(store);
    store_close_soon(other);
}

static void stores_an_id_again_after_an_hour(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    int64_t ts_ns = hearth_clock_wall_ns();
    static const int64_t ages_s[] = {0, 3500, 3700};
    for (int i = 0; i < 3; i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "UPDATE hearth_data.push_id SET at = at - %lld",
                       (long long)(ages_s[i] * HEARTH_NS_PER_SEC));
        pg_cluster_run(url, sql);
        struct store_push *push = make_push(store, "api", ts_ns + i, 60, 5);
        store_push_submit(push);
        assert_int_equal(end_status(push), HEARTH_OK);
        assert_int_equal(push->item.repeated, i == 1);
        store_push_free(push);
        pg_cluster_run(
            url, "UPDATE hearth_data.push_id SET at = (SELECT max(at) FROM hearth_data.push_id)");
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 2);
    store_close_soon(store);
}

static void a_refused_item_does_not_harm_its_neighbours(void **state)
{
    (void)state;
    enum {
        N = 25
    };
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.linger_ns = 200 * HEARTH_NS_PER_MS;
    options.commit_rows = N;
    struct hearth_store *store = open_fresh(url, &options);
    int64_t ts_ns = hearth_clock_wall_ns();
    char leaf[64], sql[512];
    pg_cluster_text(url,
                    "SELECT i.inhrelid::regclass::text FROM pg_inherits i WHERE i.inhparent ="
                    " 'hearth_data.profile'::regclass ORDER BY 1 LIMIT 1",
                    leaf, sizeof leaf);
    pg_cluster_run(
        url, "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " IF new.period = 666 THEN RAISE EXCEPTION 'poisoned'; END IF; RETURN new; END $$");
    (void)snprintf(
        sql, sizeof sql,
        "CREATE TRIGGER poison BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION poison();"
        "ALTER TABLE %s ADD CHECK (period <> 667)",
        leaf, leaf);
    pg_cluster_run(url, sql);
    struct store_push *pushes[N];
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, "api", ts_ns + i, 60, (uint64_t)i + 1);
        pushes[i]->row.period = i == 3 ? 666 : i == 17 ? 667 : 1;
    }
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < N; i++) {
        enum hearth_status status = end_status(pushes[i]);
        if (i == 3) {
            assert_int_equal(status, HEARTH_INTERNAL);
            assert_non_null(strstr(pushes[i]->err.msg, "poisoned (P0001)"));
        } else if (i == 17) {
            assert_int_equal(status, HEARTH_INTERNAL);
            assert_non_null(strstr(pushes[i]->err.msg, "23514"));
        } else {
            assert_int_equal(status, HEARTH_OK);
        }
        assert_int_equal(atomic_load(&pushes[i]->n_done), 1);
        store_push_free(pushes[i]);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N - 2);
    /* A refused push leaves no id behind: its client may try again. */
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.push_id"), N - 2);
    store_close_soon(store);
}

static void a_row_that_ends_its_connection_each_time_is_given_up_alone(void **state)
{
    (void)state;
    enum {
        N = 6
    };
    char url[256], leaf[64], sql[512];
    struct hearth_store *store = open_fresh(url, NULL);
    int64_t ts_ns = hearth_clock_wall_ns();
    struct store_push *first = make_push(store, "api", ts_ns - 1, 60, 0);
    store_push_submit(first);
    end_push(first);
    pg_cluster_text(url, "SELECT tableoid::regclass FROM hearth_data.profile", leaf, sizeof leaf);
    pg_cluster_run(
        url, "CREATE FUNCTION deadly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " IF new.period = 666 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
             " RETURN new; END $$");
    (void)snprintf(
        sql, sizeof sql,
        "CREATE TRIGGER deadly BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION deadly()", leaf);
    pg_cluster_run(url, sql);
    struct store_push *pushes[N];
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, "api", ts_ns + i, 60, 0);
        pushes[i]->row.period = i == 2 ? 666 : 1;
    }
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(end_status(pushes[i]), i == 2 ? HEARTH_INTERNAL : HEARTH_OK);
        if (i == 2) {
            assert_non_null(strstr(pushes[i]->err.msg, "ended 4 connections"));
        }
        store_push_free(pushes[i]);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N);
    store_close_soon(store);
}

static void makes_a_partition_that_went_missing(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    int64_t ts_ns = hearth_clock_wall_ns() - 3 * HEARTH_NS_PER_DAY;
    struct store_push *first = make_push(store, "api", ts_ns, 60, 0);
    store_push_submit(first);
    end_push(first);
    char leaf[64], sql[128];
    pg_cluster_text(url, "SELECT tableoid::regclass FROM hearth_data.profile", leaf, sizeof leaf);
    (void)snprintf(sql, sizeof sql, "DROP TABLE %s", leaf);
    pg_cluster_run(url, sql);
    struct store_push *second = make_push(store, "api", ts_ns + 1, 60, 0);
    store_push_submit(second);
    end_push(second);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 1);
    store_close_soon(store);
}

static void refuses_when_the_queue_is_full_and_takes_again_later(void **state)
{
    (void)state;
    enum {
        N = 30
    };
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.max_queue_rows = 10;
    struct hearth_store *store = open_fresh(url, &options);
    int64_t ts_ns = hearth_clock_wall_ns();
    struct store_push *pushes[N], *late;
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, "api", ts_ns + i, 60, 0);
    }
    late = make_push(store, "api", ts_ns + N, 60, 0);
    PGconn *blocker = pg_cluster_connect(url);
    PQclear(PQexec(blocker, "BEGIN; LOCK hearth_data.ingest_batch IN EXCLUSIVE MODE"));
    int n_refused = 0;
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
        if (atomic_load(&pushes[i]->ended)) {
            n_refused++;
            assert_int_equal(pushes[i]->status, HEARTH_UNAVAILABLE);
            assert_non_null(
                strstr(pushes[i]->err.msg, "ingest queue is full (max-queue-rows 10); retry"));
            assert_int_equal(atomic_load(&pushes[i]->n_done), 0);
        }
    }
    assert_int_equal(n_refused, N - 10);
    PQclear(PQexec(blocker, "ROLLBACK"));
    PQfinish(blocker);
    for (int i = 0; i < N; i++) {
        (void)end_status(pushes[i]);
        store_push_free(pushes[i]);
    }
    store_push_submit(late);
    end_push(late);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 11);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_ROWS), 0);
    assert_int_equal(hearth_metric_value(HEARTH_M_QUEUED_BYTES), 0);
    store_close_soon(store);
}

static void a_released_dictionary_is_never_continued_under_its_name(void **state)
{
    (void)state;
    enum {
        N = 24
    };
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.ingest_dict_bytes = 1; /* nothing survives its last user */
    options.linger_ns = 0;
    struct hearth_store *store = open_fresh(url, &options);
    int64_t ts_ns = hearth_clock_wall_ns();
    for (int i = 0; i < N; i++) {
        struct store_push *push = make_push(store, i % 2 == 0 ? "api" : "web", ts_ns + i, 60, 0);
        store_push_submit(push);
        end_push(push);
        /* done comes before the release that lets go */
        int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
        while (hearth_metric_value(HEARTH_M_DICT_LIVE) > 0 && hearth_clock_mono_ns() < until_ns) {
            (void)usleep(500);
        }
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N);
    assert_int_equal(
        pg_cluster_int(url, "SELECT count(DISTINCT writer_id) FROM hearth_data.profile"), N);
    /* Every profile's dictionary starts at 0 under its own name. */
    assert_int_equal(
        pg_cluster_int(
            url,
            "SELECT count(*) FROM hearth_data.profile p JOIN hearth_data.dict_chunk c"
            " USING (service_id, writer_id) WHERE c.first_stack = 0 AND c.n_stacks = p.n_samples"),
        N);
    store_close_soon(store);
}

static void closing_commits_queued_items(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.linger_ns = 60 * HEARTH_NS_PER_SEC;
    struct hearth_store *store = open_fresh(url, &options);
    struct store_push *push = make_push(store, "api", hearth_clock_wall_ns(), 60, 0);
    store_push_submit(push);
    store_close_soon(store);
    assert_true(atomic_load(&push->ended));
    assert_int_equal(push->status, HEARTH_OK);
    store_push_free(push);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 1);
}

static void closing_without_a_database_ends_at_the_deadline(void **state)
{
    (void)state;
    enum {
        N = 20
    };
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct store_push *pushes[N];
    int64_t ts_ns = hearth_clock_wall_ns();
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, i % 2 == 0 ? "api" : "web", ts_ns + i, 60, 0);
    }
    pg_cluster_halt(&g_cluster, SIGINT);
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
    }
    int64_t from_ns = hearth_clock_mono_ns();
    hearth_store_close(store, from_ns + 700 * HEARTH_NS_PER_MS);
    int64_t took_ns = hearth_clock_mono_ns() - from_ns;
    assert_true(took_ns >= 700 * HEARTH_NS_PER_MS && took_ns < 30 * HEARTH_NS_PER_SEC);
    for (int i = 0; i < N; i++) {
        assert_true(atomic_load(&pushes[i]->ended));
        assert_int_equal(atomic_load(&pushes[i]->n_done), 1);
        assert_int_equal(pushes[i]->status, HEARTH_UNAVAILABLE);
        assert_non_null(strstr(pushes[i]->err.msg, "retry"));
        store_push_free(pushes[i]);
    }
    pg_cluster_resume(&g_cluster);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), 0);
}

static void a_queue_outlives_a_restart_of_the_database(void **state)
{
    (void)state;
    enum {
        N = 20
    };
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct store_push *pushes[N];
    int64_t ts_ns = hearth_clock_wall_ns();
    for (int i = 0; i < N; i++) {
        pushes[i] = make_push(store, "api", ts_ns + i, 60, 0);
    }
    pg_cluster_halt(&g_cluster, SIGINT);
    for (int i = 0; i < N; i++) {
        store_push_submit(pushes[i]);
    }
    (void)usleep(300000);
    pg_cluster_resume(&g_cluster);
    for (int i = 0; i < N; i++) {
        end_push(pushes[i]);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.profile"), N);
    store_close_soon(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_a_profile_with_everything_it_needs),
        cmocka_unit_test(puts_profiles_before_the_watermark_aside),
        cmocka_unit_test(prepared_statements_store_what_scripts_store),
        cmocka_unit_test(prepared_statements_follow_the_days),
        cmocka_unit_test(scripts_follow_a_refusal_of_prepared_statements),
        cmocka_unit_test(commits_all_queued_items_in_one_transaction),
        cmocka_unit_test(commits_enough_rows_without_waiting),
        cmocka_unit_test(stores_a_repeated_id_once),
        cmocka_unit_test(stores_an_id_again_after_an_hour),
        cmocka_unit_test(a_refused_item_does_not_harm_its_neighbours),
        cmocka_unit_test(a_row_that_ends_its_connection_each_time_is_given_up_alone),
        cmocka_unit_test(makes_a_partition_that_went_missing),
        cmocka_unit_test(refuses_when_the_queue_is_full_and_takes_again_later),
        cmocka_unit_test(a_released_dictionary_is_never_continued_under_its_name),
        cmocka_unit_test(closing_commits_queued_items),
        cmocka_unit_test(closing_without_a_database_ends_at_the_deadline),
        cmocka_unit_test(a_queue_outlives_a_restart_of_the_database),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
