/* test_agent_methods.c -- access to the methods of agents; names of methods, old and new. */
#include "rpc/agent_methods.h"
#include "tables.h"
#include "test_secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    const char *path;
    unsigned flags;
} g_methods[] = {
#define X(id, service, method, request, response, handler, pool, right, flags) \
    {"/" service "/" method, (flags)},
#define UNARY X
#include "methods.def"
#undef X
#undef UNARY
};

static const struct hearth_method *method(const char *path)
{
    const struct hearth_method *found =
        hearth_method_find(&hearth_method_table, hearth_str_c(path));
    assert_non_null(found);
    return found;
}

static const struct hearth_method *events(void)
{
    return method("/skywalking.v3.EventService/collect");
}

static struct hearth_front_options options_with(const char *token)
{
    struct hearth_front_options options;
    hearth_front_options_init(&options);
    options.agents.token = test_secret(token);
    return options;
}

static enum hearth_status admit(const struct hearth_front_options *options,
                                const struct hearth_method *called,
                                const struct hearth_front_caller *caller, char out[256])
{
    struct hearth_tenants tenants = {0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    enum hearth_status status =
        hearth_front_admit_all(options, called, caller, &arena, &tenants, &err);
    hearth_arena_release(&arena);
    struct hearth_str said = status == HEARTH_OK ? hearth_str_n(tenants.first.text, tenants.first.n)
                                                 : hearth_str_c(err.msg);
    memcpy(out, said.p, said.n);
    out[said.n] = '\0';
    return status;
}

static void every_method_of_agents_belongs_to_a_family(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_methods); i++) {
        const char *option = hearth_agent_option(method(g_methods[i].path));
        bool is_of_agents = strncmp(g_methods[i].path, "/skywalking.", 12) == 0;
        if ((option != NULL) != is_of_agents ||
            ((g_methods[i].flags & HEARTH_METHOD_AGENT) != 0) != is_of_agents) {
            fail_msg("%s: option %s, flags %x", g_methods[i].path, option, g_methods[i].flags);
        }
        n += is_of_agents;
    }
    assert_true(n >= 4);
}

static void a_method_is_found_without_the_package_of_v3_too(void **state)
{
    (void)state;
    assert_ptr_equal(method("/EventService/collect"), events());
    static const char *const unknown[] = {
        "/EventService/",
        "/EventService/collec",
        "EventService/collect",
        "//collect",
        "/skywalking.EventService/collect",
        "/v3.EventService/collect",
        "/EventService/collect/",
        "/",
        "",
        "/PusherService/Push",
        "/v1.PusherService/Push",
        "/AsyncProfilerTask/collect",
        "/PprofTask/collect",
        "/skywalking.v10.EventService/collect",
        "/eventservice/collect",
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(unknown); i++) {
        if (hearth_method_find(&hearth_method_table, hearth_str_c(unknown[i])) != NULL) {
            fail_msg("\"%s\" is found", unknown[i]);
        }
    }
}

static void without_a_token_any_agent_may_call(void **state)
{
    (void)state;
    char out[256];
    struct hearth_front_options options = options_with("");
    struct hearth_front_caller none = {0};
    struct hearth_front_caller some = {.n_tokens = 1, .token = HEARTH_STR("x")};
    assert_int_equal(admit(&options, events(), &none, out), HEARTH_OK);
    assert_string_equal(out, "anonymous");
    assert_int_equal(admit(&options, events(), &some, out), HEARTH_OK);
}

static void only_agents_need_a_token_and_it_is_never_shown(void **state)
{
    (void)state;
    char out[256];
    struct hearth_front_options options = options_with("s3cret");
    static const struct {
        const char *said;
        size_t n;
        enum hearth_status status;
    } cases[] = {
        {"s3cret", 1, HEARTH_OK},
        {"", 0, HEARTH_UNAUTHENTICATED},
        {"", 1, HEARTH_UNAUTHENTICATED},
        {"s3cre", 1, HEARTH_UNAUTHENTICATED},
        {"s3cret ", 1, HEARTH_UNAUTHENTICATED},
        {"S3cret", 1, HEARTH_UNAUTHENTICATED},
        {"s3cret", 2, HEARTH_UNAUTHENTICATED}, /* which of them? */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_front_caller caller = {.n_tokens = cases[i].n,
                                             .token = hearth_str_c(cases[i].said)};
        assert_int_equal(admit(&options, events(), &caller, out), cases[i].status);
        if (cases[i].status != HEARTH_OK) {
            assert_non_null(strstr(out, "\"authentication\""));
            assert_non_null(strstr(out, "agent-token"));
            assert_null(strstr(out, "3cre"));
        }
    }
    struct hearth_front_caller none = {0};
    assert_int_equal(admit(&options, method("/push.v1.PusherService/Push"), &none, out), HEARTH_OK);
}

