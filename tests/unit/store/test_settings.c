/* test_settings.c -- settings of tenants: set here, seen there, one tenant's only. */
#include "hearth/store/settings.h"

#include "read_fixture.h"

struct seen {
    int64_t range, samples;
    size_t n;
};

static void take(void *context, struct hearth_str name, int64_t value)
{
    struct seen *seen = context;
    seen->n++;
    if (hearth_str_eq_c(name, "max-query-range")) {
        seen->range = value;
    } else if (hearth_str_eq_c(name, "max-samples")) {
        seen->samples = value;
    }
}

static struct seen look(struct hearth_store *store, const char *tenant)
{
    struct seen seen = {-1, -1, 0};
    hearth_store_settings(store, hearth_str_c(tenant), take, &seen);
    return seen;
}

static enum hearth_status set(struct hearth_store *store, const char *tenant, bool make,
                              const struct hearth_setting *v, size_t n)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    return hearth_store_settings_set(store, hearth_str_c(tenant), make, v, n, &err);
}

static void settings_hold_at_once_where_they_are_set_and_soon_elsewhere(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *here = open_store(url), *there = open_store(url);
    const struct hearth_setting two[] = {{HEARTH_STR("max-query-range"), 5},
                                         {HEARTH_STR("max-samples"), 7}};
    assert_int_equal(set(here, "shop", true, two, 2), HEARTH_OK);
    assert_int_equal(look(here, "shop").range, 5);
    assert_int_equal(look(here, "shop").samples, 7);
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    while (look(there, "shop").n == 0 && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(20000);
    }
    assert_int_equal(look(there, "shop").n, 2);
    assert_int_equal(look(there, "sho").n, 0);
    assert_int_equal(look(there, "shop2").n, 0);
    close_store(here);
    close_store(there);
}

static void a_negative_value_deletes_the_setting_and_the_last_of_a_name_counts(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    const struct hearth_setting twice[] = {{HEARTH_STR("max-samples"), 1},
                                           {HEARTH_STR("max-samples"), 2},
                                           {HEARTH_STR("max-query-range"), 3}};
    const struct hearth_setting gone = {HEARTH_STR("max-samples"), -1};
    assert_int_equal(set(store, "a", true, twice, 3), HEARTH_OK);
    assert_int_equal(look(store, "a").samples, 2);
    assert_int_equal(set(store, "a", false, &gone, 1), HEARTH_OK);
    assert_int_equal(look(store, "a").n, 1);
    assert_int_equal(look(store, "a").range, 3);
    close_store(store);
}

static void a_tenant_is_created_on_request_only_and_has_an_empty_index(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    const struct hearth_setting one = {HEARTH_STR("max-samples"), 1};
    assert_int_equal(set(store, "new", false, &one, 1), HEARTH_NOT_FOUND);
    assert_int_equal(look(store, "new").n, 0);
    assert_int_equal(set(store, "new", true, &one, 1), HEARTH_OK);
    assert_int_equal(look(store, "new").samples, 1);
    const struct hearth_label_index *index = NULL;
    assert_ok(hearth_store_index_lock(store, HEARTH_STR("new"), NULL, &index, &err));
    assert_int_equal(hearth_label_index_series(index), 0);
    hearth_store_index_unlock(store, index);
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_hold_at_once_where_they_are_set_and_soon_elsewhere),
        cmocka_unit_test(a_negative_value_deletes_the_setting_and_the_last_of_a_name_counts),
        cmocka_unit_test(a_tenant_is_created_on_request_only_and_has_an_empty_index),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
