/* Hours that the builder has compacted: late profiles join them, deletions leave them, and roll-ups
 * are the same whether they were added to or built again. */
#include "hearth/store/background.h"

#include "pg/store_state.h"
#include "read/stored_rows.h"
#include "step_fixture.h"

#define MAX_PARTS 8 /* roll_fold.c: a key with more is made one */

/* A day of 24 profiles, compacted, its leaf gone; and one profile of the next day. */
static void open_compacted(struct fixture *fix)
{
    open_fixture(fix);
    push_a_day(fix, the_day() * HEARTH_NS_PER_DAY);
    push(fix->store, 1, 1, (the_day() + 1) * HEARTH_NS_PER_DAY + HOUR);
    build(fix);
    compact_hours(fix);
    assert_int_equal(count(fix, "profile"), 1);
    assert_int_equal(pg_cluster_int(fix->url, "SELECT sum(n_rows) FROM hearth_data.segment"), 25);
}

/* Three pods in each of four hours; the leaf may have gone since the server looked last. */
static void push_late(struct fixture *fix, int round)
{
    for (int hour = 2; hour < 6; hour++) {
        for (int pod = 1; pod <= 3; pod++) {
            push(fix->store, 1, pod,
                 the_day() * HEARTH_NS_PER_DAY + hour * HOUR + (round * 4 + 3) * (HOUR / 60) + pod);
        }
    }
}

/* What all roll-ups of series say, however many parts they are in; but for one series. */
static void read_sums(const struct fixture *fix, int32_t but, char out[64])
{
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT count(*) || ' ' || md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM ("
        "SELECT 1, series_id s, t0, writer_id, sum(n_profiles), sum(totals[1]), sum(totals[2])"
        " FROM hearth_data.roll_10m GROUP BY 2, 3, 4 UNION ALL"
        " SELECT 2, series_id, t0, writer_id, sum(n_profiles), sum(totals[1]), sum(totals[2])"
        " FROM hearth_data.roll_1h GROUP BY 2, 3, 4 UNION ALL"
        " SELECT 3, series_id, t0, writer_id, sum(n_profiles), sum(totals[1]), sum(totals[2])"
        " FROM hearth_data.roll_1d GROUP BY 2, 3, 4 UNION ALL"
        " SELECT 4, series_id, t0, 0, sum(n_profiles), 0, 0 FROM hearth_data.hour_totals GROUP BY"
        " 2, 3) x WHERE %d = 0 OR (s > 0 AND s <> %d)",
        (int)but, (int)but);
    pg_cluster_text(fix->url, sql, out, 64);
}

static void late_profiles_join_as_segments_of_their_own(void **state)
{
    (void)state;
    struct fixture fix;
    open_compacted(&fix);
    for (int round = 0; round < MAX_PARTS + 2; round++) {
        push_late(&fix, round);
        fold_late(&fix);
    }
    int n = 24 + 12 * (MAX_PARTS + 2);
    assert_int_equal(count(&fix, "profile"), 1); /* where nobody would look for them */
    assert_int_equal(pg_cluster_int(fix.url, "SELECT sum(n_rows) FROM hearth_data.segment"), n + 1);
    char sql[192], folded[64], built[64];
    (void)snprintf(sql, sizeof sql,
                   "SELECT sum(n_profiles) FROM hearth_data.roll_1d WHERE series_id < 0 AND t0 ="
                   " %lld",
                   (long long)(the_day() * HEARTH_NS_PER_DAY));
    assert_int_equal(pg_cluster_int(fix.url, sql), n);
    assert_in_range(pg_cluster_int(fix.url, "SELECT max(n) FROM (SELECT count(*) n FROM"
                                            " hearth_data.roll_1d GROUP BY series_id, t0,"
                                            " writer_id) k"),
                    2, MAX_PARTS);
    read_sums(&fix, 0, folded);
    assert_ok(hearth_store_rebuild(fix.store, TENANT, 0, the_day() * HEARTH_NS_PER_DAY, &err));
    assert_int_equal(count(&fix, "roll_1d"), 0);
    build(&fix);
    read_sums(&fix, 0, built);
    assert_string_equal(folded, built);
    assert_int_equal(pg_cluster_int(fix.url, sql), n);
    close_fixture(&fix);
}

