/* A deletion: hidden and out of the catalogue at once, in all servers; physically gone when the
 * builder's step has run; and what is deleted may come back under another id. */
#include "hearth/store/background.h"

#include "build/roll.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "read/stored_rows.h"
#include "session/partitions.h"
#include "step_fixture.h"
#include "store_scope.h"

static int64_t erase(struct fixture *fix, const char *selector, int64_t from_ns, int64_t to_ns)
{
    struct hearth_series_hit *hits = NULL;
    int64_t id = 0;
    size_t n = select_hits(fix->store, TENANT, selector, from_ns, to_ns, &fix->arena, &hits);
    assert_true(n > 0);
    const struct hearth_erase_request request = {
        hits, n, from_ns, to_ns, hearth_str_c(selector), HEARTH_STR("test")};
    assert_ok(hearth_store_erase(fix->store, TENANT, &request, &id, &err));
    return id;
}

static void run_step(struct fixture *fix)
{
    bool more = true;
    for (int i = 0; i < 1000 && more; i++) {
        assert_ok(hearth_step_erase(&fix->builder, &more, &err));
    }
    assert_false(more);
}

static void let_two_minutes_pass(const struct fixture *fix)
{
    pg_cluster_run(fix->url, "UPDATE hearth_data.erasure SET requested_at = requested_at -"
                             " interval '2 minutes'");
}

/* ---- tests ---- */

static void deleted_series_leave_the_catalogue_of_all_servers_at_once(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 2, T0);
    push(fix.store, 2, 4, T0);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    int64_t id = erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    assert_true(id > 0);
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 0);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 0);
    assert_int_equal(count_hits(other, TENANT, "{}", 0, INT64_MAX), 4);
    assert_int_equal(count(&fix, "label_pair WHERE value = 'pod-1'"), 0);
    assert_int_equal(count(&fix, "label_pair WHERE value = 'pod-2'"), 1);
    /* The only series of its region, and the only one of its service. */
    assert_int_equal(count(&fix, "label_pair WHERE value = 'r-2'"), 1);
    (void)erase(&fix, "{service_name=\"svc-2\"}", 0, INT64_MAX);
    assert_int_equal(count(&fix, "service WHERE name = 'svc-2'"), 0);
    assert_int_equal(count(&fix, "shape"), 1); /* svc-1 still has it */
    assert_int_equal(count(&fix, "tombstone"), 2);
    assert_int_equal(count(&fix, "roll_state WHERE generation > 0"), 2);
    close_store(other);
    close_fixture(&fix);
}

static void a_series_with_hours_outside_the_range_stays(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    for (int hour = 0; hour < 4; hour++) {
        push(fix.store, 1, 1, T0 + hour * HOUR + 5);
    }
    /* Two whole hours, and half of the next. */
    (void)erase(&fix, "{}", T0 + HOUR, T0 + 3 * HOUR + HOUR / 2);
    assert_int_equal(count_hits(fix.store, TENANT, "{}", T0, T0 + HOUR - 1), 2);
    assert_int_equal(count_hits(fix.store, TENANT, "{}", T0 + HOUR, T0 + 3 * HOUR - 1), 0);
    assert_int_equal(count_hits(fix.store, TENANT, "{}", T0 + 3 * HOUR, T0 + 4 * HOUR), 2);
    assert_int_equal(count(&fix, "series_hour"), 2);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 1); /* the one of the last hour is before its middle */
    assert_int_equal(count(&fix, "tombstone"), 0);
    close_fixture(&fix);
}

static void nothing_is_removed_before_two_minutes_have_passed(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 2, T0);
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 2);
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NULL"), 1);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 1);
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NOT NULL AND n_rows = 1"), 1);
    struct hearth_erasure *erasures = NULL;
    size_t n = 0;
    assert_ok(hearth_store_erasures(fix.store, TENANT, &fix.arena, &erasures, &n, &err));
    assert_int_equal(n, 1);
    assert_true(hearth_str_eq_c(erasures[0].selector, "{pod=\"pod-1\"}"));
    assert_true(hearth_str_eq_c(erasures[0].requested_by, "test"));
    assert_int_equal(erasures[0].n_rows, 1);
    assert_int_equal(erasures[0].n_series, 1);
    assert_true(erasures[0].done_at_ns >= erasures[0].requested_at_ns);
    close_fixture(&fix);
}

