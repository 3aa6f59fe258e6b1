/* local_symbols.c -- maps the files that a recording of perf names, and reads their symbols. */
#include "local_symbols.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maps a regular file; an empty text if it cannot be read. */
static struct hearth_str map_file(const char *path)
{
    struct stat info;
    struct hearth_str bytes = {"", 0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (file < 0) {
        return bytes;
    }

    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (p != MAP_FAILED) {
            bytes = hearth_str_n(p, (size_t)info.st_size);
        }
    }

    (void)close(file);

    return bytes;
}

const struct hearth_elf_symbols *cli_local_symbols(void *context, struct hearth_str path)
{
    struct local_symbols *symbols = context;
    const struct hearth_elf_symbols *found = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    char text[PATH_MAX];

    /* Regions without a file have names such as "[vdso]" and "//anon". */
    if (path.n == 0 || path.p[0] != '/' || path.n >= sizeof text ||
        symbols->n_files == LOCAL_MAX_FILES) {
        return NULL;
    }

    (void)snprintf(text, sizeof text, HEARTH_STR_FMT, HEARTH_STR_ARG(path));
    struct hearth_str bytes = map_file(text);
    if (bytes.n == 0) {
        return NULL;
    }

    symbols->files[symbols->n_files].p = (void *)(uintptr_t)bytes.p;
    symbols->files[symbols->n_files++].n = bytes.n;

    return hearth_elf_symbols_read(bytes, symbols->arena, &found, &err) == HEARTH_OK ? found : NULL;
}

void cli_local_symbols_release(struct local_symbols *symbols)
{
    for (size_t i = 0; i < symbols->n_files; i++) {
        (void)munmap(symbols->files[i].p, symbols->files[i].n);
    }
    symbols->n_files = 0;
}
