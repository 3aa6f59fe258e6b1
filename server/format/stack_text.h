/*
 * stack_text.h -- samples from "root;child;leaf" texts, for the formats that have them; private to this
 * layer.
 *
 * White space around frames is not part of them; nothing between two ';' is no frame, but blanks are
 * one whose name is not known.
 */
#ifndef HEARTH_FORMAT_STACK_TEXT_H
#define HEARTH_FORMAT_STACK_TEXT_H

#include "hearth/base/hash.h"
#include "hearth/format/profile_builder.h"
#include "hearth/model/frame_name.h"

struct hearth_stack_text {
    struct hearth_profile_builder *builder;
    struct hearth_arena *arena;
    struct hearth_idmap frames; /* texts of frames to locations: most frames come often */
    uint64_t seed;
    uint32_t *stack; /* leaf first */
    size_t n_stack, cap_stack;
};

/* With the one sample type. Release it also after a failure. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_text_init(struct hearth_stack_text *s, struct hearth_str type,
                                          struct hearth_str unit, struct hearth_arena *arena,
                                          struct hearth_err *err);
void hearth_stack_text_release(struct hearth_stack_text *s);
/* Add `value` to the sample of that stack; *ret_added is false when it has no frame. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_text_add(struct hearth_stack_text *s, struct hearth_str stack,
                                         int64_t value, bool *ret_added, struct hearth_err *err);

#endif
