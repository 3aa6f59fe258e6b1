/*
 * perf_script.h -- the text that `perf script` prints, as a profile.
 *
 * A record is a header line, indented frames (leaf first), a blank line. The command name becomes
 * the root frame; each dso a mapping; symbols lose their +0xoffset; [unknown] keeps address and
 * dso. A location with a symbol carries no address: it would only tell instructions of one function
 * apart. Comments ('#') and PERF_RECORD_ events are ignored. Lines that fit nothing are skipped and
 * counted; when they are more than those understood, and when no record is found, the input is
 * INVALID_ARGUMENT, naming the first such line. A record without time, period and frames is not
 * understood for this purpose: prose has such lines.
 *
 * Types, one event only: samples/count, and cpu/nanoseconds for cpu-clock and task-clock events
 * (period in ns) or <event>/count with the period as value otherwise; only samples/count when perf
 * printed no period. Several events (at most 64, else RESOURCE_EXHAUSTED): each its own type,
 * samples of others 0, a missing period counting 1. Events lose their modifiers ("cycles:u") unless
 * two would share a name.
 *
 * Not set: time_ns (perf's clock is monotonic; the caller anchors it with the notes). The period is
 * 0 where records differ.
 *
 * Threads:   pure.
 * Source:    perf-script(1) output of perf 6.1.
 */
#ifndef HEARTH_FORMAT_PERF_SCRIPT_H
#define HEARTH_FORMAT_PERF_SCRIPT_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

struct hearth_perf_notes {
    uint64_t records, skipped_lines;
    double first_seconds, last_seconds; /* perf's own monotonic clock */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_perf_script_decode(struct hearth_str text, struct hearth_arena *arena,
                                             struct hearth_profile *ret_profile,
                                             struct hearth_perf_notes *ret_notes,
                                             struct hearth_err *err);

#endif
