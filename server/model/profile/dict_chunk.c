/*
 * dict_chunk.c -- the bytes of a dictionary chunk.
 *
 *     +------+---------+----------+-----------+-----------+--------+
 *     | head | strings | mappings | functions | locations | stacks |
 *     +------+---------+----------+-----------+-----------+--------+
 *
 * Numbers are varints (unsigned LEB128); "signed" ones are zigzag-coded first. An index counts all
 * entries of the dictionary, over all chunks, and is below start + count of its table in this
 * chunk. An index that may be absent is stored plus one, 0 meaning none. String 0 is the empty
 * string and in no chunk.
 *
 * OFFSET        SIZE      MEANING
 * head
 *   0           1         version: 1
 *   1           5 x 3     for strings, mappings, functions, locations, stacks in this order:
 *               varints     id of the first entry, number of entries, bytes of the section
 * string
 *   0           varint    n
 *   ..          n         UTF-8 without NUL
 * mapping
 *   0           varint    file name: string
 *   ..          varint    build id: string
 *   ..          1         bit 0 has functions, 1 has file names, 2 has line numbers, 3 has inlined
 *                         frames, 4 has a memory range (only with bit 0); others 0
 *   ..          3 varints start, limit, file offset; absent if bit 0 is set and bit 4 is clear
 * function
 *   0           3 varints name, system name, file name: strings
 *   ..          signed    start line
 * location
 *   0           varint    mapping plus one
 *   ..          varint    number of lines << 1 | is folded
 *   ..          varint    address; only if there are no lines
 *   ..          varint, signed   for each line: function plus one, line number
 * stack
 *   0           varint    depth
 *   ..          signed    for each location, leaf first: its index minus the previous one (the
 *                         first: minus 0)
 *
 * The store compresses whole chunks, so plain varints suffice here.
 */
#include "profile/dict_chunk.h"

#include "hearth/base/varint.h"

#include <assert.h>

enum {
    HAS_FUNCTIONS = 1,
    HAS_FILENAMES = 2,
    HAS_LINE_NUMBERS = 4,
    HAS_INLINE_FRAMES = 8,
    HAS_RANGE = 16,
    ALL_FLAGS = 31,
};

/* A mapping without functions always has its range, and no flag for it. */
static bool needs_range_flag(const struct hearth_mapping *mapping)
{
    return mapping->has_functions &&
           (mapping->start != 0 || mapping->limit != 0 || mapping->offset != 0);
}

size_t hearth_dict_put_head(uint8_t *out, const struct hearth_dict_head *head)
{
    uint8_t *at = out;

    *at++ = HEARTH_DICT_CHUNK_VERSION;
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        at += hearth_varint_write(at, head->start[t]);
        at += hearth_varint_write(at, head->count[t]);
        at += hearth_varint_write(at, head->n_bytes[t]);
    }

    return (size_t)(at - out);
}

size_t hearth_dict_put_mapping(uint8_t *out, const struct hearth_mapping *mapping)
{
    uint8_t *at = out;

    /* Names and flags. */
    at += hearth_varint_write(at, mapping->filename);
    at += hearth_varint_write(at, mapping->build_id);
    *at++ = (uint8_t)((mapping->has_functions ? HAS_FUNCTIONS : 0) |
                      (mapping->has_filenames ? HAS_FILENAMES : 0) |
                      (mapping->has_line_numbers ? HAS_LINE_NUMBERS : 0) |
                      (mapping->has_inline_frames ? HAS_INLINE_FRAMES : 0) |
                      (needs_range_flag(mapping) ? HAS_RANGE : 0));

    /* The memory range, where it identifies the mapping. */
    if (!mapping->has_functions || needs_range_flag(mapping)) {
        at += hearth_varint_write(at, mapping->start);
        at += hearth_varint_write(at, mapping->limit);
        at += hearth_varint_write(at, mapping->offset);
    }

    return (size_t)(at - out);
}

size_t hearth_dict_put_function(uint8_t *out, const struct hearth_function *function)
{
    uint8_t *at = out;
    at += hearth_varint_write(at, function->name);
    at += hearth_varint_write(at, function->system_name);
    at += hearth_varint_write(at, function->filename);
    at += hearth_varint_write(at, hearth_zigzag(function->start_line));
    return (size_t)(at - out);
}

/* HEARTH_NO_INDEX + 1 is 0 in 32 bits. */
static size_t put_index(uint8_t *out, uint32_t index)
{
    return hearth_varint_write(out, (uint32_t)(index + 1));
}

size_t hearth_dict_put_location(uint8_t *out, const struct hearth_location *location)
{
    uint8_t *at = out;
    at += put_index(at, location->mapping);
    at += hearth_varint_write(at, (uint64_t)location->n_lines << 1 | location->is_folded);
    if (location->n_lines == 0) {
        at += hearth_varint_write(at, location->address);
    }
    return (size_t)(at - out);
}

size_t hearth_dict_put_line(uint8_t *out, const struct hearth_line *line)
{
    size_t n = put_index(out, line->function);
    return n + hearth_varint_write(out + n, hearth_zigzag(line->line));
}

