/*
 * datadog_profile.h -- a pprof of Datadog's profilers as profiles of Hearth.
 *
 * One attachment may hold CPU time, wall time, allocations and locks at once. Its sample types are
 * divided into families (datadog_types.def), each with a __name__, and get the names that the same
 * types have from other clients. "-" and "_" are the same in their names. A type that the table
 * does not know, or whose unit differs, keeps its name in the family "other".
 *
 * Labels of samples: attributes (model/sample_attrs.h), labels that the program has set itself, and
 * those of datadog_labels.def remain, the latter two under names that every client can display.
 * Others are dropped and counted, because values like addresses and names of locks would make a
 * series each.
 *
 * Ownership: tables are shared with the profile that was divided, or in the arena.
 * Threads:   pure.
 * Source:    sample types and labels of docs/reference/datadog.md.
 */
#ifndef HEARTH_FORMAT_DATADOG_PROFILE_H
#define HEARTH_FORMAT_DATADOG_PROFILE_H

#include "hearth/base/arena.h"
#include "hearth/model/profile.h"

#define HEARTH_DATADOG_MAX_FAMILIES 16u

struct hearth_datadog_profile {
    const char *name; /* __name__; static */
    struct hearth_profile profile;
};

/* Counts of what was dropped. */
struct hearth_datadog_notes {
    uint64_t numeric_labels, unlisted_labels;
    uint64_t zero_samples; /* samples that are 0 in all types of the attachment */
};

/*
 * Divides a decoded profile, whose labels change.
 *
 * filename     of the attachment: Go's mutex and block profiles have the same sample types
 * custom_keys  names of sample labels that the program has set itself
 * ret          [HEARTH_DATADOG_MAX_FAMILIES]; families without samples are left out
 *
 * Errors: NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_datadog_profile_divide(struct hearth_profile *profile,
                                                 struct hearth_str filename,
                                                 const struct hearth_str *custom_keys,
                                                 size_t n_custom_keys, struct hearth_arena *arena,
                                                 struct hearth_datadog_profile *ret, size_t *ret_n,
                                                 struct hearth_datadog_notes *ret_notes);

#endif
