/*
 * text_profile.h -- reads a text of unknown kind as a profile: output of `perf script`, or
 * collapsed stacks.
 *
 * The first line that only one of the two formats can have decides. A text is INVALID_ARGUMENT,
 * with the first offending line, if its format does not explain a line (collapsed.h,
 * perf_script.h), or if the text is recognised as something else (legacy profiles of gperftools and
 * Go). Accepts UTF-8 and, with a byte order mark, UTF-16 of either byte order.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_TEXT_PROFILE_H
#define HEARTH_FORMAT_TEXT_PROFILE_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

struct hearth_text_notes {
    /* True: the sample types are those of perf_script.h, not the type and unit of the call. */
    bool is_perf_script;
};

/* type, unit and factor are those of collapsed stacks: collapsed.h. */
HEARTH_MUST_CHECK
enum hearth_status hearth_text_decode(struct hearth_str text, struct hearth_str type,
                                      struct hearth_str unit, int64_t factor,
                                      struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile,
                                      struct hearth_text_notes *ret_notes, struct hearth_err *err);

#endif
