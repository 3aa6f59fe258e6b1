/* test_catalog.c -- resolving series and the label index, on a real PostgreSQL. */
#include "read_fixture.h"

#include <limits.h>

#define TENANT HEARTH_STR("anonymous")

static void resolving_again_gives_the_same_ids(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_series_ref a = resolve_one(store, TENANT, 1, 1, T0);
    struct hearth_series_ref b = resolve_one(store, TENANT, 1, 2, T0);
    struct hearth_series_ref again = resolve_one(store, TENANT, 1, 1, T0);
    assert_true(a.service_id > 0 && a.series_id > 0);
    assert_int_equal(a.service_id, b.service_id);
    assert_int_not_equal(a.series_id, b.series_id);
    assert_memory_equal(&a, &again, sizeof a);
    close_store(store);

    store = open_store(url); /* nothing in memory now */
    again = resolve_one(store, TENANT, 1, 1, T0);
    assert_memory_equal(&a, &again, sizeof a);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series"), 2);
    close_store(store);
}

static void another_server_finds_what_was_resolved(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *one = open_store(url), *two = open_store(url);
    assert_int_equal(count_hits(two, TENANT, "{}", T0, T0), 0);
    struct hearth_series_ref ref = resolve_one(one, TENANT, 7, 4, T0);

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_series_hit *hits = NULL;
    assert_int_equal(select_hits(two, TENANT, "{pod=\"pod-4\"}", T0, T0, &arena, &hits), 2);
    for (uint16_t k = 0; k < 2; k++) {
        assert_int_equal(hits[k].series_id, ref.series_id);
        assert_int_equal(hits[k].service_id, ref.service_id);
        assert_int_equal(hits[k].column, k);
        assert_int_equal(hits[k].n_types, 2);
    }
    const struct hearth_label_index *index = NULL;
    struct hearth_labels labels;
    assert_ok(hearth_store_index_lock(two, TENANT, NULL, &index, &err));
    assert_ok(hearth_label_index_labels(index, &hits[1], &arena, &labels, &err));
    assert_true(hearth_str_eq_c(hearth_labels_get(&labels, HEARTH_STR("service_name")), "svc-7"));
    assert_true(hearth_str_eq_c(hearth_labels_get(&labels, HEARTH_STR("region")), "r-1"));
    assert_true(hearth_str_eq_c(hearth_labels_get(&labels, HEARTH_STR("__profile_type__")),
                                "process_cpu:cpu:nanoseconds:cpu:nanoseconds"));
    hearth_store_index_unlock(two, index);
    hearth_arena_release(&arena);
    close_store(one);
    close_store(two);
}

static void the_types_and_the_labels_make_the_series(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct made_series made;
    struct hearth_series_ref one, two;
    struct hearth_series_key key = *make_series(&made, 1, 1);
    assert_ok(hearth_store_resolve_series(store, TENANT, &key, 1, T0, &one, &err));
    key.n_types = 1;
    assert_ok(hearth_store_resolve_series(store, TENANT, &key, 1, T0, &two, &err));
    assert_int_not_equal(one.series_id, two.series_id);
    key.labels.n = 0;
    assert_ok(hearth_store_resolve_series(store, TENANT, &key, 1, T0, &one, &err));
    assert_int_not_equal(one.series_id, two.series_id);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 4);
    assert_int_equal(count_hits(store, TENANT, "{pod=\"\"}", T0, T0), 1);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.shape"), 2);
    close_store(store);
}

