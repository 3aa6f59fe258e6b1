/* frame_name.c -- names of locations that have only an address. */
#include "hearth/model/frame_name.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define MAX_FILE_BYTES 256

/* The last component of a path, or its last MAX_FILE_BYTES, starting at a whole character. */
static struct hearth_str find_basename(struct hearth_str path)
{
    size_t from = path.n;

    while (from > 0 && path.p[from - 1] != '/' && path.p[from - 1] != '\\') {
        from--;
    }

    size_t n = path.n - from;
    if (n > MAX_FILE_BYTES) {
        from = path.n - MAX_FILE_BYTES;
        while (from < path.n && ((unsigned char)path.p[from] & 0xC0) == 0x80) {
            from++;
        }
    }

    return hearth_str_n(path.p + from, path.n - from);
}

size_t hearth_frame_name(uint64_t address, struct hearth_str mapping_filename,
                         char out[HEARTH_FRAME_NAME_BYTES])
{
    int n_address = snprintf(out, HEARTH_FRAME_NAME_BYTES, "0x%" PRIx64, address);
    size_t n = (size_t)n_address;
    struct hearth_str file =
        mapping_filename.n > 0 ? find_basename(mapping_filename) : mapping_filename;

    assert(n_address > 0 && n + 3 + file.n <= HEARTH_FRAME_NAME_BYTES);

    if (file.n > 0) {
        memcpy(out + n, " [", 2);
        memcpy(out + n + 2, file.p, file.n);
        out[n + 2 + file.n] = ']';
        n += file.n + 3;
    }

    return n;
}
