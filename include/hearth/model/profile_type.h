/*
 * profile_type.h -- what a value of a profile means:
 * name:sample_type:sample_unit:period_type:period_unit.
 *
 * Parts may be empty and may hold any UTF-8 but ':' (a ':' in a pushed type name is stored as '_').
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_PROFILE_TYPE_H
#define HEARTH_MODEL_PROFILE_TYPE_H

#include "hearth/base/buf.h"
#include "hearth/base/status.h"

struct hearth_profile_type {
    struct hearth_str name, sample_type, sample_unit, period_type, period_unit;
};

/* Five parts, or six (the sixth is ignored: older clients add ":delta"). Parts borrow from id. */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_type_parse(struct hearth_str id,
                                             struct hearth_profile_type *ret_type,
                                             struct hearth_err *err);
/* Append the id; ':' and control bytes within parts become '_'. */
void hearth_profile_type_format(const struct hearth_profile_type *type, struct hearth_buf *out);
/*
 * Gauges are snapshots (inuse_*, goroutine, live heap): the mean over time means something, the sum
 * over time does not. Everything else is a sum. By sample type, '-' and '_' being the same.
 */
bool hearth_profile_type_is_gauge(const struct hearth_profile_type *type);

#endif
