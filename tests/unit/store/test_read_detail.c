/* test_read_detail.c -- which profile a row is, and the attributes of its samples, from every table of profiles. */
#include "hearth/model/sample_attrs.h"

#include "pg/pg.h"
#include "pg/store_state.h"
#include "read/read_internal.h"
#include "read/stored_rows.h"
#include "read_plans.h"

#define N_SERIES 5
#define N_EACH   60 /* of a series and source */
#define STEP     (120 * HEARTH_NS_PER_SEC)

static const enum hearth_source SOURCES[] = {HEARTH_SOURCE_PROFILE, HEARTH_SOURCE_LATE,
                                             HEARTH_SOURCE_SEGMENT};

struct profile_of_test {
    enum hearth_source source;
    struct hearth_stored_row row;
    int64_t totals[2];
    struct hearth_str vals[2];
    char ids[8];
};

struct fixture {
    char url[256];
    struct hearth_store *store;
    struct hearth_arena arena;
    int32_t service_id;
    struct hearth_series_hit hits[N_SERIES * 2];
    struct profile_of_test profiles[HEARTH_ARRAY_LEN(SOURCES) * N_SERIES * N_EACH];
    size_t n;
};

static struct fixture *g_fix;

/* One sample with this span, for each third profile. */
static struct hearth_str attrs_of(struct fixture *fix, uint64_t span_id)
{
    int64_t values[2] = {1, 2};
    struct hearth_attr_sample sample = {.values = values, .attrs = {.span_id = span_id}};
    struct hearth_str attrs;
    assert_ok(hearth_sample_attrs_encode(&sample, 1, 2, &fix->arena, &attrs, &err));
    return attrs;
}

static void make_profile(struct fixture *fix, enum hearth_source source, int series, int i)
{
    struct profile_of_test *p = &fix->profiles[fix->n];
    int64_t no = (int64_t)fix->n++;
    p->source = source;
    p->totals[0] = no * 10;
    p->totals[1] = no * 100;
    p->ids[0] = (char)no;
    p->vals[0] = hearth_str_n("\0\1", 2);
    p->vals[1] = i % 2 == 0 ? hearth_str_n("\0\2", 2) : hearth_str_n("\1\3", 2);
    p->row = (struct hearth_stored_row){
        .series_id = fix->hits[series * 2].series_id,
        .writer_id = 3 + i % 2,
        .ts_ns = T0 + i * STEP,
        .profile_no = no,
        .duration_ns = (INT64_C(1) << 40) + no,
        .n_samples = 1,
        .n_types = 2,
        .totals = p->totals,
        .ids = hearth_str_n(p->ids, 1),
        .vals = p->vals,
        .attrs = i % 3 == 0 ? attrs_of(fix, 1000 + (uint64_t)no) : hearth_str_n(NULL, 0),
    };
}

static void put_profiles(struct fixture *fix, struct hearth_pg *pg)
{
    struct hearth_buf out;
    static struct hearth_stored_row hour[N_SERIES * N_EACH];
    for (int s = 0; s < 2; s++) {
        char sql[256];
        hearth_buf_init(&out, 0);
        for (size_t i = 0; i < fix->n; i++) {
            if (fix->profiles[i].source == SOURCES[s]) {
                hearth_copy_stored_row(&out, fix->service_id, &fix->profiles[i].row);
            }
        }
        (void)snprintf(sql, sizeof sql,
                       "COPY hearth_data.%s (" HEARTH_PROFILE_COLUMNS
                       ") FROM STDIN (FORMAT binary)",
                       s == 0 ? "profile" : "profile_late");
        assert_ok(hearth_pg_copy(pg, sql, hearth_buf_view(&out), NULL, &err));
        hearth_buf_release(&out);
    }
    for (int64_t h = 0; h * HOUR < N_EACH * STEP; h++) {
        size_t n = 0;
        for (size_t i = 0; i < fix->n; i++) {
            const struct hearth_stored_row *row = &fix->profiles[i].row;
            if (fix->profiles[i].source == HEARTH_SOURCE_SEGMENT &&
                hearth_hour_of(row->ts_ns) == hearth_hour_of(T0) + h) {
                hour[n++] = *row;
            }
        }
        assert_ok(hearth_segments_write(pg, fix->service_id, 1, hour, n, &err));
    }
}

