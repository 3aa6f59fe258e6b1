/* test_caller.c -- what clients say of themselves in headers. */
#include "rpc/caller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct hearth_proxy_headers g_no_proxy = {NULL, NULL};

static void take(struct hearth_front_caller *caller, const char *name, const char *value)
{
    hearth_caller_take_field(caller, &g_no_proxy, hearth_str_c(name), hearth_str_c(value));
}

/* "token TEXT", "jwt TEXT", "none" or "error". */
static void describe_token(const struct hearth_front_caller *caller, char out[256])
{
    struct hearth_arena arena;
    struct hearth_str token, jwt;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 0);
    enum hearth_status status = hearth_caller_token(caller, &arena, &token, &jwt, &err);
    if (status != HEARTH_OK) {
        assert_int_equal(status, HEARTH_UNAUTHENTICATED);
        (void)snprintf(out, 256, "error");
    } else if (token.p == NULL && jwt.p == NULL) {
        (void)snprintf(out, 256, "none");
    } else {
        struct hearth_str text = token.p != NULL ? token : jwt;
        (void)snprintf(out, 256, "%s " HEARTH_STR_FMT, token.p != NULL ? "token" : "jwt",
                       HEARTH_STR_ARG(text));
    }
    hearth_arena_release(&arena);
}

static void each_protocol_has_its_way_to_carry_a_token(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *expected;
    } cases[] = {
        {"authorization", "Bearer hearth_x", "token hearth_x"},
        {"Authorization", "bearer   hearth_x ", "token hearth_x"},
        {"AUTHORIZATION", "Basic YW55Ym9keTpoZWFydGhfeA==", "token hearth_x"},
        {"authorization", "Basic OmhlYXJ0aF94", "token hearth_x"}, /* no user */
        {"authorization", "Basic YTpiOmM=", "token b:c"},          /* "a:b:c" */
        {"DD-API-KEY", "hearth_x", "token hearth_x"},
        {"authentication", "hearth_x", "token hearth_x"},
        {"authentication", "Bearer hearth_x", "token hearth_x"},
        {"authorization", "Bearer aa.bb.cc", "jwt aa.bb.cc"},
        {"authorization", "Bearer", "error"},
        {"authorization", "Digest x", "error"},
        {"authorization", "hearth_x", "error"},
        {"authorization", "Basic !", "error"},
        {"authorization", "Basic YWJj", "error"}, /* no colon */
        {"authorization", "", "error"},
        {"x-other", "Bearer hearth_x", "none"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_front_caller caller = {0};
        char out[256];
        take(&caller, cases[i].name, cases[i].value);
        describe_token(&caller, out);
        if (strcmp(out, cases[i].expected) != 0) {
            fail_msg("%s: %s gives \"%s\"", cases[i].name, cases[i].value, out);
        }
    }
}

static void the_credential_of_highest_precedence_is_used(void **state)
{
    (void)state;
    struct hearth_front_caller caller = {0};
    char out[256];

    take(&caller, "authentication", "c");
    take(&caller, "dd-api-key", "b");
    describe_token(&caller, out);
    assert_string_equal(out, "token b");

    take(&caller, "authorization", "Bearer a");
    describe_token(&caller, out);
    assert_string_equal(out, "token a");

    take(&caller, "authorization", "Bearer d");
    describe_token(&caller, out);
    assert_string_equal(out, "error"); /* which of them? */
}

static void the_cookie_of_the_session_is_found_among_others(void **state)
{
    (void)state;
    static const struct {
        const char *header, *expected;
    } cases[] = {
        {"hearth_session=abc", "abc"},
        {"a=1; hearth_session=abc; b=2", "abc"},
        {"a=1;hearth_session=abc", "abc"},
        {"hearth_session=x; __Host-hearth_session=abc", "abc"},
        {"xhearth_session=1; hearth_session_=2", NULL},
        {"hearth_session", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_front_caller caller = {0};
        take(&caller, "Cookie", cases[i].header);
        if (cases[i].expected == NULL) {
            assert_null(caller.session.p);
        } else {
            assert_true(hearth_str_eq_c(caller.session, cases[i].expected));
        }
    }
}

static void addresses_lose_their_port(void **state)
{
    (void)state;
    struct hearth_front_caller caller = {0};

    hearth_caller_set_address(&caller, "10.1.2.3:4040");
    assert_string_equal(caller.address, "10.1.2.3");
    hearth_caller_set_address(&caller, "[::1]:4040");
    assert_string_equal(caller.address, "::1");
    hearth_caller_set_address(&caller, "unknown");
    assert_string_equal(caller.address, "unknown");
}

static void ranges_of_addresses_match_by_their_bits(void **state)
{
    (void)state;
    static const struct {
        const char *range, *address;
        bool is_in;
    } cases[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"10.0.0.128/25", "10.0.0.200", true},
        {"10.0.0.128/25", "10.0.0.100", false},
        {"0.0.0.0/0", "1.2.3.4", true},
        {"0.0.0.0/0", "::1", false},
        {"::1", "::1", true},
        {"fd00::/8", "fd12::1", true},
        {"fd00::/8", "fe12::1", false},
        {"10.0.0.0/8", "unknown", false},
        {"10.0.0.0/8", "", false},
    };
    static const char *const wrong[] = {
        "", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/-1", "10.0.0.0/", "a", "10.0.0.0/8/8"};
    struct hearth_network_range range;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        assert_true(hearth_network_range_parse(hearth_str_c(cases[i].range), &range));
        if (hearth_network_range_has(&range, cases[i].address) != cases[i].is_in) {
            fail_msg("%s in %s", cases[i].address, cases[i].range);
        }
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(wrong); i++) {
        if (hearth_network_range_parse(hearth_str_c(wrong[i]), &range)) {
            fail_msg("\"%s\" is a range", wrong[i]);
        }
    }
}

