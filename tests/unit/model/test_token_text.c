/* test_token_text.c -- texts of tokens: what is made is read back, and nothing else is accepted. */
#include "hearth/model/credential.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define DIGITS    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define SECRET_AT (7 + HEARTH_TOKEN_ID_CHARS + 1)

/* xorshift64*: the same tokens in each run. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static void make_token(uint64_t *state, char text[HEARTH_TOKEN_TEXT_CHARS + 1])
{
    unsigned char random[HEARTH_TOKEN_RANDOM_BYTES];
    for (size_t i = 0; i < sizeof random; i++) {
        random[i] = (unsigned char)(next_random(state) >> 56);
    }
    hearth_token_make(random, text);
}

static bool is_token(const char *p, size_t n)
{
    struct hearth_str id;
    unsigned char hash[HEARTH_SHA256_BYTES];
    return hearth_token_parse(hearth_str_n(p, n), &id, hash);
}

static void a_token_is_read_back_with_the_hash_of_its_secret(void **state)
{
    (void)state;
    uint64_t seed = 1;

    for (int i = 0; i < 1000; i++) {
        char text[HEARTH_TOKEN_TEXT_CHARS + 1];
        make_token(&seed, text);
        assert_int_equal(strlen(text), HEARTH_TOKEN_TEXT_CHARS);

        struct hearth_str id;
        unsigned char hash[HEARTH_SHA256_BYTES], expected[HEARTH_SHA256_BYTES];
        assert_true(hearth_token_parse(hearth_str_c(text), &id, hash));
        assert_ptr_equal(id.p, text + 7);
        assert_int_equal(id.n, HEARTH_TOKEN_ID_CHARS);

        struct hearth_sha256 sha;
        hearth_sha256_init(&sha);
        hearth_sha256_add(&sha, hearth_str_n(text + SECRET_AT, HEARTH_TOKEN_SECRET_CHARS));
        hearth_sha256_end(&sha, expected);
        assert_memory_equal(hash, expected, sizeof hash);
    }
}

/* The texts are stored in programs of users: how they are made never changes. */
static void equal_bytes_make_equal_tokens(void **state)
{
    (void)state;
    unsigned char random[HEARTH_TOKEN_RANDOM_BYTES];
    char text[HEARTH_TOKEN_TEXT_CHARS + 1];

    memset(random, 0, sizeof random);
    hearth_token_make(random, text);
    assert_string_equal(text, "hearth_0000000000_00000000000000000000000000000000VzEd1Z");
    memset(random, 0xff, sizeof random);
    hearth_token_make(random, text);
    assert_string_equal(text, "hearth_zzzzzzzzzz_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzvBLVb8");
}

static void each_change_of_one_character_is_refused(void **state)
{
    (void)state;
    uint64_t seed = 2;
    char text[HEARTH_TOKEN_TEXT_CHARS + 1];
    make_token(&seed, text);

    for (size_t at = 0; at < HEARTH_TOKEN_TEXT_CHARS; at++) {
        char right = text[at];
        for (int c = 0; c < 256; c++) {
            text[at] = (char)c;
            assert_int_equal(is_token(text, HEARTH_TOKEN_TEXT_CHARS), (char)c == right);
        }
        text[at] = right;
    }
    assert_true(is_token(text, HEARTH_TOKEN_TEXT_CHARS));
}

static void two_exchanged_characters_are_refused(void **state)
{
    (void)state;
    uint64_t seed = 3;
    char text[HEARTH_TOKEN_TEXT_CHARS + 1];
    make_token(&seed, text);

    for (size_t at = 0; at + 1 < HEARTH_TOKEN_TEXT_CHARS; at++) {
        char first = text[at], second = text[at + 1];
        text[at] = second;
        text[at + 1] = first;
        assert_int_equal(is_token(text, HEARTH_TOKEN_TEXT_CHARS), first == second);
        text[at] = first;
        text[at + 1] = second;
    }
}

static void texts_of_other_lengths_are_refused(void **state)
{
    (void)state;
    uint64_t seed = 4;
    char text[2 * HEARTH_TOKEN_TEXT_CHARS + 1];
    make_token(&seed, text);
    make_token(&seed, text + HEARTH_TOKEN_TEXT_CHARS);

    for (size_t n = 0; n <= 2 * HEARTH_TOKEN_TEXT_CHARS; n++) {
        assert_int_equal(is_token(text, n), n == HEARTH_TOKEN_TEXT_CHARS);
    }
    assert_false(is_token(NULL, 0));
    assert_false(is_token(text + 1, HEARTH_TOKEN_TEXT_CHARS));
}

static void hostile_texts_are_refused(void **state)
{
    (void)state;
    static const char fills[] = {'\0', '_', '0', 'z', ' ', '\n', '\x7f', '\x80', '\xff'};

    for (size_t i = 0; i < sizeof fills; i++) {
        size_t n = (size_t)1 << 20;
        char *text = malloc(n);
        memset(text, fills[i], n);
        assert_false(is_token(text, n));
        assert_false(is_token(text, HEARTH_TOKEN_TEXT_CHARS));
        memcpy(text, "hearth_", 7);
        assert_false(is_token(text, HEARTH_TOKEN_TEXT_CHARS));
        free(text);
    }
}

/* A refused text leaves the results as they were. */
static void a_refused_text_returns_nothing(void **state)
{
    (void)state;
    struct hearth_str id = HEARTH_STR("before");
    unsigned char hash[HEARTH_SHA256_BYTES] = {7};

    assert_false(hearth_token_parse(HEARTH_STR("hearth_"), &id, hash));
    assert_string_equal(id.p, "before");
    assert_int_equal(hash[0], 7);
}

/* 420,000 characters: 6,774 of each are expected, with a standard deviation of 82. */
static void all_characters_are_equally_likely(void **state)
{
    (void)state;
    int counts[256] = {0};
    uint64_t seed = 5;

    for (int i = 0; i < 10000; i++) {
        char text[HEARTH_TOKEN_TEXT_CHARS + 1];
        make_token(&seed, text);
        for (size_t at = 7; at < SECRET_AT + HEARTH_TOKEN_SECRET_CHARS; at++) {
            counts[(unsigned char)text[at]] += at != SECRET_AT - 1;
        }
    }

    int sum = 0;
    for (const char *digit = DIGITS; *digit != '\0'; digit++) {
        int count = counts[(unsigned char)*digit];
        assert_in_range(count, 6774 - 5 * 82, 6774 + 5 * 82);
        sum += count;
    }
    assert_int_equal(sum, 420000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_read_back_with_the_hash_of_its_secret),
        cmocka_unit_test(equal_bytes_make_equal_tokens),
        cmocka_unit_test(each_change_of_one_character_is_refused),
        cmocka_unit_test(two_exchanged_characters_are_refused),
        cmocka_unit_test(texts_of_other_lengths_are_refused),
        cmocka_unit_test(hostile_texts_are_refused),
        cmocka_unit_test(a_refused_text_returns_nothing),
        cmocka_unit_test(all_characters_are_equally_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