/* A server that has not noticed yet: known hours cost it no transaction, new hours do. */
static void a_deleted_series_gets_another_id_when_it_is_pushed_again(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    struct hearth_series_ref before = resolve_one(other, TENANT, 1, 1, T0);
    push(other, 1, 1, T0);
    push(other, 1, 2, T0);
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    /* `other` was not asked anything since: it finds out by the clock row. */
    struct hearth_series_ref after = resolve_one(other, TENANT, 1, 1, T0 + HOUR);
    assert_int_not_equal(before.series_id, after.series_id);
    push(other, 1, 1, T0 + HOUR);
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    /* The refresh has cleared what it believed of the first hour, too. */
    struct hearth_series_ref again = resolve_one(other, TENANT, 1, 1, T0);
    assert_int_equal(again.series_id, after.series_id);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count_hits(other, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    assert_int_equal(count(&fix, "profile"), 2);
    close_store(other);
    close_fixture(&fix);
}

/* Whatever a stale server pushes under an id that is gone is removed with the rest. */
static void profiles_that_a_stale_server_pushes_into_the_range_are_deleted_too(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *other = open_without_builder(fix.url);
    push(other, 1, 1, T0);
    push(other, 1, 2, T0);
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    push(other, 1, 1, T0 + 1); /* a known series in a known hour: from memory */
    assert_int_equal(count(&fix, "profile p WHERE NOT EXISTS (SELECT FROM hearth_data.series s"
                                 " WHERE s.series_id = p.series_id)"),
                     2);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile p WHERE NOT EXISTS (SELECT FROM hearth_data.series s"
                                 " WHERE s.series_id = p.series_id)"),
                     0);
    assert_int_equal(count(&fix, "profile"), 1);
    close_store(other);
    close_fixture(&fix);
}

/* The label's text is not in the files of the catalogue any more, deleted rows included. */
static void a_leaked_label_value_is_not_in_the_files_any_more(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 77123, T0);
    char sql[512], command[768], data[320];
    pg_cluster_run(fix.url, "CHECKPOINT");
    (void)snprintf(
        sql, sizeof sql,
        "SELECT string_agg(current_setting('data_directory') || '/' ||"
        " pg_relation_filepath(oid), ' ') FROM pg_class WHERE relnamespace ="
        " 'hearth_data'::regnamespace AND relname IN ('label_pair', 'series', 'service')");
    pg_cluster_text(fix.url, sql, data, sizeof data);
    (void)snprintf(command, sizeof command, "grep -q -a pod-77123 %s", data);
    assert_int_equal(system(command), 0);
    (void)erase(&fix, "{pod=\"pod-77123\"}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    pg_cluster_run(fix.url, "CHECKPOINT");
    pg_cluster_text(fix.url, sql, data, sizeof data);
    (void)snprintf(command, sizeof command, "grep -q -a pod-77123 %s", data);
    assert_int_not_equal(system(command), 0);
    assert_int_equal(count_hits(fix.store, TENANT, "{pod=\"pod-1\"}", 0, INT64_MAX), 2);
    close_fixture(&fix);
}

static void symbols_of_a_service_without_profiles_are_deleted(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 2, 1, T0);
    (void)erase(&fix, "{service_name=\"svc-1\"}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "dict_chunk d WHERE NOT EXISTS (SELECT FROM hearth_data.service s"
                                 " WHERE s.service_id = d.service_id)"),
                     0);
    assert_true(count(&fix, "dict_chunk") > 0);
    assert_int_equal(count(&fix, "roll_state"), 0);
    assert_int_equal(count(&fix, "profile"), 1);
    close_fixture(&fix);
}

