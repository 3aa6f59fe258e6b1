/*
 * load_set.c -- fill a database with the profiles of a whole fleet: load_set URL POOL END_S STREAM...
 *
 * A STREAM is SERVICE:NAMESPACE:PODS:FROM_S:TO_S:STEP_S:POOL_SERVICE, in seconds before END_S: each pod has a profile
 * every STEP_S, at a phase of its own. Streams are interleaved in time, as servers would have sent them.
 *
 * Every profile is drawn anew: stacks by their weights in one service of the pool, until as many different ones were hit as a
 * profile of the pool has. (Profiles that repeat would flatter whatever compresses several of them.) Stacks get their ids from
 * Hearth's dictionary of (service, day), columns are Hearth's, and rows go through the store's committer; nothing
 * of ingest before it runs. For each service one line of JSON: rows, samples, bytes, and the floor of reading them,
 * hearth_columns_merge over rows that lie in memory.
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
    IN_FLIGHT = 8000,
    MAX_STREAMS = 256,
    MAX_STACKS = 1 << 18, /* of a service */
    KEPT_ROWS = 4000,     /* for the floor: more than a processor's own caches hold */
    TICK_S = 15,
    MAX_TYPES = 4,
    PERIOD = 10000000
};

/* What the profiles of a service and day are drawn from: Walker's alias table over its stack ids. */
struct universe {
    uint32_t n;      /* stack ids */
    uint32_t *keep;  /* [n] an id is itself below this, else .. */
    uint32_t *alias; /* [n] .. this one */
    uint32_t *sizes; /* [n_sizes] different stacks of the pool's profiles */
    uint32_t n_sizes;
    uint32_t *counts; /* [n] scratch, zero between draws */
    uint64_t *hit;    /* [n / 64 + 1] scratch */
};

struct stream {
    char service[64], name_space[32];
    uint32_t n_pods, pool_service;
    int64_t from_s, to_s, step_s; /* since the epoch */
    int64_t *phase_ns;            /* [n_pods] ascending */
    int32_t service_id, *series_ids;
    int64_t hour;
    int64_t epoch; /* a day, or an hour where each has a build of its own: the universe is of it */
    struct hearth_arena epoch_arena;
    struct universe universe;
    int64_t step_at_s; /* where it stands: this step, this pod */
    uint32_t pod;
    uint64_t n_rows, n_samples, n_bytes;
    struct hearth_arena kept_arena;
    struct hearth_columns *kept;
    uint32_t n_kept;
};

struct row_item {
    struct hearth_push_item item;
    struct hearth_push_row row;
    struct hearth_str vals[MAX_TYPES];
    int64_t totals[MAX_TYPES];
    char bytes[];
};

static struct hearth_store *g_store;
static struct pool g_pool;
static _Atomic uint32_t g_in_flight;
static _Atomic uint64_t g_n_failed;
static uint64_t g_rng = 0x2545f4914f6cdd1du;

static uint64_t next_random(void)
{
    g_rng ^= g_rng << 13;
    g_rng ^= g_rng >> 7;
    g_rng ^= g_rng << 17;
    return g_rng;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)((next_random() >> 32) * n >> 32);
}

static void must(enum hearth_status status, const struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "load_set: %s\n", err->msg);
        exit(1);
    }
}

static void *array(struct hearth_arena *arena, size_t n, size_t size)
{
    void *p = hearth_arena_calloc(arena, n == 0 ? 1 : n, size);
    if (p == NULL) {
        (void)fprintf(stderr, "load_set: no memory\n");
        exit(1);
    }
    return p;
}

/* ---- what is drawn from ---- */

static void decode(const struct pool_entry *entry, struct hearth_inflater *inflater,
                   struct hearth_arena *arena, struct hearth_buf *raw, struct hearth_profile *ret)
{
    static const struct hearth_pprof_limits no_limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pprof_notes notes = {0};
    size_t n = entry->n_bytes + POOL_TAIL_BYTES;
    char *body = array(arena, n, 1);
    memcpy(body, g_pool.bytes + entry->offset, entry->n_bytes);
    pool_tail(&g_pool, entry, 1, (unsigned char *)body + entry->n_bytes);
    hearth_buf_reset(raw);
    must(hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP, hearth_str_n(body, n), 64u << 20, raw,
                        &err),
         &err);
    must(hearth_pprof_decode(hearth_buf_view(raw), &no_limits, arena, ret, &notes, &err), &err);
}

