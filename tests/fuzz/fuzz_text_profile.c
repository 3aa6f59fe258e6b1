/*
 * fuzz_text_profile.c -- any bytes as a text of unknown kind: an error with a message, or a profile
 * whose indices hold and whose strings are UTF-8.
 */
#include "hearth/format/text_profile.h"

#include "short_memory.h"

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_text_notes notes;
    struct hearth_err err = HEARTH_ERR_INIT;
    begin_memory(&arena);
    if (hearth_text_decode(hearth_str_n((const char *)data, size), HEARTH_STR("samples"),
                           HEARTH_STR("count"), 1, &arena, &p, &notes, &err) == HEARTH_OK) {
        HEARTH_ASSERT(p.n_types > 0 && p.stack_first[p.n_samples] == p.n_stack_locs);
        for (uint32_t i = 0; i < p.n_stack_locs; i++) {
            HEARTH_ASSERT(p.stack_locs[i] < p.n_locations);
        }
        for (uint32_t i = 0; i < p.n_strings; i++) {
            HEARTH_ASSERT(hearth_str_utf8_valid(p.strings[i]));
        }
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    end_memory(&arena);
}
