/*
 * bench_store_read.c -- the store's catalogue and reads on a PostgreSQL of its own.
 *
 *   resolve    new series of 10 labels, one per call from 8 threads and 100 per call; series in
 * memory; the turn of an hour index      a look when nothing is new, a look after one new series,
 * the first load of 100,000 scan       200 and 10 series of one service, an hour at 15 s among
 * 1,000 others: rows of 860 bytes, totals dictionary 20,000 stacks, loaded and found
 *
 * CPU of PostgreSQL is that of all its processes. "bench_store_read 24" loads the index with that
 * many hours of every series.
 */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/store/read.h"

#include "catalog/catalog.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "pg_cluster.h"
#include "read/read_cache.h"
#include "session/partitions.h"
#include "store_push.h"
#include "store_scope.h"

#include <dirent.h>

#define T0        (INT64_C(1763546400) * HEARTH_NS_PER_SEC)
#define TENANT    HEARTH_STR("anonymous")
#define N_SERIES  100000
#define N_LABELS  10
#define N_THREADS 8
#define ROUNDS    15

static struct pg_cluster g_cluster;
static char g_url[256];
static struct hearth_store *g_store;

static void must(enum hearth_status status, const struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "failed: %s: %s\n", hearth_status_name(status), err->msg);
        exit(1);
    }
}

static double ms_since(int64_t from_ns)
{
    return (double)(hearth_clock_mono_ns() - from_ns) / 1e6;
}

/* CPU of the postmaster and its children, also of those that have ended, in milliseconds. */
static double pg_cpu_ms(void)
{
    DIR *dir = opendir("/proc");
    double ticks = 0;
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[300], line[1024] = "";
        (void)snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (file == NULL) {
            continue;
        }
        char *text = fgets(line, sizeof line, file) == NULL ? NULL : strrchr(line, ')');
        (void)fclose(file);
        int parent = 0;
        unsigned long user = 0, sys = 0, child_user = 0, child_sys = 0;
        if (text != NULL &&
            sscanf(text + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &parent,
                   &user, &sys, &child_user, &child_sys) == 5) {
            bool postmaster = strtol(entry->d_name, NULL, 10) == g_cluster.pid;
            if (postmaster || parent == g_cluster.pid) {
                ticks += (double)(user + sys) + (postmaster ? (double)(child_user + child_sys) : 0);
            }
        }
    }
    (void)closedir(dir);
    return ticks * 1000 / (double)sysconf(_SC_CLK_TCK);
}

/* ---- series ---- */

struct bench_series {
    char text[N_LABELS + 1][40];
    struct hearth_label labels[N_LABELS];
};

static struct hearth_str g_types[2];

/* 200 services of 500 pods. */
static struct hearth_series_key make_key(struct bench_series *s, int i)
{
    static const char *const names[N_LABELS] = {"arch",      "cluster", "container", "language",
                                                "namespace", "node",    "pod",       "region",
                                                "version",   "zone"};
    (void)snprintf(s->text[N_LABELS], 40, "service-%03d", i / 500);
    for (int k = 0; k < N_LABELS; k++) {
        if (k == 6) {
            (void)snprintf(s->text[k], 40, "service-%03d-7d9f8b6c5-%05d", i / 500, i % 500);
        } else {
            (void)snprintf(s->text[k], 40, "%s-%d", names[k], k == 5 ? i % 300 : i / 500 % (3 + k));
        }
        s->labels[k] = (struct hearth_label){hearth_str_c(names[k]), hearth_str_c(s->text[k])};
    }
    return (struct hearth_series_key){
        hearth_str_c(s->text[N_LABELS]), g_types, 2, {s->labels, N_LABELS}};
}

struct work {
    int from, to, per_call;
    int64_t ts_ns;
};

static void *run_work(void *arg)
{
    const struct work *w = arg;
    struct bench_series *made = hearth_mem_calloc((size_t)w->per_call, sizeof *made);
    struct hearth_series_key *keys = hearth_mem_calloc((size_t)w->per_call, sizeof *keys);
    struct hearth_series_ref *refs = hearth_mem_calloc((size_t)w->per_call, sizeof *refs);
    for (int i = w->from; i < w->to; i += w->per_call) {
        for (int k = 0; k < w->per_call; k++) {
            keys[k] = make_key(&made[k], i + k);
        }
        struct hearth_err err = HEARTH_ERR_INIT;
        must(hearth_store_resolve_series(g_store, TENANT, keys, (size_t)w->per_call, w->ts_ns, refs,
                                         &err),
             &err);
    }
    hearth_mem_free(made);
    hearth_mem_free(keys);
    hearth_mem_free(refs);
    return NULL;
}

