/*
 * frame_name.h -- what frames without a name are called: a location without lines "0x4f2a [libc.so.6]",
 * or "0x4f2a" without a mapping's file; a function whose name is empty "[unknown]".
 *
 * One rule for flame graphs, tables, filters and text output, so that the same frame has one name
 * everywhere. Only pprof messages and the routes of Pyroscope, whose clients expect it, have the
 * empty name.
 * Threads:   pure.
 */
#ifndef HEARTH_MODEL_FRAME_NAME_H
#define HEARTH_MODEL_FRAME_NAME_H

#include "hearth/base/str.h"

#define HEARTH_FRAME_NAME_BYTES 288

#define HEARTH_FRAME_UNKNOWN HEARTH_STR("[unknown]")

/* The name that a function is shown by, and found by. */
static inline struct hearth_str hearth_frame_shown(struct hearth_str function_name)
{
    return function_name.n == 0 ? HEARTH_FRAME_UNKNOWN : function_name;
}

/*
 * Write the name (no terminator) and return its length. Only the file's base name appears, at most
 * its last 256 bytes, cut at a character.
 */
size_t hearth_frame_name(uint64_t address, struct hearth_str mapping_filename,
                         char out[HEARTH_FRAME_NAME_BYTES]);

#endif