static void symbols_stay_if_a_series_appears_while_they_are_deleted(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    int64_t n_chunks = count(&fix, "dict_chunk");
    (void)erase(&fix, "{service_name=\"svc-1\"}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);

    /* The series appears after the step has found none. */
    pg_cluster_run(fix.url,
                   "CREATE FUNCTION come() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO"
                   " hearth_data.series (tenant_id, service_id, fingerprint, shape_id, pair_ids,"
                   " version) SELECT DISTINCT 1, service_id, gen_random_uuid(), 1, '{1}'::int4[], 0"
                   " FROM hearth_data.dict_chunk; RETURN NULL; END $$;"
                   "CREATE TRIGGER come BEFORE DELETE ON hearth_data.dict_chunk"
                   " EXECUTE FUNCTION come()");
    run_step(&fix);
    assert_true(n_chunks > 0);
    assert_int_equal(count(&fix, "dict_chunk"), n_chunks);
    assert_int_equal(count(&fix, "roll_state"), 1);
    assert_int_equal(count(&fix, "tombstone"), 0);
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NOT NULL"), 1);
    close_fixture(&fix);
}

static void late_rows_are_deleted_even_if_the_server_restarts_in_between(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    push(fix.store, 1, 2, T0);
    pg_cluster_run(fix.url, "INSERT INTO hearth_data.profile_late SELECT * FROM"
                            " hearth_data.profile");
    (void)erase(&fix, "{pod=\"pod-1\"}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    /* As after a restart: somebody did a part, and the progress is forgotten. */
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.profile p USING hearth_data.tombstone t WHERE"
                            " p.series_id = ANY (t.series_ids)");
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 1);
    assert_int_equal(count(&fix, "profile_late"), 1);
    run_step(&fix);
    close_fixture(&fix);
}

static void only_the_holder_of_the_lease_removes(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    (void)erase(&fix, "{}", 0, INT64_MAX);
    let_two_minutes_pass(&fix);
    pg_cluster_run(fix.url, "UPDATE hearth_data.lease SET token = 8");
    bool more = false;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_step_erase(&fix.builder, &more, &err), HEARTH_FAILED_PRECONDITION);
    assert_int_equal(count(&fix, "profile"), 1);
    close_fixture(&fix);
}

/* ---- compacted hours ---- */

/* What compaction does to the hour of T0, as far as a reader can tell. */
static void compact_by_hand(struct fixture *fix)
{
    PGresult *rows = NULL;
    assert_ok(hearth_pg_exec(&fix->builder.pg,
                             "SELECT " HEARTH_PROFILE_COLUMNS " FROM hearth_data.profile"
                             " ORDER BY series_id, ts",
                             NULL, NULL, &rows, NULL, &err));
    size_t n = (size_t)PQntuples(rows);
    int32_t service_id = 0;
    struct hearth_stored_row *stored = hearth_arena_array(&fix->arena, n, sizeof *stored);
    for (size_t i = 0; i < n; i++) {
        assert_ok(hearth_stored_row_take(rows, (int)i, &fix->arena, &service_id, &stored[i], &err));
    }
    assert_ok(hearth_partitions_ensure(fix->store, &fix->builder.pg, HEARTH_LEAF_SEGMENT,
                                       hearth_day_of(T0), &err));

    /* Two segments of one hour. */
    for (int64_t part = 1; part <= 2; part++) {
        size_t from = part == 1 ? 0 : n / 2, to = part == 1 ? n / 2 : n;
        assert_ok(hearth_segments_write(&fix->builder.pg, service_id, part, stored + from,
                                        to - from, &err));
    }
    PQclear(rows);
    char sql[256];
    (void)snprintf(
        sql, sizeof sql, "INSERT INTO hearth_data.roll_state VALUES (%d, %lld, %lld, %lld, 2)",
        (int)service_id, (long long)(T0 + HOUR), (long long)(T0 - HOUR), (long long)(T0 + HOUR));
    pg_cluster_run(fix->url, sql);
}

struct segment_count {
    size_t n_rows, n_in_range;
    int32_t series_id;
};

