/* perf_samples.c -- the order of fields is that of the kernel's perf_output_sample. */
#include "perf/perf_samples.h"

/* Bits of read_format. */
enum read_bit {
    READ_ENABLED = 1 << 0,
    READ_RUNNING = 1 << 1,
    READ_ID = 1 << 2,
    READ_GROUP = 1 << 3,
    READ_LOST = 1 << 4,
};

/* The number of 8-byte fields for bits of sample_type. */
static unsigned count_fields(uint64_t sample_type, uint64_t bits)
{
    return (unsigned)__builtin_popcountll(sample_type & bits);
}

uint32_t hearth_perf_sample_event(const struct perf_file *file, struct hearth_str body)
{
    uint64_t type = file->events[0].sample_type;
    struct perf_cursor c = perf_cursor_at(body);

    if (file->n_events == 1 || (type & (PERF_HAS_IDENTIFIER | PERF_HAS_ID)) == 0) {
        return 0;
    }

    if ((type & PERF_HAS_IDENTIFIER) == 0) {
        perf_skip(
            &c, 8 * count_fields(type, PERF_HAS_IP | PERF_HAS_TID | PERF_HAS_TIME | PERF_HAS_ADDR));
    }

    uint64_t id = perf_u64(&c);

    return id == 0 ? 0 : hearth_perf_find_event(file, id);
}

uint64_t hearth_perf_sample_time(const struct perf_event *event, struct hearth_str body)
{
    struct perf_cursor c = perf_cursor_at(body);

    if ((event->sample_type & PERF_HAS_TIME) == 0) {
        return 0;
    }

    perf_skip(
        &c, 8 * count_fields(event->sample_type, PERF_HAS_IDENTIFIER | PERF_HAS_IP | PERF_HAS_TID));

    return perf_u64(&c);
}

uint64_t hearth_perf_record_time(const struct perf_event *first, struct hearth_str body)
{
    struct perf_cursor c = perf_cursor_at(body);
    size_t n_behind =
        8 * (1 + count_fields(first->sample_type, PERF_HAS_ID | PERF_HAS_STREAM_ID | PERF_HAS_CPU |
                                                      PERF_HAS_IDENTIFIER));

    if (!first->has_sample_ids || (first->sample_type & PERF_HAS_TIME) == 0 || n_behind > body.n) {
        return 0;
    }

    perf_skip(&c, body.n - n_behind);

    return perf_u64(&c);
}

/*
 * Takes the counters of a sample. A group has number, times, and value, id and lost samples of
 * each; a single counter has its value first.
 */
static void take_counters(struct perf_cursor *c, uint64_t format, struct perf_sample *sample)
{
    uint64_t n_times =
        (format & READ_ENABLED) / READ_ENABLED + (format & READ_RUNNING) / READ_RUNNING;
    uint64_t n_fields = 1 + (format & READ_ID) / READ_ID + (format & READ_LOST) / READ_LOST;
    bool is_group = (format & READ_GROUP) != 0;
    uint64_t n = is_group ? perf_u64(c) : 1;

    n = n > perf_left(c) ? perf_left(c) + 1 : n; /* no overflow, and beyond the end */
    if (is_group) {
        perf_skip(c, 8 * n_times);
    }
    sample->counters = *c;
    sample->n_counters = (format & READ_ID) != 0 ? n : 0;
    perf_skip(c, 8 * ((is_group ? 0 : n_times) + n * n_fields));
}

void hearth_perf_counter_read(const struct perf_event *event, struct perf_sample *sample,
                              uint64_t *ret_value, uint64_t *ret_id)
{
    struct perf_cursor *c = &sample->counters;
    uint64_t format = event->read_format;

    *ret_value = perf_u64(c);
    if ((format & READ_GROUP) == 0) {
        perf_skip(c, 8 * ((format & READ_ENABLED) / READ_ENABLED +
                          (format & READ_RUNNING) / READ_RUNNING));
    }
    *ret_id = perf_u64(c);
    perf_skip(c, 8 * ((format & READ_LOST) / READ_LOST));
}

bool hearth_perf_sample_read(const struct perf_event *event, struct hearth_str body,
                             struct perf_sample *ret)
{
    uint64_t type = event->sample_type;
    struct perf_cursor c = perf_cursor_at(body);
    struct perf_sample sample = {0};

    perf_skip(&c, 8 * count_fields(type, PERF_HAS_IDENTIFIER));
    sample.ip = (type & PERF_HAS_IP) != 0 ? perf_u64(&c) : 0;
    if ((type & PERF_HAS_TID) != 0) {
        sample.pid = perf_u32(&c);
        sample.tid = perf_u32(&c);
    }

    sample.time = (type & PERF_HAS_TIME) != 0 ? perf_u64(&c) : 0;
    perf_skip(&c, 8 * count_fields(type, PERF_HAS_ADDR | PERF_HAS_ID | PERF_HAS_STREAM_ID |
                                             PERF_HAS_CPU));
    sample.has_period = (type & PERF_HAS_PERIOD) != 0;
    sample.period = sample.has_period ? perf_u64(&c) : 0;
    if ((type & PERF_HAS_READ) != 0) {
        take_counters(&c, event->read_format, &sample);
    }

    /* What follows the addresses is ignored. */
    if ((type & PERF_HAS_CALLCHAIN) != 0) {
        sample.n_chain = perf_u64(&c);
        c.failed = c.failed || sample.n_chain > perf_left(&c) / 8;
        sample.chain = c;
    }

    *ret = sample;

    return !c.failed;
}
