/*
 * test_listed_scan.c -- uploads in order of time, in pieces of any size, and their pages in every order, compared with a
 * model over a real PostgreSQL: single rows, late ones, compacted.
 */
#include "hearth/store/background.h"

#include "listed/listed_scan.h"
#include "rounds.h"
#include "step_fixture.h"

#define N_SERVICES 2
#define N_PODS     3
#define N_PROFILES 120
#define SECOND     HEARTH_NS_PER_SEC
#define MINUTE     (60 * SECOND)

/* A pushed profile; several of one service and minute may share an id. */
struct pushed {
    struct store_push *push;
    struct hearth_push_row rows[2];
    size_t n_rows;
    int service, pods[2];
    int64_t ts_ns, duration_ns, total, upload_count;
    struct hearth_profile_id id;
};

/* An upload as the model has it. */
struct expected {
    struct hearth_listed_place place; /* by time */
    int64_t duration_ns, total;
    size_t n_rows;
    int service;
};

static struct fixture g_fix;
static struct pushed g_pushed[N_PROFILES];
static struct expected g_expected[N_PROFILES];
static size_t g_n_pushed, g_n_expected;
static uint64_t g_rng = 24;
static struct hearth_limits g_limits;
static struct hearth_query_engine *g_engine;

static int64_t begin_ns(void)
{
    return the_day() * HEARTH_NS_PER_DAY + 21 * HOUR; /* over midnight */
}

/* ---- pushing ---- */

/* Most are in a few crowded minutes, others anywhere in six hours; some at the ends of minutes. */
static int64_t draw_time(void)
{
    int64_t minute = synth_below(&g_rng, 3) > 0 ? 90 + synth_below(&g_rng, 3)
                                                : (int64_t)synth_below(&g_rng, 360);
    int64_t within = (int64_t)(synth_next(&g_rng) % (uint64_t)MINUTE);
    within = synth_below(&g_rng, 4) > 0 ? within : synth_below(&g_rng, 2) > 0 ? 0 : MINUTE - 1;

    return begin_ns() + minute * MINUTE + within;
}

/* Draws a profile, or a part of the same upload as the one before. */
static void draw_profile(struct pushed *p)
{
    const struct pushed *before = g_n_pushed > 0 ? p - 1 : NULL;
    bool same = before != NULL && synth_below(&g_rng, 4) == 0;

    p->service = same ? before->service : (int)synth_below(&g_rng, N_SERVICES);
    p->ts_ns =
        same ? before->ts_ns / MINUTE * MINUTE + (int64_t)(synth_next(&g_rng) % (uint64_t)MINUTE)
             : draw_time();
    p->upload_count =
        same ? before->upload_count
             : (synth_below(&g_rng, 2) == 0 ? 0 : hearth_store_count_upload(g_fix.store));
    p->pods[0] = (int)synth_below(&g_rng, N_PODS);
    p->pods[1] = (p->pods[0] + 1) % N_PODS;
    p->n_rows = 1 + (synth_below(&g_rng, 3) == 0);
    p->duration_ns = (int64_t)synth_below(&g_rng, 5) * SECOND;
}

static void push_one(void)
{
    struct pushed *p = &g_pushed[g_n_pushed];
    struct store_push *push = hearth_mem_zalloc(sizeof *push);
    struct hearth_series_ref ref[2] = {{0}};

    draw_profile(p);
    p->push = push;
    push->store = g_fix.store;
    hearth_arena_init(&push->arena, 0);
    struct hearth_profile profile = synth_profile(&g_world, 4, 2, &push->arena, NULL);
    for (size_t i = 0; i < p->n_rows; i++) {
        ref[i] = resolve_one(g_fix.store, TENANT, p->service, p->pods[i], p->ts_ns);
    }
    assert_ok(hearth_store_dict_acquire(g_fix.store, ref[0].service_id, p->ts_ns, &push->item.dict,
                                        &err));
    assert_int_equal(store_push_encode(push, &profile), HEARTH_OK);
    for (size_t i = 0; i < p->n_rows; i++) {
        p->rows[i] = push->row;
        p->rows[i].series_id = ref[i].series_id;
        p->rows[i].duration_ns = p->duration_ns;
    }
    p->total = push->row.columns.totals[1] * (int64_t)p->n_rows;
    push->item.service_id = ref[0].service_id;
    push->item.ts_ns = p->ts_ns;
    push->item.upload_count = p->upload_count;
    push->item.rows = p->rows;
    push->item.n_rows = p->n_rows;
    push->item.done = store_push_done;
    store_push_submit(push);
    g_n_pushed++;
}

/* ---- the model ---- */

static int compare_expected(const void *left, const void *right)
{
    const struct expected *a = left, *b = right;
    return hearth_listed_place_compare(&a->place, &b->place);
}

