/* buckets.c -- the buckets of a time series (contract: planned.h). */
#include "select/planned.h"

#include <assert.h>

/*
 * Times of profiles are cut to milliseconds, so a bucket ends after the first nanoseconds of its
 * last one.
 */
int64_t hearth_bucket_end_ns(const struct hearth_buckets *buckets, int64_t b)
{
    int64_t ms, ns;
    bool is_far = __builtin_mul_overflow(b, buckets->step_ms, &ms) ||
                  __builtin_add_overflow(ms, buckets->start_ms + 1, &ms) ||
                  __builtin_mul_overflow(ms, HEARTH_NS_PER_MS, &ns);
    return is_far ? INT64_MAX : ns;
}

enum hearth_status hearth_timeseries_buckets(const struct hearth_query *query,
                                             const struct hearth_timeseries_spec *spec,
                                             struct hearth_buckets *ret, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    struct hearth_range range;

    HEARTH_TRY(hearth_query_range(query, &range, err));
    if (!(spec->step_seconds >= 0.001 && spec->step_seconds < 1e12)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "step must be >= 1ms");
    }

    *ret = (struct hearth_buckets){
        .start_ms = range.from_ns / HEARTH_NS_PER_MS,
        .step_ms = hearth_step_ms(spec->step_seconds),
        .empty = range.empty,
    };
    ret->n = (range.to_ns / HEARTH_NS_PER_MS - ret->start_ms) / ret->step_ms + 1;
    if (__builtin_sub_overflow(range.from_ns, ret->step_ms * HEARTH_NS_PER_MS, &ret->from_ns)) {
        ret->from_ns = INT64_MIN;
    }

    /* A range ends with the first nanosecond of its last millisecond, as for a merge. */
    ret->to_ns = range.to_ns;
    if (spec->whole_ms && __builtin_add_overflow(range.to_ns, HEARTH_NS_PER_MS - 1, &ret->to_ns)) {
        ret->to_ns = INT64_MAX;
    }

    /* The time after the last whole step is in no bucket: it is not read. */
    int64_t last_ns = hearth_bucket_end_ns(ret, ret->n - 1) - 1;
    ret->to_ns = last_ns < ret->to_ns ? last_ns : ret->to_ns;

    return HEARTH_OK;
}
