/* test_catalog_tenants.c -- label indexes that do not all fit: going, coming back, races. */
#include "read_fixture.h"

#include <stdlib.h>

#define TENANT    HEARTH_STR("anonymous")
#define N_THREADS 8
#define N_TENANTS 6

static const char CUT_ALL[] =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'hearthd' AND datname = current_database()";

static struct hearth_store *open_small_store(const char *url, size_t label_index_bytes)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.url = test_secret(url);
    options.builder = false;
    options.label_index_bytes = label_index_bytes;
    return open_ready(url, &options);
}

static struct hearth_str tenant_name(int number)
{
    static const char *const names[N_TENANTS] = {"t0", "t1", "t2", "t3", "t4", "t5"};
    return hearth_str_c(names[number]);
}

static int64_t metric(const char *name)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_metrics_write(&out, HEARTH_METRICS_PROMETHEUS);
    hearth_buf_byte(&out, '\0');
    assert_false(hearth_buf_failed(&out));
    char line[128];
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(out.p, line);
    assert_non_null(at);
    int64_t value = strtoll(at + strlen(line), NULL, 10);
    hearth_buf_release(&out);
    return value;
}

/* Indexes stay for a second after they were asked. */
static void let_stays_end(void)
{
    (void)usleep(1100000);
}

static void an_evicted_index_is_loaded_again_for_a_query_of_its_tenant(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_small_store(url, 1);
    for (int t = 0; t < N_TENANTS; t++) {
        for (int pod = 0; pod <= t; pod++) {
            (void)resolve_one(store, tenant_name(t), pod % 2, pod, T0);
        }
    }
    int64_t n_evicted = metric("hearth_label_index_evictions_total");
    for (int pass = 0; pass < 3; pass++) {
        for (int t = 0; t < N_TENANTS; t++) {
            assert_int_equal(count_hits(store, tenant_name(t), "{}", T0, T0), 2 * (t + 1));
            assert_int_equal(count_hits(store, tenant_name(t), "{pod=\"pod-0\"}", T0, T0), 2);
        }
        let_stays_end();
        /* Somebody's refresh lets them go; what it finds new of them is passed over, not lost. */
        (void)resolve_one(store, tenant_name(0), 0, 0, T0 + (pass + 1) * HEARTH_NS_PER_HOUR);
        assert_int_equal(count_hits(store, HEARTH_STR("nobody"), "{}", T0, T0), 0);
        assert_int_equal(metric("hearth_label_index_tenants"), 0);
        assert_int_equal(metric("hearth_label_index_bytes"), 0);
    }
    assert_true(metric("hearth_label_index_evictions_total") - n_evicted >= 2 * N_TENANTS);
    assert_int_equal(
        count_hits(store, tenant_name(0), "{}", T0 + 3 * HEARTH_NS_PER_HOUR, INT64_MAX), 2);
    assert_int_equal(metric("hearth_catalog_series"), 1 + 2 + 3 + 4 + 5 + 6);
    close_store(store);

    store = open_small_store(url, 1); /* nothing fits from the start */
    assert_int_equal(metric("hearth_label_index_tenants"), 0);
    assert_int_equal(metric("hearth_catalog_series"), 1 + 2 + 3 + 4 + 5 + 6);
    assert_int_equal(count_hits(store, tenant_name(5), "{}", T0, T0), 12);
    close_store(store);

    store = open_small_store(url, 0); /* no limit: all are there without being asked */
    assert_int_equal(metric("hearth_label_index_tenants"), N_TENANTS);
    assert_int_equal(count_hits(store, tenant_name(5), "{}", T0, T0), 12);
    close_store(store);
}

static void the_limit_of_series_holds_for_tenants_that_are_not_in_memory(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.url = test_secret(url);
    options.builder = false;
    options.max_series = 4;
    options.label_index_bytes = 1;
    struct made_series made;
    struct hearth_series_ref ref;
    struct hearth_err refused = HEARTH_ERR_INIT;
    for (int pass = 0; pass < 2; pass++) { /* counted by refreshes, then by the database */
        struct hearth_store *store = open_ready(url, &options);
        for (int pod = 0; pod < 4; pod++) {
            (void)resolve_one(store, TENANT, 1, pod, T0);
            assert_int_equal(count_hits(store, HEARTH_STR("nobody"), "{}", T0, T0), 0);
        }
        assert_int_equal(metric("hearth_label_index_tenants"), 0);
        const struct hearth_series_key *key = make_series(&made, 1, 4);
        assert_int_equal(hearth_store_resolve_series(store, TENANT, key, 1, T0, &ref, &refused),
                         HEARTH_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(refused.msg, "has 4 series"));
        (void)resolve_one(store, TENANT, 1, 2, T0 + HEARTH_NS_PER_HOUR);
        close_store(store);
    }
}

