/* test_shown_keys.c -- what narrowed credentials may push is remembered by exactly its texts. */
#include "ingest/shown_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define S(text) ((struct hearth_str){text, sizeof(text) - 1})

static const struct hearth_str g_selectors[] = {{"{team=\"a\"}", 10}, {"{team=\"b\"}", 10}};
static const struct hearth_view g_view = {{"t", 1}, g_selectors, 1};
static struct hearth_str g_types[] = {{"cpu", 3}, {"samples", 7}};
static struct hearth_label g_labels[] = {{{"pod", 3}, {"x", 1}}, {{"team", 4}, {"a", 1}}};
static const struct hearth_series_key g_series = {{"shop", 4}, g_types, 2, {g_labels, 2}};

/* Whether `other`, under `view`, counts as known where only g_series under g_view was added. */
static bool is_taken_for_known(const struct hearth_view *view,
                               const struct hearth_series_key *other)
{
    struct hearth_shown_keys *shown = hearth_shown_keys_new();
    struct hearth_shown_key key;

    assert_non_null(shown);
    hearth_shown_key_make(&g_view, &g_series, &key);
    assert_false(hearth_shown_keys_has(shown, &key));
    hearth_shown_keys_add(shown, &key);
    assert_true(hearth_shown_keys_has(shown, &key));

    hearth_shown_key_make(view, other, &key);
    bool has = hearth_shown_keys_has(shown, &key);
    hearth_shown_keys_free(shown);

    return has;
}

static void knows_a_series_with_the_same_texts(void **state)
{
    (void)state;
    struct hearth_label labels[] = {g_labels[0], g_labels[1]};
    struct hearth_series_key same = g_series;
    same.labels.v = labels;
    assert_true(is_taken_for_known(&g_view, &same));
}

static void a_series_that_differs_in_anything_is_not_known(void **state)
{
    (void)state;
    struct hearth_series_key other = g_series;
    other.service_name = S("sho");
    assert_false(is_taken_for_known(&g_view, &other));

    other = g_series;
    other.n_types = 1;
    assert_false(is_taken_for_known(&g_view, &other));

    other = g_series;
    other.labels.n = 1;
    assert_false(is_taken_for_known(&g_view, &other));
}

static void equal_bytes_divided_otherwise_are_not_known(void **state)
{
    (void)state;
    struct hearth_label moved[] = {{S("podx"), S("")}, {S("team"), S("a")}};
    struct hearth_series_key other = g_series;
    other.labels.v = moved;
    assert_false(is_taken_for_known(&g_view, &other));

    /* A type more, and the first label in its place. */
    struct hearth_str types[] = {S("cpu"), S("samples"), S("pod"), S("x")};
    other = g_series;
    other.type_ids = types;
    other.n_types = 4;
    other.labels = (struct hearth_labels){g_labels + 1, 1};
    assert_false(is_taken_for_known(&g_view, &other));
}

static void a_series_is_not_known_in_another_view(void **state)
{
    (void)state;
    const struct hearth_view narrower = {S("t"), g_selectors + 1, 1};
    const struct hearth_view wider = {S("t"), g_selectors, 2};
    assert_false(is_taken_for_known(&narrower, &g_series));
    assert_false(is_taken_for_known(&wider, &g_series));
}

static void a_series_with_too_long_texts_is_never_known(void **state)
{
    (void)state;
    static char text[HEARTH_SHOWN_KEY_BYTES];
    struct hearth_shown_keys *shown = hearth_shown_keys_new();
    struct hearth_shown_key key;

    memset(text, 'x', sizeof text);
    struct hearth_label labels[] = {{S("pod"), {text, sizeof text}}};
    struct hearth_series_key longer = g_series;
    longer.labels = (struct hearth_labels){labels, 1};
    assert_non_null(shown);
    hearth_shown_key_make(&g_view, &longer, &key);
    hearth_shown_keys_add(shown, &key);
    assert_false(hearth_shown_keys_has(shown, &key));
    hearth_shown_keys_free(shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_a_series_with_the_same_texts),
        cmocka_unit_test(a_series_that_differs_in_anything_is_not_known),
        cmocka_unit_test(equal_bytes_divided_otherwise_are_not_known),
        cmocka_unit_test(a_series_is_not_known_in_another_view),
        cmocka_unit_test(a_series_with_too_long_texts_is_never_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
