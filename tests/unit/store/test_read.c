/* test_read.c -- reading by plan, on a real PostgreSQL: from every table, in one statement. */
#include "hearth/codec/compress.h"
#include "hearth/model/block.h"
#include "hearth/model/segment.h"

#include "pg/pg.h"
#include "read_plans.h"

static uint64_t g_random = 0x9E3779B97F4A7C15u;

static uint64_t next_random(void)
{
    g_random ^= g_random << 13;
    g_random ^= g_random >> 7;
    g_random ^= g_random << 17;
    return g_random;
}

/* ---- rows and blocks that are known to be there ---- */

#define N_SERVICES 3
#define N_PODS     4
#define N_SERIES   (N_SERVICES * N_PODS)
#define N_ROWS     1400
#define MAX_TYPES  4

struct series_of_test {
    struct hearth_series_ref ref;
    unsigned n_types;
};

/* Of one table: where a plan looks for it is what the test says. */
struct row_of_test {
    enum hearth_source source;
    int32_t service_id, series_id, writer_id;
    unsigned n_types;
    int64_t ts_ns, n_profiles;
    int64_t totals[MAX_TYPES];
    char ids[400], vals[MAX_TYPES][24], members[8];
    size_t n_ids, n_vals[MAX_TYPES], n_members;
    bool has_members;
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

static bool is_block(enum hearth_source source)
{
    return source >= HEARTH_SOURCE_ROLL_10M;
}

static void make_row(struct row_of_test *row)
{
    static const enum hearth_source sources[] = {HEARTH_SOURCE_PROFILE, HEARTH_SOURCE_LATE,
                                                 HEARTH_SOURCE_SEGMENT, HEARTH_SOURCE_ROLL_10M,
                                                 HEARTH_SOURCE_ROLL_1H, HEARTH_SOURCE_ROLL_1D};
    const struct series_of_test *series = &g_series[next_random() % N_SERIES];
    *row = (struct row_of_test){
        .source = sources[next_random() % HEARTH_ARRAY_LEN(sources)],
        .service_id = series->ref.service_id,
        .series_id = series->ref.series_id,
        .n_types = series->n_types,
        .writer_id = (int32_t)(1 + next_random() % 3),
        .ts_ns = T0 + (int64_t)(next_random() % (uint64_t)(4 * DAY)),
        .n_profiles = 1,
        .n_ids = next_random() % 40,
    };
    if (next_random() % 20 == 0) { /* often on the edges of days */
        row->ts_ns = (row->ts_ns / DAY + 1) * DAY - (int64_t)(next_random() % 2);
    }
    for (size_t i = 0; i < row->n_ids; i++) {
        row->ids[i] = (char)next_random();
    }
    if (is_block(row->source)) {
        row->ts_ns -= row->ts_ns % hearth_source_length_ns(row->source);
        row->n_profiles = (int64_t)(1 + next_random() % 1000000);
        if (next_random() % 2 == 0) { /* one that is worth compressing */
            row->n_ids = sizeof row->ids;
        }
        if (next_random() % 4 == 0) { /* of a whole service */
            row->series_id = -(int32_t)row->n_types;
            row->has_members = true;
            row->n_members = next_random() % sizeof row->members;
            memset(row->members, 7, row->n_members);
        }
    }
    for (unsigned k = 0; k < row->n_types; k++) {
        row->totals[k] = (int64_t)(next_random() >> 1);
        row->n_vals[k] = 1 + next_random() % (sizeof row->vals[k] - 1);
        row->vals[k][0] = k > 0 && next_random() % 2 == 0;
        for (size_t i = 1; i < row->n_vals[k]; i++) {
            row->vals[k][i] = (char)next_random();
        }
    }
}

static struct hearth_stored_row stored_of(const struct row_of_test *row, struct hearth_str *vals)
{
    for (unsigned k = 0; k < row->n_types; k++) {
        vals[k] = hearth_str_n(row->vals[k], row->n_vals[k]);
    }
    return (struct hearth_stored_row){.series_id = row->series_id,
                                      .writer_id = row->writer_id,
                                      .ts_ns = row->ts_ns,
                                      .profile_no = 1,
                                      .n_types = row->n_types,
                                      .totals = row->totals,
                                      .ids = hearth_str_n(row->ids, row->n_ids),
                                      .vals = vals};
}

static void put_row(const struct row_of_test *row, struct hearth_buf *out)
{
    struct hearth_str vals[MAX_TYPES];
    struct hearth_stored_row stored = stored_of(row, vals);
    hearth_copy_row(out, 11);
    hearth_copy_i32(out, row->service_id);
    hearth_copy_i32(out, stored.series_id);
    hearth_copy_i64(out, stored.ts_ns);
    hearth_copy_i64(out, 0);
    hearth_copy_i64(out, 0);
    hearth_copy_i64(out, 1);
    hearth_copy_i32(out, stored.writer_id);
    hearth_copy_i32(out, 0);
    hearth_copy_i64_array(out, stored.totals, stored.n_types);
    hearth_copy_bytes(out, stored.ids);
    hearth_copy_bytes_array(out, vals, stored.n_types);
}

static void put_block(const struct row_of_test *row, int64_t part, struct hearth_buf *out)
{
    struct hearth_packer *packer = hearth_packer_new(1);
    struct hearth_buf packed[MAX_TYPES + 1];
    struct hearth_str vals[MAX_TYPES];
    for (unsigned k = 0; k <= row->n_types; k++) {
        struct hearth_str plain = k == row->n_types ? hearth_str_n(row->ids, row->n_ids)
                                                    : hearth_str_n(row->vals[k], row->n_vals[k]);
        hearth_buf_init(&packed[k], 0);
        assert_ok(hearth_pack(packer, plain, &packed[k], &err));
    }
    for (unsigned k = 0; k < row->n_types; k++) {
        vals[k] = hearth_buf_view(&packed[k]);
    }
    hearth_copy_row(out, 10);
    hearth_copy_i32(out, row->service_id);
    hearth_copy_i32(out, row->series_id);
    hearth_copy_i64(out, row->ts_ns);
    hearth_copy_i32(out, row->writer_id);
    hearth_copy_i64(out, part);
    hearth_copy_i32(out, (int32_t)row->n_profiles);
    hearth_copy_i64_array(out, row->totals, row->n_types);
    if (row->has_members) {
        hearth_copy_bytes(out, hearth_str_n(row->members, row->n_members));
    } else {
        hearth_copy_null(out);
    }
    hearth_copy_bytes(out, hearth_buf_view(&packed[row->n_types]));
    hearth_copy_bytes_array(out, vals, row->n_types);
    for (unsigned k = 0; k <= row->n_types; k++) {
        hearth_buf_release(&packed[k]);
    }
    hearth_packer_free(packer);
}

/* One profile each: that many series in one are the business of the segment's own tests. */
static void insert_segment(struct hearth_pg *pg, const struct row_of_test *row, int64_t part)
{
    struct hearth_str vals[MAX_TYPES];
    struct hearth_stored_row stored[2] = {stored_of(row, vals), stored_of(row, vals)};
    stored[1].series_id = 1000000; /* of somebody else */
    struct hearth_arena arena;
    struct hearth_buf plain, packed;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&plain, 0);
    hearth_buf_init(&packed, 0);
    assert_ok(hearth_segment_encode(stored, 2, &plain, &err));
    assert_ok(hearth_zstd(hearth_buf_view(&plain), 1, &packed, &err));
    struct hearth_pg_params params;
    int32_t series[2] = {row->series_id, 1000000};
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32(&params, row->service_id);
    hearth_pg_param_i64(&params, row->ts_ns - row->ts_ns % HOUR);
    hearth_pg_param_i64(&params, part);
    hearth_pg_param_i32(&params, (int32_t)plain.n);
    hearth_pg_param_i32_array(&params, series, 2);
    hearth_pg_param_bytes(&params, hearth_buf_view(&packed));
    assert_ok(hearth_pg_exec(pg,
                             "INSERT INTO hearth_data.segment (service_id, t0, part, ordinal,"
                             " n_rows, n_bytes, series_ids, payload)"
                             " VALUES ($1, $2, $3, 0, 2, $4, $5, $6)",
                             &params, NULL, NULL, NULL, &err));
    hearth_buf_release(&plain);
    hearth_buf_release(&packed);
    hearth_arena_release(&arena);
}