static enum hearth_status count_segment_row(void *context, const struct hearth_stored_row *row,
                                            struct hearth_err *err)
{
    (void)err;
    struct segment_count *counted = context;
    counted->n_rows++;
    counted->n_in_range +=
        row->series_id == counted->series_id && row->ts_ns >= T0 + 20 && row->ts_ns <= T0 + 39;
    return HEARTH_OK;
}

static void segments_are_written_again_without_the_rows(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    for (int i = 0; i < 60; i++) {
        push(fix.store, 1, 1 + i % 3, T0 + i);
    }
    struct hearth_series_ref ref = resolve_one(fix.store, TENANT, 1, 1, T0);
    compact_by_hand(&fix);
    struct segment_count counted = {.series_id = ref.series_id};
    assert_ok(hearth_stored_rows_read(
        &fix.builder.pg, fix.builder.inflater,
        &(struct hearth_stored_range){ref.service_id, T0 + HOUR, T0, T0 + HOUR}, count_segment_row,
        &counted, &err));
    assert_int_equal(counted.n_rows, 60);
    assert_int_equal(counted.n_in_range, 7);
    (void)erase(&fix, "{pod=\"pod-1\"}", T0 + 20, T0 + 39);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    counted = (struct segment_count){.series_id = ref.series_id};
    assert_ok(hearth_stored_rows_read(
        &fix.builder.pg, fix.builder.inflater,
        &(struct hearth_stored_range){ref.service_id, T0 + HOUR, T0, T0 + HOUR}, count_segment_row,
        &counted, &err));
    assert_int_equal(counted.n_rows, 53);
    assert_int_equal(counted.n_in_range, 0);
    /* The leftovers in `profile` are gone too, and are not counted twice. */
    assert_int_equal(count(&fix, "profile"), 53);
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NOT NULL AND n_rows = 7"), 1);
    close_fixture(&fix);
}

/* The step fails while segments are written again, and is repeated: no row comes back. */
static void a_failure_in_between_leaves_no_row_in_segments(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    for (int i = 0; i < 60; i++) {
        push(fix.store, 1, 1 + i % 3, T0 + i);
    }
    struct hearth_series_ref ref = resolve_one(fix.store, TENANT, 1, 1, T0);
    compact_by_hand(&fix);
    (void)erase(&fix, "{pod=\"pod-1\"}", T0 + 20, T0 + 39);
    let_two_minutes_pass(&fix);

    pg_cluster_run(fix.url, "CREATE FUNCTION hearth_data.refuse() RETURNS trigger LANGUAGE plpgsql"
                            " AS $$BEGIN RAISE 'refused'; END$$");
    pg_cluster_run(fix.url, "CREATE TRIGGER refuse BEFORE DELETE ON hearth_data.segment"
                            " FOR EACH ROW EXECUTE FUNCTION hearth_data.refuse()");
    bool more = false;
    struct hearth_err refused = HEARTH_ERR_INIT;
    assert_int_not_equal(hearth_step_erase(&fix.builder, &more, &refused), HEARTH_OK);
    assert_int_equal(count(&fix, "tombstone"), 1);

    pg_cluster_run(fix.url, "DROP TRIGGER refuse ON hearth_data.segment");
    run_step(&fix);
    struct segment_count counted = {.series_id = ref.series_id};
    const struct hearth_stored_range range = {ref.service_id, T0 + HOUR, T0, T0 + HOUR};
    assert_ok(hearth_stored_rows_read(&fix.builder.pg, fix.builder.inflater, &range,
                                      count_segment_row, &counted, &err));
    assert_int_equal(counted.n_in_range, 0);
    assert_int_equal(counted.n_rows, 53);
    assert_int_equal(count(&fix, "tombstone"), 0);
    close_fixture(&fix);
}

/* ---- roll-ups ---- */

/* Blocks of the whole service that are not the sum of those of its series. */
static long long wrong_sums(const struct fixture *fix)
{
    long long n = 0;
    static const char *const tables[] = {"roll_10m", "roll_1h", "roll_1d"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tables); i++) {
        char what[512];
        (void)snprintf(what, sizeof what,
                       "(SELECT sum(totals[1] * sign(series_id)) a, sum(totals[2] *"
                       " sign(series_id)) b, sum(n_profiles * sign(series_id)) c FROM"
                       " hearth_data.%s GROUP BY service_id, t0, writer_id) x WHERE a <> 0 OR"
                       " b <> 0 OR c <> 0",
                       tables[i]);
        char sql[640];
        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", what);
        n += pg_cluster_int(fix->url, sql);
    }
    return n;
}

