/*
 * legacy_profile.h -- profiles in the formats that pprof had before protobuf: what gperftools and
 * tcmalloc write, and what Go writes with debug=1.
 *
 *     text                                              types
 *     heap profile: ... @ heap..., heap_v2, heapz_v2    objects/count, space/bytes; if there are
 *                                                       freed ones, alloc_ and inuse_ of both
 *     heap profile: ... @ heapprofile, growth           the same, as it is written
 *     --- contention:, --- contentionz, --- mutex:      contentions/count, delay/nanoseconds
 *     NAME profile: total N (Go: goroutine, ...)        NAME/count
 *     machine words (CPU profile of gperftools)         samples/count, cpu/nanoseconds
 *
 * Heap profiles that were sampled (heap_v2, and Go's) are scaled to the whole, contentions by their
 * period, cycles to nanoseconds, as pprof does. Lines before the first sample that begin with "---"
 * and "heapz" are skipped.
 *
 * Addresses are those of the call, one byte before the address of return that is written; the table
 * of mappings (MAPPED_LIBRARIES, or "--- Memory map: ---") gives them their binaries. If Go wrote
 * the functions of a stack as comments, the stack has those: Go leaves out functions of its runtime
 * at both ends. Labels of goroutines are labels of the samples.
 *
 * A line that is not a sample is INVALID_ARGUMENT with its number. Other lines among the mappings
 * are skipped and counted.
 *
 * Threads: pure.
 * Source:  https://github.com/google/pprof, its reader of legacy profiles; runtime/pprof of Go.
 */
#ifndef HEARTH_FORMAT_LEGACY_PROFILE_H
#define HEARTH_FORMAT_LEGACY_PROFILE_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

struct hearth_legacy_notes {
    const char *name;       /* __name__, if the sample types do not say it; NULL: they do */
    uint64_t skipped_lines; /* among the mappings */
    struct hearth_pprof_notes cut;
};

/* True if the bytes begin as one of these formats does. */
bool hearth_legacy_recognise(struct hearth_str bytes);

/*
 * The profile lives in the arena. Errors: INVALID_ARGUMENT; OUT_OF_RANGE if values exceed 63 bits;
 * RESOURCE_EXHAUSTED for one of the limits; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_decode(struct hearth_str bytes,
                                        const struct hearth_pprof_limits *limits,
                                        struct hearth_arena *arena, struct hearth_profile *ret,
                                        struct hearth_legacy_notes *notes, struct hearth_err *err);

#endif
