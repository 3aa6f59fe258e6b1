/* test_rows.c -- one group of samples to one stored row: what a reader finds in it. */
#include "hand_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static enum hearth_status encode(struct hand *h, const uint32_t *samples, uint32_t n,
                                 const uint32_t *stack_ids, bool has_attrs,
                                 struct hearth_push_row *row)
{
    uint32_t *copy = hearth_arena_array(&h->arena, n, sizeof copy[0]);
    assert_non_null(copy);
    memcpy(copy, samples, n * sizeof copy[0]);
    uint32_t types[4], n_types = 0;
    for (uint32_t k = 0; k < h->p.n_types; k++) {
        types[n_types] = k;
        bool has_value = false;
        for (uint32_t i = 0; i < n; i++) {
            has_value = has_value || h->p.values[(size_t)samples[i] * h->p.n_types + k] != 0;
        }
        n_types += has_value;
    }
    struct hearth_group group = {
        .samples = copy, .n_samples = n, .types = types, .n_types = n_types};
    struct hearth_push_work work = hand_work(h);
    return hearth_group_encode(&work, &group, stack_ids, has_attrs, row, &h->err);
}

/* All samples of the profile, in order. */
static struct hearth_push_row row_of(struct hand *h, const uint32_t *stack_ids, bool has_attrs)
{
    uint32_t all[128];
    struct hearth_push_row row;
    for (uint32_t i = 0; i < h->p.n_samples; i++) {
        all[i] = i;
    }
    enum hearth_status status = encode(h, all, h->p.n_samples, stack_ids, has_attrs, &row);
    if (status != HEARTH_OK) {
        fail_msg("%s", h->err.msg);
    }
    return row;
}

/* acc[id] of column k, as a merge reads it; the caller frees. */
static int64_t *read_column(struct hand *h, const struct hearth_push_row *row, uint32_t k)
{
    uint32_t bound;
    assert_true(hearth_columns_id_bound(row->columns.ids, &bound));
    int64_t *acc = calloc(bound, sizeof acc[0]);
    assert_non_null(acc);
    assert_int_equal(hearth_columns_merge(row->columns.ids, row->columns.vals[k],
                                          row->columns.vals[0], k == 0, acc, bound, &h->err),
                     HEARTH_OK);
    return acc;
}

static void samples_of_equal_stacks_are_summed_per_type_and_counted(void **state)
{
    struct hand *h = *state;
    hand_type(h, "samples", "count");
    h->p.duration_ns = 10;
    h->p.period = 7;
    (void)hand_sample_of(h, (const int64_t[]){100, 1});
    (void)hand_sample_of(h, (const int64_t[]){20, 2});
    (void)hand_sample_of(h, (const int64_t[]){3, 3});
    (void)hand_sample_of(h, (const int64_t[]){0, 4});
    struct hearth_push_row row = row_of(h, (const uint32_t[]){9, 2, 9, 0}, false);
    assert_int_equal(row.columns.n, 3);
    assert_int_equal(row.columns.n_types, 2);
    assert_int_equal(row.columns.totals[0], 123);
    assert_int_equal(row.columns.totals[1], 10);
    assert_int_equal(row.duration_ns, 10);
    assert_int_equal(row.period, 7);
    assert_int_equal(row.attrs.n, 0);
    int64_t *cpu = read_column(h, &row, 0), *count = read_column(h, &row, 1);
    assert_int_equal(cpu[9], 103);
    assert_int_equal(cpu[2], 20);
    assert_int_equal(cpu[0], 0);
    assert_int_equal(count[9], 4);
    assert_int_equal(count[2], 2);
    assert_int_equal(count[0], 4);
    free(cpu);
    free(count);
    assert_discards(h->discards, "merged_samples=1");
}

static void types_that_are_0_in_all_samples_are_no_columns(void **state)
{
    struct hand *h = *state;
    hand_type(h, "samples", "count");
    hand_type(h, "wall", "nanoseconds");
    (void)hand_sample_of(h, (const int64_t[]){0, 1, 10});
    hand_label(h, "span_id", "00000000000000ff");
    (void)hand_sample_of(h, (const int64_t[]){7, 0, 5}); /* of another group */
    (void)hand_sample_of(h, (const int64_t[]){0, 2, 0});
    (void)hand_sample_of(h, (const int64_t[]){0, 4, 20});
    struct hearth_push_row row;
    assert_int_equal(
        encode(h, (const uint32_t[]){0, 2, 3}, 3, (const uint32_t[]){3, 3, 8, 3}, true, &row),
        HEARTH_OK);
    assert_int_equal(row.columns.n_types, 2);
    assert_int_equal(row.columns.totals[0], 7);
    assert_int_equal(row.columns.totals[1], 30);
    int64_t *count = read_column(h, &row, 0), *wall = read_column(h, &row, 1);
    assert_int_equal(count[3], 5);
    assert_int_equal(count[8], 2);
    assert_int_equal(wall[3], 30);
    assert_int_equal(wall[8], 0);
    free(count);
    free(wall);

    /* Values beside the samples are of the same columns. */
    struct hearth_attr_sample *samples;
    uint32_t n_types;
    size_t n;
    assert_int_equal(
        hearth_sample_attrs_decode(row.attrs, &h->arena, &samples, &n, &n_types, &h->err),
        HEARTH_OK);
    assert_int_equal(n, 1);
    assert_int_equal(n_types, 2);
    assert_int_equal(samples[0].values[0], 1);
    assert_int_equal(samples[0].values[1], 10);
}

