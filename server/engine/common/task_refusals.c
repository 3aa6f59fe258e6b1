/* task_refusals.c -- texts about refused data of tasks (contract: task_refusals.h). */
#include "common/task_refusals.h"

#include "hearth/base/human.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

void hearth_task_clock_text(double ahead_ns, char out[96])
{
    char by[48];
    hearth_human_value(fabs(ahead_ns), HEARTH_STR("nanoseconds"), by);
    (void)snprintf(out, 96, "the agent's clock is %s %s the server's", by,
                   ahead_ns < 0 ? "behind" : "ahead of");
}

struct hearth_str hearth_task_refusal_text(const struct hearth_err *err, struct hearth_arena *arena)
{
    assert(arena != NULL);

    return hearth_str_c(hearth_arena_printf(arena, "what it sent was refused: %s", err->msg));
}
