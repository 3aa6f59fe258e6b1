/* test_compact.c -- compaction changes where profiles lie, and nothing else, wherever it is cut off. */
#include "hearth/base/mem.h"

#include "build/builder.h"
#include "build/roll.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "pg_cluster.h"
#include "pg_proxy.h"
#include "read/stored_rows.h"
#include "rounds.h"
#include "session/partitions.h"
#include "store_fixture.h"
#include "store_scope.h"

#include <inttypes.h>

#define DAY   20000 /* 2024-10-04 */
#define START (DAY * HEARTH_NS_PER_DAY)
#define NOW   (START + 60 * HEARTH_NS_PER_HOUR)
#define HOURS 3 /* that have profiles: 4, 5 and 7 o'clock */

static const int64_t g_hours[HOURS] = {
    START + 4 * HEARTH_NS_PER_HOUR, START + 5 * HEARTH_NS_PER_HOUR, START + 7 * HEARTH_NS_PER_HOUR};

/* Group set-up: the clock stands at NOW. */
static int start_cluster_now(void **state)
{
    hearth_clock_fake(NOW);
    return start_cluster(state);
}

struct fixture {
    char url[256], builder_url[256];
    struct hearth_store *store;
    struct hearth_builder builder;
    uint64_t rng;
};

static void open_fixture(struct fixture *fix)
{
    *fix = (struct fixture){.rng = 17};
    pg_cluster_database(&g_cluster, fix->url);
    (void)snprintf(fix->builder_url, sizeof fix->builder_url, "%s", fix->url);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.retain_raw_ns = 0;
    fix->store = open_ready(fix->url, &options);
    fix->builder = (struct hearth_builder){
        .store = fix->store,
        .pg = {.url = test_secret(fix->builder_url)},
        .inflater = hearth_inflater_new(),
        .packer = hearth_packer_new(1),
    };
    assert_ok(hearth_pg_connect(&fix->builder.pg, CONNECT_MS, &err));
    assert_ok(hearth_partitions_ensure(fix->store, &fix->builder.pg, HEARTH_LEAVES_ALL, DAY, &err));
    pg_cluster_run(fix->url, "INSERT INTO hearth_data.tenant (tenant_id, name, version) OVERRIDING"
                             " SYSTEM VALUE VALUES (100, 'anonymous', 0)");
}

static void close_fixture(struct fixture *fix)
{
    hearth_pg_close(&fix->builder.pg);
    hearth_inflater_free(fix->builder.inflater);
    hearth_packer_free(fix->builder.packer);
    store_close_soon(fix->store);
}

