/*
 * legacy_cpu.c -- CPU profiles of gperftools: machine words of the recorded machine.
 *
 *     header   0, 3, 0 (version), microseconds between two samples, 0
 *     sample   count, number of addresses, addresses (leaf first)
 *     end      0, 1, 0; the table of mappings follows as text
 */
#include "legacy/legacy_reader.h"

#include <stdlib.h>

#define HEAD_WORDS          5u
#define US_NS               1000
#define MAX_HANDLER_FRAMES  2
#define SAMPLES_PER_ODD_ONE 32u /* one in so many samples may lack a frame of the handler */

/* A sequence of words. */
struct word_reader {
    struct hearth_str bytes;
    size_t at, word_bytes;
    bool is_big_endian;
};

static bool take_machine_word(struct word_reader *w, uint64_t *ret)
{
    if (w->bytes.n - w->at < w->word_bytes) {
        return false;
    }

    uint64_t word = 0;
    for (size_t i = 0; i < w->word_bytes; i++) {
        size_t byte = w->is_big_endian ? i : w->word_bytes - 1 - i;
        word = word << 8 | (unsigned char)w->bytes.p[w->at + byte];
    }
    w->at += w->word_bytes;
    *ret = word;

    return true;
}

/* Finds the kind of words by the header; the reader is then behind it. */
static bool find_words(struct hearth_str bytes, struct word_reader *w, uint64_t *period_us)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        uint64_t head[HEAD_WORDS];
        size_t n = 0;

        *w = (struct word_reader){bytes, 0, kind < 2 ? 8 : 4, kind % 2 != 0};
        while (n < HEAD_WORDS && take_machine_word(w, &head[n])) {
            n++;
        }
        if (n == HEAD_WORDS && head[0] == 0 && head[1] == 3 && head[2] == 0 && head[3] > 0 &&
            head[4] == 0) {
            *period_us = head[3];
            return true;
        }
    }

    return false;
}

bool hearth_legacy_is_cpu(struct hearth_str bytes)
{
    struct word_reader w;
    uint64_t period_us;

    return find_words(bytes, &w, &period_us);
}

/* ---- samples ---- */

struct cpu_sample {
    int64_t count;
    uint64_t *addresses; /* of calls, leaf first */
    size_t n;
};

struct cpu_samples {
    struct cpu_sample *v;
    size_t n, cap;
};

/* Reads a sample into the arena. *ret_is_end: it is the end marker instead. */
static enum hearth_status read_cpu_sample(struct word_reader *w, struct hearth_arena *arena,
                                          struct cpu_sample *ret, bool *ret_is_end,
                                          struct hearth_err *err)
{
    uint64_t count, n;
    size_t from = w->at;

    if (!take_machine_word(w, &count) || !take_machine_word(w, &n) ||
        n > (w->bytes.n - w->at) / w->word_bytes || count > INT64_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the sample at byte %zu of the CPU profile is not complete", from);
    }

    *ret = (struct cpu_sample){(int64_t)count, NULL, (size_t)n};
    ret->addresses = hearth_arena_array(arena, (size_t)n, sizeof *ret->addresses);
    if (ret->addresses == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < n; i++) {
        (void)take_machine_word(w, &ret->addresses[i]);
    }
    *ret_is_end = count == 0 && n == 1 && ret->addresses[0] == 0;

    /* The leaf is the sampled instruction; the others are addresses of return. */
    for (size_t i = 1; i < n; i++) {
        ret->addresses[i]--;
    }

    return HEARTH_OK;
}

static enum hearth_status read_cpu_samples(struct word_reader *w, struct hearth_arena *arena,
                                           struct cpu_samples *samples, struct hearth_err *err)
{
    while (w->at < w->bytes.n) {
        bool is_end = false;
        if (!hearth_arena_grow(arena, &samples->v, &samples->cap, samples->n + 1,
                               sizeof *samples->v)) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        HEARTH_TRY(read_cpu_sample(w, arena, &samples->v[samples->n], &is_end, err));
        if (is_end) {
            return HEARTH_OK;
        }
        samples->n++;
    }

