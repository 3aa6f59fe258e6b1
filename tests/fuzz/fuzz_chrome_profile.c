/*
 * fuzz_chrome_profile.c -- any bytes as a CPU profile and as a heap profile of V8: valid indices, no
 * negative values and stacks within the limit, or there is a reason.
 */
#include "hearth/format/chrome_profile.h"

#include "check_profile.h"
#include "short_memory.h"

#define MAX_DEPTH 4u

static void check_values(const struct hearth_profile *p)
{
    check_profile(p);
    for (uint32_t s = 0; s < p->n_samples; s++) {
        uint32_t depth = p->stack_first[s + 1] - p->stack_first[s];
        HEARTH_ASSERT(depth > 0 && depth <= MAX_DEPTH);
    }
    for (size_t i = 0; i < (size_t)p->n_samples * p->n_types; i++) {
        HEARTH_ASSERT(p->values[i] >= 0);
    }
}

/* Inputs of two sizes in eight have limits that small ones reach. */
static void run_input(const uint8_t *data, size_t size)
{
    const struct hearth_pprof_limits limits = {.max_depth = MAX_DEPTH,
                                               .max_string_bytes = 64,
                                               .max_entries = size % 8 == 0 ? 8 : 100000,
                                               .max_frames = size % 8 == 1 ? 8 : 1000000};
    struct hearth_str bytes = {(const char *)data, size};

    for (int i = 0; i < 2; i++) {
        struct hearth_arena arena;
        struct hearth_profile profile;
        struct hearth_pprof_notes notes = {0};
        struct hearth_err err = HEARTH_ERR_INIT;

        begin_memory(&arena);
        enum hearth_status status =
            i == 0 ? hearth_cpuprofile_decode(bytes, &limits, &arena, &profile, &notes, &err)
                   : hearth_heapprofile_decode(bytes, &limits, &arena, &profile, &notes, &err);
        if (status == HEARTH_OK) {
            check_values(&profile);
        } else {
            HEARTH_ASSERT(err.msg[0] != '\0');
        }
        end_memory(&arena);
    }
}
