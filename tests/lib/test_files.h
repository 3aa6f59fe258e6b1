/* test_files.h -- whole files for tests, inflated when they are gzip. */
#ifndef HEARTH_TESTS_TEST_FILES_H
#define HEARTH_TESTS_TEST_FILES_H

#include "hearth/base/buf.h"
#include "hearth/codec/compress.h"

#include <stdio.h>

/* Append the bytes of a file; false when it cannot be opened. */
static inline bool read_file(const char *path, struct hearth_buf *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    char *at;
    size_t n = 0;
    do {
        at = hearth_buf_reserve(out, 65536);
        HEARTH_ASSERT(at != NULL);
        n = fread(at, 1, 65536, file);
        out->n += n;
    } while (n > 0);
    (void)fclose(file);
    return true;
}

/* The same, with gzip inflated. False as well when that fails; `err` then says why. */
static inline bool read_inflated(const char *path, struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_buf raw;
    hearth_buf_init(&raw, 0);
    bool ok = read_file(path, &raw);
    if (ok) {
        struct hearth_inflater *inflater = hearth_inflater_new();
        HEARTH_ASSERT(inflater != NULL);
        struct hearth_str in = hearth_buf_view(&raw);
        ok = hearth_inflate(inflater, hearth_compression_detect(in), in, 1u << 28, out, err) ==
             HEARTH_OK;
        hearth_inflater_free(inflater);
    }
    hearth_buf_release(&raw);
    return ok;
}

#endif
