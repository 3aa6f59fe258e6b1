/*
 * floor.c -- what the bodies of a pool cost before Hearth does anything with them: floor POOL [seconds].
 *
 * Prints JSON: microseconds of thread CPU per profile to inflate (libdeflate alone, into one warm buffer),
 * and to inflate and scan into flat arrays. Every body once per pass, so the input is as cold as a server's;
 * medians of the passes.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/format/pprof.h"

#include "pool.h"

#define MAX_PASSES 200

static const struct hearth_pprof_limits g_no_limits;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds per body. */
static double pass(const struct pool *pool, unsigned char *body, bool scan,
                   struct hearth_inflater *inflater, struct hearth_buf *raw,
                   struct hearth_arena *arena)
{
    size_t n = (size_t)pool->head->n_services * pool->head->n_profiles;
    int64_t cpu_ns = 0;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pprof_notes notes = {0};
    struct hearth_profile profile;
    for (size_t i = 0; i < n; i++) {
        const struct pool_entry *entry = &pool->entries[i];
        memcpy(body, pool->bytes + entry->offset, entry->n_bytes);
        pool_tail(pool, entry, INT64_C(1700000000000000000), body + entry->n_bytes);
        struct hearth_str in = {(const char *)body, entry->n_bytes + POOL_TAIL_BYTES};
        hearth_buf_reset(raw);
        int64_t from = hearth_clock_thread_cpu_ns();
        enum hearth_status status =
            hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP, in, 64u << 20, raw, &err);
        if (status == HEARTH_OK && scan) {
            status = hearth_pprof_decode(hearth_buf_view(raw), &g_no_limits, arena, &profile,
                                         &notes, &err);
        }
        cpu_ns += hearth_clock_thread_cpu_ns() - from;
        hearth_arena_reset(arena);
        if (status != HEARTH_OK) {
            (void)fprintf(stderr, "floor: %s\n", err.msg);
            exit(1);
        }
    }
    return (double)cpu_ns / 1e3 / (double)n;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "floor POOL [seconds]\n");
        return 2;
    }
    struct pool pool;
    pool_open(argv[1], &pool);
    int64_t until = hearth_clock_mono_ns() +
                    (int64_t)((argc > 2 ? strtod(argv[2], NULL) : 4) * (double)HEARTH_NS_PER_SEC);
    size_t n = (size_t)pool.head->n_services * pool.head->n_profiles, most = 0;
    double gz = 0, plain = 0, samples = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = pool.entries[i].n_bytes + POOL_TAIL_BYTES;
        most = bytes > most ? bytes : most;
        gz += (double)bytes / (double)n;
        plain += (double)(pool.entries[i].n_raw + POOL_TIME_BYTES) / (double)n;
        samples += (double)pool.entries[i].n_samples / (double)n;
    }
    unsigned char *body = malloc(most);
    struct hearth_inflater *inflater = hearth_inflater_new();
    struct hearth_buf raw;
    struct hearth_arena arena;
    hearth_buf_init(&raw, 0);
    hearth_arena_init(&arena, 0);
    if (body == NULL || inflater == NULL) {
        return 1;
    }
    static double inflate[MAX_PASSES], both[MAX_PASSES];
    int n_passes = 0;
    do {
        inflate[n_passes] = pass(&pool, body, false, inflater, &raw, &arena);
        both[n_passes] = pass(&pool, body, true, inflater, &raw, &arena);
        n_passes++;
    } while (n_passes < MAX_PASSES && (n_passes < 3 || hearth_clock_mono_ns() < until));
    qsort(inflate, (size_t)n_passes, sizeof inflate[0], by_value);
    qsort(both, (size_t)n_passes, sizeof both[0], by_value);
    (void)printf("{\"inflate_us\": %.2f, \"inflate_scan_us\": %.2f, \"gz_bytes\": %.0f, "
                 "\"raw_bytes\": %.0f, "
                 "\"samples\": %.1f, \"bodies\": %zu}\n",
                 inflate[n_passes / 2], both[n_passes / 2], gz, plain, samples, n);
    return 0;
}
