/*
 * named_frame.h -- locations for formats whose frames have only names (private to this layer).
 */
#ifndef HEARTH_FORMAT_NAMED_FRAME_H
#define HEARTH_FORMAT_NAMED_FRAME_H

#include "hearth/format/profile_builder.h"

/* The position of a frame, as far as the format has it. */
struct hearth_named_frame {
    struct hearth_str name;
    struct hearth_str filename; /* empty: unknown */
    int64_t line;
};

/*
 * A location in `mapping` (HEARTH_NO_INDEX: none) with these frames as its lines, innermost first;
 * n_frames is 1 to HEARTH_MAX_NAMED_LINES. Returns HEARTH_NO_INDEX if memory is refused.
 */
#define HEARTH_MAX_NAMED_LINES 64u
uint32_t hearth_named_location(struct hearth_profile_builder *builder, uint32_t mapping,
                               const struct hearth_named_frame *frames, uint32_t n_frames);

#endif
