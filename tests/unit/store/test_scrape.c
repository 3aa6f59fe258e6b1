/* test_scrape.c -- which server scrapes which target. */
#include "hearth/store/store_scrape.h"

#include "housekeeping.h"
#include "step_fixture.h"
#include "store_scope.h"

static struct hearth_scrape_target make_target(const char *tenant, const char *address)
{
    return (struct hearth_scrape_target){
        .key = hearth_hash128(address, strlen(address), 0),
        .tenant = hearth_str_c(tenant),
        .job = HEARTH_STR("shop"),
        .address = hearth_str_c(address),
        .path = HEARTH_STR("/debug/pprof/profile"),
    };
}

/* "10" if the holder gets the first of two targets, and not the second. */
static const char *claim(struct fixture *fix, uint64_t holder,
                         const struct hearth_scrape_target *targets, size_t n)
{
    static char text[9];
    bool claimed[8];
    const struct hearth_scrape_claims claims = {
        {holder, holder}, 60 * HEARTH_NS_PER_SEC, targets, n};

    assert_ok(hearth_store_scrape_claim(STORE_SCOPE(fix->store, HEARTH_STR(""), &fix->arena),
                                        &claims, claimed, &err));
    for (size_t i = 0; i < n; i++) {
        text[i] = claimed[i] ? '1' : '0';
    }
    text[n] = '\0';

    return text;
}

static void one_server_at_a_time_holds_a_target(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    const struct hearth_scrape_target targets[] = {make_target("t", "a:1"), make_target("t", "b:1"),
                                                   make_target("t", "c:1")};

    assert_string_equal(claim(&fix, 1, targets, 2), "11");
    assert_string_equal(claim(&fix, 2, targets, 3), "001");
    assert_string_equal(claim(&fix, 1, targets, 3), "110");

    /* A claim that has expired, and claims that were given up. */
    pg_cluster_run(fix.url, "UPDATE hearth_data.scrape_target SET claimed_until ="
                            " now() - interval '1 second' WHERE address = 'a:1'");
    assert_string_equal(claim(&fix, 2, targets, 3), "101");
    assert_ok(hearth_store_scrape_release(STORE_SCOPE(fix.store, HEARTH_STR(""), NULL),
                                          (struct hearth_hash128){2, 2}, &err));
    assert_string_equal(claim(&fix, 1, targets, 3), "111");
    close_fixture(&fix);
}

static void a_claim_stores_the_outcome_of_the_latest_scrape(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    struct hearth_scrape_target targets[] = {make_target("t", "b:1"), make_target("t", "a:1"),
                                             make_target("u", "c:1")};
    (void)claim(&fix, 1, targets, 3);
    targets[0].scraped_ms = now_ms;
    targets[0].took_ms = 12;
    targets[0].n_bytes = 345;
    targets[0].failure = HEARTH_STR("connection refused");
    (void)claim(&fix, 1, targets, 1);

    struct hearth_scrape_target *listed;
    size_t n;
    assert_ok(hearth_store_scrape_targets(STORE_SCOPE(fix.store, HEARTH_STR("t"), &fix.arena),
                                          &listed, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(listed[0].address.p, "a:1");
    assert_int_equal(listed[0].scraped_ms, 0);
    assert_true(listed[1].is_claimed);
    assert_int_equal(listed[1].scraped_ms, now_ms);
    assert_int_equal(listed[1].took_ms, 12);
    assert_int_equal(listed[1].n_bytes, 345);
    assert_string_equal(listed[1].failure.p, "connection refused");
    close_fixture(&fix);
}

static void targets_vanish_an_hour_after_their_last_claim(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    const struct hearth_scrape_target targets[] = {make_target("t", "a:1"),
                                                   make_target("t", "b:1")};
    (void)claim(&fix, 1, targets, 2);
    pg_cluster_run(fix.url, "UPDATE hearth_data.scrape_target SET claimed_until ="
                            " now() - interval '61 minutes' WHERE address = 'a:1'");

    struct hearth_housekeeping times = {0};
    assert_ok(hearth_housekeeping_run(fix.store, &fix.builder.pg, &times, &err));
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.scrape_target"
                                             " WHERE address = 'b:1'"),
                     1);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT count(*) FROM hearth_data.scrape_target"), 1);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_server_at_a_time_holds_a_target),
        cmocka_unit_test(a_claim_stores_the_outcome_of_the_latest_scrape),
        cmocka_unit_test(targets_vanish_an_hour_after_their_last_claim),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
