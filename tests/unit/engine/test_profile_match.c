/* test_profile_match.c -- which rows and samples a filter by profile, span and trace lets through. */
#include "arena_fixture.h"
#include "select/profile_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_err g_err;

static const struct hearth_profile_match *match_of(struct hearth_profile_filter filter)
{
    struct hearth_profile_match *match;
    assert_int_equal(hearth_profile_match_make(&filter, &g_arena, &match, &g_err), HEARTH_OK);
    return match;
}

static bool lets_through(const struct hearth_profile_match *match, uint64_t span, uint64_t hi,
                         uint64_t lo)
{
    const struct hearth_sample_attrs attrs = {
        .span_id = span, .trace_id_hi = hi, .trace_id_lo = lo, .local_root_span_id = 77};
    return hearth_profile_match_sample(match, &attrs);
}

static bool lets_row_through(const struct hearth_profile_match *match, int32_t writer, int64_t no)
{
    const struct hearth_read_row row = {.writer_id = writer, .profile_no = no};
    return hearth_profile_match_row(match, &row);
}

static void an_empty_filter_restricts_nothing(void **state)
{
    (void)state;
    assert_null(match_of((struct hearth_profile_filter){0}));
}

static void profiles_are_known_by_writer_and_number(void **state)
{
    (void)state;
    const struct hearth_profile_id ids[] = {{7, 5}, {2, 9}, {7, 1}, {2, 9}, {0, 0}};
    const struct hearth_profile_match *match =
        match_of((struct hearth_profile_filter){.profiles = ids, .n_profiles = 5});
    assert_true(lets_row_through(match, 7, 5));
    assert_true(lets_row_through(match, 7, 1));
    assert_true(lets_row_through(match, 2, 9));
    assert_false(lets_row_through(match, 2, 5));
    assert_false(lets_row_through(match, 7, 9));
    assert_false(match->of_samples);
    assert_true(match->detail.identity);
    assert_int_equal(match->detail.attrs, HEARTH_ATTRS_NOT_READ);
}

static void a_profile_must_match_one_value_of_each_list(void **state)
{
    (void)state;
    const uint64_t spans[] = {9, 3, UINT64_MAX};
    const struct hearth_trace_id traces[] = {{1, 2}, {0, 5}};
    const struct hearth_profile_match *match = match_of((struct hearth_profile_filter){
        .spans = spans, .n_spans = 3, .traces = traces, .n_traces = 2});
    assert_true(match->of_samples);
    assert_int_equal(match->detail.attrs, HEARTH_ATTRS_ALONE);
    assert_true(lets_through(match, 3, 1, 2));
    assert_true(lets_through(match, UINT64_MAX, 0, 5));
    assert_false(lets_through(match, 3, 0, 0));
    assert_false(lets_through(match, 3, 2, 1));
    assert_false(lets_through(match, 4, 1, 2));
    assert_false(lets_through(match, 77, 1, 2)); /* the local root is another id */
    assert_true(lets_row_through(match, 1, 1));
    match = match_of((struct hearth_profile_filter){.traces = traces, .n_traces = 2});
    assert_true(lets_through(match, 0, 0, 5));
}

static void a_sample_may_meet_one_list_of_several(void **state)
{
    (void)state;
    const uint64_t spans[] = {3}, roots[] = {77, 8};
    const struct hearth_trace_id traces[] = {{1, 2}};
    struct hearth_profile_filter filter = {.spans = spans,
                                           .n_spans = 1,
                                           .local_roots = roots,
                                           .n_local_roots = 2,
                                           .traces = traces,
                                           .n_traces = 1,
                                           .any_list = true};
    const struct hearth_profile_match *match = match_of(filter);
    assert_int_equal(match->detail.n_attrs_with, 4);
    assert_true(lets_through(match, 3, 0, 0)); /* its local root is 77, too */
    assert_true(lets_through(match, 4, 0, 0));
    filter.n_local_roots = 0;
    match = match_of(filter);
    assert_true(lets_through(match, 3, 9, 9));
    assert_true(lets_through(match, 4, 1, 2));
    assert_false(lets_through(match, 4, 2, 2));
    filter.n_local_roots = 2;
    filter.any_list = false;
    match = match_of(filter);
    assert_true(lets_through(match, 3, 1, 2));
    assert_false(lets_through(match, 3, 1, 3));
    assert_int_equal(match->detail.n_attrs_with, 1);
}

