/*
 * frame_name.h -- what a location without lines is called: "0x4f2a [libc.so.6]", "0x4f2a" without a
 * mapping's file.
 *
 * One rule for flame graphs, tables and text output, so that the same frame has one name
 * everywhere.
 * Threads:   pure.
 */
#ifndef HEARTH_MODEL_FRAME_NAME_H
#define HEARTH_MODEL_FRAME_NAME_H

#include "hearth/base/str.h"

#define HEARTH_FRAME_NAME_BYTES 288

/*
 * Write the name (no terminator) and return its length. Only the file's base name appears, at most
 * its last 256 bytes, cut at a character.
 */
size_t hearth_frame_name(uint64_t address,
                         struct hearth_str mapping_filename,
                         char out[HEARTH_FRAME_NAME_BYTES]);

#endif