static int make_fixture(void **state)
{
    (void)start_cluster(state);
    static struct fixture fix;
    g_fix = &fix;
    hearth_arena_init(&fix.arena, 0);
    pg_cluster_database(&g_cluster, fix.url);
    fix.store = open_store(fix.url);
    for (int s = 0; s < N_SERIES; s++) {
        struct hearth_series_ref ref = resolve_one(fix.store, TENANT, 1, s, T0);
        fix.service_id = ref.service_id;
        for (uint16_t k = 0; k < 2; k++) {
            fix.hits[s * 2 + k] = (struct hearth_series_hit){
                .series_id = ref.series_id, .service_id = ref.service_id, .column = k};
        }
    }
    for (size_t source = 0; source < HEARTH_ARRAY_LEN(SOURCES); source++) {
        for (int s = 0; s < N_SERIES; s++) {
            for (int i = 0; i < N_EACH; i++) {
                make_profile(&fix, SOURCES[source], s, i);
            }
        }
    }
    ensure_days(fix.store, fix.url, T0, T0 + DAY);
    struct hearth_pg pg = {.url = test_secret(fix.url)};
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    put_profiles(&fix, &pg);
    hearth_pg_close(&pg);
    return 0;
}

static int drop_fixture(void **state)
{
    close_store(g_fix->store);
    hearth_arena_release(&g_fix->arena);
    return stop_cluster(state);
}

/* ---- reading ---- */

#define FROM (T0 + 5 * STEP)
#define TO   (T0 + 50 * STEP)

struct taken {
    struct hearth_read_row rows[8192];
    struct hearth_read_total totals[8192];
    size_t n;
};

static struct taken g_taken;

static enum hearth_status take_row(void *context, const struct hearth_read_row *row,
                                   struct hearth_err *err)
{
    (void)err;
    struct taken *taken = context;
    assert_true(taken->n < HEARTH_ARRAY_LEN(taken->rows));
    struct hearth_read_row *copy = &taken->rows[taken->n++];
    *copy = *row;
    copy->attrs = hearth_arena_str(&g_fix->arena, row->attrs);
    copy->attrs.p = row->attrs.p == NULL ? NULL : copy->attrs.p;
    copy->ids = hearth_arena_str(&g_fix->arena, row->ids);
    return HEARTH_OK;
}

static enum hearth_status take_total(void *context, const struct hearth_read_total *total,
                                     struct hearth_err *err)
{
    (void)err;
    struct taken *taken = context;
    assert_true(taken->n < HEARTH_ARRAY_LEN(taken->totals));
    taken->totals[taken->n++] = *total;
    return HEARTH_OK;
}

static void read_with(const struct hearth_read_detail *detail, bool totals)
{
    struct hand_plan hand;
    for (size_t s = 0; s < HEARTH_ARRAY_LEN(SOURCES); s++) {
        hand.legs[s] = (struct hearth_read_leg){SOURCES[s], FROM, TO, g_fix->hits + 2,
                                                HEARTH_ARRAY_LEN(g_fix->hits) - 2};
    }
    (void)finish_plan(g_fix->store, &hand, HEARTH_ARRAY_LEN(SOURCES));
    hand.plan.detail = *detail;
    g_taken.n = 0;
    if (totals) {
        assert_ok(hearth_store_read_totals(STORE_SCOPE(g_fix->store, TENANT, NULL), &hand.plan,
                                           take_total, &g_taken, &err));
    } else {
        assert_ok(hearth_store_read(STORE_SCOPE(g_fix->store, TENANT, NULL), &hand.plan, take_row,
                                    &g_taken, &err));
    }
    hearth_arena_release(&hand.arena);
}

