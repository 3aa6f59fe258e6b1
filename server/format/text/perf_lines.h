/*
 * perf_lines.h -- parses single lines of `perf script` output (private to the perf reader).
 *
 * Nothing is copied: texts borrow from the line.
 * Threads:   pure.
 */
#ifndef HEARTH_FORMAT_PERF_LINES_H
#define HEARTH_FORMAT_PERF_LINES_H

#include "hearth/base/str.h"

/* A header: "comm pid/tid [cpu] seconds.fraction: period event: rest". */
struct hearth_perf_header {
    struct hearth_str comm;
    struct hearth_str event; /* with its modifiers, without the last ':'; "unknown" if absent */
    struct hearth_str rest;  /* trace text, or the only frame of a record without call graph */
    int64_t period;          /* 1 if absent */
    int64_t time_ns;
    bool has_period, has_time;
};

/* A frame: "address symbol+0xoffset (dso)". */
struct hearth_perf_frame {
    struct hearth_str symbol; /* empty: unknown */
    struct hearth_str dso;    /* empty: unknown */
    struct hearth_str file;   /* from a separate line (+srcline); empty: unknown */
    int64_t line;
    uint64_t address;
    bool is_inlined; /* belongs to the location of the next frame */
};

/*
 * False if the line is not a header. A line that begins with white space is one only if it has a
 * time, or the only frame of its record.
 */
HEARTH_MUST_CHECK bool hearth_perf_parse_header(struct hearth_str line,
                                                struct hearth_perf_header *ret);
/* False if the line is not a frame. */
HEARTH_MUST_CHECK bool hearth_perf_parse_frame(struct hearth_str line,
                                               struct hearth_perf_frame *ret);
/*
 * Parse "file:line" or "file[address]", a line after a frame; false for other lines. The line
 * number is 0 if it is unknown.
 */
HEARTH_MUST_CHECK bool hearth_perf_parse_srcline(struct hearth_str line,
                                                 struct hearth_str *ret_file, int64_t *ret_line);
/* True for "# ========", the first and the last line of what `perf script --header` prints. */
bool hearth_perf_is_header_mark(struct hearth_str line);
/* True for the instruction of a frame on a line of its own, " insn: c5 fb 93". */
bool hearth_perf_is_instruction(struct hearth_str line);
/* The event without modifiers: "cycles" for "cycles:u"; "sched:sched_switch" is unchanged. */
struct hearth_str hearth_perf_event_base(struct hearth_str event);

#endif
