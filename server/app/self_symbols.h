/*
 * self_symbols.h -- the names of this process's own code: what is mapped executable, and the function symbols of the
 * files behind it.
 *
 * Ownership: everything in the arena.
 * Threads:   safe; reads /proc/self/maps and the files.
 * Source:    ELF (gABI), "Symbol Table", "Note Section"; proc(5).
 */
#ifndef HEARTH_APP_SELF_SYMBOLS_H
#define HEARTH_APP_SELF_SYMBOLS_H

#include "hearth/base/arena.h"

struct hearth_self_symbol {
    uint64_t address, size; /* as linked; size 0: to the next one */
    const char *name;
};

struct hearth_self_image {
    uint64_t start, limit, offset; /* the mapping, and where in the file it begins */
    const char *path;
    const char *build_id;                     /* hex; "" when there is none */
    uint64_t bias;                            /* of a running address over the linked one */
    const struct hearth_self_symbol *symbols; /* by address */
    size_t n_symbols;
};

/* The images by address. A file that cannot be read has no symbols. NULL: no memory, or no /proc. */
struct hearth_self_image *hearth_self_images(struct hearth_arena *arena, size_t *ret_n);
/* The image of an address, or NULL. */
const struct hearth_self_image *hearth_self_image_find(const struct hearth_self_image *images,
                                                       size_t n, uint64_t address);
/* The function at an address in an image; NULL when no symbol covers it. */
const char *hearth_self_symbol_find(const struct hearth_self_image *image, uint64_t address);

#endif