struct seen {
    size_t n, n_of_series;
    int32_t series_id;
};

static enum hearth_status see(void *context, const struct hearth_stored_row *row,
                              struct hearth_err *failure)
{
    (void)failure;
    struct seen *seen = context;
    seen->n++;
    seen->n_of_series += row->series_id == seen->series_id;
    return HEARTH_OK;
}

static struct seen read_hour(struct fixture *fix, struct hearth_series_ref ref, int hour)
{
    struct seen seen = {.series_id = ref.series_id};
    int64_t from_ns = the_day() * HEARTH_NS_PER_DAY + hour * HOUR;
    assert_ok(hearth_stored_rows_read(
        &fix->builder.pg, fix->builder.inflater,
        &(struct hearth_stored_range){ref.service_id, (the_day() + 1) * HEARTH_NS_PER_DAY, from_ns,
                                      from_ns + HOUR},
        see, &seen, &err));
    return seen;
}

/* Rows that compaction wrote, rows that were folded in, and one that waits to be. */
static void a_deletion_takes_rows_out_of_all_segments(void **state)
{
    (void)state;
    struct fixture fix;
    open_compacted(&fix);
    int64_t day_ns = the_day() * HEARTH_NS_PER_DAY;
    for (int round = 0; round < 3; round++) {
        push_late(&fix, round);
        fold_late(&fix);
    }
    struct hearth_series_ref ref = resolve_one(fix.store, TENANT, 1, 1, day_ns + 3 * HOUR);
    push(fix.store, 1, 1, day_ns + 3 * HOUR + HOUR / 2 + 99);
    assert_int_equal(count(&fix, "profile_late"), 1);
    assert_int_equal(read_hour(&fix, ref, 3).n_of_series, 5);
    char before[64], after[64];
    read_sums(&fix, ref.series_id, before);
    struct hearth_series_hit *hits = NULL;
    size_t n = select_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX, &fix.arena, &hits);
    int64_t id;
    const struct hearth_erase_request request = {.hits = hits,
                                                 .n_hits = n,
                                                 .from_ns = day_ns + 3 * HOUR,
                                                 .to_ns = day_ns + 4 * HOUR - 1,
                                                 .selector = HEARTH_STR("{pod=\"pod-1\"}"),
                                                 .requested_by = HEARTH_STR("test")};
    assert_ok(hearth_store_erase(fix.store, TENANT, &request, &id, &err));
    pg_cluster_run(fix.url, "UPDATE hearth_data.erasure SET requested_at = requested_at -"
                            " interval '2 minutes'");
    bool more = true;
    for (int i = 0; i < 1000 && more; i++) {
        assert_ok(hearth_step_erase(&fix.builder, &more, &err));
    }
    assert_false(more);
    assert_int_equal(count(&fix, "tombstone"), 0);
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NOT NULL AND n_rows = 6"), 1);
    struct seen seen = read_hour(&fix, ref, 3);
    assert_int_equal(seen.n, 10); /* of the other pods */
    assert_int_equal(seen.n_of_series, 0);
    assert_int_equal(read_hour(&fix, ref, 4).n_of_series, 5);
    build(&fix);
    read_sums(&fix, ref.series_id, after);
    assert_string_equal(before, after);
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT sum(n_profiles) FROM hearth_data.roll_1d WHERE t0 = %lld AND series_id"
                   " IN (%d, (SELECT -shape_id FROM hearth_data.series WHERE series_id = %d))",
                   (long long)day_ns, (int)ref.series_id, (int)ref.series_id);
    assert_int_equal(pg_cluster_int(fix.url, sql), 15 + 55);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_profiles_join_as_segments_of_their_own),
        cmocka_unit_test(a_deletion_takes_rows_out_of_all_segments),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