static void a_series_is_active_in_its_hours_only(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    const int64_t h = HEARTH_NS_PER_HOUR;
    (void)resolve_one(store, TENANT, 1, 1, T0);
    (void)resolve_one(store, TENANT, 1, 1, T0 + 2 * h);
    (void)resolve_one(store, TENANT, 1, 1, T0 + 30 * h); /* another day, another leaf */
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0 + h - 1), 2);
    assert_int_equal(count_hits(store, TENANT, "{}", T0 + h, T0 + 2 * h - 1), 0);
    assert_int_equal(count_hits(store, TENANT, "{}", T0 + 2 * h, T0 + 2 * h), 2);
    assert_int_equal(count_hits(store, TENANT, "{}", T0 + 3 * h, T0 + 29 * h), 0);
    assert_int_equal(count_hits(store, TENANT, "{}", T0 + 3 * h, T0 + 31 * h), 2);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series"), 1);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series_hour"), 3);
    close_store(store);

    store = open_store(url); /* the first load goes another way than refreshes */
    assert_int_equal(count_hits(store, TENANT, "{}", T0 + h, T0 + 2 * h - 1), 0);
    assert_int_equal(count_hits(store, TENANT, "{}", T0 + 3 * h, T0 + 31 * h), 2);
    close_store(store);
}

static void a_profile_before_1970_has_its_hour(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    (void)resolve_one(store, TENANT, 1, 1, -1);
    close_store(store);
    store = open_store(url);
    assert_int_equal(count_hits(store, TENANT, "{}", -HEARTH_NS_PER_HOUR, -1), 2);
    assert_int_equal(count_hits(store, TENANT, "{}", 0, HEARTH_NS_PER_HOUR), 0);
    close_store(store);
}

static void tenants_never_see_each_other(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_str a = HEARTH_STR("team-a"), b = HEARTH_STR("team-b");
    struct hearth_series_ref ra = resolve_one(store, a, 1, 1, T0);
    struct hearth_series_ref rb = resolve_one(store, b, 1, 1, T0); /* the very same names */
    (void)resolve_one(store, b, 2, 2, T0);
    assert_int_not_equal(ra.service_id, rb.service_id);
    assert_int_not_equal(ra.series_id, rb.series_id);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(count_hits(store, a, "{}", T0, T0), 2);
        assert_int_equal(count_hits(store, b, "{}", T0, T0), 4);
        assert_int_equal(count_hits(store, a, "{service_name=\"svc-2\"}", T0, T0), 0);
        assert_int_equal(count_hits(store, HEARTH_STR("nobody"), "{}", T0, T0), 0);
        assert_int_equal(count_hits(store, HEARTH_STR(""), "{}", T0, T0), 0);
        close_store(store);
        store = open_store(url);
    }
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_series_hit *hits = NULL;
    assert_int_equal(select_hits(store, a, "{}", T0, T0, &arena, &hits), 2);
    assert_int_equal(hits[0].series_id, ra.series_id);
    hearth_arena_release(&arena);
    close_store(store);
}

/* ---- many at once ---- */

#define N_THREADS 8
#define N_SHARED  40 /* series that all threads resolve */
#define N_OWN     20 /* series of one thread */

struct resolver {
    struct hearth_store *store;
    int number;
    struct hearth_series_ref shared[N_SHARED], own[N_OWN];
    enum hearth_status status;
};

static void *run_resolver(void *arg)
{
    struct resolver *r = arg;
    for (int i = 0; i < N_SHARED + N_OWN && r->status == HEARTH_OK; i++) {
        /* Several series in one call, as a split profile has them. */
        struct made_series made[3];
        struct hearth_series_key keys[3];
        struct hearth_series_ref refs[3];
        bool shared = i < N_SHARED;
        int first = shared ? (i + r->number * 5) % N_SHARED : 1000 + r->number * 100 + i - N_SHARED;
        for (int k = 0; k < 3; k++) {
            int pod = shared ? (first + k) % N_SHARED : first;
            keys[k] = *make_series(&made[k], pod % 4, pod);
        }
        r->status = hearth_store_resolve_series(r->store, TENANT, keys, 3, T0, refs, NULL);
        for (int k = 0; k < 3; k++) {
            if (shared) {
                r->shared[(first + k) % N_SHARED] = refs[k];
            } else {
                r->own[i - N_SHARED] = refs[k];
            }
        }
    }
    return NULL;
}