static void make_alias(struct universe *u, const uint64_t *weights, struct hearth_arena *arena)
{
    uint64_t sum = 0;
    uint32_t *small = array(arena, u->n, sizeof small[0]), n_small = 0;
    uint32_t *large = array(arena, u->n, sizeof large[0]), n_large = 0;
    double *share = array(arena, u->n, sizeof share[0]);
    for (uint32_t i = 0; i < u->n; i++) {
        sum += weights[i];
    }
    for (uint32_t i = 0; i < u->n; i++) {
        share[i] = (double)weights[i] * u->n / (double)sum;
        if (share[i] < 1) {
            small[n_small++] = i;
        } else {
            large[n_large++] = i;
        }
    }
    while (n_small > 0 && n_large > 0) {
        uint32_t s = small[--n_small], l = large[n_large - 1];
        u->keep[s] = (uint32_t)(share[s] * 4294967295.0);
        u->alias[s] = l;
        share[l] -= 1 - share[s];
        if (share[l] < 1) {
            n_large--;
            small[n_small++] = l;
        }
    }
    for (; n_large > 0; n_large--) {
        u->keep[large[n_large - 1]] = UINT32_MAX;
    }
    for (; n_small > 0; n_small--) {
        u->keep[small[n_small - 1]] = UINT32_MAX;
    }
}

/*
 * All stacks of a service of the pool (of one build, where there are several) get ids in the dictionary of the day; how often
 * they occur is their weight.
 */
static void make_universe(struct stream *stream, int64_t ts_ns)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_ingest_dict *dict;
    struct hearth_arena scratch;
    struct hearth_buf raw;
    struct universe *u = &stream->universe;
    uint32_t n_builds = g_pool.head->n_builds;
    uint32_t build = n_builds > 1 ? (uint32_t)(stream->epoch % n_builds) : 0;
    hearth_arena_reset(&stream->epoch_arena);
    hearth_arena_init(&scratch, 0);
    hearth_buf_init(&raw, 0);
    *u = (struct universe){0};
    u->sizes = array(&stream->epoch_arena, g_pool.head->n_profiles, sizeof u->sizes[0]);
    uint64_t *weights = hearth_mem_calloc(MAX_STACKS, sizeof weights[0]);
    struct hearth_inflater *inflater = hearth_inflater_new();
    must(hearth_store_dict_acquire(g_store, stream->service_id, ts_ns, &dict, &err), &err);
    for (uint32_t i = build; i < g_pool.head->n_profiles; i += n_builds) {
        struct hearth_profile profile;
        struct hearth_stack_keys keys;
        decode(pool_entry(&g_pool, stream->pool_service, i), inflater, &scratch, &raw, &profile);
        uint32_t *ids = array(&scratch, profile.n_samples, sizeof ids[0]);
        uint8_t *seen = array(&scratch, MAX_STACKS, 1);
        must(hearth_stack_keys_make(&profile, &scratch, &keys, &err), &err);
        must(hearth_store_dict_resolve(dict, &profile, &keys, ids, &err), &err);
        for (uint32_t s = 0; s < profile.n_samples; s++) {
            if (ids[s] >= MAX_STACKS) {
                (void)fprintf(stderr, "load_set: more than %d stacks\n", MAX_STACKS);
                exit(1);
            }
            weights[ids[s]] +=
                g_pool.head->is_heap ? 1 : (uint64_t)profile.values[(size_t)s * profile.n_types];
            u->n = ids[s] >= u->n ? ids[s] + 1 : u->n;
            u->sizes[u->n_sizes] += !seen[ids[s]];
            seen[ids[s]] = 1;
        }
        u->n_sizes++;
        hearth_arena_reset(&scratch);
    }
    hearth_store_dict_release(g_store, dict);
    u->keep = array(&stream->epoch_arena, u->n, sizeof u->keep[0]);
    u->alias = array(&stream->epoch_arena, u->n, sizeof u->alias[0]);
    u->counts = array(&stream->epoch_arena, u->n, sizeof u->counts[0]);
    u->hit = array(&stream->epoch_arena, u->n / 64 + 1, sizeof u->hit[0]);
    make_alias(u, weights, &scratch);
    hearth_mem_free(weights);
    hearth_inflater_free(inflater);
    hearth_buf_release(&raw);
    hearth_arena_release(&scratch);
}

