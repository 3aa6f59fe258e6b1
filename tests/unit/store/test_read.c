/* test_read.c -- reading by plan, on a real PostgreSQL: from every table, in one statement. */
#include "hearth/codec/compress.h"
#include "hearth/model/block.h"
#include "hearth/model/segment.h"
#include "hearth/store/read.h"

#include "read_fixture.h"
#include "store_internal.h"

#define TENANT HEARTH_STR("anonymous")
#define DAY    HEARTH_NS_PER_DAY
#define HOUR   HEARTH_NS_PER_HOUR

static uint64_t g_random = 0x9E3779B97F4A7C15u;

static uint64_t next_random(void)
{
    g_random ^= g_random << 13;
    g_random ^= g_random >> 7;
    g_random ^= g_random << 17;
    return g_random;
}

/* ---- plans by hand ---- */

struct hand_plan {
    struct hearth_arena arena;
    struct hearth_read_state state;
    struct hearth_read_leg legs[16];
    struct hearth_read_plan plan;
};

/* The state of the services of the legs. */
static const struct hearth_read_plan *
finish_plan(struct hearth_store *store, struct hand_plan *hand, size_t n_legs)
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
    assert_ok(hearth_store_read_state(store, services, n, NULL, &hand->arena, &hand->state, &err));
    hand->plan = (struct hearth_read_plan){hand->legs, n_legs, &hand->state};
    return &hand->plan;
}

/* Profiles that are neither late nor compacted. */
static enum hearth_status read_rows(struct hearth_store *store,
                                    const struct hearth_series_hit *hits,
                                    size_t n_hits,
                                    int64_t from_ns,
                                    int64_t to_ns,
                                    struct hearth_cancel *cancel,
                                    hearth_read_row_fn *visit,
                                    void *context,
                                    struct hearth_err *err)
{
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, from_ns, to_ns, hits, n_hits};
    (void)finish_plan(store, &hand, 1);
    enum hearth_status status = hearth_store_read(store, &hand.plan, cancel, visit, context, err);
    hearth_arena_release(&hand.arena);
    return status;
}

static enum hearth_status read_totals(struct hearth_store *store,
                                      const struct hearth_series_hit *hits,
                                      size_t n_hits,
                                      int64_t from_ns,
                                      int64_t to_ns,
                                      hearth_read_total_fn *visit,
                                      void *context,
                                      struct hearth_err *err)
{
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, from_ns, to_ns, hits, n_hits};
    (void)finish_plan(store, &hand, 1);
    enum hearth_status status =
        hearth_store_read_totals(store, &hand.plan, NULL, visit, context, err);
    hearth_arena_release(&hand.arena);
    return status;
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
    struct hearth_pg pg = {.url = url};
    assert_ok(hearth_pg_connect(&pg, 5000, &err));
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

/* ---- sets of rows, whatever their order ---- */

