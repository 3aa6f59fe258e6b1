/*
 * bench_span_layouts.c -- what it costs to find profiles by bare span ids, of four layouts: CPU of ingest, bytes, lookups.
 *
 * bench_span_layouts [profiles] [associations between folds] [index|ingest|others]. A PostgreSQL of its own (fsync off: it is about CPU; 64 MB of shared buffers), profiles of 100
 * services with 200 spans each, in commits of 30. "index" is Hearth's own: the store commits profiles with ids, and the
 * builder's step runs whenever so many associations wait; the same profiles without ids are what is taken off. The others are bare
 * COPYs into tables as simple as can be, so they are flattered.
 */
#include "hearth/store/store_span_index.h"

#include "build/builder.h"
#include "cluster_cpu.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "pg_cluster.h"
#include "session/partitions.h"
#include "store_push.h"
#include "store_scope.h"

#include <time.h>

enum {
    N_SERVICES = 100,
    N_IDS = 200,
    BATCH = 30,
    N_LOOKUPS = 2000,
    N_SCANS = 20,
};

#define TENANT HEARTH_STR("anonymous")

static struct pg_cluster g_cluster;
static size_t g_profiles = 50000, g_fold_at = 131072;
static bool g_only_ingest;
static int64_t g_day_ns;

static void die_of(const char *what)
{
    (void)fprintf(stderr, "bench_span_layouts: %s\n", what);
    abort();
}

/* ---- what is measured ---- */

static int64_t own_cpu_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * HEARTH_NS_PER_SEC + ts.tv_nsec;
}

struct cost {
    int64_t own_ns, pg_ns;
};

static struct cost begin(void)
{
    int64_t pg_ns = cluster_cpu_ns(&g_cluster); /* looking for it is not what is measured */
    return (struct cost){own_cpu_ns(), pg_ns};
}

static void end(struct cost *cost)
{
    cost->own_ns = own_cpu_ns() - cost->own_ns;
    cost->pg_ns = cluster_cpu_ns(&g_cluster) - cost->pg_ns;
}

static int compare_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void print_times(const char *what, int64_t *times, size_t n)
{
    qsort(times, n, sizeof *times, compare_times);
    printf("  %-28s p50 %8.3f ms, p95 %8.3f ms\n", what, (double)times[n / 2] / 1e6,
           (double)times[n * 95 / 100] / 1e6);
}

static void print_bytes(const char *url, const char *relations)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT sum(pg_total_relation_size(c.oid))::int8 FROM pg_class"
                   " c WHERE c.relkind = 'r' AND c.relname ~ '%s'",
                   relations);
    long long bytes = pg_cluster_int(url, sql);
    printf("  %-28s %8.1f bytes an association\n", "on disk",
           (double)bytes / (double)(g_profiles * N_IDS));
}

static void print_cost(const char *what, struct cost cost)
{
    double n = (double)(g_profiles * N_IDS);
    printf("  %-28s %8.3f us an association: PostgreSQL %.3f, Hearth %.3f\n", what,
           (double)(cost.own_ns + cost.pg_ns) / 1e3 / n, (double)cost.pg_ns / 1e3 / n,
           (double)cost.own_ns / 1e3 / n);
}

/* ---- profiles ---- */

/* The i-th id of a profile: computed, so that lookups know which there are. */
static uint64_t id_of(size_t profile, size_t i)
{
    uint64_t x = (uint64_t)profile * N_IDS + i + 1;
    x *= 0x9E3779B97F4A7C15ull; /* no neighbours, as ids are random */
    return x ^ x >> 29;
}

static int64_t ts_of(size_t profile)
{
    return g_day_ns +
           (int64_t)((uint64_t)profile * 86399 * 1000003 * 1000 % (uint64_t)HEARTH_NS_PER_DAY);
}

/* ---- Hearth's own ---- */

static struct store_push *g_pushes[N_SERVICES];
static struct hearth_arena g_scratch, g_keep;

static void give_ids(struct store_push *push, size_t profile)
{
    static struct hearth_attr_sample samples[N_IDS];
    struct hearth_association *all;
    struct hearth_err err = HEARTH_ERR_INIT;
    for (size_t i = 0; i < N_IDS; i++) {
        samples[i].attrs.span_id = id_of(profile, i);
    }
    hearth_arena_reset(&g_scratch);
    if (hearth_associations_of_samples(samples, N_IDS, &g_scratch, &g_keep, &all,
                                       &push->row.n_associations, &err) != HEARTH_OK) {
        die_of(err.msg);
    }
    push->row.associations = all;
}