/* In order and each once, up to what fits. */
static void spans_that_counted_are_kept_in_order(void **state)
{
    (void)state;
    struct hearth_span_set set = {
        .ids = hearth_arena_array(&g_arena, HEARTH_SPAN_SET_MAX, sizeof set.ids[0])};
    for (uint64_t i = 0; i < HEARTH_SPAN_SET_MAX + UINT64_C(5); i++) {
        hearth_span_set_add(&set, i * 7919 % 10007);
        hearth_span_set_add(&set, i * 7919 % 10007);
    }
    hearth_span_set_add(&set, 0);
    assert_int_equal(set.n, HEARTH_SPAN_SET_MAX);
    for (size_t i = 0; i < set.n; i++) {
        assert_true(set.ids[i] > (i == 0 ? 0 : set.ids[i - 1]));
    }
}

static void zero_is_not_an_id(void **state)
{
    (void)state;
    const uint64_t spans[] = {0};
    const struct hearth_trace_id traces[] = {{0, 0}};
    assert_false(lets_through(
        match_of((struct hearth_profile_filter){.spans = spans, .n_spans = 1}), 0, 0, 0));
    assert_false(lets_through(
        match_of((struct hearth_profile_filter){.traces = traces, .n_traces = 1}), 0, 0, 0));
}

/* What the database looks for must be in the bytes of attributes that have the id. */
static void hints_are_found_in_encoded_attributes(void **state)
{
    (void)state;
    const uint64_t span = 0x0102030405060708;
    const struct hearth_trace_id trace = {0xa1a2a3a4a5a6a7a8, 0xb1b2b3b4b5b6b7b8};
    const int64_t values[] = {1};
    const struct hearth_attr_sample sample = {
        .values = values,
        .attrs = {.span_id = span, .trace_id_hi = trace.hi, .trace_id_lo = trace.lo}};
    struct hearth_str bytes;
    assert_int_equal(hearth_sample_attrs_encode(&sample, 1, 1, &g_arena, &bytes, &g_err),
                     HEARTH_OK);
    const struct hearth_profile_match *const matches[] = {
        match_of((struct hearth_profile_filter){.spans = &span, .n_spans = 1}),
        match_of((struct hearth_profile_filter){.traces = &trace, .n_traces = 1}),
    };
    for (size_t m = 0; m < HEARTH_ARRAY_LEN(matches); m++) {
        assert_int_equal(matches[m]->detail.n_attrs_with, 1);
        struct hearth_str with = matches[m]->detail.attrs_with[0];
        assert_int_equal(with.n, m == 0 ? 8 : 16);
        bool found = false;
        for (size_t i = 0; i + with.n <= bytes.n; i++) {
            found = found || memcmp(bytes.p + i, with.p, with.n) == 0;
        }
        assert_true(found);
    }
}

static void a_value_column_that_is_missing_is_damage(void **state)
{
    (void)state;
    const int64_t values[] = {1, 2};
    const struct hearth_attr_sample sample = {.values = values, .attrs = {.span_id = 1}};
    struct hearth_read_row row = {.column = 1};
    struct hearth_attr_sample *samples;
    size_t n;
    assert_int_equal(hearth_sample_attrs_encode(&sample, 1, 2, &g_arena, &row.attrs, &g_err),
                     HEARTH_OK);
    assert_int_equal(hearth_row_samples(&row, &g_arena, &samples, &n, &g_err), HEARTH_OK);
    assert_int_equal(n, 1);
    row.column = 2;
    assert_int_equal(hearth_row_samples(&row, &g_arena, &samples, &n, &g_err), HEARTH_CORRUPT);
    row.attrs = (struct hearth_str){0};
    assert_int_equal(hearth_row_samples(&row, &g_arena, &samples, &n, &g_err), HEARTH_OK);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_filter_restricts_nothing),
        cmocka_unit_test(profiles_are_known_by_writer_and_number),
        cmocka_unit_test(a_profile_must_match_one_value_of_each_list),
        cmocka_unit_test(a_sample_may_meet_one_list_of_several),
        cmocka_unit_test(spans_that_counted_are_kept_in_order),
        cmocka_unit_test(zero_is_not_an_id),
        cmocka_unit_test(hints_are_found_in_encoded_attributes),
        cmocka_unit_test(a_value_column_that_is_missing_is_damage),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
