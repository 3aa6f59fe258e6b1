/*
 * test_span_window.c -- profiles that were being taken while something ran, compared with a model to the nanosecond, over a
 * real PostgreSQL: single rows, late ones, after roll-ups, compacted, and the late ones among the compacted.
 */
#include "hearth/engine/span_profiles.h"
#include "hearth/store/background.h"
#include "hearth/store/store.h"

#include "rounds.h"
#include "step_fixture.h"

#define N_SERVICES 2
#define N_PODS     3
#define N_PROFILES 240
#define N_WINDOWS  250
#define SECOND     HEARTH_NS_PER_SEC

static const char *const TYPES[] = {"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                                    "process_cpu:samples:count:cpu:nanoseconds"};
static const char *const UNITS[] = {"nanoseconds", "count"};

/* A profile as it was pushed: of one pod, or split over two. */
struct pushed {
    struct store_push *push;
    struct hearth_push_row rows[2];
    int service, pods[2];
    size_t n_rows;
    int64_t ts_ns, duration_ns, totals[2]; /* by type as above */
    struct hearth_profile_id id;
};

static struct fixture g_fix;
static struct pushed g_pushed[N_PROFILES];
static size_t g_n_pushed;
static uint64_t g_rng = 11;
static struct hearth_limits g_limits;
static struct hearth_query_engine *g_engine;

static int64_t begin_ns(void)
{
    return the_day() * HEARTH_NS_PER_DAY + 22 * HOUR; /* over midnight */
}

/* ---- pushing ---- */

static int64_t draw_duration(void)
{
    switch (synth_below(&g_rng, 6)) {
    case 0:
        return 0;
    case 1:
        return 1 + synth_below(&g_rng, 3);
    case 2:
        return (int64_t)(synth_next(&g_rng) % (uint64_t)(75 * 60 * SECOND));
    default:
        return 10 * SECOND + (int64_t)synth_below(&g_rng, 1000000);
    }
}

/* Some begin where others do, or where others end, or a nanosecond beside. */
static int64_t draw_time(void)
{
    if (g_n_pushed > 0 && synth_below(&g_rng, 3) == 0) {
        const struct pushed *other = &g_pushed[synth_below(&g_rng, (uint32_t)g_n_pushed)];
        int64_t ts_ns = other->ts_ns + (synth_below(&g_rng, 2) ? other->duration_ns : 0);
        return ts_ns - 1 + (int64_t)synth_below(&g_rng, 3);
    }
    return begin_ns() + (int64_t)(synth_next(&g_rng) % (uint64_t)(4 * HOUR));
}

static void push_one(void)
{
    struct pushed *p = &g_pushed[g_n_pushed];
    struct store_push *push = hearth_mem_zalloc(sizeof *push);
    p->service = (int)synth_below(&g_rng, N_SERVICES);
    p->pods[0] = (int)synth_below(&g_rng, N_PODS);
    p->pods[1] = (p->pods[0] + 1) % N_PODS;
    p->n_rows = 1 + (synth_below(&g_rng, 3) == 0);
    p->ts_ns = draw_time();
    p->duration_ns = draw_duration();
    p->push = push;
    push->store = g_fix.store;
    hearth_arena_init(&push->arena, 0);
    struct hearth_profile profile = synth_profile(&g_world, 4, 2, &push->arena, NULL);
    struct hearth_series_ref ref[2] = {{0}};
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
    p->totals[0] = push->row.columns.totals[1];
    p->totals[1] = push->row.columns.totals[0];
    push->item.service_id = ref[0].service_id;
    push->item.ts_ns = p->ts_ns;
    push->item.rows = p->rows;
    push->item.n_rows = p->n_rows;
    push->item.done = store_push_done;
    store_push_submit(push);
    g_n_pushed++;
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
}

/* ---- the model ---- */

struct question {
    struct hearth_span_window window;
    struct hearth_str types[3];
    char selector[96];
    int service, pod; /* -1: any */
    int64_t lookback_ns;
};

static bool overlaps(const struct question *q, const struct pushed *p)
{
    __int128 lo = (__int128)q->window.start_ns - q->window.pad_ns;
    __int128 hi = (__int128)q->window.end_ns + q->window.pad_ns;
    return p->ts_ns <= hi && (__int128)p->ts_ns + p->duration_ns >= lo &&
           p->ts_ns >= lo - q->lookback_ns;
}

/* How many of its rows the selector takes. */
static size_t n_rows_of(const struct question *q, const struct pushed *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_rows; i++) {
        n += (q->service < 0 || q->service == p->service) && (q->pod < 0 || q->pod == p->pods[i]);
    }
    return n;
}

