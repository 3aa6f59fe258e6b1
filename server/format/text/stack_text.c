/* stack_text.c -- splits stacks of names at ';' and adds them as samples. */
#include "text/stack_text.h"

#include "hearth/base/mem.h"

#include "text/named_frame.h"

#include <assert.h>

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

enum hearth_status hearth_stack_text_init(struct hearth_stack_text *s, struct hearth_str type,
                                          struct hearth_str unit, struct hearth_arena *arena,
                                          struct hearth_err *err)
{
    *s = (struct hearth_stack_text){.builder = hearth_profile_builder_new(arena),
                                    .arena = arena,
                                    .seed = hearth_hash_process_seed()};
    if (s->builder == NULL ||
        hearth_profile_builder_type(s->builder, type, unit) == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return HEARTH_OK;
}

void hearth_stack_text_release(struct hearth_stack_text *s)
{
    hearth_mem_free(s->stack);
    hearth_idmap_release(&s->frames);
    hearth_profile_builder_free(s->builder);
}

/* Remove surrounding white space and byte order marks (from concatenated files). */
static struct hearth_str trim_frame(struct hearth_str frame)
{
    frame = hearth_str_trim(frame);
    while (hearth_str_starts(frame, HEARTH_STR(BYTE_ORDER_MARK))) {
        frame = hearth_str_trim(hearth_str_n(frame.p + 3, frame.n - 3));
    }
    return frame;
}

/* The location of a frame; HEARTH_NO_INDEX if memory is refused. */
static uint32_t find_or_add_location(struct hearth_stack_text *s, struct hearth_str text)
{
    struct hearth_hash128 key = hearth_hash128(text.p, text.n, s->seed);
    uint32_t location = hearth_idmap_find(&s->frames, key);
    if (location != HEARTH_IDMAP_NONE) {
        return location;
    }

    struct hearth_str name = trim_frame(text);
    struct hearth_named_frame frame = {.name = hearth_frame_shown(name)};
    location = hearth_named_location(s->builder, HEARTH_NO_INDEX, &frame, 1);
    bool inserted;
    if (location == HEARTH_NO_INDEX ||
        hearth_idmap_intern(&s->frames, key, location, &inserted) == HEARTH_IDMAP_NONE) {
        return HEARTH_NO_INDEX;
    }

    return location;
}

/* Put the frames of "root;child;leaf" into s->stack, leaf first. */
static enum hearth_status split_stack(struct hearth_stack_text *s, struct hearth_str stack,
                                      struct hearth_err *err)
{
    s->n_stack = 0;
    for (size_t end = stack.n;;) {
        size_t from = end;
        while (from > 0 && stack.p[from - 1] != ';') {
            from--;
        }

        if (from < end) {
            uint32_t location = find_or_add_location(s, hearth_str_n(stack.p + from, end - from));
            if (location == HEARTH_NO_INDEX ||
                !hearth_mem_grow(&s->stack, &s->cap_stack, s->n_stack + 1, sizeof *s->stack)) {
                return HEARTH_FAIL_ARENA(err, s->arena);
            }
            s->stack[s->n_stack++] = location;
        }

        if (from == 0) {
            return HEARTH_OK;
        }

        end = from - 1;
    }
}

enum hearth_status hearth_stack_text_add(struct hearth_stack_text *s, struct hearth_str stack,
                                         int64_t value, bool *ret_added, struct hearth_err *err)
{
    assert(s->builder != NULL);

    *ret_added = false;
    HEARTH_TRY(split_stack(s, stack, err));
    if (s->n_stack == 0) {
        return HEARTH_OK;
    }

    *ret_added = true;
    return hearth_profile_builder_sample(s->builder, s->stack, (uint32_t)s->n_stack, &value, err);
}
