/*
 * test_admit.c -- which credential of a request counts, for each way that a listener accepts. The
 * engine and PostgreSQL are real.
 */
#include "hearth/engine/access_control.h"

#include "rpc/admit.h"
#include "rpc/front_internal.h"
#include "store_fixture.h"

#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define ADMIN "an administrator of at least 32 bytes"

static struct hearth_store *g_store;
static struct hearth_access *g_access;
static char g_session[HEARTH_COOKIE_CHARS + 1];
static const char *const g_trusted[] = {"10.0.0.0/8", "fd00::1", NULL};

static const struct hearth_method g_method = {
    .path = "/test", .right = HEARTH_RIGHT_READ, .flags = HEARTH_METHOD_TENANT};

static void grant_viewer(const struct hearth_access_call *call, const char *subject)
{
    int32_t id;
    const struct hearth_grant grant = {
        .subject = hearth_str_c(subject), .tenant = HEARTH_STR("red"), .role = HEARTH_ROLE_VIEWER};

    assert_ok(hearth_access_add_grant(call, &grant, &id, &err));
}

/* Everybody whom the tests name has a role in the tenant "red". */
static int start_access(void **state)
{
    static const char *const subjects[] = {"user:alice", "proxy:bob", "group:sre", "cert:web",
                                           "cert:web.example"};
    struct hearth_access_options options;
    struct hearth_admission admission;
    char url[256];

    start_cluster(state);
    g_store = open_fresh(url, NULL);
    hearth_access_options_init(&options);
    options.admin_token = test_secret(ADMIN);
    assert_ok(hearth_access_start(&options, g_store, &g_access, &err));

    /* Until the first snapshot nobody is known. */
    const struct hearth_credential admin = {.kind = HEARTH_CREDENTIAL_TOKEN,
                                            .text = HEARTH_STR(ADMIN)};
    struct hearth_err ignored = HEARTH_ERR_INIT;
    while (hearth_access_identify(g_access, &admin, &admission, &ignored) != HEARTH_OK) {
        (void)usleep(10000);
    }
    const struct hearth_access_call call = {
        .access = g_access, .admission = &admission, .arena = &g_arena};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(subjects); i++) {
        grant_viewer(&call, subjects[i]);
    }
    hearth_admission_release(&admission);

    struct hearth_str alice = HEARTH_STR("user:alice");
    const struct hearth_login from = {.address = HEARTH_STR("192.0.2.1")};
    assert_ok(hearth_access_begin_session(g_access, &alice, 1, &from, NULL, g_session, &err));

    return 0;
}

static int stop_access(void **state)
{
    hearth_access_stop(g_access);
    close_store(g_store);
    return stop_cluster(state);
}

/* A request with all credentials at once. */
static struct hearth_front_caller make_caller(unsigned modes)
{
    static const struct hearth_str names[] = {{"web", 3}, {"web.example", 11}};
    struct hearth_front_caller caller = {
        .n_authorizations = 1,
        .authorization = HEARTH_STR("Bearer " ADMIN),
        .session = hearth_str_c(g_session),
        .proxy_user = HEARTH_STR("bob"),
        .proxy_groups = HEARTH_STR(" dev, sre ,"),
        .forwarded_for = HEARTH_STR("198.51.100.1, 203.0.113.7"),
        .certificate_names = names,
        .n_certificate_names = 2,
        .modes = modes,
        .is_reading = true,
    };

    hearth_caller_set_address(&caller, "10.1.2.3:5");

    return caller;
}

/* Admits the caller; writes the subject, or the name of the status. */
static void admit(struct hearth_front_caller *caller, char out[64], char address[64])
{
    struct hearth_front front = {
        .options = {.access = g_access, .proxy_trusted = g_trusted, .multitenancy = true}};
    struct hearth_admitted admitted;
    struct hearth_err err = HEARTH_ERR_INIT;

    enum hearth_status status = hearth_front_admit(&front, &g_method, caller, &admitted, &err);
    if (status != HEARTH_OK) {
        (void)snprintf(out, 64, "%s", hearth_status_name(status));
    } else {
        (void)snprintf(out, 64, HEARTH_STR_FMT, HEARTH_STR_ARG(admitted.admission.subject));
        (void)snprintf(address, 64, "%s", admitted.address);
        hearth_admitted_release(&admitted);
    }
}

static void expect_admitted(struct hearth_front_caller caller, const char *expected)
{
    char found[64], address[64] = "";

    caller.n_tenants = 1;
    caller.tenant = HEARTH_STR("red");
    admit(&caller, found, address);
    assert_string_equal(found, expected);
}