static void run(const struct fixture *fix, const char *fmt, ...) HEARTH_PRINTF(2, 3);
static void run(const struct fixture *fix, const char *fmt, ...)
{
    char sql[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(sql, sizeof sql, fmt, args);
    va_end(args);
    pg_cluster_run(fix->url, sql);
}

/* A service with n_series series; its series ids begin at 100 * service. */
static void add_service(const struct fixture *fix, int32_t service, size_t n_series)
{
    run(fix,
        "INSERT INTO hearth_data.service (service_id, tenant_id, fingerprint, name, version)"
        " OVERRIDING SYSTEM VALUE VALUES (%d, 100, gen_random_uuid(), 's%d', 0)",
        service, service);
    run(fix,
        "INSERT INTO hearth_data.series (service_id, series_id, tenant_id, shape_id, fingerprint,"
        " pair_ids, version) OVERRIDING SYSTEM VALUE SELECT %d, 100 * %d + i, 100, 1,"
        " gen_random_uuid(), '{}', 0 FROM generate_series(0, %zu - 1) i",
        service, service, n_series);
}

static void built(const struct fixture *fix, int32_t service, int64_t built_to_ns)
{
    run(fix,
        "INSERT INTO hearth_data.roll_state (service_id, watermark, built_to, compacted_to,"
        " generation) VALUES (%d, %" PRId64 ", %" PRId64 ", %" PRId64 ", 5)",
        service, built_to_ns, built_to_ns, HEARTH_NEVER_NS);
}

/* A profile as they are: a few hundred stack traces, two value columns, the second a multiple. */
static void put_row(struct fixture *fix, struct hearth_buf *out, struct hearth_arena *arena,
                    int32_t service, int32_t series, int64_t ts_ns, uint32_t n)
{
    uint32_t *ids = synth_array(arena, n, sizeof *ids), id = 0;
    int64_t *values = synth_array(arena, 2 * n, sizeof *values);
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = id;
        id += 1 + synth_below(&fix->rng, 1 + i / 8);
        values[2 * i] = synth_below(&fix->rng, 4) > 0 ? 1 : 1 + synth_below(&fix->rng, 40);
        values[2 * i + 1] = values[2 * i] * 10000000;
    }
    struct hearth_columns c;
    assert_ok(hearth_columns_encode(ids, values, n, 2, arena, &c, &err));
    struct hearth_stored_row row = {
        .series_id = series,
        .writer_id = 1 + (int32_t)synth_below(&fix->rng, 2),
        .ts_ns = ts_ns,
        .duration_ns = 10000000000,
        .period = 10000000,
        .profile_no = (int64_t)(synth_next(&fix->rng) >> 40),
        .n_samples = n,
        .n_types = 2,
        .totals = c.totals,
        .ids = c.ids,
        .vals = c.vals,
        .attrs = synth_below(&fix->rng, 3) == 0 ? HEARTH_STR("span") : hearth_str_n(NULL, 0),
    };
    hearth_copy_stored_row(out, service, &row);
}

static void add_hour(struct fixture *fix, int32_t service, int64_t hour_ns, int n_series,
                     int n_each, uint32_t n)
{
    struct hearth_buf out;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    for (int i = n_each; i-- > 0;) {
        for (int s = 0; s < n_series; s++) {
            put_row(fix, &out, &arena, service, 100 * service + s,
                    hour_ns + i * (HEARTH_NS_PER_HOUR / n_each) + s, n);
            hearth_arena_reset(&arena);
        }
        if (out.n > (8u << 20) || i == 0) {
            assert_ok(hearth_pg_copy(&fix->builder.pg,
                                     "COPY hearth_data.profile (" HEARTH_PROFILE_COLUMNS
                                     ") FROM STDIN (FORMAT binary)",
                                     hearth_buf_view(&out), NULL, &err));
            hearth_buf_reset(&out);
        }
    }
    run(fix,
        "INSERT INTO hearth_data.series_hour (service_id, hour, series_id, tenant_id, version)"
        " SELECT %d, %" PRId64 ", 100 * %d + i, 100, 0 FROM generate_series(0, %d) i",
        service, hour_ns / HEARTH_NS_PER_HOUR, service, n_series - 1);
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

static long long state_of(const struct fixture *fix, int32_t service, const char *column)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM hearth_data.roll_state WHERE service_id = %d",
                   column, service);
    return pg_cluster_int(fix->url, sql);
}

struct collect {
    struct hearth_buf *out;
    int32_t service;
};

static enum hearth_status collect_row(void *context, const struct hearth_stored_row *row,
                                      struct hearth_err *err)
{
    (void)err;
    const struct collect *collect = context;
    hearth_copy_stored_row(collect->out, collect->service, row);
    return HEARTH_OK;
}

/* Every byte of the rows of a service, as one sees them who follows compacted_to. */
static struct hearth_buf see(const struct fixture *fix, int32_t service)
{
    struct hearth_buf out;
    struct hearth_pg pg = {.url = test_secret(fix->url)};
    hearth_buf_init(&out, 0);
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    struct collect collect = {&out, service};
    int64_t compacted_to_ns = state_of(fix, service, "compacted_to");
    for (int64_t hour = 0; hour < 24; hour++) {
        int64_t from_ns = START + hour * HEARTH_NS_PER_HOUR;
        assert_ok(
            hearth_stored_rows_read(&pg, fix->builder.inflater,
                                    &(struct hearth_stored_range){service, compacted_to_ns, from_ns,
                                                                  from_ns + HEARTH_NS_PER_HOUR},
                                    collect_row, &collect, &err));
    }
    hearth_pg_close(&pg);
    return out;
}

