/*
 * frame_name.h -- display names of frames without a name: "libc.so.6+0x4f2a" for a location without
 * lines, "0x4f2a" if its mapping has no file, "[unknown]" for a function with an empty name.
 *
 * The number is the offset in the file, which is the same in every process, if the mapping says
 * where the file lies in memory; otherwise it is the address of the location.
 *
 * Flame graphs, tables, filters and text output share this rule, so a frame has the same name
 * everywhere. Exceptions: pprof messages and Pyroscope's routes keep the empty name, because their
 * clients expect it.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_FRAME_NAME_H
#define HEARTH_MODEL_FRAME_NAME_H

#include "hearth/model/profile.h"

#define HEARTH_FRAME_NAME_BYTES 288

#define HEARTH_FRAME_UNKNOWN HEARTH_STR("[unknown]")

/* The name under which a function is displayed and searched. */
static inline struct hearth_str hearth_frame_shown(struct hearth_str function_name)
{
    return function_name.n == 0 ? HEARTH_FRAME_UNKNOWN : function_name;
}

/*
 * Write the name (not terminated) of a location without lines and return its length. mapping may be
 * NULL, strings are those that it refers to. Of its file only the base name is used, at most its
 * last 256 bytes, cut at a character boundary.
 */
size_t hearth_frame_name(uint64_t address, const struct hearth_mapping *mapping,
                         const struct hearth_str *strings, char out[HEARTH_FRAME_NAME_BYTES]);

/* True for a name that hearth_frame_name gives: "0x..." or one that ends with "+0x...". */
bool hearth_frame_name_is_address(struct hearth_str name);

#endif
