/*
 * perf_events.h -- profiles of the events of a recording (private to the reader of perf.data).
 *
 * Ownership: profiles and texts live in the arena of the file.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_PERF_EVENTS_H
#define HEARTH_FORMAT_PERF_EVENTS_H

#include "hearth/format/profile_builder.h"

#include "perf/perf_samples.h"
#include "perf/perf_space.h"

/* The profile of one event while its samples are added. */
struct perf_output {
    struct hearth_profile_builder *builder; /* NULL: no sample yet */
    struct perf_index locations;            /* of (place, address) and of command names */
    bool *has_functions;                    /* per mapping */
    size_t cap_mappings;
    bool has_values; /* the period of samples is known */
    uint64_t period; /* the period of all samples; 0 if they differ */
};

/* The name of an event as perf prints it. NULL text: no memory. */
struct hearth_str hearth_perf_event_name(const struct perf_event *event,
                                         struct hearth_arena *arena);
/* True if the period of samples is a time in nanoseconds. */
bool hearth_perf_event_is_clock(const struct perf_event *event);

/* Adds a sample, and prepares the output of its event with the first one. */
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_output_add(struct perf_output *output, struct perf_space *space,
                                          const struct perf_event *event,
                                          const struct perf_sample *sample, uint16_t misc,
                                          struct hearth_err *err);
/* The profile; without time and duration. */
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_output_finish(struct perf_output *output,
                                             const struct perf_event *event,
                                             struct hearth_arena *arena, struct hearth_profile *ret,
                                             struct hearth_err *err);
void hearth_perf_output_release(struct perf_output *output, struct hearth_arena *arena);

#endif
