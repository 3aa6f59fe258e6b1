/* test_ingest_errors.c -- refused uploads: how they add up, their limit per tenant, their end. */
#include "hearth/store/store_ingest_errors.h"

#include "housekeeping.h"
#include "pg/store_state.h"
#include "step_fixture.h"
#include "store_scope.h"

static struct hearth_ingest_error make_error(const char *tenant, int64_t key, int64_t at_ms)
{
    return (struct hearth_ingest_error){.tenant = hearth_str_c(tenant),
                                        .client = HEARTH_STR("java"),
                                        .route = HEARTH_STR("/ingest"),
                                        .code = HEARTH_STR("invalid_argument"),
                                        .message = HEARTH_STR("damaged"),
                                        .key = key,
                                        .body_hash = -1,
                                        .n_bytes = 10,
                                        .n = 1,
                                        .first_ms = at_ms,
                                        .last_ms = at_ms};
}

static void add(struct fixture *fix, const struct hearth_ingest_error *errors, size_t n)
{
    assert_ok(hearth_store_ingest_errors_add(STORE_SCOPE(fix->store, HEARTH_STR(""), NULL), errors,
                                             n, &err));
}

/* "KEY:COUNT KEY:COUNT ", the latest first. */
static void expect_errors(struct fixture *fix, const struct hearth_ingest_error_filter *filter,
                          const char *expected)
{
    struct hearth_ingest_error *errors;
    size_t n;
    char text[256] = "";

    assert_ok(hearth_store_ingest_errors(STORE_SCOPE(fix->store, HEARTH_STR("t"), &fix->arena),
                                         filter, &errors, &n, &err));
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%lld:%lld ", (long long)errors[i].key,
                       (long long)errors[i].n);
    }
    assert_string_equal(text, expected);
}

static void equal_errors_share_a_row_with_the_latest_message(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    struct hearth_ingest_error errors[] = {make_error("t", 1, now_ms - 10),
                                           make_error("t", 2, now_ms - 5),
                                           make_error("u", 1, now_ms)};
    add(&fix, errors, 3);

    errors[0] = make_error("t", 1, now_ms);
    errors[0].n = 4;
    errors[0].n_bytes = 99;
    errors[0].message = HEARTH_STR("damaged at byte 7");
    add(&fix, errors, 1);
    expect_errors(&fix, &(struct hearth_ingest_error_filter){.limit = 10}, "1:5 2:1 ");
    expect_errors(&fix, &(struct hearth_ingest_error_filter){.limit = 1}, "1:5 ");

    struct hearth_ingest_error *read;
    size_t n;
    assert_ok(hearth_store_ingest_errors(STORE_SCOPE(fix.store, HEARTH_STR("t"), &fix.arena),
                                         &(struct hearth_ingest_error_filter){.limit = 1}, &read,
                                         &n, &err));
    assert_string_equal(read->message.p, "damaged at byte 7");
    assert_int_equal(read->n_bytes, 99);
    assert_int_equal(read->first_ms, now_ms - 10);
    assert_int_equal(read->last_ms, now_ms);
    assert_int_equal(read->body_hash, -1);
    close_fixture(&fix);
}

static void errors_are_selected_by_time_client_and_route(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    struct hearth_ingest_error errors[] = {
        make_error("t", 1, now_ms - 2), make_error("t", 2, now_ms - 1), make_error("t", 3, now_ms)};
    errors[1].client = HEARTH_STR("go");
    errors[2].route = HEARTH_STR("/v1/input");
    add(&fix, errors, 3);

    expect_errors(&fix, &(struct hearth_ingest_error_filter){.from_ms = now_ms - 1, .limit = 9},
                  "3:1 2:1 ");
    expect_errors(
        &fix, &(struct hearth_ingest_error_filter){.client = HEARTH_STR("go"), .limit = 9}, "2:1 ");
    expect_errors(
        &fix, &(struct hearth_ingest_error_filter){.route = HEARTH_STR("/v1/input"), .limit = 9},
        "3:1 ");
    close_fixture(&fix);
}

static void a_tenant_keeps_its_latest_kinds_of_errors_only(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    fix.store->options.max_ingest_errors = 2;
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    const struct hearth_ingest_error errors[] = {
        make_error("t", 1, now_ms), make_error("t", 2, now_ms - 2), make_error("t", 3, now_ms - 1),
        make_error("u", 9, now_ms - 3)};
    add(&fix, errors, 4);
    expect_errors(&fix, &(struct hearth_ingest_error_filter){.limit = 9}, "1:1 3:1 ");
    close_fixture(&fix);
}

static void errors_expire_after_their_latest_upload(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    const struct hearth_ingest_error errors[] = {
        make_error("t", 1, now_ms - 9 * HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS),
        make_error("t", 2, now_ms - 1000)};
    add(&fix, errors, 2);

    struct hearth_housekeeping times = {0};
    assert_ok(hearth_housekeeping_run(fix.store, &fix.builder.pg, &times, &err));
    expect_errors(&fix, &(struct hearth_ingest_error_filter){.limit = 9}, "2:1 ");
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_errors_share_a_row_with_the_latest_message),
        cmocka_unit_test(errors_are_selected_by_time_client_and_route),
        cmocka_unit_test(a_tenant_keeps_its_latest_kinds_of_errors_only),
        cmocka_unit_test(errors_expire_after_their_latest_upload),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