static void commit_batch(size_t first, size_t n, bool with_ids)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_reset(&g_keep);
    for (size_t i = first; i < first + n; i++) {
        struct store_push *push = g_pushes[i % N_SERVICES];
        atomic_store(&push->ended, false);
        push->item.ts_ns = ts_of(i);
        if (with_ids) {
            give_ids(push, i);
        }
        if (hearth_store_dict_acquire(push->store, push->item.service_id, push->item.ts_ns,
                                      &push->item.dict, &err) != HEARTH_OK) {
            die_of(err.msg);
        }
    }
    for (size_t i = first; i < first + n; i++) {
        store_push_submit(g_pushes[i % N_SERVICES]);
    }
    for (size_t i = first; i < first + n; i++) {
        struct store_push *push = g_pushes[i % N_SERVICES];
        while (!atomic_load(&push->ended)) {
            struct timespec nap = {0, 1000000};
            (void)nanosleep(&nap, NULL);
        }
        if (push->status != HEARTH_OK) {
            die_of(push->err.msg);
        }
    }
}

static void fold(struct hearth_builder *builder, struct cost *total)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct cost cost = begin();
    bool more = true;
    builder->next_spans_mono_ns = 0;
    while (more) {
        more = false;
        if (hearth_step_spans(builder, &more, &err) != HEARTH_OK) {
            die_of(err.msg);
        }
    }
    end(&cost);
    total->own_ns += cost.own_ns;
    total->pg_ns += cost.pg_ns;
}

static struct hearth_store *open_store(const char *url, struct synth_world *world)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.max_batch_rows = BATCH;
    options.linger_ns = HEARTH_NS_PER_SEC / 50; /* a full batch ends it */
    struct hearth_store *store = store_open_url(url, &options);
    if (!store_wait_ready(store)) {
        die_of("the store is not ready");
    }
    for (int i = 0; i < N_SERVICES; i++) {
        char service[16];
        struct hearth_err err = HEARTH_ERR_INIT;
        (void)snprintf(service, sizeof service, "svc-%d", i);
        g_pushes[i] = store_push_make(store, world, service, g_day_ns, 20, 0, &err);
        if (g_pushes[i] == NULL) {
            die_of(err.msg);
        }
        hearth_store_dict_release(store, g_pushes[i]->item.dict);
    }
    return store;
}

static size_t find(struct hearth_store *store, uint64_t id)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_span_lookup lookup = {hearth_span_key(id), HEARTH_OF_SPAN};
    const struct hearth_span_search search = {&lookup, 1, INT64_MIN, INT64_MAX, 1000};
    struct hearth_found_spans found;
    hearth_arena_reset(&g_keep);
    if (hearth_store_find_spans(STORE_SCOPE(store, TENANT, &g_keep), &search, &found, &err) !=
        HEARTH_OK) {
        die_of(err.msg);
    }
    return found.n;
}

static void time_finds(struct hearth_store *store, const char *what, bool there)
{
    static int64_t times[N_LOOKUPS];
    uint64_t rng = 42;
    struct cost cost = begin();
    for (size_t i = 0; i < N_LOOKUPS; i++) {
        uint64_t id = id_of(synth_next(&rng) % g_profiles, synth_next(&rng) % N_IDS);
        id = there ? id : synth_next(&rng);
        int64_t from_ns = hearth_clock_mono_ns();
        if (find(store, id) != (there ? 1 : 0)) {
            die_of("a lookup has a wrong answer");
        }
        times[i] = hearth_clock_mono_ns() - from_ns;
    }
    end(&cost);
    print_times(what, times, N_LOOKUPS);
    printf("  %-28s %8.3f ms: PostgreSQL %.3f, Hearth %.3f\n", "  of CPU",
           (double)(cost.pg_ns + cost.own_ns) / 1e6 / N_LOOKUPS,
           (double)cost.pg_ns / 1e6 / N_LOOKUPS, (double)cost.own_ns / 1e6 / N_LOOKUPS);
}

static void run_finds(struct hearth_store *store, struct hearth_pg *pg)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    time_finds(store, "lookup (first)", true);
    time_finds(store, "lookup", true);
    time_finds(store, "lookup of what is not there", false);
    for (size_t i = 0; i * N_IDS < g_fold_at; i++) { /* and while as much waits as ever does */
        commit_batch(g_profiles + i, 1, true);
    }
    time_finds(store, "lookup, as many fresh", true);
    for (int32_t i = 1; i <= 30; i++) {
        if (hearth_partitions_ensure(store, pg, HEARTH_LEAVES_ALL, hearth_day_of(g_day_ns) - i,
                                     &err) != HEARTH_OK) {
            die_of(err.msg);
        }
    }
    time_finds(store, "lookup, and 30 more days", true);
}

