/* named_frame.c -- makes functions, lines and a location without an address from names. */
#include "text/named_frame.h"

uint32_t hearth_named_location(struct hearth_profile_builder *builder, uint32_t mapping,
                               const struct hearth_named_frame *frames, uint32_t n_frames)
{
    struct hearth_line lines[HEARTH_MAX_NAMED_LINES];

    HEARTH_ASSERT(n_frames > 0 && n_frames <= HEARTH_MAX_NAMED_LINES);
    for (uint32_t i = 0; i < n_frames; i++) {
        struct hearth_function function = {
            .name = hearth_profile_builder_string(builder, frames[i].name)};
        function.system_name = function.name;
        function.filename = hearth_profile_builder_string(builder, frames[i].filename);
        if (function.name == HEARTH_NO_INDEX || function.filename == HEARTH_NO_INDEX) {
            return HEARTH_NO_INDEX;
        }
        lines[i].function = hearth_profile_builder_function(builder, &function);
        lines[i].line = frames[i].line;
        if (lines[i].function == HEARTH_NO_INDEX) {
            return HEARTH_NO_INDEX;
        }
    }

    const struct hearth_location location = {.mapping = mapping};

    return hearth_profile_builder_location(builder, &location, lines, n_frames);
}