static void threads_of_two_servers_resolving_the_same_new_series_agree(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *stores[2] = {open_store(url), open_store(url)};
    static struct resolver resolvers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        resolvers[i] = (struct resolver){.store = stores[i % 2], .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_resolver, &resolvers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(resolvers[i].status, HEARTH_OK);
        assert_memory_equal(resolvers[i].shared, resolvers[0].shared, sizeof resolvers[0].shared);
    }
    long long n_series = N_SHARED + N_THREADS * N_OWN;
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series"), n_series);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series_hour"), n_series);
    /* Nothing that existed used up an identity. */
    assert_int_equal(pg_cluster_int(url, "SELECT max(series_id) FROM hearth_data.series"),
                     n_series);
    assert_int_equal(
        pg_cluster_int(url, "SELECT max(pair_id) - count(*) FROM hearth_data.label_pair"), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(count_hits(stores[i], TENANT, "{}", T0, T0), 2 * n_series);
        close_store(stores[i]);
    }
}

#define N_ROUNDS 60

struct chaser {
    struct hearth_store *writer, *reader;
    int number, n_missing;
};

/* Resolve on one server, look at the other at once. */
static void *run_chaser(void *arg)
{
    struct chaser *c = arg;
    for (int i = 0; i < N_ROUNDS; i++) {
        struct made_series made;
        struct hearth_series_ref ref;
        char text[64];
        int pod = c->number * 1000 + i;
        const struct hearth_label_index *index = NULL;
        struct hearth_arena arena;
        struct hearth_selector selector;
        struct hearth_series_hits hits = {0};
        const struct hearth_index_filter filter = {&selector, T0, T0};
        hearth_arena_init(&arena, 0);
        hearth_selector_init(&selector);
        (void)snprintf(text, sizeof text, "{pod=\"pod-%d\"}", pod);
        bool found =
            hearth_store_resolve_series(c->writer, TENANT, make_series(&made, c->number, pod), 1,
                                        T0, &ref, NULL) == HEARTH_OK &&
            hearth_selector_parse(&selector, hearth_str_c(text), &arena, NULL, NULL) == HEARTH_OK &&
            hearth_store_index_lock(c->reader, TENANT, NULL, &index, NULL) == HEARTH_OK &&
            hearth_label_index_select(index, &filter, &arena, &hits, NULL) == HEARTH_OK &&
            hits.n == 2 && hits.v[0].series_id == ref.series_id;
        hearth_store_index_unlock(c->reader, index);
        hearth_selector_release(&selector);
        hearth_arena_release(&arena);
        c->n_missing += !found;
    }
    return NULL;
}

static void profiles_that_one_server_acknowledged_are_found_by_another(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *stores[2] = {open_store(url), open_store(url)};
    struct chaser chasers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        chasers[i] = (struct chaser){stores[i % 2], stores[(i + 1) % 2], i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, run_chaser, &chasers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(chasers[i].n_missing, 0);
    }
    close_store(stores[0]);
    close_store(stores[1]);
}

/* ---- failures ---- */

static const char CUT_ALL[] =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'hearthd' AND datname = current_database()";

static void the_index_survives_cut_connections(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    for (int i = 0; i < 10; i++) {
        (void)resolve_one(store, TENANT, 1, i, T0);
        assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 2 * (i + 1));
        pg_cluster_run(url, CUT_ALL);
    }
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 20);
    close_store(store);
}

struct steady {
    struct hearth_store *store;
    _Atomic bool stop;
    int number;
    _Atomic int n_done;
    enum hearth_status status;
};

static void *run_steady(void *arg)
{
    struct steady *s = arg;
    for (int i = 0; !atomic_load(&s->stop); i++) {
        struct made_series made;
        struct hearth_series_ref ref;
        enum hearth_status status = hearth_store_resolve_series(
            s->store, TENANT, make_series(&made, s->number, i), 1, T0, &ref, NULL);
        if (status == HEARTH_OK) {
            atomic_store(&s->n_done, i + 1);
        } else if (status == HEARTH_UNAVAILABLE) {
            i--; /* allowed while connections die; the same series again */
        } else {
            s->status = status;
            break;
        }
    }
    return NULL;
}

