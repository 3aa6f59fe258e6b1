/* sizing.c -- sizing.def applied. */
#include "sizing.h"

#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include <assert.h>
#include <math.h>

#define MINUTE 60.0
#define HOUR   3600.0
#define DAY    86400.0

#define CONSTANT(id, value, unit, source) static const double g_##id = (value);
#include "sizing.def"

const struct sizing_field sizing_fields[SIZING_N_INPUTS] = {
#define INPUT(id, flag, kind, text_default, text) {"--" flag, SIZING_##kind, text_default, text},
#include "sizing.def"
};

const char *const sizing_core_names[SIZING_N_CORES] = {
    [SIZING_CORE_RECEIVE] = "receive",
    [SIZING_CORE_COMMIT] = "commit",
    [SIZING_CORE_ROLL_UP] = "roll up",
    [SIZING_CORE_COMPACT] = "compact",
};

const char *const sizing_disk_names[SIZING_N_DISKS] = {
    [SIZING_DISK_PROFILE] = "profiles",
    [SIZING_DISK_SEGMENT] = "compacted profiles",
    [SIZING_DISK_10M] = "blocks of 10 min",
    [SIZING_DISK_1H] = "blocks of 1 h",
    [SIZING_DISK_1D] = "blocks of 1 d",
    [SIZING_DISK_TOTALS] = "totals over time",
    [SIZING_DISK_DICT] = "stacks and their names",
};

enum hearth_status sizing_parse(enum sizing_input_id id, const char *text, double *ret,
                                struct hearth_err *err)
{
    assert(id < SIZING_N_INPUTS && text != NULL);
    const struct sizing_field *field = &sizing_fields[id];
    struct hearth_str value = hearth_str_c(text);
    int64_t n;

    switch (field->kind) {
    case SIZING_SWITCH:
        if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s must be on or off, not \"%.60s\"",
                               field->flag, text);
        }
        *ret = strcmp(text, "on") == 0 ? 1 : 0;
        return HEARTH_OK;
    case SIZING_DURATION:
        if (strcmp(text, "0") == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "%s: data kept for ever has no size; give a duration, e.g. 365d",
                               field->flag);
        }
        if (hearth_duration_parse(value, &n, err) != HEARTH_OK) {
            hearth_err_prefix(err, "%s", field->flag);
            return HEARTH_INVALID_ARGUMENT;
        }
        *ret = (double)n / HEARTH_NS_PER_SEC;
        return HEARTH_OK;
    default:
        if (!hearth_str_to_i64(value, &n) || n < (id == SIZING_SERVICES ? 0 : 1) ||
            n > INT64_C(1000000000)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "%s must be a whole number up to 1000000000, not \"%.60s\"",
                               field->flag, text);
        }
        *ret = (double)n;
        return HEARTH_OK;
    }
}

/* What all formulas need. */
struct fleet {
    double processes, services, pods; /* pods: processes of a service */
    double interval, samples, stacks, servers;
};

/* Bytes of a block that sums `n` profiles. Different stacks come in like a saturating curve; a
 * value takes bytes as it has digits. */
static double block_bytes(const struct fleet *f, double n)
{
    double m = n * f->samples;
    double stacks = f->stacks * m / (m + g_STACKS_HALF * f->stacks);
    stacks = stacks < f->samples ? fmin(f->samples, f->stacks) : stacks;
    double digits = fmax(0, log2(m / stacks) - 4);
    return g_BLOCK_BYTES + stacks * (g_BLOCK_STACK_BYTES + g_BLOCK_DIGIT_BYTES * digits);
}

/* All blocks of one length, of each process and of each service. */
struct tier {
    double series_bytes, whole_bytes; /* a day */
    double kept_s;
    bool lacks_series, lacks_whole; /* they would sum few profiles, so they are left out */
    double late_s; /* for so long they are stored nevertheless, when the profiles are dropped */
};

static struct tier compute_tier(const double *in, const struct fleet *f, double length,
                                double retain)
{
    double n = fmax(1, length / f->interval); /* profiles of a process in a block */
    double blocks = DAY / fmax(length, f->interval);
    double whole_n = fmax(1, f->pods * length / f->interval);
    double whole_blocks = DAY / fmax(length, f->interval / f->pods);

    double raw = in[SIZING_RETAIN_RAW];
    bool is_short = length < HOUR;
    bool may_lack = is_short ? retain <= raw : raw >= g_MIN_RAW_DAYS * DAY;
    double min_n = is_short ? g_MIN_PROFILES : g_MIN_PROFILES_1H;
    double min_whole_n = is_short ? g_MIN_WHOLE_FACTOR * min_n : min_n;

    struct tier ret = {
        .series_bytes = f->processes * blocks * block_bytes(f, n),
        .whole_bytes = f->services * whole_blocks * block_bytes(f, whole_n),
        .kept_s = retain + g_LEAF_DAYS * DAY,
        .lacks_series = may_lack && n < min_n,
    };
    ret.lacks_whole = ret.lacks_series && whole_n < min_whole_n;
    ret.late_s = retain > raw ? ret.kept_s - raw : 0;

    return ret;
}

static void set_disk(struct sizing *ret, enum sizing_disk what, double kept_s, double bytes_per_day)
{
    ret->disk[what].kept_s = kept_s;
    ret->disk[what].bytes = bytes_per_day * kept_s / DAY;
    ret->disk_bytes += ret->disk[what].bytes;
}

