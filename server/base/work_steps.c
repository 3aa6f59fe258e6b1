/* work_steps.c -- the list of steps of this thread (contract: hearth/base/work_steps.h). */
#include "hearth/base/work_steps.h"

#include "hearth/base/clock.h"

#include <assert.h>

static _Thread_local struct hearth_work_steps *g_steps;

void hearth_work_steps_begin(struct hearth_work_steps *steps, const void *owner)
{
    assert(g_steps == NULL && owner != NULL);

    steps->owner = owner;
    steps->n = steps->n_left_out = 0;
    g_steps = steps;
}

void hearth_work_steps_end(void)
{
    assert(g_steps != NULL);

    g_steps = NULL;
}

const struct hearth_work_steps *hearth_work_steps_of(const void *owner)
{
    return g_steps != NULL && g_steps->owner == owner ? g_steps : NULL;
}

void hearth_work_step_add(const char *name, int64_t began_mono_ns)
{
    struct hearth_work_steps *steps = g_steps;

    if (steps == NULL) {
        return;
    }
    if (steps->n == HEARTH_WORK_STEPS) {
        steps->n_left_out++;
        return;
    }

    steps->v[steps->n++] = (struct hearth_work_step){name, began_mono_ns, hearth_clock_mono_ns()};
}