struct seen {
    uint64_t hashes[N_ROWS * MAX_TYPES * 4];
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

/* What reading a leg has to give. */
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
            struct hearth_read_total total = {r->service_id, r->series_id, (uint16_t)k, r->ts_ns,
                                              r->totals[k]};
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

static void a_plan_gives_exactly_what_its_legs_name(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
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
        assert_ok(hearth_store_read(store, plan, NULL, see_row, &rows, &err));
        assert_same(&rows, &expected_rows);
        if (of_totals) {
            assert_ok(hearth_store_read_totals(store, plan, NULL, see_total, &totals, &err));
            assert_same(&totals, &expected_totals);
        }
        hearth_arena_release(&hand.arena);
        n_seen += rows.n;
    }
    assert_true(n_seen > 5000);
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
        assert_ok(read_rows(store, hits, MANY_SERIES, T0, T0 + HEARTH_NS_PER_HOUR, NULL, count_row,
                            &counter, &err));
        assert_int_equal(counter.n_rows, MANY_SERIES * 150);
        assert_ok(read_rows(store, hits, 10, T0, T0 + 601 * HEARTH_NS_PER_SEC, NULL, count_row,
                            &counter, &err));
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
    assert_ok(read_totals(store, hits, MANY_SERIES, T0, T0 + HEARTH_NS_PER_HOUR, add_total,
                          &counter, &err));
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

static void a_cut_connection_fails_the_read_and_doubles_no_row(void **state)
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
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY + 1, NULL, count_row, &counter, &err),
        HEARTH_UNAVAILABLE);
    assert_in_range(counter.n_rows, 100, MANY_SERIES * 150);
    counter = (struct counter){0};
    assert_ok(
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY + 1, NULL, count_row, &counter, &err));
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
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY, NULL, count_row, &counter, &err),
        HEARTH_RESOURCE_EXHAUSTED);
    assert_string_equal(err.msg, "enough");
    assert_int_equal(counter.n_rows, 10);
    assert_nothing_runs(url);

    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, INT64_MAX);
    counter = (struct counter){.stop_after = 10, .cancelled = &cancel.cancelled};
    assert_int_equal(
        read_rows(store, hits, MANY_SERIES, T0, T0 + DAY, &cancel, count_row, &counter, &err),
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
    b->status = read_rows(b->store, &hit, 1, T0, T0 + DAY, b->cancel, count_row, &counter, NULL);
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
    options.builder = false;
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
    assert_int_equal(read_rows(store, &hit, 1, T0, T0 + DAY, NULL, count_row, &counter, &err),
                     HEARTH_CORRUPT);
    assert_non_null(strstr(err.msg, "series 1"));
    assert_int_equal(read_totals(store, &hit, 1, T0, T0 + DAY, add_total, &counter, &err),
                     HEARTH_CORRUPT);
    hit.column = 64;
    assert_int_equal(read_rows(store, &hit, 1, T0, T0 + DAY, NULL, count_row, &counter, &err),
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
    assert_ok(read_rows(store, hits, 64, T0, T0 + 1, NULL, see_row, &rows, &err));
    assert_int_equal(rows.n, 64);
    assert_ok(read_totals(store, hits, 64, T0, T0 + 1, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, 64);
    assert_int_equal(counter.sum, 64 * 65 / 2);
    close_store(store);
}

/* ---- what the database does not leave out ---- */

static size_t count_rows(struct hearth_store *store, const struct hearth_read_plan *plan)
{
    struct counter counter = {0};
    assert_ok(hearth_store_read(store, plan, NULL, count_row, &counter, &err));
    return (size_t)counter.n_rows;
}

static void days_without_a_leaf_are_empty(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    struct hearth_series_hit hit = {.series_id = 1, .service_id = 1};
    struct hand_plan hand;
    for (size_t i = 0; i < HEARTH_N_SOURCES; i++) {
        hand.legs[i] = (struct hearth_read_leg){i == HEARTH_SOURCE_TOTALS ? HEARTH_SOURCE_PROFILE
                                                                          : (enum hearth_source)i,
                                                0, 90 * DAY, &hit, 1};
    }
    assert_int_equal(count_rows(store, finish_plan(store, &hand, HEARTH_N_SOURCES)), 0);
    hand.plan.n_legs = 0;
    assert_int_equal(count_rows(store, &hand.plan), 0);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

static void what_profile_still_holds_of_compacted_hours_does_not_come(void **state)
{
    (void)state;
    char url[256], sql[512];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.roll_state VALUES (1, %lld, %lld, %lld, 5)",
                   (long long)(T0 + DAY), (long long)(T0 + DAY),
                   (long long)(T0 + 75 * 12 * HEARTH_NS_PER_SEC));
    pg_cluster_run(url, sql);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct hand_plan hand;
    hand.legs[0] =
        (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0, T0 + HOUR, hits, MANY_SERIES};
    assert_int_equal(count_rows(store, finish_plan(store, &hand, 1)), MANY_SERIES * 75);
    struct counter counter = {0};
    assert_ok(hearth_store_read_totals(store, &hand.plan, NULL, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 75);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

static void deleted_profiles_do_not_come(void **state)
{
    (void)state;
    char url[256], sql[512];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO hearth_data.tombstone VALUES (1, 1, %lld, %lld, '{3,5}'),"
                   " (1, 2, %lld, %lld, '{5}'), (2, 3, 0, %lld, '{4}')",
                   (long long)T0, (long long)(T0 + 120 * HEARTH_NS_PER_SEC),
                   (long long)(T0 + 60 * HEARTH_NS_PER_SEC),
                   (long long)(T0 + 240 * HEARTH_NS_PER_SEC), (long long)(T0 + DAY));
    pg_cluster_run(url, sql);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct hand_plan hand;
    hand.legs[0] =
        (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0, T0 + HOUR, hits, MANY_SERIES};
    (void)finish_plan(store, &hand, 1);
    assert_int_equal(hand.state.n_tombstones, 2);
    assert_int_equal(count_rows(store, &hand.plan), MANY_SERIES * 150 - 11 - 21);
    struct counter counter = {0};
    assert_ok(hearth_store_read_totals(store, &hand.plan, NULL, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, MANY_SERIES * 150 - 11 - 21);
    hearth_arena_release(&hand.arena);
    pg_cluster_run(url, "UPDATE hearth_data.tombstone SET series_ids = '{5,3}'");
    struct hearth_err err = HEARTH_ERR_INIT;
    int32_t service = 1;
    hearth_arena_init(&hand.arena, 0);
    assert_int_equal(
        hearth_store_read_state(store, &service, 1, NULL, &hand.arena, &hand.state, &err),
        HEARTH_CORRUPT);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

static void a_plan_of_another_generation_is_aborted(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    fill_many(store, url);
    static struct hearth_series_hit hits[MANY_SERIES];
    many_hits(hits, 0);
    struct hand_plan hand;
    struct hearth_leg_cost cost;
    struct counter counter = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    hand.legs[0] =
        (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, T0, T0 + HOUR, hits, MANY_SERIES};
    static const char *const changes[] = {
        "INSERT INTO hearth_data.roll_state VALUES (1, 0, 0, 0, 1), (2, 0, 0, 0, 1)",
        "UPDATE hearth_data.roll_state SET generation = 2 WHERE service_id = 1",
        "DELETE FROM hearth_data.roll_state WHERE service_id = 1",
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(changes); i++) {
        assert_int_equal(count_rows(store, finish_plan(store, &hand, 1)), MANY_SERIES * 150);
        pg_cluster_run(url, changes[i]);
        assert_int_equal(hearth_store_read(store, &hand.plan, NULL, count_row, &counter, &err),
                         HEARTH_ABORTED);
        assert_int_equal(
            hearth_store_read_totals(store, &hand.plan, NULL, add_total, &counter, &err),
            HEARTH_ABORTED);
        assert_int_equal(hearth_store_read_cost(store, &hand.plan, NULL, &cost, &err),
                         HEARTH_ABORTED);
        hearth_arena_release(&hand.arena);
    }
    /* Of another service: no matter. */
    (void)finish_plan(store, &hand, 1);
    pg_cluster_run(url, "UPDATE hearth_data.roll_state SET generation = 9 WHERE service_id = 2");
    assert_int_equal(count_rows(store, &hand.plan), MANY_SERIES * 150);
    hearth_arena_release(&hand.arena);
    close_store(store);
}

/* ---- packed totals ---- */

static void packed_totals_give_each_profile_of_the_range(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
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
    struct hearth_pg pg = {.url = url};
    assert_ok(hearth_pg_connect(&pg, 5000, &err));
    assert_ok(hearth_pg_copy(&pg, "COPY hearth_data.hour_totals FROM STDIN (FORMAT binary)",
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
    assert_ok(hearth_store_read_totals(store, &hand.plan, NULL, add_total, &counter, &err));
    assert_int_equal(counter.n_rows, 2 * (30 + 10) + 60);
    assert_int_equal(counter.sum, (30 + 59) * 30 / 2 + 2000 + 45 + 40 + 60);
    struct hearth_leg_cost cost;
    assert_ok(hearth_store_read_cost(store, &hand.plan, NULL, &cost, &err));
    assert_int_equal(cost.n_rows, 3);
    assert_in_range(cost.n_bytes, 100, 2000);
    hearth_arena_release(&hand.arena);
    hearth_arena_release(&arena);
    hearth_buf_release(&rows);
    close_store(store);
}

/* ---- how PostgreSQL runs it ---- */

static void every_table_is_read_by_its_index_though_nobody_analyzed_it(void **state)
{
    (void)state;
    char url[256], text[512], sql[1024];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url);
    ensure_days(store, url, T0 - 6 * DAY, T0 + DAY);
    static const char *const tables[] = {"roll_10m", "roll_1h", "roll_1d"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tables); i++) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO hearth_data.%s SELECT 1 + s %% 40, s, %lld + t * %lld, 1, 1, 1,"
                       " '{7}', NULL, decode('00' || repeat(md5((s * t)::text), 10), 'hex'),"
                       " array[decode('0000' || repeat(md5(s::text), 8), 'hex')]"
                       " FROM generate_series(0, 23) t, generate_series(1, 400) s",
                       tables[i], (long long)T0, i == 2 ? 0LL : (long long)HOUR);
        if (i == 2) {
            (void)snprintf(sql, sizeof sql,
                           "INSERT INTO hearth_data.roll_1d SELECT 1 + s %% 40, s, %lld - t * %lld,"
                           " 1, 1, 1, '{7}', NULL, '\\x00', array['\\x0000'::bytea]"
                           " FROM generate_series(0, 4) t, generate_series(1, 4000) s",
                           (long long)T0, (long long)DAY);
        }
        pg_cluster_run(url, sql);
    }
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.profile_late SELECT 1 + s %% 40, s, %lld + t, 0, 0, 1,"
        " 1, 1, '{7}', decode(repeat(md5((s * t)::text), 10), 'hex'),"
        " array['\\x00'::bytea] FROM generate_series(0, 99) t, generate_series(1, 400) s",
        (long long)T0);
    pg_cluster_run(url, sql);
    static struct hearth_series_hit hits[20];
    size_t n = 0; /* five series of each of four services */
    for (int32_t service = 1; service <= 4; service++) {
        for (int32_t s = 0; s < 5; s++) {
            hits[n++] = (struct hearth_series_hit){
                .series_id = service - 1 + 40 * (s + 1), .service_id = service, .n_types = 1};
        }
    }
    struct hand_plan hand;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_LATE, T0, T0 + 10, hits, n};
    hand.legs[1] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_10M, T0, T0 + 10 * HOUR, hits, n};
    hand.legs[2] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_1H, T0, T0 + 10 * HOUR, hits, n};
    hand.legs[3] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_1D, T0 - 2 * DAY, T0 + DAY, hits, n};
    hand.legs[4] = (struct hearth_read_leg){HEARTH_SOURCE_ROLL_1H, T0, T0 + 2 * HOUR, hits, 5};
    pg_cluster_run(url, "SELECT pg_stat_reset()");
    (void)finish_plan(store, &hand, 5);
    struct counter counter = {0};
    assert_ok(hearth_store_read(store, &hand.plan, NULL, count_row, &counter, &err));
    assert_int_equal(counter.n_rows, 20 * (10 + 10 + 10 + 3) + 5 * 2);
    struct hearth_leg_cost costs[5];
    assert_ok(hearth_store_read_cost(store, &hand.plan, NULL, costs, &err));
    assert_int_equal(costs[0].n_rows, 200);
    assert_int_equal(costs[3].n_rows, 60);
    assert_int_equal(costs[4].n_rows, 10);
    assert_true(costs[1].n_bytes > 200 * 200 && costs[1].n_bytes < 200 * 1000);
    hearth_arena_release(&hand.arena);
    close_store(store);
    (void)usleep(200000);
    pg_cluster_text(url,
                    "SELECT coalesce(string_agg(relname, ','), '') FROM pg_stat_user_tables"
                    " WHERE schemaname = 'hearth_data' AND seq_scan > 0 AND"
                    " relname ~ '^(roll_1|profile_late|profile_2|segment)'"
                    " AND n_live_tup + n_tup_ins > 0",
                    text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_gives_exactly_what_its_legs_name),
        cmocka_unit_test(days_without_a_leaf_are_empty),
        cmocka_unit_test(what_profile_still_holds_of_compacted_hours_does_not_come),
        cmocka_unit_test(deleted_profiles_do_not_come),
        cmocka_unit_test(a_plan_of_another_generation_is_aborted),
        cmocka_unit_test(packed_totals_give_each_profile_of_the_range),
        cmocka_unit_test(every_table_is_read_by_its_index_though_nobody_analyzed_it),
        cmocka_unit_test(new_leaves_are_read_by_their_index_and_other_days_not_at_all),
        cmocka_unit_test(totals_are_read_without_the_heap),
        cmocka_unit_test(a_cut_connection_fails_the_read_and_doubles_no_row),
        cmocka_unit_test(a_visitor_that_has_enough_ends_the_query),
        cmocka_unit_test(cancellation_and_deadlines_reach_postgres),
        cmocka_unit_test(a_row_without_the_column_is_corrupt),
        cmocka_unit_test(sixty_four_columns_are_one_statement),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
