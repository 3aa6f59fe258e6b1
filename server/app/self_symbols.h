/*
 * self_symbols.h -- the function names of this process: its executable mappings, and the symbols of
 * the mapped files.
 *
 * Ownership: all results are in the arena.
 * Threads:   safe; reads /proc/self/maps and the files.
 * Source:    ELF (gABI), "Symbol Table", "Note Section"; proc(5).
 */
#ifndef HEARTH_APP_SELF_SYMBOLS_H
#define HEARTH_APP_SELF_SYMBOLS_H

#include "hearth/base/arena.h"

struct hearth_self_symbol {
    uint64_t address, size; /* address as linked; size 0: up to the next symbol */
    const char *name;
};

struct hearth_self_image {
    uint64_t start, limit, offset; /* the mapping, and its offset in the file */
    const char *path;
    const char *build_id; /* hexadecimal; "" if there is none */
    /* difference of an address in memory and the linked one */
    uint64_t bias;
    const struct hearth_self_symbol *symbols; /* sorted by address */
    size_t n_symbols;
};

/*
 * The images, sorted by address. A file that cannot be read has no symbols. NULL: no memory, or no
 * /proc.
 */
struct hearth_self_image *hearth_self_images(struct hearth_arena *arena, size_t *ret_n);
/* The image that contains an address, or NULL. */
const struct hearth_self_image *hearth_self_image_find(const struct hearth_self_image *images,
                                                       size_t n, uint64_t address);
/* The name of the function at an address in the image; NULL if no symbol covers the address. */
const char *hearth_self_symbol_find(const struct hearth_self_image *image, uint64_t address);

#endif
