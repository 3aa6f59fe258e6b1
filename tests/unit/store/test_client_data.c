/* test_client_data.c -- settings of clients and ad hoc profiles: whose they are, and their limits. */
#include "hearth/store/client_data.h"

#include "step_fixture.h"
#include "store_scope.h"

static enum hearth_status put(struct fixture *fix, const char *tenant, const char *name,
                              const char *value, int64_t at, int max)
{
    const struct hearth_client_setting setting = {hearth_str_c(name), hearth_str_c(value), at};
    struct hearth_err err = HEARTH_ERR_INIT;
    return hearth_store_client_setting_put(STORE_SCOPE(fix->store, hearth_str_c(tenant), NULL),
                                           &setting, max, &err);
}

/* "a=1 b=2 " */
static void expect_settings(struct fixture *fix, const char *tenant, const char *expected)
{
    struct hearth_client_setting *settings;
    size_t n;
    char text[256] = "";
    assert_ok(hearth_store_client_settings(
        STORE_SCOPE(fix->store, hearth_str_c(tenant), &fix->arena), &settings, &n, &err));
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s=%s ", settings[i].name.p,
                       settings[i].value.p);
    }
    assert_string_equal(text, expected);
}

static void a_setting_is_replaced_by_a_change_of_an_equal_or_later_time(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    assert_int_equal(put(&fix, "t", "b", "2", 10, 0), HEARTH_OK);
    assert_int_equal(put(&fix, "t", "a", "1", 10, 0), HEARTH_OK);
    assert_int_equal(put(&fix, "t", "a", "old", 9, 0), HEARTH_ALREADY_EXISTS);
    expect_settings(&fix, "t", "a=1 b=2 ");
    assert_int_equal(put(&fix, "t", "a", "same", 10, 0), HEARTH_OK);
    assert_int_equal(put(&fix, "t", "b", "new", 11, 0), HEARTH_OK);
    expect_settings(&fix, "t", "a=same b=new ");
    assert_ok(hearth_store_client_setting_delete(STORE_SCOPE(fix.store, HEARTH_STR("u"), NULL),
                                                 HEARTH_STR("a"), &err));
    expect_settings(&fix, "t", "a=same b=new ");
    assert_ok(hearth_store_client_setting_delete(STORE_SCOPE(fix.store, HEARTH_STR("t"), NULL),
                                                 HEARTH_STR("a"), &err));
    expect_settings(&fix, "t", "b=new ");
    close_fixture(&fix);
}

struct racer {
    struct fixture *fix;
    int number;
    enum hearth_status status;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    char name[16];
    (void)snprintf(name, sizeof name, "s%d", racer->number);
    racer->status = put(racer->fix, "t", name, "x", 1, 3);
    return NULL;
}

static void concurrent_requests_do_not_exceed_the_limit_of_settings(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct racer racers[8];
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        racers[i] = (struct racer){&fix, i, HEARTH_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    int n_taken = 0, taken = 0;
    for (int i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
        if (racers[i].status == HEARTH_OK) {
            n_taken++;
            taken = i;
        } else {
            assert_int_equal(racers[i].status, HEARTH_RESOURCE_EXHAUSTED);
        }
    }
    assert_int_equal(n_taken, 3);
    char name[16];
    (void)snprintf(name, sizeof name, "s%d", taken);
    assert_int_equal(put(&fix, "t", name, "y", 2, 3), HEARTH_OK); /* one of them can change */
    assert_int_equal(put(&fix, "u", "s9", "y", 2, 3), HEARTH_OK); /* another tenant's */
    close_fixture(&fix);
}

static enum hearth_status upload(struct fixture *fix, const char *tenant, const char *id,
                                 struct hearth_str payload)
{
    const struct hearth_adhoc profile = {hearth_str_c(id), HEARTH_STR("n"), 5, payload};
    struct hearth_err err = HEARTH_ERR_INIT;
    return hearth_store_adhoc_put(STORE_SCOPE(fix->store, hearth_str_c(tenant), NULL), &profile, 3,
                                  100, &err);
}

static void ad_hoc_profiles_are_read_back_as_they_were_uploaded_within_their_limits(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    char bytes[90];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)i;
    }
    assert_int_equal(upload(&fix, "t", "01-a", hearth_str_n(bytes, 90)), HEARTH_OK);
    assert_int_equal(upload(&fix, "t", "02-b", hearth_str_n(bytes, 11)), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(upload(&fix, "t", "03-c", hearth_str_n(bytes, 5)), HEARTH_OK);
    assert_int_equal(upload(&fix, "t", "04-d", hearth_str_n(bytes, 5)), HEARTH_OK);
    assert_int_equal(upload(&fix, "t", "05-e", hearth_str_n(bytes, 0)), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(upload(&fix, "u", "06-f", hearth_str_n(bytes, 0)), HEARTH_OK);
    struct hearth_adhoc one, *list;
    size_t n;
    assert_ok(hearth_store_adhoc_get(STORE_SCOPE(fix.store, HEARTH_STR("t"), &fix.arena),
                                     HEARTH_STR("01-a"), &one, &err));
    assert_true(hearth_str_eq(one.payload, hearth_str_n(bytes, 90)));
    assert_int_equal(one.uploaded_at_ms, 5);
    assert_ok(hearth_store_adhoc_list(STORE_SCOPE(fix.store, HEARTH_STR("t"), &fix.arena), &list,
                                      &n, &err));
    assert_int_equal(n, 3);
    assert_string_equal(list[0].id.p, "04-d");
    assert_string_equal(list[2].id.p, "01-a");
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_adhoc_get(STORE_SCOPE(fix.store, HEARTH_STR("u"), &fix.arena),
                                            HEARTH_STR("01-a"), &one, &err),
                     HEARTH_NOT_FOUND);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_replaced_by_a_change_of_an_equal_or_later_time),
        cmocka_unit_test(concurrent_requests_do_not_exceed_the_limit_of_settings),
        cmocka_unit_test(ad_hoc_profiles_are_read_back_as_they_were_uploaded_within_their_limits),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