static bool asks_for(const struct question *q, size_t type)
{
    bool found = q->window.n_profile_types == 0;
    for (size_t i = 0; i < q->window.n_profile_types; i++) {
        found = found || hearth_str_starts(q->types[i], hearth_str_c(TYPES[type]));
    }
    return found;
}

static int by_time_and_id(const void *left, const void *right)
{
    const struct pushed *a = *(const struct pushed *const *)left;
    const struct pushed *b = *(const struct pushed *const *)right;
    if (a->ts_ns != b->ts_ns) {
        return a->ts_ns < b->ts_ns ? -1 : 1;
    }
    if (a->id.writer_id != b->id.writer_id) {
        return a->id.writer_id < b->id.writer_id ? -1 : 1;
    }
    return (a->id.profile_no > b->id.profile_no) - (a->id.profile_no < b->id.profile_no);
}

static size_t expect(const struct question *q, const struct pushed *ret[N_PROFILES])
{
    size_t n = 0;
    for (size_t i = 0; i < g_n_pushed && (asks_for(q, 0) || asks_for(q, 1)); i++) {
        if (overlaps(q, &g_pushed[i]) && n_rows_of(q, &g_pushed[i]) > 0) {
            ret[n++] = &g_pushed[i];
        }
    }
    qsort(ret, n, sizeof ret[0], by_time_and_id);
    return n;
}

/* ---- asking ---- */

static enum hearth_status ask(const struct question *q, struct hearth_arena *arena,
                              struct hearth_found *ret)
{
    static struct hearth_err failure;
    struct hearth_query query = {.call = {.tenant = TENANT, .arena = arena}};
    g_limits.span_window_lookback_ns = q->lookback_ns;
    hearth_query_engine_free(g_engine);
    g_engine = NULL;
    assert_ok(hearth_query_engine_new(&g_limits, 0, g_fix.store, &g_engine, &err));
    query.call.engine = g_engine;
    failure = (struct hearth_err)HEARTH_ERR_INIT;
    enum hearth_status status = hearth_span_window(&query, &q->window, ret, &failure);
    if (status != HEARTH_OK && status != HEARTH_INVALID_ARGUMENT) {
        print_error("%s\n", failure.msg);
    }
    return status;
}

static void compare_types(const struct question *q, const struct pushed *const *want, size_t n,
                          const struct hearth_found *found)
{
    size_t at = 0;
    for (size_t type = 0; type < 2; type++) {
        int64_t total = 0;
        if (!asks_for(q, type) || n == 0) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            total += want[i]->totals[type] * (int64_t)n_rows_of(q, want[i]);
        }
        assert_true(at < found->n_types);
        const struct hearth_found_type *got = &found->types[at++];
        assert_string_equal(got->profile_type.p, TYPES[type]);
        assert_string_equal(got->unit.p, UNITS[type]);
        assert_int_equal(got->total, total);
        assert_int_equal(got->n_profiles, n);
    }
    assert_int_equal(found->n_types, at);
}

