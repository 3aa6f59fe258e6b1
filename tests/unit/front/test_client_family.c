/* test_client_family.c -- kinds of clients, from a fixed table. */
#include "rpc/client_family.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void user_agents_are_mapped_to_client_families(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"Go-http-client/1.1", "go"},
        {"connect-go/1.19.1 (go1.25)", "go"},
        {"grpc-python/1.51.1 grpc-c/29.0.0 (linux; chttp2)", "python"},
        {"python-requests/2.31", "python"},
        {"okhttp/4.12.0", "java"},
        {"Alloy/v1.9 (linux; binary)", "alloy"},
        {"pyroscope/1.14.0", "profilecli"},
        {"pyroscope-rs-reqwest", "rust"},
        {"curl/7.88.1", "curl"},
        {"GRPC-C++/1.51 grpc-c/29", "grpc"},
        {"Mozilla/5.0 java", "other"},
        {"jav", "other"},
        {"", "other"},
        {"\xff\xfe{reason=\"x\"}", "other"},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        assert_string_equal(hearth_client_of_user_agent(hearth_str_c(cases[i][0])), cases[i][1]);
    }
}

static void spy_names_are_mapped_to_client_families(void **state)
{
    (void)state;
    assert_string_equal(hearth_client_of_spy(HEARTH_STR("javaspy")), "java");
    assert_string_equal(hearth_client_of_spy(HEARTH_STR("nodespy")), "node");
    assert_null(hearth_client_of_spy(HEARTH_STR("unknown")));
    assert_null(hearth_client_of_spy(HEARTH_STR("")));
    assert_string_equal(hearth_client_of_language(HEARTH_STR("python")), "python");
    assert_null(hearth_client_of_language(HEARTH_STR("javaspy")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_agents_are_mapped_to_client_families),
        cmocka_unit_test(spy_names_are_mapped_to_client_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
