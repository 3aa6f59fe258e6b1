/*
 * perf_lines.h -- single lines of `perf script` output taken apart; private to the perf reader.
 *
 * Nothing is copied: texts borrow from the line.
 * Threads:   pure.
 */
#ifndef HEARTH_FORMAT_PERF_LINES_H
#define HEARTH_FORMAT_PERF_LINES_H

#include "hearth/base/str.h"

/* "comm pid/tid [cpu] seconds.fraction: period event: rest" */
struct hearth_perf_header {
    struct hearth_str comm, event; /* event with its modifiers, without the last ':' */
    struct hearth_str rest; /* trace text, or the only frame of a record without a call graph */
    int64_t period;         /* 1 when absent */
    int64_t time_ns;
    bool has_period, has_time;
};

/* "address symbol+0xoffset (dso)" */
struct hearth_perf_frame {
    struct hearth_str symbol; /* empty: unknown */
    struct hearth_str dso;    /* empty: unknown */
    struct hearth_str file;   /* from a line of its own (+srcline); empty: not said */
    int64_t line;
    uint64_t address;
    bool is_inlined; /* part of the next frame's location */
};

/* False when the line is none. Lines that start with white space are headers only when they have a
 * time. */
HEARTH_MUST_CHECK bool hearth_perf_parse_header(struct hearth_str line,
                                                struct hearth_perf_header *ret);
HEARTH_MUST_CHECK bool hearth_perf_parse_frame(struct hearth_str line,
                                               struct hearth_perf_frame *ret);
/* "file:line" below a frame. */
HEARTH_MUST_CHECK bool hearth_perf_parse_srcline(struct hearth_str line,
                                                 struct hearth_str *ret_file, int64_t *ret_line);
/* The event without modifiers: "cycles:u" is "cycles"; "sched:sched_switch" stays. */
struct hearth_str hearth_perf_event_base(struct hearth_str event);

#endif