static void only_the_groups_own_samples_are_encoded(void **state)
{
    struct hand *h = *state;
    struct hearth_push_row row;
    for (unsigned i = 0; i < 5; i++) {
        (void)hand_sample(h, 1 << i);
    }
    const uint32_t ids[] = {1, 2, 1, HEARTH_NO_INDEX, 2};
    assert_int_equal(encode(h, (const uint32_t[]){0, 2, 4}, 3, ids, false, &row), HEARTH_OK);
    int64_t *cpu = read_column(h, &row, 0);
    assert_int_equal(row.columns.n, 2);
    assert_int_equal(cpu[1], 1 + 4);
    assert_int_equal(cpu[2], 16);
    free(cpu);
}

/* Ids in every digit of the sort, given in falling and in mixed order. */
static void stack_ids_of_any_size_are_sorted(void **state)
{
    static const uint32_t falling[] = {16777217, 16777216, 4194305, 65536, 256, 255, 1, 0};
    static const uint32_t mixed[] = {256, 0, 16777217, 1, 65536, 16777216, 255, 4194305};
    static const uint32_t *const orders[] = {falling, mixed};
    struct hand *h = *state;
    for (unsigned i = 0; i < HEARTH_ARRAY_LEN(falling); i++) {
        (void)hand_sample(h, i + 1);
    }
    for (unsigned o = 0; o < HEARTH_ARRAY_LEN(orders); o++) {
        struct hearth_push_row row = row_of(h, orders[o], false);
        int64_t *cpu = read_column(h, &row, 0);
        assert_int_equal(row.columns.n, HEARTH_ARRAY_LEN(falling));
        for (unsigned i = 0; i < HEARTH_ARRAY_LEN(falling); i++) {
            assert_int_equal(cpu[orders[o][i]], i + 1);
        }
        free(cpu);
    }
    assert_discards(h->discards, "");
}

static void the_highest_stack_id_survives(void **state)
{
    struct hand *h = *state;
    uint32_t bound;
    (void)hand_sample(h, 1);
    struct hearth_push_row row = row_of(h, (const uint32_t[]){UINT32_MAX - 1}, false);
    assert_true(hearth_columns_id_bound(row.columns.ids, &bound));
    assert_int_equal(bound, UINT32_MAX);
}

