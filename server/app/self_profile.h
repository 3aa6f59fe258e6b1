/*
 * self_profile.h -- the CPU profile of this process: where all its threads spend their time.
 *
 * For as long as one is taken, each thread has a timer of its own CPU time, which interrupts it a hundred times per second
 * of it (SIGPROF). The handler walks the stack by the unwind tables that every library has (libgcc's unwinder; glibc
 * finds the tables without a lock), into memory that was taken before. Between profiles there are no timers and no
 * threads; nothing is measured.
 *
 * Threads: safe; one at a time.
 */
#ifndef HEARTH_APP_SELF_PROFILE_H
#define HEARTH_APP_SELF_PROFILE_H

#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"

/*
 * Takes duration_ns of the caller's time, then appends gzipped pprof: samples/count and cpu/nanoseconds, with functions,
 * mappings and build ids.
 *
 * Returns OK; RESOURCE_EXHAUSTED when one is being taken; CANCELLED or DEADLINE_EXCEEDED, within 0.1 s; UNAVAILABLE when
 * the system refuses timers; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_self_profile(int64_t duration_ns, struct hearth_cancel *cancel,
                                       struct hearth_buf *out, struct hearth_err *err);

#endif
