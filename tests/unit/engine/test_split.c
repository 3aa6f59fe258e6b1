/* test_split.c -- which samples of a profile count, and which series each belongs to. */
#include "hand_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct hearth_label g_own[] = {{{"pod", 3}, {"p1", 2}}, {{"zone", 4}, {"eu", 2}}};
static const struct hearth_labels g_series = {g_own, 2};

static struct hearth_split split(struct hand *h)
{
    struct hearth_split split;
    struct hearth_push_work work = hand_work(h);
    enum hearth_status status = hearth_split_samples(&work, &g_series, h->skip, &split, &h->err);
    if (status != HEARTH_OK) {
        fail_msg("%s", h->err.msg);
    }
    return split;
}

/* "labels:sample,sample" a line, groups in order. */
static void assert_groups(struct hand *h, const struct hearth_split *split, const char *expected)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t g = 0; g < split->n_groups; g++) {
        const struct hearth_group *group = &split->groups[g];
        hearth_buf_printf(&out, "%s:", labels_text_of(&group->labels, &h->arena));
        for (uint32_t i = 0; i < group->n_samples; i++) {
            hearth_buf_printf(&out, "%s%u", i > 0 ? "," : "", group->samples[i]);
        }
        hearth_buf_byte(&out, '\n');
    }
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, expected);
    hearth_buf_release(&out);
}

/* ---- which samples count ---- */

static void without_sample_labels_all_samples_are_one_group(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 1);
    (void)hand_sample(h, 2);
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", zone=\"eu\"}:0,1\n");
    assert_false(s.has_attrs);
    assert_discards(h->discards, "");
}

/* The same five samples with and without a sample label elsewhere: both ways drop alike. */
static void add_bad_samples(struct hand *h)
{
    hand_type(h, "samples", "count");
    (void)hand_sample_of(h, (const int64_t[]){5, 0});
    (void)hand_sample_of(h, (const int64_t[]){0, 0});
    (void)hand_sample_of(h, (const int64_t[]){5, -1});
    (void)hand_sample_of(h, (const int64_t[]){0, 7});
    (void)hand_sample_of(h, (const int64_t[]){-1, -1});
    (void)hand_sample_of(h, (const int64_t[]){-1, 9}); /* dangling: counted as that only */
    h->skip[5] = true;
}

static void a_group_has_the_types_of_which_it_has_a_value(void **state)
{
    static const uint32_t all[] = {0, 1, 2}, first[] = {0, 1}, last[] = {2};
    struct hand *h = *state;
    hand_type(h, "samples", "count");
    hand_type(h, "wall", "nanoseconds");
    (void)hand_sample_of(h, (const int64_t[]){5, 0, 0});
    (void)hand_sample_of(h, (const int64_t[]){0, 7, 0});
    struct hearth_split s = split(h);
    assert_int_equal(s.n_groups, 1);
    assert_int_equal(s.groups[0].n_types, 2);
    assert_memory_equal(s.groups[0].types, first, sizeof first);
    assert_discards(h->discards, "zero_types=1");

    /* Each group has its own. */
    (void)hand_sample_of(h, (const int64_t[]){0, 0, 3});
    hand_label(h, "thread", "main");
    s = split(h);
    assert_int_equal(s.n_groups, 2);
    assert_memory_equal(s.groups[0].types, first, sizeof first);
    assert_int_equal(s.groups[1].n_types, 1);
    assert_memory_equal(s.groups[1].types, last, sizeof last);
    (void)hand_sample_of(h, (const int64_t[]){1, 0, 1});
    s = split(h);
    assert_int_equal(s.groups[0].n_types, 3);
    assert_memory_equal(s.groups[0].types, all, sizeof all);
}

static const bool g_bad[] = {false, true, true, false, true, true};

static void negative_zero_and_dangling_samples_are_left_out_and_counted(void **state)
{
    struct hand *h = *state;
    add_bad_samples(h);
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", zone=\"eu\"}:0,3\n");
    assert_memory_equal(h->skip, g_bad, sizeof g_bad);
    assert_discards(h->discards, "negative_samples=2 zero_samples=1 dangling_samples=1");
}

static void bad_samples_are_left_out_beside_labelled_ones_too(void **state)
{
    struct hand *h = *state;
    add_bad_samples(h);
    (void)hand_sample_of(h, (const int64_t[]){1, 1});
    hand_label(h, "thread", "main");
    (void)hand_sample_of(h, (const int64_t[]){0, 0});
    hand_label(h, "thread", "lost");
    struct hearth_split s = split(h);
    assert_groups(h, &s,
                  "{pod=\"p1\", zone=\"eu\"}:0,3\n"
                  "{pod=\"p1\", thread=\"main\", zone=\"eu\"}:6\n");
    assert_memory_equal(h->skip, g_bad, sizeof g_bad);
    assert_true(h->skip[7]);
    assert_discards(h->discards, "negative_samples=2 zero_samples=2 dangling_samples=1");
}

