/*
 * load_store.c -- fill a database with profile rows for query benches: load_store URL POOL NOW_S SET...
 *
 * A SET is SERVICE:PODS:FROM_S:TO_S:STEP_S, in seconds before NOW_S. Each pod gets one row a step, with a phase of
 * its own. Samples are those of one service of the pool, resolved by Hearth's dictionary and encoded by
 * Hearth's encoder; the profiles of the pool repeat. For each set one line of JSON: rows, bytes of the columns,
 * and the floor of reading them: hearth_columns_merge over as many rows that lie in memory.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/format/pprof.h"
#include "hearth/store/store.h"

#include "pool.h"
#include "test_secret.h"

#include <stdatomic.h>

enum {
    IN_FLIGHT = 8000
};

struct row_item {
    struct hearth_push_item item;
    struct hearth_push_row row;
};

struct set {
    char service[64];
    uint32_t n_pods;
    int64_t from_s, to_s, step_s;
};

static _Atomic uint32_t g_in_flight;
static _Atomic uint64_t g_n_failed;

static void must(enum hearth_status status, const struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "load_store: %s\n", err->msg);
        exit(1);
    }
}

static void on_done(struct hearth_push_item *item, enum hearth_status status,
                    const struct hearth_err *err)
{
    if (status != HEARTH_OK && atomic_fetch_add(&g_n_failed, 1) == 0) {
        (void)fprintf(stderr, "load_store: %s\n", err->msg);
    }
    hearth_mem_free(HEARTH_CONTAINER_OF(item, struct row_item, item));
    atomic_fetch_sub(&g_in_flight, 1);
}

static void wait_below(uint32_t n)
{
    while (atomic_load(&g_in_flight) >= n) {
        (void)usleep(500);
    }
}

static void decode(const struct pool *pool, const struct pool_entry *entry,
                   struct hearth_inflater *inflater, struct hearth_arena *arena,
                   struct hearth_profile *ret)
{
    static const struct hearth_pprof_limits no_limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pprof_notes notes = {0};
    char *body = hearth_arena_alloc(arena, entry->n_bytes + POOL_TAIL_BYTES);
    struct hearth_buf *raw = hearth_arena_alloc(arena, sizeof *raw);
    hearth_buf_init(raw, 0);
    memcpy(body, pool->bytes + entry->offset, entry->n_bytes);
    pool_tail(pool, entry, 1, (unsigned char *)body + entry->n_bytes);
    must(hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP,
                        hearth_str_n(body, entry->n_bytes + POOL_TAIL_BYTES), 64u << 20, raw, &err),
         &err);
    must(hearth_pprof_decode(hearth_buf_view(raw), &no_limits, arena, ret, &notes, &err), &err);
}

struct sample {
    uint32_t id;
    int64_t value;
};

static int by_id(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Columns of a decoded profile by the ids of one dictionary. */
static void encode(struct hearth_ingest_dict *dict, const struct hearth_profile *profile,
                   struct hearth_arena *scratch, struct hearth_arena *keep,
                   struct hearth_columns *ret)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_stack_keys keys;
    uint32_t n = profile->n_samples, *ids = hearth_arena_array(scratch, n, sizeof ids[0]),
             n_ids = 0;
    struct sample *samples = hearth_arena_array(scratch, n, sizeof samples[0]);
    int64_t *values = hearth_arena_calloc(scratch, (size_t)n * 2, sizeof values[0]);
    must(hearth_stack_keys_make(profile, scratch, &keys, &err), &err);
    must(hearth_store_dict_resolve(dict, profile, &keys, ids, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        samples[i] = (struct sample){ids[i], profile->values[(size_t)i * 2]};
    }
    qsort(samples, n, sizeof samples[0], by_id);
    for (uint32_t i = 0; i < n; i++) {
        if (n_ids == 0 || ids[n_ids - 1] != samples[i].id) {
            ids[n_ids++] = samples[i].id;
        }
        values[(size_t)(n_ids - 1) * 2] += samples[i].value;
        values[(size_t)(n_ids - 1) * 2 + 1] += samples[i].value * profile->period;
    }
    must(hearth_columns_encode(ids, values, n_ids, 2, keep, ret, &err), &err);
}

