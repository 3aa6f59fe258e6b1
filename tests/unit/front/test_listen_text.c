/* test_listen_text.c -- the texts of addresses to listen on. */
#include "hearth/front/listen_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(const char *text, bool is_tls, const char *host, const char *port,
                  unsigned auth_modes)
{
    struct hearth_listen_text listen;
    assert_int_equal(hearth_listen_parse(text, &listen, NULL), HEARTH_OK);
    assert_int_equal(listen.is_tls, is_tls);
    assert_string_equal(listen.host, host);
    assert_string_equal(listen.port, port);
    assert_int_equal(listen.auth_modes, auth_modes);
}

static void splits_scheme_host_port_and_modes(void **state)
{
    (void)state;
    check("127.0.0.1:4040", false, "127.0.0.1", "4040", 0);
    check("[::1]:0", false, "::1", "0", 0);
    check(":65535", false, "", "65535", 0);
    check("http://localhost:80", false, "localhost", "80", 0);
    check("https://0.0.0.0:443", true, "0.0.0.0", "443", 0);
    check("https://[::]:443?auth=token,mtls", true, "::", "443",
          HEARTH_AUTH_TOKEN | HEARTH_AUTH_MTLS);
    check("h:1?auth=none", false, "h", "1", HEARTH_AUTH_NONE);
}

static void refuses_any_other_form(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "4040",
        "host:",
        "host:65536",
        "host:http",
        "::1:4040",
        "[]:4040",
        "[::1:4040",
        "https://",
        "https://host",
        "ftp://h:1",
        "http://h:1/",
        "h:1?",
        "h:1?auth=",
        "h:1?auth=token,",
        "h:1?auth=,a",
        "h:1?auth=a,,b",
        "h:1?auth=A",
        "h:1?token",
        "h:1?auth=token?auth=user",
        "h:1?auth=none,token",
        "https://https://h:1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hearth_listen_text listen;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_listen_parse(bad[i], &listen, &err), HEARTH_INVALID_ARGUMENT);
        assert_non_null(strstr(err.msg, bad[i]));
    }
}

static void long_parts_are_refused(void **state)
{
    (void)state;
    char text[1024];
    struct hearth_listen_text listen;
    memset(text, 'h', sizeof text);
    memcpy(text + 256, ":1", 3);
    assert_int_equal(hearth_listen_parse(text, &listen, NULL), HEARTH_INVALID_ARGUMENT);
    memcpy(text + 255, ":1", 3);
    assert_int_equal(hearth_listen_parse(text, &listen, NULL), HEARTH_OK);
}

static void only_addresses_of_this_machine_are_loopback(void **state)
{
    (void)state;
    static const char *const inside[] = {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1",
                                         "https://127.0.0.1:1?auth=none"};
    static const char *const outside[] = {
        ":1", "0.0.0.0:1", "[::]:1", "127.example:1", "128.0.0.1:1", "https://10.0.0.1:1"};
    struct hearth_listen_text listen;
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        assert_int_equal(hearth_listen_parse(inside[i], &listen, NULL), HEARTH_OK);
        assert_true(hearth_listen_is_loopback(&listen));
    }
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_int_equal(hearth_listen_parse(outside[i], &listen, NULL), HEARTH_OK);
        assert_false(hearth_listen_is_loopback(&listen));
    }
}

static void modes_that_were_split_at_commas_are_joined(void **state)
{
    (void)state;
    struct hearth_arena arena;
    const char *const *texts;
    const char *const items[] = {"a:1", "https://b:2?auth=token", "mtls", "user", "c:3", "d", NULL};
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_listen_join(items, &arena, &texts, NULL), HEARTH_OK);
    assert_string_equal(texts[0], "a:1");
    assert_string_equal(texts[1], "https://b:2?auth=token,mtls,user");
    assert_string_equal(texts[2], "c:3");
    assert_string_equal(texts[3], "d"); /* not a mode of c: refused when it is parsed */
    assert_null(texts[4]);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_scheme_host_port_and_modes),
        cmocka_unit_test(refuses_any_other_form),
        cmocka_unit_test(long_parts_are_refused),
        cmocka_unit_test(only_addresses_of_this_machine_are_loopback),
        cmocka_unit_test(modes_that_were_split_at_commas_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
