/* clock.c -- wall, monotonic and CPU clocks. */
#include "hearth/base/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static _Atomic int64_t g_fake_ns; /* 0: use the real clock; relaxed: set by tests only */

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * HEARTH_NS_PER_SEC + ts.tv_nsec;
}

int64_t hearth_clock_wall_ns(void)
{
    int64_t fake = atomic_load_explicit(&g_fake_ns, memory_order_relaxed);
    return fake != 0 ? fake : read_clock(CLOCK_REALTIME);
}

int64_t hearth_clock_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t hearth_clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void hearth_clock_fake(int64_t wall_ns)
{
    atomic_store_explicit(&g_fake_ns, wall_ns, memory_order_relaxed);
}

void hearth_clock_format(int64_t wall_ns, char out[32])
{
    int64_t sec = wall_ns / HEARTH_NS_PER_SEC;
    int64_t rest = wall_ns % HEARTH_NS_PER_SEC;

    /* Before 1970: round the seconds down. */
    if (rest < 0) {
        rest += HEARTH_NS_PER_SEC;
        sec--;
    }

    time_t t = (time_t)sec;
    struct tm tm;
    if (gmtime_r(&t, &tm) == NULL) {
        (void)snprintf(out, 32, "%lld", (long long)wall_ns);
        return;
    }

    /* Years have four digits: int64 nanoseconds reach from 1677 to 2262. */
    size_t n = strftime(out, 27, "%Y-%m-%dT%H:%M:%S", &tm);
    assert(n > 0);
    (void)snprintf(out + n, 6, ".%03uZ", (unsigned)(rest / HEARTH_NS_PER_MS) % 1000u);
}