/* A number below UINT32_MAX. */
static bool read_dict_u32(const uint8_t **at, const uint8_t *end, uint32_t *ret)
{
    assert(*at <= end);

    uint64_t value;
    if (!hearth_varint_read(at, end, &value) || value >= UINT32_MAX) {
        return false;
    }
    *ret = (uint32_t)value;
    return true;
}

/* A number below UINT32_MAX stored as itself plus one; 0 is HEARTH_NO_INDEX. */
static bool read_dict_index(const uint8_t **at, const uint8_t *end, uint32_t *ret)
{
    assert(*at <= end);

    uint64_t value;
    if (!hearth_varint_read(at, end, &value) || value > UINT32_MAX) {
        return false;
    }
    *ret = (uint32_t)value - 1; /* 0 becomes HEARTH_NO_INDEX */
    return true;
}

bool hearth_dict_get_mapping(const uint8_t **at, const uint8_t *end, struct hearth_mapping *ret)
{
    struct hearth_mapping m = {0};

    /* Names and flags. */
    if (!read_dict_u32(at, end, &m.filename) || !read_dict_u32(at, end, &m.build_id) ||
        *at == end) {
        return false;
    }

    uint8_t flags = *(*at)++;
    m.has_functions = (flags & HAS_FUNCTIONS) != 0;
    if ((flags & ~ALL_FLAGS) != 0 || ((flags & HAS_RANGE) != 0 && !m.has_functions)) {
        return false;
    }

    m.has_filenames = (flags & HAS_FILENAMES) != 0;
    m.has_line_numbers = (flags & HAS_LINE_NUMBERS) != 0;
    m.has_inline_frames = (flags & HAS_INLINE_FRAMES) != 0;

    /* The memory range. */
    if ((!m.has_functions || (flags & HAS_RANGE) != 0) &&
        (!hearth_varint_read(at, end, &m.start) || !hearth_varint_read(at, end, &m.limit) ||
         !hearth_varint_read(at, end, &m.offset))) {
        return false;
    }

    *ret = m;

    return true;
}

bool hearth_dict_get_function(const uint8_t **at, const uint8_t *end, struct hearth_function *ret)
{
    uint64_t start_line;

    if (!read_dict_u32(at, end, &ret->name) || !read_dict_u32(at, end, &ret->system_name) ||
        !read_dict_u32(at, end, &ret->filename) || !hearth_varint_read(at, end, &start_line)) {
        return false;
    }

    ret->start_line = hearth_unzigzag(start_line);

    return true;
}

bool hearth_dict_get_location(const uint8_t **at, const uint8_t *end, struct hearth_location *ret)
{
    struct hearth_location l = {0};
    uint64_t lines;

    if (!read_dict_index(at, end, &l.mapping) || !hearth_varint_read(at, end, &lines)) {
        return false;
    }

    /* A line takes at least two bytes. */
    if (lines >> 1 > (uint64_t)(end - *at) / 2 || lines >> 1 > HEARTH_DICT_MAX_FRAMES) {
        return false;
    }

    l.n_lines = (uint32_t)(lines >> 1);
    l.is_folded = (lines & 1) != 0;
    if (l.n_lines == 0 && !hearth_varint_read(at, end, &l.address)) {
        return false;
    }

    *ret = l;

    return true;
}

bool hearth_dict_get_line(const uint8_t **at, const uint8_t *end, struct hearth_line *ret)
{
    uint64_t line;
    if (!read_dict_index(at, end, &ret->function) || !hearth_varint_read(at, end, &line)) {
        return false;
    }
    ret->line = hearth_unzigzag(line);
    return true;
}

enum hearth_status hearth_dict_get_head(struct hearth_str chunk, struct hearth_dict_head *ret_head,
                                        const uint8_t **ret_body, struct hearth_err *err)
{
    assert(ret_head != NULL && ret_body != NULL);

    /* The size of the shortest entry of each table. */
    static const uint8_t shortest[HEARTH_DICT_N_TABLES] = {1, 3, 4, 3, 1};
    struct hearth_dict_head head;
    const uint8_t *at = (const uint8_t *)chunk.p;
    const uint8_t *end = at + chunk.n;

    if (at == end || *at++ != HEARTH_DICT_CHUNK_VERSION) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "dictionary chunk is empty or of an unknown version");
    }

    /* The tables: each has room for its entries, and ids stay below UINT32_MAX. */
    uint64_t total = 0;
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        uint64_t n_bytes;
        if (!read_dict_u32(&at, end, &head.start[t]) || !read_dict_u32(&at, end, &head.count[t]) ||
            !hearth_varint_read(&at, end, &n_bytes) || n_bytes > chunk.n ||
            head.count[t] > n_bytes / shortest[t] || head.count[t] >= UINT32_MAX - head.start[t]) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "head of dictionary chunk is damaged at table %d", t);
        }
        head.n_bytes[t] = (size_t)n_bytes;
        total += n_bytes; /* five numbers below 2^63 at most: chunk.n is a real size */
    }

    /* The sections fill the rest of the chunk. */
    if (total != (uint64_t)(end - at)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "dictionary chunk has %zu bytes of entries instead of %llu",
                           (size_t)(end - at), (unsigned long long)total);
    }

    *ret_head = head;
    *ret_body = at;

    return HEARTH_OK;
}
