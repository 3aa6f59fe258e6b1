/* test_scan.c -- reading profile rows and totals, on a real PostgreSQL. */
#include "read_fixture.h"
#include "store_internal.h"

#define TENANT HEARTH_STR("anonymous")
#define DAY    HEARTH_NS_PER_DAY

static uint64_t g_random = 0x9E3779B97F4A7C15u;

static uint64_t next_random(void)
{
    g_random ^= g_random << 13;
    g_random ^= g_random >> 7;
    g_random ^= g_random << 17;
    return g_random;
}

/* ---- rows that are known to be there ---- */

#define N_SERVICES 3
#define N_PODS     4
#define N_SERIES   (N_SERVICES * N_PODS)
#define N_ROWS     600
#define MAX_TYPES  4

struct series_of_test {
    struct hearth_series_ref ref;
    unsigned n_types;
};

struct row_of_test {
    const struct series_of_test *series;
    int32_t writer_id;
    int64_t ts_ns;
    int64_t totals[MAX_TYPES];
    char ids[40], vals[MAX_TYPES][24];
    size_t n_ids, n_vals[MAX_TYPES];
};

static struct series_of_test g_series[N_SERIES];
static struct row_of_test g_rows[N_ROWS];

/* Series with 1 to MAX_TYPES value columns. */
static void make_all_series(struct hearth_store *store)
{
    static const char *const types[MAX_TYPES] = {
        "a:a:count::", "b:b:count::", "c:c:count::", "d:d:count::"};
    for (int i = 0; i < N_SERIES; i++) {
        struct made_series made;
        (void)make_series(&made, i / N_PODS, i);
        struct hearth_str ids[MAX_TYPES];
        g_series[i].n_types = 1 + (unsigned)i % MAX_TYPES;
        for (unsigned k = 0; k < g_series[i].n_types; k++) {
            ids[k] = hearth_str_c(types[k]);
        }
        made.key.type_ids = ids;
        made.key.n_types = g_series[i].n_types;
        assert_ok(
            hearth_store_resolve_series(store, TENANT, &made.key, 1, T0, &g_series[i].ref, &err));
    }
}

static void make_row(struct row_of_test *row)
{
    *row = (struct row_of_test){
        .series = &g_series[next_random() % N_SERIES],
        .writer_id = (int32_t)(1 + next_random() % 3),
        .ts_ns = T0 + (int64_t)(next_random() % (uint64_t)(4 * DAY)),
        .n_ids = next_random() % sizeof row->ids,
    };
    if (next_random() % 20 == 0) { /* often on the edges of days */
        row->ts_ns = (row->ts_ns / DAY + 1) * DAY - (int64_t)(next_random() % 2);
    }
    for (size_t i = 0; i < row->n_ids; i++) {
        row->ids[i] = (char)next_random();
    }
    for (unsigned k = 0; k < row->series->n_types; k++) {
        row->totals[k] = (int64_t)(next_random() >> 1);
        row->n_vals[k] = 1 + next_random() % (sizeof row->vals[k] - 1);
        row->vals[k][0] = k > 0 && next_random() % 2 == 0;
        for (size_t i = 1; i < row->n_vals[k]; i++) {
            row->vals[k][i] = (char)next_random();
        }
    }
}

static void put_row(const struct row_of_test *row, struct hearth_buf *out)
{
    struct hearth_str vals[MAX_TYPES];
    for (unsigned k = 0; k < row->series->n_types; k++) {
        vals[k] = hearth_str_n(row->vals[k], row->n_vals[k]);
    }
    hearth_copy_row(out, 11);
    hearth_copy_i32(out, row->series->ref.service_id);
    hearth_copy_i32(out, row->series->ref.series_id);
    hearth_copy_i64(out, row->ts_ns);
    hearth_copy_i64(out, 0);
    hearth_copy_i64(out, 0);
    hearth_copy_i64(out, 1);
    hearth_copy_i32(out, row->writer_id);
    hearth_copy_i32(out, 0);
    hearth_copy_i64_array(out, row->totals, row->series->n_types);
    hearth_copy_bytes(out, hearth_str_n(row->ids, row->n_ids));
    hearth_copy_bytes_array(out, vals, row->series->n_types);
}

static void ensure_days(struct hearth_store *store, const char *url, int64_t from_ns, int64_t to_ns)
{
    struct hearth_pg pg = {.url = url};
    assert_ok(hearth_pg_connect(&pg, 5000, &err));
    for (int32_t day = hearth_day_of(from_ns); day <= hearth_day_of(to_ns); day++) {
        assert_ok(hearth_partitions_ensure(store, &pg, day, &err));
    }
    hearth_pg_close(&pg);
}