static void a_family_that_is_off_names_its_option(void **state)
{
    (void)state;
    char out[256];
    struct hearth_front_options options = options_with("s3cret");
    options.agents.management = false;
    struct hearth_front_caller none = {0};
    assert_int_equal(admit(&options, events(), &none, out), HEARTH_UNIMPLEMENTED);
    assert_non_null(strstr(out, "(agent-management)"));
    assert_non_null(strstr(out, "skywalking.v3.EventService/collect"));
}

static void otlp_is_off_and_its_error_names_the_option(void **state)
{
    (void)state;
    char out[256];
    struct hearth_front_options options = options_with("s3cret");
    struct hearth_front_caller none = {0};
    const struct hearth_method *export =
        method("/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    assert_int_equal(admit(&options, export, &none, out), HEARTH_UNIMPLEMENTED);
    assert_non_null(strstr(out, "--otlp-traces"));
    options.otlp.traces = true;
    assert_int_equal(admit(&options, export, &none, out), HEARTH_OK); /* tokens are of agents */
}

static void a_ratio_is_a_number_from_0_to_1(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double ratio; /* -1: refused */
    } cases[] = {
        {"0", 0},     {"1", 1},    {"0.25", 0.25}, {"1e-3", 0.001}, {"1.0", 1},  {"1.5", -1},
        {"-0.1", -1}, {"nan", -1}, {"inf", -1},    {"", -1},        {"10%", -1}, {"0,5", -1},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        double ratio = -1;
        struct hearth_err err = HEARTH_ERR_INIT;
        struct hearth_otlp_options options = {.traces_ratio = cases[i].text};
        bool is_good = hearth_sampling_ratio_parse(hearth_str_c(cases[i].text), &ratio);
        assert_int_equal(is_good, cases[i].ratio >= 0);
        assert_true(ratio == cases[i].ratio);
        assert_int_equal(hearth_otlp_check_options(&options, &err),
                         is_good ? HEARTH_OK : HEARTH_INVALID_ARGUMENT);
        assert_true(is_good || strstr(err.msg, "otlp-traces-ratio is \"") != NULL);
    }
}

static void agents_without_a_tenant_get_the_tenant_of_the_option(void **state)
{
    (void)state;
    char out[256];
    struct hearth_front_options options = options_with("");
    options.agents.tenant = "agents";
    struct hearth_front_caller none = {0}, empty = {.n_tenants = 1};
    struct hearth_front_caller some = {.n_tenants = 1, .tenant = HEARTH_STR("shop")};
    struct hearth_front_caller two = {.n_tenants = 2, .tenant = HEARTH_STR("shop")};
    options.multitenancy = true;
    assert_int_equal(admit(&options, events(), &none, out), HEARTH_OK);
    assert_string_equal(out, "agents");
    assert_int_equal(admit(&options, events(), &some, out), HEARTH_OK);
    assert_string_equal(out, "shop");
    assert_int_equal(admit(&options, events(), &empty, out), HEARTH_UNAUTHENTICATED);
    assert_int_equal(admit(&options, events(), &two, out), HEARTH_INVALID_ARGUMENT);
    const struct hearth_method *push = method("/push.v1.PusherService/Push");
    assert_int_equal(admit(&options, push, &none, out), HEARTH_UNAUTHENTICATED);
    options.agents.tenant = "";
    assert_int_equal(admit(&options, events(), &none, out), HEARTH_UNAUTHENTICATED);
    options.multitenancy = false;
    assert_int_equal(admit(&options, events(), &some, out), HEARTH_OK);
    assert_string_equal(out, "anonymous");
}

static void an_invalid_tenant_is_refused_at_the_start(void **state)
{
    (void)state;
    static const struct {
        const char *tenant;
        bool multitenancy;
        enum hearth_status status;
    } cases[] = {
        {"anonymous", false, HEARTH_OK},
        {"anonymous", true, HEARTH_OK},
        {"agents", true, HEARTH_OK},
        {"", true, HEARTH_OK},
        {"agents", false, HEARTH_INVALID_ARGUMENT}, /* nobody could ask for what they bring */
        {"a|b", true, HEARTH_INVALID_ARGUMENT},
        {"a b", true, HEARTH_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_front_options options = options_with("");
        options.agents.tenant = cases[i].tenant;
        options.multitenancy = cases[i].multitenancy;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_agent_check_options(&options, &err), cases[i].status);
        assert_true(cases[i].status == HEARTH_OK || strstr(err.msg, "agent-tenant") != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_of_agents_belongs_to_a_family),
        cmocka_unit_test(a_method_is_found_without_the_package_of_v3_too),
        cmocka_unit_test(without_a_token_any_agent_may_call),
        cmocka_unit_test(only_agents_need_a_token_and_it_is_never_shown),
        cmocka_unit_test(a_family_that_is_off_names_its_option),
        cmocka_unit_test(otlp_is_off_and_its_error_names_the_option),
        cmocka_unit_test(a_ratio_is_a_number_from_0_to_1),
        cmocka_unit_test(agents_without_a_tenant_get_the_tenant_of_the_option),
        cmocka_unit_test(an_invalid_tenant_is_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