static void assert_seen(const struct fixture *fix, int32_t service, const struct hearth_buf *want)
{
    struct hearth_buf got = see(fix, service);
    assert_int_equal(got.n, want->n);
    assert_true(got.n == 0 || memcmp(got.p, want->p, got.n) == 0);
    hearth_buf_release(&got);
}

static void compact_all(struct fixture *fix)
{
    bool more = true;
    for (int i = 0; more && i < 1000; i++) {
        assert_ok(hearth_step_compact(&fix->builder, &more, &err));
    }
    assert_false(more);
}

static void compaction_keeps_profiles_byte_for_byte(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_buf want[3];
    for (int32_t service = 1; service <= 2; service++) {
        add_service(&fix, service, 12);
        built(&fix, service, NOW - HEARTH_NS_PER_HOUR);
        for (int h = 0; h < HOURS; h++) {
            add_hour(&fix, service, g_hours[h], 3 + h, 20, 100);
        }
        want[service] = see(&fix, service);
        assert_true(want[service].n > 40000);
    }
    add_service(&fix, 3, 1); /* nothing to compact: costs one statement, with all of its kind */
    built(&fix, 3, NOW - 30 * HEARTH_NS_PER_HOUR);
    compact_all(&fix);
    int64_t closed_ns = NOW - 6 * HEARTH_NS_PER_HOUR;
    for (int32_t service = 1; service <= 2; service++) {
        assert_int_equal(state_of(&fix, service, "compacted_to"), closed_ns);
        assert_int_equal(state_of(&fix, service, "generation"), 5 + HOURS + 1);
        assert_seen(&fix, service, &want[service]);
        hearth_buf_release(&want[service]);
    }
    assert_int_equal(state_of(&fix, 3, "compacted_to"), NOW - 30 * HEARTH_NS_PER_HOUR);
    assert_int_equal(state_of(&fix, 3, "generation"), 6);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT sum(n_rows) FROM hearth_data.segment"),
                     2 * 20 * (3 + 4 + 5));
    compact_all(&fix); /* again: nothing to do */
    assert_int_equal(state_of(&fix, 1, "generation"), 5 + HOURS + 1);
    close_fixture(&fix);
}

static void hours_wait_for_their_roll_ups_their_late_profiles_and_their_time(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    add_service(&fix, 1, 5);
    add_service(&fix, 2, 5);
    built(&fix, 1, g_hours[1] + HEARTH_NS_PER_HOUR / 2);
    built(&fix, 2, NOW);
    for (int h = 0; h < HOURS; h++) {
        add_hour(&fix, 1, g_hours[h], 2, 3, 20);
        add_hour(&fix, 2, g_hours[h], 2, 3, 20);
    }
    run(&fix,
        "INSERT INTO hearth_data.profile_late SELECT 2, 200, %" PRId64
        ", 1, 1, 1, 1, 0, '{}', '', '{}', NULL",
        g_hours[1]);
    compact_all(&fix);
    assert_int_equal(state_of(&fix, 1, "compacted_to"), g_hours[1]);
    assert_int_equal(state_of(&fix, 2, "compacted_to"), g_hours[0] + HEARTH_NS_PER_HOUR);
    run(&fix, "DELETE FROM hearth_data.profile_late");
    fix.store->options.compact_after_ns = NOW - g_hours[2];
    compact_all(&fix);
    assert_int_equal(state_of(&fix, 2, "compacted_to"), g_hours[2]);
    fix.store->options.compact_after_ns = 0;
    fix.store->options.compaction = false;
    compact_all(&fix);
    assert_int_equal(state_of(&fix, 2, "compacted_to"), g_hours[2]);
    close_fixture(&fix);
}