/* The rows of a pool's service under the dictionary of a day. */
static struct hearth_columns *columns_of_day(struct hearth_store *store, const struct pool *pool,
                                             uint32_t service, int32_t service_id, int64_t ts_ns,
                                             struct hearth_arena *keep)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_ingest_dict *dict;
    struct hearth_arena scratch;
    struct hearth_inflater *inflater = hearth_inflater_new();
    uint32_t n = pool->head->n_profiles;
    struct hearth_columns *columns = hearth_arena_array(keep, n, sizeof columns[0]);
    hearth_arena_init(&scratch, 0);
    must(hearth_store_dict_acquire(store, service_id, ts_ns, &dict, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        struct hearth_profile profile;
        decode(pool, pool_entry(pool, service, i), inflater, &scratch, &profile);
        encode(dict, &profile, &scratch, keep, &columns[i]);
        hearth_arena_reset(&scratch);
    }
    hearth_store_dict_release(store, dict);
    hearth_inflater_free(inflater);
    hearth_arena_release(&scratch);
    return columns;
}

static void submit(struct hearth_store *store, const struct set *set, uint32_t pod, int64_t ts_ns,
                   const struct hearth_columns *columns)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    char name[80];
    (void)snprintf(name, sizeof name, "%s-%05u", set->service, pod);
    struct hearth_str types[2] = {HEARTH_STR("process_cpu:samples:count:cpu:nanoseconds"),
                                  HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")};
    struct hearth_label labels[2] = {{HEARTH_STR("namespace"), HEARTH_STR("production")},
                                     {HEARTH_STR("pod"), hearth_str_c(name)}};
    struct hearth_series_key key = {hearth_str_c(set->service), types, 2, {labels, 2}};
    struct hearth_series_ref ref;
    must(hearth_store_resolve_series(store, HEARTH_STR("anonymous"), &key, 1, ts_ns, &ref, &err),
         &err);
    struct row_item *item = hearth_mem_zalloc(sizeof *item);
    item->row = (struct hearth_push_row){.series_id = ref.series_id,
                                         .duration_ns = set->step_s * HEARTH_NS_PER_SEC,
                                         .period = 10000000,
                                         .columns = *columns};
    item->item.service_id = ref.service_id;
    item->item.ts_ns = ts_ns;
    item->item.rows = &item->row;
    item->item.n_rows = 1;
    item->item.done = on_done;
    must(hearth_store_dict_acquire(store, ref.service_id, ts_ns, &item->item.dict, &err), &err);
    wait_below(IN_FLIGHT);
    atomic_fetch_add(&g_in_flight, 1);
    must(hearth_store_submit(store, &item->item, &err), &err);
}

/* Milliseconds to merge n rows that lie one behind the other in memory, as the socket hands them over. */
static double merge_floor(const struct hearth_columns *columns, uint32_t n_columns, uint64_t n,
                          size_t *ret_bytes)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n_bytes = 0, bound = 0, at = 0;
    for (uint64_t i = 0; i < n; i++) {
        const struct hearth_columns *c = &columns[i % n_columns];
        uint32_t here;
        if (hearth_columns_id_bound(c->ids, &here) && here > bound) {
            bound = here;
        }
        n_bytes += c->ids.n + c->vals[0].n;
    }
    char *bytes = hearth_mem_alloc(n_bytes);
    int64_t *acc = hearth_mem_calloc(bound, sizeof acc[0]);
    for (uint64_t i = 0; i < n; i++) {
        const struct hearth_columns *c = &columns[i % n_columns];
        memcpy(bytes + at, c->ids.p, c->ids.n);
        memcpy(bytes + at + c->ids.n, c->vals[0].p, c->vals[0].n);
        at += c->ids.n + c->vals[0].n;
    }
    int64_t best = INT64_MAX;
    for (int round = 0; round < 5; round++) {
        int64_t from = hearth_clock_thread_cpu_ns();
        at = 0;
        for (uint64_t i = 0; i < n; i++) {
            const struct hearth_columns *c = &columns[i % n_columns];
            struct hearth_str ids = {bytes + at, c->ids.n},
                              val = {bytes + at + c->ids.n, c->vals[0].n};
            must(hearth_columns_merge(ids, val, val, true, acc, bound, &err), &err);
            at += ids.n + val.n;
        }
        int64_t ns = hearth_clock_thread_cpu_ns() - from;
        best = ns < best ? ns : best;
    }
    hearth_mem_free(bytes);
    hearth_mem_free(acc);
    *ret_bytes = n_bytes;
    return (double)best / 1e6;
}