static void each_way_finds_its_own_credential(void **state)
{
    (void)state;
    static const struct {
        unsigned modes;
        const char *subject;
    } cases[] = {
        {HEARTH_AUTH_TOKEN, "token:admin"}, {HEARTH_AUTH_USER, "user:alice"},
        {HEARTH_AUTH_OIDC, "user:alice"}, /* the session of a log-in at an issuer */
        {HEARTH_AUTH_PROXY, "proxy:bob"},   {HEARTH_AUTH_MTLS, "cert:web"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        expect_admitted(make_caller(cases[i].modes), cases[i].subject);
    }
}

/* The caller sends all of them; the first one that it takes away is the one that counted. */
static void token_session_proxy_certificate_is_the_order(void **state)
{
    (void)state;
    unsigned all = HEARTH_AUTH_TOKEN | HEARTH_AUTH_USER | HEARTH_AUTH_MTLS | HEARTH_AUTH_OIDC |
                   HEARTH_AUTH_PROXY;
    struct hearth_front_caller caller = make_caller(all);

    expect_admitted(caller, "token:admin");
    caller.n_authorizations = 0;
    expect_admitted(caller, "user:alice");
    caller.session = hearth_str_n(NULL, 0);
    expect_admitted(caller, "proxy:bob");
    caller.proxy_user = hearth_str_n(NULL, 0);
    expect_admitted(caller, "cert:web");
    caller.n_certificate_names = 0;
    expect_admitted(caller, "unauthenticated");
}

/* A wrong credential is no reason to try the next one. */
static void a_wrong_credential_is_refused_even_with_a_valid_certificate_or_proxy(void **state)
{
    (void)state;
    struct hearth_front_caller caller =
        make_caller(HEARTH_AUTH_TOKEN | HEARTH_AUTH_USER | HEARTH_AUTH_MTLS | HEARTH_AUTH_PROXY);

    caller.authorization = HEARTH_STR("Bearer wrong");
    expect_admitted(caller, "unauthenticated");
    caller.n_authorizations = 0;
    caller.session = HEARTH_STR("wrong");
    expect_admitted(caller, "unauthenticated");
}

static void only_trusted_proxies_name_users_and_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *peer, *found, *address;
    } cases[] = {
        {"10.255.0.1:80", "proxy:bob", "203.0.113.7"}, {"[fd00::1]:80", "proxy:bob", "203.0.113.7"},
        {"11.0.0.1:80", "cert:web", "11.0.0.1"},       {"[fd00::2]:80", "cert:web", "fd00::2"},
        {"203.0.113.7:80", "cert:web", "203.0.113.7"}, {"unix:/x", "cert:web", "unix"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        char found[64], address[64] = "";
        struct hearth_front_caller caller = make_caller(HEARTH_AUTH_PROXY | HEARTH_AUTH_MTLS);
        caller.n_tenants = 1;
        caller.tenant = HEARTH_STR("red");
        hearth_caller_set_address(&caller, cases[i].peer);
        admit(&caller, found, address);
        assert_string_equal(found, cases[i].found);
        assert_string_equal(address, cases[i].address);
    }
}

static void groups_of_a_proxy_and_names_of_a_certificate_give_roles(void **state)
{
    (void)state;
    static const struct hearth_str alternative[] = {{"unknown", 7}, {"web.example", 11}};
    struct hearth_front_caller caller = make_caller(HEARTH_AUTH_PROXY);

    caller.proxy_user = HEARTH_STR("stranger");
    expect_admitted(caller, "proxy:stranger");
    caller.proxy_groups = HEARTH_STR("dev");
    expect_admitted(caller, "permission_denied");

    caller = make_caller(HEARTH_AUTH_MTLS);
    caller.certificate_names = alternative;
    expect_admitted(caller, "cert:unknown");
    caller.n_certificate_names = 1;
    expect_admitted(caller, "permission_denied");
}

static void a_session_changes_things_from_its_own_pages_only(void **state)
{
    (void)state;
    struct hearth_front_caller caller = make_caller(HEARTH_AUTH_USER);

    caller.is_reading = false;
    caller.host = HEARTH_STR("hearth.example");
    expect_admitted(caller, "permission_denied");
    caller.origin = HEARTH_STR("http://evil.example");
    expect_admitted(caller, "permission_denied");
    caller.origin = HEARTH_STR("http://hearth.example");
    expect_admitted(caller, "user:alice");
}

static void a_jwt_is_not_taken_for_a_token(void **state)
{
    (void)state;
    struct hearth_front_caller caller = make_caller(HEARTH_AUTH_TOKEN);

    caller.authorization = HEARTH_STR("Bearer a.b.c");
    expect_admitted(caller, "unauthenticated");
    caller.authorization = HEARTH_STR("Basic eDphLmIuYw=="); /* "x:a.b.c" */
    expect_admitted(caller, "unauthenticated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_finds_its_own_credential),
        cmocka_unit_test(token_session_proxy_certificate_is_the_order),
        cmocka_unit_test(a_wrong_credential_is_refused_even_with_a_valid_certificate_or_proxy),
        cmocka_unit_test(only_trusted_proxies_name_users_and_addresses),
        cmocka_unit_test(groups_of_a_proxy_and_names_of_a_certificate_give_roles),
        cmocka_unit_test(a_session_changes_things_from_its_own_pages_only),
        cmocka_unit_test(a_jwt_is_not_taken_for_a_token),
    };
    return cmocka_run_group_tests(tests, start_access, stop_access);
}
