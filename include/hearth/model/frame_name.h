/*
 * frame_name.h -- display names of frames without a name: "0x4f2a [libc.so.6]" for a location
 * without lines, "0x4f2a" if its mapping has no file, "[unknown]" for a function with an empty
 * name.
 *
 * Flame graphs, tables, filters and text output share this rule, so a frame has the same name
 * everywhere. Exceptions: pprof messages and Pyroscope's routes keep the empty name, because their
 * clients expect it.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_FRAME_NAME_H
#define HEARTH_MODEL_FRAME_NAME_H

#include "hearth/base/str.h"

#define HEARTH_FRAME_NAME_BYTES 288

#define HEARTH_FRAME_UNKNOWN HEARTH_STR("[unknown]")

/* The name under which a function is displayed and searched. */
static inline struct hearth_str hearth_frame_shown(struct hearth_str function_name)
{
    return function_name.n == 0 ? HEARTH_FRAME_UNKNOWN : function_name;
}

/*
 * Write the name (not terminated) and return its length. Of the mapping's file only the base name
 * is used, at most its last 256 bytes, cut at a character boundary.
 */
size_t hearth_frame_name(uint64_t address, struct hearth_str mapping_filename,
                         char out[HEARTH_FRAME_NAME_BYTES]);

#endif
