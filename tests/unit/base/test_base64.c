/* test_base64.c -- RFC 4648 vectors, both alphabets, and refused input. */
#include "hearth/base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool decodes_to(const char *text, struct hearth_str want)
{
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    struct hearth_str got;
    bool same = hearth_base64_decode(hearth_str_c(text), &arena, &got) && hearth_str_eq(got, want);
    hearth_arena_release(&arena);

    return same;
}

static bool refuses(struct hearth_str text)
{
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    struct hearth_str got;
    bool refused = !hearth_base64_decode(text, &arena, &got) && !arena.refused;
    hearth_arena_release(&arena);

    return refused;
}

static void encodes_the_vectors_of_the_rfc(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(pairs); i++) {
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        hearth_base64_encode(hearth_str_c(pairs[i][0]), &out);
        assert_true(hearth_str_eq_c(hearth_buf_view(&out), pairs[i][1]));
        assert_true(decodes_to(pairs[i][1], hearth_str_c(pairs[i][0])));
        hearth_buf_release(&out);
    }
}

static void every_byte_survives_encoding_and_decoding(void **state)
{
    (void)state;
    char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(unsigned char)i;
    }

    for (size_t n = 0; n <= sizeof bytes; n++) {
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        hearth_base64_encode(hearth_str_n(bytes, n), &out);
        hearth_buf_byte(&out, '\0');
        assert_true(decodes_to(out.p, hearth_str_n(bytes, n)));
        hearth_buf_release(&out);
    }
}

static void decodes_both_alphabets_padded_or_not(void **state)
{
    (void)state;
    struct hearth_str want = HEARTH_STR("\xfb\xff\xbf\xfe");
    assert_true(decodes_to("+/+//g==", want));
    assert_true(decodes_to("-_-__g==", want));
    assert_true(decodes_to("-_-__g", want));
    assert_true(decodes_to("+/+//g", want));
}

static void refuses_invalid_base64(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "A",    "AAAAA", "A===",   "=",    "==",    "====", "AA=",     "AAA==",
        "AA=A", "AAAA=", "AAAA==", "A A=", "AA\n=", "AA.A", "Zg==Zg=="};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        if (!refuses(hearth_str_c(bad[i]))) {
            fail_msg("accepts \"%s\"", bad[i]);
        }
    }

    assert_true(refuses(HEARTH_STR("AA\0A")));
    assert_true(refuses(HEARTH_STR("AA\xffh")));
}

static void respects_its_limits(void **state)
{
    (void)state;
    struct hearth_buf out;
    hearth_buf_init(&out, 8);
    hearth_base64_encode(HEARTH_STR("abcdef"), &out);
    assert_false(hearth_buf_failed(&out));
    hearth_base64_encode(HEARTH_STR("g"), &out);
    assert_true(hearth_buf_failed(&out));
    assert_int_equal(out.n, 8);
    hearth_buf_release(&out);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 64);
    char text[400];
    memset(text, 'A', sizeof text);
    struct hearth_str got;
    assert_false(hearth_base64_decode(hearth_str_n(text, sizeof text), &arena, &got));
    assert_true(arena.refused);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_the_vectors_of_the_rfc),
        cmocka_unit_test(every_byte_survives_encoding_and_decoding),
        cmocka_unit_test(decodes_both_alphabets_padded_or_not),
        cmocka_unit_test(refuses_invalid_base64),
        cmocka_unit_test(respects_its_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
