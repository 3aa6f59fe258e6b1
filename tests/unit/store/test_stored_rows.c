/* test_stored_rows.c -- whole rows come out of tables and segments as they went in, in order. */
#include "hearth/base/mem.h"

#include "pg/pg.h"
#include "pg_cluster.h"
#include "read/stored_rows.h"
#include "session/partitions.h"
#include "store_fixture.h"

#include <inttypes.h>

#define HOUR    (HEARTH_NS_PER_DAY * 20000 + 5 * HEARTH_NS_PER_HOUR)
#define SERVICE 7

struct fixture {
    char url[256];
    struct hearth_store *store;
    struct hearth_pg pg;
    struct hearth_inflater *inflater;
    struct hearth_arena arena;
    struct hearth_stored_row *rows;
    size_t n_rows;
};

/* Rows of odd contents: by series and time, of n_series series. */
static void make_rows(struct fixture *fix, size_t n_series, size_t n_each)
{
    uint64_t rng = 3;
    fix->rows = synth_array(&fix->arena, n_series * n_each, sizeof *fix->rows);
    for (size_t i = 0; i < n_series * n_each; i++) {
        uint32_t n_types = 1 + synth_below(&rng, 3);
        int64_t *totals = synth_array(&fix->arena, n_types, sizeof *totals);
        struct hearth_str *vals = synth_array(&fix->arena, n_types, sizeof *vals);
        char *noise = synth_array(&fix->arena, 2000, 1);
        for (size_t j = 0; j < 2000; j++) {
            noise[j] = (char)synth_next(&rng);
        }
        for (uint32_t k = 0; k < n_types; k++) {
            totals[k] = (int64_t)(synth_next(&rng) >> 8);
            vals[k] = hearth_str_n(noise + 1000 * (k % 2), synth_below(&rng, 300));
        }
        fix->rows[fix->n_rows++] = (struct hearth_stored_row){
            .series_id = 1 + (int32_t)(i / n_each) * 3,
            .writer_id = 1 + (int32_t)synth_below(&rng, 2),
            .ts_ns = HOUR + (int64_t)(i % n_each) * (HEARTH_NS_PER_HOUR / (int64_t)n_each),
            .duration_ns = 10000000000,
            .period = (int64_t)synth_below(&rng, 3),
            .profile_no = (int64_t)i,
            .n_samples = synth_below(&rng, 1000),
            .n_types = n_types,
            .totals = totals,
            .ids = hearth_str_n(noise, synth_below(&rng, 1000)),
            .vals = vals,
            .attrs = i % 3 == 0 ? hearth_str_n(noise, i % 9) : hearth_str_n(NULL, 0),
        };
    }
}

static void open_fixture(struct fixture *fix, size_t n_series, size_t n_each)
{
    *fix = (struct fixture){.n_rows = 0};
    hearth_arena_init(&fix->arena, 0);
    fix->store = open_fresh(fix->url, NULL);
    fix->pg.url = test_secret(fix->url);
    fix->inflater = hearth_inflater_new();
    assert_ok(hearth_pg_connect(&fix->pg, CONNECT_MS, &err));
    assert_ok(hearth_partitions_ensure(fix->store, &fix->pg, HEARTH_LEAVES_ALL, 20000, &err));
    make_rows(fix, n_series, n_each);
    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.series (service_id, series_id, tenant_id, shape_id,"
        " fingerprint, pair_ids, version) OVERRIDING SYSTEM VALUE SELECT 7, 1 + 3 * i, 1,"
        " 1, gen_random_uuid(), '{}', 0 FROM generate_series(0, %zu) i",
        n_series - 1);
    pg_cluster_run(fix->url, sql);
}

static void close_fixture(struct fixture *fix)
{
    hearth_pg_close(&fix->pg);
    hearth_inflater_free(fix->inflater);
    hearth_arena_release(&fix->arena);
    store_close_soon(fix->store);
}

static void copy_rows(struct fixture *fix, int32_t service_id)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t i = fix->n_rows; i-- > 0;) { /* not in the order that they are to come in */
        hearth_copy_stored_row(&out, service_id, &fix->rows[i]);
    }
    assert_ok(hearth_pg_copy(&fix->pg,
                             "COPY hearth_data.profile (" HEARTH_PROFILE_COLUMNS
                             ") FROM STDIN (FORMAT binary)",
                             hearth_buf_view(&out), NULL, &err));
    hearth_buf_release(&out);
}

/* Every stride-th row from `first` on, as segments of this part. */
static void write_segments(struct fixture *fix, int64_t part, size_t first, size_t stride)
{
    struct hearth_stored_row *some = synth_array(&fix->arena, fix->n_rows, sizeof *some);
    size_t n = 0;
    for (size_t i = first; i < fix->n_rows; i += stride) {
        some[n++] = fix->rows[i];
    }
    assert_ok(hearth_segments_write(&fix->pg, SERVICE, part, some, n, &err));
}

struct comparison {
    const struct fixture *fix;
    int64_t from_ns, to_ns;
    size_t next;
};

