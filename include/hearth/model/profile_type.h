/*
 * profile_type.h -- the meaning of a profile's values:
 * name:sample_type:sample_unit:period_type:period_unit.
 *
 * Parts may be empty and may hold any UTF-8 except ':' (a ':' in a pushed type name is stored as
 * '_'). Threads: pure.
 */
#ifndef HEARTH_MODEL_PROFILE_TYPE_H
#define HEARTH_MODEL_PROFILE_TYPE_H

#include "hearth/base/buf.h"
#include "hearth/base/status.h"

struct hearth_profile_type {
    struct hearth_str name, sample_type, sample_unit, period_type, period_unit;
};

/*
 * Split an id of five parts, or of six (the sixth is ignored: older clients append ":delta"). Parts
 * borrow from id. INVALID_ARGUMENT otherwise.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_type_parse(struct hearth_str id,
                                             struct hearth_profile_type *ret_type,
                                             struct hearth_err *err);
/* Append the id; ':' and control bytes inside parts become '_'. */
void hearth_profile_type_format(const struct hearth_profile_type *type, struct hearth_buf *out);
/*
 * True for gauges, i.e. snapshots (inuse_*, goroutine, live heap): their mean over time is
 * meaningful, their sum is not. All other types are sums. Decided by the sample type; '-' and '_'
 * are equivalent.
 */
bool hearth_profile_type_is_gauge(const struct hearth_profile_type *type);

#endif