    return HEARTH_OK;
}

/* ---- frames of the profiler's signal handler ---- */

static int compare_addresses(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The caller of the leaf that (nearly) all samples have, or 0. scratch: [samples->n]. */
static uint64_t find_common_caller(const struct cpu_samples *samples, uint64_t *scratch)
{
    size_t n = 0, run = 0;

    for (size_t i = 0; i < samples->n; i++) {
        if (samples->v[i].n > 1) {
            scratch[n++] = samples->v[i].addresses[1];
        }
    }

    qsort(scratch, n, sizeof *scratch, compare_addresses);
    for (size_t i = 0; i < n; i++) {
        run = i > 0 && scratch[i] == scratch[i - 1] ? run + 1 : 1;
        if (run >= samples->n - samples->n / SAMPLES_PER_ODD_ONE) {
            return scratch[i];
        }
    }

    return 0;
}

static void remove_caller(struct cpu_sample *sample)
{
    sample->n--;
    memmove(sample->addresses + 1, sample->addresses + 2, (sample->n - 1) * sizeof(uint64_t));
}

/*
 * The stack of the signal's handler is no part of the program, but the leaf, which the handler
 * takes from the registers, is; it may be there again as its own caller.
 */
static enum hearth_status remove_handler(struct cpu_samples *samples, struct hearth_arena *arena,
                                         struct hearth_err *err)
{
    uint64_t *scratch = hearth_arena_array(arena, samples->n, sizeof *scratch);

    if (scratch == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (int i = 0; i < MAX_HANDLER_FRAMES; i++) {
        uint64_t caller = find_common_caller(samples, scratch);
        for (size_t k = 0; k < samples->n && caller != 0; k++) {
            if (samples->v[k].n > 1 && samples->v[k].addresses[1] == caller) {
                remove_caller(&samples->v[k]);
            }
        }
    }

    for (size_t k = 0; k < samples->n; k++) {
        struct cpu_sample *sample = &samples->v[k];
        if (sample->n > 1 && sample->addresses[0] == sample->addresses[1] + 1) {
            remove_caller(sample);
        }
    }

    return HEARTH_OK;
}

/* ---- the profile ---- */

static enum hearth_status add_cpu_sample(struct legacy_reader *r, const struct cpu_sample *sample,
                                         int64_t period_ns, struct hearth_err *err)
{
    r->values[0] = sample->count;
    if (__builtin_mul_overflow(sample->count, period_ns, &r->values[1])) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the time of a sample exceeds 63 bits");
    }

    r->is_open = true;
    for (size_t i = 0; i < sample->n; i++) {
        HEARTH_TRY(hearth_legacy_add_address(r, sample->addresses[i], err));
    }

    return hearth_legacy_close_sample(r, err);
}

enum hearth_status hearth_legacy_read_cpu(struct legacy_reader *r, struct hearth_str bytes,
                                          struct legacy_head *head, struct hearth_err *err)
{
    static const struct legacy_type types[] = {{"samples", "count"}, {"cpu", "nanoseconds"}};
    struct cpu_samples samples = {.n = 0};
    struct word_reader w;
    uint64_t period_us;

    if (!find_words(bytes, &w, &period_us) || period_us > INT64_MAX / US_NS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "not a CPU profile of gperftools");
    }
    HEARTH_TRY(hearth_legacy_add_types(r, types, HEARTH_ARRAY_LEN(types), err));
    head->period_type = types[1];
    head->period = (int64_t)period_us * US_NS;

    /* The mappings behind the samples are needed first. */
    HEARTH_TRY(read_cpu_samples(&w, r->arena, &samples, err));
    HEARTH_TRY(hearth_legacy_read_maps(r, hearth_str_n(bytes.p + w.at, bytes.n - w.at), err));
    HEARTH_TRY(remove_handler(&samples, r->arena, err));
    for (size_t i = 0; i < samples.n; i++) {
        HEARTH_TRY(add_cpu_sample(r, &samples.v[i], head->period, err));
    }

    return HEARTH_OK;
}