static void insert_rows(struct hearth_store *store, const char *url)
{
    static const char *const columns[HEARTH_N_SOURCES] = {
        [HEARTH_SOURCE_PROFILE] =
            "profile (service_id, series_id, ts, duration_ns, period, profile_no,"
            " writer_id, n_samples, totals, ids, vals)",
        [HEARTH_SOURCE_LATE] =
            "profile_late (service_id, series_id, ts, duration_ns, period, profile_no,"
            " writer_id, n_samples, totals, ids, vals)",
        [HEARTH_SOURCE_ROLL_10M] = "roll_10m",
        [HEARTH_SOURCE_ROLL_1H] = "roll_1h",
        [HEARTH_SOURCE_ROLL_1D] = "roll_1d",
    };
    ensure_days(store, url, T0 - DAY, T0 + 5 * DAY);
    struct hearth_pg pg = {.url = test_secret(url)};
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    struct hearth_buf rows[HEARTH_N_SOURCES];
    for (int s = 0; s < HEARTH_N_SOURCES; s++) {
        hearth_buf_init(&rows[s], 0);
    }
    for (int i = 0; i < N_ROWS; i++) {
        make_row(&g_rows[i]);
        if (g_rows[i].source == HEARTH_SOURCE_SEGMENT) {
            insert_segment(&pg, &g_rows[i], i);
        } else if (is_block(g_rows[i].source)) {
            put_block(&g_rows[i], i, &rows[g_rows[i].source]);
        } else {
            put_row(&g_rows[i], &rows[g_rows[i].source]);
        }
    }
    for (int s = 0; s < HEARTH_N_SOURCES; s++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "COPY hearth_data.%s FROM STDIN (FORMAT binary)",
                       columns[s] == NULL ? "" : columns[s]);
        if (columns[s] != NULL) {
            assert_ok(hearth_pg_copy(&pg, sql, hearth_buf_view(&rows[s]), NULL, &err));
        }
        hearth_buf_release(&rows[s]);
    }
    hearth_pg_close(&pg);
}