static void deleted_series_are_not_in_an_index_that_is_loaded_later(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_small_store(url, 1);
    for (int pod = 0; pod < 3; pod++) {
        (void)resolve_one(store, TENANT, 1, pod, T0);
    }
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 6);
    /* As the sweep does it. */
    pg_cluster_run(url,
                   "UPDATE hearth_data.catalog_clock SET version = version + 1, epoch = epoch + 1;"
                   "DELETE FROM hearth_data.series WHERE series_id = 2;"
                   "DELETE FROM hearth_data.series_hour WHERE series_id = 2");
    assert_int_equal(count_hits(store, HEARTH_STR("nobody"), "{}", T0, T0), 0);
    assert_int_equal(metric("hearth_catalog_series"), 2);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 4);
    close_store(store);
}

/* Writers make series of all tenants, readers look at once at what was acknowledged; indexes come and
 * go all the while, and everything is loaded anew now and then. */
struct comer {
    struct hearth_store *store;
    _Atomic bool *stop;
    int number, n_missing;
    _Atomic int n_done;
};

static bool sees(struct hearth_store *store, int tenant, int pod, struct hearth_series_ref ref)
{
    const struct hearth_label_index *index = NULL;
    struct hearth_arena arena;
    struct hearth_selector selector;
    struct hearth_series_hits hits = {0};
    const struct hearth_index_filter filter = {&selector, T0, T0};
    char text[64];
    hearth_arena_init(&arena, 0);
    hearth_selector_init(&selector);
    (void)snprintf(text, sizeof text, "{pod=\"pod-%d\"}", pod);
    bool parsed =
        hearth_selector_parse(&selector, hearth_str_c(text), &arena, NULL, NULL) == HEARTH_OK;

    /* On a busy machine each attempt to load an index may lose its connection to CUT_ALL. */
    enum hearth_status status = HEARTH_UNAVAILABLE;
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    while (status == HEARTH_UNAVAILABLE && hearth_clock_mono_ns() < until_ns) {
        status = hearth_store_index_lock(store, tenant_name(tenant), NULL, &index, NULL);
    }

    bool found = parsed && status == HEARTH_OK &&
                 hearth_label_index_select(index, &filter, &arena, &hits, NULL) == HEARTH_OK &&
                 hits.n == 2 && hits.v[0].series_id == ref.series_id;
    hearth_store_index_unlock(store, index);
    hearth_selector_release(&selector);
    hearth_arena_release(&arena);
    return found;
}

static void *run_comer(void *arg)
{
    struct comer *c = arg;
    for (int i = 0; !atomic_load(c->stop); i++) {
        struct made_series made;
        struct hearth_series_ref ref;
        int tenant = (c->number + i) % N_TENANTS, pod = c->number * 100000 + i;
        if (hearth_store_resolve_series(c->store, tenant_name(tenant),
                                        make_series(&made, c->number, pod), 1, T0, &ref,
                                        NULL) != HEARTH_OK) {
            continue; /* an epoch came in between */
        }
        c->n_missing += !sees(c->store, tenant, pod, ref);
        atomic_fetch_add(&c->n_done, 1);
    }
    return NULL;
}

static void indexes_evicted_and_loaded_under_load_lack_no_series(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_small_store(url, 1);
    struct comer comers[N_THREADS];
    pthread_t threads[N_THREADS];
    _Atomic bool stop = false;
    int64_t n_loads = metric("hearth_label_index_loads_total");
    for (int i = 0; i < N_THREADS; i++) {
        comers[i] = (struct comer){.store = store, .stop = &stop, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_comer, &comers[i]), 0);
    }
    int n_done = 0;
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    for (int i = 0; i < 12 || (n_done <= 50 && hearth_clock_mono_ns() < until_ns); i++) {
        (void)usleep(250000);
        n_done = 0;
        for (int k = 0; k < N_THREADS; k++) {
            n_done += atomic_load(&comers[k].n_done);
        }
        pg_cluster_run(url, i % 4 == 3 ? "UPDATE hearth_data.catalog_clock SET"
                                         " version = version + 1, epoch = epoch + 1"
                                       : CUT_ALL);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(comers[i].n_missing, 0);
    }
    assert_true(n_done > 50);
    assert_true(metric("hearth_label_index_loads_total") - n_loads > N_TENANTS);
    let_stays_end();
    assert_int_equal(count_hits(store, HEARTH_STR("nobody"), "{}", T0, T0), 0);
    (void)resolve_one(store, tenant_name(1), 1, 1, T0);
    for (int t = 0; t < N_TENANTS; t++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM hearth_data.series s JOIN hearth_data.tenant t"
                       " USING (tenant_id) WHERE t.name = 't%d'",
                       t);
        assert_int_equal(count_hits(store, tenant_name(t), "{}", T0, T0),
                         2 * pg_cluster_int(url, sql));
    }
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_evicted_index_is_loaded_again_for_a_query_of_its_tenant),
        cmocka_unit_test(the_limit_of_series_holds_for_tenants_that_are_not_in_memory),
        cmocka_unit_test(deleted_series_are_not_in_an_index_that_is_loaded_later),
        cmocka_unit_test(indexes_evicted_and_loaded_under_load_lack_no_series),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
