/*
 * short_memory.h -- defines LLVMFuzzerTestOneInput, which runs each input twice: with enough memory, then with a part of
 * what it used, so that refused allocations are tried at many places, too. With HEARTH_FUZZ_FAST, only one input in eight
 * runs twice.
 *
 * The target defines run_input, and makes its arenas with begin_memory and end_memory. It has to accept NO_MEMORY.
 */
#ifndef HEARTH_FUZZ_SHORT_MEMORY_H
#define HEARTH_FUZZ_SHORT_MEMORY_H

#include "hearth/base/arena.h"
#include "hearth/base/hash.h"

#define ENOUGH_MEMORY ((size_t)64 << 20)

#ifdef HEARTH_FUZZ_FAST
#    define INPUTS_PER_SHORT_RUN 8u
#else
#    define INPUTS_PER_SHORT_RUN 1u
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_input(const uint8_t *data, size_t size);

static size_t g_memory_limit, g_memory_used;

static inline void begin_memory(struct hearth_arena *arena)
{
    hearth_arena_init(arena, g_memory_limit);
}

static inline void end_memory(struct hearth_arena *arena)
{
    g_memory_used = arena->used_bytes > g_memory_used ? arena->used_bytes : g_memory_used;
    hearth_arena_release(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_memory_limit = ENOUGH_MEMORY;
    g_memory_used = 0;
    run_input(data, size);

    /*
     * The bytes decide which inputs run twice, so that an input always takes the same paths. Inputs of a corpus differ in
     * their sizes, and so in the part of the memory that they get.
     */
    if (hearth_hash64(data, size, 0) % INPUTS_PER_SHORT_RUN == 0) {
        g_memory_limit = g_memory_used / 32 * (size % 32) + 1;
        run_input(data, size);
    }

    return 0;
}

#endif
