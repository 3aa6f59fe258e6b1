/* log_rate.c -- a counter per second. */
#include "hearth/base/log_rate.h"

#include "hearth/base/clock.h"

#include <assert.h>

bool hearth_log_rate_take(struct hearth_log_rate *rate, int per_second, int64_t now_mono_ns,
                          int *ret_missed)
{
    assert(per_second > 0);
    int64_t second = now_mono_ns / HEARTH_NS_PER_SEC;

    if (atomic_exchange(&rate->window_s, second) != second) {
        atomic_store(&rate->n_in_window, 0);
    }

    if (atomic_fetch_add(&rate->n_in_window, 1) >= per_second) {
        (void)atomic_fetch_add(&rate->n_missed, 1);
        return false;
    }

    *ret_missed = atomic_exchange(&rate->n_missed, 0);

    return true;
}
