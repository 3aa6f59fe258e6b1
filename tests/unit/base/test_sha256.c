/* test_sha256.c -- the published examples of FIPS 180-4, and messages in pieces. */
#include "hearth/base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(struct hearth_str message, size_t times, const char *hex)
{
    struct hearth_sha256 hash;

    hearth_sha256_init(&hash);
    for (size_t i = 0; i < times; i++) {
        hearth_sha256_add(&hash, message);
    }

    char got[HEARTH_SHA256_HEX + 1];
    hearth_sha256_end_hex(&hash, got);
    assert_string_equal(got, hex);
}

static void the_published_examples_are_reproduced(void **state)
{
    (void)state;
    expect(HEARTH_STR(""), 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(HEARTH_STR("abc"), 1,
           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(HEARTH_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), 1,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect(
        HEARTH_STR("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnop"
                   "qklmnopqrlmnopqrsmnopqrstnopqrstu"),
        1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    expect(HEARTH_STR("aaaaaaaaaa"), 100000,
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void a_message_may_be_divided_anywhere(void **state)
{
    (void)state;
    char message[200];
    for (size_t i = 0; i < sizeof message; i++) {
        message[i] = (char)(unsigned char)(i * 7);
    }

    for (size_t n = 0; n <= sizeof message; n++) {
        struct hearth_sha256 whole;
        char want[HEARTH_SHA256_HEX + 1], got[HEARTH_SHA256_HEX + 1];

        hearth_sha256_init(&whole);
        hearth_sha256_add(&whole, hearth_str_n(message, n));
        hearth_sha256_end_hex(&whole, want);
        for (size_t cut = 0; cut <= n; cut += 13) {
            struct hearth_sha256 parts;
            hearth_sha256_init(&parts);
            hearth_sha256_add(&parts, hearth_str_n(message, cut));
            hearth_sha256_add(&parts, hearth_str_n(message + cut, n - cut));
            hearth_sha256_end_hex(&parts, got);
            assert_string_equal(got, want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_examples_are_reproduced),
        cmocka_unit_test(a_message_may_be_divided_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