static void expect(const struct hearth_read_leg *leg, struct seen *rows, struct seen *totals)
{
    for (size_t h = 0; h < leg->n_hits; h++) {
        for (int i = 0; i < N_ROWS; i++) {
            const struct row_of_test *r = &g_rows[i];
            unsigned k = leg->hits[h].column;
            if (r->source != leg->source || r->series_id != leg->hits[h].series_id ||
                r->service_id != leg->hits[h].service_id || r->ts_ns < leg->from_ns ||
                r->ts_ns >= leg->to_ns) {
                continue;
            }
            bool multiple = k > 0 && r->vals[k][0] == 1;
            struct hearth_read_row row = {
                .service_id = r->service_id,
                .series_id = r->series_id,
                .writer_id = r->writer_id,
                .ts_ns = r->ts_ns,
                .column = (uint16_t)k,
                .is_column0 = k == 0,
                .ids = {r->ids, r->n_ids},
                .val = {r->vals[k], r->n_vals[k]},
                .val0 = {multiple ? r->vals[0] : NULL, multiple ? r->n_vals[0] : 0},
                .source = (int)r->source,
                .n_profiles = r->n_profiles,
                .members = {r->has_members ? r->members : NULL, r->n_members},
            };
            struct hearth_read_total total = {.service_id = r->service_id,
                                              .series_id = r->series_id,
                                              .column = (uint16_t)k,
                                              .ts_ns = r->ts_ns,
                                              .total = r->totals[k]};
            (void)see_row(rows, &row, NULL);
            if (!is_block(r->source)) {
                (void)see_total(totals, &total, NULL);
            }
        }
    }
}

