/* test_series_order.c -- series are sorted by sum, then by labels, however alike these are. */
#include "select/series_order.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    MOST = 600,
    MOST_LABELS = 3,
    MOST_TEXT = 40
};

static struct hearth_timeseries g_made[MOST];
static struct hearth_label g_labels[MOST][MOST_LABELS];
static char g_texts[MOST][MOST_LABELS][MOST_TEXT];

/* The order as it is defined. */
static int compare_series(const void *a, const void *b)
{
    const struct hearth_timeseries *x = &g_made[*(const uint32_t *)a];
    const struct hearth_timeseries *y = &g_made[*(const uint32_t *)b];
    int by_sum = (x->sum < y->sum) - (x->sum > y->sum);
    return by_sum != 0 ? by_sum : hearth_labels_cmp(&x->labels, &y->labels);
}

/* Makes distinct labels: a text of few letters after a common begin, and the number at its end. */
static void make_series(uint64_t *rng, uint32_t n, uint32_t n_sums, size_t n_common, bool others)
{
    static const struct hearth_str names[] = {HEARTH_STR("pod"), HEARTH_STR("region"),
                                              HEARTH_STR("zone")};
    for (uint32_t i = 0; i < n; i++) {
        size_t first = others ? synth_below(rng, 2) : 0, n_labels = 1;
        double unit = synth_below(rng, 2) == 0 ? 1 : -0.125;
        for (size_t k = 0; k < MOST_LABELS - first; k++) {
            char *text = g_texts[i][k];
            size_t at = n_common;
            memset(text, 'm', n_common);
            for (size_t more = synth_below(rng, 12); more > 0; more--) {
                text[at++] = "\x01"
                             "ab\xff"[synth_below(rng, 4)];
            }
            if (k == 0) {
                at += (size_t)snprintf(text + at, MOST_TEXT - at, "%u", i);
            }
            g_labels[i][k] = (struct hearth_label){names[first + k], hearth_str_n(text, at)};
            n_labels = k + 1;
        }
        n_labels = others ? synth_below(rng, (uint32_t)n_labels + 1) : n_labels;
        g_made[i] = (struct hearth_timeseries){.labels = {g_labels[i], n_labels},
                                               .sum = unit * synth_below(rng, n_sums)};
    }
}

static void assert_order(uint32_t n)
{
    static struct hearth_ranked_series ranked[MOST], spare[MOST];
    uint32_t expected[MOST];
    for (uint32_t i = 0; i < n; i++) {
        ranked[i].group = expected[i] = i;
    }
    hearth_series_order(ranked, spare, n, g_made);
    if (n > 0) {
        qsort(expected, n, sizeof expected[0], compare_series);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t group = ranked[i].group;
        assert_true(group == expected[i] || compare_series(&group, &expected[i]) == 0);
    }
}

static void series_are_sorted_by_sum_and_labels(void **state)
{
    (void)state;
    uint64_t rng = 11;
    for (uint32_t round = 0; round < 300; round++) {
        uint32_t n = synth_below(&rng, round < 100 ? 70 : MOST + 1);
        uint32_t n_sums = 1 + synth_below(&rng, 1u << synth_below(&rng, 31));
        make_series(&rng, n, n_sums, synth_below(&rng, 20), round % 3 == 0);
        assert_order(n);
    }
}

static void texts_that_differ_late_or_by_a_zero_byte_only_are_sorted(void **state)
{
    static const struct hearth_str values[] = {{"a\0", 2},
                                               {"a", 1},
                                               {"a\0\0", 3},
                                               {"", 0},
                                               {"a\0b", 3},
                                               {"\0", 1},
                                               {"a\0\0\0\0\0\0\0\0\0c", 11},
                                               {"a\0\0\0\0\0\0\0\0\0b", 11}};
    (void)state;
    const uint32_t n = HEARTH_ARRAY_LEN(values);
    for (uint32_t i = 0; i < n; i++) {
        g_labels[i][0] = (struct hearth_label){HEARTH_STR("pod"), values[i]};
        g_made[i] =
            (struct hearth_timeseries){.labels = {g_labels[i], 1}, .sum = i % 2 == 0 ? 0.0 : -0.0};
    }
    assert_order(n);

    /* Each begins as the one before, 16 bytes longer. */
    static char longest[2 * MOST * 16];
    memset(longest, 'x', sizeof longest);
    for (uint32_t i = 0; i < MOST; i++) {
        g_labels[i][0].value = hearth_str_n(longest, (size_t)(MOST - i) * 16);
        g_labels[i][0].name = HEARTH_STR("pod");
        g_made[i] = (struct hearth_timeseries){.labels = {g_labels[i], 1}};
    }
    assert_order(MOST);
}

static void the_next_label_decides_where_the_first_is_equal(void **state)
{
    static char pods[MOST][8];
    uint64_t rng = 5;
    (void)state;
    for (uint32_t i = 0; i < MOST; i++) {
        (void)snprintf(pods[i], sizeof pods[i], "%u", synth_below(&rng, 1000000));
        g_labels[i][0] = (struct hearth_label){HEARTH_STR("namespace"), HEARTH_STR("production")};
        g_labels[i][1] = (struct hearth_label){HEARTH_STR("pod"), hearth_str_c(pods[i])};
        g_made[i] = (struct hearth_timeseries){.labels = {g_labels[i], 2}};
    }
    assert_order(MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_are_sorted_by_sum_and_labels),
        cmocka_unit_test(texts_that_differ_late_or_by_a_zero_byte_only_are_sorted),
        cmocka_unit_test(the_next_label_decides_where_the_first_is_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