static void catalogue_writes_cut_at_any_moment_lose_and_double_nothing(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct steady steady[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        steady[i] = (struct steady){.store = store, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_steady, &steady[i]), 0);
    }
    int n_least = 0; /* also on a busy machine: until every thread has come some way */
    for (int i = 0; i < 1000 && (i < 40 || n_least < 25); i++) {
        /* Longer and longer: a machine on which nothing gets done between two cuts gets its turn. */
        (void)usleep(10000 + (useconds_t)(i * 777 % 9000) + (useconds_t)i * 100);
        pg_cluster_run(url, CUT_ALL);
        n_least = INT_MAX;
        for (int k = 0; k < 4; k++) {
            int n_done = atomic_load(&steady[k].n_done);
            n_least = n_done < n_least ? n_done : n_least;
        }
    }
    long long n = 0;
    for (int i = 0; i < 4; i++) {
        atomic_store(&steady[i].stop, true);
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(steady[i].status, HEARTH_OK);
        n += atomic_load(&steady[i].n_done);
    }
    assert_true(n >= 100);
    /* A write whose caller gave up may have happened. */
    long long stored = pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series");
    assert_true(stored >= n && stored <= n + 4);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 2 * stored);
    close_store(store);
}

static void an_unreachable_database_is_unavailable_until_it_returns(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_series_ref ref = resolve_one(store, TENANT, 1, 1, T0);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 2);
    pg_cluster_halt(&g_cluster, SIGINT);
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_label_index *index = NULL;
    assert_int_equal(hearth_store_index_lock(store, TENANT, NULL, &index, &err),
                     HEARTH_UNAVAILABLE);
    assert_true(err.msg[0] != '\0');
    assert_null(index);
    struct made_series made;
    struct hearth_series_ref other = {0, 0};
    assert_int_equal(
        hearth_store_resolve_series(store, TENANT, make_series(&made, 1, 2), 1, T0, &other, &err),
        HEARTH_UNAVAILABLE);
    /* What is known needs no database. */
    assert_ok(
        hearth_store_resolve_series(store, TENANT, make_series(&made, 1, 1), 1, T0, &other, &err));
    assert_memory_equal(&other, &ref, sizeof ref);
    pg_cluster_resume(&g_cluster);
    (void)resolve_one(store, TENANT, 1, 2, T0);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 4);
    close_store(store);
}

static void a_series_that_no_index_could_take_is_refused(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct made_series made;
    struct hearth_series_ref ref;
    struct hearth_err err = HEARTH_ERR_INIT;
    for (int i = 0; i < 7; i++) {
        (void)make_series(&made, 1, 1);
        switch (i) {
        case 0:
            made.key.n_types = 0;
            break;
        case 1:
            made.key.service_name = HEARTH_STR("");
            break;
        case 2:
            made.labels[1].value = HEARTH_STR("");
            break;
        case 3:
            made.labels[1].name = made.labels[0].name;
            break;
        case 4:
            made.types[1] = HEARTH_STR("");
            break;
        case 5:
            made.labels[0].value = HEARTH_STR("\xff");
            break;
        default:
            made.key.service_name = HEARTH_STR("a\0b");
            break;
        }
        assert_int_equal(hearth_store_resolve_series(store, TENANT, &made.key, 1, T0, &ref, &err),
                         HEARTH_INVALID_ARGUMENT);
    }
    assert_int_equal(pg_cluster_int(url, "SELECT version FROM hearth_data.catalog_clock"), 0);
    close_store(store);
}

struct refused {
    struct hearth_store *store;
    struct hearth_str tenant;
    int number;
    enum hearth_status status;
};

static void *run_refused(void *arg)
{
    struct refused *r = arg;
    for (int i = 0; i < 20 && r->status == HEARTH_OK; i++) {
        struct made_series made;
        struct hearth_series_ref ref;
        r->status = hearth_store_resolve_series(
            r->store, r->tenant, make_series(&made, r->number, i), 1, T0, &ref, NULL);
    }
    return NULL;
}