static void deleted_and_outlived_profiles_are_not_written(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    add_service(&fix, 1, 5);
    built(&fix, 1, NOW);
    for (int h = 0; h < HOURS; h++) {
        add_hour(&fix, 1, g_hours[h], 5, 10, 20);
    }
    /* Of the last hour the first half goes, of two series. */
    run(&fix,
        "INSERT INTO hearth_data.tombstone VALUES (1, 1, %" PRId64 ", %" PRId64
        ", '{101,103}'), (1, 2, 0, 1, '{100,101,102,103,104}')",
        g_hours[2], g_hours[2] + HEARTH_NS_PER_HOUR / 2 - 1);
    /* The first hour is past its time. So is half of the second, which queries still see whole. */
    fix.store->options.retain_raw_ns = NOW - g_hours[1] - HEARTH_NS_PER_HOUR / 2;
    compact_all(&fix);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(DISTINCT t0) FROM hearth_data.segment"),
                     2);
    char sql[160];
    for (int h = 1; h < HOURS; h++) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT sum(n_rows) FROM hearth_data.segment WHERE t0 = %" PRId64,
                       g_hours[h]);
        assert_int_equal(pg_cluster_int(fix.url, sql), h == 1 ? 50 : 40);
    }
    assert_int_equal(state_of(&fix, 1, "compacted_to"), NOW - 6 * HEARTH_NS_PER_HOUR);
    close_fixture(&fix);
}

/* ---- cut off ---- */

/* As before: nothing is compacted. */
static void undo(const struct fixture *fix)
{
    run(fix,
        "DELETE FROM hearth_data.segment; UPDATE hearth_data.roll_state SET generation = 5,"
        " compacted_to = %" PRId64,
        HEARTH_NEVER_NS);
}

static void a_connection_cut_at_any_message_leaves_each_hour_whole(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    add_service(&fix, 1, 4);
    built(&fix, 1, NOW);
    add_hour(&fix, 1, g_hours[0], 3, 40, 60);
    add_hour(&fix, 1, g_hours[1], 1, 3, 60);
    struct hearth_buf want = see(&fix, 1);
    struct pg_proxy proxy;
    pg_proxy_start(&proxy, g_cluster.dir);
    proxy.marker = "FROM hearth_data.lease";
    const char *db = strstr(fix.url, "dbname=");
    (void)snprintf(fix.builder_url, sizeof fix.builder_url, "host=%s %s", proxy.dir, db);
    fix.builder.pg.url = test_secret(fix.builder_url);
    int n_cuts = 0, n_kept = 0, step, first = test_first_place(12, &step);
    bool was_cut = true;
    for (int at = first; was_cut; at += step) {
        was_cut = false;
        for (int after = 0; after < 2; after++) {
            hearth_pg_close(&fix.builder.pg);
            assert_ok(hearth_pg_connect(&fix.builder.pg, CONNECT_MS, &err));
            undo(&fix);
            fix.builder.next_days_mono_ns = INT64_MAX;
            pg_proxy_arm(&proxy, at, after != 0, 1);
            bool more;
            struct hearth_err cut = HEARTH_ERR_INIT;
            enum hearth_status status = hearth_step_compact(&fix.builder, &more, &cut);
            char type;
            int n = pg_proxy_disarm(&proxy, 1, &type);
            assert_true(n > 0 || status == HEARTH_OK);
            n_cuts += n;
            was_cut = was_cut || n > 0;
            assert_seen(&fix, 1, &want);
            n_kept += status != HEARTH_OK && state_of(&fix, 1, "generation") > 5;
            hearth_pg_close(&fix.builder.pg);
            assert_ok(hearth_pg_connect(&fix.builder.pg, CONNECT_MS, &err));
            compact_all(&fix);
            assert_int_equal(state_of(&fix, 1, "compacted_to"), NOW - 6 * HEARTH_NS_PER_HOUR);
            assert_seen(&fix, 1, &want);
        }
    }
    print_message("  %d cuts; after %d of them something had been committed\n", n_cuts, n_kept);
    assert_true(n_cuts * step > 360);
    assert_true(n_kept > 2);
    hearth_buf_release(&want);
    close_fixture(&fix);
    pg_proxy_stop(&proxy);
}

/* ---- size ---- */