static void insert_rows(struct hearth_store *store, const char *url)
{
    ensure_days(store, url, T0, T0 + 5 * DAY);
    struct hearth_buf rows;
    hearth_buf_init(&rows, 0);
    for (int i = 0; i < N_ROWS; i++) {
        make_row(&g_rows[i]);
        put_row(&g_rows[i], &rows);
    }
    struct hearth_pg pg = {.url = url};
    assert_ok(hearth_pg_connect(&pg, 5000, &err));
    assert_ok(hearth_pg_copy(&pg,
                             "COPY hearth_data.profile (service_id, series_id, ts, duration_ns,"
                             " period, profile_no, writer_id, n_samples, totals, ids, vals)"
                             " FROM STDIN (FORMAT binary)",
                             hearth_buf_view(&rows), NULL, &err));
    hearth_pg_close(&pg);
    hearth_buf_release(&rows);
}

/* ---- sets of rows, whatever their order ---- */

struct seen {
    uint64_t hashes[N_ROWS * MAX_TYPES];
    size_t n;
};

static void see(struct seen *seen, struct hearth_buf *bytes)
{
    assert_true(seen->n < HEARTH_ARRAY_LEN(seen->hashes));
    seen->hashes[seen->n++] = hearth_hash64(bytes->p, bytes->n, 0);
    hearth_buf_release(bytes);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void assert_same(struct seen *a, struct seen *b)
{
    assert_int_equal(a->n, b->n);
    qsort(a->hashes, a->n, sizeof a->hashes[0], by_value);
    qsort(b->hashes, b->n, sizeof b->hashes[0], by_value);
    assert_memory_equal(a->hashes, b->hashes, a->n * sizeof a->hashes[0]);
}

static void see_text(struct hearth_buf *bytes, struct hearth_str s)
{
    hearth_buf_printf(bytes, "%zu%s:", s.n, s.p == NULL ? "-" : "");
    hearth_buf_str(bytes, s);
}

static enum hearth_status
see_row(void *context, const struct hearth_read_row *row, struct hearth_err *err)
{
    (void)err;
    struct hearth_buf bytes;
    hearth_buf_init(&bytes, 0);
    hearth_buf_printf(&bytes, "%d %d %d %lld %d %d ", (int)row->service_id, (int)row->series_id,
                      (int)row->writer_id, (long long)row->ts_ns, (int)row->column,
                      (int)row->is_column0);
    see_text(&bytes, row->ids);
    see_text(&bytes, row->val);
    see_text(&bytes, row->val0);
    see(context, &bytes);
    return HEARTH_OK;
}

static enum hearth_status
see_total(void *context, const struct hearth_read_total *total, struct hearth_err *err)
{
    (void)err;
    struct hearth_buf bytes;
    hearth_buf_init(&bytes, 0);
    hearth_buf_printf(&bytes, "%d %d %d %lld %lld", (int)total->service_id, (int)total->series_id,
                      (int)total->column, (long long)total->ts_ns, (long long)total->total);
    see(context, &bytes);
    return HEARTH_OK;
}

/* What a scan of these hits has to give. */
static void expect(const struct hearth_series_hit *hits,
                   size_t n_hits,
                   int64_t from_ns,
                   int64_t to_ns,
                   struct seen *rows,
                   struct seen *totals)
{
    rows->n = totals->n = 0;
    for (size_t h = 0; h < n_hits; h++) {
        for (int i = 0; i < N_ROWS; i++) {
            const struct row_of_test *r = &g_rows[i];
            unsigned k = hits[h].column;
            if (r->series->ref.series_id != hits[h].series_id || r->ts_ns < from_ns ||
                r->ts_ns > to_ns) {
                continue;
            }
            bool multiple = k > 0 && r->vals[k][0] == 1;
            struct hearth_read_row row = {
                .service_id = r->series->ref.service_id,
                .series_id = r->series->ref.series_id,
                .writer_id = r->writer_id,
                .ts_ns = r->ts_ns,
                .column = (uint16_t)k,
                .is_column0 = k == 0,
                .ids = {r->ids, r->n_ids},
                .val = {r->vals[k], r->n_vals[k]},
                .val0 = {multiple ? r->vals[0] : NULL, multiple ? r->n_vals[0] : 0},
            };
            struct hearth_read_total total = {r->series->ref.service_id, r->series->ref.series_id,
                                              (uint16_t)k, r->ts_ns, r->totals[k]};
            (void)see_row(rows, &row, NULL);
            (void)see_total(totals, &total, NULL);
        }
    }
}

static void a_scan_gives_exactly_the_rows_of_its_hits_and_range(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    make_all_series(store);
    insert_rows(store, url);
    static struct seen rows, totals, expected_rows, expected_totals;
    size_t n_seen = 0;
    for (int round = 0; round < 60; round++) {
        struct hearth_series_hit hits[N_SERIES * MAX_TYPES];
        size_t n_hits = 0;
        for (int i = 0; i < N_SERIES; i++) {
            for (unsigned k = 0; k < g_series[i].n_types; k++) {
                if (round == 0 || next_random() % 3 == 0) {
                    hits[n_hits++] =
                        (struct hearth_series_hit){.series_id = g_series[i].ref.series_id,
                                                   .service_id = g_series[i].ref.service_id,
                                                   .column = (uint16_t)k};
                }
            }
        }
        int64_t from_ns = T0 + (int64_t)(next_random() % (uint64_t)(4 * DAY));
        int64_t to_ns = from_ns + (int64_t)(next_random() % (uint64_t)(2 * DAY));
        if (round == 0) {
            from_ns = INT64_MIN;
            to_ns = INT64_MAX;
        } else if (round % 5 == 0) { /* whole days, to the nanosecond */
            from_ns = from_ns / DAY * DAY;
            to_ns = to_ns / DAY * DAY - (round % 2);
        } else if (round % 7 == 0) { /* one profile */
            from_ns = to_ns = g_rows[round].ts_ns;
        }
        rows.n = totals.n = 0;
        assert_ok(
            hearth_store_scan(store, hits, n_hits, from_ns, to_ns, NULL, see_row, &rows, &err));
        assert_ok(hearth_store_scan_totals(store, hits, n_hits, from_ns, to_ns, NULL, see_total,
                                           &totals, &err));
        expect(hits, n_hits, from_ns, to_ns, &expected_rows, &expected_totals);
        assert_same(&rows, &expected_rows);
        assert_same(&totals, &expected_totals);
        n_seen += rows.n;
    }
    assert_true(n_seen > 5000);
    close_store(store);
}

static void days_without_a_leaf_are_empty(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    struct seen *rows = hearth_mem_zalloc(sizeof *rows);
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1};
    assert_ok(hearth_store_scan(store, &hit, 1, 0, 90 * DAY, NULL, see_row, rows, &err));
    assert_ok(hearth_store_scan_totals(store, &hit, 1, 0, 90 * DAY, NULL, see_total, rows, &err));
    assert_ok(hearth_store_scan(store, &hit, 0, 0, 90 * DAY, NULL, see_row, rows, &err));
    assert_ok(hearth_store_scan(store, &hit, 1, 5, 4, NULL, see_row, rows, &err));
    assert_int_equal(rows->n, 0);
    hearth_mem_free(rows);
    close_store(store);
}

