/* test_spans.c -- spans: stored bytes, all forms of ids, segments of one request. */
#include "hearth/model/spans.h"

#include "arena_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct hearth_err g_err;

/* ---- stored bytes ---- */

static void assert_same_text(struct hearth_str a, struct hearth_str b)
{
    assert_true(hearth_str_eq(a, b));
}

static void assert_same_tags(const struct hearth_span_tag *a, const struct hearth_span_tag *b,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_same_text(a[i].key, b[i].key);
        assert_same_text(a[i].value, b[i].value);
    }
}

static void assert_same_lists(const struct hearth_span *a, const struct hearth_span *b)
{
    assert_int_equal(a->n_refs, b->n_refs);
    for (size_t i = 0; i < a->n_refs; i++) {
        assert_int_equal(a->refs[i].across_threads, b->refs[i].across_threads);
        assert_same_text(a->refs[i].trace_id, b->refs[i].trace_id);
        assert_same_text(a->refs[i].segment_id, b->refs[i].segment_id);
        assert_int_equal(a->refs[i].span_id, b->refs[i].span_id);
        assert_same_text(a->refs[i].service, b->refs[i].service);
        assert_same_text(a->refs[i].instance, b->refs[i].instance);
        assert_same_text(a->refs[i].endpoint, b->refs[i].endpoint);
        assert_same_text(a->refs[i].address, b->refs[i].address);
    }
    assert_int_equal(a->n_tags, b->n_tags);
    assert_same_tags(a->tags, b->tags, a->n_tags);
    assert_int_equal(a->n_logs, b->n_logs);
    for (size_t i = 0; i < a->n_logs; i++) {
        assert_int_equal(a->logs[i].at_ns, b->logs[i].at_ns);
        assert_int_equal(a->logs[i].n_tags, b->logs[i].n_tags);
        assert_same_tags(a->logs[i].tags, b->logs[i].tags, a->logs[i].n_tags);
    }
}

static void assert_same_span(const struct hearth_span *a, const struct hearth_span *b)
{
    assert_int_equal(a->span_id, b->span_id);
    assert_int_equal(a->has_parent, b->has_parent);
    if (a->has_parent) {
        assert_int_equal(a->parent_id, b->parent_id);
    }
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->skip_analysis, b->skip_analysis);
    assert_int_equal(a->start_ns, b->start_ns);
    assert_int_equal(a->end_ns, b->end_ns);
    assert_same_text(a->name, b->name);
    assert_same_text(a->peer, b->peer);
    assert_int_equal(a->layer, b->layer);
    assert_int_equal(a->component, b->component);
    assert_same_lists(a, b);
}

static void assert_round_trip(const struct hearth_span *spans, size_t n, int64_t origin_ns)
{
    struct hearth_buf packed;
    hearth_buf_init(&packed, 0);
    hearth_spans_encode(spans, n, origin_ns, &packed);
    assert_false(hearth_buf_failed(&packed));
    struct hearth_span *again;
    size_t n_again;
    assert_int_equal(hearth_spans_decode(hearth_buf_view(&packed), origin_ns, &g_arena, &again,
                                         &n_again, &g_err),
                     HEARTH_OK);
    assert_int_equal(n_again, n);
    for (size_t i = 0; i < n; i++) {
        assert_same_span(&spans[i], &again[i]);
    }
    for (size_t cut = 0; cut < packed.n; cut++) {
        assert_int_equal(hearth_spans_decode(hearth_str_n(packed.p, cut), origin_ns, &g_arena,
                                             &again, &n_again, &g_err),
                         HEARTH_CORRUPT);
    }
    hearth_buf_release(&packed);
}

#define MS INT64_C(1000000)

static void a_segment_is_restored(void **state)
{
    (void)state;
    struct hearth_span_ref ref = {.across_threads = true,
                                  .trace_id = HEARTH_STR("trace"),
                                  .segment_id = HEARTH_STR("parent"),
                                  .span_id = 4,
                                  .service = HEARTH_STR("shop"),
                                  .instance = HEARTH_STR("shop-1"),
                                  .endpoint = HEARTH_STR("/buy"),
                                  .address = HEARTH_STR("10.0.0.1:80")};
    struct hearth_span_tag tags[] = {{HEARTH_STR("url"), HEARTH_STR("/buy")},
                                     {HEARTH_STR("status"), HEARTH_STR("")}};
    struct hearth_span_log logs[] = {{1700000000020 * MS, tags, 2}, {0, NULL, 0}};
    struct hearth_span spans[] = {
        {.span_id = 0,
         .kind = HEARTH_SPAN_ENTRY,
         .status = HEARTH_SPAN_ERROR,
         .start_ns = 1700000000000 * MS,
         .end_ns = 1700000000500 * MS,
         .name = HEARTH_STR("/buy"),
         .layer = 3,
         .component = 7001,
         .refs = &ref,
         .n_refs = 1,
         .tags = tags,
         .n_tags = 2,
         .logs = logs,
         .n_logs = 2},
        {.span_id = 1,
         .parent_id = 0,
         .has_parent = true,
         .kind = HEARTH_SPAN_EXIT,
         .skip_analysis = true,
         .start_ns = 1700000000100 * MS,
         .end_ns = 1700000000090 * MS,
         .name = HEARTH_STR("SELECT"),
         .peer = HEARTH_STR("db:5432"),
         .layer = 1,
         .component = -2},
    };
    assert_round_trip(spans, 2, 1700000000000 * MS);
    assert_round_trip(spans, 0, 0);
}

