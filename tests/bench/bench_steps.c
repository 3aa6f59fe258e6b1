/*
 * bench_steps.c -- what each step of a pushed profile costs without a server: bench_steps POOL [rounds]
 *
 * One profile after the other goes through all steps, as a server does it: what a step reads is as warm as the step before
 * leaves it, and the dictionaries of all services are in use. Prints microseconds of each step: means of the least time that
 * each profile took in any round. So other work on the machine counts little, and two builds compare when they run in turns.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/format/pprof.h"
#include "hearth/model/dict.h"

#include "ingest/ingest_internal.h"
#include "pool.h"

enum step {
    INFLATE,
    SCAN,
    KEYS,
    SPLIT,
    RESOLVE,
    ENCODE,
    N_STEPS
};

static const char *const step_names[N_STEPS] = {"inflate", "scan",    "keys",
                                                "split",   "resolve", "encode"};

struct bench {
    struct pool pool;
    size_t n; /* profiles */
    unsigned char *body;
    struct hearth_inflater *inflater;
    struct hearth_buf raw;
    struct hearth_arena arena, keep; /* both are reset after each profile */
    struct hearth_dict_writer **dicts;
    int64_t (*least_ns)[N_STEPS];
};

static struct hearth_err g_err = HEARTH_ERR_INIT;

static void must(enum hearth_status status)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "bench_steps: %s\n", g_err.msg);
        exit(1);
    }
}

static void *array(size_t n, size_t size)
{
    void *p = hearth_mem_calloc(n, size);
    if (p == NULL) {
        (void)fprintf(stderr, "bench_steps: no memory\n");
        exit(1);
    }
    return p;
}

/* Keeps the least time of a step, and moves *mark to now. */
static void end_step(int64_t least_ns[N_STEPS], enum step step, int64_t *mark)
{
    int64_t now = hearth_clock_mono_ns();
    if (least_ns[step] == 0 || now - *mark < least_ns[step]) {
        least_ns[step] = now - *mark;
    }
    *mark = hearth_clock_mono_ns();
}

static void run_profile(struct bench *b, size_t i)
{
    static const struct hearth_pprof_limits no_limits;
    static const struct hearth_labels no_labels;
    const struct pool_entry *entry = &b->pool.entries[i];
    struct hearth_dict_writer *dict = b->dicts[i / b->pool.head->n_profiles];
    struct hearth_limits limits;
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    struct hearth_pprof_notes notes;
    struct hearth_profile profile;
    struct hearth_stack_keys keys;
    struct hearth_split split;
    struct hearth_push_row row;

    hearth_limits_init(&limits);
    const struct hearth_push_work work = {
        .limits = &limits,
        .arena = &b->arena,
        .keep = &b->keep,
        .discards = discards,
        .profile = &profile,
    };
    memcpy(b->body, b->pool.bytes + entry->offset, entry->n_bytes);
    pool_tail(&b->pool, entry, INT64_C(1700000000000000000), b->body + entry->n_bytes);
    struct hearth_str in = {(const char *)b->body, entry->n_bytes + POOL_TAIL_BYTES};
    hearth_buf_reset(&b->raw);

    int64_t mark = hearth_clock_mono_ns();
    must(hearth_inflate(b->inflater, HEARTH_COMPRESSION_GZIP, in, 64u << 20, &b->raw, &g_err));
    end_step(b->least_ns[i], INFLATE, &mark);
    must(hearth_pprof_decode(hearth_buf_view(&b->raw), &no_limits, &b->arena, &profile, &notes,
                             &g_err));
    end_step(b->least_ns[i], SCAN, &mark);
    must(hearth_stack_keys_make(&profile, &b->arena, &keys, &g_err));
    end_step(b->least_ns[i], KEYS, &mark);
    must(hearth_split_samples(&work, &no_labels, keys.skip, &split, &g_err));
    end_step(b->least_ns[i], SPLIT, &mark);
    uint32_t *ids = hearth_arena_array(&b->arena, profile.n_samples, sizeof ids[0]);
    must(hearth_dict_writer_resolve(dict, &profile, &keys, ids, &g_err));
    end_step(b->least_ns[i], RESOLVE, &mark);
    must(hearth_group_encode(&work, &split.groups[0], ids, split.has_attrs, &row, &g_err));
    end_step(b->least_ns[i], ENCODE, &mark);
    hearth_arena_reset(&b->arena);
    hearth_arena_reset(&b->keep);
}

static void prepare(const char *path, struct bench *b)
{
    size_t most = 0;

    pool_open(path, &b->pool);
    b->n = (size_t)b->pool.head->n_services * b->pool.head->n_profiles;
    for (size_t i = 0; i < b->n; i++) {
        size_t bytes = b->pool.entries[i].n_bytes + POOL_TAIL_BYTES;
        most = bytes > most ? bytes : most;
    }
    b->body = array(most, 1);
    b->inflater = hearth_inflater_new();
    hearth_buf_init(&b->raw, 0);
    hearth_arena_init(&b->arena, 0);
    hearth_arena_init(&b->keep, 0);
    b->least_ns = array(b->n, sizeof b->least_ns[0]);
    b->dicts = array(b->pool.head->n_services, sizeof(struct hearth_dict_writer *));
    for (uint32_t s = 0; s < b->pool.head->n_services; s++) {
        b->dicts[s] = hearth_dict_writer_new();
        if (b->dicts[s] == NULL || b->inflater == NULL) {
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    int rounds = argc > 2 ? atoi(argv[2]) : 9;
    double all = 0;

    if (argc < 2 || rounds < 1) {
        (void)fprintf(stderr, "bench_steps POOL [rounds]\n");
        return 2;
    }
    prepare(argv[1], &b);
    for (int r = 0; r < rounds; r++) {
        for (size_t i = 0; i < b.n; i++) {
            run_profile(&b, i);
        }
    }
    for (int step = 0; step < N_STEPS; step++) {
        double us = 0;
        for (size_t i = 0; i < b.n; i++) {
            us += (double)b.least_ns[i][step] / 1e3 / (double)b.n;
        }
        all += us;
        (void)printf("%s %.2f  ", step_names[step], us);
    }
    (void)printf("all %.2f\n", all);
    return 0;
}