static bool is_read(const struct profile_of_test *p)
{
    return p->row.series_id != g_fix->hits[0].series_id && p->row.ts_ns >= FROM &&
           p->row.ts_ns < TO;
}

/* How many of the rows that came are column k of this profile. */
static size_t count_rows(const struct profile_of_test *p, unsigned k, bool alone)
{
    size_t n = 0;
    for (size_t i = 0; i < g_taken.n; i++) {
        const struct hearth_read_row *row = &g_taken.rows[i];
        if (row->profile_no == p->row.profile_no && row->column == k) {
            n++;
            assert_int_equal(row->writer_id, p->row.writer_id);
            assert_int_equal(row->series_id, p->row.series_id);
            assert_int_equal(row->ts_ns, p->row.ts_ns);
            assert_int_equal(row->duration_ns, p->row.duration_ns);
            assert_int_equal(row->source, p->source);
            assert_true((row->attrs.p == NULL) == (p->row.attrs.p == NULL));
            assert_true(hearth_str_eq(row->attrs, p->row.attrs));
            if (!alone) {
                assert_true(hearth_str_eq(row->ids, p->row.ids));
            }
        }
    }
    return n;
}

static void rows_include_ids_and_attributes_if_requested(void **state)
{
    (void)state;
    const struct hearth_read_detail detail = {.identity = true, .attrs = HEARTH_ATTRS_BESIDE};
    read_with(&detail, false);
    size_t n = 0;
    for (size_t i = 0; i < g_fix->n; i++) {
        for (unsigned k = 0; k < 2; k++) {
            size_t expected = is_read(&g_fix->profiles[i]) ? 1 : 0;
            assert_int_equal(count_rows(&g_fix->profiles[i], k, false), expected);
            n += expected;
        }
    }
    assert_int_equal(g_taken.n, n);
    assert_int_equal(n, 3 * 4 * 45 * 2);
}

static void rows_without_attributes_are_skipped_if_only_attributes_matter(void **state)
{
    (void)state;
    const struct hearth_read_detail detail = {.identity = true, .attrs = HEARTH_ATTRS_ALONE};
    read_with(&detail, false);
    assert_int_equal(g_taken.n, 3 * 4 * 15 * 2);
    for (size_t i = 0; i < g_fix->n; i++) {
        const struct profile_of_test *p = &g_fix->profiles[i];
        assert_int_equal(count_rows(p, 1, true), is_read(p) && p->row.attrs.p != NULL ? 1 : 0);
    }
}

static void totals_include_ids_if_requested(void **state)
{
    (void)state;
    const struct hearth_read_detail detail = {.identity = true};
    read_with(&detail, true);
    assert_int_equal(g_taken.n, 3 * 4 * 45 * 2);
    for (size_t i = 0; i < g_taken.n; i++) {
        const struct hearth_read_total *total = &g_taken.totals[i];
        const struct profile_of_test *p = &g_fix->profiles[total->profile_no];
        assert_true(is_read(p));
        assert_int_equal(total->total, p->totals[total->column]);
        assert_int_equal(total->series_id, p->row.series_id);
        assert_int_equal(total->writer_id, p->row.writer_id);
        assert_int_equal(total->ts_ns, p->row.ts_ns);
        assert_int_equal(total->duration_ns, p->row.duration_ns);
    }
}