static void add_tier(struct sizing *ret, enum sizing_disk what, const struct tier *tier)
{
    double series_s = tier->lacks_series ? tier->late_s : tier->kept_s;
    double whole_s = tier->lacks_whole ? tier->late_s : tier->kept_s;

    ret->disk[what].kept_s = tier->kept_s;
    ret->disk[what].bytes = (tier->series_bytes * series_s + tier->whole_bytes * whole_s) / DAY;
    ret->disk_bytes += ret->disk[what].bytes;

    /* The last day of blocks. */
    ret->cache_bytes +=
        (tier->lacks_series ? 0 : tier->series_bytes) + (tier->lacks_whole ? 0 : tier->whole_bytes);
}

static void compute_disk(const double *in, const struct fleet *f, struct sizing *ret)
{
    double leaf = g_LEAF_DAYS * DAY, per_day = ret->profiles_per_s * DAY;
    bool compacts = in[SIZING_COMPACTION] > 0 && in[SIZING_COMPACT_AFTER] < in[SIZING_RETAIN_RAW];
    double kept = in[SIZING_RETAIN_RAW] + leaf;
    double hot = compacts ? fmin(kept, in[SIZING_COMPACT_AFTER] + HOUR + leaf) : kept;

    set_disk(ret, SIZING_DISK_PROFILE, hot,
             per_day * (g_ROW_BYTES + g_ROW_SAMPLE_BYTES * f->samples));

    /* A day's rows stay until all its hours are compacted, so for a while there are both. */
    set_disk(ret, SIZING_DISK_SEGMENT, compacts ? kept - in[SIZING_COMPACT_AFTER] : 0,
             per_day * g_SEGMENT_SAMPLE_BYTES * f->samples);
    const struct tier short_tier = compute_tier(in, f, 10 * MINUTE, in[SIZING_RETAIN_10M]);
    const struct tier hours = compute_tier(in, f, HOUR, in[SIZING_RETAIN_1H]);
    const struct tier days = compute_tier(in, f, DAY, in[SIZING_RETAIN_1D]);
    add_tier(ret, SIZING_DISK_10M, &short_tier);
    add_tier(ret, SIZING_DISK_1H, &hours);
    add_tier(ret, SIZING_DISK_1D, &days);
    set_disk(ret, SIZING_DISK_TOTALS, in[SIZING_RETAIN_1H] + leaf, per_day * g_TOTALS_BYTES);
    double longest = fmax(fmax(in[SIZING_RETAIN_RAW], in[SIZING_RETAIN_10M]),
                          fmax(in[SIZING_RETAIN_1H], in[SIZING_RETAIN_1D]));
    set_disk(ret, SIZING_DISK_DICT, longest + leaf,
             f->services * f->servers * f->stacks * g_DICT_STACK_BYTES);
    ret->wal_bytes = g_WAL_BYTES;
    ret->disk_wanted_bytes = ret->disk_bytes * (1 + g_DISK_HEADROOM) + ret->wal_bytes;
}

static void compute_cores(const double *in, const struct fleet *f, struct sizing *ret)
{
    double rate = ret->profiles_per_s;
    ret->cores[SIZING_CORE_RECEIVE] =
        rate * (g_RECEIVE_US + g_RECEIVE_SAMPLE_US * f->samples) / 1e6;
    ret->cores[SIZING_CORE_COMMIT] =
        (fmin(rate, g_MAX_BATCHES * f->servers) * g_COMMIT_BATCH_US + rate * g_COMMIT_ROW_US) / 1e6;
    ret->cores[SIZING_CORE_ROLL_UP] = ret->samples_per_s * g_ROLL_SAMPLE_US / 1e6;
    ret->cores[SIZING_CORE_COMPACT] =
        in[SIZING_COMPACTION] > 0 ? ret->samples_per_s * g_COMPACT_SAMPLE_US / 1e6 : 0;
    for (size_t i = 0; i < SIZING_N_CORES; i++) {
        ret->cores_busy += ret->cores[i];
    }
    ret->cores_wanted = fmax(1, ceil(ret->cores_busy / g_BUSY));
}

void sizing_compute(const double inputs[SIZING_N_INPUTS], struct sizing *ret)
{
    double processes = inputs[SIZING_PROCESSES];
    double services = inputs[SIZING_SERVICES] > 0 ? inputs[SIZING_SERVICES] : ceil(processes / 10);

    services = fmin(services, processes);
    struct fleet f = {
        .processes = processes,
        .services = services,
        .pods = processes / services,
        .interval = inputs[SIZING_INTERVAL],
        .samples = inputs[SIZING_SAMPLES],
        .stacks = fmax(inputs[SIZING_STACKS], inputs[SIZING_SAMPLES]),
        .servers = inputs[SIZING_SERVERS],
    };
    *ret = (struct sizing){.profiles_per_s = processes / f.interval};
    ret->samples_per_s = ret->profiles_per_s * f.samples;
    ret->wire_bytes_per_s = ret->samples_per_s * g_WIRE_SAMPLE_BYTES;
    compute_disk(inputs, &f, ret);
    compute_cores(inputs, &f, ret);
    ret->server_bytes =
        g_SERVER_BYTES + g_BUFFER_BYTES +
        fmin(f.services * f.stacks * g_STACK_MEMORY_BYTES, g_STACK_MEMORY_LIMIT_BYTES) +
        f.processes * g_SERIES_MEMORY_BYTES;
    ret->cache_bytes += ret->profiles_per_s * HOUR * (g_ROW_BYTES + g_ROW_SAMPLE_BYTES * f.samples);
}