static void a_sum_of_equal_stacks_beyond_64_bits_is_refused_by_type(void **state)
{
    struct hand *h = *state;
    struct hearth_push_row row;
    hand_type(h, "alloc", "bytes");
    (void)hand_sample_of(h, (const int64_t[]){1, INT64_MAX});
    (void)hand_sample_of(h, (const int64_t[]){1, 1});
    assert_int_equal(encode(h, (const uint32_t[]){0, 1}, 2, (const uint32_t[]){4, 4}, false, &row),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(h->err.msg, "values of sample type 'alloc' overflow 64 bits when equal "
                                    "stacks are summed");
}

static void a_total_beyond_64_bits_is_refused(void **state)
{
    struct hand *h = *state;
    struct hearth_push_row row;
    hand_type(h, "alloc", "bytes");
    (void)hand_sample_of(h, (const int64_t[]){1, INT64_MAX});
    (void)hand_sample_of(h, (const int64_t[]){1, 1});
    assert_int_equal(encode(h, (const uint32_t[]){0, 1}, 2, (const uint32_t[]){4, 5}, false, &row),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(h->err.msg, "the profile's values overflow 64 bits when they are summed");
}

static void the_largest_values_are_exact(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, INT64_MAX - 1);
    (void)hand_sample(h, 1);
    struct hearth_push_row row = row_of(h, (const uint32_t[]){3, 3}, false);
    int64_t *cpu = read_column(h, &row, 0);
    assert_true(cpu[3] == INT64_MAX);
    assert_true(row.columns.totals[0] == INT64_MAX);
    free(cpu);
}

/* ---- attributes ---- */

static void attributes_keep_the_values_of_their_own_samples(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 10);
    hand_label(h, "span_id", "00000000000000ff");
    hand_label(h, "span_name", "GET /");
    (void)hand_sample(h, 20);
    hand_label(h, "profile_id", "00000000000000aa");
    hand_label(h, "trace_id", "0123456789abcdef00000000000000ff");
    (void)hand_sample(h, 30); /* the same stack without any span */
    (void)hand_sample(h, 40);
    hand_number(h, "thread id", 17);
    hand_number(h, "end_timestamp_ns", 1700000000);
    hand_label(h, "vehicle", "car"); /* not an attribute */
    struct hearth_push_row row = row_of(h, (const uint32_t[]){5, 5, 5, 6}, true);
    int64_t *cpu = read_column(h, &row, 0);
    assert_int_equal(cpu[5], 60);
    assert_int_equal(cpu[6], 40);
    free(cpu);
    assert_discards(h->discards, "merged_samples=2");

    struct hearth_attr_sample *samples;
    size_t n;
    uint32_t n_types;
    assert_int_equal(
        hearth_sample_attrs_decode(row.attrs, &h->arena, &samples, &n, &n_types, &h->err),
        HEARTH_OK);
    assert_int_equal(n, 3);
    assert_int_equal(n_types, 1);
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_attr_sample *s = &samples[i];
        struct hearth_sample_attrs expected = {0};
        if (s->values[0] == 10) {
            expected.span_id = 0xff;
            expected.span_name = HEARTH_STR("GET /");
        } else if (s->values[0] == 20) {
            expected.span_id = 0xaa;
            expected.trace_id_hi = 0x0123456789abcdef;
            expected.trace_id_lo = 0xff;
        } else {
            assert_int_equal(s->values[0], 40);
            expected.thread_id = 17;
            expected.timestamp_ns = 1700000000;
        }
        seen |= 1u << s->values[0] / 10;
        assert_int_equal(s->stack_id, s->values[0] == 40 ? 6 : 5);
        assert_true(hearth_sample_attrs_eq(&s->attrs, &expected));
    }
    assert_int_equal(seen, 1u << 1 | 1u << 2 | 1u << 4);
    assert_int_equal(row.n_associations, 2); /* the trace's low half is a span's number, too */
    for (size_t i = 0; i < 2; i++) {
        bool is_both = row.associations[i].key == hearth_span_key(0xff);
        assert_true(is_both || row.associations[i].key == hearth_span_key(0xaa));
        assert_int_equal(row.associations[i].of,
                         is_both ? HEARTH_OF_SPAN | HEARTH_OF_TRACE : HEARTH_OF_SPAN);
    }
}

static void empty_attributes_leave_the_column_empty(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 10);
    hand_number(h, "thread id", 0);
    struct hearth_push_row row = row_of(h, (const uint32_t[]){5}, true);
    assert_int_equal(row.attrs.n, 0);
    assert_int_equal(row.n_associations, 0);
}

static void a_refused_arena_fails_with_no_memory(void **state)
{
    struct hand *h = *state;
    struct hearth_push_row row;
    struct hearth_arena none;
    uint32_t sample = 0, id = 1, type = 0;
    struct hearth_group group = {.samples = &sample, .n_samples = 1, .types = &type, .n_types = 1};
    (void)hand_sample(h, 1);
    hand_label(h, "span_id", "00000000000000ff");
    hearth_arena_init(&none, 4);
    struct hearth_push_work work = hand_work(h);
    work.arena = &none;
    assert_int_equal(hearth_group_encode(&work, &group, &id, true, &row, &h->err),
                     HEARTH_NO_MEMORY);
    work = hand_work(h);
    work.keep = &none;
    assert_int_equal(hearth_group_encode(&work, &group, &id, true, &row, &h->err),
                     HEARTH_NO_MEMORY);
    hearth_arena_release(&none);
}

#define hand_test(f) cmocka_unit_test_setup_teardown(f, make_hand, free_hand)

int main(void)
{
    const struct CMUnitTest tests[] = {
        hand_test(samples_of_equal_stacks_are_summed_per_type_and_counted),
        hand_test(types_that_are_0_in_all_samples_are_no_columns),
        hand_test(only_the_groups_own_samples_are_encoded),
        hand_test(stack_ids_of_any_size_are_sorted),
        hand_test(the_highest_stack_id_survives),
        hand_test(a_sum_of_equal_stacks_beyond_64_bits_is_refused_by_type),
        hand_test(a_total_beyond_64_bits_is_refused),
        hand_test(the_largest_values_are_exact),
        hand_test(attributes_keep_the_values_of_their_own_samples),
        hand_test(empty_attributes_leave_the_column_empty),
        hand_test(a_refused_arena_fails_with_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
