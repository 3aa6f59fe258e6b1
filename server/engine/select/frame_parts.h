/*
 * frame_parts.h -- the rows of tables that a frame of a dictionary belongs to (private to the
 * engine).
 *
 * Threads: pure.
 */
#ifndef HEARTH_ENGINE_FRAME_PARTS_H
#define HEARTH_ENGINE_FRAME_PARTS_H

#include "hearth/engine/filter.h"
#include "hearth/model/dict.h"
#include "hearth/model/frame_name.h"

/* A frame: a line of a location, or a location without lines. */
struct hearth_dict_frame {
    const struct hearth_location *location;
    uint32_t function; /* HEARTH_NO_INDEX: no function */
    int64_t line;
};

/* Frame i of a location; i is below n_lines, or 0 if it has no lines. */
struct hearth_dict_frame hearth_dict_frame_at(const struct hearth_dict *dict,
                                              const struct hearth_location *location, uint32_t i);
/* The mapping of a frame; NULL: none. */
const struct hearth_mapping *hearth_dict_frame_mapping(const struct hearth_dict *dict,
                                                       const struct hearth_dict_frame *frame);
/* The name of a frame as in flame graphs; `out` holds the text of an address. */
struct hearth_str hearth_dict_frame_name(const struct hearth_dict *dict,
                                         const struct hearth_dict_frame *frame,
                                         char out[HEARTH_FRAME_NAME_BYTES]);
/* The base name of a frame's mapping, which stands for an unknown package; empty: no mapping. */
struct hearth_str hearth_dict_frame_library(const struct hearth_dict *dict,
                                            const struct hearth_dict_frame *frame);

/* The kind of code of a frame; a constant. */
struct hearth_str hearth_dict_frame_kind(const struct hearth_dict *dict,
                                         const struct hearth_dict_frame *frame);

/*
 * The name of a row that the function alone determines: its class, package (empty if only the
 * mapping can tell), directory or file. `room` has hearth_dict_function_bytes.
 */
struct hearth_str hearth_dict_function_row(const struct hearth_dict *dict, uint32_t function,
                                           enum hearth_top_kind kind, char *room);
size_t hearth_dict_function_bytes(const struct hearth_dict *dict, uint32_t function);

#endif
