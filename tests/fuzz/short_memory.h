/*
 * short_memory.h -- defines LLVMFuzzerTestOneInput, which runs each input twice: with enough memory, then with a part of
 * what it used, so that refused allocations are tried at many places, too.
 *
 * The target defines run_input, and makes its arenas with begin_memory and end_memory. It has to accept NO_MEMORY.
 */
#ifndef HEARTH_FUZZ_SHORT_MEMORY_H
#define HEARTH_FUZZ_SHORT_MEMORY_H

#include "hearth/base/arena.h"

#define ENOUGH_MEMORY ((size_t)64 << 20)

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

    /* Inputs of a corpus differ in their sizes, and so in the part that they get. */
    g_memory_limit = g_memory_used / 32 * (size % 32) + 1;
    run_input(data, size);

    return 0;
}

#endif
