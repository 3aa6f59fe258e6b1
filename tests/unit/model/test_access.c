/* test_access.c -- roles and their rights; lists of ways to authenticate. */
#include "hearth/model/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Bits of enum hearth_right that the role gives. */
static unsigned rights_of(enum hearth_role role)
{
    unsigned rights = 0;
    for (unsigned right = 0; right < HEARTH_N_RIGHTS; right++) {
        rights |= hearth_role_gives(role, (enum hearth_right)right) ? 1u << right : 0;
    }
    return rights;
}

static void each_role_gives_its_rights_and_no_others(void **state)
{
    (void)state;
    const unsigned basic = 1u << HEARTH_RIGHT_PUBLIC | 1u << HEARTH_RIGHT_ANY;
    const unsigned read = basic | 1u << HEARTH_RIGHT_READ;
    const unsigned task = read | 1u << HEARTH_RIGHT_TASK;

    assert_int_equal(rights_of(HEARTH_ROLE_INGEST), basic | 1u << HEARTH_RIGHT_INGEST);
    assert_int_equal(rights_of(HEARTH_ROLE_VIEWER), read);
    assert_int_equal(rights_of(HEARTH_ROLE_PROFILER), task);
    assert_int_equal(rights_of(HEARTH_ROLE_EDITOR),
                     task | 1u << HEARTH_RIGHT_EDIT | 1u << HEARTH_RIGHT_INGEST);
    assert_int_equal(rights_of(HEARTH_ROLE_ADMIN), (1u << HEARTH_N_RIGHTS) - 1);
}

static void role_names_are_read_back(void **state)
{
    (void)state;
    enum hearth_role role;

    for (unsigned i = 0; i < HEARTH_N_ROLES; i++) {
        assert_true(hearth_role_parse(hearth_str_c(hearth_role_name((enum hearth_role)i)), &role));
        assert_int_equal(role, i);
    }

    assert_false(hearth_role_parse(HEARTH_STR("Viewer"), &role));
    assert_false(hearth_role_parse(HEARTH_STR(""), &role));
}

static void lists_of_modes_are_parsed(void **state)
{
    (void)state;
    unsigned modes;
    struct hearth_err err = HEARTH_ERR_INIT;

    assert_int_equal(hearth_auth_modes_parse(HEARTH_STR("none"), &modes, &err), HEARTH_OK);
    assert_int_equal(modes, HEARTH_AUTH_NONE);
    assert_int_equal(hearth_auth_modes_parse(HEARTH_STR("token, mtls"), &modes, &err), HEARTH_OK);
    assert_int_equal(modes, HEARTH_AUTH_TOKEN | HEARTH_AUTH_MTLS);
    assert_int_equal(hearth_auth_modes_parse(HEARTH_STR("user,oidc,proxy"), &modes, &err),
                     HEARTH_OK);
    assert_int_equal(modes, HEARTH_AUTH_USER | HEARTH_AUTH_OIDC | HEARTH_AUTH_PROXY);
}

static void wrong_lists_of_modes_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",           "tokens",   "token,", ",token", "token,token",
                                        "none,token", "mtls,none"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(wrong); i++) {
        unsigned modes = 77;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_auth_modes_parse(hearth_str_c(wrong[i]), &modes, &err),
                         HEARTH_INVALID_ARGUMENT);
        assert_int_equal(modes, 77);
        assert_true(err.msg[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_role_gives_its_rights_and_no_others),
        cmocka_unit_test(role_names_are_read_back),
        cmocka_unit_test(lists_of_modes_are_parsed),
        cmocka_unit_test(wrong_lists_of_modes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