static void blocks_are_built_again_from_the_profiles_that_are_left(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t day_ns = the_day() * HEARTH_NS_PER_DAY;
    push_a_day(&fix, day_ns);
    build(&fix);
    assert_int_equal(count(&fix, "roll_1d"), 4);
    assert_int_equal(count(&fix, "hour_totals"), 12);
    struct hearth_series_ref ref = resolve_one(fix.store, TENANT, 1, 1, day_ns + 2 * HOUR);
    (void)erase(&fix, "{pod=\"pod-1\"}", day_ns + 3 * HOUR, day_ns + 4 * HOUR - 1);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "roll_1d"), 0); /* to be built again */
    build(&fix);
    assert_int_equal(count(&fix, "roll_1d"), 4);
    assert_int_equal(count(&fix, "profile"), 22);
    assert_int_equal(wrong_sums(&fix), 0);
    char what[128];
    (void)snprintf(what, sizeof what, "roll_1h WHERE series_id = %d", (int)ref.series_id);
    assert_int_equal(count(&fix, what), 3);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT sum(n_profiles) FROM hearth_data.roll_1d WHERE"
                                             " series_id < 0"),
                     22);
    close_fixture(&fix);
}

static void blocks_without_profiles_are_summed_again_from_the_other_series(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t day = the_day();
    push_a_day(&fix, day * HEARTH_NS_PER_DAY);
    push(fix.store, 1, 1, (day + 1) * HEARTH_NS_PER_DAY);
    build(&fix);
    assert_int_equal(count(&fix, "roll_1d"), 6);
    assert_int_equal(count(&fix, "roll_1h"), 18);
    assert_ok(hearth_partitions_drop(fix.store, &fix.builder.pg, "profile", day, &err));
    assert_ok(hearth_partitions_drop(fix.store, &fix.builder.pg, "segment", day, &err));
    struct hearth_series_ref ref =
        resolve_one(fix.store, TENANT, 1, 1, day * HEARTH_NS_PER_DAY + 2 * HOUR);
    /* An hour of the day: its block of the day goes whole. */
    (void)erase(&fix, "{pod=\"pod-1\"}", day * HEARTH_NS_PER_DAY + 3 * HOUR,
                day * HEARTH_NS_PER_DAY + 4 * HOUR - 1);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(wrong_sums(&fix), 0);
    char what[160];
    (void)snprintf(what, sizeof what, "roll_1d WHERE series_id = %d AND t0 = %lld",
                   (int)ref.series_id, (long long)(day * HEARTH_NS_PER_DAY));
    assert_int_equal(count(&fix, what), 0);
    (void)snprintf(what, sizeof what, "roll_1h WHERE series_id = %d AND t0 < %lld",
                   (int)ref.series_id, (long long)((day + 1) * HEARTH_NS_PER_DAY));
    assert_int_equal(count(&fix, what), 3);
    (void)snprintf(what, sizeof what, "hour_totals WHERE series_id = %d AND t0 < %lld",
                   (int)ref.series_id, (long long)((day + 1) * HEARTH_NS_PER_DAY));
    assert_int_equal(count(&fix, what), 3);
    /* The others' blocks, and those of the whole service, are there: 2 pods x 8 profiles. */
    (void)snprintf(what, sizeof what,
                   "SELECT sum(n_profiles) FROM hearth_data.roll_1d WHERE series_id < 0 AND t0 ="
                   " %lld",
                   (long long)(day * HEARTH_NS_PER_DAY));
    assert_int_equal(pg_cluster_int(fix.url, what), 16);
    assert_int_equal(count(&fix, "profile"), 1);
    close_fixture(&fix);
}