/* As make_pool.c's. */
static void set_values(int64_t *values, uint32_t stack, uint32_t count)
{
    values[0] = count;
    if (!g_pool.head->is_heap) {
        values[1] = (int64_t)count * PERIOD;
        return;
    }
    int64_t size = 16 << stack % 12;
    values[0] = (int64_t)count * (1 + below(2000));
    values[1] = values[0] * size;
    values[2] = below(3) == 0 ? values[0] / 16 : 0;
    values[3] = values[2] * size;
}

/* One profile; in `arena`. */
static void draw(struct universe *u, struct hearth_arena *arena, struct hearth_columns *ret)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    uint32_t n = u->sizes[below(u->n_sizes)], n_hit = 0, at = 0;
    uint32_t n_types = g_pool.head->is_heap ? 4 : 2;
    uint32_t *ids = array(arena, n, sizeof ids[0]);
    int64_t *values = array(arena, (size_t)n * n_types, sizeof values[0]);
    while (n_hit < n) {
        uint64_t r = next_random();
        uint32_t i = (uint32_t)((r >> 32) * u->n >> 32);
        i = (uint32_t)r <= u->keep[i] ? i : u->alias[i];
        if (u->counts[i]++ == 0) {
            u->hit[i / 64] |= UINT64_C(1) << i % 64;
            n_hit++;
        }
    }
    for (uint32_t w = 0; w <= u->n / 64; w++) {
        for (; u->hit[w] != 0; u->hit[w] &= u->hit[w] - 1) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(u->hit[w]);
            ids[at] = i;
            set_values(values + (size_t)at * n_types, i, u->counts[i]);
            u->counts[i] = 0;
            at++;
        }
    }
    must(hearth_columns_encode(ids, values, n, n_types, arena, ret, &err), &err);
}

/* ---- rows ---- */

static void on_done(struct hearth_push_item *item, enum hearth_status status,
                    const struct hearth_err *err)
{
    if (status != HEARTH_OK && atomic_fetch_add(&g_n_failed, 1) == 0) {
        (void)fprintf(stderr, "load_set: %s\n", err->msg);
    }
    hearth_mem_free(HEARTH_CONTAINER_OF(item, struct row_item, item));
    atomic_fetch_sub(&g_in_flight, 1);
}

static void wait_below(uint32_t n)
{
    while (atomic_load(&g_in_flight) >= n) {
        (void)usleep(300);
    }
}

/* The pods' series, all at once: one transaction an hour. */
static void enter_hour(struct stream *stream, int64_t ts_ns)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena scratch;
    hearth_arena_init(&scratch, 0);
    struct hearth_str cpu[] = {HEARTH_STR("process_cpu:samples:count:cpu:nanoseconds"),
                               HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")};
    struct hearth_str heap[] = {HEARTH_STR("memory:alloc_objects:count:space:bytes"),
                                HEARTH_STR("memory:alloc_space:bytes:space:bytes"),
                                HEARTH_STR("memory:inuse_objects:count:space:bytes"),
                                HEARTH_STR("memory:inuse_space:bytes:space:bytes")};
    const struct hearth_str *types = g_pool.head->is_heap ? heap : cpu;
    size_t n_types = g_pool.head->is_heap ? 4 : 2;
    struct hearth_series_key *keys = array(&scratch, stream->n_pods, sizeof keys[0]);
    struct hearth_series_ref *refs = array(&scratch, stream->n_pods, sizeof refs[0]);
    for (uint32_t i = 0; i < stream->n_pods; i++) {
        char *pod = array(&scratch, 1, 128);
        struct hearth_label *labels = array(&scratch, 2, sizeof labels[0]);
        (void)snprintf(pod, 128, "%.48s-%.60s-%05u", stream->service, stream->name_space, i);
        labels[0] =
            (struct hearth_label){HEARTH_STR("namespace"), hearth_str_c(stream->name_space)};
        labels[1] = (struct hearth_label){HEARTH_STR("pod"), hearth_str_c(pod)};
        keys[i] =
            (struct hearth_series_key){hearth_str_c(stream->service), types, n_types, {labels, 2}};
    }
    must(hearth_store_resolve_series(g_store, HEARTH_STR("anonymous"), keys, stream->n_pods, ts_ns,
                                     refs, &err),
         &err);
    for (uint32_t i = 0; i < stream->n_pods; i++) {
        stream->series_ids[i] = refs[i].series_id;
    }
    stream->service_id = refs[0].service_id;
    hearth_arena_release(&scratch);
}