static void resolve_many(const char *what, int from, int to, int per_call, int64_t ts_ns)
{
    pthread_t threads[N_THREADS];
    struct work work[N_THREADS];
    long long before = pg_cluster_int(g_url, "SELECT version FROM hearth_data.catalog_clock");
    int each = (to - from) / N_THREADS;
    double pg_ms = pg_cpu_ms();
    int64_t start = hearth_clock_mono_ns();
    for (int i = 0; i < N_THREADS; i++) {
        work[i] = (struct work){from + i * each, from + (i + 1) * each, per_call, ts_ns};
        if (pthread_create(&threads[i], NULL, run_work, &work[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    double ms = ms_since(start);
    printf("%-44s %8.0f series/s, %.1f us PG CPU each, %lld transactions\n", what,
           (to - from) / ms * 1000, (pg_cpu_ms() - pg_ms) * 1000 / (to - from),
           pg_cluster_int(g_url, "SELECT version FROM hearth_data.catalog_clock") - before);
}

static void bench_hits(void)
{
    enum {
        N = 10000
    };
    struct bench_series *made = hearth_mem_calloc(N, sizeof *made);
    struct hearth_series_key *keys = hearth_mem_calloc(N, sizeof *keys);
    for (int i = 0; i < N; i++) {
        keys[i] = make_key(&made[i], i * 7 % N_SERIES);
    }
    double best = 1e9, best_key = 1e9;
    struct hearth_err err = HEARTH_ERR_INIT;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = hearth_clock_mono_ns();
        for (int i = 0; i < N; i++) {
            struct hearth_series_ref ref;
            must(hearth_store_resolve_series(g_store, TENANT, &keys[i], 1, T0, &ref, &err), &err);
        }
        double ns = ms_since(start) * 1e6 / N;
        best = ns < best ? ns : best;
        start = hearth_clock_mono_ns();
        for (int i = 0; i < N; i++) {
            struct hearth_hash128 key;
            must(hearth_series_cache_key(TENANT, &keys[i], &key, &err), &err);
        }
        ns = ms_since(start) * 1e6 / N;
        best_key = ns < best_key ? ns : best_key;
    }
    printf("%-44s %8.0f ns, of that %.0f hashing\n", "resolve a known series", best, best_key);
    hearth_mem_free(made);
    hearth_mem_free(keys);
}

/* ---- the index ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench_index(void)
{
    double quiet[201], fresh[51];
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_label_index *index = NULL;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(quiet); i++) {
        int64_t start = hearth_clock_mono_ns();
        must(hearth_store_index_lock(g_store, TENANT, NULL, &index, &err), &err);
        hearth_store_index_unlock(g_store, index);
        quiet[i] = ms_since(start) * 1000;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(fresh); i++) {
        (void)run_work(&(struct work){N_SERIES + (int)i, N_SERIES + (int)i + 1, 1, T0});
        int64_t start = hearth_clock_mono_ns();
        must(hearth_store_index_lock(g_store, TENANT, NULL, &index, &err), &err);
        hearth_store_index_unlock(g_store, index);
        fresh[i] = ms_since(start) * 1000;
    }
    qsort(quiet, HEARTH_ARRAY_LEN(quiet), sizeof quiet[0], by_value);
    qsort(fresh, HEARTH_ARRAY_LEN(fresh), sizeof fresh[0], by_value);
    printf("%-44s %8.0f us (median)\n", "index_lock, nothing new", quiet[100]);
    printf("%-44s %8.0f us (median)\n", "index_lock, one new series", fresh[25]);
}

static void bench_load(int n_hours)
{
    char sql[512];
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pg pg = {.url = test_secret(g_url)};
    must(hearth_pg_connect(&pg, 5000, &err), &err);
    for (int d = 0; d <= n_hours / 24; d++) {
        must(hearth_partitions_ensure(g_store, &pg, HEARTH_LEAVES_ALL, hearth_day_of(T0) + d, &err),
             &err);
    }
    hearth_pg_close(&pg);
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.series_hour SELECT service_id, h, series_id, tenant_id, 1"
        " FROM hearth_data.series, generate_series(%d, %d) h ON CONFLICT DO NOTHING",
        (int)hearth_hour_of(T0), (int)hearth_hour_of(T0) + n_hours - 1);
    pg_cluster_run(g_url, sql);
    struct hearth_catalog *catalog = NULL;
    must(hearth_catalog_new(g_store, &catalog, &err), &err);
    double pg_ms = pg_cpu_ms();
    int64_t start = hearth_clock_mono_ns(), cpu = hearth_clock_thread_cpu_ns();
    must(hearth_catalog_refresh(catalog, NULL, &err), &err);
    double ms = ms_since(start);
    size_t n = hearth_label_index_series(catalog->tenants[0].index);
    size_t n_bytes = hearth_label_index_bytes(catalog->tenants[0].index);
    printf("%-44s %8.0f ms, %.0f own CPU, %.0f PG; %zu series, %d hours each, %.1f MB\n",
           "first load", ms, (double)(hearth_clock_thread_cpu_ns() - cpu) / 1e6,
           pg_cpu_ms() - pg_ms, n, n_hours, (double)n_bytes / 1e6);
    hearth_catalog_free(catalog);
}

/* ---- scans ---- */

static void fill_profiles(void)
{
    char sql[1024];
    struct hearth_pg pg = {.url = test_secret(g_url)};
    struct hearth_err err = HEARTH_ERR_INIT;
    must(hearth_pg_connect(&pg, 5000, &err), &err);
    must(hearth_partitions_ensure(g_store, &pg, HEARTH_LEAVES_ALL, hearth_day_of(T0), &err), &err);
    hearth_pg_close(&pg);
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.profile SELECT CASE WHEN s <= 200 THEN 1 ELSE s END, s,"
        " %lld + t * 15000000000::int8 + s * 1000000::int8, 0, 0, 1, 1, 660, array[t, 7]::int8[],"
        " decode(repeat(md5((s * t)::text), 44), 'hex'),"
        " array[decode('00' || repeat(md5(s::text), 10), 'hex'), '\\x0180ade204'], NULL"
        " FROM generate_series(0, 239) t, generate_series(1, 1200) s",
        (long long)T0);
    pg_cluster_run(g_url, sql);
    pg_cluster_run(g_url, "VACUUM hearth_data.profile");
}

static enum hearth_status take_row(void *context, const struct hearth_read_row *row,
                                   struct hearth_err *err)
{
    (void)err;
    *(int64_t *)context += (int64_t)(row->ids.n + row->val.n + row->val0.n);
    return HEARTH_OK;
}

static enum hearth_status take_total(void *context, const struct hearth_read_total *total,
                                     struct hearth_err *err)
{
    (void)err;
    *(int64_t *)context += total->total;
    return HEARTH_OK;
}

static void bench_scan(const char *what, int n_series, uint16_t column, bool totals)
{
    struct hearth_series_hit hits[200];
    for (int i = 0; i < n_series; i++) {
        hits[i] = (struct hearth_series_hit){
            .series_id = i + 1, .service_id = 1, .column = column, .n_types = 2};
    }
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t sum = 0;
    struct hearth_service_state service = {.service_id = 1,
                                           .watermark_ns = INT64_MIN,
                                           .built_to_ns = INT64_MIN,
                                           .compacted_to_ns = INT64_MIN};
    struct hearth_read_state state = {&service, 1, NULL, 0};
    struct hearth_read_leg leg = {HEARTH_SOURCE_PROFILE, T0, T0 + HEARTH_NS_PER_HOUR + 1, hits,
                                  (size_t)n_series};
    struct hearth_read_plan plan = {.legs = &leg, .n_legs = 1, .state = &state};
    double best = 1e9, own_ms = 0, pg_ms = pg_cpu_ms();
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = hearth_clock_mono_ns(), cpu = hearth_clock_thread_cpu_ns();
        must(totals ? hearth_store_read_totals(STORE_SCOPE(g_store, TENANT, NULL), &plan,
                                               take_total, &sum, &err)
                    : hearth_store_read(STORE_SCOPE(g_store, TENANT, NULL), &plan, take_row, &sum,
                                        &err),
             &err);
        double ms = ms_since(start);
        best = ms < best ? ms : best;
        own_ms += (double)(hearth_clock_thread_cpu_ns() - cpu) / 1e6;
    }
    double n_rows = 240.0 * n_series;
    printf("%-44s %8.2f ms best, per row %.2f us own CPU, %.2f PG\n", what, best,
           own_ms * 1000 / ROUNDS / n_rows, (pg_cpu_ms() - pg_ms) * 1000 / ROUNDS / n_rows);
}

/* ---- dictionaries ---- */

static void fill_dictionary(uint32_t *ret_n_stacks)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, 1, 2500, 5000, 20000, 40, &arena);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_pg pg = {.url = test_secret(g_url)};
    struct hearth_err err = HEARTH_ERR_INIT;
    must(hearth_pg_connect(&pg, 5000, &err), &err);
    while (hearth_dict_writer_stacks(writer) < 19000) {
        struct hearth_profile profile = synth_profile(&world, 2000, 2, &arena, NULL);
        struct hearth_stack_keys keys;
        struct hearth_buf chunk, payload;
        struct hearth_dict_mark from = hearth_dict_writer_committed(writer), upto;
        hearth_buf_init(&chunk, 0);
        hearth_buf_init(&payload, 0);
        uint32_t *ids = synth_array(&arena, 2000, sizeof *ids);
        must(hearth_stack_keys_make(&profile, &arena, &keys, &err), &err);
        must(hearth_dict_writer_resolve(writer, &profile, &keys, ids, &err), &err);
        hearth_dict_writer_cut(writer, &chunk, &upto);
        must(hearth_zstd(hearth_buf_view(&chunk), 1, &payload, &err), &err);
        struct hearth_pg_params params;
        hearth_pg_params_init(&params, &arena);
        hearth_pg_param_i32(&params, hearth_day_of(T0));
        hearth_pg_param_i32(&params, (int32_t)from.n_stacks);
        hearth_pg_param_i32(&params, (int32_t)from.n_strings);
        hearth_pg_param_bytes(&params, hearth_buf_view(&payload));
        must(hearth_pg_exec(&pg,
                            "INSERT INTO hearth_data.dict_chunk VALUES (1, $1, 1, $2, $3, 0, $4)",
                            &params, NULL, NULL, NULL, &err),
             &err);
        hearth_dict_writer_commit(writer, upto);
        hearth_buf_release(&chunk);
        hearth_buf_release(&payload);
    }
    *ret_n_stacks = hearth_dict_writer_stacks(writer);
    hearth_dict_writer_free(writer);
    hearth_pg_close(&pg);
    hearth_arena_release(&arena);
}

