/*
 * bench_pprof.c -- what a profile costs before anything is done with it: inflate, scan; and beside
 * them protobuf-c (with malloc, and into an arena), and the way back.
 *
 * Usage: bench_pprof FILE...   (pprof, gzip or plain)
 * Prints the median of many runs in microseconds of process CPU time, with everything in the cache,
 * and the sum over all files.
 */
#include "hearth/codec/compress.h"
#include "hearth/codec/pb.h"
#include "hearth/format/pprof.h"
#include "hearth/pb/google/v1/profile.pb-c.h"

#include "test_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    N_RUNS = 31
};
enum work {
    INFLATE,
    SCAN,
    ENCODE,
    PB_ARENA,
    PB_MALLOC,
    N_WORKS
};

static const char *const work_names[N_WORKS] = {"inflate", "scan", "encode", "pb-c arena",
                                                "pb-c malloc"};

struct subject {
    struct hearth_buf file, raw, out;
    struct hearth_inflater *inflater;
    struct hearth_arena arena, kept; /* kept: holds `profile` */
    struct hearth_profile profile;
};

static double cpu_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(enum hearth_status status, const struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "%s\n", err->msg);
        exit(1);
    }
}

static void scan(const struct subject *s, struct hearth_arena *arena,
                 struct hearth_profile *profile)
{
    static const struct hearth_pprof_limits no_limits;
    struct hearth_pprof_notes notes;
    struct hearth_err err = HEARTH_ERR_INIT;
    must(hearth_pprof_decode(hearth_buf_view(&s->raw), &no_limits, arena, profile, &notes, &err),
         &err);
}

static void run(struct subject *s, enum work work)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_profile profile;
    struct hearth_str file = hearth_buf_view(&s->file);
    ProtobufCMessage *message;
    hearth_arena_reset(&s->arena);
    hearth_buf_reset(&s->out);
    switch (work) {
    case INFLATE:
        must(hearth_inflate(s->inflater, hearth_compression_detect(file), file, (size_t)1 << 30,
                            &s->out, &err),
             &err);
        break;
    case SCAN:
        scan(s, &s->arena, &profile);
        break;
    case ENCODE:
        hearth_pprof_encode(&s->profile, &s->out);
        break;
    case PB_ARENA:
        must(hearth_pb_unpack(&google__v1__profile__descriptor, hearth_buf_view(&s->raw), &s->arena,
                              &message, &err),
             &err);
        break;
    case PB_MALLOC:
        google__v1__profile__free_unpacked(
            google__v1__profile__unpack(NULL, s->raw.n, (const uint8_t *)s->raw.p), NULL);
        break;
    case N_WORKS:
        break;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_us(struct subject *s, enum work work)
{
    double took[N_RUNS];
    for (int i = 0; i < N_RUNS; i++) {
        double start = cpu_us();
        run(s, work);
        took[i] = cpu_us() - start;
    }
    qsort(took, N_RUNS, sizeof took[0], compare);
    return took[N_RUNS / 2];
}

static void bench_file(const char *path, double sums[N_WORKS])
{
    struct subject s = {.inflater = hearth_inflater_new()};
    struct hearth_err err = HEARTH_ERR_INIT;
    if (s.inflater == NULL || !read_file(path, &s.file) || !read_inflated(path, &s.raw, &err)) {
        (void)fprintf(stderr, "%s: %s\n", path, err.msg);
        exit(1);
    }
    scan(&s, &s.kept, &s.profile);
    const char *slash = strrchr(path, '/');
    (void)printf("%-44.44s %8zu %6u %7u", slash == NULL ? path : slash + 1, s.raw.n,
                 s.profile.n_samples, s.profile.n_stack_locs);
    for (int work = 0; work < N_WORKS; work++) {
        double us = median_us(&s, (enum work)work);
        sums[work] += us;
        (void)printf(" %11.1f", us);
    }
    (void)printf("\n");
    hearth_inflater_free(s.inflater);
    hearth_arena_release(&s.arena);
    hearth_arena_release(&s.kept);
    hearth_buf_release(&s.file);
    hearth_buf_release(&s.raw);
    hearth_buf_release(&s.out);
}

int main(int argc, char **argv)
{
    double sums[N_WORKS] = {0};
    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s FILE...\n", argv[0]);
        return 2;
    }
    (void)printf("%-44s %8s %6s %7s", "us of CPU (median)", "bytes", "sampl.", "frames");
    for (int work = 0; work < N_WORKS; work++) {
        (void)printf(" %11s", work_names[work]);
    }
    (void)printf("\n");
    for (int i = 1; i < argc; i++) {
        bench_file(argv[i], sums);
    }
    (void)printf("%-67s", "sum");
    for (int work = 0; work < N_WORKS; work++) {
        (void)printf(" %11.1f", sums[work]);
    }
    (void)printf("\n");
    return 0;
}
