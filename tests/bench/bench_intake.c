/*
 * bench_intake.c -- what it costs to decode files of profilers, whatever their format.
 *
 * Usage: bench_intake FILE...   (compressed or plain)
 * Prints a line of JSON for each: microseconds of thread CPU to inflate it, to scan its plain bytes, and to
 * decode them to profiles in an arena. Each is the least of many runs, with everything in the cache.
 * The scan reads all bytes as varints, one after another, and does nothing with them.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/format/profile_file.h"

#include "test_files.h"

#include <stdlib.h>

enum {
    MIN_RUNS = 7,
    MAX_RUNS = 2000,
};
#define ENOUGH_NS (HEARTH_NS_PER_SEC / 2) /* of CPU, for each kind of work */
#define MAX_PLAIN ((size_t)1 << 30)

enum work {
    INFLATE,
    SCAN,
    DECODE,
};

struct subject {
    struct hearth_buf file, plain, inflated;
    struct hearth_inflater *inflater;
    struct hearth_arena arena;
    struct hearth_file_profiles decoded;
};

static volatile uint64_t g_scanned; /* so that the scan is not optimised away */

static uint64_t scan_varints(struct hearth_str bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.p, *end = at + bytes.n;
    uint64_t sum = 0;

    while (at < end) {
        uint64_t value = 0;
        unsigned shift = 0;
        while (at < end && *at >= 0x80 && shift < 63) {
            value |= (uint64_t)(*at++ & 0x7f) << shift;
            shift += 7;
        }
        if (at < end) {
            value |= (uint64_t)*at++ << shift;
        }
        sum += value;
    }

    return sum;
}

static enum hearth_status run(struct subject *s, enum work work, struct hearth_err *err)
{
    struct hearth_str file = hearth_buf_view(&s->file), plain = hearth_buf_view(&s->plain);
    struct hearth_file_options options = {0};

    switch (work) {
    case INFLATE:
        return hearth_inflate(s->inflater, hearth_compression_detect(file), file, MAX_PLAIN,
                              &s->inflated, err);
    case SCAN:
        g_scanned = scan_varints(plain);
        return HEARTH_OK;
    case DECODE:
        return hearth_profile_file_decode(plain, &options, &s->arena, &s->decoded, err);
    }

    return HEARTH_OK;
}

/* The least of many runs, in microseconds. Whatever was allocated by the run before is used again. */
static double least_us(struct subject *s, enum work work, const char *path)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t least = INT64_MAX, sum = 0;

    for (int i = 0; i < MAX_RUNS && (i < MIN_RUNS || sum < ENOUGH_NS); i++) {
        hearth_arena_reset(&s->arena);
        hearth_buf_reset(&s->inflated);

        int64_t from = hearth_clock_thread_cpu_ns();
        enum hearth_status status = run(s, work, &err);
        int64_t took = hearth_clock_thread_cpu_ns() - from;
        if (status != HEARTH_OK) {
            (void)fprintf(stderr, "%s: %s\n", path, err.msg);
            exit(1);
        }

        least = took < least ? took : least;
        sum += took;
    }

    return (double)least / 1e3;
}

static void print_result(struct subject *s, const char *path)
{
    bool is_plain = hearth_compression_detect(hearth_buf_view(&s->file)) == HEARTH_COMPRESSION_NONE;
    double inflate_us = is_plain ? 0 : least_us(s, INFLATE, path);
    double scan_us = least_us(s, SCAN, path);
    double decode_us = least_us(s, DECODE, path); /* the last: its result stays */

    uint64_t n_samples = 0;
    for (size_t i = 0; i < s->decoded.n_profiles; i++) {
        n_samples += s->decoded.profiles[i].profile.n_samples;
    }

    (void)printf("{\"format\": \"%s\", \"bytes\": %zu, \"plain_bytes\": %zu, \"profiles\": %zu, "
                 "\"samples\": %llu, \"inflate_us\": %.2f, \"scan_us\": %.2f, "
                 "\"decode_us\": %.2f}\n",
                 s->decoded.format, s->file.n, s->plain.n, s->decoded.n_profiles,
                 (unsigned long long)n_samples, inflate_us, scan_us, decode_us);
}

static void bench_file(const char *path)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct subject s = {.inflater = hearth_inflater_new()};

    if (s.inflater == NULL || !read_file(path, &s.file) || !read_inflated(path, &s.plain, &err)) {
        (void)fprintf(stderr, "%s: cannot be read; %s\n", path, err.msg);
        exit(1);
    }

    print_result(&s, path);

    hearth_inflater_free(s.inflater);
    hearth_arena_release(&s.arena);
    hearth_buf_release(&s.file);
    hearth_buf_release(&s.plain);
    hearth_buf_release(&s.inflated);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s FILE...\n", argv[0]);
        return 2;
    }

    for (int i = 1; i < argc; i++) {
        bench_file(argv[i]);
    }

    return 0;
}
