/*
 * task_profile.h -- a chunk of an agent's stack traces as an ordinary profile (private to the
 * engine).
 *
 * Threads: pure.
 */
#ifndef HEARTH_ENGINE_TASK_PROFILE_H
#define HEARTH_ENGINE_TASK_PROFILE_H

#include "hearth/model/profile.h"
#include "hearth/model/task_chunk.h"

#define HEARTH_KERNEL_MAPPING "[kernel]"
#define HEARTH_USER_MAPPING   "[user]" /* mapping of a process whose name is unknown */

struct hearth_task_profile_about {
    struct hearth_str process; /* name of the process; empty: unknown */
    int64_t oncpu_period_ns;   /* time that one dump stands for; 0: unknown */
    int64_t time_ns, duration_ns;
};

/* The __name__ of profiles of a kind. */
struct hearth_str hearth_task_profile_name(enum hearth_stack_kind kind);
/*
 * Make a profile in arena; its texts are borrowed from the chunk. OUT_OF_RANGE: nanoseconds of
 * dumps exceed 64 bits; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_profile_make(const struct hearth_task_chunk *chunk,
                                            const struct hearth_task_profile_about *about,
                                            struct hearth_arena *arena, struct hearth_profile *ret,
                                            struct hearth_err *err);

#endif