static void keep_row(struct stream *stream, const struct hearth_columns *c)
{
    struct hearth_columns *to = &stream->kept[stream->n_kept++];
    *to = *c;
    to->vals = array(&stream->kept_arena, 1, sizeof to->vals[0]);
    to->vals[0] = c->vals[0];
    char *bytes = array(&stream->kept_arena, c->ids.n + c->vals[0].n, 1);
    to->ids.p = memcpy(bytes, c->ids.p, c->ids.n);
    to->vals[0].p = memcpy(bytes + c->ids.n, c->vals[0].p, c->vals[0].n);
}

static void send_row(struct stream *stream, uint32_t pod, int64_t ts_ns,
                     const struct hearth_columns *c)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n = c->ids.n;
    for (uint32_t k = 0; k < c->n_types; k++) {
        n += c->vals[k].n;
    }
    struct row_item *item = hearth_mem_zalloc(sizeof *item + n);
    char *to = item->bytes;
    item->row = (struct hearth_push_row){.series_id = stream->series_ids[pod],
                                         .duration_ns = stream->step_s * HEARTH_NS_PER_SEC,
                                         .period = PERIOD,
                                         .columns = *c};
    item->row.columns.ids.p = memcpy(to, c->ids.p, c->ids.n);
    to += c->ids.n;
    for (uint32_t k = 0; k < c->n_types; k++) {
        item->vals[k] = (struct hearth_str){memcpy(to, c->vals[k].p, c->vals[k].n), c->vals[k].n};
        item->totals[k] = c->totals[k];
        to += c->vals[k].n;
    }
    item->row.columns.vals = item->vals;
    item->row.columns.totals = item->totals;
    item->item.service_id = stream->service_id;
    item->item.ts_ns = ts_ns;
    item->item.rows = &item->row;
    item->item.n_rows = 1;
    item->item.done = on_done;
    must(hearth_store_dict_acquire(g_store, stream->service_id, ts_ns, &item->item.dict, &err),
         &err);
    wait_below(IN_FLIGHT);
    atomic_fetch_add(&g_in_flight, 1);
    must(hearth_store_submit(g_store, &item->item, &err), &err);
    stream->n_rows++;
    stream->n_samples += c->n;
    stream->n_bytes += n;
}

/* Everything of the stream before `until_ns`. */
static void advance(struct stream *stream, int64_t until_ns, struct hearth_arena *scratch)
{
    while (stream->step_at_s < stream->to_s) {
        int64_t ts_ns = stream->step_at_s * HEARTH_NS_PER_SEC + stream->phase_ns[stream->pod];
        if (ts_ns >= until_ns) {
            return;
        }
        uint32_t pod = stream->pod++;
        if (stream->pod == stream->n_pods) {
            stream->pod = 0;
            stream->step_at_s += stream->step_s;
        }
        if (ts_ns >= stream->to_s * HEARTH_NS_PER_SEC) {
            continue;
        }
        if (ts_ns / (3600 * HEARTH_NS_PER_SEC) != stream->hour) {
            stream->hour = ts_ns / (3600 * HEARTH_NS_PER_SEC);
            enter_hour(stream, ts_ns);
        }
        int64_t epoch_ns = g_pool.head->n_builds > 1 ? 3600 * HEARTH_NS_PER_SEC : HEARTH_NS_PER_DAY;
        if (ts_ns / epoch_ns != stream->epoch) {
            stream->epoch = ts_ns / epoch_ns;
            make_universe(stream, ts_ns);
        }
        struct hearth_columns columns;
        hearth_arena_reset(scratch);
        draw(&stream->universe, scratch, &columns);
        if (stream->n_kept < KEPT_ROWS) {
            keep_row(stream, &columns);
        }
        send_row(stream, pod, ts_ns, &columns);
    }
}

/* Microseconds to merge a row that lies in memory. */
static double merge_floor(const struct stream *stream)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t *acc = hearth_mem_calloc(MAX_STACKS, sizeof acc[0]);
    int64_t best = INT64_MAX;
    for (int round = 0; round < 5; round++) {
        int64_t from = hearth_clock_thread_cpu_ns();
        for (uint32_t i = 0; i < stream->n_kept; i++) {
            const struct hearth_columns *c = &stream->kept[i];
            must(hearth_columns_merge(c->ids, c->vals[0], c->vals[0], true, acc, MAX_STACKS, &err),
                 &err);
        }
        int64_t ns = hearth_clock_thread_cpu_ns() - from;
        best = ns < best ? ns : best;
    }
    hearth_mem_free(acc);
    return (double)best / 1e3 / (double)stream->n_kept;
}

