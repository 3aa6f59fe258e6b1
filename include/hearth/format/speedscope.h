/*
 * speedscope.h -- files of speedscope, which py-spy, pyinstrument and others write, as profiles.
 *
 * A file has a table of frames and several profiles, such as one for each thread: samples with
 * weights, or events that open and close frames. Profiles of one kind of unit become one profile,
 * in which each sample has the name of its part as the label "thread name", if there are several
 * parts:
 *
 *     nanoseconds to seconds   wall: wall/nanoseconds
 *     bytes                    memory: samples/bytes
 *     none                     process_cpu: samples/count
 *
 * A frame in a stack may have an array of its own, which speedscope accepts: [[3], [4]] is [3, 4].
 * Values are rounded to the nearest integer of that unit. A sample without frames has the frame
 * "[no stack]"; time between events while no frame is open is not counted. Frames that are open
 * after the last event are closed at endValue.
 *
 * INVALID_ARGUMENT, with the byte and the index of the profile, sample or event: a frame that is
 * not in the table; other numbers of weights than of samples; a negative weight; a time that is
 * negative or before that of the event before it; an event that closes another frame than the
 * innermost one; an unknown unit or type.
 *
 * Threads: pure.
 * Source:  https://www.speedscope.app/file-format-schema.json
 */
#ifndef HEARTH_FORMAT_SPEEDSCOPE_H
#define HEARTH_FORMAT_SPEEDSCOPE_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

#define HEARTH_SPEEDSCOPE_MAX_PROFILES 3 /* kinds of units */

struct hearth_speedscope_file {
    struct {
        const char *name; /* __name__; static */
        struct hearth_profile profile;
    } profiles[HEARTH_SPEEDSCOPE_MAX_PROFILES];
    size_t n_profiles;
    struct hearth_pprof_notes notes;
};

/*
 * Profiles live in the arena. Errors: INVALID_ARGUMENT; OUT_OF_RANGE if values exceed 63 bits in
 * sum; RESOURCE_EXHAUSTED for one of the limits; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_speedscope_decode(struct hearth_str bytes,
                                            const struct hearth_pprof_limits *limits,
                                            struct hearth_arena *arena,
                                            struct hearth_speedscope_file *ret,
                                            struct hearth_err *err);

#endif