static struct cost run_store(bool with_ids)
{
    char url[256];
    struct hearth_arena arena;
    struct synth_world world;
    hearth_arena_init(&arena, 0);
    synth_world_init(&world, 5, 100, 200, 100, 8, &arena);
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_store(url, &world);
    struct hearth_builder builder = {.store = store,
                                     .token = 7,
                                     .renewed_mono_ns = INT64_MAX / 2,
                                     .pg = {.url = test_secret(url)}};
    struct hearth_err err = HEARTH_ERR_INIT;
    if (hearth_pg_connect(&builder.pg, 5000, &err) != HEARTH_OK) {
        die_of(err.msg);
    }
    pg_cluster_run(url, "INSERT INTO hearth_data.lease VALUES ('builder', 1, 7, now() + interval"
                        " '1 day')");
    struct cost write = begin(), folds = {0, 0};
    for (size_t i = 0; i < g_profiles; i += BATCH) {
        commit_batch(i, g_profiles - i < BATCH ? g_profiles - i : BATCH, with_ids);
        bool is_due = i * N_IDS / g_fold_at != (i + BATCH) * N_IDS / g_fold_at;
        if (with_ids && (is_due || i + BATCH >= g_profiles)) {
            fold(&builder, &folds);
        }
    }
    end(&write);
    write.own_ns -= folds.own_ns;
    write.pg_ns -= folds.pg_ns;
    if (with_ids) {
        print_cost("commits, profiles included", write);
        print_cost("fold and merge", folds);
        print_bytes(url, "^span_(index|fresh)");
        printf("  %-28s %8.1f bytes, payload alone\n", "packed",
               (double)pg_cluster_int(url, "SELECT sum(octet_length(associations)) FROM"
                                           " hearth_data.span_index") /
                   (double)(g_profiles * N_IDS));
        printf("  %-28s %8lld\n", "rows",
               pg_cluster_int(url, "SELECT count(*) FROM"
                                   " hearth_data.span_index"));
        char sizes[256];
        pg_cluster_text(url,
                        "SELECT string_agg(bits || ': ' || n, ', ' ORDER BY bits) FROM (SELECT"
                        " bits, count(*) / count(DISTINCT bucket) AS n FROM hearth_data.span_index"
                        " GROUP BY bits) b",
                        sizes, sizeof sizes);
        printf("  %-28s %s\n", "parts of each size (bits)", sizes);
        if (!g_only_ingest) {
            run_finds(store, &builder.pg);
        }
        write.own_ns += folds.own_ns;
        write.pg_ns += folds.pg_ns;
    }
    hearth_pg_close(&builder.pg);
    for (int i = 0; i < N_SERVICES; i++) {
        store_push_free(g_pushes[i]);
    }
    store_close_soon(store);
    hearth_arena_release(&arena);
    return write;
}

static void run_index(void)
{
    struct cost bare = run_store(false);
    printf("index (span_fresh, span_index)\n");
    struct cost with = run_store(true);
    print_cost("profiles without ids", bare);
    with.own_ns -= bare.own_ns;
    with.pg_ns -= bare.pg_ns;
    print_cost("ingest: the difference", with);
}

/* ---- the others ---- */

struct layout {
    const char *name, *make, *copy, *find;
    bool is_rows; /* a row for each association, else one for each profile */
    bool is_bytes;
    size_t n_lookups;
};

static void put_profile(const struct layout *layout, size_t profile, struct hearth_buf *out)
{
    int64_t ids[N_IDS];
    for (size_t i = 0; i < N_IDS; i++) {
        ids[i] = (int64_t)id_of(profile, i);
    }
    for (size_t i = 0; i < (layout->is_rows ? N_IDS : 1); i++) {
        hearth_copy_row(out, 4);
        hearth_copy_i32(out, (int32_t)(profile % N_SERVICES));
        hearth_copy_i32(out, 1);
        hearth_copy_i64(out, ts_of(profile));
        if (layout->is_rows) {
            hearth_copy_i64(out, ids[i]);
        } else if (layout->is_bytes) {
            char bytes[N_IDS * 8];
            for (size_t k = 0; k < sizeof bytes; k++) {
                bytes[k] = (char)((uint64_t)ids[k / 8] >> (56 - 8 * (k % 8)));
            }
            hearth_copy_bytes(out, hearth_str_n(bytes, sizeof bytes));
        } else {
            hearth_copy_i64_array(out, ids, N_IDS);
        }
    }
}

