/*
 * perf_data.h -- perf.data, the file of `perf record`, as profiles: one for each event.
 *
 * Both forms are read: files, and the stream of `perf record -o -`. Both may be compressed
 * (`perf record -z`). Recordings of big-endian machines are refused.
 *
 * A profile has the types samples/count and, where the period of its samples is known, the event:
 * cpu/nanoseconds for cpu-clock and task-clock, <event>/count for others. Events lose modifiers
 * ("cycles:u") unless two would then have the same name. Profiles are named process_cpu (the first
 * clock event) or by their event.
 *
 * The command name is the root frame, as in perf script's output; each sample has its thread as
 * labels ("thread name", "thread id"). Frames are addresses, for the file has no symbols of
 * programs: a location has a mapping, whose range is that in the file, so that equal code has one
 * location in all processes. Kernel addresses are relative to the start of their mapping. If the
 * program is given with the recording, its functions are named (format/elf_symbols.h).
 *
 * If the leader of a group is sampled ("{cycles,instructions}:S"), each event of the group has the
 * samples in which its counter has grown, with the growth as value.
 *
 * Limits:  HEARTH_PERF_MAX_EVENTS, HEARTH_PERF_MAX_IDS; max_entries: processes, threads, files and
 *          maps together; max_frames: frames of all stacks, and of all samples of groups.
 *
 * Copies of stacks (`--call-graph dwarf`) are not unwound. Branches, registers and traces of
 * hardware are ignored.
 *
 * Threads: pure.
 * Source:  tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h
 *          of Linux 6.1.
 */
#ifndef HEARTH_FORMAT_PERF_DATA_H
#define HEARTH_FORMAT_PERF_DATA_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

#define HEARTH_PERF_MAX_EVENTS 256
#define HEARTH_PERF_MAX_IDS    (1 << 20) /* of all events; one for each event, CPU and thread */

/* True if bytes begin like a perf.data of either byte order. */
bool hearth_perf_data_recognise(struct hearth_str bytes);

struct hearth_elf_symbols;

/* A program or library that is given with a recording. */
struct hearth_perf_object {
    struct hearth_str path;                   /* as recorded, or its last part */
    const struct hearth_elf_symbols *symbols; /* borrowed */
};

/*
 * The symbols of a file that has samples and is not among the objects; NULL: none. Called once for
 * each such file. Symbols of another build id than the recording's are not used.
 */
typedef const struct hearth_elf_symbols *hearth_perf_symbols_fn(void *context,
                                                                struct hearth_str path);

struct hearth_perf_options {
    struct hearth_pprof_limits limits;        /* max_types and max_sample_labels are ignored */
    const struct hearth_perf_object *objects; /* found by build id, otherwise by path */
    size_t n_objects;
    hearth_perf_symbols_fn *find_symbols; /* may be NULL */
    void *symbols_context;
};

struct hearth_perf_profile {
    struct hearth_str name; /* __name__ */
    struct hearth_profile profile;
};

struct hearth_perf_recording {
    struct hearth_perf_profile *profiles; /* of events that have samples */
    size_t n_profiles;
    uint64_t n_lost;    /* samples that the kernel or perf lost while they recorded */
    uint64_t n_unknown; /* samples whose event the recording does not describe; left out */
    uint64_t n_copied;  /* samples with a copy of their stack, of which only the leaf is known */
    struct hearth_pprof_notes notes;
};

/*
 * Decodes plain (inflated) bytes. Profiles live in the arena and do not borrow from the bytes; a
 * recording without samples has none. The time of profiles is 0, unless the recording tells the
 * time of day (`perf record -k CLOCK_MONOTONIC`).
 *
 * Returns OK; INVALID_ARGUMENT, which names the fault and its byte; OUT_OF_RANGE if values exceed
 * 63 bits in sum; RESOURCE_EXHAUSTED for one of the limits; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_data_decode(struct hearth_str bytes,
                                           const struct hearth_perf_options *options,
                                           struct hearth_arena *arena,
                                           struct hearth_perf_recording *ret,
                                           struct hearth_err *err);

#endif
