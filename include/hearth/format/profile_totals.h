/*
 * profile_totals.h -- differences of profiles that count since the start of their process.
 *
 * Go's profiles of allocations, blocking and mutexes are such totals. Someone who fetches them
 * again and again keeps the totals of the last profile and subtracts them from the next one:
 *
 *     alloc_objects, alloc_space, contentions, delay    are totals: their difference remains
 *     all other sample types                            are unchanged
 *
 * Samples are equal if their stacks (addresses, mappings and functions) and labels are. If a total
 * is lower than before, or the sample types differ, the process was started again: then the profile
 * is the difference itself.
 *
 * Ownership: totals hold hashes and numbers only, 16 bytes and 8 per total for each sample.
 * Threads:   pure; totals are not thread-safe.
 * Source:    runtime/pprof of Go: MemProfile, BlockProfile and MutexProfile are cumulative.
 */
#ifndef HEARTH_FORMAT_PROFILE_TOTALS_H
#define HEARTH_FORMAT_PROFILE_TOTALS_H

#include "hearth/base/status.h"
#include "hearth/model/profile.h"

struct hearth_profile_totals;

/* True if one of the sample types is a total. */
bool hearth_profile_has_totals(const struct hearth_profile *profile);

/* Remember the totals of a profile. NULL if memory is refused. */
struct hearth_profile_totals *hearth_profile_totals_new(const struct hearth_profile *profile);
void hearth_profile_totals_free(struct hearth_profile_totals *totals); /* NULL-safe */

/*
 * Subtract earlier totals from the values of the profile, in place. Samples that occur several
 * times are summed in the first one. *ret_restarted: the process was started again, and the values
 * are unchanged. OUT_OF_RANGE: a sum exceeds 63 bits; NO_MEMORY. The profile is unchanged after an
 * error.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_subtract(struct hearth_profile *profile,
                                           const struct hearth_profile_totals *earlier,
                                           bool *ret_restarted, struct hearth_err *err);

#endif
