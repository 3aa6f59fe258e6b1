/* fuzz_elf_symbols.c -- any bytes as a program: names lie within the bytes. */
#include "hearth/format/elf_symbols.h"

#include "short_memory.h"

static void run_input(const uint8_t *data, size_t size)
{
    const struct hearth_str bytes = {(const char *)data, size};
    const struct hearth_elf_symbols *symbols;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    enum hearth_status status = hearth_elf_symbols_read(bytes, &arena, &symbols, &err);
    HEARTH_ASSERT(status == HEARTH_OK || err.msg[0] != '\0');
    for (uint64_t at = 0; status == HEARTH_OK && at < size; at += 1 + size / 64) {
        struct hearth_str name = hearth_elf_symbols_find(symbols, at);
        HEARTH_ASSERT(name.n == 0 || (name.p >= bytes.p && name.p + name.n <= bytes.p + bytes.n));
    }
    end_memory(&arena);
}