/* ---- many rows ---- */

#define MANY_SERIES 200
#define MANY_ROWS   60000

/* One hour of MANY_SERIES series of service 1 and as many of others, interleaved in time; a second
 * day beside it. */
static void fill_many(struct hearth_store *store, const char *url)
{
    ensure_days(store, url, T0, T0 + DAY);
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.profile SELECT CASE WHEN s <= 200 THEN 1 ELSE s END, s,"
        " %lld + t * 12000000000::int8 + d * 86400000000000::int8, 0, 0, 1, 1, 1,"
        " array[t, 7]::int8[], decode(repeat(md5((s * t)::text), 10), 'hex'),"
        " array[decode('00' || repeat(md5(s::text), 8), 'hex'), '\\x0107'], NULL"
        " FROM generate_series(0, 1) d, generate_series(0, 149) t, generate_series(1, 400) s",
        (long long)T0);
    pg_cluster_run(url, sql);
}

static void many_hits(struct hearth_series_hit hits[MANY_SERIES], uint16_t column)
{
    for (int i = 0; i < MANY_SERIES; i++) {
        hits[i] = (struct hearth_series_hit){
            .series_id = i + 1, .service_id = 1, .column = column, .n_types = 2};
    }
}

struct counter {
    const char *url; /* cut our own connection in the middle */
    int64_t n_rows, stop_after, sum;
    _Atomic bool *cancelled;
};