static void an_hour_of_many_series_is_compacted_a_piece_at_a_time(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    add_service(&fix, 1, 600);
    built(&fix, 1, NOW);
    add_hour(&fix, 1, g_hours[0], 600, 40, 660);
    run(&fix, "VACUUM (ANALYZE) hearth_data.profile_20241004");
    struct hearth_buf want = see(&fix, 1);
    int64_t cpu_ns = hearth_clock_thread_cpu_ns(), wall_ns = hearth_clock_mono_ns();
    compact_all(&fix);
    cpu_ns = hearth_clock_thread_cpu_ns() - cpu_ns;
    wall_ns = hearth_clock_mono_ns() - wall_ns;
    assert_seen(&fix, 1, &want);
    long long n_rows = pg_cluster_int(fix.url, "SELECT sum(n_rows) FROM hearth_data.segment");
    long long n_raw = pg_cluster_int(fix.url, "SELECT sum(n_bytes) FROM hearth_data.segment");
    long long n_packed =
        pg_cluster_int(fix.url, "SELECT sum(octet_length(payload)) FROM hearth_data.segment");
    assert_int_equal(n_rows, 600 * 40);
    /* Pieces do not make the segments small. */
    assert_true(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.segment") <
                n_raw * 5 / 4 / (long long)HEARTH_SEGMENT_BYTES + 1);
    assert_true(n_packed < n_raw);
    print_message(
        "  %lld profiles of %lld bytes in %lld; %.1f us of CPU each here, %.1f us in all\n", n_rows,
        n_raw / n_rows, n_packed / n_rows, (double)cpu_ns / 1e3 / (double)n_rows,
        (double)wall_ns / 1e3 / (double)n_rows);
    hearth_buf_release(&want);
    close_fixture(&fix);
}

static enum hearth_status count_row(void *context, const struct hearth_read_row *row,
                                    struct hearth_err *err)
{
    (void)row;
    (void)err;
    (*(size_t *)context)++;
    return HEARTH_OK;
}

/* Profiles of series 100 to 119 with from <= ts < to, and how many segments were to be read for them. */
static size_t count_profiles(struct fixture *fix, int64_t from_ns, int64_t to_ns,
                             int64_t *ret_segments)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_series_hit hits[20];
    for (int32_t i = 0; i < 20; i++) {
        hits[i] = (struct hearth_series_hit){.service_id = 1, .series_id = 100 + i};
    }
    struct hearth_read_leg leg = {HEARTH_SOURCE_SEGMENT, from_ns, to_ns, hits, 20};
    struct hearth_read_state state;
    const int32_t service = 1;
    assert_ok(hearth_store_read_state(STORE_SCOPE(fix->store, HEARTH_STR("anonymous"), &arena),
                                      &service, 1, &state, &err));
    struct hearth_read_plan plan = {.legs = &leg, .n_legs = 1, .state = &state};
    struct hearth_leg_cost cost;
    size_t n = 0;
    assert_ok(hearth_store_read_cost(STORE_SCOPE(fix->store, HEARTH_STR("anonymous"), NULL), &plan,
                                     &cost, &err));
    assert_ok(hearth_store_read(STORE_SCOPE(fix->store, HEARTH_STR("anonymous"), NULL), &plan,
                                count_row, &n, &err));
    hearth_arena_release(&arena);
    *ret_segments = cost.n_rows;
    return n;
}