static void a_refusal_of_the_database_fails_only_its_own_request(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    static char name[6000]; /* more than an index entry can hold, and not compressible */
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < sizeof name; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        name[i] = (char)('!' + x % 90);
    }
    struct refused all[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        bool bad = i % 3 == 1;
        all[i] =
            (struct refused){store, bad ? hearth_str_n(name, sizeof name) : TENANT, i, HEARTH_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, run_refused, &all[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(all[i].status, i % 3 == 1 ? HEARTH_INTERNAL : HEARTH_OK);
    }
    close_store(store);
}

/* As a restore from a backup does, taken when version 1 was the newest. */
static const char GO_BACK[] = "BEGIN; UPDATE hearth_data.catalog_clock SET version = 1;"
                              "DELETE FROM hearth_data.service WHERE version > 1;"
                              "DELETE FROM hearth_data.label_pair WHERE version > 1;"
                              "DELETE FROM hearth_data.series WHERE version > 1;"
                              "DELETE FROM hearth_data.series_hour WHERE version > 1; COMMIT";

static void assert_is_stored(const char *url, struct hearth_series_ref ref)
{
    char sql[160];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM hearth_data.series WHERE service_id = %d AND series_id = %d",
        (int)ref.service_id, (int)ref.series_id);
    assert_int_equal(pg_cluster_int(url, sql), 1);
}

static void a_catalogue_that_went_back_in_time_is_loaded_again(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    (void)resolve_one(store, TENANT, 1, 1, T0);
    (void)resolve_one(store, TENANT, 2, 2, T0);
    (void)resolve_one(store, TENANT, 2, 3, T0);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 6);
    pg_cluster_run(url, GO_BACK);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 2);
    assert_is_stored(url, resolve_one(store, TENANT, 2, 2, T0));
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 4);

    /* The same when ingest is the first to notice, with ids in memory and only the hour new. */
    const int64_t next = T0 + HEARTH_NS_PER_HOUR;
    (void)resolve_one(store, TENANT, 3, 3, T0);
    pg_cluster_run(url, GO_BACK);
    assert_is_stored(url, resolve_one(store, TENANT, 2, 2, next));
    assert_is_stored(url, resolve_one(store, TENANT, 3, 3, next));
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 2);
    assert_int_equal(count_hits(store, TENANT, "{}", next, next), 4);

    /* And with ids in memory beside what is new. */
    pg_cluster_run(url, GO_BACK);
    struct made_series made[2];
    struct hearth_series_key keys[2] = {*make_series(&made[0], 2, 2), *make_series(&made[1], 9, 9)};
    struct hearth_series_ref refs[2];
    assert_ok(
        hearth_store_resolve_series(store, TENANT, keys, 2, next + HEARTH_NS_PER_HOUR, refs, &err));
    assert_is_stored(url, refs[0]);
    assert_is_stored(url, refs[1]);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, next + HEARTH_NS_PER_HOUR), 6);
    close_store(store);
}

struct impatient_query {
    struct hearth_store *store;
    enum hearth_status status;
};

/* A thread of its own, because a thread that holds the index may not lock it again. */
static void *resolve_and_lock_index(void *context)
{
    struct impatient_query *query = context;
    const struct hearth_label_index *index = NULL;
    struct hearth_cancel cancel;

    (void)resolve_one(query->store, TENANT, 1, 1, T0);
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 120 * HEARTH_NS_PER_MS);
    query->status = hearth_store_index_lock(query->store, TENANT, &cancel, &index, NULL);
    hearth_store_index_unlock(query->store, index);

    return NULL;
}

static void cancelling_one_use_of_the_index_does_not_affect_others(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, INT64_MAX);
    atomic_store(&cancel.cancelled, true);
    const struct hearth_label_index *index = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_index_lock(store, TENANT, &cancel, &index, &err),
                     HEARTH_CANCELLED);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 0);

    /* A reader that does not unlock holds up the refresh, but not for longer than the deadline. */
    assert_ok(hearth_store_index_lock(store, TENANT, NULL, &index, &err));
    struct impatient_query query = {.store = store};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, resolve_and_lock_index, &query), 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(query.status, HEARTH_DEADLINE_EXCEEDED);
    hearth_store_index_unlock(store, index);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 2);
    close_store(store);
}