static void bench_dictionary(void)
{
    uint32_t n = 0;
    fill_dictionary(&n);
    double best = 1e9, best_hit = 1e9;
    size_t n_bytes = 0;
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_dict *dict = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        hearth_read_cache_free(g_store->cache);
        must(hearth_read_cache_new(g_store, &g_store->cache, &err), &err);
        for (int i = 0; i < 1000; i++) {
            int64_t start = hearth_clock_mono_ns();
            must(hearth_store_read_dict(STORE_SCOPE(g_store, TENANT, NULL),
                                        (struct hearth_dict_key){1, hearth_day_of(T0), 1}, n, &dict,
                                        &err),
                 &err);
            double ms = ms_since(start);
            n_bytes = hearth_dict_bytes(dict);
            hearth_store_read_dict_release(g_store, dict);
            double *to = i == 0 ? &best : &best_hit;
            *to = ms < *to ? ms : *to;
        }
    }
    printf("%-44s %8.2f ms best, %.1f MB, found again in %.0f ns\n", "dictionary of 19,000 stacks",
           best, (double)n_bytes / 1e6, best_hit * 1e6);
}

int main(int argc, char **argv)
{
    pg_cluster_start(&g_cluster, true);
    pg_cluster_database(&g_cluster, g_url);
    g_store = store_open_url(g_url, NULL);
    if (!store_wait_ready(g_store)) {
        return 1;
    }
    g_types[0] = HEARTH_STR("process_cpu:samples:count:cpu:nanoseconds");
    g_types[1] = HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    resolve_many("new series, one per call, 8 threads", 0, 20000, 1, T0);
    resolve_many("new series, 100 per call, 8 threads", 20000, N_SERIES, 100, T0);
    resolve_many("next hour of known series, one per call", 0, 20000, 1, T0 + HEARTH_NS_PER_HOUR);
    bench_hits();
    bench_index();
    bench_load(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 2);
    fill_profiles();
    bench_scan("scan 200 series x 1 h, column 0", 200, 0, false);
    bench_scan("scan 200 series x 1 h, a multiple", 200, 1, false);
    bench_scan("scan 10 series x 1 h, column 0", 10, 0, false);
    bench_scan("totals of 200 series x 1 h", 200, 0, true);
    bench_scan("totals of 10 series x 1 h", 10, 0, true);
    bench_dictionary();
    store_close_soon(g_store);
    pg_cluster_stop(&g_cluster);
    return 0;
}
