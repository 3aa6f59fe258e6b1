/*
 * input_file.h -- an input as a file with a path, for readers of files; one file for each process, without a name. Every
 * user can read it, so that warnings about secrets in it are tried, too.
 */
#ifndef HEARTH_FUZZ_INPUT_FILE_H
#define HEARTH_FUZZ_INPUT_FILE_H

#include "hearth/base/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Replaces the file of an earlier input. The path is static. */
static inline const char *write_input_file(const void *bytes, size_t n)
{
    static char path[64];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("input", MFD_CLOEXEC); /* a disk would be slower than most parsers */
        HEARTH_ASSERT(fd >= 0 && fchmod(fd, 0644) == 0);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    /* In this order: to empty the file first would free its page, and take another one. */
    HEARTH_ASSERT(pwrite(fd, bytes, n, 0) == (ssize_t)n);
    HEARTH_ASSERT(ftruncate(fd, (off_t)n) == 0);

    return path;
}

#endif