/* Blocks of series may be left out (docs/decisions/0046-sparse-data.md). */
static void sums_that_cannot_be_rebuilt_without_a_series_are_deleted(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    fix.store->options.rollup_min_profiles = 8;
    int32_t day = the_day();
    int64_t two_ns = day * HEARTH_NS_PER_DAY + 2 * HOUR;
    for (int pod = 1; pod <= 10; pod++) {
        for (int i = 0; i < 7; i++) {
            push(fix.store, 1, pod, two_ns + i);
        }
    }
    push(fix.store, 1, 1, (day + 1) * HEARTH_NS_PER_DAY);
    build(&fix);
    assert_int_equal(count(&fix, "roll_10m WHERE series_id > 0"), 0);
    assert_int_equal(count(&fix, "roll_10m WHERE n_profiles = 70"), 1);
    assert_ok(hearth_partitions_drop(fix.store, &fix.builder.pg, "profile", day, &err));
    assert_ok(hearth_partitions_drop(fix.store, &fix.builder.pg, "segment", day, &err));
    (void)erase(&fix, "{pod=\"pod-1\"}", two_ns, two_ns + HOUR - 1);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "roll_10m WHERE n_profiles > 1"), 0);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id < 0 AND n_profiles = 63"), 1);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0 AND n_profiles = 7"), 9);
    assert_int_equal(count(&fix, "tombstone"), 0);
    close_fixture(&fix);
}

/* Hours of series are absent, so that their profiles stay (docs/decisions/0059-sparse-hours.md). */
static void a_day_that_waits_past_its_retention_is_built_again(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    fix.store->options.rollup_min_profiles_1h = 20;
    int32_t day = the_day();
    int64_t two_ns = day * HEARTH_NS_PER_DAY + 2 * HOUR;
    for (int pod = 1; pod <= 10; pod++) {
        for (int i = 0; i < 7; i++) {
            push(fix.store, 1, pod, two_ns + i);
        }
    }
    build(&fix);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id > 0"), 0);
    assert_int_equal(count(&fix, "roll_1h WHERE n_profiles = 70"), 1);
    fix.store->options.retain_raw_ns = HEARTH_NS_PER_DAY;
    (void)erase(&fix, "{pod=\"pod-1\"}", two_ns, two_ns + HOUR - 1);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "profile"), 63);
    assert_int_equal(count(&fix, "tombstone"), 0);
    build(&fix);
    assert_int_equal(count(&fix, "roll_1h WHERE series_id < 0 AND n_profiles = 63"), 1);
    assert_int_equal(count(&fix, "roll_1d WHERE series_id < 0 AND n_profiles = 63"), 1);
    close_fixture(&fix);
}

struct summed {
    long long n, sum;
};

static enum hearth_status add_total(void *context, const struct hearth_read_total *total,
                                    struct hearth_err *err)
{
    struct summed *summed = context;
    (void)err;
    summed->n++;
    summed->sum += total->total;
    return HEARTH_OK;
}

/* Packed totals of a service. */
static struct summed sum_totals(struct fixture *fix, const char *selector, int64_t from_ns,
                                int64_t to_ns)
{
    struct hearth_series_hit *hits = NULL;
    struct summed summed = {0, 0};
    struct hearth_read_state read;
    size_t n = select_hits(fix->store, TENANT, selector, from_ns, to_ns, &fix->arena, &hits);
    struct hearth_read_leg leg = {HEARTH_SOURCE_TOTALS, from_ns, to_ns, hits, n};
    const struct hearth_scope *scope = STORE_SCOPE(fix->store, TENANT, &fix->arena);
    assert_true(n > 0);
    assert_ok(hearth_store_read_state(scope, &hits[0].service_id, 1, &read, &err));
    const struct hearth_read_plan plan = {.legs = &leg, .n_legs = 1, .state = &read};
    assert_ok(hearth_store_read_totals(scope, &plan, add_total, &summed, &err));
    return summed;
}