static enum hearth_status
count_row(void *context, const struct hearth_read_row *row, struct hearth_err *err)
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

static enum hearth_status
add_total(void *context, const struct hearth_read_total *total, struct hearth_err *err)
{
    (void)err;
    struct counter *counter = context;
    counter->n_rows++;
    counter->sum += total->total;
    return HEARTH_OK;
}

static long long running(const char *url)
{
    return pg_cluster_int(url, "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle'"
                               " AND query LIKE 'SELECT * FROM (SELECT service_id%'");
}

/* Within a second. */
static void assert_nothing_runs(const char *url)
{
    int64_t until_ns = hearth_clock_mono_ns() + HEARTH_NS_PER_SEC;
    while (running(url) != 0 && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(5000);
    }
    assert_int_equal(running(url), 0);
}

static void new_leaves_are_read_by_their_index_and_other_days_not_at_all(void **state)
{
    (void)state;
    char url[256], text[128];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url); /* and nobody analyzes it */
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    static struct hearth_series_hit hits[MANY_SERIES];
    for (uint16_t column = 0; column < 2; column++) {
        struct counter counter = {0};
        many_hits(hits, column);
        assert_ok(hearth_store_scan(store, hits, MANY_SERIES, T0, T0 + HEARTH_NS_PER_HOUR, NULL,
                                    count_row, &counter, &err));
        assert_int_equal(counter.n_rows, MANY_SERIES * 150);
        assert_ok(hearth_store_scan(store, hits, 10, T0, T0 + 600 * HEARTH_NS_PER_SEC, NULL,
                                    count_row, &counter, &err));
        assert_int_equal(counter.n_rows, MANY_SERIES * 150 + 10 * 51);
    }
    close_store(store); /* its connections report their statistics as they end */
    (void)usleep(200000);
    pg_cluster_text(
        url,
        "SELECT string_agg(format('%s %s', seq_scan, idx_scan > 0), ',' ORDER BY relname)"
        " FROM pg_stat_user_tables WHERE schemaname = 'hearth_data'"
        " AND relid IN (SELECT tableoid FROM hearth_data.profile)",
        text, sizeof text);
    assert_string_equal(text, "0 t,0 f");
}

static void totals_are_read_without_the_heap(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url);
    pg_cluster_run(url, "VACUUM");
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct counter counter = {0};
    assert_ok(hearth_store_scan_totals(store, hits, MANY_SERIES, T0, T0 + HEARTH_NS_PER_HOUR, NULL,
                                       add_total, &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 150);
    assert_int_equal(counter.sum, MANY_SERIES * (149 * 150 / 2));
    close_store(store);
    (void)usleep(200000);
    /* What is left are looks at the visibility map. */
    assert_in_range(pg_cluster_int(url,
                                   "SELECT sum(heap_blks_read + heap_blks_hit)"
                                   " FROM pg_statio_user_tables WHERE relname LIKE 'profile_%'"),
                    0, 300);
}

static void a_cut_connection_fails_the_scan_and_doubles_no_row(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 1);
    struct counter counter = {.url = url, .stop_after = 100};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_store_scan(store, hits, MANY_SERIES, T0, T0 + DAY, NULL, count_row, &counter, &err),
        HEARTH_UNAVAILABLE);
    assert_in_range(counter.n_rows, 100, MANY_SERIES * 150);
    counter = (struct counter){0};
    assert_ok(
        hearth_store_scan(store, hits, MANY_SERIES, T0, T0 + DAY, NULL, count_row, &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 151);
    close_store(store);
}

/* ---- giving up ---- */

static void a_visitor_that_has_enough_ends_the_query(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct counter counter = {.stop_after = 10};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_store_scan(store, hits, MANY_SERIES, T0, T0 + DAY, NULL, count_row, &counter, &err),
        HEARTH_RESOURCE_EXHAUSTED);
    assert_string_equal(err.msg, "enough");
    assert_int_equal(counter.n_rows, 10);
    assert_nothing_runs(url);

    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, INT64_MAX);
    counter = (struct counter){.stop_after = 10, .cancelled = &cancel.cancelled};
    assert_int_equal(hearth_store_scan(store, hits, MANY_SERIES, T0, T0 + DAY, &cancel, count_row,
                                       &counter, &err),
                     HEARTH_CANCELLED);
    assert_in_range(counter.n_rows, 10, 2000);
    assert_nothing_runs(url);
    close_store(store);
}

struct blocked {
    struct hearth_store *store;
    struct hearth_cancel *cancel;
    enum hearth_status status;
};

