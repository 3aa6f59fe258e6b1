/*
 * perf_script.h -- reads the text that `perf script` prints as a profile.
 *
 * A record is a header line, indented frames (leaf first) and a blank line. The command name
 * becomes the root frame; each dso a mapping; symbols lose their +0xoffset; [unknown] keeps address
 * and dso. A location with a symbol has no address: it would only distinguish instructions of one
 * function. Comments ('#'), the header between two lines "# ========" with whatever the profiled
 * command has, PERF_RECORD_ events and bytes of instructions are ignored. The input is
 * INVALID_ARGUMENT, and the message names the line, if there is another line, no record, or if most
 * records have neither a time nor a period nor frames, as lines of prose have. A record without an
 * event has the event "unknown", which is a type only next to other events.
 *
 * Sample types if all records have the same event: samples/count, and cpu/nanoseconds for cpu-clock
 * and task-clock (period in ns) or <event>/count with the period as value for others; only
 * samples/count if perf printed no period. With several events (at most 64, otherwise
 * RESOURCE_EXHAUSTED) each has its own type; samples of other events have the value 0 there, and a
 * missing period counts 1. Events lose their modifiers ("cycles:u") unless two would then have the
 * same name.
 *
 * time_ns is not set, because perf's clock is monotonic. The period is 0 if records differ in it.
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
    uint64_t records;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_perf_script_decode(struct hearth_str text, struct hearth_arena *arena,
                                             struct hearth_profile *ret_profile,
                                             struct hearth_perf_notes *ret_notes,
                                             struct hearth_err *err);

#endif