static void thousands_of_series_in_one_call_are_one_transaction(void **state)
{
    (void)state;
    enum {
        N = 2000
    };
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    struct made_series *made = hearth_mem_calloc(N, sizeof *made);
    struct hearth_series_key *keys = hearth_mem_calloc(N, sizeof *keys);
    struct hearth_series_ref *refs = hearth_mem_calloc(N, sizeof *refs);
    for (int i = 0; i < N; i++) {
        keys[i] = *make_series(&made[i], i % 7, i);
    }
    assert_ok(hearth_store_resolve_series(store, TENANT, keys, N, T0, refs, &err));
    assert_int_equal(pg_cluster_int(url, "SELECT version FROM hearth_data.catalog_clock"), 1);
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 2 * N);
    assert_int_equal(count_hits(store, TENANT, "{region=\"r-1\"}", T0, T0), 2 * 667);
    assert_int_equal(hearth_metric_value(HEARTH_M_CATALOG_SERIES), N);
    /* Pair ids of the index are those of the labels. */
    assert_int_equal(
        pg_cluster_int(url,
                       "SELECT count(*) FROM hearth_data.series s WHERE cardinality(pair_ids) = 2"
                       " AND pair_ids[1] < pair_ids[2]"),
        N);
    /* The next hour needs nothing but hours. */
    assert_ok(
        hearth_store_resolve_series(store, TENANT, keys, N, T0 + HEARTH_NS_PER_HOUR, refs, &err));
    assert_int_equal(pg_cluster_int(url, "SELECT version FROM hearth_data.catalog_clock"), 2);
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series_hour"), 2 * N);
    hearth_mem_free(made);
    hearth_mem_free(keys);
    hearth_mem_free(refs);
    close_store(store);
}

/* Statistics of a time with few series make the primary key look as good as the unique index. */
static void new_series_are_looked_up_one_by_one_after_statistics_of_few(void **state)
{
    (void)state;
    enum {
        N = 200,
        CALLS = 20
    };
    char url[256];
    pg_cluster_database(&g_cluster, url);
    pg_cluster_run(url, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET random_page_cost = 1.1',"
                        " current_database()); END $$");
    struct hearth_store *store = open_store(url);
    for (int i = 0; i < 80; i++) {
        (void)resolve_one(store, TENANT, i % 10, i, T0);
    }
    pg_cluster_run(url, "ANALYZE hearth_data.series");
    struct made_series *made = hearth_mem_calloc(N, sizeof *made);
    struct hearth_series_key *keys = hearth_mem_calloc(N, sizeof *keys);
    struct hearth_series_ref *refs = hearth_mem_calloc(N, sizeof *refs);
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < N; i++) {
            keys[i] = *make_series(&made[i], 20, call * N + i);
        }
        assert_ok(hearth_store_resolve_series(store, TENANT, keys, N, T0, refs, &err));
    }
    hearth_mem_free(made);
    hearth_mem_free(keys);
    hearth_mem_free(refs);
    close_store(store);
    wait_until_disconnected(url);
    assert_in_range(pg_cluster_int(url, "SELECT idx_tup_read FROM pg_stat_user_indexes"
                                        " WHERE indexrelname = 'series_pkey'"),
                    0, 3 * CALLS * N);
}

