/*
 * fuzz_speedscope.c -- any bytes as a file of speedscope: its profiles have valid indices, positive
 * values and stacks within the limit, or there is a reason.
 */
#include "hearth/format/speedscope.h"

#include "check_profile.h"
#include "short_memory.h"

#define MAX_DEPTH 4u

static void check_file(const struct hearth_speedscope_file *file)
{
    for (size_t i = 0; i < file->n_profiles; i++) {
        const struct hearth_profile *p = &file->profiles[i].profile;
        check_profile(p);
        for (uint32_t s = 0; s < p->n_samples; s++) {
            uint32_t depth = p->stack_first[s + 1] - p->stack_first[s];
            HEARTH_ASSERT(depth > 0 && depth <= MAX_DEPTH && p->values[s] > 0);
        }
    }
}

/* Inputs of two sizes in eight have limits that small ones reach. */
static void run_input(const uint8_t *data, size_t size)
{
    const struct hearth_pprof_limits limits = {.max_depth = MAX_DEPTH,
                                               .max_string_bytes = 64,
                                               .max_entries = size % 8 == 0 ? 8 : 100000,
                                               .max_frames = size % 8 == 1 ? 8 : 1000000};
    struct hearth_speedscope_file file = {.n_profiles = 0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    enum hearth_status status = hearth_speedscope_decode(hearth_str_n((const char *)data, size),
                                                         &limits, &arena, &file, &err);
    HEARTH_ASSERT(status == HEARTH_OK || err.msg[0] != '\0');
    check_file(&file);
    end_memory(&arena);
}
