/*
 * demangle_names.h -- readable names for the functions of a decoded profile.
 *
 * A function whose name is mangled gets its readable name (codec/demangle.h); the mangled one
 * becomes its system name, unless it has one already. Other functions are unchanged; of a profile
 * without mangled names, only the first bytes of each name are read.
 *
 * Ownership: a changed profile has new arrays of functions and strings, in arena; its earlier
 *            arrays are not written to.
 * Threads:   pure.
 */
#ifndef HEARTH_FORMAT_DEMANGLE_NAMES_H
#define HEARTH_FORMAT_DEMANGLE_NAMES_H

#include "hearth/base/status.h"
#include "hearth/codec/demangle.h"
#include "hearth/model/profile.h"

/* Returns OK; NO_MEMORY; INVALID_ARGUMENT for more than 2^32 strings: the profile is unchanged. */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_demangle(struct hearth_profile *profile, enum hearth_demangle how,
                                           struct hearth_arena *arena, struct hearth_err *err);

#endif
