/*
 * perf_samples.h -- the fields of samples, and where they are in records (private to the reader of
 * perf.data).
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_PERF_SAMPLES_H
#define HEARTH_FORMAT_PERF_SAMPLES_H

#include "perf/perf_file.h"

struct perf_sample {
    uint64_t ip, time, period; /* 0 where the event does not record them */
    bool has_period;
    uint32_t pid, tid;
    /* Counters of its event, or of all events of its group, that are read with it. */
    struct perf_cursor counters;
    uint64_t n_counters;      /* 0: none, or without ids */
    struct perf_cursor chain; /* n_chain addresses and marks, leaf first */
    uint64_t n_chain;
};

/*
 * The event of a sample; HEARTH_IDMAP_NONE if the recording does not describe it. The file has an
 * event.
 */
uint32_t hearth_perf_sample_event(const struct perf_file *file, struct hearth_str body);

/* Reads the next counter of a sample: its value so far, and the id of its event. */
void hearth_perf_counter_read(const struct perf_event *event, struct perf_sample *sample,
                              uint64_t *ret_value, uint64_t *ret_id);

/* Reads a sample of an event; false if it is truncated. */
HEARTH_MUST_CHECK
bool hearth_perf_sample_read(const struct perf_event *event, struct hearth_str body,
                             struct perf_sample *ret);

/* The time of a sample, or of another record of a file with sample_id_all; 0 if it has none. */
uint64_t hearth_perf_sample_time(const struct perf_event *event, struct hearth_str body);
uint64_t hearth_perf_record_time(const struct perf_event *first, struct hearth_str body);

#endif
