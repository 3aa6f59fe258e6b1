/*
 * bench_memo.c -- would a memo of message bytes pay? bench_memo POOL (decision 0042)
 *
 * How often a location or function message of a profile has bytes that an earlier profile of its service had, how often such
 * bytes mean the same, and what looking them up costs beside decoding and hashing them. Repetition is set by changing bytes.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"
#include "hearth/codec/compress.h"
#include "hearth/format/pprof.h"
#include "hearth/model/dict.h"

#include "pool.h"

enum {
    LOCATION = 4,
    FUNCTION = 5,
    MAX_MESSAGES = 1 << 16
};

static struct hearth_err g_err = HEARTH_ERR_INIT;
static struct hearth_str g_messages[MAX_MESSAGES];

static void must(enum hearth_status status)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "memo: %s\n", g_err.msg);
        exit(1);
    }
}

/* The messages of one field, in g_messages. */
static uint32_t find_messages(struct hearth_str raw, unsigned field)
{
    const uint8_t *at = (const uint8_t *)raw.p, *end = at + raw.n;
    uint32_t n = 0;
    uint64_t tag, size;
    while (at < end && hearth_varint_read(&at, end, &tag)) {
        if (!hearth_varint_read(&at, end, &size) || (tag & 7) == 0) {
            continue;
        }
        if (tag >> 3 == field && n < MAX_MESSAGES) {
            g_messages[n++] = hearth_str_n((const char *)at, size);
        }
        at += size;
    }
    return n;
}

static void inflate_entry(const struct pool *pool, const struct pool_entry *entry,
                          struct hearth_inflater *inflater, struct hearth_buf *raw)
{
    struct hearth_buf body;
    hearth_buf_init(&body, 0);
    hearth_buf_append(&body, pool->bytes + entry->offset, entry->n_bytes);
    char *tail = hearth_buf_reserve(&body, POOL_TAIL_BYTES);
    pool_tail(pool, entry, 1, (unsigned char *)tail);
    body.n += POOL_TAIL_BYTES;
    hearth_buf_reset(raw);
    must(hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&body), 64u << 20, raw,
                        &g_err));
    hearth_buf_release(&body);
}

/* ---- repetition ---- */

struct seen {
    struct hearth_idmap map;
    uint64_t *keys; /* of the first message with these bytes */
    uint32_t n;
    uint64_t n_all, n_repeated, n_same;
};

static void see(struct seen *seen, const uint64_t *keys, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bool is_new;
        uint32_t id = hearth_idmap_intern(
            &seen->map, hearth_hash128(g_messages[i].p, g_messages[i].n, 1), seen->n, &is_new);
        seen->n_all++;
        if (is_new) {
            seen->keys[seen->n++] = keys[i];
            continue;
        }
        seen->n_repeated++;
        seen->n_same += seen->keys[id] == keys[i];
    }
}

static struct seen new_seen(void)
{
    struct seen seen = {.keys = hearth_mem_calloc(1 << 24, sizeof(uint64_t))};
    hearth_idmap_init(&seen.map);
    return seen;
}

/* ---- time ---- */

/* Nanoseconds of a look-up when `fresh` of a thousand messages are new. */
static double time_memo(struct hearth_str *messages, uint32_t n, unsigned fresh, unsigned rounds)
{
    struct hearth_idmap map;
    hearth_idmap_init(&map);
    uint32_t n_ids = 0;
    char copy[256];
    int64_t ns = 0;
    uint64_t state = 88172645463325252u, n_done = 0;
    for (unsigned round = 0; round <= rounds; round++) {
        int64_t began = hearth_clock_thread_cpu_ns();
        for (uint32_t i = 0; i < n; i++) {
            struct hearth_str bytes = messages[i];
            state = state * 6364136223846793005u + 1442695040888963407u;
            if (fresh > 0 && (state >> 33) % 1000 < fresh && bytes.n >= 8 &&
                bytes.n <= sizeof copy) {
                memcpy(copy, bytes.p, bytes.n);
                memcpy(copy, &state, 8);
                bytes.p = copy;
            }
            bool is_new;
            (void)hearth_idmap_intern(&map, hearth_hash128(bytes.p, bytes.n, 1), n_ids, &is_new);
            n_ids += is_new;
        }
        if (round > 0) {
            ns += hearth_clock_thread_cpu_ns() - began;
            n_done += n;
        }
        if (n_ids > 1u << 19) { /* a bounded memo begins anew */
            hearth_idmap_reset(&map);
            n_ids = 0;
        }
    }
    hearth_idmap_release(&map);
    return (double)ns / (double)n_done;
}

