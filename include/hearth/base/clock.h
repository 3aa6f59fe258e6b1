/*
 * clock.h -- wall clock, monotonic clock and CPU time. Layers below `store` take times as
 * parameters instead.
 *
 * Threads: safe. Tests may set the wall clock with hearth_clock_fake().
 */
#ifndef HEARTH_BASE_CLOCK_H
#define HEARTH_BASE_CLOCK_H

#include "hearth/base/compiler.h"

#define HEARTH_NS_PER_MS   INT64_C(1000000)
#define HEARTH_NS_PER_SEC  INT64_C(1000000000)
#define HEARTH_NS_PER_HOUR (INT64_C(3600) * HEARTH_NS_PER_SEC)
#define HEARTH_NS_PER_DAY  (INT64_C(24) * HEARTH_NS_PER_HOUR)

int64_t hearth_clock_wall_ns(void);       /* nanoseconds since the Unix epoch */
int64_t hearth_clock_mono_ns(void);       /* monotonic, for durations and deadlines */
int64_t hearth_clock_thread_cpu_ns(void); /* CPU time of the calling thread */
void hearth_clock_fake(int64_t wall_ns);  /* tests only; 0 returns to the real clock */

/*
 * The day and the hour, since the Unix epoch and in UTC, that contain a time; correct before 1970,
 * too.
 */
static inline int32_t hearth_day_of(int64_t wall_ns)
{
    return (int32_t)(wall_ns / HEARTH_NS_PER_DAY - (wall_ns % HEARTH_NS_PER_DAY < 0));
}

static inline int32_t hearth_hour_of(int64_t wall_ns)
{
    return (int32_t)(wall_ns / HEARTH_NS_PER_HOUR - (wall_ns % HEARTH_NS_PER_HOUR < 0));
}

/* RFC 3339 with milliseconds, UTC: "2026-11-20T10:36:30.000Z". `out` holds 32 bytes. */
void hearth_clock_format(int64_t wall_ns, char out[32]);

#endif