static void compare_profile(const struct question *q, const struct pushed *want,
                            const struct hearth_found_profile *got)
{
    char service[16], pod[2][16];
    (void)snprintf(service, sizeof service, "svc-%d", want->service);
    assert_int_equal(got->id.writer_id, want->id.writer_id);
    assert_int_equal(got->id.profile_no, want->id.profile_no);
    assert_int_equal(got->time_ns, want->ts_ns);
    assert_int_equal(got->duration_ns, want->duration_ns);
    assert_string_equal(got->service.p, service);
    struct hearth_str said = hearth_labels_get(&got->labels, HEARTH_STR("pod"));
    assert_non_null(said.p);
    bool known = false;
    for (size_t i = 0; i < want->n_rows; i++) {
        (void)snprintf(pod[i], sizeof pod[i], "pod-%d", want->pods[i]);
        known = known || (strcmp(said.p, pod[i]) == 0 && (q->pod < 0 || q->pod == want->pods[i]));
    }
    assert_true(known);
    assert_null(hearth_labels_get(&got->labels, HEARTH_STR("__profile_type__")).p);
}

/* The range of the answer holds them all, and no millisecond more. */
static void compare_range(const struct pushed *const *want, size_t n,
                          const struct hearth_found *found)
{
    int64_t first_ns = want[0]->ts_ns, last_ns = want[n - 1]->ts_ns;
    assert_true(found->start_ms * HEARTH_NS_PER_MS <= first_ns);
    assert_true((found->start_ms + 1) * HEARTH_NS_PER_MS > first_ns);
    assert_true(found->end_ms * HEARTH_NS_PER_MS >= last_ns);
    assert_true((found->end_ms - 1) * HEARTH_NS_PER_MS < last_ns);
}

static size_t check_question(const struct question *q)
{
    const struct pushed *want[N_PROFILES];
    struct hearth_arena arena;
    struct hearth_found found;
    hearth_arena_init(&arena, 0);
    size_t n = expect(q, want);
    size_t max = q->window.max_profiles == 0 ? 100 : q->window.max_profiles;
    assert_int_equal(ask(q, &arena, &found), HEARTH_OK);
    assert_int_equal(found.n_all_profiles, n);
    assert_int_equal(found.n_profiles, n < max ? n : max);
    assert_int_equal(found.certainty, n > 0 ? HEARTH_CERTAINTY_WINDOW : HEARTH_CERTAINTY_NONE);
    assert_true((found.reason.n == 0) == (n > 0));
    assert_non_null(strstr(found.searched.p, "that were being taken from"));
    assert_string_equal(found.selector.p, q->selector);
    compare_types(q, want, n, &found);
    for (size_t i = 0; i < found.n_profiles; i++) {
        compare_profile(q, want[i], &found.profiles[i]);
    }
    if (n > 0) {
        compare_range(want, n, &found);
    }
    hearth_arena_release(&arena);
    return n;
}

static void draw_selector(struct question *q, const struct pushed *p)
{
    uint32_t kind = synth_below(&g_rng, 8);
    q->service = kind == 0 ? -1 : p->service;
    q->pod = kind < 4 ? -1 : p->pods[0];
    (void)snprintf(q->selector, sizeof q->selector,
                   kind == 0  ? "{}"
                   : kind < 4 ? "{service_name=\"svc-%d\"}"
                              : "{service_name=\"svc-%d\", pod=\"pod-%d\"}",
                   q->service, q->pod);
    q->window.selector = hearth_str_c(q->selector);
    static const char *const named[] = {"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                                        "process_cpu:samples:count:cpu:nanoseconds:delta",
                                        "memory:alloc_space:bytes:space:bytes"};
    q->window.n_profile_types = synth_below(&g_rng, 2) ? 0 : 1 + synth_below(&g_rng, 3);
    for (size_t i = 0; i < q->window.n_profile_types; i++) {
        q->types[i] = hearth_str_c(named[synth_below(&g_rng, 3)]);
    }
    q->window.profile_types = q->types;
    q->window.max_profiles = synth_below(&g_rng, 4) ? 0 : 1 + synth_below(&g_rng, 3);
}

