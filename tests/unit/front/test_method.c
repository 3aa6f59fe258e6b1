/* test_method.c -- how RPCs are found by their paths, and services by their names. */
#include "rpc/method.h"
#include "tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct hearth_method METHODS[] = {
    {.path = "/push.v1.PusherService/Push"},       {.path = "/skywalking.v3.EventService/collect"},
    {.path = "/skywalking.v3.EventService/other"}, {.path = "/hearth.v1.AdminService/Status"},
    {.path = "/push.v1.PusherService/More"},
};
static const struct hearth_method_table TABLE = {METHODS, HEARTH_ARRAY_LEN(METHODS)};

static void assert_found(const char *path, int number)
{
    const struct hearth_method *found = hearth_method_find(&TABLE, hearth_str_c(path));
    assert_ptr_equal(found, number < 0 ? NULL : &METHODS[number]);
}

static void a_method_is_found_by_its_whole_path_only(void **state)
{
    (void)state;
    assert_found("/push.v1.PusherService/Push", 0);
    assert_found("/hearth.v1.AdminService/Status", 3);
    assert_found("/hearth.v1.AdminService/Statu", -1);
    assert_found("/hearth.v1.AdminService/Status/", -1);
    assert_found("/hearth.v1.AdminService/status", -1);
    assert_found("hearth.v1.AdminService/Status", -1);
    assert_found("/", -1);
    assert_found("", -1);
}

static void old_agents_of_skywalking_leave_the_package_out(void **state)
{
    (void)state;
    assert_found("/EventService/collect", 1);
    assert_found("/EventService/other", 2);
    assert_found("EventService/collect", -1);
    assert_found("/EventService/missing", -1);
    assert_found("/AdminService/Status", -1); /* another package */
    assert_found("/PusherService/Push", -1);
}

static void pushes_are_found_below_the_path_of_deepflow(void **state)
{
    (void)state;
    assert_found("/api/v1/profile/push.v1.PusherService/Push", 0);
    assert_found("/api/v1/profile/push.v1.PusherService/Pull", -1);
    assert_found("/api/v1/profile/hearth.v1.AdminService/Status", -1);
    assert_found("/api/v1/profile", -1);
}

static void services_are_listed_once_in_order(void **state)
{
    (void)state;
    struct hearth_str services[HEARTH_ARRAY_LEN(METHODS)];

    assert_int_equal(hearth_method_services(&TABLE, services), 3);
    assert_true(hearth_str_eq_c(services[0], "push.v1.PusherService"));
    assert_true(hearth_str_eq_c(services[1], "skywalking.v3.EventService"));
    assert_true(hearth_str_eq_c(services[2], "hearth.v1.AdminService"));
}

static void the_whole_server_and_listed_services_are_known(void **state)
{
    (void)state;
    assert_true(hearth_service_is_known(&TABLE, HEARTH_STR("")));
    assert_true(hearth_service_is_known(&TABLE, HEARTH_STR("hearth.v1.AdminService")));
    assert_false(hearth_service_is_known(&TABLE, HEARTH_STR("hearth.v1.Admin")));
    assert_false(hearth_service_is_known(&TABLE, HEARTH_STR("EventService")));
}

/* Else SOME_TENANT and MANY_TENANTS would be one: calls about tokens were listed as queries. */
static void a_method_that_merges_tenants_is_not_one_that_needs_no_tenant(void **state)
{
    (void)state;
    size_t n_some = 0, n_many = 0;

    for (size_t i = 0; i < hearth_method_table.n; i++) {
        const struct hearth_method *method = &hearth_method_table.methods[i];
        bool has_tenant = (method->flags & HEARTH_METHOD_TENANT) != 0;
        bool some = (method->flags & HEARTH_METHOD_SOME_TENANT) != 0;
        bool many = (method->flags & HEARTH_METHOD_MANY_TENANTS) != 0;
        if ((some && has_tenant) || (many && !has_tenant)) {
            fail_msg("%s: flags %x", method->path, method->flags);
        }
        n_some += some;
        n_many += many;
    }

    assert_true(n_some > 0 && n_many > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_method_is_found_by_its_whole_path_only),
        cmocka_unit_test(old_agents_of_skywalking_leave_the_package_out),
        cmocka_unit_test(pushes_are_found_below_the_path_of_deepflow),
        cmocka_unit_test(services_are_listed_once_in_order),
        cmocka_unit_test(the_whole_server_and_listed_services_are_known),
        cmocka_unit_test(a_method_that_merges_tenants_is_not_one_that_needs_no_tenant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
