/*
 * cancel.h -- cancellation flag and deadline of a request; checked at the heads of long loops and
 * while waiting.
 *
 * Threads: any thread may set the flag (relaxed atomics); one request checks it.
 */
#ifndef HEARTH_BASE_CANCEL_H
#define HEARTH_BASE_CANCEL_H

#include "hearth/base/clock.h"
#include "hearth/base/status.h"

#include <stdatomic.h>

struct hearth_cancel {
    _Atomic bool cancelled;
    int64_t deadline_mono_ns; /* INT64_MAX: no deadline; set before the request starts */
};

static inline void hearth_cancel_init(struct hearth_cancel *cancel, int64_t deadline_mono_ns)
{
    atomic_init(&cancel->cancelled, false);
    cancel->deadline_mono_ns = deadline_mono_ns;
}

/* OK, CANCELLED, or DEADLINE_EXCEEDED. `cancel` may be NULL. */
static inline enum hearth_status hearth_cancel_check(struct hearth_cancel *cancel,
                                                     struct hearth_err *err)
{
    if (cancel == NULL) {
        return HEARTH_OK;
    }
    if (atomic_load_explicit(&cancel->cancelled, memory_order_relaxed)) {
        return HEARTH_FAIL(err, HEARTH_CANCELLED, "the request was cancelled by the client");
    }
    if (cancel->deadline_mono_ns != INT64_MAX &&
        hearth_clock_mono_ns() >= cancel->deadline_mono_ns) {
        return HEARTH_FAIL(err, HEARTH_DEADLINE_EXCEEDED,
                           "request timed out: shorten the range or add label matchers");
    }
    return HEARTH_OK;
}

#endif