/* A window that some profile just meets, or just does not. */
static void draw_question(struct question *q)
{
    static const int64_t lookbacks[] = {0, 1, 10 * 60 * SECOND, HOUR, 2 * HOUR};
    const struct pushed *p = &g_pushed[synth_below(&g_rng, (uint32_t)g_n_pushed)];
    int64_t length = synth_below(&g_rng, 3) ? (int64_t)synth_below(&g_rng, 2000000000)
                                            : (int64_t)synth_below(&g_rng, 3);
    int64_t beside = (int64_t)synth_below(&g_rng, 3) - 1;
    int64_t pad =
        synth_below(&g_rng, 2) ? 0 : (int64_t)(synth_next(&g_rng) % (uint64_t)(60 * SECOND));
    *q = (struct question){.lookback_ns = lookbacks[synth_below(&g_rng, 5)]};
    draw_selector(q, p);
    q->window.pad_ns = pad;
    switch (synth_below(&g_rng, 4)) {
    case 0: /* it ends where the window begins */
        q->window.start_ns = p->ts_ns + p->duration_ns + pad + beside;
        break;
    case 1: /* it begins where the window ends */
        q->window.start_ns = p->ts_ns - pad - length + beside;
        break;
    case 2: /* it began as long before as is looked back */
        q->window.start_ns = p->ts_ns + pad + q->lookback_ns + beside;
        break;
    default:
        q->window.start_ns = begin_ns() + (int64_t)(synth_next(&g_rng) % (uint64_t)(4 * HOUR));
        break;
    }
    q->window.end_ns = q->window.start_ns + length;
}

static void compare_windows(void)
{
    size_t n_some = 0, n_none = 0, n_many = 0, n_windows = (size_t)test_rounds(N_WINDOWS);
    for (size_t i = 0; i < n_windows; i++) {
        struct question q;
        draw_question(&q);
        size_t n = check_question(&q);
        n_none += n == 0;
        n_some += n > 0;
        n_many += n > 1;
    }
    assert_true(n_none > n_windows / 10 && n_some > n_windows / 4 && n_many > n_windows / 10);
}

static struct question question_of(const char *selector, int64_t start_ns, int64_t end_ns)
{
    struct question q = {.service = -1, .pod = -1, .lookback_ns = HOUR};
    (void)snprintf(q.selector, sizeof q.selector, "%s", selector);
    q.window = (struct hearth_span_window){.start_ns = start_ns, .end_ns = end_ns};
    return q;
}

/* ---- what has to hold ---- */

static void windows_meet_profiles_to_the_nanosecond_in_every_state(void **state)
{
    (void)state;
    push_some(N_PROFILES / 3);
    compare_windows();
    build(&g_fix);
    push_some(N_PROFILES / 3);
    assert_true(count(&g_fix, "profile_late") > 0);
    compare_windows();
    fold_late(&g_fix);
    compare_windows();
    compact_hours(&g_fix);
    assert_true(count(&g_fix, "segment") > 0);
    compare_windows();
    push_some(N_PROFILES / 3); /* late, of hours that are compacted */
    assert_true(count(&g_fix, "profile_late") > 0);
    compare_windows();
    fold_late(&g_fix);
    compare_windows();
}

static void windows_at_the_ends_of_time_do_not_overflow(void **state)
{
    static const int64_t ends[][3] = {
        {INT64_MIN, INT64_MAX, INT64_MAX}, {INT64_MIN, INT64_MAX, 0}, {INT64_MAX, INT64_MAX, 0},
        {INT64_MIN, INT64_MIN, 0},         {0, 0, INT64_MAX},         {INT64_MIN, INT64_MIN, 1},
        {INT64_MAX, INT64_MAX, INT64_MAX},
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ends); i++) {
        struct question q = question_of("{}", ends[i][0], ends[i][1]);
        q.window.selector = hearth_str_c(q.selector);
        q.window.pad_ns = ends[i][2];
        for (int k = 0; k < 3; k++) {
            q.lookback_ns = k == 0 ? 0 : k == 1 ? HOUR : INT64_MAX;
            (void)check_question(&q);
        }
    }
}

static void assert_refused(const struct question *q)
{
    struct hearth_arena arena;
    struct hearth_found found;
    hearth_arena_init(&arena, 0);
    assert_int_equal(ask(q, &arena, &found), HEARTH_INVALID_ARGUMENT);
    hearth_arena_release(&arena);
}

