/* test_scrape_targets.c -- targets of names whose addresses change. */
#include "hearth/base/mem.h"

#include "ranks.h"
#include "scrape/scrape_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const g_names[] = {"shop.test"};
static const struct hearth_scrape_path g_path = {.path = "/debug/pprof/heap"};
static const struct hearth_scrape_group g_group = {
    .addresses = g_names, .n_addresses = 1, .is_dns = true, .port = 80};
static const struct hearth_scrape_job g_job = {.name = "shop",
                                               .tenant = "anonymous",
                                               .scheme = "http",
                                               .interval_ns = HEARTH_NS_PER_SEC,
                                               .paths = &g_path,
                                               .n_paths = 1,
                                               .groups = &g_group,
                                               .n_groups = 1};

static void start_targets(struct hearth_scraper *scraper, int64_t max_targets)
{
    struct hearth_err err = HEARTH_ERR_INIT;

    *scraper = (struct hearth_scraper){
        .options = {.jobs = &g_job, .n_jobs = 1, .max_targets = max_targets}};
    hearth_mutex_init(&scraper->lock, HEARTH_RANK_SCRAPER, "scraper.lock");
    assert_int_equal(hearth_scrape_targets_init(scraper, &err), HEARTH_OK);
    assert_int_equal(scraper->n_names, 1);
    scraper->names[0].is_running = true; /* nothing resolves it: the test says its addresses */
}

/* The name has the addresses 10.0.0.FIRST and so on, n of them, then those from `more` on. */
static void resolve_to(struct hearth_scraper *scraper, int first, int n, int more, int n_more)
{
    struct scrape_name *name = &scraper->names[0];

    hearth_mem_free(name->addresses);
    name->addresses = hearth_mem_calloc((size_t)(n + n_more), sizeof *name->addresses);
    assert_non_null(name->addresses);
    name->n_addresses = (size_t)(n + n_more);
    for (int i = 0; i < n + n_more; i++) {
        (void)snprintf(name->addresses[i], sizeof name->addresses[i], "10.0.0.%d:80",
                       i < n ? first + i : more + i - n);
    }
    name->is_fresh = true;
    hearth_scrape_targets_refresh(scraper, 0);
    hearth_scrape_targets_sweep(scraper);
}

static bool has_target(const struct hearth_scraper *scraper, int number)
{
    char address[HEARTH_SCRAPE_ADDRESS_BYTES];

    (void)snprintf(address, sizeof address, "10.0.0.%d:80", number);
    for (size_t i = 0; i < scraper->n_scrapes; i++) {
        if (strcmp(scraper->scrapes[i]->address, address) == 0) {
            return true;
        }
    }

    return false;
}

static void stop_targets(struct hearth_scraper *scraper)
{
    hearth_scrape_targets_free(scraper);
    hearth_mutex_destroy(&scraper->lock);
}

static void addresses_that_replace_all_others_have_their_room(void **state)
{
    (void)state;
    struct hearth_scraper scraper;

    start_targets(&scraper, 10);
    resolve_to(&scraper, 1, 8, 0, 0);
    assert_int_equal(scraper.n_scrapes, 8);
    resolve_to(&scraper, 101, 8, 0, 0);
    assert_int_equal(scraper.n_scrapes, 8);
    for (int i = 0; i < 8; i++) {
        assert_true(has_target(&scraper, 101 + i));
    }
    assert_false(scraper.is_over_limit);
    stop_targets(&scraper);
}

static void beyond_the_limit_known_addresses_stay_before_new_ones(void **state)
{
    (void)state;
    struct hearth_scraper scraper;

    start_targets(&scraper, 4);
    resolve_to(&scraper, 1, 3, 0, 0);
    resolve_to(&scraper, 101, 3, 1, 3);
    assert_int_equal(scraper.n_scrapes, 4);
    assert_true(has_target(&scraper, 1) && has_target(&scraper, 2) && has_target(&scraper, 3));
    assert_true(has_target(&scraper, 101));
    assert_true(scraper.is_over_limit);
    stop_targets(&scraper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_that_replace_all_others_have_their_room),
        cmocka_unit_test(beyond_the_limit_known_addresses_stay_before_new_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
