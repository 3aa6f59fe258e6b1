/* test_labels.c -- label sets: order, lookup, fingerprint, text. */
#include "hearth/base/mem.h"
#include "hearth/model/labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define L(name_, value_)                      \
    {                                         \
        HEARTH_STR(name_), HEARTH_STR(value_) \
    }

static void assert_str(struct hearth_str got, const char *want)
{
    if (!hearth_str_eq_c(got, want)) {
        fail_msg("got \"%.*s\", want \"%s\"", (int)got.n, got.p, want);
    }
}

static void sorts_by_name_in_byte_order(void **state)
{
    (void)state;
    struct hearth_label v[] = {L("b", "1"), L("a.b", "2"), L("a", "3"), L("\xc3\xa4", "4"),
                               L("B", "5")};
    struct hearth_labels set = {v, 5};
    hearth_labels_sort(&set);
    const char *want[] = {"B", "a", "a.b", "b", "\xc3\xa4"};
    for (size_t i = 0; i < 5; i++) {
        assert_str(set.v[i].name, want[i]);
    }
}

/* Sizes on both sides of the switch to merging; values tell the original order. */
static void keeps_the_order_of_equal_names(void **state)
{
    (void)state;
    static struct hearth_label v[1000];
    static char text[1000][16];
    for (size_t n = 1; n <= 1000; n = n * 3 + 1) {
        for (size_t i = 0; i < n; i++) {
            (void)snprintf(text[i], sizeof text[i], "%c%06zu", (char)('a' + (i * 7919) % 13), i);
            v[i] = (struct hearth_label){{text[i], 1}, {text[i] + 1, 6}};
        }
        struct hearth_labels set = {v, n};
        hearth_labels_sort(&set);
        for (size_t i = 1; i < n; i++) {
            int order = hearth_str_cmp(v[i - 1].name, v[i].name);
            assert_true(order < 0 ||
                        (order == 0 && hearth_str_cmp(v[i - 1].value, v[i].value) < 0));
        }
    }
}

static void sorts_without_memory(void **state)
{
    (void)state;
    static struct hearth_label v[100];
    static char text[100][8];
    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(text[i], sizeof text[i], "%02zu", (i * 37) % 100);
        v[i] = (struct hearth_label){{text[i], 2}, {text[i], 2}};
    }
    struct hearth_labels set = {v, 100};
    hearth_mem_fail_after(1);
    hearth_labels_sort(&set);
    hearth_mem_fail_after(0);
    for (size_t i = 1; i < 100; i++) {
        assert_true(hearth_str_cmp(v[i - 1].name, v[i].name) < 0);
    }
}

static void finds_every_name_and_no_other(void **state)
{
    (void)state;
    struct hearth_label v[] = {L("__name__", "process_cpu"), L("pod", "a-1"),
                               L("service_name", "api")};
    struct hearth_labels set = {v, 3};
    assert_str(hearth_labels_get(&set, HEARTH_STR("__name__")), "process_cpu");
    assert_str(hearth_labels_get(&set, HEARTH_STR("pod")), "a-1");
    assert_str(hearth_labels_get(&set, HEARTH_STR(HEARTH_LABEL_SERVICE)), "api");
    assert_null(hearth_labels_get(&set, HEARTH_STR("po")).p);
    assert_null(hearth_labels_get(&set, HEARTH_STR("zone")).p);
    struct hearth_labels none = {NULL, 0};
    assert_null(hearth_labels_get(&none, HEARTH_STR("pod")).p);
}

static void orders_sets_pair_by_pair_and_prefixes_first(void **state)
{
    (void)state;
    struct hearth_label a[] = {L("a", "1"), L("b", "2")};
    struct hearth_label b[] = {L("a", "1"), L("b", "3")};
    struct hearth_label c[] = {L("a", "2")};
    struct hearth_labels sets[] = {{a, 1}, {a, 2}, {b, 2}, {c, 1}};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            int order = hearth_labels_cmp(&sets[i], &sets[j]);
            assert_true(i < j ? order < 0 : i == j ? order == 0 : order > 0);
        }
    }
}

/* The value is stored in databases: never change this test to agree with the code. */
static void the_fingerprint_never_changes(void **state)
{
    (void)state;
    struct hearth_label v[] = {L("__name__", "process_cpu"), L("service_name", "api")};
    struct hearth_labels set = {v, 2};
    struct hearth_hash128 got = hearth_labels_fingerprint(&set);
    const char bytes[] = "\x08__name__\x0bprocess_cpu\x0cservice_name\x03"
                         "api";
    struct hearth_hash128 want = hearth_hash128(bytes, sizeof bytes - 1, 0);
    assert_true(hearth_hash128_eq(got, want));
    assert_int_equal(got.lo, UINT64_C(0x43205ff50127fcac));
    assert_int_equal(got.hi, UINT64_C(0x39d1c4a79a1639e5));
}

static void the_fingerprint_depends_on_where_names_end(void **state)
{
    (void)state;
    struct hearth_label a[] = {L("ab", "c")};
    struct hearth_label b[] = {L("a", "bc")};
    struct hearth_labels x = {a, 1}, y = {b, 1}, none = {NULL, 0};
    struct hearth_hash128 fx = hearth_labels_fingerprint(&x);
    assert_false(hearth_hash128_eq(fx, hearth_labels_fingerprint(&y)));
    assert_false(hearth_hash128_eq(fx, hearth_labels_fingerprint(&none)));
}

