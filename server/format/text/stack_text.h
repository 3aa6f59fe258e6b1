/*
 * stack_text.h -- samples from stacks of the form "root;child;leaf" (private to this layer).
 *
 * White space around frames is ignored. An empty text between two ';' is ignored; blanks are a
 * frame with an unknown name.
 */
#ifndef HEARTH_FORMAT_STACK_TEXT_H
#define HEARTH_FORMAT_STACK_TEXT_H

#include "hearth/base/hash.h"
#include "hearth/format/profile_builder.h"
#include "hearth/model/frame_name.h"

struct hearth_stack_text {
    struct hearth_profile_builder *builder;
    struct hearth_arena *arena;
    struct hearth_idmap frames; /* text of a frame to its location: most frames are frequent */
    uint64_t seed;
    uint32_t *stack; /* leaf first */
    size_t n_stack, cap_stack;
};

/* type and unit name the only sample type. Release it also after a failure. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_text_init(struct hearth_stack_text *s, struct hearth_str type,
                                          struct hearth_str unit, struct hearth_arena *arena,
                                          struct hearth_err *err);
void hearth_stack_text_release(struct hearth_stack_text *s);
/* Add `value` to the sample of the stack; *ret_added is false if the stack has no frame. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_text_add(struct hearth_stack_text *s, struct hearth_str stack,
                                         int64_t value, bool *ret_added, struct hearth_err *err);

#endif