static void load_set(struct hearth_store *store, const struct pool *pool, const struct set *set,
                     int64_t now_s)
{
    struct hearth_arena keep;
    hearth_arena_init(&keep, 0);
    struct hearth_columns *columns = NULL;
    int64_t day = INT64_MIN;
    uint64_t n = 0;
    uint32_t service = (unsigned char)set->service[0] % pool->head->n_services;
    struct hearth_err err = HEARTH_ERR_INIT;
    for (int64_t s = now_s - set->from_s; s < now_s - set->to_s; s += set->step_s) {
        int64_t first_ns = s * HEARTH_NS_PER_SEC;
        if (s / 86400 != day) { /* its first row makes the service */
            day = s / 86400;
            struct hearth_label label = {HEARTH_STR("pod"), HEARTH_STR("none")};
            struct hearth_str type = HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds");
            struct hearth_series_key key = {hearth_str_c(set->service), &type, 1, {&label, 1}};
            struct hearth_series_ref ref;
            must(hearth_store_resolve_series(store, HEARTH_STR("anonymous"), &key, 1, first_ns,
                                             &ref, &err),
                 &err);
            columns = columns_of_day(store, pool, service, ref.service_id, day * HEARTH_NS_PER_DAY,
                                     &keep);
        }
        for (uint32_t pod = 0; pod < set->n_pods; pod++) {
            int64_t phase_ns = (int64_t)pod * set->step_s * HEARTH_NS_PER_SEC / set->n_pods;
            int64_t ts_ns = first_ns + phase_ns;
            if (ts_ns / HEARTH_NS_PER_DAY == day) {
                submit(store, set, pod, ts_ns, &columns[(n * 7 + pod) % pool->head->n_profiles]);
                n++;
            }
        }
    }
    wait_below(1);
    size_t n_bytes = 0;
    double floor_ms = n == 0 ? 0 : merge_floor(columns, pool->head->n_profiles, n, &n_bytes);
    (void)printf("{\"service\": \"%s\", \"rows\": %llu, \"bytes\": %zu, \"merge_ms\": %.3f}\n",
                 set->service, (unsigned long long)n, n_bytes, floor_ms);
    (void)fflush(stdout);
    hearth_arena_release(&keep);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void)fprintf(stderr, "load_store URL POOL NOW_S SERVICE:PODS:FROM_S:TO_S:STEP_S...\n");
        return 2;
    }
    struct pool pool;
    pool_open(argv[2], &pool);
    struct hearth_store_options options;
    struct hearth_store *store;
    struct hearth_err err = HEARTH_ERR_INIT;
    char reason[256];
    hearth_store_options_init(&options);
    options.url = test_secret(argv[1]);
    must(hearth_store_open(&options, &store, &err), &err);
    for (int i = 0; i < 2000 && !hearth_store_ready(store, reason); i++) {
        (void)usleep(5000);
    }
    for (int i = 4; i < argc; i++) {
        struct set set;
        long long from_s, to_s, step_s;
        if (sscanf(argv[i], "%63[^:]:%u:%lld:%lld:%lld", set.service, &set.n_pods, &from_s, &to_s,
                   &step_s) != 5 ||
            step_s <= 0 || set.n_pods == 0) {
            (void)fprintf(stderr, "load_store: \"%s\" is no set\n", argv[i]);
            return 2;
        }
        set.from_s = from_s;
        set.to_s = to_s;
        set.step_s = step_s;
        load_set(store, &pool, &set, strtoll(argv[3], NULL, 10));
    }
    hearth_store_close(store, hearth_clock_mono_ns() + 30 * HEARTH_NS_PER_SEC);
    return atomic_load(&g_n_failed) > 0;
}
