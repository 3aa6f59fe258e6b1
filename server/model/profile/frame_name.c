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

/* The offset in the file of a mapping with a range, otherwise the address. */
static uint64_t find_file_offset(uint64_t address, const struct hearth_mapping *mapping)
{
    bool is_within = mapping != NULL && address >= mapping->start && address < mapping->limit;

    return is_within ? address - mapping->start + mapping->offset : address;
}

size_t hearth_frame_name(uint64_t address, const struct hearth_mapping *mapping,
                         const struct hearth_str *strings, char out[HEARTH_FRAME_NAME_BYTES])
{
    struct hearth_str file = {"", 0};

    if (mapping != NULL && strings[mapping->filename].n > 0) {
        file = find_basename(strings[mapping->filename]);
    }
    if (file.n > 0) {
        memcpy(out, file.p, file.n);
        out[file.n] = '+';
    }

    size_t n = file.n > 0 ? file.n + 1 : 0;
    int n_number = snprintf(out + n, HEARTH_FRAME_NAME_BYTES - n, "0x%" PRIx64,
                            find_file_offset(address, mapping));
    assert(n_number > 0 && n + (size_t)n_number < HEARTH_FRAME_NAME_BYTES);

    return n + (size_t)n_number;
}

bool hearth_frame_name_is_address(struct hearth_str name)
{
    size_t at = name.n;

    while (at > 0 && ((name.p[at - 1] >= '0' && name.p[at - 1] <= '9') ||
                      (name.p[at - 1] >= 'a' && name.p[at - 1] <= 'f'))) {
        at--;
    }

    bool has_prefix = at >= 2 && at < name.n && name.p[at - 1] == 'x' && name.p[at - 2] == '0';

    return has_prefix && (at == 2 || name.p[at - 3] == '+');
}
