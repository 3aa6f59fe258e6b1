/*
 * jfr.h -- recordings of Java's Flight Recorder as profiles: those of the JDK (11 and later), of
 * async-profiler and of Datadog's profiler.
 *
 * A recording is a sequence of chunks, each with its own types, constants and clock. The layout of
 * every event is read from the chunk's metadata. The table of events that become samples:
 * server/format/jfr/jfr_events.def; other events are ignored. Events of one kind make one profile,
 * so that a recording with CPU samples, allocations and locks yields three.
 *
 * Each sample has its thread as labels ("thread name", "thread id", "thread native id"); spans and
 * traces of events that have them ("span_id", "span_name", "trace_id", "local root span id", "trace
 * endpoint"); and the labels of its context, if there is a snapshot of labels.
 *
 * Frames are named package.Class.method; native frames by their symbol, with their library as
 * mapping. Numbers in names of generated classes and libraries become "_", so that equal code has
 * one name. A stack trace that the profiler truncated has a root "[truncated]", a sample without
 * stack trace the frame "[no stack]". A profile has the sample types that the recording has events
 * of.
 *
 * Threads: pure.
 * Source:  the file format 2.0 and 2.1 of OpenJDK's Flight Recorder, which async-profiler and
 *          Datadog write, too. Labels: LabelsSnapshot of Pyroscope's Java agent.
 */
#ifndef HEARTH_FORMAT_JFR_H
#define HEARTH_FORMAT_JFR_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

#define HEARTH_JFR_HEADER_BYTES 68
#define HEARTH_JFR_MAX_PROFILES 16

/*
 * INVALID_ARGUMENT unless the bytes, from the first to the last, are chunks of version 1 or 2; the
 * message says what is wrong at which byte.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_check(struct hearth_str bytes, struct hearth_err *err);

struct hearth_jfr_options {
    struct hearth_pprof_limits limits; /* max_types and max_sample_labels are ignored */
    /* Hz, of recordings that do not tell theirs; 0: the default, 50 of the JDK. async-profiler then
     * has the interval 0, which means 100, and 20 of wall time */
    int64_t sample_rate;
    struct hearth_str labels; /* a LabelsSnapshot, inflated; may be empty */
};

struct hearth_jfr_profile {
    const char *name; /* __name__; static */
    struct hearth_profile profile;
};

struct hearth_jfr_recording {
    struct hearth_jfr_profile profiles[HEARTH_JFR_MAX_PROFILES];
    size_t n_profiles;
    struct hearth_str
        event; /* async-profiler's setting: "cpu", "itimer", "wall", ...; "" if none */
    struct hearth_pprof_notes notes;
};

/*
 * Decodes plain (inflated) bytes. Profiles live in the arena and do not borrow from the bytes; a
 * recording without samples has none. Returns OK; INVALID_ARGUMENT, which names the chunk and the
 * fault; OUT_OF_RANGE if values exceed 63 bits in sum; RESOURCE_EXHAUSTED for one of the limits;
 * NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_decode(struct hearth_str bytes,
                                     const struct hearth_jfr_options *options,
                                     struct hearth_arena *arena, struct hearth_jfr_recording *ret,
                                     struct hearth_err *err);

#endif
