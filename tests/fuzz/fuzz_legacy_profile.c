/*
 * fuzz_legacy_profile.c -- any bytes as a legacy profile: valid indices, stacks that are not empty
 * and within the limit, or a reason. Bytes that are not recognised are not decoded either.
 */
#include "hearth/format/legacy_profile.h"

#include "check_profile.h"
#include "short_memory.h"

#define MAX_DEPTH 4u

static void run_input(const uint8_t *data, size_t size)
{
    const struct hearth_pprof_limits limits = {.max_depth = MAX_DEPTH, .max_string_bytes = 64};
    struct hearth_str bytes = {(const char *)data, size};
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_legacy_notes notes;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    if (hearth_legacy_decode(bytes, &limits, &arena, &p, &notes, &err) == HEARTH_OK) {
        HEARTH_ASSERT(hearth_legacy_recognise(bytes));
        check_profile(&p);
        for (uint32_t s = 0; s < p.n_samples; s++) {
            uint32_t depth = p.stack_first[s + 1] - p.stack_first[s];
            HEARTH_ASSERT(depth > 0 && depth <= MAX_DEPTH);
        }
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    end_memory(&arena);
}