static void a_proxy_names_the_client_last(void **state)
{
    (void)state;
    struct hearth_front_caller caller = {0};

    hearth_caller_set_address(&caller, "10.0.0.1:5");
    take(&caller, "X-Forwarded-For", "6.6.6.6, 1.2.3.4");
    hearth_caller_use_forwarded(&caller);
    assert_string_equal(caller.address, "1.2.3.4");

    take(&caller, "X-Forwarded-For", "1.2.3.4, <script>");
    hearth_caller_use_forwarded(&caller);
    assert_string_equal(caller.address, "1.2.3.4");
}

static void requests_of_other_origins_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *origin, *host;
        bool is_tls, is_same;
    } cases[] = {
        {"http://hearth:4040", "hearth:4040", false, true},
        {"http://HEARTH:4040", "hearth:4040", false, true},
        {"https://hearth", "hearth", true, true},
        {"http://hearth", "hearth", true, false},
        {"https://hearth", "hearth", false, true}, /* a proxy has ended TLS */
        {"https://hearth:4040", "hearth", false, false},
        {"https://evil", "hearth", false, false},
        {"http://hearth:4041", "hearth:4040", false, false},
        {"http://evil", "hearth", false, false},
        {"null", "hearth", false, false},
        {"", "hearth", false, false},
        {"http://", "", false, true}, /* HTTP/1.1 without Host is refused before */
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_front_caller caller = {.is_tls = cases[i].is_tls};
        take(&caller, "Origin", cases[i].origin);
        take(&caller, "Host", cases[i].host);
        if (hearth_caller_is_same_origin(&caller) != cases[i].is_same) {
            fail_msg("origin %s, host %s", cases[i].origin, cases[i].host);
        }
    }
}

static void tls_may_end_at_a_proxy(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        bool is_tls, is_over_tls;
    } cases[] = {
        {"Origin", "http://hearth", true, true},     {"Origin", "https://hearth", false, true},
        {"Origin", "http://hearth", false, false},   {"X-Forwarded-Proto", "https", false, true},
        {"x-forwarded-proto", "HTTPS", false, true}, {"X-Forwarded-Proto", "http", false, false},
        {"Host", "https://hearth", false, false},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_front_caller caller = {.is_tls = cases[i].is_tls};
        take(&caller, cases[i].name, cases[i].value);
        assert_int_equal(hearth_caller_is_over_tls(&caller), cases[i].is_over_tls);
    }
}

static void headers_of_a_proxy_are_those_of_the_options(void **state)
{
    (void)state;
    const struct hearth_proxy_headers proxy = {"X-Forwarded-User", "X-Forwarded-Groups"};
    struct hearth_front_caller caller = {0};

    hearth_caller_take_field(&caller, &proxy, HEARTH_STR("x-forwarded-user"), HEARTH_STR(" eve "));
    hearth_caller_take_field(&caller, &proxy, HEARTH_STR("X-Forwarded-Groups"), HEARTH_STR("a,b"));
    assert_true(hearth_str_eq_c(caller.proxy_user, "eve"));
    assert_true(hearth_str_eq_c(caller.proxy_groups, "a,b"));

    struct hearth_front_caller other = {0};
    take(&other, "X-Forwarded-User", "eve");
    assert_null(other.proxy_user.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_protocol_has_its_way_to_carry_a_token),
        cmocka_unit_test(the_credential_of_highest_precedence_is_used),
        cmocka_unit_test(the_cookie_of_the_session_is_found_among_others),
        cmocka_unit_test(addresses_lose_their_port),
        cmocka_unit_test(ranges_of_addresses_match_by_their_bits),
        cmocka_unit_test(a_proxy_names_the_client_last),
        cmocka_unit_test(requests_of_other_origins_are_recognised),
        cmocka_unit_test(tls_may_end_at_a_proxy),
        cmocka_unit_test(headers_of_a_proxy_are_those_of_the_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