/* ---- the whole ---- */

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void stream_init(struct stream *stream, const char *text, int64_t end_s)
{
    long long from_s, to_s, step_s;
    *stream = (struct stream){.hour = INT64_MIN, .epoch = INT64_MIN};
    if (sscanf(text, "%63[^:]:%31[^:]:%u:%lld:%lld:%lld:%u", stream->service, stream->name_space,
               &stream->n_pods, &from_s, &to_s, &step_s, &stream->pool_service) != 7 ||
        step_s <= 0 || stream->n_pods == 0) {
        (void)fprintf(stderr, "load_set: \"%s\" is no stream\n", text);
        exit(2);
    }
    stream->pool_service %= g_pool.head->n_services;
    stream->from_s = stream->step_at_s = end_s - from_s;
    stream->to_s = end_s - to_s;
    stream->step_s = step_s;
    hearth_arena_init(&stream->epoch_arena, 0);
    hearth_arena_init(&stream->kept_arena, 0);
    stream->series_ids = array(&stream->kept_arena, stream->n_pods, sizeof(int32_t));
    stream->kept = array(&stream->kept_arena, KEPT_ROWS, sizeof stream->kept[0]);
    stream->phase_ns = array(&stream->kept_arena, stream->n_pods, sizeof(int64_t));
    for (uint32_t i = 0; i < stream->n_pods; i++) {
        stream->phase_ns[i] = (int64_t)below((uint32_t)step_s * 1000) * 1000000;
    }
    qsort(stream->phase_ns, stream->n_pods, sizeof(int64_t), by_time);
}

static void store_open(const char *url)
{
    struct hearth_store_options options;
    struct hearth_err err = HEARTH_ERR_INIT;
    char reason[256];
    hearth_store_options_init(&options);
    options.url = test_secret(url);
    options.n_committers = 1;
    options.builder = false;
    must(hearth_store_open(&options, &g_store, &err), &err);
    for (int i = 0; i < 4000 && !hearth_store_ready(g_store, reason); i++) {
        (void)usleep(5000);
    }
}

int main(int argc, char **argv)
{
    static struct stream streams[MAX_STREAMS];
    if (argc < 5 || argc - 4 > MAX_STREAMS) {
        (void)fprintf(
            stderr,
            "load_set URL POOL END_S SERVICE:NAMESPACE:PODS:FROM_S:TO_S:STEP_S:POOL_SERVICE...\n");
        return 2;
    }
    size_t n_streams = (size_t)argc - 4;
    int64_t end_s = strtoll(argv[3], NULL, 10), at_s = INT64_MAX;
    pool_open(argv[2], &g_pool);
    store_open(argv[1]);
    for (size_t i = 0; i < n_streams; i++) {
        stream_init(&streams[i], argv[4 + i], end_s);
        at_s = streams[i].from_s < at_s ? streams[i].from_s : at_s;
    }
    struct hearth_arena scratch;
    hearth_arena_init(&scratch, 0);
    for (; at_s < end_s; at_s += TICK_S) {
        for (size_t i = 0; i < n_streams; i++) {
            advance(&streams[i], (at_s + TICK_S) * HEARTH_NS_PER_SEC, &scratch);
        }
    }
    wait_below(1);
    for (size_t i = 0; i < n_streams; i++) {
        const struct stream *s = &streams[i];
        (void)printf("{\"service\": \"%s\", \"namespace\": \"%s\", \"rows\": %llu, "
                     "\"samples\": %llu, \"bytes\": %llu, \"stacks\": %u, \"merge_us\": %.4f}\n",
                     s->service, s->name_space, (unsigned long long)s->n_rows,
                     (unsigned long long)s->n_samples, (unsigned long long)s->n_bytes,
                     s->universe.n, s->n_kept == 0 ? 0 : merge_floor(s));
    }
    hearth_store_close(g_store, hearth_clock_mono_ns() + 30 * HEARTH_NS_PER_SEC);
    return atomic_load(&g_n_failed) > 0;
}
