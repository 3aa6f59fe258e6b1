/*
 * dict_chunk.h -- the bytes of a dictionary chunk, shared by writer and reader (layout in
 * dict_chunk.c).
 *
 * put functions write to a buffer with the room that their _MAX constant names, and return the
 * number of written bytes. get functions check the end of the input and the range of each number;
 * the caller checks that an index refers to an existing entry.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_DICT_CHUNK_H
#define HEARTH_MODEL_DICT_CHUNK_H

#include "hearth/base/hash.h"
#include "hearth/model/dict.h"

enum hearth_dict_table {
    HEARTH_DICT_STRINGS,
    HEARTH_DICT_MAPPINGS,
    HEARTH_DICT_FUNCTIONS,
    HEARTH_DICT_LOCATIONS,
    HEARTH_DICT_STACKS,
    HEARTH_DICT_N_TABLES
};

#define HEARTH_DICT_CHUNK_VERSION 1

struct hearth_dict_head {
    uint32_t start[HEARTH_DICT_N_TABLES], count[HEARTH_DICT_N_TABLES];
    size_t n_bytes[HEARTH_DICT_N_TABLES];
};

#define HEARTH_DICT_HEAD_MAX     (1 + HEARTH_DICT_N_TABLES * (5 + 5 + 10))
#define HEARTH_DICT_INDEX_MAX    ((size_t)5) /* a 32-bit number */
#define HEARTH_DICT_MAPPING_MAX  ((size_t)(5 + 5 + 1 + 3 * 10))
#define HEARTH_DICT_FUNCTION_MAX ((size_t)(3 * 5 + 10))
#define HEARTH_DICT_LOCATION_MAX ((size_t)(5 + 5 + 10)) /* without lines */
#define HEARTH_DICT_LINE_MAX     ((size_t)(5 + 10))     /* for each line */

size_t hearth_dict_put_head(uint8_t *out, const struct hearth_dict_head *head);
size_t hearth_dict_put_mapping(uint8_t *out, const struct hearth_mapping *mapping);
size_t hearth_dict_put_function(uint8_t *out, const struct hearth_function *function);
/* mapping may be HEARTH_NO_INDEX; the address is written only if there are no lines. */
size_t hearth_dict_put_location(uint8_t *out, const struct hearth_location *location);
size_t hearth_dict_put_line(uint8_t *out, const struct hearth_line *line);

/*
 * Read and check the head of `chunk`; *ret_body is the rest, exactly as long as the sections.
 * CORRUPT if the version is unknown, bytes are missing or left over, a count cannot fit its
 * section, or ids would exceed 32 bits.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_get_head(struct hearth_str chunk, struct hearth_dict_head *ret_head,
                                        const uint8_t **ret_body, struct hearth_err *err);
HEARTH_MUST_CHECK
bool hearth_dict_get_mapping(const uint8_t **at, const uint8_t *end, struct hearth_mapping *ret);
HEARTH_MUST_CHECK
bool hearth_dict_get_function(const uint8_t **at, const uint8_t *end, struct hearth_function *ret);
/* first_line is left 0; n_lines lines fit into the remaining bytes. */
HEARTH_MUST_CHECK
bool hearth_dict_get_location(const uint8_t **at, const uint8_t *end, struct hearth_location *ret);
HEARTH_MUST_CHECK
bool hearth_dict_get_line(const uint8_t **at, const uint8_t *end, struct hearth_line *ret);

/*
 * One table of a writer: ids by key, and the encoded entries that are in no committed chunk.
 * ends[i] is the end of the i-th pending entry in `bytes`.
 */
struct hearth_dict_section {
    struct hearth_idmap ids;
    uint8_t *bytes;
    size_t n_bytes, cap_bytes;
    size_t *ends;
    size_t cap_ends;
    uint32_t n_committed, n_pending;
};

/* Defined here so that tests can bring it to its limits. */
struct hearth_dict_writer {
    struct hearth_dict_section sections[HEARTH_DICT_N_TABLES];
    uint64_t n_frames; /* of all stacks */
};

#endif
