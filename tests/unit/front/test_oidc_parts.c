/* test_oidc_parts.c -- addresses, sealed cookies and the table of JWTs. */
#include "hearth/base/clock.h"

#include "oidc/oidc_cache.h"
#include "oidc/oidc_state.h"
#include "oidc/oidc_url.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool is_private_text(const char *text)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_storage address = {0};

    if (inet_pton(AF_INET, text, &in4.sin_addr) == 1) {
        memcpy(&address, &in4, sizeof in4);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
        memcpy(&address, &in6, sizeof in6);
    }

    return hearth_oidc_is_private((const struct sockaddr *)&address);
}

static void private_addresses_are_known(void **state)
{
    (void)state;
    static const char *const inner[] = {
        "127.0.0.1",      "10.1.2.3",        "172.16.0.1", "172.31.255.255",
        "192.168.1.1",    "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1",      "255.255.255.255", "::1",        "::",
        "fe80::1",        "fd00::1",         "ff02::1",    "::ffff:10.0.0.1",
        "64:ff9b::a00:1", "2002:a00:1::1"};
    static const char *const outer[] = {"8.8.8.8",        "172.32.0.1", "100.128.0.1",
                                        "192.169.0.1",    "2600::1",    "::ffff:8.8.8.8",
                                        "2002:808:808::1"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(inner); i++) {
        assert_true(is_private_text(inner[i]));
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(outer); i++) {
        assert_false(is_private_text(outer[i]));
    }
}

static void only_https_and_loopback_may_be_fetched(void **state)
{
    (void)state;
    static const char *const good[] = {
        "https://login.example", "https://login.example:8443/realms/a", "http://127.0.0.1:8080/x",
        "http://localhost/", "http://[::1]:1/"};
    static const char *const bad[] = {"",
                                      "login.example",
                                      "http://login.example",
                                      "ftp://127.0.0.1",
                                      "file:///x",
                                      "http://127.0.0.1.example",
                                      "https://user@login.example",
                                      "https://a:b@login.example",
                                      "https://login.example/#f",
                                      "http://localhost.example/",
                                      "http://128.0.0.1/"};
    struct hearth_oidc_url url;
    struct hearth_err err = HEARTH_ERR_INIT;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(good); i++) {
        assert_int_equal(hearth_oidc_url_parse(good[i], &url, &err), HEARTH_OK);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        assert_int_equal(hearth_oidc_url_parse(bad[i], &url, &err), HEARTH_INVALID_ARGUMENT);
    }
}

static void only_paths_of_this_server_are_local(void **state)
{
    (void)state;
    static const char *const good[] = {"/", "/a", "/a//b", "/a?b=c&d=%2F%2Fe#f"};
    static const char *const bad[] = {"",          "a",    "//a",         "/\\a",   "\\/a",
                                      "https://a", "/a b", "/\t",         "/a\r\n", "/\xC3\xA9",
                                      "/\"",       "/<",   "javascript:x"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(good); i++) {
        assert_true(hearth_oidc_is_local_path(hearth_str_c(good[i])));
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        assert_false(hearth_oidc_is_local_path(hearth_str_c(bad[i])));
    }
}

static void a_sealed_cookie_opens_with_its_key_in_its_time(void **state)
{
    (void)state;
    unsigned char key[HEARTH_OIDC_KEY_BYTES], other[HEARTH_OIDC_KEY_BYTES];
    struct hearth_arena arena;
    struct hearth_oidc_state made, opened;
    struct hearth_str text;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 0);
    struct hearth_str secret = HEARTH_STR("a secret of sixteen bytes");
    assert_int_equal(hearth_oidc_key_derive(secret, HEARTH_STR("a b"), key, &err), HEARTH_OK);
    assert_int_equal(hearth_oidc_key_derive(secret, HEARTH_STR("a c"), other, &err), HEARTH_OK);
    assert_int_equal(hearth_oidc_state_make(HEARTH_STR("/x?y"), 1000, &arena, &made, &err),
                     HEARTH_OK);
    assert_int_equal(hearth_oidc_state_seal(key, &made, &arena, &text, &err), HEARTH_OK);

    assert_true(hearth_oidc_state_open(key, text, 999, &arena, &opened));
    assert_true(hearth_str_eq(opened.state, made.state) && hearth_str_eq(opened.nonce, made.nonce));
    assert_true(hearth_str_eq(opened.verifier, made.verifier));
    assert_true(hearth_str_eq_c(opened.return_path, "/x?y"));
    assert_false(hearth_oidc_state_open(key, text, 1000, &arena, &opened));
    assert_false(hearth_oidc_state_open(other, text, 0, &arena, &opened));

    /* No byte of it can be changed, and none is missing. */
    char *copy = hearth_arena_strndup(&arena, text.p, text.n);
    for (size_t i = 0; i + 1 < text.n; i++) {
        copy[i] = text.p[i] == 'A' ? 'B' : 'A';
        assert_false(hearth_oidc_state_open(key, hearth_str_n(copy, text.n), 0, &arena, &opened));
        assert_false(hearth_oidc_state_open(key, hearth_str_n(text.p, i), 0, &arena, &opened));
        copy[i] = text.p[i];
    }
    hearth_arena_release(&arena);
}

