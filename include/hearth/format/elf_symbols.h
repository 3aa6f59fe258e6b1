/*
 * elf_symbols.h -- names of functions from a program or library (ELF), by offset in the file.
 *
 * Symbols are those of .symtab, or, in a stripped file, of .dynsym. Debugging information is not
 * used, so inlined functions have no names. If symbols share an address, a global one is preferred
 * to a weak and to a local one, then the one with fewer underscores in front. A symbol without a
 * size reaches to the next one, at most to the end of its section.
 *
 * Limits:    HEARTH_ELF_MAX_SYMBOLS; the arena's.
 * Ownership: the table lives in the arena; names borrow from the bytes.
 * Threads:   immutable after reading.
 * Source:    System V ABI, edition 4.1; little-endian, 32 and 64 bits.
 */
#ifndef HEARTH_FORMAT_ELF_SYMBOLS_H
#define HEARTH_FORMAT_ELF_SYMBOLS_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

#define HEARTH_ELF_MAX_SYMBOLS 8000000

struct hearth_elf_symbols;

/*
 * Returns OK, also for a file without symbols; INVALID_ARGUMENT for a damaged file or one of an
 * unsupported kind; RESOURCE_EXHAUSTED for too many symbols; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_elf_symbols_read(struct hearth_str bytes, struct hearth_arena *arena,
                                           const struct hearth_elf_symbols **ret,
                                           struct hearth_err *err);

size_t hearth_elf_symbols_count(const struct hearth_elf_symbols *symbols);
/* GNU build id in hexadecimal; empty if the file has none. */
struct hearth_str hearth_elf_symbols_build_id(const struct hearth_elf_symbols *symbols);
/* The mangled name of the function at an offset in the file; empty if there is none. */
struct hearth_str hearth_elf_symbols_find(const struct hearth_elf_symbols *symbols,
                                          uint64_t file_offset);

#endif