static void assert_same_text(struct hearth_str a, struct hearth_str b)
{
    assert_int_equal(a.n, b.n);
    assert_true(a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static void skip_outside(struct comparison *c)
{
    while (c->next < c->fix->n_rows &&
           (c->fix->rows[c->next].ts_ns < c->from_ns || c->fix->rows[c->next].ts_ns >= c->to_ns)) {
        c->next++;
    }
}

static enum hearth_status compare(void *context, const struct hearth_stored_row *row,
                                  struct hearth_err *err)
{
    (void)err;
    struct comparison *c = context;
    skip_outside(c);
    assert_true(c->next < c->fix->n_rows);
    const struct hearth_stored_row *want = &c->fix->rows[c->next++];
    assert_int_equal(row->series_id, want->series_id);
    assert_int_equal(row->ts_ns, want->ts_ns);
    assert_int_equal(row->writer_id, want->writer_id);
    assert_int_equal(row->duration_ns, want->duration_ns);
    assert_int_equal(row->period, want->period);
    assert_int_equal(row->profile_no, want->profile_no);
    assert_int_equal(row->n_samples, want->n_samples);
    assert_int_equal(row->n_types, want->n_types);
    for (uint32_t k = 0; k < row->n_types; k++) {
        assert_int_equal(row->totals[k], want->totals[k]);
        assert_same_text(row->vals[k], want->vals[k]);
    }
    assert_same_text(row->ids, want->ids);
    assert_true((row->attrs.p == NULL) == (want->attrs.p == NULL));
    assert_same_text(row->attrs, want->attrs);
    return HEARTH_OK;
}

static void assert_read(struct fixture *fix, int64_t compacted_to_ns, int64_t from_ns,
                        int64_t to_ns)
{
    struct comparison c = {fix, from_ns, to_ns, 0};
    assert_ok(hearth_stored_rows_read(
        &fix->pg, fix->inflater,
        &(struct hearth_stored_range){SERVICE, compacted_to_ns, from_ns, to_ns}, compare, &c,
        &err));
    skip_outside(&c);
    assert_int_equal(c.next, fix->n_rows);
}

static void rows_of_the_table_are_sorted_by_series_and_time(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix, 20, 30);
    copy_rows(&fix, SERVICE);
    copy_rows(&fix, SERVICE + 1); /* another's do not come */
    assert_read(&fix, HOUR, HOUR, HOUR + HEARTH_NS_PER_HOUR);
    assert_read(&fix, HOUR, HOUR + HEARTH_NS_PER_HOUR / 6, HOUR + HEARTH_NS_PER_HOUR / 3);
    assert_read(&fix, HOUR, HOUR + 1, HOUR + 1);
    close_fixture(&fix);
}

static void rows_of_segments_of_several_parts_are_sorted_by_series_and_time(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix, 40, 60);
    write_segments(&fix, 3, 0, 4);
    write_segments(&fix, 9, 1, 4);
    write_segments(&fix, 12, 2, 4);
    write_segments(&fix, 13, 3, 4);
    copy_rows(&fix, SERVICE); /* what the table still holds of a compacted hour does not count */
    int64_t end_ns = HOUR + HEARTH_NS_PER_HOUR;
    assert_read(&fix, end_ns, HOUR, end_ns);
    assert_read(&fix, end_ns, HOUR + HEARTH_NS_PER_HOUR / 2, end_ns);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT sum(n_rows) FROM hearth_data.segment"), 2400);
    assert_true(
        pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.segment WHERE part = 12") > 1);
    assert_true(pg_cluster_int(fix.url, "SELECT max(n_bytes) FROM hearth_data.segment") <
                (long long)HEARTH_SEGMENT_BYTES);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(DISTINCT s) FROM hearth_data.segment,"
                                             " unnest(series_ids) s"),
                     40);
    close_fixture(&fix);
}

static void an_hour_without_rows_is_empty_and_a_damaged_segment_is_named(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix, 3, 10);
    int64_t end_ns = HOUR + HEARTH_NS_PER_HOUR;
    struct fixture none = fix;
    none.n_rows = 0;
    assert_read(&none, end_ns, HOUR, end_ns);
    assert_read(&none, HOUR, HOUR, end_ns);
    write_segments(&fix, 1, 0, 1);
    struct comparison c = {&fix, HOUR, end_ns, 0};
    struct hearth_err refusal = HEARTH_ERR_INIT;
    pg_cluster_run(fix.url, "UPDATE hearth_data.segment SET n_bytes = n_bytes - 1");
    assert_int_equal(
        hearth_stored_rows_read(&fix.pg, fix.inflater,
                                &(struct hearth_stored_range){SERVICE, end_ns, HOUR, end_ns},
                                compare, &c, &refusal),
        HEARTH_RESOURCE_EXHAUSTED);
    assert_ok(hearth_pg_connect(&fix.pg, CONNECT_MS, &err));
    pg_cluster_run(fix.url, "UPDATE hearth_data.segment SET n_bytes = -1");
    assert_int_equal(
        hearth_stored_rows_read(&fix.pg, fix.inflater,
                                &(struct hearth_stored_range){SERVICE, end_ns, HOUR, end_ns},
                                compare, &c, &refusal),
        HEARTH_CORRUPT);
    assert_int_equal(c.next, 0);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_table_are_sorted_by_series_and_time),
        cmocka_unit_test(rows_of_segments_of_several_parts_are_sorted_by_series_and_time),
        cmocka_unit_test(an_hour_without_rows_is_empty_and_a_damaged_segment_is_named),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