static void a_profile_of_nothing_but_bad_samples_has_no_group(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 0);
    struct hearth_split s = split(h);
    assert_int_equal(s.n_groups, 0);
    hand_label(h, "thread", "main");
    s = split(h);
    assert_int_equal(s.n_groups, 0);
    h->p.n_samples = h->p.n_sample_labels = 0;
    s = split(h);
    assert_int_equal(s.n_groups, 0);
}

/* ---- which series ---- */

static void each_label_set_is_a_series_in_order_of_first_sight(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 1);
    hand_label(h, "vehicle", "car");
    (void)hand_sample(h, 1);
    (void)hand_sample(h, 1);
    hand_label(h, "vehicle", "bike");
    (void)hand_sample(h, 1);
    hand_label(h, "vehicle", "car");
    (void)hand_sample(h, 1);
    hand_label(h, "vehicle", "car");
    hand_label(h, "a", "1");
    (void)hand_sample(h, 1);
    hand_label(h, "a", "1"); /* the same set the other way round */
    hand_label(h, "vehicle", "car");
    struct hearth_split s = split(h);
    assert_groups(h, &s,
                  "{pod=\"p1\", vehicle=\"car\", zone=\"eu\"}:0,3\n"
                  "{pod=\"p1\", zone=\"eu\"}:1\n"
                  "{pod=\"p1\", vehicle=\"bike\", zone=\"eu\"}:2\n"
                  "{a=\"1\", pod=\"p1\", vehicle=\"car\", zone=\"eu\"}:4,5\n");
    assert_discards(h->discards, "");
}

static void equal_texts_under_different_string_indices_are_one_series(void **state)
{
    struct hand *h = *state;
    uint32_t key[2] = {hand_string(h, "vehicle"), hand_string(h, "vehicle")};
    uint32_t str[2] = {hand_string(h, "car"), hand_string(h, "car")};
    for (unsigned i = 0; i < 4; i++) {
        (void)hand_sample(h, 1);
        hand_label_at(h, key[i & 1], str[i >> 1], 0);
    }
    (void)hand_sample(h, 1); /* a name under two indices within one sample counts once */
    hand_label_at(h, key[0], str[0], 0);
    hand_label_at(h, key[1], str[1], 0);
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", vehicle=\"car\", zone=\"eu\"}:0,1,2,3,4\n");
    assert_discards(h->discards, "");
}

static void series_labels_win_over_sample_labels(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 1);
    hand_label(h, "pod", "other");
    hand_label(h, "service_name", "other");
    hand_label(h, "__name__", "other");
    hand_label(h, "__type__", "other");
    (void)hand_sample(h, 1);
    hand_label(h, "pod", "p1");
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", zone=\"eu\"}:0,1\n");
    assert_discards(h->discards, "reserved_labels=5");
}

static void a_key_without_a_name_splits_nothing(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 1);
    hand_label_at(h, 0, hand_string(h, "value"), 0);
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", zone=\"eu\"}:0\n");
    assert_discards(h->discards, "reserved_labels=1");
}

static void numeric_labels_are_dropped_and_counted(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 1);
    hand_number(h, "bytes", 4096);
    hand_label(h, "vehicle", "car");
    (void)hand_sample(h, 1);
    hand_number(h, "bytes", 8192);
    hand_label(h, "vehicle", "car");
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", vehicle=\"car\", zone=\"eu\"}:0,1\n");
    assert_discards(h->discards, "numeric_labels=2");
    assert_false(s.has_attrs);
}

static void empty_values_are_dropped_and_counted(void **state)
{
    struct hand *h = *state;
    uint32_t empty = hand_string(h, "");
    (void)hand_sample(h, 1);
    hand_label_at(h, hand_string(h, "vehicle"), empty, 0);
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", zone=\"eu\"}:0\n");
    assert_discards(h->discards, "empty_labels=1");
}

static void the_first_text_of_a_repeated_key_counts(void **state)
{
    struct hand *h = *state;
    (void)hand_string(h, "car");
    (void)hand_string(h, "bike");
    (void)hand_sample(h, 1);
    hand_label(h, "vehicle", "bike");
    hand_label(h, "vehicle", "car");
    (void)hand_sample(h, 1); /* the same twice is no loss */
    hand_label(h, "vehicle", "car");
    hand_label(h, "vehicle", "car");
    struct hearth_split s = split(h);
    assert_groups(h, &s, "{pod=\"p1\", vehicle=\"car\", zone=\"eu\"}:0,1\n");
    assert_discards(h->discards, "repeated_labels=1");
}

static void attributes_stay_beside_the_samples_in_any_spelling(void **state)
{
    struct hand *h = *state;
    (void)hand_sample(h, 1);
    hand_label(h, "span_id", "00000000000000ff");
    (void)hand_sample(h, 1);
    hand_label(h, "profile_id", "00000000000000aa");
    (void)hand_sample(h, 1);
    hand_number(h, "thread id", 17);
    (void)hand_sample(h, 1);
    hand_label(h, "trace endpoint", "GET /");
    (void)hand_sample(h, 1);
    hand_number(h, "end_timestamp_ns", 1);
    (void)hand_sample(h, 1);
    hand_label(h, "thread name", "main");
    hand_label(h, "vehicle", "car");
    struct hearth_split s = split(h);
    assert_groups(h, &s,
                  "{pod=\"p1\", zone=\"eu\"}:0,1,2,3,4\n"
                  "{pod=\"p1\", vehicle=\"car\", zone=\"eu\"}:5\n");
    assert_true(s.has_attrs);
    assert_discards(h->discards, "");
}

