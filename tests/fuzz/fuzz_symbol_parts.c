/*
 * fuzz_symbol_parts.c -- any two texts, divided by a line feed, as a function's name and file: its parts are
 * read and written within bounds.
 */
#include "hearth/model/symbol_parts.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A block of exactly that size, so that a byte too far is seen. */
static char *exact(const char *p, size_t n)
{
    char *copy = malloc(n > 0 ? n : 1);
    if (copy == NULL) {
        abort();
    }
    if (n > 0) {
        memcpy(copy, p, n);
    }
    return copy;
}

static void require_fits(struct hearth_str part, size_t room)
{
    if (part.n >= room) {
        (void)fprintf(stderr, "broken: a part is longer than its texts\n");
        abort();
    }
    for (size_t i = 0; i < part.n; i++) { /* all of it can be read */
        volatile char c = part.p[i];
        (void)c;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_str all = hearth_str_n((const char *)data, size);
    size_t end = size == 0 ? 0 : hearth_str_find(all, '\n', 0);
    size_t n_file = end < size ? size - end - 1 : 0;
    char *name_copy = exact((const char *)data, end);
    char *file_copy = exact((const char *)data + (size - n_file), n_file);
    struct hearth_str name = hearth_str_n(name_copy, end), file = hearth_str_n(file_copy, n_file);
    size_t room = HEARTH_SYMBOL_PART_BYTES(name, file);
    char *scratch = malloc(room);
    if (scratch == NULL) {
        abort();
    }
    require_fits(hearth_symbol_class(name, file, scratch), room);
    require_fits(hearth_symbol_package(name, file, scratch), room);
    require_fits(hearth_symbol_directory(file), room);
    require_fits(hearth_symbol_library(file), room);
    free(scratch);
    free(name_copy);
    free(file_copy);
    return 0;
}