static void only_the_requested_moments_are_read(void **state)
{
    (void)state;
    struct hearth_read_instant instants[] = {
        {g_fix->service_id, g_fix->hits[0].series_id, T0 + 7 * STEP}, /* not of the plan */
        {g_fix->service_id, g_fix->hits[2].series_id, T0 + 4 * STEP}, /* not of the range */
        {g_fix->service_id, g_fix->hits[2].series_id, T0 + 7 * STEP},
        {g_fix->service_id, g_fix->hits[2].series_id, T0 + 8 * STEP},
        {g_fix->service_id, g_fix->hits[2].series_id, T0 + 9 * STEP + 1}, /* nothing there */
        {g_fix->service_id, g_fix->hits[6].series_id, T0 + 49 * STEP},
    };
    struct hearth_read_detail detail = {
        .identity = true, .some = true, .instants = instants, .n_instants = 6};
    read_with(&detail, true);
    assert_int_equal(g_taken.n, 3 * 3 * 2);
    for (size_t i = 0; i < g_taken.n; i++) {
        const struct hearth_read_total *total = &g_taken.totals[i];
        assert_int_equal(total->total, g_fix->profiles[total->profile_no].totals[total->column]);
        assert_true(total->ts_ns == T0 + 7 * STEP || total->ts_ns == T0 + 8 * STEP ||
                    total->ts_ns == T0 + 49 * STEP);
    }
    read_with(&detail, false);
    assert_int_equal(g_taken.n, 3 * 3 * 2);
    detail.n_instants = 0;
    read_with(&detail, true);
    assert_int_equal(g_taken.n, 0);
}

static void hints_skip_rows_but_never_a_matching_one(void **state)
{
    (void)state;
    int64_t nos[3];
    char span[8] = {0};
    size_t n = 0, wanted = 0;
    for (size_t i = 0; i < g_fix->n && n < 3; i++) {
        const struct profile_of_test *p = &g_fix->profiles[i];
        if (is_read(p) && p->source == SOURCES[n] && p->row.attrs.p != NULL) {
            nos[n++] = p->row.profile_no;
        }
    }
    assert_int_equal(n, 3);
    struct hearth_read_detail by_number = {
        .identity = true, .attrs = HEARTH_ATTRS_BESIDE, .profile_nos = nos, .n_profile_nos = 3};
    read_with(&by_number, false);
    for (size_t i = 0; i < 3; i++) {
        wanted += count_rows(&g_fix->profiles[nos[i]], 0, true);
    }
    assert_int_equal(wanted, 3);
    assert_true(g_taken.n < 3 * 4 * 45 * 2 / 2);
    for (int b = 0; b < 8; b++) {
        span[b] = (char)(uint8_t)((uint64_t)(1000 + nos[0]) >> (56 - 8 * b));
    }
    struct hearth_str with = {span, 8};
    struct hearth_read_detail by_span = {
        .identity = true, .attrs = HEARTH_ATTRS_ALONE, .attrs_with = &with, .n_attrs_with = 1};
    read_with(&by_span, false);
    assert_int_equal(count_rows(&g_fix->profiles[nos[0]], 0, true), 1);
    assert_true(g_taken.n <= (4 * 15 + 1) * 2); /* segments, and it */
}

static void only_rows_that_ended_before_the_window_may_be_skipped(void **state)
{
    (void)state;
    static const int64_t beyond[] = {INT64_MIN, INT64_MIN / 2 + 1, 0};
    const struct hearth_stored_row *some = &g_fix->profiles[N_EACH + 30].row;
    struct hearth_read_detail detail = {
        .identity = true, .attrs = HEARTH_ATTRS_BESIDE, .has_end = true};
    for (int64_t beside = -1; beside <= 1; beside++) {
        size_t n = 0;
        detail.end_ns = some->ts_ns + some->duration_ns + beside;
        read_with(&detail, false);
        for (size_t i = 0; i < g_fix->n; i++) {
            const struct profile_of_test *p = &g_fix->profiles[i];
            bool ended = p->row.ts_ns + p->row.duration_ns < detail.end_ns;
            if (is_read(p) && (!ended || p->source == HEARTH_SOURCE_SEGMENT)) {
                assert_int_equal(count_rows(p, 0, true), 1);
                n++;
            }
        }
        assert_int_equal(g_taken.n, 2 * n);
        assert_true(n < 3 * 4 * 45);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(beyond); i++) {
        detail.end_ns = beyond[i];
        read_with(&detail, true);
        assert_int_equal(g_taken.n, 3 * 4 * 45 * 2);
    }
    detail.end_ns = INT64_MAX;
    read_with(&detail, true); /* whatever comes, it does not fail */
}