/* HKDF-SHA256 by another program: python3, hmac of the two steps of RFC 5869. */
static void the_key_is_derived_as_documented(void **state)
{
    (void)state;
    unsigned char key[HEARTH_OIDC_KEY_BYTES];
    struct hearth_err err = HEARTH_ERR_INIT;
    static const unsigned char expected[4] = {0xD0, 0x4A, 0xAF, 0xD1};

    assert_int_equal(hearth_oidc_key_derive(HEARTH_STR("a-secret-of-the-client"),
                                            HEARTH_STR("https://login.example hearth"), key, &err),
                     HEARTH_OK);
    assert_memory_equal(key, expected, sizeof expected);
}

static void add(struct hearth_oidc_cache *cache, unsigned char set, unsigned char id,
                int64_t expires_ms, const struct hearth_oidc_issuer *issuer)
{
    struct hearth_oidc_key key = {.hash = {set, 0, 0, 0, 0, 0, 0, 0, id}};
    struct hearth_str subjects[] = {HEARTH_STR("oidc:a"), HEARTH_STR("group:b")};

    hearth_oidc_cache_add(cache, &key,
                          &(const struct hearth_oidc_identity){subjects, 2, expires_ms}, issuer);
}

static bool has(struct hearth_oidc_cache *cache, unsigned char set, unsigned char id,
                int64_t now_ms)
{
    struct hearth_oidc_key key = {.hash = {set, 0, 0, 0, 0, 0, 0, 0, id}};
    struct hearth_oidc_identity found;
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    bool is_there = hearth_oidc_cache_find(cache, &key, now_ms, &arena, &found);
    if (is_there) {
        assert_int_equal(found.n_subjects, 2);
        assert_true(hearth_str_eq_c(found.subjects[0], "oidc:a"));
        assert_true(hearth_str_eq_c(found.subjects[1], "group:b"));
    }
    hearth_arena_release(&arena);

    return is_there;
}

static void a_jwt_is_remembered_until_it_ends_or_its_keys_change(void **state)
{
    (void)state;
    static const int issuers[2];
    const struct hearth_oidc_issuer *one = (const void *)&issuers[0],
                                    *two = (const void *)&issuers[1];
    struct hearth_oidc_cache *cache;
    struct hearth_err err = HEARTH_ERR_INIT;

    assert_int_equal(hearth_oidc_cache_new(16, &cache, &err), HEARTH_OK);
    add(cache, 0, 1, 100, one);
    add(cache, 1, 1, 200, two);
    assert_true(has(cache, 0, 1, 99) && has(cache, 1, 1, 99));
    assert_false(has(cache, 0, 2, 99));
    assert_false(has(cache, 0, 1, 100));

    add(cache, 0, 1, 100, one);
    hearth_oidc_cache_drop(cache, one);
    assert_false(has(cache, 0, 1, 1));
    assert_true(has(cache, 1, 1, 1));

    /* A full set: the one that ends first leaves. */
    for (unsigned char i = 0; i < HEARTH_OIDC_CACHE_WAYS; i++) {
        add(cache, 0, (unsigned char)(10 + i), 1000 + i, one);
    }
    add(cache, 0, 99, 5000, one);
    assert_false(has(cache, 0, 10, 1));
    assert_true(has(cache, 0, 11, 1) && has(cache, 0, 99, 1));
    hearth_oidc_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(private_addresses_are_known),
        cmocka_unit_test(only_https_and_loopback_may_be_fetched),
        cmocka_unit_test(only_paths_of_this_server_are_local),
        cmocka_unit_test(a_sealed_cookie_opens_with_its_key_in_its_time),
        cmocka_unit_test(the_key_is_derived_as_documented),
        cmocka_unit_test(a_jwt_is_remembered_until_it_ends_or_its_keys_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