static void *run_blocked(void *arg)
{
    struct blocked *b = arg;
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1};
    struct counter counter = {0};
    b->status =
        hearth_store_scan(b->store, &hit, 1, T0, T0 + DAY, b->cancel, count_row, &counter, NULL);
    return NULL;
}

static void cancellation_and_deadlines_reach_postgres(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.url = url;
    options.statement_timeout_ms = 300;
    struct hearth_store *store = open_store_with(&options);
    ensure_days(store, url, T0, T0);
    PGconn *locker = pg_cluster_connect(url); /* a query that does not end by itself */
    PQclear(PQexec(locker, "BEGIN; LOCK TABLE hearth_data.profile IN ACCESS EXCLUSIVE MODE"));

    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 60 * HEARTH_NS_PER_SEC);
    struct blocked blocked = {store, &cancel, HEARTH_OK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_blocked, &blocked), 0);
    while (running(url) == 0) {
        (void)usleep(1000);
    }
    int64_t at_ns = hearth_clock_mono_ns();
    atomic_store(&cancel.cancelled, true);
    (void)pthread_join(thread, NULL);
    assert_int_equal(blocked.status, HEARTH_CANCELLED);
    assert_in_range(hearth_clock_mono_ns() - at_ns, 0, HEARTH_NS_PER_SEC);
    assert_nothing_runs(url);

    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 100 * HEARTH_NS_PER_MS);
    (void)run_blocked(&blocked);
    assert_int_equal(blocked.status, HEARTH_DEADLINE_EXCEEDED);
    assert_nothing_runs(url);

    blocked.cancel = NULL; /* the store's own timeout */
    (void)run_blocked(&blocked);
    assert_int_equal(blocked.status, HEARTH_DEADLINE_EXCEEDED);
    assert_nothing_runs(url);
    PQfinish(locker);
    (void)run_blocked(&blocked);
    assert_int_equal(blocked.status, HEARTH_OK);
    close_store(store);
}

static void a_row_without_the_column_is_corrupt(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url);
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1, .column = 2, .n_types = 3};
    struct counter counter = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_store_scan(store, &hit, 1, T0, T0 + DAY, NULL, count_row, &counter, &err),
        HEARTH_CORRUPT);
    assert_non_null(strstr(err.msg, "series 1"));
    assert_int_equal(
        hearth_store_scan_totals(store, &hit, 1, T0, T0 + DAY, NULL, add_total, &counter, &err),
        HEARTH_CORRUPT);
    hit.column = 64;
    assert_int_equal(
        hearth_store_scan(store, &hit, 1, T0, T0 + DAY, NULL, count_row, &counter, &err),
        HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(counter.n_rows, 0);
    close_store(store);
}

static void sixty_four_columns_are_one_statement(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    ensure_days(store, url, T0, T0);
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.profile SELECT 1, 1, %lld, 0, 0, 1, 1, 1,"
                   " array_agg(i::int8), '\\x', array_agg(decode('00' || lpad(to_hex(i), 2, '0'),"
                   " 'hex')), NULL FROM generate_series(1, 64) i",
                   (long long)T0);
    pg_cluster_run(url, sql);
    struct hearth_series_hit hits[64];
    for (uint16_t k = 0; k < 64; k++) {
        hits[k] =
            (struct hearth_series_hit){.series_id = 1, .service_id = 1, .column = k, .n_types = 64};
    }
    static struct seen rows;
    struct counter counter = {0};
    assert_ok(hearth_store_scan(store, hits, 64, T0, T0, NULL, see_row, &rows, &err));
    assert_int_equal(rows.n, 64);
    assert_ok(hearth_store_scan_totals(store, hits, 64, T0, T0, NULL, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, 64);
    assert_int_equal(counter.sum, 64 * 65 / 2);
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_gives_exactly_the_rows_of_its_hits_and_range),
        cmocka_unit_test(days_without_a_leaf_are_empty),
        cmocka_unit_test(new_leaves_are_read_by_their_index_and_other_days_not_at_all),
        cmocka_unit_test(totals_are_read_without_the_heap),
        cmocka_unit_test(a_cut_connection_fails_the_scan_and_doubles_no_row),
        cmocka_unit_test(a_visitor_that_has_enough_ends_the_query),
        cmocka_unit_test(cancellation_and_deadlines_reach_postgres),
        cmocka_unit_test(a_row_without_the_column_is_corrupt),
        cmocka_unit_test(sixty_four_columns_are_one_statement),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