int main(int argc, char **argv)
{
    static const struct hearth_pprof_limits no_limits;
    static const unsigned fresh[] = {1000, 100, 1};
    struct pool pool;
    struct hearth_buf raw;
    struct hearth_arena arena;
    struct hearth_inflater *inflater = hearth_inflater_new();
    struct seen locations = {0}, functions = {0};
    uint64_t n_profiles = 0, n_locations = 0, n_functions = 0;
    int64_t decode_ns = 0, keys_ns = 0;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: bench_memo POOL\n");
        return 2;
    }
    pool_open(argv[1], &pool);
    hearth_buf_init(&raw, 0);
    hearth_arena_init(&arena, 0);
    for (uint32_t service = 0; service < pool.head->n_services; service++) {
        struct seen l = new_seen(), f = new_seen();
        for (uint32_t i = 0; i < pool.head->n_profiles; i++) {
            struct hearth_profile profile;
            struct hearth_pprof_notes notes = {0};
            struct hearth_stack_keys keys;
            inflate_entry(&pool, pool_entry(&pool, service, i), inflater, &raw);
            hearth_arena_reset(&arena);
            int64_t began = hearth_clock_thread_cpu_ns();
            must(hearth_pprof_decode(hearth_buf_view(&raw), &no_limits, &arena, &profile, &notes,
                                     &g_err));
            int64_t decoded = hearth_clock_thread_cpu_ns();
            must(hearth_stack_keys_make(&profile, &arena, &keys, &g_err));
            keys_ns += hearth_clock_thread_cpu_ns() - decoded;
            decode_ns += decoded - began;
            see(&l, keys.location, find_messages(hearth_buf_view(&raw), LOCATION));
            see(&f, keys.function, find_messages(hearth_buf_view(&raw), FUNCTION));
            n_profiles++;
            n_locations += profile.n_locations;
            n_functions += profile.n_functions;
        }
        locations.n_all += l.n_all, locations.n_repeated += l.n_repeated,
            locations.n_same += l.n_same;
        functions.n_all += f.n_all, functions.n_repeated += f.n_repeated,
            functions.n_same += f.n_same;
        hearth_idmap_release(&l.map);
        hearth_idmap_release(&f.map);
        hearth_mem_free(l.keys);
        hearth_mem_free(f.keys);
    }
    (void)printf("a profile: %.0f locations, %.0f functions; decode %.1f us, keys %.1f us\n",
                 (double)n_locations / (double)n_profiles, (double)n_functions / (double)n_profiles,
                 (double)decode_ns / 1e3 / (double)n_profiles,
                 (double)keys_ns / 1e3 / (double)n_profiles);
    (void)printf(
        "locations: %.1f %% have the bytes of an earlier one, %.1f %% of these its content\n",
        100.0 * (double)locations.n_repeated / (double)locations.n_all,
        100.0 * (double)locations.n_same / (double)locations.n_repeated);
    (void)printf("functions: %.1f %%, %.1f %%\n",
                 100.0 * (double)functions.n_repeated / (double)functions.n_all,
                 100.0 * (double)functions.n_same / (double)functions.n_repeated);
    uint32_t n = find_messages(hearth_buf_view(&raw), LOCATION);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(fresh); i++) {
        (void)printf("%.1f %% repeated: %.1f ns a look-up\n", 100 - fresh[i] / 10.0,
                     time_memo(g_messages, n, fresh[i], 400));
    }
    hearth_inflater_free(inflater);
    hearth_arena_release(&arena);
    hearth_buf_release(&raw);
    return 0;
}