/* Gathers the profiles that share an id. */
static void make_expected(void)
{
    g_n_expected = 0;
    for (size_t i = 0; i < g_n_pushed; i++) {
        const struct pushed *p = &g_pushed[i];
        size_t e = 0;
        while (e < g_n_expected && (g_expected[e].place.id.profile_no != p->id.profile_no ||
                                    g_expected[e].place.id.writer_id != p->id.writer_id)) {
            e++;
        }

        struct expected *into = &g_expected[e];
        if (e == g_n_expected) {
            g_n_expected++;
            *into = (struct expected){.place = {INT64_MAX, INT64_MAX, p->id}};
        }
        into->place.ts_ns = p->ts_ns < into->place.ts_ns ? p->ts_ns : into->place.ts_ns;
        into->place.key = into->place.ts_ns;
        into->duration_ns = p->duration_ns > into->duration_ns ? p->duration_ns : into->duration_ns;
        into->total += p->total;
        into->n_rows += p->n_rows;
        into->service = p->service;
    }
    qsort(g_expected, g_n_expected, sizeof g_expected[0], compare_expected);
}

static void push_some(size_t n)
{
    size_t first = g_n_pushed;
    for (size_t i = 0; i < n; i++) {
        push_one();
    }
    for (size_t i = first; i < g_n_pushed; i++) {
        struct pushed *p = &g_pushed[i];
        assert_true(store_push_wait(p->push));
        assert_int_equal(p->push->status, HEARTH_OK);
        p->id = (struct hearth_profile_id){p->push->item.writer_id, p->push->item.profile_no};
        store_push_free(p->push);
    }
    make_expected();
    assert_true(g_n_expected < g_n_pushed);
}

/* ---- scans ---- */

static struct hearth_query query_of(struct hearth_arena *arena)
{
    return (struct hearth_query){
        .call = {.engine = g_engine, .tenant = TENANT, .arena = arena},
        .start_ms = begin_ns() / HEARTH_NS_PER_MS,
        .end_ms = (begin_ns() + 6 * HOUR) / HEARTH_NS_PER_MS,
    };
}

struct visited {
    size_t n, stop_at;
    bool newest;
};

static enum hearth_status compare_visited(void *context, const struct listed_rows *upload,
                                          bool *ret_stop, struct hearth_err *failure)
{
    struct visited *visited = context;
    (void)failure;
    assert_true(visited->n < g_n_expected);
    const struct expected *want =
        &g_expected[visited->newest ? g_n_expected - 1 - visited->n : visited->n];
    assert_int_equal(hearth_listed_place_compare(&upload->place, &want->place), 0);
    assert_int_equal(upload->n, want->n_rows);
    assert_int_equal(upload->duration_ns, want->duration_ns);
    assert_int_equal(upload->total, want->total);
    *ret_stop = ++visited->n == visited->stop_at;
    return HEARTH_OK;
}