/* Totals are answered from the index; a column that is not in it would cost a visit of every row. */
static void plain_totals_are_read_from_the_index_only(void **state)
{
    (void)state;
    struct hand_plan hand;
    struct read_statement statement;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, FROM, TO, g_fix->hits, 2};
    (void)finish_plan(g_fix->store, &hand, 1);
    assert_ok(hearth_read_statement_make(&statement, READ_TOTALS, &hand.plan, false, NULL, NULL,
                                         &hand.arena, &err));
    static const char *const beyond[] = {"writer_id", "profile_no", "duration_ns",
                                         "attrs",     "ids",        "vals"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(beyond); i++) {
        assert_null(strstr(statement.sql.p, beyond[i]));
    }
    hearth_buf_release(&statement.sql);
    hand.plan.detail.identity = true;
    assert_ok(hearth_read_statement_make(&statement, READ_TOTALS, &hand.plan, false, NULL, NULL,
                                         &hand.arena, &err));
    assert_non_null(strstr(statement.sql.p, "profile_no"));
    hearth_buf_release(&statement.sql);
    hearth_arena_release(&hand.arena);
}

/* The statement of totals of n hits of one leg in [from_ns, to_ns): its text, to be freed. */
static char *make_text(struct hand_plan *hand, int64_t from_ns, int64_t to_ns, bool *ret_repeated)
{
    struct read_statement statement;
    hand->legs[0].from_ns = from_ns;
    hand->legs[0].to_ns = to_ns;
    assert_ok(hearth_read_statement_make(&statement, READ_TOTALS, &hand->plan, false, NULL, NULL,
                                         &hand->arena, &err));
    char *text = strdup(statement.sql.p);
    assert_non_null(text);
    *ret_repeated = statement.params.is_repeated;
    hearth_buf_release(&statement.sql);
    return text;
}

static void small_reads_have_the_same_text_for_all_times(void **state)
{
    (void)state;
    struct hand_plan hand;
    bool is_small, is_other_small, is_large_small, is_filtered;
    hand.legs[0] = (struct hearth_read_leg){HEARTH_SOURCE_PROFILE, FROM, TO, g_fix->hits, 2};
    (void)finish_plan(g_fix->store, &hand, 1);
    char *text = make_text(&hand, FROM, FROM + HEARTH_NS_PER_HOUR, &is_small);
    char *other = make_text(&hand, FROM + 5, FROM + 7, &is_other_small);
    char *large = make_text(&hand, FROM, FROM + 2 * HEARTH_NS_PER_DAY, &is_large_small);
    assert_string_equal(text, other);
    assert_true(is_small && is_other_small && !is_large_small);
    free(large);
    large = make_text(&hand, INT64_MIN, INT64_MAX, &is_large_small);
    assert_false(is_large_small);

    /* Filters of single profiles are literals. */
    const int64_t no = 5;
    hand.plan.detail.profile_nos = &no;
    hand.plan.detail.n_profile_nos = 1;
    free(other);
    other = make_text(&hand, FROM, FROM + HEARTH_NS_PER_HOUR, &is_filtered);
    assert_false(is_filtered);
    free(text);
    free(other);
    free(large);
    hearth_arena_release(&hand.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_include_ids_and_attributes_if_requested),
        cmocka_unit_test(rows_without_attributes_are_skipped_if_only_attributes_matter),
        cmocka_unit_test(only_rows_that_ended_before_the_window_may_be_skipped),
        cmocka_unit_test(totals_include_ids_if_requested),
        cmocka_unit_test(only_the_requested_moments_are_read),
        cmocka_unit_test(hints_skip_rows_but_never_a_matching_one),
        cmocka_unit_test(plain_totals_are_read_from_the_index_only),
        cmocka_unit_test(small_reads_have_the_same_text_for_all_times),
    };
    return cmocka_run_group_tests(tests, make_fixture, drop_fixture);
}