static void run_layout(const struct layout *layout)
{
    char url[256], text[32];
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf out;
    static int64_t times[N_LOOKUPS];
    pg_cluster_database(&g_cluster, url);
    pg_cluster_run(url, layout->make);
    struct hearth_pg pg = {.url = test_secret(url)};
    hearth_buf_init(&out, 0);
    if (hearth_pg_connect(&pg, 5000, &err) != HEARTH_OK) {
        die_of(err.msg);
    }
    struct cost cost = begin();
    for (size_t i = 0; i < g_profiles; i += BATCH) {
        hearth_buf_reset(&out);
        for (size_t k = i; k < i + BATCH && k < g_profiles; k++) {
            put_profile(layout, k, &out);
        }
        if (hearth_pg_copy(&pg, layout->copy, hearth_buf_view(&out), NULL, &err) != HEARTH_OK) {
            die_of(err.msg);
        }
    }
    end(&cost);
    printf("%s\n", layout->name);
    print_cost("ingest", cost);
    pg_cluster_run(url, "VACUUM ANALYZE");
    print_bytes(url, "^span$");
    uint64_t rng = 42;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < layout->n_lookups; i++) {
            uint64_t id = id_of(synth_next(&rng) % g_profiles, synth_next(&rng) % N_IDS);
            (void)snprintf(text, sizeof text, "%lld", (long long)id);
            const char *values[1] = {text};
            int64_t from_ns = hearth_clock_mono_ns();
            PGresult *rows = PQexecParams(pg.conn, layout->find, 1, NULL, values, NULL, NULL, 1);
            times[i] = hearth_clock_mono_ns() - from_ns;
            if (PQresultStatus(rows) != PGRES_TUPLES_OK || PQntuples(rows) != 1) {
                die_of(PQresultErrorMessage(rows));
            }
            PQclear(rows);
        }
        print_times(round == 0 ? "lookup (first)" : "lookup", times, layout->n_lookups);
    }
    hearth_buf_release(&out);
    hearth_pg_close(&pg);
}

static const struct layout LAYOUTS[] = {
    {"a row for each association, btree",
     "CREATE TABLE span (service_id int4, series_id int4, ts int8, id int8); CREATE INDEX ON span"
     " (id)",
     "COPY span FROM STDIN (FORMAT binary)",
     "SELECT service_id, series_id, ts FROM span WHERE id = $1::int8", true, false, N_LOOKUPS},
    {"int8[] for each profile, GIN",
     "CREATE TABLE span (service_id int4, series_id int4, ts int8, ids int8[]) WITH"
     " (toast_tuple_target = 8160); CREATE INDEX ON span USING gin (ids)",
     "COPY span FROM STDIN (FORMAT binary)",
     "SELECT service_id, series_id, ts FROM span WHERE ids @> ARRAY[$1::int8]", false, false,
     N_LOOKUPS},
    {"bytes for each profile, no index",
     "CREATE TABLE span (service_id int4, series_id int4, ts int8, ids bytea) WITH"
     " (toast_tuple_target = 8160); ALTER TABLE span ALTER ids SET STORAGE EXTERNAL",
     "COPY span FROM STDIN (FORMAT binary)",
     "SELECT service_id, series_id, ts FROM span WHERE position(int8send($1::int8) IN ids) > 0",
     false, true, N_SCANS},
};

int main(int argc, char **argv)
{
    g_profiles = argc > 1 ? strtoul(argv[1], NULL, 10) : g_profiles;
    g_fold_at = argc > 2 ? strtoul(argv[2], NULL, 10) : g_fold_at;
    g_only_ingest = argc > 3 && strcmp(argv[3], "ingest") == 0;
    bool only_index = g_only_ingest || (argc > 3 && strcmp(argv[3], "index") == 0);
    bool only_others = argc > 3 && strcmp(argv[3], "others") == 0;
    g_day_ns = (hearth_clock_wall_ns() / HEARTH_NS_PER_DAY - 1) * HEARTH_NS_PER_DAY;
    hearth_arena_init(&g_scratch, 0);
    hearth_arena_init(&g_keep, 0);
    pg_cluster_start(&g_cluster, false);
    printf("%zu profiles of %d spans, folded each %zu\n", g_profiles, N_IDS, g_fold_at);
    if (!only_others) {
        run_index();
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(LAYOUTS) && !only_index; i++) {
        run_layout(&LAYOUTS[i]);
    }
    pg_cluster_stop(&g_cluster);
    hearth_arena_release(&g_scratch);
    hearth_arena_release(&g_keep);
    return 0;
}