/* One changed byte anywhere in a set of many blocks changes the fingerprint. */
static void the_fingerprint_covers_every_byte_of_a_long_set(void **state)
{
    (void)state;
    static char text[10000];
    memset(text, 'x', sizeof text);
    struct hearth_label v[] = {{HEARTH_STR("a"), {text, sizeof text}}};
    struct hearth_labels set = {v, 1};
    struct hearth_hash128 whole = hearth_labels_fingerprint(&set);
    assert_true(hearth_hash128_eq(whole, hearth_labels_fingerprint(&set)));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 'y';
        assert_false(hearth_hash128_eq(whole, hearth_labels_fingerprint(&set)));
        text[i] = 'x';
    }
    for (size_t n = 4080; n < 4110; n++) { /* lengths around the block size */
        v[0].value.n = n;
        struct hearth_hash128 a = hearth_labels_fingerprint(&set);
        v[0].value.n = n + 1;
        assert_false(hearth_hash128_eq(a, hearth_labels_fingerprint(&set)));
    }
}

static void assert_format(struct hearth_labels set, size_t max_bytes, const char *want)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_buf_cstr(&out, "> ");
    hearth_labels_format(&set, max_bytes, &out);
    assert_false(hearth_buf_failed(&out));
    assert_str(hearth_str_n(out.p + 2, out.n - 2), want);
    hearth_buf_release(&out);
}

static void prints_a_selector(void **state)
{
    (void)state;
    struct hearth_label v[] = {L("a", "b"), L("http.method", "G\"E\\T"),
                               L("x", "1\n2\t3\r4\x1b\x7f"), L("\xc3\xa4", "\xc3\xb6")};
    assert_format((struct hearth_labels){NULL, 0}, 0, "{}");
    assert_format((struct hearth_labels){v, 1}, 0, "{a=\"b\"}");
    assert_format((struct hearth_labels){v, 4}, 0,
                  "{a=\"b\", \"http.method\"=\"G\\\"E\\\\T\", x=\"1\\n2\\t3\\r4\\x1b\\x7f\", "
                  "\"\xc3\xa4\"=\"\xc3\xb6\"}");
}

static void cuts_long_sets_at_a_character_and_marks_the_cut(void **state)
{
    (void)state;
    struct hearth_label v[] = {L("a", "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6"), L("b", "2")};
    struct hearth_labels set = {v, 2};
    assert_format((struct hearth_labels){v + 1, 1}, 7, "{b=\"2\"}");
    assert_format((struct hearth_labels){v + 1, 1}, 6, "{b=...");
    assert_format(set, 11, "{a=\"\xc3\xb6\xc3\xb6...");
    assert_format(set, 10, "{a=\"\xc3\xb6...");
    assert_format(set, 2, "..");
    assert_format(set, 1, ".");
}

static void never_exceeds_the_limit(void **state)
{
    (void)state;
    struct hearth_label v[] = {L("a\xc3\xa4", "\xf0\x9f\x94\xa5\"\\\n"), L("b", "\xe2\x82\xac"),
                               L("c", "")};
    struct hearth_labels set = {v, 3};
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_labels_format(&set, 0, &out);
    size_t whole = out.n;
    for (size_t max = 1; max <= whole + 2; max++) {
        hearth_buf_reset(&out);
        hearth_labels_format(&set, max, &out);
        assert_true(out.n <= max);
        assert_true(hearth_str_utf8_valid(hearth_buf_view(&out)));
        assert_true(max < whole || out.n == whole);
    }
    hearth_buf_release(&out);
}

static void knows_the_names_every_client_can_show(void **state)
{
    (void)state;
    const char *good[] = {"a", "_", "__name__", "A9", "a_b_9"};
    const char *bad[] = {"", "9a", "a.b", "a-b", "\xc3\xa4", "a b"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(good); i++) {
        assert_true(hearth_label_name_is_legacy(hearth_str_c(good[i])));
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        assert_false(hearth_label_name_is_legacy(hearth_str_c(bad[i])));
    }
    assert_false(hearth_label_name_is_legacy(hearth_str_n("a\0", 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_by_name_in_byte_order),
        cmocka_unit_test(keeps_the_order_of_equal_names),
        cmocka_unit_test(sorts_without_memory),
        cmocka_unit_test(finds_every_name_and_no_other),
        cmocka_unit_test(orders_sets_pair_by_pair_and_prefixes_first),
        cmocka_unit_test(the_fingerprint_never_changes),
        cmocka_unit_test(the_fingerprint_depends_on_where_names_end),
        cmocka_unit_test(the_fingerprint_covers_every_byte_of_a_long_set),
        cmocka_unit_test(prints_a_selector),
        cmocka_unit_test(cuts_long_sets_at_a_character_and_marks_the_cut),
        cmocka_unit_test(never_exceeds_the_limit),
        cmocka_unit_test(knows_the_names_every_client_can_show),
    };
    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