static void an_invalid_window_is_refused(void **state)
{
    (void)state;
    struct question q = question_of("{}", 5, 4);
    q.window.selector = hearth_str_c(q.selector);
    assert_refused(&q);
    q.window.end_ns = 5;
    q.window.pad_ns = -1;
    assert_refused(&q);
    q.window.pad_ns = 0;
    q.window.selector = HEARTH_STR("{pod=}");
    assert_refused(&q);
    q.window.selector = HEARTH_STR("");
    assert_refused(&q);
    q.window.selector = HEARTH_STR("{}");
    q.types[0] = HEARTH_STR("cpu");
    q.window.profile_types = q.types;
    q.window.n_profile_types = 1;
    assert_refused(&q);
    q.window.n_profile_types = 101;
    assert_refused(&q);
    q.window.n_profile_types = 0;
    q.window.end_ns = 5 + HOUR;
    g_limits.max_query_range_ns = HOUR - 1;
    assert_refused(&q);
    g_limits.max_query_range_ns = HOUR;
    (void)check_question(&q);
    g_limits.max_query_range_ns = 0;
}

static void assert_says(const struct question *q, const char *searched, const char *reason)
{
    struct hearth_arena arena;
    struct hearth_found found;
    hearth_arena_init(&arena, 0);
    assert_int_equal(ask(q, &arena, &found), HEARTH_OK);
    if (strstr(found.searched.p, searched) == NULL || strstr(found.reason.p, reason) == NULL) {
        fail_msg("\"%s\", \"%s\"", found.searched.p, found.reason.p);
    }
    hearth_arena_release(&arena);
}

static void an_empty_answer_names_the_searched_range_and_the_retention(void **state)
{
    (void)state;
    int64_t at_ns = begin_ns() + 2 * HOUR;
    struct question q = question_of("{service_name=\"nobody\"}", at_ns, at_ns + SECOND);
    q.window.selector = hearth_str_c(q.selector);
    q.window.pad_ns = 60 * SECOND;
    assert_says(&q, "(the span with 1m on both sides); not those that began before",
                "no series that the selector takes");
    q = question_of("{}", at_ns + 20 * HOUR, at_ns + 21 * HOUR);
    q.window.selector = hearth_str_c(q.selector);
    assert_says(&q, "(span-window-lookback: 1h)", "no ");
    q = question_of("{}", at_ns - 10 * HEARTH_NS_PER_DAY, at_ns - 10 * HEARTH_NS_PER_DAY);
    q.window.selector = hearth_str_c(q.selector);
    assert_says(&q, "are gone (retain-raw)", "profiles were kept from ");
    q = question_of("{}", at_ns, at_ns + 20 * HOUR);
    q.window.selector = hearth_str_c(q.selector);
    assert_true(check_question(&q) > 0);
    g_limits.max_query_lookback_ns = 6 * HOUR;
    assert_says(&q, "(max-query-lookback)", "queries may look back to ");
    g_limits.max_query_lookback_ns = 0;
    assert_ok(
        hearth_store_retention_set(g_fix.store, TENANT, HEARTH_STR("retain-raw"), HOUR, &err));
    assert_says(&q, "are gone (retain-raw)", "profiles were kept from ");
    q.window.end_ns = hearth_clock_wall_ns();
    assert_says(&q, "are gone (retain-raw)", "; those before ");
    assert_ok(hearth_store_retention_set(g_fix.store, TENANT, HEARTH_STR("retain-raw"), -1, &err));
    q.window.end_ns = at_ns + 20 * HOUR;
    assert_true(check_question(&q) > 0);
}

static int start_window(void **state)
{
    int status = start_cluster(state);
    hearth_limits_init(&g_limits);
    open_fixture(&g_fix);
    return status;
}

static int stop_window(void **state)
{
    hearth_query_engine_free(g_engine);
    close_fixture(&g_fix);
    return stop_cluster(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_meet_profiles_to_the_nanosecond_in_every_state),
        cmocka_unit_test(windows_at_the_ends_of_time_do_not_overflow),
        cmocka_unit_test(an_invalid_window_is_refused),
        cmocka_unit_test(an_empty_answer_names_the_searched_range_and_the_retention),
    };
    return cmocka_run_group_tests(tests, start_window, stop_window);
}