/* Series share rows of totals, of which the others stay (build/roll_totals.c). */
static void totals_of_other_series_in_a_shared_row_are_kept(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    fix.store->options.rollup_min_profiles_1h = 40;
    fix.store->options.retain_raw_ns = 1; /* no hours are left out */
    int32_t day = the_day();
    int64_t two_ns = day * HEARTH_NS_PER_DAY + 2 * HOUR, four_ns = two_ns + 2 * HOUR;
    for (int pod = 1; pod <= 4; pod++) { /* an hour with one profile each, and two with two */
        for (int i = 0; i < 5; i++) {
            push(fix.store, 1, pod, two_ns + (i + 1) / 2 * HOUR + i + pod);
        }
    }
    push(fix.store, 1, 1, (day + 1) * HEARTH_NS_PER_DAY);
    build(&fix);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND vals[1] = ''"), 1);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 8"), 2);
    assert_ok(hearth_partitions_drop(fix.store, &fix.builder.pg, "profile", day, &err));
    assert_ok(hearth_partitions_drop(fix.store, &fix.builder.pg, "segment", day, &err));
    const char *others = "{pod!=\"pod-2\"}";
    struct summed before = sum_totals(&fix, others, two_ns, four_ns + HOUR);
    assert_int_equal(before.n, 2 * 15); /* of each type */
    (void)erase(&fix, "{pod=\"pod-2\"}", two_ns, four_ns - 1);
    let_two_minutes_pass(&fix);
    run_step(&fix);
    assert_int_equal(count(&fix, "tombstone"), 0);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 3"), 1);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 6"), 1);
    assert_int_equal(count(&fix, "hour_totals WHERE series_id = 0 AND n_profiles = 8"), 1);
    struct summed after = sum_totals(&fix, others, two_ns, four_ns + HOUR);
    assert_int_equal(after.n, before.n);
    assert_int_equal(after.sum, before.sum);
    close_fixture(&fix);
}

static void an_invalid_range_or_tenant_is_refused(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    push(fix.store, 1, 1, T0);
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t id = 0;
    struct hearth_erase_request request = {NULL, 0, 5, 4, HEARTH_STR("{}"), HEARTH_STR("test")};
    assert_int_equal(hearth_store_erase(fix.store, TENANT, &request, &id, &err),
                     HEARTH_INVALID_ARGUMENT);
    request.from_ns = 0;
    assert_int_equal(hearth_store_erase(fix.store, HEARTH_STR("nobody"), &request, &id, &err),
                     HEARTH_NOT_FOUND);
    assert_ok(hearth_store_erase(fix.store, TENANT, &request, &id, &err));
    assert_int_equal(count(&fix, "erasure WHERE done_at IS NOT NULL"), 1);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deleted_series_leave_the_catalogue_of_all_servers_at_once),
        cmocka_unit_test(a_series_with_hours_outside_the_range_stays),
        cmocka_unit_test(nothing_is_removed_before_two_minutes_have_passed),
        cmocka_unit_test(a_deleted_series_gets_another_id_when_it_is_pushed_again),
        cmocka_unit_test(profiles_that_a_stale_server_pushes_into_the_range_are_deleted_too),
        cmocka_unit_test(a_leaked_label_value_is_not_in_the_files_any_more),
        cmocka_unit_test(symbols_of_a_service_without_profiles_are_deleted),
        cmocka_unit_test(symbols_stay_if_a_series_appears_while_they_are_deleted),
        cmocka_unit_test(late_rows_are_deleted_even_if_the_server_restarts_in_between),
        cmocka_unit_test(only_the_holder_of_the_lease_removes),
        cmocka_unit_test(segments_are_written_again_without_the_rows),
        cmocka_unit_test(a_failure_in_between_leaves_no_row_in_segments),
        cmocka_unit_test(blocks_are_built_again_from_the_profiles_that_are_left),
        cmocka_unit_test(blocks_without_profiles_are_summed_again_from_the_other_series),
        cmocka_unit_test(sums_that_cannot_be_rebuilt_without_a_series_are_deleted),
        cmocka_unit_test(a_day_that_waits_past_its_retention_is_built_again),
        cmocka_unit_test(totals_of_other_series_in_a_shared_row_are_kept),
        cmocka_unit_test(an_invalid_range_or_tenant_is_refused),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
