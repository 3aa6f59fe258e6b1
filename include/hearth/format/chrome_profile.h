/*
 * chrome_profile.h -- .cpuprofile and .heapprofile files of V8 (Chrome's DevTools, node --cpu-prof
 * and --heap-prof, the Inspector protocol) as profiles.
 *
 * A CPU profile has the types samples/count and wall/nanoseconds. As in DevTools, a sample lasts
 * until the next one, the last until endTime; times before that of an earlier sample count as that
 * time. A file without samples has the hit counts of its nodes: each hit lasts the same part of the
 * time between startTime and endTime. (program), (idle) and (garbage collector) are frames without
 * callers; (root) is no frame. Times are of a monotonic clock, so that time_ns is not set. A node
 * names its children, or its parent, as nodes of traces do.
 *
 * A heap profile has the type inuse_space/bytes: the bytes that each node's own allocations still
 * hold. Its list of single samples is ignored.
 *
 * A function without name is "(anonymous)"; its line is the one at which the function begins.
 *
 * INVALID_ARGUMENT, with the byte, node or sample: a repeated node, a child or sample of an unknown
 * node, a node with two parents or among its own callers, other numbers of times than of samples, a
 * negative hit count or size.
 *
 * Threads: pure.
 * Source:  Profiler.Profile and HeapProfiler.SamplingHeapProfile of the Chrome DevTools Protocol.
 */
#ifndef HEARTH_FORMAT_CHROME_PROFILE_H
#define HEARTH_FORMAT_CHROME_PROFILE_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

/*
 * Profiles live in the arena. Errors: INVALID_ARGUMENT; OUT_OF_RANGE if values exceed 63 bits in
 * sum; RESOURCE_EXHAUSTED for one of the limits; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_cpuprofile_decode(struct hearth_str bytes,
                                            const struct hearth_pprof_limits *limits,
                                            struct hearth_arena *arena, struct hearth_profile *ret,
                                            struct hearth_pprof_notes *notes,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_heapprofile_decode(struct hearth_str bytes,
                                             const struct hearth_pprof_limits *limits,
                                             struct hearth_arena *arena, struct hearth_profile *ret,
                                             struct hearth_pprof_notes *notes,
                                             struct hearth_err *err);

#endif