/* One scan with such bounds of pieces. */
static void check_scan(size_t few, size_t many, bool newest, size_t stop_at)
{
    const struct hearth_listed_filter cpu = {
        .profile_type = HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")};
    struct hearth_arena arena;
    struct listed_scan scan;
    hearth_arena_init(&arena, 0);
    struct hearth_query query = query_of(&arena);
    assert_ok(hearth_listed_scan_init(&scan, &query, &cpu, &err));
    scan.few_rows = few;
    scan.many_rows = many;
    struct visited visited = {.newest = newest, .stop_at = stop_at};
    assert_ok(hearth_listed_scan_run(&scan, newest, compare_visited, &visited, &err));
    assert_int_equal(visited.n, stop_at == 0 ? g_n_expected : stop_at);
    hearth_listed_scan_release(&scan);
    hearth_arena_release(&arena);
}

/* ---- pages ---- */

static enum hearth_listed_order g_order;

static struct hearth_listed_place place_in_order(const struct expected *upload)
{
    struct hearth_listed_place place = upload->place;
    place.key = g_order == HEARTH_LISTED_BY_DURATION ? upload->duration_ns
                : g_order == HEARTH_LISTED_BY_TOTAL  ? upload->total
                                                     : place.ts_ns;
    return place;
}

static int compare_in_order(const void *left, const void *right)
{
    struct hearth_listed_place a = place_in_order(left), b = place_in_order(right);
    return hearth_listed_place_compare(&a, &b);
}

static void check_upload(const struct hearth_listed_upload *got, const struct expected *want)
{
    char service[16];
    (void)snprintf(service, sizeof service, "svc-%d", want->service);
    assert_int_equal(got->id.writer_id, want->place.id.writer_id);
    assert_int_equal(got->id.profile_no, want->place.id.profile_no);
    assert_int_equal(got->ts_ns, want->place.ts_ns);
    assert_int_equal(got->duration_ns, want->duration_ns);
    assert_int_equal(got->total, want->total);
    assert_true(hearth_str_eq_c(got->service, service));
    assert_int_equal(got->n_profile_types, 2);
}

/* All pages of an order, of a few uploads each. */
static void check_pages(enum hearth_listed_order order, bool ascending, size_t limit)
{
    static struct expected want[N_PROFILES];
    const struct hearth_listed_filter cpu = {
        .profile_type = HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")};
    struct hearth_listed_page page = {.order = order, .ascending = ascending, .limit = limit};
    bool more = true;
    size_t at = 0;

    g_order = order;
    memcpy(want, g_expected, g_n_expected * sizeof want[0]);
    qsort(want, g_n_expected, sizeof want[0], compare_in_order);
    while (more) {
        struct hearth_arena arena;
        struct hearth_listed_uploads uploads;
        hearth_arena_init(&arena, 0);
        struct hearth_query query = query_of(&arena);
        assert_ok(hearth_listed_uploads(&query, &cpu, &page, &uploads, &err));
        page.after = uploads.last;
        page.has_after = true;
        more = uploads.more;
        assert_true(more ? uploads.n == limit : uploads.n <= limit);
        for (size_t i = 0; i < uploads.n; i++, at++) {
            assert_true(at < g_n_expected);
            check_upload(&uploads.v[i], &want[ascending ? at : g_n_expected - 1 - at]);
        }
        hearth_arena_release(&arena);
    }
    assert_int_equal(at, g_n_expected);
}

/* ---- what has to hold ---- */

/* Which sizes of pieces and orders of small pages the first state has: rounds.h. */
static int g_first, g_step;

static void check_state(void)
{
    static const size_t bounds[][2] = {{1, 2}, {8, 40}, {50, 51}, {1000, 100}, {16384, 262144}};
    static unsigned n_checked;
    int turn = g_first + (int)n_checked;

    /* Pieces of one row ask most: in every third state; each other size in every g_step-th. */
    for (size_t i = n_checked++ % 3 == 0 ? 0 : 1; i < HEARTH_ARRAY_LEN(bounds); i++) {
        if (i > 0 && ((int)i + turn) % g_step != 0) {
            continue;
        }
        for (int newest = 0; newest < 2; newest++) {
            check_scan(bounds[i][0], bounds[i][1], newest != 0, 0);
            check_scan(bounds[i][0], bounds[i][1], newest != 0,
                       1 + synth_below(&g_rng, (uint32_t)g_n_expected));
        }
    }

    for (int order = HEARTH_LISTED_BY_TIME; order <= HEARTH_LISTED_BY_TOTAL; order++) {
        for (int ascending = 0; ascending < 2; ascending++) {
            if ((order + ascending + turn) % g_step == 0) {
                check_pages((enum hearth_listed_order)order, ascending != 0, 17);
            }
            check_pages((enum hearth_listed_order)order, ascending != 0, 1000);
        }
    }
    check_pages(HEARTH_LISTED_BY_TIME, false, 5);
}

static void uploads_are_whole_and_in_order_in_pieces_of_any_size_and_in_every_state(void **state)
{
    (void)state;
    push_some(N_PROFILES / 3);
    check_state();
    build(&g_fix);
    push_some(N_PROFILES / 3);
    assert_true(count(&g_fix, "profile_late") > 0);
    check_state();
    fold_late(&g_fix);
    compact_hours(&g_fix);
    assert_true(count(&g_fix, "segment") > 0);
    check_state();
    push_some(N_PROFILES / 3); /* late, of hours that are compacted */
    check_state();
    fold_late(&g_fix);
    check_state();
}

static void segments_without_heads_give_the_same_list(void **state)
{
    (void)state;
    assert_true(pg_cluster_int(g_fix.url, "SELECT count(*) FROM hearth_data.segment WHERE heads IS"
                                          " NOT NULL") > 0);
    pg_cluster_run(g_fix.url, "UPDATE hearth_data.segment SET heads = NULL");
    check_state();
}

static int start_list(void **state)
{
    int status = start_cluster(state);
    g_first = test_first_place(2, &g_step);
    hearth_limits_init(&g_limits);
    g_limits.max_query_lookback_ns = 0;
    open_fixture(&g_fix);
    assert_ok(hearth_query_engine_new(&g_limits, 0, g_fix.store, &g_engine, &err));
    return status;
}

static int stop_list(void **state)
{
    hearth_query_engine_free(g_engine);
    close_fixture(&g_fix);
    return stop_cluster(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uploads_are_whole_and_in_order_in_pieces_of_any_size_and_in_every_state),
        cmocka_unit_test(segments_without_heads_give_the_same_list),
    };
    return cmocka_run_group_tests(tests, start_list, stop_list);
}