/* Each allocation fails in its turn: the call says so, and the next one is as if nothing had been. */
static void series_beyond_the_limit_are_refused_and_known_ones_are_not(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.url = test_secret(url);
    options.max_series = 3;
    options.builder = false;
    struct hearth_store *store = open_ready(url, &options);
    for (int pod = 0; pod < 3; pod++) {
        (void)resolve_one(store, TENANT, 1, pod, T0);
    }
    assert_int_equal(count_hits(store, TENANT, "{}", T0, T0), 6); /* refreshes: two types each */
    struct made_series made;
    const struct hearth_series_key *key = make_series(&made, 1, 3);
    struct hearth_series_ref ref;
    struct hearth_err refused = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_resolve_series(store, TENANT, key, 1, T0, &ref, &refused),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(refused.msg, "max-series"));
    (void)resolve_one(store, TENANT, 1, 2, T0 + HEARTH_NS_PER_HOUR); /* an old one goes on */
    (void)resolve_one(store, HEARTH_STR("other"), 1, 3, T0);         /* another tenant's limit */
    assert_int_equal(pg_cluster_int(url, "SELECT count(*) FROM hearth_data.series"), 4);
    close_store(store);
}

static void refused_memory_is_an_error_and_the_store_stays_usable(void **state)
{
    (void)state;
    char url[256];
    struct hearth_store *store = open_fresh(url, NULL);
    int n_refused = 0, n_ok_in_a_row = 0;
    for (uint64_t n = 1; n < 400 && n_ok_in_a_row < 3; n++) {
        char tenant[16];
        struct made_series made;
        struct hearth_series_ref ref;
        const struct hearth_label_index *index = NULL;
        (void)snprintf(tenant, sizeof tenant, "tenant-%d", (int)n);
        const struct hearth_series_key *key = make_series(&made, (int)n, (int)n);
        hearth_mem_fail_after(n);
        enum hearth_status resolved =
            hearth_store_resolve_series(store, hearth_str_c(tenant), key, 1, T0, &ref, NULL);
        enum hearth_status looked =
            hearth_store_index_lock(store, hearth_str_c(tenant), NULL, &index, NULL);
        hearth_mem_fail_after(0);
        hearth_store_index_unlock(store, index);
        assert_true(resolved == HEARTH_OK || resolved == HEARTH_NO_MEMORY);
        assert_true(looked == HEARTH_OK || looked == HEARTH_NO_MEMORY);
        bool all_well = resolved == HEARTH_OK && looked == HEARTH_OK;
        n_refused += !all_well;
        n_ok_in_a_row = all_well ? n_ok_in_a_row + 1 : 0;
        (void)resolve_one(store, hearth_str_c(tenant), (int)n, (int)n, T0);
        assert_int_equal(count_hits(store, hearth_str_c(tenant), "{}", T0, T0), 2);
    }
    assert_true(n_refused > 20);
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolving_again_gives_the_same_ids),
        cmocka_unit_test(another_server_finds_what_was_resolved),
        cmocka_unit_test(the_types_and_the_labels_make_the_series),
        cmocka_unit_test(a_series_is_active_in_its_hours_only),
        cmocka_unit_test(a_profile_before_1970_has_its_hour),
        cmocka_unit_test(tenants_never_see_each_other),
        cmocka_unit_test(threads_of_two_servers_resolving_the_same_new_series_agree),
        cmocka_unit_test(profiles_that_one_server_acknowledged_are_found_by_another),
        cmocka_unit_test(the_index_survives_cut_connections),
        cmocka_unit_test(catalogue_writes_cut_at_any_moment_lose_and_double_nothing),
        cmocka_unit_test(an_unreachable_database_is_unavailable_until_it_returns),
        cmocka_unit_test(a_series_that_no_index_could_take_is_refused),
        cmocka_unit_test(a_refusal_of_the_database_fails_only_its_own_request),
        cmocka_unit_test(a_catalogue_that_went_back_in_time_is_loaded_again),
        cmocka_unit_test(cancelling_one_use_of_the_index_does_not_affect_others),
        cmocka_unit_test(thousands_of_series_in_one_call_are_one_transaction),
        cmocka_unit_test(new_series_are_looked_up_one_by_one_after_statistics_of_few),
        cmocka_unit_test(series_beyond_the_limit_are_refused_and_known_ones_are_not),
        cmocka_unit_test(refused_memory_is_an_error_and_the_store_stays_usable),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
