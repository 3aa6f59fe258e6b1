/*
 * fuzz_demangle.c -- any bytes as a symbol: the readable name is within its limit and, like the
 * symbol, UTF-8 without NUL.
 */
#include "hearth/codec/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hearth_str name = {(const char *)data, size};
    struct hearth_arena arena;

    hearth_arena_init(&arena, 1 << 20);
    for (int how = HEARTH_DEMANGLE_NONE; how <= HEARTH_DEMANGLE_FULL; how++) {
        struct hearth_str got = {0};
        HEARTH_ASSERT(hearth_demangle(name, (enum hearth_demangle)how, &arena, &got));
        HEARTH_ASSERT(got.p == name.p ? got.n == name.n
                                      : got.n <= HEARTH_DEMANGLE_MAX_OUT + name.n);
        if (hearth_str_utf8_valid(name)) {
            HEARTH_ASSERT(hearth_str_utf8_valid(got));
        }
    }
    hearth_arena_release(&arena);

    return 0;
}
