/*
 * self_profile.h -- takes a CPU profile of this process, with all its threads.
 *
 * While a profile is taken, each thread has a timer on its CPU time that interrupts it by SIGPROF a
 * hundred times per second of CPU time. The handler walks the stack by the unwind tables that every
 * library has (libgcc's unwinder; glibc finds the tables without a lock) and writes to memory that
 * was allocated before. Between profiles there are no timers and no extra threads.
 *
 * Threads: safe; one profile at a time.
 */
#ifndef HEARTH_APP_SELF_PROFILE_H
#define HEARTH_APP_SELF_PROFILE_H

#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"

/*
 * Blocks for duration_ns (above 0), then appends gzipped pprof: samples/count and cpu/nanoseconds,
 * with functions, mappings and build ids.
 *
 * Returns OK; RESOURCE_EXHAUSTED if another profile is being taken; CANCELLED or DEADLINE_EXCEEDED,
 * within 0.1 s; UNAVAILABLE if the system refuses timers; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_self_profile(int64_t duration_ns, struct hearth_cancel *cancel,
                                       struct hearth_buf *out, struct hearth_err *err);

#endif