static void spans_with_random_ids_and_nanoseconds_are_restored(void **state)
{
    (void)state;
    struct hearth_span spans[] = {
        {.span_id = (int64_t)0xfedcba9876543210u,
         .kind = HEARTH_SPAN_CONSUMER,
         .status = HEARTH_SPAN_OK,
         .start_ns = 1700000000000000001,
         .end_ns = 1700000000000000007},
        {.span_id = INT64_MIN,
         .parent_id = INT64_MAX,
         .has_parent = true,
         .start_ns = INT64_MAX,
         .end_ns = INT64_MIN,
         .name = HEARTH_STR("x")},
    };
    assert_round_trip(spans, 2, 1700000000000000000);
    assert_round_trip(spans, 2, INT64_MIN);
}

static void all_forms_of_an_id_have_one_key(void **state)
{
    (void)state;
    struct hearth_str lower = HEARTH_STR("0123456789abcdef00112233445566ff");
    struct hearth_str upper = HEARTH_STR("0123456789ABCDEF00112233445566FF");
    struct hearth_str raw =
        HEARTH_STR("\x01\x23\x45\x67\x89\xab\xcd\xef\x00\x11\x22\x33\x44\x55\x66\xff");
    assert_int_equal(hearth_trace_key(lower, false), hearth_trace_key(raw, true));
    assert_int_equal(hearth_trace_key(upper, false), hearth_trace_key(raw, true));
    struct hearth_str text = HEARTH_STR("0123456789abcdef00112233445566ff.1.2");
    assert_int_not_equal(hearth_trace_key(text, false), hearth_trace_key(raw, true));
    assert_int_not_equal(hearth_trace_key(lower, true), hearth_trace_key(raw, true));
}

/* ---- requests ---- */

static struct hearth_request_segment segment(const char *id, const char *parent,
                                             bool across_threads, bool is_profiled)
{
    struct hearth_span_ref *ref = hearth_arena_calloc(&g_arena, 1, sizeof *ref);
    struct hearth_span *span = hearth_arena_calloc(&g_arena, 1, sizeof *span);
    if (parent != NULL) {
        *ref = (struct hearth_span_ref){.across_threads = across_threads,
                                        .segment_id = hearth_str_c(parent)};
        span->refs = ref;
        span->n_refs = 1;
    }
    return (struct hearth_request_segment){.trace_id = HEARTH_STR("t"),
                                           .segment_id = hearth_str_c(id),
                                           .instance = HEARTH_STR("i"),
                                           .service_id = 1,
                                           .spans = span,
                                           .n_spans = 1,
                                           .is_profiled = is_profiled};
}

/* "AB C D" */
static void assert_requests(const struct hearth_request_segment *segments, size_t n,
                            const char *want)
{
    struct hearth_request *requests;
    size_t n_requests;
    assert_int_equal(hearth_requests_make(segments, n, &g_arena, &requests, &n_requests, &g_err),
                     HEARTH_OK);
    char text[64] = "";
    for (size_t i = 0; i < n_requests; i++) {
        (void)strcat(text, i == 0 ? "" : " ");
        for (size_t k = 0; k < requests[i].n_segments; k++) {
            (void)strncat(text, requests[i].segments[k]->segment_id.p, 1);
        }
    }
    assert_string_equal(text, want);
}

static void threads_started_by_threads_belong_to_one_request(void **state)
{
    (void)state;
    struct hearth_request_segment segments[] = {segment("B", "A", true, false),
                                                segment("A", NULL, false, false),
                                                segment("C", "B", true, true)};
    assert_requests(segments, 3, "ABC");
}

static void other_processes_and_unknown_parents_begin_requests(void **state)
{
    (void)state;
    struct hearth_request_segment segments[] = {
        segment("A", NULL, false, true), segment("B", "A", true, true),
        segment("C", "B", false, true), segment("D", "Z", true, true)};
    assert_requests(segments, 4, "AB C D");
    segments[2].is_profiled = segments[0].is_profiled = false;
    assert_requests(segments, 4, "AB D"); /* B is profiled */
    segments[1].is_profiled = false;
    assert_requests(segments, 4, "D");
}

static void other_traces_and_instances_are_separate_requests(void **state)
{
    (void)state;
    struct hearth_request_segment segments[] = {
        segment("A", NULL, false, true), segment("B", "A", true, true),
        segment("C", "A", true, true), segment("D", "A", true, true)};
    segments[1].trace_id = HEARTH_STR("other");
    segments[2].instance = HEARTH_STR("other");
    segments[3].service_id = 2;
    assert_requests(segments, 4, "A B C D");
}

static void a_circle_of_segments_is_one_request(void **state)
{
    (void)state;
    struct hearth_request_segment segments[] = {
        segment("A", "B", true, true), segment("B", "A", true, false),
        segment("C", "C", true, true), segment("D", NULL, false, true)};
    assert_requests(segments, 4, "C D AB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_segment_is_restored, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(spans_with_random_ids_and_nanoseconds_are_restored,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(all_forms_of_an_id_have_one_key, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(threads_started_by_threads_belong_to_one_request,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(other_processes_and_unknown_parents_begin_requests,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(other_traces_and_instances_are_separate_requests,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(a_circle_of_segments_is_one_request, make_arena,
                                        free_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
