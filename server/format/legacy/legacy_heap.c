/*
 * legacy_heap.c -- heap profiles: numbers and bytes in use, and in brackets of all allocations.
 *
 *     heap profile:    144:  8498176 [   144:  8498176] @ heapz_v2/524288
 *          7:   114688 [     7:   114688] @ 0xc635c8 0x42ecc3
 */
#include "legacy/legacy_reader.h"

#include <math.h>

/* One pair of numbers, of objects and their bytes. */
struct heap_pair {
    int64_t count, bytes;
};

struct heap_kind {
    bool is_sampled; /* values are those of the sampled objects */
    bool has_allocations;
    int64_t period; /* bytes between two samples; 0: not written */
};

static bool take_heap_pair(struct hearth_str *line, struct heap_pair *ret)
{
    return hearth_legacy_take_i64(line, &ret->count) && hearth_legacy_take(line, ":") &&
           hearth_legacy_take_i64(line, &ret->bytes);
}

/* "1: 2 [3: 4] @", up to the text after it. */
static bool take_heap_pairs(struct hearth_str *line, struct heap_pair *in_use,
                            struct heap_pair *all)
{
    return take_heap_pair(line, in_use) && hearth_legacy_take(line, "[") &&
           take_heap_pair(line, all) && hearth_legacy_take(line, "]") &&
           hearth_legacy_take(line, "@");
}

static enum hearth_status read_heap_head(struct legacy_reader *r, struct hearth_str line,
                                         struct heap_kind *kind, struct hearth_err *err)
{
    struct hearth_str rest = line;
    struct heap_pair in_use, all;

    *kind = (struct heap_kind){.period = 0};
    if (!hearth_legacy_take(&rest, "heap profile:") || !take_heap_pairs(&rest, &in_use, &all)) {
        return hearth_legacy_fail_line(r, line, "head of a heap profile", err);
    }

    /* The name of the format, and how it was sampled. */
    size_t slash = hearth_str_find(rest, '/', 0);
    struct hearth_str name = {rest.p, slash};
    struct hearth_str period = {rest.p + slash, rest.n - slash};
    if (slash < rest.n &&
        (!hearth_str_to_i64(hearth_str_n(period.p + 1, period.n - 1), &kind->period) ||
         kind->period < 0)) {
        return hearth_legacy_fail_line(r, line, "head of a heap profile", err);
    }

    bool is_v2 = hearth_str_eq_c(name, "heap_v2") || hearth_str_eq_c(name, "heapz_v2");
    bool is_plain = hearth_str_eq_c(name, "heapprofile") ||
                    hearth_str_starts(name, HEARTH_STR("growth")) ||
                    hearth_str_starts(name, HEARTH_STR("fragmentation"));
    if (hearth_str_eq_c(name, "heap")) { /* twice the period is written */
        kind->period /= 2;
        is_v2 = true;
    }
    if (!is_v2 && !is_plain) {
        return hearth_legacy_fail_line(r, line, "head of a known heap profile", err);
    }

    kind->is_sampled = is_v2;
    kind->period = is_plain ? 1 : kind->period;
    kind->has_allocations = (all.count != in_use.count && all.count != 0) ||
                            (all.bytes != in_use.bytes && all.bytes != 0);

    return HEARTH_OK;
}

/*
 * Objects of a mean size of s bytes were sampled with the probability 1 - e^(-s/period): a Poisson
 * process in the bytes. The fractions are dropped, as in Go and pprof, to give the same numbers.
 * Returns false if the values are negative or far too large.
 */
static bool scale_heap_pair(const struct heap_kind *kind, struct heap_pair *pair)
{
    const double limit = (double)(INT64_C(1) << 61);

    if (!kind->is_sampled || kind->period <= 1 || pair->count == 0) {
        return true;
    }
    if (pair->bytes == 0) {
        pair->count = 0;
        return true;
    }
    if (pair->count < 0 || pair->bytes < 0) {
        return false;
    }

    /* The scale of a tiny mean is infinite. */
    double mean = (double)pair->bytes / (double)pair->count;
    double scale = 1 / (1 - exp(-mean / (double)kind->period));
    double count = (double)pair->count * scale, bytes = (double)pair->bytes * scale;
    if (!(count < limit && bytes < limit)) {
        return false;
    }

    *pair = (struct heap_pair){(int64_t)count, (int64_t)bytes};

    return true;
}

static enum hearth_status read_heap_sample(struct legacy_reader *r, struct hearth_str line,
                                           const struct heap_kind *kind, struct hearth_err *err)
{
    struct hearth_str rest = line;
    struct heap_pair in_use, all;

    if (!take_heap_pairs(&rest, &in_use, &all)) {
        return hearth_legacy_fail_line(r, line, "sample \"N: BYTES [N: BYTES] @ ADDRESSES\"", err);
    }
    if ((in_use.count == 0 && in_use.bytes != 0) || (all.count == 0 && all.bytes != 0)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "line %llu has bytes of no allocation",
                           (unsigned long long)r->line_no);
    }
    if (!scale_heap_pair(kind, &in_use) || !scale_heap_pair(kind, &all)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "the values of line %llu are negative or exceed 61 bits",
                           (unsigned long long)r->line_no);
    }

    size_t n = 0;
    if (kind->has_allocations) {
        r->values[n++] = all.count;
        r->values[n++] = all.bytes;
    }
    r->values[n++] = in_use.count;
    r->values[n++] = in_use.bytes;
    r->is_open = true;

    return hearth_legacy_add_addresses(r, rest, err);
}

static enum hearth_status add_heap_types(struct legacy_reader *r, bool has_allocations,
                                         struct hearth_err *err)
{
    static const struct legacy_type both[] = {
        {"alloc_objects", "count"},
        {"alloc_space", "bytes"},
        {"inuse_objects", "count"},
        {"inuse_space", "bytes"},
    };
    static const struct legacy_type in_use[] = {{"objects", "count"}, {"space", "bytes"}};

    return has_allocations ? hearth_legacy_add_types(r, both, HEARTH_ARRAY_LEN(both), err)
                           : hearth_legacy_add_types(r, in_use, HEARTH_ARRAY_LEN(in_use), err);
}

enum hearth_status hearth_legacy_read_heap(struct legacy_reader *r, struct legacy_head *head,
                                           struct hearth_err *err)
{
    struct heap_kind kind;
    struct hearth_str line;

    /* The head, perhaps after a line such as "--- heapz 1 ---". */
    do {
        if (!hearth_legacy_line(r, &line)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the heap profile has no head");
        }
    } while (hearth_legacy_is_comment(line) || hearth_str_starts(line, HEARTH_STR("---")));
    HEARTH_TRY(read_heap_head(r, line, &kind, err));
    HEARTH_TRY(add_heap_types(r, kind.has_allocations, err));
    head->period_type = (struct legacy_type){"space", "bytes"};
    head->period = kind.period;
    r->notes->name = "memory";

    while (hearth_legacy_line(r, &line)) {
        if (hearth_legacy_is_comment(line)) {
            HEARTH_TRY(hearth_legacy_read_comment(r, line, err));
            continue;
        }
        HEARTH_TRY(hearth_legacy_close_sample(r, err));
        HEARTH_TRY(read_heap_sample(r, line, &kind, err));
    }

    return hearth_legacy_close_sample(r, err);
}
