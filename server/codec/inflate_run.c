/* inflate_run.c -- where decompressors write, and how they fail. */
#include "inflate_run.h"

#include <assert.h>

enum hearth_status inflate_fail_memory(const struct inflate_run *run)
{
    return HEARTH_FAIL(run->err, HEARTH_NO_MEMORY, "no memory to inflate a %s stream", run->name);
}

enum hearth_status inflate_fail_limit(const struct inflate_run *run, size_t start)
{
    return HEARTH_FAIL(run->err, HEARTH_RESOURCE_EXHAUSTED,
                       "%s stream of %zu bytes inflates to more than %zu bytes", run->name,
                       run->in.n, run->end_limit - start);
}

enum hearth_status inflate_fail_truncated(const struct inflate_run *run)
{
    return HEARTH_FAIL(run->err, HEARTH_INVALID_ARGUMENT,
                       "%s stream is truncated: it ends after %zu bytes", run->name, run->in.n);
}

enum hearth_status inflate_fail_damaged(const struct inflate_run *run, const char *what)
{
    return HEARTH_FAIL(run->err, HEARTH_INVALID_ARGUMENT,
                       "%s stream is damaged near byte %zu of %zu: %s", run->name, run->in_pos,
                       run->in.n, what);
}

bool inflate_open_window(struct inflate_run *run, size_t wish, struct inflate_window *window)
{
    assert(run->out->n <= run->end_limit);

    size_t room = run->end_limit - run->out->n;
    window->beyond = room == 0;
    if (room == 0) {
        window->p = &window->extra;
        window->n = 1;
        return true;
    }

    window->n = wish < room ? wish : room;
    window->p = hearth_buf_reserve(run->out, window->n);

    return window->p != NULL;
}
