/* test_tenant.c -- the rules of X-Scope-OrgID. */
#include "rpc/tenant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int64_t g_max_tenants = 1;

static enum hearth_status find(bool multitenancy, size_t sent, const char *name, char out[160])
{
    struct hearth_tenants tenants;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_tenant_rules rules = {multitenancy, g_max_tenants, "/a.v1.Service/Method"};
    hearth_arena_init(&arena, 0);
    enum hearth_status status =
        hearth_tenant_find(&rules, sent, hearth_str_c(name), &arena, &tenants, &err);
    if (status == HEARTH_OK) {
        assert_true(tenants.n >= 1 && tenants.v != NULL);
        assert_memory_equal(tenants.first.text, tenants.v[0].tenant.p, tenants.first.n);
        assert_int_equal(tenants.first.n, tenants.v[0].tenant.n);
        assert_int_equal(tenants.text != NULL, tenants.n > 1);
        out[0] = '\0';
        for (size_t i = 0; i < tenants.n; i++) {
            size_t at = strlen(out);
            assert_int_equal(tenants.v[i].n_selectors, 0);
            (void)snprintf(out + at, 160 - at, "%s" HEARTH_STR_FMT, i == 0 ? "" : "|",
                           HEARTH_STR_ARG(tenants.v[i].tenant));
        }
        assert_true(tenants.n == 1 || strcmp(tenants.text, out) == 0);
    } else {
        assert_int_equal(err.status, status);
        memcpy(out, err.msg, 159);
        out[159] = '\0';
    }
    hearth_arena_release(&arena);
    return status;
}

static void without_multitenancy_every_tenant_is_anonymous(void **state)
{
    char out[160];
    (void)state;
    assert_int_equal(find(false, 0, "", out), HEARTH_OK);
    assert_string_equal(out, "anonymous");
    assert_int_equal(find(false, 1, "somebody", out), HEARTH_OK);
    assert_string_equal(out, "anonymous");
    assert_int_equal(find(false, 2, "a|b", out), HEARTH_OK);
    assert_string_equal(out, "anonymous");
}

static void a_missing_tenant_is_unauthenticated(void **state)
{
    char out[160];
    (void)state;
    assert_int_equal(find(true, 0, "", out), HEARTH_UNAUTHENTICATED);
    assert_string_equal(out, "no org id");
    assert_int_equal(find(true, 1, "", out), HEARTH_UNAUTHENTICATED);
    assert_int_equal(find(true, 1, "  ", out), HEARTH_UNAUTHENTICATED);
}

static void takes_every_allowed_character(void **state)
{
    char out[160];
    (void)state;
    assert_int_equal(find(true, 1, "aZ09!-_.*'()", out), HEARTH_OK);
    assert_string_equal(out, "aZ09!-_.*'()");
    assert_int_equal(find(true, 1, " padded ", out), HEARTH_OK);
    assert_string_equal(out, "padded");
    assert_int_equal(find(true, 1, "...", out), HEARTH_OK);
}

static void refuses_names_that_break_the_rules(void **state)
{
    static const char *const names[] = {".",         "..",    "a b",     "a/b", "a\\b",
                                        "t\xc3\xa4", "a\x01", "tenant$", "a,b", "a\"b"};
    char out[160];
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        assert_int_equal(find(true, 1, names[i], out), HEARTH_INVALID_ARGUMENT);
    }
}

static void a_name_has_at_most_150_bytes(void **state)
{
    char out[160], name[152];
    (void)state;
    memset(name, 'x', sizeof name);
    name[150] = '\0';
    assert_int_equal(find(true, 1, name, out), HEARTH_OK);
    assert_string_equal(out, name);
    name[150] = 'x';
    name[151] = '\0';
    assert_int_equal(find(true, 1, name, out), HEARTH_INVALID_ARGUMENT);
}

static void several_tenants_are_refused_with_a_reason(void **state)
{
    char out[160];
    (void)state;
    assert_int_equal(find(true, 1, "a|b", out), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(
        out, "X-Scope-OrgID names several tenants; /a.v1.Service/Method works on one tenant only");
    assert_int_equal(find(true, 2, "a", out), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(out, "sent 2 times"));
}

static void a_list_is_checked_sorted_and_without_repetitions(void **state)
{
    char out[160];
    (void)state;
    g_max_tenants = 3;
    assert_int_equal(find(true, 1, "b|a", out), HEARTH_OK);
    assert_string_equal(out, "a|b");
    assert_int_equal(find(true, 1, "b | a|b|c|a", out), HEARTH_OK);
    assert_string_equal(out, "a|b|c");
    assert_int_equal(find(true, 1, "a|a", out), HEARTH_OK);
    assert_string_equal(out, "a");
    assert_int_equal(find(true, 1, "a|b|c|d", out), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(out, "names 4 tenants; a request may read 3 (max-read-tenants)"));
    assert_int_equal(find(true, 1, "a||b", out), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(find(true, 1, "a|", out), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(find(true, 1, "|", out), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(find(true, 1, "a|b c", out), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(find(false, 1, "a|b", out), HEARTH_OK);
    assert_string_equal(out, "anonymous");
    g_max_tenants = 1;
    assert_int_equal(find(true, 1, "a|a", out), HEARTH_OK); /* one tenant */
}

static void a_list_has_a_bounded_number_of_names(void **state)
{
    char out[160], names[2 * HEARTH_TENANT_MAX_NAMES + 2];
    (void)state;
    for (size_t i = 0; i <= HEARTH_TENANT_MAX_NAMES; i++) {
        memcpy(&names[2 * i], "a|", 2);
    }
    names[2 * HEARTH_TENANT_MAX_NAMES + 1] = '\0';
    assert_int_equal(find(true, 1, names, out), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(out, "1001 names"));
    names[2 * HEARTH_TENANT_MAX_NAMES - 1] = '\0';
    assert_int_equal(find(true, 1, names, out), HEARTH_OK);
    assert_string_equal(out, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_multitenancy_every_tenant_is_anonymous),
        cmocka_unit_test(a_missing_tenant_is_unauthenticated),
        cmocka_unit_test(takes_every_allowed_character),
        cmocka_unit_test(refuses_names_that_break_the_rules),
        cmocka_unit_test(a_name_has_at_most_150_bytes),
        cmocka_unit_test(several_tenants_are_refused_with_a_reason),
        cmocka_unit_test(a_list_is_checked_sorted_and_without_repetitions),
        cmocka_unit_test(a_list_has_a_bounded_number_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