/* A third of the series, each with all its columns or some; whole services beside, of blocks. */
static size_t random_hits(struct hearth_series_hit *hits, bool whole)
{
    size_t n = 0;
    for (int i = 0; i < N_SERIES; i++) {
        for (unsigned k = 0; k < g_series[i].n_types; k++) {
            if (next_random() % 3 == 0) {
                hits[n++] = (struct hearth_series_hit){
                    .series_id = whole ? -(int32_t)g_series[i].n_types : g_series[i].ref.series_id,
                    .service_id = g_series[i].ref.service_id,
                    .column = (uint16_t)k};
            }
        }
    }
    return n;
}

/* Whole services come with descending shapes: put them in order. */
static int by_ids(const void *a, const void *b)
{
    struct hearth_series_hit x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x.service_id != y.service_id
               ? (x.service_id > y.service_id) - (x.service_id < y.service_id)
           : x.series_id != y.series_id ? (x.series_id > y.series_id) - (x.series_id < y.series_id)
                                        : (x.column > y.column) - (x.column < y.column);
}

static void random_leg(struct hearth_read_leg *leg, struct hearth_series_hit *hits, bool totals)
{
    static const enum hearth_source sources[] = {HEARTH_SOURCE_PROFILE, HEARTH_SOURCE_LATE,
                                                 HEARTH_SOURCE_SEGMENT, HEARTH_SOURCE_ROLL_10M,
                                                 HEARTH_SOURCE_ROLL_1H, HEARTH_SOURCE_ROLL_1D};
    *leg =
        (struct hearth_read_leg){.source = sources[next_random() % (totals ? 3 : 6)], .hits = hits};
    bool whole = is_block(leg->source) && next_random() % 2 == 0;
    size_t n = random_hits(hits, whole);
    if (n > 0) {
        qsort(hits, n, sizeof hits[0], by_ids);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || by_ids(&hits[i - 1], &hits[i]) != 0) {
            hits[leg->n_hits++] = hits[i];
        }
    }
    leg->from_ns = T0 - DAY / 2 + (int64_t)(next_random() % (uint64_t)(4 * DAY));
    leg->to_ns = leg->from_ns + 1 + (int64_t)(next_random() % (uint64_t)(3 * DAY));
    if (next_random() % 8 == 0) {
        leg->from_ns = INT64_MIN;
        leg->to_ns = INT64_MAX;
    } else if (next_random() % 4 == 0) { /* whole days, to the nanosecond */
        leg->from_ns = leg->from_ns / DAY * DAY;
        leg->to_ns = (leg->to_ns / DAY + 1) * DAY + (int64_t)(next_random() % 2);
    } else if (next_random() % 4 == 0) { /* one time */
        leg->from_ns = g_rows[next_random() % N_ROWS].ts_ns;
        leg->to_ns = leg->from_ns + 1;
    }
}

static void a_plan_reads_exactly_the_rows_that_its_legs_name(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    make_all_series(store);
    insert_rows(store, url);
    static struct seen rows, totals, expected_rows, expected_totals;
    static struct hearth_series_hit hits[5][N_SERIES * MAX_TYPES];
    size_t n_seen = 0;
    for (int round = 0; round < 120; round++) {
        struct hand_plan hand;
        size_t n_legs = 1 + next_random() % 4;
        bool of_totals = round % 2 == 0;
        rows.n = totals.n = expected_rows.n = expected_totals.n = 0;
        for (size_t i = 0; i < n_legs; i++) {
            random_leg(&hand.legs[i], hits[i], of_totals);
            expect(&hand.legs[i], &expected_rows, &expected_totals);
        }
        const struct hearth_read_plan *plan = finish_plan(store, &hand, n_legs);
        assert_ok(hearth_store_read(STORE_SCOPE(store, TENANT, NULL), plan, see_row, &rows, &err));
        assert_same(&rows, &expected_rows);
        if (of_totals) {
            assert_ok(hearth_store_read_totals(STORE_SCOPE(store, TENANT, NULL), plan, see_total,
                                               &totals, &err));
            assert_same(&totals, &expected_totals);
        }
        hearth_arena_release(&hand.arena);
        n_seen += rows.n;
    }
    assert_true(n_seen > 5000);
    close_store(store);
}

