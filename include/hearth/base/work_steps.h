/*
 * work_steps.h -- the timed steps of the work that a thread does for one request, for its trace.
 *
 * While a thread has a list, the steps that it adds are kept, up to HEARTH_WORK_STEPS; further ones
 * are counted. Without a list, adding does nothing: it reads one thread-local pointer.
 *
 * Threads: a list belongs to one thread, from _begin to _end.
 */
#ifndef HEARTH_BASE_WORK_STEPS_H
#define HEARTH_BASE_WORK_STEPS_H

#include "hearth/base/compiler.h"

#define HEARTH_WORK_STEPS 24u

struct hearth_work_step {
    const char *name; /* static */
    int64_t began_mono_ns, ended_mono_ns;
};

struct hearth_work_steps {
    const void *owner; /* whose work it is; compared only */
    struct hearth_work_step v[HEARTH_WORK_STEPS];
    uint32_t n, n_left_out;
};

/* From now on, the steps of this thread are kept in `steps`, which is emptied. */
void hearth_work_steps_begin(struct hearth_work_steps *steps, const void *owner);
void hearth_work_steps_end(void);
/* The list of this thread if it is for this owner; otherwise NULL. */
const struct hearth_work_steps *hearth_work_steps_of(const void *owner);
/* Adds a step that ends now. */
void hearth_work_step_add(const char *name, int64_t began_mono_ns);

#endif
