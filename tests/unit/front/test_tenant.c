/* test_tenant.c -- the rules of X-Scope-OrgID. */
#include "rpc/tenant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static enum hearth_status find(bool multitenancy, size_t sent, const char *name, char out[160])
{
    struct hearth_tenant tenant;
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_tenant_find(multitenancy, sent, hearth_str_c(name), &tenant, &err);
    if (status == HEARTH_OK) {
        memcpy(out, tenant.text, tenant.n);
        out[tenant.n] = '\0';
    } else {
        assert_int_equal(err.status, status);
        memcpy(out, err.msg, 159);
        out[159] = '\0';
    }
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
    assert_non_null(strstr(out, "several tenants"));
    assert_int_equal(find(true, 2, "a", out), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(out, "sent 2 times"));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