/* ---- packed totals ---- */

static enum hearth_status add_totals_at_once(void *context, const struct hearth_read_totals *totals,
                                             struct hearth_err *err)
{
    struct counter *counter = context;
    (void)err;
    assert_true(totals->n > 0);
    for (size_t i = 0; i < totals->n; i++) {
        assert_true(i == 0 || totals->ts_ns[i - 1] <= totals->ts_ns[i]);
        counter->sum += totals->totals[i];
    }
    counter->n_rows += (int64_t)totals->n;
    return HEARTH_OK;
}

static void packed_totals_give_each_profile_of_the_range(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_with_services(url, NULL);
    ensure_days(store, url, T0, T0 + DAY);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_buf rows;
    hearth_buf_init(&rows, 0);
    for (int32_t hour = 0; hour < 20; hour++) {
        int64_t t0 = T0 + hour * HOUR, ts[60], values[120];
        for (int i = 0; i < 60; i++) {
            ts[i] = t0 + i * 60 * HEARTH_NS_PER_SEC;
            values[i * 2] = hour * 100 + i;
            values[i * 2 + 1] = 1;
        }
        struct hearth_totals packed;
        assert_ok(hearth_totals_encode(ts, values, 60, 2, t0, &arena, &packed, &err));
        hearth_copy_row(&rows, 7);
        hearth_copy_i32(&rows, 1 + hour % 2);
        hearth_copy_i32(&rows, 7 + hour % 2);
        hearth_copy_i64(&rows, t0);
        hearth_copy_i64(&rows, 1);
        hearth_copy_i32(&rows, 60);
        hearth_copy_bytes(&rows, packed.ts);
        hearth_copy_bytes_array(&rows, packed.vals, 2);
    }
    struct hearth_pg pg = {.url = test_secret(url)};
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    assert_ok(hearth_pg_copy(&pg,
                             "COPY hearth_data.hour_totals (service_id, series_id, t0, part,"
                             " n_profiles, ts, vals) FROM STDIN (FORMAT binary)",
                             hearth_buf_view(&rows), NULL, &err));
    hearth_pg_close(&pg);
    struct hearth_series_hit hits[3] = {{.series_id = 7, .service_id = 1, .column = 0},
                                        {.series_id = 7, .service_id = 1, .column = 1},
                                        {.series_id = 8, .service_id = 2, .column = 1}};
    struct hand_plan hand;
    struct counter counter = {0};
    int64_t minute = 60 * HEARTH_NS_PER_SEC;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_TOTALS, T0 + 30 * minute,
                                            T0 + 2 * HOUR + 10 * minute, hits, 3};
    (void)finish_plan(store, &hand, 1);
    assert_ok(hearth_store_read_totals(STORE_SCOPE(store, TENANT, NULL), &hand.plan, add_total,
                                       &counter, &err));
    assert_int_equal(counter.n_rows, 2 * (30 + 10) + 60);
    assert_int_equal(counter.sum, (30 + 59) * 30 / 2 + 2000 + 45 + 40 + 60);

    /* The same when those of a series and hour come together. */
    struct counter together = {0};
    const struct hearth_total_visitor visitor = {add_total, add_totals_at_once, &together};
    assert_ok(
        hearth_store_visit_totals(STORE_SCOPE(store, TENANT, NULL), &hand.plan, &visitor, &err));
    assert_int_equal(together.n_rows, counter.n_rows);
    assert_int_equal(together.sum, counter.sum);
    struct hearth_leg_cost cost;
    assert_ok(hearth_store_read_cost(STORE_SCOPE(store, TENANT, NULL), &hand.plan, &cost, &err));
    assert_int_equal(cost.n_rows, 3);
    assert_in_range(cost.n_bytes, 100, 2000);
    hearth_arena_release(&hand.arena);
    hearth_arena_release(&arena);
    hearth_buf_release(&rows);
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_reads_exactly_the_rows_that_its_legs_name),
        cmocka_unit_test(packed_totals_give_each_profile_of_the_range),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
