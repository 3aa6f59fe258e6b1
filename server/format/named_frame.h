/*
 * named_frame.h -- locations of formats that know frames by their names only; private to this
 * layer.
 */
#ifndef HEARTH_FORMAT_NAMED_FRAME_H
#define HEARTH_FORMAT_NAMED_FRAME_H

#include "hearth/format/profile_builder.h"

/* Where a frame is, as far as its format says. */
struct hearth_named_frame {
    struct hearth_str name;
    struct hearth_str filename; /* empty: not known */
    int64_t line;
};

/*
 * A location in `mapping` (HEARTH_NO_INDEX: none) with these frames as its lines, innermost first.
 * HEARTH_NO_INDEX when memory was refused. n_frames in [1, HEARTH_MAX_NAMED_LINES].
 */
#define HEARTH_MAX_NAMED_LINES 64u
uint32_t hearth_named_location(struct hearth_profile_builder *builder, uint32_t mapping,
                               const struct hearth_named_frame *frames, uint32_t n_frames);

#endif
