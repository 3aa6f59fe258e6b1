/*
 * local_symbols.h -- symbols of programs and libraries of this machine, for recordings of perf.
 *
 * Ownership: the files are mapped until the release; symbols and names borrow from them.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_CLI_LOCAL_SYMBOLS_H
#define HEARTH_CLI_LOCAL_SYMBOLS_H

#include "hearth/base/arena.h"
#include "hearth/format/elf_symbols.h"

#define LOCAL_MAX_FILES 4096u

/* Zero-initialised but for the arena. */
struct local_symbols {
    struct hearth_arena *arena;
    struct {
        void *p;
        size_t n;
    } files[LOCAL_MAX_FILES];
    size_t n_files;
};

/* A hearth_perf_symbols_fn, whose context is a struct local_symbols. */
const struct hearth_elf_symbols *cli_local_symbols(void *context, struct hearth_str path);
void cli_local_symbols_release(struct local_symbols *symbols);

#endif