static void a_query_of_minutes_reads_only_their_segments_of_a_large_hour(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    add_service(&fix, 1, 20);
    built(&fix, 1, NOW);
    add_hour(&fix, 1, g_hours[0], 20, 240, 660);
    add_hour(&fix, 1, g_hours[1], 20, 5, 10); /* small: not cut */
    struct hearth_buf want = see(&fix, 1);
    compact_all(&fix);
    assert_seen(&fix, 1, &want);
    const int64_t minute = 60 * HEARTH_NS_PER_SEC, hour = g_hours[0];
    int64_t n_hour, n_slice, n_two, n_small;
    assert_int_equal(count_profiles(&fix, hour, hour + 60 * minute, &n_hour), 20 * 240);
    assert_int_equal(count_profiles(&fix, hour + 22 * minute, hour + 27 * minute, &n_slice),
                     20 * 20);
    assert_int_equal(count_profiles(&fix, hour + 18 * minute, hour + 22 * minute, &n_two), 20 * 16);
    assert_true(n_hour >= 6);
    assert_int_equal(n_slice, n_hour / 6);
    assert_int_equal(n_two, n_hour / 3);
    /* To the nanosecond, at both ends of ten minutes. */
    int64_t n;
    assert_int_equal(count_profiles(&fix, hour + 10 * minute, hour + 10 * minute + 1, &n), 1);
    assert_int_equal(n, n_slice);
    assert_int_equal(count_profiles(&fix, hour + 10 * minute - 1, hour + 10 * minute, &n), 0);
    assert_int_equal(n, n_slice);
    assert_int_equal(count_profiles(&fix, g_hours[1], g_hours[1] + 13 * minute, &n_small), 20 * 2);
    assert_int_equal(n_small, 1);
    hearth_buf_release(&want);
    close_fixture(&fix);
}

/* ---- days ---- */

static long long n_leaves(const struct fixture *fix)
{
    return pg_cluster_int(fix->url, "SELECT count(*) FROM pg_class WHERE relname LIKE"
                                    " '%profile_20241004' AND relkind = 'r'");
}

static void look_at_days(struct fixture *fix)
{
    fix->builder.next_days_mono_ns = 0;
    compact_all(fix);
}

static void a_leaf_is_dropped_once_segments_hold_all_of_its_day(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_buf want[3];
    for (int32_t service = 1; service <= 2; service++) {
        add_service(&fix, service, 4);
        add_hour(&fix, service, g_hours[0], 3, 10, 50);
        want[service] = see(&fix, service);
    }
    built(&fix, 1, NOW);
    look_at_days(&fix); /* service 2 has no state yet */
    assert_int_equal(n_leaves(&fix), 1);
    built(&fix, 2, g_hours[0]); /* and is not compacted yet */
    look_at_days(&fix);
    assert_int_equal(n_leaves(&fix), 1);
    run(&fix,
        "UPDATE hearth_data.roll_state SET built_to = %" PRId64 ", watermark = built_to WHERE"
        " service_id = 2",
        NOW);
    /* Somebody reads it just then: it stays, and nobody waits. */
    PGconn *reader = pg_cluster_connect(fix.url);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM hearth_data.profile"));
    look_at_days(&fix);
    assert_int_equal(n_leaves(&fix), 1);
    PQclear(PQexec(reader, "ROLLBACK"));
    PQfinish(reader);
    look_at_days(&fix);
    assert_int_equal(n_leaves(&fix), 0);
    for (int32_t service = 1; service <= 2; service++) {
        assert_seen(&fix, service, &want[service]);
        hearth_buf_release(&want[service]);
    }
    /* Made again for a late profile, it stays while it is empty. */
    assert_ok(hearth_partitions_ensure(fix.store, &fix.builder.pg, HEARTH_LEAVES_ALL, DAY, &err));
    assert_int_equal(n_leaves(&fix), 1);
    look_at_days(&fix);
    assert_int_equal(n_leaves(&fix), 1);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compaction_keeps_profiles_byte_for_byte),
        cmocka_unit_test(hours_wait_for_their_roll_ups_their_late_profiles_and_their_time),
        cmocka_unit_test(deleted_and_outlived_profiles_are_not_written),
        cmocka_unit_test(a_connection_cut_at_any_message_leaves_each_hour_whole),
        cmocka_unit_test(an_hour_of_many_series_is_compacted_a_piece_at_a_time),
        cmocka_unit_test(a_query_of_minutes_reads_only_their_segments_of_a_large_hour),
        cmocka_unit_test(a_leaf_is_dropped_once_segments_hold_all_of_its_day),
    };
    return cmocka_run_group_tests(tests, start_cluster_now, stop_cluster);
}