/* ---- limits ---- */

static void long_sample_labels_are_dropped_and_counted(void **state)
{
    struct hand *h = *state;
    h->limits.max_label_name_bytes = 7;
    h->limits.max_label_value_bytes = 3;
    (void)hand_sample(h, 1);
    hand_label(h, "vehicle", "car");
    (void)hand_sample(h, 1);
    hand_label(h, "vehicles", "car");
    (void)hand_sample(h, 1);
    hand_label(h, "vehicle", "bike");
    struct hearth_split s = split(h);
    assert_groups(h, &s,
                  "{pod=\"p1\", vehicle=\"car\", zone=\"eu\"}:0\n"
                  "{pod=\"p1\", zone=\"eu\"}:1,2\n");
    assert_discards(h->discards, "long_labels=2");
    h->limits.max_label_name_bytes = h->limits.max_label_value_bytes = 0;
    s = split(h);
    assert_int_equal(s.n_groups, 3);
}

static void sets_beyond_max_label_sets_fall_back_to_the_series(void **state)
{
    static const char *const cars[] = {"a", "b", "c", "d"};
    struct hand *h = *state;
    h->limits.max_label_sets = 2;
    for (unsigned i = 0; i < 9; i++) {
        (void)hand_sample(h, 1);
        hand_label(h, "car", cars[i % 4]);
    }
    uint32_t again = hand_string(h, "b"); /* known by content, although the table is full */
    (void)hand_sample(h, 1);
    hand_label_at(h, hand_intern(h, "car"), again, 0);
    struct hearth_split s = split(h);
    assert_groups(h, &s,
                  "{car=\"a\", pod=\"p1\", zone=\"eu\"}:0,4,8\n"
                  "{car=\"b\", pod=\"p1\", zone=\"eu\"}:1,5,9\n"
                  "{pod=\"p1\", zone=\"eu\"}:2,3,6,7\n");
    /* Two label sets lost their labels, however many samples they had. */
    assert_discards(h->discards, "split_labels=2");
    h->limits.max_label_sets = 0;
    s = split(h);
    assert_int_equal(s.n_groups, 4);
}

static void sets_with_too_many_names_fall_back_to_the_series(void **state)
{
    struct hand *h = *state;
    h->limits.max_label_names = 5; /* __name__, service_name, pod, zone and one more */
    (void)hand_sample(h, 1);
    hand_label(h, "a", "1");
    (void)hand_sample(h, 1);
    hand_label(h, "a", "1");
    hand_label(h, "b", "2");
    (void)hand_sample(h, 1);
    struct hearth_split s = split(h);
    assert_groups(h, &s,
                  "{a=\"1\", pod=\"p1\", zone=\"eu\"}:0\n"
                  "{pod=\"p1\", zone=\"eu\"}:1,2\n");
    assert_discards(h->discards, "split_labels=1");
}

static void a_refused_arena_fails_with_no_memory(void **state)
{
    struct hand *h = *state;
    struct hearth_split s;
    (void)hand_sample(h, 1);
    hearth_arena_release(&h->arena);
    for (unsigned labelled = 0; labelled < 2; labelled++) {
        hearth_arena_init(&h->arena, 8);
        struct hearth_push_work work = hand_work(h);
        assert_int_equal(hearth_split_samples(&work, &g_series, h->skip, &s, &h->err),
                         HEARTH_NO_MEMORY);
        hearth_arena_release(&h->arena);
        hand_label(h, "vehicle", "car");
    }
}

#define hand_test(f) cmocka_unit_test_setup_teardown(f, make_hand, free_hand)

int main(void)
{
    const struct CMUnitTest tests[] = {
        hand_test(without_sample_labels_all_samples_are_one_group),
        hand_test(a_group_has_the_types_of_which_it_has_a_value),
        hand_test(negative_zero_and_dangling_samples_are_left_out_and_counted),
        hand_test(bad_samples_are_left_out_beside_labelled_ones_too),
        hand_test(a_profile_of_nothing_but_bad_samples_has_no_group),
        hand_test(each_label_set_is_a_series_in_order_of_first_sight),
        hand_test(equal_texts_under_different_string_indices_are_one_series),
        hand_test(series_labels_win_over_sample_labels),
        hand_test(a_key_without_a_name_splits_nothing),
        hand_test(numeric_labels_are_dropped_and_counted),
        hand_test(empty_values_are_dropped_and_counted),
        hand_test(the_first_text_of_a_repeated_key_counts),
        hand_test(attributes_stay_beside_the_samples_in_any_spelling),
        hand_test(long_sample_labels_are_dropped_and_counted),
        hand_test(sets_beyond_max_label_sets_fall_back_to_the_series),
        hand_test(sets_with_too_many_names_fall_back_to_the_series),
        hand_test(a_refused_arena_fails_with_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
