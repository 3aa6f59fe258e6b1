/*
 * json_table.h -- reads a small JSON object of objects as a list of its strings: {"a":{"b":"c"}}
 * has the cell (a, b, c). For settings inside other formats.
 *
 * Members that are not strings and rows that are null are ignored.
 *
 * Limits:    HEARTH_JSON_TABLE_BYTES of JSON, 1 MiB of memory while parsing.
 * Ownership: cells and texts are copies in the arena.
 * Threads:   pure.
 * Errors:    INVALID_ARGUMENT (not JSON, not an object of objects, too long), NO_MEMORY.
 */
#ifndef HEARTH_CODEC_JSON_TABLE_H
#define HEARTH_CODEC_JSON_TABLE_H

#include "hearth/base/arena.h"

#define HEARTH_JSON_TABLE_BYTES (64u << 10)

struct hearth_json_cell {
    struct hearth_str row, column, text; /* UTF-8 without NUL */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_json_table_read(struct hearth_str json, struct hearth_arena *arena,
                                          struct hearth_json_cell **ret_cells, size_t *ret_n,
                                          struct hearth_err *err);

#endif
